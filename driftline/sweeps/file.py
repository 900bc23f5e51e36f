"""The file of a sweep: rows as JSON lines, appended as they are finished.

A row is on the disk before the next one is waited for. A last line that a kill has cut is removed.
"""

from __future__ import annotations

import fcntl
import json
import math
import os
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from driftline.errors import DAMAGE, InputError
from driftline.files import Appended, disk, path_of
from driftline.sweeps.table import SweepRow

__all__ = ["SweepFile", "read_rows"]

#: The first line of every file.
HEADER = {"format": "driftline sweep", "version": 1}


def read_rows(path: str | Path) -> list[SweepRow]:
    """Return the rows of a file, the last one of each key."""
    rows, _ = _parsed(path_of(path), path_of(path).read_bytes())
    return list(rows.values())


def _parsed(path: Path, content: bytes) -> tuple[dict[str, SweepRow], int]:
    """Return rows by key, and how many bytes of the file are whole lines."""
    length = content.rfind(b"\n") + 1
    lines = content[:length].splitlines()
    header = json.dumps(HEADER).encode()
    if (lines and lines[0] != header) or not (lines or header.startswith(content)):
        raise InputError(f"{path} is not a file of a sweep: remove it, or name another one")
    rows = {}
    for number, line in enumerate(lines[1:], start=2):
        try:
            plain = json.loads(line)
            key = str(plain.pop("key"))
            rows[key] = _row(plain)
        except DAMAGE as error:
            raise InputError(f"{path} is damaged in line {number}: {error}") from error
    return rows, length


def _row(plain: dict[str, Any]) -> SweepRow:
    for name in ("learner", "stream", "error"):
        if not isinstance(plain[name], str):
            raise InputError(f"{name} is a text, not {plain[name]!r:.40}")
    for name in ("seed", "rounds"):
        if type(plain[name]) is not int or not 0 <= plain[name] < 2**63:
            raise InputError(f"{name} is a whole number of 0 or more, not {plain[name]!r:.40}")
    for name in ("target_loss", "risk", "surrogate_loss", "seconds"):
        value = math.nan if plain[name] is None else plain[name]
        if type(value) not in (int, float) or math.isinf(value):
            raise InputError(f"{name} is a finite number or null, not {value!r:.40}")
        plain[name] = float(value)
    return SweepRow(**plain)


class SweepFile:
    """The rows that a file has, and those that are appended to it."""

    def __init__(self, path: str | Path):
        self.path = path_of(path)
        self._appended: Appended | None = None
        self._lock = -1
        self.rows: dict[str, SweepRow] = {}

    def __enter__(self) -> Self:
        """Open and lock the file, and read what it has; create it if it is missing."""
        try:
            self._lock = disk.open(self.path)
        except OSError as error:
            raise InputError(f"{self.path} cannot be written: {error.strerror}") from error
        try:
            self._take_lock()
            self.rows, length = _parsed(self.path, self.path.read_bytes())
            self._appended = Appended(self.path, length)
            if not length:
                self._write(json.dumps(HEADER))
                disk.sync_folder(self.path.absolute().parent)
        except BaseException:
            self.close()
            raise
        return self

    def _take_lock(self) -> None:
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(f"another sweep writes to {self.path}: name another file") from None
        except OSError:  # a file system without locks
            return

    def add(self, keys: list[str], rows: list[SweepRow]) -> None:
        """Append rows; when this returns, they are on the disk."""
        lines = []
        for key, row in zip(keys, rows, strict=True):
            plain = {k: None if v != v else v for k, v in row._asdict().items()}
            lines.append(json.dumps({"key": key} | plain))
        self._write("\n".join(lines))

    def _write(self, text: str) -> None:
        assert self._appended is not None
        self._appended.write(f"{text}\n".encode())
        self._appended.sync()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close the file."""
        self.close()

    def close(self) -> None:
        """Close the file, and let others write to it."""
        if self._appended is not None:
            self._appended.close()
        if self._lock >= 0:
            with suppress(OSError):
                os.close(self._lock)
            self._lock = -1
