"""Tables in ARFF, with all values in a row or only those that are not zero."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from driftline.errors import InputError
from driftline.streams.readers.arff import read_header, split_dense, split_sparse, without_comment
from driftline.streams.readers.lines import Lines, shorten
from driftline.tables.piece import Piece
from driftline.tables.source import Source

__all__ = ["ArffTable"]

#: A piece has no more values.
MOST_VALUES = 400_000


class SourceLines(Lines):
    """Lines as the readers want them, read one after the other."""

    def __init__(self, source: Source):
        self.source, self.path = source, source.name

    @property
    def number(self) -> int:
        """The number of the last line read."""
        return self.source.number

    def __iter__(self) -> Iterator[str]:
        return iter(self.source)


class ArffTable:
    """An ARFF file, plain or compressed by gzip; rows without zeros are filled up.

    ``rows`` is how many are read at a time, fewer if they are long.
    """

    width: int | None = None

    def __init__(self, path: str | Path, *, encoding: str = "utf-8", rows: int = 4096):
        self.source = Source(path, encoding)
        self.name = self.source.name
        self._lines: Any = SourceLines(self.source)
        self.columns, self.kinds = read_header(self._lines)
        self.rows = max(16, min(rows, MOST_VALUES // len(self.columns)))
        self._zeros = ["0" if kind is None else kind[0] for kind in self.kinds]
        self._known = [None if kind is None else {*kind, ""} for kind in self.kinds]
        self._read = self._all_rows()

    def pieces(self) -> Iterator[Piece]:
        """Yield rows, some thousand at a time."""
        while part := list(islice(self._read, self.rows)):
            yield Piece(self.name, [row for _, row in part], [number for number, _ in part])

    def _all_rows(self) -> Iterator[tuple[int, list[str]]]:
        found = False
        for line in self._lines:
            text = without_comment(self._lines, line)
            if text:
                found = True
                yield self.source.number, self._row(text)
        if not found:
            raise InputError(f"{self.name} has no rows after @data")

    def _row(self, text: str) -> list[str]:
        if text[0] == "{":
            row = self._zeros.copy()
            places, values = split_sparse(self._lines, text, len(row))
            for place, value in zip(places, values, strict=True):
                row[place] = value
        else:
            row = split_dense(self._lines, text, len(self.columns), missing=True)
        for j, known in enumerate(self._known):
            if known is not None and row[j] not in known:
                among = shorten(", ".join(self.kinds[j] or ()))
                raise self._lines.error(
                    f"{self.columns[j]} must be one of {among}, but is {shorten(row[j])}"
                )
        return row

    @property
    def progress(self) -> tuple[int, int | None]:
        """Bytes."""
        return self.source.done, self.source.size

    def close(self) -> None:
        """Let go of the file."""
        self.source.close()
