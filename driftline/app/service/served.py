"""What the service needs of a learner, and how a model of a table and a bare learner offer it."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence, Set
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from driftline.app.runs import TableModel
from driftline.app.runs.table_ticket import TableTicket
from driftline.app.service.sizes import (
    MEMORY,
    check_model,
    check_request,
    check_rows,
    check_size,
    ticket_bytes,
)
from driftline.committee import Committee
from driftline.errors import InputError
from driftline.learner import Facts, Learner, Member, Ticket
from driftline.state.loading import loaded
from driftline.typing import Json, Saved

__all__ = ["Asked", "Feedback", "LearnerServed", "Served", "TableServed", "served_from", "warm_up"]

#: The largest absolute value of a number in a row of a bare learner.
LARGEST = 1e150


class Asked(NamedTuple):
    """An answer as plain data, and the ticket that its label will be told by."""

    answer: Json
    ticket: Any


class Feedback(NamedTuple):
    """What came of a prediction: its label, or else the loss."""

    label: Any = None
    loss: float | None = None


class Score(NamedTuple):
    """Sums since the first round: of target losses, of those of baselines, and how many rounds."""

    rounds: int
    paid: float
    baselines: dict[str, float]


class Served(ABC):
    """A learner behind the service. Whatever is refused is an ``InputError``, and changes nothing.

    All results are functions of what was called before, in this order: nothing here may look at a
    clock, at a random number of its own, or at another thread.
    """

    @abstractmethod
    def check_size(self, more: int = 0) -> None:
        """Refuse a state that is too large, or will be with its first row, or with more classes."""

    @abstractmethod
    def check_rows(self, rows: Sequence[Any]) -> list[Any]:
        """Refuse rows that :meth:`ask` would refuse, or that would take too much memory.

        Return them for :meth:`ask` and :meth:`look`, which need not read their cells again.
        """

    @abstractmethod
    def check_feedback(self, given: Sequence[Feedback], beside: Set[str] = frozenset()) -> Set[str]:
        """Refuse labels and losses that no prediction could have.

        Return the classes that are new, with those that others bring beside them.
        """

    @abstractmethod
    def ask(self, rows: Sequence[Any], numbers: Sequence[int] | None = None) -> list[Asked]:
        """Predict rows whose labels come later, all or none.

        With numbers, by which random predictions are drawn, no ticket is outstanding: for copies.
        """

    @property
    def ticket_bytes(self) -> int:
        """About how many bytes the ticket of a row has, 0 if unknown."""
        return 0

    def check_tickets(self, rows: int) -> None:
        """Refuse to ask for so many rows in one request, where tickets are large."""
        return

    @abstractmethod
    def admit(self, ticket: Any) -> Any:
        """Return the ticket of a copy as one of its own, which is outstanding."""

    @abstractmethod
    def look(self, rows: Sequence[Any]) -> list[Json]:
        """Return the answers that :meth:`ask` would give, and change nothing."""

    @abstractmethod
    def tell(self, tickets: Sequence[Any], given: Sequence[Feedback]) -> None:
        """Learn from tickets, all or none."""

    @abstractmethod
    def learn(self, rows: Sequence[Any], given: Sequence[Feedback]) -> list[Any]:
        """Learn from rows with labels, all or none; return what was predicted before each."""

    @abstractmethod
    def forget(self, tickets: Sequence[Any]) -> None:
        """Say that no label will come for these tickets."""

    @abstractmethod
    def pack(self, ticket: Any) -> bytes:
        """Return a ticket as bytes."""

    @abstractmethod
    def unpack(self, content: bytes) -> Any:
        """Return the ticket from its bytes."""

    @abstractmethod
    def to_saved(self) -> Saved:
        """Return all of it as plain data and arrays that nobody writes to."""

    @property
    @abstractmethod
    def score(self) -> Score:
        """What was paid so far."""

    @property
    @abstractmethod
    def outstanding(self) -> int:
        """How many tickets were asked for, and neither told nor forgotten."""

    @property
    @abstractmethod
    def alarms(self) -> list[int]:
        """The rounds after which losses were seen to have risen."""

    @abstractmethod
    def about(self) -> Json:
        """Say what is predicted, from what, and by which learner."""


class TableServed(Served):
    """A model of a table: rows are dicts by the names of columns, labels have names."""

    def __init__(self, model: TableModel, memory: int = MEMORY):
        if model.key is not None:
            raise InputError("a service has one learner for all rows, not one for every key")
        self.model, self._memory = model, memory

    def check_size(self, more: int = 0) -> None:
        """Refuse a model with too many columns or classes, or too large a state."""
        check_model(self.model, self._memory, len(self.model.classes) + more if more else None)

    def check_rows(self, rows: Sequence[Any]) -> list[Any]:
        """Refuse rows that do not fit the columns."""
        ranks = self.model.ranks
        several = [len(own) for own in rows if isinstance(own, list)] if ranks else [len(rows)]
        check_rows(self.model, sum(several), self._memory)
        if not ranks:
            return self.model.check(rows)
        for query in rows:
            self.model.check(query)
        return list(rows)

    @property
    def ticket_bytes(self) -> int:
        """The features, and what every member expects to lose by every label."""
        return ticket_bytes(self.model.learner, self.model.features)

    def check_tickets(self, rows: int) -> None:
        """Refuse rows whose tickets together would be too large."""
        check_request(rows, self.ticket_bytes, self._memory, "in tickets")

    def check_feedback(self, given: Sequence[Feedback], beside: Set[str] = frozenset()) -> Set[str]:
        """Refuse labels that the label columns cannot have."""
        if any(one.loss is not None for one in given):
            raise InputError("this model learns from labels: give label, not loss")
        return beside | set(self.model.check_labels([one.label for one in given]))

    def ask(self, rows: Sequence[Any], numbers: Sequence[int] | None = None) -> list[Asked]:
        """Predict rows by name; one of a ranking is a query, a list of its documents."""
        model, rows = self.model, list(rows)
        if model.classes and not model.ranks:
            pairs = model.ask_proba(rows, numbers=numbers)
            return [Asked(_answer(*pair), pair[0]) for pair in pairs]
        if model.ranks:
            own = [None] * len(rows) if numbers is None else [[number] for number in numbers]
            tickets = [model.ask(row, numbers=n) for row, n in zip(rows, own, strict=True)]
        else:
            tickets = model.ask(rows, numbers=numbers)
        return [Asked(_answer(ticket, None), ticket) for ticket in tickets]

    def admit(self, ticket: TableTicket) -> TableTicket:
        """Return the ticket of a copy as one of its own."""
        return self.model.admit(ticket)

    def look(self, rows: Sequence[Any]) -> list[Json]:
        """Return predictions, chances and sets."""
        model, rows = self.model, list(rows)
        if model.ranks or not model.classes:
            made = [model.predict(row) for row in rows] if model.ranks else model.predict(rows)
            return [{"prediction": own} for own in made]
        answers: list[Json] = []
        for prediction, chances, own in model.look(rows):
            answers.append({"prediction": prediction, "probabilities": chances})
            if own is not None:
                answers[-1]["set"] = own
        return answers

    def tell(self, tickets: Sequence[Any], given: Sequence[Feedback]) -> None:
        """Learn from tickets and labels by name."""
        self.model.tell(list(tickets), [one.label for one in given], ahead=True)

    def learn(self, rows: Sequence[Any], given: Sequence[Feedback]) -> list[Any]:
        """Learn from rows and labels by name."""
        labels = [one.label for one in given]
        if not self.model.ranks:
            return list(self.model.learn(list(rows), labels))
        documents = [row for query in rows for row in query]
        ranks = self.model.learn(documents, [grade for query in labels for grade in query])
        ends = np.cumsum([0, *map(len, rows)]).tolist()
        return [ranks[a:b] for a, b in pairwise(ends)]

    def forget(self, tickets: Sequence[Any]) -> None:
        """Forget tickets."""
        for ticket in tickets:
            self.model.forget(ticket)

    def pack(self, ticket: TableTicket) -> bytes:
        """Return a ticket as bytes."""
        return ticket.to_bytes()

    def unpack(self, content: bytes) -> TableTicket:
        """Return the ticket from its bytes."""
        return TableTicket.from_bytes(content)

    def to_saved(self) -> Saved:
        """Return the model as plain data."""
        return self.model.to_saved()

    @property
    def score(self) -> Score:
        """What was paid so far."""
        model = self.model
        return Score(model.rounds, model.paid, model.baselines_paid)

    @property
    def outstanding(self) -> int:
        """How many tickets wait."""
        return self.model.outstanding

    @property
    def alarms(self) -> list[int]:
        """The rounds of alarms."""
        return [int(t) for t in self.model.alarms]

    def about(self) -> Json:
        """Say what is predicted from which columns."""
        model = self.model
        return {
            "task": model.task,
            "label": model.label,
            "columns": model.columns,
            "classes": model.classes,
            "learner": model.name,
            "members": len(model.learner.members),
        }


class LearnerServed(Served):
    """A bare learner: rows are lists of numbers, labels are what its task takes.

    Its target losses and those of no baselines are counted.
    """

    def __init__(self, learner: Learner, paid: float = 0.0, memory: int = MEMORY):
        self.learner, self._paid, self._memory = learner, paid, memory

    def check_size(self, more: int = 0) -> None:
        """Refuse a learner whose state is too large."""
        if self.learner.features is not None:
            self._check_features(self.learner.features)

    def _check_features(self, features: int) -> None:
        if isinstance(self.learner, (Member, Committee)):
            what = f"{features:,} features, for {self.learner.task!r:.80},"
            check_size(self.learner._state_bytes(features), self._memory, what)

    def check_rows(self, rows: Sequence[Any]) -> list[Any]:
        """Refuse rows that are no vectors of the learner's length, or no arrays of items."""
        expected = self.learner.features
        for i, row in enumerate(rows):
            x = _numbers(row, i)
            if self.learner.task.layout.ragged != (x.ndim == 2):
                kind = "a list of rows" if self.learner.task.layout.ragged else "a list of numbers"
                raise InputError(f"row {i}: expected {kind}")
            if expected is not None and x.shape[-1] != expected:
                raise InputError(f"row {i} has {x.shape[-1]} numbers, but the model has {expected}")
            if expected is None:
                self._check_features(x.shape[-1])
        return list(rows)

    @property
    def ticket_bytes(self) -> int:
        """The numbers of a row, and what every member expects to lose by every label."""
        return ticket_bytes(self.learner, self.learner.features or 0)

    def check_tickets(self, rows: int) -> None:
        """Refuse rows whose tickets together would be too large."""
        check_request(rows, self.ticket_bytes, self._memory, "in tickets")

    def check_feedback(self, given: Sequence[Feedback], beside: Set[str] = frozenset()) -> Set[str]:
        """Refuse labels that the task cannot have, and losses where labels are needed."""
        for one in given:
            if one.loss is None:
                self.learner.task.labels.check(one.label)
            elif not math.isfinite(one.loss):
                raise InputError(f"a loss must be finite, not {one.loss}")
        return beside

    def ask(self, rows: Sequence[Any], numbers: Sequence[int] | None = None) -> list[Asked]:
        """Predict rows."""
        if numbers is not None and getattr(self.learner, "facts", Facts()).feedback != "full":
            raise InputError("a learner that does not see labels keeps its tickets: no mode=token")
        tickets = self.learner.ask_rows(self._inputs(rows), numbers=numbers)
        return [Asked({"prediction": _plain(ticket.prediction)}, ticket) for ticket in tickets]

    def admit(self, ticket: Ticket) -> Ticket:
        """Return the ticket of a copy as one of its own."""
        return self.learner.admit(ticket)

    def look(self, rows: Sequence[Any]) -> list[Json]:
        """Return predictions."""
        made = [self.learner.predict(x) for x in self._inputs(rows)]
        return [{"prediction": _plain(prediction)} for prediction in made]

    def _inputs(self, rows: Sequence[Any]) -> Any:
        """Return rows as the learner takes many: an array, or a list of arrays."""
        made = [np.array(row, dtype=np.float64) for row in rows]
        return made if self.learner.task.layout.ragged else np.stack(made)

    def tell(self, tickets: Sequence[Any], given: Sequence[Feedback]) -> None:
        """Learn from tickets and labels, or losses."""
        losses = [one.loss for one in given if one.loss is not None]
        pairs = list(zip(tickets, given, strict=True))
        paid = [self._loss(ticket.prediction, one) for ticket, one in pairs]
        if losses and len(losses) < len(given):
            raise InputError("labels and losses cannot be told together")
        if losses:
            self.learner.tell_rows(tickets, losses=losses)
        else:
            self.learner.tell_rows(tickets, [one.label for one in given])
        for own in paid:
            self._paid += own

    def _loss(self, prediction: Any, one: Feedback) -> float:
        task = self.learner.task
        return float(task.loss(prediction, one.label)) if one.loss is None else float(one.loss)

    def learn(self, rows: Sequence[Any], given: Sequence[Feedback]) -> list[Any]:
        """Learn from rows and labels."""
        before, paid, made = self.learner.state, self._paid, []
        try:
            for row, one in zip(rows, given, strict=True):
                x = np.array(row, dtype=np.float64)
                prediction = self.learner.step(x, one.label).prediction
                self._paid += self._loss(prediction, one)
                made.append(_plain(prediction))
        except BaseException:
            self.learner.restore(before)
            self._paid = paid
            raise
        return made

    def forget(self, tickets: Sequence[Any]) -> None:
        """Forget tickets."""
        for ticket in tickets:
            self.learner.forget(ticket)

    def pack(self, ticket: Ticket) -> bytes:
        """Return a ticket as bytes."""
        return ticket.to_bytes()

    def unpack(self, content: bytes) -> Ticket:
        """Return the ticket from its bytes."""
        return Ticket.from_bytes(content)

    def to_saved(self) -> Saved:
        """Return the learner as plain data, and what it has paid."""
        about, arrays = self.learner.to_saved()  # type: ignore[attr-defined]
        return {**about, "paid": self._paid}, arrays

    @property
    def score(self) -> Score:
        """What was paid so far."""
        return Score(self.learner.rounds, self._paid, {})

    @property
    def outstanding(self) -> int:
        """How many tickets wait."""
        return self.learner.outstanding

    @property
    def alarms(self) -> list[int]:
        """The rounds of alarms, where the learner counts them."""
        return [int(t) for t in getattr(self.learner, "alarms", ())]

    def about(self) -> Json:
        """Say what the task is."""
        learner = self.learner
        return {
            "task": repr(learner.task),
            "features": learner.features,
            "learner": type(learner).__name__,
            "feedback": getattr(learner, "facts", Facts()).feedback,
        }


