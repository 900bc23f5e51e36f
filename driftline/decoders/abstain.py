r"""Predict the most probable class, or none where it is not probable enough."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from driftline.decoders.base import Decoder
from driftline.errors import NoGuaranteeError
from driftline.kernels import DECODE, Kernel, argmax, kernel
from driftline.losses import Loss
from driftline.losses.base import check_scores
from driftline.tasks import Abstaining
from driftline.tasks.abstaining import log_sum
from driftline.typing import Label, Prediction

__all__ = ["Abstain"]


@kernel(DECODE)
def decode_or_abstain(
    theta, target, offset, params, work, values, loss_params, mix, scratch, mean
):  # fmt: skip
    """Miss everything but the class of highest score, or pay the cost of no answer."""
    top = argmax(theta)
    if log_sum(theta, top) <= params[0]:
        for k in range(mean.size):
            mean[k] = 1.0
        mean[top] = 0.0
        return 1.0 - target[top]
    for k in range(mean.size):
        mean[k] = params[1]
    return params[1]


@dataclass(frozen=True)
class Abstain(Decoder):
    r"""The most probable class if it is probable enough, else no answer; nothing is random.

    No answer costs ``cost``, where a wrong one costs 1. With :math:`u > 1` the root of
    :math:`2^{-cu} + 2^{-u} = 1`, the most probable class is predicted if its probability is
    :math:`2^{-cu}` or more. Then the cost is at most :math:`L/u` for every label, L being the
    logistic loss in base 2, with any number of classes:

    - without an answer all probabilities are below :math:`2^{-cu}`, so that :math:`L > cu`;
    - a wrong answer leaves its label at most :math:`1 - 2^{-cu} = 2^{-u}`, so that :math:`L \ge u`.

    Both are attained, and the surrogate gap is :math:`1 - 1/u`. By the theorem *mistakes plus c
    times the number of rounds without an answer* are at most :math:`F_T + (D/\underline\eta)
    (D/2 + P_T)`, with the factor 1 before the comparator's loss, and deterministically. The rule
    does not depend on the scale of the loss: in base b, or scaled, the ratio 1/u changes as the
    loss does.

    ============  =====  =====  =====  =====  =====
    cost          0.1    0.25   0.4    0.5    0.75
    answers from  0.835  0.724  0.654  0.618  0.550
    gap           0.615  0.462  0.347  0.280  0.131
    ============  =====  =====  =====  =====  =====

    >>> from driftline.losses import Logistic
    >>> from driftline.tasks import Multiclass
    >>> decoder = Abstain(Logistic(Multiclass(3)), cost=0.25)
    >>> round(decoder.surrogate_gap, 3), round(decoder.task.least_chance, 3)
    (0.462, 0.724)
    >>> decoder.distribution([2.0, 0.0, 0.0]).atoms, decoder.distribution([0.0, 0.0, 0.0]).atoms
    (array([0]), array([-1]))
    """

    loss: Loss
    cost: float = 0.25

    deterministic: ClassVar[bool] = True
    takes_top: ClassVar[bool] = True

    @property
    def kernel(self) -> Kernel | None:
        """The kernel."""
        return decode_or_abstain

    def __post_init__(self) -> None:
        """Refuse losses that are not of probabilities of classes, and those without a gap."""
        task, loss = self.loss.task, self.loss
        if task.geometry.classes != task.dim or loss.nats is None:
            other = "dl.tasks.Multiclass(2)" if task.labels.signs else "dl.tasks.Multiclass"
            raise NoGuaranteeError(
                "Abstain compares the probabilities of classes, which are those of the logistic "
                f"loss: use dl.losses.Logistic with {other}, not {loss!r}"
            )
        object.__setattr__(self, "cost", self.task.cost)
        if self.loss_ratio >= 1.0:
            odds, more = self.task.odds, self.loss_ratio
            raise NoGuaranteeError(
                f"Abstain has no surrogate gap at cost {self.cost:g} with {loss!r}: use a base "
                f"below {2.0**odds:.4g}, or Scaled by more than {more:.4g}"
            )

    @cached_property
    def task(self) -> Abstaining:
        """The task of the loss, in which predictions may be none."""
        return Abstaining(self.loss.task, self.cost)  # type: ignore[arg-type]

    @property
    def loss_ratio(self) -> float:
        """1/u in base 2."""
        assert self.loss.nats is not None
        return self.loss.nats / (math.log(2.0) * self.task.odds)

    @property
    def theorem(self) -> str:
        """The first theorem, for mistakes and costs of no answer."""
        return f"theorem 1 (surrogate gap, no answer counted as {self.cost:g})"

    @property
    def params(self) -> tuple[float, ...]:
        """The limit of doubt, and the cost."""
        return tuple(self.task.predictions.doubt)

    def mean_loss_encoding(self, theta: np.ndarray) -> np.ndarray:
        """Return the loss encoding of the prediction."""
        return self.task.encode_loss(self.draw(theta, np.empty(0)))

    def risk(self, theta: np.ndarray, label: Label) -> float:
        """Return the target loss of the prediction."""
        return self.task.loss(self.draw(theta, np.empty(0)), label)

    def draw(self, theta: np.ndarray, uniforms: np.ndarray) -> Prediction:
        """Return the prediction; nothing is drawn."""
        return self.task.top_prediction(check_scores(theta, self.loss.task))
