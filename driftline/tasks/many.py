"""Many predictions at once, a row of numbers each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from driftline.errors import InputError
from driftline.typing import CheckedLabels, Prediction

if TYPE_CHECKING:
    from driftline.tasks.base import Task

__all__ = ["Many", "ManyByRows", "mean_rows"]


@dataclass(frozen=True)
class Many:
    """What a task does with the predictions of many rounds: here, one round after the other."""

    task: Any

    def top(self, scores: np.ndarray) -> np.ndarray:
        """Return the predictions of highest score, a row of numbers for each row of scores."""
        task: Task = self.task
        rows = [task.predictions.numbers(task.top_prediction(theta)) for theta in scores]
        return np.array(rows).reshape(len(rows), task.predictions.size or scores.shape[1])

    def average_one(self, predictions: Sequence[Prediction], weights: np.ndarray) -> Prediction:
        """Return the average of one round: the best prediction for the mean encoding."""
        encoded = sum(w * self.task.encode(p) for w, p in zip(weights, predictions, strict=True))
        return self.task.best_prediction(encoded)

    def average(self, predictions: list[np.ndarray], weights: np.ndarray) -> np.ndarray:
        """Return the average of many rounds, a row each, from rows of every member."""
        space = self.task.predictions
        out = space.rows(*predictions[0].shape)
        for t in range(len(out)):
            rows = [space.value(member[t]) for member in predictions]
            chosen = space.numbers(self.task.average(rows, weights[t]))
            out[t, : chosen.size] = chosen
        return out

    def losses(self, rows: np.ndarray, labels: CheckedLabels) -> np.ndarray:
        """Return the target losses of many predictions; refuse rows that are not predictions."""
        task: Task = self.task
        if task.zero_one and task.kernels is not None:
            self._refuse_wide(rows)
            known = task.predictions.check_all(rows[:, 0])
            wrong = np.asarray(known) != np.asarray(labels)
            return np.asarray(wrong.any(axis=1), dtype=np.float64)
        made, given = task.predictions.value, task.labels.value
        pairs = zip(rows, labels, strict=True)
        return np.array([task.loss(made(p), given(y)) for p, y in pairs])

    def encode_losses(self, rows: np.ndarray, size: int) -> np.ndarray:
        """Return the loss encodings of many predictions, a row each, from rows of numbers.

        Each that is different is encoded once; all rounds have ``size`` scores.
        """
        encode, value = self.task.geometry.encode_loss, self.task.predictions.value
        if len(rows) == 1:
            return encode(value(rows[0]), size)[np.newaxis]
        given = rows[:, 0] if rows.shape[1] == 1 else rows
        kinds, places = np.unique(given, axis=0, return_inverse=True)
        encoded = [encode(value(row), size) for row in kinds.reshape(len(kinds), -1)]
        return np.array(encoded, dtype=np.float64)[places.ravel()]

    def widened(self, means: np.ndarray, size: int) -> np.ndarray:
        """Return mean loss encodings, a row each, of predictions from before labels were added.

        ``size`` is how many scores there are now. By default sizes do not change.
        """
        return means

    def _refuse_wide(self, rows: np.ndarray) -> None:
        """Refuse rows of several numbers."""
        if rows.ndim != 2 or rows.shape[1] != 1:
            raise InputError(
                f"predictions of {self.task!r} are single numbers, not {rows.shape[-1]}"
            )


class ManyByRows(Many):
    """Base where averages of many rounds have a closed form, which one round takes as well."""

    def average_one(self, predictions: Sequence[Prediction], weights: np.ndarray) -> Prediction:
        """Return the average of one round."""
        space = self.task.predictions
        rows = [space.numbers(prediction)[np.newaxis] for prediction in predictions]
        return space.value(self.average(rows, np.asarray(weights)[np.newaxis])[0])


def mean_rows(predictions: list[np.ndarray], weights: np.ndarray) -> np.ndarray:
    """Return the weighted sums of the members' rows."""
    return np.asarray(sum(weights[:, j, None] * rows for j, rows in enumerate(predictions)))
