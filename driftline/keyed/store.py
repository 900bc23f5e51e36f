"""Where learners of many keys are: by slot."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from driftline.errors import InputError
from driftline.inputs import Rows
from driftline.typing import Json, Saved

__all__ = ["Store", "part_of"]


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

    #: Whether new learners of all keys predict alike, since nothing is drawn.
    certain = False

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
    def enter(self, slot: int, *, asking: bool = True) -> Any:
        """Return the learner of a slot, to be played and kept by :meth:`leave`.

        Unless ``asking``, it plays rounds only: who draws nothing needs no random numbers then.
        """

    @abstractmethod
    def leave(self, slot: int, told: tuple[Any, Any] | None = None) -> None:
        """Keep the learner that was entered last, or is fresh, as that of a slot.

        If all that it has done is to learn from a row, ``told`` has this and its label.
        """

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
        return self.enter(slot).state

    @abstractmethod
    def put(self, slot: int, state: Any) -> None:
        """Let a learner go on from a state, if it can be one of such a learner."""

    @abstractmethod
    def fresh(self, seed: int) -> Any:
        """Return a new learner with this seed."""

    @abstractmethod
    def reset(self) -> None:
        """Forget who was entered, after an exception, which may have left it in any state."""

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


def _alarms(state: Any) -> int:
    """Return how many alarms a state knows of: those of a committee."""
    log = getattr(state, "alarms", None)
    return 0 if log is None else int(log.count)


def part_of(arrays: Mapping[str, np.ndarray], name: str) -> dict[str, np.ndarray]:
    """Return the arrays whose names begin with a name and a point, without these."""
    start = f"{name}."
    return {k.removeprefix(start): a for k, a in arrays.items() if k.startswith(start)}
