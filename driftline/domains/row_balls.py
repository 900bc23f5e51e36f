"""A ball for every row of weights."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from driftline.domains.base import Domain
from driftline.errors import InputError

__all__ = ["RowBalls"]


@dataclass(frozen=True)
class RowBalls(Domain):
    r"""The weights of every score in a ball of its own, around the origin.

    With ``rows`` balls of diameter d the whole has the diameter :math:`d \sqrt{\text{rows}}`. A
    class that needs long weights does not take room from the others, as it does in one ball for
    all. Rounds are played in plain Python.

    >>> balls = RowBalls(rows=2, row_diameter=2.0)
    >>> balls.project(np.array([[3.0, 4.0], [0.0, 0.5]]))
    array([[0.6, 0.8],
           [0. , 0.5]])
    """

    rows: int
    row_diameter: float

    def __post_init__(self) -> None:
        """Refuse fewer than one row, and a diameter that is not positive and finite."""
        if int(self.rows) != self.rows or self.rows < 1:
            raise InputError(f"there must be 1 row of weights or more, not {self.rows!r}")
        if not (math.isfinite(self.row_diameter) and self.row_diameter > 0.0):
            raise InputError(f"the diameter of a ball must be positive, but is {self.row_diameter}")

    @property
    def diameter(self) -> float:
        """The diameter of the product of all balls."""
        return self.row_diameter * math.sqrt(self.rows)

    def farthest(self, weights: np.ndarray) -> float:
        """Return the distance to the points on the other sides."""
        away = 0.5 * self.row_diameter + np.linalg.norm(weights, axis=1)
        return float(np.linalg.norm(np.minimum(away, self.row_diameter)))

    def project(self, weights: np.ndarray) -> np.ndarray:
        """Shrink every row that is too long."""
        if weights.ndim != 2 or len(weights) != self.rows:
            raise InputError(f"weights have the shape {weights.shape}, but {self.rows} balls")
        norms = np.linalg.norm(weights, axis=1, keepdims=True)
        half = 0.5 * self.row_diameter
        return np.where(norms > half, weights * (half / np.maximum(norms, half)), weights)
