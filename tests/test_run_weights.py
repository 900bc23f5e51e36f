"""``driftline run --weight`` and ``--balance``: rows that do not all count once."""

import json

import numpy as np
import pytest
from commands import call, data, predictions

import driftline as dl
from driftline.errors import InputError
from tests.howmany import chosen


def weighted(path, rows=200, seed=0, weights=None):
    """Write a table with a column of weights, and return these."""
    inputs, labels = data(rows, seed=seed)
    rng = np.random.default_rng(seed)
    if weights is None:
        weights = np.round(4.0 * rng.random(rows), 2) * (rng.random(rows) > 0.1)
    lines = [
        f"{a!r},{b!r},{c!r},{weight:g},{'uv'[y]}"
        for (a, b, c), weight, y in zip(inputs.tolist(), weights, labels, strict=True)
    ]
    path.write_text("\n".join(["a,b,c,cost,label", *lines]) + "\n")
    return weights


def rare(path, seed=0, rows=3000, count=19, away=2.0):
    """Write a table with a rare class, some standard deviations away in two columns."""
    rng = np.random.default_rng(seed)
    labels = np.zeros(rows, dtype=int)
    labels[rng.choice(rows, count, replace=False)] = 1
    X = rng.normal(size=(rows, 5))
    X[labels == 1, :2] += away
    lines = [
        ",".join([*(f"{value:.5f}" for value in x), ("fine", "fraud")[y]])
        for x, y in zip(X.tolist(), labels, strict=True)
    ]
    path.write_text("\n".join(["a,b,c,d,e,status", *lines]) + "\n")
    return labels


def run_rare(path, labels, *more):
    """Return the output of a run, which share of the rare class was found, and false alarms."""
    out = path.parent / "-".join(["out", *more])
    result = call("run", path, "--out", out, *more, learner=None)
    assert result.exit_code == 0, result.output
    found = np.array([row["prediction"] == "fraud" for row in predictions(out)])
    return result.output, found[labels == 1].mean(), found[labels == 0].mean()


@pytest.mark.parametrize("seed", chosen([100, 101], range(100, 110)))  # on which nothing was chosen
def test_rare_class_is_found_if_classes_are_balanced(tmp_path, seed):
    labels = rare(tmp_path / "rare.csv", seed)
    output, recall, alarms = run_rare(tmp_path / "rare.csv", labels, "--balance")
    assert recall >= 0.5 and alarms <= 0.1
    assert f"found        fraud {recall:.0%} of 19, fine {1 - alarms:.0%} of 2,981" in output
    assert "mistakes of classes that count alike" in output and "not beaten" not in output


def test_unbalanced_run_says_that_a_baseline_was_not_beaten(tmp_path):
    labels = rare(tmp_path / "rare.csv", 100, away=1.0)
    output, recall, _ = run_rare(tmp_path / "rare.csv", labels)
    assert recall < 0.2
    assert "the baseline 'majority' was not beaten" in output
    assert "--balance ('fraud' is 0.6% of the rows)" in output


def test_column_of_weights_is_no_input_and_counts(tmp_path):
    weights = weighted(tmp_path / "t.csv")
    result = call(
        "run", tmp_path / "t.csv", "--weight", "cost", "--out", tmp_path / "out", "--trace"
    )
    assert result.exit_code == 0, result.output
    assert "3 columns; task" in result.output and "by the weights in 'cost'" in result.output
    rows = predictions(tmp_path / "out")
    assert np.allclose([float(row["weight"]) for row in rows], weights)
    wrong = np.array([row["label"] != row["prediction"] for row in rows])
    assert np.allclose([float(row["loss"]) for row in rows], weights * wrong)
    summary = json.loads((tmp_path / "out/summary.json").read_text())
    assert summary["weight_column"] == "cost" and np.isclose(summary["weight"], weights.sum())
    assert np.isclose(summary["mean_loss"]["learner"], (weights * wrong).sum() / weights.sum())
    assert summary["certificate"]["valid"]
    assert np.isclose(summary["certificate"]["guessing"], 0.5 * weights.sum())
    assert call("certify", tmp_path / "out").exit_code == 0
    report = (tmp_path / "out/report.html").read_text()
    assert "weighted loss" in report


def test_certificate_of_a_trace_takes_weights_beside_it(tmp_path):
    weights = weighted(tmp_path / "t.csv")
    call("run", tmp_path / "t.csv", "--weight", "cost", "--out", tmp_path / "out", "--trace")
    inputs, labels = data(200)
    codes = [int(y != labels[0]) for y in labels]
    stream = {"inputs": inputs, "labels": codes, "sample_weight": weights}
    np.savez(tmp_path / "stream.npz", **stream)
    trace = tmp_path / "out/trace.npz"
    result = call("certify", trace, "--data", tmp_path / "stream.npz")
    assert result.exit_code == 0 and "sample weights" not in result.output, result.output
    np.savez(tmp_path / "stream.npz", **(stream | {"sample_weight": weights + 1.0}))
    result = call("certify", trace, "--data", tmp_path / "stream.npz")
    assert result.exit_code == 1 and "sample weights are not those of the trace" in result.output


