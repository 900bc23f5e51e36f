"""One round between the scores and the update, and the bookkeeping of a step.

This is what all model kinds share. A model's loop computes the scores, calls
:func:`play_round` and :func:`choose_step`, moves its weights, and calls :func:`settle`.
"""

from __future__ import annotations

from collections import namedtuple

import numpy as np

from driftline.kernels import program as at
from driftline.kernels.calls import (
    call_decode,
    call_draw,
    call_encode,
    call_loss,
    call_rate,
)
from driftline.kernels.compile import helper
from driftline.kernels.linalg import dot

#: Squared gradients below this count as zero: the round makes no step.
TINY = 1e-150

#: The stored weights are rescaled before their common factor leaves this range.
SMALLEST_SCALE = 1e-100

Machine = namedtuple(
    "Machine",
    "code task loss decoder rate state memory theta target grad mean encoded work scratch",
)


@helper
def assemble(code, params, state, buffer, size):
    """Give names to the slices of a program's parameters and buffers, for ``size`` scores."""
    d = code[at.OUTPUTS]
    work = 5 * d + code[at.WORK]
    return Machine(
        code,
        params[: code[at.TASK_END]],
        params[code[at.TASK_END] : code[at.LOSS_END]],
        params[code[at.LOSS_END] : code[at.DECODER_END]],
        params[code[at.DECODER_END] : code[at.RATE_END]],
        state,
        state[at.MEMORY :],
        buffer[:size],
        buffer[d : d + size],
        buffer[2 * d : 2 * d + size],
        buffer[3 * d : 3 * d + size],
        buffer[4 * d : 4 * d + size],
        buffer[5 * d : work],
        buffer[work : work + code[at.SCRATCH]],
    )


@helper
def play_round(m, label, uniforms, trace, t, prediction):
    """Predict, see the label, pay; say whether all numbers were finite."""
    code = m.code
    offset = call_encode(code[at.ENCODE], (label, m.task, m.target))
    loss = call_loss(code[at.LOSS], (m.theta, m.target, m.loss, m.work, m.grad))
    if not np.isfinite(loss):
        return False
    risk = call_decode(
        code[at.DECODE],
        (
            m.theta,
            m.target,
            offset,
            m.decoder,
            m.work,
            code[at.VALUES],
            m.loss,
            code[at.MIX],
            m.scratch,
            m.mean,
        ),
    )
    call_draw(code[at.DRAW], (m.mean, m.task, uniforms, m.scratch, prediction, m.encoded))
    trace[0, t] = loss
    trace[1, t] = risk
    trace[2, t] = max(0.0, dot(m.target, m.encoded) + offset)
    return True


@helper
def choose_step(m, grad_sq, input_sq, trace, t):
    """Return the step for a gradient in the weights of this squared norm: 0 for none."""
    eta = 0.0
    if grad_sq > TINY:
        eta = call_rate(
            m.code[at.RATE],
            (trace[0, t], trace[1, t], grad_sq, input_sq, m.state[at.ETA], m.rate, m.memory),
        )
        if eta > 0.0 and m.code[at.REPLAY]:
            eta = trace[3, t]
    if eta > 0.0:
        m.state[at.ETA] = eta
    m.state[at.ROUNDS] += 1.0
    m.state[at.LARGEST_INPUT_SQ] = max(m.state[at.LARGEST_INPUT_SQ], input_sq)
    trace[3, t] = m.state[at.ETA]
    trace[4, t] = grad_sq
    return eta


@helper
def watch(m, trace, t):
    """Write down the loss at a comparator's scores, which stand in ``encoded``."""
    work = (m.encoded, m.target, m.loss, m.work, m.mean)
    trace[5, t] = call_loss(m.code[at.LOSS], work)
    trace[6, t] = m.state[at.INNER]
    trace[7, t] = m.state[at.NORM_SQ]


@helper
def settle(m, eta, grad_sq, weights):
    """Project after a step of size ``eta`` in O(1): the weights are a scale times an array.

    The squared norm follows from quantities at hand,
    ``|W - eta g x'|^2 = |W|^2 - 2 eta <g, theta> + eta^2 |g|^2 |x|^2``,
    and is computed afresh once in as many rounds as there are weights.
    """
    state = m.state
    moved = eta * eta * grad_sq - 2.0 * eta * dot(m.grad, m.theta)
    state[at.NORM_SQ] = max(0.0, state[at.NORM_SQ] + moved)
    if state[at.ROUNDS] >= state[at.REFRESH] or state[at.SCALE] < SMALLEST_SCALE:
        state[at.REFRESH] = state[at.ROUNDS] + max(4096, weights.size)
        norm_sq = 0.0
        for i in range(weights.shape[0]):
            for j in range(weights.shape[1]):
                weights[i, j] *= state[at.SCALE]
            norm_sq += dot(weights[i], weights[i])
        state[at.SCALE] = 1.0
        state[at.NORM_SQ] = norm_sq
    if state[at.NORM_SQ] > state[at.RADIUS] ** 2:
        shrink = state[at.RADIUS] / np.sqrt(state[at.NORM_SQ])
        state[at.SCALE] *= shrink
        state[at.INNER] *= shrink
        state[at.NORM_SQ] = state[at.RADIUS] ** 2
