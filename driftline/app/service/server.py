"""A running service: a folder, its log, its writer, and an address."""

from __future__ import annotations

import asyncio
import gc
import hashlib
import os
import secrets
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import apsw
import msgspec
import uvicorn
import uvloop

from driftline.app.runs.lock import Lock
from driftline.app.service.access import Access
from driftline.app.service.clock import LogClock
from driftline.app.service.connections import Connection
from driftline.app.service.copies import Copies
from driftline.app.service.feed import Feed
from driftline.app.service.http import Bounds
from driftline.app.service.log import DiskFullError, LogFailedError, SqliteLog
from driftline.app.service.machine import Machine
from driftline.app.service.records import packed_json, plain_json
from driftline.app.service.routes import application
from driftline.app.service.served import Served, served_from, warm_up
from driftline.app.service.sizes import MEMORY
from driftline.app.service.snapshots import SnapshotFolder
from driftline.app.service.tokens import Tokens
from driftline.app.service.writer import Limits, Writer
from driftline.errors import InputError
from driftline.state import archive

__all__ = ["FAILED", "Running", "Server", "listen"]

#: The exit code after a failure of the disk or the log.
FAILED = 74

#: Seconds for requests to end when the service stops, and for which a thread keeps others waiting.
GRACE, SWITCH = 5, 0.0005
#: Thresholds of the garbage collector: rows and tickets are no cycles, and go without it.
COLLECTIONS = (20_000, 20, 50)

#: How many connections are served at a time; others are told to come back.
CONNECTIONS = 5000
#: How many bytes of unsent answers the system may keep for each of them.
KEPT = 1 << 17

LOG, SNAPSHOTS = "log.sqlite3", "snapshots"


def load(content: bytes, memory: int = MEMORY) -> Served:
    """Return a learner from the bytes of its file, or refuse them.

    A file without an id for the learner gives it one, which a replay of the log then has, too.
    """
    id = hashlib.sha256(content).hexdigest()[:32]
    return served_from(*archive.unpacked(content, "the model"), id, memory)


def clock_of(log: SqliteLog) -> LogClock:
    """Return the clock of a log."""
    known = plain_json(log.meta("clock") or b"[0, []]")
    write = lambda made: log.put_meta("clock", packed_json(made))  # noqa: E731
    return LogClock(log.last()[2], known=known, write=write)


class Server:
    """The service on a folder; one process at a time."""

    def __init__(self, folder: Path, limits: Limits | None = None, bounds: Bounds | None = None):
        self.folder, self.limits = folder, Limits() if limits is None else limits
        self.bounds = Bounds(model=self.limits.upload) if bounds is None else bounds
        self._lock = Lock(folder, "--data")

    def __enter__(self) -> Server:
        new = not self.folder.exists()
        self._lock.__enter__()
        if new:  # rows, and the secret of tokens, are nobody else's
            self.folder.chmod(0o700)
        try:
            self.log = SqliteLog(self.folder / LOG)
            #: What was found wrong at the start.
            self.findings = self.log.findings
            self.clock = clock_of(self.log)
            with suppress(DiskFullError):
                self.clock.settle()
            memory = self.limits.memory
            own = partial(served_from, memory=memory)
            self.snapshots = SnapshotFolder(self.folder / SNAPSHOTS, self.log, own)
            tokens = Tokens(self._secret(), self.limits.keep_seconds, self.clock.true)
            self.machine = Machine(
                self.log,
                partial(load, memory=memory),
                self.clock,
                tokens,
                self.limits.models,
                self.limits.challengers,
            )
            began = time.perf_counter()
            self.replayed = self.machine.recover(self.snapshots)
            self.findings += self.snapshots.findings
            for hosted in self.machine.models.values():
                for reader in hosted.readers.values():
                    _warm_up(reader.served)
            self.seconds = time.perf_counter() - began
            #: Up to where streams were read when it started.
            self.positions = self.log.positions()
            given = (self.machine, self.log, self.snapshots, self.clock, self.limits)
            self.feed = Feed(self.machine, self.bounds.watching)
            self.copies = Copies(self.machine, tokens, memory)
            self.writer = Writer(*given, failed=_end_process, published=self._publish)
        except (apsw.Error, UnicodeDecodeError, msgspec.DecodeError) as error:
            self._lock.__exit__()
            raise LogFailedError(f"{self.folder / LOG} cannot be read: {error}") from error
        except BaseException:
            self._lock.__exit__()
            raise
        self.writer.start()
        self.copies.start()
        return self

    def _publish(self) -> None:
        """Tell those who watch, and those who predict, that something has changed."""
        self.feed.publish()
        self.copies.publish()

    def _secret(self) -> bytes:
        """Return the secret of the tokens; it is made with the log."""
        known = self.log.meta("secret")
        if known is None:
            known = secrets.token_bytes(32)
            self.log.put_meta("secret", known)
        return bytes(known)

    def __exit__(self, *_: object) -> None:
        self.copies.stop()
        self.writer.stop()
        self._lock.__exit__()

    def application(self, access: Access) -> Any:
        """Return the application, as ASGI calls it."""
        return application(self.writer, self.copies, access, self.bounds, self.feed)


