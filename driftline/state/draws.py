"""Random numbers by index: the number of a round is a function of a key and its ticket.

A counter-based generator (Philox; Salmon et al., 2011) has no state that changes: numbers can be
computed in any order, any number of times, and a round can be drawn again from a file.
"""

from __future__ import annotations

import numpy as np

from driftline.errors import InputError

__all__ = ["KEYS", "Draws"]

#: Keys are integers below this.
KEYS = 1 << 128

#: How many numbers are computed at a time for single rounds; and how many one value of Philox's
#: counter gives.
BUFFER, WIDTH = 256, 4


class Draws:
    """Uniform numbers in [0, 1), the i-th of which depends on the key and i alone.

    >>> draws = Draws.from_seed(0)
    >>> bool(draws.uniforms(1000, 5)[3] == draws.uniform(1003)[0])
    True
    """

    __slots__ = ("_block", "key")

    def __init__(self, key: int):
        if not isinstance(key, int) or isinstance(key, bool) or not 0 <= key < KEYS:
            raise InputError(f"a key is an integer from 0 to 2**128 - 1, not {key!r}")
        self.key = key
        self._block = 0, np.empty((0, 1))  # the first number of the buffer, and the buffer

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
        words = np.random.SeedSequence(seed, spawn_key=(branch,)).generate_state(2, np.uint64)
        return cls(int(words[0]) << 64 | int(words[1]))

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
        """Return the numbers of these indices, which do not fall, as a column."""
        first = int(numbers[0])
        if len(numbers) == 1:
            return self.uniform(first)
        return self.uniforms(first, int(numbers[-1]) - first + 1)[numbers - first]
