"""Lines of a pipe, or of a file that grows, as soon as they are there."""

from __future__ import annotations

import codecs
import io
import os
import select
import time
from enum import Enum
from pathlib import Path
from typing import Any

from driftline.errors import InputError

__all__ = ["FileChangedError", "Follow", "FollowedLines", "LiveLines"]

#: How many bytes are read at once: at least the size of the buffer below, which is empty then.
CHUNK = 1 << 18
#: How many seconds pass between two looks at a file that may have grown.
PAUSE = 0.1


class Follow(Enum):
    """Whether more lines are waited for at the end of a file.

    ``LATER`` is for a file that is first read up to where reading stopped before: nothing is waited
    for until :meth:`FollowedLines.follow` is called.
    """

    NO = "no"
    LATER = "later"
    YES = "yes"


class FileChangedError(InputError):
    """A file that was followed is another one now, or has become shorter."""


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
        self._rest, self.ended = "", False
        self._buffered = True  # what was peeked at, which a descriptor does not tell of

    def take(
        self,
        taken: list[str],
        count: int,
        wait_for: int = 1,
        seconds: float = 0.0,
        first: float | None = None,
    ) -> None:
        """Add the next lines with their ends to a list, at most ``count``; none at the end.

        So many are waited for, but no longer than some seconds after the first one was there. The
        first is waited for however long it takes, or for ``first`` seconds.
        """
        until = None
        while len(taken) < count:
            while self._lines and len(taken) < count:
                taken.append(self._lines.pop())
            if self.ended or len(taken) == count:
                break
            left = first
            if taken:
                until = time.monotonic() + seconds if until is None else until
                left = max(0.0, until - time.monotonic()) if len(taken) < wait_for else 0.0
            if not self._read(left):
                break

    def _read(self, seconds: float | None) -> bool:
        """Read what is there; return whether there was anything within some seconds."""
        data = self._data(seconds)
        if data is None:
            return False
        self.ended = not data
        text = self._rest + self._decoded(data)
        lines = text.split("\n")
        self._rest = lines.pop()
        made = [line + "\n" for line in lines]
        if self.ended and self._rest:
            made.append(self._rest)
            self._rest = ""
        self._lines = made[::-1] + self._lines
        return True

    def _data(self, seconds: float | None) -> bytes | None:
        """Return what is there within some seconds: None for nothing, no bytes at the end."""
        if not self._buffered and not select.select([self._raw], [], [], seconds)[0]:
            return None
        self._buffered = False
        return self._raw.read1(CHUNK)

    def _decoded(self, data: bytes) -> str:
        made: str = self._decoder.decode(data, final=not data)
        return made


class FollowedLines(LiveLines):
    """The lines of a file that grows: there is no end, and a line without its end is not there yet.

    A file that is replaced, deleted or cut is refused when all of its lines were taken.

    Parameters
    ----------
    raw, encoding
        As in :class:`LiveLines`.
    path
        Of the file, to notice that another one has taken its place.
    waits
        Whether lines are waited for yet.
    """

    def __init__(self, raw: io.BufferedReader, encoding: str, path: Path, waits: bool):
        super().__init__(raw, encoding)
        self.path, self.waits = path, waits
        self._unended = False  # whether the last line was taken without its end
        self._gone = ""  # what has become of the file, if it is not there as it was

    def follow(self) -> None:
        """Wait for lines from now on."""
        self.waits = True

    def end_line(self) -> None:
        """Take a last line without its end as whole, as one who read up to the end has done."""
        if self._rest:
            self._lines, self._rest, self._unended = [self._rest, *self._lines], "", True

    def take(
        self,
        taken: list[str],
        count: int,
        wait_for: int = 1,
        seconds: float = 0.0,
        first: float | None = None,
    ) -> None:
        """Add the next lines to a list; if there are none and never will be, say why."""
        super().take(taken, count, wait_for, seconds, first)
        if self._gone and not taken:
            raise FileChangedError(f"{self.path} {self._gone} while it was followed")

    def _data(self, seconds: float | None) -> bytes | None:
        until = None if seconds is None else time.monotonic() + seconds
        while True:
            self._gone = self._changed() if self.waits else ""
            if data := self._raw.read1(CHUNK):  # what came before it was changed is there
                return data
            left = PAUSE if until is None else min(PAUSE, until - time.monotonic())
            if not self.waits or self._gone or left <= 0.0:
                return None
            time.sleep(left)  # which a signal ends

    def _changed(self) -> str:
        """Say what has become of the file, nothing if it is as it was, or longer."""
        own = os.fstat(self._raw.fileno())
        try:
            if not os.path.samestat(own, os.stat(self.path)):
                return "was replaced by another file"
        except FileNotFoundError:
            return "was deleted or renamed"
        return "has become shorter" if own.st_size < self._raw.tell() else ""

    def _decoded(self, data: bytes) -> str:
        text = super()._decoded(data)
        if self._unended and text:
            if text[0] != "\n":
                raise FileChangedError(
                    f"{self.path} has another end of the last line than it had when it was read"
                )
            text, self._unended = text[1:], False
        return text
