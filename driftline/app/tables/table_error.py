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

    A list of columns is added to those that were named already. ``column`` is that which could not
    be guessed, if any; ``parts`` are the errors that this one was made of; ``begun`` is whether
    rows were learned from before, with other options.

    >>> TableError("t.csv: column 'id' looks like a name", ignore=["id"]).changes
    {'ignore': ['id']}
    """

    def __init__(self, message: str, **changes: Any):
        super().__init__(message)
        self.changes, self.column = changes, ""
        self.parts: list[TableError] = [self]
        self.begun = False


def joined(name: str, errors: Sequence[TableError]) -> TableError:
    """Return one error of a table for all that is wrong with it."""
    found = [part for error in errors for part in error.parts]
    changes: dict[str, Any] = {}
    for part in found:
        for option, value in part.changes.items():
            if isinstance(value, list):
                changes.setdefault(option, {}).update(dict.fromkeys(value))
            else:
                changes[option] = value
    changes = {k: list(own) if isinstance(own, dict) else own for k, own in changes.items()}
    if len(found) == 1:
        return TableError(str(found[0]), **changes)
    lines = [str(part).removeprefix(name).lstrip(",: ") for part in found]
    more = [f"and {len(lines) - MOST} more"] if len(lines) > MOST else []
    told = "\n  ".join([*lines[:MOST], *more])
    made = TableError(f"{name} has {len(found)} things to decide:\n  {told}", **changes)
    made.parts = found
    return made
