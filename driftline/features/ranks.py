r"""Every feature by the rank of its cells among those before.

Between two knots (:mod:`driftline.features.sketch`) ranks are interpolated, outside they are those
of the ends. They are centred and have variance 1 where cells are spread as before, so that

.. math:: z = \sqrt{12 / d}\, \big(\mathrm{rank} - \tfrac12\big), \qquad \|z\| \le \sqrt 3.

Any rising function of a feature has the same ranks: its scale, its outliers and its skew do not
matter.
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

__all__ = ["Ranks"]


@helper
def rank_of(cell, own, count):
    """Return the rank of a cell, from 0 to 1; 1/2 where no two knots are known."""
    if count < 2:
        return 0.5
    place = below(cell, own, count)
    if place == 0:
        return 0.0
    if place == count:
        return 1.0
    share = (cell - own[place - 1]) / (own[place] - own[place - 1])
    return (place - 1 + share) / (count - 1)


@kernel(MAP)
def ranks(inputs, constants, state, room, learning, out):
    """Write the ranks of rows; update the state by those to be learned from."""
    rows, features = inputs.shape
    knots = int(constants[0])
    factor = math.sqrt(12.0 / features)
    counts, table, _ = sketch_of(state, features, knots)
    for t in range(rows):
        if not is_finite(inputs[t]):
            return t
        for j in range(features):
            rank = rank_of(limited(inputs[t, j]), table[j], int(counts[j]))
            out[t, j] = factor * (rank - 0.5)
        if learning[t]:
            learn_row(inputs[t], state, features, knots, room)
    return rows


@dataclass(frozen=True)
class Ranks(SketchMap):
    """Ranks of the features among ``knots`` running quantiles.

    >>> import numpy as np
    >>> rows = np.array([[1.0], [2.0], [3.0], [4.0], [2.5], [1e9]])
    >>> Ranks(4).transform(rows)[4:].round(2).tolist()
    [[0.0], [1.73]]
    """

    knots: int = 32

    kernel: ClassVar[Kernel] = ranks
    most_norm = math.sqrt(3.0)

    def __post_init__(self) -> None:
        """Refuse too few or too many knots."""
        check_whole("the number of knots", self.knots, 2, 128)
