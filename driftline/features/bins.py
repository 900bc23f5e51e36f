r"""Every feature by the bin that its cells lie in: one column for each.

With knots :math:`k_1 < \dots < k_m` of a feature (:mod:`driftline.features.sketch`), a cell x lies
in the bin of the nearest one,

.. math:: b(x) = \arg\min_i |x - k_i|, \qquad \phi_{j, b(x_j)} = 1 / \sqrt d,

and all else is 0. Knots are the middles of equal shares of the cells, so that bins have about equal
shares; a value with more than one share has a bin of its own. Categories have a column each, as
long as there are no more of them than bins.
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
from driftline.kernels import MAP_SPARSE, Kernel, helper, kernel
from driftline.parts import check_whole

__all__ = ["Bins", "bin_of"]


@helper
def bin_of(cell, own, count):
    """Return the number of the nearest knot, the lower of two; 0 where there are none."""
    place = below(cell, own, count)
    if place == 0 or place == count:
        return max(0, place - 1)
    return place - 1 if cell - own[place - 1] <= own[place] - cell else place


@kernel(MAP_SPARSE)
def write_bins(inputs, constants, state, room, learning, out, columns):
    """Write the bins of rows; update the state by those to be learned from."""
    rows, features = inputs.shape
    knots = int(constants[0])
    factor = 1.0 / math.sqrt(features)
    counts, table, _ = sketch_of(state, features, knots)
    for t in range(rows):
        if not is_finite(inputs[t]):
            return t
        for j in range(features):
            count = int(counts[j])
            columns[t, j] = j * knots + bin_of(limited(inputs[t, j]), table[j], count)
            out[t, j] = factor if count > 0 else 0.0
        if learning[t]:
            learn_row(inputs[t], state, features, knots, room)
    return rows


@dataclass(frozen=True)
class Bins(SketchMap):
    """One column for each of ``bins`` bins of every feature; mapped rows are sparse.

    They have norm 1 once there are knots, after 4 rows, and 0 before. The bins of a new feature
    come after those of the others, whose entries shrink by the root of the ratio of features.

    >>> import numpy as np
    >>> rows = np.array([[0.0], [1.0], [7.0], [7.0], [6.0], [-3.0]])
    >>> Bins(3).transform(rows).toarray()[4:]
    array([[0., 0., 1.],
           [1., 0., 0.]])
    """

    bins: int = 12

    sparse = True
    kernel: ClassVar[Kernel] = write_bins
    most_norm = 1.0

    def __post_init__(self) -> None:
        """Refuse too few or too many bins."""
        check_whole("the number of bins", self.bins, 2, 128)

    def width(self, features: int) -> int:
        """Count a column for every bin."""
        return features * self.bins

    def entries(self, features: int) -> int:
        """Count an entry for every feature."""
        return features
