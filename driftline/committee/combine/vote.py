"""The weighted vote of a committee's members."""

from __future__ import annotations

import numpy as np

from driftline.committee.combine.base import Combine, Made
from driftline.tasks import Task
from driftline.typing import Label, Prediction

__all__ = ["Vote"]


class Vote(Combine):
    """The prediction of least mean loss if the label were a member's prediction, drawn by weight.

    Ties go to the lowest. Where predictions are not labels, the task defines their average: for
    finite tasks the prediction with most weight, for documents the order of their mean discounts.
    """

    name = "vote"
    how = "by weighted vote"
    wrong = "not the vote"

    def predictions(self, task: Task, made: Made) -> np.ndarray:
        """Return the votes."""
        return task.many.average(list(made.predictions), made.weights)

    def one(self, task: Task, made: Made, label: Label) -> tuple[Prediction, float] | None:
        """Return the vote and its loss, under the 0-1 loss; others have the last bits of runs."""
        if not task.zero_one:
            return None
        rows = [own[np.newaxis] for own in made.predictions]
        prediction = task.predictions.value(task.many.average(rows, made.weights)[0])
        return prediction, float(prediction != label)
