"""How a committee's prediction follows from those of its members, on one page.

A rule is one file here, and one line in ``RULES``. It sees the members' predictions and their
weights, or what averaged probabilities say. A bound is the business of a guard
(:mod:`driftline.committee.account`), whatever the rule.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar, NamedTuple

import numpy as np

from driftline.tasks import Task
from driftline.typing import Label, Prediction

__all__ = ["Combine", "Made"]

#: In place of a prediction: there is none, not even no answer.
NOTHING_SAID = -9


class Made(NamedTuple):
    """What members have made of some rounds.

    ``predictions`` are rows of numbers by member, ``weights`` a row for every round. For rules that
    are ``scored``, ``mixed`` are rows of what is most probable in the mean of members'
    probabilities.
    """

    predictions: Sequence[np.ndarray] | np.ndarray
    weights: np.ndarray
    mixed: np.ndarray | None = None


class Combine(ABC):
    """A rule that makes one prediction of several."""

    #: The name in options and files.
    name: ClassVar[str]

    #: Whether it needs members' scores, and sets of weights are judged by what each predicts.
    scored: ClassVar[bool] = False

    #: How many predictions a guard may choose from before its book predicts.
    levels: ClassVar[int] = 1

    #: How it predicts, in two words; and what an audit says of predictions that are not the rule's.
    how: ClassVar[str]
    wrong: ClassVar[str]

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
    def predictions(self, task: Task, made: Made) -> np.ndarray:
        """Return the committee's predictions, as rows of numbers."""

    def one(self, task: Task, made: Made, label: Label) -> tuple[Prediction, float] | None:
        """Return prediction and loss of one round, None if that is no faster than for many.

        Members' predictions are a row of numbers each here, and not for many rounds.
        """
        return None
