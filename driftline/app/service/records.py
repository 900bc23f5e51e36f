"""What the log consists of."""

from __future__ import annotations

import hashlib
from enum import IntEnum
from typing import Any, NamedTuple

import msgspec

__all__ = ["Kind", "Mark", "Record", "Stored", "digest", "packed_json", "plain_json"]


class Kind(IntEnum):
    """What a record does. Within a batch, records of a model are applied in this order.

    A record that is damaged cannot be applied, whatever it was.
    """

    DAMAGED = 0
    CREATE = 1
    ASK = 2
    TELL = 3
    LEARN = 4
    EXPIRE = 5
    CHALLENGE = 6
    PROMOTE = 7
    RETIRE = 8
    DELETE = 9


class Record(NamedTuple):
    """A request that was accepted.

    Records of one commit have the same ``batch``, and are applied together, now and in every
    replay. ``at`` is when, in milliseconds; it never runs backwards. ``id`` is the row's, empty if
    there is none. ``body`` is JSON, or the bytes of a file.
    """

    seq: int
    batch: int
    at: int
    model: int
    kind: Kind
    id: str
    body: bytes


#: How a mark calls a label that never came, or an id whose records were deleted.
EXPIRED = -1


class Mark(NamedTuple):
    """What is known of an id, which is an idempotency key: its records, and what these said.

    ``asked`` is 0 for a row that came with its label, and for one whose records were deleted.
    ``told`` is 0 while no label has come.
    """

    asked: int
    told: int
    row: bytes
    label: bytes


class Stored(NamedTuple):
    """What a learner answered to a record, and what it needs to learn from the label later.

    It follows from the log, and is stored so that a snapshot of the learner is enough to go on.
    Only the learner that answered the request has an ``answer``.
    """

    seq: int
    learner: int
    answer: bytes
    kept: bytes


_encoder = msgspec.json.Encoder()
_ordered = msgspec.json.Encoder(order="sorted")
_decoder = msgspec.json.Decoder()


def packed_json(value: Any) -> bytes:
    """Return plain data as JSON."""
    return _encoder.encode(value)


def plain_json(content: bytes) -> Any:
    """Return what :func:`packed_json` was given."""
    return _decoder.decode(content)


def digest(value: Any) -> bytes:
    """Return 16 bytes that equal plain data has in common, whatever the order of its keys.

    >>> digest({"a": 1, "b": "x"}) == digest({"b": "x", "a": 1})
    True
    """
    return hashlib.blake2b(_ordered.encode(value), digest_size=16).digest()
