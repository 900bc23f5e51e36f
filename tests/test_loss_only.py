"""Laws of learners that see the loss of each prediction, and nothing else of the label."""

import dataclasses

import numpy as np
import pytest

import driftline as dl
from driftline.bandit import LossOnly
from driftline.checks import check_learner
from tests.howmany import examples

T, R = dl.tasks, dl.regularizers
LOSSES = {
    "rankings": dl.losses.FenchelYoung(T.LabelRanking(5), R.Quadratic()),
    "matchings": dl.losses.FenchelYoung(T.Matching(3), R.Quadratic()),
    "sets": dl.losses.FenchelYoung(T.FixedSize(5, 2), R.Quadratic(2.0)),
    "levels": dl.losses.FenchelYoung(T.Ordinal(4), R.Quadratic()),
    "tags": dl.losses.Logistic(T.Multilabel(3)),
}
every_loss = pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)


@every_loss
@pytest.mark.parametrize("seed", examples(2, 20))
def test_on_average_the_label_is_measured(loss, seed):
    """Over all predictions with their probabilities, on the span of loss encodings."""
    task, rng = loss.task, np.random.default_rng(seed)
    learner = LossOnly(loss, features=None, exploration=0.3)
    x, label = rng.normal(size=2), task.geometry.top_label(rng.normal(size=task.dim))
    learner.run(x[np.newaxis], np.array([label]))
    learner.restore(learner.state.replaced(memory=np.r_[1.0, rng.normal(size=2 * task.dim)]))
    atoms, weights = learner.feedback.decoder.distribution(learner.scores(x))
    count = len(learner.feedback._list)
    draws = [(0.3 * (i + 0.5) / count, 0.3 / count) for i in range(count)]
    ends = np.cumsum(np.r_[0.0, weights])
    middles = 0.3 + 0.7 * (ends[:-1] + ends[1:]) / 2.0
    draws += list(zip(middles, 0.7 * weights, strict=True))
    guess, mean = np.zeros(task.dim), np.zeros(task.dim)
    for uniform, chance in draws:
        prediction, measured, wanted = learner.feedback._drawn(learner.scores(x), float(uniform))
        guess += chance * measured * (task.loss(prediction, label) - task.constant_offset)
        mean += chance * task.encode_loss(prediction)
    assert np.allclose(mean, wanted) and len(atoms) == len(weights)
    span = learner.feedback._encoded.T @ np.linalg.pinv(learner.feedback._encoded.T)
    assert np.allclose(guess, span @ task.encode(label), atol=1e-6)


@every_loss
def test_the_contract_of_learners(loss):
    stream = dl.streams.Planted(loss.task, 24, 1, features=3, seed=0)
    check_learner(LossOnly(loss, seed=2), stream.inputs, stream.labels)


@pytest.mark.parametrize(
    "task",
    [T.Ordinal(5), T.Ordinal(30), T.FixedSize(6, 5), T.Matching(3), T.LabelRanking(4)],
    ids=str,
)
def test_random_predictions_span_all(task):
    """Levels in the middle are never the best ones of a few random directions."""
    learner = LossOnly(dl.losses.FenchelYoung(task, R.Quadratic()), features=None)
    directions = np.random.default_rng(1).normal(size=(3000, task.dim))
    every = task.labels.all if task.kind == "levels" else map(task.top_prediction, directions)
    encoded = np.array([task.encode_loss(prediction) for prediction in every])
    basis = learner.feedback._basis
    assert np.allclose(encoded @ basis @ basis.T, encoded)
    assert np.linalg.matrix_rank(learner.feedback._encoded) == basis.shape[1]


@pytest.mark.parametrize("exploration", [1.0, 1e-6])
def test_tickets_are_told_however_much_is_explored(exploration):
    """Where little is explored, measurements are long."""
    loss = dl.losses.FenchelYoung(T.Ordinal(12), R.Quadratic())
    learner = LossOnly(loss, exploration=exploration, features=None)
    rng = np.random.default_rng(0)
    learner.run(rng.normal(size=(5, 2)), rng.integers(12, size=5))
    for x in rng.normal(size=(20, 2)):
        own = learner.ask(x)
        forged = dataclasses.replace(own, means=own.means * 1e12)
        with pytest.raises(dl.InputError, match="what the prediction measures"):
            learner.tell(forged, loss=0.5)
        learner.tell(own, loss=0.5)


