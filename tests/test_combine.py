"""Rules for combining members: a further one, as a file would add it, does all that rules do."""

import numpy as np
import pytest

import driftline as dl
from driftline.checks import check_learner
from driftline.committee.combine import RULES, Combine, rule_of


class Leader(Combine):
    """The prediction of the member with the most weight: a rule that the library does not have."""

    name = "leader"
    how = "by its leader"
    wrong = "not the leader's"

    def predictions(self, task, made):
        return np.stack(made.predictions)[made.weights.argmax(axis=1), np.arange(len(made.weights))]


@pytest.fixture
def leader(monkeypatch):
    monkeypatch.setitem(RULES, "leader", Leader())


TASKS = [dl.tasks.Multiclass(3), dl.tasks.Multilabel(2), dl.tasks.Ordinal(3), dl.tasks.Binary()]


def stream(task, rounds=200):
    random = np.random.default_rng(0)
    X = random.standard_normal((rounds, 4))
    if task.kind == "tags":
        return X, (X[:, :2] > 0).astype(int)
    labels = np.array(list(task.labels.all))
    return X, labels[np.digitize(X[:, 0], np.linspace(-0.5, 0.5, len(labels) - 1))]


@pytest.mark.parametrize("task", TASKS, ids=repr)
def test_a_further_rule_is_a_file_and_a_line(task, leader, tmp_path):
    """It plays, steps, waits for labels, is saved, described and audited."""
    X, y = stream(task)
    learner = dl.auto(task, effort="fast", combine="leader")
    trace = learner.run(X, y)
    leaders, rounds = trace.weights.argmax(axis=1), np.arange(200)
    theirs = np.stack([member.prediction for member in trace.members])
    np.testing.assert_array_equal(trace.prediction, theirs[leaders, rounds])
    np.testing.assert_array_equal(trace.target_loss, trace.member_risk[rounds, leaders])
    assert "by its leader" in learner.describe()
    again = dl.load(learner.save(tmp_path / "model"))
    assert again.combine == "leader"
    for x, label in zip(X[:5], y[:5], strict=True):
        assert np.array_equal(again.predict(x), learner.predict(x))
        one, other = learner.step(x, label), again.step(x, label)
        assert np.array_equal(one.prediction, other.prediction)
        assert one.target_loss == other.target_loss
    late = dl.auto(task, effort="fast", combine="leader").run(X, y, delay=5)
    assert np.isfinite(late.target_loss[:190]).all()
    certificate = dl.certify(trace, None, X, y)
    assert certificate.valid and "by its leader" in str(certificate)


def test_a_further_rule_obeys_the_laws_of_learners(leader):
    task = dl.tasks.Multiclass(3)
    check_learner(dl.auto(task, effort="fast", combine="leader"), *stream(task, 60))


def test_an_audit_finds_predictions_that_are_not_the_rule_s(leader):
    X, y = stream(TASKS[0])
    trace = dl.auto(TASKS[0], effort="fast", combine="leader").run(X, y)
    trace.prediction[7] = (trace.prediction[7] + 1) % 3
    said = dl.certify(trace, None, X, y).findings
    assert "1 predictions are not the leader's, the first in round 7" in said


def test_rules_that_nobody_knows_are_refused(leader, monkeypatch, tmp_path):
    X, y = stream(TASKS[0])
    learner = dl.auto(TASKS[0], effort="fast", combine="leader")
    trace = learner.run(X, y)
    model, record = learner.save(tmp_path / "model"), trace.save(tmp_path / "trace")
    monkeypatch.delitem(RULES, "leader")
    for call in (
        lambda: dl.auto(TASKS[0], combine="leader"),
        lambda: dl.load(model),
        lambda: dl.CommitteeTrace.load(record),
        lambda: dl.certify(trace, None, X, y),
    ):
        with pytest.raises(dl.InputError, match="one of 'vote', 'mix', 'first', not 'leader'"):
            call()
    with pytest.raises(dl.InputError, match="not 7"):
        rule_of(7)
