"""Predict every position of a sequence by its marginal probabilities."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from driftline.decoders.base import Decoder
from driftline.errors import NoGuaranteeError
from driftline.kernels import DECODE, DRAW, Kernel, argmax, dot, kernel, log1p, spread
from driftline.losses import CRF, Loss
from driftline.losses.base import check_scores
from driftline.polytopes.chain_kernels import length_of
from driftline.tasks.sequence import draw_tag
from driftline.typing import Label, Prediction

__all__ = ["Marginal"]

HALF_BIT = 0.5 / math.log(2.0)


@kernel(DECODE)
def decode_marginals(theta, target, offset, params, work, values, loss_params, mix, scratch, mean):
    """Decode the marginals, with which the workspace of the loss begins; transitions are free."""
    tags = int(params[0])
    n = length_of(theta.size, tags, params[1] > 0.0)
    for i in range(n * tags, mean.size):
        mean[i] = 0.0
    for start in range(0, n * tags, tags):
        top, given = start + argmax(work[start : start + tags]), 0.0
        for i in range(start, start + tags):
            chance = HALF_BIT * log1p(max(0.0, 4.0 * work[i] - 1.0))  # 1 + log2(q) / 2
            mean[i] = (1.0 - chance) / n
            given += 0.0 if i == top else chance
        mean[top] = given / n
    return dot(target, mean)


@kernel(DRAW)
def draw_apart(mean, params, uniforms, scratch, prediction, encoded):
    """Draw the tag of every position by a number of its own."""
    tags = int(params[0])
    n = length_of(mean.size, tags, params[1] > 0.0)
    for t in range(n):
        draw_tag(mean, t, n, tags, spread(uniforms[0], t), prediction, encoded)
    for i in range(n * tags, mean.size):
        encoded[i] = 0.0


@dataclass(frozen=True)
class Marginal(Decoder):
    r"""Draw each position from the lazy decoding of the CRF's marginal at that position.

    With :math:`q_j` the marginal of position j and p the probability of a whole sequence,
    :math:`q_j(y_j) \ge p(y)`. So :class:`~driftline.decoders.Lazy`, at every position, has

    .. math:: \mathbb E \ell = \frac1n \sum_j \Pr(\hat y_j \ne y_j)
        \le \frac1{2n} \sum_j -\log_2 q_j(y_j) \le \frac12 L(\theta, y)

    for the loss L of the :class:`~driftline.losses.CRF` in base 2: a surrogate gap of 1/2 for
    sequences of any length. A position is deterministic where its second marginal is at most
    1/4; all others are drawn independently, from one uniform number a round.

    >>> from driftline.tasks import Sequence
    >>> decoder = Marginal(CRF(Sequence(2)))
    >>> decoder.surrogate_gap, round(decoder.rate_floor, 3)
    (0.5, 0.851)
    >>> decoder.risk(np.zeros(14), [0, 1, 1])  # a loss of 3 bits
    0.5

    References
    ----------
    Rabiner (1989), *A tutorial on hidden Markov models and selected applications in speech
    recognition*, for the most probable tag of every position.
    """

    loss: Loss

    kernel: ClassVar[Kernel] = decode_marginals
    draw_kernel: ClassVar[Kernel] = draw_apart
    ratio_name: ClassVar[str] = "marginal"

    def __post_init__(self) -> None:
        """Refuse losses other than those of chains, and those with a gap below 1/2."""
        if not (isinstance(self.loss.family, CRF) and self.loss.task.geometry.part_size):
            raise NoGuaranteeError(
                f"Marginal is made for CRF(Sequence(...)), not for {self.loss!r}"
            )
        self._require_half()

    @property
    def params(self) -> tuple[float, ...]:
        """The number of tags, and whether there are transitions."""
        return self.loss.task.params(0)

    def mean_loss_encoding(self, theta: np.ndarray) -> np.ndarray:
        """Return the expected loss encoding of the prediction at scores ``theta``."""
        task: Any = self.loss.task
        hull, mean = task.geometry.hull_of(theta), np.zeros(np.size(theta))
        chances = hull.split(hull.marginals(check_scores(theta, task))[1])[0]
        given = 0.5 * np.log2(np.maximum(1.0, 4.0 * chances))
        top = np.arange(hull.length), chances.argmax(axis=1)
        given[top] = 0.0
        wrong = 1.0 - given
        wrong[top] = given.sum(axis=1)
        hull.split(mean)[0][:] = wrong / hull.length
        return mean

    def risk(self, theta: np.ndarray, label: Label) -> float:
        """Return the expected share of wrong tags, a sum of chances."""
        return float(self.loss.task.encode(label) @ self.mean_loss_encoding(theta))

    def draw(self, theta: np.ndarray, uniforms: np.ndarray) -> Prediction:
        """Draw a sequence at scores ``theta``."""
        task: Any = self.loss.task
        mean = task.geometry.folded(self.mean_loss_encoding(theta))
        row = np.empty(task.geometry.hull_of(theta).length, dtype=np.int64)
        draw_apart(mean, np.array(self.params), uniforms, np.empty(0), row, np.empty(mean.size))
        return row