@every_loss
def test_features_become_more_and_classes_do_not(loss):
    stream = dl.streams.Planted(loss.task, 20, 0, features=3, seed=0)
    learner = LossOnly(loss, features=None)
    learner.run(stream)
    more = learner.grown(features=5)
    assert np.allclose(more.scores([1.0, 2.0, 3.0, 9.0, 9.0]), learner.scores([1.0, 2.0, 3.0]))
    with pytest.raises(dl.InputError, match="more"):
        learner.grown(classes=7)


def test_losses_are_numbers_of_any_type_and_rounded():
    loss = dl.losses.FenchelYoung(T.FixedSize(6, 5), R.Quadratic())
    worst = loss.task.loss(np.array([0, 1, 1, 1, 1, 1]), np.array([1, 1, 1, 1, 1, 0]))
    assert worst > loss.task.largest_loss  # by rounding
    learner = LossOnly(loss)
    for paid in (worst, np.float32(0.25), np.int64(0), 0):
        learner.tell(learner.ask([1.0, 2.0]), loss=paid)


def test_only_losses_are_seen():
    """A label of the same loss in place of another changes nothing."""
    task = T.Ordinal(3)
    one = LossOnly(dl.losses.FenchelYoung(task, R.Quadratic()), features=None)
    two = one.copy()
    rng = np.random.default_rng(0)
    for _ in range(60):
        x, label = rng.normal(size=2), int(rng.integers(3))
        first, second = one.ask(x), two.ask(x)
        assert first.prediction == second.prediction
        paid = task.loss(first.prediction, label)
        one.tell(first, label)
        two.tell(second, loss=paid)
    assert (one.memory == two.memory).all()


@pytest.mark.parametrize("name", ["rankings", "levels"])
def test_something_is_learned(name):
    stream = dl.streams.Planted(LOSSES[name].task, rounds=1200, flips=0, seed=1)
    trace = LossOnly(LOSSES[name]).run(stream)
    assert trace.target_loss[-400:].mean() < 0.75 * LOSSES[name].task.guess.loss


@every_loss
def test_a_certificate_plays_the_run_again(loss):
    stream = dl.streams.Planted(loss.task, rounds=30, flips=0, features=3, seed=0)
    trace = LossOnly(loss).run(stream)
    made = dl.certify(trace, None, stream)
    assert made.valid and made.expected == pytest.approx(trace.risk.sum())
    assert "no bound: none is stated" in str(made) and made.bound == np.inf


@pytest.mark.parametrize(
    "make, words",
    [
        (lambda: LossOnly(T.LabelRanking(5)), "expected a loss"),
        (lambda: LossOnly(dl.losses.Logistic(T.Multiclass(3))), "offset is constant"),
        (lambda: LossOnly(dl.losses.CRF(T.Sequence(3))), "offset is constant"),
        (lambda: LossOnly(LOSSES["tags"], step=0.0), "step is a number from"),
        (lambda: LossOnly(LOSSES["tags"], exploration=2.0), "exploration is a number from"),
        (lambda: dl.Committee([LossOnly(LOSSES["tags"])]), "learn from labels"),
    ],
)
def test_what_makes_no_sense_is_refused(make, words):
    with pytest.raises(dl.InputError, match=words):
        make()


def test_feedback_that_makes_no_sense_is_refused():
    learner = LossOnly(LOSSES["tags"])
    learner.run(np.ones((3, 2)), np.eye(3, dtype=int))
    ticket, before = learner.ask([1.0, 2.0]), learner.memory.copy()
    for given in ({"loss": -0.1}, {"loss": 1.1}, {"loss": float("nan")}, {"label": [0, 1]}, {}):
        with pytest.raises(dl.InputError):
            learner.tell(ticket, **given)
    for means in (None, np.zeros((1, 2)), np.full((1, 3), 1e12), np.full((2, 3), 0.1)):
        with pytest.raises(dl.InputError):
            learner.tell(dataclasses.replace(ticket, means=means), loss=0.5)
    assert (learner.memory == before).all()
