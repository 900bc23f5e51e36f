"""A simulator of the service: histories of clients, crashes and lost writes, from a seed.

The machine is the real one. Its log, its snapshots and its clock are simulated, and in place of a
learner there is one that writes down what it was told: a list, in which anything that is lost,
doubled or out of order can be seen.

A crash may come at every operation of the disk. What was committed is kept; with ``synchronous``
NORMAL, a crash may lose the last commits, as with SQLite: that is the control, which must fail.
"""

from __future__ import annotations

import copy
from collections import Counter

import numpy as np

from driftline.app.service.catch_up import CatchUp
from driftline.app.service.hosted import Hosted
from driftline.app.service.log import DiskFullError
from driftline.app.service.machine import Machine
from driftline.app.service.records import Kind
from driftline.app.service.requests import (
    Ask,
    Challenge,
    Create,
    Expire,
    Learn,
    Promote,
    Tell,
)
from driftline.app.service.served import Asked, Feedback, Score, Served
from driftline.errors import InputError

EXPIRY = 400
LABELS = ("yes", "no")


class Crash(Exception):  # noqa: N818
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
    """Writes down what it was told; answers how much that is, so that answers tell states apart."""

    def __init__(self, told=(), waiting=(), asked=0):
        self.told, self.waiting, self.asked = list(told), set(waiting), asked

    def check_rows(self, rows):
        if any(not isinstance(row, str) for row in rows):
            raise InputError("a row is a text")

    def check_size(self, more=0):
        pass

    def check_feedback(self, given, beside=frozenset()):
        if any(one.label not in LABELS for one in given):
            raise InputError("a label is yes or no")
        return beside

    def admit(self, ticket):
        self.asked += 1
        self.waiting.add(self.asked)
        return self.asked, ticket[1]

    def ask(self, rows, numbers=None):
        if "refused later" in rows:
            raise InputError("only found when it is applied")
        made = []
        for row in rows:
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
            self.told.append((row, one.label))

    def learn(self, rows, given):
        if "refused later" in rows:
            raise InputError("only found when it is applied")
        self.told += [(row, one.label) for row, one in zip(rows, given, strict=True)]
        return [len(self.told)] * len(rows)

    def forget(self, tickets):
        self.waiting -= {number for number, _ in tickets}

    def pack(self, ticket):
        return f"{ticket[0]} {ticket[1]}".encode()

    def unpack(self, content):
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

    def __init__(self, disk):
        self._disk = disk
        state = disk.durable()
        self.records, self.marks, self.answers = state

    trimmed = forgotten = 0

    def append(self, entries):
        disk = self._disk
        disk.reached()
        if disk.full:
            raise DiskFullError("simulated")
        self.records += entries.records
        self.marks.update(entries.marks)
        store(self.answers, entries.stored)
        disk.commit(entries)
        disk.reached()

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

    def first_without(self, models):
        made = (r.seq for r in self.records if r.kind is Kind.CREATE and r.model not in models)
        return next(made, None)

    def waiting(self, model, before):
        return [
            (record.id, record.seq)
            for record in self.records
            if record.kind is Kind.ASK and record.model == model and record.at < before
            if self.marks[model, record.id].told == 0
        ]


def store(answers, several):
    """Write answers and tickets, which may come one after the other."""
    for own in several:
        known = answers.setdefault(own.seq, {}).get(own.learner, own)
        made = own._replace(answer=own.answer or known.answer, kept=own.kept or known.kept)
        answers[own.seq][own.learner] = made


