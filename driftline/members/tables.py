r"""A table for every feature and every pair of features; the one that errs least predicts.

A table has the counts :math:`n_{bk}` of the classes in every cell b, which forget
(:mod:`driftline.members.bins`). With :math:`q` the share of each class in all rows, the chances in
a cell are

.. math:: p_k = \frac{n_{bk} + s q_k}{\sum_i n_{bi} + s},

and a table predicts the most probable class. Mistakes are counted with a half-life of their own.
The table with the fewest, the first of several, predicts.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from driftline.errors import InputError
from driftline.features import Map, Ranks
from driftline.kernels import MEMBER, Kernel, helper, kernel
from driftline.members.base import (
    CountingMember,
    all_finite,
    check_number,
    check_whole,
    settle,
)
from driftline.members.bins import bin_of, bins_of, cut_of, growth_of, shrink
from driftline.tasks import Task

__all__ = ["Tables"]

#: What precedes the counts: what a row counts, and what a mistake does.
HEAD = 2


@helper
def write_cells(x, bins, coarse, cut, pairs, out):
    """Write where the cells of all tables begin that a row lies in, as numbers of cells."""
    features = x.size
    for j in range(features):
        out[j] = j * bins + bin_of(x[j], cut, bins)
    if pairs:
        table, first = features, features * bins
        for i in range(features):
            place = bin_of(x[i], cut, coarse) * coarse
            for j in range(i + 1, features):
                out[table] = first + place + bin_of(x[j], cut, coarse)
                table += 1
                first += coarse * coarse


@helper
def top_of(counts, cell, shares):
    """Return the most probable class of a cell; ``shares`` are what smoothing adds."""
    top, most = 0, counts[cell, 0] + shares[0]
    for k in range(1, shares.size):
        own = counts[cell, k] + shares[k]
        if own > most:
            top, most = k, own
    return top


@helper
def write_shares(seen, weight, smoothing, out):
    """Write what smoothing adds to the count of every class: its share of all rows."""
    classes, total = out.size, 0.0
    for k in range(classes):
        total += seen[k] + weight / classes
    for k in range(classes):
        out[k] = smoothing * weight * (seen[k] + weight / classes) / total


@kernel(MEMBER)
def tables(inputs, labels, constants, memory, room, learning, scores, trace, predictions):
    """Score rows by the best table, and count them in all tables if they are learned from."""
    rows, features = inputs.shape
    bins, coarse, classes = int(constants[0]), int(constants[1]), int(constants[2])
    growth, slower, smoothing, cut = constants[3], constants[4], constants[5], constants[6]
    pairs, count = constants[7] > 0.0, int(constants[8])
    seen = memory[2 : 2 + classes]
    wrong = memory[2 + classes : 2 + classes + count]
    flat = memory[2 + classes + count :]
    counts = flat.reshape(flat.size // classes, classes)
    cells, tops, shares = room[:count], room[count : 2 * count], room[2 * count :]
    for t in range(rows):
        if not all_finite(inputs[t]):
            return t
        write_cells(inputs[t], bins, coarse, cut, pairs, cells)
        write_shares(seen, memory[0], smoothing, shares)
        best = 0
        for i in range(1, count):
            if wrong[i] < wrong[best]:
                best = i
        own, cell, total = scores[0] if learning else scores[t], int(cells[best]), 0.0
        for k in range(classes):
            own[k] = counts[cell, k] + shares[k]
            total += own[k]
        for k in range(classes):
            own[k] = math.log(own[k] / total)
        if learning:
            label = labels[t, 0]
            settle(own, label, t, trace, predictions)
            for i in range(count):
                tops[i] = top_of(counts, int(cells[i]), shares)
            memory[0] *= growth
            memory[1] *= slower
            for i in range(count):
                counts[int(cells[i]), label] += memory[0]
                if tops[i] != label:
                    wrong[i] += memory[1]
            seen[label] += memory[0]
            shrink(seen, memory[0])
            memory[0] = shrink(flat, memory[0])
            memory[1] = shrink(wrong, memory[1])
    return rows


class Tables(CountingMember):
    """Tables of one or two features; the one that has erred least lately predicts.

    Good where few features decide.

    Parameters
    ----------
    task
        Classes, or signs.
    bins, coarse
        How many bins a feature has in a table of its own, and in one of two features.
    half_life
        After how many rounds a row counts half.
    patience
        After how many rounds a mistake of a table counts half.
    pairs
        Up to how many features there are tables of two.
    smoothing
        How many rows of today every cell has from the start, of the classes' shares in all rows.
    features
        A map of inputs, the cells of whose rows lie in bins of equal size. Default: ranks, so that
        bins are quantiles.
    seed
        Nothing is drawn; it belongs to the learner's fingerprint.

    Examples
    --------
    >>> import driftline as dl
    >>> rng = np.random.default_rng(0)
    >>> X = rng.random((2000, 6))
    >>> y = (X[:, 1] > 0.5).astype(int) ^ (X[:, 4] > 0.5)
    >>> bool(Tables(dl.tasks.Multiclass(2)).run(X, y).target_loss.mean() < 0.15)
    True
    """

    kernel: ClassVar[Kernel] = tables

    def __init__(
        self,
        task: Task,
        *,
        bins: int = 32,
        coarse: int = 16,
        half_life: float = 200.0,
        patience: float = 200.0,
        pairs: int = 10,
        smoothing: float = 1.0,
        features: Map | None = Ranks(),  # noqa: B008 (frozen)
        seed: int | None = 0,
    ):
        settings = {
            "bins": check_whole("bins", bins, 2, 1024),
            "coarse": check_whole("coarse", coarse, 2, 128),
            "half_life": check_number("half_life", half_life, 1.0, 1e9),
            "patience": check_number("patience", patience, 1.0, 1e9),
            "pairs": check_whole("pairs", pairs, 0, 1000),
            "smoothing": check_number("smoothing", smoothing, 1e-3, 1e3),
        }
        super().__init__(task, features, settings, seed)

    def constants(self, width: int) -> list[float]:
        """Return sizes, growths, smoothing, and how many tables there are."""
        own = self.settings
        growths = [growth_of(own["half_life"]), growth_of(own["patience"])]
        sizes = [own["bins"], own["coarse"], self._classes]
        pairs, count = self._paired(width), self._count(width)
        return [*sizes, *growths, own["smoothing"], cut_of(width), float(pairs), float(count)]

    def size(self, width: int) -> int:
        """Count the mistakes of all tables, and the classes in all their cells."""
        bins, coarse, classes = *self._bins, self._classes
        cells = width * bins + (self._count(width) - width) * coarse**2
        return HEAD + classes + self._count(width) + cells * classes

    def started(self, width: int) -> np.ndarray:
        """Return counts of 0."""
        made = self.zeros(width)
        made[:HEAD] = 1.0
        return made

    def space(self, width: int) -> int:
        """For the cells of one row, what tables predict, and the classes' shares."""
        return 2 * self._count(width) + self._classes

    def check_memory(self, memory: np.ndarray, width: int) -> None:
        """Refuse counts below 0."""
        if (memory[:HEAD] < 1.0).any() or (memory < 0.0).any():
            raise InputError("counts are 0 or more, and a row counts 1 or more")

    def with_classes(self, memory: np.ndarray, width: int, classes: int) -> np.ndarray:
        """Return counts in which new classes have none."""
        head, seen, wrong, counts = self._parts(memory, width)
        more = classes - self._classes
        counts = np.pad(counts, [(0, 0), (0, more)])
        return np.r_[head, np.pad(seen, (0, more)), wrong, counts.ravel()]

    def with_features(
        self, memory: np.ndarray, width: int, places: np.ndarray, zero: np.ndarray
    ) -> np.ndarray:
        """Return tables in which those of new features have erred in every round so far."""
        wide = len(places)
        if self._paired(width) and not self._paired(wide):
            raise InputError(
                f"there are tables of two features up to {self.settings['pairs']} of them: "
                f"expected no more, but got {wide}"
            )
        head, seen, wrong, counts = self._parts(memory, width)
        worst = float(wrong.max(initial=0.0)) + float(head[1])
        old, mistakes, cells = self._tables(width), [], []
        for j, (members, size) in enumerate(self._tables(wide)):
            was = tuple(int(places[i]) for i in members)
            at = next((i for i, (known, _) in enumerate(old) if known == was), None)
            if at is None:
                mistakes.append(worst)
                cells.append(np.zeros((size, self._classes)))
                if j < wide:  # all rows so far lay where 0 does
                    cells[-1][bins_of(zero, size)[j]] = seen
            else:
                first = sum(size for _, size in old[:at])
                mistakes.append(wrong[at])
                cells.append(counts[first : first + size])
        return np.r_[head, seen, mistakes, np.concatenate(cells).ravel()]

    @property
    def _bins(self) -> tuple[int, int]:
        return int(self.settings["bins"]), int(self.settings["coarse"])

    def _paired(self, width: int) -> bool:
        return 2 <= width <= self.settings["pairs"]

    def _count(self, width: int) -> int:
        return width + (width * (width - 1) // 2 if self._paired(width) else 0)

    def _tables(self, width: int) -> list[tuple[tuple[int, ...], int]]:
        """Return the features of every table, and how many cells it has."""
        bins, coarse = self._bins
        made: list[tuple[tuple[int, ...], int]] = [((j,), bins) for j in range(width)]
        if self._paired(width):
            pairs = [(i, j) for i in range(width) for j in range(i + 1, width)]
            made += [(pair, coarse**2) for pair in pairs]
        return made

    def _parts(self, memory: np.ndarray, width: int) -> tuple[Any, ...]:
        ends = np.cumsum([HEAD, self._classes, self._count(width)])
        head, seen, wrong, counts = np.split(memory, ends)
        return head, seen, wrong, counts.reshape(-1, self._classes)
