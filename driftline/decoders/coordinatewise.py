"""The gap-optimal decoder of each tag by itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from driftline.decoders.base import Decoder
from driftline.errors import NoGuaranteeError
from driftline.kernels import DECODE, Kernel, kernel, where
from driftline.losses import Logistic, Loss

__all__ = ["Coordinatewise"]


@kernel(DECODE)
def coordinatewise(theta, target, offset, params, work, values, loss_params, mix, scratch, mean):
    """Miss the likelier value of a tag with probability L / (L + L'), its share of the losses."""
    d = theta.size
    risk = 0.0
    for i in range(d):
        sign = where(theta[i] > 0.0, 1.0, -1.0)
        likely = work[d + i]
        miss = likely / (2.0 * likely + abs(theta[i]))
        mean[i] = -0.5 * sign * (1.0 - 2.0 * miss) / d
        risk += where(sign == target[i], miss, 1.0 - miss)
    return risk / d


@dataclass(frozen=True)
class Coordinatewise(Decoder):
    r"""The gap-optimal decoder of two labels, for each tag of a multilabel task.

    Tag i is missed with probability :math:`L_i(y) / (L_i(0) + L_i(1))`. In base 2 the two
    losses add up to 2 at least, since :math:`p (1-p) \le 1/4`; so the expected Hamming loss is
    at most half the logistic loss, whatever the number of tags: a surrogate gap of 1/2, and of
    :math:`1 - \frac12 \log_2 b` in base b.

    >>> from driftline.tasks import Multilabel
    >>> decoder = Coordinatewise(Logistic(Multilabel(159)))
    >>> decoder.surrogate_gap
    0.5
    """

    loss: Loss
    allow_no_gap: bool = False

    kernel: ClassVar[Kernel] = coordinatewise
    ratio_name: ClassVar[str] = "gap_optimal"

    def __post_init__(self) -> None:
        """Refuse other losses and bases without a gap."""
        family = self.loss.family
        if not (isinstance(family, Logistic) and family.task.geometry.tags):
            raise NoGuaranteeError(
                f"Coordinatewise is made for Logistic(Multilabel(...)), not for {self.loss!r}"
            )
        self._require_gap("the base must be below 4")
