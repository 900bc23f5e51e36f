"""Inputs as a two-dimensional array."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from driftline.errors import InputError
from driftline.inputs.base import LinearRows, cast, check_features
from driftline.kernels import Kernel, play_dense

__all__ = ["DenseRows"]


#: How many rows are looked at together.
CHECKED = 4096


class DenseRows(LinearRows):
    """A two-dimensional array of inputs, one row a round. It is never copied as a whole.

    >>> rows = DenseRows(np.ones((3, 2), dtype=np.float32))
    >>> rows.rounds, rows.features
    (3, 2)
    """

    #: Whether the stored weights have a row per feature instead of one per score.
    transposed = False

    __slots__ = ("array", "asked", "before", "features", "labels", "rounds", "size")

    def __init__(self, array: np.ndarray):
        if array.ndim != 2:
            raise InputError(
                f"inputs must have two dimensions, rounds and features, not {array.ndim}"
            )
        if array.dtype != np.float64 and array.dtype.kind not in "fiub":
            raise InputError(f"inputs must be real numbers, but their type is {array.dtype}")
        self.array, self.before, self.labels, self.asked = array, 0, None, None
        self.rounds, self.features = array.shape
        check_features(self.features)
        self.size = array.size

    def loop(self, dtype: np.dtype) -> Kernel:
        """Return the compiled loop over rows of this kind, for weights of this type."""
        return play_dense[dtype]

    def arrays(
        self, start: int, stop: int, dtype: npt.DTypeLike = np.float64
    ) -> tuple[np.ndarray, ...]:
        """Return rows ``start`` to ``stop`` as the loop takes them."""
        return (cast(self.array[start:stop], dtype),)

    @property
    def entries_array(self) -> np.ndarray:
        """All values."""
        return self.array

    @property
    def whole(self) -> np.ndarray:
        """All rows, in double precision, one after the other in memory."""
        return np.ascontiguousarray(self.array, dtype=np.float64)

    def row(self, t: int) -> np.ndarray:
        """Return one row as a vector, contiguous: the last bits of its scores depend on that."""
        return np.ascontiguousarray(self.array[t], dtype=np.float64)

    def entries(self, t: int) -> tuple[slice, np.ndarray]:
        """Return the features of one row that may differ from 0, and their values."""
        return slice(0, self.features), self.row(t)

    def first_bad_row(self, dtype: npt.DTypeLike = np.float64) -> int | None:
        """Return the first row whose norm is not finite in this precision, or None."""
        with np.errstate(over="ignore", invalid="ignore"):
            if self.rounds == 1:
                row = cast(self.array[0], dtype)
                return None if np.isfinite(row @ row) else 0
            for start in range(0, self.rounds, CHECKED):
                part = cast(self.array[start : start + CHECKED], dtype)
                bad = np.flatnonzero(~np.isfinite(np.einsum("ij,ij->i", part, part)))
                if len(bad):
                    return start + int(bad[0])
        return None

    def sample(self, rows: np.ndarray) -> bytes:
        """Return some rows as bytes, for a digest."""
        return np.ascontiguousarray(self.array[rows], dtype=np.float64).tobytes()
