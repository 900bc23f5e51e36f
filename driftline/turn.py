"""One caller at a time.

A learner moves weights, memory and random numbers in every round, and a second thread in the middle
of that would corrupt all three. A learner that is busy therefore refuses other threads. The thread
that is at work may look (as a ``progress`` callback may predict), but not learn in between.
"""

from __future__ import annotations

from threading import Lock, get_ident
from typing import Any, NoReturn

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

    __slots__ = ("_lock", "_owner", "looking")

    def __init__(self) -> None:
        self._lock = Lock()
        self._owner = 0  # the thread whose turn it is
        self.looking = _Look(self)

    def __enter__(self) -> None:
        if not self._lock.acquire(False):
            self._refuse()
        self._owner = get_ident()

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self._owner = 0
        self._lock.release()

    def _refuse(self) -> NoReturn:
        if self._owner == get_ident():
            raise BusyError("the learner is at work: a callback may look, not learn")
        raise BusyError(
            "the learner is busy in another thread: use one learner a thread, or a lock of "
            "your own around this one"
        )


class _Look:
    """A turn that may stand inside one's own."""

    __slots__ = ("_depth", "_turn")

    def __init__(self, turn: Turn):
        self._turn, self._depth = turn, 0

    def __enter__(self) -> None:
        if self._turn._owner == get_ident():
            self._depth += 1
        else:
            self._turn.__enter__()

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if self._depth:
            self._depth -= 1
        else:
            self._turn.__exit__(kind, error, trace)
