"""Inputs as sequences of vectors, of different lengths, with scores along a chain."""

from __future__ import annotations

import numpy as np

from driftline.inputs.groups import Groups
from driftline.kernels import Kernel, play_chains
from driftline.kernels.chains import sequence_sq
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

    def loop(self, dtype: np.dtype) -> Kernel:
        """Return the compiled loop over rows of this kind, for weights of this type."""
        return play_chains[dtype]

    @property
    def most_scores(self) -> int:
        """How many scores the loop has in a round, at most: those of transitions once."""
        return (self.largest + self.transitions * self.tags) * self.tags

    @property
    def score_sizes(self) -> np.ndarray:
        """How many scores the loop has in each round."""
        return (self.sizes + self.transitions * self.tags) * self.tags

    @property
    def gradient_size(self) -> int:
        """One number for every weight."""
        return self.tags * (self.features + 1 + self.tags)

    def scores(self, stored: np.ndarray, transposed: bool, t: int, intercept: bool) -> np.ndarray:
        """Return the scores of positions and of transitions."""
        x, weights = self.matrix(t, intercept), stored.T if transposed else stored
        nodes = np.einsum("if,kf->ik", x, weights[:, : x.shape[1]])  # equal ones stay equal
        return self.with_pairs(nodes.ravel(), weights)

    def with_pairs(self, nodes: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Return scores of positions, and behind them those of all transitions, if there are."""
        if not self.transitions:
            return nodes
        pairs = weights[:, -self.tags :].ravel()
        return np.concatenate([nodes, np.tile(pairs, nodes.size // self.tags - 1)])

    def gradient(self, grad: np.ndarray, t: int, intercept: bool) -> np.ndarray:
        """Return the gradient in the weights from the gradient in the scores."""
        x = self.matrix(t, intercept)
        nodes = grad[: len(x) * self.tags].reshape(len(x), self.tags)
        if not self.transitions:
            return nodes.T @ x
        pairs = grad[len(x) * self.tags :].reshape(len(x) - 1, self.tags, self.tags)
        return np.hstack([nodes.T @ x, pairs.sum(axis=0)])

    def norm_sq(self, t: int, intercept: bool) -> float:
        """Return a bound of the squared norm of the map to scores, times that of the encoding.

        That of the positions is at most the sum of all squares, which costs no more than the scores
        do. Transitions are shared by all n - 1 pairs. With them an encoding has 2n - 1 ones: this
        factor is not in the loss's own constant, which does not depend on the length. Without
        transitions a loss is a sum over positions, and its constant that of one position.
        """
        x = self.matrix(t, intercept)
        with np.errstate(over="ignore"):
            entries_sq = float(np.vdot(x, x))
        return sequence_sq(entries_sq, len(x), self.transitions)
