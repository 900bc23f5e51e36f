"""What learners share: streams played batch by batch, all or nothing, under one lock."""

from __future__ import annotations

import hashlib
import json
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from threading import get_ident
from typing import Any, ClassVar, NamedTuple, Self, TypedDict

import numpy as np
import numpy.typing as npt

from driftline.delays import Delay, delays_of
from driftline.errors import BusyError, InputError
from driftline.inputs import Rows, fingerprint, refuse
from driftline.inputs.taking import join
from driftline.learner.base import Learner
from driftline.learner.late import LateRun, ToldRun, Waiting
from driftline.learner.outstanding import Outstanding
from driftline.learner.predictor import Predictor
from driftline.learner.sample_weight import checked_weights
from driftline.learner.ticket import Ticket, plain
from driftline.learner.turn import Turn
from driftline.parts import check_flag
from driftline.state import Draws, archive
from driftline.tasks import Task
from driftline.trace import Batch, Sink
from driftline.typing import CheckedLabels, Input, Inputs, Json, Label, Labels, Prediction, Saved

__all__ = ["Asked", "Shell", "checked_stream"]

#: For learners whose rounds are one call.
UNSHIELDED = nullcontext()

#: So many tickets are told one by one: to begin a run takes longer.
FEW = 10


def checked_stream(task: Task, inputs: Inputs, labels: Labels) -> tuple[Rows, CheckedLabels]:
    """Return rows and labels that fit each other and the task."""
    if labels is None:
        try:
            inputs, labels = inputs.inputs, inputs.labels
        except AttributeError:
            raise InputError(
                f"expected inputs and labels, or a stream that has both, but got only "
                f"{type(inputs).__name__}"
            ) from None
    rows, labels = task.layout.rows(inputs), task.check_labels(labels)
    if rows.rounds != len(labels):
        raise InputError(f"there are {rows.rounds} inputs but {len(labels)} labels")
    if rows.rounds == 0:
        raise InputError("the stream is empty: expected at least one round")
    rows.check_labels(labels)
    return rows, labels


class TicketFields(TypedDict):
    """The fields of a state on outstanding tickets."""

    outstanding: np.ndarray | None
    identity: str
    late: Saved | None


class Asked(NamedTuple):
    """The predictions of some rounds, and all that tickets keep of them, if that was wanted.

    ``predictions`` are rows of integers, with -1 behind shorter ones. ``mean`` and ``means`` have
    an array for every round: they are lists where rounds differ in size. ``mapped`` are the rows
    after the feature map, None without one.
    """

    predictions: np.ndarray
    mean: Sequence[np.ndarray] | np.ndarray = ()
    means: Sequence[np.ndarray] | np.ndarray | None = None
    mapped: Rows | None = None


