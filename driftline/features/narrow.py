"""A map that is for rows of few features only."""

from __future__ import annotations

from dataclasses import dataclass

from driftline.errors import InputError
from driftline.features.base import MOST, Map, Mapper
from driftline.parts import check_whole

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
        check_whole("most", self.most, 1, MOST)

    def suits(self, features: int, sparse: bool) -> bool:
        """Say whether rows are dense and have few features."""
        return not sparse and features <= self.most and self.map.suits(features, sparse)

    @property
    def inner(self) -> Map:
        """The map inside."""
        return self.map.inner

    def mapper(self) -> Mapper:
        """Return a mapper of the map inside, whose first rows must suit."""
        made = self.map.mapper()
        made.limit = self
        return made

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

    def state_bytes(self, features: int, sparse: bool = False) -> int:
        """Return that of the map inside."""
        return self.map.state_bytes(features, sparse)

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
