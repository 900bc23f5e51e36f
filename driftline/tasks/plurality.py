"""Tasks whose predictions are numbers from 0: a committee predicts the one with most weight."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from driftline.kernels import VOTE, kernel
from driftline.tasks.base import Task
from driftline.typing import Prediction

__all__ = ["PluralityTask"]


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


class PluralityTask(Task):
    """Base of tasks in which no prediction lies between others."""

    def average(self, predictions: Sequence[Prediction], weights: np.ndarray) -> int:
        """Return the prediction with most weight of members, the lowest of several."""
        totals: dict[int, float] = {}
        for prediction, weight in zip(predictions, weights.tolist(), strict=True):
            totals[prediction] = totals.get(prediction, 0.0) + weight
        most = max(totals.values())
        return min(label for label, total in totals.items() if total == most)

    def average_rows(self, predictions: list[np.ndarray], weights: np.ndarray) -> np.ndarray:
        """Return the predictions with most weight of members, a row each."""
        rows, out = np.concatenate(predictions, axis=1), np.empty((len(weights), 1), dtype=np.int64)
        behind = np.empty(int(rows.max(initial=0)) + 1)
        most_weight.compiled(rows, weights, self._params(self.dim), behind, out)
        return out
