r"""Pairs of features by the bins that both lie in: interactions of two features.

With :math:`b_i, b_j` the bins of two features out of n each (:mod:`driftline.features.bins`), the
p-th of P pairs is in cell :math:`c = n b_i + b_j`. Of C columns it has S, and one entry,

.. math:: \phi_{S p + h_p(c)} = 1 / \sqrt P, \qquad
   S = \min\big(n^2, \lfloor C / P \rfloor\big),

where :math:`h_p(c) = c` if all :math:`n^2` cells have a column. Else cells share the S columns of
their pair, by a hash with :math:`\alpha_p, \beta_p` from a seed (Carter and Wegman, 1979),

.. math:: h_p(c) = \big((\alpha_p c + \beta_p) \bmod (2^{31} - 1)\big) \bmod S.

No two entries of a row share a column.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from driftline.errors import InputError
from driftline.features.bins import bin_of
from driftline.features.sketch import (
    CELLS,
    SketchMap,
    is_finite,
    learn_row,
    limited,
    sketch_of,
)
from driftline.kernels import MAP_SPARSE, Kernel, helper, kernel
from driftline.parts import check_whole

__all__ = ["Crosses"]

#: The prime that hashes are taken by.
PRIME = 2**31 - 1


@helper
def column_of(cell, pair, bins, columns):
    """Return which of a pair's columns a cell has."""
    if columns == bins * bins:
        return cell
    return (int(pair[2]) * cell + int(pair[3])) % PRIME % columns


@kernel(MAP_SPARSE)
def crosses(inputs, constants, state, room, learning, out, columns):
    """Write the cells of pairs of rows; update the state by those to be learned from."""
    rows, features = inputs.shape
    bins, per_pair = int(constants[0]), int(constants[1])
    pairs = constants[2:].reshape((constants.size - 2) // 4, 4)
    counts, table, _ = sketch_of(state, features, bins)
    own = room[CELLS : CELLS + features]
    factor = 1.0 / math.sqrt(len(pairs))
    for t in range(rows):
        if not is_finite(inputs[t]):
            return t
        for j in range(features):
            own[j] = bin_of(limited(inputs[t, j]), table[j], int(counts[j]))
        for p in range(len(pairs)):
            cell = bins * int(own[int(pairs[p, 0])]) + int(own[int(pairs[p, 1])])
            columns[t, p] = p * per_pair + column_of(cell, pairs[p], bins, per_pair)
            out[t, p] = factor if counts[0] > 0.0 else 0.0
        if learning[t]:
            learn_row(inputs[t], state, features, bins, room)
    return rows


@dataclass(frozen=True)
class Crosses(SketchMap):
    """One column for every pair of bins, of all pairs of features or of those named.

    Mapped rows are sparse, with an entry for every pair, and have norm 1 once there are knots.

    Without ``pairs``, those of a new feature come after the others, whose entries shrink by the
    root of the ratio of pairs; growing is refused where cells share columns before or after, since
    cells would change columns. With ``pairs``, a new feature is ignored.

    >>> rows = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]])
    >>> Crosses(2).transform(rows).toarray()[4:]
    array([[0., 1., 0., 0.],
           [0., 0., 1., 0.]])
    """

    bins: int = 6
    columns: int = 2**16
    pairs: tuple[tuple[int, int], ...] | None = None
    seed: int = 0

    sparse = True
    kernel: ClassVar[Kernel] = crosses
    most_norm = 1.0

    def __post_init__(self) -> None:
        """Refuse sizes out of range, and pairs that are invalid or come twice."""
        check_whole("the number of bins", self.bins, 2, 128)
        check_whole("the number of columns", self.columns, 1, 2**24)
        check_whole("a seed", self.seed, 0, 2**63 - 1)
        if self.pairs is not None:
            object.__setattr__(self, "pairs", _checked(self.pairs))
            self._per_pair(len(self.pairs))

    def width(self, features: int) -> int:
        """Count the columns of all pairs."""
        pairs = self.entries(features)
        return pairs * self._per_pair(pairs)

    def entries(self, features: int) -> int:
        """Count an entry for every pair."""
        return features * (features - 1) // 2 if self.pairs is None else len(self.pairs)

    def check_features(self, features: int) -> None:
        """Refuse rows without a pair, or without those that were named."""
        if features < 2:
            raise InputError(f"{self!r} is for rows of 2 features or more, not {features}")
        if self.pairs is not None and (last := max(map(max, self.pairs))) >= features:
            raise InputError(f"a pair has feature {last}, but there are {features}")
        self._per_pair(self.entries(features))

    def constants(self, features: int) -> np.ndarray:
        """Return the bins, the columns of a pair, and of every pair both features and its hash."""
        pairs = self.pairs
        if pairs is None:
            pairs = tuple((i, j) for j in range(features) for i in range(j))
        hashes = np.random.default_rng(self.seed).integers(1, PRIME, (len(pairs), 2))
        table = np.hstack([np.array(pairs), hashes]).astype(np.float64)
        return np.r_[self.bins, self._per_pair(len(pairs)), table.ravel()].astype(np.float64)

    def room(self, features: int) -> int:
        """Return room for the cells of one feature, and the bins of a row."""
        return CELLS + features

    def places(self, old: int, new: int) -> np.ndarray:
        """Put new pairs after the old, if all columns stay where they are."""
        few, many = self.entries(old), self.entries(new)
        if self._per_pair(few) != self._per_pair(many):
            raise InputError(
                f"{many} pairs of {self.bins} bins each have {self._per_pair(many)} of "
                f"{self.columns} columns, but {few} had {self._per_pair(few)}: expected more "
                "columns from the start, or pairs by name"
            )
        return super().places(old, new)

    def _per_pair(self, pairs: int) -> int:
        """Return how many columns each pair has."""
        if pairs > self.columns:
            raise InputError(
                f"there are {pairs} pairs, but {self.columns} columns: expected a column for each, "
                "or fewer pairs by name"
            )
        return min(self.bins**2, self.columns // pairs)


def _checked(pairs: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Return pairs of features as tuples, if they are valid."""
    try:
        made = tuple((i, j) for i, j in pairs)
    except (TypeError, ValueError):
        made = ()
    if not made:
        raise InputError(f"expected pairs of features, such as [(0, 1), (0, 2)], not {pairs!r:.80}")
    for i, j in made:
        check_whole("a feature of a pair", i, 0, 10**8)
        check_whole("a feature of a pair", j, 0, 10**8)
        if i == j:
            raise InputError(f"a pair has two features, not {i} twice")
    if len({frozenset(pair) for pair in made}) < len(made):
        raise InputError("a pair of features comes twice")
    return made
