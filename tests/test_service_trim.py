"""Old records are deleted, and the process is killed before the next snapshot: nothing is lost."""

import base64
import json

import msgspec
import numpy as np
import pytest

import driftline as dl
from driftline.app.service import export
from driftline.app.service.bodies import ModelBody
from driftline.app.service.catch_up import CatchUp
from driftline.app.service.clock import LogClock
from driftline.app.service.log import SqliteLog
from driftline.app.service.machine import Machine
from driftline.app.service.making import model_of
from driftline.app.service.requests import (
    Ask,
    Challenge,
    Create,
    Delete,
    Expire,
    Learn,
    RefusedError,
    Tell,
)
from driftline.app.service.served import Feedback, served_from
from driftline.app.service.server import load
from driftline.app.service.snapshots import SnapshotFolder
from driftline.app.service.tokens import Tokens
from driftline.app.service.writer import Limits, Writer
from driftline.state import archive

KEPT = Limits(keep_seconds=10.0)


class Killed:
    """A machine on a folder, whose process is killed at any time; no thread is started."""

    def __init__(self, folder):
        self.folder, self.now, self.log = folder, 1000, None
        self.start()

    def start(self, limits=KEPT):
        """Kill the process, and start it again."""
        if self.log is not None:
            self.log.close()
        self.log = SqliteLog(self.folder / "log.sqlite3")
        self.snapshots = SnapshotFolder(self.folder / "snapshots", self.log, served_from)
        self.tokens = Tokens(b"a secret", limits.keep_seconds)
        clock = LogClock(self.log.last()[2], lambda: self.now, lambda: self.now)
        self.machine = Machine(self.log, load, clock, self.tokens)
        self.machine.recover(self.snapshots)
        given = (self.machine, self.log, self.snapshots, clock, limits)
        self.writer = Writer(*given, failed=lambda error: None)

    def process(self, request):
        self.now += 1000
        (made,) = self.machine.process([request])
        assert made.status < 300, made
        return made

    def snapshot(self):
        """Write both generations of every model's state."""
        self.writer.snapshot(wait=True)
        self.writer.snapshot(wait=True)

    def trim(self):
        while self.writer._trim():
            pass
        return self.log.trimmed

    def state(self):
        known = sorted(self.machine.models.items())
        return self.machine.names, [archive.packed(*own.to_saved()) for _, own in known]


@pytest.fixture
def killed(tmp_path):
    made = Killed(tmp_path)
    create(made, "m")
    for i in range(5):
        learn(made, f"l{i}")
    yield made
    made.log.close()


def create(killed, name):
    killed.process(Create(name, model_of(ModelBody(name, "y", {"x": "number"}, learner="fast"))))


def learn(killed, id, model="m"):
    label = "yes" if len(id) % 2 or id[-1] in "13579" else "no"
    killed.process(Learn(model, [id], [{"x": killed.now % 7}], [Feedback(label)]))


def damage(killed, model, generations=2):
    """Flip a bit in the newest files of a model."""
    for own in killed.log.snapshots()[model][:generations]:
        path = killed.folder / "snapshots" / own.file
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 1
        path.write_bytes(content)


def check_killed(killed):
    """The same state is there after a kill."""
    before = killed.state()
    killed.start()
    assert killed.state() == before


def test_a_label_that_comes_after_keep_is_not_lost(killed):
    killed.process(Ask("m", ["a"], [{"x": 3.0}]))
    killed.snapshot()
    killed.now += 20_000
    killed.process(Tell("m", ["a"], [Feedback("yes")]))
    assert killed.trim()
    check_killed(killed)
    assert killed.machine.hosted("m").served.score.rounds == 6
    killed.snapshot()
    killed.now += 20_000
    learn(killed, "later")
    killed.trim()
    assert killed.log.body(7) is None  # the row goes with the next snapshot