def served_from(
    about: Json, arrays: dict[str, np.ndarray], id: str = "", memory: int = MEMORY
) -> Served:
    """Return a model or a learner from the content of its file, or refuse it.

    ``id`` is for learners whose file has none, and ``memory`` the most bytes that a state may have.
    """
    if "table" in about:
        model = TableModel.from_saved("the model", about, arrays)
        if id and model.key is None:
            model.learner._identify(id)
        return TableServed(model, memory)
    paid = about.get("paid", 0.0)
    if type(paid) not in (int, float) or not 0.0 <= paid <= LARGEST:
        raise InputError(f"a model cannot have paid {paid!r:.80}")
    learner = loaded("the model", about, arrays)
    if not isinstance(learner, Learner):
        raise InputError(f"expected a model of a table or a learner, but got {learner!r:.80}")
    made = LearnerServed(learner, float(paid), memory)
    if id:
        made.learner._identify(id)  # type: ignore[attr-defined]
    return made


def warm_up(served: Served) -> None:
    """Compile what a model needs, by a few rows: not for one that is in use, but for a copy.

    The first rows of a model would else wait for the compiler, for up to a minute.
    """
    if not isinstance(served, TableServed):
        return
    model = served.model
    try:
        blank, names = model.blank_row, model.classes or ["a", "b"]
        label: Any = [] if model.task == "tags" else names[0]
        row, told = ([blank], [0]) if model.ranks else (blank, label)
        for _ in range(2):
            tickets = [own.ticket for own in served.ask([row, row])]
            served.look([row, row])
            served.tell(tickets, [Feedback(told)] * 2)
            served.learn([row] * 3, [Feedback(told)] * 3)
            served.tell([own.ticket for own in served.ask([row])], [Feedback(told)])
    except InputError:  # a model that takes no such rows compiles when its own come
        return


def _numbers(row: Any, place: int) -> np.ndarray:
    try:
        x = np.array(row, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"row {place}: expected numbers, but saw {row!r:.80}") from None
    if x.ndim not in (1, 2) or not x.size or not (np.abs(x) <= LARGEST).all():
        raise InputError(f"row {place}: expected finite numbers, but saw {row!r:.80}")
    return x


def _answer(ticket: TableTicket, chances: dict[str, float] | None) -> Json:
    made: Json = {"prediction": ticket.prediction}
    if chances is not None:
        made["probabilities"] = chances
    return made if ticket.set is None else made | {"set": ticket.set}


def _plain(prediction: Any) -> Any:
    return prediction.tolist() if hasattr(prediction, "tolist") else prediction
