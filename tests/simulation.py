"""A simulator of the service: histories of clients, crashes and lost writes, from a seed.

The machine and the clock of its log are the real ones. The log, the snapshots, wall clock and
monotonic clock are simulated, and in place of a learner there is one that writes down what it was
told: a list, in which anything that is lost, doubled or out of order can be seen.

A crash may come at every operation of the disk. What was committed is kept; with ``synchronous``
NORMAL, a crash may lose the last commits, as with SQLite: that is the control, which must fail.
The wall clock jumps by minutes or by 400 days and back; one of the two snapshots of a model may be
damaged; old records are deleted; a learner may run out of memory anywhere, so that its model is
quarantined, and one model has a row that nobody can learn from.
"""

from __future__ import annotations

import io
import traceback
from collections import Counter
from contextlib import redirect_stderr
from unittest.mock import patch

import numpy as np

from driftline.app.service.catch_up import CatchUp
from driftline.app.service.clock import DAY, HOUR, LogClock
from driftline.app.service.hosted import Hosted
from driftline.app.service.log import GENERATIONS, DiskFullError, Generation
from driftline.app.service.machine import Machine
from driftline.app.service.records import EXPIRED, Kind, Mark
from driftline.app.service.requests import (
    Ask,
    Challenge,
    Create,
    Delete,
    Expire,
    Learn,
    Promote,
    Tell,
)
from driftline.app.service.served import Asked, Feedback, Score, Served
from driftline.app.service.snapshots import covered_by, due
from driftline.app.service.tokens import Tokens
from driftline.errors import InputError

MINUTE = 60_000
#: When rows without a label expire, and for how long records are kept.
EXPIRY, KEEP = 8 * HOUR, 16 * HOUR
LABELS = ("yes", "no")
#: A row that no learner survives, in every replay.
POISON = "poison"


class Crash(BaseException):
    """The process ends here."""


class Chance:
    """Random numbers, drawn many at a time."""

    def __init__(self, seed):
        self._generator, self._left = np.random.default_rng(seed), []

    def uniform(self):
        if not self._left:
            self._left = self._generator.random(256).tolist()
        return self._left.pop()

    def below(self, count):
        return int(self.uniform() * count)

    def happens(self, probability):
        return self.uniform() < probability

    def chosen(self, several):
        return several[self.below(len(several))]


class Diary(Served):
    """Writes down what it was told; answers how much that is, so that answers tell states apart.

    ``fault`` is called before everything that changes the diary, and in the middle of it.
    """

    def __init__(self, told=(), waiting=(), asked=0, fault=lambda: None):
        self.told, self.waiting, self.asked = list(told), set(waiting), asked
        self.fault = fault

    def check_rows(self, rows):
        if any(not isinstance(row, str) for row in rows):
            raise InputError("a row is a text")
        return list(rows)

    def check_size(self, more=0):
        pass

    def check_feedback(self, given, beside=frozenset()):
        if any(one.label not in LABELS for one in given):
            raise InputError("a label is yes or no")
        return beside

    def admit(self, ticket):
        self.fault()
        self.asked += 1
        self.waiting.add(self.asked)
        return self.asked, ticket[1]

    def ask(self, rows, numbers=None):
        if "refused later" in rows:
            raise InputError("only found when it is applied")
        made = []
        for row in rows:
            self.fault()
            self.asked += 1
            self.waiting.add(self.asked)
            made.append(Asked({"prediction": [self.asked, len(self.told)]}, (self.asked, row)))
        return made

    def look(self, rows):
        return [{"prediction": [self.asked, len(self.told)]} for _ in rows]

    def tell(self, tickets, given):
        if any(number not in self.waiting for number, _ in tickets):
            raise InputError("a ticket is not outstanding")
        for (number, row), one in zip(tickets, given, strict=True):
            self.waiting.remove(number)
            self.fault()
            self.told.append((row, one.label))

    def learn(self, rows, given):
        if "refused later" in rows:
            raise InputError("only found when it is applied")
        self.fault()
        if POISON in rows:
            raise MemoryError("as always")
        self.told += [(row, one.label) for row, one in zip(rows, given, strict=True)]
        return [len(self.told)] * len(rows)

    def forget(self, tickets):
        self.fault()
        self.waiting -= {number for number, _ in tickets}

    def pack(self, ticket):
        self.fault()
        return f"{ticket[0]} {ticket[1]}".encode()

    def unpack(self, content):
        self.fault()
        number, row = content.decode().split(" ", 1)
        return int(number), row

    def to_saved(self):
        return {"told": list(self.told), "waiting": set(self.waiting), "asked": self.asked}, {}

    @property
    def score(self):
        return Score(len(self.told), 0.0, {})

    @property
    def outstanding(self):
        return len(self.waiting)

    @property
    def alarms(self):
        return []

    def about(self):
        return {"task": "diary"}


