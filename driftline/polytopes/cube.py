"""A cube: every coordinate between two bounds, independently."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from driftline.kernels import POINT, Kernel, kernel
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


@dataclass(frozen=True)
class Cube(Box):
    """Vectors with entries from ``low`` to ``high``.

    >>> Cube(3).decompose(np.array([0.5, -1.0, 0.0])).weights
    array([0.25, 0.25, 0.5 ])
    """

    maximize_kernel: ClassVar[Kernel] = maximize
    project_kernel: ClassVar[Kernel] = project
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
