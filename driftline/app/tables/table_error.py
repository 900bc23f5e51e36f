"""Refusals of a table that know which options would help."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from driftline.errors import InputError

__all__ = ["TableError", "joined"]

#: The most problems that are told at once.
MOST = 12


class TableError(InputError):
    """What is wrong with a table, and the options that would get past it, by name.

    A list of columns is added to those that were named already.

    >>> TableError("t.csv: column 'id' looks like a name", ignore=["id"]).changes
    {'ignore': ['id']}
    """

    def __init__(self, message: str, **changes: Any):
        super().__init__(message)
        self.changes = changes


def joined(name: str, found: Sequence[TableError]) -> TableError:
    """Return one refusal of a table for all that is wrong with it."""
    changes: dict[str, Any] = {}
    for refusal in found:
        for option, value in refusal.changes.items():
            if isinstance(value, list):
                value = list(dict.fromkeys([*changes.get(option, []), *value]))
            changes[option] = value
    if len(found) == 1:
        return TableError(str(found[0]), **changes)
    lines = [str(refusal).removeprefix(name).lstrip(",: ") for refusal in found]
    more = [f"and {len(lines) - MOST} more"] if len(lines) > MOST else []
    told = "\n  ".join([*lines[:MOST], *more])
    return TableError(f"{name} has {len(found)} things to decide:\n  {told}", **changes)
