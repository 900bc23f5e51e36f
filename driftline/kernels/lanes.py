"""SIMD vectors of a fixed number of lanes, as LLVM instructions.

A compiler that vectorises by itself chooses an order of summation for each loop. Here the order is
fixed: passes built from these vectors round alike, whatever else they compute, so that a stream
played in pieces gives the same bits as in one piece.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from driftline.kernels.backend import cgutils, ir

if TYPE_CHECKING:
    from numba.core.base import BaseContext

    from driftline.kernels.backend import types

INDEX = ir.IntType(64)
DOUBLE = ir.DoubleType()


def index(value: int) -> ir.Constant:
    """Return a whole number as a constant."""
    return ir.Constant(INDEX, value)


def array_of(
    context: BaseContext, builder: ir.IRBuilder, kind: types.Array, value: ir.Value
) -> tuple[ir.Value, list[ir.Value]]:
    """Return where an array begins, and its shape."""
    array = context.make_array(kind)(context, builder, value)
    return array.data, cgutils.unpack_tuple(builder, array.shape, kind.ndim)


def rows_from(
    context: BaseContext,
    builder: ir.IRBuilder,
    kind: types.Array,
    value: ir.Value,
    k: ir.Value,
    count: int,
) -> list[ir.Value]:
    """Return where some rows of a matrix begin, from row k on; they may have room between them."""
    array = context.make_array(kind)(context, builder, value)
    stride, _ = cgutils.unpack_tuple(builder, array.strides, 2)
    places = [builder.mul(builder.add(k, index(row)), stride) for row in range(count)]
    return [cgutils.pointer_add(builder, array.data, place) for place in places]


def column_at(builder: ir.IRBuilder, columns: ir.Value, i: ir.Value) -> ir.Value:
    """Return entry i of the columns, whichever type of integer they have."""
    column = builder.load(builder.gep(columns, [i]))
    return column if column.type == INDEX else builder.zext(column, INDEX)


def column_below(
    builder: ir.IRBuilder, columns: ir.Value, i: ir.Value, limit: ir.Value
) -> ir.Value:
    """Return entry i of the columns, or 0 if it is negative or not below the limit.

    Columns are checked before a loop begins, but lie in memory that others may write to. So the
    value that is used is checked where it is read: no access is out of bounds.
    """
    column = column_at(builder, columns, i)
    return builder.select(builder.icmp_unsigned("<", column, limit), column, index(0))


class Lanes:
    """Operations on vectors of ``count`` numbers of one type; on plain numbers if count is 1."""

    def __init__(self, builder: ir.IRBuilder, number: ir.Type, count: int):
        self.builder, self.number, self.count = builder, number, count
        self.bits = 64 if number == DOUBLE else 32
        self.type = ir.VectorType(number, count) if count > 1 else number
        self.zero = ir.Constant(self.type, [0.0] * count if count > 1 else 0.0)

    @property
    def integers(self) -> ir.Type:
        """The type of as many integers of 64 bits."""
        return ir.VectorType(INDEX, self.count) if self.count > 1 else INDEX

    def constant(self, number: float) -> ir.Constant:
        """Return a vector of this one number."""
        return ir.Constant(self.type, [number] * self.count if self.count > 1 else number)

    def whole(self, number: int) -> ir.Constant:
        """Return a vector of this one integer."""
        return ir.Constant(self.integers, [number] * self.count if self.count > 1 else number)

    def _place(self, start: ir.Value, i: ir.Value) -> ir.Value:
        return self.builder.bitcast(self.builder.gep(start, [i]), self.type.as_pointer())

    def load(self, start: ir.Value, i: ir.Value) -> ir.Value:
        """Return the numbers from ``start[i]`` on."""
        return self.builder.load(self._place(start, i), align=self.bits // 8)

    def store(self, vector: ir.Value, start: ir.Value, i: ir.Value) -> None:
        """Write the numbers from ``start[i]`` on."""
        self.builder.store(vector, self._place(start, i), align=self.bits // 8)

    def spread(self, number: ir.Value) -> ir.Value:
        """Return a vector of this one number."""
        if self.count == 1:
            return number
        none, first = ir.Constant(self.type, ir.Undefined), ir.IntType(32)
        single = self.builder.insert_element(none, number, first(0))
        return self._pick(single, [0] * self.count)

    def add_product(self, total: ir.Value, a: ir.Value, b: ir.Value) -> ir.Value:
        """Return ``total + a b``, rounded once where the machine can."""
        width = f"v{self.count}" if self.count > 1 else ""
        signature = ir.FunctionType(self.type, [self.type] * 3)
        name = f"llvm.fmuladd.{width}f{self.bits}"
        function = cgutils.get_or_insert_function(self.builder.module, signature, name)
        return self.builder.call(function, [a, b, total])

    def narrow(self, vector: ir.Value) -> ir.Value:
        """Return doubles in this precision."""
        return vector if self.bits == 64 else self.builder.fptrunc(vector, self.type)

    def widen(self, vector: ir.Value) -> ir.Value:
        """Return numbers of this precision as doubles."""
        if self.bits == 64:
            return vector
        wide = ir.VectorType(DOUBLE, self.count) if self.count > 1 else DOUBLE
        return self.builder.fpext(vector, wide)

    def total(self, vector: ir.Value) -> ir.Value:
        """Return the sum over the lanes as a double: halves are added until one number is left."""
        vector, count = self.widen(vector), self.count
        while count > 1:
            count //= 2
            low = self._pick(vector, list(range(count)))
            high = self._pick(vector, list(range(count, 2 * count)))
            vector = self.builder.fadd(low, high)
        return self.builder.extract_element(vector, ir.IntType(32)(0)) if self.count > 1 else vector

    def _pick(self, vector: ir.Value, lanes: list[int]) -> ir.Value:
        mask = ir.Constant(ir.VectorType(ir.IntType(32), len(lanes)), lanes)
        return self.builder.shuffle_vector(vector, ir.Constant(vector.type, ir.Undefined), mask)
