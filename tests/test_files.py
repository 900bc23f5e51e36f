"""Files are there in whole or as before, whoever writes them, whenever, and under any mask."""

from __future__ import annotations

import multiprocessing
import os
import threading
import time

import numpy as np
import pytest

import driftline as dl
from driftline import files
from driftline.state import archive


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def learner():
    made = dl.OGD(dl.losses.Logistic(dl.tasks.Multiclass(2)))
    made.run(np.eye(2), [0, 1])
    return made


@pytest.mark.parametrize("clock", [0.0, -1e8, 1e9, 5e9], ids=["1970", "1966", "2001", "2128"])
def test_equal_models_are_equal_bytes_whatever_the_clock_says(
    tmp_path, learner, monkeypatch, clock
):
    one = learner.save(tmp_path / "one").read_bytes()
    now = time.localtime(clock)
    monkeypatch.setattr(time, "localtime", lambda *_: now)
    monkeypatch.setattr(time, "time", lambda: clock)
    two = learner.save(tmp_path / "two").read_bytes()
    assert one == two
    assert dl.load(tmp_path / "two").save(tmp_path / "three").read_bytes() == one


def test_a_file_is_as_readable_as_others(tmp_path, learner):
    before = os.umask(0o027)
    try:
        (tmp_path / "plain").touch()
        learner.save(tmp_path / "model")
    finally:
        os.umask(before)
    modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    assert modes == {"plain": 0o640, "model": 0o640}


def test_the_mask_of_the_process_is_never_touched(tmp_path, learner, monkeypatch):
    """It belongs to all threads: another one would write a file that all may change."""
    monkeypatch.setattr(os, "umask", lambda _: 1 / 0)
    learner.save(tmp_path / "model")


def test_a_draft_that_was_left_behind_is_swept(tmp_path, learner):
    draft = files.draft_of(tmp_path / "model")
    draft.write_bytes(b"x" * 100_000)
    learner.save(tmp_path / "model")
    assert names(tmp_path) == ["model"] and dl.load(tmp_path / "model").rounds == 2


def test_a_draft_that_is_a_link_is_not_followed(tmp_path, learner):
    mine = tmp_path / "mine"
    mine.write_text("mine")
    files.draft_of(tmp_path / "model").symlink_to(mine)
    learner.save(tmp_path / "model")
    assert mine.read_text() == "mine" and names(tmp_path) == ["mine", "model"]
    assert not (tmp_path / "model").is_symlink()


def test_a_link_to_a_file_stays_one(tmp_path, learner):
    (tmp_path / "there").mkdir()
    (tmp_path / "model").symlink_to(tmp_path / "there" / "model")
    learner.save(tmp_path / "model")
    assert (tmp_path / "model").is_symlink() and names(tmp_path / "there") == ["model"]


def test_what_is_no_file_is_written_to(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    found = []
    reader = threading.Thread(target=lambda: found.append((tmp_path / "pipe").read_bytes()))
    reader.start()
    files.replace(tmp_path / "pipe", b"abc")
    reader.join()
    assert found == [b"abc"] and names(tmp_path) == ["pipe"]


def _write(path, fill, times):
    for _ in range(times):
        archive.write(path, {"fill": fill}, {"a": np.full(50_000, float(fill))})


def test_two_who_write_the_same_file_do_not_mix(tmp_path):
    """Threads and processes: what is read is always one of theirs, in whole."""
    path = tmp_path / "model"
    _write(path, 0, 1)
    fork = multiprocessing.get_context("spawn")
    writers = [threading.Thread(target=_write, args=(path, fill, 10)) for fill in (1, 2)]
    writers.append(fork.Process(target=_write, args=(path, 3, 10)))
    for writer in writers:
        writer.start()
    while any(writer.is_alive() for writer in writers):
        about, arrays = archive.read(path)
        assert (arrays["a"] == about["fill"]).all()
    for writer in writers:
        writer.join()
    assert writers[-1].exitcode == 0 and names(tmp_path) == ["model"]


def test_a_failed_write_takes_its_draft_away(tmp_path, monkeypatch):
    files.replace(tmp_path / "a", b"before")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files.disk, "write", full, raising=False)
    with pytest.raises(OSError, match="No space"):
        files.replace(tmp_path / "a", b"after")
    assert (tmp_path / "a").read_bytes() == b"before" and names(tmp_path) == ["a"]


def test_a_folder_that_is_not_there_is_told_by_the_name_of_the_file(tmp_path, learner):
    with pytest.raises(FileNotFoundError) as error:
        learner.save(tmp_path / "no" / "model")
    assert error.value.filename == str(tmp_path / "no" / "model")


def test_a_file_that_grows_is_cut_to_what_was_noted(tmp_path):
    path = tmp_path / "a"
    one = files.Appended(path)
    one.write(b"one\n")
    length, digest = one.length, one.digest
    one.write(b"two\n")
    one.close()
    two = files.Appended(path, length, digest)
    assert path.read_bytes() == b"one\ntwo\n"  # as long as nothing more comes
    two.write(b"three\n")
    two.close()
    assert path.read_bytes() == b"one\nthree\n"
    for content, word in ((b"on", "shorter"), (b"One\nthree\n", "changed")):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=word):
            files.Appended(path, length, digest)
        assert path.read_bytes() == content
