"""The same step in every round."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from driftline.errors import InputError, NoGuaranteeError
from driftline.kernels import RATE, Kernel, kernel
from driftline.rates.base import Rate, Setting, StepRange

__all__ = ["Constant"]


@kernel(RATE)
def constant(loss, risk, grad_sq, input_sq, previous, params, memory):
    """Return the step."""
    return params[0]


@dataclass(frozen=True)
class Constant(Rate):
    """A constant step; without ``eta``, the decoder's rate floor over ``input_norm`` squared.

    At the floor it is the rule of Van der Hoeven (2020) and Sakaue et al. (2024), and
    admissible in every round as long as no input is longer than ``input_norm``.
    """

    eta: float | None = None
    input_norm: float = 1.0

    kernel: ClassVar[Kernel] = constant

    def __post_init__(self) -> None:
        """Refuse steps and norms that are not positive."""
        if self.eta is not None and not (math.isfinite(self.eta) and self.eta > 0.0):
            raise InputError(f"a constant rate must be positive, but eta is {self.eta}")
        if not (math.isfinite(self.input_norm) and self.input_norm > 0.0):
            raise InputError(f"input_norm must be positive, but is {self.input_norm}")

    def check(self, setting: Setting) -> None:
        """Refuse a missing rate floor, if no ``eta`` is given."""
        if self.eta is None and not setting.rate_floor > 0.0:
            raise NoGuaranteeError(
                "Constant() takes its step from the rate floor of loss and decoder, "
                "and these have none; give eta, or choose parts with a surrogate gap"
            )

    def params(self, setting: Setting) -> tuple[float, ...]:
        """Return the step."""
        return (setting.rate_floor / self.input_norm**2 if self.eta is None else self.eta,)

    def step_range(self, setting: Setting, memory: np.ndarray | None = None) -> StepRange:
        """Return a single step, admissible up to the norm at which it equals the floor."""
        eta = self.params(setting)[0]
        return StepRange(math.sqrt(setting.rate_floor / eta), math.inf, eta, monotone=True)

    def first(self, setting: Setting) -> float:
        """Return the step."""
        return self.params(setting)[0]
