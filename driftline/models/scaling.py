"""The two ways in which rows are brought to one scale as they come."""

from __future__ import annotations

import math

from driftline.kernels import (
    SCALE,
    SCALE_SINGLE,
    SCALE_SPARSE32,
    SCALE_SPARSE64,
    Kernel,
    ask_for_row,
    kernel,
)
from driftline.models.moments import count_in, multiply, place, renew

__all__ = ["scale_sparse_32", "scale_sparse_64", "standardise", "standardise_single"]

#: Deviations are computed anew when the rows have grown by this share.
GROWTH = 0.01


@kernel(SCALE)
def standardise(inputs, state, out):
    """Write rows minus the mean of all rows so far, over their deviation, at norm 1 at most.

    Return how many were written before one that is not finite. ``state`` has the number of rows,
    that at which deviations are next computed, then for every feature its mean, its sum of
    squared deviations and its scale, one over the deviation. A feature that has not varied yet
    is 0.
    """
    rows, features = inputs.shape
    means = state[2 : 2 + features]
    squares = state[2 + features : 2 + 2 * features]
    scales = state[2 + 2 * features :]
    for t in range(rows):
        if t + 1 < rows:
            ask_for_row(inputs, t + 1)
        row = out[t, :features]
        state[0] += 1.0
        share = 1.0 / state[0]
        norm_sq = count_in(inputs[t], share, means, squares, scales, row)
        if state[0] >= state[1]:
            state[1] = (1.0 + GROWTH) * state[0]
            renew(share, squares, scales)
            norm_sq = place(inputs[t], means, scales, row)
        if not math.isfinite(norm_sq):
            return t
        multiply(row, 1.0 / math.sqrt(max(norm_sq, float(features))))
        for j in range(features, out.shape[1]):
            out[t, j] = 1.0 / math.sqrt(features)
    return rows


standardise_single = Kernel(standardise.function, SCALE_SINGLE)


def scale_sparse(values, columns, starts, state, constant, out, out_columns, out_starts):
    """Write rows whose entries are divided by their usual size, at norm 1 at most.

    Return how many were written before one that is not finite. ``state`` has the number of rows
    and the sum of their squared norms, then for every feature how often it was there and the sum
    of its squares. With a ``constant`` above 0 that is the number of features, and every row gets
    one entry more, in the column after the last.
    """
    features = (state.size - 2) // 2
    counts = state[2 : 2 + features]
    squares = state[2 + features :]
    out_starts[0], place = 0, 0
    for t in range(starts.size - 1):
        first, norm_sq = place, 0.0
        for i in range(starts[t], starts[t + 1]):
            column, value = columns[i], values[i]
            if not 0 <= column < features:  # changed since it was checked
                return t
            if value != 0.0:
                counts[column] += 1.0
                squares[column] += value * value
                value /= math.sqrt(squares[column] / counts[column])
            out[place], out_columns[place] = value, column
            norm_sq += value * value
            place += 1
        if not math.isfinite(norm_sq):
            return t
        state[0] += 1.0
        state[1] += norm_sq
        usual = state[1] / state[0]
        norm = math.sqrt(max(norm_sq, usual)) if usual > 0.0 else 1.0
        for i in range(first, place):
            out[i] /= norm
        if constant > 0:
            out[place], out_columns[place] = 1.0 / math.sqrt(max(usual, 1.0)), constant
            place += 1
        out_starts[t + 1] = place
    return starts.size - 1


scale_sparse_32 = Kernel(scale_sparse, SCALE_SPARSE32)
scale_sparse_64 = Kernel(scale_sparse, SCALE_SPARSE64)
