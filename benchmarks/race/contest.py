"""Who plays, and what is kept of a run."""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import driftline
from benchmarks.race.streams import FIXED, WIDE, Rows

#: A run keeps its mistakes at every so many rounds.
STEP = 500

#: A share of every probability that is given to all classes alike before its logarithm is taken,
#: so that a zero costs much but not everything.
SMOOTHING = 1e-3

#: Rounds at most and seeds at most, by cost, on plain and on wide streams.
ALL = 10**9
BUDGETS = {
    "light": ((ALL, ALL), (ALL, ALL)),
    "parsed": ((ALL, ALL), (ALL, 3)),
    "pairs": ((ALL, ALL), (2000, 1)),
    "python": ((ALL, 3), (ALL, 1)),
    "slow": ((ALL, 3), (2000, 1)),
    "slowest": ((ALL, 1), (2000, 1)),
}


class Played(NamedTuple):
    """Predictions, the seconds they took, and a row of probabilities each if there are any."""

    made: Any
    seconds: float
    chances: np.ndarray | None = None


Play = Callable[[Rows, int], Played]


@lru_cache(maxsize=1)
def _source() -> str:
    """Return a number that changes with any file of Driftline's source."""
    files = sorted(Path(driftline.__file__).parent.rglob("*.py"))
    return f"{zlib.crc32(b''.join(file.read_bytes() for file in files)):08x}"


@dataclass(frozen=True)
class Contestant:
    """A method with its settings.

    ``play`` takes rows and a seed. What libraries need as their own form of the rows is made
    before the clock starts. ``raw`` says that it plays rows that were not standardised.
    """

    group: str
    family: str
    setting: str
    play: Play = field(compare=False)
    package: str = "driftline"
    default: bool = False
    cost: str = "light"
    raw: bool = False

    @property
    def name(self) -> str:
        """Family and setting."""
        return f"{self.family} {self.setting}".strip()

    @property
    def version(self) -> str:
        """The version of the package, or that it is missing."""
        try:
            return version(self.package)
        except PackageNotFoundError:
            return "missing"

    @property
    def code(self) -> str:
        """The version of what plays; of ours also a digest of its source, which may move on."""
        return f"{self.version} {_source()}" if self.package == "driftline" else self.version

    @property
    def kept(self) -> bool:
        """Whether its runs are kept for the next race: ours are played anew unless that is dear."""
        return self.package != "driftline" or self.cost != "light"

    def budget(self, stream: str, seeds: list[int], full: bool) -> tuple[int, list[int]]:
        """Return how many rounds at most are played, and for which seeds."""
        seeds = seeds[:1] if stream in FIXED else seeds
        if full:
            return ALL, seeds
        rounds, count = BUDGETS[self.cost][stream in WIDE]
        return rounds, seeds[: min(count, len(seeds))]


class Run(NamedTuple):
    """One contestant on one stream: mistakes so far at every STEP rounds and at the end.

    ``log_loss`` is the mean of minus the logarithm of the label's probability.
    """

    name: str
    stream: str
    seed: int
    rounds: int
    curve: list[int]
    seconds: float
    error: str = ""
    log_loss: float | None = None

    @property
    def mistakes(self) -> int:
        """All mistakes."""
        return self.curve[-1]

    @property
    def rate(self) -> float:
        """Rounds per second."""
        return self.rounds / self.seconds

    def until(self, rounds: int) -> int:
        """Return the mistakes in the first rounds, a multiple of STEP or all."""
        return self.mistakes if rounds >= self.rounds else self.curve[rounds // STEP - 1]


def log_loss(chances: np.ndarray, labels: np.ndarray) -> float:
    """Return the mean logarithmic loss in nats, of probabilities mixed with uniform ones."""
    given = np.nan_to_num(chances[np.arange(len(labels)), labels])
    smooth = (1.0 - SMOOTHING) * given + SMOOTHING / chances.shape[1]
    return float(-np.log(smooth).mean())


def play(contestant: Contestant, stream: str, seed: int, rows: Rows) -> Run:
    """Let a contestant play, and say what it raised if it did."""
    rounds = len(rows.labels)
    try:
        made, seconds, chances = contestant.play(rows, seed)
    except Exception as error:  # whatever a library raises is its result
        text = f"{type(error).__name__}: {error}".splitlines()[0][:120]
        return Run(contestant.name, stream, seed, rounds, [], 0.0, text)
    wrong = np.cumsum(np.asarray(made).ravel() != rows.labels)
    ends = [*range(STEP, rounds, STEP), rounds]
    curve = [int(wrong[end - 1]) for end in ends]
    nats = None if chances is None else log_loss(chances, rows.labels)
    return Run(contestant.name, stream, seed, rounds, curve, seconds, log_loss=nats)


def one_by_one(
    predict: Callable[[Any], Any], learn: Callable[[Any, int], Any], rows: list[Any], labels: Any
) -> tuple[list[Any], float]:
    """Predict and then learn row by row; return what was predicted, and the seconds."""
    made = []
    start = time.perf_counter()
    for x, label in zip(rows, labels.tolist(), strict=True):
        made.append(predict(x))
        learn(x, label)
    return made, time.perf_counter() - start


def by_chances(chances: np.ndarray, seconds: float) -> Played:
    """Return a play that predicts the most probable class."""
    return Played(chances.argmax(axis=1), seconds, chances)
