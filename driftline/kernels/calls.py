"""Call a kernel by its address from compiled code.

Numba can pass functions as arguments, at about 200 microseconds a call to unpack
each of them. An address is an integer: it costs nothing to pass, the loop that
receives it is compiled once for all parts, and the disk cache keeps it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from driftline.kernels import signatures as kinds
from driftline.kernels.backend import COMPILES, Signature, intrinsic, types
from driftline.kernels.compile import kernel_at


def caller(signature: Signature) -> Callable[..., Any]:
    """Make ``call(address, arguments)`` for kernels of this signature, as an intrinsic."""
    if not COMPILES:
        return lambda address, arguments: kernel_at(address)(*arguments)

    @intrinsic
    def call(typing_context, address, arguments):
        def generate(context, builder, call_signature, values):
            convention = context.call_conv
            function = convention.get_function_type(signature.return_type, signature.args)
            pointer = builder.inttoptr(values[0], function.as_pointer())
            given = [
                context.cast(builder, builder.extract_value(values[1], i), have, want)
                for i, (have, want) in enumerate(
                    zip(call_signature.args[1].types, signature.args, strict=True)
                )
            ]
            status, result = convention.call_function(
                builder, pointer, signature.return_type, signature.args, given
            )
            with builder.if_then(status.is_error, likely=False):
                convention.return_status_propagate(builder, status)
            return result

        return signature.return_type(types.int64, arguments), generate

    return call


call_encode = caller(kinds.ENCODE)
call_encode_loss = caller(kinds.ENCODE_LOSS)
call_draw = caller(kinds.DRAW)
call_loss = caller(kinds.LOSS)
call_values = caller(kinds.VALUES)
call_mix = caller(kinds.MIX)
call_decode = caller(kinds.DECODE)
call_rate = caller(kinds.RATE)
call_detect = caller(kinds.DETECT)
call_point = caller(kinds.POINT)
call_conjugate = caller(kinds.CONJUGATE)