@pytest.mark.parametrize(
    "more", [("--weight", "cost"), ("--balance",), ("--weight", "cost", "--balance")]
)
def test_run_in_two_parts_is_one_run(tmp_path, more):
    whole, half = tmp_path / "whole.csv", tmp_path / "half.csv"
    weighted(whole, rows=300)
    lines = whole.read_text().splitlines(keepends=True)
    half.write_text("".join(lines[:120]))
    ignore = () if "--weight" in more else ("--ignore", "cost")
    call("run", whole, *more, *ignore, "--out", tmp_path / "one")
    call("run", half, *more, *ignore, "--out", tmp_path / "two")
    half.write_text("".join(lines))
    resume = ("--resume", tmp_path / "two/model.driftline")
    result = call("run", half, *resume, *ignore)
    assert result.exit_code == 0, result.output
    names = ("predictions.csv",)
    for name in names:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    one, two = (dl.load(tmp_path / name / "model.driftline") for name in ("one", "two"))
    assert np.array_equal(one.learner.weights, two.learner.weights)
    assert "fixed" in call("run", half, *resume, "--balance").output


def test_balance_is_that_of_the_estimator(tmp_path):
    weighted(tmp_path / "t.csv")
    call("run", tmp_path / "t.csv", "--balance", "--ignore", "cost", "--out", tmp_path / "out")
    inputs, labels = data(200)
    model = dl.DriftClassifier("fast", class_weight="balanced").fit(inputs, labels)
    learner = dl.load(tmp_path / "out/model.driftline").learner
    assert np.array_equal(learner.weights, model.learner_.weights)


def with_cell(path, text):
    """Write a table with this text as the weight of its eighth row."""
    weighted(path, weights=np.ones(200))
    lines = path.read_text().splitlines()
    cells = lines[8].split(",")
    lines[8] = ",".join([*cells[:3], text, cells[4]])
    path.write_text("\n".join(lines) + "\n")
    return path


BAD = ["-1", "inf", "much", "2e6", "1e-310"]


@pytest.mark.parametrize("text", BAD)
def test_weights_that_are_none_are_refused_by_row(tmp_path, text):
    path = with_cell(tmp_path / "t.csv", text)
    result = call("run", path, "--weight", "cost", "--out", tmp_path / "out")
    assert result.exit_code == 2
    said = "line 9, column cost: expected a weight of 0, or from 1e-09 to 1,000,000, but saw"
    assert f"{said} {text!r}" in " ".join(result.output.split())


@pytest.mark.parametrize("text", ["", "nan"])
def test_missing_weights_are_refused_by_row(tmp_path, text):
    path = with_cell(tmp_path / "t.csv", text)
    result = call("run", path, "--weight", "cost", "--out", tmp_path / "out")
    assert result.exit_code == 2 and "column cost: the weight is missing" in result.output


def test_products_of_weights_are_cut(tmp_path):
    weighted(tmp_path / "t.csv", weights=np.full(200, 1e6))
    more = ("--weight", "cost", "--balance", "--out", tmp_path / "out")
    result = call("run", tmp_path / "t.csv", *more)
    assert result.exit_code == 0, result.output
    weights = [float(row["weight"]) for row in predictions(tmp_path / "out")]
    assert max(weights) == 1e6 and min(weights) < 1e6


def test_weights_of_zero_alone(tmp_path):
    weighted(tmp_path / "t.csv", weights=np.zeros(200))
    result = call("run", tmp_path / "t.csv", "--weight", "cost", "--out", tmp_path / "out")
    assert "all rows have weight 0: nothing was learned" in result.output
    assert "not beaten" not in result.output


def test_weighted_models_are_inspected(tmp_path):
    weighted(tmp_path / "t.csv")
    more = ("--weight", "cost", "--balance", "--out", tmp_path / "out")
    call("run", tmp_path / "t.csv", *more)
    summary = json.loads((tmp_path / "out/summary.json").read_text())
    found = json.loads(call("inspect", tmp_path / "out/model.driftline", "--json").stdout)
    assert found["weights"] == ["cost", "balanced classes"]
    assert np.isclose(found["mean loss"], summary["mean_loss"]["learner"], atol=1e-6)


def test_control_characters_do_not_reach_the_terminal(tmp_path):
    weighted(tmp_path / "t.csv")
    text = (tmp_path / "t.csv").read_text().replace(",u\n", ",u\x1b[31m\n")
    (tmp_path / "t.csv").write_text(text)
    result = call("run", tmp_path / "t.csv", "--weight", "cost", "--out", tmp_path / "out")
    assert result.exit_code == 0 and "\x1b" not in result.output, result.output


def test_amounts_are_weights():
    rows = [{"a": float(i % 7), "cost": f"${i % 3}.50", "y": "uv"[i % 7 > 3]} for i in range(60)]
    model = dl.TableModel.new(rows, "y", weight="cost", learner="fast")
    model.learn(rows)
    other = dl.TableModel.new(rows, "y", weight="cost", learner="fast")
    other.learn([row | {"cost": i % 3 + 0.5} for i, row in enumerate(rows)])
    assert np.array_equal(model.learner.weights, other.learner.weights)


