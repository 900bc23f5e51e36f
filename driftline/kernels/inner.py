"""Inner products that are summed in one order, whatever the compiler makes of the loop around them.

There are eight sums, of entries whose places leave the same remainder, which are added up in
halves; what is left at the end has a sum of its own. Numbers are loaded eight at a time.
"""

from __future__ import annotations

from driftline.kernels.backend import cgutils, intrinsic, ir, twin, types
from driftline.kernels.lanes import DOUBLE, Lanes, array_of, index

__all__ = ["inner"]


def _sum_products(context, builder, signature, given):
    """Return the sum of products of two vectors as a double."""
    number = context.get_value_type(signature.args[0].dtype)
    one = Lanes(builder, number, 1)
    lanes = Lanes(builder, number, 512 // one.bits)
    first, (size,) = array_of(context, builder, signature.args[0], given[0])
    other, _ = array_of(context, builder, signature.args[-1], given[-1])
    whole = builder.and_(size, index(-lanes.count))

    def run(words, start, stop):
        total = cgutils.alloca_once_value(builder, words.zero)
        step = index(words.count)
        with cgutils.for_range_slice(builder, start, stop, step, step.type) as (j, _):
            more = words.add_product(
                builder.load(total), words.load(first, j), words.load(other, j)
            )
            builder.store(more, total)
        return words.total(builder.load(total))

    most = cgutils.alloca_once_value(builder, ir.Constant(DOUBLE, 0.0))
    with builder.if_then(builder.icmp_signed(">", whole, index(0))):
        builder.store(run(lanes, index(0), whole), most)
    rest = run(one, whole, size)
    return builder.fadd(builder.load(most), rest)


@intrinsic
def products(typing_context, a, b):
    """Sum products."""
    return types.float64(a, b), _sum_products


@twin(products)
def inner(a, b):
    """Return ``a @ b`` for two vectors of doubles."""
    return float(a @ b)
