"""A random order of documents, for comparison."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from driftline.decoders import Decoder
from driftline.losses import Loss
from driftline.typing import Prediction

__all__ = ["RandomOrder"]


@dataclass(frozen=True)
class RandomOrder(Decoder):
    """All orders of the documents, or all choices of k, with equal probability.

    Every document earns the mean discount.

    >>> from driftline.paper.ranking_losses import RankNet
    >>> from driftline.tasks import PrecisionAtK
    >>> decoder = RandomOrder(RankNet(PrecisionAtK(1)))
    >>> decoder.risk(np.array([3.0, 2.0, 1.0, 0.0]), [1, 0, 0, 0])
    0.75
    """

    loss: Loss

    def mean_loss_encoding(self, theta: np.ndarray) -> np.ndarray:
        """Return minus the mean discount for every document."""
        task: Any = self.loss.task
        size = np.size(theta)
        return np.full(size, -task.discounts(size).mean())

    def draw(self, theta: np.ndarray, uniforms: np.ndarray) -> Prediction:
        """Put the documents in the order of random numbers."""
        generator = np.random.default_rng(int(uniforms[0] * 2**53))
        return self.loss.task.best_prediction(generator.random(np.size(theta)))
