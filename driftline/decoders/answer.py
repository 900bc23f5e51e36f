"""Always answer, where others may abstain."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from driftline.decoders.argmax import Argmax
from driftline.tasks import Abstaining

__all__ = ["Answer"]


@dataclass(frozen=True)
class Answer(Argmax):
    """:class:`Argmax`, for a committee whose other members may predict none at a cost.

    Where the loss is noisy and no answer costs nearly as much as a guess, it may be better always
    to answer: members that do so let a committee find out.

    >>> from driftline.losses import Logistic, Scaled
    >>> from driftline.tasks import Multiclass
    >>> decoder = Answer(Scaled(Logistic(Multiclass(3)), 2.0), cost=0.25)
    >>> decoder.surrogate_gap, decoder.task
    (0.5, Abstaining(answers=Multiclass(classes=3), cost=0.25))
    """

    cost: float = 0.25

    in_short: ClassVar[str] = "always answers"

    def __post_init__(self) -> None:
        """Refuse tasks other than classes."""
        super().__post_init__()
        object.__setattr__(self, "cost", self.task.cost)

    @cached_property
    def task(self) -> Abstaining:
        """The task of the loss, in which predictions may be none."""
        return Abstaining(self.loss.task, self.cost)  # type: ignore[arg-type]

    def top_rows(self, scores: np.ndarray) -> np.ndarray:
        """Return the classes of highest score, a row each."""
        return self.loss.task.many.top(scores)
