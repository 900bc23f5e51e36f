"""Weights aligned to cache lines.

A vector that lies across two cache lines costs two loads and two stores.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from driftline.errors import InputError

__all__ = ["aligned", "zeros", "aligned_zeros"]

#: Bytes in a cache line.
CACHE_LINE = 64


def zeros(count: int, dtype: npt.DTypeLike = np.float64) -> np.ndarray:
    """Return a vector of zeros; raise an InputError if there is not enough memory for it."""
    try:
        return np.zeros(count, dtype)
    except (MemoryError, ValueError) as error:
        needed = count * np.dtype(dtype).itemsize
        raise InputError(
            f"a learner for these inputs needs {needed / 2**30:,.0f} GiB of memory, which is not "
            "available: expected fewer features"
        ) from error


def aligned_zeros(shape: tuple[int, int], dtype: npt.DTypeLike, apart: bool) -> np.ndarray:
    """Return a matrix of zeros aligned to a cache line; if ``apart``, each of its rows is."""
    size = np.dtype(dtype).itemsize
    rows, columns = shape
    stride = -(-columns * size // CACHE_LINE) * CACHE_LINE if apart else columns * size
    room = zeros(rows * stride + CACHE_LINE, np.uint8)
    first = -room.ctypes.data % CACHE_LINE
    lines = room[first : first + rows * stride].view(dtype)
    return lines.reshape(rows, stride // size)[:, :columns]


def aligned(matrix: np.ndarray, apart: bool) -> np.ndarray:
    """Return an aligned copy of a matrix."""
    made = aligned_zeros(matrix.shape, matrix.dtype, apart)
    made[:] = matrix
    return made
