"""Vectors of eight doubles as values of kernels: what is done for few members, labels or sets.

The compiler makes no vectors of loops that are shorter than some of them. Here there is always a
whole number of vectors, and what lies in the last one beyond the end is never read. Operations are
those of eight doubles, a double beside a vector stands for eight, and lanes are added in halves.
Without Numba, vectors are arrays.
"""

from __future__ import annotations

import operator

import numpy as np

from driftline.kernels.backend import (
    COMPILES,
    datamodel,
    intrinsic,
    ir,
    lowering,
    templates,
    twin,
    types,
)
from driftline.kernels.compile import helper
from driftline.kernels.elementary import power
from driftline.kernels.lanes import DOUBLE, Lanes, array_of
from driftline.kernels.products import WIDTH

__all__ = ["LANES", "above", "load", "power_down", "spread", "squares", "store", "total"]

#: As many as :func:`driftline.kernels.products.padded` makes whole.
LANES = WIDTH

#: Where the exponential function is taken to be that of this number.
LEAST_POWER = -700.0

VECTOR = None

if COMPILES:

    class Vector(types.Type):
        """The type of vectors."""

    VECTOR = Vector("vector")

    @datamodel.register_default(Vector)
    class VectorModel(datamodel.PrimitiveModel):
        """A vector is kept in a register."""

        def __init__(self, manager, kind):
            super().__init__(manager, kind, ir.VectorType(DOUBLE, LANES))

    @lowering.lower_cast(types.Float, Vector)
    def spread_number(context, builder, number, kind, value):
        """Let a number stand for a vector."""
        return Lanes(builder, DOUBLE, LANES).spread(value)

    class Operation(templates.AbstractTemplate):
        """What an operation makes of two vectors, or of a number and a vector."""

        def generic(self, given, named):
            """Return its signature, None for others."""
            if VECTOR in given and all(own in (VECTOR, types.float64) for own in given):
                return VECTOR(VECTOR, VECTOR)
            return None

    def operate(name, instruction):
        """Let an operator be an instruction."""
        function = getattr(operator, name)
        templates.infer_global(function)(type(name, (Operation,), {}))
        lowering.lower_builtin(function, Vector, Vector)(
            lambda context, builder, signature, given: getattr(builder, instruction)(*given)
        )

    for pair in (("add", "fadd"), ("sub", "fsub"), ("mul", "fmul"), ("truediv", "fdiv")):
        operate(*pair)


@intrinsic
def spread_lanes(typing_context, number):
    """Spread a number."""
    return VECTOR(VECTOR), lambda context, builder, signature, given: given[0]


@twin(spread_lanes)
def spread(number):
    """Return a vector of this one number."""
    return np.full(LANES, number)


@intrinsic
def load_lanes(typing_context, array, at):
    """Load a vector."""

    def generate(context, builder, signature, given):
        start, _ = array_of(context, builder, signature.args[0], given[0])
        return Lanes(builder, DOUBLE, LANES).load(start, given[1])

    return VECTOR(array, types.int64), generate


@twin(load_lanes)
def load(array, at):
    """Return the numbers from ``array[at]`` on."""
    return array[at : at + LANES].copy()


@intrinsic
def store_lanes(typing_context, vector, array, at):
    """Store a vector."""

    def generate(context, builder, signature, given):
        start, _ = array_of(context, builder, signature.args[1], given[1])
        Lanes(builder, DOUBLE, LANES).store(given[0], start, given[2])
        return context.get_dummy_value()

    return types.void(VECTOR, array, types.int64), generate


@twin(store_lanes)
def store(vector, array, at):
    """Write the numbers from ``array[at]`` on."""
    array[at : at + LANES] = vector


@intrinsic
def select_lanes(typing_context, one, other, then, otherwise):
    """Select lane by lane."""

    def generate(context, builder, signature, given):
        return builder.select(builder.fcmp_ordered(">", *given[:2]), *given[2:])

    return VECTOR(VECTOR, VECTOR, VECTOR, VECTOR), generate


@twin(select_lanes)
def above(one, other, then, otherwise):
    """``then if one > other else otherwise``, lane by lane."""
    return np.where(one > other, then, otherwise)


@intrinsic
def add_lanes(typing_context, vector):
    """Add lanes."""

    def generate(context, builder, signature, given):
        return Lanes(builder, DOUBLE, LANES).total(given[0])

    return types.float64(VECTOR), generate


@twin(add_lanes)
def total(vector):
    """Return the sum over the lanes."""
    while vector.size > 1:
        vector = vector[: vector.size // 2] + vector[vector.size // 2 :]
    return float(vector[0])


@intrinsic
def square_lanes(typing_context, number):
    """Square lanes."""

    def generate(context, builder, signature, given):
        made = given[0]
        for i in range(1, LANES):
            lanes = [j if j < i else LANES + j for j in range(LANES)]
            mask = ir.Constant(ir.VectorType(ir.IntType(32), LANES), lanes)
            made = builder.shuffle_vector(made, builder.fmul(made, made), mask)
        return made

    return VECTOR(VECTOR), generate


@twin(square_lanes)
def squares(number):
    """Return a number, its square, the square of that, and so on."""
    made = np.full(LANES, number)
    for i in range(1, LANES):
        made[i:] *= made[i:]
    return made


@helper
def power_down(x):
    """``e ** x``, lane by lane, for x of 0 or less; never 0, but less than makes a difference."""
    return power(above(x, LEAST_POWER, x, LEAST_POWER))
