"""A running service is killed again and again, while clients go on; and it is really killed."""

import signal
import socket
import threading
import time

import numpy as np
import pytest

import driftline as dl
from tests.service import check_replay
from tests.service_host import Host


def free_port():
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        return made.getsockname()[1]


class User(threading.Thread):
    """Asks, and tells labels some time later, and notes what was acknowledged."""

    def __init__(self, address, name, seed):
        super().__init__(daemon=True)
        self.client, self.name_, self.ending = dl.Client(address, tries=60), name, False
        self.generator = np.random.default_rng(seed)
        self.answers, self.labels, self.waiting, self.error = {}, {}, [], None

    def run(self):
        number = 0
        try:
            while not self.ending:
                id, number = f"{self.name_}-{number}", number + 1
                x = round(float(self.generator.normal()), 3)
                self.answers[id] = x, self.client.predict("m", {"x": x}, id=id)["prediction"]
                self.waiting.append(id)
                if len(self.waiting) > 5:
                    place = int(self.generator.integers(len(self.waiting)))
                    own = self.waiting.pop(place)
                    label = "yes" if self.answers[own][0] > 0 else "no"
                    self.client.label("m", own, label)
                    self.labels[own] = label
        except Exception as error:
            self.error = error
        self.client.close()


def played(folder, kills, seed=0):
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    host = Host(folder, port, "--snapshot", "0.3")
    generator = np.random.default_rng(seed)
    with dl.Client(address, tries=60) as client:
        host.start()
        client.create("m", "label", columns={"x": "number"}, learner="fast", exist_ok=True)
        users = [User(address, f"user {i}", [seed, i]) for i in range(3)]
        for user in users:
            user.start()
        for _ in range(kills):
            wanted = sum(len(u.labels) for u in users) + int(generator.integers(0, 30))
            end = time.monotonic() + 5.0
            while sum(len(u.labels) for u in users) < wanted and time.monotonic() < end:
                time.sleep(0.005)
            time.sleep(float(generator.uniform(0.0, 0.01)))
            assert host.kill() == -signal.SIGKILL
            host.start()
        for user in users:
            user.ending = True
            user.join(60.0)
            assert user.error is None
        state = client.model("m")
        for user in users:  # the same again gives the same answer, and changes nothing
            for id, (x, prediction) in user.answers.items():
                assert client.predict("m", {"x": x}, id=id)["prediction"] == prediction
            for id, label in user.labels.items():
                assert client.label("m", id, label)["duplicate"]
        assert client.model("m")["counts"] == state["counts"]
    assert host.kill(signal.SIGTERM) == 0
    host.close()
    asked = sum(len(user.answers) for user in users)
    told = sum(len(user.labels) for user in users)
    assert (state["counts"]["asked"], state["counts"]["told"]) == (asked, told)
    assert state["learners"][0]["rounds"] == told
    return told


def test_nothing_acknowledged_is_lost_when_the_service_is_killed(tmp_path):
    assert played(tmp_path / "data", kills=3) > 0
    check_replay(tmp_path / "data")


def test_who_watches_does_not_hold_up_the_end(tmp_path):
    port = free_port()
    host = Host(tmp_path / "data", port)
    host.start()
    with dl.Client(f"http://127.0.0.1:{port}", tries=60) as client:
        client.models()
    with socket.create_connection(("127.0.0.1", port), 20.0) as watching:
        watching.sendall(b"GET /events HTTP/1.1\r\nhost: localhost\r\n\r\n")
        assert watching.recv(1000)
        began = time.monotonic()
        assert host.kill(signal.SIGTERM) == 0
        assert time.monotonic() - began < 4.0
    host.close()


@pytest.mark.hard
def test_five_hundred_kills(tmp_path):
    told = played(tmp_path / "data", kills=500, seed=1)
    print(f"{told} labels, 500 kills")
    check_replay(tmp_path / "data")
