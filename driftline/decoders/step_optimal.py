"""The decoder that lets a Polyak rate take the largest steps."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from driftline.decoders.base import ValueDecoder
from driftline.kernels import MIX, Kernel, kernel, where
from driftline.losses import Loss

__all__ = ["StepOptimal"]


@kernel(MIX)
def step_optimal(values, squares, params, wrong):
    """Newton's method for sum (1 - L + eta/2 |g|^2)_+ = 1, from above.

    Iterates only decrease; an increase is rounding, and ends the search.
    """
    eta = np.inf
    while True:
        kept, loss, square = 0.0, 0.0, 0.0
        for k in range(values.size):
            inside = (eta == np.inf) | (1.0 - values[k] + 0.5 * eta * squares[k] > 0.0)
            kept += where(inside, 1.0, 0.0)
            loss += where(inside, values[k], 0.0)
            square += where(inside, squares[k], 0.0)
        root = 2.0 * (loss - (kept - 1.0)) / square
        root = where(root > 0.0, root, 0.0)
        if not (square > 0.0 and root < eta):
            break
        eta = root
    eta = where(eta == np.inf, 0.0, eta)
    for k in range(values.size):
        chance = values[k] - 0.5 * eta * squares[k]
        chance = where(chance > 0.0, chance, 0.0)
        wrong[k] = where(chance < 1.0, chance, 1.0)


@dataclass(frozen=True)
class StepOptimal(ValueDecoder):
    r"""Maximise the smallest admissible step over all labels.

    The largest :math:`\eta` with :math:`\sum_y (1 - L_y + \frac\eta2 \|g_y\|^2)_+ \le 1`
    leaves label y missed with probability :math:`\min(1, L_y - \frac\eta2 \|g_y\|^2)`, so
    that :math:`2 (L_y - \mathbb E \ell) / \|g_y\|^2 \ge \eta` whichever label is true.

    Its surrogate gap is 0 in the worst case (on confident scores risk and loss are nearly
    the same), and only the rate floor carries the theorem. The floor is at least that of
    any other decoder, since the smallest step is largest at every score; proved is that of
    :class:`~driftline.decoders.GapOptimal`.

    >>> from driftline.losses import Logistic
    >>> from driftline.tasks import Multiclass
    >>> decoder = StepOptimal(Logistic(Multiclass(100)))
    >>> round(decoder.rate_floor, 3), round(decoder.numerical_rate_floor, 3)
    (0.851, 0.961)
    """

    loss: Loss
    allow_no_gap: bool = False

    mix: ClassVar[Kernel] = step_optimal
    ratio_name: ClassVar[str] = "gap_optimal"

    def __post_init__(self) -> None:
        """Refuse losses without a floor."""
        self._check_parts()
        self._require_best_gap()

    @property
    def rate_floor(self) -> float:
        """At least the floor of the gap-optimal decoder."""
        return (
            0.0
            if self.loss_ratio is None
            else max(0.0, 1.0 - self.loss_ratio) / self.loss.self_bound
        )

    #: On confident scores risk and loss are nearly the same.
    surrogate_gap: ClassVar[float] = 0.0

    @property
    def numerical_rate_floor(self) -> float | None:
        """2 ln(2)^2 for the base-2 logistic loss (a tie of two), twice that with one score."""
        return self._found(2.0 * math.log(2.0) ** 2)
