"""Predict the label of the highest score, deterministically."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from driftline.decoders.base import Decoder
from driftline.decoders.vertices import (
    VERTEX_HEADER,
    finds_vertices,
    vertex_params,
    vertex_scratch,
)
from driftline.errors import NoGuaranteeError
from driftline.kernels import (
    DECODE,
    DRAW,
    Kernel,
    argmax,
    at_peak,
    call_point,
    dot,
    kernel,
    peak,
    sort_decreasing,
    sorting_room,
    where,
)
from driftline.losses import Loss
from driftline.losses.base import check_scores
from driftline.polytopes.chain_kernels import best_path, folded_length, length_of, path_room
from driftline.typing import Label, Prediction

__all__ = ["Argmax"]

#: Smaller target losses of a single prediction are rounding errors of 0.
ROUNDING = 1e-14


@kernel(DECODE)
def decode_argmax(theta, target, offset, params, work, values, loss_params, mix, scratch, mean):
    """Miss everything but the label of the highest score; a score of 0 alone means -1."""
    if theta.size == 1:
        sign = where(theta[0] > 0.0, 1.0, -1.0)
        mean[0] = -0.5 * sign
        return where(sign == target[0], 0.0, 1.0)
    _, top = peak(theta)
    for k in range(mean.size):
        mean[k] = where(top == k, 0.0, 1.0)
    return 1.0 - at_peak(theta, target)


@kernel(DECODE)
def decode_signs(theta, target, offset, params, work, values, loss_params, mix, scratch, mean):
    """Take every tag of positive score; the risk is the share of wrong ones."""
    wrong = 0.0
    for i in range(theta.size):
        sign = where(theta[i] > 0.0, 1.0, -1.0)
        mean[i] = -0.5 * sign / theta.size
        wrong += where(sign == target[i], 0.0, 1.0)
    return wrong / theta.size


@kernel(DECODE)
def decode_vertex(theta, target, offset, params, work, values, loss_params, mix, scratch, mean):
    """Take the best vertex of the polytope, which is called by its address."""
    d = theta.size
    vertex = scratch[:d]
    call_point(int(params[2]), (theta, params[VERTEX_HEADER:], scratch[d:], vertex))
    for i in range(d):
        mean[i] = params[0] * vertex[i] + params[1]
    risk = dot(target, mean) + offset
    return risk if risk > ROUNDING else 0.0


@kernel(DECODE)
def decode_order(theta, target, offset, params, work, values, loss_params, mix, scratch, mean):
    """Sort by score; the parameter is where the discounts of ranks are among those of the loss."""
    d, first = theta.size, int(params[0])
    sort_decreasing(theta, scratch[:d], scratch[d:])
    for i in range(d):
        mean[int(scratch[i])] = -loss_params[first + i]
    risk = dot(target, mean) + offset
    return risk if risk > ROUNDING else 0.0


@kernel(DECODE)
def decode_path(theta, target, offset, params, work, values, loss_params, mix, scratch, mean):
    """Take the best sequence; scores are folded. Without transitions, the best tags."""
    tags, transitions = int(params[0]), params[1] > 0.0
    n = length_of(theta.size, tags, transitions)
    path, room = scratch[:n], scratch[n:]
    if transitions:
        best_path(theta, n, tags, room, path)
    else:
        for t in range(n):
            path[t] = argmax(theta[t * tags : (t + 1) * tags])
    for i in range(mean.size):
        mean[i] = 1.0 / n if i < n * tags else 0.0
    for t in range(n):
        mean[t * tags + int(path[t])] = 0.0
    risk = dot(target, mean) + offset
    return risk if risk > ROUNDING else 0.0


@kernel(DRAW)
def draw_order(mean, params, uniforms, scratch, prediction, encoded):
    """Write the ranks by score; beyond a cutoff the mean does not know them."""
    for i in range(mean.size):
        prediction[int(scratch[i])] = i
        encoded[i] = mean[i]


@dataclass(frozen=True)
class Argmax(Decoder):
    r"""The best label in the direction of the scores (MAP), deterministically.

    It has a guarantee if the loss is scaled by a large enough factor.

    If a wrong argmax costs the surrogate at least :math:`1 / \kappa`, the target loss is at
    most :math:`\kappa L`, and the surrogate gap is :math:`1 - \kappa`. The plain base-2
    logistic loss and the smooth hinge have :math:`\kappa = 1` and so no gap: a class that
    is not the argmax has probability 1/2 at most, and a margin that is not positive. Their
    multiples by c have :math:`\kappa = 1/c`.

    >>> from driftline.losses import Logistic, Scaled
    >>> from driftline.tasks import Multiclass
    >>> loss = Logistic(Multiclass(3))
    >>> Argmax(loss).kappa, Argmax(Scaled(loss, 2.0)).surrogate_gap
    (1.0, 0.5)
    """

    loss: Loss

    deterministic: ClassVar[bool] = True
    takes_top: ClassVar[bool] = True
    ratio_name: ClassVar[str] = "argmax"

    def __post_init__(self) -> None:
        """Refuse tasks whose predictions are not their labels."""
        task = self.loss.task
        if not task.geometry.predicts_top:
            raise NoGuaranteeError(f"Argmax needs a task that predicts labels, not {task!r}")

    @property
    def kernel(self) -> Kernel | None:
        """The kernel for classes, for tags, or for vertices of other polytopes."""
        task = self.loss.task
        if task.zero_one:
            return decode_argmax
        if task.geometry.tags:
            return decode_signs
        if self.loss.discounts_at is not None:
            return decode_order
        if task.geometry.part_size:
            return decode_path
        return decode_vertex if finds_vertices(task) else None

    @property
    def params(self) -> tuple[float, ...]:
        """What the kernel needs of the polytope, of ranks, or of the chain."""
        task: Any = self.loss.task
        if self.kernel is decode_order:
            return (float(self.loss.discounts_at or 0),)
        if self.kernel is decode_path:
            return (float(task.tags), float(task.transitions))
        return vertex_params(self.loss.task) if self.kernel is decode_vertex else ()

    @property
    def draw_kernel(self) -> Kernel | None:
        """For ranks, the order that was found."""
        ranks = self.kernel is decode_order and self.loss.task.predictions.ranks
        return draw_order if ranks else None

    def scratch(self, size: int) -> int:
        """Return room for a vertex, an order or a path, and for finding it."""
        task: Any = self.loss.task
        if self.kernel is decode_order:
            return size + sorting_room(size)
        if self.kernel is decode_path:
            n = folded_length(size, task.tags, task.transitions)
            return n + path_room(n, task.tags)
        return vertex_scratch(self.loss.task, size) if self.kernel is decode_vertex else 0

    @property
    def kappa(self) -> float:
        """The constant with target loss <= kappa L; infinite where none is known."""
        return math.inf if self.loss_ratio is None else self.loss_ratio

    def mean_loss_encoding(self, theta: np.ndarray) -> np.ndarray:
        """Return the loss encoding of the argmax."""
        task = self.loss.task
        theta = check_scores(theta, task)
        return task.geometry.encode_loss(task.top_prediction(theta), theta.size)

    def risk(self, theta: np.ndarray, label: Label) -> float:
        """Return the target loss of the argmax; rounding errors of 0 are set to 0."""
        task = self.loss.task
        value = float(task.encode(label) @ self.mean_loss_encoding(theta)) + task.offset(label)
        return value if value > ROUNDING else 0.0

    def draw(self, theta: np.ndarray, uniforms: np.ndarray) -> Prediction:
        """Return the argmax; nothing is drawn."""
        return self.loss.task.top_prediction(check_scores(theta, self.loss.task))
