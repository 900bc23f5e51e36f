"""Public checks: our own parts pass, and wrong ones are named."""

import dataclasses
import itertools

import numpy as np
import pytest
from howmany import number

import driftline as dl
from driftline import checks
from driftline.checks import BrokenLawError
from driftline.kernels import LOSS, kernel
from driftline.losses.base import LossKernels

R, T = dl.rates, dl.tasks
COST = np.array([[0.0, 1.0, 2.0], [1.0, 0.0, 1.0], [0.5, 1.0, 0.0]])
TASKS = [
    *(T.Multiclass(4), T.Binary(), T.Multilabel(3), T.FixedSize(4, 2), T.Ordinal(4)),
    *(T.LabelRanking(3), T.Matching(3), T.CostSensitive(COST), T.FScore(2)),
]


def labels_of(task):
    """All labels of a small task, None where it names them itself."""
    orders = [list(order) for order in itertools.permutations(range(3))]
    tags = [list(bits) for bits in itertools.product([0, 1], repeat=getattr(task, "tags", 0))]
    return {
        "Multilabel": tags,
        "FScore": tags,
        "FixedSize": [bits for bits in tags if sum(bits) == 2],
        "LabelRanking": orders,
        "Matching": orders,
    }.get(type(task).__name__)


@pytest.mark.parametrize("task", TASKS, ids=repr)
def test_our_tasks_pass(task):
    predictions = [0, 1, 2] if isinstance(task, T.CostSensitive) else None
    checks.check_task(task, labels_of(task), predictions, trials=number(8, 20))


@pytest.mark.parametrize(
    "loss",
    [
        dl.losses.Logistic(T.Multiclass(3)),
        dl.losses.SmoothHinge(T.Multiclass(3)),
        dl.losses.Scaled(dl.losses.Logistic(T.Binary()), 2.0),
        dl.losses.Hinge(T.Multiclass(3), kappa=0.5),
        dl.losses.ConvolutionalFenchelYoung(T.Multilabel(3)),
        dl.losses.SparseMAP(T.Matching(3)),
    ],
    ids=repr,
)
def test_our_losses_pass(loss):
    checks.check_loss(loss, labels_of(loss.task), trials=12)


@pytest.mark.parametrize(
    "decoder",
    [
        dl.decoders.GapOptimal(dl.losses.Logistic(T.Multiclass(3))),
        dl.decoders.StepOptimal(dl.losses.Logistic(T.Multiclass(3))),
        dl.decoders.Lazy(dl.losses.Logistic(T.Multiclass(3))),
        dl.decoders.UniformMix(dl.losses.SmoothHinge(T.Multiclass(3))),
        dl.decoders.Argmax(dl.losses.Scaled(dl.losses.Logistic(T.Multilabel(3)), 2.0)),
        dl.decoders.Convolutional(dl.losses.ConvolutionalFenchelYoung(T.Ordinal(3))),
    ],
    ids=lambda decoder: type(decoder).__name__,
)
def test_our_decoders_pass(decoder):
    checks.check_decoder(decoder, labels_of(decoder.loss.task), trials=12)


def test_our_rates_and_detectors_pass():
    rates = (R.Constant(), R.AdaGrad(), R.Polyak(), R.Decaying(), R.Relative())
    for rate in rates:
        checks.check_rate(rate)
    checks.check_rate(dl.rates.Polyak(monotone=False, cap=3.0))
    checks.check_detector(dl.detectors.Cusum(0.5))


class Wrong(T.Multiclass):
    """Loses its decomposition."""

    def loss(self, prediction, label):
        return 0.5 * super().loss(prediction, label)


def test_a_wrong_task_is_named():
    with pytest.raises(BrokenLawError, match="the loss is <encode"):
        checks.check_task(Wrong(3))


def wrong_loss(**claims):
    """Return a class of logistic losses that claim or do something wrong."""
    return type("Wrong", (dl.losses.Logistic,), claims)(T.Multiclass(3))


