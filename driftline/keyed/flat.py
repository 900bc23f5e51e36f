"""Committees of linear members by key, each a row of numbers.

All that a committee learns is in arrays: weights and vectors of members, the weights of the vote,
beliefs, scaling, alarms. Those of the worker are views of one row, so that it takes the place of
another committee by one copy, and what is laid out for its compiled rounds stays valid.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from driftline.committee import Committee
from driftline.committee.state import CommitteeState
from driftline.detectors.alarms import HEAD, MOST
from driftline.engines import CompiledEngine
from driftline.inputs import DenseRows, Rows
from driftline.kernels.memory import CACHE_LINE
from driftline.keyed.store import Arrays
from driftline.learner import OGD, Learner
from driftline.typing import Json, Saved

__all__ = ["Flat", "fits_flat"]

#: How many numbers of 8 bytes a cache line has.
LINE = CACHE_LINE // 8

#: How an array is read, and how another one takes its place.
Owner: TypeAlias = tuple[Callable[[], np.ndarray], Callable[[np.ndarray], None]]


class Place(NamedTuple):
    """Where an array of the worker is, and the view of the row that it is to be."""

    get: Callable[[], np.ndarray]
    set: Callable[[np.ndarray], None]
    view: np.ndarray


def fits_flat(learner: Learner) -> bool:
    """Say whether a learner is a committee of compiled OGD, without maps, that draws nothing."""
    if not isinstance(learner, Committee) or learner.combine != "vote":
        return False
    return not learner.task.layout.ragged and all(
        isinstance(member, OGD)
        and isinstance(member.engine, CompiledEngine)
        and member.mapper is None
        and member.decoder.deterministic
        for member in learner.members
    )


class Flat(Arrays):
    """Committees by slot, a row of numbers each.

    The log of alarms keeps its first numbers in the row; those that have an alarm have the rest
    elsewhere.
    """

    names = ("numbers", "tickets")

    def __init__(self, worker: Committee, first: CommitteeState, seed_of: Callable[[int], int]):
        super().__init__(worker, first, seed_of)
        self.numbers = np.zeros((0, 0))
        self._row, self._places, self._start = np.zeros(0), list[Place](), np.zeros(0)
        self._alarms: dict[int, np.ndarray] = {}

    def _prepare(self, rows: Rows) -> None:
        """Lay the arrays of the worker out in one row."""
        self.fresh(0)
        self._begin_rows(rows)
        owners = self._owners()
        sizes, head = [_room(get()) for get, _ in owners], -(-HEAD // LINE) * LINE
        size = head + sum(sizes)
        room = np.zeros(size + LINE)
        first = -room.ctypes.data % CACHE_LINE // 8
        self._row, place = room[first : first + size], head
        for (get, set_), size in zip(owners, sizes, strict=True):
            self._places.append(Place(get, set_, _view(self._row[place : place + size], get())))
            place += size
        self._sync()
        self._start = self._row.copy()
        self.numbers = np.zeros((len(self.tickets), len(self._row)))

    def _begin_rows(self, rows: Rows) -> None:
        """Give the worker what it would have after the first row, but nothing that was learned."""
        worker, row = self.worker, DenseRows(np.zeros((1, rows.features)))
        if worker.scaling is not None:
            if worker.scaling.features is None:
                worker.scaling._become(worker.scaling._begun(row))
            row = worker.scaling.look_at(row)
        for member in worker.members:
            member.engine.hold(row)

    def _owners(self) -> list[Owner]:
        """Return how each array of the worker is read and written."""
        worker: Any = self.worker
        made = [_attribute(lambda: worker.shares, name) for name in ("state", "sums")]
        if worker._beliefs is not None:
            made.append(_attribute(lambda: worker._beliefs, "state"))
        if worker.scaling is not None:
            made.append(_attribute(lambda: worker.scaling, "state"))
        for member in worker.members:
            made += [_weights(member.engine), _attribute(partial(_itself, member.engine), "vector")]
        return made

    def _sync(self) -> None:
        """Let arrays be views of the row again, where they were replaced by others."""
        for get, set_, view in self._places:
            array = get()
            if array is not view:
                view[...] = array
                set_(view)
        self._row[:HEAD] = self.worker._alarms.state[:HEAD]

    # -- one committee

    def begin(self, slots: np.ndarray) -> None:
        """Let new committees begin."""
        if self.plain:
            self.numbers[slots], self.tickets[slots] = self._start, 0
            return
        for slot in slots.tolist():
            self.fresh(self._seed_of(slot))
            self.leave(slot)

    def _fill(self) -> None:
        if self.worker.features is None:
            self._begin_rows(DenseRows(np.zeros((1, self.features or 1))))

    def _load(self, slot: int) -> None:
        self._fill()
        for get, set_, view in self._places:
            if get() is not view:
                set_(view)
        self._row[:] = self.numbers[slot]
        log = self.worker._alarms.state
        log[:HEAD] = self._row[:HEAD]
        if (rest := self._alarms.get(slot)) is not None:
            log[HEAD : HEAD + len(rest)] = rest

    def _keep(self, slot: int) -> None:
        self._sync()
        self.numbers[slot] = self._row
        if (count := min(self.worker._alarms.count, MOST)) > 0:
            self._alarms[slot] = self.worker._alarms.state[HEAD : HEAD + count].copy()
        else:
            self._alarms.pop(slot, None)

    def to_saved(self, slots: np.ndarray) -> Saved:
        """Return the arrays, and alarms."""
        about, arrays = super().to_saved(slots)
        pairs = [(i, self._alarms[s]) for i, s in enumerate(slots.tolist()) if s in self._alarms]
        about["alarms"] = [[place, len(own)] for place, own in pairs]
        return about, arrays | {"alarms": np.concatenate([np.zeros(0), *(own for _, own in pairs)])}

    def load(self, slots: np.ndarray, about: Json, arrays: Mapping[str, np.ndarray]) -> None:
        """Write the arrays to slots; the worker goes on from each, and refuses what is wrong."""
        super().load(slots, about, arrays)
        place, rounds = 0, arrays["alarms"]
        for which, count in about["alarms"]:
            self._alarms[int(slots[which])] = rounds[place : place + count]
            place += count
        for slot in slots.tolist():
            self.worker.restore(self.state(slot))

    def copy(self, slots: np.ndarray) -> tuple[Any, ...]:
        """Return the numbers of some slots, and the alarms of all."""
        return (*super().copy(slots), dict(self._alarms))

    def rollback(self, slots: np.ndarray, copied: tuple[Any, ...]) -> None:
        """Write back what :meth:`copy` returned."""
        count = len(self.names)
        super().rollback(slots, copied[:count])
        if len(copied) > count:
            self._alarms = copied[count]


def _itself(owner: Any) -> Any:
    return owner


def _attribute(owner: Callable[[], Any], name: str) -> Owner:
    return (lambda: getattr(owner(), name)), (lambda array: setattr(owner(), name, array))


def _weights(engine: Any) -> Owner:
    """Return how the weights of a member are read and written, a row for each score."""

    def put(array: np.ndarray) -> None:
        engine.stored, engine.transposed = array, False

    return (lambda: engine.stored.T if engine.transposed else engine.stored), put


def _room(array: np.ndarray) -> int:
    """Return how many numbers of the row an array takes: whole cache lines for each row of it."""
    rows = len(array) if array.ndim == 2 else 1
    bytes_of_row = array.itemsize * array.size // max(1, rows)
    return rows * LINE * -(-bytes_of_row // CACHE_LINE)


def _view(region: np.ndarray, array: np.ndarray) -> np.ndarray:
    """Return a part of the row as an array like this one."""
    rows = len(array) if array.ndim == 2 else 1
    lines = region.view(array.dtype).reshape(rows, -1)[:, : array.size // rows]
    return lines if array.ndim == 2 else lines[0]
