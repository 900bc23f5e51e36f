"""Inputs as a matrix in compressed sparse rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from driftline.errors import InputError
from driftline.kernels import (
    Kernel,
    play_sparse_32,
    play_sparse_32_single,
    play_sparse_64,
    play_sparse_64_single,
)
from driftline.models.base import LinearRows, cast

__all__ = ["SparseRows"]


class SparseRows(LinearRows):
    """SciPy's ``csr_array`` or ``csr_matrix`` of inputs, one row a round."""

    #: Whether the stored weights have a row per feature instead of one per score.
    transposed = True

    __slots__ = ("columns", "features", "matrix", "rounds", "size", "starts", "values")

    def __init__(self, matrix: Any):
        if matrix.format != "csr":
            raise InputError(
                f"sparse inputs must be in CSR format, but these are in {matrix.format.upper()}; "
                "convert them by .tocsr()"
            )
        if matrix.ndim != 2:
            matrix = matrix.reshape(1, -1).tocsr()
        if matrix.dtype.kind not in "fiub":
            raise InputError(f"inputs must be real numbers, but their type is {matrix.dtype}")
        if not matrix.has_canonical_format:  # a column twice in a row: add up, on a copy
            matrix = matrix.copy()
            matrix.sum_duplicates()
        self.matrix = matrix
        self.rounds, self.features = matrix.shape
        self.values, self.columns, self.starts = matrix.data, matrix.indices, matrix.indptr
        self.size = self.values.size
        if self.size and not 0 <= self.columns.min() <= self.columns.max() < self.features:
            raise InputError(
                f"column indices of sparse inputs must lie in 0..{self.features - 1}, but reach "
                f"from {self.columns.min()} to {self.columns.max()}"
            )

    def loop(self, dtype: np.dtype) -> Kernel:
        """Return the compiled loop over rows of this kind, for weights of this type."""
        if dtype == np.float64:
            return play_sparse_32 if self.columns.dtype == np.int32 else play_sparse_64
        return play_sparse_32_single if self.columns.dtype == np.int32 else play_sparse_64_single

    def arrays(self, start: int, stop: int, dtype: Any = np.float64) -> tuple[np.ndarray, ...]:
        """Return rows ``start`` to ``stop`` as the loop takes them."""
        starts = np.ascontiguousarray(self.starts[start : stop + 1], dtype=self.columns.dtype)
        if self.values.dtype == dtype:
            return np.ascontiguousarray(self.values), np.ascontiguousarray(self.columns), starts
        first, last = starts[0], starts[-1]
        values = cast(self.values[first:last], dtype)
        return values, np.ascontiguousarray(self.columns[first:last]), starts - first

    @property
    def whole(self) -> Any:
        """All rows, as they were given."""
        return self.matrix

    def row(self, t: int) -> np.ndarray:
        """Return one row as a dense vector."""
        vector = np.zeros(self.features)
        columns, values = self.entries(t)
        vector[columns] = values
        return vector

    def entries(self, t: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the features of one row that may differ from 0, and their values."""
        kept = slice(self.starts[t], self.starts[t + 1])
        return self.columns[kept], self.values[kept].astype(np.float64)

    def first_bad_row(self, dtype: Any = np.float64) -> int | None:
        """Return the first row whose norm is not finite in this precision, or None."""
        safe = np.sqrt(np.finfo(dtype).max) / max(1, self.features)
        if not self.size or max(-self.values.min(), self.values.max()) < safe:  # nan is not
            return None
        with np.errstate(over="ignore"):
            for t in range(self.rounds):
                values = cast(self.entries(t)[1], dtype)
                if not np.isfinite(values @ values):
                    return t
        return None

    def sample(self, rows: np.ndarray) -> Any:
        """Return some rows as bytes, for a digest."""
        parts = (part for t in rows for part in self.entries(int(t)))
        return b"".join(part.tobytes() for part in parts)
