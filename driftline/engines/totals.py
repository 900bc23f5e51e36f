"""The loss of fixed weights on many rounds."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from driftline.inputs import DenseRows, Rows, SparseRows
from driftline.kernels import COMPILES, Program, total_dense, total_sparse
from driftline.kernels import program as at
from driftline.losses import Loss
from driftline.typing import CheckedLabels

__all__ = ["Totals"]


class Totals:
    """Adds up a loss and its gradient over rounds: compiled for plain rows, else round by round."""

    def __init__(self, loss: Loss, intercept: bool = False):
        self.loss, self.intercept = loss, intercept

    @cached_property
    def _program(self) -> Program | None:
        """The task and the loss as a program for the loop, None without kernels."""
        loss, task = self.loss, self.loss.task
        if task.kernels is None or loss.kernels is None or task.layout.ragged or not COMPILES:
            return None
        size = task.dim
        return Program.link(
            (task.kernels.encode, None, loss.kernels.loss, None, None, None, None, None),
            (task.params(size), loss.params(size), (), (), ()),
            (size, loss.workspace(size), 0, 0, int(self.intercept)),
        )

    def over(
        self, rows: Rows, start: int, stop: int, labels: CheckedLabels, weights: np.ndarray
    ) -> tuple[float, np.ndarray]:
        """Return the loss of weights on rounds ``start`` to ``stop``, and its gradient."""
        program = self._program
        if program is None or not isinstance(rows, (DenseRows, SparseRows)):
            return self._plainly(rows, start, stop, labels, weights)
        arrays, loop = rows.arrays(start, stop), total_dense
        if rows.transposed:
            loop = total_sparse[arrays[1].dtype]
            weights = np.ascontiguousarray(weights.T)
        gradient = np.zeros_like(weights)
        value = loop(
            program.code,
            program.params,
            *arrays,
            labels,
            weights,
            np.zeros(at.MEMORY),
            program.buffer(),
            gradient,
        )
        return float(value), np.ascontiguousarray(gradient.T) if rows.transposed else gradient

    def _plainly(
        self, rows: Rows, start: int, stop: int, labels: CheckedLabels, weights: np.ndarray
    ) -> tuple[float, np.ndarray]:
        total, gradient = 0.0, np.zeros_like(weights)
        for t, label in zip(range(start, stop), labels, strict=True):
            theta = rows.scores(weights, False, t, self.intercept)
            value, grad = self.loss.value_and_grad(theta, self.loss.task.labels.value(label))
            total += value
            gradient += rows.gradient(grad, t, self.intercept)
        return total, gradient
