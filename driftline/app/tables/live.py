"""Lines of a pipe, as soon as they are there."""

from __future__ import annotations

import codecs
import io
import select
import time
from typing import Any

__all__ = ["LiveLines"]

#: How many bytes are read at once: at least the size of the buffer below, which is empty then.
CHUNK = 1 << 18


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
    """

    def __init__(self, raw: io.BufferedReader, encoding: str):
        decoder = codecs.getincrementaldecoder(encoding)()
        self._decoder: Any = io.IncrementalNewlineDecoder(decoder, translate=True)
        self._raw = raw
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
        if not self._buffered and not select.select([self._raw], [], [], seconds)[0]:
            return False
        data, self._buffered = self._raw.read1(CHUNK), False
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
