"""Tables in ARFF, dense or sparse."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any

from driftline.app.tables.encoder import matching
from driftline.app.tables.line_table import LineTable
from driftline.app.tables.piece import Piece
from driftline.app.tables.source import Source
from driftline.app.tables.sparse_piece import SparsePiece
from driftline.errors import InputError
from driftline.readers.arff import read_header, split_dense, split_sparse, without_comment
from driftline.readers.lines import Lines, shorten

__all__ = ["ArffTable"]

#: The most values in a piece.
MOST_VALUES = 400_000


class SourceLines(Lines):
    """The lines of a source, for the readers."""

    def __init__(self, source: Source):
        self.source, self.path = source, source.name

    @property
    def number(self) -> int:
        """The number of the last line read."""
        return self.source.number

    def __iter__(self) -> Iterator[str]:
        return iter(self.source)


class ArffTable(LineTable):
    """An ARFF file, plain or compressed by gzip; the first row decides whether rows are sparse.

    Columns of the patterns in ``ignore`` may hold values that were not declared. ``rows`` is how
    many are read at a time, fewer if they are long; ``marked`` is whether :meth:`marker` gives
    positions.
    """

    width: int | None = None
    notes: Sequence[str] = ()
    lenient = False

    def __init__(
        self,
        path: str | Path,
        *,
        encoding: str = "utf-8",
        ignore: Sequence[str] = (),
        rows: int = 4096,
        marked: bool = False,
    ):
        self.source = Source(path, encoding, marked)
        self.name = self.source.name
        self._lines: Any = SourceLines(self.source)
        self.columns, self.kinds = read_header(self._lines, texts=True)
        self.rows = max(16, min(rows, MOST_VALUES // len(self.columns)))
        self._zeros = ["0" if kind is None else kind[0] for kind in self.kinds]
        out = {name for pattern in ignore for name in matching(pattern, self.columns)}
        self._known = {
            j: {*kind, ""}
            for j, kind in enumerate(self.kinds)
            if kind is not None and self.columns[j] not in out
        }
        self._later = self._texts()
        first = next(self._later, None)
        if first is None:
            raise InputError(f"{self.name} has no rows after @data")
        self.sparse = _is_sparse(first)
        self._parsed = (self._row(text) for text in chain([first], self._later))

    def pieces(self) -> Iterator[Piece]:
        """Yield rows, some thousand at a time."""
        while True:
            self._begins()
            part = list(islice(self._parsed, self.rows))
            if not part:
                return
            numbers, rows = [number for number, _ in part], [row for _, row in part]
            if self.sparse:
                yield self._read(SparsePiece(self.name, rows, numbers, self._zeros))
            else:
                yield self._read(Piece(self.name, rows, numbers))

    def _look_back(self, lines: int) -> None:
        self._parsed = (self._row(text) for text in self._later)

    def _texts(self) -> Iterator[str]:
        """Yield the texts of rows."""
        for line in self._lines:
            text = without_comment(self._lines, line)
            if text:
                yield text

    def _row(self, text: str) -> tuple[int, Any]:
        """Return the line of a row, and its values: all of them, or by place if rows are sparse."""
        row: Any
        if _is_sparse(text):
            places, values = split_sparse(self._lines, text, len(self.columns))
            row = dict(zip(places, values, strict=True))
            if not self.sparse:
                row = [row.get(j, zero) for j, zero in enumerate(self._zeros)]
        else:
            row = split_dense(self._lines, text, len(self.columns), missing=True)
            if self.sparse:
                row = dict(enumerate(row))
        self._check(row)
        return self.source.number, row

    def _check(self, row: Any) -> None:
        """Refuse values that were not declared."""
        places = self._known.keys() & row.keys() if self.sparse else self._known
        for place in places:
            if row[place] not in self._known[place]:
                among = shorten(", ".join(self.kinds[place] or ()))
                raise self._lines.error(
                    f"{self.columns[place]} must be one of {among}, but is {shorten(row[place])}"
                )


def _is_sparse(text: str) -> bool:
    return text[0] == "{"
