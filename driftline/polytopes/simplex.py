"""The probability simplex."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from driftline.kernels import CONJUGATE, POINT, Kernel, argmax, helper, kernel
from driftline.polytopes.base import Mixture, Polytope, keep_positive

__all__ = ["Simplex"]


@kernel(POINT)
def maximize(point, params, scratch, out):
    """Write the unit vector of the largest entry."""
    for i in range(out.size):
        out[i] = 0.0
    out[argmax(point)] = 1.0


@helper
def simplex_threshold(point, room):
    """Return two numbers to subtract, one after the other, so that positive parts add up to 1.

    The first is the largest entry, so that little is lost to rounding however large entries
    are. Only entries less than 1 below it can stay positive: they are gathered, and Newton's
    method for the second number, which only drops entries (Michelot, 1986), looks at no others.
    """
    top = point[argmax(point)]
    count = 0
    for i in range(point.size):
        gap = point[i] - top
        if gap > -1.0:
            room[count] = gap
            count += 1
    threshold = -1.0
    while True:
        total = 0.0
        kept = 0
        for i in range(count):
            if room[i] > threshold:
                total += room[i]
                kept += 1
        root = (total - 1.0) / kept
        if not root > threshold:  # nor if it is not a number
            break
        threshold = root
    return top, threshold


@helper
def onto_simplex(point, out):
    """Write the nearest point: subtract a threshold and cut at 0."""
    top, threshold = simplex_threshold(point, out)
    for i in range(point.size):
        out[i] = max(0.0, point[i] - top - threshold)


@kernel(POINT)
def project(point, params, scratch, out):
    """Write the nearest point."""
    onto_simplex(point, out)


@kernel(CONJUGATE)
def softmax(point, params, scratch, out):
    """Write the softmax, return the logarithm of the sum of powers."""
    top = point[argmax(point)]
    total = 0.0
    for i in range(point.size):
        out[i] = math.exp(point[i] - top)
        total += out[i]
    for i in range(point.size):
        out[i] /= total
    return top + math.log(total)


@dataclass(frozen=True)
class Simplex(Polytope):
    """Nonnegative vectors that add up to 1.

    >>> Simplex(3).project(np.array([0.5, 0.9, -1.0]))
    array([0.3, 0.7, 0. ])
    """

    dim: int

    maximize_kernel: ClassVar[Kernel] = maximize
    project_kernel: ClassVar[Kernel] = project
    entropy_kernel: ClassVar[Kernel] = softmax
    base: ClassVar[bool] = True
    symmetric: ClassVar[bool] = True

    @property
    def most_vertices(self) -> int:
        """As many as there are entries."""
        return self.dim

    def decompose(self, point: np.ndarray) -> Mixture:
        """Take the entries as weights."""
        return keep_positive(np.eye(self.dim), self.check(point))
