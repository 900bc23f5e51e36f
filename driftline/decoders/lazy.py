"""Predict the most probable label, and draw only where the runner-up is more probable than 1/4."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from driftline.decoders.base import ValueDecoder
from driftline.errors import NoGuaranteeError
from driftline.kernels import MIX, Kernel, kernel, where
from driftline.losses import Loss

__all__ = ["Lazy"]


@kernel(MIX)
def lazy(values, squares, params, wrong):
    """Miss each label with a multiple of its loss; the label of least loss gets the rest."""
    least, top = values[0], 0.0
    for k in range(1, values.size):
        top = where(values[k] < least, k, top)
        least = where(values[k] < least, values[k], least)
    given = 0.0
    for k in range(values.size):
        chance = params[0] * values[k]
        wrong[k] = where(chance < 1.0, chance, 1.0)
        given += where(top == k, 0.0, 1.0 - wrong[k])
    wrong[int(top)] = given


@dataclass(frozen=True)
class Lazy(ValueDecoder):
    r"""Give every label but the most probable one :math:`(1 - L_y/2)_+`, and that one the rest.

    L is the logistic loss in base 2, and the surrogate gap is 1/2 for any number of classes. Proof:
    a label with a chance has :math:`p_y > 1/4`, so there are at most three. On them
    :math:`1 + \frac12 \log_2 p_y` is concave in :math:`p_y` and grows with it, so that m of them
    add up to at most :math:`m (1 - \frac12 \log_2 m)`: 1, 1 and 0.62. The rest for the most
    probable label is thus :math:`(1 - L/2)_+` at least, and every label is missed with probability
    :math:`\min(1, L_y/2)` at most.

    - The prediction is deterministic where the second probability is at most 1/4.
    - :class:`~driftline.decoders.GapOptimal` gives :math:`(1 - c L_y)_+` with :math:`c \le 1/2`, so
      every label but the most probable one is at most as likely here as there.
    - The rate floor :math:`\alpha / M = 0.851` is attained for two classes of probability 0.2847
      and 0.7153; with one score it is 1.702.

    The rule depends on probabilities alone: in base b, or scaled, the ratio of risk to loss changes
    as the loss does.

    >>> import numpy as np
    >>> from driftline.losses import Logistic
    >>> from driftline.tasks import Multiclass
    >>> decoder = Lazy(Logistic(Multiclass(3)))
    >>> decoder.surrogate_gap, round(decoder.rate_floor, 3)
    (0.5, 0.851)
    >>> decoder.distribution(np.log([0.25, 0.25, 0.5]))
    Distribution(atoms=array([2]), weights=array([1.]))
    >>> decoder.distribution(np.log([0.2, 0.3, 0.5])).weights.round(3)
    array([0.132, 0.868])

    References
    ----------
    van der Hoeven (2020), *Exploiting the surrogate gap in online multiclass classification*.
    """

    loss: Loss

    mix: ClassVar[Kernel] = lazy
    ratio_name: ClassVar[str] = "gap_optimal"  # half the logarithm of the base, as there

    def __post_init__(self) -> None:
        """Refuse losses that are not of probabilities, and those with a gap below 1/2."""
        self._check_parts()
        if self.loss.nats is None:
            raise NoGuaranteeError(
                "Lazy compares probabilities, which are those of the logistic loss: use "
                f"dl.losses.Logistic, not {self.loss!r}"
            )
        self._require_half()

    @property
    def params(self) -> tuple[float, ...]:
        """The largest ratio of risk to loss, 1/2 in base 2."""
        assert self.loss_ratio is not None
        return (self.loss_ratio,)
