"""A position in a table, with a digest of everything before it."""

from __future__ import annotations

from typing import NamedTuple

from driftline.errors import InputError
from driftline.typing import Json

__all__ = ["BEGINNING", "Mark"]


class Mark(NamedTuple):
    """A position between two rows, from which reading can go on with the same pieces.

    ``lines`` is where the piece begins that has the next row, ``drop`` how many of its rows are
    before the mark, and ``rows`` how many there are before it in all. ``digest`` is the SHA-256 of
    the first ``through`` lines, which are those of all these rows; in Parquet lines are rows.
    """

    lines: int = 0
    drop: int = 0
    rows: int = 0
    through: int = 0
    digest: str = ""

    @classmethod
    def from_config(cls, config: Json) -> Mark:
        """Return a mark from plain data."""
        numbers = [config[name] for name in cls._fields[:-1]]
        if not all(type(n) is int and 0 <= n < 2**62 for n in numbers):
            raise InputError(f"a position in a table cannot be {numbers}")
        return cls._make([*numbers, str(config["digest"])])


BEGINNING = Mark()
