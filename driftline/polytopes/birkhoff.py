"""Doubly stochastic matrices: the hull of all matchings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from driftline.errors import InputError
from driftline.kernels import Kernel
from driftline.polytopes import birkhoff_kernels as compiled
from driftline.polytopes.base import Mixture
from driftline.polytopes.solved import SolvedPolytope

__all__ = ["Birkhoff"]


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
        """What the larger of oracle and projection needs."""
        n = self.size
        return max(compiled.balance_room(n), n + compiled.assign_room(n))

    @property
    def dim(self) -> int:
        """The number of entries."""
        return self.size**2

    @property
    def most_vertices(self) -> int:
        """One more than the dimension of the affine hull."""
        return (self.size - 1) ** 2 + 1

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
