"""The first value of every row, which some members read, and rows without it for all others."""

from __future__ import annotations

import numpy as np

from driftline.errors import InputError
from driftline.inputs.dense import DenseRows
from driftline.inputs.rows import Rows, refuse, rows_of
from driftline.inputs.sparse import SparseRows
from driftline.inputs.taking import TakenRows
from driftline.typing import Inputs

__all__ = ["first_values", "rest_of", "without_first"]


def first_values(rows: Rows, start: int, stop: int) -> np.ndarray:
    """Return the first value of some rows, if all of their values are finite.

    >>> first_values(DenseRows(np.array([[2.0, 5.0], [0.0, 6.0]])), 0, 2)
    array([2., 0.])
    """
    if isinstance(rows, DenseRows):
        part: np.ndarray
        if isinstance(rows, TakenRows):
            part = rows._source[rows._index[start:stop]]
        else:
            part = rows.array[start:stop]
        if not np.isfinite(part).all():
            refuse(rows, start + int(np.flatnonzero(~np.isfinite(part).all(axis=1))[0]))
        return np.array(part[:, 0], dtype=np.float64)
    if not isinstance(rows, SparseRows):
        raise InputError("only plain rows have a first value, not sequences or queries")
    begin, end = int(rows.starts[start]), int(rows.starts[stop])
    owners = np.repeat(np.arange(stop - start), np.diff(rows.starts[start : stop + 1]))
    values, made = rows.values[begin:end].astype(np.float64), np.zeros(stop - start)
    if (bad := np.flatnonzero(~np.isfinite(values))).size:
        refuse(rows, start + int(owners[bad[0]]))
    first = rows.columns[begin:end] == 0
    np.add.at(made, owners[first], values[first])
    return made


def without_first(rows: Rows, start: int, stop: int) -> Rows:
    """Return some rows without their first values, if all are finite: dense ones are a view."""
    first_values(rows, start, stop)
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
    made = without_first(rows, 0, rows.rounds)
    if isinstance(made, DenseRows):
        return made.array
    assert isinstance(made, SparseRows)
    return made.matrix
