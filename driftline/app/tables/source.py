"""The source of a table: a file, plain or compressed by gzip, or standard input."""

from __future__ import annotations

import codecs
import gzip
import hashlib
import io
import sys
import zlib
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar
from weakref import finalize

from driftline.app.tables.live import Follow, FollowedLines, LiveLines
from driftline.errors import InputError

__all__ = ["Source"]

Made = TypeVar("Made")

GZIP = b"\x1f\x8b"
#: The first bytes of files of other kinds, and the advice about them.
OTHERS = {
    b"PK\x03\x04": "a ZIP file or a spreadsheet: unpack it, or save it as CSV",
    b"PAR1": "a Parquet file: say --format parquet",
    b"\xfd7zXZ": "compressed by xz: decompress it first",
    b"BZh": "compressed by bzip2: decompress it first",
    b"(\xb5/\xfd": "compressed by zstd: decompress it first",
    b"SQLite format 3": "a database: save the table as CSV",
}
#: What columns hold is guessed from so many first lines of a pipe, or those of so many seconds;
#: later a line is taken as soon as it is there.
PATIENCE, HURRY = (100, 5.0), (1, 0.0)
MARKS = {codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}


class Source:
    """Lines of text that are read once, in order, with their numbers.

    Parameters
    ----------
    path
        A file or a pipe; ``-`` is standard input. Gzip is recognised by its first bytes, not by the
        name.
    encoding
        The encoding of the text. A byte order mark of UTF-8 is removed.
    marked
        Whether a digest is kept of all that was read, for :meth:`digest`.
    follow
        Whether more lines are waited for at the end of a file.
    """

    def __init__(
        self,
        path: str | Path,
        encoding: str = "utf-8",
        marked: bool = False,
        follow: Follow = Follow.NO,
    ):
        self.path, self.encoding, self.marked = path, encoding, marked
        #: For how many lines of a pipe the first of many lines wait, and how many seconds at most.
        self.patience = PATIENCE
        #: For how many seconds the first of many lines is waited for, None if for ever. After that
        #: none is returned, and ``paused`` says that this is not the end.
        self.idle: float | None = None
        self.paused = False
        self._oldest, self._recent, self._hash = 0, list[str](), hashlib.sha256()
        self.name = "standard input" if str(path) == "-" else str(path)
        #: How many lines were read, and how many bytes the file has, None if that is unknown or
        #: still grows.
        self.number = 0
        self.size: int | None = None
        try:
            io.TextIOWrapper(io.BytesIO(), encoding)
        except (LookupError, ValueError):
            raise InputError(
                f"there is no encoding {encoding!r}: try utf-8, latin-1 or cp1252"
            ) from None
        self._raw = self._open()
        first = self._raw.peek(16)[:16]
        whole: io.BufferedReader = self._raw
        if first[:2] == GZIP:
            whole = io.BufferedReader(gzip.GzipFile(fileobj=self._raw), 1 << 18)
            first = self._guarded(lambda: whole.peek(16))[:16]
        self._refuse_others(first)
        plain = codecs.lookup(encoding).name == "utf-8"
        encoding = "utf-8-sig" if plain else encoding
        self._live: LiveLines | None = None
        self._followed: FollowedLines | None = None
        if follow is not Follow.NO:
            if whole is not self._raw:
                raise InputError(
                    f"{self.name} is compressed by gzip, and cannot be followed: decompress it "
                    "first, or leave --follow out"
                )
            waits = follow is Follow.YES
            self._live = self._followed = FollowedLines(self._raw, encoding, Path(path), waits)
            self.size = None
        elif self.size is None and whole is self._raw and _has_descriptor(self._raw):
            self._live = LiveLines(self._raw, encoding)
        self._text = None if self._live else io.TextIOWrapper(whole, encoding)

    def _open(self) -> Any:
        if str(self.path) == "-":
            raw: Any = sys.stdin.buffer
            return raw if isinstance(raw, io.BufferedReader) else io.BufferedReader(raw)
        path = Path(self.path)
        if not path.exists() or path.is_dir():
            raise InputError(f"there is no file {path}")
        self.size = path.stat().st_size if path.is_file() else None  # None for a pipe
        file = path.open("rb", buffering=1 << 18)
        finalize(self, file.close)  # also without a call of close
        return file

    def _refuse_others(self, first: bytes) -> None:
        for start, what in OTHERS.items():
            if first.startswith(start):
                raise InputError(f"{self.name} is {what}")
        for mark, encoding in MARKS.items():
            if first.startswith(mark) and "16" not in self.encoding:
                raise InputError(f"{self.name} is text in UTF-16: say --encoding {encoding}")

    def follow(self) -> None:
        """Wait for more lines at the end of the file from now on, if it is one to be followed."""
        if self._followed is not None:
            self._followed.follow()

    def lines(self, count: int) -> list[str]:
        """Return the next lines, without their ends; fewer or none at the end of the file."""
        taken: list[str] = []
        try:
            self._guarded(lambda: self._take(taken, count))
        except UnicodeDecodeError as error:
            # A chunk is decoded when all lines of those before it were taken.
            line = self.number + len(taken) + error.object.count(b"\n", 0, error.start) + 1
            raise self.error(
                f"the byte {error.object[error.start]:#x} is no text in {self.encoding}: say "
                "--encoding latin-1, or whatever the file was saved in",
                line,
            ) from None
        self.number += len(taken)
        made = [line.rstrip("\n") for line in taken]
        if self.marked:
            self._recent += made
        return made

    def _take(self, taken: list[str], count: int) -> None:
        if self._live is None:
            assert self._text is not None
            taken.extend(islice(self._text, count))
            return
        self._live.take(taken, count, *self.patience, self.idle if count > 1 else None)
        if count > 1:
            self.patience = HURRY
            self.paused = not taken and self.idle is not None and not self._live.ended

    # -- positions

    def forget_positions(self, ahead: int = 0) -> None:
        """Drop the buffer of recent lines, but for the last ``ahead``, which were read ahead.

        No digest before this position can be given any more.
        """
        cut = len(self._recent) - ahead
        _add(self._hash, self._recent[:cut])
        self._oldest, self._recent = self.number - ahead, self._recent[cut:]

    def digests(self) -> Callable[[int], str]:
        """Return a function for the SHA-256 of the first lines, as text, valid if more are read.

        It returns "" for lines that were not read, or that are no longer in the buffer.
        """
        before, recent = self._hash.copy(), self._recent
        oldest, number, marked = self._oldest, self.number, self.marked

        def digest(lines: int) -> str:
            if not marked or not oldest <= lines <= number:
                return ""
            made = before.copy()
            _add(made, recent[: lines - oldest])
            return made.hexdigest()

        return digest

    def skip(self, lines: int) -> None:
        """Read until ``lines`` lines are read in all, or the file ends."""
        while self.number < lines and self.lines(min(4096, lines - self.number)):
            self.forget_positions()
        if self.number < lines and self._followed is not None:
            self._followed.end_line()
            self.lines(1)

    def __iter__(self) -> Iterator[str]:
        """Yield the remaining lines."""
        while line := self.lines(1):
            yield line[0]

    @property
    def done(self) -> int:
        """How many bytes of the file on disk were read."""
        return self._raw.tell() if self.size is not None else 0

    def close(self) -> None:
        """Close the file."""
        if self.size is not None or self._followed is not None:
            self._raw.close()

    def error(self, message: str, line: int | None = None) -> InputError:
        """Return an error that says where it was found; by default in the last line read."""
        return InputError(f"{self.name}, line {self.number if line is None else line}: {message}")

    def _guarded(self, read: Callable[[], Made]) -> Made:
        """Read, and turn errors of decoding and decompression into messages."""
        try:
            return read()
        except UnicodeDecodeError:
            raise
        except UnicodeError as error:
            raise InputError(f"{self.name} is no text in {self.encoding}: {error}") from None
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise InputError(f"{self.name} is truncated or damaged: {error}") from None

    def __enter__(self) -> Source:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _has_descriptor(raw: Any) -> bool:
    try:
        return raw.fileno() >= 0
    except (OSError, AttributeError):
        return False


def _add(digest: Any, lines: list[str]) -> None:
    if lines:
        digest.update(("\n".join(lines) + "\n").encode("utf-8", "surrogatepass"))
