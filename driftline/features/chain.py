"""Maps one after the other, and side by side."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, NoReturn, Self, TypeVar

import numpy as np

from driftline.errors import InputError
from driftline.features.base import Map, Mapped, Mapper
from driftline.inputs.dense import DenseRows
from driftline.inputs.rows import Rows
from driftline.inputs.sparse import SparseRows
from driftline.state.stateful import Leaves

__all__ = ["Chain", "Union"]

Made = TypeVar("Made")


class _LaterError(InputError):
    """A row was refused by a later map, which does not know the row's number."""


@contextmanager
def _later() -> Iterator[None]:
    """Raise errors of a later map as :class:`_LaterError`."""
    try:
        yield
    except InputError as error:
        raise _LaterError(str(error)) from error


class _Several(Map):
    """Base of maps that are made of others."""

    _made_from: ClassVar[tuple[str, ...]] = ("maps",)

    def __init__(self, *several: Map, maps: Sequence[Map] = ()):
        if not isinstance(maps, (tuple, list)):
            raise InputError(f"expected a list of maps, such as [Ranks(), Hats(12)], not {maps!r}")
        self.maps = (*several, *maps)
        if len(self.maps) < 2 or not all(isinstance(part, Map) for part in self.maps):
            raise InputError(f"expected 2 maps or more, such as Hats(12), not {self.maps!r:.100}")
        self._check()

    def _check(self) -> None:
        """Refuse maps that do not fit each other."""
        return

    @property
    def dense_only(self) -> bool:  # type: ignore[override]
        """Whether one of the maps is for dense rows."""
        return any(part.dense_only for part in self.maps)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.maps == self.maps

    def __hash__(self) -> int:
        return hash((type(self), self.maps))

    def __repr__(self) -> str:
        """Name the maps."""
        return f"{type(self).__name__}({', '.join(map(repr, self.maps))})"


class Chain(_Several):
    """Maps one after the other: the second maps what the first has made, and so on.

    >>> from driftline.features import Fourier, Ranks
    >>> Chain(Ranks(), Fourier(50)).transform(np.ones((3, 2))).shape
    (3, 50)
    """

    def _check(self) -> None:
        for one, two in itertools.pairwise(self.maps):
            if one.sparse and two.dense_only:
                raise InputError(f"{one!r} makes sparse rows, but {two!r} is for dense ones")

    @property
    def sparse(self) -> bool:  # type: ignore[override]
        """Whether the last map makes sparse rows, or passes on those of one before."""
        kept = itertools.takewhile(lambda part: not part.dense_only, reversed(self.maps))
        return self.maps[-1].sparse or any(part.sparse for part in kept)

    @property
    def several(self) -> bool:  # type: ignore[override]
        """Whether all maps take rounds of several rows."""
        return all(part.several for part in self.maps)

    @property
    def same_entries(self) -> bool:  # type: ignore[override]
        """Whether no map makes more entries."""
        return all(part.same_entries for part in self.maps)

    def mapper(self) -> ChainMapper:
        """Return a mapper that has seen no rows."""
        return ChainMapper(self, self.maps)

    def norm(self, features: int) -> float:
        """Ask the last map."""
        for part in self.maps[:-1]:
            features = part.width(features)
        return self.maps[-1].norm(features)

    @property
    def longest(self) -> float:
        """Ask the last map."""
        return self.maps[-1].longest

    def bears(self, features: int) -> float:
        """Return that of the first map, if each later map accepts rows of the norm it is given."""
        size = self.maps[0].bears(features)
        for one, two in itertools.pairwise(self.maps):
            longest, features = one.norm(features), one.width(features)
            later = two.bears(features)
            if one.keeps_cells and later > 1.0:
                size = min(size, later)
            elif not longest < later:
                return 0.0
        return size

    def reads(self, features: int) -> int:
        """Ask the first map."""
        return self.maps[0].reads(features)

    def suits(self, features: int, sparse: bool) -> bool:
        """Say whether rows suit the first map, and what becomes of them each later one."""
        for part in self.maps:
            if not part.suits(features, sparse):
                return False
            features, sparse = part.width(features), sparse or part.sparse
        return True

    def width(self, features: int) -> int:
        """Return the width of the last map."""
        for part in self.maps:
            features = part.width(features)
        return features

    def state_bytes(self, features: int, sparse: bool = False) -> int:
        """Return the sum for all maps, each for rows as the map before makes them."""
        made = 0
        for part in self.maps:
            made += part.state_bytes(features, sparse)
            features, sparse = part.width(features), sparse or part.sparse
        return made

    def entries(self, features: int) -> int:
        """Return the largest number of entries of any map."""
        most = 0
        for part in self.maps:
            most, features = max(most, part.entries(features)), part.width(features)
        return most


