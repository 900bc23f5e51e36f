r"""What a committee predicts from what its members do, and what that may cost.

Let the vote :math:`v` have the least mean loss :math:`\sum_j w_j \ell(v, p_j)` to the members'
predictions, the loss be symmetric, and :math:`\ell(v, y) \le c (\ell(v, p) + \ell(p, y))`. The
label :math:`y` might have been voted for too, so

.. math:: \ell(v, y) \le c \sum_j w_j (\ell(v, p_j) + \ell(p_j, y))
   \le 2 c \sum_j w_j \ell(p_j, y):

a vote costs at most 2c times the weighted average, in every round; twice for a metric.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from driftline.kernels import VOTE, kernel
from driftline.tasks import Binary, Finite, Multiclass, Multilabel, RelevanceTask, Task

__all__ = ["drawn", "padded", "vote", "vote_factor", "vote_one"]


def vote(task: Task, predictions: list[np.ndarray], weights: np.ndarray) -> np.ndarray:
    """Return the committee's predictions, a row each, from rows of the members'.

    The prediction of least mean loss if the members' predictions were labels, drawn by their
    weights; ties go to the lowest. Where predictions are not labels: of finite tasks the one with
    most weight behind it, of documents the order of their mean discounts.
    """
    if isinstance(task, (Multiclass, Finite)):
        return _most_weight(predictions, weights)
    if isinstance(task, (Binary, Multilabel)):
        mean = np.asarray(sum(weights[:, j, None] * rows for j, rows in enumerate(predictions)))
        if isinstance(task, Binary):
            return np.where(mean > 0.0, 1, -1)
        return (mean > 0.5).astype(np.int64)
    out = np.full_like(predictions[0], -1)
    for t in range(len(out)):
        rows = [task.prediction(member[t]) for member in predictions]
        chosen = np.ravel(_one(task, rows, weights[t]))
        out[t, : chosen.size] = chosen
    return out


def vote_factor(task: Task) -> float:
    """Return how many times the members' weighted average a vote costs at most.

    Infinite where nothing is known: for predictions that are not labels, and for costs that are
    not symmetric.

    >>> from driftline.tasks import NDCG, LabelRanking, Multilabel
    >>> [vote_factor(task) for task in (Multilabel(5), LabelRanking(4), NDCG(3))]
    [2.0, 4.0, inf]
    """
    return 2.0 * task.triangle


def vote_one(task: Any, predictions: Sequence[Any], weights: np.ndarray) -> Any:
    """Return the committee's prediction for one round, from the members'."""
    if isinstance(task, (Multiclass, Finite)):
        totals: dict[int, float] = {}
        for prediction, weight in zip(predictions, weights.tolist(), strict=True):
            totals[prediction] = totals.get(prediction, 0.0) + weight
        most = max(totals.values())
        return min(label for label, total in totals.items() if total == most)
    if isinstance(task, Binary):
        mean = sum(w * p for w, p in zip(weights.tolist(), predictions, strict=True))
        return 1 if mean > 0.0 else -1
    return task.prediction(vote(task, padded(predictions), weights[np.newaxis])[0])


def drawn(weights: np.ndarray, uniforms: np.ndarray) -> np.ndarray:
    """Return the member that each uniform number falls to."""
    sums = np.cumsum(weights, axis=1)
    chosen: np.ndarray = (sums <= uniforms[:, np.newaxis] * sums[:, -1:]).sum(axis=1)
    return np.minimum(chosen, weights.shape[1] - 1)


def padded(predictions: Sequence[Any]) -> list[np.ndarray]:
    """Return one prediction of every member as a row each, as long as the longest."""
    made = [np.ravel(prediction) for prediction in predictions]
    width = max(len(prediction) for prediction in made)
    rows = [np.full((1, width), -1, dtype=np.int64) for _ in made]
    for row, prediction in zip(rows, made, strict=True):
        row[0, : len(prediction)] = prediction
    return rows


def _most_weight(predictions: list[np.ndarray], weights: np.ndarray) -> np.ndarray:
    rows, out = np.concatenate(predictions, axis=1), np.empty((len(weights), 1), dtype=np.int64)
    behind = np.empty(int(rows.max(initial=0)) + 1)
    most_weight.compiled(rows, weights, behind, out)
    return out


@kernel(VOTE)
def most_weight(predictions, weights, behind, out):
    """Write the label with most weight behind it in every round, the lowest of several."""
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


def _one(task: Any, predictions: list[Any], weights: np.ndarray) -> Any:
    if isinstance(task, RelevanceTask):
        size = len(predictions[0]) if task.prediction_size == 0 else 0
        if size:
            earned = sum(
                w * task.discounts(size)[p] for w, p in zip(weights, predictions, strict=True)
            )
        else:
            size = int(max(p.max() for p in predictions)) + 1
            earned = np.zeros(max(size, len(predictions[0])))
            for w, p in zip(weights, predictions, strict=True):
                earned[p] += w
        return task.best_prediction(earned)
    mean = sum(w * task.encode(p) for w, p in zip(weights, predictions, strict=True))
    return task.best_prediction(mean)
