"""An experiment: methods and streams."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from driftline.paper.methods import Method
from driftline.streams import Stream

__all__ = ["Experiment", "Maker"]

#: Makes a stream from rounds, flips and a seed.
Maker = Callable[[int, int, int], Stream]


@dataclass(frozen=True)
class Experiment:
    """Methods in groups, and streams by name; ``titles`` are for figures.

    Methods for single data sets, with the same names, are in ``special``.
    """

    methods: tuple[Method, ...]
    groups: Mapping[str, str]
    streams: Mapping[str, Maker]
    default_data: tuple[str, ...]
    rounds: int = 10_000
    trials: int = 10
    titles: Mapping[str, str] = field(default_factory=dict)
    special: Mapping[str, tuple[Method, ...]] = field(default_factory=dict)

    def methods_for(self, data: str) -> tuple[Method, ...]:
        """Return the methods for a stream."""
        return self.special.get(data, self.methods)
