r"""Ordered levels, at the distance between them.

Level y is encoded by y ones and then minus ones, K - 1 in all:

.. math:: \ell^\rho(\hat y) = -\frac{\rho(\hat y)}{2 (K-1)}, \qquad c = \frac12.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from driftline.errors import InputError
from driftline.kernels import DRAW, ENCODE, ENCODE_LOSS, kernel
from driftline.polytopes import OrderSimplex, Polytope
from driftline.tasks.base import Guess, TaskKernels
from driftline.tasks.spaces import Classes
from driftline.tasks.structured import StructuredTask

__all__ = ["Ordinal"]


@kernel(ENCODE)
def encode(label, params, target):
    """Write as many ones as there are levels below, and then minus ones."""
    for i in range(target.size):
        target[i] = 1.0 if i < label[0] else -1.0
    return 0.5


@kernel(ENCODE_LOSS)
def encode_loss(prediction, params, out):
    """Write the loss encoding of a level."""
    for i in range(out.size):
        out[i] = (-0.5 if i < prediction[0] else 0.5) / out.size


@kernel(DRAW)
def draw(mean, params, uniforms, scratch, prediction, encoded):
    """One uniform number against the chance of every step up."""
    d = mean.size
    prediction[0] = 0
    for i in range(d):
        above = uniforms[0] < 0.5 - d * mean[i]
        prediction[0] += 1 if above else 0
        encoded[i] = (-0.5 if above else 0.5) / d


@dataclass(frozen=True)
class Ordinal(StructuredTask):
    """Levels ``0 .. levels-1`` under the absolute error, divided by ``levels - 1``.

    >>> task = Ordinal(5)
    >>> task.encode(1), task.loss(prediction=3, label=1)
    (array([ 1., -1., -1., -1.]), 0.5)
    """

    levels: int

    kernels: ClassVar[TaskKernels] = TaskKernels(encode, encode_loss, draw)
    kind: ClassVar[str] = "levels"
    constant_offset: ClassVar[float] = 0.5

    #: The worst expected loss of a uniform guess: half the scale.
    guess: ClassVar[Guess] = Guess(0.5)

    def __post_init__(self) -> None:
        """Refuse fewer than two levels."""
        if int(self.levels) != self.levels or self.levels < 2:
            raise InputError(f"an ordinal task needs 2 levels or more, not {self.levels!r}")

    @cached_property
    def labels(self) -> Classes:
        """The levels."""
        return Classes(self.levels)

    @property
    def label_hull(self) -> Polytope:
        """An order simplex."""
        return OrderSimplex(self.levels - 1)

    @property
    def loss_factor(self) -> float:
        """Half a step."""
        return -0.5 / (self.levels - 1)

    def constants(self, norm: str) -> tuple[float, float] | None:
        """Gamma is 1 / (2 sqrt(K-1)) and nu is 2 in the Euclidean norm."""
        if norm == "l2":
            return 0.5 / math.sqrt(self.levels - 1), 2.0
        return 0.5 / (self.levels - 1), 2.0

    def from_vertex(self, vertex: np.ndarray) -> int:
        """Count the ones."""
        return int((vertex > 0.0).sum())
