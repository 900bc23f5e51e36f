"""A map that is for rows of few features only."""

from __future__ import annotations

from dataclasses import dataclass

from driftline.errors import InputError
from driftline.features.base import MOST, Map, Mapper
from driftline.features.chain import Chain
from driftline.parts import check_whole

__all__ = ["Narrow"]


@dataclass(frozen=True)
class Narrow(Chain):
    """A map for dense rows of which it reads at most ``most`` columns; other rows are refused.

    A committee leaves out the members whose maps do not suit its first rows, so that the shape of
    these rows determines its cost.

    >>> from driftline.features import Hats
    >>> Narrow(Hats(12), most=64).suits(784, sparse=False)
    False
    """

    map: Map
    most: int = 64

    _made_from = ("map", "most")
    dense_only = True
    several = same_entries = False

    def __post_init__(self) -> None:
        """Refuse a ``map`` that is not a map, or a number of features out of range."""
        if not isinstance(self.map, Map):
            raise InputError(f"expected a map such as Hats(12), not {self.map!r:.80}")
        check_whole("most", self.most, 1, MOST)

    def suits(self, features: int, sparse: bool) -> bool:
        """Say whether rows are dense, and have few columns of those that are read."""
        few = self.map.reads(features) <= self.most
        return not sparse and few and self.map.suits(features, sparse)

    @property
    def maps(self) -> tuple[Map, ...]:  # type: ignore[override]
        """The map inside: a chain of one."""
        return (self.map,)

    @property
    def inner(self) -> Map:
        """The map inside."""
        return self.map.inner

    def mapper(self) -> Mapper:  # type: ignore[override]
        """Return a mapper of the map inside, whose first rows must suit."""
        made = self.map.mapper()
        made.limit = self
        return made

    @property
    def placewise(self) -> bool:  # type: ignore[override]
        """Return that of the map inside."""
        return self.map.placewise
