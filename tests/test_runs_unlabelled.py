"""Rows without a label: refused, left out, or predicted by what was learned from rows before."""

from __future__ import annotations

import json

import numpy as np
import pytest
from commands import call, data, predictions, write_csv

from driftline.app.runs import load_model

ABSENT = [0, 1, 7, 8, 30, 61, 98, 99]


@pytest.fixture
def table(tmp_path):
    path = write_csv(tmp_path / "t.csv", *data(100))
    lines = path.read_text().splitlines()
    for i in ABSENT:
        lines[i + 1] = lines[i + 1].rsplit(",", 1)[0] + ","
    path.write_text("\n".join(lines) + "\n")
    return path


def kept_of(table):
    """The same table without these rows."""
    lines = table.read_text().splitlines()
    path = table.with_name("kept.csv")
    path.write_text("\n".join(line for line in lines if not line.endswith(",")) + "\n")
    return path


def run(table, out, *options):
    done = call("run", table, "--out", out, *options)
    assert done.exit_code == 0, done.output
    return done


def test_they_are_refused_by_a_message_that_names_the_option(tmp_path, table):
    done = call("run", table, "--out", tmp_path / "out")
    assert done.exit_code == 2 and "line 2, column label: the label is missing" in done.output
    assert "--unlabelled skip" in done.output and "--unlabelled predict" in done.output


@pytest.mark.parametrize("learner", ["fast", "paper"])
def test_learning_is_that_of_the_table_without_them(tmp_path, table, learner):
    run(kept_of(table), tmp_path / "kept", "--learner", learner)
    expected = predictions(tmp_path / "kept")
    learned = load_model(tmp_path / "kept" / "model.driftline")
    for how in ("skip", "predict"):
        out = tmp_path / how
        done = run(table, out, "--unlabelled", how, "--learner", learner)
        assert f"{len(ABSENT)} rows were" in done.output
        summary = json.loads((out / "summary.json").read_text())
        assert summary["unlabelled"] == len(ABSENT) and summary["rounds"] == 100 - len(ABSENT)
        assert summary["certificate"]["valid"]
        model = load_model(out / "model.driftline")
        assert model.loss == learned.loss and np.allclose(model.totals, learned.totals)
        made = predictions(out)
        assert [row for row in made if row["round"]] == expected
        empty = [i for i, row in enumerate(made) if not row["round"]]
        assert empty == (ABSENT if how == "predict" else [])
        for row in (made[i] for i in empty):
            assert row["label"] == row["loss"] == "" and row["prediction"] in "uv"
        assert "Nothing to do" in run(table, out, "--unlabelled", how, "--learner", learner).output


def test_they_are_predicted_by_what_was_learned_before(tmp_path, table):
    run(table, tmp_path / "out", "--unlabelled", "predict")
    lines = table.read_text().splitlines()
    made = predictions(tmp_path / "out")
    for row in (30, 61):
        before = tmp_path / f"before{row}.csv"
        before.write_text("\n".join(lines[: row + 1]) + "\n")
        run(kept_of(before), tmp_path / f"out{row}")
        model = load_model(tmp_path / f"out{row}" / "model.driftline")
        x = np.array(lines[row + 1].split(",")[:3], dtype=float)
        assert made[row]["prediction"] == model.encoder.labels.values[model.learner.predict(x)]


def test_the_option_belongs_to_the_run(tmp_path, table):
    run(table, tmp_path / "out", "--unlabelled", "skip")
    done = call("run", table, "--out", tmp_path / "out", "--unlabelled", "predict")
    assert done.exit_code == 2 and "begun with another --unlabelled" in done.output


def test_tags_of_which_one_is_missing_are_not_learned_from(tmp_path):
    rows = [f"{i % 7},{i % 2},{'' if i % 5 == 3 else i % 3 % 2}" for i in range(60)]
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["a,tag_x,tag_y", *rows]) + "\n")
    out = tmp_path / "out"
    run(path, out, "--label", "tag_*", "--unlabelled", "predict")
    assert [i for i, row in enumerate(predictions(out)) if not row["round"]] == [*range(3, 60, 5)]


def test_documents_of_a_ranking_can_be_left_out_only(tmp_path):
    rows = [f"q{i // 5},{i % 7},{'' if i % 5 == 3 else i % 3}" for i in range(60)]
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["q,a,grade", *rows]) + "\n")
    options = ("--query", "q", "--out", tmp_path / "out", "--unlabelled")
    done = call("run", path, *options, "predict")
    assert done.exit_code == 2 and "does not go with a ranking" in done.output
    assert call("run", path, *options, "skip").exit_code == 0
    assert [len(row["prediction"].split()) for row in predictions(tmp_path / "out")] == [4] * 12


def test_a_table_without_any_label(tmp_path, table):
    lines = [line.rsplit(",", 1)[0] + "," for line in table.read_text().splitlines()[1:]]
    table.write_text("\n".join(["x0,x1,x2,label", *lines]) + "\n")
    for how in ("skip", "predict"):
        done = call("run", table, "--out", tmp_path / how, "--unlabelled", how)
        assert done.exit_code == 2 and "none of 100 rows has a label" in done.output
        assert not (tmp_path / how).exists()


def test_rows_without_a_label_are_predicted_after_a_run(tmp_path, table):
    """Also if none of the new rows has one."""
    table.write_text(table.read_text() + "0.1,0.2,0.3,u\n")
    run(table, tmp_path / "out", "--unlabelled", "predict")
    table.write_text(table.read_text() + "0.3,0.2,0.1,\n")
    done = run(table, tmp_path / "out", "--unlabelled", "predict")
    assert "no label came" in done.output
    last = predictions(tmp_path / "out")[-1]
    assert last["round"] == last["label"] == "" and last["prediction"] in ("u", "v")
    assert len(predictions(tmp_path / "out")) == 102


def test_compare_leaves_them_out(tmp_path, table):
    expected = call("compare", kept_of(table), "--with", "polyak", "--json")
    done = call("compare", table, "--with", "polyak", "--json", "--unlabelled", "predict")
    found = [
        [(own["name"], own["mean_loss"]) for own in json.loads(d.stdout)["learners"]]
        for d in (expected, done)
    ]
    assert found[0] == found[1]


@pytest.mark.parametrize("key", [[], ["--key", "x2"]])
def test_a_run_elsewhere_of_rows_that_are_only_predicted_has_no_report(tmp_path, table, key):
    out, other, more = tmp_path / "out", tmp_path / "other", tmp_path / "more.csv"
    run(table, out, "--unlabelled", "predict", *key)
    lines = table.read_text().splitlines()
    more.write_text("\n".join([lines[0], *(lines[i + 1] for i in ABSENT)]) + "\n")
    resume = ("--unlabelled", "predict", "--resume", out / "model.driftline")
    done = run(more, other, *resume)
    assert "no score" in done.output and "report.html" not in done.output
    assert len(predictions(other)) == len(ABSENT) and not (other / "report.html").exists()
    again = table.with_name("again.csv")
    again.write_text("\n".join([lines[0], *lines[40:]]) + "\n")
    run(again, other, *resume[:3], other / "model.driftline")
    assert (other / "report.html").exists()
