"""The argmax, mixed with a uniform guess: the decoder of the paper's experiments."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from driftline.decoders.base import ValueDecoder
from driftline.kernels import MIX, Kernel, kernel, where
from driftline.losses import Loss

__all__ = ["UniformMix"]


@kernel(MIX)
def uniform_mix(values, squares, params, wrong):
    """Guess uniformly with probability a, else take the label of least loss."""
    classes = values.size
    least, top = values[0], 0.0
    for k in range(1, classes):
        top = where(values[k] < least, k, top)
        least = where(values[k] < least, values[k], least)
    a = least / params[0]
    a = where(a < 1.0, a, 1.0)
    for k in range(classes):
        wrong[k] = where(top == k, a * (1.0 - 1.0 / classes), 1.0 - a / classes)


@dataclass(frozen=True)
class UniformMix(ValueDecoder):
    r"""Guess uniformly with probability :math:`a = \min(1, L(\theta, y^*))`, else take
    the argmax :math:`y^*` (after Van der Hoeven, 2020, and Van der Hoeven et al., 2021).

    The surrogate gap is 1/K for the base-2 logistic loss and for the smooth hinge. Proof:
    the risk is :math:`a (1 - 1/K)` if :math:`y = y^*` and :math:`1 - a/K` otherwise, so one
    needs :math:`a \le L(\theta, y^*)`, which is clear, and
    :math:`L(\theta, y) \ge 1 + (1 - a)/(K - 1)` for every other label. For the logistic loss
    with :math:`p = \mu_{y^*} > 1/2` the worst case is K = 2, where this says
    :math:`p (1 - p) \le 1/4`; for :math:`p \le 1/2`, a = 1 and :math:`L \ge 1`. For the
    smooth hinge, with m the margin of :math:`y^*`, it follows from
    :math:`2m - m^2 \le 2m (K - 1)`. With a multiple of either loss the weight a stays that
    of the loss itself.

    Above base 2 no weight reaches the gap 1/K (two classes tied at 1/2 have a risk of
    1 - 1/K at least, and a loss below 1), and the pair is refused.
    """  # noqa: D205

    loss: Loss
    allow_no_gap: bool = False

    mix: ClassVar[Kernel] = uniform_mix
    ratio_name: ClassVar[str] = "uniform_mix"

    def __post_init__(self) -> None:
        """Refuse losses without a gap."""
        self._check_parts()
        self._require_gap(
            "a uniform mix has the gap 1/K with the smooth hinge and with the logistic loss "
            "up to base 2; use base=2.0, or the GapOptimal decoder below base 4",
        )

    @property
    def numerical_rate_floor(self) -> float | None:
        """For the base-2 logistic loss: 4 ln(2)^2 / K from three classes on."""
        classes = self.loss.task.dim
        return self._found(0.9203 if classes <= 2 else 4.0 * math.log(2.0) ** 2 / classes)

    @property
    def params(self) -> tuple[float, ...]:
        """Return the factor of the values over the family's own loss."""
        return (self.loss.unit,)
