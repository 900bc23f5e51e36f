"""How fast ``driftline serve`` answers: predictions and labels at a fixed rate, one row a request.

Requests are sent when they are due, whether or not earlier ones were answered (open loop), and
times count from when they were due: so a stall is seen by all requests that fall into it. The
service is a process of its own, and so is the anchor: River's logistic regression behind the same
kind of application, without any log.

    python -m benchmarks.service --rate 1000 --seconds 10
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

CONNECTIONS = 64
#: Seconds to wait for the last answers.
PATIENCE = 20.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=float, nargs="+", default=[500.0, 1000.0, 2000.0])
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--learner", nargs="+", default=["fast", "auto"])
    parser.add_argument("--anchor", action="store_true", help="River, without a log")
    parser.add_argument("--batch", type=int, default=1000, help="labels in one request")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=".") as folder:
        synced = fsync_times(Path(folder) / "probe")
        print(f"fsync of 4 KB: {_spread(synced)}")
    print(f"{'what':28} {'rate':>7} {'reached':>8}  predict ms           label ms")
    for learner in given.learner:
        for rate in given.rate:
            with Service("driftline") as service:
                service.create(learner)
                _tell(learner, rate, service, given.seconds)
    if given.anchor:
        for rate in given.rate:
            with Service("river") as service:
                _tell("River, no log", rate, service, given.seconds)
    for learner in given.learner:
        with Service("driftline") as service:
            service.create(learner)
            print(
                f"{learner}: {batches(service.port, given.batch, given.seconds):,.0f} labels a "
                f"second in requests of {given.batch}"
            )


def fsync_times(path: Path, count: int = 500) -> np.ndarray:
    """Return how long it takes to append 4 KB and sync them, in seconds."""
    handle, made = os.open(path, os.O_RDWR | os.O_CREAT), []
    for _ in range(count):
        began = time.perf_counter()
        os.write(handle, b"x" * 4096)
        os.fsync(handle)
        made.append(time.perf_counter() - began)
    os.close(handle)
    return np.array(made)


def _spread(seconds: np.ndarray) -> str:
    ms = 1e3 * np.asarray(seconds)
    if not len(ms):
        return "none"
    return f"p50 {np.median(ms):.1f} p99 {np.quantile(ms, 0.99):.1f} max {ms.max():.1f}"


def _tell(name: str, rate: float, service: Service, seconds: float) -> None:
    predicted, told, errors, took = asyncio.run(open_loop(service.port, rate, seconds))
    reached = len(predicted) / took
    bad = f"  {errors} errors" if errors else ""
    print(f"{name:28} {rate:7,.0f} {reached:8,.0f}  {_spread(predicted)}   {_spread(told)}{bad}")


class Service:
    """A service of its own process, on a folder of its own."""

    def __init__(self, kind: str):
        self.kind, self.folder = kind, tempfile.TemporaryDirectory(dir=".")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]

    def __enter__(self) -> Service:
        data = str(Path(self.folder.name) / "data")
        commands = {
            "driftline": ["-m", "driftline", "serve", "--data", data, "--port", str(self.port)],
            "river": ["-m", "benchmarks.river_service", str(self.port)],
        }
        silent = {"stdout": subprocess.DEVNULL}
        self.process = subprocess.Popen([sys.executable, *commands[self.kind]], **silent)
        for _ in range(600):
            try:
                with socket.create_connection(("127.0.0.1", self.port), 0.1):
                    return self
            except OSError:
                time.sleep(0.1)
        raise RuntimeError("the service did not start")

    def create(self, learner: str) -> None:
        """Make the model, and let it learn some rows, so that all is compiled."""
        import driftline as dl

        with dl.Client(f"http://127.0.0.1:{self.port}") as client:
            columns = {f"x{j}": "number" for j in range(6)}
            client.create("m", "y", columns=columns, learner=learner, classes=["a", "b"])
            for start in range(0, 500, 20):
                rows = [json.loads(row_of(start + i)) for i in range(20)]
                labels = [label_of(start + i) for i in range(20)]
                client.learn("m", rows, labels)
                client.predict("m", rows, id=[f"warm {start + i}" for i in range(20)])
                client.label("m", [f"warm {start + i}" for i in range(20)], labels)

    def __exit__(self, *_: object) -> None:
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(20.0)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.folder.cleanup()


_ROWS = np.random.default_rng(0).normal(size=(5000, 6)).round(4)


def row_of(number: int) -> str:
    x = _ROWS[number % len(_ROWS)].tolist()
    return json.dumps({f"x{j}": value for j, value in enumerate(x)})


def label_of(number: int) -> str:
    return "a" if _ROWS[number % len(_ROWS), :2].sum() > 0 else "b"


class Connection(asyncio.Protocol):
    """A connection with one request at a time, and as little Python as possible."""

    def __init__(self):
        self.answered, self._left, self._buffer = None, 0, b""

    def connection_made(self, transport):
        """Keep the transport."""
        self.transport = transport

    def data_received(self, data):
        """Read an answer."""
        self._buffer += data
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            return
        head = self._buffer[:end].lower()
        place = head.find(b"content-length: ") + 16
        stop = head.find(b"\r\n", place)
        size = int(head[place : None if stop < 0 else stop])
        if len(self._buffer) >= end + 4 + size:
            status, self._buffer = int(head[9:12]), self._buffer[end + 4 + size :]
            answered, self.answered = self.answered, None
            if answered is not None and not answered.done():
                answered.set_result(status)

    def connection_lost(self, error):
        """Count an answer that never comes."""
        if self.answered is not None and not self.answered.done():
            self.answered.set_result(0)


def request_of(path: str, body: str) -> bytes:
    return (
        f"POST /models/m/{path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
        f"content-length: {len(body)}\r\n\r\n{body}"
    ).encode()


async def open_loop(port, rate, seconds):
    """Send predictions, and a label for each half a second later, both at a fixed rate."""
    loop = asyncio.get_running_loop()
    idle: asyncio.LifoQueue[Connection] = asyncio.LifoQueue()
    for _ in range(CONNECTIONS):
        _, made = await loop.create_connection(Connection, "127.0.0.1", port)
        idle.put_nowait(made)
    predicted, told, errors, tasks = [], [], [0], set()

    async def one(due, content, times):
        connection = await idle.get()
        connection.answered = loop.create_future()
        answered = connection.answered
        connection.transport.write(content)
        status = await answered
        times.append(time.perf_counter() - due)
        errors[0] += status != 200
        if status:
            idle.put_nowait(connection)

    count, later = int(rate * seconds), int(rate * 0.5)
    began = time.perf_counter() + 0.2
    for number in range(count + later):
        due = began + number / rate
        while (left := due - time.perf_counter()) > 0.0:
            await asyncio.sleep(left if left > 0.002 else 0)
        if number < count:
            body = f'{{"id": "r{number}", "row": {row_of(number)}}}'
            task = asyncio.ensure_future(one(due, request_of("predict", body), predicted))
            tasks.add(task)
            task.add_done_callback(tasks.discard)
        if number >= later:
            told_number = number - later
            body = f'{{"id": "r{told_number}", "label": "{label_of(told_number)}"}}'
            task = asyncio.ensure_future(one(due, request_of("labels", body), told))
            tasks.add(task)
            task.add_done_callback(tasks.discard)
        if number % 16 == 0:
            await asyncio.sleep(0)
    end = time.perf_counter() + PATIENCE
    while tasks and time.perf_counter() < end:
        await asyncio.sleep(0.01)
    errors[0] += len(tasks)
    took = time.perf_counter() - began - 0.5
    while not idle.empty():
        idle.get_nowait().transport.close()
    return np.array(predicted), np.array(told), errors[0], took


def batches(port: int, size: int, seconds: float) -> float:
    """Return how many labels a second are learned, if they come in large requests."""
    import driftline as dl

    with dl.Client(f"http://127.0.0.1:{port}") as client:
        count = 20 * size
        ids = [f"b{i}" for i in range(count)]
        rows = [json.loads(row_of(i)) for i in range(count)]
        for start in range(0, count, size):
            client.predict("m", rows[start : start + size], id=ids[start : start + size])
        began = time.perf_counter()
        for start in range(0, count, size):
            part = range(start, start + size)
            client.label("m", ids[start : start + size], [label_of(i) for i in part])
        return count / (time.perf_counter() - began)


if __name__ == "__main__":
    main()
