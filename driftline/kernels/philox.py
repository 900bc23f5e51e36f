"""Random numbers of many streams: Philox with 4 x 64 bits and 10 rounds, as in NumPy.

Number i of a stream is a function of its key and i: the counter is i // 4 + 1, of whose four words
the one of place i % 4 is taken. Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as
1, 2, 3" (2011).
"""

from __future__ import annotations

import numpy as np

from driftline.kernels.compile import helper, kernel
from driftline.kernels.signatures import PHILOX

ROUNDS = 10
#: How many words one counter has.
WORDS = 4

MULTIPLIERS = np.uint64(0xD2E7470EE14C6C93), np.uint64(0xCA5A826395121157)
BUMPS = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBB67AE8584CAA73B)
HALF, LOW, UNUSED = np.uint64(32), np.uint64(0xFFFFFFFF), np.uint64(11)
ZERO = np.uint64(0)
#: What 53 bits are multiplied by.
UNIT = 2.0**-53


@helper
def high(a, b):
    """Return the upper 64 bits of a product."""
    a_low, a_high, b_low, b_high = a & LOW, a >> HALF, b & LOW, b >> HALF
    middle = a_high * b_low + ((a_low * b_low) >> HALF)
    other = a_low * b_high + (middle & LOW)
    return a_high * b_high + (middle >> HALF) + (other >> HALF)


@kernel(PHILOX)
def draw_next(keys, slots, numbers, out):
    """Write the next uniform number in [0, 1) of a stream for every round, and count it.

    ``slots`` says whose round each is, and ``numbers`` which number is next of each stream. Without
    keys nothing is drawn: all numbers are 0.5.
    """
    for i in range(slots.size):
        number = numbers[slots[i]]
        numbers[slots[i]] += 1
        if keys.shape[1] == 0:
            out[i, 0] = 0.5
            continue
        one, two = keys[slots[i], 0], keys[slots[i], 1]
        w0, w1, w2, w3 = np.uint64(number // WORDS + 1), ZERO, ZERO, ZERO
        for r in range(ROUNDS):
            if r > 0:
                one, two = one + BUMPS[0], two + BUMPS[1]
            high0, low0 = high(MULTIPLIERS[0], w0), MULTIPLIERS[0] * w0
            high1, low1 = high(MULTIPLIERS[1], w2), MULTIPLIERS[1] * w2
            w0, w1, w2, w3 = high1 ^ w1 ^ one, low1, high0 ^ w3 ^ two, low0
        place = number % WORDS
        word = w0
        if place == 1:
            word = w1
        elif place == 2:
            word = w2
        elif place == 3:
            word = w3
        out[i, 0] = float(word >> UNUSED) * UNIT
