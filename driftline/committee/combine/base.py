"""How a committee's prediction follows from those of its members, on one page.

A rule is one file here, and one line in ``RULES``. It sees the members' predictions, their weights
and, where it draws, a uniform number a round; or what averaged probabilities say. Its bound is a
fact that descriptions, certificates and audits read.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar, NamedTuple

import numpy as np

from driftline.tasks import Task
from driftline.typing import CheckedLabels, Label, Prediction

__all__ = ["Combine", "Made"]

NOTHING = np.empty((0, 0))


#: In place of a prediction: there is none, not even no answer.
NOTHING_SAID = -9


class Made(NamedTuple):
    """What members have made of some rounds.

    ``predictions`` are rows of numbers by member, ``weights`` a row for every round, ``uniforms`` a
    number each, for rules that draw. Where labels are known, ``risks`` and ``losses`` have a column
    for every member, times the sample weights of rounds, if they have any. For rules that are
    ``scored``, ``mixed`` are rows of what is most probable in the mean of members' probabilities.
    """

    predictions: Sequence[np.ndarray] | np.ndarray
    weights: np.ndarray
    uniforms: np.ndarray | None = None
    risks: np.ndarray = NOTHING
    losses: np.ndarray = NOTHING
    labels: CheckedLabels = NOTHING
    sample_weight: np.ndarray | None = None
    mixed: np.ndarray | None = None


class Combine(ABC):
    """A rule that makes one prediction of several."""

    #: The name in options and files.
    name: ClassVar[str]

    #: Whether the prediction is certain: nothing is drawn, and the loss is the expected loss.
    certain: ClassVar[bool] = True

    #: Whether it needs members' scores, and sets of weights are judged by what each predicts.
    scored: ClassVar[bool] = False

    #: How many predictions a guard may choose from before its book predicts.
    levels: ClassVar[int] = 1

    #: How it predicts, in two words; what the weighted average of members is to it; and what an
    #: audit says of predictions that are not the rule's.
    how: ClassVar[str]
    average: ClassVar[str]
    wrong: ClassVar[str]

    #: Why nothing is known where the factor is infinite.
    no_bound: ClassVar[str] = (
        "the target loss is not known to be a metric, so nothing bounds a vote"
    )

    def check(self, task: Task) -> None:
        """Refuse tasks for which there is no such rule."""
        return

    def champions(self, mixed: np.ndarray, scores: np.ndarray, first: np.ndarray) -> np.ndarray:
        """Return what a guard may let be predicted, as columns in this order.

        Given what is most probable in the mean of members' probabilities, their scores by round,
        label and member, and what the first member predicts.
        """
        return mixed

    @abstractmethod
    def factor(self, task: Task) -> float:
        """Return c if the expected loss is at most c times the members' weighted average.

        Infinite where nothing is known.
        """

    @abstractmethod
    def describe(self, task: Task) -> str:
        """Say how it predicts, and what that costs at most."""

    @abstractmethod
    def predictions(self, task: Task, made: Made) -> np.ndarray:
        """Return the committee's predictions, as rows of numbers."""

    def paid(self, task: Task, made: Made, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return expected losses and losses of predictions, times their sample weights."""
        paid = task.losses(rows, made.labels)
        if made.sample_weight is not None:
            paid *= made.sample_weight
        return paid, paid

    def one(self, task: Task, made: Made, label: Label) -> tuple[Prediction, float] | None:
        """Return prediction and loss of one round, None if that is no faster than for many.

        Members' predictions are a row of numbers each here, and not for many rounds.
        """
        return None
