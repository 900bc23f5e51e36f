"""The methods of the paper's experiment: its three rates, the library's own, plain SGD."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from driftline.decoders import Argmax, Decoder, GapOptimal, StepOptimal, UniformMix
from driftline.domains import Ball, Domain, Unbounded
from driftline.learner import OGD
from driftline.losses import Logistic, Loss, Scaled, SmoothHinge
from driftline.rates import AdaGrad, Constant, Polyak, Rate
from driftline.tasks import Task

__all__ = ["CLASSIFIERS", "DOMAIN", "GROUPS", "Method"]

#: The groups in the order of the tables, with their headings.
GROUPS = {
    "paper": "as in the paper: base-2 logistic loss, uniform mix, a ball of diameter 20",
    "library": "what the library recommends, in the same ball",
    "sgd": "constant-step SGD on the logistic loss with argmax; no guarantee",
}

DOMAIN = Ball(20.0)


@dataclass(frozen=True)
class Method:
    """A name, and how to make the learner for a task."""

    name: str
    group: str
    make: Callable[[Task], OGD]


def _paper(rate: Callable[[int], Rate]) -> Callable[[Task], OGD]:
    def make(task: Any) -> OGD:
        loss = Logistic(task, base=2.0)
        return OGD(loss, UniformMix(loss), rate(task.classes), DOMAIN)

    return make


def _random(decoder: Callable[[Loss], Decoder]) -> Callable[[Task], OGD]:
    def make(task: Task) -> OGD:
        loss = Logistic(task, base=2.0)
        return OGD(loss, decoder(loss), Polyak(), DOMAIN)

    return make


def _certain(surrogate: Callable[[Task], Loss], factor: float, rate: Rate) -> Callable[[Task], OGD]:
    def make(task: Task) -> OGD:
        loss = Scaled(surrogate(task), factor)
        return OGD(loss, Argmax(loss), rate, DOMAIN)

    return make


def _sgd(step: float, domain: Domain) -> Callable[[Task], OGD]:
    def make(task: Task) -> OGD:
        loss = Logistic(task, base=math.e)
        return OGD(loss, Argmax(loss), Constant(step), domain)

    return make


CLASSIFIERS = (
    Method("Constant", "paper", _paper(lambda classes: Constant(math.log(2.0) / classes))),
    Method("AdaGrad", "paper", _paper(lambda classes: AdaGrad())),
    Method("Polyak", "paper", _paper(lambda classes: Polyak())),
    Method("Polyak, gap-optimal", "library", _random(GapOptimal)),
    Method("Polyak, step-optimal", "library", _random(StepOptimal)),
    Method("Polyak, argmax, c = 2", "library", _certain(Logistic, 2.0, Polyak())),
    Method(
        "free Polyak, hinge, c = 4",
        "library",
        _certain(SmoothHinge, 4.0, Polyak(monotone=False)),
    ),
    *(
        Method(f"SGD, step {step:g}", "sgd", _sgd(step, Unbounded()))
        for step in (0.1, 0.3, 1.0, 3.0, 10.0)
    ),
    *(Method(f"SGD, step {step:g}, in the ball", "sgd", _sgd(step, DOMAIN)) for step in (1.0, 3.0)),
)
