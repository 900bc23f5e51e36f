"""Inputs as sets of items that share one weight vector."""

from __future__ import annotations

import numpy as np

from driftline.models.groups import Groups

__all__ = ["Items"]


class Items(Groups):
    """One array (items x features) a round; an item's score is its features times the weights.

    >>> items = Items([np.eye(3)[:2]])
    >>> items.scores(np.array([[5.0, 6.0, 7.0]]), False, 0, False)
    array([5., 6.])
    """

    group, members = "set", "items"

    def scores(self, stored: np.ndarray, transposed: bool, t: int, intercept: bool) -> np.ndarray:
        """Return the scores of all items."""
        return self.matrix(t, intercept) @ stored[0]

    def gradient(self, grad: np.ndarray, t: int, intercept: bool) -> np.ndarray:
        """Return the gradient in the weights from the gradient in the scores."""
        return (grad @ self.matrix(t, intercept))[np.newaxis]

    def norm_sq(self, t: int, intercept: bool) -> float:
        """Return the squared norm of the map from weights to scores."""
        return self.largest_sq(t, intercept)
