"""Who may do what: bearer tokens, each with a role."""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from driftline.app.service.requests import RefusedError
from driftline.errors import InputError

__all__ = ["Access", "ROLES", "is_loopback", "read_tokens"]

#: What each role may do; an admin may do everything.
ROLES: dict[str, frozenset[str]] = {
    "predict": frozenset({"predict", "read"}),
    "label": frozenset({"label", "read"}),
    "admin": frozenset({"predict", "label", "read", "admin"}),
}
SHORTEST = 16


class Access:
    """Tokens and their roles; without any token, everybody may do everything.

    >>> access = Access({"a-long-secret-of-ours": "predict"})
    >>> access.check("Bearer a-long-secret-of-ours", "predict")
    >>> access.check("Bearer a-long-secret-of-ours", "admin")
    Traceback (most recent call last):
    ...
    driftline.app.service.requests.RefusedError: a token of the role 'predict' may not do this
    """

    def __init__(self, tokens: Mapping[str, str]):
        self.replace(tokens)

    def replace(self, tokens: Mapping[str, str]) -> None:
        """Use other tokens from now on; may be called by any thread."""
        self._tokens = [(token.encode(), role) for token, role in tokens.items()]

    def check_headers(self, headers: Sequence[tuple[bytes, bytes]]) -> None:
        """Refuse two Host headers, and without tokens what a page from elsewhere has sent.

        A proxy may believe the other one of two names. A page from elsewhere can make a browser
        post to this machine, and a name of its own can be made to lead here; a browser then says
        where the page is from, or by which name it asks.
        """
        if sum(name == b"host" for name, _ in headers) > 1:
            raise RefusedError(400, "a request has one Host header")
        if self._tokens:
            return
        given = dict(headers)
        host, origin = given.get(b"host", b""), given.get(b"origin")
        if origin is not None and origin != b"http://" + host:
            raise RefusedError(403, "a page from elsewhere may not use a service without tokens")
        if host and not is_loopback(_name_of(host)):
            raise RefusedError(
                403, "without tokens, a service is asked for by localhost or its address only"
            )

    def check(self, header: str, what: str) -> None:
        """Refuse a request whose token does not allow it; every comparison takes as long."""
        if not self._tokens:
            return
        given = header.removeprefix("Bearer ").strip().encode()
        found = ""
        for token, role in self._tokens:
            if hmac.compare_digest(token, given):
                found = role
        if not found:
            raise RefusedError(401, "a bearer token of this service is needed")
        if what not in ROLES[found]:
            raise RefusedError(403, f"a token of the role {found!r} may not do this")


def read_tokens(path: Path) -> dict[str, str]:
    """Return the tokens of a file: a role and a token on every line."""
    made: dict[str, str] = {}
    for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        if len(words) != 2 or words[0] not in ROLES:
            raise InputError(
                f"{path}, line {number}: expected a role ({', '.join(ROLES)}) and a token"
            )
        if not words[1].isascii():
            raise InputError(f"{path}, line {number}: a token has letters of ASCII only")
        if len(words[1]) < SHORTEST:
            raise InputError(f"{path}, line {number}: a token has {SHORTEST} characters or more")
        made[words[1]] = words[0]
    if not made:
        raise InputError(f"{path} has no token")
    return made


def _name_of(host: bytes) -> str:
    """Return the name in a Host header, without its port."""
    try:
        return urlsplit(b"//" + host).hostname.decode("latin-1")  # type: ignore[union-attr]
    except (ValueError, AttributeError):
        return ""


def is_loopback(host: str) -> bool:
    """Say whether only this machine can reach an address.

    >>> is_loopback("127.0.0.1"), is_loopback("::1"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
