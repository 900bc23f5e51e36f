"""Many rows in one request, read as they come: CSV with a header, or a JSON object a line."""

from __future__ import annotations

import csv
from collections.abc import AsyncIterator
from typing import Any

import msgspec

from driftline.app.service.bodies import CELL, Cell, Text
from driftline.app.service.requests import RefusedError
from driftline.typing import Json

__all__ = ["rows_of"]

#: The longest line, and the most columns.
LINE, COLUMNS = 1 << 20, 10_000


async def rows_of(parts: AsyncIterator[bytes], kind: str) -> AsyncIterator[Json]:
    """Yield rows, each a dict by the names of columns."""
    header: list[str] | None = None
    number = 0
    async for line in _lines(parts, quoted=kind == "csv"):
        number += 1
        if not line.strip():
            continue
        if kind != "csv":
            yield _object(line, number)
        elif header is None:
            header = _cells(line, number)
            if len(set(header)) < len(header) or len(header) > COLUMNS:
                raise RefusedError(422, "line 1: expected different names of columns")
        else:
            cells = _cells(line, number)
            if len(cells) != len(header):
                raise RefusedError(
                    422, f"line {number} has {len(cells)} cells, but the header {len(header)}"
                )
            yield dict(zip(header, cells, strict=True))


async def _lines(parts: AsyncIterator[bytes], quoted: bool) -> AsyncIterator[str]:
    """Yield lines; inside quotes, a line may have several. Every byte is looked at once."""
    line, quotes, first = bytearray(), 0, True
    async for part in parts:
        *ended, rest = part.split(b"\n")
        for piece in ended:
            line += piece
            quotes += quoted and piece.count(b'"')
            if len(line) > LINE:
                break
            if quotes % 2 == 0:
                yield _text(line, first)
                line, quotes, first = bytearray(), 0, False
            else:
                line += b"\n"
        line += rest
        quotes += quoted and rest.count(b'"')
        if len(line) > LINE:
            raise RefusedError(413, f"a line may have {LINE} bytes")
    if line:
        yield _text(line, first)


def _text(line: bytearray, first: bool) -> str:
    """Return a line as text; a file may begin with a byte order mark."""
    try:
        return line.decode("utf-8-sig" if first else "utf-8").rstrip("\r")
    except UnicodeDecodeError as error:
        raise RefusedError(400, f"the rows are no UTF-8: {error}") from None


def _cells(line: str, number: int) -> list[str]:
    try:
        made = next(csv.reader([line], strict=True))
    except (csv.Error, StopIteration) as error:
        raise RefusedError(422, f"line {number} is no CSV: {error}") from None
    if any(len(cell) > CELL for cell in made):
        raise RefusedError(422, f"line {number}: a cell has {CELL} characters at most")
    return made


def _object(line: str, number: int) -> Json:
    try:
        made: Any = msgspec.json.decode(line, type=dict[Text, Cell])
    except (msgspec.DecodeError, RecursionError) as error:
        raise RefusedError(422, f"line {number} is no JSON object of cells: {error}") from None
    return made
