"""Power is lost at every moment of a run of the service: what was acknowledged is on the disk."""

import pytest

from driftline.app.service.log import SqliteLog
from driftline.app.service.machine import Machine
from driftline.app.service.requests import Ask, Create, Learn, Tell
from driftline.app.service.served import Feedback
from tests.power_vfs import Recorder, generator_of, left_after
from tests.simulation import load


class Clock:
    def __init__(self):
        self.now = 1000

    def __call__(self):
        self.now += 1
        return self.now


def groups(count):
    """Yield groups of requests, as they come."""
    yield [Create("m", b"")]
    for i in range(count):
        rows = [f"row {i} {j} " + "x" * 300 for j in range(4)]
        ids = [f"{i} {j}" for j in range(4)]
        yield [Ask("m", ids, rows), Learn("m", [f"l{i}"], [f"row l{i}"], [Feedback("yes")])]
        yield [Tell("m", ids[:3], [Feedback("no")] * 3)]


def recorded(folder, synchronous, count):
    """Play a run; return its operations on the disk, and how many there were at every answer."""
    recorder = Recorder(f"recorder {synchronous} {folder.name}")
    log = SqliteLog(folder / "log.sqlite3", synchronous, recorder.name)
    machine = Machine(log, load, Clock())
    machine.recover()
    answered = []
    for group in groups(count):
        outcomes = machine.process(group)
        assert all(o.status in (200, 201) for o in outcomes)
        hosted = machine.hosted("m")
        answered.append((len(recorder.operations), hosted.counts.copy(), list(hosted.served.told)))
    log.close()
    return recorder.operations, answered


def problems(folder, operations, answered, points, seed):
    """Return where something acknowledged is missing after a loss of power."""
    found = []
    for number, point in enumerate(points):
        files = left_after(operations[:point], generator_of([seed, number]))
        for old in folder.iterdir():
            old.unlink()
        for name, content in files.items():
            (folder / name).write_bytes(content)
        known = [own for count, *own in answered if count <= point]
        log = SqliteLog(folder / "log.sqlite3")
        machine = Machine(log, load, Clock())
        machine.recover()
        if known:
            counts, told = known[-1]
            if "m" not in machine.names:
                found.append(f"{point}: the model is lost")
            else:
                hosted = machine.hosted("m")
                if any(hosted.counts[name] < counts[name] for name in counts):
                    found.append(f"{point}: {hosted.counts} where {counts} were acknowledged")
                elif hosted.served.told[: len(told)] != told:
                    found.append(f"{point}: other rows were learned")
        log.close()
    return found


@pytest.mark.parametrize(("synchronous", "lost"), [("FULL", False), ("NORMAL", True)])
def test_what_was_acknowledged_survives_a_loss_of_power(tmp_path, synchronous, lost):
    """With FULL nothing may be missing; NORMAL is the control, in which something must be."""
    run, after = tmp_path / "run", tmp_path / "after"
    run.mkdir(), after.mkdir()
    operations, answered = recorded(run, synchronous, count=8)
    first = answered[0][0]  # the tables are made before anything can be asked
    points = range(first, len(operations) + 1, 3)
    assert bool(problems(after, operations, answered, points, seed=0)) == lost


@pytest.mark.hard
def test_power_is_lost_three_hundred_times(tmp_path):
    """With checkpoints of the write-ahead log in between, which rewrite the file itself."""
    run, after = tmp_path / "run", tmp_path / "after"
    run.mkdir(), after.mkdir()
    operations, answered = recorded(run, "FULL", count=400)
    chosen = generator_of(0).integers(0, len(operations) + 1, 300)
    assert problems(after, operations, answered, chosen.tolist(), seed=1) == []
