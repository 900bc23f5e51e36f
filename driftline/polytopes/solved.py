"""Polytopes whose projections come from Frank-Wolfe."""

from __future__ import annotations

import numpy as np

from driftline.polytopes.base import Polytope
from driftline.polytopes.frank_wolfe import ActiveSet, nearest_point

__all__ = ["SolvedPolytope"]


class SolvedPolytope(Polytope):
    """Base of polytopes without a closed projection; ``tolerance`` is that of the solver."""

    tolerance: float

    def project(self, point: np.ndarray) -> np.ndarray:
        """Return the nearest point, up to the tolerance."""
        return self.solve(point)[0].point

    def solve(self, point: np.ndarray, start: ActiveSet | None = None) -> tuple[ActiveSet, float]:
        """Return the active set of the nearest point, and its duality gap."""
        return nearest_point(
            self.maximize, self.check(point), self.most_vertices, start, self.tolerance
        )
