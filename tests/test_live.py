"""Pipes: rows are taken as they come."""

import io
import os
import select
import subprocess
import sys
import threading
import time
from contextlib import ExitStack

import pytest
from commands import call, data, length, predictions, wait_for, write_csv

from driftline.app.runs.checkpoint import Checkpoint
from driftline.app.tables.live import LiveLines


@pytest.fixture
def pipes():
    """Return a function that makes pipes, and close all of them afterwards."""
    with ExitStack() as closing:

        def make():
            reader, writer = os.pipe()
            raw = closing.enter_context(io.BufferedReader(io.FileIO(reader)))
            return raw, closing.enter_context(os.fdopen(writer, "wb", buffering=0))

        yield make


def write_all(out, chunks, pause=0.0):
    """Write to a pipe in another thread, and close it."""

    def write():
        with out:
            for chunk in chunks:
                out.write(chunk)
                time.sleep(pause)

    thread = threading.Thread(target=write, daemon=True)
    thread.start()
    return thread


def taken(live, count, *patience):
    made = []
    live.take(made, count, *patience)
    return made


TEXTS = [
    "a,b\n1,2\n3,4\n",
    "a\r\nb\rc\nlast without an end",
    "\u00e4\u20ac\U0001f600\n" * 50,
    "\n\n\nx\n",
    "",
]


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("size", [1, 3, 1000])
def test_lines_are_those_of_a_file_however_they_come(pipes, text, size):
    whole, (raw, out) = text.encode(), pipes()
    thread = write_all(out, [whole[i : i + size] for i in range(0, len(whole), size)])
    raw.peek(16)
    live, made = LiveLines(raw, "utf-8-sig"), []
    while lines := taken(live, 7):
        assert len(lines) <= 7
        made += lines
    thread.join()
    assert made == list(io.TextIOWrapper(io.BytesIO(whole), "utf-8"))


def test_a_line_that_is_there_does_not_wait_for_the_next(pipes):
    raw, out = pipes()
    live = LiveLines(raw, "utf-8")
    for number in range(5):
        out.write(f"{number}\n".encode())
        assert taken(live, 4096) == [f"{number}\n"]
    out.write(b"half")
    out.close()
    assert taken(live, 4096) == ["half"] and taken(live, 4096) == []


def test_first_lines_are_waited_for_but_not_for_ever(pipes):
    raw, out = pipes()
    thread = write_all(out, [b"x\n"] * 20, pause=0.001)
    assert len(taken(LiveLines(raw, "utf-8"), 4096, 10, 60.0)) >= 10
    thread.join()
    raw, out = pipes()
    out.write(b"x\n" * 3)
    assert len(taken(LiveLines(raw, "utf-8"), 4096, 10, 0.01)) == 3


def test_a_prediction_comes_out_before_the_next_row_goes_in(tmp_path):
    inputs, labels = data(rows=120)
    table = write_csv(tmp_path / "t.csv", inputs, labels)
    assert call("run", table, "--out", tmp_path / "out").exit_code == 0
    model = tmp_path / "out" / "model.driftline"
    command = [sys.executable, "-m", "driftline", "predict", str(model), "-"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
    ) as made:
        made.stdin.write(b"x0,x1,x2\n")
        assert made.stdout.readline().startswith(b"round,prediction")
        for number in range(1, 6):
            made.stdin.write(b"0.5,-1.0,2.0\n")
            ready, _, _ = select.select([made.stdout], [], [], 60.0)
            assert ready and made.stdout.readline().startswith(f"{number},".encode())
        made.stdin.close()
        assert made.stdout.read() == b"" and made.wait(60) == 0


@pytest.mark.parametrize("resumed", [False, True])
def test_a_run_writes_a_prediction_before_the_next_row_goes_in(tmp_path, resumed):
    """The first rows of a new run are waited for, to guess what columns hold."""
    inputs, labels = data(rows=120)
    table = write_csv(tmp_path / "t.csv", inputs, labels)
    header, *rows = table.read_bytes().splitlines(keepends=True)
    out, first = tmp_path / "out", 100
    command = [sys.executable, "-m", "driftline", "run", "-", "--out", str(out), "--no-certify"]
    command += ["--learner", "fast"]
    if resumed:
        table.write_bytes(header + b"".join(rows[:first]))
        assert call("run", table, "--out", out).exit_code == 0
        command = [*command[:5], "--resume", str(out / "model.driftline")]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
    ) as made:
        made.stdin.write(header if resumed else header + b"".join(rows[:first]))
        for i in range(first, 106):
            made.stdin.write(rows[i])
            wait_for(made, lambda i=i: length(out / "predictions.csv") == 2 + i)
        made.stdin.write(b"".join(rows[106:]))
        made.stdin.close()
        assert made.wait(120) == 0
    assert [int(row["round"]) for row in predictions(out)] == list(range(1, 121))


def test_what_was_learned_is_saved_while_no_row_comes(tmp_path):
    table = write_csv(tmp_path / "t.csv", *data(rows=120))
    lines = table.read_bytes().splitlines(keepends=True)
    out = tmp_path / "out"
    command = [sys.executable, "-m", "driftline", "run", "-", "--out", str(out)]
    with subprocess.Popen(
        [*command, "--learner", "fast"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
    ) as made:
        made.stdin.write(b"".join(lines[:101]))
        wait_for(made, lambda: saved_rows(out) == 100)
        made.stdin.write(b"".join(lines[101:105]))
        wait_for(made, lambda: saved_rows(out) == 104)
        made.kill()
    rest = tmp_path / "rest.csv"
    rest.write_bytes(lines[0] + b"".join(lines[105:]))
    assert call("run", rest, "--resume", out / "model.driftline").exit_code == 0
    assert call("run", table, "--out", tmp_path / "whole").exit_code == 0
    assert predictions(out) == predictions(tmp_path / "whole")


def saved_rows(folder):
    """Return how many rows are in the last checkpoint, 0 without one."""
    path = folder / "model.driftline"
    return Checkpoint.read(path).inputs[-1].mark.rows if path.exists() else 0
