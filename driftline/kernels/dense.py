"""The loop over dense rows. Weights are stored as one contiguous row per score.

A step is delayed until the next row's scores are computed, in one pass over the weights. With an
intercept, the last column of weights meets an input of constant 1.
"""

from __future__ import annotations

from collections import namedtuple

from driftline.kernels import program as at
from driftline.kernels.compile import helper, variants
from driftline.kernels.linalg import dot
from driftline.kernels.loop import build_loop, build_round, slope_of_row
from driftline.kernels.prefetch import prefetch_row
from driftline.kernels.round import assemble
from driftline.kernels.signatures import DENSE
from driftline.kernels.sweeps import sweep

Dense = namedtuple("Dense", "rounds inputs weights whole shadow intercept")


@helper
def enter(m, rows, labels, t):
    """Enter a round, and prefetch the next row."""
    if t + 1 < rows.rounds:
        prefetch_row(rows.inputs, t + 1)
    return m, labels[t]


@helper
def score(m, rows, t):
    """Take the step of the round before, and compute scores."""
    x, last = rows.inputs[t], rows.inputs[max(t - 1, 0)]
    input_sq = sweep(rows.weights, m.steps, last, x, m.theta) + rows.intercept
    scale = m.state[at.SCALE]
    for k in range(rows.weights.shape[0]):
        if rows.intercept:
            m.theta[k] += rows.weights[k, x.size]
        m.theta[k] *= scale
        m.steps[k] = 0.0
    return input_sq


@helper
def compare(m, rows, t):
    """Compute a comparator's scores."""
    x = rows.inputs[t]
    for k in range(rows.shadow.shape[0]):
        m.encoded[k] = dot(rows.shadow[k, : x.size], x)
        if rows.intercept:
            m.encoded[k] += rows.shadow[k, x.size]


@helper
def move(m, rows, t, step):
    """Remember the step for the next pass; an intercept is moved now."""
    for k in range(rows.weights.shape[0]):
        m.steps[k] = step * m.grad[k]
        if rows.intercept:
            rows.weights[k, rows.inputs.shape[1]] += m.steps[k]


#: A round whose step is still to be taken.
play_delayed = build_round(score, compare, slope_of_row, move)
play_rows = build_loop(enter, play_delayed)


@variants(DENSE)
def play_dense(
    code, params, given, labels, extras, weights, shadow, state, buffer, trace, predictions
):
    """Play until an alarm or a refused round; return how many rounds were played."""
    m, (inputs,) = assemble(code, params, state, buffer, code[at.OUTPUTS]), given
    for k in range(weights.shape[0]):
        m.steps[k] = 0.0
    rows = Dense(inputs.shape[0], inputs, weights, weights, shadow, code[at.INTERCEPT])
    played = play_rows(m, rows, labels, extras, trace, predictions)
    last = inputs[max(played - 1, 0)]
    sweep(weights, m.steps, last, last, m.theta)
    return played
