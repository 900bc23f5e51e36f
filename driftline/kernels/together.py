"""One round of several learners in one call, by the loop over dense rows.

From Python a call of the loop costs more than a small round in it. So the arguments of every
learner's call are laid out once, as a row of integers, and stay there: an array is described by
its address, its shape and its strides, in the fields in which compiled code passes arrays. These
are the same for both precisions, so the address of the loop decides which one it is.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from driftline.kernels import program as at
from driftline.kernels.backend import datamodel, intrinsic, ir, types
from driftline.kernels.calls import caller
from driftline.kernels.compile import kernel
from driftline.kernels.lanes import array_of, index
from driftline.kernels.signatures import DENSE, TOGETHER

#: What compiled code passes for an array, one integer each, shape and strides one per dimension.
FIELDS = ("meminfo", "parent", "nitems", "itemsize", "data", "shape", "strides")

#: The signature in double precision; that in single has the same fields.
SIGNATURE = DENSE[np.dtype(np.float64)]

call_dense = caller(SIGNATURE)


@functools.cache
def layout_is_known() -> bool:
    """Say whether this Numba describes arrays as :func:`lay_out` does.

    The layout is not part of Numba's public interface, and may change. Nothing is called here:
    Numba's data model of each argument is compared with the fields written here, so that another
    layout is noticed before anything is read by it.
    """
    try:
        return all(map(_as_written, _arrays_of(SIGNATURE.args)))
    except Exception:  # another version of Numba may raise anything here
        return False


def _arrays_of(kinds: Iterable[Any]) -> Iterator[types.Array]:
    """Yield the kinds of arrays, also those in tuples, which lie in memory as if they were not."""
    for kind in kinds:
        yield from (kind,) if isinstance(kind, types.Array) else kind.types


def _as_written(kind: types.Array) -> bool:
    """Say whether an array of this kind is passed as these fields, each of 8 bytes."""
    model = datamodel.default_manager.lookup(kind)
    names = tuple(model._fields)
    word, pointer = ir.IntType(64), ir.PointerType
    sizes = ir.ArrayType(word, kind.ndim)
    made = list(model.get_value_type().elements)
    return (
        names == FIELDS
        and all(isinstance(made[i], pointer) for i in (0, 1, 4))
        and made[2:4] == [word, word]
        and made[5:] == [sizes, sizes]
        and ctypes.sizeof(ctypes.c_void_p) == 8
    )


def _leaves(given: np.ndarray | tuple[np.ndarray, ...]) -> tuple[np.ndarray, ...]:
    return given if isinstance(given, tuple) else (given,)


def lay_out(arguments: Sequence[np.ndarray | tuple[np.ndarray, ...]]) -> list[int]:
    """Describe the arguments of one call. Whoever keeps the description must keep the arrays."""
    words: list[int] = []
    for array in (own for given in arguments for own in _leaves(given)):
        words += [0, 0, array.size, array.itemsize, array.ctypes.data]
        words += [*array.shape, *array.strides]
    return words


@intrinsic
def arguments_in(typing_context, words):
    """Return the arrays that a row of integers describes."""
    result = types.Tuple(SIGNATURE.args)

    def generate(context, builder, signature, given):
        start, _ = array_of(context, builder, signature.args[0], given[0])
        arrays, place = [], 0
        for kind in SIGNATURE.args:
            pointer = context.get_value_type(kind).as_pointer()
            there = builder.gep(start, [index(place)])
            arrays.append(builder.load(builder.bitcast(there, pointer)))
            place += sum(5 + 2 * own.ndim for own in _arrays_of([kind]))
        return context.make_tuple(builder, result, arrays)

    return result(words), generate


@kernel(TOGETHER)
def play_together(loop, learners):
    """Play one round of every learner; return how many played before the first that refused."""
    for j in range(learners.shape[0]):
        arguments = arguments_in(learners[j])
        state = arguments[7]
        state[at.ALARM] = at.QUIET
        if call_dense(loop, arguments) < 1:
            return j
    return learners.shape[0]
