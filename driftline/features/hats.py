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

from driftline.features.sketch import (
    SketchMap,
    below,
    is_finite,
    learn_row,
    limited,
    sketch_of,
)
from driftline.kernels import MAP, Kernel, helper, kernel
from driftline.parts import check_whole

__all__ = ["Hats"]


@helper
def write_hats(x, state, features, knots, factor, out):
    """Write the hats of one row."""
    counts, table, _ = sketch_of(state, features, knots)
    out[:] = 0.0
    for j in range(features):
        cell, count, own = limited(x[j]), int(counts[j]), table[j]
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


@kernel(MAP)
def hats(inputs, constants, state, room, learning, out):
    """Write the hats of rows; update the state by those to be learned from."""
    rows, features = inputs.shape
    knots = int(constants[0])
    factor = 1.0 / math.sqrt(features)
    for t in range(rows):
        if not is_finite(inputs[t]):
            return t
        write_hats(inputs[t], state, features, knots, factor, out[t])
        if learning[t]:
            learn_row(inputs[t], state, features, knots, room)
    return rows


@dataclass(frozen=True)
class Hats(SketchMap):
    """Piecewise linear functions of every feature, with ``knots`` knots at running quantiles.

    Mapped rows have norm 1 at most: a share of one over the root of the number of features for
    each. Knots move when the number of rows has doubled (:mod:`driftline.features.sketch`).

    >>> import numpy as np
    >>> rows = np.array([[1.0], [2.0], [3.0], [4.0], [2.5], [9.0]])
    >>> Hats(4).transform(rows)[4:]
    array([[0. , 0.5, 0.5, 0. ],
           [0. , 0. , 0. , 1. ]])
    """

    knots: int = 12

    kernel: ClassVar[Kernel] = hats
    most_norm = 1.0

    def __post_init__(self) -> None:
        """Refuse too few or too many knots."""
        check_whole("the number of knots", self.knots, 2, 128)

    def width(self, features: int) -> int:
        """Count a hat for every knot."""
        return features * self.knots
