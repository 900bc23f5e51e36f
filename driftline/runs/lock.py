"""One folder has one writer."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import Any

from driftline import files
from driftline.errors import InputError

__all__ = ["Lock"]

NAME = "run.lock"


class Lock:
    """Within it, nobody else writes to a folder; the lock ends with the process, however it ends.

    ``left`` is whether the last writer died: it takes its file away otherwise.
    """

    def __init__(self, folder: Path):
        self.folder, self.path = folder, folder / NAME
        self.left, self._handle, self._made = False, -1, False

    def __enter__(self) -> Lock:
        self._made = not self.folder.exists()
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"{self.folder} cannot be made: {error.strerror}") from error
        while not self._taken():
            pass
        self.left = os.fstat(self._handle).st_size > 0
        os.ftruncate(self._handle, 0)
        os.pwrite(self._handle, f"{os.getpid()}\n".encode(), 0)
        os.fsync(self._handle)
        files.disk.sync_folder(self.folder)
        return self

    def _taken(self) -> bool:
        """Take the lock, unless the file was taken away meanwhile; then try again."""
        self._handle = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            who = os.pread(self._handle, 32, 0).decode(errors="replace").strip()
            os.close(self._handle)
            raise InputError(
                f"{self.folder} is being written by process {who or 'unknown'}: wait until it has "
                "ended, or name another folder by --out"
            ) from None
        except OSError:  # a file system without locks
            return True
        try:
            if os.path.samestat(os.fstat(self._handle), os.stat(self.path)):
                return True
        except FileNotFoundError:
            pass
        os.close(self._handle)
        return False

    def __exit__(self, *_: Any) -> None:
        self.path.unlink(missing_ok=True)
        os.close(self._handle)
        if self._made:
            try:
                self.folder.rmdir()  # if nothing came of it
            except OSError:
                pass