class Shell(Learner):
    """The base of learners, which say how to play a batch, predict a row, and be restored.

    The transaction is written here, once: make a checkpoint of the state if that is no larger than
    the inputs, else check all rows first; play; and roll back if anything was refused.
    """

    #: What is learned from: ``"full"`` for labels, ``"bandit"`` for hits and misses alone,
    #: ``"clicks"`` for judgements of what was shown.
    feedback: ClassVar[str] = "full"

    #: The branch of the seed, so that a committee does not draw its members' numbers.
    _BRANCH = 0

    def __init__(self, task: Task, seed: int | None):
        self.task = task
        self._layout, self._largest_loss = task.layout, task.largest_loss  # asked in every round
        self._turn = Turn()
        self._draws = Draws.from_seed(seed, self._BRANCH)
        self._tickets = 0  # the number of the next one
        self._outstanding = Outstanding()
        self._identity = ""
        #: Whether the fingerprint may be that of the learner before it has grown.
        self._inherited = False
        #: Rounds of a run whose labels are still to come.
        self._late: Waiting | None = None

    # -- rounds

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
        digest, weights = fingerprint(rows, labels), checked_weights(sample_weight, rows.rounds)
        if delay is not None:
            if sink is not None:
                raise InputError("a sink takes rounds in their order: give no delay, or no sink")
            given = (rows, labels, weights, delay, digest, seed, progress, audit)
            events, late = self._run_late(*given)
            return events.rounds_of(late)
        if self._late is not None:
            raise InputError(
                f"labels of {len(self._late.numbers)} rounds are still to come: give a delay for "
                "the rounds after them, which may be 0"
            )
        return self._run(rows, labels, digest, seed, progress, audit, sink, weights)

    def _run_late(
        self,
        rows: Rows,
        labels: CheckedLabels,
        sample_weight: np.ndarray | None,
        delay: Delay | npt.ArrayLike,
        digest: str,
        seed: int | None,
        progress: Callable[[int], None] | None,
        audit: bool | None,
    ) -> tuple[Any, LateRun]:
        """Play a run whose labels come late; return the trace of its events, and which these are.

        If no label comes in it, rounds are only predicted, and wait.
        """
        with self._turn.lock:
            self._turn.check()
            self._check_features(rows)
            waiting, number = self._late if seed is None else None, self._tickets
            delays = delays_of(delay, number, rows.rounds)
            late = LateRun(number, rows, labels, sample_weight, delays, waiting)
        events, codes, weights = late.events
        trace = self._run(events, codes, digest, seed, progress, audit, None, weights, late)
        return trace, late

    def run_events(
        self,
        inputs: Inputs,
        labels: Labels,
        delay: npt.ArrayLike,
        *,
        audit: bool | None = None,
        sample_weight: npt.ArrayLike | None = None,
    ) -> tuple[Any, LateRun]:
        """Do what :meth:`run` does with a delay, for those who keep rounds until labels come.

        Return the trace of all events, in which a round is asked for or told, and which these are.
        Events of runs that follow each other are those of one run: their traces can be joined.
        Rounds whose label never comes are forgotten.
        """
        rows, labels = checked_stream(self.task, inputs, labels)
        weights = checked_weights(sample_weight, rows.rounds)
        trace, late = self._run_late(rows, labels, weights, delay, "", None, None, audit)
        with self._turn.lock:
            never, numbers = late.numbers[late.due < 0], self._outstanding.to_array()
            self._outstanding = Outstanding(np.setdiff1d(numbers, never))
        return trace.of_events(late), late

    @property
    def waits(self) -> int:
        """How many rounds of a run wait for labels that come at known rounds."""
        return len(self.waiting)

    @property
    def waiting(self) -> np.ndarray:
        """The numbers of these rounds."""
        return np.zeros(0, dtype=np.int64) if self._late is None else self._late.numbers.copy()

    def learn_rows(
        self, inputs: Inputs, labels: Labels, sample_weight: npt.ArrayLike | None = None
    ) -> None:
        """Do all that :meth:`run` does, but keep no trace: for many short streams."""
        rows, labels = checked_stream(self.task, inputs, labels)
        weights = checked_weights(sample_weight, rows.rounds)
        self._run(rows, labels, audit=False, sample_weight=weights)

    def _run(
        self,
        rows: Rows,
        labels: CheckedLabels,
        digest: str | None = None,
        seed: int | None = None,
        progress: Callable[[int], None] | None = None,
        audit: bool | None = None,
        sink: Sink | None = None,
        sample_weight: np.ndarray | None = None,
        late: LateRun | ToldRun | None = None,
    ) -> Any:
        """Play batch after batch, all or nothing; return the trace, if a digest for it is given."""
        rows.labels = labels
        turn, player = self._turn, get_ident()
        turn.check()  # a callback's stream must not end the one that it is called from
        try:
            turn.begin()
            with self._turn.lock:
                self._check_features(rows)
                if late is not None and late.first != self._tickets:
                    raise BusyError("a ticket was asked for while the run began: run it again")
                copied = self._copies(rows) or late is not None  # events are taken back together
                if not copied and (bad := rows.first_bad_row(self._dtype)) is not None:
                    refuse(rows, bad)
                keep = copied if audit is None else audit
                before, rounds = self._checkpoint(copied or keep), self.rounds
            given = (rows, labels, sample_weight, late, digest, seed, progress, before, keep, sink)
            try:
                with nullcontext() if sink is None else sink:
                    return self._played(*given)
            except BaseException as error:
                with self._turn.lock:
                    kept = self.rounds - rounds
                    if copied or keep or not (kept or self._torn):
                        self._rollback(before)
                    else:
                        self._tickets = before.tickets + kept
                        _add_kept(error, kept, self._torn)
                raise
        finally:
            if turn.player == player:  # by no call, at which an interrupt could be raised
                turn.player = 0

    def _played(
        self,
        rows: Rows,
        labels: CheckedLabels,
        sample_weight: np.ndarray | None,
        late: LateRun | ToldRun | None,
        digest: str | None,
        seed: int | None,
        progress: Callable[[int], None] | None,
        before: Any,
        keep: bool,
        sink: Sink | None,
    ) -> Any:
        """Play from a checkpoint; return the trace if there is a digest, or hand it to a sink."""
        with self._turn.lock:
            self._meet(rows)
            if seed is not None:
                self._reseed(seed)
            room = None
            if digest is not None and sink is None:
                room = self._room(labels).weighted(sample_weight)
                room = room if late is None else room.delayed(late, 0, rows.rounds)
            origin = None if digest is None else self._origin(before)
        size = self._batch_size(rows)
        for start in range(0, rows.rounds, size):
            stop = min(start + size, rows.rounds)
            part = labels[start:stop]
            weights = None if sample_weight is None else sample_weight[start:stop]
            with self._turn.lock:
                if room is None:
                    batch = self._room(part).weighted(weights)
                    batch = batch if late is None else batch.delayed(late, start, stop)
                else:
                    batch = room.part(start, stop)
                self._play(rows, start, stop, part, self._tickets, batch)
                if digest is not None:
                    self._combine(part, self._tickets, batch)
                self._tickets += stop - start if late is None else late.asks(start, stop)
                if sink is not None:
                    first = self._filled(origin, keep) if start == 0 else None
                    trace = self._trace(batch, first, digest or "" if start == 0 else "")
            if sink is not None:
                sink.add(trace)
            if progress is not None:
                progress(stop - start)
            if stop < rows.rounds:
                self._turn.pause()
        with self._turn.lock:
            if late is not None:
                given = late.tickets_left(self._outstanding, self._late)
                self._outstanding, self._late = given
            if room is None:
                return None
            return self._trace(room, self._filled(origin, keep), digest or "")

    def _shield(self) -> AbstractContextManager[None]:
        """Return a context manager that delays interrupts while one round is played, if needed."""
        return UNSHIELDED

    @property
    def _torn(self) -> bool:
        """Whether an interruption has left parts of the learner after different rounds."""
        return False

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

    def ask_rows(self, inputs: Inputs, *, numbers: npt.ArrayLike | None = None) -> list[Ticket]:
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
        rows = self._many(inputs)
        if rows is None:
            return []
        return self._ask(rows) if numbers is None else self._ask(rows, _numbers(numbers, rows))

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
            if not 0 <= ticket.rounds <= self.rounds:
                raise InputError(
                    f"the ticket was asked for after {ticket.rounds} rounds, but there were only "
                    f"{self.rounds}"
                )
            number = self._tickets
            made = replace(ticket, number=number, learner=self._fingerprint())
            self._outstanding.add(number)
            self._tickets = number + 1
            return made

    def _many(self, inputs: Inputs) -> Rows | None:
        """Wrap the inputs of many rounds; None if there are none."""
        if isinstance(inputs, list) and not inputs:
            return None
        rows = self._layout.rows(inputs)
        return rows if rows.rounds else None

    def _ask(self, rows: Rows, numbers: np.ndarray | None = None) -> list[Ticket]:
        """Return a ticket for every round; these have the next numbers, unless others are given."""
        with self._turn.lock:
            self._turn.check()
            self._check_features(rows)
            first, count = self._tickets, rows.rounds
            wanted = np.arange(first, first + count) if numbers is None else numbers
            made, mean, means, mapped = self._look(rows, wanted)
            known, learner, prediction = self.rounds, self._fingerprint(), self.task.prediction
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
                )
                for t in range(count)
            ]
            if numbers is None:
                self._outstanding.add_next(first, count)
                self._tickets = first + count
            return tickets

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
            self._learn_ticket(row, checked, ticket, None if paid is None else paid[0])
            self._outstanding.remove(ticket.number)
            self._keep_waiting()

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
                self._tell_each(given, rounds, checked, paid)
            else:
                rows.check_labels(checked)
                numbers = np.array([ticket.number for ticket in given])
                then = np.array([ticket.rounds for ticket in given])
                now = then == self.rounds + np.arange(len(given))
                self._run(
                    rows, checked, audit=False, late=ToldRun(self._tickets, numbers, paid, now)
                )
            return paid

    def _plain_rounds(self, tickets: Sequence[Ticket]) -> Rows | None:
        """Return the inputs of many tickets, if all are outstanding and have plain vectors.

        None says nothing: :meth:`_rounds_of` then looks at each, and says what is wrong.
        """
        inputs = [ticket.input if isinstance(ticket, Ticket) else None for ticket in tickets]
        first, learner = inputs[0], self._fingerprint()
        if self._layout.ragged or not isinstance(first, np.ndarray) or first.ndim != 1:
            return None
        shape, kind = first.shape, first.dtype
        for own, ticket in zip(inputs, tickets, strict=True):
            if type(own) is not np.ndarray or own.shape != shape or own.dtype != kind:
                return None
            if ticket.learner != learner or type(ticket.number) is not int:
                return None
            if type(ticket.rounds) is not int or ticket.rounds < 0:
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
                return self.task.check_labels(labels if isinstance(labels, np.ndarray) else told)
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
            return self.task.check_labels([self.task.label(label) for label in made])
        return made

    def _tell_each(
        self,
        tickets: Sequence[Ticket],
        rounds: Sequence[Rows],
        labels: CheckedLabels,
        paid: np.ndarray | None,
    ) -> None:
        """Learn from one ticket after the other; if one is refused, go back to before the first."""
        before = None
        if len(tickets) > 1 and not self._accepts(rounds):
            before = self._checkpoint(weights=True)
        with self._shield():
            for i, (ticket, row, label) in enumerate(zip(tickets, rounds, labels, strict=True)):
                try:
                    self._learn_ticket(row, label, ticket, None if paid is None else paid[i])
                    self._outstanding.remove(ticket.number)
                except BaseException as error:
                    if before is not None:
                        self._rollback(before)
                    if isinstance(error, InputError):
                        raise _at_place(i, tickets, error) from error
                    raise
            self._keep_waiting()

    def _feedback(self, ticket: Ticket, label: Label, loss: float | None) -> Label:
        """Return the checked label of a ticket; a loss names it where there are two."""
        if loss is None:
            return self.task.check_label(label)
        labels = list(self.task.all_labels) if self.task.zero_one else []
        if len(labels) != 2:
            raise InputError(
                f"the loss alone does not name the label of {self.task!r}: give the label, or make "
                "a learner for bandit feedback, as by dl.auto(task, feedback='bandit')"
            )
        if loss not in (0.0, 1.0):
            raise InputError(f"the loss is 0 for a hit and 1 for a miss, but is {loss!r:.80}")
        predicted = self.task.label(self.task.check_label(ticket.prediction))
        named = [one for one in labels if (one == predicted) == (loss == 0.0)]
        return self.task.check_label(named[0])

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
                self._outstanding.remove(ticket.number)
                self._keep_waiting()
                return
            number = before.number if isinstance(before, Ticket) else before
            if isinstance(number, bool) or not isinstance(number, (int, np.integer)):
                raise InputError(f"before must be a ticket or its number, not {before!r:.80}")
            self._outstanding.remove_before(int(number))
            self._keep_waiting()

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
        ticket.check(self._fingerprint(), self._tickets)
        if ticket.number not in self._outstanding:
            raise InputError(
                f"ticket {ticket.number} is not outstanding: it was told or forgotten before, or "
                "was never asked for"
            )

    def learn_row(self, x: Input, label: Label) -> None:
        """Do all that :meth:`step` does, but return nothing."""
        row, checked = self._row(x), self.task.check_label(label)
        with self._turn.lock, self._shield():
            self._turn.check()
            self._learn_one(row, checked, self._tickets)
            self._tickets += 1

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
        return [self.task.prediction(row) for row in made.predictions]

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
            return own.task.prediction(own._look(row, number, whole=False).predictions[0])

        return Predictor(self.task, own.rounds, predict)

    # -- files

    def save(self, path: str | Path) -> Path:
        """Write the learner to one file, for :func:`driftline.load`; return where it is.

        The file has plain data only. The learner that is loaded goes on with the same bits. It has
        the rounds of a run whose labels are still to come, with these labels.
        """
        return archive.write(path, *self.to_saved())

    def to_saved(self) -> Saved:
        """Return parts and state as plain data and arrays."""
        with self._turn.lock:
            return self._to_saved()

    def copy(self) -> Self:
        """Return a learner of the same parts and state, which goes on by itself."""
        about, arrays = self.to_saved()
        return type(self).from_saved(about, {k: a.copy() for k, a in arrays.items()})

    def __reduce__(self) -> tuple[Callable[..., Self], Saved]:
        """Pickle and copy the saved form: addresses of compiled code hold in one process only."""
        about, arrays = self.to_saved()
        return type(self).from_saved, (about, {k: a.copy() for k, a in arrays.items()})

    def _fingerprint(self) -> str:
        """Return a fingerprint of parts and seed, by which a learner knows its own tickets.

        It does not change while tickets are outstanding, even if the learner grows; when none is,
        it is that of the learner as it has become, as it will be after saving and loading.
        """
        if self._inherited and not len(self._outstanding):
            self._identity, self._inherited = "", False
        if not self._identity:
            text = json.dumps([self.config(), self._draws.key], sort_keys=True)
            self._identity = hashlib.sha256(text.encode()).hexdigest()[:16]
        return self._identity

    def _reseed(self, seed: int) -> None:
        """Draw by another seed; tickets of the old one are those of another learner."""
        self._draws, self._identity = Draws.from_seed(seed, self._BRANCH), ""
        self._outstanding, self._late = Outstanding(), None

    def _resume_tickets(self, state: Any) -> None:
        """Go on with the random numbers and the tickets of a state."""
        late, numbers = state.late, state.outstanding
        made = None if late is None else Waiting.from_saved(self.task, late, numbers)
        if made is not None:
            self._check_waiting(made)
        self._draws, self._tickets, self._identity = Draws(state.key), state.tickets, state.identity
        self._inherited = True
        self._outstanding, self._late = Outstanding(numbers), made

    def _check_waiting(self, waiting: Waiting) -> None:
        """Refuse what cannot be kept of rounds that wait; shape and finiteness are checked."""
        return

    @property
    def _waiting(self) -> TicketFields:
        """What a state has of tickets that are outstanding: their numbers, and whose they are."""
        if not len(self._outstanding):
            return {"outstanding": None, "identity": "", "late": None}
        numbers, identity = self._outstanding.to_array(), self._fingerprint()
        late = None if self._late is None else self._late.to_saved()
        return {"outstanding": numbers, "identity": identity, "late": late}

    def _row(self, x: Input) -> Rows:
        """Wrap the input of one round."""
        return self._layout.row(x)

    def _check_features(self, rows: Rows) -> None:
        expected = self.features
        if expected is not None and rows.features != expected:
            raise InputError(
                f"inputs have {rows.features} features, but the learner has seen {expected}"
            )

    # -- what every kind does by itself

    #: The precision in which inputs must be finite.
    _dtype: Any = np.float64

    @abstractmethod
    def config(self) -> Json:
        """Return the parts as plain data."""

    @classmethod
    @abstractmethod
    def from_saved(cls, about: Json, arrays: dict[str, np.ndarray]) -> Self:
        """Return the learner from what :meth:`to_saved` returned."""

    @abstractmethod
    def _to_saved(self) -> Saved: ...

    @abstractmethod
    def _room(self, labels: CheckedLabels) -> Batch:
        """Return columns for the rounds with these labels, to be written by :meth:`_play`."""

    def _meet(self, rows: Rows) -> None:
        """Prepare for the first rows, which are about to be learned from."""
        return

    @abstractmethod
    def _play(
        self, rows: Rows, start: int, stop: int, labels: CheckedLabels, number: int, room: Batch
    ) -> None:
        """Play some rows, the first with ticket ``number``; refuse the first bad one."""

    def _combine(self, labels: CheckedLabels, number: int, room: Batch) -> None:
        """Write columns that follow from the rounds just played, and that nothing learns from."""
        return

    @abstractmethod
    def _learn_one(self, row: Rows, label: Label, number: int) -> object:
        """Play one round by a ticket's number, and count it; nothing changes if it is refused."""

    def _learn_late(self, row: Rows, label: Label, number: int, paid: np.ndarray | None) -> None:
        """Play a round whose prediction was made before others were learned from."""
        self._learn_one(row, label, number)

    def _accepts(self, rounds: Sequence[Rows]) -> bool:
        """Say whether it is known that none of these rounds can be refused."""
        return False

    @property
    def _tells_together(self) -> bool:
        """Whether tickets can be told together, as one run."""
        return True

    def _paid_then(
        self, tickets: Sequence[Ticket], labels: CheckedLabels, first: Rows
    ) -> np.ndarray | None:
        """Return what was paid for tickets when they were asked for, a row each; None if no matter.

        ``first`` is the input of the first ticket.
        """
        return None

    @abstractmethod
    def _look(self, rows: Rows, numbers: np.ndarray, whole: bool = True) -> Asked:
        """Return what would be predicted now for each of some rounds, and change nothing.

        Random predictions are drawn by the numbers of tickets. ``whole`` says whether all that a
        ticket keeps is wanted, or only the predictions.
        """

    @abstractmethod
    def _trace(self, batch: Batch, origin: Any, digest: str) -> Any:
        """Return the trace of a run."""

    @abstractmethod
    def _copies(self, rows: Rows) -> bool:
        """Say whether the state is copied before these rows are played."""

    @abstractmethod
    def _batch_size(self, rows: Rows) -> int:
        """Return how many rows are played at a time."""

    @abstractmethod
    def _checkpoint(self, weights: bool) -> Any:
        """Return what :meth:`_rollback` needs, with a copy of the weights if ``weights``."""

    @abstractmethod
    def _rollback(self, checkpoint: Any) -> None:
        """Go back to a checkpoint."""

    @abstractmethod
    def _origin(self, checkpoint: Any) -> Any:
        """Return the state of a checkpoint, with the current random numbers."""

    @abstractmethod
    def _filled(self, origin: Any, keep: bool) -> Any:
        """Return an origin with first weights, if it is from before the first input.

        A trace keeps them even where it does not keep later weights.
        """


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


def _add_kept(error: BaseException, rounds: int, torn: bool) -> None:
    """Add to an error how many rounds were kept, since there was no checkpoint to go back to."""
    words = f"{rounds} rounds of this call were played before that, and are kept"
    if torn:
        words = "members stand after different rounds now, and will not learn on: load a saved one"
    if isinstance(error, InputError):
        error.args = (f"{error}; {words}",)
    else:
        error.add_note(words)
