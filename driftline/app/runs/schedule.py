"""When to write checkpoints."""

from __future__ import annotations

import time
from collections.abc import Callable

__all__ = ["Schedule"]

#: Checkpoints are at least ``SECONDS`` apart, and take at most this share of the run.
SECONDS, SHARE = 2.0, 0.03


class Schedule:
    """Decides when the next checkpoint is due, by the time the last one took.

    >>> now = 0.0
    >>> schedule = Schedule(clock=lambda: now)
    >>> now = 2.0
    >>> schedule.due, schedule.saved(0.3)
    (True, None)
    >>> now = 11.9
    >>> schedule.due, round(schedule.apart, 6)
    (False, 10.0)
    """

    def __init__(self, clock: Callable[[], float] = time.perf_counter):
        self._clock, self._last = clock, clock()
        self.apart, self.count, self.seconds = SECONDS, 0, 0.0

    @property
    def due(self) -> bool:
        """Whether a checkpoint is due."""
        return self._clock() - self._last >= self.apart

    def saved(self, seconds: float) -> None:
        """Record that a checkpoint was written, and the time it took."""
        self.count += 1
        self.seconds += seconds
        self.apart, self._last = max(SECONDS, seconds / SHARE), self._clock()
