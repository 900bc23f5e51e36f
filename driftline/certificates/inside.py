"""A comparator projected on the domain of a learner."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from driftline.comparators.checking import Comparator
from driftline.domains import Domain

__all__ = ["Inside"]


class Inside:
    """A comparator's weights, projected on a domain; ``shrunk`` says whether any were outside.

    Projections bring weights no farther apart, so that the path does not become longer.

    >>> from driftline.comparators import Fixed
    >>> from driftline.domains import Ball
    >>> inside = Inside(Fixed([[3.0, 4.0]]), Ball(diameter=2.0))
    >>> list(inside.pieces(0, 9)), inside.shrunk
    ([(array([[0.6, 0.8]]), 9)], True)
    """

    def __init__(self, comparator: Comparator, domain: Domain):
        self.comparator, self.domain = comparator, domain
        self.shrunk = False

    def pieces(self, start: int, stop: int) -> Iterator[tuple[np.ndarray, int]]:
        """Yield the weights of rounds ``start`` to ``stop``, each with the round it ends before."""
        for weights, end in self.comparator.pieces(start, stop):
            nearest = self.domain.project(weights)
            away, norm = float(np.linalg.norm(nearest - weights)), float(np.linalg.norm(weights))
            self.shrunk = self.shrunk or away > 1e-9 * max(1.0, norm)
            yield nearest, end
