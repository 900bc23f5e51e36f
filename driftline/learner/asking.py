"""Rounds in two halves: tickets that are asked for, and told when labels come."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from driftline.errors import InputError
from driftline.inputs import Rows
from driftline.inputs.taking import join
from driftline.learner.core import Core, Given
from driftline.learner.late import ToldRun
from driftline.learner.probabilities import gives_probabilities
from driftline.learner.ticket import Ticket, plain
from driftline.parts import check_flag
from driftline.typing import CheckedLabels, Input, Inputs, Label, Labels

__all__ = ["Asking"]

#: What is said where labels have no probabilities.
NO_PROBABILITIES = (
    "there are probabilities of classes, signs, levels and tags, for learners that see labels: not "
    "for {!r:.80}"
)

#: So many tickets are told one by one: to begin a run takes longer.
FEW = 10


class Asking(Core):
    """Asks for tickets and tells them, one by one and in groups, with the same bits."""

    def ask(self, x: Input) -> Ticket:
        """Predict an input; change nothing but the tickets: which are outstanding, which is next.

        >>> import driftline as dl
        >>> learner = dl.OGD(dl.losses.Logistic(dl.tasks.Multiclass(3)))
        >>> first, second, third = (learner.ask(x) for x in ([0.6, 0.8], [0.0, 1.0], [1.0, 0.0]))
        >>> learner.tell(third, label=2)
        >>> learner.tell(first, label=0)
        >>> learner.outstanding, learner.rounds
        (1, 2)
        >>> learner.forget(second)
        >>> learner.outstanding
        0
        """
        return self._ask(self._row(x))[0]

    def ask_rows(
        self,
        inputs: Inputs,
        *,
        numbers: npt.ArrayLike | None = None,
        probabilities: bool = False,
    ) -> list[Ticket]:
        """Return what :meth:`ask` returns for one input after the other, much faster.

        If one of them is refused, all are, and no ticket was asked for.

        Parameters
        ----------
        inputs
            As :meth:`run` takes them: an array or a CSR matrix with a row for every round.
        numbers
            Of the tickets, by which random predictions are drawn. With these nothing is
            outstanding: for a copy of the learner, whose tickets the learner :meth:`admits <admit>`
            when their labels come.
        probabilities
            Whether tickets have the probabilities of every label, as :meth:`run` has them.

        Examples
        --------
        >>> import driftline as dl
        >>> stream = dl.streams.LabelFlips(rounds=1000, flips=1, seed=0)
        >>> learner = dl.auto(stream.task)
        >>> _ = learner.run(stream.inputs[:900], stream.labels[:900])
        >>> tickets = learner.ask_rows(stream.inputs[900:])
        >>> [ticket.number for ticket in tickets[:3]], learner.outstanding
        ([900, 901, 902], 100)
        >>> learner.tell_rows(tickets, stream.labels[900:])
        >>> learner.rounds, learner.outstanding
        (1000, 0)
        """
        check_flag("probabilities", probabilities)
        if probabilities and (self.feedback != "full" or not gives_probabilities(self.task)):
            raise InputError(NO_PROBABILITIES.format(self))
        rows = self._many(inputs)
        if rows is None:
            return []
        given = None if numbers is None else _numbers(numbers, rows)
        return self._ask(rows, given, probabilities)

    def admit(self, ticket: Ticket) -> Ticket:
        """Return the ticket of a copy as one of this learner's own, which is outstanding here.

        For a service whose copies predict, while one learner learns. What members predicted is
        believed: admit no tickets but those of copies. A learner that does not see labels refuses.

        >>> import driftline as dl
        >>> learner = dl.OGD(dl.losses.Logistic(dl.tasks.Multiclass(3)))
        >>> learner.learn_row([0.6, 0.8], 1)
        >>> (ticket,) = learner.copy().ask_rows([[0.0, 1.0]], numbers=[77])
        >>> learner.tell(learner.admit(ticket), 2)
        >>> learner.rounds
        2
        """
        if not isinstance(ticket, Ticket):
            raise InputError(f"expected a ticket, as ask() returns it, but got {ticket!r:.80}")
        if self.feedback != "full":
            raise InputError("a learner that does not see labels draws its own predictions")
        with self._turn.lock:
            self._turn.check()
            self._check_features(self._row(ticket.checked_input()))
            ticket.check_rounds(self.rounds)
            number = self._tickets
            made = replace(ticket, number=number, learner=self.identify())
            self._ask_for(1)
            return made

    def _many(self, inputs: Inputs) -> Rows | None:
        """Wrap the inputs of many rounds; None if there are none."""
        if isinstance(inputs, list) and not inputs:
            return None
        rows = self._layout.rows(inputs)
        return rows if rows.rounds else None

    def _ask(
        self, rows: Rows, numbers: np.ndarray | None = None, probabilities: bool = False
    ) -> list[Ticket]:
        """Return a ticket for every round; these have the next numbers, unless others are given."""
        with self._turn.lock:
            self._turn.check()
            self._check_features(rows)
            first, count = self._tickets, rows.rounds
            wanted = np.arange(first, first + count) if numbers is None else numbers
            looked = self._look(rows, wanted)
            made, mean, means, mapped, scores, known_chances, theirs, book = looked
            chances: Any = [None] * count
            if probabilities and known_chances is not None:
                chances = known_chances
            elif probabilities and scores is not None:
                chances = self._probabilities(scores, self._believed(len(scores)), made)
            known, learner, prediction = (self.rounds, self.identify(), self.task.predictions.value)
            if count > 1:  # one ticket does not keep the arrays of all alive
                mean = [own.copy() for own in mean]
                means = None if means is None else [own.copy() for own in means]
            inputs, seen = plain(rows), None if mapped is None else plain(mapped)
            tickets = [
                Ticket(
                    int(wanted[t]),
                    known,
                    learner,
                    prediction(made[t]),
                    mean[t],
                    inputs[t],
                    None if seen is None else seen[t],
                    None if means is None else means[t],
                    chances[t],
                    None if theirs is None else theirs[t].copy(),
                    None if book is None else book[t].copy(),
                )
                for t in range(count)
            ]
            if numbers is None:
                self._ask_for(count)
            return tickets

    def _ask_for(self, count: int) -> None:
        """Let the next tickets be outstanding: all of them, or none after an exception."""
        first = self._tickets
        try:
            self._outstanding.add_next(first, count)
            self._tickets = first + count
        except BaseException:
            self._take_back(first)
            raise

    def _take_back(self, first: int) -> None:
        """Forget that this ticket and those after it were asked for."""
        self._outstanding.remove_from(first)
        self._tickets = first

    def tell(self, ticket: Ticket, label: Label = None, *, loss: float | None = None) -> None:
        """Learn from a ticket and its label, which may come late, and in any order.

        Or from the target loss alone, where a learner takes it: :class:`~driftline.bandit.Bandit`
        does, and so do all learners of two classes, since the loss names the label.

        The step is made at the weights of now, where the label arrives, and the input is mapped and
        scaled as it would be now. So a restart, a new class or a moved map in between needs no
        special case. A committee moves its weights by what its members predicted when it was asked.

        The ticket must be the learner's own, in this process or another, and outstanding: not told
        or forgotten before. All that is learned from is its input, which is checked as any input
        is, and what members predicted.
        """
        if (label is None) == (loss is None):
            raise InputError("expected a label, or loss=, and not both")
        loss = None if loss is None else _loss(loss)
        with self._turn.lock, self._shield():
            self._turn.check()
            self._check_ticket(ticket)
            checked = self._feedback(ticket, label, loss)
            row = self._row(ticket.checked_input())
            late = ticket.rounds != self.rounds
            paid = self._paid_then([ticket], [checked], row) if late else None
            self._tell_one(ticket, row, checked, None if paid is None else paid[0])

    def _tell_one(self, ticket: Ticket, row: Rows, label: Label, paid: np.ndarray | None) -> None:
        """Learn from a ticket: after an exception it is told if its round counts."""
        rounds = self.rounds
        try:
            self._learn_ticket(row, label, ticket, paid)
            self._outstanding.remove(ticket.number)
            self._keep_waiting()
        except BaseException:
            if self.rounds != rounds:
                self._finish([ticket])
            raise

    def tell_rows(
        self,
        tickets: Iterable[Ticket],
        labels: Labels = None,
        *,
        losses: Iterable[float] | None = None,
    ) -> None:
        """Learn from tickets and their labels: the same bits as told one by one, much faster.

        If one ticket or label is refused, nothing is learned from any.

        Parameters
        ----------
        tickets
            In the order in which they are learned from, each once; some may have been asked for
            long ago, and others just now.
        labels
            One for every ticket, in the form that :meth:`run` takes.
        losses
            In place of labels, the target losses of the predictions, where :meth:`tell` takes it.

        Examples
        --------
        >>> import driftline as dl
        >>> learner = dl.OGD(dl.losses.Logistic(dl.tasks.Multiclass(3)))
        >>> tickets = learner.ask_rows([[0.6, 0.8], [0.0, 1.0], [1.0, 0.0]])
        >>> learner.tell_rows(tickets[:2], [2, 0])
        >>> learner.rounds, learner.outstanding
        (2, 1)
        >>> learner.tell_rows(tickets, [2, 0, 1])
        Traceback (most recent call last):
        ...
        driftline.errors.InputError: place 0 of the list: ticket 0 is not outstanding: it was told
        or forgotten before, or was never asked for
        """
        self._tell_rows(tickets, labels, losses)

    def _tell_rows(
        self, tickets: Iterable[Ticket], labels: Labels, losses: Iterable[float] | None
    ) -> np.ndarray | None:
        """Learn from tickets; return what was paid for them, where a learner must know it."""
        if (labels is None) == (losses is None):
            raise InputError("expected labels, or losses=, and not both")
        if isinstance(tickets, (Ticket, str)) or not isinstance(tickets, Iterable):
            raise InputError(f"expected a list of tickets, but got {tickets!r:.80}")
        given, told = list(tickets), _listed(labels if losses is None else losses)
        if len(given) != len(told):
            what = "labels" if losses is None else "losses"
            raise InputError(f"there are {len(given)} tickets but {len(told)} {what}")
        if not given:
            return None
        with self._turn.lock:
            self._turn.check()
            together = len(given) > FEW and self._tells_together
            rows, rounds = self._plain_rounds(given) if together else None, list[Rows]()
            if rows is None:
                rounds = self._rounds_of(given)
                rows = join(rounds) if together else None
            checked = self._all_feedback(given, labels, told, losses is not None)
            paid = self._paid_then(given, checked, rounds[0] if rows is None else rows)
            if rows is None:
                with self._shield():
                    self._tell_each(given, rounds, checked, paid)
            else:
                rows.check_labels(checked)
                numbers = np.array([ticket.number for ticket in given])
                then = np.array([ticket.rounds for ticket in given])
                now = then == self.rounds + np.arange(len(given))
                late = ToldRun(self._tickets, numbers, paid, now)
                self._run(rows, checked, Given(audit=False, late=late))
            return paid

    def _plain_rounds(self, tickets: Sequence[Ticket]) -> Rows | None:
        """Return the inputs of many tickets, if all are outstanding and have plain vectors.

        None says nothing: :meth:`_rounds_of` then looks at each, and says what is wrong.
        """
        inputs = [ticket.input if isinstance(ticket, Ticket) else None for ticket in tickets]
        first, learner = inputs[0], self.identify()
        if self._layout.ragged or not isinstance(first, np.ndarray) or first.ndim != 1:
            return None
        shape, kind = first.shape, first.dtype
        for own, ticket in zip(inputs, tickets, strict=True):
            if type(own) is not np.ndarray or own.shape != shape or own.dtype != kind:
                return None
            if ticket.learner != learner or type(ticket.number) is not int:
                return None
            if type(ticket.rounds) is not int or not 0 <= ticket.rounds <= self._tickets:
                return None
        numbers = [ticket.number for ticket in tickets]
        if len(set(numbers)) < len(numbers) or min(numbers) < 0 or max(numbers) >= self._tickets:
            return None
        if not self._outstanding.has_all(np.array(numbers, dtype=np.int64)):
            return None
        return self._layout.rows(np.array(inputs))

    def _rounds_of(self, tickets: Sequence[Ticket]) -> list[Rows]:
        """Return the inputs of tickets that are outstanding, each in the list once."""
        made, seen = [], set[int]()
        for i, ticket in enumerate(tickets):
            try:
                self._check_ticket(ticket)
                if ticket.number in seen:
                    raise InputError(f"ticket {ticket.number} is in the list twice")
                made.append(self._row(ticket.checked_input()))
            except InputError as error:
                raise _at_place(i, tickets, error) from error
            seen.add(ticket.number)
        return made

    def _all_feedback(
        self, tickets: Sequence[Ticket], labels: Labels, told: list[Any], losses: bool
    ) -> CheckedLabels:
        """Return the checked labels of tickets, or what a learner sees of them."""
        if self.feedback == "full" and not losses:
            try:
                return self.task.labels.check_all(
                    labels if isinstance(labels, np.ndarray) else told
                )
            except InputError:  # then one by one, to say which
                pass
        made = []
        for i, (ticket, own) in enumerate(zip(tickets, told, strict=True)):
            try:
                if losses:
                    made.append(self._feedback(ticket, None, _loss(own)))
                else:
                    made.append(self._feedback(ticket, own, None))
            except InputError as error:
                raise _at_place(i, tickets, error) from error
        if self.feedback == "full":  # in the form of many
            return self.task.labels.check_all([self.task.labels.value(label) for label in made])
        return made

    def _tell_each(
        self,
        tickets: Sequence[Ticket],
        rounds: Sequence[Rows],
        labels: CheckedLabels,
        paid: np.ndarray | None,
    ) -> None:
        """Learn from one ticket after the other; if one is refused, go back to before the first.

        If none can be, there is no copy: after an exception those are told whose rounds count.
        """
        before, rounds_before, i = None, self.rounds, 0
        if len(tickets) > 1 and not self._accepts(rounds):
            before = self._checkpoint(weights=True)
        try:
            for i, (ticket, row, label) in enumerate(zip(tickets, rounds, labels, strict=True)):
                self._learn_ticket(row, label, ticket, None if paid is None else paid[i])
            self._finish(tickets)
        except BaseException as error:
            if before is None:
                self._finish(tickets[: self.rounds - rounds_before])
            else:
                self._rollback(before)
            if isinstance(error, InputError) and len(tickets) > 1:
                raise _at_place(i, tickets, error) from error
            raise

    def _finish(self, tickets: Sequence[Ticket]) -> None:
        """Expect no more labels for some tickets; this may be done twice."""
        self._outstanding.discard([ticket.number for ticket in tickets])
        self._keep_waiting()

    def _feedback(self, ticket: Ticket, label: Label, loss: float | None) -> Label:
        """Return the checked label of a ticket; a loss names it where there are two."""
        if loss is None:
            return self.task.labels.check(label)
        labels = list(self.task.labels.all) if self.task.zero_one else []
        if len(labels) != 2:
            raise InputError(
                f"the loss alone does not name the label of {self.task!r}: give the label, or make "
                "a learner for bandit feedback, as by dl.auto(task, feedback='bandit')"
            )
        if loss not in (0.0, 1.0):
            raise InputError(f"the loss is 0 for a hit and 1 for a miss, but is {loss!r:.80}")
        predicted = self.task.labels.value(self.task.labels.check(ticket.prediction))
        named = [one for one in labels if (one == predicted) == (loss == 0.0)]
        return self.task.labels.check(named[0])

    def _learn_ticket(
        self, row: Rows, label: Label, ticket: Ticket, paid: np.ndarray | None
    ) -> None:
        """Learn from a ticket's input and its checked label; see :meth:`_paid_then`."""
        if ticket.rounds == self.rounds:
            self._learn_one(row, label, ticket.number)
        else:
            self._learn_late(row, label, ticket.number, paid)

    def forget(self, ticket: Ticket | None = None, *, before: Ticket | int | None = None) -> None:
        """Say that no label will come for a ticket, or for all tickets asked for before another.

        ``before`` is a ticket, or its number.
        """
        if (ticket is None) == (before is None):
            raise InputError("expected a ticket to forget, or before=, and not both")
        with self._turn.lock:
            self._turn.check()
            if ticket is not None:
                self._check_ticket(ticket)
                self._forget(lambda: self._outstanding.remove(ticket.number))
                return
            number = before.number if isinstance(before, Ticket) else before
            if isinstance(number, bool) or not isinstance(number, (int, np.integer)):
                raise InputError(f"before must be a ticket or its number, not {before!r:.80}")
            self._forget(lambda: self._outstanding.remove_before(int(number)))

    def _forget(self, remove: Callable[[], object]) -> None:
        """Remove tickets, and rounds that wait for their labels."""
        try:
            remove()
            self._keep_waiting()
        except BaseException:
            self._keep_waiting()
            raise

    def _keep_waiting(self) -> None:
        """Let rounds of a run wait for their labels only while they are outstanding."""
        if self._late is not None:
            self._late = self._late.among(self._outstanding.to_array())

    @property
    def outstanding(self) -> int:
        """How many tickets were asked for, and neither told nor forgotten yet."""
        return len(self._outstanding)

    def _check_ticket(self, ticket: Ticket) -> None:
        """Refuse a ticket that is not outstanding."""
        if not isinstance(ticket, Ticket):
            raise InputError(f"expected a ticket, as ask() returns it, but got {ticket!r:.80}")
        ticket.check(self.identify(), self._tickets)
        if ticket.number not in self._outstanding:
            raise InputError(
                f"ticket {ticket.number} is not outstanding: it was told or forgotten before, or "
                "was never asked for"
            )


def _numbers(given: npt.ArrayLike, rows: Rows) -> np.ndarray:
    """Return the numbers of tickets, if they can be some."""
    made = np.asarray(given)
    if made.shape != (rows.rounds,) or made.dtype.kind not in "iu" or (made < 0).any():
        raise InputError(f"expected {rows.rounds} whole numbers of 0 or more, not {given!r:.80}")
    return made.astype(np.int64)


def _loss(given: Any) -> float:
    """Return a loss that was told, if it is a number."""
    if np.ndim(given) or np.asarray(given).dtype.kind not in "biuf":
        raise InputError(f"loss= must be a number, not {given!r:.80}")
    return float(given)


def _listed(labels: Any) -> list[Any]:
    """Return labels or losses as a list."""
    if isinstance(labels, str) or not isinstance(labels, Iterable):
        raise InputError(f"expected a list with one for every ticket, but got {labels!r:.80}")
    return list(labels)


def _at_place(place: int, tickets: Sequence[Ticket], error: InputError) -> InputError:
    """Return the error of one ticket, with its place in a list of several."""
    return InputError(f"place {place} of the list: {error}") if len(tickets) > 1 else error
