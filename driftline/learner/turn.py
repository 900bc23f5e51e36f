"""One thread learns at a time; others that only look wait for it.

A learner moves weights, memory and the number of the next ticket in every round, and a second
thread in the middle of that would corrupt all three. A learner that is busy therefore refuses other
threads that would learn. Those that look wait until the round, or the batch, is over: between two
batches, and while a ``progress`` callback is at work, anybody may look.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock, get_ident
from time import sleep

from driftline.errors import BusyError

__all__ = ["Turn"]


class Turn:
    """Whose turn it is: ``with turn:`` to learn, ``with turn.looking:`` to look.

    >>> turn = Turn()
    >>> with turn, turn.looking:
    ...     pass
    >>> with turn, turn:
    ...     pass
    Traceback (most recent call last):
    ...
    driftline.errors.BusyError: the learner is at work: a callback may look, not learn
    """

    __slots__ = ("_counting", "_learner", "_lock", "_owner", "_waiting", "looking")

    def __init__(self) -> None:
        self._lock = Lock()
        self._owner = 0  # the thread that holds the lock
        self._learner = 0  # the thread that learns, also while it lets others look
        self._waiting, self._counting = 0, Lock()  # how many wait to look
        self.looking = _Look(self)

    def __enter__(self) -> None:
        if not self._lock.acquire(False):
            self._check_free()
            if self._owner == get_ident():
                raise BusyError("the learner is being looked at, and cannot learn in between")
            self._lock.acquire()  # somebody looks, which takes no longer than a round
        if self._learner:
            self._lock.release()
            self._check_free()
        self._owner = self._learner = get_ident()

    def __exit__(self, *error: object) -> None:
        self._owner = self._learner = 0
        self._lock.release()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Let others look in between, but nobody learn."""
        self._owner = 0
        self._lock.release()
        try:
            yield
        finally:
            while self._waiting:
                sleep(0.0)
            self._lock.acquire()
            self._owner = get_ident()

    def _check_free(self) -> None:
        if self._learner == get_ident():
            raise BusyError("the learner is at work: a callback may look, not learn")
        if self._learner:
            raise BusyError(
                "the learner is busy in another thread: use one learner a thread, or a lock of "
                "your own around this one"
            )


class _Look:
    """A turn that may stand inside one's own, and is waited for."""

    __slots__ = ("_depth", "_turn")

    def __init__(self, turn: Turn):
        self._turn, self._depth = turn, 0

    def __enter__(self) -> None:
        turn = self._turn
        if turn._owner == get_ident():
            self._depth += 1
            return
        if not turn._lock.acquire(False):
            self._count(1)
            try:
                turn._lock.acquire()
            finally:
                self._count(-1)
        turn._owner = get_ident()

    def __exit__(self, *error: object) -> None:
        if self._depth:
            self._depth -= 1
        else:
            self._turn._owner = 0
            self._turn._lock.release()

    def _count(self, more: int) -> None:
        with self._turn._counting:
            self._turn._waiting += more
