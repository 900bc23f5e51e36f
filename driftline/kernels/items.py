"""The loop over sets of items that share one weight vector, of different sizes."""

from __future__ import annotations

from driftline.kernels import program as at
from driftline.kernels.compile import kernel
from driftline.kernels.linalg import add_scaled, dot
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
from driftline.kernels.signatures import ITEMS


@kernel(ITEMS)
def play_items(
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

    A round costs the entries of its items, three times: for the scores, the gradient and, with
    a step, the weights. With an intercept, the last weight meets an input of constant 1.
    """
    features = inputs.shape[1]
    intercept = code[at.INTERCEPT]
    own = buffer.size - features - 1  # the gradient in the weights comes last in the buffer
    gradient = buffer[own : own + weights.size]
    for t in range(starts.size - 1):
        first, stop = starts[t], starts[t + 1]
        m = assemble(code, params, state, buffer[:own], stop - first)
        scale = state[at.SCALE]
        input_sq = 0.0
        for i in range(first, stop):
            x = inputs[i]
            input_sq += dot(x, x) + intercept
            score = dot(weights[0, :features], x)
            if intercept:
                score += weights[0, features]
            m.theta[i - first] = scale * score
        if not input_sq < FARTHEST_SQ:
            return t
        if not play_round(m, labels[first:stop], extras[t], trace, t, predictions[t]):
            return t
        if code[at.LOOK] or asks(extras[t]):
            continue
        if shadow.size > 0:
            for i in range(first, stop):
                m.encoded[i - first] = dot(shadow[0, :features], inputs[i])
                if intercept:
                    m.encoded[i - first] += shadow[0, features]
            watch(m, extras[t], trace, t)
        for j in range(gradient.size):
            gradient[j] = 0.0
        for i in range(first, stop):
            slope = m.grad[i - first]
            if slope != 0.0:
                add_scaled(gradient[:features], slope, inputs[i])
                if intercept:
                    gradient[features] += slope
        eta = choose_step(m, dot(gradient, gradient), input_sq, extras[t], trace, t)
        if eta < 0.0:
            return t
        if eta > 0.0:
            add_scaled(
                weights[0], -eta / refresh(m.state, eta, trace[at.GRAD_ROW, t], weights), gradient
            )
            finish_step(m, eta, trace[at.GRAD_ROW, t], shadow.size > 0)
        if alarmed(m, extras[t], trace, t):
            return t + 1
    return starts.size - 1
