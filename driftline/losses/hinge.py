r"""The hinge loss, as a counterexample.

With the margin :math:`m = \theta_y - \max_{i \ne y} \theta_i` and a threshold
:math:`\kappa \in [0, 1]`,

.. math:: L(\theta, y) = \max(0, 1 - m) \text{ if } m \le \kappa, \text{ else } 0.

For :math:`\kappa < 1` it jumps from :math:`1 - \kappa` to 0 and so is not convex, though
self-bounding with :math:`M = 1 / (1 - \kappa)`. For :math:`\kappa = 1` it is convex, but
the gradient keeps its norm where the loss vanishes: no finite M exists. Either way the
theorems do not apply.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from driftline.errors import InputError
from driftline.kernels import LOSS, kernel, where
from driftline.losses.base import Loss, LossKernels
from driftline.losses.smooth_hinge import find_margin, margin_and_ties
from driftline.tasks import Task
from driftline.typing import Label

__all__ = ["Hinge"]


@kernel(LOSS)
def hinge(theta, target, params, work, grad):
    """Value and subgradient; at margin kappa the larger of the two."""
    label, rival, margin = find_margin(theta, target, work)
    slope = where(margin > params[1], 0.0, params[0])
    for k in range(grad.size):
        grad[k] = where(label == k, 0.0 - slope, where(rival == k, slope, 0.0))
    return slope * where(margin >= 1.0, 0.0, 1.0 - margin)


@kernel(LOSS)
def hinge_binary(theta, target, params, work, grad):
    """Value and subgradient in one score."""
    margin = target[0] * theta[0]
    slope = where(margin > params[1], 0.0, params[0])
    grad[0] = 0.0 - target[0] * slope
    return slope * where(margin >= 1.0, 0.0, 1.0 - margin)


@dataclass(frozen=True)
class Hinge(Loss):
    """Hinge loss of a multiclass or binary task, cut off above margin ``kappa``.

    >>> from driftline.tasks import Multiclass
    >>> loss = Hinge(Multiclass(2), kappa=0.5)
    >>> loss.caveat
    'discontinuous at margin 0.5, hence not convex'
    >>> [loss.value_and_grad([m, 0.0], 0)[0] for m in (0.5, 0.5001)]
    [0.5, 0.0]
    >>> Hinge(Multiclass(2), kappa=1.0).self_bound
    inf
    """

    task: Task
    kappa: float = 1.0

    argmax_ratio: ClassVar[float] = 1.0
    _kernels: ClassVar[dict[str, LossKernels]] = {
        "classes": LossKernels(hinge),
        "sign": LossKernels(hinge_binary),
    }

    def __post_init__(self) -> None:
        """Refuse thresholds outside 0..1 and tasks of another kind."""
        if self.kernels is None:
            raise InputError(f"Hinge takes a Multiclass or Binary task, not {self.task!r}")
        if not 0.0 <= self.kappa <= 1.0:
            raise InputError(f"kappa must lie in 0..1, but is {self.kappa}")

    def params(self, size: int) -> tuple[float, ...]:
        """Return the factor of the whole loss, and the threshold."""
        return (1.0, self.kappa)

    def kinks(self, theta: np.ndarray, label: Label) -> tuple[float, ...]:
        """Return the distance to the threshold, and the lead of the strongest rival."""
        margin, *ties = margin_and_ties(theta, label)
        return (margin - self.kappa, *ties)

    def workspace(self, size: int) -> int:
        """Return the two largest scores."""
        return 2

    @property
    def convex(self) -> bool:
        """Whether kappa is 1, so that nothing is cut off."""
        return self.kappa == 1.0

    @property
    def self_bound(self) -> float:
        """1 / (1 - kappa), half of it with one score; infinite for kappa = 1."""
        if self.kappa == 1.0:
            return math.inf
        return (0.5 if self.task.labels.signs else 1.0) / (1.0 - self.kappa)

    @property
    def caveat(self) -> str:
        """Why no theorem applies."""
        if self.convex:
            return "not self-bounding: the gradient does not vanish with the loss"
        return f"discontinuous at margin {self.kappa:g}, hence not convex"
