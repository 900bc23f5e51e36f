r"""Random trees: boxes of several features, in many ways.

Every node of a tree asks one feature, drawn at random, whether the rank of its cell lies above a
random level (ranks as in :mod:`driftline.features.ranks`). A row falls into one leaf
:math:`\ell_i(x)` of each of n trees of depth D, which has a column of its own,

.. math:: \phi_{2^D i + \ell_i(x)} = 1 / \sqrt n, \qquad \|\phi(x)\| = 1,

so that :math:`\langle \phi(x), \phi(y) \rangle` is the share of trees in which x and y have one
leaf: a kernel of random partitions (Davies and Ghahramani, 2014), by splits without labels.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from driftline.errors import InputError
from driftline.features.ranks import rank_of
from driftline.features.sketch import (
    CELLS,
    SketchMap,
    is_finite,
    learn_row,
    limited,
    sketch_of,
)
from driftline.kernels import MAP_SPARSE, Kernel, kernel
from driftline.parts import check_whole
from driftline.state.arena import Field

__all__ = ["RandomTrees"]

#: Knots that ranks are interpolated between.
KNOTS = 32


@kernel(MAP_SPARSE)
def random_trees(inputs, constants, state, room, learning, out, columns):
    """Write the leaves of rows; update the state by those to be learned from."""
    rows, features = inputs.shape
    count, depth = int(constants[0]), int(constants[1])
    nodes = (1 << depth) - 1
    splits = constants[2:].reshape(count, nodes, 2)
    counts, table, _ = sketch_of(state, features, KNOTS)
    asked = state[state.size - 1] if state[state.size - 1] > 0.0 else 1.0 * features
    ranks = room[CELLS : CELLS + features]
    factor = 1.0 / math.sqrt(count)
    for t in range(rows):
        if not is_finite(inputs[t]):
            return t
        for j in range(features):
            ranks[j] = rank_of(limited(inputs[t, j]), table[j], int(counts[j]))
        for i in range(count):
            node = 0
            while node < nodes:
                feature = int(splits[i, node, 0] * asked)
                node = 2 * node + (2 if ranks[feature] > splits[i, node, 1] else 1)
            columns[t, i] = i * (nodes + 1) + node - nodes
            out[t, i] = factor
        if learning[t]:
            state[state.size - 1] = asked
            learn_row(inputs[t], state, features, KNOTS, room)
    return rows


@dataclass(frozen=True)
class RandomTrees(SketchMap):
    """The leaves of random trees of a given depth; mapped rows are sparse, of norm 1.

    Splits are drawn for the features of the first row. A new feature is ignored: rows are mapped as
    before, whatever its value.

    >>> rows = np.random.default_rng(0).standard_normal((100, 3))
    >>> mapped = RandomTrees(8, depth=3).transform(rows)
    >>> mapped.shape, mapped[[99]].nnz
    ((100, 64), 8)
    """

    count: int = 64
    depth: int = 6
    seed: int = 0

    sparse = True
    kernel: ClassVar[Kernel] = random_trees
    most_norm = 1.0

    def __post_init__(self) -> None:
        """Refuse numbers out of range, and too many leaves."""
        check_whole("the number of trees", self.count, 1, 2**16)
        check_whole("the depth of trees", self.depth, 1, 16)
        check_whole("a seed", self.seed, 0, 2**63 - 1)
        if (leaves := self.count << self.depth) > 2**22:
            raise InputError(f"{self.count} trees of depth {self.depth} have {leaves} leaves")

    @property
    def levels(self) -> int:
        """The knots of ranks."""
        return KNOTS

    def width(self, features: int) -> int:
        """Count the leaves."""
        return self.count << self.depth

    def entries(self, features: int) -> int:
        """Count an entry for every tree."""
        return self.count

    def constants(self, features: int) -> np.ndarray:
        """Return sizes, and of every node a share of features and a level."""
        shape = (self.count, 2**self.depth - 1, 2)
        splits = np.random.default_rng(self.seed).random(shape)
        return np.r_[self.count, self.depth, splits.ravel()].astype(np.float64)

    def fields(self, features: int, sparse: bool) -> tuple[Field, ...]:
        """Keep the sketch, and how many features the trees use."""
        used = Field("used", least=0.0, most=features, whole=True)
        return (*super().fields(features, sparse), used)

    def room(self, features: int) -> int:
        """Return room for the cells of one feature, and the ranks of a row."""
        return CELLS + features

    def check(self, state: Any, features: int) -> None:
        """Refuse a sketch that no rows can lead to, and trees that do not use known features."""
        super().check(state, features)
        if (state.used > 0.0) != (state.rows > 0.0):
            raise InputError(f"after {state.rows:g} rows trees do not use {state.used:g} features")
