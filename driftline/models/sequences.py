"""Inputs as sequences of vectors, of different lengths, with scores along a chain."""

from __future__ import annotations

from typing import Any

import numpy as np

from driftline.errors import InputError

__all__ = ["Sequences"]


class Sequences:
    """One array (positions x features) a round; weights of tags and of transitions.

    Weights have a row per tag: its weights for the features (and an intercept), then those of
    the transitions from this tag to each. Scores are those of all positions, then the
    transitions' of all neighbouring pairs, as in :class:`~driftline.polytopes.Chain`.

    Parameters
    ----------
    inputs
        A list of two-dimensional arrays, or a pair of one array with all positions and the
        rows at which sequences start, with the number of rows at the end.
    tags
        The number of tags.
    transitions
        Whether transitions have weights; if not, their scores are 0.
    """

    transposed = False

    def __init__(self, inputs: Any, tags: int, transitions: bool = True):
        if isinstance(inputs, tuple) and len(inputs) == 2:
            whole, starts = np.asarray(inputs[0]), np.asarray(inputs[1])
            inputs = [whole[a:b] for a, b in zip(starts[:-1], starts[1:], strict=True)]
        self.sequences = [np.asarray(array) for array in inputs]
        self.tags, self.transitions = tags, transitions
        self.rounds = len(self.sequences)
        self.features = self.sequences[0].shape[-1] if self.sequences else 0
        for t, array in enumerate(self.sequences):
            if array.ndim != 2 or array.dtype.kind not in "fiub":
                raise InputError(
                    f"sequence {t} must be an array of numbers with a row per position, but has "
                    f"shape {array.shape} and type {array.dtype}"
                )
            if len(array) == 0:
                raise InputError(f"sequence {t} is empty: expected at least one position")
            if array.shape[1] != self.features:
                raise InputError(
                    f"sequence {t} has {array.shape[1]} features, but sequence 0 has "
                    f"{self.features}"
                )
        self.size = sum(array.size for array in self.sequences)

    def row(self, t: int) -> np.ndarray:
        """Return all entries of one sequence as a vector."""
        return np.asarray(self.sequences[t], dtype=np.float64).ravel()

    def scores(self, stored: np.ndarray, transposed: bool, t: int, intercept: bool) -> np.ndarray:
        """Return the scores of positions and of transitions."""
        x = self.sequences[t]
        nodes = x @ stored[:, : self.features].T
        if intercept:
            nodes = nodes + stored[:, self.features]
        pairs = np.zeros((len(x) - 1, self.tags, self.tags))
        if self.transitions:
            pairs += stored[:, -self.tags :]
        return np.concatenate([nodes.ravel(), pairs.ravel()])

    def gradient(self, grad: np.ndarray, t: int, intercept: bool) -> np.ndarray:
        """Return the gradient in the weights from the gradient in the scores."""
        x = np.asarray(self.sequences[t], dtype=np.float64)
        nodes = grad[: len(x) * self.tags].reshape(len(x), self.tags)
        parts = [nodes.T @ x]
        if intercept:
            parts.append(nodes.sum(axis=0)[:, np.newaxis])
        if self.transitions:
            pairs = grad[len(x) * self.tags :].reshape(len(x) - 1, self.tags, self.tags)
            parts.append(pairs.sum(axis=0))
        return np.hstack(parts)

    def norm_sq(self, t: int, intercept: bool) -> float:
        """Return the squared norm of the map from weights to scores, times the encoding's.

        Transitions are shared by all n - 1 pairs. An encoding has 2n - 1 ones, or n without
        transitions: this factor is left out of a loss's own constant, which knows no length.
        """
        x = np.asarray(self.sequences[t], dtype=np.float64)
        if not np.isfinite(x).all():
            return float("nan")
        if intercept:
            x = np.column_stack([x, np.ones(len(x))])
        largest = float(np.linalg.norm(x, 2)) ** 2
        if not self.transitions:
            return largest * len(x)
        return max(largest, len(x) - 1.0) * (2 * len(x) - 1)

    def first_bad_row(self) -> int | None:
        """Return the first sequence with an entry that is not finite, or None."""
        for t in range(self.rounds):
            if not np.isfinite(np.vdot(self.row(t), self.row(t))):
                return t
        return None

    def sample(self, rows: np.ndarray) -> Any:
        """Return some sequences as bytes, for a digest."""
        return b"".join(self.row(int(t)).tobytes() for t in rows)

    def check_labels(self, labels: Any) -> None:
        """Refuse labels of another length than their sequence."""
        for t, (array, label) in enumerate(zip(self.sequences, labels, strict=True)):
            if len(array) != len(label):
                raise InputError(
                    f"sequence {t} has {len(array)} positions, but its label has {len(label)} tags"
                )
