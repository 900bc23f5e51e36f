"""A member drawn by its weight, whose prediction is the committee's."""

from __future__ import annotations

import numpy as np

from driftline.committee.combine.base import Combine, Made
from driftline.tasks import Task

__all__ = ["Draw"]


class Draw(Combine):
    """A member is drawn by its weight: the expected loss is the weighted average."""

    name = "draw"
    certain = False
    how = "drawn by weight"
    average = "what is paid in expectation"
    wrong = "not those of the members drawn"

    def factor(self, task: Task) -> float:
        """Return 1."""
        return 1.0

    def describe(self, task: Task) -> str:
        """Say what a draw costs."""
        return (
            "a member drawn by weight: at most the best members' loss and the regret of the weights"
        )

    def predictions(self, task: Task, made: Made) -> np.ndarray:
        """Return the predictions of the members drawn."""
        return np.stack(list(made.predictions))[_places(made)]

    def paid(self, task: Task, made: Made, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the weighted averages, and the losses of the members drawn."""
        chosen, rounds = _places(made)
        return (made.weights * made.risks).sum(axis=1), made.losses[rounds, chosen]


def _places(made: Made) -> tuple[np.ndarray, np.ndarray]:
    """Return the member that is drawn in each round, and the rounds."""
    weights, uniforms = made.weights, made.uniforms
    assert uniforms is not None
    sums = np.cumsum(weights, axis=1)
    chosen: np.ndarray = (sums <= uniforms[:, np.newaxis] * sums[:, -1:]).sum(axis=1)
    return np.minimum(chosen, weights.shape[1] - 1), np.arange(len(weights))
