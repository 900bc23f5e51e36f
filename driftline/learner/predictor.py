"""A learner that no longer learns, for any number of readers."""

from __future__ import annotations

from collections.abc import Callable

from driftline.tasks import Task
from driftline.typing import Input, Prediction

__all__ = ["Predictor"]


class Predictor:
    """A snapshot of a learner: predicts as the learner did at one moment.

    It has a copy of the weights, which nobody writes to, so that any number of threads may use it
    without a lock. Predictions are those of :meth:`Learner.predict <driftline.Learner.predict>` at
    that moment, random ones included.
    """

    __slots__ = ("_predict", "rounds", "task")

    def __init__(self, task: Task, rounds: int, predict: Callable[[Input], Prediction]):
        self.task = task
        #: How many rounds the learner had learned from.
        self.rounds = rounds
        self._predict = predict

    def predict(self, x: Input) -> Prediction:
        """Return the prediction for an input."""
        return self._predict(x)

    def __repr__(self) -> str:
        """Name the task and the moment."""
        return f"Predictor({self.task!r}, after {self.rounds} rounds)"