class Disk:
    """Commits, of which a crash may lose the last ones if they were not synced."""

    def __init__(self, chance, synchronous):
        self._chance, self._full_sync = chance, synchronous == "FULL"
        self._commits = []
        self.countdown, self.full = None, False
        self.snapshots = []

    def reached(self):
        """Crash if it is time to."""
        if self.countdown is not None:
            self.countdown -= 1
            if self.countdown < 0:
                self.countdown = None
                raise Crash

    def commit(self, entries):
        marks, stored = dict(entries.marks), list(entries.stored)
        self._commits.append((list(entries.records), marks, stored))

    def lose(self):
        """Lose what was not synced: a loss of power."""
        if not self._full_sync and self._commits:
            kept = len(self._commits) - self._chance.below(min(3, len(self._commits)) + 1)
            del self._commits[kept:]

    def durable(self):
        records, marks, answers = [], {}, {}
        for more, own, stored in self._commits:
            records += more
            marks.update(own)
            store(answers, stored)
        return records, marks, answers

    # -- snapshots

    def write_snapshot(self, machine):
        machine.flush()
        saved = [copy.deepcopy(hosted.to_saved()) for hosted in machine.models.values()]
        self.reached()
        self.snapshots.append((machine.seq, saved))
        self.reached()

    def load(self):
        if not self.snapshots:
            return ()
        if self._chance.happens(0.2):  # damaged: the one before it will do, or none
            self.snapshots.pop()
            return self.load()
        seq, saved = self.snapshots[-1]
        return [(Hosted.from_saved(*copy.deepcopy(own), load_saved), seq) for own in saved]


def load_saved(about, arrays):
    return Diary(about["told"], about["waiting"], about["asked"])


def load(content):
    return Diary()


