"""What every rate offers.

A rate is called once a round, after loss, risk and gradient are known, and only if the
gradient is not zero. A round without a step records the previous eta; before the first
step that is the floor.
"""

from __future__ import annotations

import math
from typing import ClassVar, NamedTuple

import numpy as np

from driftline.errors import InputError
from driftline.kernels import Kernel
from driftline.parts import Part

__all__ = ["Rate", "Setting", "StepRange"]


class Setting(NamedTuple):
    """What a rate may depend on of the other parts of the learner."""

    rate_floor: float
    diameter: float
    bounded_rate: bool = False
    allow_no_gap: bool = False


class StepRange(NamedTuple):
    """The range of a rate's steps on any stream; the defaults promise nothing.

    A step is admissible if it is at most ``2 (L - risk) / |G|^2``.
    """

    #: Every step is admissible as long as no input has a larger norm: infinite for always, 0 for
    #: never.
    norm: float = 0.0
    #: No step is below this over the largest squared norm of inputs, or below ``most`` if that is
    #: less.
    floor: float = 0.0
    #: No step is above this.
    most: float = math.inf
    #: Whether no step is larger than one before.
    monotone: bool = False

    def least(self, input_sq: float) -> float:
        """Return a lower bound of the steps, for inputs of squared norms up to this."""
        return min(self.most, self.floor / input_sq if input_sq > 0.0 else math.inf)

    def start(self, diameter: float, first: float, least: float) -> float:
        r"""Return the price of the first distance in a bound, if no step is below ``least``.

        ``first``, :math:`D_1`, is the largest distance of a comparator to the first weights. Steps
        that never grow pay :math:`\frac{D_1^2}{2 \eta_1} + \frac{D^2}2 (\frac1{\eta_T} -
        \frac1{\eta_1})`, with :math:`\eta_1` at most ``most``; others, whose bound is the weighted
        one, :math:`D_1^2 / (2 \underline\eta)`. From the centre of a ball :math:`D_1 = D / 2`.
        """
        spared = (diameter**2 - first**2) / (2.0 * (self.most if self.monotone else least))
        return diameter**2 / (2.0 * least) - spared


class Rate(Part):
    """Base of all rates.

    A rate of one's own needs :meth:`next` in plain Python; its state is a vector that starts as
    :meth:`memory`. With a ``kernel`` and :meth:`params` in its place it runs compiled. To have a
    bound beforehand it states its :meth:`step_range`.
    """

    #: Whether steps are in units of the loss: of a round of weight h, whose loss is h times as
    #: large, the step is then multiplied by h, and it does not limit the steps after it.
    relative: ClassVar[bool] = False

    kernel: ClassVar[Kernel | None] = None

    #: For rates that divide by the gap ``L - risk``: the share of the loss below which a gap is
    #: rounding error. Without a rate floor a round with such a gap makes no step. None for others.
    resolution: ClassVar[float | None] = None

    def step_range(self, setting: Setting, memory: np.ndarray | None = None) -> StepRange:
        """Return the range of the steps from the start, or from a memory within a run."""
        return StepRange()

    def check(self, setting: Setting) -> None:
        """Raise if this rate cannot be used with these parts."""

    def params(self, setting: Setting) -> tuple[float, ...]:
        """Return the parameters of the kernel."""
        return ()

    def memory(self, setting: Setting) -> tuple[float, ...]:
        """Return the memory before the first round."""
        return ()

    def first(self, setting: Setting) -> float:
        """Return the eta that rounds before the first step record."""
        return setting.rate_floor if setting.rate_floor > 0.0 else 1.0

    def next(
        self,
        loss: float,
        risk: float,
        grad_sq: float,
        input_sq: float,
        previous: float,
        setting: Setting,
        memory: np.ndarray,
    ) -> float:
        """Return the step of this round, 0 for none."""
        if self.kernel is None:
            raise InputError(f"{type(self).__name__} defines neither next nor a kernel")
        params = np.array(self.params(setting), dtype=np.float64)
        return float(self.kernel(loss, risk, grad_sq, input_sq, previous, params, memory))
