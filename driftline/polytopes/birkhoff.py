"""Doubly stochastic matrices: the hull of all matchings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from driftline.errors import InputError
from driftline.kernels import POINT, Kernel, kernel
from driftline.polytopes import birkhoff_kernels as compiled
from driftline.polytopes.base import Mixture
from driftline.polytopes.solved import SolvedPolytope

__all__ = ["Birkhoff"]


@kernel(POINT)
def sample(point, params, scratch, out):
    """Write a random vertex with this mean; the second parameter is a uniform number."""
    n = int(params[0])
    columns = scratch[:n]
    compiled.random_matching(point, 1.0, n, params[1], scratch[n:], columns)
    for i in range(out.size):
        out[i] = 0.0
    for i in range(n):
        out[i * n + int(columns[i])] = 1.0


@dataclass(frozen=True)
class Birkhoff(SolvedPolytope):
    """Square matrices with nonnegative entries, rows and columns adding up to 1, flattened.

    The oracle is the assignment problem, the projection comes from Newton's method on its 2 n
    multipliers; a point is a mixture of permutation matrices by the theorem of Birkhoff and von
    Neumann. See :mod:`driftline.polytopes.birkhoff_kernels`.

    >>> Birkhoff(2).maximize(np.array([1.0, 3.0, 2.0, 0.0]))
    array([0., 1., 1., 0.])
    """

    size: int
    tolerance: float = 1e-10

    maximize_kernel: ClassVar[Kernel] = compiled.maximize
    project_kernel: ClassVar[Kernel] = compiled.project
    entropy_kernel: ClassVar[Kernel] = compiled.sinkhorn

    @property
    def params(self) -> tuple[float, ...]:
        """The number of rows."""
        return (float(self.size),)

    @property
    def scratch(self) -> int:
        """What the largest of oracle, projection and sampling needs."""
        n = self.size
        own = (compiled.assign_room(n), compiled.rounding_room(n))
        return max(compiled.balance_room(n), n + max(own))

    @property
    def dim(self) -> int:
        """The number of entries."""
        return self.size**2

    @property
    def most_vertices(self) -> int:
        """One more than the dimension of the affine hull."""
        return (self.size - 1) ** 2 + 1

    def sample(self, point: np.ndarray, uniforms: np.ndarray) -> np.ndarray:
        """Round along cycles of entries between 0 and 1, such that their means stay."""
        out, params = np.empty(self.dim), np.array([self.size, uniforms[0]], dtype=np.float64)
        sample(self.check(point), params, np.empty(self.scratch), out)
        return out

    def decompose(self, point: np.ndarray) -> Mixture:
        """Take matchings on the positive entries, each as far as its smallest entry allows."""
        rest = self.check(point).reshape(self.size, self.size).copy()
        vertices: list[np.ndarray] = []
        weights: list[float] = []
        while len(vertices) < self.most_vertices and rest.max() > 1e-13:
            support = rest > 1e-13
            vertex = self.maximize(np.where(support, rest, -self.size - 1.0).ravel())
            chosen = rest[vertex.reshape(rest.shape) > 0.0]
            amount = float(chosen.min())
            if amount <= 1e-13:
                break
            vertices.append(vertex)
            weights.append(amount)
            rest = np.maximum(rest - amount * vertex.reshape(rest.shape), 0.0)
        if abs(sum(weights) - 1.0) > 1e-6:
            raise InputError(
                "the matrix is not doubly stochastic: its rows or columns differ from 1"
            )
        total = np.array(weights)
        return Mixture(np.array(vertices), total / total.sum())
