"""Doubly stochastic matrices: the hull of all matchings."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from driftline.errors import InputError
from driftline.polytopes.base import Mixture
from driftline.polytopes.solved import SolvedPolytope

__all__ = ["Birkhoff"]


@dataclass(frozen=True)
class Birkhoff(SolvedPolytope):
    """Square matrices with nonnegative entries, rows and columns adding up to 1, flattened.

    The oracle is the assignment problem; a point is a mixture of permutation matrices by the
    theorem of Birkhoff and von Neumann.

    >>> Birkhoff(2).maximize(np.array([1.0, 3.0, 2.0, 0.0]))
    array([0., 1., 1., 0.])
    """

    size: int
    tolerance: float = 1e-10

    @property
    def dim(self) -> int:
        """The number of entries."""
        return self.size**2

    @property
    def most_vertices(self) -> int:
        """One more than the dimension of the affine hull."""
        return (self.size - 1) ** 2 + 1

    def maximize(self, direction: np.ndarray) -> np.ndarray:
        """Solve the assignment problem."""
        return self._matching(self.check(direction).reshape(self.size, self.size))

    def decompose(self, point: np.ndarray) -> Mixture:
        """Take matchings on the positive entries, each as far as its smallest entry allows."""
        rest = self.check(point).reshape(self.size, self.size).copy()
        vertices: list[np.ndarray] = []
        weights: list[float] = []
        while len(vertices) < self.most_vertices and rest.max() > 1e-13:
            support = rest > 1e-13
            vertex = self._matching(np.where(support, rest, -self.size - 1.0))
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

    def _matching(self, matrix: np.ndarray) -> np.ndarray:
        from scipy.optimize import linear_sum_assignment

        vertex = np.zeros_like(matrix)
        vertex[linear_sum_assignment(matrix, maximize=True)] = 1.0
        return vertex.ravel()
