r"""A task given only by a linear oracle over its encodings.

Labels and predictions are integer vectors that encode themselves, and the loss is
:math:`\ell(\hat y, y) = a \langle y, \hat y \rangle + c`: an affine function of how much two
labels overlap, 0 for equal ones.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from driftline.errors import InputError
from driftline.polytopes import Hull, Polytope
from driftline.tasks.base import Guess
from driftline.tasks.structured import StructuredTask
from driftline.tasks.vector_spaces import OfNorm

__all__ = ["Oracle"]


@dataclass(frozen=True)
class Oracle(StructuredTask):
    """Integer vectors of one length and norm, known by the best one in a direction.

    Parameters
    ----------
    size
        The length of a label.
    maximize
        A function from a direction to the label of largest inner product with it.
    loss_factor
        The factor a, negative.
    squared_norm
        The squared norm of every label; the loss of y against itself is then 0.
    gamma, nu
        The constants of the first theorem in the Euclidean norm, where they are known.

    Examples
    --------
    >>> pick = lambda v: (np.arange(3) == np.argmax(v)).astype(int)
    >>> task = Oracle(3, pick, loss_factor=-1.0, squared_norm=1.0)
    >>> task.loss([0, 1, 0], [0, 0, 1]), task.best_prediction(np.array([1.0, 3.0, 2.0]))
    (1.0, array([0, 1, 0]))
    """

    size: int
    maximize: Callable[[np.ndarray], np.ndarray]
    loss_factor: float
    squared_norm: float
    gamma: float | None = None
    nu: float | None = None

    def __post_init__(self) -> None:
        """Refuse a loss that would reward mistakes."""
        if not (self.loss_factor < 0.0 and self.squared_norm > 0.0):
            raise InputError(
                "the loss factor must be negative and the squared norm positive, but they are "
                f"{self.loss_factor} and {self.squared_norm}"
            )

    @cached_property
    def labels(self) -> OfNorm:
        """Vectors of one norm."""
        return OfNorm(self.size, self.squared_norm)

    @property
    def guess(self) -> Guess:
        """Labels that do not overlap: how many there are is unknown, and so is a uniform guess."""
        return Guess(self.constant_offset, "no overlap at all")

    @cached_property
    def label_hull(self) -> Polytope:
        """The hull of what the oracle returns."""
        return Hull(self.size, self.maximize, equal_norms=True)

    @property
    def dim(self) -> int:
        """One score per entry."""
        return self.size

    @property
    def constant_offset(self) -> float:
        """The offset, by which the loss of equal labels is 0."""
        return -self.loss_factor * self.squared_norm

    def constants(self, norm: str) -> tuple[float, float] | None:
        """Return what was given, for the Euclidean norm."""
        if norm != "l2" or self.gamma is None or self.nu is None:
            return None
        return self.gamma, self.nu

    def encode(self, label: np.ndarray) -> np.ndarray:
        """Return the label itself."""
        return self.labels.check(label).astype(np.float64)

    def from_vertex(self, vertex: np.ndarray) -> np.ndarray:
        """Return the vertex itself."""
        return np.rint(vertex).astype(np.int64)
