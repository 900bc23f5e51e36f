"""Delay a KeyboardInterrupt until a round is over.

A round of a committee updates maps, scaling, members and weights, one after the other. Python may
raise a KeyboardInterrupt between any two of them, and a checkpoint of everything would cost more
than the round. So the signal is only recorded while a round is played, and handled after it. Python
handles signals in the main thread only: in other threads there is nothing to delay.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # signal wraps it, and takes 15 times as long
import threading
from types import FrameType, TracebackType
from typing import Any

__all__ = ["Shield"]

MAIN = threading.main_thread().ident


class Shield:
    """Delay an interrupt while a block of code runs.

    >>> import signal
    >>> before = signal.signal(signal.SIGINT, signal.default_int_handler)
    >>> try:
    ...     with Shield():
    ...         signal.raise_signal(signal.SIGINT)
    ...         print("goes on")
    ... except KeyboardInterrupt:
    ...     print("then stops")
    goes on
    then stops
    >>> _ = signal.signal(signal.SIGINT, before)
    """

    __slots__ = ("_before", "_noted")

    _before: Any
    _noted: tuple[int, FrameType | None] | None

    def __enter__(self) -> None:
        self._before = self._noted = None
        if threading.get_ident() == MAIN:
            before = _signal.getsignal(_signal.SIGINT)
            if callable(before):
                self._before = before
                _signal.signal(_signal.SIGINT, self._note)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        if self._before is not None:
            _signal.signal(_signal.SIGINT, self._before)
            if self._noted is not None:
                self._before(*self._noted)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._noted = number, frame
