"""Attacks on a running service without a token: it stays small, answers others, and ends them."""

import subprocess
import sys
import time

import pytest

import driftline as dl
from tests.service import call
from tests.service_process import Process


def flooded(folder, kind, count, seconds, idle):
    """Return what a flood led to: memory in MB, times of others' requests, and when it was ended.

    The last one is how many connections there were, how many of them the service has closed, and
    how many seconds after the beginning the last of them.
    """
    with Process(folder, "--idle", str(idle)) as service:
        with dl.Client(service.address) as own:
            own.create("m", "y", columns={"x": "number"}, learner="fast")
        given = [str(service.port), str(count), str(seconds), kind]
        command = [sys.executable, "-m", "tests.service_flood", *given]
        most, times = 0.0, []
        with subprocess.Popen(command, text=True, stdout=subprocess.PIPE) as flood:
            while flood.poll() is None:
                began = time.perf_counter()
                assert call(service.address, "GET", "/health")[0] == 200
                times.append(time.perf_counter() - began)
                most = max(most, service.memory())
                time.sleep(0.01)
            said = flood.stdout.read().split()[1:]
        assert service.stop() == 0
    opened, closed, last = int(said[0]), int(said[1]), float(said[2])
    return most, sorted(times), (opened, closed, last)


@pytest.mark.parametrize("kind", ["pages", "minimal requests", "partial bodies"])
def test_clients_that_never_read_cost_little_and_are_ended(tmp_path, kind):
    memory, times, (opened, closed, _) = flooded(tmp_path / "data", kind, 40, 40.0, idle=2.0)
    assert memory < 450.0
    assert times[-1] < 10.0
    assert closed == opened == 40


#: Milliseconds within which 99 of 100 other requests are answered; large bodies are read meanwhile.
P99 = {"pages": 100, "minimal requests": 100, "bodies": 100, "chunked": 100, "headers": 100}
P99 |= {"partial bodies": 100, "large bodies": 1000, "short headers": 100, "descriptions": 100}


@pytest.mark.hard
@pytest.mark.parametrize("kind", P99)
def test_two_hundred_connections_that_never_read(tmp_path, kind):
    memory, times, ended = flooded(tmp_path / "data", kind, 200, 20.0, idle=75.0)
    p99 = 1000.0 * times[int(0.99 * len(times))]
    print(f"{kind}: {memory:.0f} MB, p99 of /health {p99:.0f} ms, longest {1000 * times[-1]:.0f}")
    assert memory < 512.0
    assert p99 < P99[kind]


@pytest.mark.hard
def test_connections_are_closed_after_the_promised_time(tmp_path):
    memory, _, (opened, closed, last) = flooded(tmp_path / "data", "pages", 200, 95.0, idle=75.0)
    print(f"{memory:.0f} MB, {closed} of {opened} closed, the last after {last} s")
    assert closed == opened == 200
    assert 75.0 <= last < 90.0
