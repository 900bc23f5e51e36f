"""Inputs of any scale, standardised as they come."""

from __future__ import annotations

from typing import Any

import numpy as np

from driftline.errors import InputError
from driftline.models.scaling import scale_sparse_32, scale_sparse_64, standardise
from driftline.models.sparse import SparseRows

__all__ = ["Standardiser"]


class Standardiser:
    """Centres and scales every feature by what has been seen of it, and caps the norm at 1.

    A row is divided by the root of the number of features, or by its own norm if that is larger.
    Sparse rows are not centred: an entry is divided by the root mean square of all entries of
    its feature so far, a row by that of norms so far, or by its own norm if that is larger.
    With ``constant`` one feature more is the same in all rows, and as large as others are on
    average: an intercept that is not learned faster than they are.

    A row counts itself, since an input is seen before it is predicted for; nothing later does.
    Means move with every row, deviations whenever a hundredth more has been seen. The same rows
    in pieces give the same numbers. Bounds then hold for the scaled inputs, and for
    comparators that act on them: what a weight means may change as scales are learned.

    >>> Standardiser(constant=False).transform(np.array([[1.0, 900.0], [3.0, 100.0]]))
    array([[ 0.        ,  0.        ],
           [ 0.70710678, -0.70710678]])
    """

    def __init__(self, constant: bool = True) -> None:
        self.constant = constant
        #: The number of features, None before the first row; and whether rows are sparse.
        self.features: int | None = None
        self.sparse = False
        self.state = np.zeros(0)

    def transform(self, inputs: Any) -> Any:
        """Return rows scaled by what was seen up to each of them, and remember them."""
        if hasattr(inputs, "tocsr"):
            return self._sparse(SparseRows(inputs))
        rows = np.ascontiguousarray(inputs, dtype=np.float64)
        if rows.ndim != 2:
            raise InputError(f"inputs must have two dimensions, not {rows.ndim}")
        self._meet(rows.shape[1], sparse=False)
        out = np.empty((len(rows), rows.shape[1] + self.constant))
        state = self.state.copy()
        good = standardise(rows, state, out)
        if good < len(rows):
            self._refuse(good, rows[good])
        self.state = state
        return out

    def copy(self) -> Standardiser:
        """Return one that has seen the same rows."""
        other = Standardiser(self.constant)
        other.features, other.sparse, other.state = self.features, self.sparse, self.state.copy()
        return other

    def _meet(self, features: int, sparse: bool) -> None:
        """Begin with the first rows, and refuse others that are not like them."""
        if self.features is None:
            self.features, self.sparse = features, sparse
            self.state = np.zeros(2 + (2 if sparse else 3) * features)
        if self.features != features:
            raise InputError(
                f"inputs have {features} features, but {self.features} were seen before"
            )
        if self.sparse != sparse:
            kinds = ("dense", "sparse")
            raise InputError(
                f"inputs are {kinds[sparse]}, but those before were {kinds[self.sparse]}: they "
                "are scaled in different ways"
            )

    def _sparse(self, rows: SparseRows) -> Any:
        if (bad := rows.first_bad_row()) is not None:
            self._refuse(bad, rows.entries(bad)[1])
        self._meet(rows.features, sparse=True)
        values, columns, starts = rows.arrays(0, rows.rounds)
        more = rows.rounds if self.constant else 0
        out = np.empty(starts[-1] - starts[0] + more)
        out_columns, out_starts = np.empty(out.size, columns.dtype), np.empty_like(starts)
        scale = scale_sparse_32 if columns.dtype == np.int32 else scale_sparse_64
        constant = rows.features if self.constant else 0
        scale(values, columns, starts, self.state, constant, out, out_columns, out_starts)
        shape = (rows.rounds, rows.features + self.constant)
        return type(rows.matrix)((out, out_columns, out_starts), shape=shape)

    def _refuse(self, row: int, entries: np.ndarray) -> None:
        bad = entries[~np.isfinite(entries)]
        entry = bad[0] if bad.size else np.abs(entries).max()
        raise InputError(f"row {row} has the entry {entry}: expected finite numbers")
