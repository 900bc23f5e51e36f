"""Clients that send many requests at once: answers come in order, and wait for whoever reads."""

import re
import socket
import time

import numpy as np
import pytest

from driftline.app.service.http import Bounds
from tests.service import call, client, serving

HOST = b" HTTP/1.1\r\nhost: localhost\r\n"
PAGE = b"GET /uplot.js" + HOST + b"\r\n"


def opened(address, room=None):
    """Return a connection; ``room`` is how many bytes wait in it for being read."""
    made = socket.socket()
    if room is not None:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, room)
    made.settimeout(20.0)
    host, port = address.removeprefix("http://").split(":")
    made.connect((host, int(port)))
    return made


def request(number):
    """Return a request for a row by its number: in one chunk, in two, or of known length."""
    body = b'{"id": "r%d", "row": {"x": %d, "y": "%s"}}' % (
        number,
        number,
        b"y" * (number * 37 % 900),
    )
    head = b"POST /models/m/predict" + HOST
    if number % 3 == 0:
        return head + b"content-length: %d\r\n\r\n" % len(body) + body
    parts = [body] if number % 3 == 1 else [body[:7], body[7:]]
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts)
    return head + b"transfer-encoding: chunked\r\n\r\n" + chunks + b"0\r\n\r\n"


@pytest.mark.parametrize("seed", range(4))
def test_answers_come_in_order_however_the_bytes_are_cut(tmp_path, seed):
    generator = np.random.default_rng(seed)
    content = b"".join(request(i) for i in range(300))
    with serving(tmp_path / "data") as (address, _), opened(address) as connection:
        own = client(address)
        own.create("m", "z", columns={"x": "number", "y": ["a"]}, learner="fast")
        size = (len(content), 5000, 600, 100)[seed]
        while content:
            cut = int(generator.integers(1, size + 1)) if seed else size
            connection.sendall(content[:cut])
            content = content[cut:]
        said = b""
        while said.count(b'"prediction"') < 300:
            part = connection.recv(65536)
            assert part
            said += part
        assert re.findall(rb'"id":"r(\d+)"', said) == [b"%d" % i for i in range(300)]
        assert said.count(b"HTTP/1.1 200") == 300


def test_who_reads_slowly_gets_all_answers(tmp_path):
    """Longer than a connection may be idle, and more than fits into any buffer."""
    with serving(tmp_path / "data", bounds=Bounds(idle=1.0)) as (address, _):
        size = len(call(address, "GET", "/uplot.js")[1])
        with opened(address, room=1 << 16) as connection:
            connection.sendall(PAGE * 100)
            read, began = 0, time.monotonic()
            while read < 100 * size:
                part = connection.recv(1 << 16)
                assert part
                read += len(part)
                time.sleep(0.025)
            assert time.monotonic() - began > 1.5


def test_who_does_not_read_is_ended(tmp_path):
    with serving(tmp_path / "data", bounds=Bounds(idle=1.0)) as (address, server):
        with opened(address, room=1 << 16) as connection:
            connection.sendall(PAGE * 1000)
            time.sleep(5.0)
            with pytest.raises(OSError):
                for _ in range(1000):
                    connection.sendall(PAGE)
        assert call(address, "GET", "/health")[0] == 200


def test_headers_are_as_large_as_what_is_kept_of_them(tmp_path):
    """Of 64 KB of headers of five bytes each, more than a megabyte was kept."""
    with serving(tmp_path / "data") as (address, _):
        for count, said in ((400, b"HTTP/1.1 200"), (600, b"HTTP/1.1 400")):
            with opened(address) as connection:
                connection.sendall(b"GET /health" + HOST + b"xy:\r\n" * count + b"\r\n")
                assert connection.recv(1000).startswith(said)


def test_connections_with_most_bytes_are_ended_when_there_are_too_many(tmp_path):
    with serving(tmp_path / "data", bounds=Bounds(memory=1 << 20)) as (address, server):
        several = [opened(address, room=1 << 16) for _ in range(60)]
        for connection in several:
            connection.setblocking(False)
        alive, end = set(several), time.monotonic() + 20.0
        while len(alive) > 30 and time.monotonic() < end:
            for connection in list(alive):
                try:
                    connection.send(PAGE * 1000)
                except BlockingIOError:
                    pass
                except OSError:
                    alive.discard(connection)
            time.sleep(0.01)
        assert 0 < len(alive) <= 30
        assert server.bounds.budget._total <= 1 << 20
        assert call(address, "GET", "/health")[0] == 200
        for connection in several:
            connection.close()
        while server.bounds.budget._total and time.monotonic() < end:
            time.sleep(0.01)
        assert server.bounds.budget._total == 0


def test_bodies_share_their_memory_and_one_alone_may_have_all(tmp_path):
    body = b'{"row": {"x": 1}}'.ljust(3 << 20)
    head = b"POST /models/m/predict" + HOST + b"content-length: %d\r\n\r\n" % len(body)
    with serving(tmp_path / "data", bounds=Bounds(memory=1 << 20)) as (address, server):
        client(address).create("m", "y", columns={"x": "number"}, learner="fast")
        with opened(address) as first, opened(address) as second:
            first.sendall(head + body[: 2 << 20])
            bodies, end = server.bounds.bodies, time.monotonic() + 20.0
            while bodies._total < 1 << 20 and time.monotonic() < end:
                time.sleep(0.01)
            second.sendall(head + body[: 1 << 20])
            answer = second.recv(1000).lower()
            assert answer.startswith(b"http/1.1 503") and b"retry-after: 1" in answer
            first.sendall(body[2 << 20 :])
            assert first.recv(1000).startswith(b"HTTP/1.1 200")
            assert bodies._total == 0
        assert call(address, "POST", "/models/m/predict", body)[0] == 200


def test_rows_that_are_read_have_a_part_of_that_memory(tmp_path):
    """Small ones are learned as they come; what has no end is counted."""
    kind = {"content-type": "text/csv"}
    table = b"x,y\n" + b"1,yes\n" * 60_000
    head = (
        b"POST /models/m/rows" + HOST + b"content-type: text/csv\r\ncontent-length: 9000000\r\n\r\n"
    )
    with serving(tmp_path / "data", bounds=Bounds(memory=900_000)) as (address, server):
        client(address).create("m", "y", columns={"x": "number"}, learner="fast")
        with opened(address) as first, opened(address) as second:
            first.sendall(head + b'x,y\n"' + b"\n" * 500_000)
            bodies, end = server.bounds.bodies, time.monotonic() + 20.0
            while bodies._total < 500_000 and time.monotonic() < end:
                time.sleep(0.01)
            second.sendall(head + b'x,y\n"' + b"\n" * 500_000)
            answer = b""
            while not answer.endswith(b"}"):  # head and body come in parts
                assert (part := second.recv(1000))
                answer += part
            assert answer.startswith(b"HTTP/1.1 503")
            assert b"too many bodies are being read" in answer
            status, made = call(address, "POST", "/models/m/rows", table, kind)
            assert (status, made["learned"]) == (200, 60_000)
        end = time.monotonic() + 20.0
        while bodies._total and time.monotonic() < end:
            time.sleep(0.01)
        assert bodies._total == 0
