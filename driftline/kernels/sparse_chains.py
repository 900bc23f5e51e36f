"""The loop over sequences of CSR positions. Weights have the scores of a feature side by side.

A round touches only the features that its positions have. Most of these occur in several of them,
and the step depends on the norm of the sum: so every feature of a round gets a slot, in which its
gradient is added up. Slots are found by a table over all features that is never cleared: what it
says counts only if the slot says so, too (a sparse set; Briggs and Torczon, 1993).

Behind the weights of the features come that of an intercept, then those of the transitions to each
tag.
"""

from __future__ import annotations

from collections import namedtuple

import numpy as np

from driftline.kernels import program as at
from driftline.kernels.chains import norm_sq
from driftline.kernels.compile import helper, variants
from driftline.kernels.gathers import gather, scatter
from driftline.kernels.linalg import dot
from driftline.kernels.loop import build_loop, build_round, enter_group
from driftline.kernels.prefetch import prefetch_rows
from driftline.kernels.signatures import SPARSE_CHAINS
from driftline.kernels.sweeps import add_to_row

__all__ = ["slots_room"]

#: ``places`` say where positions start, ``starts`` which of them is the first of each sequence;
#: ``gradient`` has a row for every slot of a round, and ``table`` their number behind its places.
SparseChains = namedtuple(
    "SparseChains",
    "rounds values columns places starts features tags pairs weights whole shadow intercept "
    "table owners slots gradient",
)


def slots_room(features: int, entries: int, tags: int) -> int:
    """Return the room for slots, in rounds of up to this many entries."""
    return features + 1 + entries * (tags + 2)


@helper
def find_slots(rows, columns):
    """Write the slot of every entry, and the column of every slot; return how many there are.

    A column that is out of range counts as 0: only columns that were checked are kept.
    """
    count, table, owners = 0, rows.table, rows.owners
    for i in range(columns.size):
        column = int(columns[i])
        if not 0 <= column < rows.features:
            column = 0
        slot = table[column]
        if not (0 <= slot < count and owners[slot] == column):
            slot = count
            owners[slot], table[column] = column, slot
            count += 1
        rows.slots[i] = slot
    table[rows.features] = count
    return count


@helper
def score_by(rows, t, weights, scale, scores):
    """Write the scores by some weights times a scale, position by position, and of transitions."""
    first, tags, places = rows.starts[t], rows.tags, rows.places
    n, height = rows.starts[t + 1] - first, weights.shape[0]
    for i in range(n):
        here, then = places[first + i], places[first + i + 1]
        if i + 1 < n:
            prefetch_rows(weights, rows.columns, then, places[first + i + 2])
        own = scores[i * tags : (i + 1) * tags]
        gather(weights, rows.values, rows.columns, here, then, own)
        for k in range(tags):
            own[k] = scale * (own[k] + (weights[rows.features, k] if rows.intercept else 0.0))
    for i in range(rows.pairs):
        for k in range(tags):
            scores[(n + i) * tags + k] = scale * weights[height - tags + k, i]


@helper
def score(m, rows, t):
    """Compute scores."""
    first, stop = rows.starts[t], rows.starts[t + 1]
    values = rows.values[int(rows.places[first]) : int(rows.places[stop])]
    score_by(rows, t, rows.weights, m.state[at.SCALE], m.theta)
    return norm_sq(dot(values, values) + (stop - first) * rows.intercept, stop - first, rows.pairs)


@helper
def compare(m, rows, t):
    """Compute a comparator's scores."""
    score_by(rows, t, rows.shadow, 1.0, m.encoded)


@helper
def slope(m, rows, t, input_sq):
    """Add up the gradient over positions, in slots; leave those of an intercept in ``m.steps``."""
    first, stop, tags = rows.starts[t], rows.starts[t + 1], rows.tags
    n, begin, finish = stop - first, int(rows.places[first]), int(rows.places[stop])
    count = find_slots(rows, rows.columns[begin:finish])
    used = rows.gradient.reshape(rows.gradient.size)[: count * tags]
    for i in range(used.size):
        used[i] = 0.0
    here = rows.values[begin:finish]
    for i in range(n):
        slopes = m.grad[i * tags : (i + 1) * tags]
        low = int(rows.places[first + i]) - begin
        high = int(rows.places[first + i + 1]) - begin
        scatter(rows.gradient, here, rows.slots, low, high, slopes)
    sums, rest = m.steps[:tags], m.grad[n * tags :]
    for k in range(tags):
        sums[k] = 0.0
        for i in range(n if rows.intercept else 0):
            sums[k] += m.grad[i * tags + k]
    return dot(used, used) + dot(sums, sums) + dot(rest, rest)


@helper
def move(m, rows, t, step):
    """Move the weights of the round's features, of an intercept and of transitions."""
    weights, tags, height = rows.weights, rows.tags, rows.weights.shape[0]
    n = rows.starts[t + 1] - rows.starts[t]
    for s in range(rows.table[rows.features]):
        add_to_row(weights, rows.owners[s], step, rows.gradient[s])
    for k in range(tags):
        if rows.intercept:
            weights[rows.features, k] += step * m.steps[k]
    for i in range(rows.pairs):
        for k in range(tags):
            weights[height - tags + k, i] += step * m.grad[(n + i) * tags + k]


play_groups = build_loop(enter_group, build_round(score, compare, slope, move))


@variants(SPARSE_CHAINS)
def play_sparse_chains(
    code, params, given, labels, extras, weights, shadow, state, buffer, trace, predictions
):
    """Play until an alarm or a refused round; return how many rounds were played."""
    values, columns, places, starts, features = given
    intercept = code[at.INTERCEPT]
    height, tags = weights.shape
    most, rounds = 0, starts.size - 1
    for t in range(rounds):
        most = max(most, int(places[starts[t + 1]]) - int(places[starts[t]]))
    end = buffer.size - features - 1
    rows = SparseChains(
        rounds,
        values,
        columns,
        places,
        starts,
        features,
        tags,
        height - features - intercept,
        weights,
        weights.reshape(1, weights.size),
        shadow,
        intercept,
        buffer[end:].view(np.int64),
        buffer[end - most : end].view(np.int64),
        buffer[end - 2 * most : end - most].view(np.int64),
        buffer[end - most * (tags + 2) : end - 2 * most].reshape(most, tags),
    )
    return play_groups((code, params, state, buffer), rows, labels, extras, trace, predictions)
