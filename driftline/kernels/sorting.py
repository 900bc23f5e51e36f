"""Sorting and pooling in buffers of the caller's."""

from __future__ import annotations

from driftline.kernels.compile import helper


@helper
def sort_decreasing(values, order, buffer):
    """Write the indices of ``values``, largest value first, equal ones in their order.

    A merge sort from runs of eight; indices are kept as floats, which hold them exactly.
    """
    n = values.size
    run = 8
    for start in range(0, n, run):
        for i in range(start, min(start + run, n)):
            key = values[i]
            j = i - 1
            while j >= start and values[int(order[j])] < key:
                order[j + 1] = order[j]
                j -= 1
            order[j + 1] = i
    while run < n:
        for start in range(0, n, 2 * run):
            middle = min(start + run, n)
            stop = min(start + 2 * run, n)
            left, right, out = start, middle, start
            while left < middle and right < stop:
                if values[int(order[left])] >= values[int(order[right])]:
                    buffer[out] = order[left]
                    left += 1
                else:
                    buffer[out] = order[right]
                    right += 1
                out += 1
            while left < middle:
                buffer[out] = order[left]
                left += 1
                out += 1
            while right < stop:
                buffer[out] = order[right]
                right += 1
                out += 1
        for i in range(n):
            order[i] = buffer[i]
        run *= 2


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
