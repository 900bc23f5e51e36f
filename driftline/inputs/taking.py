"""Some rounds of others, in any order, and rounds after others."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from driftline.errors import InputError
from driftline.inputs.dense import DenseRows
from driftline.inputs.rows import Rows
from driftline.inputs.sparse import SparseRows
from driftline.typing import CheckedLabels

__all__ = ["after", "take", "take_labels"]


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
