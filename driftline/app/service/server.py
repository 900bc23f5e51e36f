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
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import apsw
import uvicorn
import uvloop

from driftline.app.runs.lock import Lock
from driftline.app.service.access import Access
from driftline.app.service.connections import Connection
from driftline.app.service.copies import Copies
from driftline.app.service.feed import Feed
from driftline.app.service.http import Bounds
from driftline.app.service.log import LogFailedError, SqliteLog
from driftline.app.service.machine import Machine
from driftline.app.service.routes import application
from driftline.app.service.served import Served, served_from, warm_up
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


def load(content: bytes) -> Served:
    """Return a learner from the bytes of its file, or refuse them.

    A file without an id for the learner gives it one, which a replay of the log then has, too.
    """
    id = hashlib.sha256(content).hexdigest()[:32]
    return served_from(*archive.unpacked(content, "the model"), id)


def milliseconds() -> int:
    """Return the time of day."""
    return time.time_ns() // 1_000_000


class Server:
    """The service on a folder; one process at a time."""

    def __init__(self, folder: Path, limits: Limits | None = None, bounds: Bounds | None = None):
        self.folder, self.limits = folder, Limits() if limits is None else limits
        self.bounds = Bounds() if bounds is None else bounds
        self._lock = Lock(folder, "--data")

    def __enter__(self) -> Server:
        new = not self.folder.exists()
        self._lock.__enter__()
        if new:  # rows, and the secret of tokens, are nobody else's
            self.folder.chmod(0o700)
        try:
            self.log = SqliteLog(self.folder / LOG)
            self.snapshots = SnapshotFolder(self.folder / SNAPSHOTS, self.log, served_from)
            tokens = Tokens(self._secret(), self.limits.keep_seconds)
            self.machine = Machine(
                self.log, load, milliseconds, tokens, self.limits.models, self.limits.challengers
            )
            began = time.perf_counter()
            self.replayed = self.machine.recover(self.snapshots)
            for hosted in self.machine.models.values():
                for reader in hosted.readers.values():
                    about, arrays = reader.served.to_saved()
                    copied = {name: array.copy() for name, array in arrays.items()}
                    warm_up(served_from(about, copied))
            self.seconds = time.perf_counter() - began
            #: Up to where streams were read when it started.
            self.positions = self.log.positions()
            given = (self.machine, self.log, self.snapshots, self.limits)
            self.feed = Feed(self.machine, self.bounds.watching)
            self.copies = Copies(self.machine, tokens)
            self.writer = Writer(*given, failed=_end_process, published=self._publish)
        except apsw.Error as error:
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


def _end_process(error: BaseException) -> None:
    """End at once: nobody knows what is on the disk, and a restart will read it."""
    said = f"the service ends at once, and will read its log when it is started again: {error!r}"
    print(said, file=sys.stderr, flush=True)
    os._exit(FAILED)
