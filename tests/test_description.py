"""What a learner says of its guarantee is true."""

import re
from dataclasses import dataclass

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
    price = re.search(r"F_T \+ (B\^2 )?\(?([0-9.e+]+) \+ ([0-9.e+]+) P_T", words)
    factor = max(1.0, largest_sq) if price.group(1) else 1.0
    if least := re.search(r"/ min\(([0-9.e-]+) / B\^2, ([0-9.e-]+)\)", words):
        factor = 1.0 / min(float(least.group(1)) / max(1.0, largest_sq), float(least.group(2)))
    return factor * (float(price.group(2)) + float(price.group(3)) * path)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize(
    "rate", [dl.rates.Polyak(), dl.rates.Polyak(cap=0.05), dl.rates.Constant(input_norm=1.5)]
)
def test_the_stated_bound_is_at_least_the_worst_case_of_a_run(intercept, rate):
    stream = dl.streams.LabelFlips(rounds=500, flips=3, seed=1)
    learner = argmax(stream.task, rate=rate, intercept=intercept)
    trace = learner.run(stream)
    comparator = dl.comparators.Fixed(np.zeros(learner.weights.shape))
    made = dl.certify(trace, comparator, stream)
    said = made.comparator_loss + stated(learner, made.path_length, learner.facts.largest_input**2)
    assert trace.risk.sum() <= made.worst_case <= said * (1 + 1e-4)


def test_the_stated_bound_of_sequences_knows_their_length():
    stream = dl.streams.PlantedSequences(rounds=60, tags=3, longest=5, seed=0)
    learner = dl.OGD(L.CRF(stream.task))
    trace = learner.run(stream.inputs, stream.labels)
    comparator = dl.comparators.Fixed(np.zeros(learner.weights.shape))
    made = dl.certify(trace, comparator, stream.inputs, stream.labels)
    largest = max(
        (2 * len(x) - 1) * max(len(x) - 1, float((np.asarray(x) ** 2).sum())) for x in stream.inputs
    )
    assert learner.facts.largest_input**2 == pytest.approx(largest)
    said = made.comparator_loss + stated(learner, 0.0, largest)
    assert made.worst_case == pytest.approx(said, rel=1e-4)


@dataclass(frozen=True)
class OwnPolyak(dl.rates.Rate):
    """Polyak's steps in plain Python, with what is known of them said or not."""

    says: bool = True
    resolution = 0.0

    def memory(self, setting):
        return (np.inf,)

    def next(self, loss, risk, grad_sq, input_sq, previous, setting, memory):
        if loss <= risk:
            return 0.0
        memory[0] = min(memory[0], 2.0 * (loss - risk) / grad_sq)
        return memory[0]

    def step_range(self, setting, memory=None):
        most = np.inf if memory is None else float(memory[0])
        known = dl.rates.StepRange(np.inf, setting.rate_floor, most, monotone=True)
        return known if self.says else super().step_range(setting, memory)


@dataclass(frozen=True)
class Cautious(dl.rates.Rate):
    """Half the least step that is always admissible: none where there is no floor."""

    def memory(self, setting):
        return (1.0,)

    def next(self, loss, risk, grad_sq, input_sq, previous, setting, memory):
        memory[0] = max(memory[0], input_sq)
        return 0.5 * setting.rate_floor / memory[0]

    def step_range(self, setting, memory=None):
        most = 0.5 * setting.rate_floor
        return dl.rates.StepRange(np.inf, most, most, monotone=True)


RATES = {
    "polyak": dl.rates.Polyak(),
    "capped": dl.rates.Polyak(cap=7.0),
    "free": dl.rates.Polyak(monotone=False, cap=7.0),
    "uncapped": dl.rates.Polyak(monotone=False),
    "floor": dl.rates.Constant(),
    "small": dl.rates.Constant(0.01),
    "long": dl.rates.Constant(input_norm=3.0),
    "large": dl.rates.Constant(50.0),
    "adagrad": dl.rates.AdaGrad(),
    "decaying": dl.rates.Decaying(),
    "relative": dl.rates.Relative(),
    "own": OwnPolyak(),
    "silent": OwnPolyak(says=False),
    "cautious": Cautious(),
}