class Union(_Several):
    """Maps side by side: mapped rows are those of each map, one after the other.

    >>> from driftline.features import Hats, Ranks
    >>> Union(Ranks(), Hats(4)).transform(np.ones((3, 2))).shape
    (3, 10)
    """

    def mapper(self) -> UnionMapper:
        """Return a mapper that has seen no rows."""
        return UnionMapper(self, self.maps)

    def norm(self, features: int) -> float:
        """Return the root of the sum of all squares."""
        return math.sqrt(sum(part.norm(features) ** 2 for part in self.maps))

    def bears(self, features: int) -> float:
        """Return the smallest of all maps."""
        return min(part.bears(features) for part in self.maps)

    def width(self, features: int) -> int:
        """Count the features of all maps."""
        return sum(part.width(features) for part in self.maps)

    def state_bytes(self, features: int, sparse: bool = False) -> int:
        """Return the sum for all maps."""
        return sum(part.state_bytes(features, sparse) for part in self.maps)

    def entries(self, features: int) -> int:
        """Count those of all maps."""
        return sum(part.entries(features) for part in self.maps)

    @property
    def sparse(self) -> bool:  # type: ignore[override]
        """Whether any map makes sparse rows: then the union is sparse."""
        return any(part.sparse for part in self.maps)


class _SeveralMapper(Mapper):
    """Mappers of several maps; the state is theirs."""

    mappers: list[Mapper]

    def __init__(self, part: Map, maps: Sequence[Map]):
        super().__init__(part)
        self.maps = tuple(maps)
        self.mappers = [own.mapper() for own in maps]

    def _clear(self) -> None:
        self._leaves: Leaves | None = None  # of the mappers, of which copies have others

    def meet(self, rows: Rows) -> None:
        """Refuse rows of another length than those before, or of a kind that a map does not take.

        No map makes dense rows of sparse ones.
        """
        super().meet(rows)
        for part in self.maps:
            if part.dense_only and isinstance(rows, SparseRows):
                raise InputError(f"{part!r} is for dense rows: give an array, as by .toarray()")

    def _or_none(self, call: Callable[[], Made]) -> Made:
        """Call a function that changes the mappers; if it fails, roll all of them back."""
        first = self.mappers[:-1]
        if self.features is not None and not any(own.state.size or own.mappers for own in first):
            return call()  # only the last one learns, and that from all rows or from none
        if (leaves := self._leaves) is None:
            leaves = self._leaves = Leaves(self)
        before = leaves.read()
        try:
            return call()
        except BaseException:
            leaves.write(before)
            raise


class ChainMapper(_SeveralMapper):
    """Maps one after the other, with their states."""

    @property
    def outputs(self) -> int:
        """How many features the last map has."""
        return self.mappers[-1].outputs

    def mapped(
        self, rows: Rows, start: int, stop: int, learning: np.ndarray | None
    ) -> tuple[Mapped, np.ndarray]:
        """Return rows as the last map makes them; if one refuses a row, none has learned."""

        def call(start: int, stop: int) -> Mapped:
            return self._passed_on(rows, start, stop, learning is not None)

        changing = self._or_none if learning is not None else lambda call: call()
        try:
            return changing(lambda: call(start, stop)), self.state
        except _LaterError as error:
            found = error
        return changing(lambda: _named(rows, start, stop, call, found)), self.state

    def begin(self, rows: Rows) -> None:
        """Prepare every map for what those before make of such rows."""
        self.features = rows.features
        for mapper in self.mappers:
            mapper.begin(rows)
            rows = mapper.look_at(rows)

    def remember(self, rows: Rows) -> None:
        """Learn from rows; of a single one, which was looked at before, no map refuses anything."""
        if rows.rounds > 1:
            self.piece(rows, 0, rows.rounds)
            return
        self.meet(rows)
        made: Rows = rows
        for mapper in self.mappers[:-1]:
            made = mapper.piece(made, 0, 1)
            made.labels = rows.labels
        self.mappers[-1].remember(made)
        self.features = rows.features

    def _passed_on(self, rows: Rows, start: int, stop: int, learns: bool) -> Mapped:
        """Return rows that were passed from map to map, each of which learns or none does."""
        first, *later = self.mappers
        made = first.piece(rows, start, stop) if learns else first.look_at(rows, start, stop)
        with _later():
            for mapper in later:
                made.labels = None if rows.labels is None else rows.labels[start:stop]
                made.asked = None if rows.asked is None else rows.asked[start:stop]
                made = mapper.piece(made, 0, stop - start) if learns else mapper.look_at(made)
        return made

    def grown(self, features: int) -> tuple[Self, np.ndarray]:
        """Return a mapper for more features: each map grows with the outputs of the one before."""
        made, places, wide = self.copy(), np.zeros(0, dtype=np.int64), features
        if self.features is None:
            return made, places
        for j, mapper in enumerate(self.mappers):
            made.mappers[j], own = mapper.grown(wide)
            if j == 0 or not self.maps[j].placewise:
                places = own
            kept = np.array_equal(places[: mapper.outputs], np.arange(mapper.outputs))
            if not kept and not all(part.placewise for part in self.maps[j + 1 :]):
                raise InputError(f"{self.maps[j]!r} grows in the middle: no map can follow it")
            wide = made.mappers[j].outputs
        made.features = features
        return made, places

    def _restore_mappers(self, states: Any, arrays: Mapping[str, np.ndarray]) -> None:
        super()._restore_mappers(states, arrays)
        wide = self.features
        for mapper in self.mappers:
            _check_stream(mapper, wide)
            wide = None if wide is None else mapper.outputs


