r"""A multiple of a loss.

If a decoder without randomness has :math:`\ell \le \kappa L`, then :math:`c L` with
:math:`c > \kappa` gives it the surrogate gap :math:`1 - \kappa / c`: this is how argmax gets a
guarantee. The price is the factor :math:`c` in front of the comparator's loss;
:math:`c = 2 \kappa` makes the other term of the bound smallest.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from driftline.errors import InputError
from driftline.losses.base import Loss
from driftline.typing import Label

__all__ = ["Scaled"]


def _inside(name: str) -> Any:
    """Return a property that forwards to the loss inside."""
    return property(lambda self: getattr(self.loss, name), doc="As the loss inside.")


@dataclass(frozen=True)
class Scaled(Loss):
    """``factor`` times another loss. Everything a trace records is in the scaled loss.

    >>> from driftline.losses import SmoothHinge
    >>> from driftline.tasks import Multiclass
    >>> loss = Scaled(SmoothHinge(Multiclass(3)), 4.0)
    >>> loss.value_and_grad(np.zeros(3), label=0)[0], loss.self_bound, loss.ratio("argmax")
    (4.0, 16.0, 0.25)
    """

    loss: Loss
    factor: float

    def __post_init__(self) -> None:
        """Refuse a factor that is not positive."""
        if not (math.isfinite(self.factor) and self.factor > 0.0):
            raise InputError(f"the factor of a loss must be positive, but is {self.factor}")

    def value_and_grad(self, theta: np.ndarray, label: Label) -> tuple[float, np.ndarray]:
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

    # Facts that a factor does not change.

    task = _inside("task")
    kernels = _inside("kernels")
    inexact = _inside("inexact")
    overestimates = _inside("overestimates")
    convex = _inside("convex")
    caveat = _inside("caveat")
    bounded_rate = _inside("bounded_rate")
    family = _inside("family")
    discounts_at = _inside("discounts_at")

    def kinks(self, theta: np.ndarray, label: Label) -> tuple[float, ...]:
        """Return where the loss inside has its kinks."""
        return self.loss.kinks(theta, label)

    def workspace(self, size: int) -> int:
        """Return the workspace of the loss inside."""
        return self.loss.workspace(size)

    def check_size(self, size: int) -> None:
        """Refuse what the loss inside refuses."""
        self.loss.check_size(size)

    def gap_place(self, size: int) -> int:
        """Return the place of the loss inside."""
        return self.loss.gap_place(size)

    def params(self, size: int) -> tuple[float, ...]:
        """Return the parameters of the loss inside, the first of them scaled."""
        first, *others = self.loss.params(size)
        return (self.factor * first, *others)

    @property
    def nats(self) -> float | None:
        """That of the loss inside, over the factor."""
        return None if self.loss.nats is None else self.loss.nats / self.factor

    @property
    def self_bound(self) -> float:
        """M scales with the loss."""
        return self.factor * self.loss.self_bound

    @property
    def unit(self) -> float:
        """The unit scales with the loss."""
        return self.factor * self.loss.unit

    def ratio(self, decoder: str) -> float | None:
        """All ratios shrink by the factor, since no decoder depends on it."""
        ratio = self.loss.ratio(decoder)
        return None if ratio is None else ratio / self.factor
