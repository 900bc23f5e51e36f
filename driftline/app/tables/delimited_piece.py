"""Lines of a CSV file that are split lazily."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from driftline.app.tables.piece import Piece

__all__ = ["DelimitedPiece"]


class DelimitedPiece(Piece):
    """Lines without quotes; columns of plain numbers are read by NumPy, which is fastest."""

    def __init__(
        self, name: str, lines: list[str], numbers: int | Sequence[int], delimiter: str, width: int
    ):
        super().__init__(name, lines, numbers)
        self.lines, self.delimiter, self.width = lines, delimiter, width

    def after(self, count: int) -> DelimitedPiece:
        """Return the rows without the first ``count``."""
        lines, numbers = self.lines[count:], self._later(count)
        return DelimitedPiece(self.name, lines, numbers, self.delimiter, self.width)

    def take(self, rows: Sequence[int]) -> DelimitedPiece:
        """Return some of the rows, by their places."""
        lines, numbers = [self.lines[i] for i in rows], self._lines_of(rows)
        return DelimitedPiece(self.name, lines, numbers, self.delimiter, self.width)

    def texts(self, column: int) -> Sequence[str]:
        """Return one column as it is written."""
        sign, after = self.delimiter, self.width - column
        if column < after:
            return [line.split(sign, column + 1)[column] for line in self.lines]
        return [line.rsplit(sign, after)[-after] for line in self.lines]

    def numbers(self, columns: Sequence[int]) -> np.ndarray | None:
        """Return columns as numbers, one row each; None unless all are plain numbers."""
        if not columns or not self.lines:
            return np.empty((len(self.lines), len(columns)))
        try:
            return np.loadtxt(
                self.lines, delimiter=self.delimiter, usecols=columns, comments=None, ndmin=2
            )
        except ValueError:
            return None
