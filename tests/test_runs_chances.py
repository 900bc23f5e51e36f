"""Probabilities in the predictions of a run: those of each row before it was learned from."""

from __future__ import annotations

import csv
import subprocess
import sys
from functools import partial

import numpy as np
import pytest
from commands import call, data, predictions, wait_for, write_csv

from driftline.app import tables
from driftline.app.runs import load_model


@pytest.fixture
def small_pieces(monkeypatch):
    monkeypatch.setattr(tables, "open_table", partial(tables.open_table, rows=40))


def ran(out, path, *options, proba=True):
    done = call("run", path, "--out", out, *(["--proba"] if proba else []), *options)
    assert done.exit_code == 0, done.output
    return predictions(out)


def chances(rows):
    return [{name: p for name, p in row.items() if name.startswith("p(")} for row in rows]


def classes(folder):
    inputs, labels = data(120)
    labels[5::7] = 2
    return write_csv(folder / "t.csv", inputs, labels, "uvw"), ()


def tags(folder):
    inputs, labels = data(120)
    rows = [f"{x[0]},{x[1]},{y},{int(x[1] > 0)}" for x, y in zip(inputs, labels, strict=True)]
    path = folder / "t.csv"
    path.write_text("\n".join(["a,b,tag_1,tag_2", *rows]) + "\n")
    return path, ("--label", "tag_*")


def levels(folder):
    inputs, labels = data(120)
    labels[5::7] = 2
    path = write_csv(folder / "t.csv", inputs, labels, ("low", "middle", "high"))
    return path, ("--levels", "low,middle,high")


def sparse(folder):
    inputs, labels = data(120, features=8)
    rows = [
        " ".join([str(y), *(f"{j}:{v}" for j, v in enumerate(x) if v > 0.3)])
        for x, y in zip(inputs, labels, strict=True)
    ]
    path = folder / "t.svm"
    path.write_text("\n".join(rows) + "\n")
    return path, ("--features", "8")


def drawn(folder):
    return write_csv(folder / "t.csv", *data(120)), ("--learner", "paper")


def default(folder):
    return classes(folder)[0], ("--learner", "auto")


@pytest.mark.parametrize("kind", [classes, tags, levels, sparse, drawn, default])
def test_they_are_what_predict_says_after_the_rows_before(tmp_path, kind):
    path, options = kind(tmp_path)
    rows = ran(tmp_path / "out", path, *options)
    header, lines = "", path.read_text().splitlines()
    if path.suffix == ".csv":
        header, *lines = lines
    reading = options[:2] if kind is sparse else ()
    first, row = path.with_stem("first"), path.with_stem("row")
    for count in (17, 60, 119):
        first.write_text("\n".join([header, *lines[:count]]).lstrip() + "\n")
        row.write_text("\n".join([header, lines[count]]).lstrip() + "\n")
        ran(tmp_path / f"out{count}", first, *options, proba=False)
        model = tmp_path / f"out{count}" / "model.driftline"
        done = call("predict", model, row, "--proba", "--quiet", *reading)
        (expected,) = csv.DictReader(done.stdout.splitlines())
        assert chances([expected]) == chances([rows[count]])


@pytest.mark.parametrize("kind", [classes, tags, levels])
def test_nothing_else_depends_on_them(tmp_path, kind, small_pieces):
    path, options = kind(tmp_path)
    rows = ran(tmp_path / "out", path, *options)
    plain = ran(tmp_path / "plain", path, *options, proba=False)
    names = list(plain[0])
    assert [{name: row[name] for name in names} for row in rows] == plain
    one, two = (load_model(tmp_path / n / "model.driftline") for n in ("out", "plain"))
    (_, arrays), (_, others) = one.learner.to_saved(), two.learner.to_saved()
    assert all(np.array_equal(arrays[name], others[name], equal_nan=True) for name in others)
    labels = one.encoder.labels.outcomes
    assert list(rows[0]) == [*names, *(f"p({label})" for label in labels)]
    for row, own in zip(rows, chances(rows), strict=True):
        p = [float(text) for text in own.values()]
        if kind is tags:
            chosen = [label for label, chance in zip(labels, p, strict=True) if chance > 0.5]
            assert row["prediction"] == ";".join(chosen) or 0.5 in p
        else:
            assert abs(sum(p) - 1.0) < 1e-5
            assert float(own[f"p({row['prediction']})"]) == max(p)
    assert {*chances(rows)[0].values()} == ({"0.5"} if kind is tags else {"0.333333"})


