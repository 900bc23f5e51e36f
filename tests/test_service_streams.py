"""Streams that the service reads by itself: a message is learned from once, whatever dies."""

import io
import json
import shutil
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager

import pytest

from driftline.app.service.sources import Feeder, Message, source_from
from driftline.errors import InputError
from tests.service import check_replay, client, serving

COLUMNS = {"x": "number"}


class ListSource:
    """Messages of a list; after every read the position may be forgotten by the reader."""

    name = "list"

    def __init__(self, messages, most=7):
        self.messages, self.most = messages, most

    def read(self, position):
        first = int(position or 0)
        part = self.messages[first : first + self.most]
        if not part:
            time.sleep(0.01)
        return [Message(str(first + i), own, str(first + i + 1)) for i, own in enumerate(part)]

    def close(self):
        pass


def fed(source, address, server, count):
    feeder = Feeder(source, "m", server.writer, server.positions)
    feeder.start()
    own = client(address)
    for _ in range(3000):
        state = own.model("m")["counts"]
        if state["learned"] + state["told"] >= count:
            break
        time.sleep(0.01)
    feeder.stop()
    return feeder


def test_messages_predict_tell_and_learn(tmp_path):
    messages = [{"data": json.dumps({"id": f"a{i}", "row": {"x": i}})} for i in range(10)]
    messages += [{"data": json.dumps({"id": f"a{i}", "label": "yes"})} for i in range(10)]
    messages += [{"data": json.dumps({"row": {"x": i}, "label": "no"})} for i in range(10)]
    messages += [{"x": str(i), "y": "no"} for i in range(10)]
    messages += [
        {"data": "no JSON"},
        {"data": '{"label": "yes"}'},
        {"x": "1"},
        {"x": "a", "y": "b"},
        {"data": '{"row": {"x": 1}, "label": ' + "[" * 5000},
    ]
    messages += [{"data": '{"row": {"x": 1}, "label": "last"}'}]
    with serving(tmp_path / "data") as (address, server):
        own = client(address)
        own.create("m", "y", columns=COLUMNS, learner="fast")
        feeder = fed(ListSource(messages), address, server, 31)
        counts = own.model("m")["counts"]
        assert (counts["asked"], counts["told"], counts["learned"]) == (10, 10, 21)
        assert feeder.refused == 5


def test_messages_wait_for_a_model_that_is_out_of_service(tmp_path, monkeypatch):
    """None is passed over: what was read when it went out is in the log, and the rest waits."""
    messages = [{"x": str(i % 5), "y": "yes" if i % 2 else "no"} for i in range(40)]
    said = io.StringIO()
    monkeypatch.setattr(sys, "stderr", said)
    with serving(tmp_path / "data") as (address, server):
        client(address).create("m", "y", columns=COLUMNS, learner="fast")
        served, learned = server.machine.hosted("m").served, []
        learn = served.learn

        def fail(rows, given):
            learned.append(len(rows))
            if sum(learned) > 20:
                raise MemoryError("simulated")
            return learn(rows, given)

        monkeypatch.setattr(served, "learn", fail)
        feeder = Feeder(ListSource(messages), "m", server.writer, server.positions)
        feeder.start()
        while "messages wait for it" not in said.getvalue():
            time.sleep(0.01)
        feeder.stop()
    with serving(tmp_path / "data") as (address, server):
        assert server.positions == {"list m": "21"}
        fed(ListSource(messages), address, server, 40)
        assert client(address).model("m")["counts"]["learned"] == 40


def test_a_position_that_was_forgotten_doubles_nothing(tmp_path):
    messages = [{"x": str(i % 5), "y": "yes" if i % 2 else "no"} for i in range(100)]
    with serving(tmp_path / "data") as (address, server):
        client(address).create("m", "y", columns=COLUMNS, learner="fast")
        fed(ListSource(messages), address, server, 100)
    with serving(tmp_path / "data") as (address, server):
        assert server.positions == {"list m": "100"}
        feeder = Feeder(ListSource(messages), "m", server.writer, {})  # from the beginning again
        feeder.start()
        while feeder.position != "100":
            time.sleep(0.01)
        feeder.stop()
        assert client(address).model("m")["counts"]["learned"] == 100


def test_several_models_read_one_stream_each_from_its_own_position(tmp_path):
    messages = [{"x": str(i % 5), "y": "yes" if i % 2 else "no"} for i in range(50)]
    with serving(tmp_path / "data") as (address, server):
        own = client(address)
        own.create("m", "y", columns=COLUMNS, learner="fast")
        own.create("behind", "y", columns=COLUMNS, learner="fast")
        behind = Feeder(ListSource(messages[:7]), "behind", server.writer, server.positions)
        behind.start()
        while behind.position != "7":
            time.sleep(0.01)
        behind.stop()
        fed(ListSource(messages), address, server, 50)
    with serving(tmp_path / "data") as (address, server):
        assert server.positions == {"list behind": "7", "list m": "50"}


def test_messages_wait_for_a_model_that_is_not_there_yet(tmp_path):
    messages = [{"x": str(i % 5), "y": "yes" if i % 2 else "no"} for i in range(50)]
    with serving(tmp_path / "data") as (address, server):
        feeder = Feeder(ListSource(messages), "m", server.writer, server.positions)
        feeder.start()
        time.sleep(0.5)
        assert (feeder.position, feeder.refused) == ("", 0)
        own = client(address)
        own.create("m", "y", columns=COLUMNS, learner="fast")
        while feeder.position != "50":
            time.sleep(0.01)
        feeder.stop()
        assert own.model("m")["counts"]["learned"] == 50


