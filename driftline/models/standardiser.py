"""Inputs of any scale, standardised as they come."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from driftline.errors import InputError
from driftline.kernels import SCALE, kernel

__all__ = ["Standardiser"]


@kernel(SCALE)
def standardise(inputs, state, out):
    """Write rows minus the mean of all rows so far, over their deviation, at norm 1 at most.

    ``state`` has the number of rows, then for every feature its mean and its sum of squared
    deviations (Welford). A feature that has not varied yet is 0.
    """
    rows, features = inputs.shape
    means = state[1 : 1 + features]
    squares = state[1 + features :]
    for t in range(rows):
        state[0] += 1.0
        total = 0.0
        for j in range(features):
            away = inputs[t, j] - means[j]
            means[j] += away / state[0]
            rest = inputs[t, j] - means[j]
            squares[j] += away * rest
            deviation = math.sqrt(squares[j] / state[0])
            out[t, j] = rest / deviation if deviation > 0.0 else 0.0
            total += out[t, j] * out[t, j]
        norm = math.sqrt(max(total, float(features)))
        for j in range(features):
            out[t, j] /= norm
        for j in range(features, out.shape[1]):
            out[t, j] = 1.0 / math.sqrt(features)


class Standardiser:
    """Centres and scales every feature by what has been seen of it, and caps the norm at 1.

    A row is divided by the root of the number of features, or by its own norm if that is larger.
    With ``constant`` one feature more is the same in all rows, and as large as others are on
    average: an intercept that is not learned faster than they are.

    It counts itself, since an input is seen before it is predicted for; nothing later does. The
    same rows in pieces give the same numbers. Bounds then hold for the scaled inputs, and for
    comparators that act on them: what a weight means may change as scales are learned.

    >>> Standardiser(constant=False).transform(np.array([[1.0, 900.0], [3.0, 100.0]]))
    array([[ 0.        ,  0.        ],
           [ 0.70710678, -0.70710678]])
    """

    def __init__(self, constant: bool = True) -> None:
        self.constant = constant
        self.state: np.ndarray | None = None

    def transform(self, inputs: Any) -> np.ndarray:
        """Return rows scaled by what was seen up to each of them, and remember them."""
        rows = np.ascontiguousarray(inputs, dtype=np.float64)
        if rows.ndim != 2:
            raise InputError(f"inputs must have two dimensions, not {rows.ndim}")
        if self.state is None:
            self.state = np.zeros(1 + 2 * rows.shape[1])
        if self.state.size != 1 + 2 * rows.shape[1]:
            raise InputError(
                f"inputs have {rows.shape[1]} features, but {self.state.size // 2} were seen before"
            )
        bad = ~np.isfinite(rows).all(axis=1)
        if bad.any():
            first = int(np.argmax(bad))
            entry = rows[first][~np.isfinite(rows[first])][0]
            raise InputError(f"row {first} has the entry {entry}: expected finite numbers")
        out = np.empty((len(rows), rows.shape[1] + self.constant))
        standardise(rows, self.state, out)
        return out

    def copy(self) -> Standardiser:
        """Return one that has seen the same rows."""
        other = Standardiser(self.constant)
        other.state = None if self.state is None else self.state.copy()
        return other
