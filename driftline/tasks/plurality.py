"""Votes on numbers from 0: a committee predicts the one with most weight."""

from __future__ import annotations

import numpy as np

from driftline.kernels import VOTE, kernel
from driftline.tasks.many import ManyByRows

__all__ = ["Plurality"]


@kernel(VOTE)
def most_weight(predictions, weights, params, behind, out):
    """Write the label with most weight of members in every round, the lowest of several."""
    for t in range(predictions.shape[0]):
        for label in predictions[t]:
            behind[label] = 0.0
        for j in range(predictions.shape[1]):
            behind[predictions[t, j]] += weights[t, j]
        best = predictions[t, 0]
        for label in predictions[t]:
            if behind[label] > behind[best] or (behind[label] == behind[best] and label < best):
                best = label
        out[t, 0] = best


class Plurality(ManyByRows):
    """Predictions none of which lies between others."""

    def average(self, predictions: list[np.ndarray], weights: np.ndarray) -> np.ndarray:
        """Return the predictions with most weight of members, a row each."""
        rows, out = np.concatenate(predictions, axis=1), np.empty((len(weights), 1), dtype=np.int64)
        behind = np.empty(int(rows.max(initial=0)) + 1)
        most_weight.compiled(rows, weights, self.task._params(self.task.dim), behind, out)
        return out
