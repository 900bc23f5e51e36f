"""Short messages of plain data, such as tickets: one JSON text and named arrays, as bytes.

A message is made in microseconds, where a file (:mod:`driftline.state.archive`) takes a hundred.
It has, one after the other:

- four bytes, the last of which is the version of the form;
- the length of the header, four bytes, and the header: a JSON text with the plain data, and the
  name, type and shape of every array;
- the numbers of all arrays, little-endian;
- a digest of all bytes before it.

Nothing in a message is ever executed, and nothing is read before its size is checked. The digest
detects damage; it is no signature, so that all else is checked as well.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from driftline.errors import InputError
from driftline.state import archive
from driftline.typing import Json, Saved

__all__ = ["packed", "unpacked"]

#: What a message begins with: a name, and the version of the form. Others are refused.
NAME, VERSION = b"DLM", 1
HEAD = NAME + bytes([VERSION])

#: How many bytes give the length of the header, how long the digest is, and how many arrays and
#: dimensions there are at most.
LENGTH, DIGEST, MOST_ARRAYS, MOST_DIMENSIONS = 4, 16, 64, 8

#: The types of arrays, by their names in the header.
TYPES = {name: np.dtype(name) for name in ("<f8", "<f4", "<i8", "|b1")}
NATIVE = {name: kind.newbyteorder("=") for name, kind in TYPES.items()}
NAMES = {kind: name for name, kind in NATIVE.items()}

_encode = json.JSONEncoder(separators=(",", ":"), default=archive.refuse).encode
_decode = json.JSONDecoder().decode


def packed(about: Json, arrays: Mapping[str, np.ndarray]) -> bytes:
    """Return a message; equal content has equal bytes.

    >>> about, arrays = unpacked(packed({"kind": "Note"}, {"mean": np.ones((2, 3))}), "the note")
    >>> about, arrays["mean"].shape
    ({'kind': 'Note'}, (2, 3))
    """
    shapes, parts = [], []
    for name, array in arrays.items():
        kind = NAMES.get(array.dtype)
        if kind is None:
            raise InputError(f"{name} holds {array.dtype}: expected one of {', '.join(TYPES)}")
        shapes.append((name, kind, array.shape))
        parts.append(array.astype(TYPES[kind], copy=False).tobytes())
    header = _encode((about, shapes)).encode()
    content = b"".join((HEAD, len(header).to_bytes(LENGTH, "little"), header, *parts))
    return content + _digest(content)


def unpacked(content: bytes, name: str) -> Saved:
    """Return what :func:`packed` was given, or refuse the bytes; ``name`` is for messages."""
    if not isinstance(content, (bytes, bytearray, memoryview)):
        raise InputError(f"{name} is a row of bytes, not {content!r:.80}")
    try:
        return _read(bytes(content))
    except Exception as error:  # a text that is edited may make a reader raise anything
        raise InputError(f"{name} cannot be read: {error}") from error


def _digest(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=DIGEST).digest()


def _read(content: bytes) -> Saved:
    start, end = len(HEAD) + LENGTH, len(content) - DIGEST
    if end < start or not content.startswith(NAME):
        raise InputError("the bytes are not those of a message of driftline")
    if content[len(NAME)] != VERSION:
        raise InputError(
            f"it has version {content[len(NAME)]}: this driftline reads version {VERSION}"
        )
    if content[end:] != _digest(content[:end]):
        raise InputError("its digest is another one: it is damaged, or was edited")
    place = start + int.from_bytes(content[len(HEAD) : start], "little")
    if place > end:
        raise InputError("its header is longer than itself")
    about, shapes = _decode(content[start:place].decode())
    if not isinstance(about, dict) or len(shapes) > MOST_ARRAYS:
        raise InputError(f"expected a dict and {MOST_ARRAYS} arrays at most")
    arrays: dict[str, np.ndarray] = {}
    for name, kind, shape in shapes:
        arrays[name], place = _array(content, place, end, name, kind, shape)
    if place != end or len(arrays) != len(shapes):
        raise InputError("its arrays are not those that its header names")
    return about, arrays


def _array(
    content: bytes, place: int, end: int, name: Any, kind: Any, shape: Any
) -> tuple[np.ndarray, int]:
    """Return an array that begins at a place, and where it ends."""
    dtype, count = TYPES[kind], 1
    for size in shape:
        if type(size) is not int or size < 0:
            raise InputError(f"an array has no shape {shape!r:.80}")
        count *= size
    after = place + count * dtype.itemsize
    if not isinstance(name, str) or len(shape) > MOST_DIMENSIONS or after > end:
        raise InputError(f"{name!r:.80} of shape {shape!r:.80} is no array of this message")
    made = np.frombuffer(content, dtype, count, place)
    if kind == "|b1" and (made.view(np.uint8) > 1).any():
        raise InputError(f"{name!r:.80} holds something else than True and False")
    return made.reshape(shape).astype(NATIVE[kind]), after