class MemoryLog:
    """A log in memory, of which a crash leaves what was durable."""

    full = False

    def __init__(self, disk):
        self._disk = disk
        self.records, self.marks, self.answers, self.trimmed, self.forgotten = disk.durable()
        self.deleted = 0

    def append(self, entries):
        disk = self._disk
        disk.reached()
        if disk.full:
            raise DiskFullError("simulated")
        self.records += entries.records
        self.marks.update(entries.marks)
        store(self.answers, entries.stored)
        disk.commit(lambda kept: kept.append(entries))
        disk.reached()

    def trim(self, before, covered, forget):
        """Delete old records that are in snapshots, as the real log does, by its own words."""
        later = {record.kind for record in self.records if record.seq > covered}
        if Kind.CHALLENGE in later:
            return
        marks, old, created = self.marks, [], self.created()
        for record in self.records[:-1]:
            if record.seq > covered or record.at >= before or record.seq in created:
                continue
            told = marks[record.model, record.id].told if record.kind is Kind.ASK else 0
            waits = record.kind is Kind.ASK and (told == 0 or told > covered)
            if waits or (told == EXPIRED and Kind.EXPIRE in later):
                continue
            old.append(record)
        old = old[:40]
        self._disk.reached()
        self._disk.commit(lambda kept: kept.delete(old, before, forget))
        self.deleted += len(old)
        state = self._disk.durable()
        self.records, self.marks, self.answers, self.trimmed, self.forgotten = state
        self._disk.reached()

    def find(self, model, id):
        return self.marks.get((model, id))

    def stored(self, seq):
        return list(self.answers.get(seq, {}).values())

    def read(self, after=0):
        yield from [record for record in self.records if record.seq > after]

    def body(self, seq):
        return next((r.body for r in self.records if r.seq == seq), None)

    def last(self):
        if not self.records:
            return 0, 0, 0
        return self.records[-1].seq, self.records[-1].batch, self.records[-1].at

    def created(self):
        gone = {record.model for record in self.records if record.kind is Kind.DELETE}
        made = (record for record in self.records if record.kind is Kind.CREATE)
        return {record.model: record.id for record in made if record.model not in gone}

    def waiting(self, model, before, most=10_000):
        return [
            (record.id, record.seq)
            for record in self.records
            if record.kind is Kind.ASK and record.model == model and record.at < before
            if self.marks[model, record.id].told == 0
        ][:most]


def store(answers, several):
    """Write answers and tickets, which may come one after the other."""
    for own in several:
        known = answers.setdefault(own.seq, {}).get(own.learner, own)
        made = own._replace(answer=own.answer or known.answer, kept=own.kept or known.kept)
        answers[own.seq][own.learner] = made


