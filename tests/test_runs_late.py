"""``driftline run --delay``: labels that come some rows later, or never."""

import json

import numpy as np
import pytest
from commands import call, data, predictions, write_csv

import driftline as dl
from driftline.app import tables
from driftline.app.runs import schedule
from driftline.certificates.committee_certificate import NO_GUARD
from driftline.reports.chart import number
from tests.howmany import chosen

ROWS = 240


def delayed(path, delays, rows=ROWS, seed=0):
    """Write a table with a column of delays; an empty cell for -1."""
    inputs, labels = data(rows, seed=seed)
    lines = [
        f"{a!r},{b!r},{c!r},{'' if late == -1 else late},{'uv'[y]}"
        for (a, b, c), late, y in zip(inputs.tolist(), delays, labels, strict=True)
    ]
    path.write_text("\n".join(["a,b,c,days,label", *lines]) + "\n")
    return inputs, labels


def run(path, out, *more):
    result = call("run", path, "--out", out, *more)
    assert result.exit_code == 0, result.output
    return result.output, json.loads((out / "summary.json").read_text())


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


def test_a_run_makes_the_predictions_of_the_library(tmp_path, pieces):
    delays = np.random.default_rng(1).integers(-1, 40, ROWS)
    inputs, labels = delayed(tmp_path / "t.csv", delays)
    output, summary = run(tmp_path / "t.csv", tmp_path / "out", "--delay-column", "days")
    learner = dl.TableModel.new(
        [{"a": 1.5, "b": 0.1, "c": 0.2, "label": y} for y in "uv"], "label", learner="fast"
    ).learner
    trace = learner.run(inputs, labels, delay=delays)
    rows = predictions(tmp_path / "out")
    assert sorted(int(row["round"]) for row in rows) == list(range(1, ROWS + 1))
    made = {int(row["round"]) - 1: row for row in rows}
    names = np.array(["u", "v"])
    assert [made[t]["prediction"] for t in range(ROWS)] == names[trace.prediction].tolist()
    for t in range(ROWS):
        came = trace.arrived[t]
        assert made[t]["label"] == (names[labels[t]] if came else "")
        assert made[t]["arrival"] == (str(t + 1 + delays[t]) if came else "")
        assert made[t]["loss"] == (f"{trace.target_loss[t]:g}" if came else "")
    order = [int(row["round"]) - 1 for row in rows if row["label"]]
    assert trace.arrival[order].tolist() == list(range(len(order)))
    assert summary["rounds"] == trace.arrived.sum() and summary["rows"] == ROWS
    assert summary["loss"] == np.nansum(trace.target_loss)
    assert summary["never_came"] == (delays == -1).sum()
    assert summary["to_come"] + summary["never_came"] + summary["rounds"] == ROWS
    certificate = dl.certify(trace, None, inputs, labels)
    told = summary["certificate"]
    assert told["audited"] and told["valid"] and told["rounds"] == summary["rounds"]
    assert told["bounds"] == {} and certificate.bounds()["book"] == NO_GUARD
    assert "labels have not come yet" in output


def test_labels_at_once_are_a_run_without_delay(tmp_path):
    write_csv(tmp_path / "t.csv", *data(ROWS))
    _, one = run(tmp_path / "t.csv", tmp_path / "one")
    _, two = run(tmp_path / "t.csv", tmp_path / "two", "--delay", "0")
    names = ("round", "label", "prediction", "loss")
    rows = [[row[n] for n in names] for row in predictions(tmp_path / "two")]
    assert rows == [[row[n] for n in names] for row in predictions(tmp_path / "one")]
    for name in ("rounds", "loss", "mean_loss", "alarms"):
        assert one[name] == two[name]


def test_the_report_says_what_late_labels_have_added(tmp_path):
    inputs, labels = data(ROWS)
    write_csv(tmp_path / "t.csv", inputs, labels)
    for delay in ("0", "30"):
        args = ("--delay", delay, "--learner", "polyak")
        _, summary = run(tmp_path / "t.csv", tmp_path / delay, *args)
        cost = summary["certificate"]["delay_cost"]
        page = (tmp_path / delay / "report.html").read_text()
        assert page.count(f"Late labels have added {number(cost)} to ") == (2 if cost > 0.05 else 0)
        assert (cost > 0.05) == (delay == "30")


def test_baselines_know_the_labels_that_came(tmp_path, pieces):
    inputs, labels = data(ROWS)
    write_csv(tmp_path / "t.csv", inputs, labels)
    _, summary = run(tmp_path / "t.csv", tmp_path / "out", "--delay", "30")
    last = np.r_[np.zeros(31, dtype=int), labels][:ROWS]  # of row t - 31, which came before row t
    wrong = (last != labels)[: ROWS - 30]
    assert summary["mean_loss"]["no change"] == pytest.approx(wrong.mean())
    counts, leader, said = [0, 0], 0, []
    for t in range(ROWS):
        if t > 30:
            counts[labels[t - 31]] += 1
            leader = leader if counts[leader] >= max(counts) else int(np.argmax(counts))
        said.append(leader)
    wrong = (np.array(said) != labels)[: ROWS - 30]
    assert summary["mean_loss"]["majority"] == pytest.approx(wrong.mean())


