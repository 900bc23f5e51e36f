"""Files of plain data: one JSON text and named arrays, in a ZIP file that is not compressed.

Nothing in such a file is ever executed, and nothing is read before its size is checked: arrays are
not compressed, so that none can be larger than the file itself.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import re
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from driftline import files
from driftline.errors import InputError
from driftline.typing import Json, Saved
from driftline.version import __version__

__all__ = ["Writer", "filled", "named", "packed", "read", "refuse", "unpacked", "write"]

#: The version of the format. Files of others are refused.
FORMAT = 2

ABOUT = "about.json"

#: The key of the name of a model that a file is without.
ABSENT = "absent model"

#: How long the digest at the end of a file is.
SEAL = 64
DTYPES = ("float64", "float32", "int64", "bool")
NAME = re.compile(r"[a-z0-9_][a-z0-9_.]{0,99}\.npy")


def write(
    path: str | Path, about: Json, arrays: dict[str, np.ndarray], models: bool = False
) -> Path:
    """Write a file, in whole or not at all; when this returns, it is on the disk.

    With ``models`` it has the names of models of other libraries, which :func:`filled` wants again.
    """
    return files.replace(path, packed(about, arrays, models))


def packed(about: Json, arrays: dict[str, np.ndarray], models: bool = False) -> bytes:
    """Return the bytes of a file; equal content has equal bytes, whenever it is written."""
    made = io.BytesIO()
    writer = Writer(made.write)
    for name, array in arrays.items():
        writer.add(name, array)
    writer.finish(about, named if models else refuse)
    return made.getvalue()


class Writer:
    """A file of plain data that is written from its beginning to its end, array by array."""

    def __init__(self, write: Callable[[bytes], object]):
        self._out = _Sealing(write)
        self._archive = zipfile.ZipFile(self._out, "w")  # type: ignore[call-overload]

    def add(self, name: str, array: np.ndarray) -> None:
        """Write an array, whose name is new."""
        with self._archive.open(_entry(f"{name}.npy"), "w", force_zip64=True) as content:
            np.lib.format.write_array(content, np.ascontiguousarray(array), allow_pickle=False)

    def finish(self, about: Json, default: Callable[[object], object] | None = None) -> None:
        """Write the text about the arrays, and the seal."""
        content = {"format": FORMAT, "driftline": __version__, **about}
        text = json.dumps(content, default=refuse if default is None else default)
        self._archive.writestr(_entry(ABOUT), text)
        self._archive.close()
        self._out.seal()

    def discard(self) -> None:
        """Write nothing more, not even what a ZIP file writes when it is garbage-collected."""
        self._out.discard()
        self._archive.close()


def refuse(value: object) -> None:
    """Raise for what is no plain data, such as a model of another library."""
    raise InputError(
        f"{type(value).__name__} is no plain data, and is not written to a file: a model of "
        "another library lives in memory, where it can be copied; the file of a learner has its "
        "name, and a trace can be saved if it was run with audit=False"
    )


def named(value: object) -> Json:
    """Return what a file has of a model of another library: its name."""
    if not (callable(value) or hasattr(value, "predict") or hasattr(value, "learn_one")):
        refuse(value)
    return {ABSENT: type(value).__name__}


def filled(about: Any, name: str | Path, model: Any) -> Any:
    """Return plain data with a model in place of its name; a list of models, if it has several."""
    names = _absent(about)
    if not names:
        if model is not None:
            raise InputError(f"{name} has all its models inside: leave model= out")
        return about
    if model is None:
        if len(names) > 1:
            raise InputError(
                f"{name} was saved without its models, {', '.join(names)}, which are code of "
                "others: pass them again in this order, as in dl.load(path, model=[...])"
            )
        raise InputError(
            f"{name} was saved without its model, a {names[0]}, which is code of others: pass it "
            "again, as in dl.load(path, model=...)"
        )
    models = list(model) if len(names) > 1 and isinstance(model, (list, tuple)) else [model]
    if len(models) != len(names):
        raise InputError(
            f"{name} was saved without {len(names)} models, {', '.join(names)}: expected a list of "
            f"these as model=, but got {len(models)}"
        )
    return _filled(about, iter(models))


def _absent(about: Any) -> list[str]:
    """Return the names of models that plain data is without, in their order."""
    if isinstance(about, dict):
        if about.keys() == {ABSENT}:
            return [str(about[ABSENT])]
        about = list(about.values())
    return [name for one in about for name in _absent(one)] if isinstance(about, list) else []


def _filled(about: Any, models: Iterator[Any]) -> Any:
    if isinstance(about, dict):
        if about.keys() == {ABSENT}:
            return next(models)
        return {key: _filled(value, models) for key, value in about.items()}
    return [_filled(one, models) for one in about] if isinstance(about, list) else about


class _Sealing:
    """The output stream of a ZIP file: passes bytes on, but holds back the last two."""

    def __init__(self, write: Callable[[bytes], object]):
        self._write: Callable[[bytes], object] = write
        self._last, self._hash = b"", hashlib.sha256()

    def write(self, content: bytes | bytearray | memoryview) -> int:
        """Write some bytes at the end."""
        known = self._last + bytes(content)
        self._last = known[-2:]
        self._hash.update(known[:-2])
        self._write(known[:-2])
        return len(content)

    def flush(self) -> None:
        """Do nothing: the caller syncs."""

    def discard(self) -> None:
        """Drop all bytes from now on."""
        self._write = len

    def seal(self) -> None:
        """Write the digest of all bytes as the comment: see :func:`_sealed`."""
        self._hash.update(b"\0\0")
        seal = self._hash.hexdigest().encode()
        self._write(len(seal).to_bytes(2, "little") + seal)


def _entry(name: str) -> zipfile.ZipInfo:
    """Return an entry without a time: the clock may be before 1980, where ZIP times begin."""
    made = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
    made.external_attr = 0o600 << 16
    return made


def read(path: str | Path) -> Saved:
    """Return what :func:`write` was given, or refuse the file."""
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    return unpacked(path.read_bytes(), path)


def unpacked(content: bytes, name: str | Path) -> Saved:
    """Return what :func:`packed` was given, or refuse the bytes; ``name`` is for messages."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            if content != _sealed(content[:-SEAL]):
                raise InputError("its seal is broken: it is damaged, or was edited")
            return _read(archive, len(content))
    except Exception as error:  # readers may raise anything on a damaged file
        raise InputError(f"{name} is not a file of driftline: {error}") from error


