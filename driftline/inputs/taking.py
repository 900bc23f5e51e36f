"""Some rounds of others, in any order; rounds after others; and rounds as plain arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import numpy as np

from driftline.errors import InputError
from driftline.inputs.dense import DenseRows
from driftline.inputs.layout import Layout
from driftline.inputs.rows import Rows
from driftline.inputs.sparse import SparseRows
from driftline.typing import CheckedLabels, Inputs, Json, Saved

__all__ = ["after", "from_arrays", "take", "take_labels", "to_arrays"]


def take(rows: Rows, index: np.ndarray) -> Rows:
    """Return rounds by their places: a copy."""
    if isinstance(rows, DenseRows):
        return DenseRows(rows.array[index])
    if isinstance(rows, SparseRows):
        return SparseRows(rows.matrix[index])
    groups = [np.asarray(rows.groups[i], dtype=np.float64) for i in index.tolist()]
    return rows.with_members(np.concatenate(groups), np.cumsum([0, *map(len, groups)]))


def after(first: Rows, then: Rows) -> Rows:
    """Return rounds followed by others of the same kind."""
    if type(first) is not type(then) or first.features != then.features:
        raise InputError(
            f"rounds of {first.features} features are waiting for their labels, and cannot be "
            f"followed by other rows, of {then.features} features: expected rows of the same kind"
        )
    if isinstance(first, DenseRows) and isinstance(then, DenseRows):
        return DenseRows(np.concatenate([first.array, then.array]))
    if isinstance(first, SparseRows) and isinstance(then, SparseRows):
        from scipy.sparse import vstack

        return SparseRows(vstack([first.matrix, then.matrix], format="csr"))
    groups: list[Any] = [*cast(Any, first).groups, *cast(Any, then).groups]
    whole = np.concatenate([np.asarray(group, dtype=np.float64) for group in groups])
    return cast(Any, then).with_members(whole, np.cumsum([0, *map(len, groups)]))


def take_labels(labels: CheckedLabels, index: np.ndarray) -> CheckedLabels:
    """Return labels by their places."""
    if isinstance(labels, list):
        return [labels[i] for i in index.tolist()]
    return np.asarray(labels)[index]


def to_arrays(rows: Rows) -> Saved:
    """Return rounds as plain data and arrays, for a file."""
    if isinstance(rows, DenseRows):
        return {}, {"inputs": _plain(rows.array)}
    if isinstance(rows, SparseRows):
        made = rows.matrix
        places = {name: getattr(made, name).astype(np.int64) for name in ("indices", "indptr")}
        return {"features": rows.features}, {"inputs": _plain(made.data), **places}
    groups = [np.asarray(group, dtype=np.float64) for group in rows.groups]
    lengths = np.array([len(group) for group in groups], dtype=np.int64)
    return {}, {"inputs": np.concatenate(groups), "lengths": lengths}


def from_arrays(layout: Layout, about: Json, arrays: Mapping[str, np.ndarray]) -> Rows:
    """Return rounds from what :func:`to_arrays` returned, checked as any inputs are."""
    inputs: Inputs = arrays["inputs"]
    if "lengths" in arrays:
        inputs = (inputs, np.cumsum(np.r_[0, arrays["lengths"]]))
    elif "indptr" in arrays:
        from scipy.sparse import csr_array

        places = inputs, arrays["indices"], arrays["indptr"]
        inputs = csr_array(places, shape=(len(places[2]) - 1, int(about["features"])))
    return layout.rows(inputs)


def _plain(array: np.ndarray) -> np.ndarray:
    """Return an array in a precision that files have."""
    kept = array.dtype in (np.float64, np.float32)
    return array if kept else array.astype(np.float64)
