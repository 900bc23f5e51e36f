r"""One of K classes, or no answer, at the price of :math:`c < 1` for no answer.

Labels are those of the classes; a prediction may also be none, in arrays -1:

.. math:: \rho(y) = e_y, \qquad \ell^\rho(\hat y) = 1 - e_{\hat y},
   \qquad \ell^\rho(\text{none}) = c \mathbf 1.

**When to answer.** Let :math:`u > 1` solve :math:`2^{-cu} + 2^{-u} = 1`, and :math:`p` be the
probabilities of the classes. The most probable class is predicted if :math:`p^* \ge 2^{-cu}`, and
none otherwise. Then the cost is at most :math:`-\frac1u \log_2 p_y` for every label y: without an
answer, :math:`p_y \le p^* < 2^{-cu}`; with a wrong one, :math:`p_y \le 1 - p^* \le 2^{-u}`.

**A vote.** Let members have the weight :math:`q_y` on each class, and :math:`z` on no answer: 1 in
total. If y is the label, they pay :math:`m_y = 1 - q_y - (1-c) z` on average. Let a have the
least of these, and b the second. No answer costs at most :math:`c / m_a` times what members pay,
whatever the label, and the answer a at most :math:`1 / m_b` times. The vote takes the smaller one:
it answers if :math:`m_a \le c\, m_b`.

This costs at most :math:`\max(1+c, 2-c)` times what members pay. The worst case has two classes, so
that :math:`m_b = q_a + cz`. Where :math:`q_a, z \ge 0` and :math:`q_a + z \le 1`, the larger one of
:math:`m_a / c` and :math:`m_b` is least where both are equal, at an end of that line: at
:math:`z = 0`, where :math:`m_b = 1/(1+c)`, or at :math:`q_a + z = 1`, where :math:`m_b = 1/(2-c)`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from driftline.errors import InputError
from driftline.kernels import DRAW, ENCODE_LOSS, TOP, VOTE, helper, kernel
from driftline.polytopes import Simplex
from driftline.tasks.base import Distribution, Guess, Task, TaskKernels
from driftline.tasks.many import Many, ManyByRows
from driftline.tasks.multiclass import Multiclass, encode, write_loss
from driftline.tasks.spaces import NONE, Answers, Doubt, Space
from driftline.typing import CheckedLabels, Label, Prediction

__all__ = ["Abstaining", "log_sum", "odds_of"]

#: Smaller costs than this, and larger ones than 1 minus this, are refused.
LEAST_COST = 1e-3


@helper
def log_sum(scores, top):
    """Return ``-ln p`` of the class of highest score, whose index is ``top``."""
    total = 0.0
    for k in range(scores.size):
        total += math.exp(scores[k] - scores[top])
    return math.log(total)


@helper
def write_cost(prediction, cost, out):
    """Write the loss encoding of a class, or of no answer."""
    if prediction >= 0:
        write_loss(prediction, out)
        return
    for k in range(out.size):
        out[k] = cost


@kernel(ENCODE_LOSS)
def encode_cost(prediction, params, out):
    """Write the loss encoding of a prediction."""
    write_cost(prediction[0], params[1], out)


@kernel(DRAW)
def draw(mean, params, uniforms, scratch, prediction, encoded):
    """Walk along the classes; what is left of the probability is that of no answer."""
    cost, alike, least = params[1], True, 1.0
    total, largest = 0.0, 0.0
    for k in range(mean.size):
        alike = alike and mean[k] == cost
        total += mean[k]
        largest = max(largest, mean[k])
    prediction[0] = -1
    if not alike:
        spread = mean.size * (1.0 - cost) - 1.0
        if abs(spread) > 1e-9:
            none = min(1.0, max(0.0, (mean.size - 1.0 - total) / spread))
        else:  # no answer costs what a uniform guess does
            none = min(1.0, max(0.0, (1.0 - largest) / (1.0 - cost)))
        least -= (1.0 - cost) * none
        below = 0.0
        for k in range(mean.size):
            below += max(0.0, least - mean[k])
            if uniforms[0] < below:
                prediction[0] = k
                break
    write_cost(prediction[0], cost, encoded)


@kernel(VOTE)
def vote(predictions, weights, params, behind, out):
    """Write the class with most weight, or none where that costs less in the worst case."""
    cost = params[1]
    for t in range(predictions.shape[0]):
        total, none, best = 0.0, 0.0, -1
        for label in predictions[t]:
            if label >= 0:
                behind[label] = 0.0
        for j in range(predictions.shape[1]):
            total += weights[t, j]
            if predictions[t, j] >= 0:
                behind[predictions[t, j]] += weights[t, j]
            else:
                none += weights[t, j]
        for label in predictions[t]:
            if label < 0:
                continue
            more = best < 0 or behind[label] > behind[best]
            if more or (behind[label] == behind[best] and label < best):
                best = label
        most = behind[best] if best >= 0 else 0.0
        second = 0.0
        for label in predictions[t]:
            if label >= 0 and label != best:
                second = max(second, behind[label])
        left = total - (1.0 - cost) * none
        if not left - most <= cost * (left - second):
            best = -1
        out[t, 0] = best


@kernel(TOP)
def top_answer(scores, params, out):
    """Write the class of highest score if it is probable enough, else none."""
    for t in range(scores.shape[0]):
        top = 0
        for k in range(1, scores.shape[1]):
            if scores[t, k] > scores[t, top]:
                top = k
        out[t, 0] = top if log_sum(scores[t], top) <= params[2] else -1


def odds_of(cost: float) -> float:
    """Return the root u > 1 of ``2^(-cost u) + 2^(-u) = 1``, by bisection.

    >>> round(odds_of(0.5), 4)
    1.3885
    """
    low, high = 1.0, 1.0 / cost + 64.0
    while low < (middle := 0.5 * (low + high)) < high:
        if 2.0 ** (-cost * middle) + 2.0**-middle > 1.0:
            low = middle
        else:
            high = middle
    return low


class ManyAnswers(ManyByRows):
    """Many answers at once; -1 is none."""

    def top(self, scores: np.ndarray) -> np.ndarray:
        """Return the top predictions, a row each."""
        made = np.empty((len(scores), 1), dtype=np.int64)
        params = self.task._params(self.task.dim)
        top_answer.compiled(np.ascontiguousarray(scores), params, made)
        return made

    def average(self, predictions: list[np.ndarray], weights: np.ndarray) -> np.ndarray:
        """Return the votes of many rounds, a row each."""
        rows, out = np.concatenate(predictions, axis=1), np.empty((len(weights), 1), dtype=np.int64)
        behind = np.empty(max(0, int(rows.max(initial=0))) + 1)
        vote.compiled(rows, weights, self.task._params(self.task.dim), behind, out)
        return out

    def losses(self, rows: np.ndarray, labels: CheckedLabels) -> np.ndarray:
        """Return the target losses of many predictions."""
        self._refuse_wide(rows)
        none, codes = rows[:, 0] == NONE, np.asarray(labels)[:, 0]
        made = self.task.labels.check_all(np.where(none, 0, rows[:, 0]))[:, 0]
        return np.where(none, self.task.cost, (made != codes).astype(np.float64))

    def widened(self, means: np.ndarray, size: int) -> np.ndarray:
        """Return encodings in which new classes cost 1, or what no answer costs."""
        new = max(0, size - means.shape[1])
        none = (means == self.task.cost).all(axis=1, keepdims=True)
        return np.hstack([means, np.repeat(np.where(none, self.task.cost, 1.0), new, axis=1)])


@dataclass(frozen=True)
class Abstaining(Task):
    """Classes, and the cost of no answer: for doubtful cases that go to a person.

    In arrays no answer is -1; alone, as ``predict`` returns it, None. Losses are those of
    the classes, of ``answers``; the decoder decides when there is no answer, see
    :class:`~driftline.decoders.Abstain`.

    >>> task = Abstaining(Multiclass(3), cost=0.25)
    >>> task.loss(None, 2), task.loss(1, 2), task.loss(2, 2)
    (0.25, 1.0, 0.0)
    >>> task.top_prediction([3.0, 0.0, 0.0]), task.top_prediction([1.0, 0.0, 0.0])
    (0, None)

    References
    ----------
    Chow (1970), *On optimum recognition error and reject tradeoff*.
    """

    answers: Multiclass
    cost: float = 0.25

    kernels: ClassVar[TaskKernels] = TaskKernels(encode, encode_cost, draw)
    kind: ClassVar[str] = "answers"
    _many: ClassVar[type[Many]] = ManyAnswers
    _grows: ClassVar[str] = "answers"

    def __post_init__(self) -> None:
        """Refuse tasks other than classes, and costs at which one side is always better."""
        if not (isinstance(self.answers, Task) and self.answers.kind == "classes"):
            signs = isinstance(self.answers, Task) and self.answers.labels.signs
            raise InputError(
                "no answer is for classes, such as dl.tasks.Multiclass(3), not for "
                f"{self.answers!r:.80}{'; take Multiclass(2) for two of them' if signs else ''}"
            )
        cost = self.cost
        number = isinstance(cost, (int, float, np.number)) and not isinstance(cost, bool)
        if not number or not LEAST_COST <= cost <= 1.0 - LEAST_COST:
            raise InputError(
                f"the cost of no answer must lie between {LEAST_COST} and {1.0 - LEAST_COST}, "
                f"where 1 is that of a wrong one, but is {cost!r:.80}"
            )
        object.__setattr__(self, "cost", float(cost))

    @cached_property
    def odds(self) -> float:
        """The number u: a cost is at most ``-log2 p(label)`` over this."""
        return odds_of(self.cost)

    @property
    def least_chance(self) -> float:
        """From which probability on there is an answer."""
        return float(2.0 ** (-self.cost * self.odds))

    def params(self, size: int) -> tuple[float, ...]:
        """Return the number of scores, the cost, and the limit of doubt."""
        return (float(size), self.cost, self.predictions.doubt.limit)

    @property
    def dim(self) -> int:
        """One score per class."""
        return self.answers.dim

    @property
    def labels(self) -> Space:
        """The classes."""
        return self.answers.labels

    @cached_property
    def predictions(self) -> Answers:
        """The classes, and no answer where it is cheaper."""
        doubt = Doubt(self.cost * self.odds * math.log(2.0), self.cost)
        return Answers(self.answers.labels, doubt)

    @property
    def guess(self) -> Guess:
        """No answer at all, unless a guess costs less."""
        guess = self.answers.guess
        return Guess(self.cost, "no answer at all") if self.cost <= guess.loss else guess

    @property
    def label_hull(self) -> Simplex:
        """The hull of all encodings."""
        return self.answers.label_hull

    def loss(self, prediction: Prediction, label: Label) -> float:
        """Return 0, 1, or the cost of no answer."""
        truth, row = self.labels.check(label)[0], self.predictions.check(prediction)[0]
        return self.cost if row == NONE else float(row != truth)

    def best_prediction(self, mu: np.ndarray) -> int | None:
        """Return the most probable class if missing it costs less than no answer (Chow's rule)."""
        mu = np.asarray(mu)
        top = int(np.argmax(mu))
        return top if mu.sum() - mu[top] <= self.cost * mu.sum() else None

    def top_prediction(self, theta: np.ndarray) -> int | None:
        """Return the class of highest score if its probability is large enough."""
        rows = self.many.top(np.array([theta], dtype=np.float64))
        return self.predictions.value(rows[0])

    def decompose(self, mean: np.ndarray) -> Distribution:
        """Return classes, and -1 for no answer, with this mean loss encoding."""
        mean = np.asarray(mean, dtype=np.float64)
        spread = mean.size * (1.0 - self.cost) - 1.0
        if abs(spread) > 1e-9:
            none = (mean.size - 1.0 - float(mean.sum())) / spread
        else:
            none = (1.0 - float(mean.max())) / (1.0 - self.cost)
        none = 1.0 if (mean == self.cost).all() else min(1.0, max(0.0, none))
        weights = np.append(np.maximum(1.0 - (1.0 - self.cost) * none - mean, 0.0), none)
        weights[weights < 1e-12] = 0.0
        atoms = np.flatnonzero(weights)
        return Distribution(np.append(self.labels.all, NONE)[atoms], weights[atoms] / weights.sum())
