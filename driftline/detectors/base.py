"""What every detector offers.

A detector is given the expected target loss of every round, as a share of the largest possible,
and returns whether there is enough evidence of a change to give an alarm.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import numpy.typing as npt

from driftline.errors import InputError
from driftline.kernels import Kernel
from driftline.parts import Part

__all__ = ["Detector"]


class Detector(Part):
    """Base of all detectors.

    A detector of one's own needs :meth:`sees` in plain Python; its state is a vector that starts as
    :meth:`memory`, and is reset to it after every alarm. With a ``kernel`` and :meth:`params` in
    its place it runs compiled.
    """

    kernel: ClassVar[Kernel | None] = None

    def params(self) -> tuple[float, ...]:
        """Return the parameters of the kernel."""
        return ()

    def memory(self) -> tuple[float, ...]:
        """Return the memory before the first round."""
        return ()

    def sees(self, loss: float, memory: np.ndarray) -> bool:
        """Learn from the loss of this round, and return whether to give an alarm."""
        if self.kernel is None:
            raise InputError(f"{type(self).__name__} defines neither sees nor a kernel")
        return bool(self.kernel(loss, np.array(self.params(), dtype=np.float64), memory))

    def alarms(self, losses: npt.ArrayLike) -> np.ndarray:
        """Return the rounds with an alarm, given a sequence of losses between 0 and 1."""
        losses = np.asarray(losses, dtype=np.float64)
        if losses.ndim != 1 or not ((losses >= 0.0) & (losses <= 1.0)).all():
            raise InputError("expected one loss between 0 and 1 for every round")
        first, found = np.array(self.memory(), dtype=np.float64), []
        memory = first.copy()
        for t, loss in enumerate(losses.tolist()):
            if self.sees(loss, memory):
                found.append(t)
                memory = first.copy()
        return np.array(found, dtype=np.int64)
