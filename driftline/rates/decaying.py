r"""Steps that shrink with the number of steps made.

.. math:: \eta_t = \frac{\text{first\_eta}}{(1 + n_t / \text{after})^{\text{power}}}

with :math:`n_t` the steps before this one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from driftline.errors import InputError
from driftline.kernels import RATE, Kernel, kernel
from driftline.rates.base import Rate, Setting

__all__ = ["Decaying"]


@kernel(RATE)
def decaying(loss, risk, grad_sq, input_sq, previous, params, memory):
    """Count the steps."""
    eta = params[0] / (1.0 + memory[0] / params[1]) ** params[2]
    memory[0] += 1.0
    return eta


@dataclass(frozen=True)
class Decaying(Rate):
    """A step that stays near ``first_eta`` for about ``after`` rounds and then falls.

    With ``power=1`` weights come close to an average over all rounds, which is right for a stream
    without drift, noisy or not; under drift the learner must restart, as by
    ``OGD(..., restart=Cusum())``. Steps need not be admissible, so there is no bound beforehand,
    but a run can be certified.

    >>> import numpy as np
    >>> rate = Decaying(1.0, after=10.0)
    >>> memory = np.zeros(1)
    >>> [round(rate.next(1.0, 0.0, 1.0, 1.0, 1.0, None, memory), 3) for _ in range(3)]
    [1.0, 0.909, 0.833]
    """

    first_eta: float = 1.0
    after: float = 10.0
    power: float = 1.0

    kernel: ClassVar[Kernel] = decaying

    def __post_init__(self) -> None:
        """Refuse numbers that are not positive."""
        for name in ("first_eta", "after", "power"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value > 0.0):
                raise InputError(f"{name} of a decaying rate must be positive, but is {value}")

    def params(self, setting: Setting) -> tuple[float, ...]:
        """Return first step, decay time and power."""
        return (self.first_eta, self.after, self.power)

    def memory(self, setting: Setting) -> tuple[float, ...]:
        """Return the number of steps."""
        return (0.0,)

    def first(self, setting: Setting) -> float:
        """Return the first step."""
        return self.first_eta
