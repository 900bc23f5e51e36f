"""Tables in Parquet, read by pyarrow, which comes with the extra ``parquet``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from driftline.errors import InputError
from driftline.tables.piece import Piece

__all__ = ["ParquetTable"]


class ParquetTable:
    """A Parquet file; ``rows`` is how many are read at a time."""

    width: int | None = None
    sparse = False
    notes: Sequence[str] = ()

    def __init__(self, path: str | Path, *, rows: int = 4096):
        try:
            from pyarrow import ArrowException, parquet
        except ImportError:
            raise InputError(
                "Parquet files need pyarrow: pip install 'driftline[parquet]', or save the table "
                "as CSV"
            ) from None
        if str(path) == "-":
            raise InputError("a Parquet file cannot come by standard input: name the file")
        self.name, self.rows, self._done = str(path), rows, 0
        self._trouble = (ArrowException, OSError)
        try:
            self._file = parquet.ParquetFile(path)
        except self._trouble as error:
            raise InputError(f"{path} is no Parquet file: {error}") from error
        self.columns = list(self._file.schema_arrow.names)
        twice = [name for name in self.columns if self.columns.count(name) > 1]
        if twice:
            raise InputError(f"{path}: two columns are called {twice[0]!r}: rename one of them")
        self._read = self._file.iter_batches(batch_size=rows)

    def pieces(self) -> Iterator[Piece]:
        """Yield rows, some thousand at a time."""
        while (batch := self._next()) is not None:
            first, self._done = self._done + 1, self._done + batch.num_rows
            if batch.num_rows:
                yield ParquetPiece(self.name, batch, first)

    def _next(self) -> Any:
        """Return the next batch, None after the last."""
        try:
            return next(self._read, None)
        except self._trouble as error:
            raise InputError(f"{self.name} is damaged after row {self._done}: {error}") from error

    @property
    def progress(self) -> tuple[int, int | None]:
        """Rows."""
        return self._done, int(self._file.metadata.num_rows)

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()


class ParquetPiece(Piece):
    """Columns that know whether they are numbers."""

    unit = "row"

    def __init__(self, name: str, batch: Any, first: int):
        super().__init__(name, range(batch.num_rows), first)  # type: ignore[arg-type]
        self.batch, self.first = batch, first

    def after(self, count: int) -> ParquetPiece:
        """Return all rows but the first ones."""
        return ParquetPiece(self.name, self.batch.slice(count), self.first + count)

    def texts(self, column: int) -> Sequence[str]:
        """Return one column as it would be written; what is missing is empty."""
        try:
            values = self.batch.column(column).to_pylist()
        except (ArithmeticError, ValueError) as error:  # no text in UTF-8, a year beyond Python's
            name = self.batch.schema.names[column]
            raise InputError(
                f"{self.name}, rows {self.first} to {self.first + len(self) - 1}, column {name}: "
                f"{error}; leave it out by --ignore {name}"
            ) from error
        return ["" if value is None else str(value) for value in values]

    def numbers(self, columns: Sequence[int]) -> np.ndarray | None:
        """Return columns as numbers, one row each; None unless all are plain numbers."""
        made = np.empty((len(self), len(columns)))
        for j, column in enumerate(columns):
            values = self.batch.column(column)
            if values.null_count:
                return None
            array = values.to_numpy(zero_copy_only=False)
            if array.dtype.kind not in "fiu":
                return None
            made[:, j] = array
        return made
