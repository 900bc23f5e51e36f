r"""Assignments of rows to columns, at the share of rows assigned wrongly.

.. math:: \rho(y) = \mathrm{vec}(P_y) \in \{0, 1\}^{n^2}, \qquad
   \ell^\rho(\hat y) = -\mathrm{vec}(P_{\hat y}) / n, \qquad c = 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from driftline.errors import InputError
from driftline.kernels import DRAW, ENCODE, ENCODE_LOSS, kernel
from driftline.polytopes import Birkhoff, Polytope
from driftline.polytopes.birkhoff_kernels import random_matching, rounding_room
from driftline.tasks.base import Guess, TaskKernels
from driftline.tasks.structured import StructuredTask
from driftline.tasks.vector_spaces import Orders

__all__ = ["Matching"]


@kernel(ENCODE)
def encode(label, params, target):
    """Write the permutation matrix."""
    for i in range(target.size):
        target[i] = 0.0
    for i in range(label.size):
        target[i * label.size + label[i]] = 1.0
    return 1.0


@kernel(ENCODE_LOSS)
def encode_loss(prediction, params, out):
    """Write the loss encoding of a matching."""
    for i in range(out.size):
        out[i] = 0.0
    for i in range(prediction.size):
        out[i * prediction.size + prediction[i]] = -1.0 / prediction.size


@kernel(DRAW)
def draw(mean, params, uniforms, scratch, prediction, encoded):
    """Round along cycles of entries between 0 and 1."""
    n = prediction.size
    random_matching(mean, -1.0 / n, n, uniforms[0], scratch, prediction)
    for i in range(mean.size):
        encoded[i] = 0.0
    for i in range(n):
        encoded[i * n + prediction[i]] = -1.0 / n


@dataclass(frozen=True)
class Matching(StructuredTask):
    """``column[i]`` matched to each of ``size`` rows, every column once.

    >>> task = Matching(3)
    >>> round(task.loss([2, 0, 1], [2, 1, 0]), 4)
    0.6667
    """

    size: int

    kernels: ClassVar[TaskKernels] = TaskKernels(encode, encode_loss, draw)
    kind: ClassVar[str] = "matching"
    constant_offset: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        """Refuse fewer than two rows."""
        if int(self.size) != self.size or self.size < 2:
            raise InputError(f"a matching needs 2 rows or more, not {self.size!r}")

    @cached_property
    def labels(self) -> Orders:
        """The columns of all rows."""
        return Orders(self.size)

    @property
    def label_hull(self) -> Polytope:
        """Doubly stochastic matrices."""
        return Birkhoff(self.size)

    def _scratch(self, size: int) -> int:
        """Return room for rounding a matrix."""
        return rounding_room(self.size)

    @property
    def loss_factor(self) -> float:
        """The share of one row."""
        return -1.0 / self.size

    @property
    def guess(self) -> Guess:
        """A uniform guess, which gets one row right on average."""
        return Guess(1.0 - 1.0 / self.size)

    def constants(self, norm: str) -> tuple[float, float] | None:
        """In l2, gamma is sqrt(n-1) / n and nu 2; in l1, 1 / (2n) and 4."""
        if norm == "l2":
            return math.sqrt(self.size - 1) / self.size, 2.0
        return 0.5 / self.size, 4.0

    def from_vertex(self, vertex: np.ndarray) -> np.ndarray:
        """Return the column of the one in each row."""
        return vertex.reshape(self.size, self.size).argmax(axis=1)
