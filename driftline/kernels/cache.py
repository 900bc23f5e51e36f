"""The disk cache of compiled kernels: where it is kept, and which of its files are trusted.

Numba notices when the file of a cached function changes, but not when a helper in another file
does. So the cache lives in a directory named after a digest of every file that holds compiled code:
if one changes, everything is compiled again.

The cache holds machine code in pickles, and anyone who can write it can run anything. A directory
that others may write to is therefore not used. A damaged file could crash the process instead of
raising an error: every file has a digest beside it, and a file that does not match it is deleted.
"""

from __future__ import annotations

import fcntl
import functools
import hashlib
import os
import stat
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

__all__ = ["Entry", "cache_directory"]

PACKAGE = Path(__file__).parents[1]


@functools.cache
def cache_directory() -> Path | None:
    """Return the directory of compiled kernels, or None where none can be written or trusted.

    It lies in ``DRIFTLINE_CACHE`` if that is set, else in the user's cache directory.
    """
    try:
        root = _cache_root()
        directory = root / _sources_digest()
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        tempfile.TemporaryFile(dir=directory).close()
        below = [path for path in directory.iterdir() if path.is_dir()]  # where Numba writes
        shared = next((path for path in (root, directory, *below) if not _is_ours(path)), None)
    except (OSError, RuntimeError):  # no home directory is a RuntimeError
        return None
    if shared is not None:
        warnings.warn(
            f"{shared} is not used as a cache of compiled code, since others may write to it: "
            "kernels are compiled in every process. Make it yours alone, or name another "
            "directory by DRIFTLINE_CACHE.",
            RuntimeWarning,
            stacklevel=2,
        )
        return None
    return directory


def _is_ours(path: Path) -> bool:
    """Say whether nobody else may write to a directory."""
    found = path.stat()
    return found.st_uid == os.getuid() and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _cache_root() -> Path:
    if chosen := os.environ.get("DRIFTLINE_CACHE"):
        return Path(chosen).expanduser()
    if sys.platform == "darwin":
        return Path("~/Library/Caches/driftline").expanduser()
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "driftline"


def _sources_digest() -> str:
    """Digest of all files that may hold compiled code: those that import this package."""
    digest = hashlib.sha256()
    for path in sorted(PACKAGE.rglob("*.py")):
        source = path.read_bytes()
        if path.parent.name == "kernels" or b"driftline.kernels" in source:
            digest.update(path.relative_to(PACKAGE).as_posix().encode() + b"\0" + source)
    return digest.hexdigest()[:16]


class Entry:
    """The files in which Numba keeps one function."""

    def __init__(self, directory: Path, function: Callable[..., object]):
        module = function.__module__.split(".")[-1]
        name = function.__qualname__.replace("<", "").replace(">", "")
        self._directory, self._pattern = directory, f"*/{module}.{name}-*.nb[ic]"
        self._lock = directory / f"{module}.{name}.lock"

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Let one process at a time compile the function: others then find it in the cache."""
        try:
            handle = os.open(self._lock, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError:  # then it is compiled by each
            yield
            return
        try:
            with suppress(OSError):
                fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)

    def verify(self) -> None:
        """Delete all files of the function if one does not match its digest."""
        if any(_read(_seal_of(path)) != _digest(path) for path in self._files()):
            self.delete()

    def seal(self) -> None:
        """Write the digest of every file beside it, in a folder that is the user's alone."""
        for path in self._files():
            with suppress(OSError):
                path.parent.chmod(0o700)  # Numba's own folders have what the umask leaves
            digest = _digest(path)
            if _read(_seal_of(path)) != digest:
                with suppress(OSError):
                    _write(_seal_of(path), digest)

    def delete(self) -> None:
        """Delete all files of the function, so that it is compiled again."""
        for path in self._files():
            for each in (path, _seal_of(path)):
                with suppress(OSError):
                    each.unlink(missing_ok=True)

    def _files(self) -> list[Path]:
        return sorted(self._directory.glob(self._pattern))


def _seal_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.sha256")


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii")
    except (OSError, ValueError):
        return ""


def _digest(path: Path) -> str:
    """Return the digest of a file, "" if it cannot be read."""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return ""


def _write(path: Path, text: str) -> None:
    """Write a small file atomically: other processes may write it at the same time."""
    handle, draft = tempfile.mkstemp(dir=path.parent)
    with os.fdopen(handle, "w", encoding="ascii") as file:
        file.write(text)
    os.replace(draft, path)
