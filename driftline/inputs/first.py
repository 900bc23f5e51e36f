"""The first value of every row, which some members read, and rows without it for all others."""

from __future__ import annotations

from typing import Any

import numpy as np

from driftline.errors import InputError
from driftline.inputs.dense import DenseRows
from driftline.inputs.rows import Rows, refuse, rows_of
from driftline.inputs.sparse import SparseRows
from driftline.inputs.taking import TakenRows
from driftline.typing import Inputs

__all__ = ["first_values", "rest_of", "without_first"]


def first_values(rows: Rows, start: int, stop: int) -> np.ndarray:
    """Return the first value of some rows.

    >>> first_values(DenseRows(np.array([[2.0, 5.0], [0.0, 6.0]])), 0, 2)
    array([2., 0.])
    """
    if isinstance(rows, DenseRows):
        if rows.rounds == 1:
            return np.array(rows.array[:, 0], dtype=np.float64)
        source: Any = rows
        if isinstance(rows, TakenRows):
            return np.array(source._source[source._index[start:stop], 0], dtype=np.float64)
        return np.array(rows.array[start:stop, 0], dtype=np.float64)
    if not isinstance(rows, SparseRows):
        raise InputError("only plain rows have a first value, not sequences or queries")
    made, begin = np.zeros(stop - start), int(rows.starts[start])
    (places,) = np.nonzero(rows.columns[begin : rows.starts[stop]] == 0)
    owners = np.searchsorted(rows.starts[start : stop + 1], places + begin, side="right") - 1
    np.add.at(made, owners, rows.values[places + begin])
    return made


def without_first(rows: Rows, start: int, stop: int) -> Rows:
    """Return some rows without their first values, which must be finite: dense ones are a view."""
    first = first_values(rows, start, stop)
    if not np.isfinite(first).all():
        refuse(rows, start + int(np.flatnonzero(~np.isfinite(first))[0]))
    made: DenseRows | SparseRows
    if isinstance(rows, TakenRows):
        made = TakenRows(rows._source[:, 1:], rows._index[start:stop])
    elif isinstance(rows, DenseRows):
        made = DenseRows(rows.array[start:stop, 1:])
    else:
        assert isinstance(rows, SparseRows)
        begin, end = int(rows.starts[start]), int(rows.starts[stop])
        kept = rows.columns[begin:end] != 0
        counts = np.r_[0, np.cumsum(kept)].astype(rows.starts.dtype)
        starts = counts[rows.starts[start : stop + 1] - begin]
        values, columns = rows.values[begin:end][kept], rows.columns[begin:end][kept] - 1
        made = SparseRows.made(values, columns, starts, rows.features - 1, rows.kind)
    made.before = rows.before + start
    made.labels = None if rows.labels is None else rows.labels[start:stop]
    made.asked = None if rows.asked is None else rows.asked[start:stop]
    return made


def rest_of(inputs: Inputs) -> Inputs:
    """Return inputs without their first values, as an array or a matrix."""
    rows = rows_of(inputs)
    made: Any = without_first(rows, 0, rows.rounds)
    return made.array if isinstance(made, DenseRows) else made.matrix
