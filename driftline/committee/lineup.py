"""A learner that needs nothing but the task."""

from __future__ import annotations

from typing import Any

from driftline.committee.committee import Committee
from driftline.decoders import Argmax
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
    SmoothHinge,
)
from driftline.models import Standardiser
from driftline.rates import AdaGrad, Polyak, Rate
from driftline.tasks import Binary, Multiclass, Multilabel, RelevanceTask, Sequence, Task

__all__ = ["auto"]


def auto(task: Task, *, scaling: bool = True, seed: int | None = 0) -> Committee:
    """Return a committee for a task, with nothing to set.

    Its members differ in loss, rate and diameter, for no setting is best on every stream: free
    rates follow abrupt changes, monotone ones bear noise, large balls suit long quiet stretches.
    With ``scaling`` inputs are standardised as they come.

    >>> from driftline.streams import LabelFlips
    >>> stream = LabelFlips(rounds=5000, flips=5, seed=0)
    >>> bool(auto(stream.task).run(stream).target_loss.mean() < 0.03)
    True
    """
    scaler = Standardiser() if scaling and not task.ragged else None
    lineup = _any
    if isinstance(task, (Multiclass, Binary)):
        lineup = _classes
    elif isinstance(task, Multilabel):
        lineup = _tags
    elif isinstance(task, RelevanceTask):
        lineup = _relevance
    elif isinstance(task, Sequence):
        lineup = _sequences
    return Committee(lineup(task, scaler is None), scaling=scaler, seed=seed)


def _certain(loss: Loss, factor: float, rate: Rate, diameter: float, intercept: bool) -> OGD:
    made = Scaled(loss, factor)
    return OGD(made, Argmax(made), rate, Ball(diameter), intercept=intercept)


def _classes(task: Any, intercept: bool) -> list[OGD]:
    hinge, logistic = SmoothHinge(task), Logistic(task)
    settings: tuple[tuple[Loss, float, Rate, float], ...] = (
        (hinge, 4.0, Polyak(monotone=False), 20.0),
        (hinge, 2.0, Polyak(monotone=False), 200.0),
        (logistic, 2.0, Polyak(monotone=False, cap=30.0), 60.0),
        (logistic, 2.0, Polyak(), 20.0),
        (logistic, 2.0, Polyak(), 200.0),
        (logistic, 2.0, AdaGrad(), 20.0),
    )
    return [_certain(*setting, intercept) for setting in settings]


def _tags(task: Any, intercept: bool) -> list[OGD]:
    loss = Logistic(task)
    side = task.labels**0.5
    return [
        _certain(loss, factor, rate, diameter * side, intercept)
        for factor, rate in ((2.0, Polyak()), (1.1, Polyak()), (2.0, AdaGrad()))
        for diameter in (20.0, 200.0)
    ]


def _relevance(task: Any, intercept: bool) -> list[OGD]:
    """Return members that sort by score; an intercept would change nothing."""
    loss = PairwiseLogistic(task, most=1000)
    settings: tuple[tuple[Rate, float], ...] = (
        (Polyak(), 60.0),
        (Polyak(monotone=False, cap=30.0), 200.0),
        (AdaGrad(), 60.0),
        (AdaGrad(), 200.0),
    )
    return [_certain(loss, 2.0, rate, diameter, False) for rate, diameter in settings]


def _sequences(task: Any, intercept: bool) -> list[OGD]:
    """Return members that take the best path."""
    settings: tuple[tuple[Rate, float], ...] = (
        (Polyak(), 60.0),
        (Polyak(monotone=False, cap=1.0), 60.0),
        (AdaGrad(), 60.0),
        (AdaGrad(), 200.0),
    )
    return [_certain(CRF(task), 2.0, rate, diameter, intercept) for rate, diameter in settings]


def _any(task: Any, intercept: bool) -> list[OGD]:
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
        OGD(loss, None, rate, Ball(diameter), intercept=intercept)
        for rate in rates
        for diameter in (20.0, 60.0)
    ]
