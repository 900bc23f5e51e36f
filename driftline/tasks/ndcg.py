r"""Orders of documents, at one minus the normalised discounted cumulative gain.

.. math:: \ell(\hat y, y) = 1 - \frac{\sum_i g_i w_{\hat y(i)}}{N(g)}, \qquad
   w_r = \frac1{\log_2(r + 2)} \text{ at rank } r = 0, 1, \dots
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import ClassVar

import numpy as np

from driftline.errors import InputError
from driftline.kernels import DRAW, ENCODE_LOSS, kernel, sorting_room
from driftline.polytopes import Permutahedron
from driftline.polytopes.permutahedron import random_ranks, swapping_room
from driftline.tasks.base import Distribution, TaskKernels
from driftline.tasks.many import Many
from driftline.tasks.relevance import (
    DISCOUNTS,
    RelevanceTask,
    average_ranks,
    encode,
    rank_losses,
)
from driftline.tasks.vector_spaces import Ranks
from driftline.typing import CheckedLabels, Label, Prediction

__all__ = ["NDCG"]


NO_CODE = np.zeros(0, np.int64)

#: The highest grade with an exponential gain: sums of gains stay far from overflow.
LARGEST_EXPONENT = 300

#: The largest discount, for the same reason.
LARGEST_DISCOUNT = 1e100


@kernel(ENCODE_LOSS)
def encode_loss(prediction, params, out):
    """Write minus the discount of every document's rank."""
    for i in range(out.size):
        out[i] = -params[DISCOUNTS + prediction[i]]


@kernel(DRAW)
def draw(mean, params, uniforms, scratch, prediction, encoded):
    """Draw an order whose discounts have minus this mean."""
    random_ranks(mean, -1.0, params[DISCOUNTS:], uniforms[0], scratch, prediction)
    for i in range(mean.size):
        encoded[i] = -params[DISCOUNTS + prediction[i]]


class ManyRanks(Many):
    """Many orders at once, of documents whose number may differ."""

    def average(self, predictions: list[np.ndarray], weights: np.ndarray) -> np.ndarray:
        """Return the orders of mean discounts, padded rows."""
        rows = np.array(predictions, dtype=np.int64)
        width = rows.shape[2]
        out, room = np.empty(rows.shape[1:], np.int64), np.empty(2 * width + sorting_room(width))
        params = self.task._params(width)
        average_ranks(rows, np.ascontiguousarray(weights, np.float64), NO_CODE, params, room, out)
        return out

    def losses(self, rows: np.ndarray, labels: CheckedLabels) -> np.ndarray:
        """Return the target losses of many orders; refuse rows that are none."""
        sizes = np.array([len(label) for label in labels], dtype=np.int64)
        if rows.shape[1] < sizes.max(initial=0):
            raise InputError(f"orders of {sizes.max()} documents do not fit into {rows.shape[1]}")
        kept = np.arange(rows.shape[1]) < sizes[:, np.newaxis]
        ranked = np.sort(np.where(kept, rows, rows.shape[1] + 1), axis=1)
        wrong = kept & (ranked != np.arange(rows.shape[1]))
        if wrong.any():
            ranks = rows[int(wrong.any(axis=1).argmax())]
            raise InputError(f"a prediction must be an order of 0, 1, ..., but is {ranks.tolist()}")
        out, starts = np.empty(len(sizes)), np.r_[0, np.cumsum(sizes)]
        flat = np.concatenate([np.asarray(label, dtype=np.int64) for label in labels])
        width = int(sizes.max(initial=1))
        given = np.ascontiguousarray(rows, np.int64), flat, starts, self.task._params(width)
        rank_losses(*given, np.empty(width), out)
        return out


