"""What learners share: rounds in two halves, and streams, under one lock."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from threading import get_ident
from typing import Any, ClassVar, Self, TypedDict

import numpy as np
import numpy.typing as npt

from driftline.delays import Delay, delays_of
from driftline.errors import InputError
from driftline.inputs import Rows, fingerprint
from driftline.learner.facts import Facts
from driftline.learner.feedback import FULL, Feedback
from driftline.learner.hooks import Hooks
from driftline.learner.late import LateRun, Waiting
from driftline.learner.outstanding import Outstanding
from driftline.learner.predictor import Predictor
from driftline.learner.probabilities import gives_probabilities, log_probabilities
from driftline.learner.sample_weight import checked_weights
from driftline.learner.telling import tell_rows, told_loss
from driftline.learner.ticket import Ticket, plain
from driftline.learner.transaction import Given, checked_stream, played, transact
from driftline.learner.turn import Turn
from driftline.parts import check_flag
from driftline.state import Draws, Stateful, archive
from driftline.state.loading import register
from driftline.tasks import Task
from driftline.trace import Batch, Sink
from driftline.typing import CheckedLabels, Input, Inputs, Label, Labels, Prediction, Saved

__all__ = ["Shell"]

#: What is said where labels have no probabilities.
NO_PROBABILITIES = (
    "there are probabilities of classes, signs, levels and tags, for learners that see labels: not "
    "for {!r:.80}"
)

#: What a learner knows of its tickets.
TICKETS = frozenset({"_tickets", "_outstanding", "_identity", "_late"})


@cache
def _without_tickets(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name for name in names if name not in TICKETS)


class TicketFields(TypedDict):
    """The fields of a state on outstanding tickets."""

    outstanding: np.ndarray | None
    identity: str
    late: Saved | None


class Shell(Hooks):
    """The base of learners, which say how to play a batch, predict a row, and be restored."""

    _learned: ClassVar[tuple[str, ...]] = (
        "_draws",
        "_tickets",
        "_outstanding",
        "_identity",
        "_late",
    )

    #: The facts of a learner that never change; those of a class are what its learners share.
    _fixed: Facts = Facts()

    def __init_subclass__(cls, **given: Any) -> None:
        """Register the class, so that files and audits find it by its name."""
        super().__init_subclass__(**given)
        register(cls)

    #: The branch of the seed, so that a committee does not draw its members' numbers.
    _BRANCH = 0

    def __init__(self, task: Task, seed: int | None):
        self.task = task
        #: What is seen of labels.
        self.feedback: Feedback = FULL
        self._layout, self._largest_loss = task.layout, task.largest_loss  # asked in every round
        self._turn = Turn()
        self._draws = Draws.from_seed(seed, self._BRANCH)
        self._tickets = 0  # the number of the next one
        self._outstanding = Outstanding()
        #: The id by which a learner knows its own tickets, "" before the first one. It goes into
        #: copies and files, and is no part of what makes learners equal.
        self._identity = ""
        #: Rounds of a run whose labels are still to come.
        self._late: Waiting | None = None

    @property
    def facts(self) -> Facts:
        """Facts of the learner as it is now: see :class:`~driftline.learner.Facts`."""
        return self._fixed

    @property
    def _inside(self) -> tuple[str, ...]:
        """The names of what changes in a member of a committee, which has no tickets of its own."""
        return _without_tickets(self._learned)

    def copy(self) -> Self:
        """Return a learner of the same parts and state, which goes on by itself."""
        with self._turn.lock:
            self._check_copied()
            return Stateful.copy(self)

    def _unshare(self) -> None:
        self._turn = Turn()

    # -- rounds in two halves

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
        if probabilities and (not self.feedback.full or not gives_probabilities(self.task)):
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
        if not self.feedback.full:
            raise InputError("a learner that does not see labels draws its own predictions")
        with self._turn.lock:
            self._turn.check()
            self._check_features(self._row(ticket.checked_input()))
            ticket.check_rounds(self.rounds)
            number = self._tickets
            made = replace(ticket, number=number, learner=self._identify())
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
            known, learner, prediction = (
                self.rounds,
                self._identify(),
                self.task.predictions.value,
            )
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
        loss = None if loss is None else told_loss(loss)
        with self._turn.lock, self._shield():
            self._turn.check()
            self._check_ticket(ticket)
            checked = self.feedback.seen(self.task, ticket, label, loss)
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
        tell_rows(self, tickets, labels, losses)

    def _finish(self, tickets: Sequence[Ticket]) -> None:
        """Expect no more labels for some tickets; this may be done twice."""
        self._outstanding.discard([ticket.number for ticket in tickets])
        self._keep_waiting()

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
        ticket.check(self._identify(), self._tickets)
        if ticket.number not in self._outstanding:
            raise InputError(
                f"ticket {ticket.number} is not outstanding: it was told or forgotten before, or "
                "was never asked for"
            )

    # -- what is known of tickets

    def _identify(self, given: str = "") -> str:
        """Return the id of the learner, 32 hexadecimal digits; if there is none yet, make it.

        ``given`` is that of a learner whose tickets go to nobody else.
        """
        if not self._identity:
            self._identity = given or secrets.token_hex(16)
        return self._identity

    def _reseed(self, seed: int) -> None:
        """Draw by another seed; tickets of the old one are those of another learner."""
        self._draws, self._identity = Draws.from_seed(seed, self._BRANCH), ""
        self._outstanding, self._late = Outstanding(), None

    def _resume_tickets(self, state: Any) -> None:
        """Go on with the random numbers and the tickets of a state."""
        made, numbers = self._late_of(state), state.outstanding
        self._draws, self._tickets = Draws(state.key), state.tickets
        self._identity = state.identity or self._identity
        self._outstanding, self._late = Outstanding(numbers), made

    def _late_of(self, state: Any) -> Waiting | None:
        """Return the rounds of a state that wait for labels, if they can be this learner's."""
        late, numbers = state.late, state.outstanding
        made = None if late is None else Waiting.from_saved(self.task, late, numbers)
        if made is not None:
            self._check_waiting(made)
        return made

    def _check_waiting(self, waiting: Waiting) -> None:
        """Refuse what cannot be kept of rounds that wait; shape and finiteness are checked."""
        self.feedback.check_waiting(waiting)

    @property
    def _waiting(self) -> TicketFields:
        """What a state has of tickets that are outstanding: their numbers, and whose they are."""
        if not len(self._outstanding):
            return {"outstanding": None, "identity": self._identity, "late": None}
        late = None if self._late is None else self._late.to_saved()
        numbers = self._outstanding.to_array()
        return {"outstanding": numbers, "identity": self._identity, "late": late}

    @property
    def _tells_together(self) -> bool:
        """Whether tickets can be told together, as one run."""
        return self.feedback.full

    # -- streams

    def run(
        self,
        inputs: Inputs,
        labels: Labels = None,
        *,
        seed: int | None = None,
        progress: Callable[[int], None] | None = None,
        audit: bool | None = None,
        sink: Sink | None = None,
        sample_weight: npt.ArrayLike | None = None,
        delay: Delay | npt.ArrayLike | None = None,
        probabilities: bool = False,
    ) -> Any:
        """Play a stream: every row is predicted before it is learned from.

        Parameters
        ----------
        inputs, labels
            One row and one label a round: an array or a CSR matrix, and what the task takes
            as labels. Or a stream, which has both, and may have sample weights.
        seed
            If given, random numbers are those of this seed from now on.
        progress
            A callback that is given the number of rounds just played, every few thousand rounds. It
            may predict with the learner, but not learn.
        audit
            Whether the trace keeps the state from before the first round, so that the run can be
            replayed and certified. Default: if that state is no larger than the inputs.
        sink
            What receives the trace of each batch, such as a :class:`~driftline.TraceFile`. Then
            nothing else is kept, and memory does not grow with the stream.
        sample_weight
            How often each round counts, 0 or from 1e-9 to a million: a round of weight h has h
            times the loss and the target loss. One of weight 0 is predicted, and changes no
            weights; maps and scalings of inputs see all rows alike.
        delay
            After how many more rounds each label comes: a number, an array with one for each round
            (a negative one for never), or a distribution such as ``dl.delays.Geometric(50)``. A
            round is predicted at once and learned from when its label comes, as by :meth:`ask` and
            :meth:`tell`. Labels that have not come at the end come in the next run.
        probabilities
            Whether the trace has the probabilities of every label, before the label of its row was
            seen: for classes, signs, levels and tags. A trace that is saved leaves them out.

        Returns
        -------
        Trace
            One row a round; None if there is a sink. If a row is refused, or the run interrupted,
            the learner is rolled back to its state before the run. A learner with more weights than
            there are inputs has no checkpoint to roll back to: then the rounds before an
            interruption, or before a step that overflows, are kept, and the error says how many.
        """
        if progress is not None and not callable(progress):
            raise InputError(f"progress must be a function of a number of rounds, not {progress!r}")
        if audit is not None:
            check_flag("audit", audit)
        if labels is None and sample_weight is None:
            sample_weight = getattr(inputs, "sample_weight", None)
        rows, labels = checked_stream(self.task, inputs, labels)
        if sink is not None and not isinstance(sink, Sink):
            raise InputError(f"expected a sink, such as dl.TraceFile(path), but got {sink!r:.80}")
        self._check_probabilities(probabilities, sink)
        given = Given(
            checked_weights(sample_weight, rows.rounds),
            fingerprint(rows, labels),
            seed,
            progress,
            audit,
            sink,
            probabilities=probabilities,
        )
        if delay is not None:
            if sink is not None:
                raise InputError("a sink takes rounds in their order: give no delay, or no sink")
            events, late = self._run_late(rows, labels, delay, given)
            return events.rounds_of(late)
        if self._late is not None:
            raise InputError(
                f"labels of {len(self._late.numbers)} rounds are still to come: give a delay for "
                "the rounds after them, which may be 0"
            )
        return self._run(rows, labels, given)

    def _check_probabilities(self, probabilities: bool, sink: Sink | None = None) -> None:
        """Refuse probabilities where there are none, or where nobody would have them."""
        check_flag("probabilities", probabilities)
        if not probabilities:
            return
        if sink is not None:
            raise InputError("probabilities are in the trace that is returned: give no sink")
        if not self.feedback.full or not gives_probabilities(self.task):
            raise InputError(NO_PROBABILITIES.format(self))

    def _run_late(
        self,
        rows: Rows,
        labels: CheckedLabels,
        delay: Delay | npt.ArrayLike,
        given: Given,
    ) -> tuple[Any, LateRun]:
        """Play a run whose labels come late; return the trace of its events, and which these are.

        If no label comes in it, rounds are only predicted, and wait.
        """
        with self._turn.lock:
            self._turn.check()
            self._check_features(rows)
            waiting, number = self._late if given.seed is None else None, self._tickets
            delays = delays_of(delay, number, rows.rounds)
            late = LateRun(number, rows, labels, given.sample_weight, delays, waiting)
        events, codes, weights = late.events
        trace = self._run(events, codes, given._replace(sample_weight=weights, late=late))
        return trace, late

    def _run_events(
        self,
        inputs: Inputs,
        labels: Labels,
        delay: npt.ArrayLike,
        *,
        audit: bool | None = None,
        sample_weight: npt.ArrayLike | None = None,
        probabilities: bool = False,
    ) -> tuple[Any, LateRun]:
        """Do what :meth:`run` does with a delay, for those who keep rounds until labels come.

        Return the trace of all events, in which a round is asked for or told, and which these are.
        Events of runs that follow each other are those of one run: their traces can be joined.
        Rounds whose label never comes are forgotten.
        """
        rows, labels = checked_stream(self.task, inputs, labels)
        self._check_probabilities(probabilities)
        weights = checked_weights(sample_weight, rows.rounds)
        given = Given(weights, "", audit=audit, probabilities=probabilities)
        trace, late = self._run_late(rows, labels, delay, given)
        with self._turn.lock:
            never, numbers = late.numbers[late.due < 0], self._outstanding.to_array()
            self._outstanding = Outstanding(np.setdiff1d(numbers, never))
        return trace.of_events(late), late

    @property
    def _waits(self) -> int:
        """How many rounds of a run wait for labels that come at known rounds."""
        return len(self._late_numbers)

    @property
    def _late_numbers(self) -> np.ndarray:
        """The numbers of these rounds."""
        return np.zeros(0, dtype=np.int64) if self._late is None else self._late.numbers.copy()

    def learn_rows(
        self, inputs: Inputs, labels: Labels, sample_weight: npt.ArrayLike | None = None
    ) -> None:
        """Do all that :meth:`run` does, but keep no trace: for many short streams."""
        rows, labels = checked_stream(self.task, inputs, labels)
        weights = checked_weights(sample_weight, rows.rounds)
        self._run(rows, labels, Given(weights, audit=False))

    def _run(self, rows: Rows, labels: CheckedLabels, given: Given) -> Any:
        """Play batch after batch, all or nothing; return the trace, if a digest for it is given."""
        turn, player = self._turn, get_ident()
        turn.check()  # a callback's stream must not end the one that it is called from
        try:
            turn.begin()
            played = transact(self, rows, labels, given)
            turn.player = 0  # also here: an exception at the line below would leave it
            return played
        finally:
            if turn.player == player:
                turn.player = 0

    def learn_row(self, x: Input, label: Label) -> None:
        """Do all that :meth:`step` does, but return nothing."""
        row, checked = self._row(x), self.task.labels.check(label)
        with self._turn.lock, self._shield():
            self._turn.check()
            self._learn_next(row, checked)

    def _learn_next(self, row: Rows, label: Label) -> Any:
        """Play a round by the next ticket: after an exception that is used up if the round counts.

        A round counts as soon as :attr:`rounds` does, which one compiled call writes together with
        the weights.
        """
        number, rounds = self._tickets, self.rounds
        try:
            played = self._learn_one(row, label, number)
            self._tickets = number + 1
            return played
        except BaseException:
            self._tickets = number + self.rounds - rounds
            raise

    def _played(self, rows: Rows, labels: CheckedLabels, given: Given, keep: bool) -> Any:
        return played(self, rows, labels, given, keep)

    # -- looking

    def predict(self, x: Input) -> Prediction:
        """Return the prediction that :meth:`step` would make now, and change nothing."""
        return self._predict(self._row(x))[0]

    def predict_rows(self, inputs: Inputs) -> list[Prediction]:
        """Return what :meth:`predict` returns for each of many inputs, and change nothing.

        >>> import driftline as dl
        >>> stream = dl.streams.LabelFlips(rounds=1000, flips=1, seed=0)
        >>> learner = dl.auto(stream.task)
        >>> _ = learner.run(stream)
        >>> made = learner.predict_rows(stream.inputs[:20])
        >>> made == [learner.predict(x) for x in stream.inputs[:20]]
        True
        """
        rows = self._many(inputs)
        return [] if rows is None else self._predict(rows)

    def _predict(self, rows: Rows) -> list[Prediction]:
        """Return what would be predicted next for each of some rounds."""
        with self._turn.lock:
            self._check_features(rows)
            made = self._look(rows, np.full(rows.rounds, self._tickets), whole=False)
        return [self.task.predictions.value(row) for row in made.predictions]

    def snapshot(self) -> Predictor:
        """Return a predictor that stays as the learner is now, for any number of threads.

        >>> import driftline as dl
        >>> stream = dl.streams.LabelFlips(rounds=1000, flips=1, seed=0)
        >>> learner = dl.auto(stream.task)
        >>> _ = learner.run(stream.inputs[:500], stream.labels[:500])
        >>> fixed, now = learner.snapshot(), learner.predict(stream.inputs[0])
        >>> _ = learner.run(stream.inputs[500:], stream.labels[500:])
        >>> fixed.predict(stream.inputs[0]) == now
        True
        """
        own = self.copy()

        def predict(x: Input) -> Prediction:
            row, number = own._row(x), np.array([own._tickets])
            own._check_features(row)
            return own.task.predictions.value(own._look(row, number, whole=False).predictions[0])

        return Predictor(self.task, own.rounds, predict)

    def _probabilities_in(self, batch: Batch) -> np.ndarray:
        """Return the probabilities of labels before rounds that were played with their scores."""
        return self._probabilities(*self._scores_of(batch), batch["prediction"])

    def _probabilities(
        self, scores: np.ndarray, weights: np.ndarray, predicted: np.ndarray
    ) -> np.ndarray:
        """Return the probabilities of labels; a prediction that is certain is the most probable."""
        codes = predicted if self._takes_top else None
        made: np.ndarray = np.exp(log_probabilities(self.task, scores, weights, codes))
        return made

    def _row(self, x: Input) -> Rows:
        """Wrap the input of one round."""
        return self._layout.row(x)

    def _check_features(self, rows: Rows) -> None:
        expected = self.features
        if expected is not None and rows.features != expected:
            raise InputError(
                f"inputs have {rows.features} features, but the learner has seen {expected}"
            )

    # -- files

    def save(self, path: str | Path) -> Path:
        """Write the learner to one file, for :func:`driftline.load`; return where it is.

        The file has plain data only. The learner that is loaded goes on with the same bits. It has
        the rounds of a run whose labels are still to come, with these labels. Of a model of another
        library it has the name, and :func:`driftline.load` takes that model again.
        """
        return archive.write(path, *self.to_saved(), models=True)

    def to_saved(self) -> Saved:
        """Return parts and state as plain data and arrays."""
        with self._turn.lock:
            return self._to_saved()

    def __reduce__(self) -> tuple[Callable[..., Self], Saved]:
        """Pickle and copy the saved form: addresses of compiled code hold in one process only."""
        about, arrays = self.to_saved()
        return type(self).from_saved, (about, {k: a.copy() for k, a in arrays.items()})


def _numbers(given: npt.ArrayLike, rows: Rows) -> np.ndarray:
    """Return the numbers of tickets, if they can be some."""
    made = np.asarray(given)
    if made.shape != (rows.rounds,) or made.dtype.kind not in "iu" or (made < 0).any():
        raise InputError(f"expected {rows.rounds} whole numbers of 0 or more, not {given!r:.80}")
    return made.astype(np.int64)
