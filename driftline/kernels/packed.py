"""The loop over dense rows for eight settings of a learner at once.

Every setting makes the rounds of :mod:`driftline.kernels.dense`, with the same bits. The numbers of
a round are packs of eight, one of each setting: scores, losses, predictions, steps. Weights lie as
in the loop of one learner; a pass over those of one score computes it for all eight.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from driftline.kernels import program as at
from driftline.kernels.backend import cgutils, intrinsic, ir, types
from driftline.kernels.calls import (
    call_decode_of_packs,
    call_draw_of_packs,
    call_encode,
    call_loss_of_packs,
    call_rate_of_packs,
)
from driftline.kernels.compile import Kernel, kernel
from driftline.kernels.inner import inner_of_packs, square_of
from driftline.kernels.lanes import INDEX, Lanes, array_of, index
from driftline.kernels.memory import CACHE_LINE
from driftline.kernels.pack_type import LANES, PACK
from driftline.kernels.packs import any_of, pack_view, where
from driftline.kernels.prefetch import prefetch_row
from driftline.kernels.round import FARTHEST_SQ, LARGEST, LARGEST_SINGLE, TINY, refresh
from driftline.kernels.signatures import PACKED, PACKED_SINGLE

#: How many rounds are recorded as packs before they are written to the columns of the settings.
TILE = 16

#: How many packs the loop needs beside the buffer of a program.
MORE = 3 + 3 * TILE

#: Which lanes of two vectors are added, in three steps, so that in the end every lane has the sum
#: of one of eight vectors; each is summed in halves, as one vector alone is.
LOW = ([0, 1, 2, 3, 8, 9, 10, 11], [0, 1, 8, 9, 4, 5, 12, 13], [0, 8, 2, 10, 4, 12, 6, 14])
HIGH = ([4, 5, 6, 7, 12, 13, 14, 15], [2, 3, 10, 11, 6, 7, 14, 15], [1, 9, 3, 11, 5, 13, 7, 15])


def shuffled(builder, a, b, lanes):
    """Return some lanes of two vectors."""
    mask = ir.Constant(ir.VectorType(ir.IntType(32), len(lanes)), lanes)
    return builder.shuffle_vector(a, b, mask)


def totals(builder, lanes, vectors):
    """Return the sums of eight vectors as the lanes of one, each with the bits of ``total``."""
    vectors = [lanes.widen(vector) for vector in vectors]
    if lanes.count == 2 * LANES:
        halves = [list(range(LANES)), list(range(LANES, 2 * LANES))]
        vectors = [
            builder.fadd(*(shuffled(builder, vector, vector, half) for half in halves))
            for vector in vectors
        ]
    for low, high in zip(LOW, HIGH, strict=True):
        count = len(vectors) // 2
        vectors = [
            builder.fadd(shuffled(builder, a, b, low), shuffled(builder, a, b, high))
            for a, b in zip(vectors[:count], vectors[count:], strict=True)
        ]
    return vectors[0]


def build_pass(moving: bool) -> Callable[..., Any]:
    """Make ``sweep(weights, k, steps, old, new) -> scores`` over row k of eight matrices.

    It returns the pack of ``weights[:, k] @ new``, if ``moving`` after ``weights[:, k] += steps
    old``, with the bits of :mod:`driftline.kernels.sweeps`.
    """

    @intrinsic
    def sweep(typing_context, weights, k, steps, old, new):
        def generate(context, builder, signature, given):
            number = context.get_value_type(signature.args[0].dtype)
            one = Lanes(builder, number, 1)
            lanes = Lanes(builder, number, 8 * CACHE_LINE // one.bits)
            across = Lanes(builder, number, LANES)
            array = context.make_array(signature.args[0])(context, builder, given[0])
            setting, row, _ = cgutils.unpack_tuple(builder, array.strides, 3)
            start = builder.mul(given[1], row)
            places = [builder.add(start, builder.mul(setting, index(s))) for s in range(LANES)]
            rows = [cgutils.pointer_add(builder, array.data, place) for place in places]
            before, _ = array_of(context, builder, signature.args[3], given[3])
            after, (size,) = array_of(context, builder, signature.args[4], given[4])
            whole = builder.and_(size, index(-lanes.count))
            factors = across.narrow(given[2])
            lane = [ir.IntType(32)(s) for s in range(LANES)]
            spread = [lanes.spread(builder.extract_element(factors, place)) for place in lane]
            sums = [cgutils.alloca_once_value(builder, lanes.zero) for _ in rows]
            step = index(lanes.count)
            with cgutils.for_range_slice(builder, index(0), whole, step, INDEX) as (j, _):
                x = lanes.load(after, j)
                z = lanes.load(before, j) if moving else None
                for s in range(LANES):
                    w = lanes.load(rows[s], j)
                    if moving:
                        w = lanes.add_product(w, spread[s], z)
                        lanes.store(w, rows[s], j)
                    builder.store(lanes.add_product(builder.load(sums[s]), w, x), sums[s])
            most = totals(builder, lanes, [builder.load(total) for total in sums])
            rest = cgutils.alloca_once_value(builder, across.zero)
            with cgutils.for_range_slice(builder, whole, size, index(1), INDEX) as (j, _):
                w = ir.Constant(across.type, ir.Undefined)
                for s in range(LANES):
                    w = builder.insert_element(w, one.load(rows[s], j), lane[s])
                if moving:
                    w = across.add_product(w, factors, across.spread(one.load(before, j)))
                    for s in range(LANES):
                        one.store(builder.extract_element(w, lane[s]), rows[s], j)
                x = across.spread(one.load(after, j))
                builder.store(across.add_product(builder.load(rest), w, x), rest)
            return builder.fadd(most, across.widen(builder.load(rest)))

        return PACK(weights, types.int64, PACK, old, new), generate

    return sweep


read_eight, move_eight = build_pass(moving=False), build_pass(moving=True)


@kernel(PACKED)
def play_packed(
    code,
    params,
    inputs,
    labels,
    extras,
    weights,
    states,
    buffer,
    target,
    columns,
    prediction,
    played,
):
    """Play every setting until it refuses a round; ``played`` is how many rounds each accepted.

    All have the same parts, with other parameters, and no sample weights. A step is delayed until
    the next row's scores are computed, as in the loop of one learner.
    """
    rounds, features = inputs.shape
    outputs = code[at.OUTPUTS]
    intercept = code[at.INTERCEPT]
    largest = LARGEST if weights.itemsize == 8 else LARGEST_SINGLE
    task = pack_view(params, 0, code[at.TASK_END])
    loss_params = pack_view(params, code[at.TASK_END], code[at.LOSS_END] - code[at.TASK_END])
    decoder = pack_view(params, code[at.LOSS_END], code[at.DECODER_END] - code[at.LOSS_END])
    rate = pack_view(params, code[at.DECODER_END], code[at.RATE_END] - code[at.DECODER_END])
    state = pack_view(states, 0, at.MEMORY)
    memory = pack_view(states, at.MEMORY, code[at.RATE_MEMORY])
    theta, encoding = pack_view(buffer, 0, outputs), pack_view(buffer, outputs, outputs)
    grad, mean = pack_view(buffer, 2 * outputs, outputs), pack_view(buffer, 3 * outputs, outputs)
    encoded = pack_view(buffer, 4 * outputs, outputs)
    steps = pack_view(buffer, 5 * outputs, outputs)
    work = pack_view(buffer, 6 * outputs, code[at.WORK])
    scratch = pack_view(buffer, 6 * outputs + code[at.WORK], code[at.SCRATCH])
    place = 6 * outputs + code[at.WORK] + code[at.SCRATCH]
    undo = pack_view(buffer, place, code[at.RATE_MEMORY])
    place += code[at.RATE_MEMORY]
    rare, uniform = pack_view(buffer, place, 2), pack_view(buffer, place + 2, 1)
    drawn = pack_view(prediction, 0, prediction.shape[0])
    paper = place + 3
    tile = pack_view(buffer, paper, 3 * TILE)
    lengths = pack_view(played, 0, 1)
    plain_task = target[outputs:]
    for k in range(outputs):
        steps[k] = 0.0
    lengths[0] = rounds
    end = rounds
    for t in range(rounds):
        if t + 1 < rounds:
            prefetch_row(inputs, t + 1)
        x, last = inputs[t], inputs[max(t - 1, 0)]
        input_sq = square_of(x) + intercept
        if not input_sq < FARTHEST_SQ:
            end = t
            break
        offset = call_encode(code[at.ENCODE], (labels[t], plain_task, target[:outputs]))
        scale = state[at.SCALE]
        for k in range(outputs):
            encoding[k] = target[k]
            if any_of(steps[k] != 0.0):
                score = move_eight(weights, k, steps[k], last, x)
            else:
                score = read_eight(weights, k, steps[k], last, x)
            if intercept:
                for s in range(LANES):
                    buffer[4 * outputs, s] = weights[s, k, features]
                score += encoded[0]
            theta[k] = score * scale
            steps[k] = 0.0
        loss = call_loss_of_packs(code[at.LOSS], (theta, encoding, loss_params, work, grad))
        given = (theta, encoding, offset, decoder, work, code[at.VALUES], loss_params)
        risk = call_decode_of_packs(code[at.DECODE], given + (code[at.MIX], scratch, mean))
        uniform[0] = extras[t, 0]
        call_draw_of_packs(code[at.DRAW], (mean, task, uniform, scratch, drawn, encoded))
        paid = inner_of_packs(encoding, encoded) + offset
        row = t % TILE
        tile[row] = where(paid > 0.0, paid, 0.0)
        tile[TILE + row] = risk
        tile[2 * TILE + row] = loss
        if row == TILE - 1 or t == rounds - 1:
            for s in range(LANES):
                for c in range(3):
                    for i in range(row + 1):
                        columns[s, c, t - row + i] = buffer[paper + c * TILE + i, s]

        grad_sq = inner_of_packs(grad, grad) * input_sq
        norm_sq = state[at.NORM_SQ]
        for i in range(memory.size):
            undo[i] = memory[i]
        numbers = (loss, risk, grad_sq, input_sq, state[at.ETA], rate, memory)
        eta = call_rate_of_packs(code[at.RATE], numbers)
        steep = grad_sq > TINY
        eta = where(steep, eta, 0.0)
        for i in range(memory.size):
            memory[i] = where(steep, memory[i], undo[i])
        going = eta > 0.0
        moved = eta * eta * grad_sq
        good = (abs(loss) < math.inf) & (grad_sq < FARTHEST_SQ)
        good = good & (~going | (norm_sq + moved < FARTHEST_SQ))
        if any_of(~good):
            lengths[0] = where(~good & (lengths[0] > t), t, lengths[0])
            if not any_of(lengths[0] > t):
                end = t
                break
        state[at.ETA] = where(going, eta, state[at.ETA])
        state[at.ROUNDS] += 1.0
        if not any_of(going):
            continue
        edge = largest * state[at.SCALE]
        far = ~(state[at.NORM_SQ] + moved <= edge * edge)
        if any_of(going & (far | (state[at.ROUNDS] >= state[at.REFRESH]))):
            rare[0], rare[1] = eta, grad_sq
            for s in range(LANES):
                if buffer[place, s] > 0.0:
                    refresh(states[:, s], buffer[place, s], buffer[place + 1, s], weights[s])
        step = -eta / state[at.SCALE]
        for k in range(outputs):
            steps[k] = where(going, step * grad[k], 0.0)
            if intercept:
                for s in range(LANES):
                    weights[s, k, features] += buffer[5 * outputs + k, s]
        norm_sq = state[at.NORM_SQ] + (moved - 2.0 * eta * inner_of_packs(grad, theta))
        norm_sq = where(norm_sq > 0.0, norm_sq, 0.0)
        radius = state[at.RADIUS]
        far = going & (norm_sq > radius * radius)
        factor = where(far, radius / math.sqrt(norm_sq), 1.0)
        state[at.SCALE] = state[at.SCALE] * factor
        norm_sq = where(far, radius * radius, norm_sq)
        state[at.NORM_SQ] = where(going, norm_sq, state[at.NORM_SQ])
    lengths[0] = where(lengths[0] > end, end, lengths[0])


play_packed_single = Kernel(play_packed.function, PACKED_SINGLE)
