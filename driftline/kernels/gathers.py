"""Sums over the features that a sparse row has, for all scores side by side.

So many scores at a time as stay in registers while the row's features pass by: 16, and what is
left over by its binary digits.
"""

from __future__ import annotations

from typing import Any

from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from driftline.kernels.compile import helper
from driftline.kernels.lanes import INDEX, Lanes, array_of, column_at, index


def build_pass(count: int, moving: bool) -> Any:
    """Make a pass over one row's features, for ``count`` scores from score k on.

    It writes ``vector = values @ weights[columns]``; if it moves,
    ``weights[columns] += outer(values, vector)``. Columns must be in range: nothing is checked.
    """

    @intrinsic
    def sweep(typing_context, weights, values, columns, first, stop, k, vector):
        def generate(context, builder, signature, given):
            number = context.get_value_type(signature.args[0].dtype)
            lanes = Lanes(builder, number, count)
            wide = Lanes(builder, context.get_value_type(types.float64), count)
            start, (_, stride) = array_of(context, builder, signature.args[0], given[0])
            inputs, _ = array_of(context, builder, signature.args[1], given[1])
            places, _ = array_of(context, builder, signature.args[2], given[2])
            out, _ = array_of(context, builder, signature.args[6], given[6])
            first, stop, k = given[3:6]
            steps = lanes.narrow(wide.load(out, k)) if moving else None
            total = cgutils.alloca_once_value(builder, lanes.zero)
            with cgutils.for_range_slice(builder, first, stop, index(1), INDEX) as (i, _):
                column = column_at(builder, places, i)
                place = builder.add(builder.mul(column, stride), k)
                x = builder.load(builder.gep(inputs, [i]))
                x = lanes.spread(x if x.type == number else builder.fpext(x, number))
                w = lanes.load(start, place)
                if moving:
                    lanes.store(lanes.add_product(w, x, steps), start, place)
                else:
                    builder.store(lanes.add_product(builder.load(total), x, w), total)
            if not moving:
                wide.store(lanes.widen(builder.load(total)), out, k)
            return context.get_dummy_value()

        whole = types.int64
        return types.void(weights, values, columns, whole, whole, whole, vector), generate

    return sweep


read_16, read_8, read_4, read_2, read_1 = (build_pass(n, moving=False) for n in (16, 8, 4, 2, 1))
move_16, move_8, move_4, move_2, move_1 = (build_pass(n, moving=True) for n in (16, 8, 4, 2, 1))


@helper
def gather(weights, values, columns, first, stop, scores):
    """Write the scores of entries ``first`` to ``stop``."""
    outputs = weights.shape[1]
    k = 0
    while k + 16 <= outputs:
        read_16(weights, values, columns, first, stop, k, scores)
        k += 16
    if outputs & 8:
        read_8(weights, values, columns, first, stop, k, scores)
        k += 8
    if outputs & 4:
        read_4(weights, values, columns, first, stop, k, scores)
        k += 4
    if outputs & 2:
        read_2(weights, values, columns, first, stop, k, scores)
        k += 2
    if outputs & 1:
        read_1(weights, values, columns, first, stop, k, scores)


@helper
def scatter(weights, values, columns, first, stop, steps):
    """Add every score's step times the entries ``first`` to ``stop`` to the weights."""
    outputs = weights.shape[1]
    k = 0
    while k + 16 <= outputs:
        move_16(weights, values, columns, first, stop, k, steps)
        k += 16
    if outputs & 8:
        move_8(weights, values, columns, first, stop, k, steps)
        k += 8
    if outputs & 4:
        move_4(weights, values, columns, first, stop, k, steps)
        k += 4
    if outputs & 2:
        move_2(weights, values, columns, first, stop, k, steps)
        k += 2
    if outputs & 1:
        move_1(weights, values, columns, first, stop, k, steps)
