"""One pass over dense weights: the step of one round, and the scores of the next.

The weights of many scores do not fit into L1, and a round that reads them for its scores and again
for its step waits for them twice. So a step is delayed until the next input is known, and taken in
the pass that computes its scores. Two or three rows of weights at a time share the loads of the
inputs. Rows without a step are only read, with the same bits.
"""

from __future__ import annotations

from collections.abc import Callable

from driftline.kernels.backend import cgutils, intrinsic, types
from driftline.kernels.compile import helper
from driftline.kernels.lanes import Lanes, array_of, index, rows_from
from driftline.kernels.memory import CACHE_LINE


def build_pass(rows: int, moving: bool) -> Callable[..., tuple[float, ...]]:
    """Make ``sweep(weights, k, steps, old, new) -> results`` over some rows from row k on.

    For each of them it returns ``weights[k] @ new``, if ``moving`` after ``weights[k] += step
    old``, and as the last result ``new @ new``, which costs next to nothing in the same pass.
    """

    @intrinsic
    def sweep(typing_context, weights, k, steps, old, new):
        result = types.UniTuple(types.float64, rows + 1)

        def generate(context, builder, signature, given):
            number = context.get_value_type(signature.args[0].dtype)
            one = Lanes(builder, number, 1)
            lanes = Lanes(builder, number, 8 * CACHE_LINE // one.bits)
            starts = rows_from(context, builder, signature.args[0], given[0], given[1], rows)
            before, _ = array_of(context, builder, signature.args[3], given[3])
            after, (size,) = array_of(context, builder, signature.args[4], given[4])
            whole = builder.and_(size, index(-lanes.count))
            factors = [one.narrow(builder.extract_value(given[2], row)) for row in range(rows)]

            def add(words, total, a, b):
                builder.store(words.add_product(builder.load(total), a, b), total)

            def run(words, first, stop):
                sums = [cgutils.alloca_once_value(builder, words.zero) for _ in range(rows + 1)]
                spread = [words.spread(factor) for factor in factors]
                step = index(words.count)
                with cgutils.for_range_slice(builder, first, stop, step, step.type) as (j, _):
                    x = words.load(after, j)
                    z = words.load(before, j) if moving else None
                    for row in range(rows):
                        w = words.load(starts[row], j)
                        if moving:
                            w = words.add_product(w, spread[row], z)
                            words.store(w, starts[row], j)
                        add(words, sums[row], w, x)
                    add(words, sums[rows], x, x)
                return [words.total(builder.load(total)) for total in sums]

            most, rest = run(lanes, index(0), whole), run(one, whole, size)
            scores = [builder.fadd(a, b) for a, b in zip(most, rest, strict=True)]
            return context.make_tuple(builder, result, scores)

        return result(weights, types.int64, types.UniTuple(types.float64, rows), old, new), generate

    return sweep


read_one, read_two, read_three = (build_pass(rows, moving=False) for rows in (1, 2, 3))
move_one, move_two, move_three = (build_pass(rows, moving=True) for rows in (1, 2, 3))


@helper
def sweep(weights, steps, old, new, scores):
    """Write ``(weights + steps old') new`` to scores, and leave the sum in the weights.

    Return the squared norm of ``new``.
    """
    outputs, square = weights.shape[0], 0.0
    k = 3 * (outputs % 2) if outputs > 1 else 0
    if k:  # an odd number of rows begins with three
        three = (steps[0], steps[1], steps[2])
        if three[0] != 0.0 or three[1] != 0.0 or three[2] != 0.0:
            scores[0], scores[1], scores[2], square = move_three(weights, 0, three, old, new)
        else:
            scores[0], scores[1], scores[2], square = read_three(weights, 0, three, old, new)
    while k < outputs - 1:
        both = (steps[k], steps[k + 1])
        if both[0] != 0.0 or both[1] != 0.0:
            scores[k], scores[k + 1], square = move_two(weights, k, both, old, new)
        else:
            scores[k], scores[k + 1], square = read_two(weights, k, both, old, new)
        k += 2
    if k < outputs:
        if steps[k] != 0.0:
            scores[k], square = move_one(weights, k, (steps[k],), old, new)
        else:
            scores[k], square = read_one(weights, k, (steps[k],), old, new)
    return square


@intrinsic
def add_to_row(typing_context, weights, k, step, vector):
    """``weights[k] += step * vector``, for weights of either precision."""

    def generate(context, builder, signature, given):
        number = context.get_value_type(signature.args[0].dtype)
        (start,) = rows_from(context, builder, signature.args[0], given[0], given[1], 1)
        moves, (size,) = array_of(context, builder, signature.args[3], given[3])
        most = builder.and_(size, index(-8))
        for count, first, stop in ((8, index(0), most), (1, most, size)):
            lanes, wide = Lanes(builder, number, count), Lanes(builder, given[2].type, count)
            factor, by = wide.spread(given[2]), index(count)
            with cgutils.for_range_slice(builder, first, stop, by, by.type) as (j, _):
                w = lanes.widen(lanes.load(start, j))
                w = wide.add_product(w, factor, wide.load(moves, j))
                lanes.store(lanes.narrow(w), start, j)
        return context.get_dummy_value()

    return types.void(weights, types.int64, types.float64, vector), generate
