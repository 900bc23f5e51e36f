"""How a committee's prediction follows from those of its members, on one page.

A rule is one file here, and one line in ``RULES``. It sees the members' predictions, their weights
and, where it draws, a uniform number a round; its bound is a fact that descriptions, certificates
and audits read.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from driftline.tasks import Task
from driftline.typing import CheckedLabels, Label, Prediction

__all__ = ["Combine"]


class Combine(ABC):
    """A rule that makes one prediction of several."""

    #: The name in options and files.
    name: ClassVar[str]

    #: Whether the prediction is certain: nothing is drawn, and the loss is the expected loss.
    certain: ClassVar[bool] = True

    #: How it predicts, in two words; what the weighted average of members is to it; and what an
    #: audit says of predictions that are not the rule's.
    how: ClassVar[str]
    average: ClassVar[str]
    wrong: ClassVar[str]

    @abstractmethod
    def factor(self, task: Task) -> float:
        """Return c if the expected loss is at most c times the members' weighted average.

        Infinite where nothing is known.
        """

    @abstractmethod
    def describe(self, task: Task) -> str:
        """Say how it predicts, and what that costs at most."""

    @abstractmethod
    def predictions(
        self,
        task: Task,
        made: Sequence[np.ndarray],
        weights: np.ndarray,
        uniforms: np.ndarray | None,
    ) -> np.ndarray:
        """Return predictions as rows of numbers, from those of members and a row of weights each.

        ``uniforms`` is None for a rule that draws nothing.
        """

    @abstractmethod
    def paid(
        self,
        task: Task,
        rows: np.ndarray,
        weights: np.ndarray,
        risks: np.ndarray,
        losses: np.ndarray,
        labels: CheckedLabels,
        sample_weight: np.ndarray | None,
        uniforms: np.ndarray | None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return expected losses and losses of predictions, times their sample weights.

        ``risks`` and ``losses`` are those of members, a column each, times these already.
        """

    def one(
        self, task: Task, made: Sequence[Prediction], weights: np.ndarray, label: Label
    ) -> tuple[Prediction, float] | None:
        """Return prediction and loss of one round, None if that is no faster than for many."""
        return None
