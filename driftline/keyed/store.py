"""Where learners of many keys are: by slot, one learner takes the place of each in turn."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from driftline.errors import InputError
from driftline.inputs import DenseRows, Rows
from driftline.learner.outstanding import Outstanding
from driftline.state.loading import learner_from
from driftline.typing import Json, Saved

__all__ = ["Arrays", "States", "Store", "part_of"]

#: By how much more room is made for new keys.
GROWTH = 9 / 8


class Store(ABC):
    """Learners by slot, all of the same parts.

    Parameters
    ----------
    worker
        The learner that takes the place of others.
    first
        The state that a learner begins with; None for that of the worker.
    seed_of
        Returns the seed of the learner in a slot.
    """

    def __init__(self, worker: Any, first: Any, seed_of: Callable[[int], int]):
        self.worker, self._seed_of = worker, seed_of
        self.plain = first is None
        self.first = worker.state if first is None else first

    @abstractmethod
    def meet(self, rows: Rows) -> None:
        """Learn what rows are like, before the first; refuse others."""

    @abstractmethod
    def grow(self, size: int) -> None:
        """Make room for this many slots."""

    @abstractmethod
    def begin(self, slots: np.ndarray) -> None:
        """Let new learners begin."""

    @abstractmethod
    def enter(self, slot: int, *, asking: bool = True) -> None:
        """Let the worker take the place of a learner.

        Unless ``asking``, it plays rounds only: who draws nothing needs no random numbers then.
        """

    @abstractmethod
    def leave(self, slot: int) -> None:
        """Keep what the worker has become in the place of a learner."""

    @abstractmethod
    def copy(self, slots: np.ndarray) -> Any:
        """Return all of some slots, for a rollback."""

    @abstractmethod
    def rollback(self, slots: np.ndarray, copied: Any) -> None:
        """Write back what :meth:`copy` returned."""

    @abstractmethod
    def drop(self, slots: np.ndarray) -> None:
        """Forget what is known of slots that are no longer used."""

    def state(self, slot: int) -> Any:
        """Return the state of a learner, as a value."""
        self.enter(slot)
        return self.worker.state

    def put(self, slot: int, state: Any) -> None:
        """Let a learner go on from a state, if it can be one of such a learner."""
        self.worker.restore(state)
        self.leave(slot)

    def fresh(self, seed: int, state: Any = None) -> None:
        """Let the worker be a new learner with this seed, which may begin with another state."""
        worker, first = self.worker, self.first if state is None else state
        blank = {"tickets": 0, "outstanding": None, "identity": "", "late": None}
        worker.restore(first.replaced(**blank))
        worker._reseed(seed)

    def put_grown(
        self, slots: np.ndarray, other: Store, theirs: np.ndarray, grow: Callable[[Any], Any]
    ) -> None:
        """Take learners over from another store, each as ``grow`` makes it of its state."""
        for slot, their in zip(slots.tolist(), theirs.tolist(), strict=True):
            self.put(slot, grow(other.state(their)).state)

    def alarms(self, slots: np.ndarray) -> np.ndarray:
        """Return how often losses of learners were seen to rise."""
        return np.array([_alarms(self.state(slot)) for slot in slots.tolist()], dtype=np.int64)

    # -- the learner over all rows, where there is one

    def shared_state(self) -> Any:
        """Return its state; None without such a learner, or before the first row."""
        return None

    def put_shared(self, state: Any) -> None:
        """Let it go on from a state."""
        raise InputError("there is no learner over the rows of all keys")

    def teach_shared(self, x: Any, label: Any) -> None:
        """Let it learn from one row."""
        raise InputError("there is no learner over the rows of all keys")

    # -- files

    @abstractmethod
    def to_saved(self, slots: np.ndarray) -> Saved:
        """Return some slots as plain data and arrays."""

    @abstractmethod
    def load(self, slots: np.ndarray, about: Json, arrays: Mapping[str, np.ndarray]) -> None:
        """Write what :meth:`to_saved` returned to slots, or refuse it."""


class States(Store):
    """States as values, which nobody changes: for learners of any kind."""

    def __init__(self, worker: Any, first: Any, seed_of: Callable[[int], int]):
        super().__init__(worker, first, seed_of)
        self._states: list[Any] = []

    def meet(self, rows: Rows) -> None:
        """Do nothing: learners refuse rows themselves."""

    def drop(self, slots: np.ndarray) -> None:
        """Forget states."""
        for slot in slots[slots < len(self._states)].tolist():
            self._states[slot] = None

    def grow(self, size: int) -> None:
        """Make room for this many slots."""
        self._states += [None] * (size - len(self._states))

    def begin(self, slots: np.ndarray) -> None:
        """Let new learners begin."""
        for slot in slots.tolist():
            self.fresh(self._seed_of(slot))
            self.leave(slot)

    def enter(self, slot: int, *, asking: bool = True) -> None:
        """Let the worker go on from a state."""
        self.worker.restore(self._states[slot])

    def leave(self, slot: int) -> None:
        """Keep the worker's state."""
        self._states[slot] = self.worker.state

    def state(self, slot: int) -> Any:
        """Return the state of a slot."""
        return self._states[slot]

    def to_saved(self, slots: np.ndarray) -> Saved:
        """Return some states as plain data and arrays."""
        about, arrays = list[Json](), dict[str, np.ndarray]()
        for place, slot in enumerate(slots.tolist()):
            self.enter(slot)
            state, own = self.worker.to_saved()
            about.append(state)
            arrays |= {f"{place}.{name}": array.copy() for name, array in own.items()}
        return {"states": about}, arrays

    def load(self, slots: np.ndarray, about: Json, arrays: Mapping[str, np.ndarray]) -> None:
        """Write states to slots, if they are of learners like the worker."""
        states = about.get("states")
        if not isinstance(states, list) or len(states) != len(slots):
            raise InputError("there is not one state for every key")
        parts: dict[str, dict[str, np.ndarray]] = {}
        for name, array in arrays.items():  # once: there are dozens of each of many keys
            place, _, rest = name.partition(".")
            parts.setdefault(place, {})[rest] = array
        for i, (slot, own) in enumerate(zip(slots.tolist(), states, strict=True)):
            self.put(slot, learner_from(own, parts.get(str(i), {})).state)

    def copy(self, slots: np.ndarray) -> list[Any]:
        """Return some states."""
        return [self._states[slot] for slot in slots.tolist()]

    def rollback(self, slots: np.ndarray, copied: list[Any]) -> None:
        """Write back what :meth:`copy` returned."""
        for slot, state in zip(slots.tolist(), copied, strict=True):
            self._states[slot] = state


