"""All addresses but the fastest, and the application as a whole."""

from __future__ import annotations

import asyncio
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, Response, StreamingResponse
from starlette.routing import Route

from driftline.app.service.access import Access
from driftline.app.service.bodies import (
    ID,
    ChallengerBody,
    ChampionBody,
    ModelBody,
    PredictBody,
    decoded,
)
from driftline.app.service.bulk import rows_of
from driftline.app.service.catch_up import CatchUp
from driftline.app.service.copies import Copies
from driftline.app.service.export import exported, write_parquet
from driftline.app.service.feed import Feed
from driftline.app.service.http import (
    Bounds,
    Fast,
    answer_of,
    error_of,
    headers_for,
    looked,
    parts_of,
    read_body,
)
from driftline.app.service.log import DiskFullError
from driftline.app.service.making import challenger_of, checked_name, model_of
from driftline.app.service.metrics import Metrics
from driftline.app.service.openapi import openapi
from driftline.app.service.records import packed_json
from driftline.app.service.requests import (
    Challenge,
    Create,
    Delete,
    Learn,
    Promote,
    RefusedError,
    Retire,
)
from driftline.app.service.served import Feedback, Served, TableServed, served_from, warm_up
from driftline.app.service.views import alarms_of, certificate_of, state_of, states_of, weights_of
from driftline.app.service.writer import Writer
from driftline.errors import InputError
from driftline.state import archive
from driftline.typing import Json

__all__ = ["application"]

PAGE = Path(__file__).parent / "page"
#: Files of the page, and what they are. They are read once, and nothing else is.
FILES = {
    "": ("index.html", "text/html; charset=utf-8"),
    "app.js": ("app.js", "text/javascript; charset=utf-8"),
    "style.css": ("style.css", "text/css; charset=utf-8"),
    "uplot.js": ("uplot.js", "text/javascript; charset=utf-8"),
    "uplot.css": ("uplot.css", "text/css; charset=utf-8"),
}
#: What the page may load: its own files, and nothing from elsewhere.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
#: How many rows of a bulk upload are one request of the writer, or rows of how many bytes.
PIECE, BYTES = 1000, 1 << 20
#: How long the text is that the ids of a bulk upload begin with; numbers of rows follow.
PREFIX = ID - 20


