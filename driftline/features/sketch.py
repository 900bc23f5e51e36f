r"""Running quantiles in constant memory, which change rarely.

Of every feature 256 cells are kept. Up to the 256th row these are all; later, in rows
:math:`2^k` to :math:`2^{k+1}`, one in :math:`2^k / 256`, from the beginning. Whenever the number
of rows has doubled, from 4 on, *knots* are chosen anew from the kept cells: so they change
:math:`\log_2 T` times in T rows, and after a lasting change of the stream no knot is left from
before it once the number of rows has doubled twice.

Knots are values that were seen. If there are no more distinct values than knots, each is a knot.
Else a value that is in more than its share of the cells is a knot, and the other knots are the
medians of equal parts of the remaining cells. Cells are clipped to 1e150 in size, as in scaling, so
that no difference of two overflows.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from driftline.errors import InputError
from driftline.features.compiled import CompiledMap
from driftline.features.scaling import LARGEST
from driftline.kernels import helper
from driftline.state.arena import MOST_ROWS, Field

__all__ = ["CELLS", "SketchMap", "below", "is_finite", "learn_row", "limited", "sketch_of"]

#: How many cells of every feature are kept.
CELLS = 256

#: The first number of rows at which knots are chosen.
FIRST = 4


class SketchMap(CompiledMap):
    """Base of maps that place cells among the running quantiles of their feature."""

    @property
    def levels(self) -> int:
        """The largest number of knots of a feature; as many as bins, where there are some."""
        made: int = getattr(self, "bins", None) or self.knots  # type: ignore[attr-defined]
        return made

    def constants(self, features: int) -> np.ndarray:
        """Return the number of knots."""
        return np.array([float(self.levels)])

    def fields(self, features: int, sparse: bool) -> tuple[Field, ...]:
        """Count rows, and keep the number of knots, the knots and the cells of every feature."""
        return (
            Field("rows", least=0.0, most=MOST_ROWS, whole=True),
            Field("counts", ("features",), least=0.0, most=self.levels, whole=True),
            Field("knots", ("features", self.levels), least=-LARGEST, most=LARGEST),
            Field("cells", (CELLS, "features"), least=-LARGEST, most=LARGEST),
        )

    def room(self, features: int) -> int:
        """Return room for the cells of one feature."""
        return CELLS

    def check(self, state: Any, features: int) -> None:
        """Refuse a sketch that no rows can lead to."""
        rows, counts = float(state.rows), state.counts
        if ((counts > 0) != (rows >= FIRST)).any():
            raise InputError(
                f"after {rows:g} rows a sketch cannot have {counts.min():g} to {counts.max():g} "
                f"knots, of {self.levels}"
            )
        if state.cells[int(min(rows, CELLS)) :].any():
            raise InputError(f"a sketch of {rows:g} rows has not seen more cells than these")
        known = np.arange(self.levels) < counts[:, np.newaxis]
        if (np.diff(state.knots, axis=1) <= 0.0)[known[:, 1:]].any():
            raise InputError("the knots of a sketch must rise")

    def add(self, state: Any, old: int) -> None:
        """Give new features a knot at 0."""
        state.counts[old:] = state.rows >= FIRST


@helper
def sketch_of(state, features, knots):
    """Return how many knots there are of each feature, the knots, and the cells."""
    first = 1 + features
    second = first + features * knots
    counts = state[1:first]
    table = state[first:second].reshape(features, knots)
    cells = state[second : second + CELLS * features].reshape(CELLS, features)
    return counts, table, cells


@helper
def is_finite(x):
    """Say whether all cells of a row are finite."""
    bad = 0
    for j in range(x.size):
        bad += not abs(x[j]) < math.inf
    return bad == 0


@helper
def limited(cell):
    """Return a finite cell, clipped to ``LARGEST``."""
    return min(LARGEST, max(-LARGEST, cell))


@helper
def below(x, own, count):
    """Return how many knots lie at or below a cell."""
    place = 0
    for i in range(count):
        place += own[i] <= x
    return place


@helper
def sort_cells(room, count):
    """Sort the first ``count`` numbers, by a heap."""
    for end in range(1, count):
        child = end
        while child > 0 and room[(child - 1) // 2] < room[child]:
            parent = (child - 1) // 2
            room[parent], room[child] = room[child], room[parent]
            child = parent
    for end in range(count - 1, 0, -1):
        room[0], room[end] = room[end], room[0]
        parent, child = 0, 1
        while child < end:
            if child + 1 < end and room[child + 1] > room[child]:
                child += 1
            if room[parent] >= room[child]:
                break
            room[parent], room[child] = room[child], room[parent]
            parent, child = child, 2 * child + 1


@helper
def is_heavy(room, first, last, count, knots):
    """Return whether a run of equal cells is more than the share of a knot."""
    return (last - first) * knots > count


@helper
def choose_knots(room, count, own, knots):
    """Write knots from ``count`` cells, which are sorted in place; return how many there are."""
    sort_cells(room, count)
    different, heavy, light, first = 0, 0, 0, 0
    for last in range(1, count + 1):
        if last == count or room[last] != room[first]:
            different += 1
            if is_heavy(room, first, last, count, knots):
                heavy += 1
            else:
                light += last - first
            first = last
    made, first, passed, taken = 0, 0, 0, 0
    others = max(1, knots - heavy)
    for last in range(1, count + 1):
        if last < count and room[last] == room[first]:
            continue
        if different <= knots or is_heavy(room, first, last, count, knots):
            own[made] = room[first]
            made += 1
        else:  # a knot if the middle of one of the equal parts lies among these cells
            passed += last - first
            if taken < others and made < knots and 2 * others * passed > (2 * taken + 1) * light:
                own[made] = room[first]
                made += 1
                while taken < others and 2 * others * passed > (2 * taken + 1) * light:
                    taken += 1
        first = last
    return made


@helper
def learn_row(x, state, features, knots, room):
    """Keep the cells of every 2^k / 256-th row, and choose knots when rows have doubled."""
    counts, table, cells = sketch_of(state, features, knots)
    rows, begun = int(state[0]), 1
    while 2 * begun <= max(rows, CELLS):
        begun *= 2
    place, stride = rows, 1
    if rows >= CELLS:
        stride = begun // CELLS
        place = (rows - begun) // stride
    if rows < CELLS or (rows - begun) % stride == 0:
        for j in range(features):
            cells[place, j] = limited(x[j])
    rows += 1
    state[0] = rows
    if rows >= FIRST and rows & (rows - 1) == 0:
        count = min(rows, CELLS)
        for j in range(features):
            for i in range(count):
                room[i] = cells[i, j]
            counts[j] = choose_knots(room, count, table[j], knots)
