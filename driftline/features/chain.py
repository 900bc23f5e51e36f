"""Maps one after the other, and side by side."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from driftline.errors import InputError
from driftline.features.base import Map, Mapped, Mapper, Saved
from driftline.inputs.dense import DenseRows
from driftline.inputs.sparse import SparseRows

__all__ = ["Chain", "Union"]


class _Several(Map):
    """Base of maps that are made of others."""

    made_from = ("maps",)

    def __init__(self, *several: Map, maps: Sequence[Map] = ()):
        self.maps = (*several, *maps)
        if len(self.maps) < 2 or not all(isinstance(part, Map) for part in self.maps):
            raise InputError(f"expected 2 maps or more, such as Hats(12), not {self.maps!r:.100}")

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

    def mapper(self) -> ChainMapper:
        """Return one that has seen nothing."""
        return ChainMapper(self.maps)

    def norm(self, features: int) -> float:
        """Ask the last map."""
        for part in self.maps[:-1]:
            features = part.width(features)
        return self.maps[-1].norm(features)

    def width(self, features: int) -> int:
        """As wide as the last map makes them."""
        for part in self.maps:
            features = part.width(features)
        return features


class Union(_Several):
    """Maps side by side: mapped rows are those of each map, one after the other.

    >>> from driftline.features import Hats, Ranks
    >>> Union(Ranks(), Hats(4)).transform(np.ones((3, 2))).shape
    (3, 10)
    """

    def mapper(self) -> UnionMapper:
        """Return one that has seen nothing."""
        return UnionMapper(self.maps)

    def norm(self, features: int) -> float:
        """Return the root of the sum of all squares."""
        return math.sqrt(sum(part.norm(features) ** 2 for part in self.maps))

    def width(self, features: int) -> int:
        """Count the features of all maps."""
        return sum(part.width(features) for part in self.maps)


class _SeveralMapper(Mapper):
    """Mappers of several maps, with the states of all."""

    def __init__(self, maps: Sequence[Map]):
        self.maps = tuple(maps)
        self.mappers = [part.mapper() for part in maps]

    def to_saved(self) -> Saved:
        """Return the states of all, each after its number."""
        saved = [mapper.to_saved() for mapper in self.mappers]
        arrays: dict[str, np.ndarray] = {}
        for j, (_, own) in enumerate(saved):
            arrays |= {f"{j}.{name}": array for name, array in own.items()}
        return {"features": self.features, "maps": [about for about, _ in saved]}, arrays

    def restore(self, about: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
        """Go on from what :meth:`to_saved` has returned."""
        if len(about["maps"]) != len(self.mappers):
            raise InputError(f"there are {len(self.mappers)} maps, not {len(about['maps'])}")
        mappers = [part.mapper() for part in self.maps]
        for j, (mapper, own) in enumerate(zip(mappers, about["maps"], strict=True)):
            start = f"{j}."
            mapper.restore(
                own, {k.removeprefix(start): a for k, a in arrays.items() if k.startswith(start)}
            )
        self.features, self.mappers = mappers[0].features, mappers
        self.check()

    def check(self) -> None:
        """Refuse states that do not belong to one stream."""
        if self.features is not None:
            known = [mapper.features for mapper in self.mappers]
            if known != self._expected():
                raise InputError(f"the maps have seen rows of {known} features")

    def _expected(self) -> list[int | None]:
        raise NotImplementedError


class ChainMapper(_SeveralMapper):
    """Maps one after the other, with their states."""

    @property
    def outputs(self) -> int:
        """How many features the last map has."""
        return self.mappers[-1].outputs

    def piece(self, rows: Any, start: int, stop: int) -> Mapped:
        """Map rows ``start`` to ``stop``, and remember them; if one is refused, none."""
        self.meet(rows)
        before = [mapper.to_saved() for mapper in self.mappers[:-1]]
        made: Any = rows
        try:
            for mapper in self.mappers:
                made = mapper.piece(made, start, stop)
                start, stop = 0, stop - start
        except InputError:
            for mapper, saved in zip(self.mappers, before, strict=False):
                mapper.restore(*saved)
            raise
        self.features = rows.features
        return made

    def look_at(self, rows: Any) -> Mapped:
        """Map every row as if it came next, and remember nothing."""
        self.meet(rows)
        made: Any = rows
        for mapper in self.mappers:
            made = mapper.look_at(made)
        return made

    def remember(self, rows: Any) -> None:
        """Learn from rows that were looked at before, but for the last map's own rows."""
        self.meet(rows)
        made: Any = rows
        for mapper in self.mappers[:-1]:
            made = mapper.piece(made, 0, rows.rounds)
        self.mappers[-1].remember(made)
        self.features = rows.features

    def grown(self, features: int) -> tuple[Mapper, np.ndarray]:
        """Return one for rows with more features: each map grows by what the one before does."""
        other = ChainMapper(self.maps)
        if self.features is None:
            return other, np.zeros(0, dtype=np.int64)
        places, wide = np.zeros(0, dtype=np.int64), features
        for j, mapper in enumerate(self.mappers):
            other.mappers[j], places = mapper.grown(wide)
            moved = (np.diff(places[places >= 0]) < 0).any() or (places[: mapper.outputs] < 0).any()
            if j + 1 < len(self.mappers) and moved:
                raise InputError(f"{self.maps[j]!r} grows in the middle: no map can follow it")
            wide = other.mappers[j].outputs
        other.features = features
        return other, places

    def _expected(self) -> list[int | None]:
        return [self.features, *(mapper.outputs for mapper in self.mappers[:-1])]


