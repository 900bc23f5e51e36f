"""A map that is for rows of few features only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from driftline.errors import InputError
from driftline.features.base import Map, Mapped, Mapper
from driftline.inputs.rows import Rows
from driftline.typing import Json, Saved

__all__ = ["Narrow"]


@dataclass(frozen=True)
class Narrow(Map):
    """A map for dense rows of at most ``most`` features; other rows are refused.

    A committee leaves out the members whose maps do not suit its first rows, so that the shape of
    these rows determines its cost.

    >>> from driftline.features import Hats
    >>> Narrow(Hats(12), most=64).suits(784, sparse=False)
    False
    """

    map: Map
    most: int = 64

    dense_only = True

    def __post_init__(self) -> None:
        """Refuse a ``map`` that is not a map, or a number of features out of range."""
        if not isinstance(self.map, Map):
            raise InputError(f"expected a map such as Hats(12), not {self.map!r:.80}")
        if isinstance(self.most, bool) or not isinstance(self.most, int) or self.most < 1:
            raise InputError(f"most must be a whole number of 1 or more, not {self.most!r}")

    def suits(self, features: int, sparse: bool) -> bool:
        """Say whether rows are dense and have few features."""
        return not sparse and features <= self.most and self.map.suits(features, sparse)

    @property
    def inner(self) -> Map:
        """The map inside."""
        return self.map.inner

    def mapper(self) -> NarrowMapper:
        """Return a mapper that has seen no rows."""
        return NarrowMapper(self)

    def width(self, features: int) -> int:
        """Return that of the map inside."""
        return self.map.width(features)

    def entries(self, features: int) -> int:
        """Return that of the map inside."""
        return self.map.entries(features)

    @property
    def sparse(self) -> bool:  # type: ignore[override]
        """Whether the map inside makes sparse rows."""
        return self.map.sparse

    def norm(self, features: int) -> float:
        """Return that of the map inside."""
        return self.map.norm(features)

    @property
    def longest(self) -> float:
        """Return that of the map inside."""
        return self.map.longest

    @property
    def placewise(self) -> bool:  # type: ignore[override]
        """Return that of the map inside."""
        return self.map.placewise

    def bears(self, features: int) -> float:
        """Return that of the map inside."""
        return self.map.bears(features)


class NarrowMapper(Mapper):
    """The mapper of the map inside, for rows that suit it."""

    def __init__(self, part: Narrow, inner: Mapper | None = None):
        self.part, self.inner = part, part.map.mapper() if inner is None else inner

    @property
    def bare(self) -> Mapper:
        """The mapper of the map inside."""
        return self.inner.bare

    @property
    def features(self) -> int | None:  # type: ignore[override]
        """The number of features of rows, None before the first."""
        return self.inner.features

    @property
    def outputs(self) -> int:
        """How many features mapped rows have."""
        return self.inner.outputs

    def piece(self, rows: Rows, start: int, stop: int) -> Mapped:
        """Map rows, and learn from them; if one is refused, from none."""
        self.meet(rows)
        return self.inner.piece(rows, start, stop)

    def look_at(self, rows: Rows, start: int = 0, stop: int | None = None) -> Mapped:
        """Map each of rows ``start`` to ``stop`` as if it came next, without learning."""
        self.meet(rows)
        return self.inner.look_at(rows, start, stop)

    def remember(self, rows: Rows) -> None:
        """Learn from rows that were mapped before."""
        self.meet(rows)
        self.inner.remember(rows)

    def to_saved(self) -> Saved:
        """Return what was learned as plain data and arrays."""
        return self.inner.to_saved()

    def resume(self, about: Json, arrays: Mapping[str, np.ndarray]) -> None:
        """Go on from a state of the map inside."""
        self.inner.restore(about, arrays)

    def grown(self, features: int) -> tuple[Mapper, np.ndarray]:
        """Return a mapper for more features, also for more than ``most``."""
        inner, places = self.inner.grown(features)
        return NarrowMapper(self.part, inner), places

    def meet(self, rows: Rows) -> None:
        """Refuse first rows that do not suit the map."""
        sparse = not hasattr(rows, "array")
        if self.features is None and not self.part.suits(rows.features, sparse):
            kind = "sparse" if sparse else "dense"
            raise InputError(
                f"{self.part!r} is for dense rows of at most {self.part.most} features, but these "
                f"are {kind} and have {rows.features}"
            )
