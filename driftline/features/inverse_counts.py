r"""Features by how seldom they were seen, so that steps adapt to each of them.

With :math:`n_j` the number of rows before in which feature j was not 0,

.. math:: \phi(x)_j = g \, x_j \, (1 + n_j)^{-p}, \qquad p = 1/4 \text{ by default.}

A gradient step of size :math:`\eta` moves the score by :math:`\eta g^2 x_j^2 (1 + n_j)^{-2p}` for
every feature: these are the steps of AdaGrad for each coordinate, as they are while gradients are
of one size, and a feature that is seen for the first time is learned at once. The learner stays
online gradient descent, with its certificates. What was learned before fades as slowly: when a
feature was seen sixteen times as often, its score is half of what it was.

Where a round has several rows, all of them are mapped by the counts before the round.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from driftline.errors import InputError
from driftline.features.base import Mapped
from driftline.features.compiled import CompiledMap, CompiledMapper
from driftline.inputs.dense import DenseRows
from driftline.inputs.flags import none
from driftline.inputs.rows import Rows
from driftline.inputs.sparse import SparseRows
from driftline.inputs.sparse_sequences import SparseSequences
from driftline.kernels import (
    MAP_ROUNDS,
    MAP_SPARSE_ROUNDS32,
    MAP_SPARSE_ROUNDS64,
    Kernel,
    kernel,
)
from driftline.parts import check_number
from driftline.state.arena import MOST_ROWS, Field

__all__ = ["InverseCounts"]

#: Cells of this size or larger are refused, so that no mapped cell overflows.
LARGEST = 1e300


@kernel(MAP_ROUNDS)
def fade(inputs, starts, constants, state, room, learning, out):
    """Write rounds of dense rows; return how many came before a cell that is refused."""
    features = inputs.shape[1]
    for t in range(starts.size - 1):
        for i in range(starts[t], starts[t + 1]):
            for j in range(features):
                if not abs(inputs[i, j]) < LARGEST:
                    return t
        for j in range(features):
            room[j] = constants[0] * (1.0 + state[j]) ** -constants[1]
        for i in range(starts[t], starts[t + 1]):
            for j in range(features):
                out[i, j] = inputs[i, j] * room[j]
                if learning[t] and inputs[i, j] != 0.0:
                    state[j] += 1.0
    return starts.size - 1


def fade_sparse(values, columns, starts, rounds, constants, state, learning, out):
    """Do the same with CSR rows, whose cells were checked; stop at a column out of range."""
    first = starts[0]
    for t in range(rounds.size - 1):
        begin, end = starts[rounds[t]], starts[rounds[t + 1]]
        for i in range(begin, end):
            if not 0 <= columns[i] < state.size:  # changed since it was checked
                return t
            factor = constants[0] * (1.0 + state[columns[i]]) ** -constants[1]
            out[i - first] = values[i] * factor
        for i in range(begin, end if learning[t] else begin):
            if values[i] != 0.0:
                state[columns[i]] += 1.0
    return rounds.size - 1


fade_sparse_32 = Kernel(fade_sparse, MAP_SPARSE_ROUNDS32)
fade_sparse_64 = Kernel(fade_sparse, MAP_SPARSE_ROUNDS64)


@dataclass(frozen=True)
class InverseCounts(CompiledMap):
    """Features divided by a power of how often they were not 0, by default the fourth root.

    For dense rows and sparse ones, and for sequences of both. Steps of a learner then adapt to
    every feature, as hashed words ask for. All of them are multiplied by ``gain``. Along a chain of
    tags, transitions are not mapped: with a gain above 1 they are learned by smaller steps than the
    features, by its square. With a power of 0 the gain is all.

    >>> InverseCounts().transform(np.array([[1.0, 0.0], [1.0, 2.0], [1.0, 2.0]])).round(2).tolist()
    [[1.0, 0.0], [0.84, 2.0], [0.76, 1.68]]

    References
    ----------
    Duchi, Hazan and Singer (2011), *Adaptive subgradient methods for online learning and
    stochastic optimization*.
    """

    gain: float = 1.0
    power: float = 0.25

    kernel: ClassVar[Kernel] = fade
    dense_only = False
    placewise = True
    several = True
    same_entries = True
    largest_cell = LARGEST

    def __post_init__(self) -> None:
        """Refuse a gain or a power out of range."""
        check_number("the gain of features", self.gain, 1e-6, 1e6)
        check_number("the power of counts", self.power, 0.0, 1.0)

    def mapper(self) -> InverseCountsMapper:
        """Return a mapper that has seen no rows."""
        return InverseCountsMapper(self)

    def fields(self, features: int, sparse: bool) -> tuple[Field, ...]:
        """Count the rows of each feature."""
        return (Field("counts", ("features",), least=0.0, most=MOST_ROWS, whole=True),)

    def constants(self, features: int) -> np.ndarray:
        """Return the gain and the power."""
        return np.array([float(self.gain), float(self.power)])


class InverseCountsMapper(CompiledMapper):
    """Counts how often features are not 0, in rows and in rounds of several rows."""

    part: InverseCounts
    one_kind = True

    def mapped(
        self, rows: Rows, start: int, stop: int, learning: np.ndarray | None
    ) -> tuple[Mapped, np.ndarray]:
        """Return mapped rounds, and the counts after those that are learned from."""
        state, learns = self.begun(rows), none(stop - start) if learning is None else learning
        if learning is not None and self.features is not None:
            state = state.copy()
        return self._made(rows, start, stop, state, learns), state

    def _made(
        self, rows: Rows, start: int, stop: int, state: np.ndarray, learning: np.ndarray
    ) -> Mapped:
        """Return mapped rounds, and count in ``state`` those that are learned from."""
        constants = self.part.constants(rows.features)
        plain = np.arange(stop - start + 1)
        if isinstance(rows, SparseSequences):
            given = rows.arrays(start, stop)[:4]
            made = self._sparse(rows, start, rows.positions, given, state, learning)
            return rows.with_positions(made, given[3])  # type: ignore[return-value]
        if isinstance(rows, SparseRows):
            given = (*rows.arrays(start, stop), plain)
            return self._sparse(rows, start, rows, given, state, learning)
        inputs, rounds = (*rows.arrays(start, stop), plain)[:2]
        out, room = np.empty_like(inputs), np.empty(rows.features)
        good = fade(inputs, rounds, constants, state, room, learning, out)
        if good < stop - start:
            self._refuse(rows, start + good)
        if isinstance(rows, DenseRows):
            return DenseRows(out)
        return rows.with_members(out, rounds)  # type: ignore[return-value]

    def _sparse(
        self,
        rows: Rows,
        first: int,
        kind: SparseRows,
        given: tuple[np.ndarray, ...],
        state: np.ndarray,
        learning: np.ndarray,
    ) -> SparseRows:
        """Return the CSR rows of rounds; ``given`` are their arrays, and where rounds start."""
        values, columns, starts, rounds = given
        kept = slice(starts[0], starts[-1])
        bad = ~(np.abs(values[kept]) < LARGEST)
        if bad.any():
            row = int(np.searchsorted(starts, np.argmax(bad) + starts[0], side="right")) - 1
            self._refuse(rows, first + int(np.searchsorted(rounds, row, side="right")) - 1)
        out = np.empty(starts[-1] - starts[0])
        scale = fade_sparse_32 if columns.dtype == np.int32 else fade_sparse_64
        constants = self.part.constants(rows.features)
        good = scale(values, columns, starts, rounds, constants, state, learning, out)
        if good < len(rounds) - 1:
            raise InputError(f"inputs were changed while they were read, at round {first + good}")
        places = columns[kept].copy(), starts - starts[0]
        return SparseRows.made(out, *places, rows.features, kind.kind)
