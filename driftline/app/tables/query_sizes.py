"""The queries of rows, from a second file with the size of a query per line."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate, repeat
from pathlib import Path

from driftline.app.tables.source import Source

__all__ = ["QuerySizes"]


class QuerySizes:
    """The sizes of the queries in a file: ``train.svm.query`` beside ``train.svm``."""

    def __init__(self, path: Path):
        self.name, self.sizes = path.name, list[int]()
        with Source(path) as source:
            for line in source:
                text = line.strip()
                if text and not (text.isascii() and text.isdigit() and 0 < int(text[:19]) < 2**31):
                    raise source.error(
                        f"expected the size of a query, 1 or more, but saw {text[:40]!r}"
                    )
                if text:
                    self.sizes.append(int(text))

    @classmethod
    def beside(cls, path: str | Path) -> QuerySizes | None:
        """Return the sizes beside a file, None if there are none; a suffix of gzip is ignored."""
        path = Path(path)
        other = path.with_name(f"{path.name.removesuffix('.gz')}.query")
        return cls(other) if path.is_file() and other.is_file() else None

    @property
    def rows(self) -> int:
        """How many rows all queries have."""
        return sum(self.sizes)

    def ended(self, rows: int) -> list[int]:
        """Return the sizes of the queries that have no row after the first ``rows``."""
        ends = accumulate(self.sizes)
        return [size for size, end in zip(self.sizes, ends, strict=True) if end <= rows]

    def __iter__(self) -> Iterator[str]:
        """Yield the query of every row: 1, 2 and so on."""
        for number, size in enumerate(self.sizes, 1):
            yield from repeat(str(number), size)
