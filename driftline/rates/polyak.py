r"""The Polyak-style rate: as large a step as the surrogate gap of the round allows.

.. math:: \eta_t = \min\Big\{ \frac{2 (L_t - \mathbb E \ell_t)}{\|G_t\|^2},\, \eta_{t-1} \Big\},
   \qquad \eta_0 = \text{cap}.

The free variant leaves out the minimum with the past and keeps that with the cap. Its total
is bounded by :math:`\sum \eta_t \mathbb E \ell_t \le \sum \eta_t L_t(U_t) + D (D/2 + P_T)`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from driftline.errors import InputError, NoGuaranteeError
from driftline.kernels import RATE, Kernel, kernel, where
from driftline.rates.base import Rate, Setting, StepRange

__all__ = ["Polyak"]

#: A gap smaller than this share of the loss is lost in rounding.
RESOLUTION = 1e-10


@kernel(RATE)
def polyak(loss, risk, grad_sq, input_sq, previous, params, memory):
    """Return twice the gap over the squared gradient, cut off at the smallest so far or the cap.

    A gap that is lost in rounding is ignored: the step is the previous one, which changes the
    bound by no more than the rounding. Where no floor is known, such a gap may be truly negative,
    and then there is no step.
    """
    floor, monotone, least = params[0], params[1], memory[0]
    gap = loss - risk
    lost = gap <= RESOLUTION * loss
    eta, lowest = 2.0 * gap / grad_sq, floor / input_sq
    eta = where(eta > lowest, eta, lowest)
    eta = where(eta < least, eta, least)
    memory[0] = where(lost | (monotone != 1.0), least, eta)
    same = where(previous < least, previous, least)
    return where(lost, where(floor > 0.0, same, 0.0), eta)


@dataclass(frozen=True)
class Polyak(Rate):
    """The paper's rate (``monotone=True``), or its free variant.

    Every step lies in the admissible range of the theorem whatever the scale of the inputs,
    with nothing to tune. ``cap`` is the paper's eta_0: no step is below the smaller one of the cap
    and the floor over the squared norm of the input, and bounds are stated by it. The monotone rate
    never grows again, as its theorem requires: one row a thousand times as long as others makes all
    later steps a million times smaller, so scale rows first. The free rate follows abrupt changes
    faster, and needs a finite cap with losses whose gradient vanishes faster than the loss, such as
    the logistic.
    """

    monotone: bool = True
    cap: float = math.inf

    kernel: ClassVar[Kernel] = polyak
    resolution: ClassVar[float] = RESOLUTION

    def __post_init__(self) -> None:
        """Refuse a cap that is not positive."""
        if not isinstance(self.monotone, bool):
            raise InputError(f"monotone must be True or False, not {self.monotone!r}")
        if not self.cap > 0.0:
            raise InputError(f"the cap of a Polyak rate must be positive, but is {self.cap}")

    def check(self, setting: Setting) -> None:
        """Refuse parts without a gap, and a free rate that may explode."""
        if not setting.rate_floor > 0.0 and not setting.allow_no_gap:
            raise NoGuaranteeError(
                "a Polyak rate needs a surrogate gap, and this loss and decoder have none: one "
                "wrong round could stop the learner for good. Scale the loss above the "
                "decoder's kappa, as in Argmax(Scaled(loss, 2.0)), or use another decoder"
            )
        if not self.monotone and math.isinf(self.cap) and not setting.bounded_rate:
            raise NoGuaranteeError(
                "the free Polyak rate needs a finite cap with this loss: on confident rounds "
                "2 L / |G|^2 grows without bound. Use Polyak(monotone=False, cap=...), or the "
                "smooth hinge"
            )

    def params(self, setting: Setting) -> tuple[float, ...]:
        """Return the floor, and whether the minimum over the past is taken."""
        return (setting.rate_floor, float(self.monotone))

    def first(self, setting: Setting) -> float:
        """Return the floor, or the cap if that is below."""
        return min(self.cap, super().first(setting))

    def memory(self, setting: Setting) -> tuple[float, ...]:
        """Return the smallest step so far, at first the cap."""
        return (self.cap,)

    def step_range(self, setting: Setting, memory: np.ndarray | None = None) -> StepRange:
        """Return the range: always admissible, at least the floor over the squared input."""
        most = self.cap if memory is None else min(self.cap, float(memory[0]))
        return StepRange(math.inf, setting.rate_floor, most, self.monotone)
