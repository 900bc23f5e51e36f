"""The numbers of tickets that were asked for and not told yet."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Sequence

import numpy as np

__all__ = ["Outstanding"]

#: Up to so many numbers are removed one by one: each of them moves all that come after it.
FEW = 16


class Outstanding:
    """Numbers in the order in which they were asked for, 8 bytes each.

    >>> waiting = Outstanding()
    >>> for number in (3, 4, 7):
    ...     waiting.add(number)
    >>> waiting.remove(4)
    >>> len(waiting), 4 in waiting, waiting.to_array()
    (2, False, array([3, 7]))
    """

    def __init__(self, numbers: np.ndarray | None = None):
        self._numbers = array("q")
        if numbers is not None:
            self._numbers.frombytes(np.ascontiguousarray(numbers, dtype=np.int64).tobytes())

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._numbers)

    def __contains__(self, number: int) -> bool:
        """Say whether a ticket is outstanding."""
        place = bisect_left(self._numbers, number)
        return place < len(self._numbers) and self._numbers[place] == number

    def has_all(self, numbers: np.ndarray) -> bool:
        """Say whether all of several tickets are outstanding."""
        if not len(self._numbers):
            return not len(numbers)
        known = np.frombuffer(self._numbers, dtype=np.int64)
        places = np.minimum(np.searchsorted(known, numbers), len(known) - 1)
        return bool((known[places] == numbers).all())

    def add(self, number: int) -> None:
        """Add a number, which is larger than all others."""
        self._numbers.append(number)

    def add_next(self, first: int, count: int) -> None:
        """Add consecutive numbers, which are larger than all others."""
        self._numbers.extend(range(first, first + count))

    def remove(self, number: int) -> None:
        """Remove a number that is there."""
        del self._numbers[bisect_left(self._numbers, number)]

    def remove_from(self, number: int) -> None:
        """Remove a number and all larger ones."""
        del self._numbers[bisect_left(self._numbers, number) :]

    def remove_before(self, number: int) -> int:
        """Remove all smaller numbers; return how many."""
        place = bisect_left(self._numbers, number)
        del self._numbers[:place]
        return place

    def discard(self, numbers: Sequence[int]) -> None:
        """Remove those of some numbers that are there, each at once or not at all."""
        if len(numbers) > FEW:
            self._numbers = self.without(np.array(numbers, dtype=np.int64))._numbers
            return
        for number in numbers:
            if number in self:
                self.remove(number)

    def without(self, numbers: np.ndarray) -> Outstanding:
        """Return all but some numbers; those that are not there do not matter."""
        if not len(self._numbers):
            return Outstanding()
        known = np.frombuffer(self._numbers, dtype=np.int64)
        places = np.minimum(np.searchsorted(known, numbers), len(known) - 1)
        keep = np.ones(len(known), dtype=bool)
        keep[places[known[places] == numbers]] = False
        return Outstanding(known[keep])

    def copy(self) -> Outstanding:
        """Return an independent copy."""
        made = Outstanding()
        made._numbers = self._numbers[:]
        return made

    def to_array(self) -> np.ndarray:
        """Return a copy."""
        return np.array(self._numbers, dtype=np.int64)
