"""The decoder that a loss gets when none is named."""

from __future__ import annotations

from driftline.decoders.abstain import Abstain
from driftline.decoders.argmax import Argmax
from driftline.decoders.base import Decoder
from driftline.decoders.convolutional import Convolutional
from driftline.decoders.coordinatewise import Coordinatewise
from driftline.decoders.gap_optimal import GapOptimal
from driftline.decoders.nearest_vertex import NearestVertex
from driftline.losses import ConvolutionalFenchelYoung, FenchelYoung, Loss, Scaled
from driftline.tasks import Task

__all__ = ["default_decoder"]


def default_decoder(loss: Loss, task: Task | None = None) -> tuple[Loss, Decoder]:
    """Return the loss to descend and its decoder.

    The gap-optimal decoder for the 0-1 loss, the coordinatewise one for tags with the logistic
    loss, nearest-vertex decoding for Fenchel-Young losses, and for convolutional ones
    the decoder that is part of them. All other losses, such as those of sequences, get the best
    label, with the loss scaled by twice the decoder's kappa unless it is scaled already. If
    ``task`` is one whose predictions may be none, the decoder is the one that abstains.

    >>> from driftline.losses import CRF
    >>> from driftline.tasks import Sequence
    >>> default_decoder(CRF(Sequence(3)))[1]
    Argmax(loss=Scaled(loss=CRF(task=Sequence(tags=3, transitions=True), base=2.0), factor=2.0))
    """
    family = loss.family
    if task is not None and task.answers is not task:
        return loss, Abstain(loss, task.predictions.doubt.cost)
    if isinstance(family, ConvolutionalFenchelYoung):
        return loss, Convolutional(loss)
    if isinstance(family, FenchelYoung):
        return loss, NearestVertex(loss)
    if loss.task.geometry.tags:
        return loss, Coordinatewise(loss)
    if loss.task.zero_one:
        return loss, GapOptimal(loss)
    decoder = Argmax(loss)
    if 1.0 <= decoder.kappa < float("inf"):
        loss = Scaled(loss, 2.0 * decoder.kappa)
        decoder = Argmax(loss)
    return loss, decoder
