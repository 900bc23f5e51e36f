"""Surrogate losses as modules, with their own gradients."""

from __future__ import annotations

from collections.abc import Sequence as Many
from typing import Any

import numpy as np
import torch
from torch.autograd.function import once_differentiable

from driftline.decoders import Decoder
from driftline.errors import InputError
from driftline.losses import CRF, Loss
from driftline.tasks import Sequence
from driftline.typing import Label, Labels, Prediction

__all__ = ["CRFLoss", "SurrogateLoss"]

REDUCTIONS = ("mean", "sum", "none")


class _Values(torch.autograd.Function):
    """The loss of every row of scores. Gradients are computed with the values, and saved."""

    @staticmethod
    def forward(ctx: Any, scores: torch.Tensor, loss: Loss, labels: Many[Label]) -> torch.Tensor:
        rows = scores.detach().cpu().double().numpy()
        made = [loss.value_and_grad(row, label) for row, label in zip(rows, labels, strict=True)]
        grads = np.array([grad for _, grad in made]).reshape(rows.shape)
        ctx.save_for_backward(torch.as_tensor(grads, dtype=scores.dtype, device=scores.device))
        values = [value for value, _ in made]
        return torch.as_tensor(values, dtype=scores.dtype, device=scores.device)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, slopes: torch.Tensor) -> tuple[torch.Tensor, None, None]:
        (grads,) = ctx.saved_tensors
        return slopes[:, None] * grads, None, None


class SurrogateLoss(torch.nn.Module):
    """Any surrogate loss of Driftline on a batch of scores, one row each.

    It works for every loss whose task has scores of one size: logistic, smooth hinge,
    Fenchel-Young, SparseMAP, convolutional. Values are computed on the CPU in double precision, and
    returned in the type and on the device of the scores.

    Parameters
    ----------
    loss
        Such as ``dl.losses.SparseMAP(dl.tasks.Matching(4))``.
    decoder
        Gives predictions and risks; without one there are none.
    reduction
        ``"mean"``, ``"sum"`` or ``"none"``.

    Examples
    --------
    >>> import driftline as dl
    >>> criterion = SurrogateLoss(dl.losses.Logistic(dl.tasks.Multiclass(3)))
    >>> scores = torch.zeros(2, 3, requires_grad=True)
    >>> value = criterion(scores, [0, 2])
    >>> value.backward()
    >>> round(value.item(), 4), scores.grad.shape
    (1.585, torch.Size([2, 3]))
    """

    def __init__(self, loss: Loss, decoder: Decoder | None = None, reduction: str = "mean"):
        super().__init__()
        _check_reduction(reduction)
        if decoder is not None and decoder.loss != loss:
            raise InputError(f"the decoder was made for {decoder.loss!r}, but the loss is {loss!r}")
        self.loss, self._decoder, self.reduction = loss, decoder, reduction

    @property
    def decoder(self) -> Decoder:
        """The decoder that gives predictions and risks."""
        if self._decoder is None:
            raise InputError(f"a decoder is needed: SurrogateLoss({self.loss!r}, decoder)")
        return self._decoder

    def forward(self, scores: torch.Tensor, labels: Labels) -> torch.Tensor:
        """Return the loss of a batch."""
        if scores.ndim != 2 or not scores.is_floating_point():
            raise InputError(
                "scores need a row for every label, of real numbers, but have shape "
                f"{tuple(scores.shape)} and type {scores.dtype}"
            )
        values = _Values.apply(scores, self.loss, _listed(labels, len(scores)))
        return _reduced(values, self.reduction)

    def risk(self, scores: torch.Tensor, labels: Labels) -> torch.Tensor:
        """Return the expected target loss of the decoder, which has no gradient."""
        rows = scores.detach().cpu().double().numpy()
        pairs = zip(rows, _listed(labels, len(rows)), strict=True)
        risks = [self.decoder.risk(row, label) for row, label in pairs]
        made = torch.as_tensor(risks, dtype=scores.dtype, device=scores.device)
        return _reduced(made, self.reduction)

    def predict(self, scores: torch.Tensor) -> list[Prediction]:
        """Return the most probable prediction for every row."""
        rows = scores.detach().cpu().double().numpy()
        found = [self.decoder.distribution(row) for row in rows]
        return [one.atoms[int(np.argmax(one.weights))] for one in found]


class CRFLoss(torch.nn.Module):
    """The loss of a conditional random field on a batch of sequences.

    ``unary`` has the scores of every tag at every position, shape (batch, length, tags);
    ``transitions`` those of neighbouring tags, (tags, tags) for all or (batch, length - 1, tags,
    tags). ``lengths`` says how many positions of each sequence count.

    >>> criterion = CRFLoss(tags=3)
    >>> unary, transitions = torch.zeros(2, 4, 3), torch.zeros(3, 3)
    >>> value = criterion(unary, transitions, [[0, 1, 2, 0], [1, 1]], lengths=[4, 2])
    >>> round(value.item(), 4)  # of 4 and of 2 times log2(3) bits
    4.7549
    """

    def __init__(self, tags: int, base: float = 2.0, reduction: str = "mean"):
        super().__init__()
        _check_reduction(reduction)
        self.loss, self.reduction = CRF(Sequence(tags), base), reduction

    def forward(
        self,
        unary: torch.Tensor,
        transitions: torch.Tensor,
        labels: Labels,
        lengths: Many[int] | None = None,
    ) -> torch.Tensor:
        """Return the loss of a batch."""
        if unary.ndim != 3:
            raise InputError(
                f"unary scores have shape (batch, length, tags), but these {tuple(unary.shape)}"
            )
        batch, longest, _ = unary.shape
        sizes = [longest] * batch if lengths is None else [int(n) for n in lengths]
        if len(sizes) != batch:
            raise InputError(f"there are {batch} sequences, but {len(sizes)} lengths")
        labels = _listed(labels, batch)
        values = [unary.new_empty(0)]
        for i, n in enumerate(sizes):
            if not 1 <= n <= longest:
                raise InputError(f"sequence {i} has a length of {n}: expected 1 to {longest}")
            shared = transitions.ndim == 2
            edges = transitions.expand(n - 1, -1, -1) if shared else transitions[i, : n - 1]
            theta = torch.cat([unary[i, :n].reshape(-1), edges.reshape(-1)])
            values.append(_Values.apply(theta[None], self.loss, [labels[i][:n]]))
        return _reduced(torch.cat(values), self.reduction)


def _check_reduction(reduction: str) -> None:
    if reduction not in REDUCTIONS:
        raise InputError(f"reduction must be one of {REDUCTIONS}, not {reduction!r}")


def _reduced(values: torch.Tensor, reduction: str) -> torch.Tensor:
    if reduction == "none":
        return values
    return values.mean() if reduction == "mean" else values.sum()


def _listed(labels: Labels, count: int) -> list[Label]:
    """Return labels as NumPy or Python has them, one for every row."""
    if isinstance(labels, torch.Tensor):
        if labels.ndim == 0:
            raise InputError(f"there are {count} rows of scores, but one label, {labels.item()}")
        labels = labels.detach().cpu().numpy()
    made = [one.tolist() if isinstance(one, torch.Tensor) else one for one in labels]
    if len(made) != count:
        raise InputError(f"there are {count} rows of scores, but {len(made)} labels")
    return made
