"""What every rate offers.

A rate is asked once a round, after loss, risk and gradient are known, and only if the
gradient is not zero; a round without a step records the previous eta. Before the first
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
    """What a rate is told of the learner it serves."""

    rate_floor: float
    diameter: float
    bounded_rate: bool = False
    allow_no_gap: bool = False


class StepRange(NamedTuple):
    """Which steps a rate makes, whatever comes; by default nothing is known of them.

    A step is admissible if it is at most ``2 (L - risk) / |G|^2``.
    """

    #: Every step is admissible as long as no input is longer: infinite for always, 0 for never.
    norm: float = 0.0
    #: No step lies below this over the largest squared norm of inputs, or below ``most`` if that
    #: is less.
    floor: float = 0.0
    #: No step lies above this.
    most: float = math.inf
    #: Whether no step is larger than one before.
    monotone: bool = False

    def least(self, input_sq: float) -> float:
        """Return what no step lies below with inputs of squared norms up to this."""
        return min(self.most, self.floor / input_sq if input_sq > 0.0 else math.inf)


class Rate(Part):
    """Base of all rates.

    A rate of one's own needs :meth:`next` in plain Python; what it wants to remember goes
    into a vector that starts as :meth:`memory`. With a ``kernel`` and :meth:`params` in
    its place it runs compiled. To have a bound beforehand it says its :meth:`step_range`.
    """

    kernel: ClassVar[Kernel | None] = None

    #: For rates that divide by the gap ``L - risk``: the share of the loss below which a gap
    #: says nothing. Without a rate floor a round with such a gap makes no step. None for others.
    resolution: ClassVar[float | None] = None

    def step_range(self, setting: Setting, memory: np.ndarray | None = None) -> StepRange:
        """Return which steps are made from the start, or from what was remembered in a run."""
        return StepRange()

    def check(self, setting: Setting) -> None:
        """Raise if this rate cannot serve a learner of this kind."""

    def params(self, setting: Setting) -> tuple[float, ...]:
        """Return the parameters of the kernel."""
        return ()

    def memory(self, setting: Setting) -> tuple[float, ...]:
        """Return what is remembered before the first round."""
        return ()

    def first(self, setting: Setting) -> float:
        """Return what rounds before the first step record."""
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
