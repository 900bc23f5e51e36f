"""Weights that never change."""

from __future__ import annotations

import numpy.typing as npt

from driftline.comparators.piecewise import Piecewise

__all__ = ["Fixed"]


class Fixed(Piecewise):
    """The same weights in every round.

    >>> Fixed([[1.0, -1.0]]).path_length
    0.0
    """

    def __init__(self, weights: npt.ArrayLike):
        super().__init__([0], [weights])

    def scaled(self, factor: float) -> Fixed:
        """Return the comparator with all weights multiplied."""
        return Fixed(factor * self.weights[0])
