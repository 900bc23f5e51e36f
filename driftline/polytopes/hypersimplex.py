"""The hull of sets of a fixed size."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from driftline.errors import InputError
from driftline.kernels import (
    CONJUGATE,
    POINT,
    Kernel,
    helper,
    kernel,
    sort_decreasing,
    sorting_room,
)
from driftline.polytopes.base import Mixture, Polytope

__all__ = ["Hypersimplex"]


@kernel(POINT)
def maximize(point, params, scratch, out):
    """Take the largest entries."""
    order = scratch[: point.size]
    sort_decreasing(point, order, scratch[point.size :])
    for i in range(point.size):
        out[i] = 0.0
    for i in range(int(params[0])):
        out[int(order[i])] = 1.0


@helper
def threshold(point, most, total):
    """Return t with the sum of clip(point - t, 0, most) equal to the total.

    The sum falls piecewise linearly; Newton's method inside a shrinking bracket.
    """
    low = point[0]
    high = point[0]
    for i in range(point.size):
        low = min(low, point[i])
        high = max(high, point[i])
    low -= most
    t = 0.5 * (low + high)
    for _ in range(200):
        reached = 0.0
        free = 0
        for i in range(point.size):
            gap = point[i] - t
            if gap >= most:
                reached += most
            elif gap > 0.0:
                reached += gap
                free += 1
        excess = reached - total
        if excess > 0.0:
            low = t
        elif excess < 0.0:
            high = t
        else:
            break
        step = t + excess / free if free > 0 else low
        if not low < step < high:
            step = 0.5 * (low + high)
        if step == t:
            break
        t = step
    return t


@kernel(POINT)
def project(point, params, scratch, out):
    """Move all entries by the same number, and cut them at 0 and 1."""
    t = threshold(point, 1.0, params[0])
    for i in range(point.size):
        out[i] = min(1.0, max(0.0, point[i] - t))


@kernel(CONJUGATE)
def capped_softmax(point, params, scratch, out):
    """Write min(1, exp(point - t)) that add up to the size; return the conjugate of the entropy.

    The largest entries are cut at 1, one after the other, until the others fit.
    """
    d, size = point.size, int(params[0])
    order = scratch[:d]
    sort_decreasing(point, order, scratch[d:])
    cut, total, top = 0, 0.0, point[int(order[0])]
    while True:
        total, top = 0.0, point[int(order[cut])]
        for i in range(cut, d):
            total += math.exp(point[int(order[i])] - top)
        if size - cut <= total or cut == size - 1:
            break
        cut += 1
    factor = (size - cut) / total
    value = 0.0
    for i in range(d):
        j = int(order[i])
        out[j] = 1.0 if i < cut else min(1.0, factor * math.exp(point[j] - top))
        value += point[j] if i < cut else 0.0
    return value + (size - cut) * (top - math.log(factor))


@dataclass(frozen=True)
class Hypersimplex(Polytope):
    """Vectors with entries from 0 to 1 that add up to ``size``.

    >>> Hypersimplex(3, 2).project(np.array([5.0, 0.2, 0.0]))
    array([1. , 0.6, 0.4])
    """

    dim: int
    size: int

    maximize_kernel: ClassVar[Kernel] = maximize
    project_kernel: ClassVar[Kernel] = project
    entropy_kernel: ClassVar[Kernel] = capped_softmax
    base: ClassVar[bool] = True
    symmetric: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Refuse sizes that leave nothing to choose."""
        if not 0 < self.size < self.dim:
            raise InputError(f"the size must lie between 1 and {self.dim - 1}, but is {self.size}")

    @property
    def params(self) -> tuple[float, ...]:
        """The size."""
        return (float(self.size),)

    @property
    def scratch(self) -> int:
        """An order, and room to find it."""
        return self.dim + sorting_room(self.dim)

    @property
    def most_vertices(self) -> int:
        """As many as there are entries."""
        return self.dim

    def decompose(self, point: np.ndarray) -> Mixture:
        """Every systematic sample, with the share of starting points that leads to it."""
        ends = self._ends(self.check(point))
        starts = np.unique(np.r_[0.0, ends % 1.0, 1.0])
        weights = np.diff(starts)
        kept = weights > 1e-15
        vertices = np.array([self._pick(ends, u) for u in (starts[:-1] + weights / 2)[kept]])
        return Mixture(vertices, weights[kept] / weights[kept].sum())

    def _ends(self, point: np.ndarray) -> np.ndarray:
        ends = np.cumsum(point)
        ends[-1] = self.size
        return ends

    def _pick(self, ends: np.ndarray, start: float) -> np.ndarray:
        vertex = np.zeros(self.dim)
        vertex[np.searchsorted(ends, start + np.arange(self.size), side="right")] = 1.0
        return vertex
