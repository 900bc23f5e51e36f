"""What every map of inputs offers.

A map is anything that is computed from a row, and from rows before it, before the row is predicted:
a learner is linear in mapped rows, and its theorem holds for comparators that act on these, with
norms those of mapped rows. Where a map moves as it learns (quantiles, scales), a comparator of
fixed weights moves with it.

A map itself is a frozen part. What it has learned is a state that its :class:`Mapper` carries, as a
learner carries its own. A row is mapped by what was known before it came, so that looking at a row
gives what learning from it would give, and the same rows in pieces give the same numbers.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from driftline.errors import DAMAGE, InputError
from driftline.inputs.dense import DenseRows
from driftline.inputs.rows import Rows, rows_of
from driftline.inputs.sparse import SparseRows
from driftline.parts import Part
from driftline.typing import Inputs, Json, Labels, Saved

__all__ = ["Map", "Mapped", "Mapper"]

Mapped = DenseRows | SparseRows


class Map(Part, ABC):
    """Base of all maps: a frozen choice, from which a :class:`Mapper` is made."""

    #: Whether mapped rows are sparse whatever rows are; and whether rows must be dense.
    sparse: ClassVar[bool] = False
    dense_only: ClassVar[bool] = False

    #: Whether output j is made of feature j, so that outputs grow where features do.
    placewise: ClassVar[bool] = False

    @abstractmethod
    def mapper(self) -> Mapper:
        """Return one that has seen nothing."""

    @abstractmethod
    def norm(self, features: int) -> float:
        """Return what no mapped row is longer than, infinite where there is no such number."""

    @property
    def longest(self) -> float:
        """What no mapped row is longer than whatever its features, infinite if nothing is known."""
        return math.inf

    @abstractmethod
    def width(self, features: int) -> int:
        """Return how many features mapped rows have."""

    def entries(self, features: int) -> int:
        """Return how many numbers are kept at most while a row is mapped."""
        return self.width(features)

    def bears(self, features: int) -> float:
        """Return a size: no row is refused whose entries are all below it; 0 if none is known."""
        return 0.0

    def suits(self, features: int, sparse: bool) -> bool:
        """Say whether the map is for rows of this shape: a committee does without it on others."""
        return True

    def transform(self, inputs: Inputs, labels: Labels = None) -> Inputs:
        """Return rows mapped as they come, each by those before it, and by their labels."""
        return self.mapper().transform(inputs, labels)


class Mapper(ABC):
    """A map between two rounds, with what it has learned."""

    #: The number of features of rows, None before the first.
    features: int | None = None

    @property
    @abstractmethod
    def outputs(self) -> int:
        """How many features mapped rows have, once :attr:`features` is known."""

    @abstractmethod
    def piece(self, rows: Rows, start: int, stop: int) -> Mapped:
        """Map rows ``start`` to ``stop``, and remember them; if one is refused, none.

        Mapped rows may lie in a buffer that the next piece is written to. Rows that are learned
        from have ``labels``; a row must not be mapped by its own.
        """

    @abstractmethod
    def look_at(self, rows: Rows, start: int = 0, stop: int | None = None) -> Mapped:
        """Map each of rows ``start`` to ``stop`` as if it came next, and remember nothing.

        Any number of threads may look at once.
        """

    def remember(self, rows: Rows) -> None:
        """Learn from rows as :meth:`piece` does; a single row was looked at before."""
        self.piece(rows, 0, rows.rounds)

    @abstractmethod
    def to_saved(self) -> Saved:
        """Return what was learned as plain data and arrays, which are copies."""

    def restore(self, about: Json, arrays: Mapping[str, np.ndarray]) -> None:
        """Go on from what :meth:`to_saved` has returned, if it can be a state of this map."""
        try:
            self.resume(about, arrays)
        except InputError:
            raise
        except DAMAGE as error:
            raise InputError(f"this is no state of a map: {error!r}") from error

    @abstractmethod
    def resume(self, about: Json, arrays: Mapping[str, np.ndarray]) -> None:
        """Go on from a state; if it is refused, nothing changes."""

    @abstractmethod
    def grown(self, features: int) -> tuple[Mapper, np.ndarray]:
        """Return one for rows with more features, and where its outputs were before, -1 if new.

        New features come after the old, and were 0 in all rows so far.
        """

    def transform(self, inputs: Inputs, labels: Labels = None) -> Inputs:
        """Return rows mapped by what was seen up to each of them, and remember them."""
        rows = rows_of(inputs)
        rows.labels = labels
        mapped = self.piece(rows, 0, rows.rounds)
        return mapped.matrix.copy() if isinstance(mapped, SparseRows) else mapped.array.copy()

    def meet(self, rows: Rows) -> None:
        """Refuse rows of another length than those before."""
        if self.features is not None and rows.features != self.features:
            raise InputError(
                f"inputs have {rows.features} features, but {self.features} were seen before"
            )
