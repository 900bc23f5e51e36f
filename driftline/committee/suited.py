"""Defaults for a task: a loss with a guarantee for deterministic predictions, and a detector."""

from __future__ import annotations

import math
from typing import Any

from driftline.decoders import Abstain, Argmax, Decoder
from driftline.detectors import Cusum, Detector
from driftline.losses import CRF, Logistic, Loss, PairwiseLogistic, Scaled, SparseMAP
from driftline.tasks import Task

__all__ = ["certain_decoder", "certain_loss", "detector"]

#: Queries may have at least this many documents. A round costs as much as they have pairs, and
#: bounds grow with their number.
DOCUMENTS = 10_000


def certain_loss(task: Any) -> Scaled | None:
    """Return a loss scaled to twice the least factor with a guarantee for `Argmax`, else None.

    Where predictions may be none, the loss is that of the answers.

    >>> from driftline.tasks import Multiclass
    >>> certain_loss(Multiclass(3))
    Scaled(loss=Logistic(task=Multiclass(classes=3), base=2.0), factor=2.0)
    """
    task = task.answers
    if task.geometry.classes or task.geometry.tags:
        return Scaled(Logistic(task), 2.0)
    if task.labels.graded:
        return Scaled(PairwiseLogistic(task, most=max(DOCUMENTS, 2 * task.fewest)), 2.0)
    if task.geometry.part_size:
        return Scaled(CRF(task), 2.0)
    if task.geometry.vertex_loss is not None:
        loss = SparseMAP(task)
        factor = 2.0 * Argmax(loss).kappa
        return Scaled(loss, factor) if math.isfinite(factor) else None
    return None


def certain_decoder(task: Task, loss: Loss) -> Decoder:
    """Return the deterministic decoder of a task: the best label, or none in doubt."""
    limit, cost = task.predictions.doubt
    return Argmax(loss) if math.isinf(limit) else Abstain(loss, cost)


def detector(task: Task) -> Detector:
    """Return the detector by which members start again.

    Losses of structured predictions are means over parts and vary less than 0-1 losses, so that the
    detector reacts to smaller changes, and on less evidence.
    """
    if task.answers.zero_one:
        return Cusum()
    return Cusum(threshold=2.0, more=0.1)
