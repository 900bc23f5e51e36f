"""Sums over the features that a sparse row has, for all scores side by side.

Scores are taken 16 at a time, which fit into registers while the pass goes over the row's features;
the rest in blocks of 8, 4, 2 and 1.
"""

from __future__ import annotations

from collections.abc import Callable

from driftline.kernels.backend import cgutils, intrinsic, types
from driftline.kernels.compile import helper
from driftline.kernels.lanes import INDEX, Lanes, array_of, column_below, index


def build_pass(count: int, moving: bool) -> Callable[..., None]:
    """Make a pass over one row's features, for ``count`` scores from score k on.

    It writes ``vector = values @ weights[columns]``; if it moves,
    ``weights[columns] += outer(values, vector)``. A column that is out of range counts as 0.
    """

    @intrinsic
    def sweep(typing_context, weights, values, columns, first, stop, k, vector):
        def generate(context, builder, signature, given):
            number = context.get_value_type(signature.args[0].dtype)
            lanes = Lanes(builder, number, count)
            wide = Lanes(builder, context.get_value_type(types.float64), count)
            start, (limit, stride) = array_of(context, builder, signature.args[0], given[0])
            inputs, _ = array_of(context, builder, signature.args[1], given[1])
            places, _ = array_of(context, builder, signature.args[2], given[2])
            out, _ = array_of(context, builder, signature.args[6], given[6])
            first, stop, k = given[3:6]
            steps = lanes.narrow(wide.load(out, k)) if moving else None
            total = cgutils.alloca_once_value(builder, lanes.zero)
            with cgutils.for_range_slice(builder, first, stop, index(1), INDEX) as (i, _):
                column = column_below(builder, places, i, limit)
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


def build_passes(moving: bool) -> Callable[..., None]:
    """Make ``passes(weights, values, columns, first, stop, vector)``, for all scores."""
    sixteen, eight, four, two, one = (build_pass(n, moving) for n in (16, 8, 4, 2, 1))

    @helper
    def passes(weights, values, columns, first, stop, vector):
        outputs = weights.shape[1]
        k = 0
        while k + 16 <= outputs:
            sixteen(weights, values, columns, first, stop, k, vector)
            k += 16
        if outputs & 8:
            eight(weights, values, columns, first, stop, k, vector)
            k += 8
        if outputs & 4:
            four(weights, values, columns, first, stop, k, vector)
            k += 4
        if outputs & 2:
            two(weights, values, columns, first, stop, k, vector)
            k += 2
        if outputs & 1:
            one(weights, values, columns, first, stop, k, vector)

    return passes


#: Write the scores of entries ``first`` to ``stop``; add steps times these entries to the weights.
gather, scatter = build_passes(moving=False), build_passes(moving=True)
