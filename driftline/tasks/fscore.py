r"""Several tags at once, at one minus their F score.

.. math:: \ell(\hat y, y) = 1 - \frac{(1 + \beta^2) |\hat y \cap y|}{|\hat y| + \beta^2 |y|}

(two empty sets agree). With :math:`\beta = 1` this is the F1 score; larger ones punish missing tags
more than wrong ones. It is not a function of the tags one by one, but it is linear in an
encoding that also knows how many there are (Ramaswamy et al., 2013): with s from 1 to d,

.. math:: \rho(y) = \big(1[y = \emptyset],\ y_i 1[|y| = s]\big), \qquad
   \ell^\rho(\hat y) = -\Big(1[\hat y = \emptyset],\ \frac{(1 + \beta^2) \hat y_i}{|\hat y| + \beta^2 s}\Big),
   \qquad c = 1.
"""  # noqa: E501

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from driftline.errors import InputError
from driftline.kernels import DRAW, ENCODE, ENCODE_LOSS, helper, kernel
from driftline.polytopes import Hull, Hypersimplex, Polytope
from driftline.tasks.base import Distribution, Guess, Task, TaskKernels, draw_atom
from driftline.tasks.numbers import real_numbers, whole_numbers
from driftline.tasks.vector_spaces import Sets
from driftline.typing import Label, Prediction

__all__ = ["FScore"]

#: From this many tags on, a warning says what they cost.
MANY = 100


@helper
def size_of(tags):
    """Return how many tags are set."""
    total = 0
    for i in range(tags.size):
        total += tags[i]
    return total


@kernel(ENCODE)
def encode(label, params, target):
    """Write the tags in the column of their number."""
    d, size = label.size, size_of(label)
    for j in range(target.size):
        target[j] = 0.0
    target[0] = 1.0 if size == 0 else 0.0
    for i in range(d):
        if label[i] != 0:
            target[i * d + size] = 1.0
    return 1.0


@helper
def write_loss(prediction, square, out):
    """Write minus what each tag earns, for every size of the label."""
    d, size = prediction.size, size_of(prediction)
    out[0] = -1.0 if size == 0 else 0.0
    for i in range(d):
        for s in range(d):
            earned = (1.0 + square) / (size + square * (s + 1.0))
            out[1 + i * d + s] = -earned if prediction[i] != 0 else 0.0


@kernel(ENCODE_LOSS)
def encode_loss(prediction, params, out):
    """Write the loss encoding of a set of tags."""
    write_loss(prediction, params[0], out)


@kernel(DRAW)
def draw(mean, params, uniforms, scratch, prediction, encoded):
    """Draw a size, then tags by systematic sampling, from chances in the scratch space.

    They are those of 0 to d tags, then of every tag in sets of 1 to d - 1: the mean loss encoding
    determines them, but a system whose solution loses all digits.
    """
    d, below, size, start = prediction.size, 0.0, -1, 0.0
    for s in range(d + 1):
        if scratch[s] > 0.0 and (size < 0 or uniforms[0] >= below):
            size = s  # kept if rounding leaves the sum short of 1
            start = (uniforms[0] - below) / scratch[s]
            below += scratch[s]
    end, count = 0.0, 0
    for i in range(d):
        chance = 1.0
        if 0 < size < d:
            chance = scratch[d + 1 + i * (d - 1) + size - 1] / scratch[size]
        end += chance
        prediction[i] = 1 if count < size and (start + count < end or d - i <= size - count) else 0
        count += prediction[i]
    write_loss(prediction, params[0], encoded)


