"""What a committee believes: weights by logarithmic loss, within a bound; one way to predict."""

import functools
import itertools
import math
from dataclasses import dataclass

import naive
import numpy as np
import pytest
from howmany import chosen, number
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import driftline as dl
from driftline.committee import Shares
from driftline.committee.beliefs import SHARE_VALUES, Beliefs
from driftline.committee.pooling import chances_of, log_chances
from driftline.learner import log_probabilities
from driftline.streams import DigitTriples, LabelFlips, Planted
from tests.strategies import committee_by


def learn(beliefs, losses):
    """Let beliefs learn from a round, or from several."""
    losses = np.atleast_2d(losses)
    Shares(losses.shape[1]).update(np.zeros(losses.shape), beliefs=beliefs, surrogate=losses)


@given(st.integers(0, 2**32 - 1))
def test_beliefs_are_those_of_the_naive_mixture(seed):
    generator = np.random.default_rng(seed)
    rounds, members = int(generator.integers(1, 30)), int(generator.integers(1, 5))
    losses = generator.exponential(size=(rounds, members)) * generator.choice([0.01, 1.0, 30.0])
    nats = generator.uniform(0.1, 2.0, members)
    beliefs = Beliefs(nats)
    for row in losses:
        learn(beliefs, row)
    np.testing.assert_allclose(beliefs.now, naive.beliefs(losses * nats, SHARE_VALUES), atol=1e-9)
    whole = Beliefs(nats)
    learn(whole, losses)
    np.testing.assert_array_equal(whole.state, beliefs.state)


