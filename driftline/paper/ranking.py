"""The methods of the experiments on relevance: convolutional losses, and the usual ones."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from driftline.decoders import Argmax, Convolutional, Decoder
from driftline.domains import Ball, Unbounded
from driftline.learner import OGD
from driftline.losses import ConvolutionalFenchelYoung, Loss, PairwiseLogistic, Scaled
from driftline.paper.methods import Method
from driftline.paper.orders import RandomOrder
from driftline.paper.ranking_losses import PointwiseSquares, RankNet
from driftline.rates import AdaGrad, Constant, Polyak, Rate
from driftline.regularizers import Quadratic

__all__ = ["DIAMETER", "GROUPS", "SCALE", "ranking_methods"]

#: The scale of the quadratic and the diameter of the ball: see ``driftline scales``.
SCALE, DIAMETER = 10.0, 60.0

GROUPS = {
    "convolutional": f"convolutional loss of the quadratic at scale {SCALE:g} with its random "
    f"decoder and an intercept, in a ball of diameter {DIAMETER:g}",
    "pairwise": "pairwise logistic loss weighed by what a swap may cost, scaled by 2, documents "
    "sorted by score: certain, with a guarantee; a ball of diameter 200",
    "sorted": "the convolutional loss in its ball, documents sorted by score; no guarantee",
    "baselines": "usual losses with constant steps or AdaGrad, documents sorted by score; no "
    "guarantee",
}


def ranking_methods(longest: int) -> tuple[Method, ...]:
    """Return the methods for queries of at most ``longest`` documents of norm 1 at most."""
    floor = Constant(input_norm=math.sqrt(2.0 * longest))  # an intercept doubles the square
    free, quick = Polyak(monotone=False, cap=SCALE), Polyak(monotone=False, cap=30.0)
    return (
        Method("Constant", "convolutional", _convolutional(floor)),
        Method("AdaGrad", "convolutional", _convolutional(AdaGrad())),
        Method("Polyak", "convolutional", _convolutional(Polyak())),
        Method("free Polyak", "convolutional", _convolutional(free)),
        Method("Polyak, no intercept", "convolutional", _convolutional(Polyak(), intercept=False)),
        Method("Polyak, whole space", "convolutional", _convolutional(Polyak(), whole_space=True)),
        Method("AdaGrad, pairwise", "pairwise", _pairwise(AdaGrad(), longest)),
        Method("Polyak, pairwise", "pairwise", _pairwise(Polyak(), longest)),
        Method("free Polyak, pairwise", "pairwise", _pairwise(quick, longest)),
        Method("AdaGrad, sorted", "sorted", _convolutional(AdaGrad(), Argmax)),
        *(
            Method(f"step {step:g}, sorted", "sorted", _convolutional(Constant(step), Argmax))
            for step in (1.0, 3.0, 10.0)
        ),
        *(
            Method(f"squares, step {step:g}", "baselines", _usual(PointwiseSquares, step))
            for step in (0.1, 0.3, 1.0)
        ),
        *(
            Method(f"pairs, step {step:g}", "baselines", _usual(RankNet, step))
            for step in (1.0, 3.0, 10.0, 30.0, 100.0)
        ),
        Method("pairs, AdaGrad", "baselines", _pairs_adagrad),
        Method("any order", "baselines", _any_order),
    )


def _convolutional(
    rate: Rate,
    decoder: Callable[[Loss], Decoder] = Convolutional,
    whole_space: bool = False,
    intercept: bool = True,
) -> Callable[[Any], OGD]:
    def make(task: Any) -> OGD:
        loss = ConvolutionalFenchelYoung(task, Quadratic(SCALE), whole_space)
        return OGD(loss, decoder(loss), rate, Ball(DIAMETER), intercept=intercept)

    return make


def _pairwise(rate: Rate, longest: int) -> Callable[[Any], OGD]:
    def make(task: Any) -> OGD:
        loss = Scaled(PairwiseLogistic(task, most=longest), 2.0)
        return OGD(loss, Argmax(loss), rate, Ball(200.0))

    return make


def _usual(kind: Callable[[Any], Loss], step: float) -> Callable[[Any], OGD]:
    def make(task: Any) -> OGD:
        loss = kind(task)
        return OGD(loss, Argmax(loss), Constant(step), Unbounded(), intercept=True)

    return make


def _pairs_adagrad(task: Any) -> OGD:
    loss = RankNet(task)
    return OGD(loss, Argmax(loss), AdaGrad(), Ball(DIAMETER), intercept=True)


def _any_order(task: Any) -> OGD:
    loss = RankNet(task)
    return OGD(loss, RandomOrder(loss), Constant(1.0), Unbounded())
