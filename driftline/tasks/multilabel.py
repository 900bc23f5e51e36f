r"""Several tags at once, at the share of wrong ones.

Labels are 0/1 vectors, encoded as plus and minus ones:

.. math:: \rho(y) = 2y - 1, \qquad \ell^\rho(\hat y) = -\frac{\rho(\hat y)}{2d}, \qquad c = \frac12.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from driftline.errors import InputError
from driftline.kernels import DRAW, ENCODE, ENCODE_LOSS, kernel, where
from driftline.polytopes import Cube, Polytope
from driftline.tasks.base import Guess, TaskKernels
from driftline.tasks.many import Many, ManyByRows, mean_rows
from driftline.tasks.structured import StructuredTask
from driftline.tasks.vector_spaces import Sets
from driftline.tasks.vertices import ManyVertices

__all__ = ["Multilabel"]


@kernel(ENCODE)
def encode(label, params, target):
    """Write plus and minus ones."""
    for i in range(target.size):
        target[i] = 2.0 * label[i] - 1.0
    return 0.5


@kernel(ENCODE_LOSS)
def encode_loss(prediction, params, out):
    """Write the loss encoding of a set of tags."""
    for i in range(out.size):
        out[i] = (1.0 - 2.0 * prediction[i]) / (2.0 * out.size)


@kernel(DRAW)
def draw(mean, params, uniforms, scratch, prediction, encoded):
    """One uniform number against the chance of every tag."""
    d = mean.size
    for i in range(d):
        tag = where(uniforms[0] < 0.5 - d * mean[i], 1.0, 0.0)
        prediction[i] = tag
        encoded[i] = (1.0 - 2.0 * tag) / (2.0 * d)


class ManyTags(ManyByRows, ManyVertices):
    """Many sets of tags at once."""

    def top(self, scores: np.ndarray) -> np.ndarray:
        """Return the tags of positive score, a row each."""
        return (scores > 0.0).astype(np.int64)

    def average(self, predictions: list[np.ndarray], weights: np.ndarray) -> np.ndarray:
        """Return the tags that members with more than half of all weight predict, a row each."""
        return (mean_rows(predictions, weights) > 0.5).astype(np.int64)


@dataclass(frozen=True)
class Multilabel(StructuredTask):
    """A subset of ``tags`` tags under the Hamming loss, divided by their number.

    >>> task = Multilabel(4)
    >>> task.loss(np.array([0, 1, 1, 0]), np.array([0, 1, 0, 0]))
    0.25
    """

    tags: int

    kernels: ClassVar[TaskKernels] = TaskKernels(encode, encode_loss, draw)
    kind: ClassVar[str] = "tags"
    _many: ClassVar[type[Many]] = ManyTags
    constant_offset: ClassVar[float] = 0.5
    guess: ClassVar[Guess] = Guess(0.5)
    _grows: ClassVar[str] = "tags"

    def __post_init__(self) -> None:
        """Refuse fewer than one tag."""
        if int(self.tags) != self.tags or self.tags < 1:
            raise InputError(f"a multilabel task needs 1 tag or more, not {self.tags!r}")

    @cached_property
    def labels(self) -> Sets:
        """Any set of tags."""
        return Sets(self.tags)

    @property
    def label_hull(self) -> Polytope:
        """A cube."""
        return Cube(self.tags)

    @property
    def dim(self) -> int:
        """One score per tag."""
        return self.tags

    @property
    def loss_factor(self) -> float:
        """Half the share of one tag."""
        return -0.5 / self.tags

    def constants(self, norm: str) -> tuple[float, float] | None:
        """Gamma is 1 / (2 sqrt d) and nu is 2 in the Euclidean norm."""
        return (0.5 / math.sqrt(self.tags), 2.0) if norm == "l2" else (0.5 / self.tags, 2.0)

    def from_vertex(self, vertex: np.ndarray) -> np.ndarray:
        """Return zeros and ones."""
        return (vertex > 0.0).astype(np.int64)
