r"""Minus or plus one, from the sign of one score.

.. math:: \rho(y) = y, \qquad \ell^\rho(\hat y) = -\hat y / 2, \qquad c = 1/2.

This is the vector form of two classes: the gradient has half the squared norm that it
has with one weight vector for each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from driftline.errors import InputError
from driftline.kernels import DRAW, ENCODE, ENCODE_LOSS, kernel, where
from driftline.polytopes import Affine, Cube
from driftline.tasks.base import Distribution, Task, TaskKernels, mean_rows, whole_numbers
from driftline.typing import Label, Labels, Prediction

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
    dim: ClassVar[int] = 1
    classes: ClassVar[int] = 2
    all_labels: ClassVar[tuple[int, int]] = (-1, 1)
    guess_loss: ClassVar[float] = 0.5

    #: gamma and nu of the first theorem, for the absolute value.
    loss_slope: ClassVar[float] = 0.5
    separation: ClassVar[float] = 2.0

    #: The loss encoding is this multiple of the label itself.
    loss_factor: ClassVar[float] = -0.5
    vertex_loss: ClassVar[tuple[float, float]] = (-0.5, 0.0)

    def check_label(self, label: Label) -> np.ndarray:
        """Return the sign as a row of one integer."""
        if type(label) is not int:
            number = whole_numbers(label, "a label")
            if number.size != 1:
                raise InputError(f"a label must be one number, but has shape {number.shape}")
            label = int(number.ravel()[0])
        if label not in (-1, 1):
            raise InputError(f"label {label} is neither -1 nor +1")
        return np.array((label,), dtype=np.int64)

    def check_labels(self, labels: Labels) -> np.ndarray:
        """Return the signs as rows of one integer."""
        numbers = whole_numbers(labels, "labels")
        if numbers.ndim != 1:
            raise InputError(f"labels must be a vector, but have shape {numbers.shape}")
        wrong = np.abs(numbers) != 1
        if wrong.any():
            first = int(np.argmax(wrong))
            raise InputError(f"label {numbers[first]} in row {first} is neither -1 nor +1")
        return numbers.reshape(-1, 1)

    @property
    def label_hull(self) -> Cube:
        """The numbers from -1 to 1."""
        return Cube(1)

    def loss_hull_of(self, theta: np.ndarray) -> Affine:
        """Return the numbers from -1/2 to 1/2."""
        return Affine(self.label_hull, self.loss_factor)

    def constants(self, norm: str) -> tuple[float, float]:
        """Gamma is 1/2 and nu 2, for the absolute value."""
        return self.loss_slope, self.separation

    def loss_of_mean(self, mean: np.ndarray) -> np.ndarray:
        """Return the multiple of a mean label."""
        return self.loss_factor * mean

    def best_prediction(self, mu: np.ndarray) -> int:
        """Return the sign of the mean label, -1 for 0."""
        return 1 if np.ravel(mu)[0] > 0.0 else -1

    def average(self, predictions: Sequence[Prediction], weights: np.ndarray) -> int:
        """Return the sign of the mean prediction, -1 for 0."""
        mean = sum(w * p for w, p in zip(weights.tolist(), predictions, strict=True))
        return 1 if mean > 0.0 else -1

    def average_rows(self, predictions: list[np.ndarray], weights: np.ndarray) -> np.ndarray:
        """Return the signs of mean predictions, a row each."""
        return np.where(mean_rows(predictions, weights) > 0.0, 1, -1)

    def decompose(self, mean: np.ndarray) -> Distribution:
        """Return the signs of positive probability."""
        weights = np.array([0.5 + mean[0], 0.5 - mean[0]])
        kept = weights > 0.0
        return Distribution(np.array(self.all_labels)[kept], weights[kept])
