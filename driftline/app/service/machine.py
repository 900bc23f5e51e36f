"""The state machine: batches of requests in, records in the log (event sourcing), answers out.

Every request is validated against the state and against the requests before it; what is accepted
becomes records; these are committed to the log; then they are applied. Only what was committed is
applied, and applying reads nothing but records: so the state is a function of the log, and
:meth:`Machine.recover` computes it again. A model of which a record cannot be applied is taken out
of service (quarantine); the others go on.

Within a batch, rows to predict come before labels, and these before rows to learn from: requests
that come at the same time have no order that anybody could rely on, and calls of learners with
many rows are much faster.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from itertools import groupby
from typing import Any, NamedTuple, Protocol

from driftline.app.service.batch import Batch, Plan
from driftline.app.service.catch_up import CatchUp, admitted, decoded_body, row_of
from driftline.app.service.hosted import Hosted
from driftline.app.service.log import DiskFullError, Log, LogFailedError
from driftline.app.service.planning import Planner
from driftline.app.service.records import Kind, Record, Stored, packed_json, plain_json
from driftline.app.service.requests import (
    ALONE,
    Outcome,
    RefusedError,
    Request,
)
from driftline.app.service.served import Asked, Served
from driftline.app.service.tickets import FRESH, Tickets
from driftline.app.service.tokens import Tokens
from driftline.errors import InputError
from driftline.typing import Json

__all__ = ["Machine", "Quarantined", "Snapshots"]

#: How many answers wait for the next commit at most while the log is read again.
UNWRITTEN = 10_000


class Quarantined(NamedTuple):
    """A model that is out of service: its records stay in the log, and are applied no more.

    ``seq`` is the record that could not be applied, ``why`` what it raised. A restart tries again.
    """

    number: int
    name: str
    seq: int
    at: int
    why: str

    @property
    def refusal(self) -> RefusedError:
        """What whoever asks for the model is told."""
        return RefusedError(503, f"model {self.name!r} is out of service: {self.why}")


class Snapshots(Protocol):
    """Where states of models are kept, each after some batch."""

    def load(self) -> Iterable[tuple[Hosted, int]]:
        """Return the last good state of every model, and the record up to which it holds."""
        ...


class Machine:
    """All models of the service, and the log that they are a function of.

    Parameters
    ----------
    log
        Where records are written.
    load
        Returns a learner from the bytes of its file, or refuses them.
    clock
        Returns milliseconds. What it says is written to the log.
    tokens
        Reads the tokens that copies of models have issued.
    most_models, most_challengers
        How many models there may be, and how many challengers of each.
    fresh
        The most rows whose tickets are in memory only.
    """

    def __init__(
        self,
        log: Log,
        load: Callable[[bytes], Served],
        clock: Callable[[], int],
        tokens: Tokens | None = None,
        most_models: int = 1000,
        most_challengers: int = 20,
        fresh: int = FRESH,
    ):
        self.log, self.load, self.clock = log, load, clock
        self.tokens = Tokens(b"") if tokens is None else tokens
        self.most_models, self.most_challengers = most_models, most_challengers
        self.models: dict[int, Hosted] = {}
        self.quarantined: dict[int, Quarantined] = {}
        #: The numbers of models by name, of those in quarantine, too.
        self.names: dict[str, int] = {}
        self.seq, self.batch, self.at = log.last()
        self._tickets = Tickets(self._stored, self._not_packed, fresh)
        #: What learners answered, by record, until it is written with the next batch.
        self._unwritten: dict[int, list[Stored]] = {}

    # -- after a restart

    def recover(self, snapshots: Snapshots | None = None) -> int:
        """Compute the state from the log; return how many records were applied.

        A model whose records were deleted, and of which no snapshot can be read, is quarantined.
        """
        covered: dict[int, int] = {}
        for hosted, seq in () if snapshots is None else snapshots.load():
            self.models[hosted.number], self.names[hosted.name] = hosted, hosted.number
            covered[hosted.number] = seq
        without = {n: name for n, name in self.log.created().items() if n not in covered}
        for number in [number for number in without if number <= self.log.trimmed]:
            trimmed = self.log.trimmed
            why = f"no snapshot of it can be read, and records up to {trimmed} were deleted"
            self.quarantine(number, number, why + ": restore a backup", without.pop(number))
        start = min([*covered.values(), *(number - 1 for number in without)], default=0)
        count = 0
        for _, group in groupby(self.log.read(start), key=lambda record: record.batch):
            records = [record for record in group if self._is_new(record, covered)]
            self._apply(records, [None] * len(records))
            count += len(records)
            if len(self._unwritten) >= UNWRITTEN:
                with suppress(DiskFullError):  # then they stay in memory
                    self._flush()
        # A deleted model that was read again may have had the name of one from a snapshot.
        self.names = {hosted.name: number for number, hosted in self.models.items()}
        self.names |= {gone.name: number for number, gone in self.quarantined.items()}
        return count

    def _is_new(self, record: Record, covered: dict[int, int]) -> bool:
        """Say whether a record is to be applied: not in a snapshot, nor of a deleted model."""
        if record.model in self.quarantined:
            return record.kind is Kind.DELETE
        known = record.model in self.models or record.seq == record.model
        return known and record.seq > covered.get(record.model, 0)

    def quarantine(self, number: int, seq: int, why: str, name: str = "") -> None:
        """Take a model out of service, and say so; its tickets follow from the log."""
        hosted = self._removed(number)
        name = name if hosted is None else hosted.name
        made = self.quarantined[number] = Quarantined(number, name, seq, self.at, why)
        print(f"{made.refusal}", file=sys.stderr, flush=True)

    def _removed(self, number: int) -> Hosted | None:
        """Remove a model with its tickets; return it, None if there is none."""
        if (hosted := self.models.pop(number, None)) is not None:
            self._tickets.drop(hosted)
        return hosted

    def _not_packed(self, hosted: Hosted, error: Exception) -> None:
        """Take a model out of service of which a ticket is lost: it only follows from the log."""
        traceback.print_exc()
        self.quarantine(hosted.number, hosted.seq, f"its tickets cannot be written: {error!r:.200}")

    def flush(self) -> None:
        """Write what learners answered since the last batch, and all tickets, for a snapshot."""
        self._to_write(self._tickets.to_store(0))
        self._flush()

    def _to_write(self, several: Iterable[Stored]) -> None:
        for own in several:
            self._unwritten.setdefault(own.seq, []).append(own)

    def _flush(self) -> None:
        if self._unwritten:
            batch = Batch(self.batch, self.at)
            batch.stored = self._to_store()
            self.log.append(batch)
            self._unwritten.clear()

    # -- requests

    def process(self, requests: Sequence[Request]) -> list[Outcome]:
        """Carry requests out together, and return their answers.

        When this returns, they are on the disk and applied. If it raises, nothing has changed,
        unless the disk has failed.
        """
        made: list[Outcome] = []
        for alone, group in groupby(requests, key=lambda request: isinstance(request, ALONE)):
            for part in [[request] for request in group] if alone else [list(group)]:
                made += self._process(part)
        return made

    def _process(self, requests: Sequence[Request]) -> list[Outcome]:
        batch = Batch(self.batch + 1, self.now())
        try:
            planner = Planner(self, batch)
            planner.check_together(requests)
            plans = [_tried(planner, request) for request in requests]
            if len(batch) or batch.positions:
                batch.number_records(self.seq)
                batch.stored = self._to_store()
                self.log.append(batch)
        except (DiskFullError, LogFailedError):
            raise
        except Exception as error:  # such as a MemoryError: nothing was written
            traceback.print_exc()
            said = {"error": f"the service failed, and nothing was learned: {error!r:.200}"}
            return [Outcome(503, said)] * len(requests)
        results: dict[Any, Any] = {}
        if batch.records or batch.positions:
            self._unwritten.clear()
            self.batch, self.at = batch.number, batch.at
            if batch.records:
                self.seq = batch.records[-1].seq
            made = self._apply(batch.records, batch.known)
            results = dict(zip(batch.keys, made, strict=True))
        return [plan(results) for plan in plans]

    def _to_store(self) -> list[Stored]:
        return [own for several in self._unwritten.values() for own in several]

    # -- what is known

    def now(self) -> int:
        """Return the time of the next record: a clock that was set back is waited for."""
        return max(self.at, self.clock())

    def hosted(self, name: str) -> Hosted:
        """Return a model by its name, or refuse the name."""
        number = self.number(name)
        hosted = self.models.get(number)  # which the writer may take out meanwhile
        if hosted is not None:
            return hosted
        known = self.quarantined.get(number)
        raise self._unknown(name) if known is None else known.refusal

    def number(self, name: str) -> int:
        """Return the number of a model, though it may be out of service, or refuse the name."""
        if (number := self.names.get(name)) is None:
            raise self._unknown(name)
        return number

    @staticmethod
    def _unknown(name: str) -> RefusedError:
        return RefusedError(404, f"there is no model {name!r:.80}")

    def answer(self, seq: int) -> Json | None:
        """Return what was answered to a record; of labels, only refusals are kept."""
        said = next((own.answer for own in self._stored(seq) if own.answer), None)
        return None if said is None else plain_json(said)

    def _stored(self, seq: int) -> list[Stored]:
        """Return what learners answered to a record, written or not."""
        return [*self.log.stored(seq), *self._unwritten.get(seq, ())]

    def _tickets_of(self, hosted: Hosted, seq: int | Json) -> dict[int, Any]:
        """Return the tickets of all learners for a row, by its record, or from its token."""
        return admitted(hosted, seq) if isinstance(seq, dict) else self._tickets.take(hosted, seq)

    # -- applying

    def _apply(self, records: Sequence[Record], known: Sequence[Any]) -> list[Any]:
        """Apply the records of a batch; return what came of each.

        ``known`` is what was decoded of their bodies, None where nothing was.
        """
        made: list[Any] = []
        pairs = list(zip(records, known, strict=True))
        for (model, kind), group in groupby(pairs, key=lambda own: (own[0].model, own[0].kind)):
            made += self._tried_part(model, kind, list(group))
        for number in dict.fromkeys(record.model for record in records):
            if (hosted := self.models.get(number)) is not None:
                last = [record for record in records if record.model == number][-1]
                try:
                    hosted.note(last.seq, last.batch, last.at)
                except Exception as error:
                    self.quarantine(number, last.seq, f"its losses cannot be told: {error!r:.200}")
        return made

    def _tried_part(self, model: int, kind: Kind, part: Sequence[tuple[Record, Any]]) -> list[Any]:
        """Apply records of one kind and model; if that fails, take the model out of service."""
        records = [record for record, _ in part]
        try:
            if model not in self.quarantined or kind is Kind.DELETE:
                bodies = [decoded_body(own) if known is None else known for own, known in part]
                return self._apply_part(model, kind, records, bodies)
        except (DiskFullError, LogFailedError):
            raise
        except Exception as error:  # a MemoryError, or a fault of a learner: who knows what it did
            traceback.print_exc()
            if kind is Kind.CREATE:
                self.names[records[0].id] = model
            why = f"record {records[0].seq} cannot be applied: {error!r:.200}"
            self.quarantine(model, records[0].seq, why, records[0].id)
        return [self.quarantined[model].refusal] * len(records)

    def _apply_part(
        self, model: int, kind: Kind, records: Sequence[Record], bodies: Sequence[Any]
    ) -> list[Any]:
        """Apply records of one kind and model."""
        if kind is Kind.CREATE:
            return [self._create(*pair) for pair in zip(records, bodies, strict=True)]
        if kind is Kind.DELETE:
            self.names.pop(records[-1].id, None)
            self._removed(model)
            self.quarantined.pop(model, None)
            return [None] * len(records)
        hosted = self.models[model]
        if kind is Kind.ASK:
            return self._ask(hosted, records, bodies)
        if kind is Kind.TELL:
            tickets = [self._tickets_of(hosted, asked) for asked, _ in bodies]
            rows = partial(row_of, self.log, bodies)
            told = hosted.tell(tickets, [feedback for _, feedback in bodies], rows)
            return self._noted(hosted, records, told)
        if kind is Kind.LEARN:
            made = hosted.learn([row for row, _ in bodies], [one for _, one in bodies])
            return self._noted(hosted, records, made)
        if kind is Kind.EXPIRE:
            hosted.forget([self._tickets_of(hosted, seq) for own in bodies for seq, _ in own])
        elif kind is Kind.CHALLENGE:
            for record, body in zip(records, bodies, strict=True):
                self._challenge(hosted, record, body)
        elif kind is Kind.PROMOTE:
            hosted.promote(bodies[-1])
        elif kind is Kind.RETIRE:
            hosted.readers.pop(bodies[-1])
        return [None] * len(records)

    def _create(self, record: Record, body: Any) -> Hosted:
        served = self.load(record.body) if body is None else body
        hosted = Hosted(record.model, record.id, served, record.at)
        self.models[record.model], self.names[record.id] = hosted, record.model
        return hosted

    def _ask(self, hosted: Hosted, records: Sequence[Record], rows: Sequence[Any]) -> list[Any]:
        """Let learners predict; keep their tickets."""
        made = []
        for record, asked in zip(records, hosted.ask(rows), strict=True):
            own = asked[hosted.champion]
            answer = {"error": str(own)} if isinstance(own, InputError) else own.answer
            said = Stored(record.seq, hosted.champion, packed_json(answer), b"")
            self._unwritten[record.seq] = [said]
            tickets = {n: one.ticket for n, one in asked.items() if isinstance(one, Asked)}
            self._tickets.add(hosted, record.seq, tickets)
            made.append(answer)
        self._to_write(self._tickets.to_store())
        return made

    def _noted(self, hosted: Hosted, records: Sequence[Record], made: list[Any]) -> list[Any]:
        """Keep which labels were refused, since they may come again."""
        for record, own in zip(records, made, strict=True):
            if isinstance(own, InputError) and record.id:
                said = packed_json({"error": str(own)})
                self._unwritten[record.seq] = [Stored(record.seq, hosted.champion, said, b"")]
        return made

    def _challenge(self, hosted: Hosted, record: Record, body: Any) -> None:
        """Let a new learner read the log of a model up to now, as if it had been there before."""
        name, after, content, catching = body
        if catching is None or catching.deleted != self.log.deleted:
            catching = CatchUp(hosted.number, name, self.load(content), after)
        catching.read(self.log, record.seq)
        reader = catching.reader
        reader.number = hosted.next_reader
        hosted.next_reader += 1
        hosted.readers[reader.number] = reader
        for seq, ticket in catching.tickets.items():
            late = self._tickets.add_late(hosted, seq, reader.number, ticket)
            self._to_write(() if late is None else (late,))


def _tried(planner: Planner, request: Request) -> Plan:
    """Return what a request will be answered; a refusal is an answer."""
    try:
        return planner.plan(request)
    except RefusedError as error:
        outcome = Outcome(error.status, {"error": str(error)})
    except InputError as error:
        outcome = Outcome(422, {"error": str(error)})
    except Exception as error:  # nothing was written yet: the others are not concerned
        traceback.print_exc()
        outcome = Outcome(500, {"error": f"the request cannot be read: {error!r:.200}"})
    return lambda _: outcome