def _sealed(content: bytes) -> bytes:
    """Return a ZIP file with a digest of all its bytes as its comment.

    The last two bytes of the file are the length of the comment. The digest detects damage; it is
    no signature, and anyone who edits a file can seal it again, so that all else is checked as
    well.
    """
    bare = content[:-2] + b"\0\0"
    seal = hashlib.sha256(bare).hexdigest().encode()
    return bare[:-2] + len(seal).to_bytes(2, "little") + seal


def _read(archive: zipfile.ZipFile, size: int) -> Saved:
    entries = archive.infolist()
    names = [entry.filename for entry in entries]
    if names.count(ABOUT) != 1 or len(set(names)) != len(names):
        raise InputError(f"expected one {ABOUT} and arrays of different names, but found {names}")
    for entry in entries:
        if entry.filename != ABOUT and not NAME.fullmatch(entry.filename):
            raise InputError(f"an array has no plain name: {entry.filename!r}")
        if entry.compress_type != zipfile.ZIP_STORED or entry.file_size > size:
            raise InputError(f"{entry.filename} is compressed, or larger than the file it is in")
    if sum(entry.file_size for entry in entries) > size:
        raise InputError("its entries lie on top of each other")
    about = json.loads(archive.read(ABOUT))
    if not isinstance(about, dict) or not isinstance(about.get("format"), int):
        raise InputError(f"{ABOUT} does not say which format it has")
    if about["format"] != FORMAT:
        raise InputError(
            f"the file has format {about['format']}, written by driftline "
            f"{about.get('driftline')}: this version reads format {FORMAT}; install a newer"
        )
    arrays = {
        name.removesuffix(".npy"): _array(name, archive.read(name))
        for name in names
        if name != ABOUT
    }
    return about, arrays


def _array(name: str, content: bytes) -> np.ndarray:
    """Return an array whose header fits its content."""
    file = io.BytesIO(content)
    version = np.lib.format.read_magic(file)
    if version != (1, 0):
        raise InputError(f"{name} has a header of version {version}: expected (1, 0)")
    shape, fortran, dtype = np.lib.format.read_array_header_1_0(file)
    if dtype.name not in DTYPES or not dtype.isnative:
        raise InputError(f"{name} holds {dtype}: expected one of {', '.join(DTYPES)}")
    left = len(content) - file.tell()
    if fortran or any(n < 0 for n in shape) or math.prod(shape) * dtype.itemsize != left:
        raise InputError(f"{name} says that its shape is {shape}, but has {left} bytes")
    flat = np.frombuffer(content, dtype=dtype, offset=file.tell())
    return flat.reshape(shape).copy()
