"""Tell dense from sparse inputs."""

from __future__ import annotations

from typing import Any

import numpy as np

from driftline.errors import InputError
from driftline.models.dense import DenseRows
from driftline.models.sparse import SparseRows

__all__ = ["Rows", "row_of", "rows_of"]

Rows = DenseRows | SparseRows


def rows_of(inputs: Any) -> Rows:
    """Wrap a stream's inputs: an array with a row per round, or a CSR matrix."""
    if hasattr(inputs, "indptr") or hasattr(inputs, "tocsr"):
        return SparseRows(inputs)
    return DenseRows(_array(inputs))


def row_of(x: Any) -> Rows:
    """Wrap the input of one round: a vector, or a sparse row."""
    if type(x) is np.ndarray and x.ndim == 1:
        return DenseRows(x[np.newaxis])
    if hasattr(x, "indptr") or hasattr(x, "tocsr"):
        rows: Rows = SparseRows(x)
    else:
        array = _array(x)
        rows = DenseRows(array if array.ndim == 2 else array.reshape(1, -1))
    if rows.rounds != 1:
        raise InputError(f"expected the input of one round, but got {rows.rounds} rows")
    return rows


def _array(inputs: Any) -> np.ndarray:
    try:
        return np.asarray(inputs)
    except ValueError as error:
        raise InputError(f"inputs do not form an array: {error}") from error
