"""Inputs as sequences of vectors, of different lengths, with scores along a chain."""

from __future__ import annotations

import numpy as np

from driftline.inputs.groups import Groups
from driftline.typing import Inputs

__all__ = ["Sequences"]


class Sequences(Groups):
    """One array (positions x features) a round; weights of tags and of transitions.

    Weights have a row per tag: its weights for the features (and an intercept), then those of
    the transitions from this tag to each. Scores are those of all positions, then the
    transitions' of all neighbouring pairs, as in :class:`~driftline.polytopes.Chain`; only
    those of positions without ``transitions``.
    """

    group, members = "sequence", "positions"

    def __init__(self, inputs: Inputs, tags: int, transitions: bool = True):
        super().__init__(inputs)
        self.tags, self.transitions = tags, transitions

    def scores(self, stored: np.ndarray, transposed: bool, t: int, intercept: bool) -> np.ndarray:
        """Return the scores of positions and of transitions."""
        x = self.matrix(t, intercept)
        nodes = (x @ stored[:, : x.shape[1]].T).ravel()
        if not self.transitions:
            return nodes
        return np.concatenate([nodes, np.tile(stored[:, -self.tags :].ravel(), len(x) - 1)])

    def gradient(self, grad: np.ndarray, t: int, intercept: bool) -> np.ndarray:
        """Return the gradient in the weights from the gradient in the scores."""
        x = self.matrix(t, intercept)
        nodes = grad[: len(x) * self.tags].reshape(len(x), self.tags)
        if not self.transitions:
            return nodes.T @ x
        pairs = grad[len(x) * self.tags :].reshape(len(x) - 1, self.tags, self.tags)
        return np.hstack([nodes.T @ x, pairs.sum(axis=0)])

    def norm_sq(self, t: int, intercept: bool) -> float:
        """Return the squared norm of the map from weights to scores, times the encoding's.

        Transitions are shared by all n - 1 pairs. With them an encoding has 2n - 1 ones: this
        factor is not in the loss's own constant, which does not depend on the length. Without
        transitions a loss is a sum over positions, and its constant that of one position.
        """
        length, largest = len(self.groups[t]), self.largest_sq(t, intercept)
        if not self.transitions:
            return largest
        return np.maximum(largest, length - 1.0) * (2 * length - 1)
