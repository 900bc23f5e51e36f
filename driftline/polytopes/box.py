"""What a cube and an order simplex have in common: two bounds for every coordinate."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from driftline.polytopes.base import Polytope

__all__ = ["Box"]


@dataclass(frozen=True)
class Box(Polytope):
    """Base of polytopes whose vertices have entries ``low`` and ``high`` only."""

    dim: int
    low: float = -1.0
    high: float = 1.0

    @property
    def equal_norms(self) -> bool:
        """Whether the bounds are symmetric around 0."""
        return self.low == -self.high

    @property
    def coordinatewise(self) -> bool:
        """Whether the bounds are symmetric around 0."""
        return self.equal_norms

    @property
    def params(self) -> tuple[float, ...]:
        """The bounds."""
        return (self.low, self.high)

    def chances(self, point: np.ndarray) -> np.ndarray:
        """Return the share of the upper bound in every coordinate."""
        return (self.check(point) - self.low) / (self.high - self.low)
