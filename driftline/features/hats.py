r"""Every feature as a curve: piecewise linear between quantiles.

With knots :math:`k_1 < \dots < k_m` of a feature, a cell x between two of them becomes

.. math:: h_i = \frac{k_{i+1} - x}{k_{i+1} - k_i}, \qquad h_{i+1} = 1 - h_i,

and all else 0; outside, the hat at the end is 1. Weights of hats are the values of a piecewise
linear function at the knots, so that a linear learner learns a curve of every feature. Values that
are categories have a hat each, and are told apart as by one column each.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from driftline.errors import InputError
from driftline.features.compiled import CompiledMap
from driftline.features.sketch import (
    check_sketch,
    grown_sketch,
    learn_row,
    room_of,
    size_of,
    sketch_of,
)
from driftline.kernels import MAP, Kernel, helper, kernel

__all__ = ["Hats"]


@helper
def below(x, own, count):
    """Return how many knots lie at or below a cell."""
    place = 0
    for i in range(count):
        place += own[i] <= x
    return place


@helper
def write_hats(x, state, features, knots, factor, out):
    """Write the hats of one row; return whether all its cells are finite."""
    counts, table, _ = sketch_of(state, features, knots)
    out[:] = 0.0
    for j in range(features):
        cell = x[j]
        if not abs(cell) < math.inf:
            return False
        count, own = int(counts[j]), table[j]
        if count == 0:
            continue
        place, first = below(cell, own, count), j * knots
        if place == 0:
            out[first] = factor
        elif place == count:
            out[first + count - 1] = factor
        else:
            share = (cell - own[place - 1]) / (own[place] - own[place - 1])
            out[first + place - 1] = factor * (1.0 - share)
            out[first + place] = factor * share
    return True


@kernel(MAP)
def hats(inputs, constants, state, room, learning, out):
    """Write the hats of rows, and remember these if they are learned from."""
    rows, features = inputs.shape
    knots = int(constants[0])
    factor = 1.0 / math.sqrt(features)
    for t in range(rows):
        if not write_hats(inputs[t], state, features, knots, factor, out[t]):
            return t
        if learning:
            learn_row(inputs[t], state, features, knots, room)
    return rows


@dataclass(frozen=True)
class Hats(CompiledMap):
    """Piecewise linear in every feature, with so many knots at running quantiles.

    Mapped rows have norm 1 at most: a share of one over the root of the number of features for
    each. Knots move when the number of rows has doubled (:mod:`driftline.features.sketch`).

    >>> rows = np.array([[1.0], [2.0], [3.0], [4.0], [2.5], [9.0]])
    >>> Hats(4).transform(rows)[4:]
    array([[0. , 0.5, 0.5, 0. ],
           [0. , 0. , 0. , 1. ]])
    """

    knots: int = 12

    kernel: ClassVar[Kernel] = hats

    def __post_init__(self) -> None:
        """Refuse too few or too many knots."""
        check_knots(self.knots)

    def norm(self, features: int) -> float:
        """Hats of one feature sum to 1."""
        return 1.0

    def width(self, features: int) -> int:
        """Count a hat for every knot."""
        return features * self.knots

    def constants(self, features: int) -> np.ndarray:
        """Return the number of knots."""
        return np.array([float(self.knots)])

    def size(self, features: int) -> int:
        """Count a sketch of every feature."""
        return size_of(features, self.knots)

    def room(self, features: int) -> int:
        """For the cells of one feature."""
        return room_of()

    def check(self, state: np.ndarray, features: int) -> None:
        """Refuse a sketch that no rows can lead to."""
        check_sketch(state, features, self.knots)

    def grow(self, state: np.ndarray, old: int, new: int) -> np.ndarray:
        """Give new features a knot at 0."""
        return grown_sketch(state, old, new, self.knots)

    def places(self, old: int, new: int) -> np.ndarray:
        """Put new hats after the old."""
        return np.r_[np.arange(old * self.knots), np.full((new - old) * self.knots, -1)]


def check_knots(knots: int) -> None:
    """Refuse a number of knots that no sketch has."""
    if isinstance(knots, bool) or not isinstance(knots, int) or not 2 <= knots <= 128:
        raise InputError(f"there are 2 to 128 knots, not {knots!r}")
