r"""Location and scale of one feature from a few recent values, some of which may be wrong.

With the median m and the least :math:`s` that solves

.. math:: s^2 = \frac1n \sum_i \min\big((x_i - m)^2, (c s)^2\big), \qquad c = 3,

the scale is s and the location the mean of all values within c s of the median (Huber, 1964). A
value far outside counts as one at distance c s, whatever it is; a share of up to :math:`1 / c^2`,
every ninth value, may be one. Among fewer than nine values none could be told apart like that:
there the scale is at most that of the median distance.

Where most values are equal (flags, events, rare counts), that one is the location, and only the
others tell a scale: half their median distance, or the root of their share times that distance if
it is larger.
"""

from __future__ import annotations

import math

from driftline.kernels import helper, loose_distinct

#: Values at more deviations than this count as if they were at this distance.
CLIP = 3.0

#: Where most values are equal, the usual distance of the others is this many deviations.
OTHERS = 2.0

#: Squares of distances below this are lost, and no scale is smaller anyway.
TINY = 1e-150

#: From the median distance to the deviation, for the normal distribution.
NORMAL = 1.4826


@helper
def sort_some(values, count):
    """Sort the first values in place, by insertion: they are few."""
    for i in range(1, count):
        value = values[i]
        k = i - 1
        while k >= 0 and values[k] > value:
            values[k + 1] = values[k]
            k -= 1
        values[k + 1] = value


@loose_distinct
def exchange(low, high):
    """Let every number of the first vector be at most the one beside it."""
    for k in range(low.size):
        a, b = low[k], high[k]
        low[k] = a if a < b else b
        high[k] = b if a < b else a


@helper
def sort_together(cells, count):
    """Sort every column of the first rows, by the same exchanges of rows.

    Batcher's merge exchange (Knuth, volume 3, algorithm 5.2.2M).
    """
    largest = 1
    while 2 * largest < count:
        largest *= 2
    step = largest
    while step > 0:
        reach, rest, apart = largest, 0, step
        while True:
            for i in range(count - apart):
                if i & step == rest:
                    exchange(cells[i], cells[i + apart])
            if reach <= step:
                break
            apart, reach, rest = reach - step, reach // 2, step
        step //= 2


@helper
def middle(values, count):
    """Return the median of sorted values."""
    return 0.5 * (values[(count - 1) // 2] + values[count // 2])


@helper
def usual_distance(values, median, count):
    """Return the median distance of sorted values from their median.

    Distances rise to both sides: the next one is the smaller of two.
    """
    below, above = (count - 1) // 2, (count - 1) // 2 + 1
    last, before = 0.0, 0.0
    for _ in range(count // 2 + 1):
        before = last
        down = median - values[below] if below >= 0 else math.inf
        up = values[above] - median if above < count else math.inf
        if down <= up:
            last = down
            below -= 1
        else:
            last = up
            above += 1
    return last if count % 2 else 0.5 * (before + last)


@helper
def settle(values, away, count):
    """Return location, scale, from how many values, and whether most values are equal.

    ``values`` are sorted; ``away`` is room for as many numbers.
    """
    median = middle(values, count)
    usual = NORMAL * usual_distance(values, median, count)
    if usual == 0.0:
        others = 0
        for i in range(count):
            if values[i] != median:
                away[others] = abs(values[i] - median)
                others += 1
        if others == 0:
            return median, 0.0, count, True
        sort_some(away, others)
        share = math.sqrt(others / count)
        return median, middle(away, others) * max(share, 1.0 / OTHERS), others, True
    if usual < TINY:
        return median, usual, count, False
    square = 0.0
    for i in range(count):
        away[i] = abs(values[i] - median)
        square += away[i] * away[i]
    square = min(square / count, (CLIP * usual) ** 2)  # near the solution, whatever is far out
    for _ in range(32):
        clipped = 0.0
        for i in range(count):
            clipped += min(away[i] * away[i], CLIP * CLIP * square)
        clipped /= count
        settled = clipped > 0.99 * square
        square = min(clipped, square)
        if settled:
            break
    scale = math.sqrt(square)
    if count < 9:
        scale = min(scale, usual)
    total, kept = 0.0, 0
    for i in range(count):
        if away[i] <= CLIP * scale:
            total += values[i]
            kept += 1
    return total / kept, scale, count, False
