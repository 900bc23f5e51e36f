"""What learners share: streams played batch by batch, all or nothing, under one lock."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from threading import get_ident
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from driftline.delays import Delay, delays_of
from driftline.errors import BusyError, InputError
from driftline.inputs import Rows, fingerprint, refuse
from driftline.learner.asking import NO_PROBABILITIES, Asking
from driftline.learner.core import Given
from driftline.learner.late import LateRun
from driftline.learner.outstanding import Outstanding
from driftline.learner.predictor import Predictor
from driftline.learner.probabilities import gives_probabilities, labels_of
from driftline.learner.sample_weight import checked_weights
from driftline.learner.shield import Shield
from driftline.parts import check_flag
from driftline.state import archive
from driftline.tasks import Task
from driftline.trace import Sink
from driftline.typing import CheckedLabels, Input, Inputs, Label, Labels, Prediction, Saved

__all__ = ["Shell", "checked_stream"]

#: How many scores of all members are in memory at a time.
MOST_SCORES = 1 << 20


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
    rows, labels = task.layout.rows(inputs), task.labels.check_all(labels)
    if rows.rounds != len(labels):
        raise InputError(f"there are {rows.rounds} inputs but {len(labels)} labels")
    if rows.rounds == 0:
        raise InputError("the stream is empty: expected at least one round")
    rows.check_labels(labels)
    return rows, labels


class Shell(Asking):
    """The base of learners, which say how to play a batch, predict a row, and be restored.

    The transaction is written here, once: make a checkpoint of the state if that is no larger than
    the inputs, else check all rows first; play; and roll back if anything was refused.
    """

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
        if self.feedback != "full" or not gives_probabilities(self.task):
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

    def run_events(
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
        self._run(rows, labels, Given(weights, audit=False))

    def _run(self, rows: Rows, labels: CheckedLabels, given: Given) -> Any:
        """Play batch after batch, all or nothing; return the trace, if a digest for it is given."""
        turn, player = self._turn, get_ident()
        turn.check()  # a callback's stream must not end the one that it is called from
        try:
            turn.begin()
            played = self._transaction(rows, labels, given)
            turn.player = 0  # also here: an exception at the line below would leave it
            return played
        finally:
            if turn.player == player:
                turn.player = 0

    def _transaction(self, rows: Rows, labels: CheckedLabels, given: Given) -> Any:
        """Play from a checkpoint, and go back to it if anything is raised."""
        rows.labels, late = labels, given.late
        with self._turn.lock:
            self._check_features(rows)
            if late is not None and late.first != self._tickets:
                raise BusyError("a ticket was asked for while the run began: run it again")
            copied = self._copies(rows) or late is not None  # events are taken back together
            if not copied and (bad := rows.first_bad_row(self._dtype)) is not None:
                refuse(rows, bad)
            keep = copied if given.audit is None else given.audit
            before, rounds, tickets = self._checkpoint(copied), self.rounds, self._tickets
        try:
            with nullcontext() if given.sink is None else given.sink:
                return self._played(rows, labels, given, keep)
        except BaseException as error:
            with self._turn.lock, Shield():
                kept = self.rounds - rounds
                if copied or not (kept or self._torn):
                    self._rollback(before)
                else:
                    self._settle()
                    self._tickets = tickets + kept
                    _add_kept(error, kept, self._torn)
            raise

    def _played(self, rows: Rows, labels: CheckedLabels, given: Given, keep: bool) -> Any:
        """Play all batches; return the trace if there is a digest, or hand it to a sink."""
        digest, sink, late = given.digest, given.sink, given.late
        with self._turn.lock:
            self._meet(rows)
            if given.seed is not None:
                self._reseed(given.seed)
            room = None
            if digest is not None and sink is None:
                room = self._room(labels).weighted(given.sample_weight)
                room = room if late is None else room.delayed(late, 0, rows.rounds)
                if given.probabilities:
                    shape = rows.rounds, labels_of(self.task)
                    room = room.with_column("probabilities", np.empty(shape))
            origin = None if digest is None else self._origin(keep)
        size = self._batch_size(rows)
        if given.probabilities:
            size = max(1, min(size, MOST_SCORES // (self._scored * self.task.dim)))
        for start in range(0, rows.rounds, size):
            stop = min(start + size, rows.rounds)
            part = labels[start:stop]
            weights = None if given.sample_weight is None else given.sample_weight[start:stop]
            with self._turn.lock, self._shield():
                if room is None:
                    batch = self._room(part).weighted(weights)
                    batch = batch if late is None else batch.delayed(late, start, stop)
                else:
                    batch = room.part(start, stop)
                batch = batch.scored(self.task.dim) if given.probabilities else batch
                self._play(rows, start, stop, part, self._tickets, batch)
                if digest is not None:
                    self._combine(part, self._tickets, batch)
                if given.probabilities:
                    batch["probabilities"][:] = self._probabilities_in(batch)
                self._tickets += stop - start if late is None else late.asks(start, stop)
                if sink is not None:
                    first = self._filled(origin, keep) if start == 0 else None
                    trace = self._trace(batch, first, digest or "" if start == 0 else "")
            if sink is not None:
                sink.add(trace)
            if given.progress is not None:
                given.progress(stop - start)
            if stop < rows.rounds:
                self._turn.pause()
        with self._turn.lock:
            if late is not None:
                left = late.tickets_left(self._outstanding, self._late)
                self._outstanding, self._late = left
            if room is None:
                return None
            return self._trace(room, self._filled(origin, keep), digest or "")

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


def _add_kept(error: BaseException, rounds: int, torn: bool) -> None:
    """Add to an error how many rounds were kept, since there was no checkpoint to go back to."""
    words = f"{rounds} rounds of this call were played before that, and are kept"
    if torn:
        words = "members stand after different rounds now, and will not learn on: load a saved one"
    if isinstance(error, InputError):
        error.args = (f"{error}; {words}",)
    else:
        error.add_note(words)
