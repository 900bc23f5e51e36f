"""Play the rounds of a trace again, from the state before the first one.

A learner that makes gradient steps repeats those in the trace, so that rounding errors do not add
up: on the machine that made a record its replay is bit-identical, and elsewhere it stays close. All
else is computed anew: losses, risks and gradients from the inputs, predictions from scores and the
seed, target losses from predictions, the step that the rate would have made and the alarms that the
detector would have given. What other learners remember is a function of rows and labels, and is
computed anew, too. A committee is played with its members.

Where labels came late, the events of the run are played: a round is asked for in one and told in
another. A step is made at the weights of the arrival.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from driftline import inputs
from driftline.certificates.order import Order
from driftline.committee import Committee, CommitteeTrace
from driftline.committee.account import promised
from driftline.comparators.checking import Comparator
from driftline.decoders import Decoder
from driftline.domains import Domain
from driftline.engines import Block
from driftline.errors import DAMAGE, InputError
from driftline.inputs import Rows
from driftline.inputs.taking import take_labels, view
from driftline.kernels import REPLAYED_COLUMNS
from driftline.learner import OGD
from driftline.losses import Loss
from driftline.parts import from_config
from driftline.rates import Rate
from driftline.regret import Watch, Watched, mark_idle
from driftline.state import State
from driftline.state.loading import single_kind
from driftline.tasks import Task
from driftline.trace import Batch, Trace
from driftline.typing import CheckedLabels, Inputs, Json, Labels

__all__ = ["Piece", "Repeated", "Stream", "kind_of", "learner_of", "replay"]

KINDS: dict[str, type] = {"loss": Loss, "decoder": Decoder, "rate": Rate, "domain": Domain}


class Stream:
    """Rows and labels of a trace's rounds, if these can be its rounds, and the order of events."""

    def __init__(self, trace: Trace | CommitteeTrace, task: Task, given: Inputs, labels: Labels):
        self.order = Order(trace)
        self.rows, self.labels = task.layout.rows(given), task.labels.check_all(labels)
        if not self.rows.rounds == len(self.labels) == len(trace):
            raise InputError(
                f"the trace has {len(trace)} rounds, but there are {self.rows.rounds} inputs and "
                f"{len(self.labels)} labels"
            )
        self.rows.check_labels(self.labels)
        self.sample_weight = trace.sample_weight

    @property
    def told(self) -> CheckedLabels:
        """The labels that came, in that order."""
        return take_labels(self.labels, self.order.order)

    @property
    def events(self) -> tuple[Rows, CheckedLabels]:
        """Rows and labels of all events."""
        rows, labels, order = self.rows, self.labels, self.order
        if order.late:
            rows, labels = view(rows, order.rounds), take_labels(labels, order.rounds)
        rows.labels, rows.asked = labels, order.asked
        return rows, labels

    def differs(self, digest: str) -> list[str]:
        """Say so if this is not the stream with a fingerprint."""
        if not digest or digest == inputs.fingerprint(self.rows, self.labels):
            return []
        return ["the stream is not the one of the trace: its fingerprint differs"]


class Piece(NamedTuple):
    """Some events of a run that were played again.

    ``rounds`` has the round of each; ``asks`` and ``tells`` are the places of those in which a
    round is asked for and told.
    """

    batch: Batch
    rows: Rows
    labels: CheckedLabels
    start: int
    rounds: np.ndarray
    asks: np.ndarray
    tells: np.ndarray


def replay(learner: Any, stream: Stream) -> Iterator[Piece]:
    """Play the rounds of a stream, piece by piece, by the learner of their trace."""
    order, (rows, labels) = stream.order, stream.events
    learner._check_features(rows)
    weights, number = stream.sample_weight, learner._tickets
    weights = None if weights is None else order.of(weights)
    for start, stop in order.pieces(learner._batch_size(rows)):
        part = labels[start:stop]
        room = learner._audit_room(part)
        room = room.weighted(None if weights is None else weights[start:stop])
        asks = tells = np.arange(stop - start)
        if order.asked is not None:
            room, asked = room.delayed(order, start, stop), order.asked[start:stop]
            asks, tells = np.flatnonzero(asked), np.flatnonzero(~asked)
        learner._play(rows, start, stop, part, number, room)
        learner._combine(part, number, room)
        number += len(asks)
        yield Piece(room, rows, part, start, order.rounds[start:stop], asks, tells)