class Slow:
    """What the addresses do, each in a method."""

    def __init__(
        self,
        writer: Writer,
        copies: Copies,
        access: Access,
        bounds: Bounds,
        metrics: Metrics,
        feed: Feed,
    ):
        self._writer, self._copies, self._access, self._bounds = writer, copies, access, bounds
        self._metrics, self._feed = metrics, feed
        self._catching_up = asyncio.Lock()

    def routes(self) -> list[Route]:
        """Return the addresses."""
        model = "/models/{model}"
        pages = [self._page(name) for name in FILES]
        return pages + [
            self._route("/models", "GET", "read", self.models),
            self._route("/models", "POST", "admin", self.create),
            self._route(model, "GET", "read", self.model),
            self._route(model, "PUT", "admin", self.upload),
            self._route(model, "DELETE", "admin", self.delete),
            self._route(f"{model}/look", "POST", "predict", self.look),
            self._route(f"{model}/rows", "POST", "label", self.rows),
            self._route(f"{model}/challengers", "POST", "admin", self.challenge),
            self._route(f"{model}/challengers/{{learner}}", "DELETE", "admin", self.retire),
            self._route(f"{model}/champion", "PUT", "admin", self.promote),
            self._route(f"{model}/certificate", "GET", "read", self.certificate),
            self._route(f"{model}/alarms", "GET", "read", self.alarms),
            self._route(f"{model}/weights", "GET", "read", self.weights),
            self._route(f"{model}/file", "GET", "admin", self.file),
            self._route(f"{model}/log", "GET", "admin", self.log),
            self._route("/events", "GET", "read", self.events),
            self._route("/metrics", "GET", "read", self.metrics),
            self._route("/openapi.json", "GET", "", self.openapi),
            self._route("/health", "GET", "", self.health),
            self._route("/ready", "GET", "", self.ready),
        ]

    def _page(self, name: str) -> Route:
        file, kind = FILES[name]
        content = (PAGE / file).read_bytes()
        headers = {"content-security-policy": POLICY, "x-content-type-options": "nosniff"}

        async def endpoint(request: Request) -> Response:
            return Response(content, media_type=kind, headers=headers)

        return Route(f"/{name}", endpoint, methods=["GET"])

    def _route(self, path: str, method: str, right: str, call: Any) -> Route:
        async def endpoint(request: Request) -> Response:
            began = time.perf_counter()
            try:
                if right:
                    self._access.check(request.headers.get("authorization", ""), right)
                made = await call(request)
            except (RefusedError, InputError) as error:
                made = error_of(error)
            except DiskFullError as error:
                made = error_of(RefusedError(507, str(error)))
            except ConnectionResetError:  # nobody is there to read it
                made = 408, b""
            if isinstance(made, tuple):
                status, body = made
                made = Response(body, status, headers_for(status), media_type="application/json")
            self._metrics.note(path, made.status_code, began)
            return made

        return Route(path, endpoint, methods=[method], name=f"{method} {path}")

    # -- reading requests

    async def _content(self, request: Request, most: int) -> bytes:
        length = request.headers.get("content-length")
        known = None if length is None else length.encode()
        return await read_body(request.receive, most, known, self._bounds.bodies)

    async def _body(self, request: Request, kind: Any) -> Any:
        content = await self._content(request, self._bounds.body)
        bodies, single = decoded(content, kind, 1)
        if not single:
            raise RefusedError(422, "expected one object, not a list")
        return bodies[0]

    async def _carried_out(self, request: Any) -> tuple[int, bytes]:
        return answer_of(await self._writer.submit(request), single=True)

    async def _looked(self, look: Callable[[], Any]) -> tuple[int, bytes]:
        return 200, packed_json(await self._writer.call(look))

    async def _copied(self, name: str) -> tuple[Json, dict[str, np.ndarray]]:
        """Return a copy of the state of the learner that answers."""

        def copied() -> tuple[Json, dict[str, np.ndarray]]:
            about, arrays = self._writer.machine.hosted(name).served.to_saved()
            return about, {name: array.copy() for name, array in arrays.items()}

        return await self._writer.call(copied)

    # -- models

    async def models(self, request: Request) -> tuple[int, bytes]:
        """List all models."""
        machine = self._writer.machine
        return await self._looked(lambda: states_of(machine))

    async def model(self, request: Request) -> tuple[int, bytes]:
        """Tell all of a model."""
        name, machine = request.path_params["model"], self._writer.machine
        return await self._looked(lambda: state_of(machine.hosted(name)))

    async def create(self, request: Request) -> tuple[int, bytes]:
        """Make a model from what its columns hold."""
        body: ModelBody = await self._body(request, ModelBody)
        content = await _beside(partial(_made, body, self._writer.machine.load))
        return await self._carried_out(Create(checked_name(body.name), content))

    async def upload(self, request: Request) -> tuple[int, bytes]:
        """Take a model from the bytes of its file."""
        name = checked_name(request.path_params["model"])
        content = await self._content(request, self._bounds.model)
        return await self._carried_out(Create(name, content))

    async def delete(self, request: Request) -> tuple[int, bytes]:
        """Delete a model."""
        return await self._carried_out(Delete(request.path_params["model"]))

    async def challenge(self, request: Request) -> tuple[int, bytes]:
        """Add a challenger: a learner by its name, or an uploaded file by its bytes."""
        name, machine = request.path_params["model"], self._writer.machine
        if request.headers.get("content-type", "").startswith("application/octet-stream"):
            content = await self._content(request, self._bounds.model)
            learner = checked_name(request.query_params.get("name", ""))
            return await self._challenged(Challenge(name, learner, content, _after(request)))
        body: ChallengerBody = await self._body(request, ChallengerBody)

        def make() -> bytes:
            served = machine.hosted(name).served
            if not isinstance(served, TableServed):
                raise RefusedError(422, "a challenger of a bare learner is uploaded as a file")
            return challenger_of(served.model, body)

        content = await self._writer.call(make)
        learner = checked_name(body.name)
        return await self._challenged(Challenge(name, learner, content, body.after))

    async def _challenged(self, request: Challenge) -> tuple[int, bytes]:
        """Let a challenger read the log beside the writer, one at a time; then add it."""
        writer, load = self._writer, self._writer.machine.load
        async with self._catching_up:
            try:
                number, deleted = await writer.call(partial(writer.hold_trimming, request))

                def read() -> CatchUp:
                    served = load(request.content)
                    served.check_size()
                    made = CatchUp(number, request.name, served, request.after, deleted)
                    with writer.log.reader() as records:
                        made.read_ahead(records)
                    return made

                return await self._carried_out(request._replace(ahead=await _beside(read)))
            finally:
                writer.trims = True

    async def retire(self, request: Request) -> tuple[int, bytes]:
        """Remove a challenger."""
        parts = request.path_params
        return await self._carried_out(Retire(parts["model"], parts["learner"]))

    async def promote(self, request: Request) -> tuple[int, bytes]:
        """Let another learner answer."""
        body: ChampionBody = await self._body(request, ChampionBody)
        return await self._carried_out(Promote(request.path_params["model"], body.learner))

    async def look(self, request: Request) -> tuple[int, bytes]:
        """Predict rows, and keep nothing: no label can be told."""
        name = request.path_params["model"]
        content = await self._content(request, self._bounds.body)
        bodies, single = decoded(content, PredictBody, self._bounds.rows)
        rows = [body.row for body in bodies]
        made = await looked(self._writer, self._copies, name, rows, None) if rows else []
        return 200, packed_json(made[0] if single else made)

    async def rows(self, request: Request) -> tuple[int, bytes]:
        """Learn from many rows with their labels, as they come."""
        name, machine, writer = request.path_params["model"], self._writer.machine, self._writer
        served = machine.hosted(name).served
        if not isinstance(served, TableServed) or served.model.ranks:
            raise RefusedError(422, "rows by the names of columns are for models of tables")
        kind = "csv" if "csv" in request.headers.get("content-type", "") else "json"
        prefix, labels = request.query_params.get("id", ""), served.model.label
        if len(prefix) > PREFIX:
            raise RefusedError(422, f"ids begin with {PREFIX} characters at most")
        piece: list[Json] = []
        done = {"rows": 0, "learned": 0, "duplicate": 0}
        read, bodies = 0, self._bounds.bodies

        async def parts() -> AsyncIterator[bytes]:
            nonlocal read
            async for part in parts_of(request.receive):
                bodies.add(read, len(part))
                read += len(part)
                yield part

        async def learn() -> None:
            nonlocal read
            bodies.release(read)
            read = 0
            first = done["rows"]
            ids = [f"{prefix}:{first + i}" if prefix else "" for i in range(len(piece))]
            feedback = [Feedback(_label_of(row, labels)) for row in piece]
            while True:
                try:
                    outcome = await writer.submit(Learn(name, ids, piece[:], feedback), len(piece))
                    break
                except RefusedError as error:
                    if error.status != 429:
                        raise
                    await asyncio.sleep(0.05)  # whoever sends faster than we learn is held back
            if outcome.items is None:
                raise RefusedError(outcome.status, str(outcome.body.get("error")))
            bad = next((item for item in outcome.items if item["status"] != 200), None)
            done["rows"] += len(piece)
            done["duplicate"] += sum("duplicate" in item for item in outcome.items)
            done["learned"] += sum(item["status"] == 200 for item in outcome.items)
            piece.clear()
            if bad is not None:
                raise RefusedError(bad["status"], bad["error"])

        try:
            async for row in rows_of(parts(), kind):
                piece.append(row)
                if len(piece) == PIECE or read > BYTES:
                    await learn()
            if piece:
                await learn()
        except RefusedError as error:
            said = f"{error} ({done['rows']} rows before it were learned from)"
            return error.status, packed_json({"error": said, **done})
        finally:
            bodies.release(read)
        return 200, packed_json(done)

    # -- looking

    async def certificate(self, request: Request) -> tuple[int, bytes]:
        """Tell what was paid, and what bounds it."""
        name, machine = request.path_params["model"], self._writer.machine
        return await self._looked(lambda: certificate_of(machine, machine.hosted(name)))

    async def alarms(self, request: Request) -> tuple[int, bytes]:
        """Tell when losses rose."""
        name, machine = request.path_params["model"], self._writer.machine
        return await self._looked(lambda: alarms_of(machine.hosted(name)))

    async def weights(self, request: Request) -> tuple[int, bytes]:
        """Tell which columns matter most; computed beside the writer."""
        name = request.path_params["model"]
        saved = await self._copied(name)
        return 200, packed_json(await _beside(lambda: weights_of(name, served_from(*saved))))

    async def file(self, request: Request) -> Response:
        """Return the model that answers as a file, for :func:`driftline.load`."""
        saved = await self._copied(request.path_params["model"])
        content = await _beside(partial(archive.packed, *saved))
        return Response(content, media_type="application/octet-stream")

    async def log(self, request: Request) -> Response:
        """Return the log of a model, as CSV, JSON lines or Parquet."""
        hosted = self._writer.machine.hosted(request.path_params["model"])
        self._writer.log.check_shared()
        form = request.query_params.get("format", "csv")
        if form == "parquet":
            return await self._parquet(hosted.number, _after(request))
        if form not in ("csv", "json"):
            raise RefusedError(422, f"the log is given as csv, json or parquet, not {form!r:.40}")
        parts = exported(self._writer.log, hosted.number, _after(request), form)
        return StreamingResponse(parts, media_type=f"text/{form}; charset=utf-8")

    async def _parquet(self, model: int, after: int) -> Response:
        folder = tempfile.TemporaryDirectory()
        path = Path(folder.name) / "log.parquet"
        try:
            await _beside(partial(write_parquet, self._writer.log, model, after, path))
        except BaseException:
            folder.cleanup()
            raise
        done = BackgroundTask(folder.cleanup)
        return FileResponse(path, media_type="application/vnd.apache.parquet", background=done)

    async def events(self, request: Request) -> Response:
        """Send the latest numbers whenever they change."""
        known = request.headers.get("last-event-id", "")
        stream = await self._feed.watch(int(known) if _is_record(known) else 0)
        headers = {"cache-control": "no-store"}
        return StreamingResponse(stream, media_type="text/event-stream", headers=headers)

    async def metrics(self, request: Request) -> Response:
        """Tell numbers to Prometheus."""
        return Response(self._metrics.text(), media_type="text/plain; version=0.0.4")

    async def openapi(self, request: Request) -> tuple[int, bytes]:
        """Describe all addresses."""
        return 200, packed_json(openapi())

    async def health(self, request: Request) -> tuple[int, bytes]:
        """Say whether the process works."""
        alive = self._writer.is_alive()
        return 200 if alive else 503, packed_json({"alive": alive})

    async def ready(self, request: Request) -> tuple[int, bytes]:
        """Say whether labels are learned."""
        writer = self._writer
        good = writer.is_alive() and not writer.disk_full
        made = {"ready": good, "disk_full": writer.disk_full, "waiting": writer.waiting}
        return 200 if good else 503, packed_json(made)


