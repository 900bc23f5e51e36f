"""The shapes that labels and predictions have, each with its check and its form in arrays.

A task names two spaces, that of its labels and that of its predictions. In arrays an element of a
space is a row of numbers; where rows differ in length they are padded by -1.
"""

from __future__ import annotations

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
    "NONE",
    "Answers",
    "CheckedSpace",
    "Classes",
    "Doubt",
    "Given",
    "Reals",
    "Signs",
    "Space",
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


class CheckedSpace(Space):
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


class _Listed(CheckedSpace):
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
