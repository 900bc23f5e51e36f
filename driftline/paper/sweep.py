r"""The trade-off in the scale of a regularizer: larger steps, larger loss of the comparator.

A convolutional loss at scale :math:`\lambda` has the bound

.. math:: \sum_t \mathbb E \ell_t \le F_T + \frac{D}{\lambda_x} \Big(\frac D2 + P_T\Big),

with :math:`F_T` and :math:`P_T` the comparator's surrogate loss and path length, and
:math:`\lambda_x` the rate floor over the largest squared norm of an input. The second term falls
with the scale, the first one grows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from driftline.decoders import Convolutional
from driftline.domains import Ball
from driftline.errors import InputError
from driftline.learner import OGD
from driftline.losses import ConvolutionalFenchelYoung
from driftline.paper import sources
from driftline.paper.experiment import Maker
from driftline.rates import Polyak
from driftline.regularizers import Entropy, Quadratic, Regularizer
from driftline.streams import Stream
from driftline.tasks import NDCG, Multiclass, Multilabel, PrecisionAtK

__all__ = ["SCALES", "SWEEPS", "Point", "SweepSettings", "sweep"]

SCALES = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)

#: Norms of the comparator that are tried, as shares of the ball's radius.
SHARES = (0.0, 0.02, 0.035, 0.06, 0.1, 0.17, 0.3, 0.5, 1.0)

#: For every task how to make a stream, and the regularizers to try.
SWEEPS: dict[str, tuple[Maker, tuple[Callable[[float], Regularizer], ...]]] = {
    "ndcg": (sources.relevance(NDCG(4)), (Quadratic,)),
    "precision": (sources.relevance(PrecisionAtK(3)), (Quadratic,)),
    "multiclass": (sources.planted(Multiclass(5)), (Entropy, Quadratic)),
    "multilabel": (sources.planted(Multilabel(10)), (Entropy, Quadratic)),
}


@dataclass(frozen=True)
class SweepSettings:
    """What to run."""

    task: str = "ndcg"
    rounds: int = 5000
    flips: int = 1
    trials: int = 3
    diameter: float = 20.0
    scales: Sequence[float] = SCALES
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse unknown tasks and empty sweeps."""
        if self.task not in SWEEPS:
            raise InputError(f"task must be among {', '.join(SWEEPS)}, but is {self.task!r}")
        if self.trials < 1:
            raise InputError(f"trials must be at least 1, but is {self.trials}")
        if not len(self.scales):
            raise InputError("a sweep needs at least one scale")


class Point(NamedTuple):
    """Totals at one scale, means over trials.

    The expected target loss of the learner; the comparator's surrogate loss at its best norm;
    the bound at its best norm; and the expected target loss at equal scores.
    """

    regularizer: str
    scale: float
    actual: float
    comparator: float
    bound: float
    guess: float


def sweep(settings: SweepSettings, progress: Callable[[], object] | None = None) -> list[Point]:
    """Play the streams with the Polyak rate at every scale, for every regularizer."""
    maker, regularizers = SWEEPS[settings.task]
    seeds = np.random.SeedSequence((settings.seed, settings.flips)).generate_state(settings.trials)
    streams = [maker(settings.rounds, settings.flips, int(seed)) for seed in seeds]
    points = []
    for kind in regularizers:
        for scale in settings.scales:
            totals = [_totals(settings, stream, kind(scale)) for stream in streams]
            points.append(Point(kind.__name__, scale, *np.mean(totals, axis=0).tolist()))
            if progress is not None:
                progress()
    return points


def _totals(settings: SweepSettings, stream: Stream, regularizer: Regularizer) -> tuple[float, ...]:
    """Return all totals of a point, for one stream."""
    loss = ConvolutionalFenchelYoung(stream.task, regularizer)
    decoder, ball = Convolutional(loss), Ball(settings.diameter)
    trace = OGD(loss, decoder, Polyak(), ball).run(stream, seed=settings.seed)
    assert stream.comparator is not None
    rows, rounds = stream.task.layout.rows(stream.inputs), range(len(stream))
    scores = [rows.scores(stream.comparator.at(t), False, t, False) for t in rounds]
    largest_sq = max(rows.norm_sq(t, False) for t in rounds)
    reach = settings.diameter * largest_sq / decoder.rate_floor
    losses, bounds = [], []
    for share in SHARES:
        norm = share * ball.radius / stream.comparator.largest_norm
        pairs = zip(scores, stream.labels, strict=True)
        total = sum(loss.value_and_grad(norm * theta, label)[0] for theta, label in pairs)
        losses.append(total)
        path = norm * stream.comparator.path_length
        bounds.append(total + reach * (ball.radius + path))
    pairs = zip(scores, stream.labels, strict=True)
    guess = sum(decoder.risk(0.0 * theta, label) for theta, label in pairs)
    return float(trace.risk.sum()), min(losses), min(bounds), guess
