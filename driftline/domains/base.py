"""What every domain offers."""

from __future__ import annotations

import numpy as np

from driftline.errors import InputError
from driftline.parts import Part, fact

__all__ = ["Domain"]


class Domain(Part):
    """Base of all domains: closed convex sets of weights.

    A domain of one's own needs a ``diameter`` and :meth:`project`. A ball around the
    origin also has a ``radius``, and runs compiled.
    """

    @fact
    def diameter(self) -> float:
        """The largest distance of two weights."""
        raise InputError(f"{type(self).__name__} does not say its `diameter`")

    @fact
    def radius(self) -> float | None:
        """Half the diameter of a ball around the origin, None for others."""
        return None

    def farthest(self, weights: np.ndarray) -> float:
        """Return a bound of the distance of weights in the domain to any others in it."""
        return self.diameter

    def project(self, weights: np.ndarray) -> np.ndarray:
        """Return the nearest weights in the domain."""
        raise InputError(f"{type(self).__name__} does not define project")
