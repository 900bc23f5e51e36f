r"""A sequential test of whether losses have increased.

Page's cumulative sum (1954): with :math:`p` the mean loss so far and :math:`q` the mean loss to
detect,

.. math:: S_t = \max\Big(0,\, S_{t-1} + \ell_t \log \frac{q}{p} + (1 - \ell_t) \log
   \frac{1 - q}{1 - p}\Big),

and an alarm is given when it exceeds a threshold :math:`h`. For losses between 0 and 1 whose
mean given the past is at most :math:`p`, the exponential of a summand has a mean of at most 1 (it
is convex in the loss, and exactly 1 for coin flips), so that a false alarm takes at least
:math:`e^h` rounds on average (Lorden, 1971). Here :math:`p` is estimated, and this a guide.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from driftline.detectors.base import Detector
from driftline.errors import InputError
from driftline.kernels import DETECT, Kernel, helper, kernel

__all__ = ["Cusum"]

#: The largest mean loss q to detect.
HIGHEST = 0.9


@helper
def page(loss, params, memory):
    """Count the round and its loss, and add the log of the ratio of likelihoods."""
    threshold, factor, more, patience = params[0], params[1], params[2], params[3]
    memory[0] += 1.0
    memory[1] += loss
    mean = (memory[1] + 1.0) / (memory[0] + 2.0)
    other = max(mean, min(HIGHEST, max(factor * mean, mean + more)))
    worse = 0.0
    if loss > 0.0:  # often one of the two logarithms is not needed
        worse += loss * math.log(other / mean)
    if loss < 1.0:
        worse += (1.0 - loss) * math.log((1.0 - other) / (1.0 - mean))
    memory[2] = max(0.0, memory[2] + worse)
    return memory[0] >= patience and memory[2] > threshold


@kernel(DETECT)
def cusum(loss, params, memory):
    """Say whether the loss of this round is one too many."""
    return page(loss, params, memory)


@dataclass(frozen=True)
class Cusum(Detector):
    """An alarm when losses look like ``factor`` times their mean so far, and ``more`` above it.

    ``threshold`` is the log of the evidence that is needed: about one false alarm in
    ``exp(threshold)`` rounds, if the mean is known; there is none before round ``patience``.

    >>> import numpy as np
    >>> losses = np.r_[np.tile([0.0, 0.0, 0.0, 0.0, 1.0], 40), np.ones(20), np.zeros(40)]
    >>> Cusum().alarms(losses)
    array([204])
    """

    threshold: float = 6.0
    factor: float = 2.0
    more: float = 0.4
    patience: int = 20

    kernel: ClassVar[Kernel] = cusum

    def __post_init__(self) -> None:
        """Refuse parameters out of range."""
        if not (math.isfinite(self.threshold) and self.threshold > 0.0):
            raise InputError(f"threshold must be positive, but is {self.threshold}")
        if not self.factor >= 1.0:
            raise InputError(f"factor must be 1 or more, but is {self.factor}")
        if not 0.0 < self.more < 1.0:
            raise InputError(f"more must lie between 0 and 1, but is {self.more}")
        if not 1 <= self.patience < 2**53:
            raise InputError(f"patience must be 1 round or more, but is {self.patience}")

    def params(self) -> tuple[float, ...]:
        """Return threshold, factor, how much more, and patience."""
        return (self.threshold, self.factor, self.more, float(self.patience))

    def memory(self) -> tuple[float, ...]:
        """Return the rounds, their losses, and the sum."""
        return (0.0, 0.0, 0.0)
