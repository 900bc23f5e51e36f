"""Polytopes whose projections come from a solver, with a duality gap."""

from __future__ import annotations

import numpy as np

from driftline.polytopes.base import Polytope
from driftline.polytopes.frank_wolfe import ActiveSet, nearest_point, warn_inexact

__all__ = ["SolvedPolytope"]


class SolvedPolytope(Polytope):
    """Base of polytopes without a closed projection; ``tolerance`` is that of the solver.

    That is Frank-Wolfe, or a ``project_kernel``, which leaves its gap first in the scratch space.
    """

    tolerance: float
    iterations: int = 20_000

    def project(self, point: np.ndarray) -> np.ndarray:
        """Return the nearest point, up to the tolerance; warn if that was not reached."""
        found, gap = self.nearest(point)
        if self.missed(gap, point):
            warn_inexact(gap, self.tolerance)
        return found

    @property
    def closed(self) -> bool:
        """Whether projections are exact: never."""
        return False

    def nearest(self, point: np.ndarray) -> tuple[np.ndarray, float]:
        """Return the nearest point, and its duality gap."""
        if self.project_kernel is None:
            active, gap = self.solve(point)
            return active.point, gap
        out, scratch = np.empty(self.dim), np.empty(self.scratch)
        self.project_kernel(self.check(point), np.array(self.params), scratch, out)
        return out, float(scratch[0])

    def missed(self, gap: float, point: np.ndarray) -> bool:
        """Return whether a gap exceeds the tolerance by more than rounding."""
        return gap > self.tolerance * max(1.0, float(np.abs(point).max()))

    def solve(self, point: np.ndarray, start: ActiveSet | None = None) -> tuple[ActiveSet, float]:
        """Return the active set of the nearest point, and its duality gap, by Frank-Wolfe."""
        return nearest_point(
            self.maximize,
            self.check(point),
            self.most_vertices,
            start,
            self.tolerance,
            self.iterations,
        )
