"""The lock of a learner: one thread at a time reads or changes its state.

A round changes weights, memory and the number of the next ticket, and a second thread in the middle
of it would corrupt all three. So all code that reads or changes the state holds one lock, for a
prediction, a round, or a batch. While one thread plays a stream, other threads that try to learn
are refused; those that only predict wait until the batch ends. Between two batches, and during a
``progress`` callback, the lock is free.

The lock is always taken by ``with``, so that an interrupt cannot leave it locked.
"""

from __future__ import annotations

from threading import RLock, active_count, get_ident
from time import monotonic, sleep

from driftline.errors import BusyError

__all__ = ["Turn"]

#: How often, and for how long, a stream that is being played frees the lock, in seconds.
PAUSE_EVERY, PAUSE = 0.02, 1e-4


class Turn:
    """The lock of a learner, and which thread is playing a stream.

    >>> turn = Turn()
    >>> turn.begin()
    >>> turn.check()
    Traceback (most recent call last):
    ...
    driftline.errors.BusyError: the learner plays a stream: a callback may predict, not learn
    >>> turn.player = 0
    >>> turn.check()
    """

    __slots__ = ("_paused", "lock", "player")

    def __init__(self) -> None:
        #: Held while the state is read or changed.
        self.lock = RLock()
        #: The thread that plays a stream, which sets it to 0 at the end; 0 if none does.
        self.player = 0
        self._paused = 0.0  # when it last let others in

    def check(self) -> None:
        """Refuse to learn while a stream is being played."""
        if not (player := self.player):
            return
        if player == get_ident():
            raise BusyError("the learner plays a stream: a callback may predict, not learn")
        raise BusyError(
            "the learner is busy in another thread: use one learner a thread, or a lock of your "
            "own around this one"
        )

    def begin(self) -> None:
        """Begin to play a stream, unless another one is being played."""
        with self.lock:
            self.check()
            self.player = get_ident()

    def pause(self) -> None:
        """Free the lock for a moment, now and then, for other threads, if there are any."""
        now = monotonic()
        if now - self._paused > PAUSE_EVERY and active_count() > 1:
            self._paused = now
            sleep(PAUSE)
