"""The shapes that labels and predictions have, each with its check and its form in arrays.

A task names two spaces, that of its labels and that of its predictions. In arrays an element of a
space is a row of numbers; where rows differ in length they are padded by -1.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from driftline.errors import InputError
from driftline.parts import fact
from driftline.tasks.numbers import whole_numbers
from driftline.typing import CheckedLabels, Label, Labels, Prediction

__all__ = [
    "Answers",
    "Chosen",
    "Classes",
    "Doubt",
    "Given",
    "Grades",
    "OfNorm",
    "Orders",
    "Ranks",
    "Reals",
    "Sets",
    "Signs",
    "Space",
    "TagSequences",
]


#: No answer, in arrays.
NONE = -1


class Doubt(NamedTuple):
    """When there is no answer, and what that costs."""

    #: The largest ``-ln p`` of the most probable label with which it is predicted.
    limit: float
    cost: float


class Space:
    """Base of all spaces; by itself the space of whole numbers, without a check."""

    #: The dtype of elements in arrays and files; kernels read and write int64.
    dtype: ClassVar[npt.DTypeLike] = np.int64

    #: Whether elements are -1 and +1.
    signs: ClassVar[bool] = False

    #: Whether elements are relevance grades of documents.
    graded: ClassVar[bool] = False

    #: Whether an element is the rank of every item.
    ranks: ClassVar[bool] = False

    #: When there is no answer, in spaces of predictions; by default there is always one.
    doubt: Doubt = Doubt(math.inf, 1.0)

    @fact
    def size(self) -> int:
        """How many numbers an element has; 0 where that differs from round to round."""
        return 1

    @fact
    def all(self) -> Sequence[Label]:
        """All elements, where they are few."""
        return ()

    def check(self, value: Any) -> Any:
        """Return an element as kernels take it, or raise :class:`InputError`."""
        return self.numbers(value)

    def check_all(self, values: Labels) -> CheckedLabels:
        """Return many elements as kernels take them: an array with a row for each, or a list."""
        return [self.check(value) for value in values]

    def any(self, size: int) -> np.ndarray:
        """Return some valid element of ``size`` entries, as :meth:`check` does.

        Compiled code that only predicts takes it in place of the unknown true label.
        """
        return np.zeros(self.size or size, dtype=np.int64)

    def value(self, row: Any) -> Any:
        """Return an element as users get it from one row of numbers."""
        return row.item() if row.size == 1 else row.copy()

    def values(self, rows: np.ndarray) -> np.ndarray:
        """Return many elements as users get them."""
        return rows[:, 0] if rows.shape[1] == 1 else rows

    def numbers(self, value: Prediction) -> np.ndarray:
        """Return the numbers of an element as users get it, the inverse of :meth:`value`."""
        given = np.ravel(value)
        if given.dtype == self.dtype:
            return given
        made = given.astype(self.dtype)
        if not np.array_equal(made, given):
            raise InputError(
                f"a prediction is {given!r:.60}, but the dtype of its space is {made.dtype}: where "
                "predictions are real numbers, state predictions = dl.tasks.Reals()"
            )
        return made

    def rows(self, count: int, width: int) -> np.ndarray:
        """Return rows for elements, filled with what stands behind shorter ones: -1 or NaN."""
        dtype = np.dtype(self.dtype)
        return np.full((count, width), np.nan if dtype.kind == "f" else -1, dtype=dtype)

    def width(self, labels: CheckedLabels) -> int:
        """Return how many numbers the predictions for these labels take at most."""
        return self.size or max(len(label) for label in labels)

    def codes(self, labels: np.ndarray) -> np.ndarray:
        """Return the numbers from 0 on of elements, where all are listed."""
        return labels

    def from_codes(self, codes: np.ndarray) -> np.ndarray:
        """Return the elements with these numbers from 0 on."""
        return codes


class Given(Space):
    """Labels of a task of one's own, which are taken as they are given."""

    def check(self, value: Any) -> Any:
        """Return the label itself."""
        return value

    def value(self, row: Any) -> Any:
        """Return the label itself."""
        return row


