r"""A multiple of a loss.

If a decoder without randomness has :math:`\ell \le \kappa L`, then :math:`c L` with
:math:`c > \kappa` leaves it the surrogate gap :math:`1 - \kappa / c`: that is how argmax
comes to a guarantee. One pays with the factor :math:`c` in front of the comparator's loss;
:math:`c = 2 \kappa` makes the other term of the bound smallest.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from driftline.errors import InputError
from driftline.losses.base import Loss, LossKernels
from driftline.tasks import Task

__all__ = ["Scaled"]


@dataclass(frozen=True)
class Scaled(Loss):
    """``factor`` times another loss. Everything a trace records is in the scaled loss.

    >>> from driftline.losses import SmoothHinge
    >>> from driftline.tasks import Multiclass
    >>> loss = Scaled(SmoothHinge(Multiclass(3)), 4.0)
    >>> loss.value_and_grad(np.zeros(3), label=0)[0], loss.self_bound, loss.argmax_ratio
    (4.0, 16.0, 0.25)
    """

    loss: Loss
    factor: float

    def __post_init__(self) -> None:
        """Refuse a factor that is not positive."""
        if not (math.isfinite(self.factor) and self.factor > 0.0):
            raise InputError(f"the factor of a loss must be positive, but is {self.factor}")

    def value_and_grad(self, theta: np.ndarray, label: Any) -> tuple[float, np.ndarray]:
        """Return the scaled loss and its gradient."""
        value, grad = self.loss.value_and_grad(theta, label)
        return self.factor * value, self.factor * grad

    def values(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the scaled losses and squared gradients of all labels."""
        values, squares = self.loss.values(theta)
        return self.factor * values, self.factor**2 * squares

    def solver_gap(self, theta: np.ndarray) -> float:
        """Return the scaled gap of the loss inside."""
        return self.factor * self.loss.solver_gap(theta)

    @property
    def inexact(self) -> bool:
        """As the loss inside."""
        return self.loss.inexact

    @property
    def overestimates(self) -> bool:
        """As the loss inside."""
        return self.loss.overestimates

    @property
    def task(self) -> Task:
        """The task of the loss inside."""
        return self.loss.task

    @property
    def kernels(self) -> LossKernels | None:
        """The kernels of the loss inside: the factor is in the parameters."""
        return self.loss.kernels

    def params(self, size: int) -> tuple[float, ...]:
        """Return the parameters of the loss inside, the first of them scaled."""
        first, *others = self.loss.params(size)
        return (self.factor * first, *others)

    def workspace(self, size: int) -> int:
        """Return as many as the loss inside."""
        return self.loss.workspace(size)

    @property
    def self_bound(self) -> float:
        """M scales with the loss."""
        return self.factor * self.loss.self_bound

    @property
    def unit(self) -> float:
        """The unit scales with the loss."""
        return self.factor * self.loss.unit

    @property
    def convex(self) -> bool:
        """As the loss inside."""
        return self.loss.convex

    @property
    def caveat(self) -> str:
        """As the loss inside."""
        return self.loss.caveat

    @property
    def bounded_rate(self) -> bool:
        """As the loss inside."""
        return self.loss.bounded_rate

    @property
    def argmax_ratio(self) -> float | None:
        """All ratios shrink by the factor, since no decoder depends on it."""
        return self._shrunk(self.loss.argmax_ratio)

    @property
    def uniform_mix_ratio(self) -> float | None:
        """All ratios shrink by the factor."""
        return self._shrunk(self.loss.uniform_mix_ratio)

    @property
    def nearest_vertex_ratio(self) -> float | None:
        """All ratios shrink by the factor."""
        return self._shrunk(self.loss.nearest_vertex_ratio)

    @property
    def gap_optimal_ratio(self) -> float | None:
        """All ratios shrink by the factor."""
        return self._shrunk(self.loss.gap_optimal_ratio)

    def _shrunk(self, ratio: float | None) -> float | None:
        return None if ratio is None else ratio / self.factor
