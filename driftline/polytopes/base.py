"""What every polytope offers.

``maximize`` is the linear oracle, the vertex farthest in a direction; ``project`` the nearest
point; ``decompose`` writes a point as a mixture of few vertices, from which one can be drawn. Ties
go to the lowest index.
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from driftline.errors import InputError
from driftline.kernels import Kernel
from driftline.parts import Part, fact

__all__ = ["Mixture", "Polytope"]


class Mixture(NamedTuple):
    """Vertices, a row each, and their weights, which are positive and add up to 1."""

    vertices: np.ndarray
    weights: np.ndarray

    @property
    def mean(self) -> np.ndarray:
        """The mean of the vertices."""
        return self.weights @ self.vertices

    def draw(self, uniform: float) -> np.ndarray:
        """Return one vertex by a uniform number."""
        index = np.searchsorted(np.cumsum(self.weights), uniform, side="right")
        return self.vertices[min(int(index), len(self.weights) - 1)].copy()


class Polytope(Part):
    """Base of all polytopes.

    A polytope of one's own needs ``dim`` and :meth:`maximize`, and is best made as a
    :class:`~driftline.polytopes.Hull`, which has all other methods.
    """

    #: Compiled ``maximize`` and ``project``, where there are closed forms; and the conjugate of the
    #: entropy, with its gradient.
    maximize_kernel: ClassVar[Kernel | None] = None
    project_kernel: ClassVar[Kernel | None] = None
    entropy_kernel: ClassVar[Kernel | None] = None

    #: Whether it is the same under every permutation of coordinates.
    symmetric: ClassVar[bool] = False

    @fact
    def dim(self) -> int:
        """Number of coordinates."""
        raise InputError(f"{type(self).__name__} does not say its dimension `dim`")

    @fact
    def equal_norms(self) -> bool:
        """Whether all vertices have the same norm.

        Then the nearest vertex to a point is the best one in its direction.
        """
        return True

    @fact
    def base(self) -> bool:
        """Whether it is the base polytope of a submodular function.

        All translates of it then have a least majorised point, which minimises every symmetric
        convex function at once.
        """
        return False

    @fact
    def coordinatewise(self) -> bool:
        """Whether the best move of scores onto a negative multiple of it is a projection.

        It is where coordinates, or blocks of them, stand alone: projecting the moved scores then
        undoes nothing of the move. See :class:`~driftline.losses.ConvolutionalFenchelYoung`.
        """
        return False

    @fact
    def closed(self) -> bool:
        """Whether projections are exact, and not found by a solver."""
        return self.project_kernel is not None

    @fact
    def params(self) -> tuple[float, ...]:
        """Parameters for the kernels."""
        return ()

    @fact
    def scratch(self) -> int:
        """How many numbers of scratch space the kernels need."""
        return 0

    @fact
    def most_vertices(self) -> int:
        """How many vertices a mixture needs at most (Caratheodory, or fewer)."""
        return self.dim + 1

    def maximize(self, direction: np.ndarray) -> np.ndarray:
        """Return the vertex of largest inner product with ``direction``."""
        return self._run(self.maximize_kernel, direction, "maximize")

    def project(self, point: np.ndarray) -> np.ndarray:
        """Return the nearest point of the polytope."""
        return self._run(self.project_kernel, point, "project")

    def decompose(self, point: np.ndarray) -> Mixture:
        """Write a point of the polytope as a mixture of at most ``most_vertices`` vertices."""
        raise InputError(f"{type(self).__name__} does not define decompose")

    def check(self, point: npt.ArrayLike) -> np.ndarray:
        """Return a point as a float64 vector of the right size."""
        vector = np.ascontiguousarray(point, dtype=np.float64)
        if vector.shape != (self.dim,):
            raise InputError(
                f"expected a point of size {self.dim}, but its shape is {vector.shape}"
            )
        if not np.isfinite(vector).all():
            raise InputError("a point must be finite, but an entry is not")
        return vector

    def _run(self, kernel: Kernel | None, point: np.ndarray, method: str) -> np.ndarray:
        if kernel is None:
            raise InputError(f"{type(self).__name__} does not define {method}")
        out = np.empty(self.dim)
        kernel(self.check(point), np.array(self.params), np.empty(self.scratch), out)
        return out


def keep_positive(vertices: np.ndarray, weights: np.ndarray) -> Mixture:
    """Return the mixture without vertices of weight 0, normalised."""
    kept = weights > 0.0
    return Mixture(vertices[kept], weights[kept] / weights[kept].sum())
