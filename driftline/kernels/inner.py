"""Inner products that are summed in one order, whatever the compiler makes of the loop around them.

There are eight sums, of entries whose places leave the same remainder, which are added up in
halves; what is left at the end has a sum of its own. Numbers of one learner lie side by side, and
are loaded eight at a time. Those of eight learners are packs: their lanes are summed in the same
order, so that they have the same bits.
"""

from __future__ import annotations

from driftline.kernels.backend import cgutils, intrinsic, ir, twin, types
from driftline.kernels.compile import helper
from driftline.kernels.lanes import DOUBLE, Lanes, array_of, index
from driftline.kernels.pack_type import LANES
from driftline.kernels.packs import alike

__all__ = ["inner", "inner_of_packs", "square_of"]


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


@intrinsic
def square_of(typing_context, x):
    """``x @ x`` with the bits of passes over weights, for vectors of either precision."""
    return types.float64(x), _sum_products


@intrinsic
def add_product(typing_context, total, a, b):
    """``total + a * b`` for packs, rounded once where the machine can."""

    def generate(context, builder, signature, given):
        return Lanes(builder, DOUBLE, LANES).add_product(*given)

    return total(total, total, total), generate


@helper
def inner_of_packs(a, b):
    """Return ``a @ b`` for two vectors of packs, in every lane."""
    most = rest = zero = alike(0.0, a[0])
    whole = a.size - a.size % 8
    if whole > 0:
        s0, s1, s2, s3, s4, s5, s6, s7 = zero, zero, zero, zero, zero, zero, zero, zero
        for i in range(0, whole, 8):
            s0 = add_product(s0, a[i], b[i])
            s1 = add_product(s1, a[i + 1], b[i + 1])
            s2 = add_product(s2, a[i + 2], b[i + 2])
            s3 = add_product(s3, a[i + 3], b[i + 3])
            s4 = add_product(s4, a[i + 4], b[i + 4])
            s5 = add_product(s5, a[i + 5], b[i + 5])
            s6 = add_product(s6, a[i + 6], b[i + 6])
            s7 = add_product(s7, a[i + 7], b[i + 7])
        most = ((s0 + s4) + (s2 + s6)) + ((s1 + s5) + (s3 + s7))
    for i in range(whole, a.size):
        rest = add_product(rest, a[i], b[i])
    return most + rest