def test_after_a_long_rest_records_are_not_numbered_anew(killed):
    """All that came is old, and in snapshots; what comes later has numbers that are in none."""
    killed.snapshot()
    killed.now += 20_000
    assert killed.trim() == 5  # but for the last record
    killed.start()
    learn(killed, "later")
    assert killed.machine.seq == 7
    check_killed(killed)


def test_rows_of_deleted_models_go_when_no_model_is_left(killed):
    killed.process(Delete("m"))
    killed.now += 20_000
    killed.process(Create("n", killed.machine.log.body(1)))
    killed.process(Delete("n"))
    assert killed.trim() == 7
    assert [record.seq for record in killed.log.read()] == [8, 9]
    check_killed(killed)


def test_a_damaged_snapshot_of_a_model_that_rests_is_written_once(killed):
    killed.snapshot()
    (newest, older) = killed.log.snapshots()[1]
    damage(killed, 1, generations=1)
    killed.start()
    for _ in range(3):
        killed.writer.snapshot(wait=True)
    assert {own.file for own in killed.log.snapshots()[1]} == {newest.file, older.file}
    assert not killed.snapshots.damaged
    assert killed.snapshots.verified == {newest.file, older.file}


def test_many_models_that_rest_are_one_commit(killed, monkeypatch):
    for name in ("a", "b", "c"):
        create(killed, name)
    killed.snapshot()
    learn(killed, "later")
    commits, commit = [], killed.log._commit
    monkeypatch.setattr(killed.log, "_commit", lambda work: commits.append(1) or commit(work))
    killed.writer.snapshot(wait=True)
    assert len(commits) == 2  # what holds on, and what was written


def test_rows_that_were_forgotten_stay_so(killed):
    killed.process(Ask("m", ["a"], [{"x": 3.0}]))
    killed.snapshot()
    killed.now += 20_000
    learn(killed, "later")
    killed.process(Expire("m", killed.now - 1000))
    assert killed.machine.hosted("m").served.outstanding == 0
    killed.trim()
    check_killed(killed)


def test_a_challenger_does_not_know_what_was_deleted_before_its_record(killed):
    """It has read a row ahead that a replay, from its record on, does not find."""
    killed.process(Ask("m", ["a"], [{"x": 3.0}]))
    killed.now += 20_000
    learn(killed, "b")
    killed.process(Tell("m", ["a"], [Feedback("yes")]))
    killed.snapshot()
    content = killed.log.body(1)
    ahead = CatchUp(1, "c", load(content), 8, killed.log.deleted)
    ahead.read_ahead(killed.log)
    assert ahead.reader.served.score.rounds == 1
    assert killed.trim() == 7
    killed.process(Challenge("m", "c", content, 8, ahead))
    assert killed.machine.hosted("m").reader("c").served.score.rounds == 0
    check_killed(killed)


def test_nothing_is_deleted_while_a_challenger_reads(killed):
    killed.snapshot()
    killed.now += 20_000
    killed.writer.hold_trimming(Challenge("m", "c", killed.log.body(1), 0))
    assert killed.trim() == 0
    killed.writer.trims = True
    assert killed.trim() == 5


def test_a_row_that_waited_longer_moves_no_end_of_the_log_back(killed):
    killed.process(Ask("m", ["a"], [{"x": 3.0}]))
    for i in range(3):
        learn(killed, f"b{i}")
    killed.snapshot()
    killed.now += 20_000
    trimmed = killed.trim()
    assert trimmed > 7 and killed.log.body(7) is not None
    killed.process(Tell("m", ["a"], [Feedback("yes")]))
    killed.snapshot()
    killed.now += 20_000
    killed.process(Ask("m", ["c"], [{"x": 3.0}]))
    assert killed.trim() >= trimmed and killed.log.body(7) is None
    killed.start()
    assert killed.log.trimmed >= trimmed
    check_killed(killed)


def test_a_challenger_keeps_what_it_has_read(killed):
    killed.snapshot()
    killed.process(Challenge("m", "c", killed.machine.log.body(1), 1))
    killed.now += 20_000
    learn(killed, "later")
    killed.trim()
    check_killed(killed)


