"""The learners of all keys as values: for committees, maps, sets of items, and all else."""

from __future__ import annotations

from typing import Any

import numpy as np

from driftline.inputs import Rows

__all__ = ["States"]


class States:
    """States of learners by slot, each a value that nobody changes."""

    def __init__(self) -> None:
        self._states: list[Any] = []

    def meet(self, features: int) -> None:
        """Do nothing: states know their features."""

    def grow(self, size: int) -> None:
        """Make room for this many slots."""
        self._states += [None] * (size - len(self._states))

    def put(self, slot: int, state: Any) -> None:
        """Write the state of a learner to a slot."""
        self._states[slot] = state

    def state(self, slot: int) -> Any:
        """Return the state of a slot."""
        return self._states[slot]

    def copy(self, slots: np.ndarray) -> list[Any]:
        """Return the states of some slots, for a rollback."""
        return [self._states[slot] for slot in slots.tolist()]

    def rollback(self, slots: np.ndarray, copied: list[Any]) -> None:
        """Write back what :meth:`copy` returned."""
        for slot, state in zip(slots.tolist(), copied, strict=True):
            self._states[slot] = state

    def takes(self, rows: Rows) -> bool:
        """Say that there is no loop over rows of many learners."""
        return False
