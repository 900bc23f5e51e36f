r"""Rows that are no longer than a given length.

.. math:: \phi(x) = x \min(1, \ell / \|x\|)

Scores of one row are all multiplied by the same number, so that the highest score stays the
highest: class borders do not move. The norm of rows is then known before the first row, which a
bound beforehand needs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from driftline.features.base import Mapped
from driftline.features.compiled import CompiledMap, CompiledMapper
from driftline.inputs.rows import Rows, refuse
from driftline.inputs.sparse import SparseRows
from driftline.kernels import MAP, Kernel, kernel
from driftline.parts import check_number

__all__ = ["Shorten"]


@kernel(MAP)
def shorten(inputs, constants, state, room, learning, out):
    """Write rows that are shortened; nothing is learned."""
    rows, features = inputs.shape
    for t in range(rows):
        x, largest, total = inputs[t], 0.0, 0.0
        for j in range(features):
            if not abs(x[j]) < math.inf:
                return t
            largest = max(largest, abs(x[j]))
        for j in range(features):
            share = x[j] / largest if largest > 0.0 else 0.0
            total += share * share
        length = constants[0] / largest if largest > 0.0 else math.inf  # so that nothing overflows
        root = math.sqrt(total)
        factor = length / root if root > length else 1.0
        for j in range(features):
            out[t, j] = factor * x[j]
    return rows


@dataclass(frozen=True)
class Shorten(CompiledMap):
    """Rows longer than ``length`` are shortened to it; others stay as they are.

    For dense rows and sparse ones.

    >>> Shorten().transform(np.array([[3.0, 4.0], [0.3, 0.4]])).round(2).tolist()
    [[0.6, 0.8], [0.3, 0.4]]
    """

    length: float = 1.0

    kernel: ClassVar[Kernel] = shorten
    dense_only = False
    placewise = True
    same_entries = True

    def __post_init__(self) -> None:
        """Refuse a length out of range."""
        check_number("the length of rows", self.length, 1e-9, 1e9)

    def mapper(self) -> ShortenMapper:
        """Return a mapper that has seen no rows."""
        return ShortenMapper(self)

    @property
    def longest(self) -> float:
        """The length, whatever the number of features."""
        return float(self.length)

    def constants(self, features: int) -> np.ndarray:
        """Return the length."""
        return np.array([float(self.length)])


class ShortenMapper(CompiledMapper):
    """Shortens dense rows by the kernel, and sparse ones entry by entry."""

    part: Shorten
    one_kind = True

    def mapped(
        self, rows: Rows, start: int, stop: int, learning: np.ndarray | None
    ) -> tuple[Mapped, np.ndarray]:
        """Return shortened rows; this map has nothing to learn."""
        if isinstance(rows, SparseRows):
            return self._sparse(rows, start, stop), self.state
        return super().mapped(rows, start, stop, learning)

    def _sparse(self, rows: Any, start: int, stop: int) -> SparseRows:
        """Return sparse rows, shortened as the kernel does it."""
        values, columns, starts = rows.arrays(start, stop)
        kept, count = slice(starts[0], starts[-1]), stop - start
        values, columns, starts = values[kept], columns[kept].copy(), starts - starts[0]
        owners = np.repeat(np.arange(count), np.diff(starts))
        if not np.isfinite(values).all():
            refuse(rows, start + int(owners[np.argmin(np.isfinite(values))]))
        largest = np.zeros(count)
        np.maximum.at(largest, owners, np.abs(values))
        largest[largest == 0.0] = 1.0
        shares = values / largest[owners]
        roots = np.sqrt(np.bincount(owners, weights=shares * shares, minlength=count))
        lengths = self.part.length / largest
        factors = np.where(roots > lengths, lengths / np.maximum(roots, lengths), 1.0)
        made = values * factors[owners]
        return SparseRows.made(made, columns, starts, rows.features, rows.kind)
