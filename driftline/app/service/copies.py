"""Copies of models (read replicas) that predict in a thread of their own, and never wait.

A copy is made anew when its model has learned, at most so often that making copies takes a
twentieth of the time; so it may be some groups behind. Models that nobody asks this way have none.
"""

from __future__ import annotations

import asyncio
import threading
import time
import traceback
from collections import deque
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

from driftline.app.service.hosted import Hosted
from driftline.app.service.machine import Machine
from driftline.app.service.requests import RefusedError
from driftline.app.service.served import served_from
from driftline.app.service.sizes import MEMORY
from driftline.app.service.tokens import Tokens, number_of
from driftline.errors import InputError
from driftline.typing import Json, Saved

__all__ = ["Copies"]

#: Seconds after which a copy that nobody uses is not made anew, and between two copies at least.
UNUSED, PAUSE = 30.0, 0.05
#: How much longer a copy is used than it took to make.
SHARE = 20.0
#: How many rows wait at most.
QUEUE = 20_000


class Waiting(NamedTuple):
    """Rows that somebody waits for; without ids, no tokens are issued."""

    model: str
    rows: Sequence[Any]
    ids: Sequence[str] | None
    future: Any
    loop: Any


class Copy:
    """The copy of a model, and when it is due to be made anew."""

    def __init__(self, hosted: Hosted, seconds: float):
        self.hosted, self.seq = hosted, hosted.seq
        self.due = time.monotonic() + max(PAUSE, SHARE * seconds)

    def is_due(self, hosted: Hosted, now: float) -> bool:
        """Say whether the copy is to be made anew: of another model, or of one that has learned."""
        if self.hosted.number != hosted.number:
            return True
        return self.seq != hosted.seq and now >= self.due


