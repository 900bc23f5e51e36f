r"""Robust online scaling of sparse rows, whatever some of their entries are.

Entries are not centred, so that zeros stay zeros. An entry v of a feature whose n entries before
had the root mean square r becomes :math:`z = \mathrm{clip}(v / r, \pm 3)`. The first 64 entries
count themselves, :math:`z = \frac vr \sqrt{(n + 1) / (n + (v / r)^2)}`; the very first is 1 or -1.
A row is then divided by the root mean square of the norms of rows so far, or by its own norm if
that is larger.

The scaling learns from clipped entries. When 40 consecutive entries of a feature were clipped, or
all were smaller than a tenth of r, the feature starts again from the last one. Among its first 8
entries three suffice, since the first one may have been an outlier.
"""

from __future__ import annotations

import math

from driftline.features.scaling import LARGEST, MEMORY, WINDOW
from driftline.features.settling import CLIP
from driftline.kernels import (
    SCALE_SPARSE32,
    SCALE_SPARSE64,
    SCALE_SPARSE_ROUNDS32,
    SCALE_SPARSE_ROUNDS64,
    Kernel,
    helper,
)

__all__ = [
    "scale_sparse_32",
    "scale_sparse_64",
    "scale_sparse_rounds_32",
    "scale_sparse_rounds_64",
]

#: The state of every feature: how many entries it had, their mean square, how many consecutive
#: entries were too large (or, negative, too small), how many were far outside.
COUNT, SQUARE, STREAK, FAR = range(4)

#: The size of that; and of the header before all features: the rows, and the sum of their squared
#: norms.
WIDTH, HEADER = 4, 2

#: Streaks after which a feature starts again, among its first entries and later.
FEW, EARLY_STREAK, STREAK_LENGTH = 8.0, 3.0, 40.0

#: Entries below this share of the root mean square are too small; above this multiple far outside.
SMALL, FAR_OUT = 0.1, 20.0


@helper
def clipped(z, count):
    """Return an entry over its usual size, clipped; the first entries count themselves."""
    if count < WINDOW:
        z = min(1e6, max(-1e6, z))
        z *= math.sqrt((count + 1.0) / (count + z * z))
    return min(CLIP, max(-CLIP, z))


@helper
def learn(value, size, about, column):
    """Let a feature learn from a nonzero entry, which is ``size`` times the usual size."""
    count = about[COUNT, column]
    if count == 0.0:
        about[COUNT, column], about[SQUARE, column] = 1.0, value * value
        return
    streak = about[STREAK, column]
    if size > CLIP:
        streak = max(streak, 0.0) + 1.0
    elif size < SMALL:
        streak = min(streak, 0.0) - 1.0
    else:
        streak = 0.0
    if size > FAR_OUT:
        about[FAR, column] += 1.0
    if abs(streak) >= (EARLY_STREAK if count < FEW else STREAK_LENGTH):
        about[COUNT, column], about[SQUARE, column] = 1.0, value * value
        about[STREAK, column] = 0.0
        return
    about[STREAK, column] = streak
    size = min(size, CLIP)
    about[SQUARE, column] *= 1.0 + (size * size - 1.0) / (count + 1.0)
    about[COUNT, column] = min(count + 1.0, MEMORY)


@helper
def scale_row(values, columns, start, stop, state, size, learns, place, out, out_columns):
    """Scale a row to ``place`` and on; return the place behind it, -1 at a column out of range."""
    features = (state.size - HEADER) // WIDTH
    about = state[HEADER:].reshape(WIDTH, features)
    first, norm_sq = place, 0.0
    for i in range(start, stop):
        column, value = columns[i], values[i]
        if not 0 <= column < features:  # changed since it was checked
            return -1
        value = min(LARGEST, max(-LARGEST, value))
        if not 1.0 / LARGEST < abs(value):
            value = 0.0
        count, z = about[COUNT, column], 0.0
        if value != 0.0:
            z, ratio = 1.0 if value > 0.0 else -1.0, 1.0
            if count > 0.0:
                ratio = abs(value) / math.sqrt(about[SQUARE, column])
                z = clipped(z * ratio, count)
            if learns:
                learn(value, ratio, about, column)
        out[place], out_columns[place] = z, column
        norm_sq += z * z
        place += 1
    rows, norms = state[0] + 1.0, state[1] + norm_sq  # a row counts itself
    if learns:
        state[0], state[1] = rows, norms
    usual = norms / rows
    norm = math.sqrt(max(norm_sq, usual)) if usual > 0.0 else 1.0
    for i in range(first, place):
        out[i] /= norm
    if size != 0.0:
        out[place] = size if size > 0.0 else 1.0 / math.sqrt(max(usual, 1.0))
        out_columns[place] = features
        place += 1
    return place


def scale_sparse(values, columns, starts, state, size, learning, out, out_columns, out_starts):
    """Scale rows, and update the state by those to be learned from.

    Entries must be finite. Return how many rows came before a column out of range. With a ``size``
    other than 0 every row gets one more entry, in the column after the last: a constant of this
    size, or as large as other entries are on average if it is negative.
    """
    out_starts[0], place = 0, 0
    for t in range(starts.size - 1):
        row = (starts[t], starts[t + 1], state, size, learning[t], place, out, out_columns)
        place = scale_row(values, columns, *row)
        if place < 0:
            return t
        out_starts[t + 1] = place
    return starts.size - 1


def scale_sparse_rounds(
    values, columns, starts, rounds, state, size, learning, out, out_columns, out_starts
):
    """Do the same with rounds of several rows: all are scaled, and then learned from.

    Return how many rounds came before a column out of range. Behind the last row there is room for
    the longest one, which rows are written to while they are learned from.
    """
    out_starts[0], place = 0, 0
    for t in range(rounds.size - 1):
        for i in range(rounds[t], rounds[t + 1]):
            row = (starts[i], starts[i + 1], state, size, False, place, out, out_columns)
            place = scale_row(values, columns, *row)
            if place < 0:
                return t
            out_starts[i + 1] = place
        for i in range(rounds[t], rounds[t + 1] if learning[t] else rounds[t]):
            row = (starts[i], starts[i + 1], state, size, True, place, out, out_columns)
            if scale_row(values, columns, *row) < 0:
                return t
    return rounds.size - 1


scale_sparse_32 = Kernel(scale_sparse, SCALE_SPARSE32)
scale_sparse_64 = Kernel(scale_sparse, SCALE_SPARSE64)
scale_sparse_rounds_32 = Kernel(scale_sparse_rounds, SCALE_SPARSE_ROUNDS32)
scale_sparse_rounds_64 = Kernel(scale_sparse_rounds, SCALE_SPARSE_ROUNDS64)