class _Quiet(uvicorn.Server):
    """Leaves signals alone: uvicorn would raise them again at its end, before the log is closed."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Do nothing."""
        yield


class Running:
    """A service that answers requests at an address, until it is stopped."""

    def __init__(self, server: Server, access: Access, host: str, port: int):
        http: Any = partial(Connection, bounds=server.bounds)
        config = uvicorn.Config(
            server.application(access),
            host=host,
            port=port,
            http=http,
            ws="none",
            lifespan="off",
            access_log=False,
            log_level="error",
            timeout_graceful_shutdown=GRACE,
            backlog=1024,
            limit_concurrency=CONNECTIONS,
            server_header=False,
        )
        self._server, self._feed = _Quiet(config), server.feed
        try:
            self._socket = config.bind_socket()
        except SystemExit:  # that is how uvicorn says so
            raise InputError(f"port {port} of {host} cannot be used: is it in use?") from None
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, KEPT)
        name = f"[{host}]" if ":" in host else host
        self.address = f"http://{name}:{self._socket.getsockname()[1]}"

    def run(self) -> None:
        """Answer requests until :meth:`stop`."""
        uvloop.run(self._serve())

    async def _serve(self) -> None:
        """Answer requests; at the end, leave those who do not read their answers."""
        await self._server.serve(sockets=[self._socket])
        for connection in list(self._server.server_state.connections):
            connection.transport.abort()
        await asyncio.sleep(0)

    def wait(self, seconds: float = 30.0) -> bool:
        """Wait until requests are answered; return whether they are."""
        end = time.monotonic() + seconds
        while not self._server.started and time.monotonic() < end:
            time.sleep(0.01)
        return self._server.started

    def stop(self) -> None:
        """Answer what has come, and then end; when it is called again, end at once."""
        self._server.force_exit = self._server.should_exit
        self._server.should_exit = True
        self._feed.end()


def listen(
    running: Running, told: Callable[[str], None], companion: threading.Thread | None = None
) -> None:
    """Answer requests until the service is stopped.

    ``told`` is called with the address when they are answered; ``companion`` is started then. The
    event loop has a thread of its own: in the main thread, it would take the signals for itself.
    """
    sys.setswitchinterval(SWITCH)
    gc.collect()
    gc.freeze()  # what is there now stays: the collector need not look at it again
    gc.set_threshold(*COLLECTIONS)
    done: Future[None] = Future()

    def announce() -> None:
        if running.wait():
            told(running.address)
            if companion is not None:
                companion.start()

    def answer() -> None:
        try:
            running.run()
            done.set_result(None)
        except BaseException as error:
            done.set_exception(error)

    threading.Thread(target=announce, name="announcing", daemon=True).start()
    threading.Thread(target=answer, name="answering", daemon=True).start()
    done.result()


def _warm_up(served: Served) -> None:
    """Compile what a model needs, by a copy; what fails here will fail again with its rows."""
    try:
        about, arrays = served.to_saved()
        warm_up(served_from(about, {name: array.copy() for name, array in arrays.items()}))
    except Exception:
        traceback.print_exc()


def _end_process(error: BaseException) -> None:
    """End at once: nobody knows what is on the disk, and a restart will read it."""
    said = f"the service ends at once, and will read its log when it is started again: {error!r}"
    print(said, file=sys.stderr, flush=True)
    os._exit(FAILED)
