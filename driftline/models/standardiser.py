"""Inputs of any scale, standardised as they come."""

from __future__ import annotations

from typing import Any

import numpy as np

from driftline.errors import InputError
from driftline.models.dense import DenseRows
from driftline.models.looking import look_dense, look_sparse
from driftline.models.rows import refuse, rows_of
from driftline.models.scaling import (
    scale_sparse_32,
    scale_sparse_64,
    standardise,
    standardise_single,
)
from driftline.models.sparse import SparseRows

__all__ = ["Standardiser"]

#: Entries of sparse rows must be smaller, so that no sum of their squares overflows.
LARGEST = 1e150


class Standardiser:
    """Centres and scales every feature by what has been seen of it, and caps the norm at 1.

    A row is divided by the root of the number of features, or by its own norm if that is larger.
    Sparse rows are not centred: an entry is divided by the root mean square of all entries of
    its feature so far, a row by that of norms so far, or by its own norm if that is larger.
    With ``constant`` one feature more is the same in all rows, and as large as others are on
    average: an intercept that is not learned faster than they are. The cap does not count it: with
    d features and the constant, norms are at most the root of 1 + 1/d, of sparse rows that of 2.
    ``dtype`` is that of scaled
    dense rows; what is remembered is in double precision.

    A row counts itself, since an input is seen before it is predicted for; nothing later does.
    Means move with every row, deviations whenever a hundredth more has been seen. The same rows
    in pieces give the same numbers. Bounds then hold for the scaled inputs, and for
    comparators that act on them: what a weight means may change as scales are learned.

    >>> Standardiser(constant=False).transform(np.array([[1.0, 900.0], [3.0, 100.0]]))
    array([[ 0.        ,  0.        ],
           [ 0.70710678, -0.70710678]])
    """

    def __init__(self, constant: bool = True, dtype: Any = np.float64) -> None:
        self.constant, self.dtype = constant, np.dtype(dtype)
        if self.dtype not in (np.float64, np.float32):
            raise InputError(f"scaled rows are float64 or float32, not {self.dtype}")
        #: The number of features, None before the first row; and whether rows are sparse.
        self.features: int | None = None
        self.sparse = False
        self.state = np.zeros(0)
        self._buffer = np.empty((0, 0))

    def transform(self, inputs: Any) -> Any:
        """Return rows scaled by what was seen up to each of them, and remember them."""
        rows = rows_of(inputs)
        assert isinstance(rows, (DenseRows, SparseRows))
        scaled = self.piece(rows, 0, rows.rounds)
        return scaled.matrix if isinstance(scaled, SparseRows) else scaled.array.copy()

    def piece(self, rows: Any, start: int, stop: int) -> DenseRows | SparseRows:
        """Scale rows ``start`` to ``stop``, and remember them.

        Dense rows come in a buffer that the next piece is written to.
        """
        if isinstance(rows, SparseRows):
            return self._sparse(rows, start, stop)
        self._meet(rows.features, sparse=False)
        shape = (stop - start, rows.features + self.constant)
        if self._buffer.shape[0] < shape[0] or self._buffer.shape[1] != shape[1]:
            self._buffer = np.empty(shape, self.dtype)
        state, out = self.state.copy(), self._buffer[: shape[0]]
        scale = standardise if self.dtype == np.float64 else standardise_single
        good = scale(*rows.arrays(start, stop), state, out)
        if good < stop - start:
            refuse(rows, start + good)
        self.state = state
        return DenseRows(out)

    def look(self, inputs: Any) -> DenseRows | SparseRows:
        """Scale rows by what was seen before them all, and remember nothing.

        So a row does not count itself here, as it does when it is played: rows that are looked at
        together are scaled alike, whatever their order. An entry of a sparse row whose feature was
        never seen counts as 1 or -1.

        >>> scaling = Standardiser(constant=False)
        >>> _ = scaling.transform(np.array([[1.0, 900.0], [3.0, 100.0]]))
        >>> scaling.look(np.array([[3.0, 500.0]])).array
        array([[0.70710678, 0.        ]])
        """
        rows = rows_of(inputs)
        assert isinstance(rows, (DenseRows, SparseRows))
        if self.features is None:
            raise InputError("nothing was seen yet that rows could be scaled by")
        self._meet(rows.features, isinstance(rows, SparseRows))
        with np.errstate(over="ignore", invalid="ignore"):
            if isinstance(rows, SparseRows):
                return look_sparse(rows, self.state, self.constant)
            return look_dense(rows, self.state, self.constant, self.dtype)

    def config(self) -> dict[str, Any]:
        """Return all but the state as plain data."""
        names = ("constant", "features", "sparse")
        return {name: getattr(self, name) for name in names} | {"dtype": self.dtype.name}

    @classmethod
    def from_config(cls, config: dict[str, Any], state: np.ndarray) -> Standardiser:
        """Return one as :meth:`config` and its state were taken from."""
        features, sparse = config["features"], bool(config["sparse"])
        size = 0 if features is None else 2 + (2 if sparse else 3) * int(features)
        if state.shape != (size,) or not np.isfinite(state).all():
            raise InputError(
                f"a scaling of {features} features has {size} finite numbers, but these are "
                f"{state.size}"
            )
        made = cls(bool(config["constant"]), config["dtype"])
        if features is not None:
            made._meet(int(features), sparse)
            made.state[:] = state
        return made

    def copy(self) -> Standardiser:
        """Return one that has seen the same rows."""
        other = Standardiser(self.constant, self.dtype)
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

    def _sparse(self, rows: SparseRows, start: int, stop: int) -> SparseRows:
        values, columns, starts = rows.arrays(start, stop)
        large = ~(np.abs(values[starts[0] : starts[-1]]) < LARGEST)
        if large.any():
            first = int(np.argmax(large)) + int(starts[0])
            refuse(rows, start + int(np.searchsorted(starts, first, side="right")) - 1)
        self._meet(rows.features, sparse=True)
        more = stop - start if self.constant else 0
        out = np.empty(starts[-1] - starts[0] + more)
        out_columns, out_starts = np.empty(out.size, columns.dtype), np.empty_like(starts)
        scale = scale_sparse_32 if columns.dtype == np.int32 else scale_sparse_64
        constant = rows.features if self.constant else 0
        state = self.state.copy()
        good = scale(values, columns, starts, state, constant, out, out_columns, out_starts)
        if good < stop - start:
            raise InputError(
                f"sparse inputs were changed while they were read, at row {start + good}"
            )
        self.state = state
        features = rows.features + self.constant
        return SparseRows.made(out, out_columns, out_starts, features, rows.kind)
