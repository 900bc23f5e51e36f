"""The loop over dense rows. Weights are stored as one contiguous row per score."""

from __future__ import annotations

from driftline.kernels import program as at
from driftline.kernels.compile import Kernel, kernel
from driftline.kernels.inner import inner
from driftline.kernels.linalg import dot
from driftline.kernels.prefetch import prefetch_row
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
    write_scores,
)
from driftline.kernels.signatures import DENSE, DENSE_SINGLE
from driftline.kernels.sweeps import sweep


@kernel(DENSE)
def play_dense(
    code, params, inputs, labels, extras, weights, shadow, state, buffer, trace, predictions
):
    """Play until an alarm or a refused round; return how many rounds were played.

    A step is delayed until the next row's scores are computed, in one pass over the weights.
    With an intercept, the last column of weights meets an input of constant 1.
    """
    m = assemble(code, params, state, buffer, code[at.OUTPUTS])
    rounds, features = inputs.shape
    outputs = weights.shape[0]
    intercept = code[at.INTERCEPT]
    for k in range(outputs):
        m.steps[k] = 0.0
    played = rounds
    last = inputs[0]
    for t in range(rounds):
        if t + 1 < rounds:
            prefetch_row(inputs, t + 1)
        x = inputs[t]
        input_sq = sweep(weights, m.steps, last, x, m.theta) + intercept
        last = x
        scale = state[at.SCALE]
        for k in range(outputs):
            if intercept:
                m.theta[k] += weights[k, features]
            m.theta[k] *= scale
            m.steps[k] = 0.0
        if not input_sq < FARTHEST_SQ:
            played = t
            break

        if not play_round(m, labels[t], extras[t], trace, t, predictions[t]):
            played = t
            break
        write_scores(m, trace, t)
        if code[at.LOOK] or asks(extras[t]):
            continue
        if shadow.size > 0:
            for k in range(outputs):
                m.encoded[k] = dot(shadow[k, :features], x)
                if intercept:
                    m.encoded[k] += shadow[k, features]
            watch(m, extras[t], trace, t)
        eta = choose_step(m, inner(m.grad, m.grad) * input_sq, input_sq, extras[t], trace, t)
        if eta < 0.0:
            played = t
            break
        if eta > 0.0:
            step = -eta / refresh(m.state, eta, trace[at.GRAD_ROW, t], weights)
            for k in range(outputs):
                m.steps[k] = step * m.grad[k]
                if intercept:
                    weights[k, features] += m.steps[k]
            finish_step(m, eta, trace[at.GRAD_ROW, t], shadow.size > 0)
        if alarmed(m, extras[t], trace, t):
            played = t + 1
            break
    sweep(weights, m.steps, last, last, m.theta)
    return played


play_dense_single = Kernel(play_dense.function, DENSE_SINGLE)
