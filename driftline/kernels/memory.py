"""Weights lie on lines of the cache.

A vector that lies across two lines is loaded and stored at the price of two.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from driftline.errors import InputError

__all__ = ["on_lines", "zeros", "zeros_on_lines"]

#: Bytes in a line.
LINE = 64


def zeros(count: int, dtype: npt.DTypeLike = np.float64) -> np.ndarray:
    """Return a vector of zeros, or say that so much memory is not to be had."""
    try:
        return np.zeros(count, dtype)
    except (MemoryError, ValueError) as error:
        needed = count * np.dtype(dtype).itemsize
        raise InputError(
            f"a learner for these inputs needs {needed / 2**30:,.0f} GiB of memory, which is not "
            "to be had: expected fewer features"
        ) from error


def zeros_on_lines(shape: tuple[int, int], dtype: npt.DTypeLike, apart: bool) -> np.ndarray:
    """Return a matrix of zeros at the start of a line; with rows apart, each row is at one."""
    size = np.dtype(dtype).itemsize
    rows, columns = shape
    stride = -(-columns * size // LINE) * LINE if apart else columns * size
    room = zeros(rows * stride + LINE, np.uint8)
    first = -room.ctypes.data % LINE
    lines = room[first : first + rows * stride].view(dtype)
    return lines.reshape(rows, stride // size)[:, :columns]


def on_lines(matrix: np.ndarray, apart: bool) -> np.ndarray:
    """Return a copy of a matrix that lies so."""
    made = zeros_on_lines(matrix.shape, matrix.dtype, apart)
    made[:] = matrix
    return made
