"""What suits a task: a loss under which the best label is certain to be bounded, and a detector."""

from __future__ import annotations

import math
from typing import Any

from driftline.decoders import Argmax
from driftline.detectors import Cusum, Detector
from driftline.losses import CRF, Logistic, PairwiseLogistic, Scaled, SparseMAP
from driftline.tasks import Task

__all__ = ["certain_loss", "detector"]

#: Queries of so many documents are taken at least: their pairs are what a round costs, and bounds
#: grow with the number.
DOCUMENTS = 1000


def certain_loss(task: Any) -> Scaled | None:
    """Return twice the least multiple of a loss that `Argmax` has a guarantee for, None if unknown.

    >>> from driftline.tasks import Multiclass
    >>> certain_loss(Multiclass(3))
    Scaled(loss=Logistic(task=Multiclass(classes=3), base=2.0), factor=2.0)
    """
    if task.kind in ("classes", "sign", "tags"):
        return Scaled(Logistic(task), 2.0)
    if task.kind == "relevance":
        return Scaled(PairwiseLogistic(task, most=max(DOCUMENTS, 2 * task.fewest)), 2.0)
    if task.kind == "chain":
        return Scaled(CRF(task), 2.0)
    if task.predicts_top and hasattr(task, "loss_factor"):
        loss = SparseMAP(task)
        factor = 2.0 * Argmax(loss).kappa
        return Scaled(loss, factor) if math.isfinite(factor) else None
    return None


def detector(task: Task) -> Detector:
    """Return what tells members to start again.

    Losses of structured predictions are means over parts and vary less than a coin does, so that
    smaller changes are looked out for, and less evidence is enough.
    """
    if task.zero_one:
        return Cusum()
    return Cusum(threshold=2.0, more=0.1)
