"""What the readers share: numbered lines, numbers, sparse rows."""

from __future__ import annotations

import gzip
import math
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from driftline.errors import InputError

if TYPE_CHECKING:
    from scipy.sparse import csr_array

__all__ = ["Lines", "find_file", "finite", "read_bytes", "shorten", "sparse_rows", "whole"]


def find_file(folder: Path, name: str) -> Path:
    """Return the path of a file, plain or compressed by gzip, that must be in a folder."""
    for path in (folder / f"{name}.gz", folder / name):
        if path.exists():
            return path
    raise InputError(f"{folder} has no file {name} or {name}.gz")


def read_bytes(path: str | Path) -> bytes:
    """Return the content of a file, decompressed if it begins like a gzip file."""
    content = Path(path).read_bytes()
    if content[:2] != b"\x1f\x8b":
        return content
    try:
        return gzip.decompress(content)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"{path} is truncated or damaged: {error}") from error


class Lines:
    """The lines of a text file, plain or compressed by gzip.

    A second loop goes on where the first one stopped.
    """

    def __init__(self, path: str | Path) -> None:
        self.path, self._number = path, 0
        content = read_bytes(path)
        try:
            text = content.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            self._number = content.count(b"\n", 0, error.start) + 1
            raise self.error(
                f"expected text in UTF-8, but saw the byte {content[error.start]:#x}: convert the "
                "file first, for example with iconv"
            ) from error
        # Not splitlines, which also breaks lines at characters that editors do not count.
        self._lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")

    @property
    def number(self) -> int:
        """The number of the last line read."""
        return self._number

    def __iter__(self) -> Iterator[str]:
        while self._number < len(self._lines):
            self._number += 1
            yield self._lines[self._number - 1]

    def error(self, message: str) -> InputError:
        """Return an error that says where it was found."""
        return InputError(f"{self.path}, line {self.number}: {message}")

    def finite(self, token: str, what: str) -> float:
        """Return the finite number that a token stands for."""
        return finite(token, what, self.error)

    def whole(self, token: str, what: str) -> int:
        """Return the whole number, 0 or more, that a token stands for."""
        return whole(token, what, self.error)


def finite(token: str, what: str, error: Callable[[str], InputError]) -> float:
    """Return the finite number that a token stands for; ``error`` says where it was found."""
    try:
        value = float(token)
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or "_" in token:
        raise error(f"{what} must be a finite number, but is {shorten(token)}")
    return value


def whole(token: str, what: str, error: Callable[[str], InputError]) -> int:
    """Return the whole number, 0 or more, that a token stands for."""
    if not (token.isascii() and token.isdigit()):
        raise error(f"{what} must be a whole number, but is {shorten(token)}")
    if len(token.lstrip("0")) > 18:
        raise error(f"{what} of {len(token)} digits is too large: {shorten(token)}")
    return int(token)


def shorten(text: str) -> str:
    """Return a text in quotes, cut where it is too long for a message.

    >>> shorten("x" * 50)
    "'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx'..."
    """
    return repr(text) if len(text) <= 40 else f"{text[:40]!r}..."


def sparse_rows(
    values: list[float], columns: list[int], starts: list[int], width: int
) -> csr_array:
    """Return a CSR array in canonical form: columns ascend, and no zero is stored."""
    from scipy.sparse import csr_array

    kind = np.int32 if max(width, len(values)) < 2**31 else np.int64
    data = np.array(values, dtype=np.float64)
    places, ends = np.array(columns, dtype=kind), np.array(starts, dtype=kind)
    rows = csr_array((data, places, ends), shape=(len(starts) - 1, width))
    rows.sort_indices()
    rows.eliminate_zeros()
    return rows
