"""A model of the service: the learners that read its log, and which of them answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from driftline.app.service.curve import Curve
from driftline.app.service.served import Asked, Feedback, Served
from driftline.errors import InputError
from driftline.typing import Json, Saved

__all__ = ["REFUSALS", "Hosted", "Reader", "check_memory"]


#: Errors that are a function of what was given, as an answer is: learners change nothing then.
REFUSALS = (ValueError, TypeError, ArithmeticError, LookupError)


@dataclass
class Reader:
    """A learner that reads the log of a model.

    ``since`` is the record after which it began to read.
    """

    number: int
    name: str
    served: Served
    since: int = 0
    curve: Curve = field(default_factory=Curve)


class Hosted:
    """A model: one learner answers, others (challengers) are asked and told the same.

    ``counts`` are how many rows were asked for, told, learned at once, expired, or refused by a
    learner when they were applied.
    """

    def __init__(self, number: int, name: str, first: Served, created: int):
        self.number, self.name, self.created = number, name, created
        self.readers = {0: Reader(0, "first", first)}
        self.champion, self.next_reader = 0, 1
        self.counts = dict.fromkeys(("asked", "told", "learned", "expired", "refused"), 0)
        #: The last record that was applied, and when it came.
        self.seq, self.batch, self.at = 0, 0, created

    @classmethod
    def of(cls, number: int, reader: Reader) -> Hosted:
        """Return a model with one learner, which keeps its number."""
        made = cls(number, "", reader.served, 0)
        made.readers, made.champion = {reader.number: reader}, reader.number
        return made

    def promote(self, number: int) -> None:
        """Let another learner answer."""
        self.champion = number

    @property
    def served(self) -> Served:
        """The learner that answers."""
        return self.readers[self.champion].served

    def reader(self, name: str) -> Reader | None:
        """Return a learner by its name."""
        return next((own for own in self.readers.values() if own.name == name), None)

    # -- what records do; what is refused together is tried one by one

    def ask(self, rows: Sequence[Any]) -> list[dict[int, Asked | InputError]]:
        """Let all learners predict rows; return what each answered to each row."""
        made: list[dict[int, Asked | InputError]] = [{} for _ in rows]
        for number, reader in self.readers.items():
            try:
                answers: Sequence[Asked | InputError] = reader.served.ask(rows)
            except REFUSALS as error:
                check_memory(error)
                answers = [_tried(reader.served.ask, [row]) for row in rows]
            for own, answer in zip(made, answers, strict=True):
                own[number] = answer
        self.counts["asked"] += len(rows)
        return made

    def tell(
        self,
        tickets: Sequence[dict[int, Any]],
        feedback: Sequence[Feedback],
        row_of: Callable[[int], Any],
    ) -> list[InputError | None]:
        """Let all learners learn from their tickets; return which the answering one refused.

        A learner that began to read after a row was asked for has no ticket for it: it learns from
        the row itself, which ``row_of`` returns by its place.
        """
        refused: list[InputError | None] = [None] * len(tickets)
        for number, reader in self.readers.items():
            places = [i for i, own in enumerate(tickets) if number in own]
            own = [tickets[i][number] for i in places]
            given = [feedback[i] for i in places]
            try:
                reader.served.tell(own, given)
            except REFUSALS as error:
                check_memory(error)
                for i, ticket, one in zip(places, own, given, strict=True):
                    found = _tried(reader.served.tell, [ticket], [one])
                    if number == self.champion and isinstance(found, InputError):
                        refused[i] = found
            for i in (i for i, theirs in enumerate(tickets) if number not in theirs):
                found = _tried(self._learn_row, reader, row_of, i, feedback[i])
                if number == self.champion and isinstance(found, InputError):
                    refused[i] = found
        bad = sum(error is not None for error in refused)
        self.counts["told"] += len(tickets) - bad
        self.counts["refused"] += bad
        return refused

    @staticmethod
    def _learn_row(reader: Reader, row_of: Callable[[int], Any], place: int, one: Feedback) -> None:
        row = row_of(place)
        if row is None:
            raise InputError("the row is no longer there")
        reader.served.learn([row], [one])

    def learn(self, rows: Sequence[Any], feedback: Sequence[Feedback]) -> list[Any]:
        """Let all learners learn from rows; return the champion's predictions, or its refusals."""
        made: list[Any] = []
        for number, reader in self.readers.items():
            try:
                own: list[Any] = reader.served.learn(rows, feedback)
            except REFUSALS as error:
                check_memory(error)
                pairs = zip(rows, feedback, strict=True)
                own = [_tried(reader.served.learn, [row], [one]) for row, one in pairs]
            if number == self.champion:
                made = own
        bad = sum(isinstance(one, InputError) for one in made)
        self.counts["learned"] += len(rows) - bad
        self.counts["refused"] += bad
        return made

    def forget(self, tickets: Sequence[dict[int, Any]]) -> None:
        """Forget tickets."""
        for number, reader in self.readers.items():
            for own in tickets:
                if number in own:
                    _tried(reader.served.forget, [own[number]])
        self.counts["expired"] += len(tickets)

    def note(self, seq: int, batch: int, at: int) -> None:
        """Add a point to the curves after a batch."""
        self.seq, self.batch, self.at = seq, batch, at
        for reader in self.readers.values():
            score = reader.served.score
            points = reader.curve.points
            if score.rounds and (not points or points[-1][0] < score.rounds):
                reader.curve.add(score.rounds, {"paid": score.paid, "at": at, **score.baselines})

    # -- snapshots

    def to_saved(self) -> Saved:
        """Return all of it as plain data and arrays; these are copied, and do not change later."""
        about: Json = {
            "kind": "Hosted",
            "number": self.number,
            "name": self.name,
            "created": self.created,
            "champion": self.champion,
            "next_reader": self.next_reader,
            "counts": self.counts.copy(),
            "at": [self.seq, self.batch, self.at],
            "readers": [],
        }
        arrays: dict[str, np.ndarray] = {}
        for reader in self.readers.values():
            own, theirs = reader.served.to_saved()
            arrays |= {f"{reader.number}.{name}": array.copy() for name, array in theirs.items()}
            about["readers"].append(
                {
                    "number": reader.number,
                    "name": reader.name,
                    "since": reader.since,
                    "curve": reader.curve.to_plain(),
                    "served": own,
                }
            )
        return about, arrays

    @classmethod
    def from_saved(cls, about: Json, arrays: dict[str, np.ndarray], load: Any) -> Hosted:
        """Return the model from what :meth:`to_saved` returned, or refuse it."""
        if about.get("kind") != "Hosted" or not about.get("readers"):
            raise InputError(f"this is no snapshot of a model: {about.get('kind')!r:.80}")
        readers = {}
        for own in about["readers"]:
            start = f"{own['number']}."
            theirs = {k.removeprefix(start): a for k, a in arrays.items() if k.startswith(start)}
            served, curve = load(own["served"], theirs), Curve.from_plain(own["curve"])
            reader = Reader(own["number"], own["name"], served, own["since"], curve)
            readers[reader.number] = reader
        if about["champion"] not in readers:
            raise InputError(f"the snapshot has no learner {about['champion']!r:.20}")
        made = cls(about["number"], about["name"], readers[about["champion"]].served, 0)
        made.readers, made.champion = readers, about["champion"]
        made.created, made.next_reader = about["created"], about["next_reader"]
        made.counts = dict(about["counts"])
        made.seq, made.batch, made.at = about["at"]
        return made


def check_memory(error: Exception) -> None:
    """Raise an error again whose cause is a lack of memory: a replay may not refuse that."""
    if isinstance(error.__cause__, MemoryError):
        raise error


def _tried(call: Any, *arguments: Any) -> Any:
    """Return the one result of a call, or the error that refused it."""
    try:
        made = call(*arguments)
    except REFUSALS as error:
        check_memory(error)
        return error if isinstance(error, InputError) else InputError(repr(error))
    return made[0] if isinstance(made, list) else made
