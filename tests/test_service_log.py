"""The log itself: a full disk, old records, damaged snapshots, files of other kinds."""

import os
import shutil
import subprocess
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest
from click.testing import CliRunner

import driftline as dl
from driftline.app.cli import main
from driftline.app.service.backup import back_up
from driftline.app.service.clock import LogClock, wall_milliseconds
from driftline.app.service.log import DiskFullError, SqliteLog
from driftline.app.service.machine import Machine
from driftline.app.service.requests import Ask, Challenge, Create, Learn, Tell
from driftline.app.service.served import Feedback
from driftline.app.service.writer import Limits
from tests.service import call, client, serving, within
from tests.simulation import load

COLUMNS = {"x": "number"}


@pytest.fixture
def machine(tmp_path):
    log = SqliteLog(tmp_path / "log.sqlite3")
    times = iter(range(1000, 1_000_000, 1000))
    made = Machine(log, load, lambda: next(times))
    made.process([Create("m", b"")])
    yield made
    log.close()


def test_a_full_disk_refuses_labels_and_changes_nothing(machine):
    machine.process([Ask("m", ["a"], ["row a"])])
    run = machine.log._write.execute
    pages = run("pragma page_count").get
    before = machine.seq, machine.batch, machine.hosted("m").to_saved()
    run(f"pragma max_page_count={pages}")
    with pytest.raises(DiskFullError):
        machine.process([Learn("m", [f"l{i}"], ["x" * 5000], [Feedback("yes")]) for i in range(9)])
    assert (machine.seq, machine.batch, machine.hosted("m").to_saved()) == before
    run("pragma max_page_count=1000000")
    made = machine.process([Tell("m", ["a"], [Feedback("yes")])])
    assert made[0].items[0]["learned"]


def test_on_a_full_disk_predictions_go_on(tmp_path):
    with serving(tmp_path / "data") as (address, server):
        own = client(address)
        own.create("m", "y", columns=COLUMNS, learner="fast")
        own.predict("m", {"x": 1.0}, id="a")

        def fill():
            pages = server.log._write.execute("pragma page_count").get
            server.log._write.execute(f"pragma max_page_count={pages}")

        server.writer._queue.append((fill, 0, None, None))
        text = "x" * 9000  # so that a page more is needed
        status, made = call(address, "POST", "/models/m/labels", {"id": "a", "label": text})
        assert (status, "disk is full" in made["error"]) == (507, True)
        many = [{"id": f"b{i}", "row": {"x": i}} for i in range(500)]
        status, made = call(address, "POST", "/models/m/predict", many)
        assert status == 200 and made[0]["token"]
        assert call(address, "GET", "/ready")[0] == 503
        assert call(address, "GET", "/health")[0] == 200
        free = lambda: server.log._write.execute("pragma max_page_count=1000000")  # noqa: E731
        server.writer._queue.append((free, 0, None, None))
        assert own.label("m", "a", "yes")["learned"]
        body = {"id": "b7", "token": made[7]["token"], "label": "no"}
        assert call(address, "POST", "/models/m/labels", body)[0] == 200
        assert call(address, "GET", "/ready")[0] == 200


def test_what_was_committed_before_the_disk_was_full_is_not_refused(tmp_path):
    """A row and a large model come together; the row is learned from, and has no id."""
    with serving(tmp_path / "data") as (address, server):
        own, writer, answers = client(address), server.writer, {}
        own.create("m", "y", columns=COLUMNS, learner="fast")
        held, free = threading.Event(), threading.Event()

        def fill():
            held.set()
            free.wait(20.0)
            pages = server.log._write.execute("pragma page_count").get
            server.log._write.execute(f"pragma max_page_count={pages + 1}")

        with writer._ready:
            writer._queue.append((fill, 0, None, None))
            writer._ready.notify()
        held.wait(20.0)
        large = {"name": "n", "label": "y", "learner": "fast"}
        large["columns"] = {"t": [f"{i}" for i in range(20_000)]}
        threads = []
        for path, body in (("/models/m/learn", {"row": {}, "label": "yes"}), ("/models", large)):
            work = lambda *given: answers.update({given[2]: call(*given)[0]})  # noqa: E731
            threads.append(threading.Thread(target=work, args=(address, "POST", path, body)))
            threads[-1].start()
            while writer.waiting < len(threads):
                time.sleep(0.01)
        free.set()
        for thread in threads:
            thread.join()
        assert answers == {"/models/m/learn": 200, "/models": 507}
        assert own.model("m")["counts"]["learned"] == 1


