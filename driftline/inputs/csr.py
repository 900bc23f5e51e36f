"""Checked sparse matrices, which compiled code, SciPy's and our own, can read safely.

A CSR matrix is three arrays that a caller can write to, and flags that may be stale. Compiled code
does not check them. So they are checked here, and the row pointers, by which everything else is
found, are copied first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from driftline.errors import InputError
from driftline.typing import Inputs

__all__ = ["Csr", "check_columns", "check_csr", "check_sparse"]


class Csr(NamedTuple):
    """Values, their columns, and where each row starts; columns increase within a row."""

    values: np.ndarray
    columns: np.ndarray
    starts: np.ndarray
    shape: tuple[int, int]


def check_csr(matrix: Inputs) -> Csr:
    """Return the arrays of a CSR matrix if they fit each other and its shape, or refuse it.

    Row pointers are a private copy. Columns are of a type that compiled code takes, int32 or int64.
    Values of a column that comes twice in a row are added up, in a copy.
    """
    form = getattr(matrix, "format", type(matrix).__name__)
    if form != "csr":
        raise InputError(
            f"sparse inputs must be in CSR format, but these are in {str(form).upper()}; "
            "convert them by .tocsr()"
        )
    rows, features = _sizes(matrix.shape)
    values, columns = np.asarray(matrix.data), np.asarray(matrix.indices)
    if values.dtype.kind not in "fiub":
        raise InputError(f"inputs must be real numbers, but their type is {values.dtype}")
    if columns.dtype.kind not in "iu":
        raise InputError(f"column indices must be integers, but their type is {columns.dtype}")
    if values.ndim != 1 or values.shape != columns.shape:
        raise InputError(
            f"sparse inputs have {values.size} values, but {columns.size} column indices"
        )
    starts = _checked_starts(matrix.indptr, rows, columns.size)
    check_columns(columns, features)
    kind = np.int32 if columns.dtype == np.int32 and columns.size < 2**31 else np.int64
    columns, starts = np.ascontiguousarray(columns, dtype=kind), starts.astype(kind)
    made = Csr(np.ascontiguousarray(values), columns, starts, (rows, features))
    return made if _rising(columns, starts) else _added_up(made)


def _sizes(shape: Sequence[int]) -> tuple[int, int]:
    """Return rows and features, if these are integers."""
    rows, features = shape if len(shape) == 2 else (1, *shape)
    if not all(isinstance(size, (int, np.integer)) and size >= 0 for size in (rows, features)):
        raise InputError(f"the shape of sparse inputs must be two integers, but is {shape}")
    return int(rows), int(features)


def check_sparse(matrix: Inputs) -> None:
    """Refuse a sparse matrix, of any format, whose conversion by SciPy would read out of bounds."""
    form = getattr(matrix, "format", "")
    if form == "csr":
        check_csr(matrix)
        return
    try:
        if form in ("csc", "bsr"):
            matrix.check_format(full_check=True)
        elif form == "coo":
            type(matrix)((matrix.data, matrix.coords), shape=matrix.shape)
    except (TypeError, ValueError, IndexError) as error:
        raise InputError(f"sparse inputs in {form.upper()} format are broken: {error}") from error


def check_columns(columns: np.ndarray, features: int) -> None:
    """Refuse columns that are not in the matrix."""
    if columns.size and not 0 <= columns.min() <= columns.max() < features:
        raise InputError(
            f"column indices of sparse inputs must lie in 0..{features - 1}, but reach from "
            f"{columns.min()} to {columns.max()}"
        )


def _checked_starts(starts: npt.ArrayLike, rows: int, entries: int) -> np.ndarray:
    """Return a copy of row pointers; refuse them if they decrease or leave the entries."""
    own = np.array(starts)
    if own.dtype.kind not in "iu" or own.shape != (rows + 1,):
        raise InputError(
            f"row pointers must be {rows + 1} integers, but have shape {own.shape} and type "
            f"{own.dtype}"
        )
    own = own.astype(np.int64)
    falling = own[1:] < own[:-1]
    if own[0] < 0 or falling.any() or own[-1] > entries:
        row = int(np.argmax(falling)) if falling.any() else rows - 1
        raise InputError(
            f"row pointers of sparse inputs must rise from 0 to {entries} at most, but row {row} "
            f"reaches from {own[row]} to {own[row + 1]}"
        )
    return own


def _rising(columns: np.ndarray, starts: np.ndarray) -> bool:
    """Return whether the columns of every row increase, so that none comes twice."""
    rising = columns[1:] > columns[:-1]
    inner = starts[(starts > 0) & (starts < columns.size)]
    rising[inner - 1] = True  # a new row may start anywhere
    return bool(rising.all())


def _added_up(made: Csr) -> Csr:
    """Return sorted columns, equal ones added up."""
    from scipy.sparse import csr_array

    copies = tuple(array.copy() for array in (made.values, made.columns, made.starts))
    matrix = csr_array(copies, shape=made.shape)
    matrix.sum_duplicates()
    return Csr(matrix.data, matrix.indices, matrix.indptr, made.shape)
