"""``driftline run --champion``: a column of a model's predictions, followed and guarded."""

import json

import numpy as np
import pytest
from commands import call, data, predictions

import driftline as dl
from driftline.app import tables
from driftline.app.runs import schedule
from driftline.app.runs.champion import GAP, Acts
from tests.howmany import chosen

ROWS = 900


def scored(path, rows=ROWS, late=None, kinds=2, seed=0):
    """Write a table with a model that turns bad half-way, and says nothing, or nonsense, at times.

    Return inputs, labels, and what is known of its predictions: a code plus 1, 0 for none.
    """
    inputs, _ = data(rows, seed=seed)
    random = np.random.default_rng(seed + 1)
    labels = (inputs[:, 0] > 0).astype(int)
    labels[rows // 2 :] = 1 - labels[rows // 2 :]
    labels[:: 50 if kinds == 3 else rows] = kinds - 1
    said = (inputs[:, 0] > 0).astype(int) + 1
    names, cells = np.array(["u", "v", "w"][:kinds]), []
    for i in range(rows):
        cells.append(names[said[i] - 1])
        if random.random() < 0.05:
            said[i], cells[i] = 0, ["", "NA", "nobody knows"][i % 3]
    days = ["", *(f"{d}," for d in late)] if late is not None else [""] * (rows + 1)
    lines = [
        f"{a!r},{days[i + 1] if late is not None else ''}{cell},{b!r},{c!r},{names[y]}"
        for i, ((a, b, c), y, cell) in enumerate(zip(inputs.tolist(), labels, cells, strict=True))
    ]
    more = "days," if late is not None else ""
    path.write_text("\n".join([f"a,{more}model,b,c,label", *lines]) + "\n")
    return inputs, labels, said


def run(path, out, *more, champion="model"):
    result = call("run", path, "--out", out, "--champion", champion, *more)
    assert result.exit_code == 0, result.output
    return result.output, json.loads((out / "summary.json").read_text())


def guarded():
    task = dl.tasks.Multiclass(2)
    return dl.Guarded(dl.members.Column(task), task, effort="fast")


@pytest.fixture(params=chosen([17], [None, 17, 100]), ids=str)
def pieces(request, monkeypatch):
    """Let tables be read in pieces of so many rows, with a checkpoint after each."""
    if request.param is not None:
        original = tables.open_table
        monkeypatch.setattr(
            tables, "open_table", lambda *a, **k: original(*a, **k, rows=request.param)
        )
        monkeypatch.setattr(schedule, "SECONDS", 0.0)
        monkeypatch.setattr(schedule, "SHARE", float("inf"))


@pytest.mark.parametrize("delay", [None, 9])
def test_a_run_makes_the_predictions_of_the_library(tmp_path, pieces, delay):
    inputs, labels, said = scored(tmp_path / "t.csv")
    more = () if delay is None else ("--delay", str(delay))
    output, summary = run(tmp_path / "t.csv", tmp_path / "out", *more)
    learner = guarded()
    trace = learner.run(np.column_stack([said, inputs]), labels, delay=delay)
    came = trace.arrived
    told, names = summary["champion"], np.array(["u", "v"])
    rows = {int(row["round"]) - 1: row["prediction"] for row in predictions(tmp_path / "out")}
    assert [rows[t] for t in range(ROWS)] == names[trace.prediction].tolist()
    wrong = np.where(said == 0, 1.0, said - 1 != labels)[came].sum()
    averaged, paid = trace.averaged[came].sum(), trace.target_loss[came].sum()
    assert told["loss"] == {"guarded": paid, "champion": wrong, "averaged": averaged}
    assert averaged < paid < wrong and told["silent"] == (said == 0).sum()
    refused = np.flatnonzero((trace.acted > 0.0) & (said > 0)) + 1
    acted = told["acted"]
    assert (acted["rows"], acted["first"], acted["last"]) == (len(refused), *refused[[0, -1]])
    assert acted["stretches"] == 1 + (np.diff(refused) > GAP).sum()
    first = output.splitlines()[-len(output.splitlines()) :]
    line = next(one for one in first if one.startswith("your model"))
    assert f"your model {wrong:,.0f} mistakes, guarded {paid:,.0f}, averaged with" in line
    assert f"first at row {refused[0]:,}" in line and "not beaten" not in output
    page = (tmp_path / "out" / "report.html").read_text()
    assert "The account" in page and "Your model 4" in page
    assert summary["certificate"]["valid"] is True and not summary["certificate"]["findings"]
    assert summary["certificate"]["bound"] == pytest.approx(learner.guard.bound)
    assert summary["features"] == 3


def test_a_model_that_stays_good_is_followed(tmp_path):
    inputs, _, said = scored(tmp_path / "t.csv")
    lines = (tmp_path / "t.csv").read_text().splitlines()
    good = [",".join([*line.split(",")[:1], line[-1], *line.split(",")[2:]]) for line in lines[1:]]
    (tmp_path / "t.csv").write_text("\n".join([lines[0], *good]) + "\n")
    output, summary = run(tmp_path / "t.csv", tmp_path / "out")
    assert "your model 0 mistakes, guarded 0" in output and "the guard never acted" in output
    assert summary["champion"]["acted"] is None and summary["beaten_by"] is None


@pytest.mark.parametrize("size", [17, 50, 290])
def test_a_label_counts_only_after_it_came(tmp_path, monkeypatch, size):
    """A model may know a class before any label says that there is one."""
    random = np.random.default_rng(0)
    rows, place = 400, 300
    x, labels = random.standard_normal(rows).round(3), np.array(["u", "v"] * (rows // 2))
    labels[place::7] = "z"
    lines = [f"{a},z,{y}" for a, y in zip(x.tolist(), labels, strict=True)]
    (tmp_path / "t.csv").write_text("\n".join(["a,model,label", *lines]) + "\n")
    original = tables.open_table
    monkeypatch.setattr(tables, "open_table", lambda *a, **k: original(*a, **k, rows=size))
    _, summary = run(tmp_path / "t.csv", tmp_path / "out")
    assert summary["champion"]["silent"] == place + 1
    assert summary["classes"] == 3


def test_models_are_asked_by_name_and_continued(tmp_path):
    inputs, labels, said = scored(tmp_path / "t.csv")
    run(tmp_path / "t.csv", tmp_path / "out")
    model = dl.load(tmp_path / "out" / "model.driftline")
    assert model.columns == ["a", "b", "c", "model"] and model.features == 3
    row = {"a": 1.0, "b": 0.0, "c": 0.0}
    fresh = model.fresh("fast")
    assert [fresh.predict(row | {"model": name}) for name in "uv"] == ["u", "v"]
    assert fresh.predict(row) == fresh.predict(row | {"model": "nobody"}) == "u"
    ticket = model.ask(row | {"model": "v"})
    assert ticket.ticket.input.tolist() == [2.0, 1.0, 0.0, 0.0]
    model.tell(ticket, "w")  # a new class
    assert model.classes == ["u", "v", "w"]
    model.learn([row | {"model": "w", "label": "w"}] * 3)
    assert set(model.predict_proba(row | {"model": "w"})) == {"u", "v", "w"}
    assert model.state_bytes() > 0 and "model" in model.explain().names
    assert "by the first member" in model.describe()
    new = dl.TableModel.new(
        [row | {"m": "u", "y": "u"}, row | {"m": "v", "y": "v"}],
        "y",
        learner="fast",
        champion="m",
    )
    assert new.predict(row | {"m": "v"}) == "v"
    more = tmp_path / "more.csv"
    scored(more, rows=100, seed=3)
    result = call("run", more, "--resume", tmp_path / "out" / "model.driftline")
    assert result.exit_code == 0 and "your model" in result.output
    result = call("predict", tmp_path / "out" / "model.driftline", more)
    assert result.exit_code == 0, result.output
    made = [line.split(",")[2] for line in result.output.splitlines() if line[:1].isdigit()]
    assert len(made) == 100
    result = call("inspect", tmp_path / "out" / "model.driftline")
    assert "champion" in result.output
    header, *lines = more.read_text().splitlines()
    without = [",".join([*line.split(",")[:1], *line.split(",")[2:]]) for line in [header, *lines]]
    more.write_text("\n".join(without) + "\n")
    result = call("run", more, "--resume", tmp_path / "out" / "model.driftline", "--skip", "0")
    assert result.exit_code == 2 and "no column 'model', which the model knows" in result.output


def test_weights_costs_and_sets_go_with_a_champion(tmp_path):
    inputs, labels, said = scored(tmp_path / "t.csv")
    lines = (tmp_path / "t.csv").read_text().splitlines()
    weighed = ["h," + lines[0], *(f"{1 + i % 3}," + line for i, line in enumerate(lines[1:]))]
    (tmp_path / "t.csv").write_text("\n".join(weighed) + "\n")
    _, summary = run(tmp_path / "t.csv", tmp_path / "w", "--weight", "h")
    weights = 1.0 + np.arange(ROWS) % 3
    wrong = np.where(said == 0, 1.0, said - 1 != labels)
    assert summary["champion"]["loss"]["champion"] == (weights * wrong).sum()
    given = ("--ignore", "h", "--abstain", "0.2", "--sets", "0.9", "--proba")
    output, summary = run(tmp_path / "t.csv", tmp_path / "a", *given)
    wrong = np.where(said == 0, 0.2, said - 1 != labels)
    assert summary["champion"]["loss"]["champion"] == pytest.approx(wrong.sum())
    assert " cost, guarded" in output


REFUSED = {
    ("--champion", "nobody"): "no column 'nobody', named by --champion",
    ("--champion", "label"): "named by --champion, and named by --label: it can be one only",
    ("--champion", "model", "--key", "model"): "and named by --key",
    ("--champion", "model", "--key", "a"): "--champion does not go with --key yet",
    ("--champion", "model", "--ignore", "model"): "and left out by --ignore",
    ("--champion", "model", "--weight", "model"): "and named by --weight",
    ("--champion", "model", "--task", "levels", "--levels", "u,v"): "--champion is for classes",
    ("--champion", "model", "--learner", "polyak"): "guarded by auto, fast, best, not polyak",
}


@pytest.mark.parametrize("options", REFUSED, ids=lambda options: " ".join(options))
def test_what_cannot_be_a_champion_is_refused(tmp_path, options):
    scored(tmp_path / "t.csv", rows=60)
    result = call("run", tmp_path / "t.csv", "--out", tmp_path / "o", "--label", "label", *options)
    assert result.exit_code == 2 and REFUSED[options] in " ".join(result.output.split())
    assert not (tmp_path / "o" / "model.driftline").exists()


def test_a_table_without_names_has_no_champion(tmp_path):
    (tmp_path / "t.svm").write_text("1 1:0.5\n0 1:0.1\n")
    result = call("run", tmp_path / "t.svm", "--champion", "label")
    assert result.exit_code == 2 and "--champion" in result.output
    result = call("run", tmp_path / "t.svm", "--champion", "label", "--resume", tmp_path / "t.svm")
    assert result.exit_code == 2 and "--champion cannot be given with --resume" in result.output


def test_stretches_are_those_of_any_batches():
    random = np.random.default_rng(0)
    for _ in range(50):
        refused = random.random(3000) < random.choice([0.001, 0.01, 0.1])
        whole, parts, at = Acts(), Acts(), 0
        whole.add(refused, ~refused, 1)
        while at < len(refused):
            size = int(random.integers(1, 400))
            part = refused[at : at + size]
            parts = Acts.from_saved(parts.to_saved())
            parts.add(part, ~part, at + 1)
            at += size
        assert vars(parts) == vars(whole)
        places = np.flatnonzero(refused) + 1
        assert whole.stretches == (len(places) > 0) + (np.diff(places) > GAP).sum()
    for wrong in ({**Acts().to_saved(), "rows": -1}, {**Acts().to_saved(), "first": 1.5}):
        with pytest.raises(dl.InputError, match="refusals cannot be"):
            Acts.from_saved(wrong)
