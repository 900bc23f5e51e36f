"""One thread at a time moves a learner; streams are refused to others, looks and rounds wait.

A learner moves weights, memory and the number of the next ticket in every round, and a second
thread in the middle of that would corrupt all three. Whatever reads or moves the state holds one
lock, for a look, a round, or a batch. While one thread plays a stream, others that would learn are
refused; those that look wait for the batch to end. Between two batches, and while a ``progress``
callback is at work, the lock is free.

The lock is taken by ``with`` alone, which an interrupt cannot cut in two.
"""

from __future__ import annotations

from threading import RLock, get_ident
from time import monotonic, sleep

from driftline.errors import BusyError

__all__ = ["Turn"]

#: A stream that is being played lets others in so often, and so long, in seconds.
OFTEN, PAUSE = 0.02, 1e-4


class Turn:
    """The lock of a learner, and which thread is playing a stream.

    >>> turn = Turn()
    >>> turn.begin()
    >>> turn.check()
    Traceback (most recent call last):
    ...
    driftline.errors.BusyError: the learner is at work: a callback may look, not learn
    >>> turn.end()
    """

    __slots__ = ("_paused", "_player", "lock")

    def __init__(self) -> None:
        #: Held by whoever reads or moves the state.
        self.lock = RLock()
        self._player = 0  # the thread that plays a stream
        self._paused = 0.0  # when it last let others in

    def check(self) -> None:
        """Refuse to learn while a stream is being played."""
        if self._player == get_ident():
            raise BusyError("the learner is at work: a callback may look, not learn")
        if self._player:
            raise BusyError(
                "the learner is busy in another thread: use one learner a thread, or a lock of "
                "your own around this one"
            )

    def begin(self) -> None:
        """Begin to play a stream, unless somebody does."""
        with self.lock:
            self.check()
            self._player = get_ident()

    def end(self) -> None:
        """Let others learn again, if it was this thread's stream."""
        if self._player == get_ident():
            self._player = 0

    def pause(self) -> None:
        """Give those a chance who wait to look, now and then; the lock is free."""
        now = monotonic()
        if now - self._paused > OFTEN:
            self._paused = now
            sleep(PAUSE)
