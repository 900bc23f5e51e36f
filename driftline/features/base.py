"""What every map of inputs offers.

A map computes features from a row, and from the rows before it, before the row is predicted. A
learner is linear in mapped rows, and its theorem holds for comparators that act on mapped rows,
with the norms of mapped rows. Where a map changes as it learns (quantiles, scales), a comparator of
fixed weights changes with it.

A map itself is a frozen part: a config. What it has learned is the state of its :class:`Mapper`. A
row is mapped by the state before it came, so that a prediction maps a row exactly as learning from
it would, and the same rows in several batches give the same numbers.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import lru_cache
from typing import ClassVar

import numpy as np

from driftline.errors import DAMAGE, InputError
from driftline.inputs.dense import DenseRows
from driftline.inputs.groups import Groups
from driftline.inputs.items import Items
from driftline.inputs.rows import Rows, rows_of
from driftline.inputs.sparse import SparseRows
from driftline.inputs.sparse_sequences import SparseSequences, sparse_positions
from driftline.parts import Part
from driftline.typing import Inputs, Json, Labels, Saved

__all__ = ["Map", "Mapped", "Mapper"]

#: Mapped rows. Where a map takes rounds of several rows, it returns such rounds.
Mapped = DenseRows | SparseRows


class Map(Part, ABC):
    """Base of all maps: a frozen choice, from which a :class:`Mapper` is made."""

    #: Whether mapped rows are always sparse; and whether rows must be dense.
    sparse: ClassVar[bool] = False
    dense_only: ClassVar[bool] = False

    #: Whether output j is made of feature j, so that outputs grow where features do.
    placewise: ClassVar[bool] = False

    #: Whether rounds of several rows are mapped, too: sequences, and documents of a query.
    several: ClassVar[bool] = False

    #: Whether mapped rows have the entries of rows, and one more at most.
    same_entries: ClassVar[bool] = False

    @abstractmethod
    def mapper(self) -> Mapper:
        """Return a mapper that has seen no rows."""

    @abstractmethod
    def norm(self, features: int) -> float:
        """Return a bound of the norm of mapped rows, infinite if there is none."""

    @property
    def longest(self) -> float:
        """A bound of the norm of mapped rows for any number of features, infinite if unknown."""
        return math.inf

    @abstractmethod
    def width(self, features: int) -> int:
        """Return how many features mapped rows have."""

    def entries(self, features: int) -> int:
        """Return how many numbers are stored at most for one mapped row."""
        return self.width(features)

    def bears(self, features: int) -> float:
        """Return s such that rows with all ``|x_i| < s`` are never refused; 0 if unknown."""
        return 0.0

    def suits(self, features: int, sparse: bool) -> bool:
        """Return whether the map is for rows of this shape; a committee leaves it out on others."""
        return True

    @property
    def inner(self) -> Map:
        """The map without a limit of the rows that it is for: equal ones can share a mapper."""
        return self

    def state_bytes(self, features: int, sparse: bool = False) -> int:
        """Return about how many bytes a mapper's state has, for rows of this shape.

        States are measured for rows of one and of two features, and continued in line.
        """
        one, two = _state_bytes(self, 1, sparse), _state_bytes(self, 2, sparse)
        return one + (features - 1) * (two - one)

    def transform(self, inputs: Inputs, labels: Labels = None) -> Inputs:
        """Return mapped rows, each mapped by the state after the rows and labels before it."""
        return self.mapper().transform(inputs, labels)


class Mapper(ABC):
    """A map with its state: what it has learned from rows so far."""

    #: The number of features of rows, None before the first.
    features: int | None = None

    @property
    def bare(self) -> Mapper:
        """The mapper without a limit of the rows that it is for."""
        return self

    @property
    def counted(self) -> float | None:
        """The rows learned from, if the compiled call that learns counts them; None if not."""
        return None

    @property
    @abstractmethod
    def outputs(self) -> int:
        """How many features mapped rows have, once :attr:`features` is known."""

    @abstractmethod
    def piece(self, rows: Rows, start: int, stop: int) -> Mapped:
        """Map rows ``start`` to ``stop``, and learn from them; if one is refused, from none.

        Mapped rows may lie in a buffer that the next piece is written to. Rows that are learned
        from have ``labels``; a row must not be mapped by its own.
        """

    @abstractmethod
    def look_at(self, rows: Rows, start: int = 0, stop: int | None = None) -> Mapped:
        """Map each of rows ``start`` to ``stop`` as if it came next, without learning.

        Any number of threads may do so at once.
        """

    def remember(self, rows: Rows) -> None:
        """Learn from rows as :meth:`piece` does; a single row was mapped by look_at before."""
        self.piece(rows, 0, rows.rounds)

    @abstractmethod
    def to_saved(self) -> Saved:
        """Return what was learned as plain data and arrays, which are copies."""

    def restore(self, about: Json, arrays: Mapping[str, np.ndarray]) -> None:
        """Go on from what :meth:`to_saved` returned, if it is a valid state of this map."""
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
        """Return a mapper for more features, and the old index of each output, -1 if new.

        New features come after the old, and were 0 in all rows so far.
        """

    def transform(self, inputs: Inputs, labels: Labels = None) -> Inputs:
        """Return mapped rows, each mapped by the state before it, and learn from them.

        Where a map takes rounds of several rows, these are a list of arrays or of CSR matrices, or
        one array with all rows and where each round starts.
        """
        return self.transform_rows(_wrapped(inputs), labels)

    def transform_rows(self, rows: Rows, labels: Labels = None) -> Inputs:
        """Do the same with wrapped rows."""
        rows.labels = labels
        mapped: Rows = self.piece(rows, 0, rows.rounds)
        if isinstance(mapped, SparseSequences):
            return mapped.positions.matrix.copy(), mapped.places
        if isinstance(mapped, Groups):
            return [vectors.copy() for vectors in mapped.groups]
        return mapped.matrix.copy() if isinstance(mapped, SparseRows) else mapped.array.copy()

    def meet(self, rows: Rows) -> None:
        """Refuse rows of another length than those before."""
        if self.features is not None and rows.features != self.features:
            raise InputError(
                f"inputs have {rows.features} features, but {self.features} were seen before"
            )


@lru_cache(maxsize=1024)
def _state_bytes(part: Map, features: int, sparse: bool) -> int:
    """Return the size of a mapper's state after a row of zeros; 0 if the map refuses such rows."""
    from scipy.sparse import csr_array

    mapper, row = part.mapper(), np.zeros((1, features))
    try:
        mapper.transform(csr_array(row) if sparse else row)
    except InputError:
        return 0
    return sum(array.nbytes for array in mapper.to_saved()[1].values())


def _wrapped(inputs: Inputs) -> Rows:
    """Wrap rows, or rounds of several rows."""
    if isinstance(inputs, list) and (found := sparse_positions(inputs)) is not None:
        return SparseSequences(*found, tags=1, transitions=False)
    several = isinstance(inputs, np.ndarray) and inputs.ndim == 3
    if isinstance(inputs, (list, tuple)) and inputs:
        several = hasattr(inputs[0], "tocsr") or np.ndim(inputs[0]) == 2
    return Items(inputs) if several else rows_of(inputs)
