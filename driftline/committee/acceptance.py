"""Which rows no member and no map of a committee can refuse: such a round needs no checkpoint."""

from __future__ import annotations

import math
from collections.abc import Sequence

from driftline.inputs import Rows, largest_entry
from driftline.learner import Member

__all__ = ["Acceptance"]

#: Members that never refuse rows of modest size accept inputs with no larger entry.
LARGEST_ENTRY = 1e12


class Acceptance:
    """What is known beforehand of which rows are accepted.

    ``scaled`` says whether rows are scaled before members see them, and ``ragged`` whether a round
    has several rows: it may be refused for their number, after they were scaled.
    """

    def __init__(self, members: Sequence[Member], scaled: bool, ragged: bool):
        self._members, self._scaled = all(member.never_refuses for member in members), scaled
        self._possible = self._members and not (ragged and scaled)
        self._maps = [member.map for member in members if member.map is not None]
        self._limit: float | None = None  # until the number of features is known
        self.forget()

    def forget(self) -> None:
        """Know nothing of the last row: rows of another kind may be refused."""
        self._last: type[Rows] | None = None
        self._always = False  # until it is known that every finite row of this kind is accepted

    @property
    def known(self) -> tuple[type[Rows] | None, bool, float | None]:
        """What the last rows have shown: a value, which can be set again."""
        return self._last, self._always, self._limit

    @known.setter
    def known(self, value: tuple[type[Rows] | None, bool, float | None]) -> None:
        self._last, self._always, self._limit = value

    def by_members(self, rows: Rows) -> bool:
        """Return whether no member can refuse rows that are finite."""
        return self._members and (self._scaled or largest_entry(rows) <= LARGEST_ENTRY)

    def like_last(self, row: Rows) -> bool:
        """Return whether a row is of the kind of the last one."""
        return type(row) is self._last

    def is_sure(self, row: Rows) -> bool:
        """Return whether neither a member nor a map can refuse one more row, if it is finite."""
        if type(row) is not self._last:
            return False
        return self._always or (self._possible and self._is_small(row))

    def _is_small(self, row: Rows) -> bool:
        if self._limit is None:
            limits = (part.bears(row.features) for part in self._maps)
            self._limit = min(limits, default=math.inf)
        self._always = self._scaled and self._limit == math.inf
        if self._always:
            return True
        return self.by_members(row) and (
            self._limit == math.inf or largest_entry(row) < self._limit
        )

    def note(self, row: Rows) -> None:
        """Remember that a row was accepted."""
        self._last = type(row)
