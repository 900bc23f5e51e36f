"""A ball around the origin."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from driftline.domains.base import Domain
from driftline.errors import InputError

__all__ = ["Ball"]


@dataclass(frozen=True)
class Ball(Domain):
    """Weights of Frobenius norm at most half the diameter.

    >>> Ball(diameter=2.0).project(np.array([[3.0, 4.0]]))
    array([[0.6, 0.8]])
    """

    diameter: float

    def __post_init__(self) -> None:
        """Refuse a diameter that is not positive and finite."""
        if not (math.isfinite(self.diameter) and self.diameter > 0.0):
            raise InputError(f"the diameter of a ball must be positive, but is {self.diameter}")

    @property
    def radius(self) -> float:
        """Half the diameter."""
        return 0.5 * self.diameter

    def farthest(self, weights: np.ndarray) -> float:
        """Return the distance to the point on the other side."""
        return min(self.diameter, self.radius + float(np.linalg.norm(weights)))

    def project(self, weights: np.ndarray) -> np.ndarray:
        """Shrink weights that are too long."""
        norm = float(np.linalg.norm(weights))
        return weights if norm <= self.radius else weights * (self.radius / norm)
