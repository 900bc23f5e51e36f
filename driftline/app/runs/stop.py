"""Ctrl-C, and what is as good as that, at a good moment."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

__all__ = ["Stop"]

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

Item = TypeVar("Item")


class Stop:
    """Within it, Ctrl-C ends the reading at once, but lets rounds be learned and saved.

    SIGTERM and SIGHUP do the same. ``asked`` is which signal there was, 0 without one. Another
    one that comes before all is saved ends everything as usual.
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

    def each(self, items: Iterable[Item]) -> Iterator[Item]:
        """Yield what is read, until a signal comes; one that is half read is let go."""
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
