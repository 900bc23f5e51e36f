"""Runs, and comparisons of them on the same rows and seeds."""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

from benchmarks.race.contest import Run
from benchmarks.race.peers import PEERS, everybody
from driftline.paper.results import Mean


class Match(NamedTuple):
    """A contestant beside the committee: mean mistakes of both on the same rows and seeds.

    ``more`` is how many more the committee has, with the interval of the difference by seeds.
    """

    name: str
    theirs: float
    ours: float
    more: Mean
    rounds: int
    seeds: int

    @property
    def ratio(self) -> float:
        """Their mistakes for one of ours."""
        return self.theirs / max(self.ours, 1e-9)


def label(name: str) -> str:
    """Return the name of a contestant with its library before it."""
    group = everybody()[name].group
    return f"{group} {name}" if group in ("river", "sklearn") else name


class Board:
    """All runs of a race."""

    def __init__(self, runs: list[Run]):
        self._runs: dict[tuple[str, str], list[Run]] = defaultdict(list)
        for run in sorted(runs, key=lambda run: run.seed):
            self._runs[run.name, run.stream].append(run)
        self.names = [name for name in everybody() if any(name == run.name for run in runs)]

    def runs(self, name: str, stream: str) -> list[Run]:
        """Return the runs that ended well."""
        return [run for run in self._runs[name, stream] if not run.error]

    def errors(self, name: str, stream: str) -> list[str]:
        """Return what the others raised."""
        return [run.error for run in self._runs[name, stream] if run.error]

    def cell(self, name: str, stream: str) -> str:
        """Return mean mistakes and interval; a star where not all rows were played."""
        runs = self.runs(name, stream)
        if not runs:
            return "raised" if self.errors(name, stream) else "-"
        star = "*" if runs[0].rounds < self.rounds(stream) else ""
        return str(Mean.of([run.mistakes for run in runs])) + star

    def rounds(self, stream: str) -> int:
        """Return the length of a stream."""
        return self.runs("auto", stream)[0].rounds

    def rate(self, name: str, stream: str) -> float | None:
        """Return the best rounds per second of all seeds."""
        return max((run.rate for run in self.runs(name, stream)), default=None)

    def match(self, name: str, stream: str) -> Match | None:
        """Compare a contestant with the committee."""
        ours = {run.seed: run for run in self.runs("auto", stream)}
        theirs = [run for run in self.runs(name, stream) if run.seed in ours]
        if not theirs:
            return None
        pairs = [(run.mistakes, ours[run.seed].until(run.rounds)) for run in theirs]
        more = Mean.of([mine - other for other, mine in pairs])
        other, mine = (Mean.of(column).value for column in zip(*pairs, strict=True))
        return Match(label(name), other, mine, more, theirs[0].rounds, len(theirs))

    def best(self, names: list[str], stream: str) -> Match | None:
        """Return the one with the fewest mistakes for one of ours."""
        found = [match for name in names if (match := self.match(name, stream)) is not None]
        return min(found, key=lambda match: match.ratio, default=None)

    def group(self, *groups: str) -> list[str]:
        """Return the names of some groups."""
        return [name for name in self.names if everybody()[name].group in groups]

    @property
    def defaults(self) -> list[str]:
        """Peers at their defaults."""
        return [name for name in self.group(*PEERS) if everybody()[name].default]
