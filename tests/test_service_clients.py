"""Clients that are slow, vanish, or come in too large numbers."""

import json
import socket
import threading
import time
from http.client import HTTPConnection

import pytest

import driftline as dl
from driftline.app.service import http
from driftline.app.service.writer import Limits
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


def test_rows_that_stop_are_408_and_say_how_many_were_learned(service, monkeypatch):
    monkeypatch.setattr(http, "SLOWEST", 0.5)
    address, own, _ = service
    head = HEAD.replace(b"predict", b"rows").replace(b": 1000", b": 1000000")
    with opened(address) as slow:
        slow.sendall(head.replace(b"\r\n\r\n", b"\r\ncontent-type: text/csv\r\n\r\n"))
        slow.sendall(b"x,y\n" + b"1,yes\n" * 1500)
        time.sleep(0.3)  # a pause that is short enough
        slow.sendall(b"2,no\n")
        answer = b"".join(iter(lambda: slow.recv(1000), b""))  # until it is closed
        assert answer.startswith(b"HTTP/1.1 408")
        assert b"did not go on for 0.5 seconds (1000 rows before it" in answer
    assert own.model("m")["counts"]["learned"] == 1000


IDLING = {
    "nothing": b"",
    "a part of the headers": b"GET /health HTTP/1.1\r\nhost: loc",
    "a request before": b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n",
    "a body that does not begin": HEAD,
    "a request and a byte": b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\nG",
}


@pytest.mark.parametrize("sent", IDLING.values(), ids=IDLING)
def test_connections_without_a_request_are_closed(tmp_path, sent):
    with (
        serving(tmp_path / "data", bounds=http.Bounds(idle=0.5)) as (address, _),
        opened(address) as idle,
    ):
        with opened(address) as watching:
            watching.sendall(b"GET /events HTTP/1.1\r\nhost: localhost\r\n\r\n")
            idle.sendall(sent)
            began = time.monotonic()
            try:
                while idle.recv(1000):
                    pass
            except ConnectionResetError:
                pass
            assert 0.3 < time.monotonic() - began < 5.0
            time.sleep(0.7)
            watching.settimeout(0.2)
            with pytest.raises(TimeoutError):  # it is answered as long as it is there
                while watching.recv(1000):
                    pass


def test_a_byte_now_and_then_does_not_keep_a_connection_open(tmp_path):
    with (
        serving(tmp_path / "data", bounds=http.Bounds(idle=0.5)) as (address, _),
        opened(address) as slow,
    ):
        began = time.monotonic()
        with pytest.raises(OSError):
            for byte in b"GET / HTTP/1.1\r\n" + b"x" * 200:
                slow.sendall(bytes([byte]))
                time.sleep(0.05)
        assert time.monotonic() - began < 5.0


def test_who_watches_leaves_connections_to_others(tmp_path):
    with serving(tmp_path / "data", bounds=http.Bounds(watching=3)) as (address, _):
        watching = [opened(address) for _ in range(3)]
        for connection in watching:
            connection.sendall(b"GET /events HTTP/1.1\r\nhost: localhost\r\n\r\n")
            assert connection.recv(1000).startswith(b"HTTP/1.1 200")
        said = "3 streams of events are open, and no more may be"
        assert call(address, "GET", "/events") == (503, {"error": said})
        watching.pop().close()
        end = time.monotonic() + 10.0
        with opened(address) as another:
            answer = b""
            while b"200 OK" not in answer and time.monotonic() < end:
                another.sendall(b"GET /events HTTP/1.1\r\nhost: localhost\r\n\r\n")
                answer = another.recv(1000)
            assert b"200 OK" in answer
        for connection in watching:
            connection.close()


def test_models_and_challengers_are_limited(tmp_path):
    limits = Limits(models=2, challengers=1)
    with serving(tmp_path / "data", limits=limits) as (address, _):
        own = client(address)
        for name in ("a", "b"):
            own.create(name, "y", columns=COLUMNS, learner="fast")
        with pytest.raises(
            dl.ServiceError, match="there are 2 models, and no more may be"
        ) as error:
            own.create("c", "y", columns=COLUMNS, learner="fast")
        assert error.value.status == 409
        own.challenge("a", "one", learner="fast")
        with pytest.raises(dl.ServiceError, match="has 1 challengers, and no more may") as error:
            own.challenge("a", "two", learner="fast")
        assert error.value.status == 409
        own.delete("b")
        assert call(address, "DELETE", "/models/a/challengers/one")[0] == 200
        own.create("c", "y", columns=COLUMNS, learner="fast")
        own.challenge("a", "two", learner="fast")
    with serving(tmp_path / "data", limits=Limits(models=1)) as (address, server):
        assert set(server.machine.names) == {"a", "c"}  # those that are there stay


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
    rows = [{"row": {"x": i}, "label": "yes" if i % 2 else "no"} for i in range(1000)]
    body, host = json.dumps(rows).encode(), address.removeprefix("http://")

    def hammer(number):
        connection = HTTPConnection(host, timeout=60.0)
        while time.monotonic() < end:
            began = time.monotonic()
            connection.request("POST", "/models/m/learn", body)
            answer = connection.getresponse()
            answer.read()
            if answer.status == 200:
                told[0] += len(rows)
                waits.append(time.monotonic() - began)
            else:
                assert answer.status == 429
                refused[0] += 1
                time.sleep(0.2)
        connection.close()

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


def test_rows_are_refused_unread_while_too_many_wait(service, monkeypatch):
    address, own, server = service
    monkeypatch.setattr(server.writer, "_waiting", 10**9)
    for path in ("predict", "labels", "learn"):
        status, answer = call(address, "POST", f"/models/m/{path}", b"no JSON at all")
        assert status == 429 and "rows wait already" in answer["error"]
    monkeypatch.setattr(server.writer, "_waiting", 0)
    assert call(address, "POST", "/models/m/predict", b"no JSON at all")[0] == 400