class Repeated(OGD):
    """A learner that repeats the steps of a trace, beside a comparator.

    ``seen`` are the rounds just played whose labels came.
    """

    seen: Watched

    def follow(self, trace: Trace, order: Order, comparator: Comparator, member: str = "") -> None:
        """Repeat the steps of a trace from now on; errors begin with the name of a ``member``."""
        if trace.restarted is None and self._fixed.restarts:
            raise InputError("the trace does not say where the learner started again")
        origin = trace.origin
        assert origin is not None
        self._names, self._member, self._event, self._told = REPLAYED_COLUMNS, member, 0, 0
        self._order, self._alarm = order, bool(origin.restarted)
        self._eta, self._starts = order.of(trace.eta), None
        self._restarted = np.zeros(len(order.order), dtype=bool)
        if trace.restarted is not None:
            self._starts = order.starts(trace.restarted)
            self._restarted = trace.restarted[order.order]
        self.steps_range = self.rate.step_range(self.parts.setting, origin.rate_memory)
        self._account = Watch(self.engine, order.told(comparator))

    @property
    def floor(self) -> float:
        """A lower bound of the steps, given the rate's memory before the run; 0 if unknown."""
        largest = self.engine.largest_input_sq
        return self.steps_range.least(largest) if largest > 0.0 else 0.0

    def _room(self, labels: CheckedLabels) -> Batch:
        made, count = super()._room(labels), len(labels)
        assert made.table is not None
        made.table[:] = 0.0
        more = {name: np.zeros(count, dtype=bool) for name in ("restarted", "due")}
        columns = made.columns | dict(zip(self._names, made.table, strict=True)) | more
        return Batch(columns, table=made.table)

    def _play_mapped(
        self, rows: Rows, start: int, stop: int, labels: CheckedLabels, number: int, room: Batch
    ) -> None:
        here, order = slice(self._event, self._event + stop - start), self._order
        room["eta"][:] = self._eta[here]
        if self._starts is not None:
            room["restarted"][:] = self._starts[here]
            if here.start > order.tells[-1]:  # rounds that are only asked for say nothing of it
                room["restarted"][:1] = self._alarm and here.start == order.tells[-1] + 1
        try:
            super()._play_mapped(rows, start, stop, labels, number, room)
        except InputError as error:
            raise InputError(f"{self._member}{error}") from error
        tells = slice(None) if order.asked is None else ~order.asked[here]
        alarms = room["own_alarm"][tells] > 0.0
        room["due"][tells] = np.r_[self._alarm, alarms][: len(alarms)]
        room["restarted"][tells] = self.seen.restarted
        self._event, self._alarm = here.stop, bool(np.r_[self._alarm, alarms][-1])

    def _advance(self, block: Block) -> int:
        played, seen = self._account.play(block)
        told = slice(self._told, self._told + len(seen))
        seen = Watched(**(vars(seen) | {"restarted": self._restarted[told]}))
        self.seen, self._told = mark_idle(seen, self.parts), told.stop
        return played


def kind_of(trace: Trace) -> Any:
    """Return the class of the learner that made a trace."""
    if not trace.config:
        raise InputError("the trace does not say which learner made it")
    return single_kind(trace.config.get("kind", "OGD"))


def learner_of(trace: Trace | CommitteeTrace) -> Any:
    """Return the learner of a trace, from config and origin, in the state before the first round.

    One that makes gradient steps is a :class:`Repeated`, and so are such members.
    """
    if isinstance(trace, CommitteeTrace):
        return _committee(trace)
    kind = kind_of(trace)
    if trace.origin is None:
        raise InputError(
            "the trace has no first weights, so it cannot be replayed: run with audit=True"
        )
    trace = Trace.from_saved(*trace.to_saved())  # checked like one from a file
    config, origin = trace.config, trace.origin
    assert origin is not None
    try:
        made = _stepping(config, origin) if kind._fixed.steps else kind.from_config(config)
        made.restore(origin)
        return made
    except InputError:
        raise
    except DAMAGE as error:
        raise InputError(f"the trace is of a learner that cannot be made: {error!r}") from error


def _stepping(config: Json, origin: State) -> Repeated:
    """Return a learner that makes gradient steps."""
    if origin.weights is None:
        raise InputError("the origin of the run has no weights")
    rows = origin.weights.shape[1 if origin.transposed else 0]
    loss = from_config(config["loss"])  # first, since its task limits the size of others
    if (expected := loss.task.layout.weight_rows) != rows:
        raise InputError(f"{loss.task!r} has weights of {expected} rows, not {rows}")
    parts: dict[str, Any] = {name: from_config(config[name]) for name in KINDS}
    for name, kind in KINDS.items():
        if not isinstance(parts[name], kind):
            raise InputError(f"{parts[name]!r} is no {name} of a learner")
    parts |= {name: from_config(config.get(name)) for name in ("restart", "features")}
    dtype = origin.weights.dtype
    if config["dtype"] != dtype.name:
        raise InputError(f"weights are {dtype}, but the learner had {config['dtype']!r}")
    made = Repeated(**parts, intercept=config["intercept"], dtype=dtype)
    made.engine = type(made.engine)(made.parts, replay=True, dtype=made.engine.dtype)
    return made


def _committee(trace: CommitteeTrace) -> Committee:
    """Return a committee with the learners of its members' traces."""
    first, members = trace.origin, []
    if first is None:
        raise InputError("the trace does not say what the committee was before its first round")
    for j, member in enumerate(trace.members):
        try:
            members.append(learner_of(member))
        except InputError as error:
            raise InputError(f"member {j}: {error}") from error
    if any(member.task != members[0].task for member in members):
        raise InputError("the members of a committee must have the same task")
    state = first.state.replaced(late=None)
    promise: Any = {} if state.guard is None else promised(state.guard)
    made = Committee(members, first.combine, **promise, _played=True)
    made.restore(state.replaced(members=tuple(member.state for member in members)))
    return made
