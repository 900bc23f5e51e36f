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
from driftline.kernels.backend import cgutils, intrinsic, types
from driftline.kernels.calls import call_decode, call_draw, call_encode, call_loss
from driftline.kernels.compile import Kernel, helper, kernel
from driftline.kernels.inner import inner
from driftline.kernels.lanes import index
from driftline.kernels.prefetch import prefetch_row
from driftline.kernels.round import FARTHEST_SQ, Machine, choose_step, finish_step, refresh
from driftline.kernels.signatures import SETTINGS, SETTINGS_SINGLE
from driftline.kernels.sweeps import sweep


@intrinsic
def part(typing_context, vector, start, size):
    """``vector[start:start + size]`` for bounds that are known to be good: nothing is clamped."""

    def generate(context, builder, signature, given):
        kind = signature.args[0]
        whole = context.make_array(kind)(context, builder, given[0])
        made, itemsize = context.make_array(kind)(context, builder), index(kind.dtype.bitwidth // 8)
        made.data = builder.gep(whole.data, [given[1]])
        made.meminfo = cgutils.get_null_value(made.meminfo.type)
        made.parent = cgutils.get_null_value(made.parent.type)
        made.nitems, made.itemsize = given[2], itemsize
        made.shape = cgutils.pack_array(builder, [given[2]])
        made.strides = cgutils.pack_array(builder, [itemsize])
        return made._getvalue()

    return vector(vector, types.int64, types.int64), generate


@helper
def place(code, params, state, buffer, target):
    """Do what ``assemble`` does, in a fraction of the time; the encoded label is given."""
    d = code[at.OUTPUTS]
    work = 6 * d + code[at.WORK]
    scratch = work + code[at.SCRATCH]
    memory = code[at.RATE_MEMORY]
    return Machine(
        code,
        part(params, 0, code[at.TASK_END]),
        part(params, code[at.TASK_END], code[at.LOSS_END] - code[at.TASK_END]),
        part(params, code[at.LOSS_END], code[at.DECODER_END] - code[at.LOSS_END]),
        part(params, code[at.DECODER_END], code[at.RATE_END] - code[at.DECODER_END]),
        part(params, code[at.RATE_END], 0),
        state,
        part(state, at.MEMORY, memory),
        part(state, at.MEMORY + memory, 0),
        part(buffer, 0, d),
        target,
        part(buffer, 2 * d, d),
        part(buffer, 3 * d, d),
        part(buffer, 4 * d, d),
        part(buffer, 5 * d, d),
        part(buffer, 6 * d, code[at.WORK]),
        part(buffer, work, code[at.SCRATCH]),
        part(buffer, scratch, memory),
    )


@kernel(SETTINGS)
def play_settings(
    codes, params, inputs, labels, extras, weights, states, buffers, traces, predictions, played
):
    """Play every setting until it refuses a round; ``played`` is how many rounds each accepted.

    All are of one task, have an intercept or none, and no sample weights. A step is delayed until
    the next row's scores are computed, as in the loop of one learner.
    """
    rounds, features = inputs.shape
    settings, outputs = weights.shape[:2]
    intercept = codes[0, at.INTERCEPT]
    target = part(buffers[0], outputs, outputs)
    for s in range(settings):
        played[s] = rounds
        for k in range(outputs):
            buffers[s, 5 * outputs + k] = 0.0
    for t in range(rounds):
        if t + 1 < rounds:
            prefetch_row(inputs, t + 1)
        x, last, extra = inputs[t], inputs[max(t - 1, 0)], extras[t]
        task = part(params[0], 0, codes[0, at.TASK_END])
        offset = call_encode(codes[0, at.ENCODE], (labels[t], task, target))
        input_sq = 0.0
        for s in range(settings):
            own = weights[s]
            theta = part(buffers[s], 0, outputs)
            steps = part(buffers[s], 5 * outputs, outputs)
            input_sq = sweep(own, steps, last, x, theta) + intercept
            scale = states[s, at.SCALE]
            for k in range(outputs):
                if intercept:
                    theta[k] += own[k, features]
                theta[k] *= scale
                steps[k] = 0.0
        if not input_sq < FARTHEST_SQ:
            for s in range(settings):
                played[s] = min(played[s], t)
            break
        for s in range(settings):
            m = place(codes[s], params[s], states[s], buffers[s], target)
            loss = call_loss(m.code[at.LOSS], (m.theta, target, m.loss, m.work, m.grad))
            traces[s, at.LOSS_ROW, t] = loss
            if not np.isfinite(loss):
                played[s] = min(played[s], t)
        for s in range(settings):
            m = place(codes[s], params[s], states[s], buffers[s], target)
            given = (m.theta, target, offset, m.decoder, m.work, m.code[at.VALUES], m.loss)
            more = (m.code[at.MIX], m.scratch, m.mean)
            traces[s, at.RISK_ROW, t] = call_decode(m.code[at.DECODE], given + more)
        for s in range(settings):
            m = place(codes[s], params[s], states[s], buffers[s], target)
            drawn = (m.mean, m.task, extra, m.scratch, predictions[s], m.encoded)
            call_draw(m.code[at.DRAW], drawn)
            traces[s, at.TARGET_ROW, t] = max(0.0, inner(target, m.encoded) + offset)
        for s in range(settings):
            if played[s] <= t:
                continue
            own, trace = weights[s], traces[s]
            m = place(codes[s], params[s], states[s], buffers[s], target)
            eta = choose_step(m, inner(m.grad, m.grad) * input_sq, input_sq, extra, trace, t)
            if eta < 0.0:
                played[s] = t
            elif eta > 0.0:
                step = -eta / refresh(m.state, eta, trace[at.GRAD_ROW, t], own)
                for k in range(outputs):
                    m.steps[k] = step * m.grad[k]
                    if intercept:
                        own[k, features] += m.steps[k]
                finish_step(m, eta, trace[at.GRAD_ROW, t], False)


play_settings_single = Kernel(play_settings.function, SETTINGS_SINGLE)
