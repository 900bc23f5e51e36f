"""The loop over CSR rows. Weights are stored with the scores of a feature side by side.

A round touches only the features it has: its cost is the number of its non-zeros times
the number of scores, however many features there are.
"""

from __future__ import annotations

import numpy as np

from driftline.kernels import program as at
from driftline.kernels.compile import Kernel
from driftline.kernels.linalg import dot
from driftline.kernels.round import assemble, choose_step, play_round, settle, watch
from driftline.kernels.signatures import SPARSE32, SPARSE64


def play_sparse(
    code,
    params,
    values,
    columns,
    starts,
    labels,
    uniforms,
    weights,
    shadow,
    state,
    buffer,
    trace,
    predictions,
):
    """Play all rounds; return how many were played before a row that is not finite.

    With an intercept, the last row of weights meets an input of constant 1.
    """
    m = assemble(code, params, state, buffer, code[at.OUTPUTS])
    rounds = starts.size - 1
    intercept = code[at.INTERCEPT]
    last, outputs = weights.shape[0] - 1, weights.shape[1]
    for t in range(rounds):
        first, stop = starts[t], starts[t + 1]
        for k in range(outputs):
            m.theta[k] = 0.0
        input_sq = float(intercept)
        for i in range(first, stop):
            value = values[i]
            input_sq += value * value
            row = weights[np.uint64(columns[i])]  # unsigned: never counted from the end
            for k in range(outputs):
                m.theta[k] += value * row[k]
        if not np.isfinite(input_sq):
            return t
        scale = state[at.SCALE]
        for k in range(outputs):
            m.theta[k] = scale * (m.theta[k] + (weights[last, k] if intercept else 0.0))

        if not play_round(m, labels[t], uniforms[t], trace, t, predictions[t]):
            return t
        if shadow.size > 0:
            for k in range(outputs):
                m.encoded[k] = shadow[last, k] if intercept else 0.0
            for i in range(first, stop):
                row = shadow[np.uint64(columns[i])]
                for k in range(outputs):
                    m.encoded[k] += values[i] * row[k]
            watch(m, trace, t)
        eta = choose_step(m, dot(m.grad, m.grad) * input_sq, input_sq, trace, t)
        if eta > 0.0:
            if shadow.size > 0:
                state[at.INNER] -= eta * dot(m.grad, m.encoded)
            step = -eta / scale
            for i in range(first, stop):
                value = step * values[i]
                row = weights[np.uint64(columns[i])]
                for k in range(outputs):
                    row[k] += value * m.grad[k]
            if intercept:
                for k in range(outputs):
                    weights[last, k] += step * m.grad[k]
            settle(m, eta, trace[4, t], weights)
    return rounds


play_sparse_32 = Kernel(play_sparse, SPARSE32)
play_sparse_64 = Kernel(play_sparse, SPARSE64)
