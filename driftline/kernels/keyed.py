"""The loop over dense rows of many learners, each with weights and a state of its own.

It makes the rounds of :mod:`driftline.kernels.dense`, with the same bits: only the step is not
delayed, since the next row is another learner's. Learners lie one after the other in memory, and
those of the next rows are fetched while a round is computed.
"""

from __future__ import annotations

from driftline.kernels import program as at
from driftline.kernels.compile import Kernel, helper, kernel
from driftline.kernels.inner import inner
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


@helper
def play_one(code, params, x, label, extras, own, state, buffer, trace, t, prediction):
    """Play one round of one learner; say whether it was accepted."""
    outputs, features = own.shape[0], x.size
    intercept = code[at.INTERCEPT]
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
        return False
    if not play_round(m, label, extras, trace, t, prediction):
        return False
    if code[at.LOOK]:
        return True
    eta = choose_step(m, inner(m.grad, m.grad) * input_sq, input_sq, extras, trace, t)
    if eta < 0.0:
        return False
    if eta > 0.0:
        step = -eta / refresh(m.state, eta, trace[at.GRAD_ROW, t], own)
        for k in range(outputs):
            m.steps[k] = step * m.grad[k]
            if intercept:
                own[k, features] += m.steps[k]
        finish_step(m, eta, trace[at.GRAD_ROW, t], False)
        sweep(own, m.steps, x, x, m.encoded)
    return True


@kernel(KEYED)
def play_keyed(
    code,
    params,
    inputs,
    slots,
    labels,
    extras,
    weights,
    states,
    buffer,
    trace,
    predictions,
    begins,
    shared,
    shared_states,
    shared_trace,
    starts,
):
    """Play until a refused round; return how many rounds were played.

    ``slots`` says whose round each is: which of the weights and states. If there is a shared
    learner, it plays every row as well, after the row's own learner. One whose first row it is, for
    which ``begins`` is not negative, starts from its weights; if there is room for them, they are
    also written to ``starts``, at this place, and their scale and squared norm behind them.
    """
    rounds, outputs = inputs.shape[0], weights.shape[1]
    for t in range(rounds):
        if t + AHEAD < rounds:
            later = slots[t + AHEAD]
            prefetch_row(states, later)
            for k in range(outputs):
                prefetch_row(weights[later], k)
        own, state, x = weights[slots[t]], states[slots[t]], inputs[t]
        if shared.shape[0] > 0 and begins[t] >= 0:
            columns = own.shape[1]
            for k in range(outputs):
                for j in range(columns):
                    own[k, j] = shared[0, k, j]
                    if begins[t] < starts.shape[0]:
                        starts[begins[t], k * columns + j] = shared[0, k, j]
            state[at.SCALE] = shared_states[0, at.SCALE]
            state[at.NORM_SQ] = shared_states[0, at.NORM_SQ]
            if begins[t] < starts.shape[0]:
                starts[begins[t], outputs * columns] = state[at.SCALE]
                starts[begins[t], outputs * columns + 1] = state[at.NORM_SQ]
        if not play_one(
            code, params, x, labels[t], extras[t], own, state, buffer, trace, t, predictions[t]
        ):
            return t
        if shared.shape[0] > 0 and not play_one(
            code,
            params,
            x,
            labels[t],
            extras[t],
            shared[0],
            shared_states[0],
            buffer,
            shared_trace,
            0,
            predictions[rounds],
        ):
            return t
    return rounds


play_keyed_single = Kernel(play_keyed.function, KEYED_SINGLE)