def _made(body: ModelBody, load: Callable[[bytes], Served]) -> bytes:
    """Return the file of a new model; what it needs is compiled before it is there."""
    content = model_of(body)
    served = load(content)
    served.check_size()
    warm_up(served)
    return content


def _after(request: Request) -> int:
    given = request.query_params.get("after", "0")
    if not _is_record(given):
        raise RefusedError(422, f"after is the number of a record, not {given!r:.40}")
    return int(given)


def _is_record(text: str) -> bool:
    """Say whether a text is the number of a record."""
    return text.isascii() and text.isdigit() and len(text) <= 18


def _label_of(row: Json, names: list[str]) -> Any:
    """Take the label out of a row."""
    missing = [name for name in names if name not in row]
    if missing:
        raise RefusedError(422, f"there is no column {missing[0]!r}, which is the label")
    cells = [row.pop(name) for name in names]
    return cells[0] if len(cells) == 1 else cells


def application(writer: Writer, copies: Copies, access: Access, bounds: Bounds, feed: Feed) -> Any:
    """Return the application, as ASGI calls it."""
    metrics = Metrics(writer)

    async def refused(request: Request, error: Any) -> Response:
        said = packed_json({"error": str(error.detail)})
        return Response(said, error.status_code, media_type="application/json")

    slow = Slow(writer, copies, access, bounds, metrics, feed)
    rest = Starlette(routes=slow.routes(), exception_handlers={HTTPException: refused})
    return Fast(writer, copies, access, bounds, metrics, rest)


async def _beside(work: Callable[[], Any]) -> Any:
    """Return the result of long work in a thread that nobody waits for when the process ends."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Any] = loop.create_future()

    def finish(result: Any, error: BaseException | None) -> None:
        if future.done():  # whoever asked has gone
            return
        if error is None:
            future.set_result(result)
        else:
            future.set_exception(error)

    def run() -> None:
        try:
            end = partial(finish, work(), None)
        except Exception as error:
            end = partial(finish, None, error)
        with suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(end)

    threading.Thread(target=run, name="beside", daemon=True).start()
    return await future
