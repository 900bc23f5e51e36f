"""Laws of logged rounds: what another policy did, as labels with sample weights."""

import numpy as np
import pytest

import driftline as dl

RNG = np.random.default_rng(0)
TASK = dl.tasks.Multiclass(4)
STREAM = dl.streams.Planted(TASK, rounds=3000, flips=1, seed=0)
LABELS = np.asarray(STREAM.labels)


def logging(seed, share=0.4):
    """Return what a policy that is often wrong did."""
    rng = np.random.default_rng(seed)
    chances = np.full((len(LABELS), 4), share / 4)
    chances[np.arange(len(LABELS)), (LABELS + 1) % 4] += 1.0 - share
    actions = (rng.random((len(LABELS), 1)) > chances.cumsum(axis=1)).sum(axis=1).clip(max=3)
    return actions, chances[np.arange(len(LABELS)), actions]


def logged(seed=0, **options):
    actions, chances = logging(seed)
    losses = (actions != LABELS).astype(float)
    return dl.streams.Logged(STREAM.inputs, actions, chances, losses, classes=4, **options)


def learner():
    return dl.OGD(dl.losses.Logistic(TASK), seed=5)


def test_on_average_a_round_costs_its_loss_and_a_constant():
    for _ in range(50):
        chances, losses = RNG.dirichlet(np.ones(4)) * 0.9 + 0.025, RNG.random(4)
        rows = dl.streams.Logged(np.ones((4, 1)), np.arange(4), chances, losses)
        for prediction in range(4):
            costs = rows.sample_weight * (np.arange(4) != prediction)
            expected = (1.0 - losses).sum() - (1.0 - losses[prediction])
            assert chances @ costs == pytest.approx(expected)


def test_a_run_is_that_with_sample_weights():
    rows = logged()
    one, two = (
        learner().run(rows),
        learner().run(rows.inputs, rows.labels, sample_weight=rows.sample_weight),
    )
    assert (one.risk == two.risk).all() and (one.prediction == two.prediction).all()
    assert dl.certify(one, STREAM.comparator.scaled(5.0), rows).valid


def test_estimates_are_those_of_the_labels():
    """Of predictions that do not depend on what was logged, over many logs."""
    made = dl.OGD(dl.losses.Logistic(TASK)).run(STREAM)
    off = []
    for seed in range(30):
        rows = logged(seed)
        chance = np.where(rows.labels == LABELS, made.risk, 1.0)  # that the action is not predicted
        risk = rows.sample_weight * chance
        found = rows.estimate(type("Run", (), {"risk": risk, "sample_weight": rows.sample_weight}))
        off.append((found.loss - made.risk.mean()) / found.error)
    assert abs(np.mean(off)) < 4.0 / np.sqrt(len(off)) and 0.5 < np.std(off) < 1.6


def test_a_learner_does_better_than_what_it_learns_from():
    rows = logged(1)
    trace = dl.auto(TASK, effort="fast").run(rows)
    found, true = rows.estimate(trace), (trace.prediction != LABELS).mean()
    assert true < 0.5 * rows.loss
    assert abs(found.loss - true) < 4.0 * found.error


def test_clipped_estimates_are_pessimistic():
    rows, cut = logged(2), logged(2, clip=3.0)
    assert cut.largest_weight == 3.0 < rows.largest_weight == pytest.approx(10.0)
    trace = learner().run(rows)
    share = np.where(rows.sample_weight > 0.0, cut.sample_weight / rows.sample_weight.clip(1e-9), 0)
    same = type("Run", (), {"risk": trace.risk * share, "sample_weight": cut.sample_weight})
    assert cut.estimate(same).loss > rows.estimate(trace).loss


def made(**changes):
    given = {
        "inputs": np.ones((3, 2)),
        "actions": [0, 1, 2],
        "probabilities": [0.5, 0.5, 1.0],
        "losses": [0.0, 1.0, 0.5],
    }
    return dl.streams.Logged(**given | changes)


@pytest.mark.parametrize(
    "changes, words",
    [
        ({"probabilities": [0.5, 0.0, 1.0]}, "probabilities must lie between 1e-06 and 1"),
        ({"probabilities": [0.5, 1.5, 1.0]}, "row 1 is 1.5"),
        ({"probabilities": [0.5, np.nan, 1.0]}, "row 1 is nan"),
        ({"probabilities": [0.5]}, "of 3 rounds"),
        ({"probabilities": ["a", "b", "c"]}, "must be numbers"),
        ({"losses": [0.0, -1.0, 0.5]}, "losses must lie between 0 and 1"),
        ({"losses": [0.0, 2.0, 0.5]}, "row 1 is 2"),
        ({"actions": [0, 1]}, "3 inputs but 2 actions"),
        ({"actions": [0, -1, 1]}, "outside"),
        ({"actions": ["a", "b", "c"]}, "whole numbers"),
        ({"actions": [0, 1, 5], "classes": 3}, "outside 0..2"),
        ({"clip": 0.5}, "clip must be"),
        ({"clip": True}, "clip must be"),
        ({"inputs": 5}, "a row each round"),
        ({"inputs": np.zeros((0, 2))}, "no rounds were logged"),
    ],
)
def test_what_cannot_have_been_logged_is_refused(changes, words):
    assert made().task.classes == 3
    with pytest.raises(dl.InputError, match=words):
        made(**changes)


def test_an_estimate_is_for_a_run_on_these_rounds():
    with pytest.raises(dl.InputError, match="3000 were logged"):
        logged().estimate(learner().run(STREAM.inputs[:10], LABELS[:10]))


def test_an_estimate_is_for_a_run_with_the_weights_of_these_rounds_and_all_labels():
    rounds = logged()
    with pytest.raises(dl.InputError, match="other sample weights"):
        rounds.estimate(learner().run(rounds.inputs, rounds.labels))
    with pytest.raises(dl.InputError, match="labels of 7 rounds have not come"):
        rounds.estimate(learner().run(rounds, delay=7))


def test_no_answer_costs_what_it_costs_whatever_was_logged():
    """Also where several actions are good, or none is."""
    losses = RNG.random(60)
    actions, chances = RNG.integers(4, size=60), RNG.random(60) * 0.5 + 0.1
    loss = dl.losses.Logistic(TASK)
    doubtful = dl.OGD(loss, dl.decoders.Abstain(loss, cost=0.2))
    nothing = dl.streams.Logged(np.zeros((60, 2)), actions, chances, losses, classes=4)
    estimate = nothing.estimate(doubtful.run(nothing))
    assert estimate.loss == pytest.approx(0.2) and estimate.error == pytest.approx(0.0)
    rows = dl.streams.Logged(RNG.normal(size=(60, 2)), actions, chances, losses, classes=4)
    task = dl.tasks.Abstaining(TASK, 0.2)
    for made in (dl.auto(task, effort="fast"), dl.members.NaiveBayes(task)):
        trace = made.run(rows)
        none, hit = trace.prediction < 0, trace.prediction == actions
        assert none.any()
        gains = np.where(none, 0.8, rows.sample_weight * hit)
        assert rows.estimate(trace).loss == pytest.approx(1.0 - gains.mean())
