"""Sorting and pooling in buffers of the caller's."""

from __future__ import annotations

from driftline.kernels.compile import helper


@helper
def merge(keys, order, start, middle, stop, out_keys, out_order):
    """Merge two sorted runs; which side is taken is arithmetic, since no one could guess it.

    Runs of equal length are merged from both ends at once, which needs no check of bounds.
    """
    left, right = start, middle
    if middle - start == stop - middle:
        left_end, right_end = middle - 1, stop - 1
        for i in range(middle - start):
            from_left = int(keys[left] >= keys[right])
            taken = right + from_left * (left - right)
            out_keys[start + i] = keys[taken]
            out_order[start + i] = order[taken]
            left += from_left
            right += 1 - from_left
            from_right = int(keys[left_end] >= keys[right_end])
            taken = left_end + from_right * (right_end - left_end)
            out_keys[stop - 1 - i] = keys[taken]
            out_order[stop - 1 - i] = order[taken]
            right_end -= from_right
            left_end -= 1 - from_right
        return
    for out in range(start, stop):
        from_left = 0
        if left < middle:
            from_left = 1 if right >= stop else int(keys[left] >= keys[right])
        taken = left if from_left else right
        out_keys[out] = keys[taken]
        out_order[out] = order[taken]
        left += from_left
        right += 1 - from_left


@helper
def sort_decreasing(values, order, buffer):
    """Write the indices of ``values``, largest value first, equal ones in their order.

    A merge sort of keys and indices side by side, from runs of four; the buffer has room for
    three numbers per value. Indices are kept as floats, which hold them exactly.
    """
    n = values.size
    keys, other_keys, other = buffer[:n], buffer[n : 2 * n], buffer[2 * n : 3 * n]
    run = 4
    for start in range(0, n, run):
        for i in range(start, min(start + run, n)):
            key = values[i]
            j = i - 1
            while j >= start and keys[j] < key:
                keys[j + 1] = keys[j]
                order[j + 1] = order[j]
                j -= 1
            keys[j + 1] = key
            order[j + 1] = i
    swapped = False
    while run < n:
        for start in range(0, n, 2 * run):
            middle, stop = min(start + run, n), min(start + 2 * run, n)
            if swapped:
                merge(other_keys, other, start, middle, stop, keys, order)
            else:
                merge(keys, order, start, middle, stop, other_keys, other)
        swapped = not swapped
        run *= 2
    if swapped:
        for i in range(n):
            order[i] = other[i]


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
