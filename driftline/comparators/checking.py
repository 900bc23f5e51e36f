"""What counts as a comparator."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import numpy as np

from driftline.errors import InputError

__all__ = ["Comparator", "check_comparator"]


class Comparator(Protocol):
    """Weights for every round, to measure a learner against."""

    def pieces(self, start: int, stop: int) -> Iterator[tuple[np.ndarray, int]]:
        """Yield the weights of rounds ``start`` to ``stop``, each with the round it ends before."""


def check_comparator(given: object) -> None:
    """Refuse an object that is not a comparator."""
    if isinstance(given, type) or not callable(getattr(given, "pieces", None)):
        raise InputError(
            f"expected a comparator, such as dl.comparators.Fixed(weights), but got {given!r:.80}"
        )
