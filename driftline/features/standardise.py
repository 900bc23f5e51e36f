"""Robust scaling as a map."""

from __future__ import annotations

import math
from dataclasses import dataclass

from driftline.errors import InputError
from driftline.features.base import Map
from driftline.features.standardiser import Standardiser

__all__ = ["Standardise"]


@dataclass(frozen=True, eq=False)
class Standardise(Map):
    """Every feature by its distance from a robust location, in deviations, clipped.

    See :class:`Standardiser`, which has its state. ``constant`` is whether rows get one more
    feature that is the same in all rows, for an intercept, or the value of that feature.

    >>> import numpy as np
    >>> Standardise(constant=False).transform(np.array([[1.0], [3.0], [1e9]])).round(2).tolist()
    [[0.0], [1.0], [1.41]]
    """

    constant: bool | float = True

    several = True
    same_entries = True

    def __post_init__(self) -> None:
        """Refuse a constant that is neither a flag nor a valid size."""
        if not isinstance(self.constant, (bool, float, int)):
            raise InputError(f"constant must be True, False or a size, not {self.constant!r:.80}")
        Standardiser(self.constant)
        if not isinstance(self.constant, bool):
            object.__setattr__(self, "constant", float(self.constant))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Standardise) and self._told() == other._told()

    def __hash__(self) -> int:
        return hash((Standardise, self._told()))

    def _told(self) -> tuple[bool, float]:
        """Return the constant in a form in which the flag True differs from the size 1."""
        return isinstance(self.constant, bool), float(self.constant)

    def mapper(self) -> Standardiser:
        """Return a mapper that has seen no rows."""
        return Standardiser(self.constant)

    def width(self, features: int) -> int:
        """Return one more than the features with a constant, else the same."""
        return features + (self.constant is not False)

    def bears(self, features: int) -> float:
        """Return infinity: no finite row is refused."""
        return math.inf

    def norm(self, features: int) -> float:
        """Return the norm of cells of 3, divided by the root of their number, and the constant."""
        if self.constant is True:
            return math.sqrt(9.0 + 1.0 / features)
        return math.sqrt(9.0 + float(self.constant) ** 2)
