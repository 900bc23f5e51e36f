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
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, ClassVar, Self

import numpy as np

from driftline.errors import DAMAGE, InputError
from driftline.inputs.dense import DenseRows
from driftline.inputs.flags import learned
from driftline.inputs.groups import Groups
from driftline.inputs.items import Items
from driftline.inputs.rows import Rows, rows_of
from driftline.inputs.sparse import SparseRows
from driftline.inputs.sparse_sequences import SparseSequences, sparse_positions
from driftline.parts import Part
from driftline.state.arena import Field, Layout, grown_places, inside, within
from driftline.state.stateful import Stateful
from driftline.typing import Inputs, Json, Labels, Saved

__all__ = ["Map", "Mapped", "Mapper"]

#: The most features of rows.
MOST = 10**8

#: The state before the first row.
NOTHING = np.zeros(0)

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

    #: Whether no mapped cell is larger than the largest cell of a row, or 1.
    keeps_cells: ClassVar[bool] = False

    #: A bound of the norm of mapped rows.
    most_norm: ClassVar[float] = math.inf

    #: Cells of this size or larger are refused; 0 if it is unknown.
    largest_cell: ClassVar[float] = 0.0

    @abstractmethod
    def mapper(self) -> Mapper:
        """Return a mapper that has seen no rows."""

    def norm(self, features: int) -> float:
        """Return a bound of the norm of mapped rows, infinite if there is none."""
        return min(self.longest, self.most_norm)

    @property
    def longest(self) -> float:
        """A bound of the norm of mapped rows for any number of features, infinite if unknown."""
        return math.inf

    def width(self, features: int) -> int:
        """Return how many features mapped rows have; by default those of rows."""
        return features

    def entries(self, features: int) -> int:
        """Return how many numbers are stored at most for one mapped row."""
        return self.width(features)

    def bears(self, features: int) -> float:
        """Return s such that rows with all ``|x_i| < s`` are never refused; 0 if unknown."""
        return self.largest_cell

    def suits(self, features: int, sparse: bool) -> bool:
        """Return whether the map is for rows of this shape; a committee leaves it out on others."""
        return True

    def reads(self, features: int) -> int:
        """Return how many columns of rows are read; limits of width count these."""
        return features

    @property
    def inner(self) -> Map:
        """The map without a limit of the rows that it is for: equal ones can share a mapper."""
        return self

    # -- the state of a mapper

    def fields(self, features: int, sparse: bool) -> tuple[Field, ...]:
        """Return what is learned from rows of this shape; fields grow by the axis "features"."""
        return ()

    def check_features(self, features: int) -> None:
        """Refuse rows with more or fewer features than the map is for."""
        return

    def check(self, state: Any, features: int) -> None:
        """Refuse a state that no rows can lead to, by name; each field is in its range."""
        return

    def add(self, state: Any, old: int) -> None:
        """Write what depends on other fields for new features, which come after ``old`` ones."""
        return

    def places(self, old: int, new: int) -> np.ndarray:
        """Return the old index of each output after growing, -1 if new; these come last."""
        return grown_places(self.width(old), self.width(new))

    def state_bytes(self, features: int, sparse: bool = False) -> int:
        """Return how many bytes a mapper's state has, for rows of this shape."""
        return 8 * _layout(self, features, sparse).size

    def transform(self, inputs: Inputs, labels: Labels = None) -> Inputs:
        """Return mapped rows, each mapped by the state after the rows and labels before it."""
        return self.mapper().transform(inputs, labels)


