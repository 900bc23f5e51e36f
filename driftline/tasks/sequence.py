r"""Tag sequences of any length, at the share of wrong tags.

A sequence of n tags is encoded by its n unit vectors and n - 1 pairs of neighbours (see
:class:`~driftline.polytopes.Chain`); the loss depends on the unit vectors alone:

.. math:: \ell^\rho(\hat y) = \big( (1 - \rho_{\mathrm{nodes}}(\hat y)) / n,\; 0 \big),
   \qquad c = 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import ClassVar

import numpy as np

from driftline.errors import InputError
from driftline.inputs import VectorPerPosition
from driftline.kernels import DRAW, ENCODE, ENCODE_LOSS, helper, kernel
from driftline.polytopes import Affine, Chain, Hull, Polytope, Positions
from driftline.polytopes.chain_kernels import folded_length, length_of
from driftline.tasks.base import Distribution, Guess, Task, TaskKernels
from driftline.tasks.geometry import Geometry
from driftline.tasks.many import Many
from driftline.tasks.vector_spaces import TagSequences
from driftline.typing import CheckedLabels, Label, Prediction

__all__ = ["Sequence"]


@kernel(ENCODE)
def encode(label, params, target):
    """Write unit vectors, and how often each transition occurs."""
    tags, n = int(params[0]), label.size
    for i in range(target.size):
        target[i] = 0.0
    for t in range(n):
        target[t * tags + label[t]] = 1.0
    if params[1] > 0.0:
        for t in range(n - 1):
            target[(n + label[t]) * tags + label[t + 1]] += 1.0
    return 0.0


@helper
def write_loss(tag, start, tags, share, out):
    """Write the loss encoding of one position."""
    for k in range(tags):
        out[start + k] = share
    out[start + tag] = 0.0


@kernel(ENCODE_LOSS)
def encode_loss(prediction, params, out):
    """Write the share of a position for every other tag; transitions cost nothing."""
    tags = int(params[0])
    n = length_of(out.size, tags, params[1] > 0.0)
    for t in range(n):
        write_loss(prediction[t], t * tags, tags, 1.0 / n, out)
    for i in range(n * tags, out.size):
        out[i] = 0.0


@helper
def draw_tag(mean, t, n, tags, uniform, prediction, encoded):
    """Draw the tag of one of n positions, and write its loss encoding."""
    tag, total = 0, 0.0
    for k in range(tags - 1):
        total += 1.0 - n * mean[t * tags + k]
        if total <= uniform:
            tag += 1
    prediction[t] = tag
    write_loss(tag, t * tags, tags, 1.0 / n, encoded)


@kernel(DRAW)
def draw(mean, params, uniforms, scratch, prediction, encoded):
    """Draw the tags of all positions by one uniform number."""
    tags = int(params[0])
    n = length_of(mean.size, tags, params[1] > 0.0)
    for t in range(n):
        draw_tag(mean, t, n, tags, uniforms[0], prediction, encoded)
    for i in range(n * tags, mean.size):
        encoded[i] = 0.0


class ChainGeometry(Geometry):
    """The positions of a sequence, and its transitions."""

    predicts_top: ClassVar[bool] = True

    def size_of(self, label: Label) -> int:
        """Return the number of scores of as many positions as the label has."""
        return self.task.hull(len(label)).dim

    @property
    def part_size(self) -> int:
        """An entry for each tag."""
        return self.task.tags

    @property
    def pair_tags(self) -> int:
        """All tags, where there are transitions."""
        return self.task.tags if self.task.transitions else 0

    def score_size(self, theta: np.ndarray) -> int:
        """Return the number of scores, if it is that of a sequence."""
        return self.hull_of(theta).dim

    @property
    def scores_in_words(self) -> str:
        """How many scores a round has."""
        return "as many scores as positions and transitions need"

    def hull_of(self, theta: np.ndarray) -> Chain | Positions:
        """Return the polytope that scores of this size belong to."""
        edges = self.task.tags**2 if self.task.transitions else 0
        length, rest = divmod(np.size(theta) + edges, self.task.tags + edges)
        if rest or length < 1:
            raise InputError(f"{np.size(theta)} scores fit no sequence of {self.task.tags} tags")
        return self.task.hull(int(length))

    def hull_at(self, size: int) -> Chain | Positions:
        """Return the polytope of sequences whose folded scores are ``size`` numbers."""
        return self.task.hull(folded_length(size, self.task.tags, self.task.transitions))

    def loss_hull_of(self, theta: np.ndarray) -> Polytope:
        """Return a simplex for every position; transitions cost nothing."""
        hull = self.hull_of(theta)
        if isinstance(hull, Positions):
            return Affine(hull, -1.0 / hull.length, 1.0 / hull.length)
        most = Positions(hull.length, self.task.tags).most_vertices
        return Hull(
            hull.dim, lambda v: self.task.encode_loss(self.task.best_prediction(-v)), most=most
        )

    def folded(self, scores: np.ndarray) -> np.ndarray:
        """Return the scores of positions, and those of the first transition."""
        hull = self.hull_of(scores)
        if not self.task.transitions:
            return np.asarray(scores)
        nodes, edges = hull.split(np.asarray(scores))
        pairs = edges[0] if hull.length > 1 else np.zeros((self.task.tags, self.task.tags))
        return np.concatenate([nodes.ravel(), pairs.ravel()])

    def unfolded(self, scores: np.ndarray) -> np.ndarray:
        """Return the scores of positions, and those of all transitions."""
        if not self.task.transitions:
            return scores
        nodes, pairs = np.split(scores, [scores.size - self.task.tags**2])
        return np.concatenate([nodes, np.tile(pairs, nodes.size // self.task.tags - 1)])

    def loss_of_mean(self, mean: np.ndarray) -> np.ndarray:
        """Return the share of a position for every other tag."""
        out = np.zeros_like(mean)
        hull = self.hull_of(mean)
        hull.split(out)[0][:] = (1.0 - hull.split(mean)[0]) / hull.length
        return out


class ManySequences(Many):
    """Many sequences at once, padded by -1."""

    def losses(self, rows: np.ndarray, labels: CheckedLabels) -> np.ndarray:
        """Return the shares of wrong tags of many predictions; refuse rows that are none."""
        sizes = np.array([len(label) for label in labels], dtype=np.int64)
        held = rows >= 0
        known = len(sizes) > 0 and rows.dtype.kind in "iu" and len(rows) == len(sizes)
        if not known or not np.array_equal(held.sum(axis=1), sizes) or rows.max() >= self.task.tags:
            return super().losses(rows, labels)
        wrong = rows[held] != np.concatenate(labels)
        return np.add.reduceat(wrong, np.cumsum(sizes) - sizes, dtype=np.float64) / sizes

    def average(self, predictions: list[np.ndarray], weights: np.ndarray) -> np.ndarray:
        """Return the tags of most weight at every position, a row for each round."""
        out = np.full_like(predictions[0], -1)
        held = predictions[0] >= 0
        rounds, counts = np.nonzero(held)[0], np.zeros((int(held.sum()), self.task.tags))
        places = np.arange(len(counts))
        for j, member in enumerate(predictions):
            counts[places, member[held]] += weights[rounds, j]
        out[held] = counts.argmax(axis=1)
        return out


@dataclass(frozen=True)
class Sequence(Task):
    """A tag from ``0 .. tags-1`` for every position, under the Hamming loss per position.

    With ``transitions=False`` pairs of neighbouring tags have no scores, and every position is
    predicted by itself. Predictions in a trace are padded by -1 to the longest sequence.

    >>> task = Sequence(3)
    >>> task.loss([0, 2, 1, 1], [0, 2, 2, 1])
    0.25
    """

    tags: int
    transitions: bool = True

    kernels: ClassVar[TaskKernels] = TaskKernels(encode, encode_loss, draw)
    kind: ClassVar[str] = "chain"
    _geometry: ClassVar[type[Geometry]] = ChainGeometry
    _many: ClassVar[type[Many]] = ManySequences

    def __post_init__(self) -> None:
        """Refuse fewer than two tags."""
        if int(self.tags) != self.tags or self.tags < 2:
            raise InputError(f"a sequence task needs 2 tags or more, not {self.tags!r}")

    @property
    def layout(self) -> VectorPerPosition:
        """One vector for each position; lengths differ from round to round."""
        return VectorPerPosition(self.tags, self.transitions)

    #: The loss of one position, the most that a position counts, over its distance.
    loss_factor: ClassVar[float] = -1.0
    _loss_shift: ClassVar[float] = 1.0

    def constants(self, norm: str) -> tuple[float, float] | None:
        """In l2, gamma is sqrt((K-1) / K) and nu sqrt 2, both attained at length 1.

        At length n the positions alone give gamma sqrt((K-1) / (K n)).
        """
        return (math.sqrt(1.0 - 1.0 / self.tags), math.sqrt(2.0)) if norm == "l2" else None

    @cached_property
    def labels(self) -> TagSequences:
        """Tags of any number of positions."""
        return TagSequences(self.tags)

    @property
    def guess(self) -> Guess:
        """A uniform guess."""
        return Guess(1.0 - 1.0 / self.tags)

    def hull(self, length: int) -> Chain | Positions:
        """Return the polytope of sequences of this length."""
        return _hull(length, self.tags, self.transitions)

    @property
    def label_hull(self) -> Chain | Positions:
        """The polytope of a single position, for which constants are stated."""
        return self.hull(1)

    def params(self, size: int) -> tuple[float, ...]:
        """Return the number of tags, and whether there are transitions."""
        return (float(self.tags), float(self.transitions))

    def encode(self, label: Label) -> np.ndarray:
        """Return unit vectors and pairs."""
        tags = self.labels.check(label)
        return self.hull(len(tags)).vertex(tags)

    def offset(self, label: Label) -> float:
        """Return 0."""
        return 0.0

    def encode_loss(self, prediction: Prediction) -> np.ndarray:
        """Return the share of a position for every other tag."""
        return self.geometry.loss_of_mean(self.encode(prediction))

    def loss(self, prediction: Prediction, label: Label) -> float:
        """Return the share of wrong tags."""
        left, right = map(self.labels.check, (prediction, label))
        if left.shape != right.shape:
            raise InputError(f"a prediction of {left.size} tags for a label of {right.size}")
        return float(np.mean(left != right))

    def best_prediction(self, mu: np.ndarray) -> np.ndarray:
        """Return the most probable tag of every position."""
        return self.geometry.hull_of(mu).sequence(np.asarray(mu))

    def top_prediction(self, theta: np.ndarray) -> np.ndarray:
        """Return the best sequence, by Viterbi's algorithm."""
        hull = self.geometry.hull_of(theta)
        return hull.sequence(hull.maximize(theta))

    def decompose(self, mean: np.ndarray) -> Distribution:
        """Return sequences whose mean loss encoding this is: the positions one by one."""
        positions, chances = self._chances(mean)
        vertices, weights = positions.decompose(chances)
        return Distribution(np.array([positions.sequence(v) for v in vertices]), weights)

    def draw(self, mean: np.ndarray, uniforms: np.ndarray) -> np.ndarray:
        """Draw a sequence: one uniform number against the chances of all positions."""
        return super().draw(self.geometry.folded(np.asarray(mean)), uniforms)

    def _chances(self, mean: np.ndarray) -> tuple[Positions, np.ndarray]:
        """Return the probability of every tag at every position."""
        hull = self.geometry.hull_of(mean)
        chances = 1.0 - hull.length * hull.split(np.asarray(mean))[0]
        return Positions(hull.length, self.tags), chances.ravel()


@lru_cache(maxsize=256)
def _hull(length: int, tags: int, transitions: bool) -> Chain | Positions:
    return Chain(length, tags) if transitions else Positions(length, tags)
