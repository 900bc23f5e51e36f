"""Which inputs changed during a run, and when: found at its end, in the sample of its rows.

A column of numbers is searched by its ranks for changes of its level, and if there are none by the
distance of ranks from the middle for changes of its spread; a column of texts by whether each
category is there. :mod:`driftline.detectors.segments` has the test. Its level is divided by
the number of series of all columns, so that in a hundred runs without changes, one has a column
told at most.
"""

from __future__ import annotations

import math
from itertools import combinations, pairwise

import numpy as np

from driftline.app.runs.run import Run
from driftline.app.tables.columns import Column
from driftline.detectors import LEAST_ROWS, change_points
from driftline.reports import ChangedInput, InputChange, TimeAxis
from driftline.reports.chart import number

__all__ = ["changed_inputs"]

#: How often a change may be told in a run without changes.
LEVEL = 0.01

#: Categories with fewer rows of the sample are not searched.
LEAST_CATEGORY = 8

#: How many blocks a small chart has.
BLOCKS = 32


def changed_inputs(run: Run) -> list[ChangedInput] | None:
    """Return inputs that changed, those that moved most first; None if they were not searched.

    That is where there are few rows, or so many columns that too few rows could be kept.
    """
    sample, columns = run.sample, run.model.encoder.columns
    rows = len(sample.values)
    if rows < LEAST_ROWS or sample.rounds != run.journal.rounds + run.late.untold:
        return None
    if isinstance(columns, int):
        known = [Column(name, "number") for name in run.model.encoder.feature_names]
    else:
        known = columns.columns
    every = [_searched(*pair) for pair in zip(known, sample.values.T, strict=True)]
    level = LEVEL / max(1, sum(len(one.series) for one in every))
    times = TimeAxis("", {} if run.model.late else run.times.kept)  # which are those of labels
    found = []
    for one in every:
        starts = one.search(level)
        if starts:
            found.append(_told(one, starts, sample.span, sample.rounds, times))
    return sorted(found, key=lambda told: -told.moved)


def _searched(column: Column, values: np.ndarray) -> _Numbers | _Texts:
    """Return how a column is searched; a number with two values is as good as a text."""
    if column.kind == "text":
        return _Texts(column, values.astype(int))
    different = np.unique(values)
    if len(different) != 2:
        return _Numbers(column, values)
    names = ("false", "true") if column.kind == "flag" else map(number, different.tolist())
    return _Texts(Column(column.name, "text", tuple(names)), np.searchsorted(different, values))


def _told(
    one: _Numbers | _Texts, starts: list[int], span: int, rounds: int, times: TimeAxis
) -> ChangedInput:
    """Return what is told of a column, given where parts of the sample begin."""
    ends = [0, *starts, len(one.values)]
    parts = [one.values[a:b] for a, b in pairwise(ends)]
    said = [one.in_words(before, after) for before, after in pairwise(parts)]
    changes = [
        InputChange(about(start * span + 1, rounds), times.near(start * span), words)
        for start, words in zip(starts, said, strict=True)
    ]
    blocks = np.array_split(one.values, BLOCKS)
    middle, low, high = one.drawn(parts, blocks)
    marks = [start / len(one.values) for start in starts]
    name, (whole, of) = one.column.name, one.range_in_words(parts)
    return ChangedInput(name, one.moved(parts), changes, whole, of, middle, low, high, marks)


def about(place: int, rounds: int) -> int:
    """Return a round that is known to about a hundredth of all rounds.

    >>> about(3493, 6000), about(3493, 250_000), about(97, 300)
    (3490, 3000, 97)
    """
    step = 10 ** max(0, math.floor(math.log10(rounds)) - 2)
    return max(1, round(place / step) * step)


