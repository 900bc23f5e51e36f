"""The hull of all orders of a vector."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from driftline.errors import InputError
from driftline.kernels import (
    POINT,
    Kernel,
    helper,
    kernel,
    pool_decreasing,
    sort_decreasing,
    sorting_room,
    spread,
)
from driftline.polytopes.base import Mixture, Polytope

__all__ = ["Permutahedron"]


@kernel(POINT)
def maximize(point, params, scratch, out):
    """Give the largest weight to the largest entry, and so on."""
    order = scratch[: point.size]
    sort_decreasing(point, order, scratch[point.size :])
    for i in range(point.size):
        out[int(order[i])] = params[i]


@kernel(POINT)
def project(point, params, scratch, out):
    """Sort, subtract the weights, pool, and subtract again."""
    d = point.size
    order = scratch[:d]
    excess = scratch[d : 2 * d]
    pooled = scratch[2 * d : 3 * d]
    sort_decreasing(point, order, scratch[d:])
    for i in range(d):
        excess[i] = point[int(order[i])] - params[i]
    pool_decreasing(excess, scratch[3 * d :], pooled)
    for i in range(d):
        out[int(order[i])] = point[int(order[i])] - pooled[i]


def swapping_room(d: int) -> int:
    """Return the size of the scratch space that :func:`random_ranks` needs."""
    return 5 * d + sorting_room(d)


@helper
def random_ranks(point, divisor, weights, uniform, scratch, ranks):
    """Draw the rank of every entry such that their weights have the mean ``point / divisor``.

    From the weights in order, averages of two entries each lead to the point in order (Hardy,
    Littlewood and Polya): an entry that is too small takes from the nearest ones above that are
    too large. Swapping two ranks, with the probability that an average would give the other
    weight, has the same mean.
    """
    d = point.size
    order = scratch[:d]
    goal = scratch[d : 2 * d]
    mean = scratch[2 * d : 3 * d]
    above = scratch[3 * d : 4 * d]  # entries with something to give, the nearest last
    drawn = scratch[4 * d : 5 * d]
    for i in range(d):
        goal[i] = point[i] / divisor
    sort_decreasing(goal, order, scratch[5 * d :])
    for k in range(d):
        goal[k] = point[int(order[k])] / divisor
        mean[k] = weights[k]
        drawn[k] = k
    givers = 0
    used = 0
    for k in range(d):
        need = goal[k] - mean[k]
        if need < 0.0:
            above[givers] = k
            givers += 1
        while need > 1e-15 and givers > 0 and used < 8 * d:  # 2 d but for rounding
            j = int(above[givers - 1])
            gift = min(need, mean[j] - goal[j])
            width = mean[j] - mean[k]
            if width > 0.0 and spread(uniform, j * d + k) < gift / width:
                drawn[j], drawn[k] = drawn[k], drawn[j]
            used += 1
            mean[j] -= gift
            mean[k] += gift
            need -= gift
            if mean[j] - goal[j] <= 1e-15:
                givers -= 1
    for k in range(d):
        ranks[int(order[k])] = int(drawn[k])


@dataclass(frozen=True)
class Permutahedron(Polytope):
    """The hull of all orders of ``weights``, which decrease.

    Projecting costs a sort and one pass of pool-adjacent-violators. A point is majorised by
    the weights, and so is reached from them by at most d - 1 averages of two entries each
    (Hardy, Littlewood and Polya); swapping at random instead of averaging draws a vertex.

    >>> Permutahedron((2.0, 1.0, 0.0)).project(np.array([5.0, 5.0, 0.0]))
    array([1.5, 1.5, 0. ])
    """

    weights: Sequence[float]

    maximize_kernel: ClassVar[Kernel] = maximize
    project_kernel: ClassVar[Kernel] = project
    base: ClassVar[bool] = True
    symmetric: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Refuse weights that increase."""
        weights = tuple(float(w) for w in self.weights)
        if not weights or any(a < b for a, b in zip(weights, weights[1:], strict=False)):
            raise InputError("a permutahedron needs weights in decreasing order")
        object.__setattr__(self, "weights", weights)

    @property
    def dim(self) -> int:
        """The number of weights."""
        return len(self.weights)

    @property
    def params(self) -> tuple[float, ...]:
        """The weights."""
        return tuple(self.weights)

    @property
    def scratch(self) -> int:
        """An order, the excess over the weights, its pooled form, and the blocks of that."""
        return max(5 * self.dim, self.dim + sorting_room(self.dim))

    @property
    def most_vertices(self) -> int:
        """As many as there are entries."""
        return self.dim

    @cached_property
    def _weights(self) -> np.ndarray:
        return np.array(self.weights)

    def decompose(self, point: np.ndarray) -> Mixture:
        """Greedily take the largest share of the vertex that is sorted like the point.

        Each step makes one more prefix sum tight. The point then lies in a product of smaller
        permutahedra, whose blocks are kept, so that rounding never undoes a step.
        """
        rest = self.check(point).copy()
        blocks = [np.arange(self.dim)]
        vertices, weights, left = [], [], 1.0
        while left > 0.0:
            vertex = self._sorted_like(rest, blocks)
            share, where = self._largest_share(rest, vertex, blocks)
            vertices.append(vertex)
            weights.append(left * share)
            if share >= 1.0 - 1e-13 or len(vertices) == self.dim:
                weights[-1] = left
                break
            rest = (rest - share * vertex) / (1.0 - share)
            left *= 1.0 - share
            blocks = _split(rest, blocks, *where)
        total = np.array(weights)
        kept = total > 1e-16
        return Mixture(np.array(vertices)[kept], total[kept] / total[kept].sum())

    def _sorted_like(self, point: np.ndarray, blocks: list[np.ndarray]) -> np.ndarray:
        """Return the vertex sorted like the point within each block."""
        vertex, start = np.empty(self.dim), 0
        for block in blocks:
            order = block[np.argsort(-point[block], kind="stable")]
            vertex[order] = self._weights[start : start + len(block)]
            start += len(block)
        return vertex

    def _largest_share(
        self, point: np.ndarray, vertex: np.ndarray, blocks: list[np.ndarray]
    ) -> tuple[float, tuple[int, int]]:
        """Return the largest share of the vertex, and the block and prefix that limit it.

        The sum of the k largest entries of point - share * vertex may not exceed (1 - share)
        times that of the weights. It is convex in the share: Newton's method from 1 downward.
        """
        share, where = 1.0, (0, 0)
        while True:
            start, lowest, found = 0, share, None
            for index, block in enumerate(blocks):
                size = len(block)
                weights = self._weights[start : start + size]
                start += size
                if size < 2:
                    continue
                order = block[np.argsort(-(point - share * vertex)[block], kind="stable")]
                have = np.cumsum(point[order])[:-1]
                take = np.cumsum(vertex[order])[:-1]
                room = np.cumsum(weights)[:-1]
                over = have - share * take - (1.0 - share) * room
                slope = room - take
                for k in np.flatnonzero((over > 1e-14) & (slope > 1e-14)):
                    root = (room[k] - have[k]) / slope[k]
                    if root < lowest:
                        lowest, found = max(0.0, root), (index, int(k) + 1)
            if found is None:
                return share, where
            share, where = lowest, found


def _split(point: np.ndarray, blocks: list[np.ndarray], index: int, count: int) -> list[np.ndarray]:
    """Split a block into its ``count`` largest entries and the others."""
    block = blocks[index]
    order = block[np.argsort(-point[block], kind="stable")]
    return [*blocks[:index], order[:count], order[count:], *blocks[index + 1 :]]