class Kept:
    """What commits leave behind."""

    def __init__(self):
        self.records, self.marks, self.answers, self.gone = [], {}, {}, {}
        self.trimmed = self.forgotten = 0

    def append(self, entries):
        self.records += entries.records
        self.marks.update(entries.marks)
        store(self.answers, entries.stored)

    def delete(self, old, before, forget):
        if not old:
            for key in [key for key, at in self.gone.items() if at < forget]:
                del self.gone[key], self.marks[key]
                self.forgotten = max(self.forgotten, forget)
            return
        seqs = {record.seq for record in old}
        self.records = [record for record in self.records if record.seq not in seqs]
        self.trimmed = max(self.trimmed, old[-1].seq)
        for record in old:
            self.answers.pop(record.seq, None)
            if record.id and record.kind in (Kind.ASK, Kind.TELL, Kind.LEARN):
                self.marks[record.model, record.id] = Mark(0, EXPIRED, b"", b"")
                self.gone[record.model, record.id] = before


class Disk:
    """Commits, of which a crash may lose the last ones if they were not synced."""

    def __init__(self, chance, synchronous):
        self._chance, self._full_sync = chance, synchronous == "FULL"
        self._commits, self._kept, self.load_saved = [], Kept(), None
        self.countdown, self.full = None, False
        #: Files by name, and the snapshots of every model, the newest first.
        self.files, self.known, self.clock = {}, {}, (0, [])

    def reached(self):
        """Crash if it is time to."""
        if self.countdown is not None:
            self.countdown -= 1
            if self.countdown < 0:
                self.countdown = None
                raise Crash

    def commit(self, work):
        if self._full_sync:
            work(self._kept)
        else:
            self._commits.append(work)

    def lose(self):
        """Lose what was not synced: a loss of power."""
        if not self._full_sync and self._commits:
            kept = len(self._commits) - self._chance.below(min(3, len(self._commits)) + 1)
            del self._commits[kept:]

    def durable(self):
        kept = self._kept
        if not self._full_sync:
            kept = Kept()
            for work in self._commits:
                work(kept)
        answers = {seq: own.copy() for seq, own in kept.answers.items()}
        return list(kept.records), kept.marks.copy(), answers, kept.trimmed, kept.forgotten

    def write_clock(self, made):
        self.reached()
        self.clock = made
        self.reached()

    # -- snapshots

    def write_snapshot(self, machine):
        """Write what is due, as the writer does."""
        machine.flush()
        wanted, hold = due(self.known, machine.models, machine.seq)
        made = []
        for number, former in wanted.items():
            about, arrays = machine.models[number].to_saved()
            name = f"{number} {machine.seq} {int(former.endswith('0'))}"
            self.files[name] = about, arrays
            made.append((number, Generation(name, about["at"][1], machine.seq)))
        for number, generation in (*hold, *made):
            self.reached()
            several = {own.file: own for own in self.known.get(number, ())}
            several[generation.file] = generation
            newest = sorted(several.values(), key=lambda own: (own.seq, own.file), reverse=True)
            self.known[number] = newest[:GENERATIONS]
        named = {own.file for several in self.known.values() for own in several}
        self.files = {name: saved for name, saved in self.files.items() if name in named}

    def load(self):
        """Return the states of models; one of the two may be damaged, and is written again."""
        made = []
        for several in self.known.values():
            if len(several) == GENERATIONS and self._chance.happens(0.2):
                several.pop(self._chance.below(2))
            saved = self.files[several[0].file]  # of which nobody changes anything
            made.append((Hosted.from_saved(*saved, self.load_saved), several[0].seq))
        return made


def load(content):
    return Diary()


