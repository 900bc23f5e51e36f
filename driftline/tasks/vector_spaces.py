"""Spaces of vectors: sets, orders, tags of a sequence, grades, ranks and choices."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from driftline.errors import InputError
from driftline.parts import fact
from driftline.tasks.numbers import whole_numbers
from driftline.tasks.spaces import CheckedSpace, Space
from driftline.typing import CheckedLabels, Labels

__all__ = ["Chosen", "Grades", "OfNorm", "Orders", "Ranks", "Sets", "TagSequences"]


class _Vectors(CheckedSpace):
    """Base of spaces of vectors of ``size`` whole numbers."""

    #: What the entries are, for messages.
    entries: ClassVar[str] = "whole numbers"

    def value(self, row: np.ndarray) -> np.ndarray:
        """Return a vector, even if it has length 1."""
        return row.copy()

    def values(self, rows: np.ndarray) -> np.ndarray:
        """Return a row for every vector."""
        return rows

    def check(self, value: Any) -> np.ndarray:
        """Return one vector."""
        return self.check_all(np.asarray(value)[np.newaxis])[0]

    def check_all(self, values: Labels) -> np.ndarray:
        """Return vectors as rows."""
        rows = whole_numbers(values, "labels")
        if rows.ndim != 2 or rows.shape[1] != self.size:
            raise InputError(
                f"labels must be rows of {self.size} {self.entries}, but their shape is "
                f"{rows.shape}"
            )
        self._refuse_first(rows)
        return np.ascontiguousarray(rows)


@dataclass(frozen=True)
class Sets(_Vectors):
    """0/1 vectors, with any number of ones or with ``ones`` of them."""

    size: int
    ones: int | None = None
    entries: ClassVar[str] = "zeros and ones"

    def any(self, size: int) -> np.ndarray:
        """Return the set of the first, or the empty one."""
        return (np.arange(self.size) < (self.ones or 0)).astype(np.int64)

    @property
    def _wrong(self) -> str:
        if self.ones is None:
            return "is not made of zeros and ones"
        return f"is not a 0/1 vector with {self.ones} ones"

    def _outside(self, rows: np.ndarray) -> np.ndarray:
        other = ((rows != 0) & (rows != 1)).any(axis=1)
        return other if self.ones is None else other | (rows.sum(axis=1) != self.ones)


@dataclass(frozen=True)
class OfNorm(_Vectors):
    """Vectors of whole numbers with this squared norm."""

    size: int
    squared_norm: float

    def _named(self, row: np.ndarray) -> str:
        return f"{super()._named(row)} of squared norm {(row**2).sum()}"

    @property
    def _wrong(self) -> str:
        return f"does not have squared norm {self.squared_norm:g}"

    def _outside(self, rows: np.ndarray) -> np.ndarray:
        return np.abs((rows**2).sum(axis=1) - self.squared_norm) > 1e-9


@dataclass(frozen=True)
class Orders(_Vectors):
    """Permutations of ``0 .. size-1``."""

    size: int

    def any(self, size: int) -> np.ndarray:
        """Return the order of the items themselves."""
        return np.arange(self.size)

    @property
    def _wrong(self) -> str:
        return f"is not an order of 0..{self.size - 1}"

    def _outside(self, rows: np.ndarray) -> np.ndarray:
        return (np.sort(rows, axis=1) != np.arange(rows.shape[1])).any(axis=1)


class _Padded(Space):
    """Base of spaces of vectors that may differ in length."""

    #: What a round is called in messages.
    round: ClassVar[str] = "round"

    @fact
    def size(self) -> int:
        """How many numbers an element has; 0 where that differs from round to round."""
        return 0

    def value(self, row: np.ndarray) -> np.ndarray:
        """Return a vector without the padding."""
        return row[row >= 0].copy()

    def values(self, rows: np.ndarray) -> np.ndarray:
        """Return the padded rows."""
        return rows

    def check_all(self, values: Labels) -> CheckedLabels:
        """Return vectors: a list, or rows where the size is fixed."""
        if not self.size and (together := self._checked_together(values)) is not None:
            return together
        checked = []
        for t, value in enumerate(values):
            try:
                checked.append(self.check(value))
            except InputError as error:
                raise InputError(f"{self.round} {t}: {error}") from None
        return np.array(checked).reshape(-1, self.size) if self.size else checked

    def _checked_together(self, values: Labels) -> CheckedLabels | None:
        """Return all elements if they are arrays of whole numbers and valid, else None."""
        for value in values:
            good = type(value) is np.ndarray and value.ndim == 1 and value.dtype.kind in "iub"
            if not good or not value.size:
                return None
        try:
            flat, places = self.check(np.concatenate(values)), [0]
        except (InputError, ValueError):
            return None
        for value in values:
            places.append(places[-1] + len(value))
        return [flat[a:b] for a, b in itertools.pairwise(places)]


@dataclass(frozen=True)
class TagSequences(_Padded):
    """Vectors of any length of tags from ``0 .. tags-1``."""

    tags: int

    def check(self, value: Any) -> np.ndarray:
        """Return the tags as a vector of integers."""
        tags = whole_numbers(value, "tags")
        if tags.ndim != 1 or tags.size == 0:
            raise InputError(f"a label must be a vector of tags, but has shape {tags.shape}")
        if tags.min() < 0 or tags.max() >= self.tags:
            raise InputError(f"label {tags.tolist()} has a tag outside 0..{self.tags - 1}")
        return tags


@dataclass(frozen=True)
class Grades(_Padded):
    """A relevance grade from ``lowest`` to ``highest`` for each document of a query.

    With ``items`` a query has this number of documents, else any.
    """

    lowest: int
    highest: int
    items: int | None = None
    what: str = "grades"
    graded: ClassVar[bool] = True
    round: ClassVar[str] = "query"

    @property
    def size(self) -> int:
        """The number of documents where it is fixed, else 0."""
        return self.items or 0

    def check(self, value: Any) -> np.ndarray:
        """Return one query's grades as a vector."""
        grades = whole_numbers(value, self.what)
        if grades.ndim != 1 or grades.size != (self.items or grades.size) or grades.size == 0:
            raise InputError(
                f"a label must have one of its {self.what} for each of {self.items or 'its'} "
                f"documents, but has shape {grades.shape}"
            )
        if grades.min() < self.lowest or grades.max() > self.highest:
            wrong = grades[(grades < self.lowest) | (grades > self.highest)][0]
            raise InputError(
                f"{self.what} must lie in {self.lowest}..{self.highest}, but one is {wrong}"
            )
        return grades


@dataclass(frozen=True)
class Ranks(_Padded):
    """The rank of every document, 0 is best; ``size`` of them, or any number if it is 0."""

    size: int = 0
    ranks: ClassVar[bool] = True

    def check(self, value: Any) -> np.ndarray:
        """Return the ranks as a vector of integers."""
        ranks = whole_numbers(value, "ranks")
        if ranks.ndim != 1 or not np.array_equal(np.sort(ranks), np.arange(ranks.size)):
            raise InputError(f"a prediction must be an order of 0, 1, ..., but is {ranks.tolist()}")
        return ranks


@dataclass(frozen=True)
class Chosen(_Padded):
    """The indices of ``size`` chosen items, or of all where there are no more."""

    size: int

    def check_among(self, value: Any, items: int) -> np.ndarray:
        """Return the indices as a vector of integers, of this number of items."""
        chosen = whole_numbers(value, "chosen items")
        count = min(self.size, items)
        if chosen.shape != (count,) or len(set(chosen.tolist())) < count:
            raise InputError(f"a prediction must be {count} items, but is {chosen.tolist()}")
        if chosen.min() < 0 or chosen.max() >= items:
            raise InputError(f"items must lie in 0..{items - 1}, but are {chosen.tolist()}")
        return chosen