@dataclass(frozen=True)
class FScore(Task):
    """A subset of ``tags`` tags under one minus F1; labels and predictions are 0/1 vectors.

    With another ``beta`` it is the F-beta score. There are d^2 + 1 scores, and finding the best
    prediction takes a product of d x d matrices.

    >>> task = FScore(4)
    >>> task.loss([1, 1, 0, 0], [0, 1, 0, 0]).__round__(4), task.dim
    (0.3333, 17)
    >>> FScore(4, beta=2.0).loss([1, 1, 0, 0], [0, 1, 0, 0]).__round__(4)
    0.1667
    """

    tags: int
    beta: float = 1.0

    kernels: ClassVar[TaskKernels] = TaskKernels(encode, encode_loss, draw)
    kind: ClassVar[str] = "f-score"

    def __post_init__(self) -> None:
        """Refuse fewer than one tag, and warn of the cost of many."""
        count = whole_numbers(self.tags, "the number of tags")
        if count.ndim or count < 1:
            raise InputError(f"an F1 task needs 1 tag or more, not {self.tags!r:.80}")
        beta = real_numbers(self.beta, "beta")
        if beta.ndim or not 0.01 <= beta <= 100.0:
            raise InputError(f"beta must lie between 0.01 and 100, but is {self.beta!r:.80}")
        object.__setattr__(self, "tags", int(count))
        object.__setattr__(self, "beta", float(beta))
        if self.tags >= MANY:
            warnings.warn(
                f"FScore({self.tags}) has {self.dim} scores, each with a weight for every "
                f"feature, and every step of its solver costs about {self.tags**4:.1e} "
                "operations",
                stacklevel=3,
            )

    def params(self, size: int) -> tuple[float, ...]:
        """Return the square of beta."""
        return (self.beta**2,)

    def _scratch(self, size: int) -> int:
        """Return room for the chances of sizes and tags."""
        return self.tags**2 + 1

    @cached_property
    def labels(self) -> Sets:
        """Any set of tags."""
        return Sets(self.tags)

    @property
    def guess(self) -> Guess:
        """The worst expected loss of a uniform guess, which is that of no tags at all."""
        return Guess(1.0 - 2.0**-self.tags)

    @property
    def dim(self) -> int:
        """One score for the empty set, and one for every tag and size."""
        return self.tags**2 + 1

    @cached_property
    def label_hull(self) -> Polytope:
        """The hull of encodings, by its best vertex."""
        return Hull(self.dim, self._best_encoding)

    @cached_property
    def shares(self) -> np.ndarray:
        """What a tag that is right earns, by the size of the label (row) and of the prediction."""
        sizes, square = np.arange(1.0, self.tags + 1.0), self.beta**2
        return (1.0 + square) / (square * sizes[:, np.newaxis] + sizes)

    def loss(self, prediction: Prediction, label: Label) -> float:
        """Return one minus the F score."""
        left, right = map(self.labels.check, (prediction, label))
        square, both = self.beta**2, int(left @ right)
        total = int(left.sum()) + square * int(right.sum())
        return max(0.0, 1.0 - (1.0 + square) * both / total) if total else 0.0

    def best_prediction(self, mu: np.ndarray) -> np.ndarray:
        """For every size, the tags that earn most; then the best size."""
        mu = np.asarray(mu)
        return _best_set(self._columns(mu) @ self.shares, mu[0])

    def _best_encoding(self, direction: np.ndarray) -> np.ndarray:
        return self.encode(_best_set(self._columns(direction), direction[0]))

    def _columns(self, point: np.ndarray) -> np.ndarray:
        """Return the part of a point that belongs to tags (rows) and sizes (columns)."""
        return point[1:].reshape(self.tags, self.tags)

    def decompose(self, mean: np.ndarray) -> Distribution:
        """Return predictions with this mean loss encoding."""
        vertices, weights = Hull(self.dim, self.geometry.loss_hull.maximize).decompose(
            np.asarray(mean)
        )
        return Distribution(np.array([self.from_loss_encoding(v) for v in vertices]), weights)

    def draw(self, mean: np.ndarray, uniforms: np.ndarray) -> Prediction:
        """Draw a prediction whose expected loss encoding is ``mean``."""
        return draw_atom(self.decompose(mean), uniforms[0])

    def mixture(self, chances: np.ndarray) -> Distribution:
        """Return predictions with these chances of sizes and tags, as kernels have them."""
        d = self.tags
        sizes, tags = chances[: d + 1], chances[d + 1 :].reshape(d, d - 1)
        atoms, weights = [], []
        for size in np.flatnonzero(sizes).tolist():
            if 0 < size < d:
                point = tags[:, size - 1] / sizes[size]
                vertices, shares = Hypersimplex(d, size).decompose(point)
            else:
                vertices, shares = np.full((1, d), size > 0), np.ones(1)
            atoms.append(np.rint(vertices).astype(np.int64))
            weights.append(sizes[size] * shares)
        return Distribution(np.concatenate(atoms), np.concatenate(weights))

    def from_loss_encoding(self, vertex: np.ndarray) -> np.ndarray:
        """Return the prediction of a loss encoding."""
        return (self._columns(vertex)[:, 0] < 0.0).astype(np.int64)


def _best_set(values: np.ndarray, empty: float) -> np.ndarray:
    """Return the set of largest value: of s members, each has its value in column s - 1."""
    d = len(values)
    order = np.argsort(-values, axis=0, kind="stable")
    ranked = np.take_along_axis(values, order, axis=0)
    totals = np.cumsum(ranked, axis=0)[np.arange(d), np.arange(d)]
    chosen = np.zeros(d, dtype=np.int64)
    size = int(np.argmax(totals))
    if totals[size] > empty:
        chosen[order[: size + 1, size]] = 1
    return chosen