def test_a_run_goes_on_while_labels_wait(tmp_path, pieces):
    inputs, labels = data(ROWS)
    write_csv(tmp_path / "t.csv", inputs, labels)
    run(tmp_path / "t.csv", tmp_path / "whole", "--delay", "25", "--proba")
    write_csv(tmp_path / "grows.csv", inputs[:90], labels[:90])
    _, before = run(tmp_path / "grows.csv", tmp_path / "part", "--delay", "25", "--proba")
    assert before["to_come"] == 25 and len(predictions(tmp_path / "part")) == 90
    assert [row["label"] for row in predictions(tmp_path / "part")[-25:]] == [""] * 25
    write_csv(tmp_path / "grows.csv", inputs, labels)
    run(tmp_path / "grows.csv", tmp_path / "part", "--delay", "25", "--proba")
    whole, part = (tmp_path / name / "predictions.csv" for name in ("whole", "part"))
    assert whole.read_bytes() == part.read_bytes()
    models = [dl.load(tmp_path / name / "model.driftline") for name in ("whole", "part")]
    assert models[0].rounds == models[1].rounds == ROWS - 25
    both = [model.predict_proba({f"x{j}": 0.3 for j in range(3)}) for model in models]
    assert both[0] == both[1]


def test_new_classes_and_tags_come_late(tmp_path, pieces):
    inputs, _ = data(ROWS)
    labels = np.minimum((np.arange(ROWS) // 60), 3)
    write_csv(tmp_path / "t.csv", inputs, labels, names="uvwx")
    _, summary = run(tmp_path / "t.csv", tmp_path / "out", "--delay", "7")
    assert summary["classes"] == 4 and summary["rounds"] == ROWS - 7
    tags = [",".join(map(str, [*x, int(x[0] > 0), int(x[1] > 0)])) for x in inputs.tolist()]
    (tmp_path / "tags.csv").write_text("\n".join(["a,b,c,t1,t2", *tags]) + "\n")
    _, summary = run(tmp_path / "tags.csv", tmp_path / "tags", "--label", "t1,t2", "--delay", "7")
    assert summary["rounds"] == ROWS - 7 and summary["certificate"]["valid"]


def test_rounds_without_an_answer_are_counted_when_their_labels_come(tmp_path, pieces):
    delays = np.random.default_rng(1).integers(-1, 40, ROWS)
    delayed(tmp_path / "t.csv", delays)
    more = ("--delay-column", "days", "--abstain", "0.25", "--learner", "fast")
    output, summary = run(tmp_path / "t.csv", tmp_path / "out", *more)
    came = [row for row in predictions(tmp_path / "out") if row["label"]]
    none = sum(not row["prediction"] for row in came)
    assert none and summary["unanswered"] == none
    assert summary["loss"] == pytest.approx(sum(float(row["loss"]) for row in came))
    assert f"{100 * none / len(came):.2f}%" in output


def test_weights_and_times_of_late_labels(tmp_path):
    inputs, labels = data(ROWS)
    lines = [
        f"{a!r},{b!r},{c!r},{1 + t % 3},day {t},{'uv'[labels[t]]}"
        for t, (a, b, c) in enumerate(inputs.tolist())
    ]
    (tmp_path / "t.csv").write_text("\n".join(["a,b,c,cost,when,label", *lines]) + "\n")
    more = ("--weight", "cost", "--time", "when", "--delay", "20", "--trace")
    _, summary = run(tmp_path / "t.csv", tmp_path / "out", *more)
    rows = predictions(tmp_path / "out")[: ROWS - 20]
    assert sum(float(row["loss"]) for row in rows) == summary["loss"]
    assert summary["weight"] == sum(float(row["weight"]) for row in rows)
    assert summary["times"]["first"] == "day 20" and summary["times"]["last"] == f"day {ROWS - 1}"
    result = call("certify", tmp_path / "out")
    assert result.exit_code == 0, result.output


def test_learners_are_compared_with_late_labels(tmp_path):
    write_csv(tmp_path / "t.csv", *data(ROWS))
    result = call("compare", tmp_path / "t.csv", "--with", "polyak,adagrad", "--delay", "30")
    assert result.exit_code == 0 and f"of {ROWS - 30} rounds" in result.output
    _, alone = run(tmp_path / "t.csv", tmp_path / "out", "--delay", "30", "--learner", "polyak")
    assert f"polyak       {alone['mean_loss']['learner']:7.2%}" in result.output


REFUSED = {
    "both": (("--delay", "3", "--delay-column", "days"), "leave --delay out"),
    "balance": (("--delay-column", "days", "--balance"), "leave one of them out"),
    "balance, all alike": (("--delay", "3", "--ignore", "days", "--balance"), "leave one of"),
    "no column": (("--delay-column", "weeks"), "no column 'weeks'"),
    "no numbers": (("--delay-column", "a"), "a whole number"),
    "two uses": (("--delay-column", "days", "--weight", "days"), "it can be one only"),
    "too long": (("--delay", str(10**20), "--ignore", "days"), "too long: expected"),
    "no label": (("--delay", "1000", "--ignore", "days"), "no label comes by the last"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_go_together_is_refused(tmp_path, name):
    delayed(tmp_path / "t.csv", np.full(ROWS, 3))
    more, words = REFUSED[name]
    result = call("run", tmp_path / "t.csv", "--out", tmp_path / "out", *more)
    assert result.exit_code != 0 and words in result.output
    left = (
        [path.name for path in (tmp_path / "out").glob("*")] if (tmp_path / "out").exists() else []
    )
    assert left == []


def test_a_model_that_waits_can_be_told_to_forget(tmp_path):
    write_csv(tmp_path / "t.csv", *data(100))
    run(tmp_path / "t.csv", tmp_path / "out", "--delay", "9", "--sets", "0.9")
    model = dl.load(tmp_path / "out/model.driftline")
    row = {f"x{j}": 0.5 for j in range(3)}
    with pytest.raises(dl.InputError, match=r"forget\(before=100\)"):
        model.learn(row, "u")
    assert model.outstanding == 9
    model.forget(before=97)
    assert model.outstanding == 3 and len(model._model.sets.waiting) == 3
    again = dl.load(model.save(tmp_path / "again"))
    again.forget(before=100)
    again.learn(row, "u")
    assert again.rounds == 92 and again.outstanding == 0


def test_a_model_that_waits_asks_for_a_delay(tmp_path):
    inputs, labels = data(ROWS)
    write_csv(tmp_path / "t.csv", inputs[:100], labels[:100])
    write_csv(tmp_path / "more.csv", inputs[100:], labels[100:])
    run(tmp_path / "t.csv", tmp_path / "out", "--delay", "9")
    model = tmp_path / "out/model.driftline"
    before = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    result = call("run", tmp_path / "more.csv", "--resume", model)
    assert result.exit_code != 0 and "labels of 9 rows are still to come" in result.output
    assert before == {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    result = call("run", tmp_path / "more.csv", "--resume", model, "--delay", "0")
    assert result.exit_code == 0, result.output
    assert "before this run came in it" in result.output
    rows = predictions(tmp_path / "out")
    assert sorted(int(row["round"]) for row in rows) == list(range(1, ROWS + 1))
    assert all(row["label"] for row in rows)


def test_a_file_grows_row_by_row_while_no_label_comes(tmp_path):
    """Rows are predicted, and nothing of those that wait is lost."""
    delays = np.r_[np.full(40, 3), [9, 9, -1, 0, 9, 9, 9]]
    path, out = tmp_path / "t.csv", tmp_path / "part"
    delayed(path, delays, len(delays))
    lines = path.read_text().splitlines(keepends=True)
    run(path, tmp_path / "whole", "--delay-column", "days")
    for rows in range(40, len(delays) + 1):
        path.write_text("".join(lines[: rows + 1]))
        output, summary = run(path, out, "--delay-column", "days", "--trace")
        assert len(predictions(out)) == rows
        assert ("no label came" in output) == (summary["rounds"] == 0)
    assert summary["rounds"] == 0 and summary["to_come"] == 5 and summary["never_came"] == 1
    whole = (tmp_path / "whole" / "predictions.csv").read_bytes()
    assert (out / "predictions.csv").read_bytes() == whole


@pytest.mark.parametrize("more", ["1.0,2.0,oops,3,u", "1.0,2.0,3.0,3,"], ids=["bad", "unlabelled"])
def test_rows_that_wait_stay_if_nothing_can_be_learned(tmp_path, more):
    path, out = tmp_path / "t.csv", tmp_path / "out"
    delayed(path, np.full(40, 9), 40)
    given = (path, "--out", out, "--delay-column", "days", "--unlabelled", "skip")
    assert call("run", *given).exit_code == 0
    before = (out / "predictions.csv").read_bytes()
    path.write_text(f"{path.read_text()}{more}\n")
    assert call("run", *given).exit_code == 2
    assert (out / "predictions.csv").read_bytes() == before
    assert len(predictions(out)) == 40


def test_no_round_with_an_answer(tmp_path):
    """The first label came alone, of a row without an answer, which the baselines predicted."""
    lines = ["a,b,label", *(f"0.{i},0.1,u" for i in range(1, 7)), "0.9,0.1,v"]
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    options = ("--delay", "6", "--abstain", "0.3", "--learner", "polyak")
    output, summary = run(tmp_path / "t.csv", tmp_path / "out", *options)
    assert summary["rounds"] == summary["unanswered"] == 1 and "not beaten" in output
