"""The addresses that are asked for thousands of times a second: predict, labels and learn.

They go past the router, whose work would be a good part of all; other addresses are in ``routes``.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any
from urllib.parse import parse_qsl

from driftline.app.service.access import Access
from driftline.app.service.bodies import LabelBody, LearnBody, PredictBody, decoded
from driftline.app.service.budget import Bodies, Budget
from driftline.app.service.copies import Copies
from driftline.app.service.metrics import Metrics
from driftline.app.service.records import packed_json
from driftline.app.service.requests import Ask, Learn, Outcome, RefusedError, Tell
from driftline.app.service.served import Feedback
from driftline.app.service.writer import Writer
from driftline.errors import InputError
from driftline.typing import Json

__all__ = [
    "Bounds",
    "Fast",
    "answer_of",
    "error_of",
    "headers_for",
    "looked",
    "parts_of",
    "read_body",
]

Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]


#: How many seconds a body may pause.
SLOWEST = 30.0
#: How often a copy is asked for that is deleted, since it was not used for long, just then.
COPIES = 3


class Bounds:
    """The most that a request may have, and all connections together."""

    def __init__(
        self,
        body: int = 8 << 20,
        rows: int = 10_000,
        model: int = 256 << 20,
        watching: int = 500,
        idle: float = 75.0,
        memory: int = 128 << 20,
    ):
        self.body, self.rows, self.model = body, rows, model
        #: The most streams of events: each has a connection for itself.
        self.watching = watching
        #: Seconds after which a connection is closed on which nothing goes on.
        self.idle = idle
        #: The bytes that connections hold, and those of bodies that are being read: each so many.
        self.budget, self.bodies = Budget(memory), Bodies(memory)


async def parts_of(receive: Receive) -> AsyncIterator[bytes]:
    """Yield the parts of a body as they come; refuse it if it pauses for too long."""
    more = True
    while more:
        message = await _awaited(receive)
        yield _part(message)
        more = message.get("more_body", False)


async def _awaited(receive: Receive) -> Any:
    try:
        async with asyncio.timeout(SLOWEST):
            return await receive()
    except TimeoutError:
        said = f"the body did not go on for {SLOWEST:g} seconds"
        raise RefusedError(408, said) from None


def _part(message: Any) -> bytes:
    if message["type"] == "http.disconnect":
        raise ConnectionResetError
    made: bytes = message.get("body", b"")
    return made


async def read_body(receive: Receive, most: int, length: bytes | None, bodies: Bodies) -> bytes:
    """Return the body of a request; refuse it as soon as it is too long, whatever was announced."""
    if length is not None and length.isdigit() and int(length) > most:
        raise RefusedError(413, f"a body may have {most} bytes, but this one has {int(length)}")
    parts, size = [], 0
    message = await receive()  # most have one part: the server's timer costs them nothing
    try:
        while True:
            part = _part(message)
            if size + len(part) > most:
                raise RefusedError(413, f"a body may have {most} bytes, but this one has more")
            parts.append(part)
            if not message.get("more_body", False):
                return parts[0] if len(parts) == 1 else b"".join(parts)
            bodies.add(size, len(part))
            size += len(part)
            message = await _awaited(receive)
    finally:
        bodies.release(size)


def answer_of(outcome: Outcome, single: bool) -> tuple[int, bytes]:
    """Return status and body: of a single row its own, of a list all of them with 200."""
    if outcome.items is None:
        return outcome.status, packed_json(outcome.body)
    if single:
        item = dict(outcome.items[0])
        return item.pop("status"), packed_json(item)
    return outcome.status, packed_json(list(outcome.items))


def error_of(error: BaseException) -> tuple[int, bytes]:
    """Return status and body for what was refused."""
    if isinstance(error, RefusedError):
        return error.status, packed_json({"error": str(error)})
    if isinstance(error, InputError):
        return 422, packed_json({"error": str(error)})
    raise error


async def looked(
    writer: Writer, copies: Copies, model: str, rows: Sequence[Any], ids: Sequence[str] | None
) -> list[Json]:
    """Return answers by a copy of a model; the first copy is made by the writer."""
    for _ in range(COPIES):
        hosted = writer.machine.hosted(model)  # refused if there is none
        if not copies.has(model, hosted.number):
            await writer.call(copies.publish)
        try:
            return await copies.predict(model, rows, ids)
        except RefusedError as error:
            if error.status != 404:
                raise
    raise RefusedError(503, f"there is no copy of {model!r:.80}: try again in a second")


class Fast:
    """The addresses that are asked for most: predict, labels and learn of a model."""

    def __init__(
        self,
        writer: Writer,
        copies: Copies,
        access: Access,
        bounds: Bounds,
        metrics: Metrics,
        rest: Any,
    ):
        self._writer, self._access, self._bounds, self._rest = writer, access, bounds, rest
        self._copies, self._metrics = copies, metrics
        self._kinds: dict[str, tuple[str, Any, Callable[[str, Any], Any]]] = {
            "predict": ("predict", PredictBody, self._ask),
            "labels": ("label", LabelBody, self._tell),
            "learn": ("label", LearnBody, self._learn),
        }

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        """Answer a request, or pass it on."""
        if scope["type"] == "http":
            try:
                self._access.check_headers(scope["headers"])
            except RefusedError as error:
                await send_json(send, *error_of(error))
                return
        if scope["type"] == "http" and scope["method"] == "POST":
            parts = scope["path"].split("/")
            if len(parts) == 4 and parts[1] == "models" and parts[3] in self._kinds:
                began = time.perf_counter()
                try:
                    status, body = await self._answer(parts[2], parts[3], scope, receive)
                except ConnectionResetError:
                    return
                await send_json(send, status, body)
                self._metrics.note(parts[3], status, began)
                return
        await self._rest(scope, receive, send)

    async def _answer(
        self, model: str, what: str, scope: Any, receive: Receive
    ) -> tuple[int, bytes]:
        headers = dict(scope["headers"])
        right, kind, request_of = self._kinds[what]
        try:
            self._access.check(headers.get(b"authorization", b"").decode("latin-1"), right)
            by_token = what == "predict" and _by_token(scope["query_string"])
            if not by_token:
                self._writer.check_crowded()
            length = headers.get(b"content-length")
            content = await read_body(receive, self._bounds.body, length, self._bounds.bodies)
            bodies, single = decoded(content, kind, self._bounds.rows)
            if not bodies:
                return 200, b"[]"
            request = request_of(model, bodies)
            if by_token:
                outcome = await self._with_tokens(request)
            else:
                outcome = await self._carried_out(request)
        except (RefusedError, InputError) as error:
            return error_of(error)
        return answer_of(outcome, single)

    async def _carried_out(self, request: Any) -> Outcome:
        """Hand a request to the writer; rows that it cannot keep are answered with tokens."""
        try:
            return await self._writer.submit(request, len(request.ids))
        except RefusedError as error:
            if error.status != 507 or not isinstance(request, Ask):
                raise
        return await self._with_tokens(request)

    async def _with_tokens(self, request: Ask) -> Outcome:
        """Predict rows by a copy, and keep nothing of them: tokens have all that labels need."""
        made = await looked(self._writer, self._copies, request.model, request.rows, request.ids)
        pairs = zip(request.ids, made, strict=True)
        return Outcome(200, {}, [{"id": id, "status": 200, **own} for id, own in pairs])

    @staticmethod
    def _ask(model: str, bodies: Any) -> Ask:
        ids = [secrets.token_urlsafe(12) if body.id is None else body.id for body in bodies]
        return Ask(model, ids, [body.row for body in bodies])

    @staticmethod
    def _tell(model: str, bodies: Any) -> Tell:
        for body in bodies:
            if (body.label is None) == (body.loss is None):
                raise RefusedError(422, f"id {body.id!r:.80}: expected a label, or a loss")
        tokens = [b.token for b in bodies]
        feedback = [Feedback(b.label, b.loss) for b in bodies]
        return Tell(model, [b.id for b in bodies], feedback, tokens if any(tokens) else ())

    @staticmethod
    def _learn(model: str, bodies: Any) -> Learn:
        ids = [body.id or "" for body in bodies]
        return Learn(model, ids, [b.row for b in bodies], [Feedback(b.label) for b in bodies])


def _by_token(query: bytes) -> bool:
    """Say whether a prediction is to be answered with a token; refuse what nobody knows."""
    if not query:
        return False
    modes = [value for name, value in parse_qsl(query.decode("latin-1")) if name == "mode"]
    if any(mode not in ("token", "ticket") for mode in modes):
        raise RefusedError(422, f"a mode is token or ticket, not {modes[0]!r:.40}")
    return "token" in modes


def headers_for(status: int) -> dict[str, str]:
    """Return the headers that a status needs: when to come back, or that a body has no end."""
    if status in (429, 503, 507):
        return {"retry-after": "1"}
    return {"connection": "close"} if status == 408 else {}


async def send_json(send: Send, status: int, body: bytes) -> None:
    """Send an answer."""
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    headers += [(name.encode(), value.encode()) for name, value in headers_for(status).items()]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
