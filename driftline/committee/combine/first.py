"""The prediction of the first member, which may be a model from elsewhere."""

from __future__ import annotations

import numpy as np

from driftline.committee.combine.base import NOTHING_SAID
from driftline.committee.combine.mix import Mix

__all__ = ["First"]


class First(Mix):
    """What the first member predicts, as long as a guard allows it.

    Then what is most probable in the mean of all members' probabilities, while that is within twice
    the budget, and only then what the guard's book predicts. A member that gives all labels the
    same score predicts nothing.
    """

    name = "first"
    levels = 2
    how = "by the first member"
    wrong = "not the first member's"

    def champions(self, mixed: np.ndarray, scores: np.ndarray, first: np.ndarray) -> np.ndarray:
        """Return the first member's predictions, and what is most probable."""
        silent = (scores[:, :, 0] == scores[:, :1, 0]).all(axis=1)
        said = np.where(silent[:, np.newaxis], NOTHING_SAID, first)
        return np.hstack([said, mixed])