def test_wrong_losses_are_named():
    def steep(self, theta, label):
        value, grad = dl.losses.Logistic.value_and_grad(self, theta, label)
        return value, 2.0 * grad

    def shifted(self, theta, label):
        value, grad = dl.losses.Logistic.value_and_grad(self, theta, label)
        return value - 0.5, grad

    with pytest.raises(BrokenLawError, match="self_bound"):
        checks.check_loss(wrong_loss(self_bound=0.1))
    with pytest.raises(BrokenLawError, match="self_bound|tangents"):
        checks.check_loss(wrong_loss(value_and_grad=steep))
    with pytest.raises(BrokenLawError, match="slope"):
        checks.check_loss(wrong_loss(value_and_grad=steep, convex=False, self_bound=np.inf))
    with pytest.raises(BrokenLawError, match="not negative"):
        checks.check_loss(wrong_loss(value_and_grad=shifted, self_bound=np.inf))


def test_wrong_decoders_are_named():
    def make(**claims):
        kind = type("Wrong", (dl.decoders.GapOptimal,), claims)
        return kind(dl.losses.Logistic(T.Multiclass(3)))

    with pytest.raises(BrokenLawError, match="surrogate_gap"):
        checks.check_decoder(make(surrogate_gap=0.9))
    with pytest.raises(BrokenLawError, match="rate_floor"):
        checks.check_decoder(make(surrogate_gap=0.0, rate_floor=3.0))
    with pytest.raises(BrokenLawError, match="one prediction"):
        checks.check_decoder(make(deterministic=True))


@dataclasses.dataclass(frozen=True)
class Forgetful(dl.rates.Rate):
    """Keeps its count outside its memory."""

    seen: list = dataclasses.field(default_factory=list)

    def next(self, loss, risk, grad_sq, input_sq, previous, setting, memory):
        self.seen.append(1)
        return 1.0 / len(self.seen)


def test_a_rate_that_remembers_elsewhere_is_named():
    with pytest.raises(BrokenLawError, match="in its memory"):
        checks.check_rate(Forgetful())


@kernel(LOSS)
def unscaled(theta, target, params, work, grad):
    for k in range(theta.size):
        grad[k] = theta[k] - target[k]
    return params[0] * 0.5 * (grad @ grad)


def test_a_kernel_that_forgets_its_factor_is_named():
    class Square(dl.losses.Loss):
        task = T.Multiclass(3)
        kernels = LossKernels(unscaled)
        self_bound = 1.0

    with pytest.raises(BrokenLawError, match="factor of the whole loss"):
        checks.check_loss(Square())


@pytest.mark.parametrize(
    "claim, words",
    [
        (dl.rates.StepRange(norm=1.0), "admissible up to"),
        (dl.rates.StepRange(floor=0.5), "between least and most"),
        (dl.rates.StepRange(most=0.5), "between least and most"),
        (dl.rates.StepRange(monotone=True), "never grow"),
    ],
)
def test_a_rate_whose_steps_are_not_what_it_says_is_named(claim, words):
    @dataclasses.dataclass(frozen=True)
    class Boastful(dl.rates.Rate):
        def next(self, loss, risk, grad_sq, input_sq, previous, setting, memory):
            return 0.1 if previous == 1.0 else 1.0

        def step_range(self, setting, memory=None):
            return claim

    with pytest.raises(BrokenLawError, match=words):
        checks.check_rate(Boastful())


def test_labels_must_come_from_somewhere():
    with pytest.raises(dl.InputError, match="does not name its labels"):
        checks.check_task(T.NDCG(2))
    documents = [[0, 1, 2], [2, 2, 0]]
    checks.check_task(T.NDCG(2), documents, [[0, 1, 2], [2, 0, 1], [1, 2, 0]], trials=5)


class Biased(T.Multiclass):
    """Draws the first class whatever the mean is."""

    def draw(self, mean, uniforms):
        return 0


def test_wrong_draws_are_named():
    with pytest.raises(BrokenLawError, match="draws have the mean"):
        checks.check_task(Biased(3))


def test_claims_that_are_no_numbers_are_named():
    def decoder(**claims):
        kind = type("Wrong", (dl.decoders.GapOptimal,), claims)
        return kind(dl.losses.Logistic(T.Multiclass(3)))

    with pytest.raises(BrokenLawError, match="self_bound"):
        checks.check_loss(wrong_loss(self_bound=np.nan))
    with pytest.raises(BrokenLawError, match="surrogate_gap"):
        checks.check_decoder(decoder(surrogate_gap=np.nan, rate_floor=0.5))
    with pytest.raises(BrokenLawError, match="rate_floor"):
        checks.check_decoder(decoder(rate_floor=np.nan))
