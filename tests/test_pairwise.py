"""Sorting by score never costs more than the weighted pairwise loss."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import driftline as dl
from driftline.parts import from_config

T = dl.tasks
TASKS = [
    T.NDCG(3),
    T.NDCG(3, cutoff=2),
    T.NDCG(2, lowest=1),
    T.NDCG(3, gain="exponential", discount="reciprocal"),
    T.NDCG(2, discount=(1.0, 0.9, 0.2)),
    T.PrecisionAtK(1),
    T.PrecisionAtK(3),
]
every_task = pytest.mark.parametrize("task", TASKS, ids=range(len(TASKS)))


def label(task, generator, size):
    return generator.integers(task.lowest, task.highest + 1, size)


@every_task
@given(seed=st.integers(0, 10**6))
def test_the_target_loss_of_sorting_is_below_the_loss(task, seed):
    loss = dl.losses.PairwiseLogistic(task, most=8)
    decoder, generator = dl.decoders.Argmax(loss), np.random.default_rng(seed)
    size = int(generator.integers(1, 9))
    grades = label(task, generator, size)
    theta = generator.standard_normal(size) * generator.choice([0.0, 1e-9, 0.1, 1.0, 30.0])
    if seed % 3 == 0:
        theta = np.round(theta)
    value, grad = loss.value_and_grad(theta, grades)
    cost = (
        0.0 if task.geometry.idle(grades) else task.loss(decoder.draw(theta, np.zeros(1)), grades)
    )
    assert decoder.risk(theta, grades) == pytest.approx(cost, abs=1e-12)
    assert cost <= value + 1e-12
    assert grad @ grad <= 2 * loss.self_bound * value * (1 + 1e-9) + 1e-18
    direction, h = generator.standard_normal(size), 1e-5
    above, below = (loss.value_and_grad(theta + s * direction, grades)[0] for s in (h, -h))
    assert (above - below) / (2 * h) == pytest.approx(grad @ direction, abs=1e-6)
    assert above + below >= 2 * value - 1e-9
    shifted, _ = loss.value_and_grad(theta + 3.0, grades)
    assert shifted == pytest.approx(value, abs=1e-9)


@every_task
def test_it_holds_for_every_order_at_ties(task):
    """At equal scores any order may come out, and the worst one must be covered."""
    loss = dl.losses.PairwiseLogistic(task, most=4)
    for grades in itertools.product(range(task.lowest, task.highest + 1), repeat=4):
        grades = np.array(grades)
        if task.geometry.idle(grades):
            continue
        value, _ = loss.value_and_grad(np.zeros(4), grades)
        costs = []
        for order in itertools.permutations(range(4)):
            scores = -np.array(order, dtype=float)
            costs.append(task.loss(task.top_prediction(scores), grades))
        assert max(costs) <= value + 1e-12


@pytest.mark.parametrize("monotone", [True, False])
def test_runs_stay_within_the_theorem(monotone):
    stream = dl.streams.PlantedRankings(T.NDCG(3), rounds=300, flips=2, documents=(2, 8), seed=0)
    loss = dl.losses.Scaled(dl.losses.PairwiseLogistic(stream.task, most=8), 2.0)
    rate = dl.rates.Polyak(monotone=monotone, cap=np.inf if monotone else 30.0)
    learner = dl.OGD(loss, dl.decoders.Argmax(loss), rate, dl.domains.Ball(60.0))
    assert learner.decoder.surrogate_gap == 0.5
    trace = learner.run(stream)
    assert trace.admissible.all()
    certificate = dl.certify(trace, stream.comparator.scaled(20.0), stream)
    assert certificate.valid and certificate.worst_case > certificate.expected
    assert (
        trace.risk[200:].mean() < 0.5 * dl.certify(trace, stream.comparator, stream).trivial / 300
    )


def test_the_default_decoder_sorts_with_a_guarantee():
    learner = dl.OGD(dl.losses.PairwiseLogistic(T.PrecisionAtK(2)))
    assert isinstance(learner.decoder, dl.decoders.Argmax)
    assert learner.decoder.surrogate_gap == 0.5 and "theorem 1" in learner.describe()


def test_bad_input_is_named():
    for make, words in (
        (lambda: dl.losses.PairwiseLogistic(T.Multiclass(3)), "takes NDCG or PrecisionAtK"),
        (lambda: dl.losses.PairwiseLogistic(T.NDCG(2), most=1), "2 documents or more"),
        (
            lambda: dl.losses.PairwiseLogistic(T.NDCG(2)).value_and_grad([1.0], [1, 0]),
            "do not fit",
        ),
        (
            lambda: dl.losses.PairwiseLogistic(T.NDCG(2), most=2).value_and_grad(
                [1.0, 2.0, 3.0], [1, 0, 2]
            ),
            "give PairwiseLogistic a larger",
        ),
    ):
        with pytest.raises(dl.InputError, match=words):
            make()


def test_a_choice_of_all_documents_leaves_nothing_to_learn():
    with pytest.raises(dl.InputError, match="nothing to learn"):
        dl.losses.PairwiseLogistic(dl.tasks.PrecisionAtK(100))
    committee = dl.auto(dl.tasks.PrecisionAtK(1000), effort="fast")
    random = np.random.default_rng(0)
    queries = [random.standard_normal((size, 3)) for size in (5, 1000, 1500)]
    labels = [(q[:, 0] > 0).astype(int) for q in queries]
    assert committee.run(queries, labels).target_loss[:2].tolist() == [0.0, 0.0]


def test_no_file_can_claim_a_better_ratio():
    config = dl.losses.PairwiseLogistic(dl.tasks.NDCG(2)).config()
    assert from_config(config).config() == config
    with pytest.raises(dl.InputError, match="argmax_ratio of PairwiseLogistic is 1, not 0.1"):
        from_config(config | {"argmax_ratio": 0.1})
