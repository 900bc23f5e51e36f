"""One round between the scores and the update, and the bookkeeping of a step.

This is what all kinds of rows share: see :mod:`driftline.kernels.loop` for the order of the calls.
"""

from __future__ import annotations

from collections import namedtuple

import numpy as np

from driftline.kernels import program as at
from driftline.kernels.calls import (
    call_decode,
    call_detect,
    call_draw,
    call_encode,
    call_loss,
    call_rate,
)
from driftline.kernels.compile import helper
from driftline.kernels.inner import inner
from driftline.kernels.linalg import make_smaller, scaled_square
from driftline.kernels.part import part

#: Squared gradients below this count as zero: the round makes no step.
TINY = 1e-150

#: Inputs and steps whose squared norm is not below this are refused: with it, squares, their sums
#: and the scale of the weights stay far from overflow, whatever came before.
FARTHEST_SQ = 1e280

#: A gap below this share of the loss is lost in rounding.
ROUNDED = 1e-10

#: By which factor the limit of steps after a heavy round grows with every round.
RELAXED = 1.003

#: A step that is refused; the rate's memory is as it was before.
REFUSED = -1.0

#: The most often that the scale is changed in one round: in single precision ten times suffice to
#: cross all of its range.
MOST_MOVES = 16

#: The stored weights are made smaller before their norm passes this: in double precision, and in
#: single, where they still have to meet inputs.
LARGEST, LARGEST_SINGLE = 2.0**400, 2.0**60

Machine = namedtuple(
    "Machine",
    "code task loss decoder rate detector state memory seen theta target grad mean encoded steps "
    "work scratch undo",
)


@helper
def assemble(code, params, state, buffer, size):
    """Give names to the parts of a program's parameters and buffers, for ``size`` scores.

    A loop may have room of its own behind them in the buffer.
    """
    d, memory = code[at.OUTPUTS], code[at.RATE_MEMORY]
    work = 6 * d + code[at.WORK]
    scratch = work + code[at.SCRATCH]
    return Machine(
        code,
        part(params, 0, code[at.TASK_END]),
        part(params, code[at.TASK_END], code[at.LOSS_END] - code[at.TASK_END]),
        part(params, code[at.LOSS_END], code[at.DECODER_END] - code[at.LOSS_END]),
        part(params, code[at.DECODER_END], code[at.RATE_END] - code[at.DECODER_END]),
        part(params, code[at.RATE_END], code[at.DETECTOR_END] - code[at.RATE_END]),
        state,
        part(state, at.MEMORY, memory),
        part(state, at.MEMORY + memory, state.size - at.MEMORY - memory),
        part(buffer, 0, size),
        part(buffer, d, size),
        part(buffer, 2 * d, size),
        part(buffer, 3 * d, size),
        part(buffer, 4 * d, size),
        part(buffer, 5 * d, size),
        part(buffer, 6 * d, code[at.WORK]),
        part(buffer, work, code[at.SCRATCH]),
        part(buffer, scratch, memory),
    )


@helper
def weight_of(extras):
    """Return the sample weight of a round, which stands behind its uniform number if not 1."""
    return extras[1] if extras.size > 1 else 1.0


@helper
def asks(extras):
    """Say whether a round is predicted only, and not learned from."""
    return extras.size > 2 and extras[2] > 0.0


@helper
def play_round(m, label, extras, trace, t, prediction):
    """Predict, see the label, pay; return whether all numbers were finite.

    A round of weight h has h times the loss, with its gradient, and h times the target loss.
    """
    code = m.code
    offset = call_encode(code[at.ENCODE], (label, m.task, m.target))
    loss = call_loss(code[at.LOSS], (m.theta, m.target, m.loss, m.work, m.grad))
    if not np.isfinite(loss):
        return False
    if code[at.GAP] >= 0:
        trace[at.GAP_ROW, t] = weight_of(extras) * m.work[code[at.GAP]]
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
    call_draw(code[at.DRAW], (m.mean, m.task, extras[:1], m.scratch, prediction, m.encoded))
    target = max(0.0, inner(m.target, m.encoded) + offset)
    if extras.size > 1:
        weight = weight_of(extras)
        loss, risk, target = weight * loss, weight * risk, weight * target
        for k in range(m.grad.size):
            m.grad[k] *= weight
        if not np.isfinite(loss):
            return False
    trace[at.LOSS_ROW, t] = loss
    trace[at.RISK_ROW, t] = risk
    trace[at.TARGET_ROW, t] = target
    if code[at.LOOK]:
        for k in range(min(m.mean.size, trace.shape[0] - at.MEANS)):
            trace[at.MEANS + k, t] = m.mean[k]
    return True


@helper
def write_scores(m, trace, t):
    """Write the scores of a round, as far as the trace has rows for them."""
    first = at.MEANS + m.code[at.OUTPUTS] if m.code[at.LOOK] else at.SCORES
    for k in range(min(m.theta.size, trace.shape[0] - first)):
        trace[first + k, t] = m.theta[k]


