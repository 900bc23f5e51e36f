"""The most probable label, by the members' averaged probabilities."""

from __future__ import annotations

import numpy as np

from driftline.committee.combine.base import Combine, Made
from driftline.errors import InputError
from driftline.tasks import Task
from driftline.typing import Label, Prediction

__all__ = ["Mix"]


class Mix(Combine):
    """What is most probable in the mean of the members' probabilities.

    Or none, where that costs less: see :mod:`driftline.committee.mixture`.
    """

    name = "mix"
    scored = True
    how = "by averaged probabilities"
    wrong = "not what is most probable"

    def check(self, task: Task) -> None:
        """Refuse tasks other than classes and signs."""
        if not task.geometry.classes:
            raise InputError(
                f"combine={self.name!r} averages probabilities of classes and signs, not of "
                f"{task!r:.80}: take 'vote'"
            )

    def predictions(self, task: Task, made: Made) -> np.ndarray:
        """Return what was the most probable."""
        assert made.mixed is not None
        return made.mixed

    def one(self, task: Task, made: Made, label: Label) -> tuple[Prediction, float] | None:
        """Return what was the most probable, and its loss."""
        if not task.zero_one or made.mixed is None:
            return None
        prediction = task.predictions.value(made.mixed[0])
        return prediction, float(prediction != label)
