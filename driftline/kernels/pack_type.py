"""The type of packs, eight numbers that are computed with as if they were one.

Numba has no such type. This one is a vector of LLVM, with the operators that kernels need. A plain
number that meets a pack stands for eight of them. A comparison of packs is a mask, which has a bit
for every lane.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

from driftline.kernels.backend import COMPILES, Signature, cgutils, ir, types
from driftline.kernels.lanes import DOUBLE

__all__ = ["LANES", "MASK", "PACK", "PACKS", "packed", "repeated"]

#: How many numbers a pack has.
LANES = 8

#: The types of packs, of masks, and of vectors of packs.
PACK: Any = types
MASK: Any = types
PACKS: Any = types


def packed(signature: Signature) -> Signature:
    """Return the signature of the same kernel for packs; addresses stay plain."""
    if not COMPILES:
        return signature
    kinds = {types.float64: PACK, types.void: types.void, types.int64: types.int64}
    return kinds[signature.return_type](*(kinds.get(kind, PACKS) for kind in signature.args))


def repeated(builder: ir.IRBuilder, number: ir.Value) -> ir.Value:
    """Return a pack of one number."""
    first, none = ir.IntType(32), ir.Constant(VECTOR, ir.Undefined)
    zeros = ir.Constant(ir.VectorType(first, LANES), [0] * LANES)
    return builder.shuffle_vector(builder.insert_element(none, number, first(0)), none, zeros)


if COMPILES:
    from numba.core.datamodel import models
    from numba.core.imputils import lower_builtin, lower_cast
    from numba.core.typeconv import Conversion
    from numba.core.typing import signature as signature_of
    from numba.core.typing.templates import AbstractTemplate, infer_global
    from numba.extending import register_model

    VECTOR, BITS = ir.VectorType(DOUBLE, LANES), ir.VectorType(ir.IntType(1), LANES)

    class PackType(types.Type):
        """Eight doubles."""

        def __init__(self) -> None:
            super().__init__(name=f"Pack{LANES}")

        def can_convert_from(self, typing_context, other):
            """Plain numbers become packs where a pack is expected."""
            plain = isinstance(other, (types.Float, types.Integer))
            return Conversion.safe if plain else None

    class MaskType(types.Type):
        """Eight answers."""

        def __init__(self) -> None:
            super().__init__(name=f"Mask{LANES}")

    PACK, MASK = PackType(), MaskType()
    PACKS = types.Array(PACK, 1, "C")

    @register_model(PackType)
    class PackModel(models.PrimitiveModel):
        """A pack is a vector, in memory as well."""

        def __init__(self, manager, kind):
            super().__init__(manager, kind, VECTOR)

    @register_model(MaskType)
    class MaskModel(models.PrimitiveModel):
        """A mask is a vector of bits."""

        def __init__(self, manager, kind):
            super().__init__(manager, kind, BITS)

    @lower_cast(types.Float, PackType)
    @lower_cast(types.Integer, PackType)
    def to_pack(context, builder, have, want, value):
        """Repeat a plain number."""
        return repeated(builder, context.cast(builder, value, have, types.float64))

    def define(
        function: Callable[..., Any], result: Any, kind: Any, generate: Callable[..., ir.Value]
    ) -> None:
        """Define an operator for packs, or for masks, and for plain numbers that meet packs."""
        count = generate.__code__.co_argcount - 1

        @infer_global(function)
        class Template(AbstractTemplate):
            def generic(self, given, named):
                fits = len(given) == count and kind in given
                fits = fits and all(one == kind or isinstance(one, types.Number) for one in given)
                return signature_of(result, *[kind] * count) if fits else None

        lower_builtin(function, *[kind] * count)(
            lambda context, builder, signature, given: generate(builder, *given)
        )

    def comparison(sign: str) -> Callable[..., ir.Value]:
        """Return what compares two packs; a NaN differs from all."""
        if sign == "!=":
            return lambda builder, a, b: builder.fcmp_unordered(sign, a, b)
        return lambda builder, a, b: builder.fcmp_ordered(sign, a, b)

    def of_each(name: str) -> Callable[..., ir.Value]:
        """Return what applies a function of LLVM to every lane."""

        def generate(builder, a):
            kind, called = ir.FunctionType(VECTOR, [VECTOR]), f"llvm.{name}.v{LANES}f64"
            return builder.call(cgutils.get_or_insert_function(builder.module, kind, called), [a])

        return generate

    for plus in (operator.add, operator.iadd):
        define(plus, PACK, PACK, lambda builder, a, b: builder.fadd(a, b))
    for times in (operator.mul, operator.imul):
        define(times, PACK, PACK, lambda builder, a, b: builder.fmul(a, b))
    define(operator.sub, PACK, PACK, lambda builder, a, b: builder.fsub(a, b))
    define(operator.truediv, PACK, PACK, lambda builder, a, b: builder.fdiv(a, b))
    define(operator.neg, PACK, PACK, lambda builder, a: builder.fneg(a))
    define(abs, PACK, PACK, of_each("fabs"))
    define(math.sqrt, PACK, PACK, of_each("sqrt"))
    define(operator.lt, MASK, PACK, comparison("<"))
    define(operator.le, MASK, PACK, comparison("<="))
    define(operator.gt, MASK, PACK, comparison(">"))
    define(operator.ge, MASK, PACK, comparison(">="))
    define(operator.eq, MASK, PACK, comparison("=="))
    define(operator.ne, MASK, PACK, comparison("!="))
    define(operator.and_, MASK, MASK, lambda builder, a, b: builder.and_(a, b))
    define(operator.or_, MASK, MASK, lambda builder, a, b: builder.or_(a, b))
    define(operator.invert, MASK, MASK, lambda builder, a: builder.not_(a))
