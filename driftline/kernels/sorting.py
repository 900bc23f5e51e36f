"""Sorting and pooling in buffers of the caller's."""

from __future__ import annotations

import numpy as np

from driftline.kernels.compile import helper

#: How much room sorting n numbers takes: three numbers for each, and counters.
COUNTERS = 8 * 256
LOWEST = np.int64(-(2**63))

#: Up to this many numbers, inserting one after the other is fastest.
FEW = 32


def sorting_room(n: int) -> int:
    """Return the size of the buffer that :func:`sort_decreasing` needs."""
    return 3 * n + COUNTERS


@helper
def sort_decreasing(values, order, buffer):
    """Write the indices of ``values``, largest value first, equal ones in their order.

    A radix sort by the bytes of the numbers: without comparisons, hence without branches to
    mispredict, and linear in their number. Indices are kept as floats, which hold them exactly.
    """
    if values.size <= FEW:
        insert_decreasing(values, order)
        return
    n = values.size
    floats = buffer[:n]
    for i in range(n):
        floats[i] = values[i] + 0.0  # minus zero is zero
        order[i] = i
    keys = floats.view(np.int64)
    other_keys = buffer[n : 2 * n].view(np.int64)
    other = buffer[2 * n : 3 * n]
    counts = buffer[3 * n : 3 * n + COUNTERS].view(np.int64)
    for i in range(COUNTERS):
        counts[i] = 0
    for i in range(n):
        bits = keys[i]
        key = ~(bits ^ ((bits >> 63) | LOWEST))  # ascends, as bytes, where the numbers descend
        keys[i] = key
        for byte in range(8):
            counts[256 * byte + ((key >> (8 * byte)) & 255)] += 1
    swapped = False
    for byte in range(8):
        first = 256 * byte
        if starts_of(counts[first : first + 256], n):
            continue
        if swapped:
            scatter(other_keys, other, counts[first : first + 256], byte, keys, order)
        else:
            scatter(keys, order, counts[first : first + 256], byte, other_keys, other)
        swapped = not swapped
    if swapped:
        for i in range(n):
            order[i] = other[i]


@helper
def starts_of(counts, n):
    """Turn counts into where each value begins; return whether there is only one value."""
    total = 0
    alone = False
    for value in range(256):
        count = counts[value]
        alone = alone or count == n
        counts[value] = total
        total += count
    return alone


@helper
def scatter(keys, order, places, byte, out_keys, out_order):
    """Move keys and indices to the places of their byte."""
    for i in range(keys.size):
        key = keys[i]
        value = (key >> (8 * byte)) & 255
        place = places[value]
        places[value] = place + 1
        out_keys[place] = key
        out_order[place] = order[i]


@helper
def insert_decreasing(values, order):
    """Sort few numbers by inserting one after the other."""
    for i in range(values.size):
        j = i - 1
        while j >= 0 and values[int(order[j])] < values[i]:
            order[j + 1] = order[j]
            j -= 1
        order[j + 1] = i


@helper
def pool_decreasing(values, buffer, out):
    """Write the nearest decreasing vector: pool adjacent violators, one pass.

    The buffer holds the means and the sizes of the blocks pooled so far.
    """
    n = values.size
    means = buffer[:n]
    sizes = buffer[n : 2 * n]
    blocks = 0
    for i in range(n):
        means[blocks] = values[i]
        sizes[blocks] = 1.0
        blocks += 1
        while blocks > 1 and means[blocks - 2] <= means[blocks - 1]:
            size = sizes[blocks - 2] + sizes[blocks - 1]
            means[blocks - 2] += (means[blocks - 1] - means[blocks - 2]) * sizes[blocks - 1] / size
            sizes[blocks - 2] = size
            blocks -= 1
    i = 0
    for block in range(blocks):
        for _ in range(int(sizes[block])):
            out[i] = means[block]
            i += 1
