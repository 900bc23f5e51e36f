r"""Several tags at once, at one minus their F1 score.

.. math:: \ell(\hat y, y) = 1 - \frac{2 |\hat y \cap y|}{|\hat y| + |y|}

(two empty sets agree). It is not a function of the tags one by one, but it is linear in an
encoding that also knows how many there are (Ramaswamy et al., 2013): with s from 1 to d,

.. math:: \rho(y) = \big(1[y = \emptyset],\ y_i 1[|y| = s]\big), \qquad
   \ell^\rho(\hat y) = -\Big(1[\hat y = \emptyset],\ \frac{2 \hat y_i}{|\hat y| + s}\Big),
   \qquad c = 1.

With J the Jaccard distance, a metric, the loss is :math:`J / (2 - J)`, convex and increasing. So if
:math:`J \le J' + J''`, its value at J is at most :math:`\frac{4 - J}{4 - 2J} \le \frac32` times the
sum of those at :math:`J'` and :math:`J''`: this is ``triangle``.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from driftline.errors import InputError
from driftline.polytopes import Hull, Polytope
from driftline.tasks.base import Distribution, Task, whole_numbers
from driftline.typing import Label, Prediction

__all__ = ["FScore"]

#: From this many tags on, a warning says what they cost.
MANY = 100


@dataclass(frozen=True)
class FScore(Task):
    """A subset of ``labels`` tags under one minus F1; labels and predictions are 0/1 vectors.

    There are d^2 + 1 scores, and finding the best prediction takes a product of d x d matrices.

    >>> task = FScore(4)
    >>> task.loss([1, 1, 0, 0], [0, 1, 0, 0]).__round__(4), task.dim
    (0.3333, 17)
    """

    labels: int

    triangle: ClassVar[float] = 1.5

    def __post_init__(self) -> None:
        """Refuse fewer than one tag, and warn of the cost of many."""
        if int(self.labels) != self.labels or self.labels < 1:
            raise InputError(f"an F1 task needs 1 tag or more, not {self.labels!r}")
        if self.labels >= MANY:
            warnings.warn(
                f"FScore({self.labels}) has {self.dim} scores, each with a weight for every "
                f"feature, and every step of its solver costs about {self.labels**3:.1e} "
                "operations",
                stacklevel=3,
            )

    @property
    def guess_loss(self) -> float:
        """The worst expected loss of a uniform guess, which is that of no tags at all."""
        return 1.0 - 2.0**-self.labels

    @property
    def dim(self) -> int:
        """One score for the empty set, and one for every tag and size."""
        return self.labels**2 + 1

    @property
    def label_size(self) -> int:
        """The length of a label."""
        return self.labels

    @property
    def prediction_size(self) -> int:
        """The length of a prediction."""
        return self.labels

    @cached_property
    def label_hull(self) -> Polytope:
        """The hull of encodings, by its best vertex."""
        return Hull(self.dim, self._best_encoding)

    @cached_property
    def _shares(self) -> np.ndarray:
        """2 / (size of label + size of prediction)."""
        sizes = np.arange(1.0, self.labels + 1.0)
        return 2.0 / (sizes[:, np.newaxis] + sizes)

    def check_label(self, label: Label) -> np.ndarray:
        """Return a 0/1 vector."""
        tags = whole_numbers(label, "tags")
        if tags.shape != (self.labels,) or not np.isin(tags, (0, 1)).all():
            raise InputError(f"a label must be {self.labels} zeros and ones, but is {label}")
        return tags

    def prediction(self, row: np.ndarray) -> np.ndarray:
        """Return a vector, even if it has length 1."""
        return row.copy()

    def predictions(self, rows: np.ndarray) -> np.ndarray:
        """Return a row for every prediction."""
        return rows

    def encode(self, label: Label) -> np.ndarray:
        """Return the tags in the column of their number."""
        tags = self.check_label(label)
        out = np.zeros(self.dim)
        if not tags.any():
            out[0] = 1.0
        else:
            self._columns(out)[:, tags.sum() - 1] = tags
        return out

    def encode_loss(self, prediction: Prediction) -> np.ndarray:
        """Return minus what each tag earns, for every size of the label."""
        tags = self.check_label(prediction)
        out = np.zeros(self.dim)
        if not tags.any():
            out[0] = -1.0
        else:
            self._columns(out)[:] = -np.outer(tags, self._shares[tags.sum() - 1])
        return out

    def offset(self, label: Label) -> float:
        """Return 1."""
        return 1.0

    def loss(self, prediction: Prediction, label: Label) -> float:
        """Return one minus the F1 score."""
        left, right = self.check_label(prediction), self.check_label(label)
        total = int(left.sum() + right.sum())
        return 1.0 - 2.0 * int(left @ right) / total if total else 0.0

    def best_prediction(self, mu: np.ndarray) -> np.ndarray:
        """For every size, the tags that earn most; then the best size."""
        mu = np.asarray(mu)
        return _best_set(self._columns(mu) @ self._shares, mu[0])

    def _best_encoding(self, direction: np.ndarray) -> np.ndarray:
        return self.encode(_best_set(self._columns(direction), direction[0]))

    def _columns(self, point: np.ndarray) -> np.ndarray:
        """Return the part of a point that belongs to tags (rows) and sizes (columns)."""
        return point[1:].reshape(self.labels, self.labels)

    def decompose(self, mean: np.ndarray) -> Distribution:
        """Return predictions with this mean loss encoding."""
        vertices, weights = Hull(self.dim, self.loss_hull.maximize).decompose(np.asarray(mean))
        return Distribution(np.array([self.from_loss_encoding(v) for v in vertices]), weights)

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
