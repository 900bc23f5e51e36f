"""Some rows of a table, as texts; and the protocol of tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from driftline.app.tables.mark import Mark
from driftline.errors import InputError

if TYPE_CHECKING:
    from scipy.sparse import csr_array

__all__ = ["Piece", "Table"]


class Piece:
    """Rows as lists of texts; a cell is found by its row and the position of its column.

    ``lines`` are the rows' line numbers in the file, or the first of them if they are consecutive.
    """

    #: The unit of row numbers in messages.
    unit = "line"
    #: Whether rows come from a file of the command line: then messages name its options.
    commands = True
    #: Rows that could not be read, by their places, and why; their values are empty.
    problems: Mapping[int, str] = {}
    #: Entries of rows without columns, as a CSR matrix.
    matrix: Any = None

    def __init__(self, name: str, rows: Sequence[Sequence[str]], lines: int | Sequence[int]):
        self.name, self._rows, self._lines = name, rows, lines

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self._rows)

    def texts(self, column: int) -> Sequence[str]:
        """Return one column as it is written."""
        return [row[column] for row in self._rows]

    def numbers(self, columns: Sequence[int]) -> np.ndarray | None:
        """Return columns as numbers, one row each; None unless all are plain numbers."""
        texts = [[row[j] for j in columns] for row in self._rows]
        if any("_" in text for row in texts for text in row):
            return None
        try:
            return np.array([list(map(float, row)) for row in texts]).reshape(-1, len(columns))
        except ValueError:
            return None

    def entries(self, columns: Sequence[int]) -> csr_array | None:
        """Return columns as a CSR matrix; None unless all are plain numbers."""
        from scipy.sparse import csr_array

        made = self.numbers(columns)
        return None if made is None else csr_array(made)

    def after(self, count: int) -> Piece:
        """Return the rows without the first ``count``."""
        other = copy(self)
        other._rows, other._lines = self._rows[count:], self._later(count)
        if self.matrix is not None:
            other.matrix = self.matrix[count:]
        return other

    def take(self, rows: Sequence[int]) -> Piece:
        """Return some of the rows, by their places."""
        other = copy(self)
        other._rows, other._lines = [self._rows[i] for i in rows], self._lines_of(rows)
        if self.matrix is not None:
            other.matrix = self.matrix[list(rows)]
        return other

    def _lines_of(self, rows: Sequence[int]) -> list[int]:
        return [self.line(row) for row in rows]

    def _later(self, count: int) -> int | Sequence[int]:
        return self._lines + count if isinstance(self._lines, int) else self._lines[count:]

    def line(self, row: int) -> int:
        """Return the line of a row in the file."""
        return self._lines + row if isinstance(self._lines, int) else self._lines[row]

    def error(self, row: int, column: str, message: str, advice: str = "") -> InputError:
        """Return an error that says where it was found, and on the command line what to do."""
        where = f"{self.unit} {self.line(row)}" + (f", column {column}" if column else "")
        more = f": {advice}" if advice and self.commands else ""
        return InputError(f"{self.name}, {where}: {message}{more}")


class Table(Protocol):
    """A table that is read once, piece by piece."""

    #: Names of the columns; where entries are a CSR matrix, those of the columns beside it.
    columns: list[str]
    #: The name of its source, for messages.
    name: str
    #: How many features a row without columns has; None where there are columns.
    width: int | None
    #: Whether the file has only nonzero values.
    sparse: bool
    #: Remarks for the user.
    notes: Sequence[str]
    #: Whether rows that cannot be read come with the reason, and do not end the reading; this is
    #: for tables with a row a line.
    lenient: bool

    def pieces(self) -> Iterator[Piece]:
        """Yield the rows in order."""
        ...

    def marker(self, drop: int | None = None) -> Callable[[], Mark]:
        """Return a function for the position after the last piece, or after ``drop`` of its rows.

        It computes the digest when it is called, even if more has been read by then.
        """
        ...

    def fits(self, mark: Mark) -> bool:
        """Read up to a mark, and return whether everything before it is unchanged."""
        ...

    def go_to(self, mark: Mark) -> None:
        """Move to the piece of a mark, which must not be before the current position."""
        ...

    @property
    def progress(self) -> tuple[int, int | None]:
        """How much was read, and how much there is, in the same unit."""
        ...

    def hurry(self) -> None:
        """Wait for no more than one row of a pipe: what columns hold is known."""
        ...

    def pause_after(self, seconds: float) -> None:
        """Let pieces end if there is no row of a pipe within some seconds."""
        ...

    @property
    def paused(self) -> bool:
        """Whether the last pieces have ended since no row came, and others may follow."""
        ...

    def follow(self) -> None:
        """Wait for more rows at the end of the file from now on, if it is one to be followed."""
        ...

    def close(self) -> None:
        """Close the file."""
        ...