def test_a_snapshot_that_fills_the_disk_ends_nothing(tmp_path):
    with serving(tmp_path / "data") as (address, server):
        own, writer = client(address), server.writer
        own.create("m", "y", columns=COLUMNS, learner="fast")
        put = server.log.put_snapshots

        def full(*arguments):
            server.log.put_snapshots = put
            raise DiskFullError("simulated")

        server.log.put_snapshots, writer._next_snapshot = full, 0.0
        end = time.monotonic() + 20.0
        while server.log.put_snapshots is full and time.monotonic() < end:
            own.learn("m", {"x": 1.0}, "yes")
        while not within(server, server.log.snapshots) and time.monotonic() < end:
            writer._next_snapshot = 0.0
            own.learn("m", {"x": 1.0}, "yes")
        assert within(server, server.log.snapshots)


@pytest.mark.hard
def test_a_really_full_disk(tmp_path):
    place = tmp_path / "small"
    full_disk(place, "3m")
    try:
        with serving(place / "data") as (address, server):
            own = client(address)
            own.create("m", "y", columns=COLUMNS, learner="fast")
            learned, refused = 0, 0
            for i in range(4000):
                status, _ = call(
                    address,
                    "POST",
                    "/models/m/learn",
                    {"id": f"l{i}", "row": {"x": i}, "label": "a" * 400 if i % 9 else "b"},
                )
                learned += status == 200
                refused += status == 507
                if refused > 20:
                    break
            assert refused > 20
            assert call(address, "POST", "/models/m/predict", {"row": {"x": 1}})[0] == 200
            assert own.model("m")["counts"]["learned"] == learned
        with serving(place / "data") as (address, server):
            assert client(address).model("m")["counts"]["learned"] == learned
    finally:
        subprocess.run(["umount", str(place)], check=True)


def test_old_records_are_deleted_and_their_ids_known_to_be_too_old(tmp_path):
    limits = Limits(keep_seconds=3600.0, snapshot_seconds=1000.0)
    folder = tmp_path / "data"
    with serving(folder, limits=Limits()) as (address, server):
        own = client(address)
        own.create("m", "y", columns=COLUMNS, learner="fast")
        for i in range(30):
            own.predict("m", {"x": i}, id=f"a{i}")
            if i % 2:
                own.label("m", f"a{i}", "yes" if i % 3 else "no")
        own.learn("m", {"x": 1.0}, "yes", id="b")
        before = own.model("m")
    with serving(folder, limits=limits) as (address, server):
        own, now = client(address), wall_milliseconds()
        server.machine.clock = server.writer._clock = LogClock(0, lambda: now, lambda: now)
        now += 4_000_000
        end = time.monotonic() + 20.0
        while not server.log.trimmed and time.monotonic() < end:  # two snapshots come before
            server.writer._next_expiry = server.writer._next_snapshot = 0.0
            own.predict("m", {"x": 2.0})  # housekeeping comes after every group
        assert server.log.trimmed > 0
        while within(server, lambda: server.log.find(1, "b")).told > 0 and time.monotonic() < end:
            server.writer._next_expiry = 0.0
            own.predict("m", {"x": 2.0})
        for id in ("a1", "b"):
            assert call(address, "POST", "/models/m/labels", {"id": id, "label": "yes"})[0] == 410
        body = {"id": "a1", "row": {"x": 1}}
        assert call(address, "POST", "/models/m/predict", body)[0] == 410
        body = {"id": "b", "row": {"x": 1.0}, "label": "yes"}
        assert call(address, "POST", "/models/m/learn", body)[0] == 410
        assert own.label("m", "a2", "no")["learned"]  # it was waiting all the time
        with pytest.raises(dl.ServiceError, match="older ones are deleted"):
            own.challenge("m", "late")
        now += 8_000_000
        for _ in range(5):
            server.writer._next_expiry = 0.0
            own.predict("m", {"x": 2.0})
        assert call(address, "POST", "/models/m/labels", {"id": "a1", "label": "yes"})[0] == 404
    with serving(folder) as (address, server):
        now = client(address).model("m")
        assert now["learners"][0]["rounds"] == before["learners"][0]["rounds"] + 1