class Clocks:
    """A wall clock that is sometimes wrong, and a monotonic clock that nobody can set."""

    def __init__(self, chance):
        self._chance, self.true = chance, 500 * DAY
        self._error, self._boot, self._wrong = 0, chance.below(DAY), 0

    def pass_by(self):
        """Let some time pass; the wall clock is far off for less than an hour at a time."""
        chance = self._chance
        passed = chance.chosen((0, 1, 1000, MINUTE, 20 * MINUTE, HOUR, 3 * HOUR, 11 * HOUR))
        if abs(self._error) > HOUR:
            passed = min(passed, 50 * MINUTE - self._wrong)
            self._wrong += passed
        self.true += passed
        if self._wrong >= 40 * MINUTE or chance.happens(0.2):
            far = not self._wrong and chance.happens(0.3)
            about = 400 * DAY if far else 20 * MINUTE
            self._error, self._wrong = chance.chosen((-about, 0, about)), 0

    def reboot(self):
        self._boot = self.true - self._chance.below(DAY)

    def wall(self):
        return self.true + self._error

    def monotonic(self):
        return self.true - self._boot


class History:
    """One history from a seed; :attr:`problems` is what was found wrong."""

    def __init__(self, seed, steps=12, synchronous="FULL"):
        self.chance = Chance(seed)
        self.disk, self.clocks = Disk(self.chance, synchronous), Clocks(self.chance)
        self.disk.load_saved = self._loaded
        self.steps, self.fresh = steps, self.chance.chosen((0, 2, 9))
        self.problems = []
        #: Requests of clients that were not answered yet, and may be sent again and again.
        self.pending = []
        self.sent, self.answers, self.learned, self.first_sent = {}, {}, {}, {}
        self.asked, self.count, self.expired = {"m": [], "n": []}, 0, set()
        self.machine, self.clock, self.faults = None, None, False
        self.made, self.poisoned = False, False

    def play(self):
        self._start()
        for _ in range(self.steps):
            self._step()
        self.disk.countdown, self.disk.full = None, False
        self._start()
        self.faults = False
        for _ in range(3):  # clients send until they are answered
            if self.pending:
                self._send(list(self.pending))
        self._check()
        return self.problems

    def _fault(self):
        """Run out of memory, sometimes."""
        if self.faults and self.chance.happens(0.003):
            lack = MemoryError("simulated")
            if self.chance.happens(0.5):  # as learners say it
                raise InputError("there is not enough memory") from lack
            raise lack

    def _loaded(self, about, arrays=None):
        return Diary(about["told"], about["waiting"], about["asked"], self._fault)

    def _load(self, content):
        return Diary(fault=self._fault)

    def _start(self):
        """Start the process; nothing fails while it reads its log."""
        self.faults = False
        self.pending = [_without_memory(request) for request in self.pending]
        log = MemoryLog(self.disk)
        own = (self.clocks.wall, self.clocks.monotonic, self.disk.clock, self.disk.write_clock)
        self.clock = LogClock(log.last()[2], *own)
        self.disk.countdown = None  # what fails before a first record is another start
        self.clock.settle()
        tokens = Tokens(b"", KEEP / 1000, self.clock.true)
        self.machine = Machine(log, self._load, self.clock, tokens, fresh=self.fresh)
        self.machine.recover(self.disk)
        for name in ("m", "n") if self.made else ("m", "n", "p"):
            if name not in self.machine.names:
                self.machine.process([Create(name, b"")])
        self.made, self.faults = True, True

    def _crash(self):
        self.disk.lose()
        self.disk.countdown = None
        if self.chance.happens(0.2):
            self.clocks.reboot()
        self._start()

    def _step(self):
        chance = self.chance
        self.clocks.pass_by()
        try:
            self.clock.settle()  # as the writer does every ten seconds, whatever comes
        except Crash:
            self._crash()
        self.disk.full = chance.happens(0.05)
        if chance.happens(0.25):
            self.disk.countdown = chance.below(4)
        self.pending = [
            own
            for own in self.pending
            if self.clocks.true - self.first_sent[_without_memory(own)] < KEEP
        ]
        for _ in range(1 + chance.below(3)):
            made = self._request()
            self.first_sent.setdefault(_without_memory(made), self.clocks.true)
            self.pending.append(made)
        some = [request for request in self.pending if chance.happens(0.7)]
        if some and chance.happens(0.2):
            some.append(chance.chosen(some))  # the same again, at the same time
        if chance.happens(0.3):
            some.reverse()
        try:
            if some:
                self._send(some)
            if chance.happens(0.3):
                self.disk.write_snapshot(self.machine)
            if chance.happens(0.3):
                self._tidy()
            if set(self.machine.quarantined) - {self.machine.names.get("p")}:
                if chance.happens(0.5):  # somebody starts it again
                    self._start()
        except Crash:
            self._crash()
        except DiskFullError:
            pass

    def _tidy(self):
        """Forget old rows and delete old records, as the writer does."""
        before = self.clock.before
        if self.clock.settle():
            return
        for name in list(self.machine.names):
            self.machine.process([Expire(name, before(EXPIRY))])
        machine = self.machine
        covered = covered_by(self.disk.known, machine.models, lambda file: True, machine.seq)
        if covered and not self.machine.quarantined:
            self.machine.log.trim(before(KEEP), covered, before(2 * KEEP))

    def _request(self):
        chance, kind = self.chance, self.chance.uniform()
        model = "m" if chance.happens(0.8) else "n"
        if kind < 0.45 or not self.asked[model]:
            ids = [self._new_id() for _ in range(1 + chance.below(2))]
            rows = ["refused later" if chance.happens(0.02) else f"row {id}" for id in ids]
            for id, row in zip(ids, rows, strict=True):
                self.asked[model].append(id)
                self.sent[id] = {("row", row)}
            return Ask(model, tuple(ids), tuple(rows))
        if kind < 0.5:
            return self._tell_by_token()
        if kind < 0.85:
            ids = list(
                dict.fromkeys(chance.chosen(self.asked[model]) for _ in range(1 + chance.below(3)))
            )
            given = [Feedback(chance.chosen(LABELS)) for _ in ids]
            for id, one in zip(ids, given, strict=True):
                self.sent[id].add(("label", one.label))
            return Tell(model, tuple(ids), tuple(given))
        if kind < 0.86:
            return self._poison()
        if kind < 0.95:
            id = self._new_id()
            self.sent[id] = {("label", "yes")}
            return Learn(model, (id,), (f"row {id}",), (Feedback("yes"),))
        self.count += 1
        if kind < 0.98:
            after = chance.below(self.machine.seq + 1) if chance.happens(0.5) else 0
            name, ahead = f"challenger {self.count}", None
            if chance.happens(0.5):  # it has read the log so far, beside the writer
                number = self.machine.names["m"]
                if after >= self.machine.log.trimmed:
                    ahead = CatchUp(number, name, load(b""), after, self.machine.log.deleted)
                    ahead.read_ahead(self.machine.log)
            return Challenge("m", name, b"", after, ahead)
        return Promote("m", f"challenger {self.count - 1 - chance.below(3)}")

    def _poison(self):
        """Send a row that takes its model out of service; once it has, delete the model."""
        if self.poisoned and self.chance.happens(0.5):
            return Delete("p")
        self.poisoned = True
        return Learn("p", ("poison",), (POISON,), (Feedback("yes"),))

    def _tell_by_token(self):
        """Return the label of a row that a copy predicted, of which the log knows nothing."""
        id, label = self._new_id(), self.chance.chosen(LABELS)
        self.sent[id] = {("label", label)}
        if self.machine.names["m"] in self.machine.quarantined:
            return Ask("n", (), ())
        hosted, self.faults = self.machine.hosted("m"), False
        kept = {n: own.served.pack((0, f"row {id}")) for n, own in hosted.readers.items()}
        self.faults, at = True, self.machine.now()
        token = self.machine.tokens.issue(hosted.number, id, kept, f"row {id}", at)
        return Tell("m", (id,), (Feedback(label),), (token,))

    def _new_id(self):
        self.count += 1
        self.first_sent[f"id{self.count}"] = self.clocks.true
        return f"id{self.count}"

    def _send(self, requests):
        try:
            outcomes = self.machine.process(requests)
        except Crash:
            self._crash()
            return
        except DiskFullError:
            return
        for request, outcome in zip(requests, outcomes, strict=True):
            statuses = {item["status"] for item in outcome.items or ()} | {outcome.status}
            if request in self.pending and 503 not in statuses and self.chance.happens(0.9):
                self.pending.remove(request)  # else the answer gets lost, or is to come again
            for item in outcome.items or ():
                self._note(request, item)

    def _note(self, request, item):
        id, status = item["id"], item["status"]
        if status == 410:
            self.expired.add(id)
            age = self.clocks.true - self.first_sent.get(id, 0)
            if age < EXPIRY - HOUR:
                self.problems.append(f"{id} was forgotten after {age / HOUR:.2f} hours")
        elif isinstance(request, Ask):
            said = item.get("prediction", item.get("error"))
            if status not in (409, 503) and self.answers.setdefault(id, said) != said:
                self.problems.append(f"{id} was answered {self.answers[id]}, and then {said}")
        elif status == 200:
            place = request.ids.index(id)
            label = request.feedback[place].label
            if self.learned.setdefault(id, label) != label:
                self.problems.append(f"two labels of {id} were learned")
            if id in self.expired:
                self.problems.append(f"{id} was learned after it was forgotten")

    def _check(self):
        self.faults = False
        again = Machine(MemoryLog(self.disk), self._load, self.clock)
        again.recover(self.disk)
        whole = None
        if not again.log.trimmed:
            whole = Machine(MemoryLog(self.disk), self._load, self.clock)
            whole.recover()
        known = {}
        for name in ("m", "n"):
            hosted = self.machine.models.get(self.machine.names[name])
            if hosted is None:
                self.problems.append(f"{name} is out of service: {self.machine.quarantined}")
                continue
            for machine in (again, whole) if whole else (again,):
                if machine.hosted(name).to_saved() != hosted.to_saved():
                    self.problems.append(f"a replay of the log has another state of {name}")
            known |= self._check_told(hosted)
        for id, label in self.learned.items():
            if known.get(f"row {id}") != label:
                learned = known.get(f"row {id}")
                self.problems.append(f"{id} was told {label}, but {learned} was learned")
        out = {own.name for own in self.machine.quarantined.values()}
        if out - {"p"} or out != {own.name for own in again.quarantined.values()}:
            self.problems.append(f"{out} are out of service")

    def _check_told(self, hosted):
        """Check what the learners of a model were told; return it."""
        told = hosted.readers[0].served.told
        for reader in hosted.readers.values():  # whoever reads later knows what came later
            own = sorted(reader.served.told)
            last = sorted(told[len(told) - len(own) :]) if reader.since else sorted(told)
            deleted = reader.since and self.machine.log.trimmed and set(own) <= set(told)
            if own != last and not deleted:  # the row of a later label may be deleted
                self.problems.append(f"{reader.name}, since {reader.since}, was told {own}")
        for row, count in Counter(row for row, _ in told).items():
            if count > 1:
                self.problems.append(f"{row} was learned {count} times")
        for row, label in told:
            if ("label", label) not in self.sent.get(row.removeprefix("row "), ()):
                self.problems.append(f"{row} was learned with {label}, which nobody sent")
        return dict(told)


def _without_memory(request):
    """Return a request without what was in the memory of the process."""
    return request._replace(ahead=None) if isinstance(request, Challenge) else request


def problems_of(seed, **options):
    """Return what goes wrong in the history of a seed; nothing may."""
    history = History(seed, **options)
    try:
        # Models in quarantine are named there, with the lines that raised.
        with redirect_stderr(io.StringIO()), patch.object(traceback, "print_exc"):
            return history.play()
    except (Exception, Crash) as error:
        return [*history.problems, repr(error)]
