"""Rows scaled by what was seen before them all; nothing is remembered."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from driftline.models.dense import DenseRows
from driftline.models.sparse import SparseRows

__all__ = ["look_dense", "look_sparse"]


def look_dense(rows: DenseRows, state: np.ndarray, constant: bool, dtype: Any) -> DenseRows:
    """Return rows minus the mean, over the deviation, at norm 1 at most."""
    features = rows.features
    means, _, scales = state[2:].reshape(3, features)
    scaled = (rows.whole - means) * scales
    norms = np.sqrt(np.maximum((scaled * scaled).sum(axis=1), features))
    out = np.empty((rows.rounds, features + constant), dtype)
    out[:, :features] = scaled / norms[:, np.newaxis]
    out[:, features:] = 1.0 / math.sqrt(features)
    return DenseRows(out)


def look_sparse(rows: SparseRows, state: np.ndarray, constant: bool) -> SparseRows:
    """Return rows whose entries are divided by their usual size, at norm 1 at most.

    An entry whose feature was never seen has its own size, and so becomes 1 or -1.
    """
    from scipy.sparse import hstack

    counts, squares = state[2:].reshape(2, rows.features)
    usual = float(state[1] / state[0])
    made = rows.matrix.astype(np.float64)
    sizes = np.sqrt(squares / np.maximum(counts, 1.0))[made.indices]
    sizes = np.where(sizes > 0.0, sizes, np.abs(made.data))
    made.data /= np.where(sizes > 0.0, sizes, 1.0)
    norms = np.sqrt(np.maximum(np.asarray(made.multiply(made).sum(axis=1)).ravel(), usual))
    made.data /= np.repeat(np.where(norms > 0.0, norms, 1.0), np.diff(made.indptr))
    if constant:
        column = np.full((rows.rounds, 1), 1.0 / math.sqrt(max(usual, 1.0)))
        made = hstack([made, type(made)(column)], format="csr")
    return SparseRows(made)
