"""The clock of the log: it starts from the wall clock, and advances by the monotonic clock.

Rows expire and records are deleted by their age. A wall clock that is wrong for a moment must not
make everything old: so a jump of the wall clock never reaches the log, and while wall clock and
monotonic clock disagree, nothing expires and nothing is deleted.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

__all__ = ["HOUR", "LogClock", "wall_milliseconds"]

HOUR, DAY = 3_600_000, 86_400_000
#: By how much the clocks may move apart in the hour in which they agree.
STEADY = 60_000
#: The monotonic clock; where there is one, the clock that also counts while the machine sleeps.
MONOTONIC = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def wall_milliseconds() -> int:
    """Return the time of day."""
    return time.time_ns() // 1_000_000


def monotonic_milliseconds() -> int:
    """Return the time since some moment in the past, which nobody can set."""
    return time.clock_gettime_ns(MONOTONIC) // 1_000_000


class LogClock:
    """Milliseconds for records: never backwards, and never slower than the monotonic clock.

    Steps of the wall clock forwards are followed up to an hour away from where the process began. A
    larger jump holds the clock: its time goes on by the monotonic clock, and :attr:`held` says why,
    until the distance between the two clocks has been the same for an hour. So does a start more
    than a day away from the last record; after its hour the wall clock is followed.

    Parameters
    ----------
    last
        The time of the last record, 0 if there is none.
    wall, monotonic
        The two clocks, in milliseconds.

    Examples
    --------
    >>> wall, monotonic = [1_000_000], [0]
    >>> clock = LogClock(0, lambda: wall[0], lambda: monotonic[0])
    >>> wall[0] += 400 * DAY
    >>> monotonic[0] += 5
    >>> clock(), clock.held
    (1000005, 'the wall clock jumped forward by 400.0 days')
    """

    def __init__(
        self,
        last: int = 0,
        wall: Callable[[], int] = wall_milliseconds,
        monotonic: Callable[[], int] = monotonic_milliseconds,
    ):
        self._wall, self._monotonic, self._lock = wall, monotonic, threading.Lock()
        #: Why rows may not expire now, empty if they may.
        self.held = ""
        # All of these are distances from the monotonic clock: where the wall clock is, where it was
        # when the clocks last agreed, where it may be followed, and where the time of the log is.
        self._since = monotonic()
        self._agreed = apart = wall() - self._since
        self._followed: int | None = apart
        self._ahead = apart if not last else max(apart, last - self._since)
        if last and abs(gap := apart + self._since - last) > DAY:
            where = "after" if gap > 0 else "before"
            self.held = f"the wall clock is {_days(gap)} {where} the last record"
            self._followed, self._ahead = None, last - self._since

    def __call__(self) -> int:
        """Return the time, and note what the clocks do."""
        with self._lock:
            now = self._monotonic()
            apart = self._wall() - now
            if self.held:
                self._wait(now, apart)
            elif abs(moved := apart - self._agreed) > HOUR:
                where = "forward" if moved > 0 else "back"
                self.held = f"the wall clock jumped {where} by {_days(moved)}"
                self._agreed, self._since = apart, now
            if self._followed is not None and abs(apart - self._followed) <= HOUR:
                self._ahead = max(self._ahead, apart)
            return now + self._ahead

    def _wait(self, now: int, apart: int) -> None:
        """Hold on until the clocks have agreed for an hour."""
        if abs(apart - self._agreed) > STEADY:
            self._agreed, self._since = apart, now
        elif now - self._since >= HOUR:
            self.held, self._agreed = "", apart
            if self._followed is None:
                self._followed = apart


def _days(milliseconds: int) -> str:
    """Return a duration in words.

    >>> _days(-2 * DAY), _days(2 * HOUR)
    ('2.0 days', '2.0 hours')
    """
    large = abs(milliseconds) >= DAY
    return f"{abs(milliseconds) / (DAY if large else HOUR):.1f} {'days' if large else 'hours'}"