def test_a_deleted_model_does_not_come_back(killed):
    create(killed, "other")
    killed.process(Ask("m", ["waits"], [{"x": 3.0}]))
    killed.process(Delete("m"))
    create(killed, "m")
    learn(killed, "new")
    killed.snapshot()
    killed.now += 20_000
    learn(killed, "later")
    killed.snapshot()
    killed.trim()
    check_killed(killed)
    assert killed.machine.hosted("m").served.score.rounds == 2
    assert killed.log.body(1) is None and killed.log.body(8) is None


def test_a_model_of_the_same_name_as_a_deleted_one_is_found_again(killed):
    """The snapshot of another model is damaged, so that all of the log is read."""
    create(killed, "doomed")
    killed.process(Delete("doomed"))
    create(killed, "doomed")
    learn(killed, "new", "doomed")
    killed.snapshot()
    damage(killed, 1)
    check_killed(killed)
    assert killed.machine.hosted("doomed").served.score.rounds == 1


def test_a_damaged_snapshot_is_not_replaced_by_what_is_left_of_the_log(killed):
    killed.snapshot()
    killed.now += 20_000
    learn(killed, "later")
    assert killed.trim()
    damage(killed, 1)
    killed.start()
    with pytest.raises(RefusedError, match="records up to 6 were deleted") as refused:
        killed.machine.hosted("m")
    assert refused.value.status == 503


def test_an_id_that_is_the_name_of_a_challenger_waits_on(killed):
    killed.process(Ask("m", ["polyak"], [{"x": 3.0}]))
    killed.process(Challenge("m", "polyak", killed.machine.log.body(1), 1))
    killed.snapshot()
    killed.now += 20_000
    learn(killed, "later")
    assert killed.trim()
    (made,) = killed.process(Tell("m", ["polyak"], [Feedback("yes")])).items
    assert made["status"] == 200


def test_many_rows_that_wait_hold_up_nothing(killed):
    ids = [f"a{i}" for i in range(20)]
    killed.process(Ask("m", ids, [{"x": 3.0}] * 20))
    learn(killed, "behind them")
    killed.snapshot()
    killed.now += 20_000
    learn(killed, "later")
    before = killed.machine.at - 10_000
    while killed.log.trim(before, killed.log.snapshots()[1][-1].seq, 0, most=10):
        pass
    assert killed.log.body(27) is None
    assert killed.log.body(7) is not None


def test_nothing_is_deleted_for_a_snapshot_of_which_no_model_can_be_made(killed):
    def refuse(about, arrays):
        raise dl.InputError("what a scaling remembers must be finite")

    killed.snapshots._load = refuse
    killed.snapshot()
    killed.now += 20_000
    learn(killed, "later")
    assert killed.trim() == 0


def test_a_ticket_from_before_a_kill_is_known_after_classes_were_added(killed):
    """A row is asked for after the snapshot of a learner that has grown; its ticket is stored."""
    killed.process(Ask("m", ["a"], [{"x": 1.0}]))
    killed.process(Learn("m", [""], [{"x": 1.0}], [Feedback("a third class")]))
    killed.process(Tell("m", ["a"], [Feedback("yes")]))
    killed.snapshot()
    killed.process(Ask("m", ["b"], [{"x": 2.0}]))
    learn(killed, "later")
    check_killed(killed)
    killed.snapshot()
    killed.start()
    (made,) = killed.process(Tell("m", ["b"], [Feedback("no")])).items
    assert made["status"] == 200


def issued(killed, id):
    """Return a label by a token; its ticket is nobody's, so that the row is learned from."""
    number, at = killed.machine.hosted("m").number, killed.machine.now()
    return Tell("m", [id], [Feedback("yes")], [killed.tokens.issue(number, id, {}, {"x": 1.0}, at)])


def told(killed, request):
    """Return the status, and whether it was learned from just now."""
    (made,) = killed.process(request).items
    return made["status"], made["status"] == 200 and "duplicate" not in made


