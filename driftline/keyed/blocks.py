"""The learners of all keys side by side in memory, for one compiled loop over their rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from driftline.engines import CompiledEngine
from driftline.engines.base import PRECISION, refresh_after
from driftline.errors import InputError
from driftline.inputs import DenseRows, Rows, cast, refuse
from driftline.kernels import QUIET, TRACE_COLUMNS, Program, state_by_name
from driftline.kernels.keyed import play_keyed
from driftline.kernels.memory import aligned
from driftline.kernels.philox import draw_next
from driftline.keyed.store import Store
from driftline.learner import OGD, Learner
from driftline.learner.outstanding import Outstanding
from driftline.state import State
from driftline.state.draws import keys_of_seeds
from driftline.typing import CheckedLabels, Json, Saved

__all__ = ["Blocks", "fits_blocks"]

#: By how much more room is made for new keys.
GROWTH = 9 / 8

#: What stands for a shared learner where there is none.
NOTHING, NO_STATES = np.zeros(0, dtype=np.int64), np.zeros((0, 0))
NO_WEIGHTS = {name: np.zeros((0, 0, 0), dtype=name) for name in ("float64", "float32")}


def fits_blocks(learner: Learner) -> bool:
    """Say whether a learner is weights and a vector, and its rounds are those of the loop."""
    if not isinstance(learner, OGD) or not isinstance(learner.engine, CompiledEngine):
        return False
    parts, task = learner.parts, learner.task
    plain = learner.mapper is None and parts.restart is None and not parts.loss.inexact
    return plain and not task.layout.ragged and not task.layout.extra_columns


class Blocks(Store):
    """Weights and vectors of learners by slot; one learner, the worker, takes the place of each.

    ``weights`` are by slot, score and feature, ``vectors`` as those of an engine; ``draws`` are
    keys of random numbers, two words each, where predictions are random. ``waiting`` are numbers of
    outstanding tickets, with the id of the learner. A learner that was asked before its first row
    has no weights yet: it is ``blank``.
    """

    #: Names of the arrays, whose first axis is the slot.
    names = ("weights", "vectors", "tickets", "draws")

    def __init__(
        self, worker: OGD, first: State | None, seed_of: Callable[[int], int], shares: bool = False
    ):
        super().__init__(worker, first, seed_of)
        self.shares = shares
        self.features: int | None = None
        self.tickets = np.zeros(0, dtype=np.int64)
        self.waiting: dict[int, tuple[np.ndarray, str]] = {}
        self.blank: set[int] = set()
        engine: Any = worker.engine
        self._engine: CompiledEngine = engine
        self.certain = bool(worker.decoder.deterministic)
        self.weights = np.zeros((0, 0, 0), dtype=engine.dtype)
        self.vectors = np.zeros((0, engine.vector.size))
        self.draws = np.zeros((0, 0 if self.certain else 2), dtype=np.int64)
        #: Weights and vector of a learner over all rows, from whose weights others begin.
        self.shared: tuple[np.ndarray, np.ndarray] | None = None

    def meet(self, rows: Rows) -> None:
        """Learn how many features rows have, before the first."""
        if self.features is None:
            self._prepare(rows)
            self.features = rows.features
        elif rows.features != self.features:
            raise InputError(
                f"inputs have {rows.features} features, but those before had {self.features}"
            )

    def grow(self, size: int) -> None:
        """Make room for this many slots. The arrays are extended in place, where memory allows."""
        for name in self.names:
            array: np.ndarray = getattr(self, name)
            if size > len(array):
                room = max(size, int(len(array) * GROWTH))
                array.resize((room, *array.shape[1:]), refcheck=False)

    def _prepare(self, rows: Rows) -> None:
        """Make arrays for learners of rows like these."""
        shape = self.worker.parts.shape(rows.features)
        self.weights = np.zeros((len(self.tickets), *shape), dtype=self._engine.dtype)
        if self.shares:
            self._begin(0)
            self._engine.hold(DenseRows(np.zeros((1, rows.features))))
            assert self._engine.stored is not None
            weights = np.ascontiguousarray(self._engine.stored[np.newaxis])
            self.shared = weights.copy(), self._engine.vector[np.newaxis].copy()

    def shared_state(self) -> State | None:
        """Return the state of the learner over all rows."""
        if self.shared is None:
            return None
        return self.state_of((*self.shared, np.zeros(1, dtype=np.int64), self.draws), 0, 0)

    def put_shared(self, state: State) -> None:
        """Let the learner over all rows go on from a state with weights."""
        self.worker.restore(state)
        engine = self._engine
        assert self.shared is not None and engine.stored is not None
        self.shared[0][0] = engine.stored.T if engine.transposed else engine.stored
        self.shared[1][0] = engine.vector

    def copy(self, slots: np.ndarray) -> tuple[Any, ...]:
        """Return all of some slots, and the learner over all rows."""
        rows, known = [getattr(self, name)[slots] for name in self.names], slots.tolist()
        waiting = {slot: self.waiting[slot] for slot in known if slot in self.waiting}
        shared = None if self.shared is None else tuple(own.copy() for own in self.shared)
        return *rows, waiting, self.blank.intersection(known), shared

    def rollback(self, slots: np.ndarray, copied: tuple[Any, ...]) -> None:
        """Write back what :meth:`copy` returned."""
        *rows, waiting, blank, self.shared = copied
        self._put(slots, rows)
        self.drop(slots)
        self.waiting.update(waiting)
        self.blank.update(blank)

    def reset(self) -> None:
        """Let the worker be new."""
        self.worker.restore(self.first)

    def drop(self, slots: np.ndarray) -> None:
        """Forget all of slots but their rows of arrays."""
        gone = slots.tolist()
        self.blank.difference_update(gone)
        for slot in gone if self.waiting else ():
            self.waiting.pop(slot, None)

    def _put(self, slots: np.ndarray, rows: Sequence[np.ndarray]) -> None:
        """Write rows of slots to all arrays."""
        for name, own in zip(self.names, rows, strict=True):
            getattr(self, name)[slots] = own

    def teach_shared(self, x: Any, label: Any) -> None:
        """Let the learner over all rows learn from one."""
        self.worker.restore(self.shared_state())
        self.worker.learn_row(x, label)
        self.put_shared(self.worker.state)

    def _begin(self, seed: int) -> None:
        """Let the worker be a new learner with this seed, before the first row."""
        blank = {"tickets": 0, "outstanding": None, "identity": "", "late": None}
        self.worker.restore(self.first.replaced(**blank))
        self.worker._reseed(seed)

    def fresh(self, seed: int) -> OGD:
        """Let the worker be a new learner, with the weights of the shared one if there is one."""
        self._begin(seed)
        if self.shared is not None:
            self._fill()
            own = state_by_name(self.shared[1][0])
            self._engine.begin_with(self.shared[0][0], float(own["scale"]), float(own["norm_sq"]))
        made: OGD = self.worker
        return made

    def enter(self, slot: int, *, asking: bool = True) -> OGD:
        """Let the worker take the place of a learner, with its random numbers and tickets."""
        worker: OGD = self.worker
        if slot in self.blank:
            self.fresh(self._seed_of(slot))
        else:
            self._load(slot)
            if asking or not self.certain:
                worker._reseed(self._seed_of(slot))
        numbers, identity = self.waiting.get(slot, (None, ""))
        worker._tickets, worker._identity = int(self.tickets[slot]), identity
        worker._outstanding = Outstanding(numbers)
        return worker

    def leave(self, slot: int, told: tuple[Any, Any] | None = None) -> None:
        """Keep what the worker has become."""
        worker = self.worker
        (self.blank.add if worker.features is None else self.blank.discard)(slot)
        self._fill()
        self._keep(slot)
        self.tickets[slot] = worker._tickets
        self.waiting.pop(slot, None)
        if worker.outstanding:
            self.waiting[slot] = worker._outstanding.to_array(), worker._identify()

    def put(self, slot: int, state: Any) -> None:
        """Let the worker go on from a state, and keep it."""
        self.worker.restore(state)
        self.leave(slot)

    def start_of(self, numbers: np.ndarray, seed: int) -> State:
        """Return the state of a learner that began with weights that the loop has written down."""
        self._begin(seed)
        self._fill()
        self._engine.begin_with(numbers[:-2], *numbers[-2:])
        made: State = self.worker.state
        return made

    # -- one learner

    def begin(self, slots: np.ndarray) -> None:
        """Let new learners begin, all alike but for their random numbers."""
        if not len(slots):
            return
        self._begin(0)
        self._fill()
        self._keep(int(slots[0]))
        self.weights[slots], self.vectors[slots] = self.weights[slots[0]], self.vectors[slots[0]]
        self.tickets[slots] = 0
        if not self.certain:
            seeds = np.array([self._seed_of(slot) for slot in slots.tolist()], dtype=np.uint64)
            self.draws[slots] = keys_of_seeds(seeds, self.worker._BRANCH).view(np.int64)

    def _fill(self) -> None:
        engine = self._engine
        if engine.stored is None:
            assert self.features is not None
            engine.hold(DenseRows(np.zeros((1, self.features))))

    def _load(self, slot: int) -> None:
        engine = self._engine
        engine.stored, engine.transposed = aligned(self.weights[slot], apart=True), False
        engine.features, engine.vector[:] = self.features, self.vectors[slot]

    def _keep(self, slot: int) -> None:
        engine = self._engine
        assert engine.stored is not None
        self.weights[slot] = engine.stored.T if engine.transposed else engine.stored
        self.vectors[slot] = engine.vector
        if not self.certain:
            self.draws[slot] = words_of(self.worker._draws.key)

    def state_of(self, copied: tuple[np.ndarray, ...], place: int, seed: int) -> State:
        """Return a state from what :meth:`copy` returned, by its place there."""
        weights, vectors, tickets, *_ = copied
        self.worker._reseed(seed)
        engine = self._engine
        engine.stored, engine.transposed = aligned(weights[place], apart=True), False
        engine.features, engine.vector[:] = self.features, vectors[place]
        key = self.worker._draws.key
        return engine.state().replaced(key=key, tickets=int(tickets[place]))

    def put_grown(
        self, slots: np.ndarray, other: Store, theirs: np.ndarray, grow: Callable[[Any], Any]
    ) -> None:
        """Take learners over; those with more classes only have more weights, which are 0."""
        if not isinstance(other, Blocks) or other.features != self.features:
            super().put_grown(slots, other, theirs, grow)
            return
        if self.features is not None:
            self.weights[slots] = 0.0
            self.weights[slots, : other.weights.shape[1]] = other.weights[theirs]
            self.vectors[slots], self.draws[slots] = other.vectors[theirs], other.draws[theirs]
        self.tickets[slots] = other.tickets[theirs]
        pairs = dict(zip(theirs.tolist(), slots.tolist(), strict=True))
        self.blank = {pairs[their] for their in other.blank}
        self.waiting = {pairs[their]: own for their, own in other.waiting.items()}

    def alarms(self, slots: np.ndarray) -> np.ndarray:
        """Return zeros: no detector is watching."""
        return np.zeros(len(slots), dtype=np.int64)

    # -- files

    def to_saved(self, slots: np.ndarray) -> Saved:
        """Return the arrays, and which tickets are outstanding."""
        about: Json = {"features": self.features, "blank": [], "tickets": []}
        numbers = [np.zeros(0, dtype=np.int64)]
        for place, slot in enumerate(slots.tolist()):
            if slot in self.blank:
                about["blank"].append(place)
            if slot in self.waiting:
                own, identity = self.waiting[slot]
                about["tickets"].append([place, identity, len(own)])
                numbers.append(own)
        arrays = {name: getattr(self, name)[slots] for name in self.names}
        return about, arrays | {"outstanding": np.concatenate(numbers)}

    def load(self, slots: np.ndarray, about: Json, arrays: Mapping[str, np.ndarray]) -> None:
        """Write what a file has of slots, if it can be of such learners."""
        features = about["features"]
        if features is None and not len(slots):
            return
        if type(features) is not int or features < 0:
            raise InputError(f"there cannot be {features!r:.40} features")
        self.meet(DenseRows(np.zeros((1, features))))
        given = []
        for name in self.names:
            own, array = getattr(self, name), arrays.get(name)
            shape = (len(slots), *own.shape[1:])
            if array is None or array.shape != shape or array.dtype != own.dtype:
                seen = None if array is None else (array.shape, array.dtype.name)
                raise InputError(f"expected {name} of shape {shape}, {own.dtype}, but got {seen}")
            given.append(array)
        self._put(slots, given)
        self.blank = {int(slots[place]) for place in about["blank"]}
        place, numbers = 0, arrays["outstanding"]
        for which, identity, count in about["tickets"]:
            slot, own = int(slots[which]), numbers[place : place + count]
            place += count
            self.waiting[slot] = own, identity
            self.worker.restore(self.state(slot))  # refused if they cannot be
        if len(slots):
            self._check(*(arrays[name] for name in ("weights", "vectors", "tickets")))

    def _check(self, weights: np.ndarray, vectors: np.ndarray, tickets: np.ndarray) -> None:
        """Refuse numbers that no learners can have: they may come from anywhere."""
        column = state_by_name(vectors)
        rounds, scale, refresh = column["rounds"], column["scale"], column["refresh"]
        radius = float(state_by_name(self._engine.vector)["radius"])
        with np.errstate(all="ignore"):
            squares = np.square(weights.astype(np.float64) * scale[:, None, None])
            norms = np.sqrt(squares.sum(axis=(1, 2)))
            allowed, loose = PRECISION[weights.dtype.name], PRECISION["float32"]
            good = np.isfinite(norms) & (scale > 0.0) & (norms <= radius * (1.0 + allowed))
            if np.isfinite(radius):
                good &= np.abs(norms**2 - column["norm_sq"]) <= loose * radius**2
            for own in (rounds, refresh):
                good &= (own >= 0.0) & (own < 2.0**53) & (own == np.floor(own))
            good &= refresh <= rounds + refresh_after(weights[0] if len(weights) else weights)
            for name in ("norm_sq", "largest_input_sq", "eta"):
                good &= np.isfinite(column[name]) & (column[name] >= 0.0)
            good &= (column["most_eta"] > 0.0) & (column["radius"] == radius)
            good &= np.isfinite(column["inner"]) & (column["alarm"] == QUIET)
            good &= ~np.isnan(column["memory"]).any(axis=1)
            good &= (tickets >= 0) & (tickets < 2**53)
        if not good.all():
            raise InputError(
                f"learner {int(np.argmin(good))} of the file has a state that none has"
            )

    # -- many rounds

    @staticmethod
    def takes(rows: Rows) -> bool:
        """Say whether the loop takes these rows."""
        return type(rows) is DenseRows

    def play(
        self,
        rows: DenseRows,
        slots: np.ndarray,
        labels: CheckedLabels,
        sample_weight: np.ndarray | None,
        table: np.ndarray,
        predictions: np.ndarray,
        begins: np.ndarray | None = None,
        starts: np.ndarray | None = None,
    ) -> int:
        """Play rounds of many learners; return how many, up to the first that was refused.

        ``begins`` are the numbers of those that begin with the weights of a shared learner, -1 for
        others, and ``starts`` is where these weights are written to.
        """
        extras = np.empty((len(slots), 1))
        draw_next.compiled(self.draws.view(np.uint64), slots, self.tickets, extras)
        if sample_weight is not None:
            extras = np.column_stack([extras, sample_weight])
        self.blank.difference_update(slots.tolist() if self.blank else ())
        program = self._engine._ready(rows)[2].program
        given = (labels, extras, table, predictions, self.shared, begins, starts)
        return self._loop(program, rows, slots, *given)

    def look(self, rows: DenseRows, slots: np.ndarray) -> np.ndarray:
        """Return what learners would predict next for each row, as numbers, and change nothing."""
        engine, count = self._engine, len(slots)
        touched, inverse = np.unique(slots, return_inverse=True)
        drawn = np.empty((len(touched), 1))
        draw_next.compiled(self.draws.view(np.uint64), touched, self.tickets.copy(), drawn)
        label, width = engine._any_label(rows, engine._dim)
        labels, made = np.repeat(label, count, axis=0), np.full((count + 1, width), -1)
        table, program = np.empty((len(TRACE_COLUMNS), count)), engine._ready(rows)[2].looking
        given = (labels, np.ascontiguousarray(drawn[inverse]), table, made, None, None, None)
        if (good := self._loop(program, rows, slots, *given)) < count:
            refuse(rows, good)
        return made[:count]

    def _loop(
        self,
        program: Program,
        rows: DenseRows,
        slots: np.ndarray,
        labels: CheckedLabels,
        extras: np.ndarray,
        table: np.ndarray,
        predictions: np.ndarray,
        shared: tuple[np.ndarray, np.ndarray] | None,
        begins: np.ndarray | None,
        starts: np.ndarray | None,
    ) -> int:
        engine = self._engine
        played: int = play_keyed[engine.dtype].compiled(
            program.code,
            program.params,
            cast(rows.array, engine.dtype),
            slots,
            labels,
            extras,
            self.weights,
            self.vectors,
            engine._ready(rows)[2].buffer,
            table,
            predictions,
            NOTHING if begins is None else begins,
            NO_WEIGHTS[engine.dtype.name] if shared is None else shared[0],
            NO_STATES if shared is None else shared[1],
            np.empty((len(table), 1)),
            NO_STATES if starts is None else starts,
        )
        return played


def words_of(key: int) -> tuple[int, int]:
    """Return the two words of the key of random numbers."""
    low, high = np.array([key & (2**64 - 1), key >> 64], dtype=np.uint64).view(np.int64).tolist()
    return low, high
