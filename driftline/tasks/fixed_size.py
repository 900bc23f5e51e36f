r"""A set of known size, at the share of wrong memberships.

.. math:: \rho(y) = y \in \{0, 1\}^d, \qquad
   \ell^\rho(\hat y) = -\frac{2 \hat y}{d}, \qquad c = \frac{2m}{d}.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from driftline.kernels import DRAW, ENCODE, ENCODE_LOSS, kernel
from driftline.polytopes import Hypersimplex, Polytope
from driftline.tasks.base import Guess, TaskKernels
from driftline.tasks.structured import StructuredTask
from driftline.tasks.vector_spaces import Sets

__all__ = ["FixedSize"]


@kernel(ENCODE)
def encode(label, params, target):
    """Write zeros and ones."""
    for i in range(target.size):
        target[i] = label[i]
    return 2.0 * params[0] / target.size


@kernel(ENCODE_LOSS)
def encode_loss(prediction, params, out):
    """Write the loss encoding of a set."""
    for i in range(out.size):
        out[i] = -2.0 * prediction[i] / out.size


@kernel(DRAW)
def draw(mean, params, uniforms, scratch, prediction, encoded):
    """Madow's systematic sampling: one uniform start, then steps of length 1."""
    d, size = mean.size, int(params[0])
    end, count = 0.0, 0
    for i in range(d):
        end += -0.5 * d * mean[i]
        chosen = count < size and (uniforms[0] + count < end or d - i <= size - count)
        prediction[i] = 1 if chosen else 0
        count += prediction[i]
        encoded[i] = -2.0 * prediction[i] / d


@dataclass(frozen=True)
class FixedSize(StructuredTask):
    """Exactly ``size`` of ``tags`` tags under the Hamming loss, divided by ``tags``.

    >>> task = FixedSize(4, 2)
    >>> task.loss(np.array([0, 1, 1, 0]), np.array([1, 1, 0, 0]))
    0.5
    """

    tags: int
    size: int

    kernels: ClassVar[TaskKernels] = TaskKernels(encode, encode_loss, draw)

    def __post_init__(self) -> None:
        """Refuse sizes that leave nothing to choose."""
        Hypersimplex(self.tags, self.size)

    @cached_property
    def labels(self) -> Sets:
        """All sets of this size."""
        return Sets(self.tags, self.size)

    @property
    def label_hull(self) -> Polytope:
        """A hypersimplex."""
        return Hypersimplex(self.tags, self.size)

    def params(self, size: int) -> tuple[float, ...]:
        """Return the size of sets."""
        return (float(self.size),)

    @property
    def loss_factor(self) -> float:
        """A wrong choice is two wrong memberships."""
        return -2.0 / self.tags

    @property
    def constant_offset(self) -> float:
        """The loss of choosing nothing right."""
        return 2.0 * self.size / self.tags

    @property
    def largest_loss(self) -> float:
        """The loss of a set that overlaps as little as possible."""
        return 2.0 * min(self.size, self.tags - self.size) / self.tags

    @property
    def guess(self) -> Guess:
        """A uniform guess."""
        return Guess(2.0 * self.size * (self.tags - self.size) / self.tags**2)

    def constants(self, norm: str) -> tuple[float, float] | None:
        """In l2, gamma is (2/d) sqrt(m (d-m) / d) and nu sqrt 2; in l1, 1/d and 2."""
        d, m = self.tags, self.size
        if norm == "l2":
            return 2.0 / d * math.sqrt(m * (d - m) / d), math.sqrt(2.0)
        return 1.0 / d, 2.0

    def from_vertex(self, vertex: np.ndarray) -> np.ndarray:
        """Return zeros and ones."""
        return np.rint(vertex).astype(np.int64)
