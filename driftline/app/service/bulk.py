"""Many rows in one request, read as they come: CSV with a header, or a JSON object a line."""

from __future__ import annotations

import csv
from collections.abc import AsyncIterator, Iterator, Sequence
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
    """Yield lines; inside quotes, a line may have several."""
    rest = b""
    async for part in parts:
        lines = (rest + part).split(b"\n")
        rest = lines.pop()
        for line in _joined(lines, quoted):
            if isinstance(line, list):  # a quote that is still open
                rest = b"\n".join([*line, rest])
            else:
                yield _text(line)
        if len(rest) > LINE:
            raise RefusedError(413, f"a line may have {LINE} bytes")
    if rest.strip():
        yield _text(rest)


def _joined(lines: Sequence[bytes], quoted: bool) -> Iterator[bytes | list[bytes]]:
    open_: list[bytes] = []
    quotes = 0
    for line in lines:
        if not quoted:
            yield line
            continue
        open_.append(line)
        quotes += line.count(b'"')
        if quotes % 2 == 0:
            yield b"\n".join(open_)
            open_ = []
    if open_:
        yield open_


def _text(line: bytes) -> str:
    try:
        return line.decode("utf-8-sig").rstrip("\r")
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
