r"""Rankings of items, at Spearman's distance.

With centred weights :math:`w_r = (d-1)/2 - r` and :math:`M = d (d^2 - 1) / 6`, an item of rank
r is encoded by :math:`w_r`:

.. math:: \ell^\rho(\hat y) = -\rho(\hat y) / M, \qquad c = \frac12.

The loss is half the squared distance of the two rankings over its largest value.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from driftline.errors import InputError
from driftline.inputs import Layout, OneVector, VectorPerItem
from driftline.kernels import DRAW, ENCODE, ENCODE_LOSS, kernel
from driftline.polytopes import Permutahedron, Polytope
from driftline.polytopes.permutahedron import random_ranks, swapping_room
from driftline.tasks.base import Guess, TaskKernels
from driftline.tasks.structured import StructuredTask
from driftline.tasks.vector_spaces import Orders

__all__ = ["LabelRanking"]


@kernel(ENCODE)
def encode(label, params, target):
    """Write the weights of the ranks."""
    for i in range(target.size):
        target[i] = params[label[i]]
    return 0.5


@kernel(ENCODE_LOSS)
def encode_loss(prediction, params, out):
    """Write the loss encoding of ranks."""
    for i in range(out.size):
        out[i] = params[out.size] * params[prediction[i]]


@kernel(DRAW)
def draw(mean, params, uniforms, scratch, prediction, encoded):
    """Swap ranks where averaging would mix them."""
    d = mean.size
    random_ranks(mean, params[d], params[:d], uniforms[0], scratch, prediction)
    for i in range(d):
        encoded[i] = params[d] * params[prediction[i]]


@dataclass(frozen=True)
class LabelRanking(StructuredTask):
    """``rank[i]`` of each of ``items`` items, 0 is best.

    Every item has a weight vector of its own, and the input of a round is one vector. With
    ``shared=True`` all items share one weight vector, and the input has a row for each item.

    >>> task = LabelRanking(3)
    >>> task.encode([2, 0, 1])
    array([-1.,  1.,  0.])
    >>> task.loss([0, 1, 2], [2, 1, 0])
    1.0
    """

    items: int
    shared: bool = False

    kernels: ClassVar[TaskKernels] = TaskKernels(encode, encode_loss, draw)
    constant_offset: ClassVar[float] = 0.5
    guess: ClassVar[Guess] = Guess(0.5)

    def __post_init__(self) -> None:
        """Refuse fewer than two items."""
        if int(self.items) != self.items or self.items < 2:
            raise InputError(f"a ranking needs 2 items or more, not {self.items!r}")

    @property
    def layout(self) -> Layout:
        """One vector a round, or one for each item if items share their weights."""
        return VectorPerItem() if self.shared else OneVector(self.items)

    @cached_property
    def labels(self) -> Orders:
        """The ranks of all items."""
        return Orders(self.items)

    @cached_property
    def label_hull(self) -> Polytope:
        """The permutahedron of the weights."""
        return Permutahedron(tuple(self._weights))

    @property
    def _weights(self) -> np.ndarray:
        return (self.items - 1) / 2.0 - np.arange(self.items)

    @property
    def loss_factor(self) -> float:
        """One over the largest value."""
        return -6.0 / (self.items * (self.items**2 - 1))

    def params(self, size: int) -> tuple[float, ...]:
        """Return the weights of ranks, and the factor of loss encodings."""
        return (*self._weights.tolist(), self.loss_factor)

    def _scratch(self, size: int) -> int:
        """Return room for drawing an order."""
        return swapping_room(self.items)

    def constants(self, norm: str) -> tuple[float, float] | None:
        """Gamma is sqrt(3 / (d (d^2 - 1))) and nu is sqrt 2 in the Euclidean norm."""
        if norm != "l2":
            return None
        return math.sqrt(3.0 / (self.items * (self.items**2 - 1))), math.sqrt(2.0)

    def from_vertex(self, vertex: np.ndarray) -> np.ndarray:
        """Return the ranks of the weights."""
        return np.rint((self.items - 1) / 2.0 - vertex).astype(np.int64)