def test_a_token_is_good_for_as_long_as_records_are_kept(killed):
    early, late = issued(killed, "early"), issued(killed, "late")
    killed.now += 8_000
    assert told(killed, early) == (200, True)
    killed.now += 1_000
    assert told(killed, late) == (410, False)
    assert told(killed, early) == (200, False)  # whose answer is still known
    killed.now += 50_000
    ahead = issued(killed, "ahead")
    killed.now -= 50_000  # the clock was wrong
    assert told(killed, ahead) == (410, False)
    killed.now += 45_000
    assert told(killed, ahead) == (200, True)


def test_a_label_that_was_told_long_after_its_row_is_remembered(killed):
    """Its row is deleted at once, which is older than ids that are forgotten."""
    killed.process(Ask("m", ["a"], [{"x": 3.0}]))
    killed.now += 25_000
    token = issued(killed, "a")
    killed.process(Tell("m", ["a"], [Feedback("yes")]))
    killed.snapshot()
    killed.trim()
    assert killed.log.body(7) is None
    assert told(killed, token) == (410, False)
    assert told(killed, Tell("m", ["a"], [Feedback("yes")])) == (410, False)


@pytest.mark.parametrize("seed", range(12))
def test_no_token_is_learned_from_twice(killed, seed):
    """Whatever the clock does, and however long records are kept after a restart."""
    generator = np.random.default_rng(seed)
    tokens, learned = {}, dict.fromkeys(range(400), 0)
    for count in range(60):
        kind = generator.integers(8)
        if kind < 3:
            tokens[count] = issued(killed, f"t{count}")
        elif kind == 3:
            limits = Limits(keep_seconds=float(generator.choice([3.0, 10.0, 40.0, np.inf])))
            killed.snapshot()
            killed.start(limits)
        elif np.isfinite(killed.writer._limits.keep_seconds):
            killed.snapshot()
            killed.trim()
        killed.now += int(generator.choice([0, 2_000, 9_000, 30_000, -20_000]))
        for number in generator.permutation(list(tokens))[:6].tolist():
            learned[number] += told(killed, tokens[number])[1]
    assert max(learned.values()) == 1
    assert killed.log.forgotten > 0


def lines(parts):
    return [json.loads(line) for line in b"".join(parts).splitlines()]


def test_an_export_that_is_read_slowly_holds_up_nothing(killed, monkeypatch):
    """It has what was there when it began, and the write-ahead log is emptied meanwhile."""
    monkeypatch.setattr(export, "PIECE", 2)
    expected = lines(export.exported(killed.log, 1, 0, "json"))
    assert [own["seq"] for own in expected] == [1, 2, 3, 4, 5, 6]
    slow = export.exported(killed.log, 1, 0, "json")
    made = [next(slow)]
    learn(killed, "meanwhile")
    busy, *_ = killed.log._write.execute("pragma wal_checkpoint(truncate)").fetchone()
    assert not busy
    assert killed.log.path.with_name("log.sqlite3-wal").stat().st_size == 0
    assert lines([*made, *slow]) == expected
    assert lines(export.exported(killed.log, 1, 6, "json"))[0]["id"] == "meanwhile"


def test_records_that_are_deleted_during_an_export_are_missing_and_no_others(killed, monkeypatch):
    monkeypatch.setattr(export, "PIECE", 2)
    killed.process(Ask("m", ["waits"], [{"x": 3.0}]))
    expected = lines(export.exported(killed.log, 1, 0, "json"))
    slow = export.exported(killed.log, 1, 0, "json")
    made = [next(slow)]
    killed.snapshot()
    killed.now += 20_000
    learn(killed, "later")
    assert killed.trim() == 6
    assert lines([*made, *slow]) == [*expected[:2], expected[6]]  # the row waits for its label


def test_a_signed_token_of_other_content_is_refused(killed):
    content = msgspec.msgpack.encode([7])
    token = base64.urlsafe_b64encode(killed.tokens._signature(content) + content).decode()
    assert told(killed, Tell("m", ["c"], [Feedback("yes")], [token])) == (422, False)
