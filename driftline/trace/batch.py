"""Some rounds of a run, in columns by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["Batch"]


@dataclass(frozen=True, eq=False)
class Batch:
    """Columns of equal length, and those of each member of a committee.

    Predictions are rows of integers, padded by -1 where they differ in length. ``table`` is a
    buffer that has some of the columns as its rows, for a loop that writes them.

    >>> batch = Batch({"risk": np.zeros(3), "prediction": np.ones((3, 1), dtype=np.int64)})
    >>> len(batch), len(batch.part(1, 3))
    (3, 2)
    """

    columns: dict[str, np.ndarray]
    members: tuple[Batch, ...] = ()
    table: np.ndarray | None = None
    #: Which events these rounds are, where labels come late: a ``LateRun``, and the first of them.
    late: tuple[Any, int] | None = None

    def __len__(self) -> int:
        """Return the number of rounds."""
        return len(self.columns["risk"])

    def __getitem__(self, name: str) -> np.ndarray:
        """Return a column."""
        return self.columns[name]

    def weighted(self, sample_weight: np.ndarray | None) -> Batch:
        """Return the batch with a column of sample weights, in members too; without, as it is."""
        if sample_weight is None:
            return self
        return self.beside("sample_weight", sample_weight)

    def beside(self, name: str, column: np.ndarray) -> Batch:
        """Return the batch with one more column, in members too."""
        members = tuple(member.beside(name, column) for member in self.members)
        return Batch(self.columns | {name: column}, members, self.table, self.late)

    def with_column(self, name: str, column: np.ndarray) -> Batch:
        """Return the batch with one more column of its own."""
        return Batch(self.columns | {name: column}, self.members, self.table, self.late)

    def scored(self, size: int) -> Batch:
        """Return the batch with room for scores of its rounds: of a committee, in its members."""
        if not self.members:
            return self.with_column("scores", np.empty((len(self), size)))
        members = tuple(member.scored(size) for member in self.members)
        return Batch(dict(self.columns), members, self.table, self.late)

    def scored_at(self, place: int, size: int) -> Batch:
        """Return the batch of a committee with room for the scores of one of its members."""
        members = list(self.members)
        members[place] = members[place].scored(size)
        return Batch(self.columns, tuple(members), self.table, self.late)

    def scored_in(self, parts: Sequence[np.ndarray]) -> Batch:
        """Return the batch of a committee with these as the scores of its members."""
        pairs = zip(self.members, parts, strict=True)
        members = tuple(member.with_column("scores", own) for member, own in pairs)
        return Batch(self.columns, members, self.table, self.late)

    def delayed(self, late: Any, start: int, stop: int) -> Batch:
        """Return the batch as events ``start`` to ``stop`` of a run whose labels come late."""
        made = self if late.asked is None else self.beside("asked", late.asked[start:stop])
        return Batch(made.columns, made.members, made.table, (late, start))

    def part(self, start: int, stop: int) -> Batch:
        """Return some of the rounds: a view, through which they can be written."""
        return Batch(
            {name: column[start:stop] for name, column in self.columns.items()},
            tuple(member.part(start, stop) for member in self.members),
            None if self.table is None else self.table[:, start:stop],
            None if self.late is None else (self.late[0], self.late[1] + start),
        )
