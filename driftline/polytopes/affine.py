"""A polytope, stretched and moved."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from driftline.polytopes.base import Mixture, Polytope

__all__ = ["Affine"]


@dataclass(frozen=True)
class Affine(Polytope):
    """All points ``factor * v + shift`` for v in ``hull``.

    >>> from driftline.polytopes import Simplex
    >>> Affine(Simplex(2), -1.0, 1.0).project(np.array([0.2, 0.6]))
    array([0.3, 0.7])
    """

    hull: Polytope
    factor: float
    shift: float = 0.0

    @property
    def dim(self) -> int:
        """The dimension of the hull."""
        return self.hull.dim

    @property
    def closed(self) -> bool:
        """Whether projections onto the hull are exact."""
        return self.hull.closed

    @property
    def base(self) -> bool:
        """Whether the hull is a base polytope: affine maps of this kind preserve it."""
        return self.hull.base

    @property
    def most_vertices(self) -> int:
        """The number of vertices that the hull needs."""
        return self.hull.most_vertices

    def maximize(self, direction: np.ndarray) -> np.ndarray:
        """Maximise over the hull, in the opposite direction if the factor is negative."""
        return self._image(self.hull.maximize(np.sign(self.factor) * direction))

    def project(self, point: np.ndarray) -> np.ndarray:
        """Project in the hull."""
        return self._image(self.hull.project((self.check(point) - self.shift) / self.factor))

    def decompose(self, point: np.ndarray) -> Mixture:
        """Decompose in the hull."""
        vertices, weights = self.hull.decompose((self.check(point) - self.shift) / self.factor)
        return Mixture(self._image(vertices), weights)

    def _image(self, point: np.ndarray) -> np.ndarray:
        return self.factor * point + self.shift
