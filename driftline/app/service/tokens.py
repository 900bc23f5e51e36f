"""Tokens: tickets that the client keeps, so that nothing is stored until the label comes."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Mapping
from typing import Any

import msgspec

from driftline.app.service.records import packed_json, plain_json
from driftline.app.service.requests import RefusedError

__all__ = ["Tokens", "number_of"]

#: How long a signature is, in bytes.
SIGNATURE = 16
_decoder = msgspec.msgpack.Decoder(tuple[int, str, dict[int, bytes], bytes])


class Tokens:
    """Signs and reads tokens by a secret, which is kept in the log.

    >>> tokens = Tokens(b"our secret")
    >>> token = tokens.issue(7, "visit 17", {0: b"a ticket"}, {"age": 31})
    >>> tokens.read(token, 7, "visit 17")
    ({0: b'a ticket'}, {'age': 31})
    >>> tokens.read(token, 7, "visit 18")
    Traceback (most recent call last):
    ...
    driftline.app.service.requests.RefusedError: the token is not that of this model and id
    """

    def __init__(self, secret: bytes):
        self._secret = secret

    def issue(self, model: int, id: str, kept: Mapping[int, bytes], row: Any) -> str:
        """Return the tickets of a row, by learner, and the row itself, as a token."""
        # as JSON, which has whole numbers of any size
        content = msgspec.msgpack.encode((model, id, dict(kept), packed_json(row)))
        return base64.urlsafe_b64encode(self._signature(content) + content).decode()

    def read(self, token: str, model: int, id: str) -> tuple[dict[int, bytes], Any]:
        """Return the tickets and the row of a token, if it was issued for this model and id."""
        try:
            content = base64.urlsafe_b64decode(token.encode())
        except (ValueError, UnicodeEncodeError):
            raise RefusedError(422, "the token is no token of this service") from None
        signature, content = content[:SIGNATURE], content[SIGNATURE:]
        if not hmac.compare_digest(signature, self._signature(content)):
            raise RefusedError(422, "the token is no token of this service")
        number, name, kept, row = _decoder.decode(content)
        if (number, name) != (model, id):
            raise RefusedError(422, "the token is not that of this model and id")
        return kept, plain_json(row)

    def _signature(self, content: bytes) -> bytes:
        return hmac.digest(self._secret, content, "sha256")[:SIGNATURE]


def number_of(model: int, id: str) -> int:
    """Return the number of a row, by which a random prediction is drawn.

    >>> number_of(1, "a") == number_of(1, "a"), number_of(1, "a") == number_of(2, "a")
    (True, False)
    """
    made = hashlib.blake2b(f"{model} {id}".encode(), digest_size=8).digest()
    return int.from_bytes(made, "big") >> 2  # below 2**62
