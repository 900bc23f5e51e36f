"""``driftline run --sets``: a set of labels for every row."""

import csv
import json

import numpy as np
import pytest
from commands import call, data, predictions, write_csv

import driftline as dl
from driftline.app import tables
from driftline.app.runs import schedule
from tests.howmany import chosen

ROWS = 110


@pytest.fixture(params=chosen([33], [None, 33]), ids=str)
def pieces(request, monkeypatch):
    if request.param is not None:
        original = tables.open_table
        monkeypatch.setattr(
            tables, "open_table", lambda *a, **k: original(*a, **k, rows=request.param)
        )
        monkeypatch.setattr(schedule, "SECONDS", 0.0)
        monkeypatch.setattr(schedule, "SHARE", float("inf"))


def table(path, rows=ROWS):
    inputs, labels = data(rows)
    labels = labels + 2 * (inputs[:, 1] > 0.8)
    write_csv(path, inputs, labels, names="uvwx")
    return inputs, labels


def run(path, out, *more):
    result = call("run", path, "--out", out, *more)
    assert result.exit_code == 0, result.output
    return result.output, json.loads((out / "summary.json").read_text())


@pytest.mark.parametrize("late", [(), ("--delay", "21")], ids=["at once", "late"])
def test_sets_of_a_run_are_those_of_the_library(tmp_path, pieces, late):
    inputs, labels = table(tmp_path / "t.csv")
    more = ("--sets", "0.8", *late)
    output, summary = run(tmp_path / "t.csv", tmp_path / "out", *more)
    model = dl.load(tmp_path / "out/model.driftline")
    names = model.classes
    codes = np.array([names.index("uvwx"[y]) for y in labels])
    start = dl.TableModel.new(
        [{"x0": 0.5, "x1": 0.25, "x2": 1.5, "label": "uvwx"[y]} for y in labels], "label",
        learner="fast",
    )  # fmt: skip
    made = dl.sets.Adaptive(0.8).run(
        start.learner, inputs, codes, delay=int(late[1]) if late else None
    )
    rows = sorted(predictions(tmp_path / "out"), key=lambda row: int(row["round"]))
    given = [[names.index(name) for name in row["set"].split(";")] for row in rows]
    assert len(names) == 4
    assert given == [np.flatnonzero(own).tolist() for own in made.sets]
    for own, row in zip(given, rows, strict=True):
        assert names.index(row["prediction"]) in own
    came = [row for row in rows if row["label"]]
    covered = [row["label"] in row["set"].split(";") for row in came]
    told = summary["sets"]
    assert told["goal"] == 0.8 and told["coverage"] == pytest.approx(np.mean(covered))
    sizes = [len(row["set"].split(";")) for row in came]
    assert told["mean_size"] == pytest.approx(np.mean(sizes))
    assert "have the label, goal 0.8" in output
    assert "Sets of labels" in (tmp_path / "out/report.html").read_text()
    plain, _ = run(tmp_path / "t.csv", tmp_path / "plain", *late)
    assert [r["prediction"] for r in predictions(tmp_path / "plain")] == [
        r["prediction"] for r in predictions(tmp_path / "out")
    ]


def test_a_run_with_sets_goes_on(tmp_path, pieces):
    inputs, labels = table(tmp_path / "t.csv")
    run(tmp_path / "t.csv", tmp_path / "whole", "--sets", "0.9", "--proba", "--delay", "9")
    write_csv(tmp_path / "grows.csv", inputs[:60], labels[:60], names="uvwx")
    more = ("--sets", "0.9", "--proba", "--delay", "9")
    run(tmp_path / "grows.csv", tmp_path / "part", *more)
    write_csv(tmp_path / "grows.csv", inputs, labels, names="uvwx")
    run(tmp_path / "grows.csv", tmp_path / "part", *more)
    whole, part = (tmp_path / name / "predictions.csv" for name in ("whole", "part"))
    assert whole.read_bytes() == part.read_bytes()


def test_sets_are_fixed_by_the_model(tmp_path):
    table(tmp_path / "t.csv")
    run(tmp_path / "t.csv", tmp_path / "out", "--sets", "0.9")
    model = tmp_path / "out/model.driftline"
    table(tmp_path / "more.csv", 100)
    result = call("run", tmp_path / "more.csv", "--resume", model, "--sets", "0.8")
    assert result.exit_code != 0 and "--sets cannot be given with --resume" in result.output
    result = call("run", tmp_path / "more.csv", "--resume", model)
    assert result.exit_code == 0, result.output
    assert all(row["set"] for row in predictions(tmp_path / "out"))
    result = call("run", tmp_path / "t.csv", "--out", tmp_path / "out", "--sets", "0.7")
    assert result.exit_code != 0 and "another --sets" in result.output


def test_what_has_no_sets_is_refused(tmp_path):
    inputs, labels = data(60)
    tags = [
        ",".join(map(str, [*x, y, 1 - y])) for x, y in zip(inputs.tolist(), labels, strict=True)
    ]
    (tmp_path / "tags.csv").write_text("\n".join(["a,b,c,t1,t2", *tags]) + "\n")
    out = tmp_path / "out"
    result = call("run", tmp_path / "tags.csv", "--label", "t1,t2", "--sets", "0.9", "--out", out)
    assert result.exit_code != 0 and "sets are of classes" in result.output
    assert not list(out.glob("*"))
    for share in ("0", "1", "90"):
        result = call("run", tmp_path / "tags.csv", "--sets", share, "--out", out)
        assert result.exit_code != 0


def test_rows_without_an_answer_have_sets(tmp_path, pieces):
    table(tmp_path / "t.csv")
    more = ("--sets", "0.8", "--delay", "9", "--learner", "fast")
    _, summary = run(tmp_path / "t.csv", tmp_path / "out", "--abstain", "0.25", *more)
    rows = [row for row in predictions(tmp_path / "out") if row["label"]]
    assert all(row["set"] for row in rows) and not all(row["prediction"] for row in rows)
    inside = np.mean([row["label"] in row["set"].split(";") for row in rows])
    assert summary["sets"]["coverage"] == pytest.approx(inside)
    assert summary["abstain"] == 0.25


def test_names_with_semicolons_are_told_apart_in_sets(tmp_path):
    inputs, labels = data(40)
    write_csv(tmp_path / "t.csv", inputs, labels, names=["u;v", '"say ""u"""'])
    run(tmp_path / "t.csv", tmp_path / "out", "--sets", "0.9", "--learner", "fast")
    rows = predictions(tmp_path / "out")
    made = [next(csv.reader([row["set"]], delimiter=";")) for row in rows]
    assert {name for own in made for name in own} == {"u;v", 'say "u"'}


def test_levels_and_unlabelled_rows_have_sets(tmp_path, pieces):
    inputs, labels = data(120)
    path = write_csv(tmp_path / "t.csv", inputs, labels, ("low", "high"))
    lines = path.read_text().splitlines()
    for i in range(20, 120, 7):
        lines[i] = lines[i].rsplit(",", 1)[0] + ","
    path.write_text("\n".join(lines) + "\n")
    more = ("--levels", "low,high", "--unlabelled", "predict", "--sets", "0.9")
    run(path, tmp_path / "out", *more)
    rows = predictions(tmp_path / "out")
    assert len(rows) == 120 and all(row["set"] for row in rows)
