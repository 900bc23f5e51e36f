"""Lines of a pipe, or of a file that grows, as soon as they are there."""

from __future__ import annotations

import codecs
import io
import select
import time
from typing import Any

__all__ = ["LiveLines"]

#: How many bytes are read at once: at least the size of the buffer below, which is empty then.
CHUNK = 1 << 18
#: How often a file that is followed is looked at, in seconds.
LOOK = 0.1


class LiveLines:
    """The lines of a pipe: as many as are there, but at least one before the end.

    Whoever asks for lines waits for one, and then gets all that can be read without waiting: of a
    slow pipe a line as it comes, of a fast one as many as were asked for.

    Parameters
    ----------
    raw
        A buffered reader with a file descriptor.
    encoding
        Of the text; line ends of all kinds are those of Python.
    follow
        Whether the end of a file is not the end: it is looked at again until it has grown.
    """

    def __init__(self, raw: io.BufferedReader, encoding: str, follow: bool = False):
        decoder = codecs.getincrementaldecoder(encoding)()
        self._decoder: Any = io.IncrementalNewlineDecoder(decoder, translate=True)
        self._raw, self._follow = raw, follow
        self._lines: list[str] = []  # whole lines that nobody has taken yet, the last one first
        self._rest, self._ended = "", False
        self._buffered = True  # what was peeked at, which a descriptor does not tell of

    def take(self, taken: list[str], count: int, wait_for: int = 1, seconds: float = 0.0) -> None:
        """Add the next lines with their ends to a list, at most ``count``; none at the end.

        So many are waited for, but no longer than some seconds after the first one was there.
        """
        until = None
        while len(taken) < count:
            while self._lines and len(taken) < count:
                taken.append(self._lines.pop())
            if self._ended or len(taken) == count:
                break
            left: float | None = None  # wait for the first line, however long it takes
            if taken:
                until = time.monotonic() + seconds if until is None else until
                left = max(0.0, until - time.monotonic()) if len(taken) < wait_for else 0.0
            if not self._read(left):
                break

    def _read(self, seconds: float | None) -> bool:
        """Read what is there; return whether there was anything within some seconds."""
        until = None if seconds is None else time.monotonic() + seconds
        while True:
            if not self._follow and not self._buffered:
                ready, _, _ = select.select([self._raw], [], [], seconds)
                if not ready:
                    return False
            data, self._buffered = self._raw.read1(CHUNK), False
            if data or not self._follow:
                break
            if until is not None and time.monotonic() >= until:
                return False
            time.sleep(LOOK if until is None else min(LOOK, max(0.0, until - time.monotonic())))
        self._ended = not data
        text = self._rest + self._decoder.decode(data, final=not data)
        lines = text.split("\n")
        self._rest = lines.pop()
        made = [line + "\n" for line in lines]
        if self._ended and self._rest:
            made.append(self._rest)
            self._rest = ""
        self._lines = made[::-1] + self._lines
        return True
