"""A model that fails is taken out of service; the others go on, and a restart tries again."""

import time

import pytest

import driftline as dl
from driftline.app.service.catch_up import CatchUp
from driftline.app.service.log import LogFailedError, SqliteLog
from driftline.app.service.machine import Machine
from driftline.app.service.requests import Ask, Challenge, Create, Delete, Expire, Learn, Tell
from driftline.app.service.served import Feedback
from driftline.app.service.writer import Limits
from tests.service import call, client, serving, within
from tests.simulation import POISON, Diary

COLUMNS = {"x": "number"}
#: How learners say that they cannot allocate their weights.
LACK = dl.InputError("a learner needs 9 GiB of memory, which is not available")
LACK.__cause__ = MemoryError()
ERRORS = [
    MemoryError("simulated"),
    LACK,
    RecursionError("simulated"),
    AttributeError("a fault of ours"),
    dl.TornError("members stand after different rounds"),
]


class Memory:
    """Says when learners run out of memory."""

    error = None

    def __call__(self):
        if self.error is not None:
            raise self.error


@pytest.fixture
def played(tmp_path):
    """Two models, of which one fails when it is told to; and a way to start them again."""
    fault, logs = Memory(), []

    def start():
        while logs:
            logs.pop().close()
        logs.append(SqliteLog(tmp_path / "log.sqlite3"))
        faults = iter([fault])
        machine = Machine(logs[0], lambda content: Diary(fault=next(faults, str)), lambda: 1000)
        machine.recover()
        return machine

    machine = start()
    machine.process([Create("m", b""), Create("n", b"")])
    machine.process([Ask("m", ["a", "b"], ["row a", "row b"]), Ask("n", ["a"], ["row a"])])
    yield machine, fault, start
    logs.pop().close()


WORK = {
    "ask": Ask("m", ["c"], ["row c"]),
    "tell": Tell("m", ["a"], [Feedback("yes")]),
    "learn": Learn("m", ["l"], ["row l"], [Feedback("yes")]),
    "challenge": Challenge("m", "other", b"", 0),
}


@pytest.mark.parametrize("error", ERRORS, ids=repr)
@pytest.mark.parametrize("what", WORK)
def test_whatever_fails_takes_its_model_out_and_no_other(played, what, error, capfd):
    machine, fault, start = played
    fault.error = error
    made, told = machine.process([WORK[what], Tell("n", ["a"], [Feedback("no")])])
    status = made.status if made.items is None else made.items[0]["status"]
    if what == "challenge":  # a new learner, which does not fail
        assert status == 201
        return
    assert (status, told.items[0]["status"]) == (503, 200)
    assert "model 'm' is out of service: record" in capfd.readouterr().err
    for request in (*WORK.values(), Expire("m", 5000)):
        assert machine.process([request])[0].status == 503
    before = machine.hosted("n").to_saved()
    again = start()
    assert "m" in {own.name for own in again.quarantined.values()}
    assert again.hosted("n").to_saved() == before
    fault.error = None
    again = start()  # there is memory again: what was acknowledged or committed is there
    assert not again.quarantined and again.hosted("n").to_saved() == before
    assert again.hosted("m").counts["asked"] == 2 + (what == "ask")
    assert len(again.hosted("m").served.told) == (what != "ask")


def test_nothing_of_it_is_in_the_way_of_others(played):
    """Its tickets are not packed, its name stays its own, and it can be deleted."""
    machine, fault, start = played
    fault.error = MemoryError()
    machine.process([WORK["learn"]])
    machine.flush()
    assert machine.process([Create("m", b"")])[0].status == 409
    assert machine.process([Delete("m")])[0].status == 200
    assert machine.process([Delete("m")])[0].status == 404
    assert machine.process([Create("m", b"")])[0].status == 201
    fault.error = None
    again = start()
    assert not again.quarantined
    assert again.hosted("m").number == machine.hosted("m").number


def test_a_model_whose_tickets_cannot_be_written_is_alone(played, capfd):
    """Its row would else be learned from without its ticket, as no replay does."""
    machine, fault, start = played
    fault.error = MemoryError("simulated")
    machine.flush()
    assert "its tickets cannot be written: MemoryError('simulated')" in capfd.readouterr().err
    assert [own.name for own in machine.quarantined.values()] == ["m"]
    fault.error = None
    tells = [Tell(name, ["a"], [Feedback("yes")]) for name in ("m", "n")]
    assert [made.status for made in machine.process(tells)] == [503, 200]
    before = machine.hosted("n").to_saved()
    machine = start()
    assert machine.hosted("n").to_saved() == before
    assert machine.process(tells[:1])[0].items[0]["learned"]


def test_tickets_of_a_deleted_model_are_not_written(played):
    machine, fault, _ = played
    machine.process([Delete("m")])
    fault.error = MemoryError("simulated")
    machine.flush()
    assert not machine.quarantined
    assert all(not own.kept for own in machine.log.stored(3))


def test_a_record_that_nobody_can_apply_is_no_end(played):
    machine, _, start = played
    assert (
        machine.process([Learn("m", [""], [POISON], [Feedback("yes")])])[0].items[0]["status"]
        == 503
    )
    for _ in range(2):
        machine = start()
        assert [own.name for own in machine.quarantined.values()] == ["m"]
        assert machine.process([Tell("n", ["a"], [Feedback("yes")])])[0].items[0]["learned"] is True


