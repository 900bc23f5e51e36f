"""Weights aligned to cache lines.

A vector that lies across two cache lines costs two loads and two stores.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from driftline.state.arena import LINE as CACHE_LINE
from driftline.state.arena import zeros

__all__ = ["CACHE_LINE", "aligned", "aligned_zeros", "zeros"]


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
