r"""The labels of the last rounds: for streams in which what comes follows from what came.

With :math:`y_{t-k}` the label of k rounds before, out of K classes, the k-th of n blocks of K
columns has one entry,

.. math:: \phi_{(k - 1) K + y_{t-k}}(x_t) = 1 / \sqrt n, \qquad k = 1, \dots, n,

and none before the first labels. A learner's bound allows inputs that depend on the past, and so
holds against comparators that see the last labels, too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from driftline.errors import InputError
from driftline.features.base import Map, Mapper
from driftline.inputs.dense import DenseRows
from driftline.inputs.rows import Rows, refuse
from driftline.inputs.sparse import SparseRows
from driftline.parts import check_whole
from driftline.state.arena import Field

__all__ = ["Lags"]

#: The code of a label that is not known.
NONE = -1


@dataclass(frozen=True)
class Lags(Map):
    """One column for each of so many classes, for each of the last labels; norm 1 at most.

    Of a row itself nothing is seen: ``Union(Standardise(), Lags(2, classes=3))`` has both. Signs
    are two classes. A class beyond these, as one that has been added, has no column. A label counts
    from the round after its own, which is when it was learned from.

    >>> rows, labels = np.zeros((4, 5)), [2, 0, 1, 1]
    >>> Lags(1, classes=3).transform(rows, labels)
    array([[0., 0., 0.],
           [0., 0., 1.],
           [1., 0., 0.],
           [0., 1., 0.]])
    """

    lags: int
    classes: int

    largest_cell = math.inf

    def __post_init__(self) -> None:
        """Refuse sizes that are none."""
        check_whole("the number of lags", self.lags, 1, 1000)
        check_whole("the number of classes", self.classes, 2, 10**5)
        if (wide := self.lags * self.classes) > 10**6:
            raise InputError(f"{self.lags} lags of {self.classes} classes have {wide} columns")

    def mapper(self) -> LagsMapper:
        """Return a mapper that has seen no rows."""
        return LagsMapper(self)

    @property
    def longest(self) -> float:
        """One entry for every lag, one over the root of their number."""
        return 1.0

    def width(self, features: int) -> int:
        """Count the classes of all lags."""
        return self.lags * self.classes

    def fields(self, features: int, sparse: bool) -> tuple[Field, ...]:
        """Keep the codes of the last labels."""
        most = self.classes - 1
        return (Field("past", (self.lags,), fill=NONE, least=NONE, most=most, whole=True),)


class LagsMapper(Mapper):
    """Remembers the last labels, the oldest first."""

    part: Lags

    @property
    def past(self) -> np.ndarray:
        """The codes of the last labels."""
        known = self.features is not None
        return self.state.astype(np.int64) if known else np.full(self.part.lags, NONE)

    def mapped(
        self, rows: Rows, start: int, stop: int, learning: np.ndarray | None
    ) -> tuple[DenseRows, np.ndarray]:
        """Map rows by the labels before each, and remember their own.

        Without learning all are mapped by the same labels. Rows that are to be remembered next have
        labels of their own, which are refused here.
        """
        self._check(rows, start, stop)
        past, state = self.past, self.begun(rows)
        if learning is None:
            if rows.labels is not None:
                self._codes(rows, start, stop)
            return self._made(np.tile(past[::-1], (stop - start, 1))), state
        lags = self.part.lags
        known = np.concatenate([past, self._codes(rows, start, stop)[learning]])
        before = np.r_[0, learning.cumsum()][:-1]  # of the labels in known, beside the lags
        made = self._made(known[before[:, np.newaxis] + np.arange(lags - 1, -1, -1)])
        return made, known[len(known) - lags :].astype(np.float64)

    def _check(self, rows: Rows, start: int, stop: int) -> None:
        """Refuse rows that are not like those before, or not finite."""
        if isinstance(rows, SparseRows):
            starts = rows.starts[start : stop + 1]
            good = np.isfinite(rows.values[starts[0] : starts[-1]])
            if not good.all():
                place = starts[0] + int(np.argmin(good))
                refuse(rows, start + int(np.searchsorted(starts, place, side="right")) - 1)
            return
        good = np.isfinite(rows.arrays(start, stop)[0]).all(axis=1)
        if not good.all():
            refuse(rows, start + int(np.argmin(good)))

    def _codes(self, rows: Rows, start: int, stop: int) -> np.ndarray:
        """Return the labels of rows, signs as 0 and 1."""
        if rows.labels is None:
            raise InputError(f"{self.part!r} needs the labels of the rows that it is to remember")
        labels = np.asarray(rows.labels)
        if labels.dtype.kind not in "iub" or labels.size != rows.rounds:
            raise InputError(
                f"{self.part!r} is for labels that are classes or signs, one a round, but "
                f"{rows.rounds} rounds have labels of shape {labels.shape} and type {labels.dtype}"
            )
        codes = np.maximum(labels.ravel()[start:stop].astype(np.int64), 0)
        return np.where(codes < self.part.classes, codes, NONE)

    def _made(self, codes: np.ndarray) -> DenseRows:
        """Return rows with an entry for every code, the last label's first."""
        out = np.zeros((len(codes), self.part.lags, self.part.classes))
        t, lag = np.nonzero(codes != NONE)
        out[t, lag, codes[t, lag]] = 1.0 / math.sqrt(self.part.lags)
        return DenseRows(out.reshape(len(codes), self.part.width(0)))