@pytest.mark.parametrize("kind", [1, 2, 3])
@pytest.mark.parametrize(
    "damage",
    [
        *("body=x'00ff'", "kind=77", "kind='x'", "kind=-1", "id=cast(x'ff' as text)", "at='x'"),
        *("at=-1", "at=9223372036854775807"),
    ],
)
def test_a_damaged_record_is_no_end(played, kind, damage):
    machine, _, start = played
    machine.process([WORK["tell"]])
    if (kind, damage[:4]) == (1, "body"):
        pytest.skip("a diary has no body")
    before = machine.hosted("n").to_saved()
    machine.log._write.execute(f"update log set {damage} where model=1 and kind={kind}")
    machine = start()
    assert "record" in machine.quarantined[1].why
    assert machine.hosted("n").to_saved() == before
    nameless = kind == 1 and damage.startswith("id")
    status = machine.process([Challenge("m", "other", b"", 0)])[0].status
    assert status == (404 if nameless else 503)
    assert machine.log.last()[2] == 1000 and machine.now() == 1000
    assert machine.process([Tell("n", ["a"], [Feedback("yes")])])[0].items[0]["learned"]


@pytest.mark.parametrize("damage", ["kind=77", "id=cast(x'ff' as text)"])
def test_who_reads_the_log_later_is_refused_a_damaged_record(played, damage):
    machine, *_ = played
    machine.log._write.execute(f"update log set {damage} where model=1 and kind=2")
    with pytest.raises(dl.InputError, match="record 3 is damaged"):
        CatchUp(1, "other", Diary(), 0).read_ahead(machine.log)
    assert not machine.quarantined


def test_a_log_whose_own_words_are_damaged_ends_the_start(tmp_path):
    with serving(tmp_path / "data"):
        pass
    log = SqliteLog(tmp_path / "data" / "log.sqlite3")
    log.put_meta("clock", b"\x00")
    log.close()
    with pytest.raises(LogFailedError, match="cannot be read"), serving(tmp_path / "data"):
        pass


def test_without_memory_for_the_group_nothing_is_written(played, monkeypatch):
    machine, _, _ = played

    def append(batch):
        raise MemoryError

    with monkeypatch.context() as patched:
        patched.setattr(machine.log, "append", append)
        (made,) = machine.process([WORK["tell"]])
        assert (made.status, machine.quarantined) == (503, {})
    assert machine.process([WORK["tell"]])[0].items[0]["learned"] is True


def test_a_service_with_a_model_that_fails(tmp_path, monkeypatch):
    """Over HTTP: the other model serves, predicts by tokens and snapshots, and the end is clean."""
    folder = tmp_path / "data"
    with serving(folder, limits=Limits(snapshot_seconds=0.1)) as (address, server):
        own = client(address)
        for name in ("m", "n"):
            own.create(name, "y", columns=COLUMNS, learner="fast")
            own.predict(name, {"x": 1.0}, id="a")
        served = server.machine.hosted("m").served

        def tell(tickets, given):
            raise MemoryError("simulated")

        monkeypatch.setattr(served, "tell", tell)
        look = "/models/m/predict?mode=token"  # by a copy, which goes
        assert call(address, "POST", look, {"row": {"x": 1.0}})[0] == 200
        with pytest.raises(dl.ServiceError, match="out of service") as failed:
            own.label("m", "a", "yes")
        assert failed.value.status == 503
        bodies = {"predict": {"row": {"x": 1.0}}, "labels": {"id": "a", "label": "yes"}}
        bodies |= {"predict?mode=token": bodies["predict"], "look": bodies["predict"]}
        for path, body in (bodies | {"learn": {"row": {"x": 1.0}, "label": "no"}}).items():
            assert call(address, "POST", f"/models/m/{path}", body)[0] == 503
        assert own.label("n", "a", "yes")["learned"]
        states = {state["name"]: state for state in own.models()}
        assert states["m"]["quarantined"].startswith("record") and "quarantined" not in states["n"]
        assert b'driftline_quarantined{model="m"} 1.0' in call(address, "GET", "/metrics")[1]
        assert call(address, "GET", "/health")[0] == 200
    with serving(folder) as (address, _):
        assert client(address).model("m")["counts"]["told"] == 1
        assert client(address).label("m", "a", "yes")["duplicate"]


def test_whoever_watches_and_fails_ends_nothing(tmp_path):
    with serving(tmp_path / "data") as (address, server):
        own = client(address)
        own.create("m", "y", columns=COLUMNS, learner="fast")

        def fail(*_):
            raise MemoryError("simulated")

        server.writer._publish, server.machine.flush = fail, fail
        server.writer._next_snapshot = 0.0
        assert own.learn("m", {"x": 1.0}, "yes")["learned"]
        assert own.learn("m", {"x": 1.0}, "yes")["learned"]
        del server.machine.flush


def test_a_model_that_has_no_state_to_save_is_alone(tmp_path, monkeypatch):
    """The other one has snapshots and copies, and the end is clean."""
    with serving(tmp_path / "data", limits=Limits(snapshot_seconds=0.05)) as (address, server):
        own = client(address)
        for name in ("m", "n"):
            own.create(name, "y", columns=COLUMNS, learner="fast")
            assert call(address, "POST", f"/models/{name}/look", {"row": {"x": 1.0}})[0] == 200

        def fail():
            raise dl.InputError("members stand after different rounds")

        monkeypatch.setattr(server.machine.hosted("m").served, "to_saved", fail)
        own.learn("m", {"x": 1.0}, "yes")
        own.learn("n", {"x": 1.0}, "yes")
        number = server.machine.names["n"]
        while not any(
            own.seq == server.machine.seq
            for own in within(server, server.log.snapshots).get(number, ())
        ):
            time.sleep(0.01)
        states = {state["name"]: state for state in own.models()}
        assert "it has no state to save" in states["m"]["quarantined"]
        assert own.learn("n", {"x": 2.0}, "no")["learned"]
    with serving(tmp_path / "data") as (address, server):
        assert client(address).model("m")["counts"]["learned"] == 1
        assert server.replayed < 6
