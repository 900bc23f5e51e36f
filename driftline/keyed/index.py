"""Where the learner of a key is: keys have slots 0, 1, 2, ..., in the order in which they come."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from copy import copy
from typing import Any, NamedTuple

import numpy as np

from driftline.errors import InputError
from driftline.kernels.slots import FREE, find_slots, first_rows, put_slots
from driftline.keyed.keys import LARGEST, SMALLEST, Key

__all__ = ["KeyIndex"]

#: The first size of the table of whole numbers, a power of two; it is at most two thirds full.
FIRST = 1 << 10
#: The most keys: slots have 32 bits in the table.
MOST = 2**31 - 1


class Mark(NamedTuple):
    """What an index had before keys were added: counts, and the last slots that were free."""

    size: int
    keys: int
    whole: int
    texts: int
    names: int
    free: int
    last: list[int]


class KeyIndex:
    """Keys and their slots.

    >>> index = KeyIndex()
    >>> index.slots(["b", 7, "b"], add=True), len(index)
    (array([0, 1, 0]), 2)
    >>> index.remove([0])
    >>> index.slots(["b", 7, "c"], add=False).tolist(), list(index)
    ([-1, 1, -1], [7])
    """

    def __init__(self) -> None:
        self._salt = secrets.randbits(62)
        self._texts: dict[Key, int] = {}
        self._names: dict[int, Key] = {}  # by slot, those that are no whole numbers
        self._numbers = np.zeros(0, dtype=np.int64)  # by slot, those that are
        self._free: list[int] = []
        #: How many slots were ever used at a time; and how many keys there are.
        self.size, self._count = 0, 0
        self._whole = 0
        self._table(FIRST)

    def __len__(self) -> int:
        """Return how many keys there are."""
        return self._count

    def __iter__(self) -> Iterator[Key]:
        """Iterate over keys in the order of their slots."""
        return (self.key(slot) for slot in self.used.tolist())

    @property
    def used(self) -> np.ndarray:
        """All slots that have a key, in their order."""
        made = np.ones(self.size, dtype=bool)
        made[self._free] = False
        return np.flatnonzero(made)

    def key(self, slot: int) -> Key:
        """Return the key of a slot that is used."""
        return self._names[slot] if slot in self._names else int(self._numbers[slot])

    def slot(self, key: Key) -> int:
        """Return the slot of one key, -1 if it is not there."""
        if type(key) is int and SMALLEST <= key <= LARGEST:
            return int(self.slots(np.array([key]), add=False)[0])
        return self._texts.get(key, FREE)

    def slots(self, keys: np.ndarray | Sequence[Key], add: bool) -> np.ndarray:
        """Return the slots of many keys; new ones are added, or else have the slot -1."""
        if isinstance(keys, np.ndarray):
            return self._of_numbers(keys, add)
        texts = self._texts
        made = np.array([texts.get(key, FREE) for key in keys], dtype=np.int64)
        for place in np.flatnonzero(made == FREE).tolist():
            key = keys[place]
            if type(key) is int and SMALLEST <= key <= LARGEST:
                made[place] = self._of_numbers(np.array([key]), add)[0]
                continue
            slot = texts.get(key, FREE)  # it may have come in a row before
            if slot == FREE and add:
                (slot,) = self._new(1).tolist()
                texts[key], self._names[slot] = slot, key
            made[place] = slot
        return made

    def first_rows(self, slots: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the different slots among these, in their order, and the first row of each."""
        if 8 * len(slots) < self.size:
            return np.unique(slots, return_index=True)
        first = np.full(self.size, FREE, dtype=np.int64)
        first_rows.compiled(slots, first)
        touched = np.flatnonzero(first != FREE)
        return touched, first[touched]

    def _of_numbers(self, keys: np.ndarray, add: bool) -> np.ndarray:
        made = np.empty(len(keys), dtype=np.int64)
        find_slots.compiled(keys, self._salt, self._known, self._slots, made)
        absent = np.flatnonzero(made == FREE)
        if not add or not len(absent):
            return made
        different, first = np.unique(keys[absent], return_index=True)
        new = different[np.argsort(first, kind="stable")]
        slots = self._new(len(new))
        self._numbers[slots] = new
        self._whole += len(new)
        if 3 * self._whole > 2 * len(self._known):
            self._rebuild()
        else:
            put_slots.compiled(new, slots, self._salt, self._known, self._slots)
        find_slots.compiled(keys, self._salt, self._known, self._slots, made)
        return made

    def _new(self, count: int) -> np.ndarray:
        """Return slots for new keys: those of removed ones first."""
        if self._count + count > MOST:
            raise InputError(f"there are {self._count} keys: {MOST} is the most")
        again = [self._free.pop() for _ in range(min(count, len(self._free)))]
        more = range(self.size, self.size + count - len(again))
        self.size += len(more)
        if self.size > len(self._numbers):
            self._numbers = np.resize(self._numbers, max(self.size, len(self._numbers) * 9 // 8))
        self._count += count
        return np.array([*again, *more], dtype=np.int64)

    def remove(self, slots: Sequence[int]) -> None:
        """Remove keys by their slots."""
        for slot in slots:
            if slot in self._names:
                del self._texts[self._names.pop(slot)]
            else:
                self._whole -= 1
        free = {*self._free, *slots}
        while self.size - 1 in free:
            self.size -= 1
            free.remove(self.size)
        self._free = sorted(free, reverse=True)
        self._count -= len(slots)
        self._rebuild()

    def copy(self) -> KeyIndex:
        """Return an index of the same keys, from which some can be removed."""
        made = copy(self)
        made._texts, made._names = self._texts.copy(), self._names.copy()
        return made

    def mark(self, most: int) -> Mark:
        """Return the sizes of the index, for :meth:`go_back` after this many keys at most."""
        texts, names, free = len(self._texts), len(self._names), len(self._free)
        last = self._free[max(0, free - most) :]
        return Mark(self.size, self._count, self._whole, texts, names, free, last)

    def go_back(self, mark: Mark) -> np.ndarray:
        """Forget what was added, all or in part; return the slots that may have been used."""
        again = np.r_[mark.last, np.arange(mark.size, max(mark.size, self.size))].astype(np.int64)
        if self.mark(len(mark.last)) != mark:
            known: dict[Any, Any]
            for known, count in ((self._texts, mark.texts), (self._names, mark.names)):
                while len(known) > count:
                    known.popitem()  # the last one that was added
            self._free[mark.free - len(mark.last) :] = mark.last
            self.size, self._count, self._whole = mark[:3]
            self._rebuild()
        return again

    def _rebuild(self) -> None:
        """Lay the table out anew."""
        size = FIRST
        while 2 * self._whole > size:
            size *= 2
        self._table(size)
        slots = self.used
        if self._names:
            slots = slots[~np.isin(slots, list(self._names))]
        numbers = self._numbers[slots]
        put_slots.compiled(numbers, slots, self._salt, self._known, self._slots)

    def _table(self, size: int) -> None:
        self._known = np.zeros(size, dtype=np.int64)
        self._slots = np.full(size, FREE, dtype=np.int32)
