r"""The usual ranking losses, for comparison; they have no guarantee here.

With scores :math:`\theta` and grades y of d documents, pointwise
:math:`\frac1{2d} \sum_i (\theta_i - y_i)^2`, and pairwise the mean of
:math:`\ln(1 + e^{\theta_j - \theta_i})` over all pairs with :math:`y_i > y_j`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from driftline.losses import Loss
from driftline.losses.base import check_scores
from driftline.tasks import RelevanceTask
from driftline.typing import Label

__all__ = ["PointwiseSquares", "RankNet"]


@dataclass(frozen=True)
class PointwiseSquares(Loss):
    """Half the mean of squared differences between scores and grades.

    >>> from driftline.tasks import NDCG
    >>> PointwiseSquares(NDCG(4)).value_and_grad([1.0, 0.0], [3, 0])
    (1.0, array([-1.,  0.]))
    """

    task: RelevanceTask

    self_bound: ClassVar[float] = 1.0

    def value_and_grad(self, theta: np.ndarray, label: Label) -> tuple[float, np.ndarray]:
        """Return the loss at scores ``theta`` and its gradient in them."""
        rest = check_scores(theta, self.task) - self.task.labels.check(label)
        return 0.5 * float(rest @ rest) / rest.size, rest / rest.size


@dataclass(frozen=True)
class RankNet(Loss):
    """The mean logistic loss of all pairs of different grades, 0 where there is none.

    >>> from driftline.tasks import NDCG
    >>> value, grad = RankNet(NDCG(4)).value_and_grad([0.0, 0.0, 0.0], [3, 0, 0])
    >>> value.__round__(4), grad
    (0.6931, array([-0.5 ,  0.25,  0.25]))

    References
    ----------
    Burges et al. (2005), *Learning to rank using gradient descent*.
    """

    task: RelevanceTask

    self_bound: ClassVar[float] = 0.5

    def value_and_grad(self, theta: np.ndarray, label: Label) -> tuple[float, np.ndarray]:
        """Return the loss at scores ``theta`` and its gradient in them."""
        theta, grades = check_scores(theta, self.task), self.task.labels.check(label)
        better, worse = np.nonzero(grades[:, np.newaxis] > grades)
        if not better.size:
            return 0.0, np.zeros(theta.size)
        margins = theta[better] - theta[worse]
        pulls = np.exp(-np.logaddexp(0.0, margins)) / better.size
        grad = np.bincount(worse, pulls, theta.size) - np.bincount(better, pulls, theta.size)
        return float(np.logaddexp(0.0, -margins).mean()), grad
