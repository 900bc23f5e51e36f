"""Committees of linear members by key, each a row of numbers.

All that a committee learns is in arrays: weights and vectors of members, the weights of the vote,
beliefs, the map, alarms. Those of the worker are views of one row, so that it takes the place of
another committee by one copy, and what is laid out for its compiled rounds stays valid.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from driftline.committee import Committee
from driftline.committee.state import CommitteeState
from driftline.detectors.alarms import FOUND, HEAD, MOST, AlarmLog
from driftline.engines import CompiledEngine
from driftline.errors import DAMAGE, InputError
from driftline.features import Standardiser
from driftline.inputs import DenseRows, Rows
from driftline.kernels import program as at
from driftline.kernels.memory import CACHE_LINE
from driftline.keyed.store import Arrays
from driftline.learner import OGD, Learner
from driftline.typing import Json, Saved

__all__ = ["Flat", "fits_flat"]

#: How many numbers of 8 bytes a cache line has.
LINE = CACHE_LINE // 8

#: Which part of an array a new committee has from the shared one: all, nothing, some numbers.
Part: TypeAlias = slice | list[int]


class Owner(NamedTuple):
    """How an array is read, how another one takes its place, and what of it others begin with."""

    get: Callable[[], np.ndarray]
    set: Callable[[np.ndarray], None]
    begun: Part


class Place(NamedTuple):
    """Where an array of the worker is, and the view of the row that it is to be."""

    get: Callable[[], np.ndarray]
    set: Callable[[np.ndarray], None]
    view: np.ndarray


def fits_flat(learner: Learner) -> bool:
    """Say whether a learner is a committee of compiled OGD that draws nothing.

    Members have no map, or share one that scales rows.
    """
    if not isinstance(learner, Committee) or learner.guard:
        return False
    (mapper, *others) = {id(member.mapper): member.mapper for member in learner.members}.values()
    if others or not (mapper is None or isinstance(mapper, Standardiser)):
        return False
    return not learner.task.layout.ragged and all(
        isinstance(member, OGD)
        and isinstance(member.engine, CompiledEngine)
        and member.decoder.deterministic
        for member in learner.members
    )


class Flat(Arrays):
    """Committees by slot, a row of numbers each.

    The log of alarms keeps its first numbers in the row; those that have an alarm have the rest
    elsewhere. With ``shares`` there is a committee over all rows; new ones begin with its weights
    of all kinds and what its map has learned, but have played no round yet, and their sets of
    weights count alike.
    """

    names = ("numbers", "tickets")
    dicts = ("waiting", "_alarms")
    sets = ("blank", "_unchecked")

    def __init__(
        self,
        worker: Committee,
        first: CommitteeState | None,
        seed_of: Callable[[int], int],
        shares: bool = False,
    ):
        super().__init__(worker, first, seed_of)
        self.shares = shares
        #: The committee over all rows, None if there is none, or no row was seen yet.
        self.shared: Committee | None = None
        self.numbers = np.zeros((0, 0))
        self._row, self._places, self._start = np.zeros(0), list[Place](), np.zeros(0)
        self._ends: list[int] = []
        #: Where the radius of each member's ball is, which is no part of its state.
        self._radii = np.zeros(0, dtype=np.int64)
        self._alarms: dict[int, np.ndarray] = {}
        #: Slots that came from a file, and that nobody has looked at yet.
        self._unchecked: set[int] = set()
        #: Arrays of the row that committees begin with, and those of the shared one.
        self._begun: list[tuple[np.ndarray, Owner]] = []

    def _prepare(self, rows: Rows) -> None:
        """Lay the arrays of the worker out in one row."""
        super().fresh(0)
        _begin_rows(self.worker, rows)
        owners = _owners(self.worker)
        sizes, head = [_room(owner.get()) for owner in owners], -(-HEAD // LINE) * LINE
        size = head + sum(sizes)
        room = np.zeros(size + LINE)
        first = -room.ctypes.data % CACHE_LINE // 8
        self._row = room[first : first + size]
        self._ends = np.cumsum([head, *sizes]).tolist()
        views = self._views(self._row, [owner.get() for owner in owners])
        pairs = zip(owners, views, strict=True)
        self._places = [Place(owner.get, owner.set, view) for owner, view in pairs]
        self._sync()
        self._start, numbered = self._row.copy(), np.arange(float(len(self._row)))
        vectors = self._views(numbered)[-1 : -2 * len(self.worker.members) : -2]
        self._radii = np.array([vector[at.RADIUS] for vector in vectors], dtype=np.int64)
        self.numbers = np.zeros((len(self.tickets), len(self._row)))
        if self.shares:
            self.shared = self.worker.copy()
            _begin_rows(self.shared, rows)
            self._begun = list(zip(self._views(self._start), _owners(self.shared), strict=True))

    def _views(self, row: np.ndarray, arrays: Sequence[np.ndarray] = ()) -> list[np.ndarray]:
        """Return the parts of a row as arrays like these, or like those of the worker."""
        parts = (row[a:b] for a, b in itertools.pairwise(self._ends))
        like = arrays or [place.view for place in self._places]
        return [_view(part, array) for part, array in zip(parts, like, strict=True)]

    def shared_state(self) -> CommitteeState | None:
        """Return the state of the committee over all rows."""
        return None if self.shared is None else self.shared.state

    def put_shared(self, state: CommitteeState) -> None:
        """Let the committee over all rows go on from a state."""
        assert self.shared is not None
        self.shared.restore(state)

    def teach_shared(self, x: Any, label: Any) -> None:
        """Let the committee over all rows learn from one."""
        assert self.shared is not None
        self.shared.learn_row(x, label)

    def fresh(self, seed: int, state: Any = None) -> None:
        """Let the worker be a new committee, which begins as the shared one is."""
        super().fresh(seed, state)
        if self.shared is not None:
            self._fill()
            self._attach()
            self._take_over()
            self._row[:] = self._start

    def _take_over(self) -> None:
        """Let new committees begin with what they have from the shared one, if there is one."""
        for own, (get, _, begun) in self._begun:
            own[begun] = get()[begun]

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
            self._take_over()
            self.numbers[slots], self.tickets[slots] = self._start, 0
            self._unchecked.difference_update(slots.tolist() if self._unchecked else ())
            return
        for slot in slots.tolist():
            self.fresh(self._seed_of(slot))
            self.leave(slot)

    def _fill(self) -> None:
        if self.worker.features is None:
            _begin_rows(self.worker, DenseRows(np.zeros((1, self.features or 1))))

    def _attach(self) -> None:
        """Let the arrays of the worker be views of the row."""
        for get, set_, view in self._places:
            if get() is not view:
                set_(view)

    def _load(self, slot: int) -> None:
        self._fill()
        self._attach()
        self._row[:] = self.numbers[slot]
        log = self.worker._alarms.state
        log[:HEAD] = self._row[:HEAD]
        if (rest := self._alarms.get(slot)) is not None:
            log[HEAD : HEAD + len(rest)] = rest
        if slot in self._unchecked:
            self._check(slot)

    def _keep(self, slot: int) -> None:
        self._sync()
        self._unchecked.discard(slot)
        self.numbers[slot] = self._row
        if (count := min(self.worker._alarms.count, MOST)) > 0:
            self._alarms[slot] = self.worker._alarms.state[HEAD : HEAD + count].copy()
        else:
            self._alarms.pop(slot, None)

    def alarms(self, slots: np.ndarray) -> np.ndarray:
        """Return how often losses of committees were seen to rise."""
        if self.features is None:
            return np.zeros(len(slots), dtype=np.int64)
        return self.numbers[slots, FOUND].astype(np.int64)

    def _widen(self, slots: np.ndarray, other: Flat, theirs: np.ndarray) -> None:
        row, their_row = self._start.copy(), np.zeros(len(other._start))
        pairs = list(zip(self._views(row), other._views(their_row), strict=True))
        for slot, their in zip(slots.tolist(), theirs.tolist(), strict=True):
            their_row[:] = other.numbers[their]
            row[:HEAD] = their_row[:HEAD]
            for own, given in pairs:
                own[: len(given)] = given
                own[len(given) :] = 0.0
            self.numbers[slot] = row
            if their in other._alarms:
                self._alarms[slot] = other._alarms[their]
            if their in other._unchecked:
                self._unchecked.add(slot)

    def to_saved(self, slots: np.ndarray) -> Saved:
        """Return the arrays, and alarms."""
        about, arrays = super().to_saved(slots)
        pairs = [(i, self._alarms[s]) for i, s in enumerate(slots.tolist()) if s in self._alarms]
        about["alarms"] = [[place, len(own)] for place, own in pairs]
        return about, arrays | {"alarms": np.concatenate([np.zeros(0), *(own for _, own in pairs)])}

    def load(self, slots: np.ndarray, about: Json, arrays: Mapping[str, np.ndarray]) -> None:
        """Write the arrays to slots.

        Counts are checked at once, and so is the first committee; each other is before it is first
        used: a check takes a millisecond, and there may be a hundred thousand.
        """
        super().load(slots, about, arrays)
        place, rounds = 0, arrays["alarms"]
        kept = np.zeros(len(slots))
        for which, count in about["alarms"]:
            self._alarms[int(slots[which])] = rounds[place : place + count]
            place, kept[which] = place + count, count
        if len(slots):
            found, tickets = self.numbers[slots, FOUND], self.tickets[slots]
            with np.errstate(invalid="ignore"):
                good = (kept == np.minimum(found, MOST)) & (found == np.floor(found))
            good &= (kept >= 0.0) & (found < 2.0**53) & (tickets >= 0) & (tickets < 2**53)
            if not good.all() or rounds.shape != (kept.sum(),) or rounds.dtype != np.float64:
                raise InputError("counts of alarms or of tickets are not those of its learners")
        self._unchecked = {*slots.tolist()}
        for slot in slots[:1].tolist():
            self.enter(slot)

    def _check(self, slot: int) -> None:
        """Refuse numbers that no committee can have: they may come from anywhere."""
        worker = self.worker
        try:
            AlarmLog.from_array(worker._alarms.to_array(), worker.rounds)
            if (self._row[self._radii] != self._start[self._radii]).any():
                raise InputError("its weights have another domain")
            worker.restore(worker.state)
        except DAMAGE as error:
            self._row[:] = self._start  # no other call meets what was refused
            raise InputError(f"learner {slot} of the file cannot be: {error}") from error
        self._keep(slot)  # as it was understood


def _begin_rows(committee: Any, rows: Rows) -> None:
    """Give a committee what it would have after the first row, but nothing that was learned."""
    row: Rows = DenseRows(np.zeros((1, rows.features)))
    if (mapper := committee.members[0].mapper) is not None:
        if mapper.features is None:
            mapper.begin(row)
        row = mapper.look_at(row)
    for member in committee.members:
        member.engine.hold(row)


def _owners(committee: Any) -> list[Owner]:
    """Return how each array of a committee is read and written."""
    shares = committee.shares
    everything, votes = slice(None), slice(len(shares.state) - len(shares.of_members), None)
    made = [
        _attribute(lambda: committee.shares, "state", votes),
    ]
    if committee._believes is not None:
        made.append(_attribute(lambda: committee._believes, "state", everything))
    if committee.members[0].mapper is not None:
        made.append(_attribute(lambda: committee.members[0].mapper, "state", everything))
    for member in committee.members:
        made.append(_weights(member.engine))
        made.append(_attribute(partial(_itself, member.engine), "vector", [at.SCALE, at.NORM_SQ]))
    return made


def _itself(owner: Any) -> Any:
    return owner


def _attribute(owner: Callable[[], Any], name: str, begun: Part) -> Owner:
    get, put = partial(_read, owner, name), partial(_write, owner, name)
    return Owner(get, put, begun)


def _read(owner: Callable[[], Any], name: str) -> np.ndarray:
    made: np.ndarray = getattr(owner(), name)
    return made


def _write(owner: Callable[[], Any], name: str, array: np.ndarray) -> None:
    setattr(owner(), name, array)


def _weights(engine: Any) -> Owner:
    """Return how the weights of a member are read and written, a row for each score."""

    def put(array: np.ndarray) -> None:
        engine.stored, engine.transposed = array, False

    def get() -> np.ndarray:
        made: np.ndarray = engine.stored.T if engine.transposed else engine.stored
        return made

    return Owner(get, put, slice(None))


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
