"""Runs, and comparisons of them on the same rows and seeds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from statistics import median
from typing import NamedTuple

from benchmarks.race.contest import Run
from benchmarks.race.ours import ROW_BY_ROW
from benchmarks.race.peers import PEERS, everybody
from driftline.paper.results import Mean


class Match(NamedTuple):
    """A contestant beside the committee: means of both on the same rows and seeds.

    They are mistakes or logarithmic losses. ``more`` is how much more the committee has, with the
    interval of the difference by seeds.
    """

    name: str
    theirs: float
    ours: float
    more: Mean
    rounds: int
    seeds: int

    @property
    def ratio(self) -> float:
        """What they have for one of ours."""
        return self.theirs / max(self.ours, 1e-9)


def label(name: str, said: str | None = None) -> str:
    """Return the name of a contestant, or what is said for it, with its library before it."""
    group = everybody()[name].group
    return f"{group} {said or name}" if group in ("river", "sklearn") else said or name


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

    def rate(self, name: str, streams: list[str]) -> float | None:
        """Return rounds per second: the best of all seeds, and of these the median by streams."""
        runs = [self.runs(name, stream) for stream in streams]
        rates = [max(run.rate for run in ended) for ended in runs if ended]
        return median(rates) if rates else None

    def nats(self, name: str, stream: str) -> str:
        """Return the mean logarithmic loss; a star where not all rows were played."""
        runs = [run for run in self.runs(name, stream) if run.log_loss is not None]
        if not runs:
            return "-"
        star = "*" if runs[0].rounds < self.rounds(stream) else ""
        return f"{Mean.of([run.log_loss for run in runs]).value:.3f}{star}"

    def mistakes(self, name: str, stream: str, ours: str = "auto") -> Match | None:
        """Compare the mistakes of a contestant with those of a committee."""
        own = {run.seed: run for run in self.runs(ours, stream)}
        theirs = [run for run in self.runs(name, stream) if run.seed in own]
        pairs = [(run.mistakes, own[run.seed].until(run.rounds)) for run in theirs]
        return self._match(name, theirs, pairs)

    def log_losses(self, name: str, stream: str) -> Match | None:
        """Compare the logarithmic loss of a contestant with the committee's, over all rows."""
        ours = {run.seed: run for run in self.runs(ROW_BY_ROW, stream)}
        theirs = [
            run
            for run in self.runs(name, stream)
            if run.log_loss is not None and run.seed in ours and run.rounds == self.rounds(stream)
        ]
        pairs = [(run.log_loss, ours[run.seed].log_loss) for run in theirs]
        return self._match(name, theirs, pairs)

    @staticmethod
    def _match(name: str, theirs: list[Run], pairs: list[tuple[float, float]]) -> Match | None:
        if not pairs:
            return None
        more = Mean.of([mine - other for other, mine in pairs])
        other, mine = (Mean.of(column).value for column in zip(*pairs, strict=True))
        return Match(name, other, mine, more, theirs[0].rounds, len(theirs))

    def best(
        self, names: list[str], stream: str, kind: Callable[[str, str], Match | None] | None = None
    ) -> Match | None:
        """Return the one with the least for one of ours, of mistakes if no kind is named."""
        compare = kind or self.mistakes
        found = [match for name in names if (match := compare(name, stream)) is not None]
        return min(found, key=lambda match: match.ratio, default=None)

    def group(self, *groups: str) -> list[str]:
        """Return the names of some groups."""
        return [name for name in self.names if everybody()[name].group in groups]

    @property
    def defaults(self) -> list[str]:
        """Peers at their defaults."""
        return [name for name in self.group(*PEERS) if everybody()[name].default]