@dataclass(frozen=True)
class NDCG(RelevanceTask):
    """Rank documents by relevance; ``prediction[i]`` is the rank of document i, 0 is best.

    Parameters
    ----------
    max_relevance
        The highest grade.
    discount
        What the ranks earn: ``"log2"``, ``"reciprocal"`` (1, 1/2, 1/3 and so on), or numbers
        that fall from rank to rank; ranks beyond them earn nothing.
    lowest
        The lowest grade, 0 or 1.
    cutoff
        How many of the first ranks earn anything.
    gain
        ``"linear"``: a grade is its own gain; ``"exponential"``: 2 to the grade, minus 1.
    items
        None: every query has its own documents, with a row of features each. A number: the
        documents are the same in all rounds.

    Examples
    --------
    >>> task = NDCG(max_relevance=2)
    >>> float(task.loss([0, 2, 1], [2, 0, 1])), round(task.loss([2, 0, 1], [2, 0, 1]), 3)
    (0.0, 0.38)

    References
    ----------
    Jarvelin and Kekalainen (2002), *Cumulated gain-based evaluation of IR techniques*.
    """

    max_relevance: int
    discount: str | Sequence[float] = "log2"
    lowest: int = 0
    cutoff: int | None = None
    gain: str = "linear"
    items: int | None = None

    kernels: ClassVar[TaskKernels] = TaskKernels(encode, encode_loss, draw)
    _many: ClassVar[type[Many]] = ManyRanks

    @property
    def shown(self) -> int | None:
        """How many of the first ranks earn anything, None for all."""
        return self.cutoff

    def __post_init__(self) -> None:
        """Refuse an empty range of grades, increasing discounts, and a cutoff below 1."""
        if self.lowest not in (0, 1):
            raise InputError(f"the lowest grade must be 0 or 1, not {self.lowest!r}")
        if int(self.max_relevance) != self.max_relevance or self.max_relevance <= self.lowest:
            raise InputError(
                f"the highest grade must be a whole number above {self.lowest}, "
                f"not {self.max_relevance!r}"
            )
        if self.gain not in ("linear", "exponential"):
            raise InputError(f"gain must be 'linear' or 'exponential', not {self.gain!r}")
        if self.exponential and self.max_relevance > LARGEST_EXPONENT:
            raise InputError(
                f"exponential gains are for grades of up to {LARGEST_EXPONENT}, "
                f"not {self.max_relevance!r}: sums of larger ones overflow"
            )
        if self.cutoff is not None and (int(self.cutoff) != self.cutoff or self.cutoff < 1):
            raise InputError(f"a cutoff keeps 1 rank or more, not {self.cutoff!r}")
        if self.items is not None and (int(self.items) != self.items or self.items < 1):
            raise InputError(f"there must be 1 document or more, not {self.items!r}")
        if not isinstance(self.discount, str):
            object.__setattr__(self, "discount", tuple(float(w) for w in self.discount))
        self.geometry.hull_at(1)  # raises if the discounts are not valid

    @cached_property
    def predictions(self) -> Ranks:
        """A rank for every document."""
        return Ranks(self.items or 0)

    @property
    def highest(self) -> int:
        """The highest grade."""
        return self.max_relevance

    @property
    def exponential(self) -> bool:
        """Whether gains grow exponentially with grades."""
        return self.gain == "exponential"

    def discounts(self, size: int) -> np.ndarray:
        """Return what the ranks earn, for this number of documents."""
        return _discounts(self.discount, self.cutoff, size)

    def earnings_hull(self, size: int) -> Permutahedron:
        """All orders of the discounts."""
        return Permutahedron(tuple(self.discounts(size)))

    def _scratch(self, size: int) -> int:
        """Return room to draw an order."""
        return swapping_room(size)

    def loss(self, prediction: Prediction, label: Label) -> float:
        """Return one minus the normalised discounted cumulative gain."""
        ranks, grades = self.predictions.check(prediction), self.labels.check(label)
        if ranks.size != grades.size:
            raise InputError(f"{ranks.size} ranks do not fit {grades.size} grades")
        return super().loss(ranks, grades)

    def best_prediction(self, mu: np.ndarray) -> np.ndarray:
        """Rank the largest entries first, the lowest index of equal ones."""
        ranks = np.empty(np.size(mu), dtype=np.int64)
        ranks[np.argsort(-np.asarray(mu), kind="stable")] = np.arange(ranks.size)
        return ranks

    def decompose(self, mean: np.ndarray) -> Distribution:
        """Return few orders with this mean loss encoding."""
        vertices, weights = self.earnings_hull(np.size(mean)).decompose(-np.asarray(mean))
        return Distribution(np.array([self.best_prediction(v) for v in vertices]), weights)


@lru_cache(maxsize=1024)
def _discounts(discount: str | tuple[float, ...], cutoff: int | None, size: int) -> np.ndarray:
    weights = np.zeros(size)
    match discount:
        case "log2":
            weights[:] = 1.0 / np.log2(np.arange(size) + 2.0)
        case "reciprocal":
            weights[:] = 1.0 / np.arange(1.0, size + 1.0)
        case str():
            raise InputError(
                f"discount must be 'log2', 'reciprocal' or a list of numbers, not {discount!r}"
            )
        case _:
            if any(a < b for a, b in zip(discount, discount[1:], strict=False)) or (
                discount and min(discount) < 0.0
            ):
                raise InputError(
                    "discounts must fall from rank to rank and never be negative, but are "
                    f"{list(discount)}"
                )
            if not all(weight <= LARGEST_DISCOUNT for weight in discount):
                raise InputError(
                    f"discounts must be numbers of up to {LARGEST_DISCOUNT:g}, but are "
                    f"{list(discount)}: sums of larger ones overflow"
                )
            kept = discount[:size]
            weights[: len(kept)] = kept
    weights[size if cutoff is None else cutoff :] = 0.0
    weights.setflags(write=False)
    return weights
