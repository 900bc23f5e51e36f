"""Files that survive a kill and a loss of power: replaced atomically, or appended and cut.

All writes that must be durable go through :data:`disk`, which has one method for each operation
that a crash can come between. Tests replace it by one that crashes there, or drops what was not
synced.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from driftline.errors import InputError

__all__ = ["Appended", "Disk", "draft_of", "drafted", "path_of", "remove", "replace"]

#: How much is read at a time.
CHUNK = 1 << 20


class Disk:
    """Operations on files, by the operating system."""

    def open(self, path: Path) -> int:
        """Open a file for reading and writing; create it, with the usual mode, if it is missing."""
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)

    def write(self, handle: int, content: bytes) -> None:
        """Write at the position of a handle."""
        left = memoryview(content)
        while left:
            left = left[os.write(handle, left) :]

    def truncate(self, handle: int, length: int) -> None:
        """Cut a file."""
        os.ftruncate(handle, length)

    def sync(self, handle: int) -> None:
        """Wait until the content of a file is on the disk."""
        if hasattr(fcntl, "F_FULLFSYNC"):  # macOS, whose fsync stops at the drive's cache
            with suppress(OSError):
                fcntl.fcntl(handle, fcntl.F_FULLFSYNC)
                return
        os.fsync(handle)

    def rename(self, old: Path, new: Path) -> None:
        """Rename a file; a file that had the new name is replaced."""
        os.replace(old, new)

    def remove(self, path: Path) -> None:
        """Delete a file, if it exists."""
        path.unlink(missing_ok=True)

    def sync_folder(self, folder: Path) -> None:
        """Wait until the names in a folder are on the disk."""
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        except OSError as error:
            if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # some file systems cannot
                raise
        finally:
            os.close(handle)


#: The disk of this machine.
disk = Disk()


def draft_of(path: Path) -> Path:
    """Return the path of a file's draft, which is renamed when complete; all writers share it.

    >>> draft_of(Path("out/model")).name
    '.part.model'
    """
    return path.with_name(f".part.{path.name}")


def path_of(given: str | Path) -> Path:
    """Return a path, or refuse a value that is not one."""
    if not isinstance(given, (str, os.PathLike)):
        raise InputError(f"expected a path, but got {given!r:.80}")
    return Path(given)


def replace(path: str | Path, content: bytes) -> Path:
    """Write a file atomically; when this returns, it is on the disk."""
    path = path_of(path)
    if path.exists() and not path.is_file():  # a pipe or a device, written to at once
        path.write_bytes(content)
        return path
    with drafted(path) as draft:
        handle = disk.open(draft)
        try:
            disk.write(handle, content)
        finally:
            os.close(handle)
    return path


@contextmanager
def drafted(path: str | Path) -> Iterator[Path]:
    """Yield the path of an empty draft, which is renamed to the file if nothing fails.

    Only one process writes a draft at a time: another one that writes the same file waits. A draft
    that was left behind is reused, and emptied.
    """
    path = Path(os.path.realpath(path))
    draft = draft_of(path)
    try:
        handle = _locked(draft)
    except OSError as error:  # name the file that was asked for, not its draft
        raise OSError(error.errno, error.strerror, str(path)) from error
    try:
        disk.truncate(handle, 0)
        yield draft
        disk.sync(handle)
        disk.rename(draft, path)
    except BaseException:
        disk.remove(draft)
        raise
    finally:
        os.close(handle)
    disk.sync_folder(path.parent)


def _locked(draft: Path) -> int:
    """Open and lock a draft that belongs to this user."""
    while True:
        try:
            handle = disk.open(draft)
        except OSError as error:
            if not _foreign(draft, error):
                raise
            disk.remove(draft)
            continue
        try:
            with suppress(OSError):  # a file system without locks
                fcntl.flock(handle, fcntl.LOCK_EX)
            found = os.fstat(handle)
            if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid():
                disk.remove(draft)  # its owner may still write to it
            elif _same(found, draft):
                return handle
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)  # the previous writer has renamed it meanwhile


def _same(found: os.stat_result, path: Path) -> bool:
    """Return whether an open file is the one at this path now."""
    try:
        return os.path.samestat(found, os.lstat(path))
    except FileNotFoundError:
        return False


def _foreign(draft: Path, error: OSError) -> bool:
    """Return whether a draft cannot be opened since it is a link or another user's."""
    try:
        found = os.lstat(draft)
    except OSError:
        return False
    return error.errno == errno.ELOOP or found.st_uid != os.geteuid()


def remove(*paths: Path) -> None:
    """Delete files of one folder, and sync the folder."""
    there = [path for path in paths if path.exists()]
    for path in there:
        disk.remove(path)
    if there:
        disk.sync_folder(there[0].parent)


class Appended:
    """A file that only grows; content beyond the last recorded length is cut off at the next use.

    Opening changes nothing, so that what was written last stays if nothing more comes.

    The length is to be recorded by :func:`replace` in the same folder, which also syncs the name of
    this file.

    Parameters
    ----------
    path
        The file; created if it is missing.
    length, digest
        How many bytes are kept, and their SHA-256. A file with another digest is refused.
    """

    def __init__(self, path: Path, length: int = 0, digest: str = ""):
        self.path, self.length = path, length
        self._hash = hashlib.sha256()
        self._handle = disk.open(path)
        try:
            self._check(digest)
            self._longer = os.fstat(self._handle).st_size > length
            os.lseek(self._handle, length, os.SEEK_SET)
        except BaseException:
            os.close(self._handle)
            raise

    def _check(self, digest: str) -> None:
        left = self.length
        while left:
            part = os.read(self._handle, min(CHUNK, left))
            if not part:
                raise ValueError(f"{self.path} has become shorter")
            self._hash.update(part)
            left -= len(part)
        if digest not in ("", self.digest):
            raise ValueError(f"{self.path} has been changed")

    @property
    def digest(self) -> str:
        """The SHA-256 of all that was written."""
        return self._hash.hexdigest()

    def _cut(self) -> None:
        """Cut off what does not belong to the file."""
        if self._longer:
            disk.truncate(self._handle, self.length)
            self._longer = False

    def write(self, content: bytes) -> None:
        """Write at the end."""
        if not content:
            return
        self._cut()
        disk.write(self._handle, content)
        self._hash.update(content)
        self.length += len(content)

    def read(self) -> BinaryIO:
        """Return a reader of the whole file."""
        self._cut()
        return self.path.open("rb")

    def sync(self) -> None:
        """Wait until all is on the disk."""
        self._cut()
        disk.sync(self._handle)

    def close(self) -> None:
        """Close the file."""
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1
