"""A machine that loses power: of files and folders, only what was synced is there afterwards."""

from __future__ import annotations

import os
from pathlib import Path

from driftline import files


class PowerLost(BaseException):
    """Raised at the operation at which power is lost."""


class Machine(files.Disk):
    """Does what it is told to one folder, remembers what is safe, and stops at an operation.

    Parameters
    ----------
    folder
        The only one that is written to; files in it are safe as they are.
    stop
        The number of the operation that is not done any more.
    names
        Whether names in the folder are safe at once, as some file systems have it: a file may
        have its new name and no content.
    sync
        Whether syncs do anything.
    """

    def __init__(self, folder: Path, stop: int, names: bool = False, sync: bool = True):
        self.folder, self.stop, self.names, self.syncs = folder, stop, names, sync
        self.count, self.off = 0, False
        self._safe: dict[int, bytes] = {}  # content by inode
        self._held: list[int] = []  # so that no inode is used again
        self._entries: dict[str, int] = {}
        self._note_folder()

    def _reached(self) -> bool:
        """Say whether there still is power."""
        if self.off:
            return False
        if self.count == self.stop:
            self.off = True
            raise PowerLost
        self.count += 1
        return True

    def _inode(self, handle: int) -> int:
        inode = os.fstat(handle).st_ino
        if inode not in self._safe:
            self._held.append(os.dup(handle))
            self._safe[inode] = b""
        return inode

    def _note_folder(self) -> None:
        self._entries = {}
        for path in self.folder.iterdir():
            found = path.stat().st_ino
            if found not in self._safe:  # it was not made here
                self._held.append(os.open(path, os.O_RDONLY))
                self._safe[found] = path.read_bytes()
            self._entries[path.name] = found

    def _changed(self) -> None:
        if self.names:
            self._note_folder()

    def open(self, path):
        self._reached()
        handle = super().open(path)
        if path.parent == self.folder:
            self._inode(handle)
            self._changed()
        return handle

    def write(self, handle, content):
        if self._reached():
            super().write(handle, content)

    def truncate(self, handle, length):
        if self._reached():
            super().truncate(handle, length)

    def sync(self, handle):
        if self._reached() and self.syncs:
            self._safe[self._inode(handle)] = os.pread(handle, os.fstat(handle).st_size, 0)

    def rename(self, old, new):
        if self._reached():
            super().rename(old, new)
            self._changed()

    def remove(self, path):
        if self._reached():
            super().remove(path)
            self._changed()

    def sync_folder(self, folder):
        if self._reached() and self.syncs and folder == self.folder:
            self._note_folder()

    def come_back(self) -> None:
        """Leave in the folder what was safe."""
        self.off = True
        for path in self.folder.iterdir() if self.folder.exists() else ():
            path.unlink()
        self.folder.mkdir(exist_ok=True)
        for name, inode in self._entries.items():
            (self.folder / name).write_bytes(self._safe[inode])
        for handle in self._held:
            os.close(handle)
