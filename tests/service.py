"""A service for tests: on a folder, at a free port, in this process."""

from __future__ import annotations

import http.client
import json
import threading
from concurrent.futures import Future
from contextlib import contextmanager

import driftline as dl
from driftline.app.service.access import Access
from driftline.app.service.clock import LogClock
from driftline.app.service.log import SqliteLog
from driftline.app.service.machine import Machine
from driftline.app.service.served import served_from
from driftline.app.service.server import Running, Server, load
from driftline.app.service.snapshots import SnapshotFolder
from driftline.state import archive

CLIENTS: list[dl.Client] = []


@contextmanager
def serving(folder, tokens=None, limits=None, bounds=None, port=0):
    """Yield the address of a service, and the service."""
    with Server(folder, limits, bounds) as server:
        running = Running(server, Access(tokens or {}), "127.0.0.1", port)
        thread = threading.Thread(target=running.run, daemon=True)
        thread.start()
        running.wait()
        try:
            yield running.address, server
        finally:
            while CLIENTS:
                CLIENTS.pop().close()
            running.stop()
            thread.join(20.0)


def call(address, method, path, body=None, headers=None):
    """Return the status and the answer to one request, as JSON where it is JSON."""
    host = address.removeprefix("http://")
    connection = http.client.HTTPConnection(host, timeout=120.0)
    content = body if isinstance(body, (bytes, str, type(None))) else json.dumps(body)
    connection.request(method, path, content, headers or {})
    answer = connection.getresponse()
    text = answer.read()
    connection.close()
    try:
        return answer.status, json.loads(text)
    except ValueError:
        return answer.status, text


def within(server, function):
    """Return what a function says in the writer's thread, which alone may use the log."""
    future = Future()
    server.writer._later(lambda: future.set_result(function()))
    return future.result(20.0)


def client(address, **options):
    made = dl.Client(address, tries=1, seconds=120.0, **options)
    CLIENTS.append(made)
    return made


def check_replay(folder):
    """The state is a function of the log: with the snapshots and without them it is the same."""
    states = []
    for with_snapshots in (True, False):
        log = SqliteLog(folder / "log.sqlite3")
        machine = Machine(log, load, LogClock())
        own = SnapshotFolder(folder / "snapshots", log, served_from) if with_snapshots else None
        machine.recover(own)
        known = sorted(machine.models.items())
        states.append([archive.packed(*hosted.to_saved()) for _, hosted in known])
        log.close()
    assert states[0] == states[1]
