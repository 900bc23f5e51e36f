r"""The smooth hinge loss of Rennie and Srebro (2005), in its multiclass form.

With the margin :math:`m = \theta_y - \max_{i \ne y} \theta_i`
(for a binary task :math:`m = y \theta`),

.. math::

    L(\theta, y) = \begin{cases}
        1 - 2m & m \le 0, \\
        \max(0, 1 - m)^2 & m > 0.
    \end{cases}

It is 0 from margin 1 on, so that confident rounds make no step. The gradient has squared
norm at most 8 L with one weight vector per class, 4 L with one score.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from driftline.errors import InputError
from driftline.kernels import LOSS, VALUES, at_peak, helper, kernel, peak, where
from driftline.losses.base import Loss, LossKernels
from driftline.tasks import Task
from driftline.typing import Label

__all__ = ["SmoothHinge"]


@helper
def hinge_slope(margin):
    """Minus the derivative of the loss in the margin."""
    inside = where(margin > 0.0, margin, 0.0)
    return 2.0 * (1.0 - where(inside < 1.0, inside, 1.0))


@helper
def hinge_value(margin):
    """Return the loss as a function of the margin."""
    slack = where(margin >= 1.0, 0.0, 1.0 - margin)
    return where(margin <= 0.0, 1.0 - 2.0 * margin, slack * slack)


@helper
def two_peaks(theta):
    """Return the two largest scores and their indices, the lowest of several."""
    high, top = theta[0], 0.0
    less, second = theta[1], 1.0
    for i in range(1, theta.size):
        above, between = theta[i] > high, theta[i] > less
        second = where(above, top, where(between, i, second))
        less = where(above, high, where(between, theta[i], less))
        top = where(above, i, top)
        high = where(above, theta[i], high)
    return high, top, less, second


@helper
def find_margin(theta, target, work):
    """Return the label, its strongest rival and its margin; write the places of both peaks."""
    high, top, less, second = two_peaks(theta)
    label = peak(target)[1]
    work[0] = top
    work[1] = second
    margin = at_peak(target, theta) - where(label == top, less, high)
    return label, where(label == top, second, top), margin


@kernel(LOSS)
def smooth_hinge(theta, target, params, work, grad):
    """Value and gradient: only the label and its strongest rival move."""
    label, rival, margin = find_margin(theta, target, work)
    slope = params[0] * hinge_slope(margin)
    for k in range(grad.size):
        grad[k] = where(label == k, -slope, where(rival == k, slope, 0.0))
    return params[0] * hinge_value(margin)


@kernel(VALUES)
def values(theta, params, work, values, squares):
    """Write loss and squared gradient of every label."""
    high, less = theta[0], theta[1]
    for k in range(theta.size):
        high = where(work[0] == k, theta[k], high)
        less = where(work[1] == k, theta[k], less)
    for k in range(theta.size):
        margin = theta[k] - where(work[0] == k, less, high)
        slope = params[0] * hinge_slope(margin)
        values[k] = params[0] * hinge_value(margin)
        squares[k] = 2.0 * (slope * slope)


@kernel(LOSS)
def smooth_hinge_binary(theta, target, params, work, grad):
    """Value and gradient in one score."""
    margin = target[0] * theta[0]
    grad[0] = -target[0] * params[0] * hinge_slope(margin)
    return params[0] * hinge_value(margin)


@kernel(VALUES)
def values_binary(theta, params, work, values, squares):
    """Write loss and squared gradient for the labels -1 and +1, in this order."""
    for k in range(2):
        margin = (2.0 * k - 1.0) * theta[0]
        slope = params[0] * hinge_slope(margin)
        values[k] = params[0] * hinge_value(margin)
        squares[k] = slope * slope


def margin_and_ties(theta: np.ndarray, label: Label) -> tuple[float, ...]:
    """Return the margin of a label, and by how much its strongest rival leads the next."""
    if np.size(theta) == 1:
        return (float(label * np.ravel(theta)[0]),)
    rivals = np.sort(np.delete(theta, label))[::-1]
    return (float(theta[label] - rivals[0]), *(float(rivals[0] - r) for r in rivals[1:2]))


@dataclass(frozen=True)
class SmoothHinge(Loss):
    """Smooth hinge loss of a multiclass or binary task.

    >>> from driftline.tasks import Multiclass
    >>> loss = SmoothHinge(Multiclass(3))
    >>> loss.value_and_grad([0.0, 0.5, 0.0], label=1)
    (0.25, array([ 1., -1.,  0.]))
    """

    task: Task

    bounded_rate: ClassVar[bool] = True
    argmax_ratio: ClassVar[float] = 1.0
    _kernels: ClassVar[dict[str, LossKernels]] = {
        "classes": LossKernels(smooth_hinge, values),
        "sign": LossKernels(smooth_hinge_binary, values_binary),
    }

    def __post_init__(self) -> None:
        """Refuse tasks of another kind."""
        if self.kernels is None:
            raise InputError(f"SmoothHinge takes a Multiclass or Binary task, not {self.task!r}")

    def kinks(self, theta: np.ndarray, label: Label) -> tuple[float, ...]:
        """Return the distances to margins 0 and 1, and the lead of the strongest rival."""
        margin, *ties = margin_and_ties(theta, label)
        return (margin, margin - 1.0, *ties)

    def workspace(self, size: int) -> int:
        """Return the two largest scores."""
        return 2

    @property
    def self_bound(self) -> float:
        """4, or 2 with one score."""
        return 2.0 if self.task.labels.signs else 4.0

    @property
    def uniform_mix_ratio(self) -> float:
        """1 - 1/K, attained at equal scores."""
        return self.task.guess.loss

    @property
    def gap_optimal_ratio(self) -> float:
        """1 - 1/K too: at equal scores all losses are 1 and no decoder does better."""
        return self.task.guess.loss
