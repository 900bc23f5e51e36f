"""The whole space, as a polytope without constraints."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from driftline.polytopes.base import Polytope

__all__ = ["Space"]


@dataclass(frozen=True)
class Space(Polytope):
    """The whole space; a quadratic on it makes a squared loss.

    >>> Space(2).project(np.array([3.0, -5.0]))
    array([ 3., -5.])
    """

    dim: int

    symmetric: ClassVar[bool] = True
    closed: ClassVar[bool] = True

    def project(self, point: np.ndarray) -> np.ndarray:
        """Return the point itself."""
        return self.check(point).copy()
