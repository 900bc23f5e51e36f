"""Inputs as sets of items that share one weight vector."""

from __future__ import annotations

import numpy as np

from driftline.inputs.groups import Groups
from driftline.kernels import Kernel, play_items

__all__ = ["Items"]


class Items(Groups):
    """One array (items x features) a round; an item's score is its features times the weights.

    >>> items = Items([np.eye(3)[:2]])
    >>> items.scores(np.array([[5.0, 6.0, 7.0]]), False, 0, False)
    array([5., 6.])
    """

    group, members = "set", "items"

    def loop(self, dtype: np.dtype) -> Kernel:
        """Return the compiled loop over rows of this kind, for weights of this type."""
        return play_items

    @property
    def most_scores(self) -> int:
        """How many scores a round has, at most."""
        return self.largest

    @property
    def score_sizes(self) -> np.ndarray:
        """How many scores each round has."""
        return self.sizes

    @property
    def gradient_size(self) -> int:
        """One number for every feature and the intercept."""
        return self.features + 1

    def scores(self, stored: np.ndarray, transposed: bool, t: int, intercept: bool) -> np.ndarray:
        """Return the scores of all items."""
        return self.matrix(t, intercept) @ stored[0]

    def gradient(self, grad: np.ndarray, t: int, intercept: bool) -> np.ndarray:
        """Return the gradient in the weights from the gradient in the scores."""
        return (grad @ self.matrix(t, intercept))[np.newaxis]

    def norm_sq(self, t: int, intercept: bool) -> float:
        """Return a bound of the squared norm of the map from weights to scores.

        The sum of all squares, which costs no more than the scores do; the norm itself would
        take a decomposition of the round's matrix.
        """
        x = self.matrix(t, intercept)
        return float(np.vdot(x, x))
