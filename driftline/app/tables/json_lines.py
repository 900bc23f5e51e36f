"""Tables of JSON lines: an object a line."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from driftline.app.tables.encoder import matching
from driftline.app.tables.given import text_of
from driftline.app.tables.line_table import LineTable
from driftline.app.tables.live import Follow
from driftline.app.tables.piece import Piece
from driftline.app.tables.source import Source
from driftline.app.tables.table_error import TableError
from driftline.errors import InputError

__all__ = ["JsonLinesTable"]

EXAMPLE = 'lines such as {"age": 31, "plan": "pro", "label": "stay"}'


class JsonLinesTable(LineTable):
    """Objects with values by the names of their columns; a key that is not there is missing.

    Columns are the keys of the first ``rows`` lines; as many are read at a time. Values are
    numbers, texts, true, false or null; columns of the patterns in ``ignore`` may hold anything.
    ``marked`` is whether :meth:`marker` gives positions, and ``follow`` whether more rows are
    waited for at the end of the file.
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
        ignore: Sequence[str] = (),
        rows: int = 4096,
        marked: bool = False,
        follow: Follow = Follow.NO,
    ):
        self.source, self.rows = Source(path, encoding, marked, follow), rows
        self.name = self.source.name
        self._pending = self.source.lines(rows)
        first = [line for line in self._pending if line.strip()]
        if not first:
            raise InputError(f"{self.name} is empty: expected {EXAMPLE}")
        if first[0].lstrip().startswith("["):
            raise InputError(
                f"{self.name} is one JSON document: expected an object a line, {EXAMPLE}; "
                "jq -c '.[]' writes a list so"
            )
        found = [row for row in map(_object, first) if row is not None]
        self.columns = list(dict.fromkeys(key for row in found for key in row))
        if not self.columns:
            raise self.source.error(f"expected {EXAMPLE}, but saw {first[0][:40]!r}", 1)
        self._places = {name: place for place, name in enumerate(self.columns)}
        self._ignored = {name for pattern in ignore for name in matching(pattern, self.columns)}

    def pieces(self) -> Iterator[Piece]:
        """Yield rows, some thousand lines at a time."""
        while True:
            self._begins()
            lines = [*self._pending] or self.source.lines(self.rows)
            self._pending = []
            if not lines:
                return
            first = self.source.number + 1 - len(lines)
            piece = self._piece(lines, first)
            if len(piece):
                yield self._read(piece)

    def _piece(self, lines: list[str], first: int) -> Piece:
        rows: list[list[str]] = []
        numbers: list[int] = []
        problems: dict[int, str] = {}
        for number, line in enumerate(lines, first):
            if not line.strip():
                continue
            try:
                row = self._row(line, number)
            except InputError as error:
                if not self.lenient:
                    raise
                problems[len(rows)] = str(error).removeprefix(f"{self.name}, ")
                row = [""] * len(self.columns)
            rows.append(row)
            numbers.append(number)
        piece = Piece(self.name, rows, numbers)
        piece.problems = problems
        return piece

    def _row(self, line: str, number: int) -> list[str]:
        """Return the values of an object as texts, in the order of the columns."""
        row, nested = [""] * len(self.columns), list[str]()
        found = _object(line)
        if found is None:
            raise self.source.error(f"expected {EXAMPLE}, but saw {line[:40]!r}", number)
        for key, value in found.items():
            place = self._places.get(key)
            if place is None:
                raise self.source.error(
                    f"the key {key[:40]!r} was in none of the first {self.rows:,} lines: expected "
                    f"{', '.join(self.columns[:8])}{' ...' if len(self.columns) > 8 else ''}",
                    number,
                )
            if not isinstance(value, (list, dict)):
                row[place] = text_of(value)
            elif key not in self._ignored:
                nested.append(key)
        if nested:
            key = nested[0]
            said = (
                f"column {', '.join(nested)}: expected a number, a text, true, false or null, but "
                f"saw {json.dumps(found[key])[:40]}: leave it out by --ignore {','.join(nested)}"
            )
            raise TableError(str(self.source.error(said, number)), ignore=nested)
        return row


def _object(line: str) -> dict[str, Any] | None:
    """Return the object in a line, None if there is none."""
    try:
        made = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return made if isinstance(made, dict) else None
