"""The decoder with the largest surrogate gap that any decoder can have, at every score."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from driftline.decoders.base import Decoder, ValueDecoder, decode_by_values
from driftline.kernels import MIX, Kernel, kernel, where
from driftline.losses import Loss
from driftline.typing import Label

__all__ = ["GapOptimal"]


@kernel(MIX)
def gap_optimal(values, squares, params, wrong):
    """Newton's method for sum (1 - c L)_+ = 1, from below: the labels in it only get fewer."""
    c = 0.0
    while True:
        kept, total = 0.0, 0.0
        for k in range(values.size):
            inside = c * values[k] < 1.0
            kept += where(inside, 1.0, 0.0)
            total += where(inside, values[k], 0.0)
        root = (kept - 1.0) / total
        if not (total > 0.0 and root > c):
            break
        c = root
        if kept <= 2.0:  # one label alone would have c = 0
            break
    for k in range(values.size):
        chance = c * values[k]
        wrong[k] = where(chance < 1.0, chance, 1.0)


def least_ratio(losses: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return the distribution over predictions (columns) with the least ratio of losses to values.

    A linear program: the least c with expected losses at most c times the values.
    """
    from scipy.optimize import linprog

    labels, predictions = losses.shape
    result = linprog(
        np.r_[np.zeros(predictions), 1.0],
        A_ub=np.hstack([losses, -values[:, np.newaxis]]),
        b_ub=np.zeros(labels),
        A_eq=np.r_[np.ones(predictions), 0.0][np.newaxis],
        b_eq=[1.0],
    )
    weights = np.maximum(result.x[:-1], 0.0)
    return weights / weights.sum()


@dataclass(frozen=True)
class GapOptimal(ValueDecoder):
    r"""Minimise the largest ratio of risk to loss over all labels.

    The least c with a distribution :math:`\pi_y \ge 1 - c L_y` solves
    :math:`\sum_y (1 - c L_y)_+ = 1`; so :math:`c = \max_m (m-1) / \sum L` over the m
    smallest losses, and label y is missed with probability :math:`\min(1, c L_y)`.

    For the logistic loss in base b the surrogate gap is :math:`1 - \frac12 \log_2 b`, 1/2
    in base 2 for any number of classes: by the inequality of arithmetic and geometric means
    the m smallest losses sum to at least :math:`m \log_b m`, and
    :math:`(m-1) / (m \log_b m)` is largest at m = 2. Two classes tied at 1/2 show that no
    decoder does better. For the smooth hinge it is 1/K, attained at equal scores.

    For any other finite task the least c solves a linear program in every round. How large it
    gets is not known beforehand, so that such a pair is admitted only with
    ``allow_no_gap=True``.

    >>> import numpy as np
    >>> from driftline.losses import Logistic
    >>> from driftline.tasks import Multiclass
    >>> decoder = GapOptimal(Logistic(Multiclass(100)))
    >>> decoder.surrogate_gap, round(decoder.rate_floor, 3)
    (0.5, 0.851)
    >>> decoder.distribution(np.r_[0.0, 0.0, np.full(98, -50.0)])
    Distribution(atoms=array([0, 1]), weights=array([0.5, 0.5]))
    """

    loss: Loss
    allow_no_gap: bool = False

    mix: ClassVar[Kernel] = gap_optimal
    ratio_name: ClassVar[str] = "gap_optimal"

    def __post_init__(self) -> None:
        """Refuse losses without a gap."""
        if self.loss.task.geometry.loss_matrix is None:
            self._check_parts()
        self._require_best_gap()

    @property
    def kernel(self) -> Kernel | None:
        """The kernel for the 0-1 loss; any other finite loss takes a linear program."""
        return decode_by_values if self.loss.task.geometry.loss_matrix is None else None

    def mean_loss_encoding(self, theta: np.ndarray) -> np.ndarray:
        """Return the expected loss encoding of the prediction at scores ``theta``."""
        task: Any = self.loss.task
        if task.geometry.loss_matrix is None:
            return super().mean_loss_encoding(theta)
        return (
            least_ratio(task.geometry.loss_matrix, self.loss.values(theta)[0])
            @ task.prediction_matrix
        )

    def risk(self, theta: np.ndarray, label: Label) -> float:
        """Return the expected target loss at scores ``theta`` when ``label`` is true."""
        if self.loss.task.geometry.loss_matrix is not None:
            return Decoder.risk(self, theta, label)
        return super().risk(theta, label)

    @property
    def numerical_rate_floor(self) -> float | None:
        """0.9072 for the base-2 logistic loss, twice that with one score."""
        return self._found(0.9072)
