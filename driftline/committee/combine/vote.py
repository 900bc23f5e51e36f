r"""The weighted vote of a committee's members, and a bound of its loss.

Let the vote :math:`v` have the least mean loss :math:`\sum_j w_j \ell(v, p_j)` to the members'
predictions, the loss be symmetric, and :math:`\ell(v, y) \le c (\ell(v, p) + \ell(p, y))`. The
label :math:`y` might have been voted for too, so

.. math:: \ell(v, y) \le c \sum_j w_j (\ell(v, p_j) + \ell(p_j, y))
   \le 2 c \sum_j w_j \ell(p_j, y):

a vote costs at most 2c times the weighted average, in every round; twice for a metric.
"""

from __future__ import annotations

import math

import numpy as np

from driftline.committee.combine.base import Combine, Made
from driftline.tasks import Task
from driftline.typing import Label, Prediction

__all__ = ["Vote"]


class Vote(Combine):
    """The prediction of least mean loss if the label were a member's prediction, drawn by weight.

    Ties go to the lowest. Where predictions are not labels, the task defines their average: for
    finite tasks the prediction with most weight, for documents the order of their mean discounts.

    >>> from driftline.tasks import NDCG, LabelRanking, Multilabel
    >>> [Vote().factor(task) for task in (Multilabel(5), LabelRanking(4), NDCG(3))]
    [2.0, 4.0, inf]
    """

    name = "vote"
    how = "by weighted vote"
    average = "what a draw would pay"
    wrong = "not the vote"

    def factor(self, task: Task) -> float:
        """Return the task's factor.

        Infinite for predictions that are not labels, and for costs that are not symmetric.
        """
        return task.vote_factor

    def describe(self, task: Task) -> str:
        """Say what the vote costs at most."""
        factor = self.factor(task)
        words = f"at most {factor:g} times" if math.isfinite(factor) else "not bounded by"
        return f"weighted vote: {words} the weighted average of members"

    def predictions(self, task: Task, made: Made) -> np.ndarray:
        """Return the votes."""
        return task.average_rows(list(made.predictions), made.weights)

    def one(self, task: Task, made: Made, label: Label) -> tuple[Prediction, float] | None:
        """Return the vote and its loss, under the 0-1 loss; others have the last bits of runs."""
        if not task.zero_one:
            return None
        numbers = made.predictions
        if isinstance(numbers, np.ndarray) and numbers.shape[1] == 1:  # faster than one by one
            theirs = task.predictions(numbers).tolist()
        else:
            theirs = [task.prediction(own) for own in numbers]
        prediction = task.average(theirs, made.weights[0])
        return prediction, float(prediction != label)
