"""A hash table from whole numbers to slots: open addressing, at most two thirds full.

Numbers are mixed with a secret one, so that nobody can choose keys that all collide. Which slot a
key has does not depend on it.
"""

from __future__ import annotations

import numpy as np

from driftline.kernels.compile import helper, kernel
from driftline.kernels.signatures import FIND, FIRST_ROWS, PUT

#: What is at a place of the table that has no key.
FREE = -1

FIRST, SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
BY_30, BY_27, BY_31 = np.uint64(30), np.uint64(27), np.uint64(31)


@helper
def place_of(key, salt, size):
    """Return where the search for a key begins: the finaliser of SplitMix64."""
    mixed = np.uint64(key) ^ np.uint64(salt)
    mixed = (mixed ^ (mixed >> BY_30)) * FIRST
    mixed = (mixed ^ (mixed >> BY_27)) * SECOND
    mixed = mixed ^ (mixed >> BY_31)
    return np.int64(mixed & np.uint64(size - 1))


@kernel(FIND)
def find_slots(keys, salt, known, slots, out):
    """Write the slot of every key, or -1; return how many were not there."""
    size, missing = known.size, 0
    for i in range(keys.size):
        place = place_of(keys[i], salt, size)
        while slots[place] != FREE and known[place] != keys[i]:
            place = (place + 1) & (size - 1)
        out[i] = slots[place]
        if out[i] == FREE:
            missing += 1
    return missing


@kernel(PUT)
def put_slots(keys, given, salt, known, slots):
    """Add keys that are not there, with their slots."""
    size = known.size
    for i in range(keys.size):
        place = place_of(keys[i], salt, size)
        while slots[place] != FREE:
            place = (place + 1) & (size - 1)
        known[place], slots[place] = keys[i], given[i]


@kernel(FIRST_ROWS)
def first_rows(slots, first):
    """Write which row is the first of every slot, where -1 stands."""
    for i in range(slots.size):
        if first[slots[i]] < 0:
            first[slots[i]] = i
