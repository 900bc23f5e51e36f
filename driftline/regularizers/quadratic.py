r"""Half the squared norm: :math:`\Omega(\mu) = \frac\sigma2 \|\mu\|^2`.

The mean prediction is the projection of :math:`\theta / \sigma` onto the polytope.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from driftline.polytopes import Polytope, SolvedPolytope
from driftline.regularizers.base import Regularizer

__all__ = ["Quadratic"]


@dataclass(frozen=True)
class Quadratic(Regularizer):
    """``scale`` times half the squared Euclidean norm.

    >>> from driftline.polytopes import Simplex
    >>> Quadratic(2.0).mean_prediction(np.array([1.0, 1.8, -2.0]), Simplex(3))
    array([0.3, 0.7, 0. ])
    """

    scale: float = 1.0

    symmetric: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Refuse a scale that is not positive."""
        self._check_scale()

    def value(self, mu: np.ndarray, hull: Polytope) -> float:
        """Return the squared norm, scaled."""
        return 0.5 * self.scale * float(mu @ mu)

    def mean_prediction(self, theta: np.ndarray, hull: Polytope) -> np.ndarray:
        """Project the scores."""
        return hull.project(np.asarray(theta) / self.scale)

    def solve(self, theta: np.ndarray, hull: Polytope) -> tuple[np.ndarray, float]:
        """Project the scores; return the solver's duality gap too, 0 for a closed form."""
        if not isinstance(hull, SolvedPolytope):
            return self.mean_prediction(theta, hull), 0.0
        found, gap = hull.nearest(np.asarray(theta) / self.scale)
        return found, self.scale * gap

    def loss(self, theta: np.ndarray, target: np.ndarray, mu: np.ndarray, hull: Polytope) -> float:
        """Return the loss as one product of differences, which keeps it exact near 0."""
        return float((theta - 0.5 * self.scale * (mu + target)) @ (mu - target))

    def strong_convexity(self, hull: Polytope, norm: str) -> float | None:
        """Return the scale, in the Euclidean norm."""
        return self.scale if norm == "l2" else None
