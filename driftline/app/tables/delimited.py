"""Tables with a row per line and a delimiter between values, such as CSV."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from driftline.app.tables.delimited_piece import DelimitedPiece
from driftline.app.tables.line_table import LineTable
from driftline.app.tables.live import Follow
from driftline.app.tables.piece import Piece
from driftline.app.tables.source import Source
from driftline.app.tables.table_error import TableError
from driftline.errors import InputError

__all__ = ["DelimitedTable"]

#: What to do about lines that begin with #.
HASH = "say --comment '#' to leave out lines that begin so"
SIGNS = {"comma": ",", "semicolon": ";", "tab": "\t", "pipe": "|"}


class DelimitedTable(LineTable):
    """A CSV file, with a header or without.

    Parameters
    ----------
    path, encoding
        As in :class:`~driftline.app.tables.source.Source`.
    delimiter
        One character, or ``space`` for any number of blanks. Default: comma, semicolon, tab or
        pipe, the most frequent in the first line.
    header
        Whether the first line has the names; without, columns are called 1, 2 and so on.
    comment
        How lines begin that are left out.
    rows
        How many lines are read at a time.
    marked
        Whether :meth:`marker` gives positions.
    follow
        Whether more rows are waited for at the end of the file.
    """

    width: int | None = None
    sparse = False
    notes: Sequence[str] = ()
    lenient = False

    def __init__(
        self,
        path: str | Path,
        *,
        encoding: str = "utf-8",
        delimiter: str | None = None,
        header: bool = True,
        comment: str | None = None,
        rows: int = 4096,
        marked: bool = False,
        follow: Follow = Follow.NO,
    ):
        self.source, self.rows = Source(path, encoding, marked, follow), rows
        self.name, self.comment, self._blanks = self.source.name, comment, False
        first = next((line for line in self.source if self._cleaned([line])[0].strip()), None)
        if first is None:
            raise InputError(f"{self.name} is empty: expected a header and then a row a line")
        self._pending: list[str] = []
        if delimiter is None:
            self._refuse_unparted(first)
        self._blanks = delimiter == "space"
        self.delimiter = _sniffed(first) if delimiter is None else _checked(delimiter)
        self._header_line = self.source.number - len(self._pending)
        fields = self._parse(self._cleaned([first]))[0]
        if not header:
            self._pending.insert(0, first)
        self.columns = [str(j + 1) for j in range(len(fields))]
        if header:
            self.columns = [field.strip() for field in fields]
            self._check_header()

    def _check_header(self) -> None:
        line, names = self._header_line, self.columns
        if "" in names:
            number = names.index("") + 1
            raise self.source.error(
                f"column {number} of {len(names)} has no name: give it one", line
            )
        twice = [name for name, count in Counter(names).items() if count > 1]
        numbers = [name for name in names if _is_number(name)]
        row = "say --no-header if the first line is a row"
        if all(_is_number(name) for name in names):
            said = f"saw only numbers, {', '.join(names)[:40]}: {row}"
        elif len(numbers) >= 0.5 * len(names) and any("." in name for name in numbers):
            said = f"saw numbers such as {numbers[0]}: {row}, or rename the columns"
        elif twice:
            said = f"two columns are called {twice[0]!r}: rename one of them, or {row}"
            raise TableError(str(self.source.error(said, line)), no_header=True)
        else:
            return
        said = f"expected the names of the columns, but {said}"
        raise TableError(str(self.source.error(said, line)), no_header=True)

    def pieces(self) -> Iterator[Piece]:
        """Yield rows, some thousand lines at a time."""
        while True:
            self._begins()
            first = self.source.number + 1 - len(self._pending)
            lines = self._pending + self.source.lines(max(0, self.rows - len(self._pending)))
            self._pending = []
            if not lines:
                return
            piece = self._piece(self._cleaned(lines), first)
            if len(piece):
                yield self._read(piece)

    def _cleaned(self, lines: list[str]) -> list[str]:
        """Return lines with comments blank, and with one blank between values that blanks part."""
        if self.comment is not None:
            sign = self.comment
            lines = ["" if line.lstrip().startswith(sign) else line for line in lines]
        return [" ".join(line.split()) for line in lines] if self._blanks else lines

    def _refuse_unparted(self, first: str) -> None:
        """Refuse a first line that is a comment, or one whose values are parted by blanks."""
        signs = [first.count(sign) for sign in SIGNS.values()]
        if not first.lstrip().startswith("#") and (any(signs) or len(first.split()) < 2):
            return
        self._pending = self.source.lines(1)  # for the first piece
        second = self._pending[0] if self._pending else ""
        line = self.source.number - len(self._pending)
        if first.lstrip().startswith("#"):
            sign = _sniffed(second)
            if second.lstrip().startswith("#") or first.count(sign) != second.count(sign):
                raise TableError(
                    str(self.source.error(f"{first[:40]!r} looks like a comment: {HASH}", line)),
                    comment="#",
                )
        elif len(first.split()) == len(second.split()):
            said = (
                "expected commas, semicolons, tabs or pipes between values, but saw blanks in "
                f"{first[:40]!r}: say --delimiter space if these part the values"
            )
            raise TableError(str(self.source.error(said, line)), delimiter="space")

    def _piece(self, lines: list[str], first: int) -> Piece:
        if any('"' in line for line in lines):
            return self._quoted(lines, first)
        numbers: int | list[int] = first
        if not all(lines) or any(line.isspace() for line in lines):
            kept = [i for i, line in enumerate(lines) if line.strip()]
            numbers, lines = [first + i for i in kept], [lines[i] for i in kept]
        piece = DelimitedPiece(self.name, lines, numbers, self.delimiter, len(self.columns))
        widths = [line.count(self.delimiter) + 1 for line in lines]
        return self._checked(piece, widths, lines, self.delimiter * (len(self.columns) - 1))

    def _quoted(self, lines: list[str], first: int) -> Piece:
        """Read rows whose quoted values may hold delimiters and line ends."""
        reader = csv.reader(
            chain((line + "\n" for line in lines), (line + "\n" for line in self.source)),
            delimiter=self.delimiter,
            strict=True,
        )
        rows, numbers = [], []
        try:
            while reader.line_num < len(lines):
                number = first + reader.line_num
                row = next(reader, [])
                if len(row) > 1 or any(map(str.strip, row)):  # no line of blanks
                    rows.append(row)
                    numbers.append(number)
        except csv.Error as error:
            raise self._quote_error(error, number) from None
        piece = Piece(self.name, rows, numbers)
        return self._checked(piece, [len(row) for row in rows], rows, [""] * len(self.columns))

    def _quote_error(self, error: csv.Error, line: int) -> InputError:
        return self.source.error(f"a quote is not closed, or closed too early ({error})", line)

    def _parse(self, lines: list[str]) -> list[list[str]]:
        try:
            return list(csv.reader(lines, delimiter=self.delimiter, strict=True))
        except csv.Error as error:
            raise self._quote_error(error, self._header_line) from None

    def _checked(
        self, piece: Piece, widths: Sequence[int], rows: list[Any], empty: str | list[str]
    ) -> Piece:
        """Refuse rows of another width than the header, or put empty ones in their place."""
        expected = len(self.columns)
        odd = [] if set(widths) <= {expected} else [w != expected for w in widths]
        problems: dict[int, str] = {}
        for row in (i for i, is_odd in enumerate(odd) if is_odd):
            hint = "a value is missing, or a line is cut off"
            if widths[row] > expected:
                hint = f"put values that hold {self.delimiter!r} in double quotes"
                if self.delimiter == ",":
                    hint += ", or is it a decimal comma?"
            said = f"expected {expected} values, as in the header, but saw {widths[row]}: {hint}"
            if not self.lenient and _text(rows[row]).lstrip().startswith("#"):
                said = f"{_text(rows[row])[:40]!r} looks like a comment: {HASH}"
                raise TableError(str(piece.error(row, "", said)), comment="#")
            if not self.lenient:
                raise piece.error(row, "", said)
            problems[row], rows[row] = f"line {piece.line(row)}: {said}", empty
        if problems:
            piece.problems = problems
        return piece


def _text(row: str | list[str]) -> str:
    return row if isinstance(row, str) else row[0]


def _sniffed(line: str) -> str:
    """Return the delimiter of a line.

    >>> _sniffed("a;b;c,d")
    ';'
    """
    outside = "".join(line.split('"')[::2])
    return max(SIGNS.values(), key=lambda sign: (outside.count(sign), sign == ","))


def _checked(delimiter: str) -> str:
    sign = {**SIGNS, "space": " ", "\\t": "\t"}.get(delimiter, delimiter)
    if len(sign) != 1 or sign in '"\n\r' or sign.isalnum():
        names = ", ".join((*SIGNS, "space"))
        raise InputError(f"a delimiter is one sign, or one of {names}; not {delimiter!r}")
    return sign


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
