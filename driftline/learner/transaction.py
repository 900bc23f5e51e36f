"""A stream played batch by batch, all or nothing.

The transaction is written here, once: make a checkpoint of the state if that is no larger than the
inputs, else check all rows first; play; and roll back if anything was refused.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from driftline.errors import BusyError, InputError
from driftline.inputs import Rows, refuse
from driftline.learner.late import LateRun, ToldRun
from driftline.learner.probabilities import labels_of
from driftline.learner.shield import Shield
from driftline.tasks import Task
from driftline.trace import Sink
from driftline.typing import CheckedLabels, Inputs, Labels

if TYPE_CHECKING:
    from driftline.learner.shell import Shell

__all__ = ["Given", "checked_stream", "played", "transact"]

#: How many scores of all members are in memory at a time.
MOST_SCORES = 1 << 20


class Given(NamedTuple):
    """What a run is given beside rows and labels: see :meth:`Shell.run`.

    A trace is made if there is a ``digest`` for it. ``late`` are the events of the rows, where
    labels come late.
    """

    sample_weight: np.ndarray | None = None
    digest: str | None = None
    seed: int | None = None
    progress: Callable[[int], None] | None = None
    audit: bool | None = None
    sink: Sink | None = None
    late: LateRun | ToldRun | None = None
    probabilities: bool = False


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


def transact(learner: Shell, rows: Rows, labels: CheckedLabels, given: Given) -> Any:
    """Play from a checkpoint, and go back to it if anything is raised."""
    rows.labels, late = labels, given.late
    with learner._turn.lock:
        learner._check_features(rows)
        if late is not None and late.first != learner._tickets:
            raise BusyError("a ticket was asked for while the run began: run it again")
        copied = learner._copies(rows) or late is not None  # events are taken back together
        if not copied and (bad := rows.first_bad_row(learner._dtype)) is not None:
            refuse(rows, bad)
        keep = copied if given.audit is None else given.audit
        before, rounds, tickets = learner._checkpoint(copied), learner.rounds, learner._tickets
    try:
        with nullcontext() if given.sink is None else given.sink:
            return learner._played(rows, labels, given, keep)
    except BaseException as error:
        with learner._turn.lock, Shield():
            kept = learner.rounds - rounds
            if copied or not (kept or learner._torn):
                learner._rollback(before)
            else:
                learner._settle()
                learner._tickets = tickets + kept
                _add_kept(error, kept, learner._torn)
        raise


def played(learner: Shell, rows: Rows, labels: CheckedLabels, given: Given, keep: bool) -> Any:
    """Play all batches; return the trace if there is a digest, or hand it to a sink."""
    digest, sink, late = given.digest, given.sink, given.late
    with learner._turn.lock:
        learner._meet(rows)
        if given.seed is not None:
            learner._reseed(given.seed)
        room = None
        if digest is not None and sink is None:
            room = learner._room(labels).weighted(given.sample_weight)
            room = room if late is None else room.delayed(late, 0, rows.rounds)
            if given.probabilities:
                shape = rows.rounds, labels_of(learner.task)
                room = room.with_column("probabilities", np.empty(shape))
        origin = None if digest is None else learner._origin(keep)
    size = learner._batch_size(rows)
    if given.probabilities:
        size = max(1, min(size, MOST_SCORES // (learner._scored * learner.task.dim)))
    for start in range(0, rows.rounds, size):
        stop = min(start + size, rows.rounds)
        part = labels[start:stop]
        weights = None if given.sample_weight is None else given.sample_weight[start:stop]
        with learner._turn.lock, learner._shield():
            if room is None:
                batch = learner._room(part).weighted(weights)
                batch = batch if late is None else batch.delayed(late, start, stop)
            else:
                batch = room.part(start, stop)
            batch = batch.scored(learner.task.dim) if given.probabilities else batch
            learner._play(rows, start, stop, part, learner._tickets, batch)
            if digest is not None:
                learner._combine(part, learner._tickets, batch)
            if given.probabilities:
                batch["probabilities"][:] = learner._probabilities_in(batch)
            learner._tickets += stop - start if late is None else late.asks(start, stop)
            if sink is not None:
                first = learner._filled(origin, keep) if start == 0 else None
                trace = learner._trace(batch, first, digest or "" if start == 0 else "")
        if sink is not None:
            sink.add(trace)
        if given.progress is not None:
            given.progress(stop - start)
        if stop < rows.rounds:
            learner._turn.pause()
    with learner._turn.lock:
        if late is not None:
            left = late.tickets_left(learner._outstanding, learner._late)
            learner._outstanding, learner._late = left
        if room is None:
            return None
        return learner._trace(room, learner._filled(origin, keep), digest or "")


def _add_kept(error: BaseException, rounds: int, torn: bool) -> None:
    """Add to an error how many rounds were kept, since there was no checkpoint to go back to."""
    words = f"{rounds} rounds of this call were played before that, and are kept"
    if torn:
        words = "members stand after different rounds now, and will not learn on: load a saved one"
    if isinstance(error, InputError):
        error.args = (f"{error}; {words}",)
    else:
        error.add_note(words)
