"""Missing cells of rows: NaN, refused or filled in."""

from __future__ import annotations

import numpy as np
from scipy.sparse import issparse

from driftline.errors import InputError
from driftline.inputs import FILLS, running_sums
from driftline.typing import Inputs

__all__ = ["check_fill", "fill", "means_from", "where_missing"]


def check_fill(missing: object) -> None:
    """Refuse what is no way to treat missing cells."""
    if missing not in FILLS:
        raise InputError(f"missing must be one of {', '.join(map(repr, FILLS))}, not {missing!r}")


def fill(
    X: Inputs, missing: str, means: np.ndarray | None, learning: bool
) -> tuple[Inputs, np.ndarray | None]:
    """Return rows in which nothing is missing, and sums and counts of every feature after them.

    A mean is that of the values in the rows before, one after the other if these are learned from,
    so that rows in pieces of any size are filled alike.

    >>> X = np.array([[1.0, 2.0], [np.nan, 4.0], [3.0, np.nan]])
    >>> fill(X, "mean", None, learning=True)[0]
    array([[1., 2.],
           [1., 4.],
           [3., 3.]])
    """
    if missing == "refuse":
        return X, means
    if issparse(X):
        if missing == "mean":
            raise InputError("means of missing cells are for dense rows: give missing='zero'")
        made = X.copy()
        made.data = np.nan_to_num(made.data, nan=0.0)
        return made, means
    there = ~np.isnan(X)
    known = np.where(there, X, 0.0)
    if missing == "zero":
        return known, means
    before = np.zeros((2, X.shape[1])) if means is None else means
    if not learning:
        return np.where(there, X, before[0] / np.maximum(before[1], 1.0)), means
    sums, counts = running_sums(X, there, *before)
    filled = np.where(there, X, sums[:-1] / np.maximum(counts[:-1], 1.0)).astype(X.dtype)
    return filled, np.stack([sums[-1], counts[-1]])


def means_from(plain: object, features: int) -> np.ndarray:
    """Return sums and counts from a file, if they can be those of so many features."""
    made = np.array(plain, dtype=np.float64)
    if made.shape != (2, features) or not np.isfinite(made).all() or (made[1] < 0.0).any():
        raise InputError(f"{features} features need as many sums and counts")
    return made


def where_missing(X: Inputs, names: np.ndarray | None) -> str:
    """Say where the first cell is that is NaN, or nothing if that cannot be said.

    >>> where_missing([[1.0, 2.0], [3.0, float("nan")]], None)
    'row 1 has nan as feature 1'
    """
    try:
        cells = np.asarray(X, dtype=np.float64)
        row, column = np.argwhere(np.isnan(cells))[0].tolist()
    except (TypeError, ValueError, IndexError):
        return ""
    feature = f"feature {column}" if names is None else repr(str(names[column]))
    return f"row {row} has nan as {feature}"