class _Numbers:
    """A column of numbers: its level, or if that does not change, its spread."""

    def __init__(self, column: Column, values: np.ndarray):
        self.column, self.values, self.spread = column, values, False
        _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
        ranks = (np.cumsum(counts) - 0.5 * (counts - 1))[places] - 0.5 * (len(values) + 1)
        self.series = [ranks, np.abs(ranks)] if len(counts) > 1 else []

    def search(self, level: float) -> list[int]:
        """Return where parts begin."""
        for series in self.series:
            if found := change_points(series, level):
                self.spread = series is self.series[1]
                return found
        return []

    def in_words(self, before: np.ndarray, after: np.ndarray) -> str:
        """Say what is different."""
        middle = np.median(self.values)
        if self.spread:
            sizes = [np.abs(part - middle).mean() for part in (before, after)]
            said = "spread wider" if sizes[0] < sizes[1] else "spread less"
            widths = [
                float(np.subtract(*np.quantile(part, [0.75, 0.25]))) for part in (before, after)
            ]
            return f"values {said}{_from_to('middle half', widths, sizes[1] - sizes[0], ' wide')}"
        shares = [np.mean(part > middle) + np.mean(part >= middle) for part in (before, after)]
        up = float(shares[1] - shares[0])
        for what, of in (("median", np.median), ("mean", np.mean)):
            if text := _from_to(what, [float(of(before)), float(of(after))], up):
                break
        return f"values are {'higher' if up > 0 else 'lower'}{text}"

    def range_in_words(self, parts: list[np.ndarray]) -> tuple[str, str]:
        """Return the range of all parts, and what it is the range of."""
        of = "the middle half" if self.spread else "the median"
        quantiles = [np.quantile(part, [0.25, 0.5, 0.75]) for part in parts]
        made = [float(q[2] - q[0] if self.spread else q[1]) for q in quantiles]
        wide = " wide" if self.spread else ""
        return (
            f"{of} is between {_short(min(made))} and {_short(max(made))}{wide}",
            "median and middle half",
        )

    def drawn(
        self, parts: list[np.ndarray], blocks: list[np.ndarray]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the median of each block, and what the middle half lies between."""
        low, middle, high = np.array([np.quantile(b, [0.25, 0.5, 0.75]) for b in blocks]).T
        return middle, low, high

    def moved(self, parts: list[np.ndarray]) -> float:
        """Return the largest Kolmogorov-Smirnov distance between two parts."""
        values = np.unique(self.values)
        below = [np.searchsorted(np.sort(p), values, side="right") / len(p) for p in parts]
        return float(max(np.abs(a - b).max() for a, b in combinations(below, 2)))


class _Texts:
    """A column of texts: the shares of its categories."""

    def __init__(self, column: Column, values: np.ndarray):
        self.column, self.values = column, values
        codes, counts = np.unique(self.values, return_counts=True)
        self.codes = codes if len(codes) > 1 else codes[:0]
        often = counts >= LEAST_CATEGORY
        self.series = [self.values == code for code in self.codes[often[: len(self.codes)]]]

    def search(self, level: float) -> list[int]:
        """Return where parts begin."""
        return change_points(np.column_stack(self.series), level) if self.series else []

    def _shares(self, parts: list[np.ndarray]) -> np.ndarray:
        return np.array([[np.mean(part == code) for code in self.codes] for part in parts])

    def in_words(self, before: np.ndarray, after: np.ndarray) -> str:
        """Say which category is more frequent, or less."""
        shares = self._shares([before, after])
        most = _last_largest(np.abs(shares[1] - shares[0]))
        more = "more" if shares[1, most] > shares[0, most] else "less"
        percent = [f"{100 * share:.3g}%" for share in shares[:, most]]
        return f"{self._name(most)} {more} frequent: from {percent[0]} to {percent[1]}"

    def _name(self, place: int) -> str:
        code, categories = int(self.codes[place]), self.column.categories
        if code < 0:
            return "missing values are"
        return f"{categories[code]!r} is" if code < len(categories) else "other texts are"

    def _most(self, parts: list[np.ndarray]) -> int:
        """Return the category whose share has the largest range."""
        return _last_largest(np.ptp(self._shares(parts), axis=0))

    def range_in_words(self, parts: list[np.ndarray]) -> tuple[str, str]:
        """Return the range of all parts, and what it is the range of."""
        most = self._most(parts)
        shares = self._shares(parts)[:, most]
        what = self._name(most).rsplit(" ", 1)[0]
        said = f"the share of {what} is between {100 * shares.min():.3g}%"
        return f"{said} and {100 * shares.max():.3g}%", f"share of {what}"

    def drawn(
        self, parts: list[np.ndarray], blocks: list[np.ndarray]
    ) -> tuple[np.ndarray, None, None]:
        """Return the share of a category in each block."""
        return self._shares(blocks)[:, self._most(parts)], None, None

    def moved(self, parts: list[np.ndarray]) -> float:
        """Return the largest total variation distance between two parts."""
        pairs = combinations(self._shares(parts), 2)
        return float(max(0.5 * np.abs(a - b).sum() for a, b in pairs))


def _last_largest(values: np.ndarray) -> int:
    """Return the place of the largest value; of equal ones the last, as true after false."""
    return int(np.flatnonzero(values >= values.max() - 1e-12)[-1])


def _short(value: float) -> str:
    r"""Return a value with three digits.

    >>> _short(0.32484), _short(1234567.0)
    ('0.325', '1\xa0230\xa0000')
    """
    return number(float(f"{value:.3g}"))


def _from_to(what: str, values: list[float], up: float, unit: str = "") -> str:
    """Return two values, if they differ as they should; else nothing."""
    before, after = map(_short, values)
    good = before != after and (values[1] > values[0]) == (up > 0)
    return f": {what} from {before} to {after}{unit}" if good else ""
