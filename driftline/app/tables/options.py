"""What a person has said about a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Options"]


@dataclass(frozen=True)
class Options:
    """What a person has said about a table; None and empty is for guessing.

    ``label``, ``ignore`` and ``text`` may hold patterns such as ``tag_*``.
    """

    label: Sequence[str] = ()
    task: str | None = None
    ignore: Sequence[str] = ()
    text: Sequence[str] = ()
    query: str | None = None
    levels: Sequence[str] = ()
    missing: str = "refuse"
    decimal: str = "."
    highest: int | None = None
