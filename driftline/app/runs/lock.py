"""A lock file: one folder has one writer."""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path

from driftline import files
from driftline.errors import InputError

__all__ = ["Lock"]

NAME = "run.lock"
#: How many bytes of the file identify the process.
WHO = 20


class ResultFolder:
    """A context in which a folder is there; what was made for it is deleted if it stays empty."""

    def __init__(self, folder: Path):
        self.folder = folder
        self._made: list[Path] = []

    def __enter__(self) -> ResultFolder:
        above = [self.folder, *self.folder.parents]
        self._made = [folder for folder in above if not folder.exists()]
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"{self.folder} cannot be made: {error.strerror}") from error
        return self

    def __exit__(self, *_: object) -> None:
        for folder in self._made:  # the innermost first
            try:
                folder.rmdir()
            except OSError:
                return


class Lock:
    """Keeps other processes from writing to a folder; it ends with the process, however it ends.

    The file has the id of the process, and then whether it has begun to write results without a
    checkpoint yet: ``left`` is whether the last writer died in that state. Otherwise the writer
    deletes the file.
    """

    def __init__(self, folder: Path, option: str = "--out"):
        self.folder, self.path, self._option = folder, folder / NAME, option
        self.left, self._handle = False, -1
        self._results = ResultFolder(folder)

    def __enter__(self) -> Lock:
        self._results.__enter__()
        while not self._taken():
            pass
        self.left = os.fstat(self._handle).st_size > WHO
        try:
            self._write(0, f"{os.getpid()}".ljust(WHO).encode())
            files.disk.sync_folder(self.folder)
        except OSError as error:
            if (
                error.errno != errno.ENOSPC
            ):  # on a full disk it is nameless, and a lock all the same
                raise
        return self

    def begin(self) -> None:
        """Record that results are written from now on."""
        self._write(WHO, b"begun")

    def swept(self) -> None:
        """Record that the results of the last writer were deleted."""
        if self.left:
            files.disk.truncate(self._handle, WHO)
            self.left = False

    def _write(self, place: int, content: bytes) -> None:
        os.lseek(self._handle, place, os.SEEK_SET)
        files.disk.write(self._handle, content)
        files.disk.sync(self._handle)

    def _taken(self) -> bool:
        """Take the lock; return False, to try again, if the file was deleted meanwhile."""
        self._handle = files.disk.open(self.path)
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            who = os.pread(self._handle, WHO, 0).decode(errors="replace").strip()
            os.close(self._handle)
            raise InputError(
                f"{self.folder} is being written by process {who or 'unknown'}: wait until it has "
                f"ended, or name another folder by {self._option}"
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

    def __exit__(self, *_: object) -> None:
        files.disk.remove(self.path)
        os.close(self._handle)
        self._results.__exit__()
