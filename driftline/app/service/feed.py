"""What has changed, for those who watch: at most some times a second, whatever comes in."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

from driftline.app.service.machine import Machine
from driftline.app.service.records import packed_json
from driftline.app.service.requests import RefusedError
from driftline.app.service.views import latest_of

__all__ = ["Feed"]

#: Seconds between two events at least, and after which a silent line is kept open by a comment.
PAUSE, SILENCE = 0.5, 15.0


class Feed:
    """The latest numbers of all models, as server-sent events.

    An event has the number of the last record as its id. Whoever comes back with an id that is not
    the current one has missed something, and gets the latest numbers at once: these are all that an
    event says, so that none needs to be kept.

    Parameters
    ----------
    machine
        What is watched.
    most
        How many may watch: each has a connection for itself, and requests need some, too.
    """

    def __init__(self, machine: Machine, most: int):
        self._machine, self._most = machine, most
        self._next, self._event = 0.0, (0, b"")
        self._watching: set[tuple[Any, asyncio.Event]] = set()
        self._ended = False

    def publish(self, now: bool = False) -> None:
        """Make an event if there was none for a while; called by the writer after every group."""
        moment = time.monotonic()
        if not self._watching or (moment < self._next and not now):
            return
        self._next = moment + PAUSE
        self._make()
        self._wake()

    def end(self) -> None:
        """Let those who watch go, so that nobody waits for them when the service stops."""
        self._ended = True
        self._wake()

    def _wake(self) -> None:
        for loop, event in list(self._watching):
            try:
                loop.call_soon_threadsafe(event.set)
            except RuntimeError:  # the loop has ended
                self._watching.discard((loop, event))

    def _make(self) -> None:
        machine = self._machine
        body = {"seq": machine.seq, "at": machine.at}
        models = [latest_of(own) for own in list(machine.models.values())]
        self._event = machine.seq, packed_json(body | {"models": models})

    async def watch(self, known: int) -> AsyncIterator[bytes]:
        """Return events as they are sent, if not too many watch already.

        ``known`` is the last event that was seen.
        """
        events = self._events(known)
        first = await anext(events)  # by now it is among those who watch, or refused

        async def all_of_them() -> AsyncIterator[bytes]:
            yield first
            async for own in events:
                yield own

        return all_of_them()

    async def _events(self, known: int) -> AsyncIterator[bytes]:
        if len(self._watching) >= self._most:
            raise RefusedError(
                503, f"{len(self._watching)} streams of events are open, and no more may be"
            )
        event = asyncio.Event()
        mine = asyncio.get_running_loop(), event
        self._watching.add(mine)
        try:
            yield b"retry: 1000\n\n"
            while not self._ended:
                try:
                    await asyncio.wait_for(event.wait(), SILENCE)
                except TimeoutError:
                    yield b": still here\n\n"
                    continue
                event.clear()
                seq, body = self._event
                if seq != known:
                    known = seq
                    yield b"id: %d\ndata: %s\n\n" % (seq, body)
        finally:
            self._watching.discard(mine)