def test_records_whose_labels_came_are_not_read_again_for_the_oldest_row(machine):
    machine.process([Ask("m", ["a", "b"], ["row a", "row b"])])
    number = machine.hosted("m").number
    assert machine.log.waiting(number, machine.at + 1) == [("a", 2), ("b", 3)]
    assert machine.log.waiting(number, machine.at) == []
    machine.process([Tell("m", ["a"], [Feedback("yes")])])
    assert machine.log.waiting(number, machine.at + 1) == [("b", 3)]
    machine.process([Tell("m", ["b"], [Feedback("yes")])])
    assert machine.log.waiting(number, machine.at + 1) == []
    assert machine.log._settled[number] == machine.seq
    machine.process([Ask("m", ["c"], ["row c"])])
    assert machine.log.waiting(number, machine.at + 1) == [("c", machine.seq)]


def test_a_damaged_snapshot_is_left_aside(tmp_path):
    folder = tmp_path / "data"
    with serving(folder) as (address, _):
        own = client(address)
        own.create("m", "y", columns=COLUMNS, learner="fast")
        own.learn("m", [{"x": i} for i in range(20)], ["yes", "no"] * 10)
        before = own.model("m")
    (file,) = (folder / "snapshots").iterdir()  # there was no time for a second one
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    with serving(folder) as (address, server):
        assert len(server.snapshots.findings) == 1
        assert server.replayed == 21
        assert client(address).model("m") == before


def test_files_of_another_kind_are_refused(tmp_path):
    (tmp_path / "log.sqlite3").write_bytes(b"something else " * 100)
    with pytest.raises(dl.InputError, match="is no log of driftline"):
        SqliteLog(tmp_path / "log.sqlite3")
    log = SqliteLog(tmp_path / "new.sqlite3")
    log._write.execute("pragma user_version=99")
    log.close()
    with pytest.raises(dl.InputError, match="install a newer one"):
        SqliteLog(tmp_path / "new.sqlite3")
    with pytest.raises(dl.InputError, match="cannot be opened"):
        SqliteLog(Path(tmp_path))


@pytest.mark.parametrize("damage", ["cut", "overwritten"])
def test_a_log_that_cannot_be_read_ends_the_process_with_74(tmp_path, damage):
    file = tmp_path / "log.sqlite3"
    log = SqliteLog(file)
    machine = Machine(log, load, lambda: 1000)
    machine.process([Create("m", b"")])
    for i in range(50):
        machine.process([Learn("m", [f"l{i}"], ["x" * 5000], [Feedback("yes")])])
    log.close()
    content = file.read_bytes()
    half = len(content) // 2
    file.write_bytes(content[:half] if damage == "cut" else content[:4096] + b"\1" * half)
    made = CliRunner().invoke(main, ["serve", "--data", str(tmp_path), "--port", "0"])
    assert (made.exit_code, "cannot be read" in made.output) == (74, True)


def test_nobody_else_reads_the_folder(tmp_path):
    with serving(tmp_path / "data"):
        assert (tmp_path / "data").stat().st_mode & 0o777 == 0o700


