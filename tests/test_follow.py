"""Files that grow: rows are taken as they are appended."""

import gzip
import json
import os
import signal
import subprocess
import sys
from contextlib import contextmanager

import pytest
from commands import call, data, length, predictions, wait_for, write_csv

from driftline.app.runs import load_model
from driftline.app.tables.live import FileChangedError, FollowedLines

pytestmark = pytest.mark.usefixtures("signals")

#: Rows that are there at first: as many as are waited for until columns are guessed.
FIRST = 100


# -- lines


@pytest.fixture
def grown(tmp_path):
    """Return the path of an empty file."""
    path = tmp_path / "t.csv"
    path.write_bytes(b"")
    return path


@contextmanager
def followed(path, waits=True, encoding="utf-8"):
    with path.open("rb") as raw:
        yield FollowedLines(raw, encoding, path, waits)


def append(path, text):
    with path.open("ab") as file:
        file.write(text if isinstance(text, bytes) else text.encode())


def taken(live, count=4096, *patience):
    made = []
    live.take(made, count, *patience)
    return made


def test_lines_are_taken_when_they_are_whole(grown):
    with followed(grown, waits=False) as live:
        assert taken(live) == []
        append(grown, "a\nb")
        assert taken(live) == ["a\n"] and taken(live) == []
        append(grown, "c\r")
        assert taken(live) == []
        append(grown, "\n\u00e4".encode()[:2])  # and half a letter
        assert taken(live) == ["bc\n"]
        append(grown, "\u00e4".encode()[1:] + b"\n\n1\n2\n")
        assert taken(live, 3) == ["\u00e4\n", "\n", "1\n"] and taken(live) == ["2\n"]
        live.follow()
        append(grown, "3\n4\n")
        assert taken(live) == ["3\n", "4\n"]


def test_many_lines_are_taken_at_once(grown):
    append(grown, "0123456789\n" * 100_000)
    with followed(grown) as live:
        assert len(taken(live)) == 4096
        assert len(taken(live, 10**6)) == 100_000 - 4096


def test_first_lines_are_waited_for_but_not_for_ever(grown):
    append(grown, "x\n" * 3)
    with followed(grown) as live:
        assert len(taken(live, 4096, 10, 0.01)) == 3


def replaced(path):
    other = path.with_name("other")
    other.write_text("more\n" * 100)
    other.replace(path)


