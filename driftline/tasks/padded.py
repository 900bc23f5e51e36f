"""Tasks whose predictions differ in length, padded by -1 where they stand in one array."""

from __future__ import annotations

import numpy as np

from driftline.tasks.base import Task
from driftline.typing import Label, Labels

__all__ = ["PaddedTask"]


class PaddedTask(Task):
    """Base of tasks with one entry of the prediction for every entry of the label."""

    def label(self, checked: Label) -> np.ndarray:
        """Return a label as users give it."""
        return checked

    def prediction(self, row: np.ndarray) -> np.ndarray:
        """Return one prediction without the padding."""
        return row[row >= 0].copy()

    def predictions(self, rows: np.ndarray) -> np.ndarray:
        """Return the padded rows."""
        return rows

    def prediction_width(self, labels: Labels) -> int:
        """Return the length of the longest label."""
        return max(len(label) for label in labels)