@pytest.mark.parametrize(
    "url", ["http://x", "redis://h", "redis://h?stream=a", "kafka://h?model=m"]
)
def test_addresses_of_streams_are_checked(url):
    with pytest.raises(InputError, match="expected redis://"):
        source_from(url)


class Redis:
    """A server of Redis in a process of its own, which can be killed."""

    def __init__(self, folder):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.folder = folder
        self.start()

    def start(self):
        arguments = ["redis-server", "--port", str(self.port), "--dir", str(self.folder)]
        arguments += ["--appendonly", "yes", "--appendfsync", "always", "--save", ""]
        self.process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL)
        for _ in range(500):
            try:
                socket.create_connection(("127.0.0.1", self.port), 0.1).close()
                return
            except OSError:
                time.sleep(0.02)

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


needs_redis = pytest.mark.skipif(shutil.which("redis-server") is None, reason="needs redis-server")


@needs_redis
def test_redis_is_killed_and_restarted_and_so_is_the_service(tmp_path):
    redis = pytest.importorskip("redis")
    (tmp_path / "redis").mkdir()
    broker = Redis(tmp_path / "redis")
    url = f"redis://127.0.0.1:{broker.port}/0?stream=visits&model=m"
    try:
        writer = redis.Redis(port=broker.port)
        for i in range(300):
            writer.xadd("visits", {"x": i % 7, "y": "yes" if i % 2 else "no"})
        for kills in range(1):
            with serving(tmp_path / "data") as (address, server):
                own = client(address)
                own.create("m", "y", columns=COLUMNS, learner="fast", exist_ok=True)
                source, model = source_from(url)
                feeder = Feeder(source, model, server.writer, server.positions)
                feeder.start()
                while own.model("m")["counts"]["learned"] < 300 * (kills + 1) - 100:
                    time.sleep(0.01)
                broker.kill()
                broker.start()
                for i in range(300):
                    writer.xadd("visits", {"x": i % 7, "y": "yes" if i % 2 else "no"})
                while own.model("m")["counts"]["learned"] < 300 * (kills + 2):
                    time.sleep(0.01)
                feeder.stop()
        with serving(tmp_path / "data") as (address, server):
            assert client(address).model("m")["counts"]["learned"] == 600
        writer.close()
    finally:
        broker.kill()


@pytest.fixture
def broker(tmp_path):
    pytest.importorskip("redis")
    (tmp_path / "redis").mkdir()
    made = Redis(tmp_path / "redis")
    yield made
    made.kill()


def added(broker, count, first=None):
    """Add messages to the stream, with ids from a number on, or of the time of day."""
    import redis

    with redis.Redis(port=broker.port) as writer:
        for i in range(count):
            id = "*" if first is None else f"{first + i}-0"
            writer.xadd("visits", {"x": i % 7, "y": "yes" if i % 2 else "no"}, id=id)


def deleted(broker):
    import redis

    with redis.Redis(port=broker.port) as writer:
        writer.delete("visits")


@contextmanager
def reading(broker, folder, positions=None):
    """Yield a function that waits until so many rows are learned, and returns how many are."""
    with serving(folder) as (address, server):
        own = client(address)
        own.create("m", "y", columns=COLUMNS, learner="fast", exist_ok=True)
        source, model = source_from(f"redis://127.0.0.1:{broker.port}/0?stream=visits&model=m")
        known = server.positions if positions is None else positions
        feeder = Feeder(source, model, server.writer, known)
        feeder.start()

        def learned(count):
            end = time.monotonic() + 30.0
            while own.model("m")["counts"]["learned"] < count and time.monotonic() < end:
                time.sleep(0.02)
            time.sleep(0.1)
            return own.model("m")["counts"]["learned"]

        yield learned
        feeder.stop()


@needs_redis
@pytest.mark.parametrize("first", [1, 2, 60], ids=["the same ids", "lower ids", "in between"])
def test_a_stream_that_was_made_anew_is_read_from_its_start(tmp_path, broker, first, capsys):
    added(broker, 100, first=1)
    with reading(broker, tmp_path / "data") as learned:
        assert learned(100) == 100
        deleted(broker)
        added(broker, 20, first=first)
        assert learned(120) == 120
        added(broker, 5, first=first + 20)
        assert learned(125) == 125
        deleted(broker)
        added(broker, 10, first=first)
        assert learned(135) == 135
    assert capsys.readouterr().err.count("visits was deleted and made anew") == 2
    deleted(broker)
    added(broker, 5, first=first)  # while nobody reads
    with reading(broker, tmp_path / "data") as learned:
        assert learned(140) == 140
    with reading(broker, tmp_path / "data", {"redis visits m": "2/99-0/1-0/"}) as learned:
        time.sleep(3.0)  # as if it had died before it noted that it has read the last stream
        assert learned(140) == 140
    check_replay(tmp_path / "data")


@needs_redis
def test_a_stream_that_lost_its_last_messages_is_not_read_again(tmp_path, broker, capsys):
    import redis

    added(broker, 100, first=1)
    with reading(broker, tmp_path / "data") as learned:
        assert learned(100) == 100
    with redis.Redis(port=broker.port) as writer:
        writer.xdel("visits", *[f"{i}-0" for i in range(91, 101)])
        writer.execute_command("XSETID", "visits", "90-0")
    broker.kill()
    broker.start()
    with reading(broker, tmp_path / "data") as learned:
        added(broker, 5, first=91)
        end = time.monotonic() + 30.0
        said = ""
        while "visits has lost its last messages" not in said and time.monotonic() < end:
            said += capsys.readouterr().err
            time.sleep(0.02)
        assert "visits has lost its last messages: it is read on from 100-0" in said
        added(broker, 10, first=101)
        assert learned(110) == 110
