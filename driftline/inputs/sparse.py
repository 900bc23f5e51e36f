"""Inputs as a matrix in compressed sparse rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from driftline.inputs.base import LinearRows, cast, check_features
from driftline.inputs.csr import check_columns, check_csr
from driftline.kernels import Kernel, play_sparse
from driftline.typing import Inputs

if TYPE_CHECKING:
    from scipy.sparse import csr_array, csr_matrix

__all__ = ["SparseRows"]


class SparseRows(LinearRows):
    """SciPy's ``csr_array`` or ``csr_matrix`` of inputs, one row a round.

    Row pointers are a private copy that was checked. Values and columns are the caller's own where
    they are contiguous: loops check every column where they read it.
    """

    #: Whether the stored weights have a row per feature instead of one per score.
    transposed = True

    __slots__ = (
        "asked",
        "before",
        "columns",
        "features",
        "kind",
        "labels",
        "rounds",
        "size",
        "starts",
        "values",
    )

    def __init__(self, matrix: Inputs):
        self.values, self.columns, self.starts, shape = check_csr(matrix)
        self.kind, self.before, self.labels, self.asked = type(matrix), 0, None, None
        self.rounds, self.features = shape
        self.size = self.values.size
        check_features(self.features)

    @classmethod
    def made(
        cls, values: np.ndarray, columns: np.ndarray, starts: np.ndarray, features: int, kind: type
    ) -> SparseRows:
        """Return rows from arrays of our own, which need no checks."""
        rows = object.__new__(cls)
        rows.values, rows.columns, rows.starts, rows.kind = values, columns, starts, kind
        rows.rounds, rows.features, rows.size = starts.size - 1, features, values.size
        rows.before, rows.labels, rows.asked = 0, None, None
        return rows

    @property
    def matrix(self) -> csr_array | csr_matrix:
        """All rows as a matrix of the class that was given, with a copy of the columns."""
        columns = self.columns.copy()
        check_columns(columns, self.features)
        plain = self.values.dtype in (np.float64, np.float32)  # SciPy does not multiply all types
        values = self.values if plain else self.values.astype(np.float64)
        made = self.kind((self.rounds, self.features), dtype=values.dtype)
        made.data, made.indices, made.indptr = values, columns, self.starts
        return made

    def loop(self, dtype: np.dtype) -> Kernel:
        """Return the compiled loop over rows of this kind, for weights of this type."""
        return play_sparse[dtype, self.columns.dtype]

    def arrays(
        self, start: int, stop: int, dtype: npt.DTypeLike = np.float64
    ) -> tuple[np.ndarray, ...]:
        """Return rows ``start`` to ``stop`` as the loop takes them."""
        starts = self.starts[start : stop + 1]
        if self.values.dtype == dtype:
            return self.values, self.columns, starts
        first, last = starts[0], starts[-1]
        return cast(self.values[first:last], dtype), self.columns[first:last], starts - first

    @property
    def entries_array(self) -> np.ndarray:
        """All values."""
        return self.values

    @property
    def whole(self) -> csr_array | csr_matrix:
        """All rows, as a matrix."""
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

    def first_bad_row(self, dtype: npt.DTypeLike = np.float64) -> int | None:
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

    def sample(self, rows: np.ndarray) -> bytes:
        """Return some rows as bytes, for a digest."""
        parts = (part for t in rows for part in self.entries(int(t)))
        return b"".join(part.tobytes() for part in parts)
