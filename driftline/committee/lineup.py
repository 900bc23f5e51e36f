"""A learner that needs nothing but the task."""

from __future__ import annotations

import math
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
    SparseMAP,
)
from driftline.models import Standardiser
from driftline.rates import Constant, Decaying, Polyak, Rate
from driftline.tasks import (
    Binary,
    Multiclass,
    Multilabel,
    RelevanceTask,
    Sequence,
    StructuredTask,
    Task,
)

__all__ = ["auto"]

#: Losses of structured predictions are means over parts and vary less than a coin does, so that
#: smaller changes are looked out for, and less evidence is enough.
CHANGE = Cusum(threshold=2.0, more=0.1)

#: A rate, a diameter, and what a member starts again by.
Setting = tuple[Rate, float, Detector | None]


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
    elif isinstance(task, StructuredTask):
        lineup = _structured
    rest = {"intercept": scaler is None, "dtype": dtype}
    return Committee(lineup(task, rest), scaling=scaler, seed=seed)


def _certain(loss: Loss, factor: float, setting: Setting, rest: dict[str, Any]) -> OGD:
    made = Scaled(loss, factor)
    rate, diameter, restart = setting
    return OGD(made, Argmax(made), rate, Ball(diameter), restart=restart, **rest)


def _free(cap: float) -> Polyak:
    return Polyak(monotone=False, cap=cap)


def _classes(task: Any, rest: dict[str, Any]) -> list[OGD]:
    """Return members that start again at a change, and others that follow it.

    Steps that decay come close to an average: the larger ones for labels without noise, the
    smaller ones for noisy labels. Those that do not decay learn many features fast. Free rates
    follow frequent changes, in a small ball and in a large one, and the monotone one slow ones.
    """
    logistic, change = Logistic(task), Cusum()
    settings: tuple[Setting, ...] = (
        (Decaying(5.0), 200.0, change),
        (Decaying(1.0), 200.0, change),
        (Constant(1.0), 200.0, change),
        (_free(10.0), 200.0, None),
        (_free(3.0), 20.0, None),
        (Polyak(), 200.0, None),
    )
    return [_certain(logistic, 2.0, setting, rest) for setting in settings]


def _tags(task: Any, rest: dict[str, Any]) -> list[OGD]:
    """Return members for the mean loss of all tags: steps and balls grow with their number.

    Tags that are seldom set want small steps without decay, and changes among them go unnoticed:
    the small balls forget what nobody restarts for.
    """
    loss, tags, side = Logistic(task), float(task.labels), task.labels**0.5
    settings: tuple[tuple[float, Setting], ...] = (
        (2.0, (Decaying(5.0 * tags), 200.0 * side, CHANGE)),
        (2.0, (Constant(1.0 * tags), 200.0 * side, CHANGE)),
        (2.0, (Constant(0.3 * tags), 200.0 * side, CHANGE)),
        (2.0, (_free(3.0 * tags), 20.0 * side, None)),
        (1.1, (Polyak(), 20.0 * side, None)),
    )
    return [_certain(loss, factor, setting, rest) for factor, setting in settings]


def _relevance(task: Any, rest: dict[str, Any]) -> list[OGD]:
    """Return members that sort by score; an intercept would change nothing."""
    loss = PairwiseLogistic(task, most=1000)
    settings: tuple[Setting, ...] = (
        (Decaying(5.0), 200.0, CHANGE),
        (Decaying(1.0), 200.0, CHANGE),
        (_free(30.0), 200.0, None),
        (_free(10.0), 60.0, None),
    )
    rest = rest | {"intercept": False}
    return [_certain(loss, 2.0, setting, rest) for setting in settings]


def _sequences(task: Any, rest: dict[str, Any]) -> list[OGD]:
    """Return members that take the best path.

    Transitions say how frequent tags are; an intercept beside them, a constant of 1, would be
    learned at the cost of the features.
    """
    settings: tuple[Setting, ...] = (
        (Decaying(5.0), 200.0, CHANGE),
        (Decaying(1.0), 200.0, CHANGE),
        (_free(1.0), 200.0, None),
        (Polyak(), 200.0, None),
    )
    rest = rest | {"intercept": not task.transitions}
    return [_certain(CRF(task), 2.0, setting, rest) for setting in settings]


def _structured(task: Any, rest: dict[str, Any]) -> list[OGD]:
    """Return members that take the best label, where a wrong one is known to cost something.

    Steps are those of the loss before it is scaled.
    """
    loss = SparseMAP(task)
    factor = 2.0 * Argmax(loss).kappa
    if not math.isfinite(factor):
        return _any(task, rest)
    settings: tuple[Setting, ...] = (
        (Decaying(5.0 / factor), 200.0, CHANGE),
        (Decaying(1.0 / factor), 200.0, CHANGE),
        (_free(5.0 / factor), 200.0, None),
        (_free(1.5 / factor), 20.0, None),
    )
    return [_certain(loss, factor, setting, rest) for setting in settings]


def _any(task: Any, rest: dict[str, Any]) -> list[OGD]:
    """Return members by the convolutional loss, which every task has."""
    try:
        loss = ConvolutionalFenchelYoung(task)
    except InputError as error:
        raise InputError(f"no committee is known for {task!r}: {error}") from error
    settings: tuple[Setting, ...] = (
        (Decaying(5.0), 200.0, CHANGE),
        (Decaying(1.0), 200.0, CHANGE),
        (Constant(1.0), 200.0, CHANGE),
        (_free(max(1.0, loss.rate_floor)), 60.0, None),
    )
    return [
        OGD(loss, None, rate, Ball(diameter), restart=restart, **rest)
        for rate, diameter, restart in settings
    ]
