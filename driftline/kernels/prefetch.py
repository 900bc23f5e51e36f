"""Prefetch the rows that are needed next, without waiting for them.

They are loaded from memory while other work goes on. They are put into L2: L1 is small, and full of
what is needed now.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from driftline.kernels.backend import cgutils, hint, ir, types
from driftline.kernels.lanes import INDEX, array_of, column_at, index
from driftline.kernels.memory import CACHE_LINE

if TYPE_CHECKING:
    from numba.core.base import BaseContext

BYTE, CHOICE = ir.IntType(8).as_pointer(), ir.IntType(32)

#: Prefetch for reading (rw=0), into L2 (locality=2), into the data cache.
OPTIONS = [CHOICE(0), CHOICE(2), CHOICE(1)]


def prefetch(builder: ir.IRBuilder, begin: ir.Value, end: ir.Value) -> None:
    """Prefetch all cache lines between two addresses."""
    kind = ir.FunctionType(ir.VoidType(), [BYTE, CHOICE, CHOICE, CHOICE])
    instruction = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
    line = builder.and_(begin, index(-CACHE_LINE))
    with cgutils.for_range_slice(builder, line, end, index(CACHE_LINE), INDEX) as (place, _):
        builder.call(instruction, [builder.inttoptr(place, BYTE), *OPTIONS])


def rows_in(
    context: BaseContext, builder: ir.IRBuilder, kind: Any, value: ir.Value
) -> tuple[ir.Value, ir.Value]:
    """Return the address of a matrix whose rows lie side by side, and the bytes of a row."""
    start, (_, stride) = array_of(context, builder, kind, value)
    return builder.ptrtoint(start, INDEX), builder.mul(stride, index(kind.dtype.bitwidth // 8))


@hint
def prefetch_row(typing_context, inputs, t):
    """Prefetch row t of a matrix."""

    def generate(context, builder, signature, given):
        base, size = rows_in(context, builder, signature.args[0], given[0])
        begin = builder.add(base, builder.mul(given[1], size))
        prefetch(builder, begin, builder.add(begin, size))
        return context.get_dummy_value()

    return types.void(inputs, types.int64), generate


@hint
def prefetch_rows(typing_context, weights, columns, first, stop):
    """Prefetch rows ``columns[first:stop]`` of a matrix."""

    def generate(context, builder, signature, given):
        base, size = rows_in(context, builder, signature.args[0], given[0])
        places, _ = array_of(context, builder, signature.args[1], given[1])
        with cgutils.for_range_slice(builder, given[2], given[3], index(1), INDEX) as (i, _):
            begin = builder.add(base, builder.mul(column_at(builder, places, i), size))
            prefetch(builder, begin, builder.add(begin, size))
        return context.get_dummy_value()

    return types.void(weights, columns, types.int64, types.int64), generate
