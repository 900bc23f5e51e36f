"""When the machine fails it is said in a line, and what was saved before is there."""

from __future__ import annotations

import errno
import shutil
from functools import partial

import numpy as np
import pytest
from commands import call, data, predictions, write_csv

from driftline.app import tables
from driftline.app.cli.traces import read_trace
from driftline.app.runs import CommitteeModel, Run, load_model, schedule
from driftline.app.runs.outputs import Outputs
from driftline.app.runs.predictions import PredictionFile
from driftline.app.tables import DelimitedTable

FULL = OSError(errno.ENOSPC, "No space left on device", "a file")
SHORT = MemoryError("Unable to allocate 7.28 TiB for an array")


@pytest.fixture
def table(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "open_table", partial(tables.open_table, rows=40))
    return write_csv(tmp_path / "t.csv", *data())


def failing(after, error):
    """Return a function that fails when it is called for the last of so many times."""
    left = [after]

    def maybe(*_, **__):
        left[0] -= 1
        if not left[0]:
            raise error

    return maybe


def wrapped(monkeypatch, owner, name, after, error):
    original, maybe = getattr(owner, name), failing(after, error)

    def changed(*arguments, **options):
        maybe()
        return original(*arguments, **options)

    monkeypatch.setattr(owner, name, changed)


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def said(done, words):
    last = done.output.strip().splitlines()[-1]
    assert done.exit_code == 2 and last.startswith("Error: ") and words in last, done.output
    assert isinstance(done.exception, SystemExit)


@pytest.fixture(scope="module")
def before(tmp_path_factory):
    """A table, a run of another one to go on from, and what whole runs leave behind."""
    folder = tmp_path_factory.mktemp("before")
    table = write_csv(folder / "t.csv", *data())
    first = write_csv(folder / "first.csv", *data(seed=1))
    with pytest.MonkeyPatch.context() as patched:
        saved_often(patched)
        assert call("run", first, "--out", folder / "first").exit_code == 0
        shutil.copytree(folder / "first", folder / "resumed")
        more = ("--resume", folder / "resumed" / "model.driftline")
        assert call("run", table, "--out", folder / "resumed", *more).exit_code == 0
        assert call("run", table, "--out", folder / "new").exit_code == 0
    return folder


def saved_often(patched):
    """Read 40 rows at a time, and save after each time."""
    patched.setattr(tables, "open_table", partial(tables.open_table, rows=40))
    patched.setattr(schedule, "SECONDS", 0.0)
    patched.setattr(schedule, "SHARE", np.inf)


FAILURES = [
    (owner, name, resumed, after, error)
    for owner, name in (
        (Run, "learn"),
        (PredictionFile, "write"),
        (CommitteeModel, "to_saved"),
        (Outputs, "save"),
    )
    for resumed in (False, True)
    for after in (1, 3)
    for error in (FULL, SHORT)
]
#: One of both errors for every place, in turns, is left to ``make test-all``.
OTHERS = {i for i in range(len(FAILURES)) if i.bit_count() % 2}


