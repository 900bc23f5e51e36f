r"""Ranking by relevance: grades of documents come in, an order or a choice goes out.

Labels and predictions are different sets. A label is a gain :math:`g_i` for every document,
a prediction earns the discounts :math:`w_{r(i)}` of the ranks it gives to them, and the loss
is the share of the best possible earnings :math:`N(g)` that it misses:

.. math:: \rho(y) = \frac{g}{N(g)}, \qquad \ell^\rho(\hat y) = -w_{r(\cdot)}, \qquad c = 1.

High scores mean relevance. A query without any gain has no loss, whatever is predicted, and makes
no step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from driftline.errors import InputError
from driftline.inputs import Layout, OneVector, VectorPerItem
from driftline.kernels import (
    AVERAGE,
    ENCODE,
    LISTED_LOSSES,
    helper,
    kernel,
    sort_decreasing,
)
from driftline.parts import fact
from driftline.polytopes import Affine, Polytope, PositiveRelevance, Relevance
from driftline.tasks.base import Guess, Task
from driftline.tasks.geometry import Geometry
from driftline.tasks.vector_spaces import Grades
from driftline.typing import Label, Labels, Prediction

__all__ = ["RelevanceTask", "encode"]

#: How task parameters begin: 1 for exponential gains; the discounts follow.
EXPONENTIAL, DISCOUNTS = range(2)


@helper
def write_gains(label, params, target):
    """Write gains over the earnings of their best order; zeros if these are 0."""
    d = label.size
    exponential = params[EXPONENTIAL] > 0.0
    norm = 0.0
    ranked = 0
    grade = label[0]
    for i in range(d):
        grade = max(grade, label[i])
    while ranked < d:  # grade after grade, the highest first
        gain = 2.0**grade - 1.0 if exponential else float(grade)
        below = -1
        for i in range(d):
            if label[i] == grade:
                target[i] = gain
                norm += gain * params[DISCOUNTS + ranked]
                ranked += 1
            elif label[i] < grade:
                below = max(below, label[i])
        grade = below
    if norm == 0.0:
        return 0.0
    for i in range(d):
        target[i] /= norm
    return 1.0


@kernel(ENCODE)
def encode(label, params, target):
    """Write gains over the earnings of their best order."""
    return write_gains(label, params, target)


@kernel(LISTED_LOSSES)
def rank_losses(predictions, labels, starts, params, room, out):
    """Write the loss of ranks in every round."""
    for t in range(out.size):
        first, stop = starts[t], starts[t + 1]
        target = room[: stop - first]
        total = write_gains(labels[first:stop], params, target)
        for i in range(stop - first):
            total -= target[i] * params[DISCOUNTS + predictions[t, i]]
        out[t] = max(0.0, total)


@kernel(AVERAGE)
def average_ranks(predictions, weights, code, params, room, out):
    """Write the order of the mean discounts that items earn by their ranks; -1 is padding."""
    members, rounds, width = predictions.shape
    mean, order, rest = room[:width], room[width : 2 * width], room[2 * width :]
    for t in range(rounds):
        size = 0
        while size < width and predictions[0, t, size] >= 0:
            mean[size] = 0.0
            for j in range(members):
                mean[size] += weights[t, j] * params[DISCOUNTS + predictions[j, t, size]]
            size += 1
        sort_decreasing(mean[:size], order[:size], rest)
        for i in range(width):
            out[t, i] = -1
        for i in range(size):
            out[t, int(order[i])] = i


class RelevanceGeometry(Geometry):
    """A score for every document."""

    predicts_top: ClassVar[bool] = True

    def size_of(self, label: Label) -> int:
        """One score per document."""
        return len(label)

    def score_size(self, theta: np.ndarray) -> int:
        """Return the number of scores, or that of the documents if it is fixed."""
        return max(1, theta.size) if self.task.items is None else self.task.items

    def hull_at(self, size: int) -> Polytope:
        """Return the hull of encodings of this number of documents."""
        task = self.task
        weights = tuple(task.discounts(size))
        low, high = task._gain(task.lowest), task._gain(task.highest)
        return PositiveRelevance(weights, low, high) if low > 0.0 else Relevance(weights)

    def loss_hull_of(self, theta: np.ndarray) -> Polytope:
        """Return the hull of loss encodings of as many documents as there are scores."""
        return Affine(self.task.earnings_hull(np.size(theta)), -1.0)

    def idle(self, label: Label) -> bool:
        """Return whether no document has any gain, so that there is nothing to predict."""
        return not self.task.encode(label).any()


@dataclass(frozen=True)
class RelevanceGuess(Guess):
    """An order drawn uniformly."""

    loss: float = 1.0
    task: Any = None

    def mean(self, labels: Labels = None, sample_weight: np.ndarray | None = None) -> float | None:
        """Return the mean loss of guessing, which depends on the grades."""
        if labels is None:
            return None
        guesses = [self.of(label) for label in labels]
        if sample_weight is None or not sample_weight.any():
            return float(np.mean(guesses))
        return float(np.average(guesses, weights=sample_weight))

    def of(self, label: Label) -> float:
        """Return the expected loss of an order drawn uniformly."""
        target, offset = self.task._encode(label)
        return offset - float(target.sum() * self.task.discounts(target.size).mean())


class RelevanceTask(Task):
    """Base of tasks whose labels are relevance grades.

    With ``items=None`` every query has its own documents, any number of them, with a row of
    features each, and all share one weight vector. With a number, the documents are the same in
    every round, each has a weight vector of its own, and the input is one vector.
    """

    items: int | None

    what: ClassVar[str] = "grades"
    kind: ClassVar[str] = "relevance"
    _geometry: ClassVar[type[Geometry]] = RelevanceGeometry

    @fact
    def lowest(self) -> int:
        """The lowest grade."""
        return 0

    @fact
    def highest(self) -> int:
        """The highest grade."""
        return 1

    @fact
    def exponential(self) -> bool:
        """Whether gains grow exponentially with grades."""
        return False

    @fact
    def shown(self) -> int | None:
        """How many documents earn anything, None for all: those that a person sees."""
        return None

    @fact
    def fewest(self) -> int:
        """The fewest documents with a choice: with fewer, all predictions have the same loss."""
        return 2

    def discounts(self, size: int) -> np.ndarray:
        """Return what the ranks earn, for this number of documents."""
        raise InputError(f"{type(self).__name__} does not say its discounts")

    @property
    def label_hull(self) -> Polytope:
        """The hull for two documents, or for all where their number is fixed."""
        return self.geometry.hull_at(self.items or 2)

    def earnings_hull(self, size: int) -> Polytope:
        """Return the hull of the predictions' earnings, a coordinate for each document."""
        raise InputError(f"{type(self).__name__} does not say its earnings")

    def _gain(self, grade: int) -> float:
        return 2.0**grade - 1.0 if self.exponential else float(grade)

    @property
    def guess(self) -> RelevanceGuess:
        """A random order, whose loss depends on the grades."""
        return RelevanceGuess(task=self)

    @cached_property
    def labels(self) -> Grades:
        """A grade for every document."""
        return Grades(self.lowest, self.highest, self.items, self.what)

    # -- sizes

    @property
    def layout(self) -> Layout:
        """One vector for each document, or one a round if the documents are fixed."""
        return VectorPerItem() if self.items is None else OneVector(self.items)

    @property
    def dim(self) -> int:
        """The number of documents, where it is fixed."""
        if self.items is None:
            raise InputError("queries have as many scores as documents: no number is fixed")
        return self.items

    def params(self, size: int) -> tuple[float, ...]:
        """Return the kind of gains and the discounts."""
        return (float(self.exponential), *self.discounts(size))

    def average(self, predictions: Sequence[Prediction], weights: np.ndarray) -> Prediction:
        """Return the order of the mean discounts that documents earn by their ranks."""
        discounts = self.discounts(len(predictions[0]))
        return self.best_prediction(
            sum(w * discounts[p] for w, p in zip(weights, predictions, strict=True))
        )
