"""A ball around given weights."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from driftline.domains.base import Domain
from driftline.errors import InputError

__all__ = ["BallAround"]


@dataclass(frozen=True)
class BallAround(Domain):
    """Weights at most half the diameter away from a centre, such as weights learned elsewhere.

    The bounds depend only on the diameter, which can be small around a good centre. Weights start
    at the point of the ball nearest to 0: give ``initial`` to start from the centre. Comparators
    must lie in the same ball. Rounds are played in plain Python.

    >>> BallAround([[3.0, 4.0]], diameter=2.0).project(np.zeros((1, 2)))
    array([[2.4, 3.2]])
    """

    centre: Sequence[Sequence[float]]
    diameter: float

    def __post_init__(self) -> None:
        """Refuse a diameter that is not positive and finite, and a centre that is not a matrix."""
        if not (math.isfinite(self.diameter) and self.diameter > 0.0):
            raise InputError(f"the diameter of a ball must be positive, but is {self.diameter}")
        try:
            rows = np.array(self.centre, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise InputError(f"the centre of a ball must be rows of numbers: {error}") from error
        if rows.ndim != 2 or not np.isfinite(rows).all():
            raise InputError(
                f"the centre of a ball must be rows of finite numbers, but has shape {rows.shape}"
            )
        object.__setattr__(self, "centre", tuple(map(tuple, rows.tolist())))

    @cached_property
    def _middle(self) -> np.ndarray:
        return np.array(self.centre)

    def farthest(self, weights: np.ndarray) -> float:
        """Return the distance to the point on the other side."""
        away = float(np.linalg.norm(weights - self._middle))
        return min(self.diameter, 0.5 * self.diameter + away)

    def project(self, weights: np.ndarray) -> np.ndarray:
        """Bring weights that are too far away nearer to the centre."""
        if weights.shape != self._middle.shape:
            raise InputError(
                f"weights have the shape {weights.shape}, but the centre of their ball has "
                f"{self._middle.shape}"
            )
        away = weights - self._middle
        distance, half = float(np.linalg.norm(away)), 0.5 * self.diameter
        return weights if distance <= half else self._middle + away * (half / distance)
