"""The learners of all keys side by side in memory, for one compiled loop over their rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from driftline.engines import CompiledEngine
from driftline.engines.base import PRECISION, refresh_after
from driftline.errors import InputError
from driftline.inputs import DenseRows, Rows, cast, refuse
from driftline.kernels import Program
from driftline.kernels import program as at
from driftline.kernels.keyed import play_keyed, play_keyed_single
from driftline.kernels.memory import aligned
from driftline.kernels.philox import draw_next
from driftline.keyed.store import Arrays
from driftline.learner import OGD, Learner
from driftline.state import State
from driftline.state.draws import keys_of_seeds
from driftline.typing import CheckedLabels, Json

__all__ = ["Blocks", "fits_blocks"]

#: Places in the vector of an engine.
SLOTS = {
    "scale": at.SCALE,
    "norm_sq": at.NORM_SQ,
    "refresh": at.REFRESH,
    "rounds": at.ROUNDS,
    "largest_input_sq": at.LARGEST_INPUT_SQ,
    "eta": at.ETA,
    "radius": at.RADIUS,
    "inner": at.INNER,
    "alarm": at.ALARM,
    "most_eta": at.MOST_ETA,
}


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


class Blocks(Arrays):
    """Weights and vectors of learners by slot.

    ``weights`` are by slot, score and feature, ``vectors`` as those of an engine; ``draws`` are
    keys of random numbers, two words each, where predictions are random.
    """

    names = ("weights", "vectors", "tickets", "draws")

    def __init__(
        self, worker: OGD, first: State | None, seed_of: Callable[[int], int], shares: bool = False
    ):
        super().__init__(worker, first, seed_of)
        self.shares = shares
        engine: Any = worker.engine
        self._engine: CompiledEngine = engine
        self.certain = bool(worker.decoder.deterministic)
        self.weights = np.zeros((0, 0, 0), dtype=engine.dtype)
        self.vectors = np.zeros((0, engine.vector.size))
        self.draws = np.zeros((0, 0 if self.certain else 2), dtype=np.int64)
        #: Weights and vector of a learner over all rows, from whose weights others begin.
        self.shared: tuple[np.ndarray, np.ndarray] | None = None

    def _prepare(self, rows: Rows) -> None:
        shape = self.worker.parts.shape(rows.features)
        self.weights = np.zeros((len(self.tickets), *shape), dtype=self._engine.dtype)
        if self.shares:
            super().fresh(0)
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
        shared = None if self.shared is None else tuple(own.copy() for own in self.shared)
        return *super().copy(slots), shared

    def rollback(self, slots: np.ndarray, copied: tuple[Any, ...]) -> None:
        """Write back what :meth:`copy` returned."""
        super().rollback(slots, copied[:-1])
        self.shared = copied[-1]

    def teach_shared(self, x: Any, label: Any) -> None:
        """Let the learner over all rows learn from one."""
        self.worker.restore(self.shared_state())
        self.worker.learn_row(x, label)
        self.put_shared(self.worker.state)

    def fresh(self, seed: int, state: Any = None) -> None:
        """Let the worker be a new learner, with the weights of the shared one if there is one."""
        super().fresh(seed, state)
        if self.shared is not None:
            self._fill()
            assert self._engine.stored is not None
            self._engine.stored[:] = self.shared[0][0]
            for place in (at.SCALE, at.NORM_SQ):
                self._engine.vector[place] = self.shared[1][0, place]

    def start_of(self, numbers: np.ndarray, seed: int) -> State:
        """Return the state of a learner that began with weights that the loop has written down."""
        super().fresh(seed)
        self._fill()
        engine = self._engine
        assert engine.stored is not None
        engine.stored[:] = numbers[:-2].reshape(engine.stored.shape)
        engine.vector[at.SCALE], engine.vector[at.NORM_SQ] = numbers[-2:]
        made: State = self.worker.state
        return made

    # -- one learner

    def begin(self, slots: np.ndarray) -> None:
        """Let new learners begin, all alike but for their random numbers."""
        if not len(slots):
            return
        super().fresh(0)
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

    def _widen(self, slots: np.ndarray, other: Blocks, theirs: np.ndarray) -> None:
        self.weights[slots] = 0.0
        self.weights[slots, : other.weights.shape[1]] = other.weights[theirs]
        self.vectors[slots], self.draws[slots] = other.vectors[theirs], other.draws[theirs]

    def alarms(self, slots: np.ndarray) -> np.ndarray:
        """Return zeros: no detector is watching."""
        return np.zeros(len(slots), dtype=np.int64)

    # -- files

    def load(self, slots: np.ndarray, about: Json, arrays: Mapping[str, np.ndarray]) -> None:
        """Write what a file has of slots, if it can be of such learners."""
        super().load(slots, about, arrays)
        if len(slots):
            self._check(*(arrays[name] for name in ("weights", "vectors", "tickets")))

    def _check(self, weights: np.ndarray, vectors: np.ndarray, tickets: np.ndarray) -> None:
        """Refuse numbers that no learners can have: they may come from anywhere."""
        column = {name: vectors[:, place] for name, place in SLOTS.items()}
        rounds, scale, refresh = column["rounds"], column["scale"], column["refresh"]
        radius = float(self._engine.vector[at.RADIUS])
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
            good &= np.isfinite(column["inner"]) & (column["alarm"] == at.QUIET)
            good &= ~np.isnan(vectors[:, at.MEMORY :]).any(axis=1)
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
        table, program = np.empty((at.MEANS, count)), engine._ready(rows)[2].looking
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
        loop = play_keyed if engine.dtype == np.float64 else play_keyed_single
        played: int = loop.compiled(
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
