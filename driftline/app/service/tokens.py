"""Tokens: tickets that the client keeps, so that nothing is stored until the label comes."""

from __future__ import annotations

import base64
import hashlib
import hmac
import math
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from driftline.app.service.records import packed_json, plain_json
from driftline.app.service.requests import RefusedError

__all__ = ["Tokens", "number_of"]

#: How long a signature is, in bytes.
SIGNATURE = 16


class Content(msgspec.Struct, array_like=True):
    """What is signed. The row is JSON, which has whole numbers of any size."""

    model: int
    id: str
    kept: dict[int, bytes]
    row: bytes
    #: When it was issued, in milliseconds.
    at: int


_decoder = msgspec.msgpack.Decoder(Content)


class Tokens:
    """Signs and reads tokens by a secret, which is kept in the log.

    A told id is remembered for twice as long as records are kept. A token is good for once as long,
    so that none whose id may have been forgotten is learned from again. It may also seem to come
    from the future, if the clock was set back, but by no more than that: so if it is told at time
    T, it was issued before T + k; its id is forgotten after T + 2 k, when the token is too old.

    Parameters
    ----------
    secret
        What tokens are signed by.
    keep_seconds
        For how long a token is good.
    true
        Returns the time of a token as it should have been: see ``LogClock``.

    Examples
    --------
    >>> tokens = Tokens(b"our secret", keep_seconds=60.0)
    >>> token = tokens.issue(7, "visit 17", {0: b"a ticket"}, {"age": 31}, at=1_000)
    >>> tokens.read(token, 7, "visit 17", at=61_000)
    ({0: b'a ticket'}, {'age': 31})
    >>> tokens.read(token, 7, "visit 18", at=61_000)
    Traceback (most recent call last):
    ...
    driftline.app.service.requests.RefusedError: the token is not that of this model and id
    >>> tokens.read(token, 7, "visit 17", at=61_001)
    Traceback (most recent call last):
    ...
    driftline.app.service.requests.RefusedError: the token is too old: its label came too late
    """

    def __init__(
        self,
        secret: bytes,
        keep_seconds: float = math.inf,
        true: Callable[[int], int] = lambda moment: moment,
    ):
        self._secret, self._keep, self._true = secret, 1000.0 * keep_seconds, true

    def issue(self, model: int, id: str, kept: Mapping[int, bytes], row: Any, at: int) -> str:
        """Return the tickets of a row, by learner, and the row itself, as a token."""
        content = msgspec.msgpack.encode(Content(model, id, dict(kept), packed_json(row), at))
        return base64.urlsafe_b64encode(self._signature(content) + content).decode()

    def read(
        self, token: str, model: int, id: str, at: int, forgotten: int = 0
    ) -> tuple[dict[int, bytes], Any]:
        """Return the tickets and the row of a token, if it was issued for this model and id.

        It is refused if it is too old at a time, or from before one up to which ids were forgotten.
        """
        try:
            content = base64.urlsafe_b64decode(token.encode())
        except (ValueError, UnicodeEncodeError):
            raise RefusedError(422, "the token is no token of this service") from None
        signature, content = content[:SIGNATURE], content[SIGNATURE:]
        if not hmac.compare_digest(signature, self._signature(content)):
            raise RefusedError(422, "the token is no token of this service")
        try:
            made = _decoder.decode(content)
        except msgspec.MsgspecError:  # it is ours, but of another version
            raise RefusedError(422, "the token is of a version that is not known") from None
        if (made.model, made.id) != (model, id):
            raise RefusedError(422, "the token is not that of this model and id")
        if made.at < forgotten or not abs(at - self._true(made.at)) <= self._keep:
            raise RefusedError(410, "the token is too old: its label came too late")
        return made.kept, plain_json(made.row)

    def _signature(self, content: bytes) -> bytes:
        return hmac.digest(self._secret, content, "sha256")[:SIGNATURE]


def number_of(model: int, id: str) -> int:
    """Return the number of a row, by which a random prediction is drawn.

    >>> number_of(1, "a") == number_of(1, "a"), number_of(1, "a") == number_of(2, "a")
    (True, False)
    """
    made = hashlib.blake2b(f"{model} {id}".encode(), digest_size=8).digest()
    return int.from_bytes(made, "big") >> 2  # below 2**62
