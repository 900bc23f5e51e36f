"""A cube: every coordinate between two bounds, independently."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from driftline.kernels import CONJUGATE, POINT, Kernel, kernel
from driftline.polytopes.base import Mixture, keep_positive
from driftline.polytopes.box import Box

__all__ = ["Cube"]


@kernel(POINT)
def maximize(point, params, scratch, out):
    """Take the upper bound where the direction is positive."""
    for i in range(point.size):
        out[i] = params[1] if point[i] > 0.0 else params[0]


@kernel(POINT)
def project(point, params, scratch, out):
    """Clip to the bounds."""
    for i in range(point.size):
        out[i] = min(params[1], max(params[0], point[i]))


@kernel(CONJUGATE)
def sigmoids(point, params, scratch, out):
    """Every coordinate by itself: the share of the upper bound is a sigmoid."""
    low, width = params[0], params[1] - params[0]
    total = 0.0
    for i in range(point.size):
        margin = width * point[i]
        small = math.exp(-abs(margin))
        share = 1.0 / (1.0 + small) if margin > 0.0 else small / (1.0 + small)
        out[i] = low + width * share
        total += low * point[i] + max(0.0, margin) + math.log1p(small)
    return total


@dataclass(frozen=True)
class Cube(Box):
    """Vectors with entries from ``low`` to ``high``.

    >>> Cube(3).decompose(np.array([0.5, -1.0, 0.0])).weights
    array([0.25, 0.25, 0.5 ])
    """

    maximize_kernel: ClassVar[Kernel] = maximize
    project_kernel: ClassVar[Kernel] = project
    entropy_kernel: ClassVar[Kernel] = sigmoids
    symmetric: ClassVar[bool] = True

    def decompose(self, point: np.ndarray) -> Mixture:
        """Return one vertex for each threshold: coordinates above it are at the upper bound."""
        chance = self.chances(point)
        order = np.argsort(-chance, kind="stable")
        levels = np.r_[1.0, chance[order], 0.0]
        vertices = np.full((self.dim + 1, self.dim), self.low)
        for count in range(1, self.dim + 1):
            vertices[count:, order[count - 1]] = self.high
        return keep_positive(vertices, -np.diff(levels))