CHANGES = {
    "was replaced by another file": replaced,
    "was deleted or renamed": lambda path: path.unlink(),
    "has become shorter": lambda path: os.truncate(path, 1),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_file_that_is_another_one_now_is_refused(grown, what):
    append(grown, "a\nb\n")
    with followed(grown) as live:
        assert taken(live) == ["a\n", "b\n"]
        CHANGES[what](grown)
        with pytest.raises(FileChangedError, match=what):
            taken(live)


def test_what_was_written_before_a_file_was_replaced_is_taken(grown):
    append(grown, "a\n")
    with followed(grown) as live:
        assert taken(live) == ["a\n"]
        append(grown, "b\n")
        replaced(grown)
        assert taken(live) == ["b\n"]
        with pytest.raises(FileChangedError, match="was replaced"):
            taken(live)


@pytest.mark.parametrize(("more", "good"), [("\nc\n", True), ("\r\nc\n", True), ("x\nc\n", False)])
def test_a_last_line_that_was_read_without_its_end_must_not_grow(grown, more, good):
    append(grown, "a\nb")
    with followed(grown, waits=False) as live:
        assert taken(live) == ["a\n"]
        live.end_line()
        assert taken(live, 1) == ["b"]
        live.follow()
        append(grown, more)
        if good:
            assert taken(live) == ["c\n"]
        else:
            with pytest.raises(FileChangedError, match="another end of the last line"):
                taken(live)


# -- commands


class Command:
    """A command that runs beside the test."""

    def __init__(self, *arguments, stdout=subprocess.DEVNULL):
        words = [sys.executable, "-m", "driftline", *map(str, arguments)]
        self.process = subprocess.Popen(words, stdout=stdout, stderr=subprocess.PIPE, text=True)

    def wait_for(self, what):
        """Wait until something is true, which the command brings about."""
        wait_for(self.process, what)

    def stop(self, number):
        """Send a signal, and return what was said until the end."""
        self.process.send_signal(number)
        return self.end(128 + number)

    def end(self, status):
        said = "".join(text or "" for text in self.process.communicate(timeout=120))
        assert self.process.returncode == status, said
        return said


@pytest.fixture
def started():
    """Return a function that starts commands, and end all of them afterwards."""
    made = []

    def start(*arguments, **how):
        made.append(Command(*arguments, **how))
        return made[-1]

    yield start
    for command in made:
        if command.process.poll() is None:
            command.process.kill()
        command.process.communicate()


def csv_rows(rows=130):
    inputs, labels = data(rows)
    made = zip(inputs.tolist(), labels.tolist(), strict=True)
    lines = [",".join([*map(repr, x), "uv"[y]]) + "\n" for x, y in made]
    return "x0,x1,x2,label\n", lines


def json_rows(rows=130):
    made = zip(*data(rows), strict=True)
    return "", [json.dumps({"a": x[0], "b": x[1], "label": "uv"[y]}) + "\n" for x, y in made]


KINDS = {
    "csv": ("t.csv", csv_rows),
    "tsv": ("t.tsv", csv_rows),
    "json lines": ("t.jsonl", json_rows),
}


def first_rows(folder, kind="csv"):
    """Write the first rows of a table; return its path, and the lines to come."""
    name, make = KINDS[kind]
    header, lines = make()
    if kind == "tsv":
        header, lines = header.replace(",", "\t"), [line.replace(",", "\t") for line in lines]
    path = folder / name
    path.write_text(header + "".join(lines[:FIRST]))
    return path, lines[FIRST:]


@pytest.mark.parametrize(
    ("kind", "number"),
    [
        ("csv", signal.SIGINT),
        ("json lines", signal.SIGTERM),
        pytest.param("tsv", signal.SIGTERM, marks=pytest.mark.slow),
    ],
)
def test_rows_are_learned_from_as_they_are_appended(tmp_path, started, kind, number):
    path, lines = first_rows(tmp_path, kind)
    options, out = ("--learner", "fast", "--out"), tmp_path / "out"
    made = out / "predictions.csv"
    command = started("run", path, "--follow", *options, out)
    command.wait_for(lambda: length(made) == 1 + FIRST)
    for i, line in enumerate(lines[:5], 1):
        append(path, line[:7])
        append(path, line[7:])
        command.wait_for(lambda i=i: length(made) == 1 + FIRST + i)
    append(path, lines[5][:7])  # which is no row yet
    said = command.stop(number)
    assert f"What was learned from {FIRST + 5} rows is saved. To go on:" in said
    assert "--follow" in said
    assert json.loads((out / "summary.json").read_text())["interrupted"] is True
    assert (out / "report.html").exists()
    append(path, lines[5][7:] + "".join(lines[6:10]))
    command = started("run", path, "--follow", *options, out)
    command.wait_for(lambda: length(made) == 1 + FIRST + 10)
    append(path, "".join(lines[10:]))
    command.wait_for(lambda: length(made) == 1 + FIRST + len(lines))
    command.stop(number)
    assert call("run", path, "--out", out).exit_code == 0  # there is nothing left
    assert call("run", path, "--out", tmp_path / "whole").exit_code == 0
    assert made.read_bytes() == (tmp_path / "whole" / "predictions.csv").read_bytes()
    models = [load_model(folder / "model.driftline") for folder in (out, tmp_path / "whole")]
    assert models[0].rounds == models[1].rounds == FIRST + len(lines)


def test_a_signal_ends_the_wait_for_first_rows(tmp_path, started):
    path, out = tmp_path / "t.csv", tmp_path / "out"
    path.write_text("a,b,lab")
    command = started("run", path, "--follow", "--out", out)
    command.wait_for(lambda: (out / "run.lock").exists())
    command.stop(signal.SIGTERM)
    assert not out.exists()


def test_a_finished_run_goes_on_when_rows_come(tmp_path, started):
    path, lines = first_rows(tmp_path)
    path.write_text(path.read_text().rstrip("\n"))  # a last line without its end is a row, too
    out, model = tmp_path / "out", tmp_path / "out" / "model.driftline"
    assert call("run", path, "--out", out).exit_code == 0
    before = {file.name: file.read_bytes() for file in out.iterdir()}
    command = started("run", path, "--follow", "--resume", model)
    assert f"going on after row {FIRST}" in command.process.stderr.readline()
    command.stop(signal.SIGINT)
    assert {file.name: file.read_bytes() for file in out.iterdir()} == before
    command = started("run", path, "--follow", "--resume", model)
    append(path, "\n")
    for i, line in enumerate(lines[:3], 1):
        append(path, line)
        command.wait_for(lambda i=i: length(out / "predictions.csv") == 1 + FIRST + i)
    command.stop(signal.SIGINT)
    assert [int(row["round"]) for row in predictions(out)] == list(range(1, FIRST + 4))


@pytest.mark.parametrize("same", [True, False])
def test_a_file_that_was_replaced_ends_the_run_with_what_to_do(tmp_path, started, same):
    path, lines = first_rows(tmp_path)
    out = tmp_path / "out"
    command = started("run", path, "--follow", "--learner", "fast", "--out", out)
    command.wait_for(lambda: length(out / "predictions.csv") == 1 + FIRST)
    other = tmp_path / "other"
    header = path.read_text() if same else path.read_text().splitlines(keepends=True)[0]
    other.write_text(header + "".join(lines))
    other.replace(path)
    said = command.end(2)
    assert f"Error: {path} was replaced by another file while it was followed" in said
    resume = ("--resume", out / "model.driftline")
    assert f"driftline run {path} --resume {resume[1]} --follow\n" in said
    done = call("run", path, *resume)
    if same:  # a copy with more rows
        assert done.exit_code == 0
    else:  # the next file, such as that of another day
        assert "say --skip 0 if it is another table now" in done.output
        assert call("run", path, *resume, "--skip", 0).exit_code == 0
    assert length(out / "predictions.csv") == 1 + FIRST + len(lines)


def test_rows_are_predicted_as_they_are_appended(tmp_path, started):
    path, lines = first_rows(tmp_path)
    assert call("run", path, "--out", tmp_path / "out").exit_code == 0
    model, rows = tmp_path / "out" / "model.driftline", tmp_path / "new.csv"
    rows.write_bytes(b"")
    command = started("predict", model, rows, "--follow", stdout=subprocess.PIPE)
    append(rows, "x0,x1,x2,label\n")
    assert command.process.stdout.readline().startswith("round,label,prediction,loss")
    for number, line in enumerate(lines[:4], 1):
        append(rows, line)
        assert command.process.stdout.readline().startswith(f"{number},")
    assert "of 4 rounds" in command.stop(signal.SIGTERM)
    made = tmp_path / "made.csv"
    command = started("predict", model, rows, "--follow", "--out", made)
    command.wait_for(lambda: length(made) == 5)
    command.stop(signal.SIGINT)
    assert length(made) == 5
    assert call("predict", model, rows, "--out", tmp_path / "all.csv").exit_code == 0
    assert made.read_bytes() == (tmp_path / "all.csv").read_bytes()


def test_what_cannot_be_followed_is_refused(tmp_path):
    table = write_csv(tmp_path / "t.csv", *data(120))
    packed = tmp_path / "t.csv.gz"
    packed.write_bytes(gzip.compress(table.read_bytes()))
    for name in ("t.arff", "t.svm", "t.parquet"):
        (tmp_path / name).write_text("")
    os.mkfifo(tmp_path / "pipe")
    cases = {
        "-": "standard input is none: rows of a pipe are taken as they come, leave it out",
        tmp_path / "pipe": "pipe is none: rows of a pipe",
        packed: "is compressed by gzip, and cannot be followed",
        tmp_path / "t.arff": "--follow is for CSV and JSON lines, but",
        tmp_path / "t.svm": "is svmlight: leave it out",
        tmp_path / "t.parquet": "is parquet: leave it out",
    }
    assert call("run", table, "--out", tmp_path / "out").exit_code == 0
    for file, message in cases.items():
        for command in (("run",), ("predict", tmp_path / "out" / "model.driftline")):
            done = call(*command, file, "--follow")
            assert done.exit_code == 2 and message in done.output, done.output
    done = call("run", "--example", "--follow")
    assert done.exit_code == 2 and "does not grow" in done.output
