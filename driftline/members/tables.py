r"""A table for every feature and every pair of features; the one that errs least predicts.

A table has decaying counts :math:`n_{bk}` of the classes in every cell b
(:mod:`driftline.members.bins`). With :math:`q` the share of each class in all rows, the
probabilities in a cell are

.. math:: p_k = \frac{n_{bk} + s q_k}{\sum_i n_{bi} + s},

and a table predicts the most probable class. Mistakes are counted with a half-life of their own.
The table with the fewest, the first of several, predicts.
"""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from driftline.errors import InputError
from driftline.features import Map, Ranks
from driftline.kernels import MEMBER, Kernel, helper, kernel
from driftline.members.bins import bin_of, bins_of, counts, cut_of, growth_of, shrink, weight
from driftline.members.classes import ClassMember
from driftline.members.counting import (
    all_finite,
    settle,
    weight_of,
)
from driftline.parts import check_number, check_whole
from driftline.state.arena import Field, Layout
from driftline.tasks import Task

__all__ = ["Tables"]

#: The memory begins with the weight of a row, the weight of a mistake, and how many of the first
#: features keep their tables of pairs where rows have become too long for tables of all pairs; else
#: 0.
HEAD, KEPT = 3, 2


@helper
def write_cells(x, bins, coarse, cut, paired, out):
    """Write the index of the cell that a row lies in, for every table."""
    features = x.size
    for j in range(features):
        out[j] = j * bins + bin_of(x[j], cut, bins)
    table, first = features, features * bins
    for i in range(paired):
        place = bin_of(x[i], cut, coarse) * coarse
        for j in range(i + 1, paired):
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
def tables(
    inputs, labels, sample_weight, constants, memory, room, playing, learning, scores, trace,
    predictions,
):  # fmt: skip
    """Score rows by the best table, and count them in all tables if they are learned from."""
    rows, features = inputs.shape
    bins, coarse, classes = int(constants[0]), int(constants[1]), int(constants[2])
    growth, slower, smoothing, cut = constants[3], constants[4], constants[5], constants[6]
    paired = int(memory[KEPT] if memory[KEPT] > 0.0 else constants[7])
    count = features + paired * (paired - 1) // 2
    seen = memory[HEAD : HEAD + classes]
    wrong = memory[HEAD + classes : HEAD + classes + count]
    flat = memory[HEAD + classes + count :]
    counts = flat.reshape(flat.size // classes, classes)
    cells, tops = room[:count], room[count : 2 * count]
    shares = room[2 * count : 2 * count + classes]
    for t in range(rows):
        if not all_finite(inputs[t]):
            return t
        write_cells(inputs[t], bins, coarse, cut, paired, cells)
        write_shares(seen, memory[0], smoothing, shares)
        best = 0
        for i in range(1, count):
            if wrong[i] < wrong[best]:
                best = i
        own, cell, total = scores[min(t, scores.shape[0] - 1)], int(cells[best]), 0.0
        for k in range(classes):
            own[k] = counts[cell, k] + shares[k]
            total += own[k]
        for k in range(classes):
            own[k] = math.log(own[k] / total)
        if playing:
            label, weight = labels[t, 0], weight_of(sample_weight, t)
            settle(own, label, weight, constants, t, trace, predictions)
            if weight == 0.0 or not learning[t]:
                continue
            for i in range(count):
                tops[i] = top_of(counts, int(cells[i]), shares)
            memory[0] *= growth
            memory[1] *= slower
            for i in range(count):
                counts[int(cells[i]), label] += weight * memory[0]
                if tops[i] != label:
                    wrong[i] += weight * memory[1]
            seen[label] += weight * memory[0]
            shrink(seen, memory[0])
            memory[0] = shrink(flat, memory[0])
            memory[1] = shrink(wrong, memory[1])
    return rows


class Tables(ClassMember):
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
        Up to how many features there are tables of pairs. If rows become longer than that, the
        features that had such tables keep them.
    smoothing
        How many rows of full weight every cell has from the start, with the classes' shares in all
        rows.
    features
        A map of inputs; mapped values are cut into bins of equal size. Default: ranks, so that bins
        are quantiles.
    seed
        Unused, since nothing is drawn; part of the learner's fingerprint.

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
        """Return sizes, growths, smoothing, where bins end, and how many features have pairs."""
        own = self.settings
        growths = [growth_of(own["half_life"]), growth_of(own["patience"])]
        rest = [own["smoothing"], cut_of(width), self._paired(width)]
        return [*self._bins, self._classes, *growths, *rest]

    def fields(self, width: int) -> tuple[Field, ...]:
        """Count the mistakes of all tables, and the classes in all their cells."""
        return (
            weight("weight"),
            weight("mistake"),
            Field("kept", least=0.0, most=min(width, int(self.settings["pairs"])), whole=True),
            counts("seen", "classes"),
            counts("wrong", "tables"),
            counts("cells", "cells", "classes"),
        )

    def layout(self, width: int, memory: np.ndarray | None = None) -> Layout:
        """Return where the fields lie; the memory says which features have tables of two."""
        kept = 0.0 if memory is None or len(memory) < HEAD else float(memory[KEPT])
        most = min(width, int(self.settings["pairs"]))
        if kept not in range(most + 1):
            raise InputError(f"{kept} features cannot have tables of two: {most} at most can")
        (bins, coarse), paired = self._bins, int(kept) or self._paired(width)
        pairs = paired * (paired - 1) // 2
        sizes = {"tables": width + pairs, "cells": width * bins + pairs * coarse**2}
        return Layout(self.fields(width), classes=self._classes, features=width, **sizes)

    def space(self, width: int) -> int:
        """Return room for a row's cells, the tables' predictions, and the classes' shares."""
        most = min(width, int(self.settings["pairs"]))
        return 2 * (width + most * (most - 1) // 2) + self._classes

    def with_features(
        self, memory: np.ndarray, width: int, places: np.ndarray, zero: np.ndarray
    ) -> np.ndarray:
        """Return the tables; those of new features start as if wrong in every round so far."""
        wide, kept = len(places), int(memory[KEPT])
        if not kept and self._paired(width) and not self._paired(wide):
            kept = width
        paired = kept or self._paired(wide)
        if kept and (places[:kept] != np.arange(kept)).any():
            raise InputError(
                f"the features that have tables of two must stay the first {kept}: this map puts "
                "new ones before them"
            )
        old = self.layout(width, memory).views(memory)
        worst, known, first = float(old.wrong.max(initial=0.0) + old.mistake), {}, 0
        tables = _tables(width, int(old.kept) or self._paired(width), *self._bins)
        for mistakes, (of, size) in zip(old.wrong, tables, strict=True):
            known[of] = mistakes, old.cells[first : first + size]
            first += size
        made = []
        for of, size in _tables(wide, paired, *self._bins):
            table = worst, np.zeros((size, self._classes))
            if len(of) == 1:  # the new feature was 0 in all rows so far
                table[1][bins_of(zero, size)[of[0]]] = old.seen
            made.append(known.get(tuple(int(places[i]) for i in of), table))
        cells = np.concatenate([own for _, own in made])
        wrong = [mistakes for mistakes, _ in made]
        return np.r_[old.weight, old.mistake, float(kept), old.seen, wrong, cells.ravel()]

    @property
    def _bins(self) -> tuple[int, int]:
        return int(self.settings["bins"]), int(self.settings["coarse"])

    def _paired(self, width: int) -> int:
        """Return how many features have tables of two from the start: all or none."""
        return width if 2 <= width <= self.settings["pairs"] else 0


def _tables(width: int, paired: int, bins: int, coarse: int) -> list[tuple[tuple[int, ...], int]]:
    """Return the features of every table, and how many cells it has."""
    pairs = [(i, j) for i in range(paired) for j in range(i + 1, paired)]
    return [((j,), bins) for j in range(width)] + [(pair, coarse**2) for pair in pairs]
