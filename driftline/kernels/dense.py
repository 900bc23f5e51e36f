"""The loop over dense rows. Weights are stored as one contiguous row per score."""

from __future__ import annotations

import numpy as np

from driftline.kernels import program as at
from driftline.kernels.compile import kernel
from driftline.kernels.linalg import add_scaled, dot
from driftline.kernels.round import assemble, choose_step, play_round, settle, watch
from driftline.kernels.signatures import DENSE


@kernel(DENSE)
def play_dense(
    code, params, inputs, labels, uniforms, weights, shadow, state, buffer, trace, predictions
):
    """Play all rounds; return how many were played before a row that is not finite.

    With an intercept, the last column of weights meets an input of constant 1.
    """
    m = assemble(code, params, state, buffer, code[at.OUTPUTS])
    rounds, features = inputs.shape
    outputs = weights.shape[0]
    intercept = code[at.INTERCEPT]
    for t in range(rounds):
        x = inputs[t]
        input_sq = dot(x, x) + intercept
        if not np.isfinite(input_sq):
            return t
        scale = state[at.SCALE]
        for k in range(outputs):
            score = dot(weights[k, :features], x)
            if intercept:
                score += weights[k, features]
            m.theta[k] = scale * score

        if not play_round(m, labels[t], uniforms[t], trace, t, predictions[t]):
            return t
        if shadow.size > 0:
            for k in range(outputs):
                m.encoded[k] = dot(shadow[k, :features], x)
                if intercept:
                    m.encoded[k] += shadow[k, features]
            watch(m, trace, t)
        eta = choose_step(m, dot(m.grad, m.grad) * input_sq, input_sq, trace, t)
        if eta > 0.0:
            if shadow.size > 0:
                state[at.INNER] -= eta * dot(m.grad, m.encoded)
            for k in range(outputs):
                step = -eta * m.grad[k] / scale
                if step != 0.0:
                    add_scaled(weights[k, :features], step, x)
                    if intercept:
                        weights[k, features] += step
            settle(m, eta, trace[4, t], weights)
    return rounds
