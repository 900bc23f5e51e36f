"""A run goes on among its own files, or in a folder of its own, and nowhere else."""

from __future__ import annotations

import shlex
import shutil
from functools import partial

import pytest
from commands import call, data, predictions, write_csv

from driftline.app import tables
from driftline.app.runs import load_model


@pytest.fixture
def parts(tmp_path, monkeypatch):
    """Two halves of a table, the run over the whole, and the run over the first half."""
    monkeypatch.setattr(tables, "open_table", partial(tables.open_table, rows=40))
    inputs, labels = data()
    write_csv(tmp_path / "whole.csv", inputs, labels)
    write_csv(tmp_path / "first.csv", inputs[:100], labels[:100])
    write_csv(tmp_path / "second.csv", inputs[100:], labels[100:])
    for name in ("whole", "first"):
        done = call("run", tmp_path / f"{name}.csv", "--out", tmp_path / name)
        assert done.exit_code == 0, done.output
    return tmp_path


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def goes_on(parts, *options, model="first/model.driftline"):
    return call("run", parts / "second.csv", "--resume", parts / model, *options)


@pytest.mark.parametrize("said", [False, True])
def test_a_run_goes_on_in_its_own_folder(parts, said):
    options = ("--out", parts / "first") if said else ()
    assert goes_on(parts, *options).exit_code == 0
    assert predictions(parts / "first") == predictions(parts / "whole")


def test_a_run_goes_on_in_a_folder_of_its_own(parts):
    before = contents(parts / "first")
    assert goes_on(parts, "--out", parts / "new").exit_code == 0
    assert contents(parts / "first") == before
    later = predictions(parts / "new")
    assert later == predictions(parts / "whole")[100:]  # numbered as rounds of the model
    third = write_csv(parts / "third.csv", *data(100, seed=1))
    again = call("run", third, "--resume", parts / "new" / "model.driftline")
    assert again.exit_code == 0
    assert predictions(parts / "new")[:100] == later
    assert [int(row["round"]) for row in predictions(parts / "new")] == list(range(101, 301))


@pytest.mark.parametrize("gone", [None, "model.driftline", "predictions.csv"])
def test_a_folder_of_another_run_is_refused_before_anything_changes(parts, gone):
    if gone is not None:
        (parts / "whole" / gone).unlink()
    before = contents(parts / "whole"), contents(parts / "first")
    done = goes_on(parts, "--out", parts / "whole")
    assert done.exit_code == 2
    words = "holds another run than" if gone != "model.driftline" else "but no model"
    assert f"whole {words}" in done.output or f"predictions.csv, {words}" in done.output
    assert "--out" in done.output
    assert (contents(parts / "whole"), contents(parts / "first")) == before


def test_an_earlier_model_does_not_go_on_among_later_predictions(parts):
    kept = parts / "first" / "kept.driftline"
    shutil.copy(parts / "first" / "model.driftline", kept)
    assert goes_on(parts).exit_code == 0
    before = contents(parts / "first")
    done = goes_on(parts, model="first/kept.driftline")
    assert done.exit_code == 2 and "holds another run" in done.output
    assert contents(parts / "first") == before
    assert goes_on(parts, "--out", parts / "new", model="first/kept.driftline").exit_code == 0


def test_predictions_of_rounds_that_were_not_saved_are_made_again(parts):
    path = parts / "first" / "predictions.csv"
    with path.open("a") as file:
        file.write("101,u,v,1\n102,u,v,1\n")
    assert goes_on(parts).exit_code == 0
    assert predictions(parts / "first") == predictions(parts / "whole")


def test_the_way_to_go_on_says_all_that_must_be_said_again(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("id;a;y\n1;2;u\n2;3;v\n3;x;u\n")
    model = tmp_path / "out" / "model.driftline"
    more = ("--delimiter", "semicolon", "--ignore", "id")
    good = tmp_path / "good.csv"
    good.write_text("a;y\n1;u\n2;v\n")
    assert call("run", good, "--out", tmp_path / "out").exit_code == 0
    lines = path.read_text().splitlines()
    path.write_text("\n".join([lines[0], *lines[1:3] * 3000, lines[3]]) + "\n")
    done = call("run", path, "--resume", model, *more)
    assert done.exit_code == 2 and "column a: expected a number" in done.output
    assert load_model(model).rounds == 2 + 4096
    last = next(line for line in done.output.splitlines() if line.startswith("  driftline run "))
    path.write_text("\n".join([lines[0], *lines[1:3] * 3000]) + "\n")
    done = call(*shlex.split(last)[1:])
    assert done.exit_code == 0, done.output
    assert load_model(model).rounds == 2 + 6000


@pytest.mark.parametrize(
    ("said", "named"),
    [
        (("--learner", "paper"), "--learner cannot"),
        (("--label", "x0", "--missing", "zero"), "--label, --missing cannot"),
        (("--seed", 0), "--seed cannot"),
        (("--highest-grade", 3), "--highest-grade cannot"),
    ],
)
def test_what_a_model_has_settled_is_not_said_again(parts, said, named):
    before = contents(parts / "first")
    done = goes_on(parts, *said)
    assert done.exit_code == 2 and f"{named} be given with --resume" in done.output
    assert contents(parts / "first") == before
