r"""Some of the columns of rows: numbers, categories as codes, or one feature for each category.

A category is a whole number, its *code*: with n codes known, :math:`0, \dots, n - 1`, the column j
has as one-hot features

.. math:: \phi_{jk}(x) = [x_j = k], \quad k < n, \qquad \phi_{jn}(x) = [x_j \ge n],

so that codes which come later share the last one. A negative code is a missing one: all are 0.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar, TypeAlias

import numpy as np

from driftline.errors import InputError
from driftline.features.base import MOST, Map, Mapped
from driftline.features.chain import Chain
from driftline.features.compiled import CompiledMap, CompiledMapper
from driftline.features.narrow import Narrow
from driftline.features.raw import Raw
from driftline.features.standardiser import Standardise as Standardise
from driftline.inputs.dense import DenseRows
from driftline.inputs.groups import Groups
from driftline.inputs.rows import Rows, refuse
from driftline.inputs.sparse import SparseRows
from driftline.kernels import MAP, Kernel, kernel
from driftline.parts import check_whole

__all__ = ["Block", "Categories", "check_categories"]

#: Pairs of a column and how many categories it has.
Categories: TypeAlias = Sequence[tuple[int, int]]

#: What becomes of categories: a feature for each, one with their codes, or none.
FORMS = ("one-hot", "codes", "none")


@kernel(MAP)
def block(inputs, constants, state, room, learning, out):
    """Write the categories of rows, one-hot, and then their other columns.

    ``constants`` are the number of categories, place and count of each, and places of the others.
    """
    rows, features = inputs.shape
    categories = int(constants[0])
    for t in range(rows):
        x, made = inputs[t], out[t]
        for j in range(features):
            if not abs(x[j]) < math.inf:
                return t
        at = 0
        for i in range(categories):
            value, count = x[int(constants[1 + 2 * i])], int(constants[2 + 2 * i])
            for k in range(count + 1):
                made[at + k] = 0.0
            if value >= 0.0:
                made[at + (int(value) if value < count else count)] = 1.0
            at += count + 1
        for i in range(1 + 2 * categories, constants.size):
            made[at] = x[int(constants[i])]
            at += 1
    return rows


@dataclass(frozen=True, repr=False)
class Block(CompiledMap):
    """The columns ``start`` to ``stop`` of rows; categories among them become one-hot features.

    One-hot features come first, then other columns. Rows may be sparse where there are no
    categories.

    Parameters
    ----------
    start, stop
        The first column, and the one after the last; None for all.
    categories
        Pairs of a column and how many codes have a feature of their own.
    form
        ``"one-hot"``; ``"codes"`` to leave categories as they are, or ``"none"`` to leave them out.

    Examples
    --------
    >>> rows = np.array([[0.5, 0.0], [0.7, 1.0], [0.9, 7.0], [0.2, -1.0]])
    >>> Block(categories=[(1, 2)]).transform(rows).tolist()
    [[1.0, 0.0, 0.0, 0.5], [0.0, 1.0, 0.0, 0.7], [0.0, 0.0, 1.0, 0.9], [0.0, 0.0, 0.0, 0.2]]
    >>> Block(categories=[(1, 2)], form="none").transform(rows).tolist()
    [[0.5], [0.7], [0.9], [0.2]]
    """

    start: int = 0
    stop: int | None = None
    categories: Categories = ()
    form: str = "one-hot"

    kernel: ClassVar[Kernel] = block
    keeps_cells: ClassVar[bool] = True
    several: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Refuse columns out of range, and categories that are no pairs."""
        check_whole("start", self.start, 0, MOST)
        if self.stop is not None:
            check_whole("stop", self.stop, self.start + 1, MOST)
        if self.form not in FORMS:
            raise InputError(f"form must be one of {', '.join(FORMS)}, not {self.form!r:.80}")
        object.__setattr__(self, "categories", check_categories(self.categories))
        first, last = self.start, math.inf if self.stop is None else self.stop
        if any(not first <= column < last for column, _ in self.categories):
            raise InputError(f"categories {self.categories!r:.80} are outside of {first}..{last}")

    @property
    def dense_only(self) -> bool:  # type: ignore[override]
        """Whether there are categories."""
        return bool(self.categories)

    @property
    def same_entries(self) -> bool:  # type: ignore[override]
        """Whether categories do not become one-hot features."""
        return self.form != "one-hot" or not self.categories

    def mapper(self) -> BlockMapper:
        """Return a mapper that has seen no rows."""
        return BlockMapper(self)

    def others(self, features: int) -> np.ndarray:
        """Return the columns that are left as they are, in their order."""
        return _others(self, features)

    @property
    def one_hot(self) -> Categories:
        """The categories that become one-hot features."""
        return self.categories if self.form == "one-hot" else ()

    def reads(self, features: int) -> int:
        """Return how many columns of rows are read."""
        return len(self.others(features)) + len(self.one_hot)

    def width(self, features: int) -> int:
        """Return how many features these columns become."""
        return len(self.others(features)) + sum(count + 1 for _, count in self.one_hot)

    def suits(self, features: int, sparse: bool) -> bool:
        """Say whether rows have columns that are read."""
        last = max((column for column, _ in self.categories), default=-1)
        enough = features > last and self.reads(features) > 0
        return enough and not (sparse and self.dense_only)

    def check_features(self, features: int) -> None:
        """Refuse rows without some of the columns."""
        super().check_features(features)
        if not self.suits(features, sparse=False):
            raise InputError(f"{self!r} is for rows of more columns, but these have {features}")

    def constants(self, features: int) -> np.ndarray:
        """Return the number of categories, place and count of each, and places of the others."""
        pairs = [number for pair in self.one_hot for number in pair]
        return np.array([len(self.one_hot), *pairs, *self.others(features)], dtype=np.float64)

    def before(self, part: Map | None) -> Map:
        """Return another map of these columns; it has its limits as before.

        >>> Block(1).before(Narrow(Standardise(), most=32))
        Narrow(map=Chain(Block(start=1), Standardise(constant=True)), most=32)
        """
        if part is None or isinstance(part, Raw):
            return self
        if isinstance(part, Narrow):
            return replace(part, map=self.before(part.map))
        return Chain(self, *(part.maps if isinstance(part, Chain) else (part,)))

    def __repr__(self) -> str:
        """Name what is not the default."""
        given = [f for f in dataclasses.fields(self) if getattr(self, f.name) != f.default]
        words = (f"{f.name}={getattr(self, f.name)!r}" for f in given)
        return f"Block({', '.join(words)})"

    def undone(self, mapped: np.ndarray, features: int) -> np.ndarray:
        """Return the rows that were mapped, with 0 in columns that are not read.

        >>> part = Block(1, categories=[(2, 2)])
        >>> part.undone(part.transform(np.array([[5.0, 0.5, 1.0]])), 3).tolist()
        [[0.0, 0.5, 1.0]]
        """
        made, at = np.zeros((len(mapped), features)), 0
        for column, count in self.one_hot:
            own = mapped[:, at : at + count + 1]
            made[:, column] = np.where(own.any(axis=1), own.argmax(axis=1), -1.0)
            at += count + 1
        others = self.others(features)
        made[:, others] = mapped[:, at : at + len(others)]
        return made


