"""A learner that comes later reads the log of a model, as if it had been there before."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import groupby, takewhile
from typing import Any, Protocol

from driftline.app.service.hosted import REFUSALS, Hosted, Reader, check_memory
from driftline.app.service.records import Kind, Record, plain_json
from driftline.app.service.served import Feedback, Served
from driftline.errors import InputError
from driftline.typing import Json

__all__ = ["CatchUp", "Records", "admitted", "decoded_body", "row_of"]

#: Whoever has fewer records to read than these need not read them ahead.
FEW = 500
#: How often what came in the meantime is read ahead.
PASSES = 20
#: The number of a learner that has no place yet: none of a token's tickets is its own.
NOBODY = -1


class Records(Protocol):
    """What is read of a log."""

    def read(self, after: int = 0) -> Iterator[Record]:
        """Yield all records after one, by its seq."""
        ...

    def body(self, seq: int) -> bytes | None:
        """Return the body of a record, None if it is no longer there."""
        ...


class CatchUp:
    """A learner that reads old records of a model, with the tickets that are still outstanding.

    What it becomes is a function of the records that it has read, whoever reads them to it: a
    thread beside the writer first (:meth:`read_ahead`), and the writer the last ones.

    Parameters
    ----------
    model
        The number of the model.
    name, served
        The learner.
    after
        The record after which it begins to read.
    deleted
        How many records were deleted before it began: when more are, others would read less.
    """

    def __init__(self, model: int, name: str, served: Served, after: int, deleted: int = 0):
        self.reader = Reader(NOBODY, name, served, after)
        self.tickets: dict[int, Any] = {}
        self.deleted = deleted
        self._alone, self._seq = Hosted.of(model, self.reader), after

    def read_ahead(self, records: Records) -> None:
        """Read until few records are left."""
        for _ in range(PASSES):
            if self.read(records) < FEW:
                return

    def read(self, records: Records, end: int | None = None) -> int:
        """Read the records that were not read yet, up to one; return how many there were."""
        count = 0
        unread = takewhile(lambda own: end is None or own.seq < end, records.read(self._seq))
        for _, group in groupby(unread, key=lambda record: record.batch):
            batch = list(group)
            self._apply(records, [own for own in batch if own.model == self._alone.number])
            self._seq = batch[-1].seq
            count += len(batch)
        return count

    def _apply(self, log: Records, records: Sequence[Record]) -> None:
        """Apply the records of a batch."""
        alone, number = self._alone, self.reader.number
        for kind, group in groupby(records, key=lambda record: record.kind):
            part = list(group)
            bodies = [decoded_body(record) for record in part]
            if kind is Kind.ASK:
                for record, asked in zip(part, alone.ask(bodies), strict=True):
                    own = asked[number]
                    if not isinstance(own, InputError):
                        self.tickets[record.seq] = own.ticket
            elif kind is Kind.TELL:
                tickets = [self._taken(asked) for asked, _ in bodies]
                rows = partial(row_of, log, bodies)
                alone.tell(tickets, [feedback for _, feedback in bodies], rows)
            elif kind is Kind.LEARN:
                alone.learn([row for row, _ in bodies], [one for _, one in bodies])
            elif kind is Kind.EXPIRE:
                alone.forget([self._taken(seq) for own in bodies for seq, _ in own])
        if records:
            last = records[-1]
            alone.note(last.seq, last.batch, last.at)

    def _taken(self, seq: int | Json) -> dict[int, Any]:
        if isinstance(seq, dict):
            return admitted(self._alone, seq)
        ticket = self.tickets.pop(seq, None)
        return {} if ticket is None else {self.reader.number: ticket}


def row_of(log: Records, bodies: Sequence[Any], place: int) -> Any:
    """Return a row that was asked for: it is in its token, or in its record."""
    asked = bodies[place][0]
    if isinstance(asked, dict):
        return asked["row"]
    content = log.body(asked)
    return None if content is None else plain_json(content)


def admitted(hosted: Hosted, token: Json) -> dict[int, Any]:
    """Return the tickets of a token as the learners' own."""
    made: dict[int, Any] = {}
    for number, content in token["tickets"].items():
        reader = hosted.readers.get(int(number))
        if reader is not None:
            try:
                made[reader.number] = reader.served.admit(reader.served.unpack(b64decode(content)))
            except REFUSALS as error:  # a learner without a ticket learns from the row
                check_memory(error)
    return made


def decoded_body(record: Record) -> Any:
    """Return the body of a record as it is applied."""
    kind, body = record.kind, record.body
    if kind is Kind.DAMAGED:
        raise InputError(f"record {record.seq} is damaged")
    if kind in (Kind.CREATE, Kind.DELETE):
        return None
    if kind is Kind.CHALLENGE:
        return record.id, int.from_bytes(body[:8], "big"), body[8:], None
    made = plain_json(body)
    if kind is Kind.TELL:
        asked, *feedback = made
        return asked, Feedback(*feedback)
    if kind is Kind.LEARN:
        row, *feedback = made
        return row, Feedback(*feedback)
    return made
