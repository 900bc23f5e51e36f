"""Decreasing vectors between two bounds: the hull of cumulative encodings of levels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from driftline.kernels import POINT, Kernel, kernel, pool_decreasing
from driftline.polytopes.base import Mixture, keep_positive
from driftline.polytopes.box import Box

__all__ = ["OrderSimplex"]


@kernel(POINT)
def maximize(point, params, scratch, out):
    """Switch to the lower bound after the largest prefix sum, the first of several."""
    best = 0
    largest = 0.0
    total = 0.0
    for i in range(point.size):
        total += point[i]
        if total > largest:
            largest = total
            best = i + 1
    for i in range(point.size):
        out[i] = params[1] if i < best else params[0]


@kernel(POINT)
def project(point, params, scratch, out):
    """Pool adjacent violators, then cut at the bounds."""
    pool_decreasing(point, scratch, out)
    for i in range(point.size):
        out[i] = min(params[1], max(params[0], out[i]))


@dataclass(frozen=True)
class OrderSimplex(Box):
    """Vectors with ``high >= v_1 >= ... >= v_dim >= low``.

    Projecting pools neighbours and then clips. The pooled blocks do not depend on the bounds, so
    that for symmetric ones all that holds for a cube holds for the pooled vector.

    >>> OrderSimplex(3).project(np.array([0.0, 1.0, -3.0]))
    array([ 0.5,  0.5, -1. ])
    """

    maximize_kernel: ClassVar[Kernel] = maximize
    project_kernel: ClassVar[Kernel] = project

    @property
    def scratch(self) -> int:
        """Sums and sizes of the pooled blocks."""
        return 2 * self.dim

    def decompose(self, point: np.ndarray) -> Mixture:
        """Take the differences of neighbours as weights; the decomposition is unique."""
        chance = self.chances(point)
        levels = np.r_[1.0, chance, 0.0]
        vertices = np.where(np.tri(self.dim + 1, self.dim, -1, dtype=bool), self.high, self.low)
        return keep_positive(vertices, -np.diff(levels))
