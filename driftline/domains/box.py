"""A lower and an upper bound for every weight."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from driftline.domains.base import Domain
from driftline.errors import InputError

__all__ = ["Box"]


@dataclass(frozen=True)
class Box(Domain):
    """Every weight between its own lowest and highest value, such as 0 and 1.

    Both are rows of numbers, in the shape of the weights. The diameter is the length of the
    diagonal, and grows with the root of the number of weights: a ball is the better domain unless
    signs or sizes of single weights are known. Rounds are played in plain Python.

    >>> box = Box(lowest=[[0.0, -1.0]], highest=[[2.0, 1.0]])
    >>> box.project(np.array([[-3.0, 0.5]])), round(box.diameter, 3)
    (array([[0. , 0.5]]), 2.828)
    """

    lowest: Sequence[Sequence[float]]
    highest: Sequence[Sequence[float]]

    def __post_init__(self) -> None:
        """Refuse bounds that are not finite, or that leave no room between them."""
        try:
            low, high = (np.array(rows, dtype=np.float64) for rows in (self.lowest, self.highest))
        except (TypeError, ValueError) as error:
            raise InputError(f"the bounds of a box must be rows of numbers: {error}") from error
        if low.ndim != 2 or low.shape != high.shape or not low.size:
            raise InputError(
                "the bounds of a box must be rows of numbers of one shape, but theirs are "
                f"{low.shape} and {high.shape}"
            )
        if not (np.isfinite(low).all() and np.isfinite(high).all() and (low < high).all()):
            raise InputError("in a box every lowest value must be below the highest, and finite")
        object.__setattr__(self, "lowest", tuple(map(tuple, low.tolist())))
        object.__setattr__(self, "highest", tuple(map(tuple, high.tolist())))

    @cached_property
    def _bounds(self) -> tuple[np.ndarray, np.ndarray]:
        return np.array(self.lowest), np.array(self.highest)

    @property
    def diameter(self) -> float:
        """The length of the diagonal."""
        low, high = self._bounds
        return float(np.linalg.norm(high - low))

    def farthest(self, weights: np.ndarray) -> float:
        """Return the distance to the farthest corner."""
        low, high = self._bounds
        return float(np.linalg.norm(np.maximum(high - weights, weights - low)))

    def project(self, weights: np.ndarray) -> np.ndarray:
        """Clip every weight to its bounds."""
        low, high = self._bounds
        if weights.shape != low.shape:
            raise InputError(
                f"weights have the shape {weights.shape}, but their box has {low.shape}"
            )
        return np.clip(weights, low, high)
