"""What a learner says of its guarantee is true."""

import re

import numpy as np
import pytest

import driftline as dl
from driftline.detectors import Cusum

L, T, D = dl.losses, dl.tasks, dl.decoders


def argmax(task, **options):
    loss = L.Scaled(L.Logistic(task), 2.0)
    return dl.OGD(loss, D.Argmax(loss), **options)


def bound_of(learner):
    return re.search(r"^bound +(.*)$", learner.describe(), re.M).group(1)


def test_a_learner_that_starts_again_promises_nothing_beforehand():
    """Unit vectors of one label: nothing is lost by weights that never change, and much is paid."""
    random = np.random.default_rng(0)
    inputs = random.standard_normal((30_000, 200))
    inputs /= np.linalg.norm(inputs, axis=1, keepdims=True)
    labels = np.ones(len(inputs), dtype=np.int64)
    learner = argmax(T.Binary(), restart=Cusum(threshold=0.01, more=0.01, factor=1.0, patience=1))
    trace = learner.run(inputs, labels)
    promised = 20.0**2 / (2.0 * learner.decoder.rate_floor)
    assert trace.restarted.sum() > 100 and trace.target_loss.sum() > promised
    assert bound_of(learner).startswith("none beforehand: the learner starts again")
    assert "theorem" in bound_of(argmax(T.Binary()))


@pytest.mark.parametrize(
    "learner, words",
    [
        (argmax(T.Binary()), "for inputs up to norm 1"),
        (argmax(T.Binary(), intercept=True), "B >= 1 the largest norm of an input with"),
        (dl.OGD(L.CRF(T.Sequence(3))), "the largest norm of a sequence, whose square is (2n - 1)"),
        (dl.OGD(L.ConvolutionalFenchelYoung(T.NDCG(2))), "norm of all documents of a query"),
        (argmax(T.Binary(), rate=dl.rates.Constant()), "up to norm 1 of an input"),
        (argmax(T.Binary(), rate=dl.rates.Constant(input_norm=3.0)), "up to norm 3 of an input"),
    ],
)
def test_the_norm_of_the_bound_is_one_that_inputs_can_have(learner, words):
    assert words in bound_of(learner)


def stated(learner, path, largest_sq):
    """Return the number that a learner's words come to."""
    words = bound_of(learner)
    price = re.search(r"F_T \+ (B\^2 \()?([0-9.e+]+) \+ ([0-9.e+]+) P_T", words)
    factor = max(1.0, largest_sq) if price.group(1) else 1.0
    return factor * (float(price.group(2)) + float(price.group(3)) * path)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("rate", [dl.rates.Polyak(), dl.rates.Constant(input_norm=1.5)])
def test_the_stated_bound_is_at_least_the_worst_case_of_a_run(intercept, rate):
    stream = dl.streams.LabelFlips(rounds=500, flips=3, seed=1)
    learner = argmax(stream.task, rate=rate, intercept=intercept)
    trace = learner.run(stream)
    comparator = dl.comparators.Fixed(np.zeros(learner.weights.shape))
    made = dl.certify(trace, comparator, stream)
    said = made.comparator_loss + stated(learner, made.path_length, learner.largest_input**2)
    assert trace.risk.sum() <= made.worst_case <= said * (1 + 1e-4)


def test_the_stated_bound_of_sequences_knows_their_length():
    stream = dl.streams.PlantedSequences(rounds=60, tags=3, longest=5, seed=0)
    learner = dl.OGD(L.CRF(stream.task))
    trace = learner.run(stream.inputs, stream.labels)
    comparator = dl.comparators.Fixed(np.zeros(learner.weights.shape))
    made = dl.certify(trace, comparator, stream.inputs, stream.labels)
    largest = max(
        (2 * len(x) - 1) * max(len(x) - 1, float((np.asarray(x) ** 2).sum(axis=1).max()))
        for x in stream.inputs
    )
    assert learner.largest_input**2 == pytest.approx(largest)
    said = made.comparator_loss + stated(learner, 0.0, largest)
    assert made.worst_case == pytest.approx(said, rel=1e-4)
