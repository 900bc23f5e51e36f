"""Tables in svmlight format: a line is ``label qid:Q index:value ... # comment``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np

from driftline.errors import InputError
from driftline.tables.piece import Piece
from driftline.tables.source import Source
from driftline.tables.values import number

__all__ = ["SvmlightTable"]

INDEX = re.compile(r"\s(\d+):")
#: A committee has a weight for every feature, class and member.
LARGEST = 10**8
TOO_LARGE = f"index {{}} is too large: expected {LARGEST} at most"


class SvmlightTable:
    """An svmlight file: labels, queries if there are any, and entries that are not zero.

    An index is a column as it is, so that column 0 is empty in files that begin with 1. How many
    there are is found by a first look at the whole file, unless it is said.
    """

    def __init__(self, path: str | Path, *, features: int | None = None, rows: int = 4096):
        if features is not None and features > LARGEST + 1:
            raise InputError(f"{features} features are too many: expected {LARGEST + 1} at most")
        self.width: int | None = features if features is not None else _features(path)
        self.source, self.rows = Source(path), rows
        self.name = self.source.name
        self._lines = self._tokens()
        self._first = next(self._lines, None)
        if self._first is None:
            raise InputError(f"{self.name} is empty: expected lines such as 1 qid:1 3:0.5")
        tokens = self._first[1]
        self.queries = len(tokens) > 1 and tokens[1].startswith("qid:")
        self.columns = ["label", "qid"] if self.queries else ["label"]

    def pieces(self) -> Iterator[Piece]:
        """Yield rows, some thousand at a time."""
        while True:
            part = [] if self._first is None else [self._first]
            self._first = None
            part += islice(self._lines, self.rows - len(part))
            if not part:
                return
            yield self._piece(part)

    def _piece(self, part: list[tuple[int, list[str]]]) -> Piece:
        from driftline.streams.readers.lines import sparse_rows

        texts: list[list[str]] = []
        values: list[float] = []
        places: list[int] = []
        starts = [0]
        for line, tokens in part:
            texts.append(self._beside(line, tokens))
            seen = len(places)
            for token in tokens[len(texts[-1]) :]:
                place, value = self._entry(line, token)
                places.append(place)
                values.append(value)
            row = places[seen:]
            if len(set(row)) < len(row):
                twice = next(place for i, place in enumerate(row) if place in row[:i])
                raise self.source.error(f"index {twice} occurs twice", line)
            starts.append(len(places))
        piece = Piece(self.name, texts, [line for line, _ in part])
        width = max([self.width or 1, *(place + 1 for place in places)])
        piece.matrix = sparse_rows(values, places, starts, width)
        return piece

    def _tokens(self) -> Iterator[tuple[int, list[str]]]:
        for line in self.source:
            tokens = line.partition("#")[0].split()
            if tokens:
                yield self.source.number, tokens

    def _beside(self, line: int, tokens: list[str]) -> list[str]:
        """Return label and query."""
        if ":" in tokens[0]:
            raise self.source.error(f"expected a label first, but saw {tokens[0][:40]!r}", line)
        has = len(tokens) > 1 and tokens[1].startswith("qid:")
        if has != self.queries:
            raise self.source.error("some lines have a qid and some have none", line)
        return [tokens[0], tokens[1][4:]] if has else tokens[:1]

    def _entry(self, line: int, token: str) -> tuple[int, float]:
        index, colon, text = token.partition(":")
        value = number(text) if colon else None
        if value is None or not np.isfinite(value) or not (index.isascii() and index.isdigit()):
            raise self.source.error(
                f"expected index:value with a finite value, but saw {token[:40]!r}", line
            )
        place = _place(index)
        if place > LARGEST:
            raise self.source.error(TOO_LARGE.format(index[:40]), line)
        return place, value

    @property
    def progress(self) -> tuple[int, int | None]:
        """Bytes."""
        return self.source.done, self.source.size

    def close(self) -> None:
        """Let go of the file."""
        self.source.close()


def _features(path: str | Path) -> int:
    """Return one more than the largest index of a file."""
    if not Path(path).is_file() and (str(path) == "-" or Path(path).exists()):
        raise InputError(
            "how many features standard input or a pipe has cannot be known: say --features"
        )
    largest = 0
    with Source(path) as source:
        for line in source:
            found = INDEX.findall(line.partition("#")[0])
            largest = max([largest, *map(_place, found)])
            if largest > LARGEST:
                raise source.error(TOO_LARGE.format(max(found, key=_place)[:40]))
    return largest + 1


def _place(index: str) -> int:
    """Return the column of an index; 20 digits say enough of one that is too large."""
    return int(index.lstrip("0")[:20] or 0)
