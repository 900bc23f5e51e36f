"""The loop over dense rows of many learners, each with weights and a state of its own.

It makes the rounds of :mod:`driftline.kernels.dense`, with the same bits: only the step is not
delayed, since the next row is another learner's. Learners lie one after the other in memory, and
those of the next rows are fetched while a round is computed.
"""

from __future__ import annotations

from driftline.kernels import program as at
from driftline.kernels.compile import Kernel, kernel
from driftline.kernels.linalg import dot
from driftline.kernels.prefetch import prefetch_row
from driftline.kernels.round import (
    FARTHEST_SQ,
    assemble,
    choose_step,
    finish_step,
    play_round,
    refresh,
)
from driftline.kernels.signatures import KEYED, KEYED_SINGLE
from driftline.kernels.sweeps import sweep

#: How many rows ahead the weights of a learner are fetched.
AHEAD = 8


@kernel(KEYED)
def play_keyed(
    code, params, inputs, slots, labels, extras, weights, states, buffer, trace, predictions
):
    """Play until a refused round; return how many rounds were played.

    ``slots`` says whose round each is: which of the weights and states.
    """
    rounds, features = inputs.shape
    outputs = weights.shape[1]
    intercept = code[at.INTERCEPT]
    for t in range(rounds):
        if t + AHEAD < rounds:
            later = slots[t + AHEAD]
            prefetch_row(states, later)
            for k in range(outputs):
                prefetch_row(weights[later], k)
        own, state, x = weights[slots[t]], states[slots[t]], inputs[t]
        m = assemble(code, params, state, buffer, outputs)
        for k in range(outputs):
            m.steps[k] = 0.0
        input_sq = sweep(own, m.steps, x, x, m.theta) + intercept
        scale = state[at.SCALE]
        for k in range(outputs):
            if intercept:
                m.theta[k] += own[k, features]
            m.theta[k] *= scale
        if not input_sq < FARTHEST_SQ:
            return t
        if not play_round(m, labels[t], extras[t], trace, t, predictions[t]):
            return t
        eta = choose_step(m, dot(m.grad, m.grad) * input_sq, input_sq, extras[t], trace, t)
        if eta < 0.0:
            return t
        if eta > 0.0:
            step = -eta / refresh(m, eta, trace[at.GRAD_ROW, t], own)
            for k in range(outputs):
                m.steps[k] = step * m.grad[k]
                if intercept:
                    own[k, features] += m.steps[k]
            finish_step(m, eta, trace[at.GRAD_ROW, t], False)
            sweep(own, m.steps, x, x, m.encoded)
    return rounds


play_keyed_single = Kernel(play_keyed.function, KEYED_SINGLE)
