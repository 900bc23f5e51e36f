r"""What every regularizer offers.

On a polytope C, a regularizer :math:`\Omega` has the conjugate
:math:`\Omega^*(\theta) = \max_{\mu \in C} \langle \theta, \mu \rangle - \Omega(\mu)`, and the
maximiser is the *mean prediction*, the gradient of the conjugate.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from driftline.errors import InputError
from driftline.parts import Part
from driftline.polytopes import Polytope

__all__ = ["Regularizer"]


class Regularizer(Part):
    """Base of all regularizers: a positive ``scale`` times a strictly convex function."""

    scale: float

    #: Whether it is the same under every permutation of coordinates that its polytope allows.
    symmetric: ClassVar[bool] = False

    def value(self, mu: np.ndarray, hull: Polytope) -> float:
        """Return the regularizer at a point of the polytope."""
        raise InputError(f"{type(self).__name__} does not define value")

    def mean_prediction(self, theta: np.ndarray, hull: Polytope) -> np.ndarray:
        """Return the point of the polytope that is best for the scores."""
        raise InputError(f"{type(self).__name__} does not define mean_prediction")

    def solve(self, theta: np.ndarray, hull: Polytope) -> tuple[np.ndarray, float]:
        """Return the mean prediction and how far its value may be from the best."""
        return self.mean_prediction(theta, hull), 0.0

    def conjugate(self, theta: np.ndarray, hull: Polytope) -> float:
        """Return the value of the best point."""
        mu = self.mean_prediction(theta, hull)
        return float(np.asarray(theta) @ mu) - self.value(mu, hull)

    def loss(self, theta: np.ndarray, target: np.ndarray, mu: np.ndarray, hull: Polytope) -> float:
        """Return conjugate(theta) + value(target) - <theta, target>, given the best point."""
        return self.value(target, hull) - self.value(mu, hull) + float(theta @ (mu - target))

    def strong_convexity(self, hull: Polytope, norm: str) -> float | None:
        """Return the modulus of strong convexity in the norm ``l1`` or ``l2``, if known."""
        return None

    def _check_scale(self) -> None:
        if not (np.isfinite(self.scale) and self.scale > 0.0):
            raise InputError(f"the scale of a regularizer must be positive, but is {self.scale}")
