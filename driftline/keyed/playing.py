"""A run over rows of many keys, by the loop or by one learner in turn, and its trace."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from driftline.errors import InputError
from driftline.inputs import DenseRows, Rows, fingerprint, refuse
from driftline.inputs.taking import take, take_labels
from driftline.keyed.blocks import Blocks
from driftline.keyed.images import Images
from driftline.keyed.keys import Key
from driftline.keyed.trace import KeyedTrace
from driftline.learner import Given
from driftline.learner.ticket import plain, unwrapped
from driftline.state import State
from driftline.trace import Trace
from driftline.typing import CheckedLabels

if TYPE_CHECKING:
    from driftline.keyed.keyed import Keyed

__all__ = ["FEW", "Player"]

#: How many rows the loop plays at a time: an interrupt waits for it.
PIECE = 1 << 17
#: So many rows of a key are played one by one where there is no loop: to begin a run takes longer.
FEW = 10


class Player:
    """Plays the rows of a run, some at a time, and records them."""

    def __init__(
        self,
        fleet: Keyed,
        rows: Rows,
        labels: CheckedLabels,
        weights: np.ndarray | None,
        slots: np.ndarray,
        record: bool,
        audit: bool,
        progress: Callable[[int], None] | None,
    ):
        self._fleet, self._rows, self._labels, self._weights = fleet, rows, labels, weights
        self._slots, self._record, self._audit, self._progress = slots, record, audit, progress
        store = fleet._store
        self._loop = store if isinstance(store, Blocks) and store.takes(rows) else None
        self._traces: dict[int, Any] = {}
        self._starts: np.ndarray | None
        count, task = len(slots), fleet.task
        self._table = np.full((5, count), np.nan)
        width = task.predictions.width(labels)
        self._room = task.predictions.rows(count + 1, width)  # the loop needs one row more
        self._predictions = self._room[:count]
        self._starts, self._new = None, np.zeros(0, dtype=np.int64)
        self._columns = {"risk": np.full(count, np.nan), "target_loss": np.full(count, np.nan)}

    def play(self, new: np.ndarray, begins: np.ndarray) -> None:
        """Play all rows; ``new`` are slots whose first rows are among them, and which these are."""
        store = self._fleet._store
        if self._loop is None and isinstance(store, Images) and store.shared is not None:
            self._begin_in_turn(store, new, begins)
        else:
            store.begin(new)
        if self._loop is None:
            self._play_each()
            return
        rows: Any = self._rows
        blocks, count, first = self._loop, len(self._slots), None
        if blocks.shared is not None:
            first = np.full(count, -1, dtype=np.int64)
            first[begins] = np.arange(len(begins))
            width = blocks.shared[0].size + 2
            self._starts = np.empty((len(begins) if self._record else 0, width))
            self._new = new
        for start in range(0, count, PIECE):
            stop = min(start + PIECE, count)
            part = slice(start, stop)
            played = blocks.play(
                DenseRows(rows.array[part]),
                self._slots[part],
                self._labels[part],
                None if self._weights is None else self._weights[part],
                self._table[:, part],
                self._room[start : stop + 1],
                None if first is None else first[part],
                self._starts,
            )
            if played < stop - start:
                refuse(rows, start + played)
            if self._progress is not None:
                self._progress(stop - start)

    def _begin_in_turn(self, store: Images, new: np.ndarray, begins: np.ndarray) -> None:
        """Let the shared committee learn from all rows, and others begin as it is by then."""
        order, done = np.argsort(begins), 0
        self._columns["shared_target_loss"] = np.full(len(self._slots), np.nan)
        for slot, row in zip(new[order].tolist(), begins[order].tolist(), strict=True):
            self._learn(store.shared, np.arange(done, row))
            store.begin(np.array([slot]))
            done = row
        self._learn(store.shared, np.arange(done, len(self._slots)))

    def _learn(self, learner: Any, places: np.ndarray) -> None:
        """Let the shared committee learn from some rows; of these only its losses are recorded."""
        labels, paid = take_labels(self._labels, places), self._columns["shared_target_loss"]
        if len(places) > FEW or self._weights is not None:
            weights = None if self._weights is None else self._weights[places]
            rows, digest = take(self._rows, places), "" if self._record else None
            trace = learner._run(rows, labels, Given(weights, digest, audit=False))
            if trace is not None:
                paid[places] = trace.target_loss
            return
        inputs, play = plain(take(self._rows, places)), learner.learn_row
        if self._record:
            play = learner.step
        for place, x, label in zip(places.tolist(), inputs, labels, strict=True):
            made = play(unwrapped(x), self._fleet.task.labels.value(label))
            if made is not None:
                paid[place] = made.target_loss

    def _play_each(self) -> None:
        """Let one learner play after the other."""
        fleet, slots = self._fleet, self._slots
        order = np.argsort(slots, kind="stable")
        ends = np.flatnonzero(np.diff(slots[order])) + 1
        for places in np.split(order, ends):
            slot = int(slots[places[0]])
            worker = fleet._store.enter(slot, asking=False)
            try:
                if self._audit or len(places) > FEW or self._weights is not None:
                    self._run(worker, slot, places)
                else:
                    self._step(worker, places)
            except InputError as error:
                raise InputError(f"key {fleet._index.key(slot)!r:.80}: {error}") from error
            fleet._store.leave(slot)
            if self._progress is not None:
                self._progress(len(places))

    def _run(self, worker: Any, slot: int, places: np.ndarray) -> None:
        rows, labels = take(self._rows, places), take_labels(self._labels, places)
        weights = None if self._weights is None else self._weights[places]
        digest = fingerprint(rows, labels) if self._record else None
        trace = worker._run(rows, labels, Given(weights, digest, audit=self._audit))
        if not self._record:
            return
        for name in ("risk", "target_loss"):
            self._columns[name][places] = getattr(trace, name)
        self._note_members(trace, places)
        numbers = [self._fleet.task.predictions.numbers(own) for own in trace.prediction]
        for place, own in zip(places.tolist(), numbers, strict=True):
            self._predictions[place, : len(own)] = own
        if self._audit:
            self._traces[slot] = trace

    def _step(self, worker: Any, places: np.ndarray) -> None:
        task = self._fleet.task
        inputs, labels = plain(take(self._rows, places)), take_labels(self._labels, places)
        for place, x, label in zip(places.tolist(), inputs, labels, strict=True):
            if not self._record:
                worker.learn_row(unwrapped(x), task.labels.value(label))
                continue
            made = worker.step(unwrapped(x), task.labels.value(label))
            self._columns["risk"][place] = made.risk
            self._columns["target_loss"][place] = made.target_loss
            self._note_members(made, place)
            own = task.predictions.numbers(made.prediction)
            self._predictions[place, : len(own)] = own

    def _note_members(self, made: Any, places: np.ndarray | int) -> None:
        """Record what members of a committee had to expect."""
        risks = getattr(made, "member_risk", None)
        if risks is None:
            return
        if "member_risk" not in self._columns:
            self._columns["member_risk"] = np.full((len(self._slots), risks.shape[-1]), np.nan)
        self._columns["member_risk"][places] = risks

    def trace(self, before: tuple[np.ndarray, Any]) -> KeyedTrace:
        """Return what was recorded; ``before`` are slots that were there, and copies of these."""
        fleet, index = self._fleet, self._fleet._index
        touched, _ = index.first_rows(self._slots)
        keys = {slot: index.key(slot) for slot in touched.tolist()}
        columns: dict[str, np.ndarray] = dict(self._columns)
        if self._loop is not None:
            names = ("loss", "risk", "target_loss", "eta", "grad_sq")
            columns = dict(zip(names, self._table, strict=True))
        if self._weights is not None:
            columns["sample_weight"] = self._weights
        columns["prediction"] = fleet.task.predictions.values(self._predictions)
        starts = None
        if self._starts is not None:
            starts = dict(zip(self._new.tolist(), self._starts, strict=True))
        maker = TraceOf(
            fleet, columns, keys, self._loop is not None, self._traces, before, starts or {}
        )
        return KeyedTrace(columns, self._slots, keys, maker)


class TraceOf:
    """Makes the trace of one key from that of all."""

    def __init__(
        self,
        fleet: Keyed,
        columns: Mapping[str, np.ndarray],
        keys: Mapping[int, Key],
        loop: bool,
        traces: Mapping[int, Any],
        before: tuple[np.ndarray, Any],
        starts: Mapping[int, np.ndarray],
    ):
        self._columns, self._loop, self._traces, self._keys = columns, loop, traces, keys
        self._config = fleet._worker._config() if loop else {}
        self._fleet, self._known, self._starts = fleet, before, starts

    def __call__(self, slot: int, rows: np.ndarray) -> Any:
        """Return the trace of the learner in a slot, of these rows."""
        with self._fleet._lock:
            return self._made(slot, rows)

    def _made(self, slot: int, rows: np.ndarray) -> Any:
        if not self._loop:
            known = self._traces.get(slot)
            if known is None:
                raise InputError(
                    "traces of single keys are kept by run(..., audit=True), where learners are no "
                    "OGD with dense rows"
                )
            return known
        columns: dict[str, Any] = {name: own[rows] for name, own in self._columns.items()}
        return Trace(**columns, origin=self._origin(slot), config=self._config)

    def _origin(self, slot: int) -> State:
        """Return the state of a learner before the run."""
        fleet, (known, copied) = self._fleet, self._known
        store: Any = fleet._store
        seed = fleet.seed_of(self._keys[slot])
        if slot in self._starts:
            begun: State = store.start_of(self._starts[slot], seed)
            return begun
        place = int(np.searchsorted(known, slot))
        if place < len(known) and known[place] == slot:
            own: State = store.state_of(copied, place, seed)
            return own
        store.fresh(seed)
        store._fill()
        first: State = fleet._worker.state
        return first
