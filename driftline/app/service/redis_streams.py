"""Streams of Redis, also those that were deleted and made anew."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

from driftline.app.service.sources import MOST, WAIT, Message, text_of

__all__ = ["RedisSource"]

START = "0-0"


class Position(NamedTuple):
    """Up to where a stream was read.

    ``generation`` is how often the stream was made anew, ``first`` the message of this generation
    that was read first, and ``server`` the run of the server that it was read from.
    """

    generation: int
    last: str
    first: str
    server: str

    @staticmethod
    def of(text: str) -> Position:
        """Return the position that a text says, which is empty before the first message."""
        if not text:
            return Position(0, START, "", "")
        generation, last, first, server = text.split("/")
        return Position(int(generation), last, first, server)

    def message(self, id: str, content: dict[str, Any]) -> Message:
        """Return a message of this generation; no other generation has its id."""
        own = f"{self.generation}/{id}" if self.generation else id
        place = f"{self.generation}/{id}/{self.first or id}/{self.server}"
        return Message(own, content, place)


class RedisSource:
    """A stream of Redis: ``redis://host:port/0?stream=name``."""

    def __init__(self, url: str, stream: str):
        import redis

        self.name = f"redis {stream}"
        self._stream, self._refused = stream, redis.ResponseError
        self._redis = redis.Redis.from_url(url, socket_timeout=10.0 * WAIT)
        self._said = ""

    def read(self, position: str) -> Sequence[Message]:
        """Return the next messages; of a stream that was made anew, its first ones."""
        known, server = Position.of(position), self._server()
        entries = self._entries(known.last, int(1000 * WAIT))
        if not entries and self._is_behind(known):
            if self._is_new(known, server):
                self._say("was deleted and made anew: it is read from its start")
                known = Position(known.generation + 1, START, "", server)
                entries = self._entries(START, None)
            else:
                self._say(f"has lost its last messages: it is read on from {known.last}")
        elif entries:
            self._said = ""
        first = known.first or (entries[0][0] if entries else "")
        known = known._replace(first=first, server=server)
        return [known.message(id, content) for id, content in entries]

    def _server(self) -> str:
        """Return which run of the server answers; another one may have lost messages."""
        try:
            about: Any = self._redis.info("server")
        except self._refused:
            return ""
        return str(about.get("run_id", ""))

    def _entries(self, after: str, block: int | None) -> list[tuple[str, dict[str, Any]]]:
        streams: Any = {self._stream: after}
        found: Any = self._redis.xread(streams, count=MOST, block=block)
        if isinstance(found, dict):  # newer protocols
            found = [(name, own) for name, several in found.items() for own in several]
        return [
            (text_of(number), {text_of(key): text_of(own) for key, own in (fields or {}).items()})
            for _, entries in found or ()
            for number, fields in entries
        ]

    def _is_behind(self, known: Position) -> bool:
        """Say whether the stream ends before the position, and has messages."""
        try:
            about: Any = self._redis.xinfo_stream(self._stream)
        except self._refused:  # deleted, and not made anew yet
            return False
        return about["length"] > 0 and _order(about["last-generated-id"]) < _order(known.last)

    def _is_new(self, known: Position, server: str) -> bool:
        """Say whether the stream is another one, and has not only lost its last messages.

        A server that dies may lose these, but not one that goes on. After a restart, the message
        that was read first is missing from another stream; it may have been trimmed, too, but then
        no message before it is left.
        """
        if server and server == known.server:
            return True
        if not known.first or self._redis.xrange(self._stream, known.first, known.first):
            return False
        about: Any = self._redis.xinfo_stream(self._stream)
        trimmed = about.get("entries-added") != about["length"]
        earliest: Any = self._redis.xrange(self._stream, count=1)
        return not trimmed or any(_order(id) < _order(known.first) for id, _ in earliest)

    def _say(self, words: str) -> None:
        """Print what has become of the stream, once."""
        if words != self._said:
            self._said = words
            print(f"{self.name} {words}", file=sys.stderr, flush=True)

    def close(self) -> None:
        """Close the connection."""
        self._redis.close()


def _order(id: Any) -> tuple[int, int]:
    """Return what ids of messages are ordered by.

    >>> _order("10-2") < _order(b"10-11") < _order("11-0")
    True
    """
    milliseconds, _, number = text_of(id).partition("-")
    return int(milliseconds), int(number or 0)
