"""The tables that a model has learned from, and up to where."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from driftline.app.tables import BEGINNING, Mark, Table
from driftline.errors import InputError
from driftline.typing import Json

__all__ = ["UNSAID", "Found", "Input", "find", "is_pipe"]

#: The number of rows to skip was not given.
UNSAID = -1


class Input(NamedTuple):
    """A table that was read, up to a mark.

    ``place`` is a digest of its path, empty for a pipe; ``head`` is a mark after its first piece,
    by which it is recognised under another path; ``skip`` is the last given number of rows to skip.
    """

    name: str
    place: str
    skip: int = UNSAID
    head: Mark = BEGINNING
    mark: Mark = BEGINNING

    @classmethod
    def of(cls, file: Path, skip: int = UNSAID) -> Input:
        """Return an input from which nothing was read yet."""
        if is_pipe(file):
            return cls("a pipe", "", skip)
        place = hashlib.sha256(str(file.resolve()).encode("utf-8", "surrogateescape"))
        return cls(file.name, place.hexdigest(), skip)

    def to_config(self) -> Json:
        """Return all as plain data."""
        marks = {"head": self.head._asdict(), "mark": self.mark._asdict()}
        return self._asdict() | marks

    @classmethod
    def from_config(cls, config: Json) -> Input:
        """Return the input from what :meth:`to_config` returned."""
        marks = [Mark.from_config(config[name]) for name in ("head", "mark")]
        skip = config["skip"]
        if type(skip) is not int or skip < UNSAID:
            raise InputError(f"{skip} rows cannot be skipped")
        return cls(str(config["name"]), str(config["place"]), skip, *marks)


class Found(NamedTuple):
    """Which of the inputs a file is, and the table, moved to where reading stopped."""

    number: int
    table: Table


def is_pipe(file: Path) -> bool:
    """Return whether a file can be read only once."""
    return str(file) == "-" or not file.is_file()


def find(
    file: Path, inputs: Sequence[Input], opened: Callable[[], Table], other: str = ""
) -> Found | None:
    """Return which of the inputs a file is: by its path, or by its content.

    A file at the path of an input that has changed before its mark is refused; ``other`` is the
    advice in the message, empty if the file is to be taken as a new input.
    """
    if is_pipe(file):
        return None
    place = Input.of(file).place
    for number in reversed(range(len(inputs))):
        if inputs[number].place == place:
            rows, table = inputs[number].mark.rows, _at(inputs[number].mark, opened)
            if table is not None:
                return Found(number, table)
            if other:
                raise InputError(
                    f"{file} has changed in the {rows:,} rows that were learned from: put it back "
                    f"as it was, or {other}"
                )
    table = None
    for number, known in sorted(enumerate(inputs), key=lambda pair: pair[1].head.through):
        if known.place and known.head.rows and known.mark.rows:
            table = opened() if table is None else table
            if table.fits(known.head) and (found := _at(known.mark, opened)) is not None:
                return Found(number, found)
    return None


def _at(mark: Mark, opened: Callable[[], Table]) -> Table | None:
    """Return a table moved to a mark; None if it has changed before that."""
    table = opened()
    if not table.fits(mark):
        return None
    if mark.drop:
        table = opened()
    table.go_to(mark)
    return table
