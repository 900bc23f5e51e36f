"""Rows that a program gives in place of a file: dicts, a data frame, or arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Self

import numpy as np

from driftline.app.tables.piece import Piece
from driftline.errors import InputError
from driftline.inputs import DenseRows, refuse, rows_of

__all__ = ["GivenRows", "text_of"]


class GivenRows(Piece):
    """A table in memory, by columns; a cell that is not there is a missing value.

    ``single`` says whether one row was given, outside of a list.
    """

    unit = "row"
    commands = False
    width: int | None = None
    sparse = False
    notes: Sequence[str] = ()
    #: The cells as columns have read them, in place of cells; None where they were not read.
    read: np.ndarray | None = None

    def __init__(self, columns: Mapping[str, Sequence[Any]], count: int, single: bool = False):
        super().__init__("the rows given", (), 0)
        self.columns, self.cells = list(columns), list(columns.values())
        self.count, self.single = count, single

    @classmethod
    def of(
        cls,
        given: Any,
        order: Sequence[str],
        check: Callable[[Sequence[str]], object] = lambda names: None,
    ) -> Self:
        """Return rows as a program may give them; rows without names have them in this order.

        ``check`` refuses names of columns before there is a cell for each of them in every row.
        """
        if not hasattr(given, "columns") and hasattr(given, "to_dict"):  # a row of a data frame
            given = given.to_dict()
        if isinstance(given, Mapping):
            return cls._of_dicts([given], check, single=True)
        if hasattr(given, "columns") and hasattr(given, "__getitem__"):  # a data frame
            names = list(given.columns)
            if len(set(map(str, names))) < len(names):
                raise InputError(f"a data frame must have different names of columns, not {names}")
            check(list(map(str, names)))
            columns = {str(name): list(given[name]) for name in names}
            uneven = [name for name, cells in columns.items() if len(cells) != len(given)]
            if uneven:
                raise InputError(
                    f"column {uneven[0]!r} has {len(columns[uneven[0]])} cells, but there are "
                    f"{len(given)} rows"
                )
            return cls(columns, len(given))
        if isinstance(given, np.ndarray):
            given = given.tolist()
        if not _is_row(given):
            raise InputError(
                f"expected a dict, a list of dicts, a data frame or an array, but got {given!r:.80}"
            )
        if any(isinstance(row, Mapping) for row in given):
            other = [i for i, row in enumerate(given) if not isinstance(row, Mapping)]
            if other:
                raise InputError(f"row {other[0]} is {given[other[0]]!r:.80}: expected a dict")
            return cls._of_dicts(given, check)
        single = bool(given) and not any(map(_is_row, given))
        rows = [given] if single else given
        for i, row in enumerate(rows):
            if not _is_row(row):
                raise InputError(f"row {i} is {row!r:.80}: expected {len(order)} values")
            if len(row) != len(order):
                raise InputError(
                    f"row {i} has {len(row)} values, but there are {len(order)} columns: "
                    f"{', '.join(order[:8])}{' ...' if len(order) > 8 else ''}"
                )
        columns = {name: [row[j] for row in rows] for j, name in enumerate(order)}
        return cls(columns, len(rows), single)

    @classmethod
    def of_read(cls, rows: Sequence[np.ndarray]) -> Self:
        """Return rows without labels that columns have read already."""
        made = cls({}, len(rows))
        made.read = np.array(rows)
        return made

    @classmethod
    def of_matrix(cls, given: Any, width: int, query: str | None) -> Self:
        """Return rows without columns: an array or a CSR matrix; all of them are one query."""
        from scipy.sparse import csr_array

        single = not hasattr(given, "indptr") and np.ndim(given) == 1
        rows = rows_of(np.atleast_2d(np.asarray(given)) if single else given)
        if rows.features != width:
            raise InputError(f"rows have {rows.features} features, but the model knows {width}")
        if (bad := rows.first_bad_row()) is not None:
            refuse(rows, bad)
        made = cls({} if query is None else {query: [""] * rows.rounds}, rows.rounds, single)
        made.matrix = csr_array(rows.array if isinstance(rows, DenseRows) else rows.matrix)
        made.width = width
        return made

    @classmethod
    def _of_dicts(
        cls,
        rows: Sequence[Mapping[Any, Any]],
        check: Callable[[Sequence[str]], object],
        single: bool = False,
    ) -> Self:
        names = dict.fromkeys(name for row in rows for name in row)
        texts = list(dict.fromkeys(map(str, names)))
        if len(texts) < len(names):
            twice = next(name for name in names if not isinstance(name, str) and str(name) in names)
            raise InputError(
                f"both {twice!r} and {str(twice)!r} are names of columns: expected one"
            )
        check(texts)
        cells = [[row.get(name) for row in rows] for name in names]
        return cls(dict(zip(texts, cells, strict=True)), len(rows), single)

    def with_columns(self, more: Mapping[str, Sequence[Any]]) -> GivenRows:
        """Return the same rows with columns more, or others in their place."""
        columns = dict(zip(self.columns, self.cells, strict=True)) | dict(more)
        made = GivenRows(columns, self.count, self.single)
        made.matrix, made.width = self.matrix, self.width
        return made

    def with_missing(self, names: Sequence[str]) -> GivenRows:
        """Return the same rows with columns that are all missing, where they are not there."""
        known = set(self.columns)
        missing = [name for name in names if name not in known]
        return self.with_columns({name: [None] * self.count for name in missing})

    def __len__(self) -> int:
        """Return the number of rows."""
        return self.count

    def texts(self, column: int) -> Sequence[str]:
        """Return one column as it would be written to a file."""
        made = []
        for row, cell in enumerate(self.cells[column]):
            try:
                made.append(text_of(cell))
            except InputError as error:
                raise self.error(row, self.columns[column], str(error)) from error
        return made

    def numbers(self, columns: Sequence[int]) -> np.ndarray | None:
        """Return columns as numbers, one row each; None unless all cells are numbers."""
        cells = [self.cells[j] for j in columns]
        if any(isinstance(cell, bool) or not _is_number(cell) for own in cells for cell in own):
            return None
        try:
            with np.errstate(over="ignore"):
                return np.array(cells, dtype=np.float64).reshape(len(columns), self.count).T
        except OverflowError:  # of a whole number: as text it is refused, with its row
            return None

    def line(self, row: int) -> int:
        """Return the number of a row, from 0."""
        return row


def text_of(cell: object) -> str:
    """Return a cell as it would be written to a file; nothing where it is missing.

    >>> [text_of(cell) for cell in (None, float("nan"), True, 3.0, 0.5, "pro", np.int64(4))]
    ['', '', 'true', '3', '0.5', 'pro', '4']
    """
    if isinstance(cell, np.generic) or (isinstance(cell, np.ndarray) and cell.ndim == 0):
        cell = cell.item()
    if isinstance(cell, str):
        return cell
    if isinstance(cell, Iterable):
        raise InputError(f"expected a text or a number, but saw {cell!r:.40}")
    if isinstance(cell, int) and abs(cell) >= 2**1024:
        raise InputError(f"a whole number of {cell.bit_length()} bits is too large")
    if cell is None or str(cell) in ("nan", "<NA>", "NaT"):  # those of data frames, too
        return ""
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, float) and abs(cell) < 2**53 and cell == int(cell):
        return str(int(cell))
    return str(cell)


def _is_row(given: object) -> bool:
    return isinstance(given, Sequence | np.ndarray) and not isinstance(given, str | bytes)


def _is_number(cell: object) -> bool:
    return isinstance(cell, (int, float, np.integer, np.floating))
