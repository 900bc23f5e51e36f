"""The first value of every row, which is a prediction of a model from elsewhere."""

from __future__ import annotations

import numpy as np

from driftline.errors import InputError
from driftline.inputs.dense import DenseRows
from driftline.inputs.rows import Rows, refuse
from driftline.inputs.sparse import SparseRows
from driftline.inputs.taking import TakenRows

__all__ = ["first_values"]


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
