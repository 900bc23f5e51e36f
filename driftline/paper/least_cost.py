"""Predict with the least expected cost under the probabilities of a loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from driftline.decoders import Decoder
from driftline.losses import FenchelYoung
from driftline.typing import Prediction

__all__ = ["LeastCost"]


@dataclass(frozen=True)
class LeastCost(Decoder):
    """The prediction of least expected cost, with labels drawn by the loss's mean prediction.

    With ``sure`` the label is taken to be the most probable one, so that costs do not matter as
    long as the right prediction costs nothing. Neither has a guarantee.

    >>> from driftline.regularizers import Entropy
    >>> from driftline.tasks import CostSensitive
    >>> loss = FenchelYoung(CostSensitive([[0, 1, 0.3], [5, 0, 0.3]]), Entropy())
    >>> theta = np.array([2.0, 0.0])
    >>> LeastCost(loss).draw(theta), LeastCost(loss, sure=True).draw(theta)
    (2, 0)
    """

    loss: FenchelYoung
    sure: bool = False

    deterministic: ClassVar[bool] = True

    def mean_loss_encoding(self, theta: np.ndarray) -> np.ndarray:
        """Return the costs of the prediction."""
        return self.loss.task.encode_loss(self.draw(theta))

    def draw(self, theta: np.ndarray, uniforms: np.ndarray | None = None) -> Prediction:
        """Return the prediction."""
        mu = self.loss.mean_prediction(theta)
        if self.sure:
            mu = np.eye(mu.size)[np.argmax(mu)]
        return self.loss.task.best_prediction(mu)
