"""Robust scaling as a map."""

from __future__ import annotations

import math
from dataclasses import dataclass

from driftline.errors import InputError
from driftline.features.base import Map
from driftline.features.standardiser import Standardiser

__all__ = ["Standardise"]


@dataclass(frozen=True)
class Standardise(Map):
    """Every feature by its distance from a robust location, in deviations, clipped.

    See :class:`Standardiser`, which carries its state. ``constant`` is whether one feature more is
    the same in all rows, for an intercept, or its size.

    >>> import numpy as np
    >>> Standardise(constant=False).transform(np.array([[1.0], [3.0], [1e9]])).round(2).tolist()
    [[0.0], [1.0], [1.41]]
    """

    constant: bool | float = True

    def __post_init__(self) -> None:
        """Refuse a constant that is none."""
        Standardiser(self.constant)
        if not isinstance(self.constant, (bool, float, int)):
            raise InputError(f"constant must be True, False or a size, not {self.constant!r}")

    def mapper(self) -> Standardiser:
        """Return one that has seen nothing."""
        return Standardiser(self.constant)

    def width(self, features: int) -> int:
        """One more with a constant."""
        return features + (self.constant is not False)

    def norm(self, features: int) -> float:
        """Cells are 3 at most, and divided by the root of their number."""
        if self.constant is True:
            return math.sqrt(9.0 + 1.0 / features)
        return math.sqrt(9.0 + float(self.constant) ** 2)
