"""Sparse rows: only nonzero values are given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from driftline.app.tables.piece import Piece
from driftline.app.tables.values import number
from driftline.readers.lines import sparse_rows

if TYPE_CHECKING:
    from scipy.sparse import csr_array

__all__ = ["SparsePiece"]


class SparsePiece(Piece):
    """Rows as texts by the position of their column; ``zeros`` are the texts of absent values."""

    def __init__(
        self,
        name: str,
        rows: Sequence[Mapping[int, str]],
        lines: Sequence[int],
        zeros: Sequence[str],
    ):
        super().__init__(name, rows, lines)  # type: ignore[arg-type]
        self.rows, self.zeros = rows, zeros

    def after(self, count: int) -> SparsePiece:
        """Return the rows without the first ``count``."""
        lines: Any = self._later(count)
        return SparsePiece(self.name, self.rows[count:], lines, self.zeros)

    def take(self, rows: Sequence[int]) -> SparsePiece:
        """Return some of the rows, by their places."""
        taken = [self.rows[i] for i in rows]
        return SparsePiece(self.name, taken, self._lines_of(rows), self.zeros)

    def texts(self, column: int) -> Sequence[str]:
        """Return one column as text, with zeros filled in."""
        zero = self.zeros[column]
        return [row.get(column, zero) for row in self.rows]

    def numbers(self, columns: Sequence[int]) -> np.ndarray | None:
        """Return columns as numbers, one row each; None unless all are plain numbers."""
        made = np.empty((len(self), len(columns)))
        for j, column in enumerate(columns):
            values = [number(text) for text in self.texts(column)]
            if None in values:
                return None
            made[:, j] = values
        return made

    def entries(self, columns: Sequence[int]) -> csr_array | None:
        """Return columns as a CSR matrix; None unless all are plain numbers."""
        if any(number(self.zeros[column]) != 0.0 for column in columns):
            return super().entries(columns)
        place_of = {column: j for j, column in enumerate(columns)}
        values: list[float] = []
        places: list[int] = []
        starts = [0]
        for row in self.rows:
            for column, text in row.items():
                if (place := place_of.get(column)) is not None:
                    value = number(text)
                    if value is None:
                        return None
                    values.append(value)
                    places.append(place)
            starts.append(len(places))
        return sparse_rows(values, places, starts, len(columns))