class Copies(threading.Thread):
    """A thread that predicts by copies of models."""

    def __init__(self, machine: Machine, tokens: Tokens, memory: int = MEMORY):
        super().__init__(name="copies", daemon=True)
        self._machine, self._tokens = machine, tokens
        self._load = partial(served_from, memory=memory)
        self._queue: deque[Waiting] = deque()
        self._rows, self._ready, self._ending = 0, threading.Condition(), False
        self._copies: dict[str, Copy] = {}
        self._used: dict[str, float] = {}
        #: States that the writer has handed over, by name; None for models that are gone.
        self._fresh: dict[str, Saved | None] = {}

    # -- the writer's thread

    def publish(self) -> None:
        """Hand over the states of models whose copies are due; called after every group."""
        if not self._used:
            return
        now, made = time.monotonic(), dict[str, Saved | None]()
        for name, used in list(self._used.items()):
            hosted = self._machine.models.get(self._machine.names.get(name, 0))
            copy = self._copies.get(name)
            if hosted is None or now - used > UNUSED:  # an old copy must not answer later
                made[name] = None
                self._used.pop(name, None)
            elif copy is None or copy.is_due(hosted, now):
                made[name] = _saved(hosted)
        if made:
            with self._ready:
                self._fresh.update(made)
                self._ready.notify()

    # -- any event loop

    def predict(
        self, model: str, rows: Sequence[Any], ids: Sequence[str] | None
    ) -> asyncio.Future[list[Json]]:
        """Queue rows; their answers have a token each, if there are ids."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[list[Json]] = loop.create_future()
        with self._ready:
            if self._ending:
                raise RefusedError(503, "the service is stopping")
            if self._rows + len(rows) > QUEUE and self._rows:
                raise RefusedError(429, f"{self._rows} rows wait already: try again in a second")
            self._used[model] = time.monotonic()
            self._queue.append(Waiting(model, rows, ids, future, loop))
            self._rows += len(rows)
            self._ready.notify()
        return future

    def has(self, model: str, number: int) -> bool:
        """Say whether there is a copy of a model; if not, the writer must publish one first."""
        self._used[model] = time.monotonic()
        copy = self._copies.get(model)
        return copy is not None and copy.hosted.number == number

    # -- its own thread

    def stop(self) -> None:
        """Answer what waits, and end."""
        with self._ready:
            self._ending = True
            self._ready.notify()
        self.join(10.0)

    def run(self) -> None:
        """Predict until the end."""
        while True:
            with self._ready:
                if not self._queue and not self._fresh and not self._ending:
                    self._ready.wait(0.5)
                if self._ending and not self._queue:
                    return
                fresh, self._fresh = self._fresh, {}
                taken = list(self._queue)
                self._queue.clear()
                self._rows = 0
            for name, saved in fresh.items():
                self._copy(name, saved)
            by_model: dict[str, list[Waiting]] = {}
            for own in taken:
                by_model.setdefault(own.model, []).append(own)
            for name, several in by_model.items():
                self._answer(name, several)

    def _copy(self, name: str, saved: Saved | None) -> None:
        if saved is None:
            self._copies.pop(name, None)
            return
        began = time.perf_counter()
        try:
            hosted = Hosted.from_saved(*saved, self._load)
        except Exception:  # whoever asks for this model is refused, and not kept waiting
            traceback.print_exc()
            self._copies.pop(name, None)
            return
        self._copies[name] = Copy(hosted, time.perf_counter() - began)

    def _answer(self, name: str, several: Sequence[Waiting]) -> None:
        """Predict all rows of a model together; if that is refused, request by request."""
        copy = self._copies.get(name)
        if copy is None:
            error = RefusedError(404, f"there is no copy of {name!r:.80}")
            made: list[Any] = [error] * len(several)
        else:
            try:
                made = self._predicted(copy.hosted, several)
            except Exception:
                made = [_tried(self._predicted, copy.hosted, [own]) for own in several]
        for own, result in zip(several, made, strict=True):
            _send(own, result)

    def _predicted(self, hosted: Hosted, several: Sequence[Waiting]) -> list[Any]:
        rows = [row for own in several for row in own.rows]
        read = hosted.served.check_rows(rows)
        if any(own.ids is not None for own in several):
            hosted.served.check_tickets(len(rows))
            ids = [id for own in several for id in own.ids or [""] * len(own.rows)]
            items = self._with_tokens(hosted, rows, read, ids)
        else:
            items = hosted.served.look(read)
        made, place = [], 0
        for own in several:
            made.append(items[place : place + len(own.rows)])
            place += len(own.rows)
        return made

    def _with_tokens(
        self, hosted: Hosted, rows: Sequence[Any], read: Sequence[Any], ids: Sequence[str]
    ) -> list[Json]:
        """Return answers, and a token for each row that has an id; ``read`` are checked rows."""
        numbers = [number_of(hosted.number, id) for id in ids]
        made: list[Json] = []
        kept: list[dict[int, bytes]] = [{} for _ in rows]
        for number, reader in hosted.readers.items():
            for i, own in enumerate(reader.served.ask(read, numbers)):
                kept[i][number] = reader.served.pack(own.ticket)
                if number == hosted.champion:
                    made.append(dict(own.answer))
        at = self._machine.now()
        for id, row, answer, tickets in zip(ids, rows, made, kept, strict=True):
            if id:
                answer["token"] = self._tokens.issue(hosted.number, id, tickets, row, at)
        return made


def _saved(hosted: Hosted) -> Saved | None:
    """Return the state of a model; one that has none has no copy."""
    try:
        return hosted.to_saved()
    except Exception:
        traceback.print_exc()
        return None


def _tried(call: Any, *arguments: Any) -> Any:
    try:
        return call(*arguments)[0]
    except (RefusedError, InputError) as error:
        return error
    except Exception as error:
        return RefusedError(500, f"the request cannot be read: {error!r:.200}")


def _send(own: Waiting, result: Any) -> None:
    def resolve() -> None:
        if own.future.done():
            return
        if isinstance(result, BaseException):
            own.future.set_exception(result)
        else:
            own.future.set_result(result)

    try:
        own.loop.call_soon_threadsafe(resolve)
    except RuntimeError:  # the loop has ended, and with it who asked
        return