class UnionMapper(_SeveralMapper):
    """Maps side by side, with their states."""

    @property
    def outputs(self) -> int:
        """The features of all maps."""
        return sum(mapper.outputs for mapper in self.mappers)

    def mapped(
        self, rows: Rows, start: int, stop: int, learning: np.ndarray | None
    ) -> tuple[Mapped, np.ndarray]:
        """Return the rows of all maps; if one refuses a row, none has learned."""
        if learning is None:
            made = [mapper.look_at(rows, start, stop) for mapper in self.mappers]
        else:
            made = self._or_none(lambda: [m.piece(rows, start, stop) for m in self.mappers])
        return _beside(made), self.state

    def remember(self, rows: Rows) -> None:
        """Learn from rows; of a single one, which was looked at before, no map refuses anything."""
        if rows.rounds > 1:
            self.piece(rows, 0, rows.rounds)
            return
        self.meet(rows)
        for mapper in self.mappers:
            mapper.remember(rows)
        self.features = rows.features

    def grown(self, features: int) -> tuple[Self, np.ndarray]:
        """Return one for rows with more features, and where its outputs were before."""
        made, places, first = self.copy(), [np.zeros(0, dtype=np.int64)], 0
        if self.features is None:
            return made, places[0]
        for j, mapper in enumerate(self.mappers):
            made.mappers[j], own = mapper.grown(features)
            places.append(np.where(own < 0, -1, own + first))
            first += mapper.outputs
        made.features = features
        return made, np.concatenate(places)

    def _restore_mappers(self, states: Any, arrays: Mapping[str, np.ndarray]) -> None:
        super()._restore_mappers(states, arrays)
        for mapper in self.mappers:
            _check_stream(mapper, self.features)


def _check_stream(mapper: Mapper, features: int | None) -> None:
    """Refuse a mapper that has seen another stream than rows with this many features."""
    if mapper.features != features:
        raise InputError(
            f"maps of one stream have met rows of {features} features, not of {mapper.features}"
        )


def _named(
    rows: Rows, start: int, stop: int, call: Callable[[int, int], object], found: InputError
) -> NoReturn:
    """Map rows one by one, to name the one that a later map refuses."""
    for t in range(start, stop):
        try:
            call(t, t + 1)
        except _LaterError as error:
            where = f"row {t}" if rows.rounds > 1 else "the input"
            raise InputError(f"{where}, as it was mapped: {error}") from error
    raise found


def _beside(parts: list[Mapped]) -> Mapped:
    """Return rows side by side: sparse ones if any are."""
    if all(isinstance(part, DenseRows) for part in parts):
        return DenseRows(np.hstack([part.array for part in parts]))  # type: ignore[union-attr]
    from scipy.sparse import csr_array, hstack

    made = hstack([csr_array(part.whole) for part in parts], format="csr", dtype=np.float64)
    return SparseRows.made(made.data, made.indices, made.indptr, made.shape[1], csr_array)
