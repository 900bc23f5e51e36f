"""Keys: whose learner a row is for. Texts, whole numbers, bytes, and tuples of these.

These are what a file can hold, and what is the same in every process; a float may be no number,
which equals nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from driftline.errors import InputError
from driftline.typing import Json

__all__ = ["Key", "check_key", "from_plain", "keys_of", "seed_from", "to_plain"]

Key: TypeAlias = Any  # str | int | bytes | tuple of keys, which mypy cannot say

#: Whole numbers of this size and below have a compiled table.
SMALLEST, LARGEST = -(2**63), 2**63 - 1
#: Seeds are below this.
SEEDS = 2**63


def check_key(key: Any) -> Key:
    """Return a key as it is known, or refuse it.

    >>> check_key(np.int64(7)), check_key("shop 7"), check_key(("shop", 7))
    (7, 'shop 7', ('shop', 7))
    """
    if isinstance(key, np.generic):
        key = key.item()
    if type(key) in (str, int, bytes):
        return key
    if isinstance(key, tuple):
        return tuple(check_key(part) for part in key)
    if isinstance(key, (str, bytes)):  # such as NumPy's own
        return str(key) if isinstance(key, str) else bytes(key)
    raise InputError(
        f"a key is a text, a whole number, bytes, or a tuple of these; not {key!r:.80}"
    )


def keys_of(given: Any) -> np.ndarray | list[Key]:
    """Return the keys of many rows: whole numbers as an array, others as a list.

    >>> keys_of([3, 5, 3])
    array([3, 5, 3])
    >>> keys_of(np.array(["a", "b"]))
    ['a', 'b']
    """
    if isinstance(given, (str, bytes)) or not hasattr(given, "__len__"):
        raise InputError(f"expected a key for every row, as a list or an array, not {given!r:.80}")
    kind = getattr(given, "dtype", None)
    if getattr(kind, "kind", "") in ("i", "u"):
        made = np.asarray(given)
        if made.ndim != 1:
            raise InputError(f"expected a key for every row, but keys have {made.ndim} dimensions")
        if made.dtype != np.uint64 or not made.size or int(made.max()) <= LARGEST:
            return np.ascontiguousarray(made, dtype=np.int64)
    listed = given.tolist() if hasattr(given, "tolist") else list(given)
    kinds = set(map(type, listed))
    if kinds == {int} and SMALLEST <= min(listed) and max(listed) <= LARGEST:
        return np.array(listed, dtype=np.int64)
    return listed if kinds <= {str} else [check_key(key) for key in listed]


def seed_from(base: int, key: Key) -> int:
    """Return the seed of a key's learner, a function of a number and the key."""
    content = hashlib.blake2b(f"{base}:".encode() + _bytes(key), digest_size=8)
    return int.from_bytes(content.digest(), "big") % SEEDS


def _bytes(key: Key) -> bytes:
    """Return bytes that no other key has."""
    if isinstance(key, tuple):
        parts = [_bytes(part) for part in key]
        return b"t" + b"".join(str(len(part)).encode() + b":" + part for part in parts)
    if isinstance(key, bytes):
        return b"b" + key
    if isinstance(key, str):
        return b"s" + key.encode("utf-8", "surrogatepass")
    return b"i" + str(key).encode()


def to_plain(keys: Sequence[Key]) -> list[Any]:
    """Return keys as JSON has them.

    >>> from_plain(to_plain(["a", 7, b"c", ("d", 8)]))
    ['a', 7, b'c', ('d', 8)]
    """
    return [_plain(key) for key in keys]


def _plain(key: Key) -> Any:
    if isinstance(key, tuple):
        return {"tuple": to_plain(key)}
    return {"bytes": key.hex()} if isinstance(key, bytes) else key


def from_plain(saved: Any) -> list[Key]:
    """Return keys from what :func:`to_plain` returned, or refuse it."""
    if not isinstance(saved, list):
        raise InputError(f"expected a list of keys, not {saved!r:.80}")
    return [_from_plain(own) for own in saved]


def _from_plain(own: str | int | Json) -> Key:
    if isinstance(own, dict) and own.keys() == {"tuple"}:
        return tuple(from_plain(own["tuple"]))
    if isinstance(own, dict) and own.keys() == {"bytes"} and isinstance(own["bytes"], str):
        try:
            return bytes.fromhex(own["bytes"])
        except ValueError as error:
            raise InputError(f"a key of bytes cannot be read: {error}") from error
    if type(own) not in (str, int):
        raise InputError(f"a key is a text, a whole number, bytes, or a tuple; not {own!r:.80}")
    return own
