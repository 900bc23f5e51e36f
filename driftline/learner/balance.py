r"""Weights of rows by how rare their class has been so far.

The row of round t, of class k, has the weight

.. math:: h = \min\Big( \frac{n}{K n_k}, \, 100 \Big),

with :math:`n_k` the rows of class k up to and with this one, n all rows, and K the classes seen.
So every class counts alike in the long run, and the mean weight is about 1. No label of a later row
is needed, and rows in pieces of any size have the same weights.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from driftline.errors import InputError

__all__ = ["Balance"]

#: The largest weight of a row.
MOST = 100.0


@dataclass(frozen=True, eq=False)
class Balance:
    """How many rows of every class there were: a value, which :meth:`weigh` replaces.

    >>> weights, after = Balance().weigh(np.array([0, 0, 0, 1]))
    >>> weights, after.counts
    (array([1., 1., 1., 2.]), array([3, 1]))
    """

    counts: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    def weigh(self, codes: npt.ArrayLike) -> tuple[np.ndarray, Balance]:
        """Return the weights of rows with these codes of classes, and the counts after them."""
        given = np.asarray(codes, dtype=np.int64).ravel()
        size = max(len(self.counts), 1 + int(given.max(initial=-1)))
        before = np.pad(self.counts, (0, size - len(self.counts)))
        own, classes = np.empty(len(given)), np.zeros(len(given))
        for k in np.unique(given):
            here = given == k
            own[here] = before[k] + np.arange(1, 1 + np.count_nonzero(here))
            if not before[k]:
                classes[np.argmax(here)] = 1.0
        seen = before.sum() + np.arange(1, 1 + len(given))
        classes = np.count_nonzero(before) + classes.cumsum()
        after = before + np.bincount(given, minlength=size)
        return np.minimum(seen / (classes * own), MOST), Balance(after)

    def to_plain(self) -> list[int]:
        """Return the counts as plain data."""
        made: list[int] = self.counts.tolist()
        return made

    @classmethod
    def from_plain(cls, plain: object) -> Balance:
        """Return the balance from what :meth:`to_plain` returned, if it is valid."""
        good = isinstance(plain, list) and all(type(n) is int and n >= 0 for n in plain)
        if not good:
            raise InputError(f"counts of classes are whole numbers of 0 or more, not {plain!r:.80}")
        return cls(np.array(plain, dtype=np.int64))
