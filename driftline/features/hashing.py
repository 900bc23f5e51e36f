r"""The hashing trick: rows of any width, and categories without a list of them, in C columns.

A key k is hashed to a column :math:`h(k)` of C and to a sign :math:`\xi(k) = \pm 1`. The key of a
number is its feature, and that of a category the pair of feature and value:

.. math:: z_c = \sum_{j :\, h(j) = c} \xi(j)\, x_j \qquad \text{or} \qquad
   z_c = \sum_{j :\, x_j \ne 0,\; h(j, x_j) = c} \xi(j, x_j), \qquad
   \phi(x) = \frac{z}{\max(\|x\|, \|z\|)},

where the norm of a row of categories is the root of their number. So :math:`\|\phi(x)\| \le 1`.
Scores of one row are all divided by the same number, which leaves the highest where it is. Signs
let collisions cancel on average: :math:`\mathbf E \langle z(x), z(y) \rangle = \langle x, y
\rangle`, with a variance of order 1 / C (Weinberger et al., "Feature hashing for large scale
multitask learning", 2009).

The hashes stand in :mod:`driftline.features.hashes`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from driftline.errors import InputError
from driftline.features.base import MOST, Mapped
from driftline.features.compiled import LARGEST_INDEX, CompiledMap, CompiledMapper
from driftline.features.hashes import DEGREE, PRIME, hashed
from driftline.inputs.rows import Rows, refuse
from driftline.inputs.sparse import SparseRows
from driftline.kernels import Kernel
from driftline.parts import check_whole

__all__ = ["Hashing"]


@dataclass(frozen=True)
class Hashing(CompiledMap):
    """Rows of any width, or categories without a list of them, hashed to so many columns.

    Mapped rows are sparse and have norm 1 at most. Dense and sparse rows are mapped alike, to the
    bit. Nothing is learned: a new feature needs no room, and others are mapped as before.

    Parameters
    ----------
    columns
        How many features mapped rows have. Keys that share a column are told apart by their signs
        only, so that there should be more columns than keys that matter.
    categories
        False: cells are numbers, of one scale; ``Chain(Standardise(), Hashing(1024))`` brings them
        to one. True: every value of a feature is a category of its own, but for 0, which is none:
        codes begin with 1. Or the features that are categories; no others are looked at, so that
        ``Union(Standardise(), Hashing(1024, categories=(3, 7)))`` has numbers and categories.
    seed
        Of the hashes.

    Examples
    --------
    >>> users = np.array([[4711.0], [815.0], [4711.0]])
    >>> mapped = Hashing(16, categories=True).transform(users)
    >>> mapped.shape, mapped.indices.tolist(), mapped.data.tolist()
    ((3, 16), [15, 14, 15], [1.0, 1.0, 1.0])
    """

    columns: int = 1024
    categories: bool | tuple[int, ...] = False
    seed: int = 0

    sparse = True
    dense_only = False
    kernel: ClassVar[Kernel] = hashed

    def __post_init__(self) -> None:
        """Refuse sizes that are none, and features that are none or come twice."""
        check_whole("the number of columns", self.columns, 1, 2**24)
        check_whole("a seed", self.seed, 0, 2**63 - 1)
        if not isinstance(self.categories, bool):
            object.__setattr__(self, "categories", _checked(self.categories))

    def mapper(self) -> HashingMapper:
        """Return a mapper that has seen no rows."""
        return HashingMapper(self)

    @property
    def longest(self) -> float:
        """Rows are divided by their norm."""
        return 1.0

    def width(self, features: int) -> int:
        """Count the columns."""
        return self.columns

    def entries(self, features: int) -> int:
        """Count one for every feature, but no more than there are columns."""
        looked_at = features if isinstance(self.categories, bool) else len(self.categories)
        return min(looked_at, self.columns)

    def check_features(self, features: int) -> None:
        """Refuse rows without the features that were named, and very many."""
        if features > MOST:
            raise InputError(f"rows have {features} features: expected {MOST} at most")
        if not isinstance(self.categories, bool) and (last := max(self.categories)) >= features:
            raise InputError(f"feature {last} is to be a category, but there are {features}")

    def constants(self, features: int) -> np.ndarray:
        """Return the columns, whether there are categories, and the coefficients of hashes."""
        hashes = np.random.default_rng(self.seed).integers(0, PRIME, 3 * DEGREE)
        return np.r_[self.columns, self.categories is not False, hashes].astype(np.float64)


class HashingMapper(CompiledMapper):
    """Hashes rows of either kind; it remembers how many features they have."""

    part: Hashing

    def mapped(
        self, rows: Rows, start: int, stop: int, learning: np.ndarray | None
    ) -> tuple[Mapped, np.ndarray]:
        """Return hashed rows: nothing is remembered of them."""
        from scipy.sparse import csr_array

        state = self.begun(rows)
        if self._constants is None:
            self._constants = rows.features, self.part.constants(rows.features)
        split = self._sparse if isinstance(rows, SparseRows) else self._dense
        values, columns, starts = split(rows, start, stop)
        if values.size > LARGEST_INDEX:
            raise InputError(f"{stop - start} rows of {values.size} entries are too many at once")
        room = np.empty(2 * int(np.diff(starts).max(initial=0)) + 1, dtype=np.int64)
        out, out_columns = np.empty(values.size), np.empty(values.size, dtype=np.int32)
        out_starts = np.empty(starts.size, dtype=np.int32)
        given = (values, columns, starts, self._constants[1], room)
        self.part.kernel(*given, out, out_columns, out_starts)
        kept = slice(0, int(out_starts[-1]))
        wide = self.part.columns
        made = SparseRows.made(out[kept], out_columns[kept], out_starts, wide, csr_array)
        return made, state

    def _dense(self, rows: Rows, start: int, stop: int) -> tuple[np.ndarray, ...]:
        """Return the cells that are looked at, all finite, with their features."""
        (array,) = rows.arrays(start, stop)
        if not np.isfinite(array).all():
            refuse(rows, start + int(np.argmin(np.isfinite(array).all(axis=1))))
        looked_at, kinds = np.arange(rows.features), self.part.categories
        if not isinstance(kinds, bool):
            looked_at, array = np.array(kinds), array[:, kinds]
        starts = np.arange(stop - start + 1) * looked_at.size
        return np.ascontiguousarray(array).ravel(), np.tile(looked_at, stop - start), starts

    def _sparse(self, rows: Rows, start: int, stop: int) -> tuple[np.ndarray, ...]:
        """Return the entries, all finite, with their features; those not looked at are 0."""
        values, columns, starts = rows.arrays(start, stop)
        kept, starts = slice(starts[0], starts[-1]), (starts - starts[0]).astype(np.int64)
        values, columns = values[kept], columns[kept].astype(np.int64)
        if not np.isfinite(values).all():
            bad = int(np.argmin(np.isfinite(values)))
            refuse(rows, start + int(np.searchsorted(starts, bad, side="right")) - 1)
        if not isinstance(kinds := self.part.categories, bool):
            values = np.where(np.isin(columns, kinds), values, 0.0)
        return values, columns, starts


def _checked(features: Iterable[int]) -> tuple[int, ...]:
    """Return features as they are kept, rising, if they are some."""
    try:
        made = tuple(features)
    except TypeError:
        made = ()
    if not made:
        raise InputError(
            f"categories are True, False or features such as (3, 7), not {features!r:.80}"
        )
    for feature in made:
        check_whole("a feature of categories", feature, 0, MOST - 1)
    if len(set(made)) < len(made):
        raise InputError(f"a feature of categories comes twice: {made!r:.80}")
    return tuple(sorted(made))
