"""The loop over CSR rows. Weights are stored with the scores of a feature side by side.

A round touches only the features it has: its cost is the number of its non-zeros times
the number of scores, however many features there are. With many features the weights are not in the
cache: those of the next row are prefetched before this row's loss and step are computed. With an
intercept, the last row of weights meets an input of constant 1.
"""

from __future__ import annotations

from collections import namedtuple

from driftline.kernels import program as at
from driftline.kernels.compile import helper, variants
from driftline.kernels.gathers import gather, scatter
from driftline.kernels.linalg import dot
from driftline.kernels.loop import build_loop, build_round, enter_row, slope_of_row
from driftline.kernels.prefetch import prefetch_rows
from driftline.kernels.round import assemble
from driftline.kernels.signatures import SPARSE

#: ``whole`` are the weights as one row: one long pass is faster than many short ones.
Sparse = namedtuple("Sparse", "rounds values columns starts weights whole shadow intercept")


@helper
def score_by(rows, t, weights, scale, scores):
    """Write the scores by some weights times a scale."""
    gather(weights, rows.values, rows.columns, rows.starts[t], rows.starts[t + 1], scores)
    for k in range(weights.shape[1]):
        last = weights[weights.shape[0] - 1, k] if rows.intercept else 0.0
        scores[k] = scale * (scores[k] + last)


@helper
def score(m, rows, t):
    """Compute scores, and prefetch the weights of the next row."""
    first, stop = rows.starts[t], rows.starts[t + 1]
    score_by(rows, t, rows.weights, m.state[at.SCALE], m.theta)
    if t + 1 < rows.rounds:
        prefetch_rows(rows.weights, rows.columns, stop, rows.starts[t + 2])
    return dot(rows.values[first:stop], rows.values[first:stop]) + rows.intercept


@helper
def compare(m, rows, t):
    """Compute a comparator's scores."""
    score_by(rows, t, rows.shadow, 1.0, m.encoded)


@helper
def move(m, rows, t, step):
    """Move the weights of the row's features, and an intercept."""
    weights = rows.weights
    for k in range(weights.shape[1]):
        m.steps[k] = step * m.grad[k]
    scatter(weights, rows.values, rows.columns, rows.starts[t], rows.starts[t + 1], m.steps)
    if rows.intercept:
        for k in range(weights.shape[1]):
            weights[weights.shape[0] - 1, k] += m.steps[k]


play_rows = build_loop(enter_row, build_round(score, compare, slope_of_row, move))


@variants(SPARSE)
def play_sparse(
    code, params, given, labels, extras, weights, shadow, state, buffer, trace, predictions
):
    """Play until an alarm or a refused round; return how many rounds were played."""
    m, whole = (
        assemble(code, params, state, buffer, code[at.OUTPUTS]),
        weights.reshape(1, weights.size),
    )
    values, columns, starts = given
    rounds, intercept = starts.size - 1, code[at.INTERCEPT]
    rows = Sparse(rounds, values, columns, starts, weights, whole, shadow, intercept)
    return play_rows(m, rows, labels, extras, trace, predictions)
