"""Ctrl-C at a good moment."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["Stop"]


class Stop:
    """Within it, Ctrl-C ends the reading at once, but lets rounds be learned to their end.

    ``asked`` is whether there was one; ``forced`` whether there was another one meanwhile, which
    ends everything as usual.
    """

    def __init__(self) -> None:
        self.asked, self.forced, self._busy = False, False, False
        self._before: Any = None

    def __enter__(self) -> Stop:
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(self, *_: Any) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def _note(self, *_: Any) -> None:
        self.forced = self.asked and self._busy
        wait = self._busy and not self.asked
        self.asked = True
        if not wait:
            raise KeyboardInterrupt

    @contextmanager
    def later(self) -> Iterator[None]:
        """Put Ctrl-C off until this is done."""
        self._busy = True
        try:
            yield
        finally:
            self._busy = False
        if self.asked:
            raise KeyboardInterrupt
