"""A layer below SQLite that records every operation, and can say what a loss of power leaves.

Of what was written after the last sync of a file, each sector may be there or not. A file that was
created and never synced may not be there; one that was deleted may still be.
"""

from __future__ import annotations

from pathlib import Path

import apsw
import numpy as np

SECTOR = 512


class Recorder(apsw.VFS):
    """Passes operations on to the disk, and keeps a list of them."""

    def __init__(self, name="recorder"):
        self.name, self.operations = name, []
        super().__init__(name, "")

    def xOpen(self, name, flags):  # noqa: N802
        return RecordedFile(self, name, flags)

    def xDelete(self, name, sync):  # noqa: N802
        self.operations.append(("delete", Path(name).name, sync, b""))
        super().xDelete(name, sync)


class RecordedFile(apsw.VFSFile):
    """A file of the recorder."""

    def __init__(self, vfs, name, flags):
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        self._operations, self._name = vfs.operations, Path(path).name
        super().__init__("", name, flags)

    def xWrite(self, data, offset):  # noqa: N802
        self._operations.append(("write", self._name, offset, bytes(data)))
        super().xWrite(data, offset)

    def xTruncate(self, size):  # noqa: N802
        self._operations.append(("truncate", self._name, size, b""))
        super().xTruncate(size)

    def xSync(self, flags):  # noqa: N802
        self._operations.append(("sync", self._name, flags, b""))
        super().xSync(flags)


def left_after(operations, generator):
    """Return the content of files by name, if power is lost after these operations."""
    safe: dict[str, bytearray | None] = {}
    pending: dict[str, list[tuple[str, int, bytes]]] = {}
    for kind, name, place, data in operations:
        if kind == "sync":
            content = safe.get(name)
            safe[name] = bytearray() if content is None else content
            for own in pending.pop(name, ()):
                _apply(safe, name, own)
        elif kind == "delete" and place:  # the folder is synced
            pending.pop(name, None)
            safe[name] = None
        else:
            pending.setdefault(name, []).append((kind, place, data))
    for name, own in pending.items():
        if safe.get(name) is None and generator.random() < 0.5:
            continue  # its name is not on the disk
        for operation in own:
            _torn(safe, name, operation, generator)
    return {name: bytes(content) for name, content in safe.items() if content is not None}


def _apply(safe, name, operation):
    kind, place, data = operation
    if kind == "delete":
        safe[name] = None
        return
    content = safe.get(name)
    if content is None:
        content = safe[name] = bytearray()
    if kind == "truncate":
        del content[place:]
        return
    if len(content) < place:
        content.extend(bytes(place - len(content)))
    content[place : place + len(data)] = data


def _torn(safe, name, operation, generator):
    """Apply an operation that was not synced, in part."""
    kind, place, data = operation
    if kind != "write":
        if generator.random() < 0.5:
            _apply(safe, name, operation)
        return
    for start in range(0, len(data), SECTOR):
        if generator.random() < 0.5:
            part = data[start : start + SECTOR]
            _apply(safe, name, ("write", place + start, part))


def generator_of(seed):
    return np.random.default_rng(seed)