class Mapper(Stateful, ABC):
    """A map with its state: what it has learned from rows so far.

    The state is one buffer, in which the map says what is where (:meth:`Map.fields`).
    """

    _learned = ("features", "sparse", "state", "mappers")
    _inherited = ("features", "sparse", "state")

    #: The number of features of rows, and whether these are sparse; None before the first.
    features: int | None = None
    sparse: bool | None = None

    #: Whether rows must always be of one kind, sparse or dense.
    one_kind: ClassVar[bool] = False

    #: The map that limits which rows may come first, if one does.
    limit: Map | None = None

    #: The mappers of the maps that a map is made of.
    mappers: Sequence[Mapper] = ()

    def __init__(self, part: Map):
        self.part = part
        self.state = NOTHING
        self._clear()

    def _unshare(self) -> None:
        self._clear()

    def _clear(self) -> None:
        """Begin with new buffers, which no other mapper writes to."""
        return

    @property
    def bare(self) -> Mapper:
        """The mapper without a limit of the rows that it is for."""
        if self.limit is None:
            return self
        made = self.copy()
        made.limit = None
        return made

    @property
    def counted(self) -> float | None:
        """The rows learned from, if the compiled call that learns counts them; None if not."""
        return None

    @property
    def outputs(self) -> int:
        """How many features mapped rows have, once :attr:`features` is known."""
        assert self.features is not None
        return self.part.width(self.features)

    @property
    def layout(self) -> Layout:
        """Where the fields of the state are in the buffer."""
        if self.features is None:
            return Layout(())
        return _layout(self.part, self.features, bool(self.sparse))

    # -- rows

    @abstractmethod
    def mapped(
        self, rows: Rows, start: int, stop: int, learning: np.ndarray | None
    ) -> tuple[Mapped, np.ndarray]:
        """Return mapped rows, each by the state before it, and the state after them.

        ``learning`` has a flag for each row, whether it is learned from. Without flags none is,
        any number of threads may call, and the rows that are returned are nobody else's. If a row
        is refused, the state stays as it was.
        """

    def piece(self, rows: Rows, start: int, stop: int) -> Mapped:
        """Map rows ``start`` to ``stop``, and learn from them; if one is refused, from none.

        Mapped rows may lie in a buffer that the next piece is written to. Rows that are learned
        from have ``labels``; a row must not be mapped by its own.
        """
        self.meet(rows)
        made, state = self.mapped(rows, start, stop, learned(rows, start, stop))
        sparse = rows.transposed if self.one_kind else None
        self.features, self.sparse, self.state = rows.features, sparse, state
        return made

    def look_at(self, rows: Rows, start: int = 0, stop: int | None = None) -> Mapped:
        """Map each of rows ``start`` to ``stop`` as if it came next, without learning.

        Any number of threads may do so at once.
        """
        self.meet(rows)
        return self.mapped(rows, start, rows.rounds if stop is None else stop, None)[0]

    def remember(self, rows: Rows) -> None:
        """Learn from rows as :meth:`piece` does; a single row was mapped by look_at before."""
        self.piece(rows, 0, rows.rounds)

    def meet(self, rows: Rows) -> None:
        """Refuse rows of another length or kind than those before."""
        if self.features is None:
            if self.limit is not None and not self.limit.suits(rows.features, rows.transposed):
                kind = "sparse" if rows.transposed else "dense"
                raise InputError(
                    f"{self.limit!r} is for dense rows of fewer features, but these are {kind} and "
                    f"have {rows.features}"
                )
            return
        if rows.features != self.features:
            raise InputError(
                f"inputs have {rows.features} features, but {self.features} were seen before"
            )
        if self.one_kind and self.sparse != rows.transposed:
            kinds = ("dense", "sparse")
            raise InputError(
                f"inputs are {kinds[rows.transposed]}, but those before were "
                f"{kinds[not rows.transposed]}: they are mapped in different ways"
            )

    def begin(self, rows: Rows) -> None:
        """Prepare for first rows like these, without learning from them."""
        sparse = rows.transposed if self.one_kind else None
        self.state, self.features, self.sparse = self.begun(rows), rows.features, sparse

    def begun(self, rows: Rows) -> np.ndarray:
        """Return the state; before the first row a new one, if the map is for such rows."""
        if self.features is not None:
            return self.state
        self.part.check_features(rows.features)
        return _layout(self.part, rows.features, rows.transposed).new()

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

    # -- the state as a value

    def facts(self) -> Json:
        """Return what a state must have in common with the mapper that goes on from it."""
        return {}

    def _blank(self) -> Self:
        """Return a mapper of the same map, whose state is still to be written."""
        made = object.__new__(type(self))
        vars(made).update(vars(self))
        made._clear()
        return made

    def to_saved(self) -> Saved:
        """Return what was learned as plain data and arrays, which are copies."""
        about = {"features": self.features, "sparse": self.sparse, **self.facts()}
        about["outputs"] = None if self.features is None else self.outputs
        arrays = {"state": self.state.copy()}
        if self.mappers:
            saved = [mapper.to_saved() for mapper in self.mappers]
            about["maps"] = [own for own, _ in saved]
            for j, (_, own) in enumerate(saved):
                arrays |= within(j, own)
        return about, arrays

    def restore(self, about: Json, arrays: Mapping[str, np.ndarray]) -> None:
        """Go on from what :meth:`to_saved` returned, if it is a valid state of this map."""
        try:
            made = self._restored(about, arrays)
        except InputError:
            raise
        except DAMAGE as error:
            raise InputError(f"this is no state of a map: {error!r}") from error
        self.become(made)

    def become(self, other: Mapper) -> None:
        """Take over the state of another mapper of the same map."""
        self.features, self.sparse, self.state = other.features, other.sparse, other.state
        self.mappers = other.mappers
        self._clear()

    def _restored(self, about: Json, arrays: Mapping[str, np.ndarray]) -> Self:
        """Return a mapper with a state that may come from anywhere, if it is valid."""
        for name, own in self.facts().items():
            if (type(about[name]), about[name]) != (type(own), own):
                raise InputError(f"expected a state with {name}={own!r}, not {about[name]!r:.80}")
        made, state = self._blank(), arrays["state"]
        features, made.sparse = about["features"], about["sparse"]
        known = type(features) is int and 1 <= features <= MOST
        kinds = (False, True) if self.one_kind and known else (None,)
        if not (known or features is None) or made.sparse not in kinds:
            raise InputError(
                f"a map has met rows of 1 feature or more, or none, not {features!r:.80} with "
                f"sparse={made.sparse!r:.80}"
            )
        made.features = features
        same = features == self.features and made.sparse == self.sparse
        same = same and getattr(state, "dtype", None) == np.float64
        same = same and np.array_equal(state, self.state)
        if not same:
            if known:
                self.part.check_features(features)
            views = made.layout.check(state)
        made.state = state.copy()
        if self.mappers:
            made._restore_mappers(about["maps"], arrays)
        outputs = made.outputs if known else None
        if about["outputs"] != outputs:
            raise InputError(f"{features} features become {outputs}, not {about['outputs']!r:.80}")
        if known and not same:  # an equal state was checked before
            self.part.check(views, features)
        return made

    def _restore_mappers(self, states: Any, arrays: Mapping[str, np.ndarray]) -> None:
        """Restore the mappers of the maps that a map is made of."""
        if not isinstance(states, list) or len(states) != len(self.mappers):
            raise InputError(f"expected states of {len(self.mappers)} maps, not {states!r:.100}")
        self.mappers = [mapper._blank() for mapper in self.mappers]
        for j, (mapper, own) in enumerate(zip(self.mappers, states, strict=True)):
            mapper.restore(own, inside(j, arrays))

    def grown(self, features: int) -> tuple[Self, np.ndarray]:
        """Return a mapper for more features, and the old index of each output, -1 if new.

        New features come after the old, and were 0 in all rows so far.
        """
        made, old = self.copy(), self.features
        if old is None:
            return made, np.zeros(0, dtype=np.int64)
        self.part.check_features(features)
        made.features = features
        made.state = self.layout.grown(self.state, features=grown_places(old, features))
        self.part.add(made.layout.views(made.state), old)
        return made, self.part.places(old, features)


@lru_cache(maxsize=1024)
def _layout(part: Map, features: int, sparse: bool) -> Layout:
    """Return where the fields of a map's state are, for rows of this shape."""
    return Layout(part.fields(features, sparse), features=features)


def _wrapped(inputs: Inputs) -> Rows:
    """Wrap rows, or rounds of several rows."""
    if isinstance(inputs, list) and (found := sparse_positions(inputs)) is not None:
        return SparseSequences(*found, tags=1, transitions=False)
    several = isinstance(inputs, np.ndarray) and inputs.ndim == 3
    if isinstance(inputs, (list, tuple)) and inputs:
        several = hasattr(inputs[0], "tocsr") or np.ndim(inputs[0]) == 2
    return Items(inputs) if several else rows_of(inputs)
