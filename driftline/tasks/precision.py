r"""The k most relevant items, at one minus the precision.

.. math:: \ell(S, y) = 1 - \frac{|S \cap y|}{\min(k, |y|)}

Dividing by :math:`\min(k, |y|)` and not by k lets every label have a prediction without loss.
It is the discounted gain of 0/1 grades with discounts :math:`1, \dots, 1, 0, \dots, 0`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from driftline.errors import InputError
from driftline.kernels import DRAW, ENCODE_LOSS, kernel
from driftline.polytopes import Hypersimplex, Permutahedron, Polytope
from driftline.tasks.base import Distribution, TaskKernels
from driftline.tasks.geometry import Geometry
from driftline.tasks.relevance import RelevanceGeometry, RelevanceTask, encode
from driftline.tasks.vector_spaces import Chosen
from driftline.typing import Label, Prediction

__all__ = ["PrecisionAtK"]


@kernel(ENCODE_LOSS)
def encode_loss(prediction, params, out):
    """Write -1 for every chosen item."""
    for i in range(out.size):
        out[i] = 0.0
    for i in range(prediction.size):
        if prediction[i] >= 0:
            out[prediction[i]] = -1.0


@kernel(DRAW)
def draw(mean, params, uniforms, scratch, prediction, encoded):
    """Madow's systematic sampling: one uniform start, then steps of length 1."""
    d = mean.size
    chosen = 0
    most = min(prediction.size, d)
    total = 0.0
    for i in range(d):
        encoded[i] = 0.0
        total -= mean[i]
        left = d - i
        if chosen < most and (total > uniforms[0] + chosen or left == most - chosen):
            prediction[chosen] = i
            encoded[i] = -1.0
            chosen += 1


class PrecisionGeometry(RelevanceGeometry):
    """A score for every item."""

    def encode_loss(self, prediction: Prediction, size: int) -> np.ndarray:
        """Return the loss encoding of a prediction among ``size`` items."""
        return self.task.encode_loss(prediction, size)


@dataclass(frozen=True)
class PrecisionAtK(RelevanceTask):
    """Choose ``k`` items; labels are 0/1 relevance, predictions the chosen items' indices.

    A query of fewer than k items has all of them chosen. Predictions in a trace are padded by -1.
    With ``items=None`` every query has its own items, with a row of features each; with a
    number, the items are the same in all rounds and the input is one vector.

    >>> task = PrecisionAtK(2)
    >>> task.loss([0, 3], [1, 1, 1, 0]), task.loss([0, 3], [1, 0, 0, 0])
    (0.5, 0.0)
    """

    k: int
    items: int | None = None

    kernels: ClassVar[TaskKernels] = TaskKernels(encode, encode_loss, draw)
    _geometry: ClassVar[type[Geometry]] = PrecisionGeometry
    what: ClassVar[str] = "relevances"

    def __post_init__(self) -> None:
        """Refuse k below 1, or above the number of items."""
        if int(self.k) != self.k or self.k < 1:
            raise InputError(f"k must be a whole number of at least 1, not {self.k!r}")
        if self.items is not None and self.k > self.items:
            raise InputError(f"{self.k} of {self.items} items cannot be chosen")

    @property
    def fewest(self) -> int:
        """The fewest items with a choice: k + 1."""
        return self.k + 1

    @property
    def shown(self) -> int:
        """The number of chosen items."""
        return self.k

    @cached_property
    def predictions(self) -> Chosen:
        """The chosen items."""
        return Chosen(self.k)

    def discounts(self, size: int) -> np.ndarray:
        """Return 1 for the first k ranks, 0 for the others."""
        return (np.arange(size) < self.k).astype(np.float64)

    def earnings_hull(self, size: int) -> Polytope:
        """Return the hull of all sets of k; a single point if there are no more items."""
        if size <= self.k:
            return Permutahedron((1.0,) * size)
        return Hypersimplex(size, self.k)

    def encode_loss(self, prediction: Prediction, size: int | None = None) -> np.ndarray:
        """Return -1 for every chosen item, of ``size`` items or the task's number."""
        size = self.items if size is None else size
        if size is None:
            raise InputError("encode_loss needs the number of items, size=...")
        out = np.zeros(size)
        out[self.predictions.check_among(prediction, size)] = -1.0
        return out

    def loss(self, prediction: Prediction, label: Label) -> float:
        """Return the share of relevant items that were not chosen, of those that could be."""
        target, offset = self._encode(label)
        return max(0.0, float(target @ self.encode_loss(prediction, target.size)) + offset)

    def best_prediction(self, mu: np.ndarray) -> np.ndarray:
        """Choose the largest entries, the lowest index of equal ones."""
        return np.sort(np.argsort(-np.asarray(mu), kind="stable")[: self.k])

    def average(self, predictions: Sequence[Prediction], weights: np.ndarray) -> np.ndarray:
        """Return the items that members with most weight chose."""
        size = int(max(np.max(chosen) for chosen in predictions)) + 1
        behind = np.zeros(max(size, len(predictions[0])))
        for weight, chosen in zip(weights, predictions, strict=True):
            behind[chosen] += weight
        return self.best_prediction(behind)

    def decompose(self, mean: np.ndarray) -> Distribution:
        """Return few sets with this mean loss encoding."""
        vertices, weights = self.earnings_hull(np.size(mean)).decompose(-np.asarray(mean))
        return Distribution(np.array([np.flatnonzero(v > 0.5) for v in vertices]), weights)
