"""Random numbers by index: the number of a round is a function of a key and its ticket.

A counter-based generator (Philox; Salmon et al., 2011) has no state that changes: numbers can be
computed in any order, any number of times, and a round can be drawn again from a file.
"""

from __future__ import annotations

import numpy as np

from driftline.errors import InputError

__all__ = ["KEYS", "Draws", "keys_of_seeds"]

#: Keys are integers below this.
KEYS = 1 << 128

#: How many numbers are computed at a time for single rounds; and how many one value of Philox's
#: counter gives.
BUFFER, WIDTH = 256, 4


#: The first number of a buffer, and the buffer, before any number was drawn.
NO_BLOCK = 0, np.empty((0, 1))


class Draws:
    """Uniform numbers in [0, 1), the i-th of which depends on the key and i alone.

    >>> draws = Draws.from_seed(0)
    >>> bool(draws.uniforms(1000, 5)[3] == draws.uniform(1003)[0])
    True
    """

    __slots__ = ("_block", "_key", "_seed")

    def __init__(self, key: int):
        if not isinstance(key, int) or isinstance(key, bool) or not 0 <= key < KEYS:
            raise InputError(f"a key is an integer from 0 to 2**128 - 1, not {key!r}")
        self._key, self._seed = key, (0, 0)
        self._block = NO_BLOCK

    @classmethod
    def from_seed(cls, seed: int | None, branch: int = 0) -> Draws:
        """Return the numbers of a seed and a branch; without a seed, different ones each time.

        They are not those of ``default_rng(seed)``, which a stream may have been made with: equal
        numbers could bias sampled losses.
        """
        if seed is not None and (
            isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0
        ):
            raise InputError(f"a seed must be a whole number of 0 or more, or None, not {seed!r}")
        if seed is None:
            return cls(_key_of(None, branch))
        made = cls(0)
        made._key, made._seed = -1, (int(seed), branch)
        return made

    @property
    def key(self) -> int:
        """What all numbers follow from; of a seed it is computed when it is first asked for."""
        if self._key < 0:
            self._key = _key_of(*self._seed)
        return self._key

    def uniforms(self, first: int, count: int) -> np.ndarray:
        """Return ``count`` numbers from number ``first`` on, as a column."""
        counter, skipped = divmod(first, WIDTH)
        source = np.random.Generator(np.random.Philox(key=self.key, counter=counter))
        return source.random((skipped + count, 1))[skipped:]

    def uniform(self, number: int) -> np.ndarray:
        """Return one number, as an array of shape (1, 1), which must not be written to."""
        first, buffer = self._block
        place = number - first
        if not 0 <= place < len(buffer):
            first = number - number % BUFFER
            buffer = self.uniforms(first, BUFFER)
            self._block, place = (first, buffer), number - first
        return buffer[place : place + 1]

    def at(self, numbers: np.ndarray) -> np.ndarray:
        """Return the numbers of these indices, as a column."""
        first, count = int(numbers[0]), int(numbers[-1]) - int(numbers[0]) + 1
        if len(numbers) == 1:
            return self.uniform(first)
        if count > BUFFER + 8 * len(numbers) or (numbers[1:] < numbers[:-1]).any():
            return np.concatenate([self.uniform(number) for number in numbers.tolist()])
        return self.uniforms(first, count)[numbers - first]


def _key_of(seed: int | None, branch: int) -> int:
    """Return the key of a seed and a branch."""
    words = np.random.SeedSequence(seed, spawn_key=(branch,)).generate_state(2, np.uint64)
    return int(words[0]) << 64 | int(words[1])


#: The constants of NumPy's ``SeedSequence``: O'Neill's seed_seq with fixed entropy.
HASH, HASH_BY, FINISH, FINISH_BY = 0x43B0D7E5, 0x931E8875, 0x8B51F9DD, 0x58F38DED
MIX_OWN, MIX_OTHER, POOL, WORD = np.uint32(0xCA01F9DD), np.uint32(0x4973F715), 4, 0xFFFFFFFF
HALF = np.uint32(16)


def keys_of_seeds(seeds: np.ndarray, branch: int = 0) -> np.ndarray:
    """Return the keys of many seeds below 2**63, two words each: the lower one first.

    They are those of :meth:`Draws.from_seed`, which takes a hundred times as long.

    >>> low, high = keys_of_seeds(np.array([7]))[0].tolist()
    >>> (high << 64 | low) == Draws.from_seed(7).key
    True
    """
    given = np.asarray(seeds, dtype=np.uint64)
    nothing, constant = np.zeros(len(given), dtype=np.uint32), HASH

    def hashed(words: np.ndarray) -> np.ndarray:
        nonlocal constant
        made = words ^ np.uint32(constant)
        constant = constant * HASH_BY & WORD
        made = made * np.uint32(constant)
        return made ^ (made >> HALF)

    def mixed(own: np.ndarray, other: np.ndarray) -> np.ndarray:
        made: np.ndarray = MIX_OWN * own - MIX_OTHER * other
        return made ^ (made >> HALF)

    with np.errstate(over="ignore"):
        halves = [(given >> np.uint64(32 * j)).astype(np.uint32) for j in range(2)]
        pool = [hashed(words) for words in (*halves, nothing, nothing)]
        for i in range(POOL):
            for j in (j for j in range(POOL) if j != i):
                pool[j] = mixed(pool[j], hashed(pool[i]))
        last = nothing + np.uint32(branch)
        pool = [mixed(own, hashed(last)) for own in pool]
        out, constant = [], FINISH
        for own in pool:
            made = own ^ np.uint32(constant)
            constant = constant * FINISH_BY & WORD
            made = made * np.uint32(constant)
            out.append((made ^ (made >> HALF)).astype(np.uint64))
    high, low = (out[i] | out[i + 1] << np.uint64(32) for i in (0, 2))
    return np.stack([low, high], axis=1)