def test_nobody_else_reads_the_log_in_a_folder_that_was_there(tmp_path):
    """As systemd makes one; and a log of before that others could read."""
    folder = tmp_path / "data"
    folder.mkdir(mode=0o755)
    for _ in range(2):
        with serving(folder) as (address, server):
            client(address).create(f"m{server.machine.seq}", "y", columns=COLUMNS, learner="fast")
            for path in folder.glob("log.sqlite3*"):
                assert path.stat().st_mode & 0o777 == 0o600, path
            assert (folder / "snapshots").stat().st_mode & 0o777 == 0o700
            found = list(server.findings)
        (folder / "log.sqlite3").chmod(0o644)
        (folder / "snapshots").chmod(0o755)
    assert len(found) == 1 and "could be read by others (mode 644)" in found[0]


def full_disk(place, size):
    """Mount a small disk, or skip the test."""
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(place)]
    if os.geteuid() or subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("a small disk cannot be mounted here")


def fill(path):
    with suppress(OSError), path.open("wb", buffering=0) as file:
        for size in (4096, 1):
            with suppress(OSError):
                while True:
                    file.write(b"x" * size)


@pytest.mark.parametrize("killed", [False, True])
def test_a_service_starts_on_a_full_disk(tmp_path, killed):
    """It predicts by tokens, refuses labels with 507, and learns as soon as there is space."""
    place = tmp_path / "small"
    full_disk(place, "4m")
    try:
        with serving(place / "data") as (address, server):
            own = client(address)
            own.create("m", "y", columns=COLUMNS, learner="fast")
            own.learn("m", [{"x": i} for i in range(20)], ["yes", "no"] * 10)
            own.predict("m", {"x": 1.0}, id="a")
            if killed:
                own.close()
                copied = place / "copied"
                shutil.copytree(place / "data", copied)
                (copied / "run.lock").unlink()
        folder = copied if killed else place / "data"
        fill(place / "fill")
        with serving(folder) as (address, server):
            own = client(address)
            assert own.model("m")["counts"]["learned"] == 20
            body = {"id": "a", "label": "yes"}
            status, said = call(address, "POST", "/models/m/labels", body)
            assert (status, "disk is full" in said["error"]) == (507, True)
            status, said = call(address, "POST", "/models/m/predict", {"row": {"x": 1}, "id": "b"})
            assert status == 200 and said["token"]
            assert call(address, "GET", "/ready")[0] == 503
            assert call(address, "GET", "/models/m/log")[0] == (507 if server.log.full else 200)
            assert server.log.full != killed  # then there is an index of the write-ahead log
            if server.log.full:
                with pytest.raises(dl.InputError, match="is locked: its service was started"):
                    back_up(folder, tmp_path / "backup")
            (place / "fill").unlink()
            end = time.monotonic() + 20.0
            while call(address, "POST", "/models/m/labels", body)[0] != 200:
                assert time.monotonic() < end
                time.sleep(0.1)
            assert call(address, "GET", "/ready")[0] == 200
            assert call(address, "GET", "/models/m/log")[0] == 200
        with serving(folder) as (address, server):
            assert client(address).label("m", "a", "yes")["duplicate"]
    finally:
        subprocess.run(["umount", str(place)], check=True)


def test_a_new_log_on_a_full_disk_is_refused(tmp_path):
    place = tmp_path / "small"
    full_disk(place, "1m")
    try:
        fill(place / "fill")
        with pytest.raises((dl.InputError, OSError), match="disk is full|No space left"):
            SqliteLog(place / "log.sqlite3")
    finally:
        subprocess.run(["umount", str(place)], check=True)


def test_a_challenger_of_another_task_is_refused(machine):
    machine.hosted("m").served.about = lambda: {"task": "another"}
    assert machine.process([Challenge("m", "c", b"", 0)])[0].status == 422


@pytest.mark.parametrize("after", [3, 2**63, 2**64, 2**70])
def test_a_challenger_that_begins_after_the_log_is_refused(machine, after):
    """Once it was written, and then could not be read: no restart helped."""
    machine.process([Learn("m", ["l"], ["row"], [Feedback("yes")])])
    assert machine.process([Challenge("m", "c", b"", after)])[0].status == 422
    assert (machine.seq, machine.process([Challenge("m", "c", b"", 2)])[0].status) == (2, 201)
