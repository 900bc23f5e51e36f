"""Convert the state of a scaling of version 0.1 to that of the current version.

The old state, for dense rows: the rows seen, an unused number, and for every feature its mean, its
sum of squared deviations and one over its deviation. Sparse rows: the rows seen, the sum of their
squared norms, and for every feature how often it was there and the sum of its squares.
"""

from __future__ import annotations

import numpy as np

from driftline.errors import InputError
from driftline.features import scaling as dense
from driftline.features import sparse_scaling as sparse

__all__ = ["converted"]


def converted(state: np.ndarray, features: int, is_sparse: bool) -> np.ndarray:
    """Return the state in the current layout."""
    if state.shape != (2 + (2 if is_sparse else 3) * features,):
        raise InputError(f"a scaling of {features} features does not have {state.shape} numbers")
    return (_sparse if is_sparse else _dense)(state, features)


def _dense(state: np.ndarray, features: int) -> np.ndarray:
    """Convert dense rows; the last cells, which were not kept, are set to mean -/+ deviation."""
    rows = state[0]
    means, squares, inverse = state[2:].reshape(3, features)
    known = inverse > 0.0
    deviations = np.sqrt(squares / max(rows, 1.0))
    made = np.zeros((dense.WIDTH, features))
    made[dense.CENTER] = means
    made[dense.INVERSE] = np.where(known, inverse, dense.UNKNOWN)
    made[dense.COUNT] = min(rows, dense.MEMORY)
    with np.errstate(divide="ignore", over="ignore"):
        doubt = dense.DOUBT / (made[dense.COUNT] * (means * inverse) ** 2)
    made[dense.SHOWN] = np.where(known, means * np.maximum(0.0, 1.0 - doubt), means)
    made[dense.SQUARE] = made[dense.TARGET] = 1.0
    signs = np.where(np.arange(dense.WINDOW) % 2, 1.0, -1.0)
    made[dense.FAR + 1 :] = means + signs[:, np.newaxis] * deviations
    head = np.zeros(dense.HEADER)
    head[dense.ROWS] = rows
    return np.r_[head, made.ravel()]


def _sparse(state: np.ndarray, features: int) -> np.ndarray:
    counts, squares = state[2:].reshape(2, features)
    made = np.zeros((sparse.WIDTH, features))
    made[sparse.COUNT] = np.minimum(counts, dense.MEMORY)
    made[sparse.SQUARE] = squares / np.maximum(counts, 1.0)
    return np.r_[state[:2], made.ravel()]
