"""Stop a run on Ctrl-C, SIGTERM or SIGHUP, between two batches."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

__all__ = ["Stop"]

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

Item = TypeVar("Item")


class Stop:
    """A context in which Ctrl-C ends the reading at once, but lets rounds be learned and saved.

    SIGTERM and SIGHUP do the same. ``asked`` is the number of the signal, 0 without one. A second
    signal before everything is saved ends the process as usual.
    """

    def __init__(self) -> None:
        self.asked, self._reading = 0, False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Stop:
        if threading.current_thread() is threading.main_thread():
            for number in SIGNALS:
                if signal.getsignal(number) is not signal.SIG_IGN:  # as nohup has it
                    self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)

    def _note(self, number: int, _: object) -> None:
        again, self.asked = bool(self.asked), number
        if again or self._reading:
            raise KeyboardInterrupt

    def read(self, made: Callable[[], Item]) -> Item | None:
        """Return what is made by reading; None if a signal comes before it is made."""
        return next(self.each(made() for _ in (None,)), None)

    def each(self, items: Iterable[Item]) -> Iterator[Item]:
        """Yield items until a signal comes; an item that is half read is dropped."""
        reading = iter(items)
        while not self.asked:
            try:
                self._reading = True
                item = next(reading)
                self._reading = False
            except StopIteration:
                return
            except KeyboardInterrupt:
                if not self._reading:  # the second one
                    raise
                return
            finally:
                self._reading = False
            yield item