TASK = T.Multiclass(3)
PAIRS = {
    "gap-optimal": D.GapOptimal(L.Logistic(TASK)),
    "argmax": D.Argmax(L.Scaled(L.SmoothHinge(TASK), 2.0)),
    "mix": D.UniformMix(L.SmoothHinge(TASK)),
    "nearest": D.NearestVertex(L.SparseMAP(T.Multiclass(3), 20.0)),
    "convolutional": D.Convolutional(L.ConvolutionalFenchelYoung(TASK)),
    "no gap": D.GapOptimal(L.Logistic(TASK, base=5.0), allow_no_gap=True),
    "hinge": D.Argmax(L.Hinge(TASK)),
    "cut hinge": D.Argmax(L.Scaled(L.Hinge(TASK, kappa=0.5), 2.0)),
}


@pytest.mark.parametrize("norm", [0.2, 2.0])
@pytest.mark.parametrize("decoder", PAIRS.values(), ids=PAIRS)
@pytest.mark.parametrize("rate", RATES.values(), ids=RATES)
def test_a_bound_is_stated_beforehand_if_and_only_if_a_run_has_one(rate, decoder, norm):
    """Where one is stated up to a norm, runs have it up to this norm; else for the same reason."""
    try:
        learner = dl.OGD(decoder.loss, decoder, rate, dl.domains.Ball(4.0))
    except (dl.NoGuaranteeError, dl.InputError):
        pytest.skip("refused before anything is described")
    random = np.random.default_rng(0)
    inputs, labels = random.standard_normal((80, 4)), random.integers(0, 3, 80)
    inputs *= norm / np.linalg.norm(inputs, axis=1, keepdims=True)
    trace = learner.run(inputs, labels)
    made = dl.certify(trace, dl.comparators.Fixed(np.zeros((3, 4))), inputs, labels)
    said, found = bound_of(learner), made.bounds()["worst_case"]
    limit = re.search(r"up to norm ([0-9.e+-]+) of", said)
    stated = "P_T" in said and (limit is None or norm <= float(limit.group(1)) * 1.001)
    assert stated == isinstance(found, float), (said, found)
    if stated:
        assert np.isfinite(found) and made.expected <= found
    elif "P_T" not in said:
        assert re.match(r"none[^:]*: (.*?)(; a run can be certified)?$", said).group(1) in found
    else:
        assert f"admissible up to norm {limit.group(1)}" in found
    assert made.valid, made.findings


def test_a_rate_of_ones_own_is_taken_at_its_word():
    said = [bound_of(argmax(T.Binary(), rate=rate)) for rate in (dl.rates.Polyak(), OwnPolyak())]
    assert said[0] == said[1] and "theorem 1" in said[0]
    assert "may leave the admissible range" in bound_of(argmax(T.Binary(), rate=OwnPolyak(False)))


def test_a_rate_of_ones_own_is_held_to_its_word():
    @dataclass(frozen=True)
    class Doubled(OwnPolyak):
        def next(self, *round):
            return 2.0 * super().next(*round)

    stream = dl.streams.LabelFlips(rounds=200, flips=1, seed=0)
    for rate, words in ((Doubled(), "above the admissible range"), (Doubled(False), "")):
        trace = argmax(stream.task, rate=rate).run(stream)
        found = dl.certify(trace, stream.comparator, stream).findings
        assert words in " ".join(found) and bool(found) == bool(words)


def test_a_free_rate_without_a_cap_has_no_bound_beforehand():
    loss = L.SmoothHinge(T.Binary())
    free = dl.OGD(loss, D.GapOptimal(loss), dl.rates.Polyak(monotone=False))
    assert bound_of(free).startswith("none beforehand: steps of Polyak(monotone=False")
