"""A sample of the rows of a run, spread evenly over it, in bounded memory."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from driftline.errors import InputError
from driftline.typing import Json

__all__ = ["RowSample"]

#: The most rows that are kept, and the most numbers; of so many columns that fewer than ``LEAST``
#: rows would be kept, none are.
MOST, CELLS, LEAST = 2048, 2**18, 256


class RowSample:
    """One row, drawn at random, from every block of equally many rounds.

    A round has a random number of its own, by which the row of a block is chosen: the smallest
    wins. When there are too many blocks, neighbours are merged in pairs, and the smaller number of
    both wins again. So memory is bounded for any run, every row of a block has the same chance, and
    what is kept depends on the rounds alone, not on the batches they came in.

    >>> sample, days = RowSample(columns=1), np.arange(5000.0)[:, np.newaxis]
    >>> sample.add(5000, lambda places: days[places])
    >>> sample.span, len(sample.values)
    (4, 1250)
    >>> bool((sample.values[:, 0] // 4 == np.arange(1250)).all())
    True
    """

    def __init__(self, columns: int):
        rows = 1 << (CELLS // max(columns, 1)).bit_length() - 1  # a power of two
        self.columns, self.most = columns, min(rows, MOST) if rows >= LEAST else 0
        self.span, self.rounds = 1, 0
        self.values = np.zeros((0, columns))
        self._keys = np.zeros(0, dtype=np.uint64)

    def add(self, count: int, rows: Callable[[np.ndarray], np.ndarray]) -> None:
        """Add rounds; ``rows`` returns the values at some of their places, a row each."""
        start, self.rounds = self.rounds, self.rounds + count
        if not self.most or not count:
            return
        while self.rounds > self.most * self.span:
            self._halve()
        places = start + np.arange(count)
        keys, blocks = _mixed(places), places // self.span
        starts = np.flatnonzero(np.r_[True, np.diff(blocks) > 0])
        least = np.minimum.reduceat(keys, starts)
        chosen = np.flatnonzero(keys == np.repeat(least, np.diff(np.r_[starts, count])))
        if blocks[0] < len(self._keys):  # a block goes on
            if self._keys[-1] < least[0]:
                chosen, least = chosen[1:], least[1:]
            else:
                self.values, self._keys = self.values[:-1], self._keys[:-1]
        if len(chosen):
            self.values = np.vstack([self.values, rows(chosen)])
            self._keys = np.r_[self._keys, least]

    def _halve(self) -> None:
        even, odd = np.arange(0, len(self._keys), 2), np.arange(1, len(self._keys), 2)
        kept = even.copy()
        later = self._keys[odd] < self._keys[even[: len(odd)]]
        kept[: len(odd)][later] = odd[later]
        self.values, self._keys, self.span = self.values[kept], self._keys[kept], 2 * self.span

    def to_saved(self) -> tuple[Json, dict[str, np.ndarray]]:
        """Return all as plain data and arrays."""
        arrays = {"values": self.values, "keys": self._keys.view(np.int64)}
        return {"span": self.span, "rounds": self.rounds}, arrays

    def resume(self, saved: Json, values: np.ndarray, keys: np.ndarray) -> None:
        """Go on from what :meth:`to_saved` returned."""
        span, rounds = int(saved["span"]), int(saved["rounds"])
        good = span > 0 and rounds >= 0
        count = -(-rounds // span) if good and self.most else 0
        good = good and values.shape == (count, self.columns) and keys.shape == (count,)
        good = good and values.dtype == np.float64 and keys.dtype == np.int64
        if not good or count > self.most or not np.isfinite(values).all():
            raise InputError(f"{rounds} rounds cannot have a sample of shape {values.shape}")
        self.span, self.rounds = span, rounds
        self.values, self._keys = values, keys.view(np.uint64)


def _mixed(places: np.ndarray) -> np.ndarray:
    """Return a random number for each place, all different.

    These are the outputs of SplitMix64 (Steele, Lea and Flood, 2014), a bijection.
    """
    made = (places.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    made = (made ^ (made >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    made = (made ^ (made >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return made ^ (made >> np.uint64(31))
