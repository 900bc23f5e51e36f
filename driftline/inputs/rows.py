"""Inputs, dense or sparse: wrapped, fingerprinted, refused."""

from __future__ import annotations

import hashlib
from typing import NoReturn

import numpy as np

from driftline.errors import InputError
from driftline.inputs.dense import DenseRows
from driftline.inputs.groups import Groups
from driftline.inputs.items import Items
from driftline.inputs.sequences import Sequences
from driftline.inputs.sparse import SparseRows
from driftline.typing import CheckedLabels, Input, Inputs

__all__ = ["Rows", "fingerprint", "largest_entry", "refuse", "row_of", "rows_of"]

Rows = DenseRows | SparseRows | Sequences | Items  # sparse sequences are sequences


def rows_of(inputs: Inputs) -> DenseRows | SparseRows:
    """Wrap a stream's inputs: an array with a row per round, or a CSR matrix."""
    if hasattr(inputs, "indptr") or hasattr(inputs, "tocsr"):
        return SparseRows(inputs)
    return DenseRows(_array(inputs))


def row_of(x: Input) -> Rows:
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


def _array(inputs: Inputs) -> np.ndarray:
    if np.ma.is_masked(inputs):
        raise InputError("inputs have masked entries: fill them in first, as by .filled(0.0)")
    try:
        return np.asarray(inputs)
    except ValueError as error:
        raise InputError(f"inputs do not form an array: {error}") from error


def fingerprint(rows: Rows, labels: CheckedLabels) -> str:
    """Return a fingerprint of a stream: its shape, all labels, and 64 of its rows."""
    picked = np.unique(np.linspace(0, rows.rounds - 1, 64).astype(np.int64))
    text = hashlib.sha256(repr((rows.rounds, rows.features)).encode())
    parts = labels if isinstance(labels, list) else [labels]
    for part in parts:
        text.update(np.ascontiguousarray(part).tobytes())
    text.update(rows.sample(picked))
    return text.hexdigest()


def largest_entry(rows: Rows) -> float:
    """Return the largest entry of all rows in size, nan if one is not a number."""
    arrays = rows.entries_arrays if isinstance(rows, Groups) else [rows.entries_array]
    sizes = [max(float(a.max()), -float(a.min())) for a in arrays if a.size]
    return float(np.max(sizes, initial=0.0))


def refuse(rows: Rows, t: int) -> NoReturn:
    """Raise for a row that could not be played."""
    vector = rows.row(t)
    where = f"row {rows.before + t}" if rows.before + rows.rounds > 1 else "the input"
    bad = np.flatnonzero(~np.isfinite(vector))
    if bad.size:
        raise InputError(
            f"{where} has {vector[bad[0]]} as feature {bad[0]}: expected finite numbers"
        )
    raise InputError(
        f"{where} is too large, or the weights or steps are: its norm, its scores or its step "
        f"overflow, at a largest entry of {np.abs(vector).max():g}"
    )