@dataclass(frozen=True)
class Reals(Space):
    """Real numbers, or vectors of ``size`` of them."""

    size: int = 1
    dtype: ClassVar[npt.DTypeLike] = np.float64


class _Checked(Space):
    """Base of spaces of whole numbers, or of vectors of them, with a check of many at once."""

    what: str = "label"

    @fact
    def _wrong(self) -> str:
        """What is wrong with others."""
        raise NotImplementedError

    def _outside(self, rows: np.ndarray) -> np.ndarray:
        """Return which of many are no elements."""
        raise NotImplementedError

    def _refuse_first(self, rows: np.ndarray) -> None:
        """Raise for the first row that is no element, if there is one."""
        wrong = self._outside(rows)
        if wrong.any():
            first = int(np.argmax(wrong))
            raise InputError(f"{self._named(rows[first])} in row {first} {self._wrong}")

    def _named(self, row: np.ndarray) -> str:
        return f"{self.what} {row.tolist()}"


class _Listed(_Checked):
    """Base of spaces of single whole numbers, all of which are listed."""

    def any(self, size: int) -> np.ndarray:
        """Return the first."""
        return np.array(self.all[:1], dtype=np.int64)

    def check(self, value: Any) -> np.ndarray:
        """Return a row of one integer."""
        if type(value) is not int:
            number = whole_numbers(value, f"a {self.what}")
            if number.size != 1:
                raise InputError(f"a {self.what} must be one number, but has shape {number.shape}")
            value = int(number.ravel()[0])
        if value not in self.all:
            raise InputError(f"{self.what} {value} {self._wrong}")
        return np.array((value,), dtype=np.int64)

    def check_all(self, values: Labels) -> np.ndarray:
        """Return rows of one integer."""
        numbers = whole_numbers(values, f"{self.what}s")
        if numbers.ndim != 1:
            raise InputError(f"{self.what}s must be a vector, but have shape {numbers.shape}")
        self._refuse_first(numbers)
        return numbers.reshape(-1, 1)


@dataclass(frozen=True)
class Classes(_Listed):
    """The numbers ``0 .. count-1``."""

    count: int
    what: str = "label"

    @cached_property
    def all(self) -> range:
        """All numbers."""
        return range(self.count)

    @property
    def _wrong(self) -> str:
        return f"is outside 0..{self.count - 1}"

    def _outside(self, rows: np.ndarray) -> np.ndarray:
        return (rows < 0) | (rows >= self.count)


@dataclass(frozen=True)
class Signs(_Listed):
    """Minus and plus one."""

    signs: ClassVar[bool] = True
    all: ClassVar[tuple[int, int]] = (-1, 1)
    _wrong: ClassVar[str] = "is neither -1 nor +1"

    def _outside(self, rows: np.ndarray) -> np.ndarray:
        return np.abs(rows) != 1

    def codes(self, labels: np.ndarray) -> np.ndarray:
        """Return 0 for -1 and 1 for +1."""
        return (labels + 1) // 2

    def from_codes(self, codes: np.ndarray) -> np.ndarray:
        """Return -1 for 0 and +1 for 1."""
        return 2 * codes - 1


@dataclass(frozen=True)
class Answers(Space):
    """Classes, or no answer: None alone, -1 in arrays."""

    classes: Classes
    doubt: Doubt

    def check(self, value: Any) -> np.ndarray:
        """Return a row of one integer: -1 for no answer."""
        if value is None or np.array_equal(value, NONE):
            return np.array([NONE])
        return self.classes.check(value)

    def numbers(self, value: Prediction) -> np.ndarray:
        """Return the integer of a prediction: -1 for no answer."""
        return self.check(value)

    def value(self, row: np.ndarray) -> int | None:
        """Return a prediction as users get it: None for no answer."""
        return None if row[0] < 0 else int(row[0])


class _Vectors(_Checked):
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
