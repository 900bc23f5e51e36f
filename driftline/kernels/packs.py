"""What kernels need that are written once for plain numbers and for packs of eight.

A kernel without branches on numbers, with :func:`where` instead, can be compiled for packs: numbers
of eight learners that are computed with as if they were one. Each lane of a pack rounds as a plain
number does, so that a learner has the same bits in a pack as alone.
"""

from __future__ import annotations

import math
import struct

from driftline.kernels.backend import cgutils, intrinsic, ir, twin, types
from driftline.kernels.lanes import DOUBLE, INDEX
from driftline.kernels.pack_type import LANES, MASK, PACK, PACKS, repeated

__all__ = ["SHIFT", "alike", "any_of", "exponent_of", "mantissa_of", "pack_view", "power_of_two"]
__all__ += ["where"]

#: Added to a whole number of less than 2^51, it moves the number to the last bits of the sum.
SHIFT = 1.5 * 2.0**52

#: What is added to the bits of a number so that its exponent grows from the root of 2 on.
FROM_ROOT = 0x3FF0000000000000 - 0x3FE6A09E00000000


@intrinsic
def select(typing_context, condition, one, other):
    """Select by a bit, or by a mask."""
    result = PACK if condition == MASK else types.float64
    kind = MASK if condition == MASK else types.boolean

    def generate(context, builder, signature, given):
        return builder.select(*given)

    return result(kind, result, result), generate


@twin(select)
def where(condition, one, other):
    """``one if condition else other``, of numbers or in every lane, and without a branch."""
    return one if condition else other


@intrinsic
def converted(typing_context, number, model):
    """Convert a number."""
    result = PACK if model == PACK else types.float64

    def generate(context, builder, signature, given):
        return given[0]

    return result(result, model), generate


@twin(converted)
def alike(number, model):
    """Return a number, as a pack if the model is one."""
    return number


@intrinsic
def any_lane(typing_context, condition):
    """Compare the bits of a mask with 0."""

    def generate(context, builder, signature, given):
        if signature.args[0] != MASK:
            return given[0]
        number = ir.IntType(LANES)
        return builder.icmp_unsigned("!=", builder.bitcast(given[0], number), number(0))

    return types.boolean(condition), generate


@twin(any_lane)
def any_of(condition):
    """Say whether a condition holds, in some lane if packs were compared."""
    return condition


def _bits(kind):
    """Return the types of numbers, or packs, and of their bits; and a maker of constants."""
    if kind != PACK:
        return DOUBLE, INDEX, INDEX
    whole = ir.VectorType(INDEX, LANES)
    return ir.VectorType(DOUBLE, LANES), whole, lambda value: ir.Constant(whole, [value] * LANES)


@intrinsic
def shifted_power(typing_context, shifted):
    """Put the last bits of a number into the exponent of another."""

    def generate(context, builder, signature, given):
        numbers, bits, constant = _bits(signature.args[0])
        exponents = builder.add(builder.bitcast(given[0], bits), constant(1023))
        return builder.bitcast(builder.shl(exponents, constant(52)), numbers)

    return shifted(shifted), generate


@twin(shifted_power)
def power_of_two(shifted):
    """``2 ** k`` for the sum of k and :data:`SHIFT`, with k from -1022 to 1023; else anything."""
    k = shifted - SHIFT
    return math.ldexp(1.0, int(k)) if -1023.0 < k < 1024.0 else 0.0


@intrinsic
def exponent(typing_context, number):
    """Move the exponent to the last bits of a number, and take away what else that has."""

    def generate(context, builder, signature, given):
        numbers, bits, constant = _bits(signature.args[0])
        exponents = builder.add(builder.bitcast(given[0], bits), constant(FROM_ROOT))
        exponents = builder.lshr(exponents, constant(52))
        exponents = builder.or_(exponents, constant(0x433 << 52))  # 2^52 plus the exponent
        less = ir.Constant(DOUBLE, 2.0**52 + 1023.0)
        less = repeated(builder, less) if signature.args[0] == PACK else less
        return builder.fsub(builder.bitcast(exponents, numbers), less)

    return number(number), generate


@twin(exponent)
def exponent_of(number):
    """Return k such that ``2 ** -k`` times a number above 0 lies between the roots of 1/2 and 2."""
    bits = struct.unpack("<q", struct.pack("<d", number))[0]
    return float(((bits + FROM_ROOT) >> 52) - 1023)


@intrinsic
def mantissa(typing_context, number):
    """Take the exponent from the bits of a number."""

    def generate(context, builder, signature, given):
        numbers, bits, constant = _bits(signature.args[0])
        given = builder.bitcast(given[0], bits)
        power = builder.and_(builder.add(given, constant(FROM_ROOT)), constant(0x7FF << 52))
        less = builder.sub(power, constant(0x3FF << 52))
        return builder.bitcast(builder.sub(given, less), numbers)

    return number(number), generate


@twin(mantissa)
def mantissa_of(number):
    """Return ``2 ** -k`` times the number, with k of :func:`exponent_of`."""
    return math.ldexp(number, -int(exponent_of(number)))


@intrinsic
def pack_view(typing_context, numbers, start, size):
    """Return ``size`` packs of a contiguous array, from pack ``start`` on."""

    def generate(context, builder, signature, given):
        whole = context.make_array(signature.args[0])(context, builder, given[0])
        made, itemsize = context.make_array(PACKS)(context, builder), ir.Constant(INDEX, 8 * LANES)
        data = builder.bitcast(whole.data, ir.VectorType(DOUBLE, LANES).as_pointer())
        made.data = builder.gep(data, [given[1]])
        made.meminfo = cgutils.get_null_value(made.meminfo.type)
        made.parent = cgutils.get_null_value(made.parent.type)
        made.nitems, made.itemsize = given[2], itemsize
        made.shape = cgutils.pack_array(builder, [given[2]])
        made.strides = cgutils.pack_array(builder, [itemsize])
        return made._getvalue()

    return PACKS(numbers, types.int64, types.int64), generate
