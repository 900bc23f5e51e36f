"""Parts of arrays whose bounds are known to be good: a fraction of the time of a slice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from driftline.kernels.backend import cgutils, intrinsic, ir, types
from driftline.kernels.lanes import array_of, index, rows_from

if TYPE_CHECKING:
    from numba.core.base import BaseContext

__all__ = ["part", "row_of"]


def vector_at(
    context: BaseContext, builder: ir.IRBuilder, kind: Any, start: ir.Value, size: ir.Value
) -> ir.Value:
    """Return a vector of this kind that begins at an address."""
    made, itemsize = context.make_array(kind)(context, builder), index(kind.dtype.bitwidth // 8)
    made.data, made.nitems, made.itemsize = start, size, itemsize
    made.meminfo = cgutils.get_null_value(made.meminfo.type)
    made.parent = cgutils.get_null_value(made.parent.type)
    made.shape = cgutils.pack_array(builder, [size])
    made.strides = cgutils.pack_array(builder, [itemsize])
    return made._getvalue()


@intrinsic
def part(typing_context, vector, start, size):
    """``vector[start:start + size]``, without clamping."""

    def generate(context, builder, signature, given):
        kind = signature.args[0]
        data, _ = array_of(context, builder, kind, given[0])
        return vector_at(context, builder, kind, builder.gep(data, [given[1]]), given[2])

    return vector(vector, types.int64, types.int64), generate


@intrinsic
def row_of(typing_context, matrix, k, size):
    """``matrix[k, :size]`` as a contiguous vector, where rows may have room between them."""
    vector = types.Array(matrix.dtype, 1, "C")

    def generate(context, builder, signature, given):
        (data,) = rows_from(context, builder, signature.args[0], given[0], given[1], 1)
        return vector_at(context, builder, vector, data, given[2])

    return vector(matrix, types.int64, types.int64), generate
