"""The chances of labels in every row of a run, before the row was learned from."""

from __future__ import annotations

from typing import Any

import numpy as np

from driftline.committee.committee import Committee
from driftline.committee.pooling import gives_chances, log_chances
from driftline.errors import InputError
from driftline.learner import Member
from driftline.typing import Inputs, Label, Labels

__all__ = ["RowChances", "chances_of"]


def chances_of(learner: Member | Committee, inputs: Inputs) -> np.ndarray:
    """Return the chances of every label, a row each; before the first round all are alike."""
    if learner.rounds:
        made: np.ndarray = np.exp(log_chances(learner, inputs))
        return made
    task, rows = learner.task, inputs.shape[0] if hasattr(inputs, "shape") else len(inputs)
    if not gives_chances(task):
        raise InputError(f"chances are those of classes, levels and tags, but the task is {task!r}")
    if task.kind == "tags":
        return np.full((rows, task.dim), 0.5)
    labels = task.dim + (task.kind in ("levels", "sign"))  # which have a score for each step
    return np.full((rows, labels), 1.0 / labels)


class RowChances:
    """A second learner, which goes through the rows of a run one by one.

    A batch is played at once, by code that records no scores. So a copy of the learner is asked for
    chances before each row, and learns from it then: steps have the bits of batches, and both
    learners are the same after every batch.

    Parameters
    ----------
    learner
        The learner of the run, before its first row or between two batches; it is copied.
    """

    def __init__(self, learner: Member | Committee):
        self._learner: Any = learner.copy()
        #: How many labels were known before each row of the last call.
        self.known = np.zeros(0, dtype=np.int64)

    def before(
        self,
        inputs: Inputs,
        labels: Labels,
        weights: np.ndarray | None = None,
        delays: np.ndarray | None = None,
    ) -> np.ndarray:
        """Return the chances of every label before each row, and learn; a row each.

        Without labels nothing is learned. A class has no chance before its first row came.
        """
        made = []
        for i in range(inputs.shape[0] if hasattr(inputs, "shape") else len(inputs)):
            row = inputs[i : i + 1]
            made.append(chances_of(self._learner, row)[0])
            if labels is not None:
                more = (None if given is None else given[i : i + 1] for given in (weights, delays))
                self._learn(row, labels[i], *more)
        self.known = np.array([len(own) for own in made], dtype=np.int64)
        chances = np.zeros((len(made), max(map(len, made), default=0)))
        for i, own in enumerate(made):
            chances[i, : len(own)] = own
        return chances

    def _learn(
        self, row: Inputs, label: Label, weight: np.ndarray | None, delay: np.ndarray | None
    ) -> None:
        task = self._learner.task
        if task.answers.kind == "classes" and label >= task.dim:
            self._learner = self._learner.grown(classes=int(label) + 1)
        if delay is not None:  # pieces of one row have the bits of one run
            given = row, np.asarray(label)[np.newaxis], delay
            self._learner.run_events(*given, audit=False, sample_weight=weight)
        elif weight is None:
            self._learner.learn_row(row, label)
        else:
            self._learner.learn_rows(row, np.asarray(label)[np.newaxis], weight)
