"""Which rows no member and no map of a committee can refuse: such a round needs no checkpoint."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

from driftline.inputs import Rows, largest_entry
from driftline.learner import Member

__all__ = ["Acceptance"]

#: Gradient steps on rows with no larger entry are never refused, where members refuse few rows.
LARGEST_ENTRY = 1e12


#: The kind of the last row, whether all finite rows like it are accepted, and by which limit.
Known: TypeAlias = tuple[type[Rows] | None, bool, tuple[int, float] | None]


class Acceptance:
    """What is known beforehand of which rows are accepted.

    ``ragged`` says whether a round has several rows: it may be refused for their number, after maps
    have learned from them.
    """

    def __init__(self, members: Sequence[Member], ragged: bool):
        self._members = all(member._fixed.never_refuses for member in members)
        self._pairs = {(member.map, member._fixed.steps) for member in members}
        mapped = any(member.map is not None for member in members)
        self._possible = self._members and not (ragged and mapped)
        self._limit: tuple[int, float] | None = None  # until the number of features is known
        self.forget()

    def forget(self) -> None:
        """Know nothing of the last row: rows of another kind may be refused."""
        self._last: type[Rows] | None = None
        self._always = False  # until it is known that every finite row of this kind is accepted

    @property
    def known(self) -> Known:
        """What the last rows have shown: a value, which can be set again."""
        return self._last, self._always, self._limit

    @known.setter
    def known(self, value: Known) -> None:
        self._last, self._always, self._limit = value

    def by_members(self, rows: Rows) -> bool:
        """Return whether no member and no map can refuse rows that are finite."""
        limit = self._limit_of(rows.features)
        return self._members and (limit == math.inf or largest_entry(rows) < limit)

    def like_last(self, row: Rows) -> bool:
        """Return whether a row is of the kind of the last one."""
        return type(row) is self._last

    def is_sure(self, row: Rows) -> bool:
        """Return whether neither a member nor a map can refuse one more row, if it is finite."""
        if type(row) is not self._last:
            return False
        return self._always or (self._possible and self._is_small(row))

    def _is_small(self, row: Rows) -> bool:
        self._always = self._limit_of(row.features) == math.inf
        return self._always or self.by_members(row)

    def _limit_of(self, features: int) -> float:
        """Return s such that no map and no step refuses a row with all ``|x_i| < s``."""
        if self._limit is None or self._limit[0] != features:
            least = math.inf
            for part, steps in self._pairs:
                if steps and (part is None or part.norm(features) == math.inf):
                    least = min(least, LARGEST_ENTRY)
                if part is not None:
                    least = min(least, part.bears(features))
            self._limit = features, least
        return self._limit[1]

    def note(self, row: Rows) -> None:
        """Remember that a row was accepted."""
        self._last = type(row)
