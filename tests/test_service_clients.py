"""Clients that are slow, vanish, or come in too large numbers."""

import socket
import threading
import time

import pytest

import driftline as dl
from driftline.app.service import http
from tests.service import call, client, serving

COLUMNS = {"x": "number"}


@pytest.fixture
def service(tmp_path):
    with serving(tmp_path / "data") as (address, server):
        own = client(address)
        own.create("m", "y", columns=COLUMNS, learner="fast")
        yield address, own, server


def opened(address):
    host, port = address.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), 20.0)


HEAD = b"POST /models/m/predict HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000\r\n\r\n"


def test_a_body_that_stops_is_408(service, monkeypatch):
    monkeypatch.setattr(http, "SLOWEST", 0.2)
    address, own, _ = service
    with opened(address) as slow:
        slow.sendall(HEAD + b'{"row": ')
        assert slow.recv(1000).startswith(b"HTTP/1.1 408")
    assert own.predict("m", {"x": 1.0})


@pytest.mark.parametrize("start", [b"GET /", b"GET / HTTP/1.1\r\nhost: localhost\r\nx: "])
def test_headers_without_end_are_refused(service, start):
    address, own, _ = service
    with opened(address) as endless:
        endless.sendall(start)
        with pytest.raises(OSError):
            for _ in range(200):
                endless.sendall(b"a" * 100_000)
    with opened(address) as several:  # counted anew for every request of a connection
        for _ in range(30):
            more = b"GET /health HTTP/1.1\r\nhost: localhost\r\nx: " + b"a" * 60_000
            several.sendall(more + b"\r\n\r\n")
            assert several.recv(1000).startswith(b"HTTP/1.1 200")
    assert own.learn("m", [{"x": 1.0}] * 9000, ["yes"] * 9000)


def test_slow_clients_hold_up_nobody(service):
    address, own, _ = service
    slow = [opened(address) for _ in range(200)]
    for i, connection in enumerate(slow):
        connection.sendall(HEAD[: i % len(HEAD)] if i % 2 else HEAD + b" " * (i % 900))
    for i in range(20):
        assert own.predict("m", {"x": i}, id=f"a{i}")
    for connection in slow:
        connection.close()
    assert own.label("m", "a1", "yes")["learned"]


def test_a_client_that_vanishes_has_asked_or_not(service):
    """The answer is lost, and the row is there once, or not at all."""
    address, own, _ = service
    for i in range(40):
        body = b'{"id": "v%d", "row": {"x": 1}}' % i
        with opened(address) as gone:
            gone.sendall(HEAD.replace(b"1000", b"%d" % len(body)) + body[: len(body) - i % 3])
    for i in range(40):
        assert own.predict("m", {"x": 1}, id=f"v{i}")["prediction"] is not None
    assert own.model("m")["counts"]["asked"] == 40


def test_connections_from_before_a_restart_are_not_tried_one_by_one(tmp_path):
    with serving(tmp_path / "data") as (address, _):
        own = dl.Client(address, tries=2)
        own.create("m", "y", columns=COLUMNS, learner="fast")
        several = [own._connection() for _ in range(8)]
        for connection in several:
            connection.request("GET", "/health")
            connection.getresponse().read()
        own._idle.extend(several)
    with serving(tmp_path / "data", port=int(address.rsplit(":", 1)[1])):
        assert own.predict("m", {"x": 1.0}, id=17)["id"] == "17"
        assert own.label("m", 17, "yes")["learned"]
        own.close()


@pytest.mark.hard
def test_twice_as_much_as_it_can_carry(service):
    """Some are told to come back; all that was acknowledged is learned, and nobody waits long."""
    address, own, server = service
    end, waits, refused, told = time.monotonic() + 60.0, [], [0], [0]

    def hammer(number):
        mine = dl.Client(address, tries=1)
        count = 0
        while time.monotonic() < end:
            count += 1
            rows = [{"x": i} for i in range(50)]
            ids = [f"{number} {count} {i}" for i in range(50)]
            began = time.monotonic()
            try:
                mine.learn("m", rows, ["yes", "no"] * 25, id=ids)
                told[0] += 50
                waits.append(time.monotonic() - began)
            except dl.ServiceError as error:
                assert error.status == 429
                refused[0] += 1
        mine.close()

    threads = [threading.Thread(target=hammer, args=(i,)) for i in range(200)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    waits.sort()
    print(f"{told[0]} rows, {refused[0]} refused, longest wait {waits[-1]:.1f} s")
    assert refused[0] > 0
    assert own.model("m")["counts"]["learned"] == told[0]
    assert call(address, "GET", "/ready")[0] == 200
