"""Signals: SIGTERM and SIGINT end the service, whatever a thread is doing; SIGHUP reads tokens."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

__all__ = ["Signals"]

SIGNALS = signal.SIGINT, signal.SIGTERM, signal.SIGHUP
#: Seconds between the first signal to end and the end of the process.
GRACE = 45.0
#: A thread whose innermost frame is in one of these files waits for another one.
WAITING = "threading.py", "runners.py", "queue.py"


class Signals:
    """A context in which a thread of its own handles signals.

    Python calls a handler in the main thread, and only between two lines of Python. But the number
    of a signal is written to a pipe at once, whichever thread the system interrupts: threads of
    libraries do not block signals. So a thread reads that pipe.

    Parameters
    ----------
    reread
        Called at SIGHUP.
    grace
        Seconds that the service has to end; then the process ends.
    """

    def __init__(self, reread: Callable[[], None], grace: float = GRACE):
        self._reread, self._grace = reread, grace
        self._stop: Callable[[], None] | None = None
        self._before: list[Any] = []
        self._pipe, self._wakeup = (-1, -1), -1
        self._late, self._done = threading.Timer(grace, self._end_late), False
        self._late.daemon = True

    def __enter__(self) -> Signals:
        self._pipe = os.pipe()
        os.set_blocking(self._pipe[1], False)
        self._wakeup = signal.set_wakeup_fd(self._pipe[1], warn_on_full_buffer=False)
        self._before = [signal.signal(number, lambda *_: None) for number in SIGNALS]
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)  # whatever the parent blocks
        threading.Thread(target=self._read, name="signals", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done = True  # from now on the process may only wait for threads of libraries
        for number, handler in zip(SIGNALS, self._before, strict=True):
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._wakeup)
        os.close(self._pipe[1])

    def stop_by(self, stop: Callable[[], None]) -> None:
        """Name what stops the service; before, a signal ends the process: nothing is answered."""
        self._stop = stop

    def _read(self) -> None:
        while numbers := os.read(self._pipe[0], 100):
            for number in numbers:
                if number == signal.SIGHUP:
                    with suppress(OSError, ValueError):  # nobody reads standard error
                        self._reread()
                elif number in SIGNALS:
                    self._end()
        os.close(self._pipe[0])

    def _end(self) -> None:
        """Stop the service; when it was told so before, at once."""
        if self._stop is None:
            _end_process("the service was told to end before it answered requests")
            return
        if not self._late.is_alive():
            self._late.start()
        self._stop()

    def _end_late(self) -> None:
        """End the process when its time is over, and say which thread did not end."""
        how = "after" if self._done else "without"
        _end_process(
            f"the service ends {how} its last snapshot, {self._grace:g} seconds after it was told "
            f"to, since {busy()}"
        )


def busy() -> str:
    """Return which threads do something else than wait for others."""
    frames, made = sys._current_frames(), []
    for thread in threading.enumerate():
        frame = frames.get(thread.ident or 0)
        if frame is None or thread is threading.current_thread():
            continue
        file = os.path.basename(frame.f_code.co_filename)
        if file not in WAITING and thread.name != "signals":
            made.append(f"{thread.name} ({file}, line {frame.f_lineno}, {frame.f_code.co_name})")
    return f"these threads are busy: {', '.join(made)}" if made else "its threads wait for others"


def _end_process(why: str) -> None:
    said = f"{why}; all that was acknowledged is in the log, and will be read at the next start"
    try:
        print(said, file=sys.stderr, flush=True)
    finally:
        os._exit(0)