@pytest.mark.parametrize("label", ["u", "v", "w", "x"])
def test_they_do_not_depend_on_the_row_s_own_label(tmp_path, label, small_pieces):
    """Nor on a later one, also if its class is new; a class that comes later has no column."""
    path = write_csv(tmp_path / "t.csv", *data(120))
    rows = ran(tmp_path / "out", path)
    lines, places = path.read_text().splitlines(), (60, 75)
    for place in places:
        lines[place + 1] = lines[place + 1].rsplit(",", 1)[0] + f",{label}"
    other = tmp_path / "other.csv"
    other.write_text("\n".join(lines) + "\n")
    made = ran(tmp_path / "other", other)
    assert chances(made)[: places[0] + 1] == chances(rows)[: places[0] + 1]
    assert list(made[0]) == list(rows[0])
    sums = [sum(float(p) for p in own.values()) for own in chances(made)]
    assert all(abs(total - 1.0) < 1e-5 for total in sums[: places[0] + 1])
    assert (sums[places[0] + 1] < 0.999) == (label in "wx")


def test_rows_without_a_label_have_them(tmp_path, small_pieces):
    path = write_csv(tmp_path / "t.csv", *data(120))
    lines = path.read_text().splitlines()
    for place in (50, 51, 90):
        lines[place + 1] = lines[place + 1].rsplit(",", 1)[0] + ","
    path.write_text("\n".join(lines) + "\n")
    rows = ran(tmp_path / "out", path, "--unlabelled", "predict")
    for place in (50, 51, 90):
        assert rows[place]["round"] == rows[place]["label"] == rows[place]["loss"] == ""
        own = chances(rows)[place]
        assert float(own[f"p({rows[place]['prediction']})"]) >= 0.5


def test_a_run_that_goes_on_says_whether_it_has_them(tmp_path):
    path, more = (write_csv(tmp_path / f"{n}.csv", *data(120, seed=i)) for i, n in enumerate("ab"))
    one, two = tmp_path / "one", tmp_path / "two"
    ran(one, path)
    ran(two, path, proba=False)
    resume = ("--resume", one / "model.driftline")
    done = call("run", more, *resume)
    assert done.exit_code == 2 and "has columns of probabilities: say --proba again" in done.output
    assert call("run", more, *resume, "--proba").exit_code == 0
    assert len(predictions(one)) == 240 and all(row["p(u)"] for row in predictions(one))
    done = call("run", more, "--resume", two / "model.driftline", "--proba")
    assert done.exit_code == 2 and "has no columns of probabilities: leave --proba" in done.output
    rows = ran(tmp_path / "new", more, "--resume", two / "model.driftline")  # in another folder
    assert chances(rows) == chances(predictions(one)[120:])
    done = call("run", path, "--out", two, "--proba")
    assert done.exit_code == 2 and "begun with another --proba" in done.output


def test_a_ranking_has_none(tmp_path):
    path = tmp_path / "t.svm"
    path.write_text("".join(f"{i % 3} qid:{i // 9} 1:{i % 7} 2:{i % 5}\n" for i in range(90)))
    done = call("run", path, "--out", tmp_path / "out", "--proba")
    assert done.exit_code == 2 and "a ranking has no probabilities" in done.output
    assert not (tmp_path / "out").exists()


def test_first_rows_without_a_label_have_no_columns(tmp_path, small_pieces):
    inputs, labels = data(120)
    labels[:40] = 2
    path = write_csv(tmp_path / "t.csv", inputs, labels, ("u", "v", ""))
    done = call("run", path, "--out", tmp_path / "out", "--unlabelled", "predict", "--proba")
    assert done.exit_code == 2 and "none of the first rows has a label" in done.output
    assert not (tmp_path / "out").exists()


def test_of_a_slow_pipe_they_are_there_before_the_next_row(tmp_path):
    path = write_csv(tmp_path / "t.csv", *data(106))
    rows = ran(tmp_path / "whole", path)
    lines, out = path.read_bytes().splitlines(keepends=True), tmp_path / "out"
    command = [sys.executable, "-m", "driftline", "run", "-", "--out", str(out), "--proba"]
    command += ["--learner", "fast", "--quiet"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, bufsize=0) as made:
        made.stdin.write(b"".join(lines[:101]))
        for i in range(101, 107):
            made.stdin.write(lines[i])
            there = partial(lambda i: out.exists() and len(_whole(out)) == i, i)
            wait_for(made, there)
        made.stdin.close()
        assert made.wait(120) == 0
    assert predictions(out) == rows


def _whole(out):
    """Return the whole lines of the predictions after the header."""
    path = out / "predictions.csv"
    return path.read_text().split("\n")[1:-1] if path.exists() else []
