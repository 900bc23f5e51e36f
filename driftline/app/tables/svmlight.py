"""Tables in svmlight format: a line is ``label qid:Q index:value ... # comment``."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path

from driftline.app.tables.line_table import LineTable
from driftline.app.tables.mark import Mark
from driftline.app.tables.piece import Piece
from driftline.app.tables.query_sizes import QuerySizes
from driftline.app.tables.source import Source
from driftline.errors import InputError

__all__ = ["SvmlightTable"]

INDEX = re.compile(r"\s(\d+):")
#: The largest index: a committee has a weight for every feature, class and member.
LARGEST = 10**8
EXAMPLE = "lines such as 1 qid:1 3:0.5"
TOO_LARGE = f"index {{}} is too large: expected {LARGEST} at most"


class SvmlightTable(LineTable):
    """An svmlight file: labels, queries if there are any, and entries that are not zero.

    An index is the number of a column, so that column 0 is empty in files that begin with 1. The
    number of columns is found by a first pass over the file, unless it is given. Lines without
    ``qid`` may have the sizes of their queries in a second file. ``marked`` is whether
    :meth:`marker` gives positions.
    """

    sparse = True
    notes: Sequence[str] = ()
    lenient = False

    def __init__(
        self,
        path: str | Path,
        *,
        features: int | None = None,
        rows: int = 4096,
        marked: bool = False,
    ):
        if features is not None and features > LARGEST + 1:
            raise InputError(f"{features} features are too many: expected {LARGEST + 1} at most")
        look = _look(path) if features is None else None
        self.width: int | None = features if look is None else look[0]
        self.source, self.rows = Source(path, marked=marked), rows
        self.name = self.source.name
        self._lines = self._tokens()
        self._first = next(self._lines, None)
        if self._first is None:
            raise InputError(f"{self.name} is empty: expected {EXAMPLE}")
        self._qid = _has_qid(self._first[1])
        self._sizes = None if self._qid else QuerySizes.beside(path)
        self._queries: Iterator[str] = iter(self._sizes or ())
        if self._sizes is not None:
            self._check_sizes(self._sizes, (look or _look(path))[1])
        self.queries = self._qid or self._sizes is not None
        self.columns = ["label", "qid"] if self.queries else ["label"]

    def _check_sizes(self, sizes: QuerySizes, rows: int) -> None:
        what = f"{len(sizes.sizes)} queries of {sizes.rows} rows"
        if sizes.rows != rows:
            raise InputError(f"{sizes.name} has {what}, but {self.name} has {rows} rows")
        self.notes = [f"queries: {len(sizes.sizes)} of {sizes.name}"]

    def pieces(self) -> Iterator[Piece]:
        """Yield rows, some thousand at a time."""
        while True:
            self._begins()
            part = [] if self._first is None else [self._first]
            self._first = None
            part += islice(self._lines, self.rows - len(part))
            if not part:
                return
            yield self._read(self._piece(part))

    def _look_back(self, lines: int) -> None:
        self._first = None

    def go_to(self, mark: Mark) -> None:
        """Move to the piece of a mark, which must not be before the current position."""
        super().go_to(mark)
        for _ in islice(self._queries, mark.rows - mark.drop):
            pass

    def _digest(self, lines: str, rows: int) -> str:
        """Return the digest of lines, and of the sizes of all queries that end in them."""
        if self._sizes is None or not lines:
            return lines
        return hashlib.sha256(f"{lines} {self._sizes.ended(rows)}".encode()).hexdigest()

    def _piece(self, part: list[tuple[int, list[str]]]) -> Piece:
        from driftline.readers.lines import sparse_rows
        from driftline.readers.svmlight import entries

        texts: list[list[str]] = []
        values: list[float] = []
        places: list[int] = []
        starts = [0]
        for line, tokens in part:
            texts.append(self._beside(line, tokens))
            own, theirs = entries(
                tokens[2 if self._qid else 1 :], partial(self.source.error, line=line)
            )
            if own and max(own) > LARGEST:
                raise self.source.error(TOO_LARGE.format(max(own)), line)
            places += own
            values += theirs
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
        if _has_qid(tokens) != self._qid:
            raise self.source.error("some lines have a qid and some have none", line)
        if self._qid:
            return [tokens[0], tokens[1][4:]]
        return [tokens[0], self._next_query(line)] if self.queries else tokens[:1]

    def _next_query(self, line: int) -> str:
        query = next(self._queries, "")
        if not query:  # the file has grown
            raise self.source.error("there is no query left for this row", line)
        return query


def _has_qid(tokens: list[str]) -> bool:
    return len(tokens) > 1 and tokens[1].startswith("qid:")


def _look(path: str | Path) -> tuple[int, int]:
    """Return one more than the largest index of a file, and how many rows it has."""
    if not Path(path).is_file() and (str(path) == "-" or Path(path).exists()):
        raise InputError(
            "how many features standard input or a pipe has cannot be known: say --features"
        )
    largest, rows = -1, 0
    with Source(path) as source:
        for line in source:
            text = line.partition("#")[0]
            found = INDEX.findall(text)
            largest = max([largest, *map(_place, found)])
            if largest > LARGEST:
                raise source.error(TOO_LARGE.format(max(found, key=_place)[:40]))
            rows += bool(text.strip())
    if rows and largest < 0:
        raise InputError(f"{path} has no index:value in any line: expected {EXAMPLE}")
    return largest + 1, rows


def _place(index: str) -> int:
    """Return the column of an index, cut to 20 digits, which is too large already."""
    return int(index.lstrip("0")[:20] or 0)