class BlockMapper(CompiledMapper):
    """Selects columns of dense rows by the kernel, and those of sparse ones entry by entry."""

    part: Block

    def mapped(
        self, rows: Rows, start: int, stop: int, learning: np.ndarray | None
    ) -> tuple[Mapped, np.ndarray]:
        """Return the columns of rows; this map has nothing to learn."""
        if isinstance(rows, Groups):
            return self._rounds(rows, start, stop), self.state  # type: ignore[return-value]
        if isinstance(rows, SparseRows) and not self.part.dense_only:
            self.begun(rows)
            return self._sparse(rows, start, stop), self.state
        return super().mapped(rows, start, stop, learning)

    def _rounds(self, rows: Groups, start: int, stop: int) -> Groups:
        """Return rounds of several rows."""
        vectors, starts, *_ = rows.arrays(start, stop)
        bad = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
        if len(bad):
            round_of = int(np.searchsorted(starts, bad[0], side="right")) - 1
            refuse(rows, start + round_of)  # type: ignore[arg-type]
        made, _ = super().mapped(DenseRows(vectors), 0, len(vectors), None)
        return rows.with_members(made.whole, starts)

    def _sparse(self, rows: SparseRows, start: int, stop: int) -> SparseRows:
        values, columns, starts = rows.arrays(start, stop)
        begin, end = int(starts[0]), int(starts[-1])
        values, columns, starts = values[begin:end], columns[begin:end], starts - starts[0]
        if (bad := np.flatnonzero(~np.isfinite(values))).size:
            refuse(rows, start + int(np.searchsorted(starts, bad[0], side="right")) - 1)
        width = self.part.width(rows.features)
        kept = (columns >= self.part.start) & (columns < self.part.start + width)
        counts = np.r_[0, np.cumsum(kept)].astype(starts.dtype)
        own = values[kept], columns[kept] - columns.dtype.type(self.part.start), counts[starts]
        return SparseRows.made(*own, width, rows.kind)


@lru_cache(maxsize=1024)
def _others(part: Block, features: int) -> np.ndarray:
    """Return the columns that a block leaves as they are, in an array that nobody writes to."""
    last = features if part.stop is None else min(part.stop, features)
    columns = np.arange(part.start, last)
    out = [] if part.form == "codes" else [column for column, _ in part.categories]
    made: np.ndarray = columns[~np.isin(columns, out)]
    made.setflags(write=False)
    return made


def check_categories(given: Any) -> tuple[tuple[int, int], ...]:
    """Return pairs of a column and how many categories it has; refuse what is none.

    >>> check_categories({2: 30})
    ((2, 30),)
    """
    pairs = given.items() if isinstance(given, dict) else given
    try:
        made = tuple(sorted((column, count) for column, count in pairs))
    except (TypeError, ValueError) as error:
        raise InputError(
            f"categories are columns, and how many codes each has, such as {{2: 30}}, but got "
            f"{given!r:.80}"
        ) from error
    for column, count in made:
        check_whole("the column of categories", column, 0, MOST)
        check_whole("the number of categories", count, 1, MOST)
    if len(dict(made)) < len(made):
        raise InputError(f"a column has categories twice: {given!r:.80}")
    return made
