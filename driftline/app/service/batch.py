"""A batch: requests that are validated, and the records that they become."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Any, NamedTuple, TypeAlias

from driftline.app.service.records import Kind, Mark, Record, Stored, packed_json
from driftline.app.service.requests import Outcome

__all__ = ["Batch", "Plan", "Results"]

#: In a mark of a batch, the number of a record that is not numbered yet.
NEW = -2

Key: TypeAlias = tuple[int, str]
#: What came of records, by model and id; of those without an id, by their place in the batch.
Results: TypeAlias = Mapping[Any, Any]
#: What a request is answered when its batch was applied.
Plan: TypeAlias = Callable[[Results], Outcome]


class Draft(NamedTuple):
    """A record without its number; ``known`` is what was decoded of it already."""

    model: int
    kind: Kind
    id: str
    body: bytes
    known: Any
    key: Any


class Batch:
    """Records on their way into the log, and what is known of ids in the meantime."""

    def __init__(self, number: int, at: int):
        self.number, self.at = number, at
        self.records: list[Record] = []
        self.known: list[Any] = []
        self.keys: list[Any] = []
        self.marks: dict[Key, Mark] = {}
        self.stored: Sequence[Stored] = ()
        self.positions: dict[str, str] = {}
        self.dropped: list[int] = []
        self._drafts: list[Draft] = []

    def __len__(self) -> int:
        """Return how many records there are."""
        return len(self._drafts)

    def add(
        self,
        model: int,
        kind: Kind,
        id: str,
        body: bytes,
        known: Any = None,
        mark: Mark | None = None,
    ) -> Any:
        """Add a record, and what is known of its id from now on; return the key of its result.

        In a mark, :data:`NEW` stands for the number of this record.
        """
        key = (model, kind, id) if id else len(self._drafts)
        self._drafts.append(Draft(model, kind, id, body, known, key))
        if mark is not None:
            self.marks[model, id] = mark
        return key

    def number_records(self, seq: int) -> None:
        """Give records numbers in the order in which they are applied, after the log's last."""
        self._drafts.sort(key=itemgetter(0, 1))
        batch, at, marks = self.number, self.at, self.marks
        for number, (model, kind, id, body, known, key) in enumerate(self._drafts, seq + 1):
            mark = marks.get((model, id)) if id else None
            if mark is not None:
                asked, told, row, label = mark
                if kind is Kind.ASK and asked == NEW:
                    marks[model, id] = Mark(number, told, row, label)
                elif kind is not Kind.ASK and told == NEW:
                    marks[model, id] = Mark(asked, number, row, label)
                if kind is Kind.TELL and not body:  # by now the row has a number
                    known = asked, known
                    body = packed_json((asked, *known[1]))
            self.records.append(Record(number, batch, at, model, kind, id, body))
            self.known.append(known)
            self.keys.append(key)