class UnionMapper(_SeveralMapper):
    """Maps side by side, with their states."""

    @property
    def outputs(self) -> int:
        """The features of all maps."""
        return sum(mapper.outputs for mapper in self.mappers)

    def piece(self, rows: Any, start: int, stop: int) -> Mapped:
        """Map rows ``start`` to ``stop``, and remember them; if one is refused, none."""
        self.meet(rows)
        before = [mapper.to_saved() for mapper in self.mappers[:-1]]
        try:
            made = [mapper.piece(rows, start, stop) for mapper in self.mappers]
        except InputError:
            for mapper, saved in zip(self.mappers, before, strict=False):
                mapper.restore(*saved)
            raise
        self.features = rows.features
        return _beside(made)

    def look_at(self, rows: Any) -> Mapped:
        """Map every row as if it came next, and remember nothing."""
        self.meet(rows)
        return _beside([mapper.look_at(rows) for mapper in self.mappers])

    def remember(self, rows: Any) -> None:
        """Learn from rows that were looked at before."""
        self.meet(rows)
        for mapper in self.mappers:
            mapper.remember(rows)
        self.features = rows.features

    def grown(self, features: int) -> tuple[Mapper, np.ndarray]:
        """Return one for rows with more features, and where its outputs were before."""
        other = UnionMapper(self.maps)
        if self.features is None:
            return other, np.zeros(0, dtype=np.int64)
        places, first = [], 0
        for j, mapper in enumerate(self.mappers):
            other.mappers[j], own = mapper.grown(features)
            places.append(np.where(own < 0, -1, own + first))
            first += mapper.outputs
        other.features = features
        return other, np.concatenate(places)

    def _expected(self) -> list[int | None]:
        return [self.features] * len(self.mappers)


def _beside(parts: list[Mapped]) -> Mapped:
    """Return rows side by side: sparse ones if any are."""
    if all(isinstance(part, DenseRows) for part in parts):
        return DenseRows(np.hstack([part.array for part in parts]))  # type: ignore[union-attr]
    from scipy.sparse import csr_array, hstack

    made = hstack([csr_array(part.whole) for part in parts], format="csr", dtype=np.float64)
    return SparseRows.made(made.data, made.indices, made.indptr, made.shape[1], csr_array)
