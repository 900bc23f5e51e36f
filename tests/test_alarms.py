"""Alarms: one definition, for traces, committees, estimators, runs and reports."""

import json
from itertools import pairwise

import naive
import numpy as np
import pytest
from commands import call, data, write_csv
from hypothesis import given
from hypothesis import strategies as st

import driftline as dl
from driftline.detectors import AlarmLog, alarms_of
from driftline.errors import InputError

STREAMS = {
    "classes": dl.streams.LabelFlips(rounds=1500, flips=2, seed=0),
    "digits": dl.streams.DigitTriples(rounds=600, flips=1, seed=0),
}
every_stream = pytest.mark.parametrize("stream", STREAMS.values(), ids=list(STREAMS))


def rising(rounds=200, changes=3, seed=0):
    """Return losses that rise and fall."""
    random = np.random.default_rng(seed)
    mean = np.repeat(random.choice([0.02, 0.6], 1 + changes), -(-rounds // (1 + changes)))[:rounds]
    return (random.random(rounds) < mean).astype(float)


@given(seed=st.integers(0, 10**6), cuts=st.lists(st.integers(0, 200), max_size=5))
def test_alarms_are_those_of_the_test_written_out_in_pieces_too(seed, cuts):
    losses, log = rising(seed=seed), AlarmLog()
    for a, b in pairwise(sorted({0, *cuts, len(losses)})):
        log.add(losses[a:b])
        log = AlarmLog.from_array(log.to_array(), rounds=b)
    assert log.rounds.tolist() == naive.cusum_alarms(losses) == alarms_of(losses).tolist()


def test_the_last_thousand_are_kept_and_all_are_counted():
    log, one = AlarmLog(), np.r_[np.zeros(30), np.ones(12)]
    for _ in range(1100):
        log.add(one)
    assert log.count >= 1100 and len(log.rounds) == 1000
    assert (np.diff(log.rounds) > 0).all() and log.rounds[-1] >= 42 * 1099
    again = AlarmLog.from_array(log.to_array(), 42 * 1100)
    assert np.array_equal(again.rounds, log.rounds)


@pytest.mark.parametrize(
    "place, value",
    [(0, 0.5), (0, 1e9), (1, 1e9), (4, 3.0), (4, 1e300), (5, -1.0), (5, 1e300), (2, np.nan)],
)
def test_edited_logs_are_refused(place, value):
    log = AlarmLog()
    log.add(rising(400, 1, seed=3))
    state = np.r_[log.to_array(), 0.0][:6]
    state[4] = 1.0
    state[place] = value
    with pytest.raises(InputError, match="no log of alarms"):
        AlarmLog.from_array(state, 400)


@every_stream
def test_a_committee_has_the_alarms_of_its_trace(stream):
    trace = dl.auto(stream.task, effort="fast").run(stream)
    assert np.array_equal(trace.alarms, alarms_of(trace.average))
    assert len(trace.alarms)


@every_stream
def test_steps_pieces_and_files_go_on_with_alarms(stream, tmp_path):
    whole = dl.auto(stream.task, effort="fast")
    trace = whole.run(stream)
    assert np.array_equal(whole.alarms, trace.alarms)
    parts, X, y = dl.auto(stream.task, effort="fast"), stream.inputs, stream.labels
    parts.run(X[:333], y[:333])
    for x, label in zip(X[333:340], y[333:340], strict=True):
        parts.step(x, label)
    parts.tell(parts.ask(X[340]), y[340])
    parts = dl.load(parts.save(tmp_path / "parts")).copy()
    parts.learn_rows(X[341:], y[341:])
    assert np.array_equal(parts.alarms, whole.alarms)
    assert np.array_equal(parts.grown(features=X.shape[1] + 1).alarms, whole.alarms)


def test_a_refused_run_leaves_alarms_as_they_were():
    stream = STREAMS["classes"]
    learner, X, y = dl.auto(stream.task, effort="fast"), stream.inputs.copy(), stream.labels
    learner.run(X[:700], y[:700])
    before = learner.state
    X[1400, 0] = np.nan
    with pytest.raises(InputError):
        learner.run(X[700:], y[700:])
    assert np.array_equal(learner.state.alarms.state, before.alarms.state)
    learner.run(X[700:1400], y[700:1400])
    assert len(learner.alarms) > len(before.alarms.rounds)
    learner.restore(before)
    assert np.array_equal(learner.alarms, before.alarms.rounds)


@pytest.mark.parametrize("alarms", [3, "x", np.zeros(5)])
def test_a_state_with_something_else_for_alarms_is_refused(alarms):
    stream = STREAMS["classes"]
    learner = dl.auto(stream.task, effort="fast")
    learner.run(stream.inputs[:50], stream.labels[:50])
    with pytest.raises(InputError, match="expected a log of alarms"):
        learner.restore(learner.state.replaced(alarms=alarms))
    learner.step(stream.inputs[50], stream.labels[50])


def test_losses_are_shares_of_the_largest_one():
    costs = dl.tasks.CostSensitive(10.0 * (1.0 - np.eye(2)))
    loss = dl.losses.Scaled(dl.losses.Logistic(dl.tasks.Multiclass(2)), 2.0)
    X = np.random.default_rng(0).normal(size=(600, 2))
    y = np.r_[X[:300, 0] > 0, X[300:, 0] < 0].astype(int)
    plain = dl.OGD(loss).run(X, y)
    assert plain.largest_loss == 1.0 and len(plain.alarms) == 1
    assert abs(int(plain.alarms[0]) - 300) < 30
    trace = dl.auto(costs, effort="fast").run(X, y)
    assert trace.members[0].largest_loss == 10.0
    assert np.array_equal(trace.alarms, alarms_of(trace.average / 10.0))


def test_estimators_have_alarms():
    stream = STREAMS["classes"]
    model = dl.DriftClassifier(learner="fast")
    for a in range(0, 1500, 100):
        model.partial_fit(stream.inputs[a : a + 100], stream.labels[a : a + 100], classes=[-1, 1])
    trace = dl.auto(dl.tasks.Multiclass(2), effort="fast").run(
        stream.inputs, (np.asarray(stream.labels) > 0).astype(int)
    )
    assert np.array_equal(model.alarms_, trace.alarms)
    single = dl.DriftClassifier(learner=lambda task: dl.OGD(dl.losses.Logistic(task)))
    single.fit(stream.inputs, stream.labels)
    with pytest.raises(AttributeError, match="only a committee keeps alarms"):
        _ = single.alarms_


def test_a_run_tells_its_alarms_in_all_places(tmp_path):
    inputs, labels = data(rows=600)
    table = write_csv(tmp_path / "t.csv", inputs, labels)
    done = call("run", table, "--out", tmp_path / "out")
    told = json.loads((tmp_path / "out" / "summary.json").read_text())["alarms"]
    model = dl.load(tmp_path / "out" / "model.driftline")
    assert told == [t + 1 for t in model.alarms] and len(told) == 1 and 300 < told[0] < 330
    assert f"losses were seen to rise after round {told[0]}" in done.output
    report = (tmp_path / "out" / "report.html").read_text()
    assert f"Losses were seen to rise after round {told[0]} (dotted lines)." in report
    more = write_csv(tmp_path / "more.csv", inputs[::-1], labels[::-1])
    done = call(
        "run", more, "--resume", tmp_path / "out" / "model.driftline", "--out", tmp_path / "on"
    )
    assert done.exit_code == 0, done.output
    on = json.loads((tmp_path / "on" / "summary.json").read_text())["alarms"]
    again = dl.load(tmp_path / "on" / "model.driftline")
    assert on == [t + 1 - 600 for t in again.alarms if t >= 600] and len(again.alarms) > 1


def test_a_baseline_that_was_not_beaten_is_said_first(tmp_path):
    random = np.random.default_rng(0)
    inputs, labels = random.standard_normal((300, 3)), (random.random(300) < 0.03).astype(int)
    done = call("run", write_csv(tmp_path / "t.csv", inputs, labels), "--out", tmp_path / "out")
    told = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert told["beaten_by"] == "majority"
    lines = [line for line in done.output.splitlines() if "baseline" in line or "mistakes," in line]
    assert lines[0].startswith("the baseline 'majority' was not beaten") and "mistakes" in lines[1]
    assert "try: --learner auto" in done.output
    assert "The baseline 'majority' was not beaten." in (
        tmp_path / "out" / "report.html"
    ).read_text().replace("&#x27;", "'")