class History:
    """One history from a seed; :attr:`problems` is what was found wrong."""

    def __init__(self, seed, steps=12, synchronous="FULL"):
        self.chance = Chance(seed)
        self.disk = Disk(self.chance, synchronous)
        self.steps, self.time, self.fresh = steps, 1000, self.chance.chosen((0, 2, 9))
        self.problems = []
        #: Requests of clients that were not answered yet, and may be sent again and again.
        self.pending = []
        self.sent, self.answers, self.learned = {}, {}, {}
        self.asked, self.count, self.expired = [], 0, set()
        self.machine = None

    def play(self):
        self._start()
        for _ in range(self.steps):
            self._step()
        self.disk.countdown, self.disk.full = None, False
        for _ in range(3):  # clients send until they are answered
            if self.pending:
                self._send(list(self.pending))
        self._check()
        return self.problems

    def _clock(self):
        return self.time

    def _start(self):
        log = MemoryLog(self.disk)
        self.machine = Machine(log, load, self._clock, fresh=self.fresh)
        self.machine.recover(self.disk)
        if "m" not in self.machine.names:
            self.machine.process([Create("m", b"")])

    def _crash(self):
        self.disk.lose()
        self.disk.countdown = None
        self.pending = [_without_memory(request) for request in self.pending]
        self._start()

    def _step(self):
        chance = self.chance
        self.time += chance.chosen((0, 1, 5, 30, 300, -200))
        self.disk.full = chance.happens(0.05)
        if chance.happens(0.25):
            self.disk.countdown = chance.below(4)
        for _ in range(1 + chance.below(3)):
            self.pending.append(self._request())
        some = [request for request in self.pending if chance.happens(0.7)]
        if some and chance.happens(0.2):
            some.append(chance.chosen(some))  # the same again, at the same time
        if chance.happens(0.3):
            some.reverse()
        try:
            if some:
                self._send(some)
            if chance.happens(0.15):
                self.disk.write_snapshot(self.machine)
            if chance.happens(0.1):
                self.machine.process([Expire("m", self.time - EXPIRY)])
        except Crash:
            self._crash()
        except DiskFullError:
            pass

    def _request(self):
        chance, kind = self.chance, self.chance.uniform()
        if kind < 0.45 or not self.asked:
            ids = [self._new_id() for _ in range(1 + chance.below(2))]
            rows = ["refused later" if chance.happens(0.02) else f"row {id}" for id in ids]
            for id, row in zip(ids, rows, strict=True):
                self.asked.append(id)
                self.sent[id] = {("row", row)}
            return Ask("m", tuple(ids), tuple(rows))
        if kind < 0.5:
            return self._tell_by_token()
        if kind < 0.85:
            ids = list(dict.fromkeys(chance.chosen(self.asked) for _ in range(1 + chance.below(3))))
            given = [Feedback(chance.chosen(LABELS)) for _ in ids]
            for id, one in zip(ids, given, strict=True):
                self.sent[id].add(("label", one.label))
            return Tell("m", tuple(ids), tuple(given))
        if kind < 0.95:
            id = self._new_id()
            self.sent[id] = {("label", "yes")}
            return Learn("m", (id,), (f"row {id}",), (Feedback("yes"),))
        self.count += 1
        if kind < 0.98:
            after = chance.below(self.machine.seq + 1) if chance.happens(0.5) else 0
            name, ahead = f"challenger {self.count}", None
            if chance.happens(0.5):  # it has read the log so far, beside the writer
                number = self.machine.names["m"]
                ahead = CatchUp(number, name, load(b""), after)
                ahead.read_ahead(self.machine.log)
            return Challenge("m", name, b"", after, ahead)
        return Promote("m", f"challenger {self.count - 1 - chance.below(3)}")

    def _tell_by_token(self):
        """Return the label of a row that a copy predicted, of which the log knows nothing."""
        id, label = self._new_id(), self.chance.chosen(LABELS)
        self.sent[id] = {("label", label)}
        hosted = self.machine.hosted("m")
        kept = {n: own.served.pack((0, f"row {id}")) for n, own in hosted.readers.items()}
        at = self.machine.now()
        token = self.machine.tokens.issue(hosted.number, id, kept, f"row {id}", at)
        return Tell("m", (id,), (Feedback(label),), (token,))

    def _new_id(self):
        self.count += 1
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
            if request in self.pending and self.chance.happens(0.9):  # or the answer gets lost
                self.pending.remove(request)
            for item in outcome.items or ():
                self._note(request, item)

    def _note(self, request, item):
        id, status = item["id"], item["status"]
        if isinstance(request, Ask):
            said = item.get("prediction", item.get("error"))
            if status != 409 and self.answers.setdefault(id, said) != said:
                self.problems.append(f"{id} was answered {self.answers[id]}, and then {said}")
        elif status == 200:
            place = request.ids.index(id)
            label = request.feedback[place].label
            if self.learned.setdefault(id, label) != label:
                self.problems.append(f"two labels of {id} were learned")
        elif status == 410:
            self.expired.add(id)

    def _check(self):
        hosted = self.machine.models[self.machine.names["m"]]
        again = Machine(MemoryLog(self.disk), load, self._clock)
        again.recover()
        whole = again.models[again.names["m"]]
        if whole.to_saved() != hosted.to_saved():
            self.problems.append("a replay of the log has another state")
        told = hosted.readers[0].served.told
        for reader in hosted.readers.values():  # whoever reads later knows what came later
            own = sorted(reader.served.told)
            last = sorted(told[len(told) - len(own) :]) if reader.since else sorted(told)
            if own != last:
                self.problems.append(f"{reader.name}, since {reader.since}, was told {own}")
        counts = Counter(row for row, _ in told)
        for row, count in counts.items():
            if count > 1:
                self.problems.append(f"{row} was learned {count} times")
        known = dict(told)
        for id, label in self.learned.items():
            if known.get(f"row {id}") != label:
                learned = known.get(f"row {id}")
                self.problems.append(f"{id} was told {label}, but {learned} was learned")
        for row, label in told:
            if ("label", label) not in self.sent.get(row.removeprefix("row "), ()):
                self.problems.append(f"{row} was learned with {label}, which nobody sent")
        for id in self.expired:
            if id in self.learned:
                self.problems.append(f"{id} was learned and forgotten")


def _without_memory(request):
    """Return a request without what was in the memory of the process."""
    return request._replace(ahead=None) if isinstance(request, Challenge) else request


def problems_of(seed, **options):
    """Return what goes wrong in the history of a seed; nothing may."""
    history = History(seed, **options)
    try:
        return history.play()
    except Exception as error:
        return [*history.problems, repr(error)]
