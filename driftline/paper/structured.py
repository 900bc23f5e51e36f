"""The methods of the experiments on structured tasks: one loss and its decoders, four rates."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from driftline.decoders import Argmax, Coordinatewise, Decoder, NearestVertex
from driftline.domains import Ball, Unbounded
from driftline.learner import OGD
from driftline.losses import CRF, Logistic, Loss, Scaled, SparseMAP
from driftline.paper.methods import Method
from driftline.rates import AdaGrad, Constant, Polyak, Rate
from driftline.tasks import Sequence, Task

__all__ = [
    "CHAIN_GROUPS",
    "GROUPS",
    "TAG_GROUPS",
    "chain_methods",
    "multilabel_methods",
    "sparsemap_methods",
]

GROUPS = {
    "random": "the decoder of the first theorem, in a ball of diameter 20 sqrt(scores)",
    "certain": "the best label (MAP) with the loss scaled by twice its kappa or 1.1 times, in the "
    "same ball",
}

TAG_GROUPS = GROUPS | {
    "sgd": "constant-step SGD on the logistic loss of every tag, no tag where the score is below "
    "0; no guarantee",
}


CHAIN_GROUPS = {
    "chain": "best path (Viterbi), CRF loss in base 2 scaled by 2, transitions, a ball of diameter "
    "60",
    "alone": "the same learner without transitions: every position for itself",
}


def chain_methods() -> tuple[Method, ...]:
    """Return the methods for sequences, with and without transitions."""
    rates: dict[str, Rate] = {
        "Constant": Constant(input_norm=12.0),
        "AdaGrad": AdaGrad(),
        "Polyak": Polyak(),
        "free Polyak": Polyak(monotone=False, cap=1.0),
    }
    chain = (Method(name, "chain", _chain(rate, True)) for name, rate in rates.items())
    alone = (Method(f"{n}, alone", "alone", _chain(rate, False)) for n, rate in rates.items())
    return (*chain, *alone)


def _chain(rate: Rate, transitions: bool) -> Callable[[Task], OGD]:
    def make(task: Any) -> OGD:
        loss = Scaled(CRF(Sequence(task.tags, transitions)), 2.0)
        return OGD(loss, Argmax(loss), rate, Ball(60.0))

    return make


def structured_methods(
    loss: Callable[[Task], Loss], decoder: Callable[[Loss], Decoder]
) -> tuple[Method, ...]:
    """Return the methods for a task, from its loss and its random decoder."""
    rates: dict[str, Rate] = {
        "Constant": Constant(),
        "AdaGrad": AdaGrad(),
        "Polyak": Polyak(),
        "free Polyak": Polyak(monotone=False),
    }
    random = (Method(name, "random", _random(loss, decoder, rate)) for name, rate in rates.items())
    certain = (
        Method(f"{name}, MAP", "certain", _certain(loss, rate)) for name, rate in rates.items()
    )
    lean = Method("Polyak, MAP, c = 1.1 kappa", "certain", _certain(loss, Polyak(), 1.1))
    return (*random, *certain, lean)


def _random(
    loss: Callable[[Task], Loss], decoder: Callable[[Loss], Decoder], rate: Rate
) -> Callable[[Task], OGD]:
    def make(task: Task) -> OGD:
        made = loss(task)
        chosen = decoder(made)
        return OGD(made, chosen, _above(rate, chosen), _ball(task))

    return make


def _certain(
    loss: Callable[[Task], Loss], rate: Rate, factor: float = 2.0
) -> Callable[[Task], OGD]:
    def make(task: Task) -> OGD:
        plain = loss(task)
        made = Scaled(plain, factor * Argmax(plain).kappa)
        chosen = Argmax(made)
        return OGD(made, chosen, _above(rate, chosen), _ball(task))

    return make


def _ball(task: Task) -> Ball:
    """Return a ball with as much room for every score as one class has in the paper's ball."""
    return Ball(20.0 * math.sqrt(task.dim))


def _above(rate: Rate, decoder: Decoder) -> Rate:
    """Cap a free rate at ten times the rate floor of its decoder."""
    if isinstance(rate, Polyak) and not rate.monotone:
        return Polyak(monotone=False, cap=10.0 * decoder.rate_floor)
    return rate


def multilabel_methods() -> tuple[Method, ...]:
    """Return the methods for tags: the logistic loss and the coordinatewise decoder."""
    sgd = (Method(f"SGD, step {step:g}", "sgd", _tag_sgd(step)) for step in (0.01, 0.1, 1.0))
    return (*structured_methods(Logistic, Coordinatewise), *sgd)


def _tag_sgd(step: float) -> Callable[[Task], OGD]:
    def make(task: Any) -> OGD:
        loss = Scaled(Logistic(task, base=math.e), task.tags)  # a sum over tags, not a mean
        return OGD(loss, Argmax(loss), Constant(step), Unbounded())

    return make


def sparsemap_methods() -> tuple[Method, ...]:
    """Return the methods for other polytopes: SparseMAP at twice the least scale with a gap."""
    return structured_methods(_sparsemap, NearestVertex)


def _sparsemap(task: Task) -> Loss:
    ratio = SparseMAP(task, 1.0).nearest_vertex_ratio
    assert ratio is not None
    return SparseMAP(task, 2.0 * ratio)
