"""The loop over sequences: positions share the weights of tags, and pairs those of transitions.

Sets of items that share one weight vector are sequences with one tag, and without transitions.

Scores are those of all positions, and then once those of the transitions, which are the same after
every position; gradients have the sums over all pairs there. So a round costs its entries times the
number of tags, three times, and what loss and decoder need. With an intercept, the weights behind
those of the features meet an input of constant 1; those of the transitions to all tags come last.
"""

from __future__ import annotations

from collections import namedtuple

from driftline.kernels import program as at
from driftline.kernels.compile import helper, variants
from driftline.kernels.linalg import add_scaled, dot
from driftline.kernels.loop import build_loop, build_round, enter_group
from driftline.kernels.part import row_of
from driftline.kernels.products import product
from driftline.kernels.signatures import CHAINS
from driftline.kernels.sweeps import add_to_row, sweep

#: ``pairs`` is 0, or as many as there are tags.
Chains = namedtuple(
    "Chains", "rounds inputs starts tags pairs weights whole shadow intercept gradient"
)


def sequence_sq(entries_sq: float, length: int, pairs: int) -> float:
    """Return the squared norm of a sequence, from the sum of the squares of its entries.

    With transitions it has the squared norm of the encoding as a factor.
    """
    return max(entries_sq, length - 1.0) * (2.0 * length - 1.0) if pairs else entries_sq


norm_sq = helper(sequence_sq)


@helper
def score_by(rows, t, weights, scale, scores):
    """Write the scores by some weights times a scale."""
    tags, features = rows.tags, rows.inputs.shape[1]
    for i in range(rows.starts[t + 1] - rows.starts[t]):
        x = rows.inputs[rows.starts[t] + i]
        for k in range(tags):
            scores[i * tags + k] = dot(row_of(weights, k, features), x)
    finish_scores(rows, weights, scale, scores)


@helper
def finish_scores(rows, weights, scale, scores):
    """Add an intercept to products, multiply by a scale, and write the scores of transitions."""
    tags, features = rows.tags, rows.inputs.shape[1]
    n = scores.size // tags - rows.pairs
    for i in range(n):
        for k in range(tags):
            if rows.intercept:
                scores[i * tags + k] += weights[k, features]
            scores[i * tags + k] *= scale
    for i in range(rows.pairs):
        for k in range(tags):
            scores[(n + i) * tags + k] = scale * weights[i, features + rows.intercept + k]


@helper
def score(m, rows, t):
    """Compute scores: those of several tags in one pass over a position."""
    first, tags, scale = rows.starts[t], rows.tags, m.state[at.SCALE]
    n, entries_sq = rows.starts[t + 1] - first, 0.0
    if tags == 1:
        score_by(rows, t, rows.weights, scale, m.theta)
        for i in range(n):
            entries_sq += dot(rows.inputs[first + i], rows.inputs[first + i]) + rows.intercept
        return entries_sq
    steps = m.steps[:tags]
    for k in range(tags):
        steps[k] = 0.0
    for i in range(n):
        x, scores = rows.inputs[first + i], m.theta[i * tags : (i + 1) * tags]
        entries_sq += sweep(rows.weights, steps, x, x, scores) + rows.intercept
    finish_scores(rows, rows.weights, scale, m.theta)
    return norm_sq(entries_sq, n, rows.pairs)


@helper
def compare(m, rows, t):
    """Compute a comparator's scores."""
    score_by(rows, t, rows.shadow, 1.0, m.encoded)


@helper
def slope(m, rows, t, input_sq):
    """Add up the gradient over positions and pairs."""
    first, tags, features = rows.starts[t], rows.tags, rows.inputs.shape[1]
    n, entries, grad_sq = rows.starts[t + 1] - first, rows.inputs.reshape(rows.inputs.size), 0.0
    for k in range(tags):
        row = rows.gradient[k]
        if tags == 1:  # most documents of a query have no slope
            add_items(m.grad, rows.inputs[first : first + n], row[:features])
        else:
            product(m.grad[k:], tags, n, entries[first * features :], features, row)
        if rows.intercept:
            row[features] = 0.0
            for i in range(n):
                row[features] += m.grad[i * tags + k]
        for j in range(rows.pairs):
            row[features + rows.intercept + j] = m.grad[(n + k) * tags + j]
    for k in range(tags):
        grad_sq += dot(rows.gradient[k], rows.gradient[k])
    return grad_sq


@helper
def add_items(slopes, inputs, out):
    """Write the sum of inputs times slopes, of those that have one."""
    for j in range(out.size):
        out[j] = 0.0
    for i in range(slopes.size):
        if slopes[i] != 0.0:
            add_scaled(out, slopes[i], inputs[i])


@helper
def move(m, rows, t, step):
    """Move all weights."""
    for k in range(rows.tags):
        add_to_row(rows.weights, k, step, rows.gradient[k])


play_groups = build_loop(enter_group, build_round(score, compare, slope, move))


@variants(CHAINS)
def play_chains(
    code, params, given, labels, extras, weights, shadow, state, buffer, trace, predictions
):
    """Play until an alarm or a refused round; return how many rounds were played."""
    intercept, (inputs, starts) = code[at.INTERCEPT], given
    tags, columns = weights.shape
    gradient = buffer[buffer.size - weights.size :].reshape(tags, columns)
    pairs, rounds = columns - inputs.shape[1] - intercept, starts.size - 1
    rows = Chains(
        rounds, inputs, starts, tags, pairs, weights, weights, shadow, intercept, gradient
    )
    return play_groups((code, params, state, buffer), rows, labels, extras, trace, predictions)