@pytest.mark.parametrize(
    ("owner", "name", "resumed", "after", "error"),
    [
        pytest.param(*case, marks=[pytest.mark.slow] * (i in OTHERS))
        for i, case in enumerate(FAILURES)
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_a_run_that_failed_goes_on(
    tmp_path, before, monkeypatch, owner, name, resumed, after, error
):
    """What is half learned is not saved; the last checkpoint is."""
    saved_often(monkeypatch)
    if resumed:
        shutil.copytree(before / "first", tmp_path / "out")

    def run(out):
        more = ("--resume", tmp_path / out / "model.driftline") if resumed else ()
        return call("run", before / "t.csv", "--out", tmp_path / out, *more)

    with monkeypatch.context() as patched:
        wrapped(patched, owner, name, after, error)
        done = run("out")
    words = "a file: No space left" if error is FULL else "there is not enough memory (Unable"
    said(done, words)
    rows = 40 * (after - 1)
    left = f"what was learned from {rows} rows is saved" if rows else "nothing of this run is saved"
    assert left in done.output
    if not (resumed or rows):
        assert not (tmp_path / "out").exists()
    done = run("out")
    assert done.exit_code == 0 and (f"after row {rows} " in done.output) == bool(rows)
    one, two = contents(before / ("resumed" if resumed else "new")), contents(tmp_path / "out")
    assert one.keys() == two.keys()
    for same in ("predictions.csv", "model.driftline", "journal.driftline"):
        assert one[same] == two[same]


@pytest.mark.parametrize("error", [FULL, SHORT], ids=["disk", "memory"])
def test_what_was_learned_before_reading_failed_is_saved(tmp_path, table, monkeypatch, error):
    call("run", table, "--out", tmp_path / "whole")
    with monkeypatch.context() as patched:
        wrapped(patched, DelimitedTable, "_piece", 4, error)
        done = call("run", table, "--out", tmp_path / "out")
    said(done, "No space left" if error is FULL else "not enough memory")
    assert "from 120 rows is saved" in done.output and len(predictions(tmp_path / "out")) == 120
    assert call("run", table, "--out", tmp_path / "out").exit_code == 0
    assert predictions(tmp_path / "out") == predictions(tmp_path / "whole")


@pytest.mark.parametrize("what", ["guarantee_of", "finish"])
def test_a_run_that_cannot_be_told_is_saved(tmp_path, table, monkeypatch, what):
    from driftline.app.runs import guarantee

    owner, error = (guarantee, SHORT) if what == "guarantee_of" else (Outputs, FULL)
    with monkeypatch.context() as patched:
        wrapped(patched, owner, what, 1, error)
        done = call("run", table, "--out", tmp_path / "out")
    said(done, f"what was learned is saved in {tmp_path / 'out' / 'model.driftline'}")
    assert load_model(tmp_path / "out" / "model.driftline").rounds == 200


def test_predictions_are_there_in_whole_or_as_before(tmp_path, table):
    call("run", table, "--out", tmp_path / "out")
    model, out = tmp_path / "out" / "model.driftline", tmp_path / "p.csv"
    out.write_text("mine\n")
    table.write_text(table.read_text() + '1,"x,3,u\n')
    assert call("predict", model, table, "--out", out).exit_code == 2
    assert out.read_text() == "mine\n" and not list(tmp_path.glob("*.part"))


@pytest.mark.parametrize("error", [FULL, SHORT], ids=["disk", "memory"])
@pytest.mark.parametrize("command", ["predict", "compare", "inspect", "report", "certify"])
def test_every_command_says_it_in_a_line(tmp_path, table, monkeypatch, command, error):
    call("run", table, "--out", tmp_path / "out", "--trace")
    model, trace = tmp_path / "out" / "model.driftline", tmp_path / "out" / "trace.npz"
    monkeypatch.setattr(tables, "open_table", failing(1, error))
    monkeypatch.setattr("driftline.app.runs.load_model", failing(1, error))
    for room in ("inspect", "report", "certify"):
        monkeypatch.setattr(
            f"driftline.app.cli.{room}.read_trace", failing(1, error), raising=False
        )
    arguments = {
        "predict": (model, table),
        "compare": (table,),
        "inspect": (trace,),
        "report": (trace,),
        "certify": (trace, "--data", trace),
    }
    done = call(command, *arguments[command])
    said(done, "No space left on device" if error is FULL else "there is not enough memory")
    assert read_trace(trace) is not None


# -- one class


def test_one_class_is_said_at_once_and_nothing_is_lost(tmp_path, table):
    inputs, labels = data()
    path = write_csv(tmp_path / "one.csv", inputs[:100], 0 * labels[:100])
    done = call("run", path, "--out", tmp_path / "out")
    said(done, "the label 'label' is 'u' in all 100 rows: there is nothing to learn")
    assert "label 'label' is 'u' in all of the first 40 rows" in done.output
    model = tmp_path / "out" / "model.driftline"
    assert f"--resume {model}" in done.output and len(predictions(tmp_path / "out")) == 100
    more = write_csv(tmp_path / "more.csv", inputs[100:], labels[100:])
    done = call("run", more, "--resume", model)
    assert done.exit_code == 0, done.output
    assert len(predictions(tmp_path / "out")) == 200