def test_table_models_weigh_as_runs_do(tmp_path):
    weighted(tmp_path / "t.csv")
    call("run", tmp_path / "t.csv", "--weight", "cost", "--balance", "--out", tmp_path / "out")
    lines = (tmp_path / "t.csv").read_text().splitlines()
    names = lines[0].split(",")
    rows = [dict(zip(names, line.split(","), strict=True)) for line in lines[1:]]
    model = dl.TableModel.new(rows, "label", weight="cost", balance=True, learner="fast")
    for row in rows[:7]:
        model.learn(row)
    model.save(tmp_path / "part.driftline")
    model = dl.load(tmp_path / "part.driftline")
    model.learn(rows[7:])
    run = dl.load(tmp_path / "out/model.driftline")
    assert np.array_equal(model.learner.weights, run.learner.weights)
    asked = {name: rows[0][name] for name in "abc"}
    assert model.predict(asked) == run.predict(asked) == model.predict(rows[0])
    with pytest.raises(InputError, match="cost"):
        model.learn(asked, "u")
    with pytest.raises(InputError, match="balance must be True or False"):
        dl.TableModel.new(rows, "label", balance="yes")


def test_predict_needs_no_weights(tmp_path):
    weighted(tmp_path / "t.csv")
    model = tmp_path / "out/model.driftline"
    call("run", tmp_path / "t.csv", "--weight", "cost", "--out", tmp_path / "out")
    result = call("predict", model, tmp_path / "t.csv")
    assert result.exit_code == 0, result.output
    lines = [line.split(",") for line in (tmp_path / "t.csv").read_text().splitlines()]
    (tmp_path / "new.csv").write_text("\n".join(",".join(line[:3]) for line in lines) + "\n")
    alone = call("predict", model, tmp_path / "new.csv")
    assert alone.exit_code == 0, alone.output
    made = [line.split(",") for line in result.stdout.splitlines()]
    assert [line[2] for line in made[1:201]] == [
        line.split(",")[1] for line in alone.stdout.splitlines()[1:201]
    ]


REFUSED = {
    "no such column": (("--weight", "costs"), "did you mean 'cost'"),
    "left out": (("--weight", "cost", "--ignore", "cost"), "named by --weight, and left out"),
    "label": (
        ("--weight", "cost", "--label", "cost"),
        "named by --weight, and named by --label: it can be one only",
    ),
    "tags": (("--balance", "--label", "label,a", "--task", "tags"), "--balance is for classes"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_weights_that_make_no_sense_are_refused(tmp_path, name):
    weighted(tmp_path / "t.csv")
    if name == "tags":
        text = (tmp_path / "t.csv").read_text().replace(",u\n", ",0\n").replace(",v\n", ",1\n")
        lines = text.splitlines()
        rows = [",".join([str(i % 2), *line.split(",")[1:]]) for i, line in enumerate(lines[1:])]
        (tmp_path / "t.csv").write_text("\n".join([lines[0], *rows]) + "\n")
    more, words = REFUSED[name]
    result = call("run", tmp_path / "t.csv", *more, "--out", tmp_path / "out")
    assert result.exit_code == 2 and words in " ".join(result.output.split()), result.output


def test_documents_have_no_weights(tmp_path):
    inputs, labels = data(60)
    lines = [
        f"{i // 6},{a!r},{b!r},1,{y}"
        for i, ((a, b, _), y) in enumerate(zip(inputs.tolist(), labels, strict=True))
    ]
    (tmp_path / "t.csv").write_text("\n".join(["q,a,b,cost,grade", *lines]) + "\n")
    result = call(
        "run", tmp_path / "t.csv", "--query", "q", "--weight", "cost", "--out", tmp_path / "o"
    )
    assert result.exit_code == 2 and "say --ignore cost instead" in result.output


def test_learners_are_compared_by_weights(tmp_path):
    weighted(tmp_path / "t.csv")
    result = call(
        "compare", tmp_path / "t.csv", "--weight", "cost", "--with", "fast,paper", "--json"
    )
    found = {row["name"]: row["mean_loss"] for row in json.loads(result.stdout)["learners"]}
    call("run", tmp_path / "t.csv", "--weight", "cost", "--out", tmp_path / "out")
    summary = json.loads((tmp_path / "out/summary.json").read_text())
    assert np.isclose(found["fast"], summary["mean_loss"]["learner"])


def test_chances_are_those_of_the_weighted_learner(tmp_path):
    weighted(tmp_path / "t.csv")
    more = ("--weight", "cost", "--proba")
    call("run", tmp_path / "t.csv", *more, "--out", tmp_path / "out")
    lines = (tmp_path / "t.csv").read_text().splitlines()
    names = lines[0].split(",")
    rows = [dict(zip(names, line.split(","), strict=True)) for line in lines[1:]]
    model = dl.TableModel.new(rows, "label", weight="cost", learner="fast")
    model.learn(rows[:150])
    chances = model.predict_proba(rows[150])
    made = predictions(tmp_path / "out")[150]
    assert np.isclose(float(made["p(u)"]), chances["u"], atol=1e-5)
