r"""Steps in units of the loss, for losses whose size differs from round to round.

.. math:: \eta_t = \frac{\text{step}}{L_t \, (1 + n_t / \text{after})^{\text{power}}}

with :math:`n_t` the steps before this one. Since :math:`\nabla L / L = \nabla \ln L`, a step is the
same for every multiple of the loss.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from driftline.errors import InputError
from driftline.kernels import RATE, Kernel, kernel
from driftline.rates.base import Rate, Setting

__all__ = ["Relative"]


@kernel(RATE)
def relative(loss, risk, grad_sq, input_sq, previous, params, memory):
    """Count the steps, and divide by the loss."""
    if loss <= 0.0:
        return 0.0
    eta = params[0] / (loss * (1.0 + memory[0] / params[1]) ** params[2])
    memory[0] += 1.0
    return eta


@dataclass(frozen=True)
class Relative(Rate):
    """A step over the loss of its round, that stays for about ``after`` rounds and then falls.

    It is for losses that add up many terms, such as :class:`~driftline.losses.PairwiseLogistic`: a
    query of 2000 documents has ten thousand times as many pairs as one of 20, so that no step of a
    fixed size fits both. With ``after=math.inf`` steps do not fall. They need not be admissible, so
    there is no bound beforehand, but a run can be certified. A round of sample weight h has a step
    that is h times as long.

    >>> import numpy as np
    >>> rate, memory = Relative(1.0, after=10.0), np.zeros(1)
    >>> [round(rate.next(loss, 0.0, 1.0, 1.0, 1.0, None, memory), 3) for loss in (1.0, 4.0)]
    [1.0, 0.227]
    """

    step: float = 1.0
    after: float = 10.0
    power: float = 1.0

    kernel: ClassVar[Kernel] = relative
    relative: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Refuse numbers that are not positive."""
        for name in ("step", "after", "power"):
            value = getattr(self, name)
            number = isinstance(value, (int, float)) and not isinstance(value, bool)
            infinite = name == "after" and value == math.inf
            if not (number and (infinite or 0.0 < value < math.inf)):
                raise InputError(
                    f"{name} of a relative rate must be positive, but is {value!r:.80}"
                )

    def params(self, setting: Setting) -> tuple[float, ...]:
        """Return step, decay time and power."""
        return (self.step, self.after, self.power)

    def memory(self, setting: Setting) -> tuple[float, ...]:
        """Return the number of steps."""
        return (0.0,)
