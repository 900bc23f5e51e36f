"""The learners of all keys side by side in memory, for one compiled loop over their rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from driftline.engines import CompiledEngine
from driftline.engines.base import PRECISION, refresh_after
from driftline.errors import InputError
from driftline.inputs import DenseRows, Rows, cast
from driftline.kernels import program as at
from driftline.kernels.keyed import play_keyed, play_keyed_single
from driftline.kernels.memory import aligned
from driftline.kernels.philox import draw_next
from driftline.learner import OGD, Learner
from driftline.state import State
from driftline.typing import CheckedLabels

__all__ = ["Blocks", "fits_blocks"]

#: By how much more room is made for new keys.
GROWTH = 9 / 8

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


def fits_blocks(learner: Learner) -> bool:
    """Say whether a learner is weights and a vector, and its rounds are those of the loop."""
    if not isinstance(learner, OGD) or not isinstance(learner.engine, CompiledEngine):
        return False
    parts, task = learner.parts, learner.task
    plain = learner.mapper is None and parts.restart is None and not parts.loss.inexact
    return plain and not task.layout.ragged and not task.layout.extra_columns


class Blocks:
    """Weights and vectors of learners by slot.

    Parameters
    ----------
    learner
        A new learner, of which all others have the parts.
    """

    def __init__(self, learner: OGD):
        self.learner = learner
        engine: Any = learner.engine
        self._engine: CompiledEngine = engine
        self.features: int | None = None
        #: Weights by slot, score and feature; vectors as those of an engine; numbers of tickets.
        self.weights = np.zeros((0, 0, 0), dtype=learner.engine.dtype)
        self.vectors = np.zeros((0, learner.engine.vector.size))
        self.tickets = np.zeros(0, dtype=np.int64)
        #: Keys of random numbers, two words each, where predictions are random.
        self.draws = np.zeros((0, 0 if self.certain else 2), dtype=np.int64)

    @property
    def certain(self) -> bool:
        """Whether predictions are not random."""
        return bool(self.learner.decoder.deterministic)

    def meet(self, features: int) -> None:
        """Learn how many features rows have, before the first."""
        if self.features is None:
            self.features = features
            shape = self.learner.parts.shape(features)
            self.weights = np.zeros((len(self.tickets), *shape), dtype=self._engine.dtype)

    def grow(self, size: int) -> None:
        """Make room for this many slots. The arrays are extended in place, where memory allows."""
        have = len(self.tickets)
        if size <= have:
            return
        room = max(size, int(have * GROWTH))
        for name in ("weights", "vectors", "tickets", "draws"):
            array: np.ndarray = getattr(self, name)
            array.resize((room, *array.shape[1:]), refcheck=False)

    # -- one learner

    def with_weights(self, state: State) -> State:
        """Return a state with first weights, if it is from before the first input."""
        if state.weights is not None:
            return state
        assert self.features is not None
        first = self.learner.parts.init(self.features, self._engine.dtype)
        return state.replaced(features=first.features, weights=first.weights, refresh=first.refresh)

    def begin(self, slots: np.ndarray, state: State) -> None:
        """Let new learners begin with a state that has weights; random ones need a key besides."""
        self.put(int(slots[0]), state.replaced(key=0))
        self.weights[slots], self.vectors[slots] = self.weights[slots[0]], self.vectors[slots[0]]
        self.tickets[slots] = 0

    def seed(self, slot: int, key: int) -> None:
        """Let a learner draw random numbers by a key."""
        self.draws[slot] = words_of(key)

    def put(self, slot: int, state: State) -> None:
        """Write the state of a learner, with weights, to a slot."""
        weights = state.weights
        assert weights is not None
        self._engine.restore(state)
        self.weights[slot] = weights.T if state.transposed else weights
        self.vectors[slot] = self._engine.vector
        self.tickets[slot] = state.tickets
        if not self.certain:
            assert state.key is not None
            self.seed(slot, state.key)

    def state(self, slot: int, key: int, waiting: dict[str, Any]) -> State:
        """Return the state of a slot; of its random numbers and tickets, what is said here."""
        return self.state_from(self._all, slot, key).replaced(**waiting)

    def state_from(self, copied: tuple[np.ndarray, ...], place: int, key: int) -> State:
        """Return a state from what :meth:`copy` returned, by its place there."""
        weights, vectors, tickets, _ = copied
        engine = self._engine
        engine.stored, engine.transposed = aligned(weights[place], apart=True), False
        engine.features, engine.vector[:] = self.features, vectors[place]
        made: State = engine.state().replaced(key=key, tickets=int(tickets[place]))
        return made

    @property
    def _all(self) -> tuple[np.ndarray, ...]:
        return self.weights, self.vectors, self.tickets, self.draws

    def load(self, slots: np.ndarray, arrays: Mapping[str, np.ndarray]) -> None:
        """Write what a file has of slots, if it can be of such learners."""
        given = [arrays.get(name) for name in ("weights", "vectors", "tickets", "draws")]
        for own, array in zip(self._all, given, strict=True):
            shape = (len(slots), *own.shape[1:])
            if array is None or array.shape != shape or array.dtype != own.dtype:
                seen = None if array is None else (array.shape, array.dtype.name)
                raise InputError(f"expected numbers of shape {shape}, {own.dtype}, but got {seen}")
        weights, vectors, tickets, _ = given
        assert weights is not None and vectors is not None and tickets is not None
        self._check(weights, vectors, tickets)
        self.rollback(slots, tuple(given))  # type: ignore[arg-type]

    def _check(self, weights: np.ndarray, vectors: np.ndarray, tickets: np.ndarray) -> None:
        """Refuse numbers that no learners can have: they may come from anywhere."""
        column = {name: vectors[:, place] for name, place in SLOTS.items()}
        rounds, scale, refresh = column["rounds"], column["scale"], column["refresh"]
        radius = float(self._engine.vector[at.RADIUS])
        with np.errstate(all="ignore"):
            norms = np.sqrt(
                np.square(weights.astype(np.float64) * scale[:, None, None]).sum((1, 2))
            )
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

    def copy(self, slots: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return all of some slots, for a rollback."""
        return tuple(own[slots] for own in self._all)

    def rollback(self, slots: np.ndarray, copied: tuple[np.ndarray, ...]) -> None:
        """Write back what :meth:`copy` returned."""
        for array, before in zip(self._all, copied, strict=True):
            array[slots] = before

    def takes(self, rows: Rows) -> bool:
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
    ) -> int:
        """Play rounds of many learners; return how many, up to the first that was refused."""
        engine = self._engine
        _, _, linked = engine._ready(rows)
        uniforms = self._uniforms(slots)
        extras = uniforms
        if sample_weight is not None:
            extras = np.column_stack([uniforms, sample_weight])
        loop = play_keyed if engine.dtype == np.float64 else play_keyed_single
        played: int = loop.compiled(
            linked.program.code,
            linked.program.params,
            cast(rows.array, engine.dtype),
            slots,
            labels,
            extras,
            self.weights,
            self.vectors,
            linked.buffer,
            table,
            predictions,
        )
        return played

    def _uniforms(self, slots: np.ndarray) -> np.ndarray:
        """Return the random numbers of rounds, which are those of their learners' next tickets."""
        made = np.empty((len(slots), 1))
        draw_next.compiled(self.draws.view(np.uint64), slots, self.tickets, made)
        return made


def words_of(key: int) -> tuple[int, int]:
    """Return the two words of the key of random numbers."""
    low, high = np.array([key & (2**64 - 1), key >> 64], dtype=np.uint64).view(np.int64).tolist()
    return low, high
