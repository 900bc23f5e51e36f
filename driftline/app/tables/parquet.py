"""Tables in Parquet, read by pyarrow, which comes with the extra ``parquet``."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from driftline.app.tables.mark import Mark
from driftline.app.tables.piece import Piece
from driftline.errors import InputError

if TYPE_CHECKING:
    from pyarrow import Array, RecordBatch

__all__ = ["ParquetTable"]


class ParquetTable:
    """A Parquet file; ``rows`` is how many are read at a time.

    ``marked`` is whether :meth:`marker` gives positions.
    """

    width: int | None = None
    sparse = False
    notes: Sequence[str] = ()
    lenient = False

    def __init__(self, path: str | Path, *, rows: int = 4096, marked: bool = False):
        try:
            from pyarrow import ArrowException, parquet
        except ImportError:
            raise InputError(
                "Parquet files need pyarrow: pip install pyarrow, or save the table as CSV"
            ) from None
        if str(path) == "-":
            raise InputError("a Parquet file cannot come by standard input: name the file")
        self.name, self.rows, self._done = str(path), rows, 0
        self._digest = _Digest() if marked else None
        self._last: Any = None  # the last batch, and what is left of it to be read
        self._rest: RecordBatch | None = None
        self._trouble: tuple[type[Exception], ...] = (ArrowException, OSError)
        try:
            self._file = parquet.ParquetFile(path)
        except self._trouble as error:
            raise InputError(f"{path} is no Parquet file: {error}") from error
        self.columns = list(self._file.schema_arrow.names)
        twice = [name for name, count in Counter(self.columns).items() if count > 1]
        if twice:
            raise InputError(f"{path}: two columns are called {twice[0]!r}: rename one of them")
        self._read = self._file.iter_batches(batch_size=rows)

    def pieces(self) -> Iterator[Piece]:
        """Yield rows, some thousand at a time."""
        while (batch := self._next()) is not None:
            first, self._done = self._done + 1, self._done + batch.num_rows
            if batch.num_rows:
                self._forget_positions()
                self._last = batch
                yield ParquetPiece(self.name, batch, first)

    def _forget_positions(self) -> None:
        """Add the last piece to the digest: no position inside it can be given any more."""
        if self._digest is not None and self._last is not None:
            self._digest.add(self._last)
        self._last = None

    def marker(self, drop: int | None = None) -> Callable[[], Mark]:
        """Return a function for the position after the last piece, or ``drop`` rows into it."""
        size = 0 if self._last is None else self._last.num_rows
        drop = size if drop is None else drop
        start = self._done - size
        lines, rest = (self._done, 0) if drop == size else (start, drop)
        bare = Mark(lines, rest, start + drop, start + drop)
        made = None if self._digest is None else self._digest.copy()
        last = self._last.slice(0, drop) if drop else None

        def mark() -> Mark:
            if made is None:
                return bare
            whole = made.copy()
            if last is not None:
                whole.add(last)
            return bare._replace(digest=whole.hexdigest())

        return mark

    def fits(self, mark: Mark) -> bool:
        """Read up to a mark, and return whether everything before it is unchanged."""
        self._skip(mark.through)
        return self._done == mark.through and self.marker()().digest == mark.digest

    def go_to(self, mark: Mark) -> None:
        """Move to the piece of a mark, which must not be before the current position."""
        self._skip(mark.lines)

    def _skip(self, rows: int) -> None:
        """Read until ``rows`` rows are read in all, or the file ends."""
        while self._done < rows and (batch := self._next()) is not None:
            self._forget_positions()
            more = rows - self._done
            self._rest = batch.slice(more) if more < batch.num_rows else None
            self._last = batch.slice(0, more)
            self._done += self._last.num_rows

    def _next(self) -> RecordBatch | None:
        """Return the next batch, None after the last."""
        if self._rest is not None:
            batch, self._rest = self._rest, None
            return batch
        try:
            return next(self._read, None)
        except self._trouble as error:
            raise InputError(f"{self.name} is damaged after row {self._done}: {error}") from error

    @property
    def progress(self) -> tuple[int, int | None]:
        """How much was read, and how much there is, in rows."""
        return self._done, int(self._file.metadata.num_rows)

    def hurry(self) -> None:
        """Do nothing: a file of this kind is there as a whole."""

    #: Rows are there, and never waited for.
    paused = False

    def pause_after(self, seconds: float) -> None:
        """Do nothing: a file of this kind is there as a whole."""

    def follow(self) -> None:
        """Do nothing: a file of this kind is refused before."""

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class ParquetPiece(Piece):
    """A batch of typed columns."""

    unit = "row"

    def __init__(self, name: str, batch: RecordBatch, first: int):
        super().__init__(name, range(batch.num_rows), first)  # type: ignore[arg-type]
        self.batch, self.first = batch, first

    def after(self, count: int) -> ParquetPiece:
        """Return the rows without the first ``count``."""
        return ParquetPiece(self.name, self.batch.slice(count), self.first + count)

    def take(self, rows: Sequence[int]) -> ParquetPiece:
        """Return some of the rows, by their places."""
        made = ParquetPiece(self.name, self.batch.take(np.array(rows, dtype=np.int64)), self.first)
        made._lines = self._lines_of(rows)
        return made

    def texts(self, column: int) -> Sequence[str]:
        """Return one column as text; missing values are empty."""
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


class _Digest:
    """A SHA-256 of every column, so that the sizes of batches do not matter."""

    def __init__(self, columns: Sequence[Any] = ()):
        self.columns = [column.copy() for column in columns]

    def copy(self) -> _Digest:
        return _Digest(self.columns)

    def add(self, batch: RecordBatch) -> None:
        """Add the values of all columns."""
        self.columns = self.columns or [hashlib.sha256() for _ in batch.columns]
        for digest, column in zip(self.columns, batch.columns, strict=True):
            digest.update(_bytes(column))

    def hexdigest(self) -> str:
        parts = "".join(column.hexdigest() for column in self.columns)
        return hashlib.sha256(parts.encode()).hexdigest()


def _bytes(column: Array) -> bytes:
    """Return values as bytes, independently of memory layout and batch."""
    if column.to_numpy(zero_copy_only=False).dtype.kind in "fiu":
        there = np.asarray(column.is_valid()).astype(np.uint8)[:, np.newaxis]
        values = column.fill_null(0).to_numpy(zero_copy_only=False)[:, np.newaxis].view(np.uint8)
        return np.hstack([values, there]).tobytes()
    try:
        texts = [repr(value) for value in column.to_pylist()]
    except (ArithmeticError, ValueError):  # values that Python cannot represent
        texts = [value.cast("binary").as_py().hex() for value in column]
    return "\n".join([*texts, ""]).encode("utf-8", "surrogatepass")
