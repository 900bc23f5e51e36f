"""The loop over dense rows for many settings of a learner at once.

Every setting makes the rounds of :mod:`driftline.kernels.dense`, with the same bits. Most of a
round is waiting: for exponentials, quotients and roots that follow from each other. Rounds of
different settings do not wait for each other, and a processor computes several at a time where
little code lies between them. So a row is played in phases, each of which is a short loop over all
settings: scores, losses, predictions, steps. The label is encoded once for all.
"""

from __future__ import annotations

import numpy as np

from driftline.kernels import program as at
from driftline.kernels.calls import call_decode, call_draw, call_encode, call_loss
from driftline.kernels.compile import helper, variants
from driftline.kernels.dense import Dense, move, score
from driftline.kernels.inner import inner
from driftline.kernels.part import part
from driftline.kernels.prefetch import prefetch_row
from driftline.kernels.round import FARTHEST_SQ, assemble, choose_step, finish_step, refresh
from driftline.kernels.signatures import SETTINGS


@helper
def rows_for(inputs, weights, intercept):
    """Return the rows for the weights of one setting."""
    return Dense(inputs.shape[0], inputs, weights, weights, weights, intercept)


@variants(SETTINGS)
def play_settings(
    codes, params, inputs, labels, extras, weights, states, buffers, traces, predictions, played
):
    """Play every setting until it refuses a round; ``played`` is how many rounds each accepted.

    All are of one task, have an intercept or none, and no sample weights. A step is delayed until
    the next row's scores are computed, as in the loop of one learner.
    """
    rounds, (settings, outputs) = inputs.shape[0], weights.shape[:2]
    intercept = codes[0, at.INTERCEPT]
    target = part(buffers[0], outputs, outputs)
    task = part(params[0], 0, codes[0, at.TASK_END])
    for s in range(settings):
        played[s] = rounds
        for k in range(outputs):
            buffers[s, 5 * outputs + k] = 0.0
    for t in range(rounds):
        if t + 1 < rounds:
            prefetch_row(inputs, t + 1)
        extra, input_sq = extras[t], 0.0
        offset = call_encode(codes[0, at.ENCODE], (labels[t], task, target))
        for s in range(settings):
            m = assemble(codes[s], params[s], states[s], buffers[s], outputs)
            input_sq = score(m, rows_for(inputs, weights[s], intercept), t)
        if not input_sq < FARTHEST_SQ:
            for s in range(settings):
                played[s] = min(played[s], t)
            break
        for s in range(settings):
            m = assemble(codes[s], params[s], states[s], buffers[s], outputs)
            loss = call_loss(m.code[at.LOSS], (m.theta, target, m.loss, m.work, m.grad))
            traces[s, at.LOSS_ROW, t] = loss
            if not np.isfinite(loss):
                played[s] = min(played[s], t)
        for s in range(settings):
            m = assemble(codes[s], params[s], states[s], buffers[s], outputs)
            given = (m.theta, target, offset, m.decoder, m.work, m.code[at.VALUES], m.loss)
            more = (m.code[at.MIX], m.scratch, m.mean)
            traces[s, at.RISK_ROW, t] = call_decode(m.code[at.DECODE], given + more)
        for s in range(settings):
            m = assemble(codes[s], params[s], states[s], buffers[s], outputs)
            drawn = (m.mean, m.task, extra, m.scratch, predictions[s], m.encoded)
            call_draw(m.code[at.DRAW], drawn)
            traces[s, at.TARGET_ROW, t] = max(0.0, inner(target, m.encoded) + offset)
        for s in range(settings):
            if played[s] <= t:
                continue
            own, trace = weights[s], traces[s]
            m = assemble(codes[s], params[s], states[s], buffers[s], outputs)
            grad_sq = inner(m.grad, m.grad) * input_sq
            eta = choose_step(m, grad_sq, input_sq, extra, trace, t)
            if eta < 0.0:
                played[s] = t
            elif eta > 0.0:
                step = -eta / refresh(m.state, eta, grad_sq, own)
                move(m, rows_for(inputs, own, intercept), t, step)
                finish_step(m, eta, grad_sq, False)