@given(st.integers(0, 2**32 - 1))
def test_the_mixture_is_within_its_bound(seed):
    """Against every sequence of members with one change."""
    generator = np.random.default_rng(seed)
    rounds, members = 40, 3
    losses = generator.exponential(size=(rounds, members))
    losses[: rounds // 2, 0] *= 0.05
    losses[rounds // 2 :, 1] *= 0.05
    beliefs, paid = Beliefs(np.ones(members)), 0.0
    for row in losses:
        paid -= math.log(beliefs.now @ np.exp(-row))
        learn(beliefs, row)
    for change in range(1, rounds):
        first, second = losses[:change].sum(axis=0).min(), losses[change:].sum(axis=0).min()
        price = min(
            math.log(len(SHARE_VALUES) * members)
            + math.log(members / a)
            - (rounds - 2) * math.log(1 - a + a / members)
            for a in SHARE_VALUES
        )
        assert paid <= first + second + price + 1e-9


def fitted():
    flips = LabelFlips(rounds=600, flips=6, seed=1)
    digits = DigitTriples(rounds=400, flips=2, seed=1)
    tags = Planted(dl.tasks.Multilabel(4), rounds=300, flips=3, noise=0.2, seed=1)
    levels = Planted(dl.tasks.Ordinal(4), rounds=300, flips=3, noise=0.2, seed=1)
    yield dl.DriftClassifier(), digits.inputs, digits.labels
    yield dl.DriftClassifier(), flips.inputs, flips.labels
    yield dl.DriftClassifier("polyak"), digits.inputs, digits.labels
    yield dl.DriftMultilabelClassifier(), tags.inputs, tags.labels
    yield dl.DriftOrdinalClassifier("fast"), levels.inputs, levels.labels


@pytest.mark.parametrize("case", range(5))
def test_an_estimator_predicts_what_its_learner_does(case):
    model, X, y = next(itertools.islice(fitted(), case, None))
    X, y = X[: number(200, 600)], y[: number(200, 600)]
    for rounds in chosen((5, 100), (5, 40, 200)):
        model.fit(X[:rounds], y[:rounds])
        made = model.predict(X)
        codes = made if made.ndim > 1 else np.searchsorted(model.classes_, made)
        rows = np.array([model.learner_.predict(x) for x in X])
        np.testing.assert_array_equal(codes, rows)
        chances = model.predict_proba(X)
        if made.ndim > 1:
            np.testing.assert_array_equal(chances > 0.5, made > 0)
        else:
            np.testing.assert_array_equal(model.classes_[chances.argmax(axis=1)], made)
            np.testing.assert_allclose(chances.sum(axis=1), 1.0)


def prequential(learner, inputs, labels):
    """Return the logarithmic losses of a committee's mixture and of each member."""
    trace = learner.run(inputs, labels)
    nats = np.array([member.loss.nats for member in learner.members])
    logs = np.stack([member.loss for member in trace.members], axis=1) * nats
    beliefs, paid = Beliefs(nats), []
    for row in logs:
        paid.append(-math.log(beliefs.now @ np.exp(-row)))
        learn(beliefs, row / nats)
    np.testing.assert_array_equal(beliefs.state, learner.state.beliefs)
    return float(np.mean(paid)), logs.mean(axis=0)


@pytest.mark.parametrize("flips", [1, 20])
def test_chances_are_worth_as_much_as_the_best_members(flips):
    stream = DigitTriples(rounds=3000, flips=flips, seed=4)
    learner = committee_by("vote", stream.task)
    paid, members = prequential(learner, stream.inputs, stream.labels)
    assert paid <= 1.01 * members.min() + math.log(4 * 6) / 3000


def test_beliefs_go_on_after_a_file(tmp_path):
    stream = DigitTriples(rounds=400, flips=2, seed=4)
    one = committee_by("vote", stream.task)
    one.run(stream.inputs[:200], stream.labels[:200])
    two = dl.load(one.save(tmp_path / "model"))
    np.testing.assert_array_equal(one.beliefs, two.beliefs)
    assert not np.allclose(one.beliefs, one.weights)
    about, arrays = one.to_saved()
    with pytest.raises(dl.InputError, match="no beliefs"):
        dl.Committee.from_saved(about, arrays | {"beliefs": arrays["beliefs"] * 2.0})


@pytest.mark.parametrize("effort", ["fast", "balanced"])
@pytest.mark.parametrize("kind", ["classes", "sign", "levels", "tags"])
def test_chances_are_the_mixture_written_out_and_agree_with_the_vote(kind, effort):
    random = np.random.default_rng(0)
    X = random.standard_normal((200, 4))
    level = (X[:, 0] + 0.5 * random.standard_normal(200) > [[-0.5], [0.5]]).sum(axis=0)
    task, labels = {
        "classes": (dl.tasks.Multiclass(3), level),
        "sign": (dl.tasks.Binary(), np.where(level > 0, 1, -1)),
        "levels": (dl.tasks.Ordinal(3), level),
        "tags": (dl.tasks.Multilabel(2), np.stack([level > 0, level > 1], axis=1).astype(int)),
    }[kind]
    committee = committee_by("vote", task, effort=effort)
    committee.run(X, labels)
    chances = np.zeros((200, {"classes": 3, "sign": 2, "levels": 3, "tags": 2}[kind]))
    for share, own in zip(committee.beliefs, committee.score_rows(X), strict=True):
        for t, theta in enumerate(own):
            if kind == "tags":
                chances[t] += share / (1.0 + np.exp(-theta))
                continue
            scores = {"classes": theta, "sign": [0.0, *theta], "levels": [0.0, *theta.cumsum()]}
            odds = np.exp(np.array(scores[kind]) - np.max(scores[kind]))
            chances[t] += share * odds / odds.sum()
    np.testing.assert_allclose(np.exp(log_chances(committee, X, vote=False)), chances, rtol=1e-9)
    voted = np.exp(log_chances(committee, X))
    if kind != "tags":
        np.testing.assert_allclose(np.sort(voted), np.sort(chances), rtol=1e-9)
    for own, x in zip(voted, X, strict=True):
        said = committee.predict(x)
        top = (own > 0.5).tolist() if kind == "tags" else own.argmax()
        assert np.array_equal(said, 2 * top - 1 if kind == "sign" else top)


def test_chances_of_sure_members_are_no_larger_than_one():
    scores = np.tile([0.0, -50.0, -50.0], (14, 50, 1))
    weights = np.random.default_rng(0).random((50, 14))
    logs = log_probabilities(dl.tasks.Multiclass(3), scores, weights, None)
    assert np.exp(logs).max() <= 1.0 and logs[:, 1] == pytest.approx(-50.0)


@pytest.mark.parametrize("far", [1.0, 50.0, 700.0, 2000.0])
def test_small_probabilities_have_full_precision(far):
    random = np.random.default_rng(3)
    scores, weights = far * random.standard_normal((5, 40, 4)), random.random((40, 5))
    found = log_probabilities(dl.tasks.Multiclass(4), scores, weights, None)
    logs = scores - np.logaddexp.reduce(scores, axis=2, keepdims=True)
    shares = np.log(weights / weights.sum(axis=1, keepdims=True)).T[:, :, np.newaxis]
    expected = np.logaddexp.reduce(logs + shares, axis=0)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


TASKS = {
    "classes": dl.tasks.Multiclass(3),
    "two classes": dl.tasks.Multiclass(2),
    "sign": dl.tasks.Binary(),
    "levels": dl.tasks.Ordinal(3),
    "tags": dl.tasks.Multilabel(2),
    "abstaining": dl.tasks.Abstaining(dl.tasks.Multiclass(3), cost=0.3),
}


def played(task, rounds, features=5):
    random = np.random.default_rng(1)
    X = random.standard_normal((rounds, features))
    labels = list(task.answers.labels.all) if task.kind != "tags" else None
    if labels is None:
        return X, (X[:, :2] > 0.0).astype(int)
    places = np.digitize(X[:, 0] + 0.3 * X[:, 1], np.linspace(-0.6, 0.6, len(labels) - 1))
    return X, np.array(labels)[places]


@dataclass(frozen=True)
class Slow(dl.rates.Constant):
    """A rate without a kernel."""

    kernel = None

    def next(self, loss, risk, grad_sq, input_sq, previous, setting, memory):
        return self.eta


LEARNERS = {
    "auto": dl.auto,
    "fast": functools.partial(dl.auto, effort="fast"),
    "guarded vote": functools.partial(dl.auto, effort="fast", combine="vote", budget=1.5),
    "alone": lambda task: dl.OGD(dl.losses.Logistic(task), features=dl.features.Standardise()),
    "plain": lambda task: dl.OGD(dl.losses.Logistic(task), rate=Slow(0.1)),
    "counts": dl.members.NaiveBayes,
    "tables": dl.members.Tables,
    "neighbours": dl.members.Neighbours,
    "forest": dl.members.Forest,
}
LINEAR = ("alone", "plain")


def cases():
    for name in LEARNERS:
        for kind in TASKS:
            if name not in ("auto", "fast", "guarded vote"):
                linear = kind in ("classes", "two classes", "sign", "tags")
                if not (linear if name in LINEAR else kind in ("classes", "sign", "abstaining")):
                    continue
            yield pytest.param(LEARNERS[name], TASKS[kind], id=f"{name} {kind}")


def one_by_one(learner, X, y):
    """The probabilities before each row, asked for without learning."""
    made = []
    for t in range(len(y)):
        made.append(chances_of(learner, X[t : t + 1])[0])
        learner.learn_row(X[t], y[t])
    return np.array(made)


@pytest.mark.parametrize("make, task", list(cases()))
def test_a_run_has_the_probabilities_before_every_row(make, task):
    X, y = played(task, number(60, 300))
    expected = one_by_one(make(task), X, y)
    learner = make(task)
    trace = learner.run(X, y, probabilities=True)
    np.testing.assert_allclose(trace.probabilities, expected, rtol=1e-12, atol=1e-300)
    other, parts = make(task), []
    for start in range(0, len(y), 23):
        part = slice(start, start + 23)
        parts.append(other.run(X[part], y[part], probabilities=True).probabilities)
    assert np.concatenate(parts).tobytes() == trace.probabilities.tobytes()
    plain = make(task)
    again = plain.run(X, y)
    assert again.probabilities is None
    np.testing.assert_array_equal(again.target_loss, trace.target_loss)
    (_, one), (_, two) = learner.to_saved(), plain.to_saved()
    assert all(np.array_equal(one[name], two[name], equal_nan=True) for name in two)


@pytest.mark.parametrize("kind", ["classes", "tags", "levels"])
def test_they_go_with_weights_sparse_rows_and_late_labels(kind):
    task = TASKS[kind]
    X, y = played(task, 80)
    weights = np.random.default_rng(2).integers(0, 3, 80).astype(float)
    whole, learner = dl.auto(task, effort="fast"), dl.auto(task, effort="fast")
    found = whole.run(X, y, sample_weight=weights, probabilities=True).probabilities
    for t in range(80):
        np.testing.assert_allclose(found[t], chances_of(learner, X[t : t + 1])[0], rtol=1e-12)
        learner.learn_rows(X[t : t + 1], y[t : t + 1], weights[t : t + 1])
    rows = sparse.csr_array(np.where(X > 0.5, X, 0.0))
    found = dl.auto(task, effort="fast").run(rows, y, probabilities=True).probabilities
    learner = dl.auto(task, effort="fast")
    for t in range(80):
        np.testing.assert_allclose(found[t], chances_of(learner, rows[t : t + 1])[0], rtol=1e-12)
        learner.learn_rows(rows[t : t + 1], y[t : t + 1])
    trace = dl.auto(task, effort="fast").run(X, y, delay=7, probabilities=True)
    learner, tickets = dl.auto(task, effort="fast"), []
    for t in range(80):
        now = chances_of(learner, X[t : t + 1])[0]
        np.testing.assert_allclose(trace.probabilities[t], now, rtol=1e-9)
        tickets.append(learner.ask(X[t]))
        if t >= 7:
            learner.tell(tickets[t - 7], y[t - 7])


def test_probabilities_are_refused_where_there_are_none(tmp_path):
    X, y = played(TASKS["classes"], 10)
    learner = dl.auto(TASKS["classes"])
    with pytest.raises(dl.InputError, match="give no sink"):
        learner.run(X, y, probabilities=True, sink=dl.TraceFile(tmp_path / "t.npz"))
    with pytest.raises(dl.InputError, match="probabilities must be True or False"):
        learner.run(X, y, probabilities="yes")
    bandit = dl.auto(TASKS["classes"], feedback="bandit")
    with pytest.raises(dl.InputError, match="for learners that see labels: not for"):
        bandit.run(X, y, probabilities=True)
    ranks = dl.auto(dl.tasks.LabelRanking(3))
    with pytest.raises(dl.InputError, match="of classes, signs, levels and tags"):
        ranks.run(X, np.tile([0, 1, 2], (10, 1)), probabilities=True)
    assert learner.rounds == bandit.rounds == ranks.rounds == 0


def test_a_trace_is_saved_without_them(tmp_path):
    X, y = played(TASKS["classes"], 30)
    trace = dl.auto(TASKS["classes"], effort="fast").run(X, y, probabilities=True)
    again = dl.CommitteeTrace.load(trace.save(tmp_path / "t"))
    assert again.probabilities is None
    np.testing.assert_array_equal(again.prediction, trace.prediction)
    assert dl.CommitteeTrace.join([trace, trace]).probabilities is None
