"""The loop over dense rows of many learners, each with weights and a state of its own.

It plays the rounds of :mod:`driftline.kernels.dense` one at a time, with the same bits: a step is
not delayed, since the next row is another learner's. Learners lie one after the other in memory,
and those of the next rows are fetched while a round is computed.
"""

from __future__ import annotations

from driftline.kernels import program as at
from driftline.kernels.compile import helper, variants
from driftline.kernels.dense import Dense, play_delayed
from driftline.kernels.loop import LEFT_OUT, MOVED
from driftline.kernels.prefetch import prefetch_row
from driftline.kernels.round import assemble
from driftline.kernels.signatures import KEYED
from driftline.kernels.sweeps import sweep

#: How many rows ahead the weights of a learner are fetched.
AHEAD = 8


@helper
def begin(own, state, shared, shared_state, place, starts):
    """Let a learner begin with the weights of a shared one; note them, if there is room."""
    outputs, columns = own.shape
    noted = place < starts.shape[0]
    for k in range(outputs):
        for j in range(columns):
            own[k, j] = shared[k, j]
            if noted:
                starts[place, k * columns + j] = shared[k, j]
    for i, which in enumerate((at.SCALE, at.NORM_SQ)):
        state[which] = shared_state[which]
        if noted:
            starts[place, outputs * columns + i] = state[which]


@variants(KEYED)
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
    rounds, sharing, nobody = inputs.shape[0], shared.shape[0], starts[:0]
    for t in range(rounds):
        if t + AHEAD < rounds:
            later = slots[t + AHEAD]
            prefetch_row(states, later)
            for k in range(weights.shape[1]):
                prefetch_row(weights[later], k)
        own, state = weights[slots[t]], states[slots[t]]
        if sharing and begins[t] >= 0:
            begin(own, state, shared[0], shared_states[0], begins[t], starts)
        table, column, place = trace, t, t
        for turn in range(1 + sharing):
            if turn:
                own, state = shared[0], shared_states[0]
                table, column, place = shared_trace, 0, rounds
            m = assemble(code, params, state, buffer, code[at.OUTPUTS])
            for k in range(own.shape[0]):
                m.steps[k] = 0.0
            rows = Dense(rounds, inputs, own, own, nobody, code[at.INTERCEPT])
            made = predictions[place]
            outcome = play_delayed(m, rows, t, labels[t], extras[t], table, column, made)
            if outcome == LEFT_OUT:
                return t
            if outcome == MOVED:
                sweep(own, m.steps, inputs[t], inputs[t], m.encoded)
    return rounds
