"""The loop over sequences of CSR positions. Weights have the scores of a feature side by side.

A round touches only the features that its positions have. Most of these occur in several of them,
and the step depends on the norm of the sum: so every feature of a round gets a slot, in which its
gradient is added up. Slots are found by a table over all features that is never cleared: what it
says counts only if the slot says so, too (a sparse set; Briggs and Torczon, 1993).
"""

from __future__ import annotations

import numpy as np

from driftline.kernels import program as at
from driftline.kernels import signatures as kinds
from driftline.kernels.chains import norm_sq
from driftline.kernels.compile import Kernel, helper
from driftline.kernels.gathers import gather, scatter
from driftline.kernels.linalg import dot
from driftline.kernels.prefetch import prefetch_rows
from driftline.kernels.round import (
    FARTHEST_SQ,
    alarmed,
    asks,
    assemble,
    choose_step,
    finish_step,
    play_round,
    refresh,
    watch,
)
from driftline.kernels.sweeps import add_to_row

__all__ = ["slots_room"]


def slots_room(features: int, entries: int, tags: int) -> int:
    """Return the room for slots, in rounds of up to this many entries."""
    return features + entries * (tags + 2)


@helper
def find_slots(columns, features, table, owners, slots):
    """Write the slot of every entry, and the column of every slot; return how many there are.

    A column that is out of range counts as 0: only columns that were checked are kept.
    """
    count = 0
    for i in range(columns.size):
        column = int(columns[i])
        if not 0 <= column < features:
            column = 0
        slot = table[column]
        if not (0 <= slot < count and owners[slot] == column):
            slot = count
            owners[slot], table[column] = column, slot
            count += 1
        slots[i] = slot
    return count


def play_sparse_chains(
    code,
    params,
    values,
    columns,
    rows,
    starts,
    features,
    labels,
    extras,
    weights,
    shadow,
    state,
    buffer,
    trace,
    predictions,
):
    """Play until an alarm or a refused round; return how many rounds were played.

    ``rows`` says where positions start, ``starts`` which of them is the first of each sequence.
    Behind the weights of the features come that of an intercept, then those of the transitions to
    each tag.
    """
    height, tags = weights.shape
    intercept = code[at.INTERCEPT]
    pairs = height - features - intercept  # 0, or as many as there are tags
    most = 0
    for t in range(starts.size - 1):
        most = max(most, int(rows[starts[t + 1]]) - int(rows[starts[t]]))
    end = buffer.size
    table = buffer[end - features :].view(np.int64)
    end -= features
    owners, slots = buffer[end - most : end].view(np.int64), buffer[end - 2 * most : end - most]
    places = slots.view(np.int64)
    own = end - most * (tags + 2)
    gradient = buffer[own : end - 2 * most].reshape(most, tags)
    whole = weights.reshape(1, weights.size)
    for t in range(starts.size - 1):
        first, stop = starts[t], starts[t + 1]
        n, begin, finish = stop - first, int(rows[first]), int(rows[stop])
        m = assemble(code, params, state, buffer[:own], (n + pairs) * tags)
        entries_sq = dot(values[begin:finish], values[begin:finish]) + n * intercept
        input_sq, scale = norm_sq(entries_sq, n, pairs), state[at.SCALE]
        if not input_sq < FARTHEST_SQ:
            return t
        for i in range(n):
            if i + 1 < n:
                prefetch_rows(weights, columns, rows[first + i + 1], rows[first + i + 2])
            scores = m.theta[i * tags : (i + 1) * tags]
            gather(weights, values, columns, rows[first + i], rows[first + i + 1], scores)
            for k in range(tags):
                scores[k] = scale * (scores[k] + (weights[features, k] if intercept else 0.0))
        for i in range(pairs):
            for k in range(tags):
                m.theta[(n + i) * tags + k] = scale * weights[height - tags + k, i]
        if not play_round(m, labels[first:stop], extras[t], trace, t, predictions[t]):
            return t
        if code[at.LOOK] or asks(extras[t]):
            continue
        if shadow.size > 0:
            for i in range(n):
                scores = m.encoded[i * tags : (i + 1) * tags]
                gather(shadow, values, columns, rows[first + i], rows[first + i + 1], scores)
                for k in range(tags):
                    scores[k] += shadow[features, k] if intercept else 0.0
            for i in range(pairs):
                for k in range(tags):
                    m.encoded[(n + i) * tags + k] = shadow[height - tags + k, i]
            watch(m, extras[t], trace, t)
        count = find_slots(columns[begin:finish], features, table, owners, places)
        for s in range(count):
            for k in range(tags):
                gradient[s, k] = 0.0
        here = values[begin:finish]
        for i in range(n):
            slope = m.grad[i * tags : (i + 1) * tags]
            low, high = int(rows[first + i]) - begin, int(rows[first + i + 1]) - begin
            scatter(gradient, here, places, low, high, slope)
        sums = m.steps[:tags]  # of the slopes of all positions, for the intercept
        for k in range(tags):
            sums[k] = 0.0
            for i in range(n if intercept else 0):
                sums[k] += m.grad[i * tags + k]
        flat, rest = gradient.reshape(most * tags), m.grad[n * tags :]
        used = flat[: count * tags]
        grad_sq = dot(used, used) + dot(sums, sums) + dot(rest, rest)
        eta = choose_step(m, grad_sq, input_sq, extras[t], trace, t)
        if eta < 0.0:
            return t
        if eta > 0.0:
            step = -eta / refresh(m.state, eta, trace[at.GRAD_ROW, t], whole)
            for s in range(count):
                add_to_row(weights, owners[s], step, gradient[s])
            for k in range(tags):
                if intercept:
                    weights[features, k] += step * sums[k]
            for i in range(pairs):
                for k in range(tags):
                    weights[height - tags + k, i] += step * m.grad[(n + i) * tags + k]
            finish_step(m, eta, trace[at.GRAD_ROW, t], shadow.size > 0)
        if alarmed(m, extras[t], trace, t):
            return t + 1
    return starts.size - 1


play_sparse_chains_32 = Kernel(play_sparse_chains, kinds.SPARSE_CHAINS32)
play_sparse_chains_64 = Kernel(play_sparse_chains, kinds.SPARSE_CHAINS64)
play_sparse_chains_32_single = Kernel(play_sparse_chains, kinds.SPARSE_CHAINS32_SINGLE)
play_sparse_chains_64_single = Kernel(play_sparse_chains, kinds.SPARSE_CHAINS64_SINGLE)
