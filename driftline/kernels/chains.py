"""The loop over sequences: positions share the weights of tags, and pairs those of transitions.

Scores are those of all positions, and then once those of the transitions, which are the same after
every position; gradients have the sums over all pairs there. So a round costs its entries times the
number of tags, three times, and what loss and decoder need.
"""

from __future__ import annotations

from driftline.kernels import program as at
from driftline.kernels.compile import Kernel, helper, kernel
from driftline.kernels.linalg import dot
from driftline.kernels.products import product
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
from driftline.kernels.signatures import CHAINS, CHAINS_SINGLE
from driftline.kernels.sweeps import add_to_row, sweep


def sequence_sq(entries_sq: float, length: int, pairs: int) -> float:
    """Return the squared norm of a sequence, from the sum of the squares of its entries.

    With transitions it has the squared norm of the encoding as a factor.
    """
    return max(entries_sq, length - 1.0) * (2.0 * length - 1.0) if pairs else entries_sq


norm_sq = helper(sequence_sq)


@kernel(CHAINS)
def play_chains(
    code,
    params,
    inputs,
    starts,
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

    With an intercept, the weights behind those of the features meet an input of constant 1; those
    of the transitions to all tags are the last.
    """
    tags, columns = weights.shape
    features, intercept = inputs.shape[1], code[at.INTERCEPT]
    pairs = columns - features - intercept  # 0, or as many as there are tags
    own = buffer.size - tags * (features + 1 + tags)  # the gradient in the weights comes last
    gradient = buffer[own : own + weights.size].reshape(tags, columns)
    entries = inputs.reshape(inputs.size)
    for t in range(starts.size - 1):
        first, stop = starts[t], starts[t + 1]
        n = stop - first
        m = assemble(code, params, state, buffer[:own], (n + pairs) * tags)
        scale, entries_sq = state[at.SCALE], 0.0
        for k in range(tags):
            m.steps[k] = 0.0
        for i in range(n):
            x, scores = inputs[first + i], m.theta[i * tags : (i + 1) * tags]
            entries_sq += sweep(weights, m.steps[:tags], x, x, scores) + intercept
            for k in range(tags):
                if intercept:
                    scores[k] += weights[k, features]
                scores[k] *= scale
        for i in range(pairs):
            for k in range(tags):
                m.theta[(n + i) * tags + k] = scale * weights[i, columns - tags + k]
        input_sq = norm_sq(entries_sq, n, pairs)
        if not input_sq < FARTHEST_SQ:
            return t
        if not play_round(m, labels[first:stop], extras[t], trace, t, predictions[t]):
            return t
        if code[at.LOOK] or asks(extras[t]):
            continue
        if shadow.size > 0:
            for i in range(n):
                for k in range(tags):
                    score = dot(shadow[k, :features], inputs[first + i])
                    m.encoded[i * tags + k] = score + (shadow[k, features] if intercept else 0.0)
            for i in range(pairs):
                for k in range(tags):
                    m.encoded[(n + i) * tags + k] = shadow[i, columns - tags + k]
            watch(m, extras[t], trace, t)
        for k in range(tags):
            row = gradient[k]
            product(m.grad[k:], tags, n, entries[first * features :], features, row)
            if intercept:
                row[features] = 0.0
                for i in range(n):
                    row[features] += m.grad[i * tags + k]
            for j in range(pairs):
                row[columns - pairs + j] = m.grad[(n + k) * tags + j]
        grad_sq = 0.0
        for k in range(tags):
            grad_sq += dot(gradient[k], gradient[k])
        eta = choose_step(m, grad_sq, input_sq, extras[t], trace, t)
        if eta < 0.0:
            return t
        if eta > 0.0:
            step = -eta / refresh(m.state, eta, trace[at.GRAD_ROW, t], weights)
            for k in range(tags):
                add_to_row(weights, k, step, gradient[k])
            finish_step(m, eta, trace[at.GRAD_ROW, t], shadow.size > 0)
        if alarmed(m, extras[t], trace, t):
            return t + 1
    return starts.size - 1


play_chains_single = Kernel(play_chains.function, CHAINS_SINGLE)
