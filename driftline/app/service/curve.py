"""A curve of running sums with a bounded number of points."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from driftline.errors import InputError
from driftline.typing import Json

__all__ = ["Curve"]

#: The most points of a curve: at least half as many are kept.
MOST = 512


class Curve:
    """Points at rising rounds, each with values by name; when there are too many, half of them go.

    >>> curve = Curve(most=4)
    >>> for t in range(1, 11):
    ...     curve.add(t, {"paid": t / 2})
    >>> [point[0] for point in curve.points]
    [1, 5, 9, 10]
    """

    def __init__(self, most: int = MOST):
        self.most, self.stride = most, 1
        self.points: list[tuple[int, dict[str, float]]] = []

    def add(self, rounds: int, values: Mapping[str, float]) -> None:
        """Add a point; the last one is always there, others a stride apart or more."""
        points = self.points
        if len(points) > 1 and points[-1][0] - points[-2][0] < self.stride:
            points.pop()
        points.append((rounds, {name: float(value) for name, value in values.items()}))
        if len(points) > self.most:
            self.stride = max(2 * self.stride, (rounds - points[0][0]) // (self.most // 2))
            kept: list[tuple[int, dict[str, float]]] = []
            for point in points[:-1]:
                if not kept or point[0] - kept[-1][0] >= self.stride:
                    kept.append(point)
            self.points = [*kept, points[-1]]

    def to_plain(self) -> Json:
        """Return all as plain data."""
        return {"stride": self.stride, "points": [[t, values] for t, values in self.points]}

    @classmethod
    def from_plain(cls, saved: Any) -> Curve:
        """Return the curve from what :meth:`to_plain` returned."""
        made = cls()
        try:
            made.stride = int(saved["stride"])
            made.points = [
                (int(t), {str(name): float(value) for name, value in values.items()})
                for t, values in saved["points"]
            ]
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InputError(f"this is no curve: {error!r}") from error
        return made
