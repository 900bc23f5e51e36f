"""Any polytope, given only by its linear oracle."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from driftline.polytopes.base import Mixture
from driftline.polytopes.solved import SolvedPolytope

__all__ = ["CachedOracle", "Hull"]


class CachedOracle:
    """An oracle that caches its last answers, and counts its calls."""

    def __init__(self, oracle: Callable[[np.ndarray], np.ndarray], size: int = 256):
        self.oracle = oracle
        self.size = size
        self.calls = 0
        self._answers: OrderedDict[bytes, np.ndarray] = OrderedDict()

    def __call__(self, direction: np.ndarray) -> np.ndarray:
        """Return the answer, from the cache if it is there."""
        key = np.ascontiguousarray(direction).tobytes()
        if key in self._answers:
            self._answers.move_to_end(key)
            return self._answers[key]
        self.calls += 1
        answer = self.oracle(direction)
        self._answers[key] = answer
        if len(self._answers) > self.size:
            self._answers.popitem(last=False)
        return answer


@dataclass(frozen=True)
class Hull(SolvedPolytope):
    """The hull of the vertices that an oracle returns: the best one in a direction.

    Projections and mixtures come from Frank-Wolfe, to ``tolerance`` in the duality gap. If the
    hull has fewer dimensions than its space, ``most`` says how many vertices make a point.

    >>> diamond = Hull(2, lambda v: np.eye(2)[np.argmax(abs(v))] * np.sign(v))
    >>> diamond.project(np.array([2.0, 1.0])).round(6) + 0.0
    array([1., 0.])
    """

    dim: int
    oracle: Callable[[np.ndarray], np.ndarray]
    equal_norms: bool = False
    tolerance: float = 1e-10
    most: int | None = None

    @property
    def most_vertices(self) -> int:
        """The given ``most``, or the number in Caratheodory's theorem."""
        return self.dim + 1 if self.most is None else self.most

    def maximize(self, direction: np.ndarray) -> np.ndarray:
        """Call the oracle."""
        return np.asarray(self.oracle(self.check(direction)), dtype=np.float64)

    def decompose(self, point: np.ndarray) -> Mixture:
        """Return the active set of a Frank-Wolfe search for the point."""
        return self.solve(point)[0].mixture
