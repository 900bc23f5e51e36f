"""Learners by name, to run one setting and not several."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from driftline.committee.committee import Committee
from driftline.committee.lineup import auto, guarded
from driftline.committee.suited import certain_decoder, certain_loss, detector
from driftline.decoders import default_decoder
from driftline.domains import Ball
from driftline.errors import InputError
from driftline.features import Block, Categories, Standardise, check_categories
from driftline.learner import OGD
from driftline.losses import ConvolutionalFenchelYoung, Loss, Scaled
from driftline.members import Column
from driftline.parts import check_flag
from driftline.rates import AdaGrad, Constant, Decaying, Polyak, Rate
from driftline.tasks import Task

__all__ = ["LEARNERS", "named"]

RATES: dict[str, Rate] = {
    "polyak": Polyak(),
    "free": Polyak(monotone=False, cap=10.0),
    "adagrad": AdaGrad(),
    "constant": Constant(1.0),
    "decaying": Decaying(1.0),
    "restart": Decaying(1.0),
}

#: Names of committees with nothing to set, by the effort that they stand for.
EFFORTS = {"auto": "balanced", "fast": "fast", "best": "best"}

LEARNERS = (*EFFORTS, "paper", *RATES)


def named(
    name: str,
    task: Task,
    *,
    scaling: bool = True,
    seed: int | None = 0,
    dtype: npt.DTypeLike = np.float64,
    diameter: float | None = None,
    step: float | None = None,
    column: bool = False,
    categories: Mapping[int, int] | Categories = (),
) -> Committee:
    """Return a learner by its name in :data:`LEARNERS`, by default on standardised inputs.

    ``auto`` is :func:`driftline.auto`; ``fast`` and ``best`` are the same with this effort. All
    others are committees of one member; all but ``paper``, which has the random decoder of the
    theorem, predict with certainty where their loss allows it. These take the ``diameter`` of their
    ball, and ``constant`` the size of its ``step``. With ``column`` a learner that has nothing to
    set guards the predictions that are the first value of rows, as :func:`driftline.Guarded` does.
    ``categories`` are columns of codes, as :func:`driftline.auto` takes them.

    >>> from driftline.streams import LabelFlips
    >>> stream = LabelFlips(rounds=2000, flips=1, seed=0)
    >>> bool(named("restart", stream.task).run(stream).target_loss.mean() < 0.05)
    True
    """
    if name not in LEARNERS:
        raise InputError(f"there is no learner {name!r}: expected one of {', '.join(LEARNERS)}")
    if step is not None and name != "constant":
        raise InputError(f"only constant has a step of its own, not {name}")
    if diameter is not None and name in EFFORTS:
        raise InputError(f"{name} has several balls, and takes no diameter")
    if column and name not in EFFORTS:
        raise InputError(f"a column of predictions is guarded by {', '.join(EFFORTS)}, not {name}")
    if column:
        made: Any = {"effort": EFFORTS[name], "categories": categories, "seed": seed}
        return guarded(Column(task), task, **made)
    if name in EFFORTS:
        rest: Any = {"scaling": scaling, "categories": categories, "seed": seed, "dtype": dtype}
        return auto(task, effort=EFFORTS[name], **rest)
    check_flag("scaling", scaling)
    scaled = scaling and task.layout.scalable
    loss: Any = _loss(task, certain=name != "paper")
    certain = isinstance(loss, Scaled)
    decoder = certain_decoder(task, loss) if certain else None
    if decoder is None:
        loss, decoder = default_decoder(loss, task)
    member = OGD(
        loss,
        decoder,
        RATES.get(name) if step is None else Constant(step),
        _ball(name, diameter),
        intercept=not (scaled or isinstance(loss, ConvolutionalFenchelYoung)),
        restart=detector(task) if name == "restart" else None,
        features=Standardise(task.layout.constant, dtype) if scaled else None,
        seed=seed,
        dtype=dtype,
    )
    if codes := check_categories(categories):
        member._read(Block(categories=codes))
    return Committee([member], seed=seed)


def _ball(name: str, diameter: float | None) -> Ball | None:
    """Return the ball of a learner, None for that of the paper."""
    if diameter is not None:
        return Ball(diameter)
    return Ball(200.0) if name in RATES else None


def _loss(task: Task, certain: bool) -> Loss:
    """Return the loss that suits a task; the convolutional one suits them all."""
    made = certain_loss(task)
    if made is not None and certain:
        return made
    geometry = task.geometry
    if made is not None and (geometry.classes or geometry.tags or geometry.part_size):
        return made.loss
    return ConvolutionalFenchelYoung(task)
