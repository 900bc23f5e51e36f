r"""Minus or plus one, from the sign of one score.

.. math:: \rho(y) = y, \qquad \ell^\rho(\hat y) = -\hat y / 2, \qquad c = 1/2.

This is the vector form of two classes: the gradient has half the squared norm that it
has with one weight vector for each.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from driftline.kernels import DRAW, ENCODE, ENCODE_LOSS, kernel, where
from driftline.polytopes import Cube
from driftline.tasks.base import Distribution, Guess, Task, TaskKernels
from driftline.tasks.many import Many, ManyByRows, mean_rows
from driftline.tasks.spaces import Signs

__all__ = ["Binary"]


@kernel(ENCODE)
def encode(label, params, target):
    """Write the label itself."""
    target[0] = label[0]
    return 0.5


@kernel(ENCODE_LOSS)
def encode_loss(prediction, params, out):
    """Write minus half the prediction."""
    out[0] = -0.5 * prediction[0]


@kernel(DRAW)
def draw(mean, params, uniforms, scratch, prediction, encoded):
    """Predict -1 with probability 1/2 + mean."""
    sign = where(uniforms[0] < 0.5 + mean[0], -1.0, 1.0)
    prediction[0] = sign
    encoded[0] = -0.5 * sign


class ManySigns(ManyByRows):
    """Many signs at once."""

    def average(self, predictions: list[np.ndarray], weights: np.ndarray) -> np.ndarray:
        """Return the signs of mean predictions, a row each; -1 for 0."""
        return np.where(mean_rows(predictions, weights) > 0.0, 1, -1)


@dataclass(frozen=True)
class Binary(Task):
    """Two labels, -1 and +1, under the 0-1 loss. A score of 0 predicts -1.

    >>> task = Binary()
    >>> task.loss(-1, +1), task.loss(+1, +1)
    (1.0, 0.0)
    """

    kernels: ClassVar[TaskKernels] = TaskKernels(encode, encode_loss, draw)
    kind: ClassVar[str] = "sign"
    zero_one: ClassVar[bool] = True
    _many: ClassVar[type[Many]] = ManySigns
    dim: ClassVar[int] = 1
    classes: ClassVar[int] = 2
    labels: ClassVar[Signs] = Signs()
    guess: ClassVar[Guess] = Guess(0.5)

    #: gamma and nu of the first theorem, for the absolute value.
    loss_slope: ClassVar[float] = 0.5
    separation: ClassVar[float] = 2.0

    #: The loss encoding is this multiple of the label itself.
    loss_factor: ClassVar[float] = -0.5

    @property
    def label_hull(self) -> Cube:
        """The numbers from -1 to 1."""
        return Cube(1)

    def constants(self, norm: str) -> tuple[float, float]:
        """Gamma is 1/2 and nu 2, for the absolute value."""
        return self.loss_slope, self.separation

    def best_prediction(self, mu: np.ndarray) -> int:
        """Return the sign of the mean label, -1 for 0."""
        return 1 if np.ravel(mu)[0] > 0.0 else -1

    def decompose(self, mean: np.ndarray) -> Distribution:
        """Return the signs of positive probability."""
        weights = np.array([0.5 + mean[0], 0.5 - mean[0]])
        kept = weights > 0.0
        return Distribution(np.array(self.labels.all)[kept], weights[kept])
