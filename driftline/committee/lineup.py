"""A learner that needs nothing but the task."""

from __future__ import annotations

from typing import Any

import numpy as np

from driftline.committee.committee import Committee
from driftline.decoders import Argmax
from driftline.detectors import Cusum, Detector
from driftline.domains import Ball
from driftline.errors import InputError
from driftline.learner import OGD
from driftline.losses import (
    CRF,
    ConvolutionalFenchelYoung,
    Logistic,
    Loss,
    PairwiseLogistic,
    Scaled,
)
from driftline.models import Standardiser
from driftline.rates import AdaGrad, Constant, Decaying, Polyak, Rate
from driftline.tasks import Binary, Multiclass, Multilabel, RelevanceTask, Sequence, Task

__all__ = ["auto"]


def auto(
    task: Task, *, scaling: bool = True, seed: int | None = 0, dtype: Any = np.float64
) -> Committee:
    """Return a committee for a task, with nothing to set.

    Its members differ in rate, diameter and whether they start again when they err more often than
    before, for no setting is best on every stream: small steps bear noise, large ones follow
    changes, and who starts again can afford steps that decay.
    With ``scaling`` inputs are standardised as they come. ``dtype`` is that of the weights:
    ``float32`` is faster where rows are wide, see :class:`~driftline.OGD`.

    >>> from driftline.streams import LabelFlips
    >>> stream = LabelFlips(rounds=5000, flips=5, seed=0)
    >>> bool(auto(stream.task).run(stream).target_loss.mean() < 0.03)
    True
    """
    scaler = Standardiser(dtype=dtype) if scaling and not task.ragged else None
    lineup = _any
    if isinstance(task, (Multiclass, Binary)):
        lineup = _classes
    elif isinstance(task, Multilabel):
        lineup = _tags
    elif isinstance(task, RelevanceTask):
        lineup = _relevance
    elif isinstance(task, Sequence):
        lineup = _sequences
    rest = {"intercept": scaler is None, "dtype": dtype}
    return Committee(lineup(task, rest), scaling=scaler, seed=seed)


def _certain(
    loss: Loss,
    factor: float,
    rate: Rate,
    diameter: float,
    rest: dict[str, Any],
    restart: Detector | None = None,
) -> OGD:
    made = Scaled(loss, factor)
    return OGD(made, Argmax(made), rate, Ball(diameter), restart=restart, **rest)


def _classes(task: Any, rest: dict[str, Any]) -> list[OGD]:
    """Return members that start again at a change, and others that follow it.

    Steps that decay come close to an average: the larger ones for labels without noise, the
    smaller ones for noisy labels. Those that do not decay learn many features fast. Free rates
    follow frequent changes, in a small ball and in a large one, and the monotone one slow ones.
    """
    logistic, change = Logistic(task), Cusum()
    settings: tuple[tuple[Rate, float, Detector | None], ...] = (
        (Decaying(5.0), 200.0, change),
        (Decaying(1.0), 200.0, change),
        (Constant(1.0), 200.0, change),
        (Polyak(monotone=False, cap=10.0), 200.0, None),
        (Polyak(monotone=False, cap=3.0), 20.0, None),
        (Polyak(), 200.0, None),
    )
    return [
        _certain(logistic, 2.0, rate, diameter, rest, restart)
        for rate, diameter, restart in settings
    ]


def _tags(task: Any, rest: dict[str, Any]) -> list[OGD]:
    loss = Logistic(task)
    side = task.labels**0.5
    return [
        _certain(loss, factor, rate, diameter * side, rest)
        for factor, rate in ((2.0, Polyak()), (1.1, Polyak()), (2.0, AdaGrad()))
        for diameter in (20.0, 200.0)
    ]


def _relevance(task: Any, rest: dict[str, Any]) -> list[OGD]:
    """Return members that sort by score; an intercept would change nothing."""
    loss = PairwiseLogistic(task, most=1000)
    settings: tuple[tuple[Rate, float], ...] = (
        (Polyak(), 60.0),
        (Polyak(monotone=False, cap=30.0), 200.0),
        (AdaGrad(), 60.0),
        (AdaGrad(), 200.0),
    )
    rest = rest | {"intercept": False}
    return [_certain(loss, 2.0, rate, diameter, rest) for rate, diameter in settings]


def _sequences(task: Any, rest: dict[str, Any]) -> list[OGD]:
    """Return members that take the best path."""
    settings: tuple[tuple[Rate, float], ...] = (
        (Polyak(), 60.0),
        (Polyak(monotone=False, cap=1.0), 60.0),
        (AdaGrad(), 60.0),
        (AdaGrad(), 200.0),
    )
    return [_certain(CRF(task), 2.0, rate, diameter, rest) for rate, diameter in settings]


def _any(task: Any, rest: dict[str, Any]) -> list[OGD]:
    """Return members by the convolutional loss, which every task has."""
    try:
        loss = ConvolutionalFenchelYoung(task)
    except InputError as error:
        raise InputError(f"no committee is known for {task!r}: {error}") from error
    rates: tuple[Rate, ...] = (
        Polyak(),
        AdaGrad(),
        Polyak(monotone=False, cap=max(1.0, loss.rate_floor)),
    )
    return [
        OGD(loss, None, rate, Ball(diameter), **rest) for rate in rates for diameter in (20.0, 60.0)
    ]
