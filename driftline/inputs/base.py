"""What rows of inputs offer to an engine that plays in plain Python."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
import numpy.typing as npt

from driftline.errors import InputError
from driftline.typing import CheckedLabels, Inputs

__all__ = ["LinearRows", "cast", "check_features", "float_type"]


def check_features(features: int) -> None:
    """Refuse rows without features: there is nothing to learn from them."""
    if features < 1:
        raise InputError("inputs have no features: expected 1 or more in every row")


def float_type(dtype: npt.DTypeLike, what: str) -> np.dtype:
    """Return float64 or float32, or refuse any other type."""
    try:
        kind = np.dtype(dtype)
    except TypeError:
        raise InputError(f"{what} are float64 or float32, not {dtype!r}") from None
    if kind not in (np.float64, np.float32):
        raise InputError(f"{what} are float64 or float32, not {kind}")
    return kind


def cast(array: np.ndarray, dtype: npt.DTypeLike) -> np.ndarray:
    """Return a contiguous array of this type; values too large for it become infinite."""
    if array.dtype == dtype:
        return np.ascontiguousarray(array)
    with np.errstate(over="ignore"):
        return np.ascontiguousarray(array, dtype=dtype)


class LinearRows(ABC):
    """Base of rows with one weight vector per score: scores are weights times input."""

    __slots__ = ()

    features: int

    #: How many rows of the stream came before these, where they are a batch of it.
    before: int

    #: The labels of the rounds, where these are learned from, for maps that remember them.
    labels: CheckedLabels | None

    #: Which rounds are predicted only, where labels come late; None where all are learned from.
    asked: np.ndarray | None

    #: Rounds in a batch, after which the progress callback is called.
    block = 1 << 14

    #: How many numbers the loop needs for a gradient in the weights.
    gradient_size = 0

    @abstractmethod
    def row(self, t: int) -> np.ndarray:
        """Return one row as a vector."""

    @abstractmethod
    def entries(self, t: int) -> tuple[slice | np.ndarray, np.ndarray]:
        """Return the features of one row that may differ from 0, and their values."""

    def scores(self, stored: np.ndarray, transposed: bool, t: int, intercept: bool) -> np.ndarray:
        """Return the scores of one row, at the cost of its entries.

        Equal weights have equal scores, to the last bit: a product of matrices does not promise it,
        and labels that nobody has told apart yet would not be tied.
        """
        columns, values = self.entries(t)
        if transposed:
            scores = (stored[columns] * values[:, np.newaxis]).sum(axis=0, dtype=np.float64)
        else:
            scores = (stored[:, columns] * values).sum(axis=1, dtype=np.float64)
        if intercept:
            scores = scores + (stored[-1] if transposed else stored[:, -1])
        return scores

    @property
    @abstractmethod
    def whole(self) -> Inputs:
        """All rows, as an array or a sparse matrix."""

    def all_scores(self, stored: np.ndarray, transposed: bool, intercept: bool) -> np.ndarray:
        """Return the scores of all rows, a row each, by one product of matrices."""
        weights = stored if transposed else stored.T
        scores = np.asarray(self.whole @ weights[: self.features], dtype=np.float64)
        return scores + weights[-1] if intercept else scores

    def gradient(self, grad: np.ndarray, t: int, intercept: bool) -> np.ndarray:
        """Return the gradient in the weights from the gradient in the scores."""
        x = self.row(t)
        return np.outer(grad, np.append(x, 1.0) if intercept else x)

    def norm_sq(self, t: int, intercept: bool) -> float:
        """Return the squared norm of the map from weights to scores."""
        _, values = self.entries(t)
        return float(values @ values) + intercept

    def loop_labels(self, labels: CheckedLabels) -> CheckedLabels:
        """Return labels as the loop takes them."""
        return labels

    def check_labels(self, labels: CheckedLabels) -> None:
        """Refuse labels that do not fit their rows; any label fits a plain row."""
        return
