"""The clock of the log: it starts from the wall clock, and advances by the monotonic clock.

Rows expire and records are deleted by their age. A wall clock that is wrong for a moment must not
make everything old: so a jump of the wall clock never reaches the log, and while wall clock and
monotonic clock disagree, nothing expires and nothing is deleted.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

__all__ = ["DAY", "HOUR", "LogClock", "Shift", "wall_milliseconds"]

HOUR, DAY = 3_600_000, 86_400_000
#: By how much the clocks may move apart in the hour in which they agree.
STEADY = 60_000
#: How many shifts are remembered.
SHIFTS = 100
#: The monotonic clock; where there is one, the clock that also counts while the machine sleeps.
MONOTONIC = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def wall_milliseconds() -> int:
    """Return the time of day."""
    return time.time_ns() // 1_000_000


def monotonic_milliseconds() -> int:
    """Return the time since some moment in the past, which nobody can set."""
    return time.clock_gettime_ns(MONOTONIC) // 1_000_000


class Shift(NamedTuple):
    """Times of the log after ``low`` and up to ``high`` were too small by ``by`` milliseconds.

    While it is not known by how much, ``high`` and ``by`` are 0.
    """

    low: int
    high: int = 0
    by: int = 0


class LogClock:
    """Milliseconds for records: never backwards, and never slower than the monotonic clock.

    Steps of the wall clock forwards are followed up to an hour away from where the process began. A
    larger jump holds the clock: its time goes on by the monotonic clock, and :attr:`held` says why,
    until the distance between the two clocks has been the same for an hour. So does a start more
    than a day away from the last record; after its hour the wall clock is followed. Records that
    came while the log was behind the wall clock are not as old as their times say: a shift.

    Parameters
    ----------
    last
        The time of the last record, 0 if there is none.
    wall, monotonic
        The two clocks, in milliseconds.
    known, write
        What a former process has written by :meth:`settle`, and what writes it: the time, and the
        shifts. Nothing is written for a look at a log.

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
        known: tuple[int, Iterable[Sequence[int]]] = (0, ()),
        write: Callable[[tuple[int, list[Shift]]], object] = len,
    ):
        self._wall, self._monotonic, self._lock = wall, monotonic, threading.Lock()
        self._write = write
        self._written = known[0], [Shift(*own) for own in known[1]]
        last = max(last, known[0])
        self.shifts = [own for own in self._written[1] if own.by]
        # The time of the log after which it is behind the wall clock, None if it is not.
        self._behind = next((own.low for own in self._written[1] if not own.by), None)
        #: Why rows may not expire now, empty if they may.
        self.held = ""
        # All of these are distances from the monotonic clock: where the wall clock is, where it was
        # when the clocks last agreed, where it may be followed, and where the time of the log is.
        now = self._since = monotonic()
        self._agreed = apart = wall() - now
        self._followed: int | None = apart
        self._ahead = apart if not last else max(apart, last - now)
        gap = apart + now - last if last else 0
        if abs(gap) > DAY:
            where = "after" if gap > 0 else "before"
            self.held = f"the wall clock is {_days(gap)} {where} the last record"
        elif self._behind is not None:  # the process before was held: nothing to wait for
            self.held, self._since = "the log is behind the wall clock", now - HOUR
        if self.held:
            self._followed, self._ahead = None, last + 1 - now  # later than all that is known
            self._behind = min(last, last if self._behind is None else self._behind)

    def __call__(self) -> int:
        """Return the time, and note what the clocks do."""
        with self._lock:
            now, _ = self._look()
            return now + self._ahead

    def _look(self) -> tuple[int, int]:
        """Note what the clocks do; return the monotonic time, and how far the wall clock is."""
        now = self._monotonic()
        apart = self._wall() - now
        moved = apart - self._agreed
        if abs(moved) > (STEADY if self.held else HOUR):
            if not self.held:
                where = "forward" if moved > 0 else "back"
                self.held = f"the wall clock jumped {where} by {_days(moved)}"
                if self._behind is None:
                    self._behind = now + self._ahead
            self._agreed, self._since = apart, now
        if self._followed is not None and abs(apart - self._followed) <= HOUR:
            self._ahead = max(self._ahead, apart)
        return now, apart

    def settle(self) -> str:
        """End a hold that is over; return why it is not, empty if there is none.

        It is called before the first record of a process, and now and then. New shifts are written
        before the time goes on by them; the time is written once an hour, since there may be no
        records for long.
        """
        with self._lock:
            now, apart = self._look()
            ahead, behind, shifts = self._ahead, self._behind, self.shifts
            over = bool(self.held) and now - self._since >= HOUR
            if over and self._followed is None:
                ahead = max(ahead, apart)
            if behind is not None and ahead > self._ahead:
                shift = Shift(behind, now + self._ahead, ahead - self._ahead)
                shifts = [*shifts, shift][-SHIFTS:]
            if over and (self._followed is None or abs(apart - self._followed) <= HOUR):
                behind = None  # the log is where the wall clock is
            found = shifts if behind is None else [*shifts, Shift(behind)]
            at = now + ahead
            if found != self._written[1] or at - self._written[0] >= HOUR:
                self._write((at, found))
                self._written = at, found
            self._behind, self.shifts = behind, shifts
            if over:
                self.held, self._agreed, self._ahead = "", apart, ahead
                self._followed = apart if self._followed is None else self._followed
            return self.held

    def true(self, moment: int) -> int:
        """Return a time of the log as it should have been."""
        return next((moment + by for low, high, by in self.shifts if low < moment <= high), moment)

    def before(self, age: int) -> int:
        """Return the time of the log before which all records are older than that."""
        moment = self() - age
        for low, high, by in self.shifts:
            if low < moment <= high + by:
                return max(low + 1, moment - by)
        return moment


def _days(milliseconds: int) -> str:
    """Return a duration in words.

    >>> _days(-2 * DAY), _days(2 * HOUR)
    ('2.0 days', '2.0 hours')
    """
    large = abs(milliseconds) >= DAY
    return f"{abs(milliseconds) / (DAY if large else HOUR):.1f} {'days' if large else 'hours'}"