@helper
def choose_step(m, grad_sq, input_sq, extras, trace, t):
    """Return the step for a gradient in the weights of this squared norm: 0 for none.

    A round of weight h has the floor of one whose squared input is h times as large: from here on
    that is its input. If h is above 1, its step is not to overshoot: beyond the end of its
    admissible range, twice the gap over the squared gradient, it is as long as with weight 1. Steps
    after it are not larger, lest lighter rounds undo it, unless that gap was lost in rounding; the
    limit grows by :data:`RELAXED` a round, so that one heavy round does not end all learning. Steps
    in units of the loss, in which h cancels, are multiplied by h, and do not limit later ones. A
    step that would be too long is :data:`REFUSED`, and nothing has changed.
    """
    eta, most = 0.0, m.state[at.MOST_ETA]
    if weight_of(extras) > 0.0:
        most *= RELAXED
    input_sq *= weight_of(extras)
    if not grad_sq < FARTHEST_SQ:
        return REFUSED
    if grad_sq > TINY:
        for i in range(m.memory.size):
            m.undo[i] = m.memory[i]
        eta = call_rate(
            m.code[at.RATE],
            (
                trace[at.LOSS_ROW, t],
                trace[at.RISK_ROW, t],
                grad_sq,
                input_sq,
                m.state[at.ETA],
                m.rate,
                m.memory,
            ),
        )
    if m.code[at.RELATIVE]:
        eta *= weight_of(extras)
    if eta > 0.0 and weight_of(extras) > 1.0:
        gap = trace[at.LOSS_ROW, t] - trace[at.RISK_ROW, t]
        eta = min(eta, max(2.0 * gap / grad_sq, eta / weight_of(extras)))
        if gap > ROUNDED * trace[at.LOSS_ROW, t] and not m.code[at.RELATIVE]:
            most = min(most, eta)
    eta = min(eta, most)
    if m.code[at.REPLAY]:
        trace[at.OWN_ETA_ROW, t] = eta
        eta = trace[at.ETA_ROW, t] if eta > 0.0 else 0.0
    if eta > 0.0 and not m.state[at.NORM_SQ] + eta * eta * grad_sq < FARTHEST_SQ:
        for i in range(m.memory.size):
            m.memory[i] = m.undo[i]
        return REFUSED
    if eta > 0.0:
        m.state[at.ETA] = eta
    m.state[at.MOST_ETA] = most
    m.state[at.ROUNDS] += 1.0
    m.state[at.LARGEST_INPUT_SQ] = max(m.state[at.LARGEST_INPUT_SQ], input_sq)
    trace[at.ETA_ROW, t] = m.state[at.ETA]
    trace[at.GRAD_ROW, t] = grad_sq
    return eta


@helper
def alarmed(m, extras, trace, t):
    """Tell the detector of the round; say whether it gives an alarm, and remember it.

    The first of its parameters is the largest target loss. It sees losses without their sample
    weights, and no rounds of weight 0.
    """
    largest = m.detector[0] * weight_of(extras) if m.code[at.DETECT] != 0 else 0.0
    if largest == 0.0:
        return False
    share = min(1.0, max(0.0, trace[at.RISK_ROW, t] / largest))
    given = call_detect(m.code[at.DETECT], (share, m.detector[1:], m.seen))
    if m.code[at.REPLAY]:
        trace[at.OWN_ALARM_ROW, t] = 1.0 if given else 0.0
        return False
    if not given:
        return False
    m.state[at.ALARM] = at.GIVEN
    return True


@helper
def watch(m, extras, trace, t):
    """Record the loss at a comparator's scores, which are in ``encoded``."""
    work = (m.encoded, m.target, m.loss, m.work, m.mean)
    trace[at.THEIR_LOSS_ROW, t] = weight_of(extras) * call_loss(m.code[at.LOSS], work)
    if m.code[at.GAP] >= 0:
        trace[at.THEIR_GAP_ROW, t] = weight_of(extras) * m.work[m.code[at.GAP]]
    trace[at.INNER_ROW, t] = m.state[at.INNER]
    trace[at.NORM_ROW, t] = m.state[at.NORM_SQ]


@helper
def refresh(state, eta, grad_sq, weights):
    """Prepare the weights for a step, and return their scale.

    Every max(4096, n) rounds, with n weights, their squared norm is computed anew. Where
    projections have made the scale so small that the stored step would be too large, a power of two
    is moved from the array to the scale, which changes no digit; entries that are negligible beside
    the rest are set to 0. Both are passes over all weights, so they must be rare where rows are
    sparse.
    """
    if state[at.ROUNDS] >= state[at.REFRESH]:
        state[at.REFRESH] = state[at.ROUNDS] + max(4096, weights.size)
        state[at.NORM_SQ] = 0.0
        for i in range(weights.shape[0]):
            state[at.NORM_SQ] += scaled_square(weights[i], state[at.SCALE])
    largest = LARGEST if weights.itemsize == 8 else LARGEST_SINGLE
    length_sq = state[at.NORM_SQ] + eta * eta * grad_sq
    for _ in range(MOST_MOVES):
        if not length_sq > (largest * state[at.SCALE]) ** 2:
            break
        for i in range(weights.shape[0]):
            make_smaller(weights[i], largest**-2)
        state[at.SCALE] *= largest**2
    return state[at.SCALE]


@helper
def finish_step(m, eta, grad_sq, watched):
    """Project after a step of size ``eta`` in O(1): the weights are a scale times an array.

    The squared norm follows from quantities at hand,
    ``|W - eta g x'|^2 = |W|^2 - 2 eta <g, theta> + eta^2 |g|^2 |x|^2``; so does, if the round is
    watched, the inner product with a comparator, whose scores are in ``encoded``.
    """
    state = m.state
    if watched:
        state[at.INNER] -= eta * inner(m.grad, m.encoded)
    moved = eta * eta * grad_sq - 2.0 * eta * inner(m.grad, m.theta)
    state[at.NORM_SQ] = max(0.0, state[at.NORM_SQ] + moved)
    if state[at.NORM_SQ] > state[at.RADIUS] ** 2:
        shrink = state[at.RADIUS] / np.sqrt(state[at.NORM_SQ])
        state[at.SCALE] *= shrink
        state[at.INNER] *= shrink
        state[at.NORM_SQ] = state[at.RADIUS] ** 2
