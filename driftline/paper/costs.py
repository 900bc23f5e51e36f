"""The methods of the experiment on costs: convolutional losses, and logistic SGD."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from driftline.decoders import Convolutional
from driftline.domains import Ball, Unbounded
from driftline.learner import OGD
from driftline.losses import ConvolutionalFenchelYoung, FenchelYoung
from driftline.paper.least_cost import LeastCost
from driftline.paper.methods import Method
from driftline.rates import AdaGrad, Constant, Polyak, Rate
from driftline.regularizers import Entropy, Quadratic, Regularizer
from driftline.tasks import CostSensitive, Task

__all__ = ["COSTS", "GROUPS", "NOT_SURE", "cost_methods"]

LABELS, NOT_SURE = 5, 0.25

GROUPS = {
    "entropy": "convolutional loss of the entropy at scale 0.3 with its random decoder, in a ball "
    "of diameter 60",
    "quadratic": "convolutional loss of the quadratic at scale 1, likewise",
    "baselines": "constant-step SGD on the logistic loss, with the prediction of least expected "
    "cost or the most probable label; no guarantee",
}


def _costs() -> np.ndarray:
    """Return random costs of mistakes, with a last prediction of moderate cost for all labels."""
    costs = np.random.default_rng(0).uniform(NOT_SURE, 1.0, (LABELS, LABELS + 1))
    np.fill_diagonal(costs, 0.0)
    costs[:, -1] = NOT_SURE
    return costs


COSTS = CostSensitive(_costs().tolist())


def cost_methods() -> tuple[Method, ...]:
    """Return the methods for a cost matrix."""
    made = []
    for group, regularizer in (("entropy", Entropy(0.3)), ("quadratic", Quadratic(1.0))):
        more = "" if group == "entropy" else f", {group}"
        rates = {
            "Constant": Constant(),
            "AdaGrad": AdaGrad(),
            "Polyak": Polyak(),
            "free Polyak": Polyak(monotone=False, cap=10.0 * regularizer.scale),
        }
        for name, rate in rates.items():
            made.append(Method(f"{name}{more}", group, _convolutional(regularizer, rate)))
    for name, sure in (("least cost", False), ("most probable", True)):
        for step in (0.1, 0.3, 1.0, 3.0, 10.0):
            made.append(Method(f"{name}, step {step:g}", "baselines", _logistic(step, sure)))
    return tuple(made)


def _convolutional(regularizer: Regularizer, rate: Rate) -> Callable[[Task], OGD]:
    def make(task: Task) -> OGD:
        loss = ConvolutionalFenchelYoung(task, regularizer)
        return OGD(loss, Convolutional(loss), rate, Ball(60.0))

    return make


def _logistic(step: float, sure: bool) -> Callable[[Task], OGD]:
    def make(task: Task) -> OGD:
        loss = FenchelYoung(task, Entropy())
        return OGD(loss, LeastCost(loss, sure), Constant(step), Unbounded())

    return make
