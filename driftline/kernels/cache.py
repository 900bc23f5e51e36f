"""The disk cache of compiled kernels: where it is kept, and which of its files are trusted.

Numba notices when the file of a cached function changes, but not when a helper in another file
does, and it compares the times of files, so that a second checkout would compile everything again.
Here a kernel is kept in a directory named after a digest of its file and of all files of the
package, or beside it, that this one imports, directly or not. So the same sources share their
kernels, wherever they lie, and a change compiles again what depends on the changed file.

The cache holds machine code in pickles, and anyone who can write it can run anything. A directory
that others may write to is therefore not used. A damaged file could crash the process instead of
raising an error: every file has a digest beside it, and a file that does not match it is deleted.
"""

from __future__ import annotations

import fcntl
import functools
import hashlib
import os
import re
import stat
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

__all__ = ["Entry", "cache_directory"]

PACKAGE = Path(__file__).resolve().parents[1]

#: An import of a module, and the names that are imported from it.
IMPORT = re.compile(r"^(?:from|import) ([\w.]+)(?: import (\([^)]*\)|.*))?", re.M)


@functools.cache
def cache_directory(source: Path) -> Path | None:
    """Return the directory of the kernels of a file, or None if none can be written or trusted.

    It lies in ``DRIFTLINE_CACHE`` if that is set, else in the user's cache directory.
    """
    try:
        root = _cache_root()
        directory = root / sources_digest(source)
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        tempfile.TemporaryFile(dir=directory).close()
        shared = next((path for path in (root, directory) if not _is_ours(path)), None)
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


def sources_digest(source: Path) -> str:
    """Return the digest of a file and of all files of the package that it imports."""
    digest, found, queue = hashlib.sha256(), set[Path](), [source.resolve()]
    while queue:
        if (path := queue.pop()) not in found:
            found.add(path)
            queue += _imported(path)
    for name, own in sorted((_name_of(path), _digest(path)) for path in found):
        digest.update(f"{name}\0{own}\0".encode())
    return digest.hexdigest()[:16]


def _name_of(path: Path) -> str:
    """Return the path of a file from the package on: the same in every checkout."""
    return path.relative_to(PACKAGE).as_posix() if path.is_relative_to(PACKAGE) else path.name


@functools.cache
def _imported(source: Path) -> list[Path]:
    """Return the files that a file imports when it is loaded: of the package, or beside it.

    A file of a user's own may import others of these, from its folder or from one around it.
    """
    made, around = list[Path](), [] if source.is_relative_to(PACKAGE) else source.parents
    for module, names in IMPORT.findall(source.read_text(encoding="utf-8")):
        first, *rest = [part for part in module.split(".") if part] or ["."]
        bases = [PACKAGE] if first == "driftline" else [folder / first for folder in around]
        for base in (folder.joinpath(*rest) for folder in bases):
            for path in (base, *(base / name for name in re.findall(r"\w+", names))):
                both = path.parent / f"{path.name}.py", path / "__init__.py"
                made += [own.resolve() for own in both if own.is_file()]
    return made


class Locator:
    """Tells Numba where a kernel is kept, and that its files are valid: see the digest above."""

    def __init__(self, directory: Path):
        self._directory = str(directory)

    @classmethod
    def from_function(cls, function: Callable[..., object], path: str) -> Locator | None:
        """Return the locator of a function."""
        directory = cache_directory(Path(path))
        return None if directory is None else cls(directory)

    def ensure_cache_path(self) -> None:
        """Make the directory."""
        os.makedirs(self._directory, mode=0o700, exist_ok=True)

    def get_cache_path(self) -> str:
        """Return the directory."""
        return self._directory

    def get_source_stamp(self) -> str:
        """Return what the files are valid for: the name of the directory says it."""
        return ""

    def get_disambiguator(self) -> str:
        """Return what tells functions of one name in one file apart: there are none."""
        return "0"


class Entry:
    """The files in which Numba keeps one function."""

    def __init__(self, directory: Path, function: Callable[..., object]):
        module = Path(function.__code__.co_filename).stem
        name = function.__qualname__.replace("<", "").replace(">", "")
        self._directory, self._pattern = directory, f"{module}.{name}-*.nb[ic]"
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
        """Write the digest of every file beside it."""
        for path in self._files():
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
