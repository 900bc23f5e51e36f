r"""Every feature by its distance from the mean of the last rows.

With w one over the memory, or over the number of rows while these are fewer, and cells cut at 8
deviations where they are learned from,

.. math:: z = \mathrm{clip}\Big(\frac{x - m}{s}, \pm 3\Big), \qquad
   m \leftarrow m + w (x - m), \qquad s^2 \leftarrow (1 - w) \big(s^2 + w (x - m)^2\big),

and a row is divided by the root of the number of features. A cell is measured against the latest
ones, so that a slowly moving level is removed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from driftline.features.compiled import CompiledMap
from driftline.kernels import MAP, Kernel, kernel
from driftline.parts import check_number
from driftline.state.arena import MOST_ROWS, Field, grown_places

__all__ = ["Recent"]

#: Cells are clipped at this many deviations: in mapped rows, and where they are learned from.
SHOWN, LEARNED = 3.0, 8.0

#: After this many rows deviations are known well enough to clip cells by them.
KNOWN = 8.0

#: Larger cells are refused: their squares would overflow.
LARGEST = 1e140


@kernel(MAP)
def recent(inputs, constants, state, room, learning, out):
    """Write rows; update the state by those to be learned from."""
    rows, features = inputs.shape
    means, squares = state[1 : 1 + features], state[1 + features : 1 + 2 * features]
    factor = 1.0 / math.sqrt(features)
    for t in range(rows):
        x = inputs[t]
        for j in range(features):
            if not abs(x[j]) < LARGEST:
                return t
        for j in range(features):
            deviation, away = math.sqrt(squares[j]), x[j] - means[j]
            z = away / deviation if deviation > 0.0 and state[0] > 0.0 else 0.0
            out[t, j] = factor * min(SHOWN, max(-SHOWN, z))
        if out.shape[1] > features:
            out[t, features] = constants[1]
        if not learning[t]:
            continue
        weight = max(1.0 / constants[0], 1.0 / (state[0] + 1.0))
        for j in range(features):
            away = x[j] - means[j]
            if state[0] >= KNOWN and squares[j] > 0.0:
                most = LEARNED * math.sqrt(squares[j])
                away = min(most, max(-most, away))
            means[j] += weight * away
            squares[j] = (1.0 - weight) * (squares[j] + weight * away * away)
        state[0] += 1.0
    return rows


@dataclass(frozen=True)
class Recent(CompiledMap):
    """Rows standardised by about the last ``memory`` rows.

    ``constant`` is the value of one more feature that is the same in all rows, 0 for none.

    >>> rows = np.array([[1.0], [3.0], [101.0], [103.0], [104.0]])
    >>> Recent(memory=2.0).transform(rows).round(2).ravel().tolist()
    [0.0, 0.0, 3.0, 1.04, 0.62]
    """

    memory: float = 50.0
    constant: float = 0.0

    kernel: ClassVar[Kernel] = recent
    largest_cell = LARGEST

    def __post_init__(self) -> None:
        """Refuse a memory of less than two rows, and a constant out of range."""
        check_number("the memory of rows", self.memory, 2.0, 1e12)
        check_number("the size of a constant", self.constant, 0.0, 100.0)

    def norm(self, features: int) -> float:
        """Return the norm of cells of 3, divided by the root of their number, and the constant."""
        return math.sqrt(SHOWN**2 + self.constant**2)

    def width(self, features: int) -> int:
        """Count one more with a constant."""
        return features + (self.constant > 0.0)

    def constants(self, features: int) -> np.ndarray:
        """Return the memory, and the size of the constant."""
        return np.array([float(self.memory), float(self.constant)])

    def fields(self, features: int, sparse: bool) -> tuple[Field, ...]:
        """Count rows, and keep a mean and a square for every feature."""
        return (
            Field("rows", least=0.0, most=MOST_ROWS, whole=True),
            Field("means", ("features",), least=-LARGEST, most=LARGEST),
            Field("squares", ("features",), least=0.0),
        )

    def places(self, old: int, new: int) -> np.ndarray:
        """Put new features after the old, before the constant."""
        return grown_places(self.width(old), self.width(new), kept=int(self.constant > 0.0))
