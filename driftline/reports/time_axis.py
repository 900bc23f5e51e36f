"""Times below the rounds of a chart."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

__all__ = ["TimeAxis"]

#: A date and a time of the day, as they are mostly written.
STAMP = re.compile(r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d(?::\d\d)?).*")

#: The most characters of a label.
LONGEST = 12


@dataclass(frozen=True)
class TimeAxis:
    """When rounds were: texts by round, counted from 0, and the name of the column they are from.

    >>> axis = TimeAxis("when", {0: "2024-05-01 08:00", 10: "2024-05-01 20:00"})
    >>> axis.at(12), axis.labels([0, 10])
    ('2024-05-01 20:00', ['08:00', '20:00'])
    """

    name: str
    times: Mapping[int, str]

    @cached_property
    def _rounds(self) -> list[int]:
        return sorted(self.times)

    def at(self, rounds: float) -> str:
        """Return the last time that is known up to a round, empty if there is none."""
        place = bisect_right(self._rounds, rounds)
        return self.times[self._rounds[place - 1]] if place else ""

    def near(self, rounds: float) -> str:
        """Return about when a round was: its day, if rounds of the run are days apart.

        >>> days = TimeAxis("when", {t: f"2024-05-{t + 1:02}T08:00:00Z" for t in range(9)})
        >>> days.near(3)
        '2024-05-04'
        """
        known, text = self._rounds, self.at(rounds)
        stamp = STAMP.fullmatch(text)
        some = [known[k * (len(known) - 1) // 7] for k in range(8)] if known else []
        days = [self.times[t][:10] for t in some]
        return stamp[1] if stamp and len(set(days)) == len(days) else text

    def labels(self, rounds: Sequence[float]) -> list[str]:
        """Return short labels: days, or times of the day if all are of the same day.

        >>> days = TimeAxis("when", {t: f"2024-05-{t + 1:02}T00:00:00Z" for t in range(9)})
        >>> days.labels([0, 8])
        ['2024-05-01', '2024-05-09']
        """
        texts = [self.at(t) for t in rounds]
        found = [STAMP.fullmatch(text) for text in texts]
        stamps = [match.groups() for match in found if match]
        if len(stamps) < len(texts):
            return [
                text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}\u2026" for text in texts
            ]
        days, clocks = [day for day, _ in stamps], [clock for _, clock in stamps]
        if len(set(days)) == len(days):
            return days
        if len(set(days)) == 1:
            return clocks
        return [f"{day[5:]} {clock[:5]}" for day, clock in stamps]
