r"""A committee's prediction from those of its members, and a bound of its loss.

Let the vote :math:`v` have the least mean loss :math:`\sum_j w_j \ell(v, p_j)` to the members'
predictions, the loss be symmetric, and :math:`\ell(v, y) \le c (\ell(v, p) + \ell(p, y))`. The
label :math:`y` might have been voted for too, so

.. math:: \ell(v, y) \le c \sum_j w_j (\ell(v, p_j) + \ell(p_j, y))
   \le 2 c \sum_j w_j \ell(p_j, y):

a vote costs at most 2c times the weighted average, in every round; twice for a metric.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from driftline.tasks import Task
from driftline.typing import Prediction

__all__ = ["drawn", "vote", "vote_factor", "vote_one"]


def vote(task: Task, predictions: list[np.ndarray], weights: np.ndarray) -> np.ndarray:
    """Return the committee's predictions, a row each, from rows of the members'.

    It is the prediction of least mean loss if the label were one of the members' predictions, drawn
    by their weights; ties go to the lowest. Where predictions are not labels, the task defines
    their average: for finite tasks the prediction with most weight, for documents the order of
    their mean discounts.
    """
    return task.average_rows(predictions, weights)


def vote_factor(task: Task) -> float:
    """Return the factor c: a vote costs at most c times the members' weighted average.

    Infinite where nothing is known: for predictions that are not labels, and for costs that are
    not symmetric.

    >>> from driftline.tasks import NDCG, LabelRanking, Multilabel
    >>> [vote_factor(task) for task in (Multilabel(5), LabelRanking(4), NDCG(3))]
    [2.0, 4.0, inf]
    """
    return task.vote_factor


def vote_one(task: Task, predictions: Sequence[Prediction], weights: np.ndarray) -> Prediction:
    """Return the committee's prediction for one round, from the members'."""
    return task.average(predictions, weights)


def drawn(weights: np.ndarray, uniforms: np.ndarray) -> np.ndarray:
    """Return the member that is drawn by each uniform number."""
    sums = np.cumsum(weights, axis=1)
    chosen: np.ndarray = (sums <= uniforms[:, np.newaxis] * sums[:, -1:]).sum(axis=1)
    return np.minimum(chosen, weights.shape[1] - 1)