class Arrays(Store):
    """Learners as rows of arrays, whose random numbers and tickets are kept apart.

    A learner that was asked before its first row has no weights yet: it is ``blank``.
    """

    #: Whether predictions are not random.
    certain = True
    #: Names of the arrays, whose first axis is the slot; and of dictionaries and sets by slot.
    names: tuple[str, ...] = ("tickets",)
    dicts: tuple[str, ...] = ("waiting",)
    sets: tuple[str, ...] = ("blank",)

    def __init__(self, worker: Any, first: Any, seed_of: Callable[[int], int]):
        super().__init__(worker, first, seed_of)
        self.features: int | None = None
        self.tickets = np.zeros(0, dtype=np.int64)
        self.waiting: dict[int, tuple[np.ndarray, str]] = {}
        self.blank: set[int] = set()

    def meet(self, rows: Rows) -> None:
        """Learn how many features rows have, before the first."""
        if self.features is None:
            self._prepare(rows)
            self.features = rows.features
        elif rows.features != self.features:
            raise InputError(
                f"inputs have {rows.features} features, but those before had {self.features}"
            )

    @abstractmethod
    def _prepare(self, rows: Rows) -> None:
        """Make arrays for learners of rows like these."""

    @abstractmethod
    def _load(self, slot: int) -> None:
        """Let the worker have the numbers of a learner."""

    @abstractmethod
    def _keep(self, slot: int) -> None:
        """Keep the numbers of the worker, which has weights."""

    @abstractmethod
    def _fill(self) -> None:
        """Give the worker first weights, if it has none."""

    def grow(self, size: int) -> None:
        """Make room for this many slots. The arrays are extended in place, where memory allows."""
        for name in self.names:
            array: np.ndarray = getattr(self, name)
            if size > len(array):
                room = max(size, int(len(array) * GROWTH))
                array.resize((room, *array.shape[1:]), refcheck=False)

    def enter(self, slot: int, *, asking: bool = True) -> None:
        """Let the worker take the place of a learner, with its random numbers and tickets."""
        worker = self.worker
        if slot in self.blank:
            self.fresh(self._seed_of(slot))
        else:
            self._load(slot)
            if asking or not self.certain:
                worker._reseed(self._seed_of(slot))
        numbers, identity = self.waiting.get(slot, (None, ""))
        worker._tickets, worker._identity = int(self.tickets[slot]), identity
        worker._outstanding = Outstanding(numbers)

    def leave(self, slot: int) -> None:
        """Keep what the worker has become."""
        worker = self.worker
        (self.blank.add if worker.features is None else self.blank.discard)(slot)
        self._fill()
        self._keep(slot)
        self.tickets[slot] = worker._tickets
        self.waiting.pop(slot, None)
        if worker.outstanding:
            self.waiting[slot] = worker._outstanding.to_array(), worker.identify()

    def drop(self, slots: np.ndarray) -> None:
        """Forget all of slots but their rows of arrays."""
        gone = slots.tolist()
        for name in self.sets:
            getattr(self, name).difference_update(gone)
        for known in (getattr(self, name) for name in self.dicts):
            for slot in gone if known else ():
                known.pop(slot, None)

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
        """Write the arrays to slots, if they can be of such learners."""
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

    def put_grown(
        self, slots: np.ndarray, other: Store, theirs: np.ndarray, grow: Callable[[Any], Any]
    ) -> None:
        """Take learners over; those with more classes only have more weights, which are 0."""
        if not isinstance(other, type(self)) or other.features != self.features:
            super().put_grown(slots, other, theirs, grow)
            return
        if self.features is not None:
            self._widen(slots, other, theirs)
        self.tickets[slots] = other.tickets[theirs]
        pairs = dict(zip(theirs.tolist(), slots.tolist(), strict=True))
        self.blank = {pairs[their] for their in other.blank}
        self.waiting = {pairs[their]: own for their, own in other.waiting.items()}

    @abstractmethod
    def _widen(self, slots: np.ndarray, other: Any, theirs: np.ndarray) -> None:
        """Take numbers over from learners of fewer scores."""

    def copy(self, slots: np.ndarray) -> tuple[Any, ...]:
        """Return the rows of some slots in all arrays, and what else there is of them."""
        rows, known = [getattr(self, name)[slots] for name in self.names], slots.tolist()
        for made in (getattr(self, name) for name in self.dicts):
            rows.append({slot: made[slot] for slot in known if slot in made} if made else {})
        return *rows, *(getattr(self, name).intersection(known) for name in self.sets)

    def rollback(self, slots: np.ndarray, copied: tuple[Any, ...]) -> None:
        """Write back what :meth:`copy` returned."""
        self._put(slots, copied[: len(self.names)])
        self.drop(slots)
        rest = zip((*self.dicts, *self.sets), copied[len(self.names) :], strict=True)
        for name, before in rest:
            getattr(self, name).update(before)

    def _put(self, slots: np.ndarray, rows: Sequence[np.ndarray]) -> None:
        """Write rows of slots to all arrays."""
        for name, own in zip(self.names, rows, strict=True):
            getattr(self, name)[slots] = own


def _alarms(state: Any) -> int:
    """Return how many alarms a state knows of: those of a committee."""
    log = getattr(state, "alarms", None)
    return 0 if log is None else int(log.count)


def part_of(arrays: Mapping[str, np.ndarray], name: str) -> dict[str, np.ndarray]:
    """Return the arrays whose names begin with a name and a point, without these."""
    start = f"{name}."
    return {k.removeprefix(start): a for k, a in arrays.items() if k.startswith(start)}
