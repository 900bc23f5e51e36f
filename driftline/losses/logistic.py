r"""The logistic loss, in any base.

With :math:`\mu = \mathrm{softmax}(\theta)` and :math:`b` the base of the logarithm,

.. math::

    L(\theta, y) = \frac{\ln \sum_i e^{\theta_i} - \theta_y}{\ln b},
    \qquad
    \nabla L(\theta, y) = \frac{\mu - \rho(y)}{\ln b}.

For a binary task with one score it is :math:`\log_b(1 + e^{-y \theta})`.

It is self-bounding with :math:`M = 2p(1-p) / \ln b = 0.4073 / \ln b`, where
:math:`p = 0.2847` solves :math:`1 - p = -2 p \ln p`: the gradient has
:math:`\|g\|^2 \le 2 (1-\mu_y)^2 / \ln^2 b`, and :math:`p` maximises
:math:`(1-p)^2 / (-\ln p)`. With one score the gradient is half as large, and so is M.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from driftline.errors import InputError
from driftline.kernels import LOSS, VALUES, exp, helper, kernel, log1p, peak, where
from driftline.losses.base import Loss, LossKernels
from driftline.tasks import Task

__all__ = ["Logistic"]

#: max over p of (1 - p)^2 / (-ln p), at the root of 1 - p = -2 p ln p.
_WORST_PROBABILITY = 0.2846681370067596
SELF_BOUND = 2.0 * _WORST_PROBABILITY * (1.0 - _WORST_PROBABILITY)

# What follows the d probabilities in the workspace: the most probable class, one minus
# its probability, and minus its logarithm, both to full relative precision.
TOP, DOUBT, EXCESS, EXTRA = range(4)


@helper
def soften(theta, target, work):
    """Write softmax and what follows it in the workspace; return the loss in base e."""
    d = theta.size
    high, top = peak(theta)
    rest = 0.0
    if d == 2:  # the exponential of the highest score is 1
        rest = exp(-abs(theta[0] - theta[1]))
        work[0], work[1] = where(top == 0.0, 1.0, rest), where(top == 0.0, rest, 1.0)
    else:
        for i in range(d):
            work[i] = exp(theta[i] - high)
        for i in range(d):
            rest += where(top == i, 0.0, work[i])
    share = 1.0 / (1.0 + rest)
    work[d + TOP] = top
    work[d + DOUBT] = rest * share
    work[d + EXCESS] = log1p(rest)

    value = work[d + EXCESS]
    for i in range(d):
        work[i] *= share
        value += (high - theta[i]) * target[i]
    return value


@helper
def soft_slope(target, work, scale, grad):
    """Write scale times softmax minus the target, exact where they are close."""
    d = target.size
    top, doubt = work[d + TOP], work[d + DOUBT]
    for i in range(d):
        hit = (top == i) & (target[i] == 1.0)
        grad[i] = where(hit, -scale * doubt, scale * (work[i] - target[i]))


@kernel(LOSS)
def logistic(theta, target, params, work, grad):
    """Value and gradient, exact to rounding even where the loss is tiny."""
    value = soften(theta, target, work)
    soft_slope(target, work, params[0], grad)
    return params[0] * value


@kernel(VALUES)
def values(theta, params, work, values, squares):
    """|g|^2 for label y is (1 - p_y)^2 plus the other squared probabilities."""
    d = theta.size
    scale, top, doubt, excess = params[0], work[d + TOP], work[d + DOUBT], work[d + EXCESS]
    high, share, rest_sq = theta[0], work[0], 0.0
    for i in range(d):
        high = where(top == i, theta[i], high)
        share = where(top == i, work[i], share)
        rest_sq += where(top == i, 0.0, work[i] * work[i])
    for i in range(d):
        values[i] = scale * (high - theta[i] + excess)
        less, miss = rest_sq - work[i] * work[i], 1.0 - work[i]
        others = where(less > 0.0, less, 0.0) + share * share
        most = where(top == i, rest_sq + doubt * doubt, others + miss * miss)
        squares[i] = scale * scale * most


@kernel(LOSS)
def logistic_binary(theta, target, params, work, grad):
    """Value and gradient in one score; the first number in the workspace is the mean label."""
    scale = params[0]
    size = abs(theta[0])
    small = exp(-size)
    sign = where(theta[0] > 0.0, 1.0, -1.0)
    doubt, excess = small * (1.0 / (1.0 + small)), log1p(small)
    work[0] = sign * (1.0 - 2.0 * doubt)
    work[1 + TOP] = sign
    work[1 + DOUBT] = doubt
    work[1 + EXCESS] = excess
    hit = target[0] == sign
    grad[0] = -scale * target[0] * where(hit, doubt, 1.0 - doubt)
    return scale * where(hit, excess, excess + size)


@kernel(VALUES)
def values_binary(theta, params, work, values, squares):
    """Write loss and squared gradient for the labels -1 and +1, in this order."""
    scale, doubt, excess = params[0], work[1 + DOUBT], work[1 + EXCESS]
    for k in range(2):
        hit = work[1 + TOP] == 2.0 * k - 1.0
        miss = scale * where(hit, doubt, 1.0 - doubt)
        values[k] = scale * where(hit, excess, excess + abs(theta[0]))
        squares[k] = miss * miss


@kernel(LOSS)
def logistic_tags(theta, target, params, work, grad):
    """Average the losses of all tags; the workspace has doubt and excess of each."""
    d = theta.size
    scale = params[0] / d
    for i in range(d):
        small = exp(-abs(theta[i]))
        work[i] = small * (1.0 / (1.0 + small))
        work[d + i] = log1p(small)
    total = 0.0
    for i in range(d):
        missed = (target[i] * theta[i] < 0.0) | ((theta[i] == 0.0) & (target[i] > 0.0))
        total += where(missed, work[d + i] + abs(theta[i]), work[d + i])
        grad[i] = -scale * target[i] * where(missed, 1.0 - work[i], work[i])
    return scale * total


@dataclass(frozen=True)
class Logistic(Loss):
    """Logistic loss of a multiclass, binary or multilabel task.

    In base 2, the default, the loss is never below the target loss of the argmax. For
    several tags it is the mean of their losses.

    >>> from driftline.tasks import Multiclass
    >>> loss = Logistic(Multiclass(4))
    >>> value, grad = loss.value_and_grad([0.0, 0.0, 0.0, 0.0], label=1)
    >>> value
    2.0

    References
    ----------
    Blondel, Martins and Niculae (2020), *Learning with Fenchel-Young losses*.
    """

    task: Task
    base: float = 2.0

    _kernels: ClassVar[dict[str, LossKernels]] = {
        "classes": LossKernels(logistic, values),
        "sign": LossKernels(logistic_binary, values_binary),
        "tags": LossKernels(logistic_tags),
    }

    def __post_init__(self) -> None:
        """Refuse a base that has no logarithm, and tasks of another kind."""
        if self.kernels is None:
            raise InputError(
                f"Logistic takes a Multiclass, Binary or Multilabel task, not {self.task!r}"
            )
        if not (math.isfinite(self.base) and self.base > 1.0):
            raise InputError(f"the base of a logarithm must exceed 1, but is {self.base}")

    def params(self, size: int) -> tuple[float, ...]:
        """Return the factor 1 / ln b."""
        return (1.0 / math.log(self.base),)

    def workspace(self, size: int) -> int:
        """Return room for the mean label encoding and three more numbers; for tags, two each."""
        return 2 * size if self.task.geometry.tags else size + EXTRA

    @property
    def nats(self) -> float:
        """The logarithm of the base."""
        return math.log(self.base)

    @property
    def unit(self) -> float:
        """The factor of this loss over the base-2 loss."""
        return 1.0 / math.log2(self.base)

    @property
    def self_bound(self) -> float:
        """The tight constant M; for d tags, that of one tag over d."""
        task = self.task
        parts = 2.0 * task.dim if task.geometry.tags or task.labels.signs else 1.0
        return SELF_BOUND / (parts * math.log(self.base))

    @property
    def argmax_ratio(self) -> float:
        """A class that is not the argmax has probability 1/2 or less: L >= log_b 2."""
        return math.log2(self.base)

    @property
    def uniform_mix_ratio(self) -> float | None:
        """1 - 1/K in base 2; a smaller base only enlarges the loss."""
        if self.task.geometry.tags:
            return None
        return self.task.guess.loss * math.log2(self.base) if self.base <= 2.0 else None

    @property
    def nearest_vertex_ratio(self) -> float | None:
        """4 gamma / (lambda nu), with 1/ln b strong convexity in the l1 norm."""
        constants = None if self.task.geometry.tags else self.task.constants("l1")
        if constants is None:
            return None
        slope, separation = constants
        return 4.0 * slope * math.log(self.base) / separation

    @property
    def gap_optimal_ratio(self) -> float:
        """Half the logarithm of the base, whatever the number of classes or tags."""
        return 0.5 * math.log2(self.base)
