r"""A pairwise loss for rankings whose best order has a guarantee.

Sorting documents by score and then swapping neighbours that stand the wrong way round leads to
the best order, one swap for every misordered pair. A swap of gains :math:`g_i > g_j` at two
neighbouring ranks earns at most :math:`\delta (g_i - g_j)`, with :math:`\delta` the largest
difference of two neighbouring discounts. So with :math:`a_{ij} = \delta (g_i - g_j) / N(g)`

.. math:: \ell(\mathrm{sort}(\theta), y) \le \sum_{g_i > g_j} a_{ij} 1[\theta_i \le \theta_j]
   \le \sum_{g_i > g_j} a_{ij} \log_2 (1 + e^{\theta_j - \theta_i}) = L(\theta, y):

the target loss of the order by score never exceeds this convex loss.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from driftline.errors import InputError
from driftline.losses.base import Loss, LossKernels, check_scores
from driftline.losses.logistic import SELF_BOUND
from driftline.losses.pairwise_kernels import pairwise, pairwise_workspace
from driftline.tasks import RelevanceTask
from driftline.typing import Label

__all__ = ["PairwiseLogistic"]


@dataclass(frozen=True)
class PairwiseLogistic(Loss):
    r"""Base-2 logistic losses of all pairs of different gains, weighted by the cost of a swap.

    A relative of RankNet, made for :class:`~driftline.decoders.Argmax`, which sorts by score: its
    kappa is 1, so that twice this loss has a surrogate gap of 1/2, without randomness.

    The gradient is :math:`\sum a_{ij} \phi'_{ij} (e_j - e_i)`, hence
    :math:`\|g\|^2 \le \lambda \sum a_{ij} \phi_{ij}'^2` with :math:`\lambda` the largest eigenvalue
    of the Laplacian of the graph with weights :math:`a`. Since
    :math:`|g_i - g_j| = \int 1[s \text{ separates them}]\, ds`, this is a mean of Laplacians of
    complete bipartite graphs, whose largest eigenvalue is the number m of documents, so that
    :math:`\lambda \le \delta m / w_1`. A pair's loss has
    :math:`\phi'^2 \le 2 \cdot 0.2037\, \phi / \ln 2`. Together,
    :math:`M = 0.2037\, \delta m / (w_1 \ln 2)`; one relevant document attains it. It is stated for
    ``most`` documents, and larger queries are refused.

    >>> from driftline.tasks import NDCG
    >>> loss = PairwiseLogistic(NDCG(max_relevance=1))
    >>> loss.value_and_grad([0.0, 0.0], [1, 0])[0].__round__(4), loss.argmax_ratio
    (0.3691, 1.0)

    References
    ----------
    Burges et al. (2005), *Learning to rank using gradient descent*, for the unweighted loss.
    """

    task: RelevanceTask
    most: int = 100

    kernels: ClassVar[LossKernels] = LossKernels(pairwise)
    discounts_at: ClassVar[int] = 1

    #: A misordered pair costs the surrogate at least as much as the target.
    argmax_ratio: float | None = 1.0

    def __post_init__(self) -> None:
        """Refuse tasks without relevance grades, and too small a ``most``."""
        if not self.task.labels.graded:
            raise InputError(f"PairwiseLogistic takes NDCG or PrecisionAtK, not {self.task!r}")
        if self.argmax_ratio != 1.0:  # a fact, though written to files
            raise InputError(f"argmax_ratio of PairwiseLogistic is 1, not {self.argmax_ratio!r}")
        if int(self.most) != self.most or self.most < 2:
            raise InputError(f"there must be 2 documents or more, not {self.most!r}")
        if not self._swap(self.most) > 0.0:
            raise InputError(
                f"all orders of up to {self.most} documents earn the same under {self.task!r}, so "
                "that there is nothing to learn: give PairwiseLogistic a larger `most`"
            )

    def value_and_grad(self, theta: np.ndarray, label: Label) -> tuple[float, np.ndarray]:
        """Return the loss at scores ``theta`` and its gradient in them."""
        theta, target = check_scores(theta, self.task), self.task.encode(label)
        if target.size != theta.size:
            raise InputError(f"{theta.size} scores do not fit a label of {target.size} entries")
        self.check_size(theta.size)
        better, worse = np.nonzero(target[:, np.newaxis] > target)
        if not better.size:
            return 0.0, np.zeros(theta.size)
        weights = self._swap(theta.size) * (target[better] - target[worse]) / math.log(2.0)
        margins = theta[better] - theta[worse]
        pulls = weights * np.exp(-np.logaddexp(0.0, margins))
        grad = np.bincount(worse, pulls, theta.size) - np.bincount(better, pulls, theta.size)
        return float(weights @ np.logaddexp(0.0, -margins)), grad

    def check_size(self, size: int) -> None:
        """Refuse larger queries than the constant is stated for."""
        if size > self.most:
            raise InputError(
                f"a query has {size} documents, but the loss's constant is stated for "
                f"{self.most}: give PairwiseLogistic a larger `most` (auto has no such option, and "
                "takes 10,000, or twice as many as are chosen)"
            )

    def params(self, size: int) -> tuple[float, ...]:
        """Return the factor of the whole loss, and the discounts."""
        return (1.0, *self.task.discounts(size))

    def workspace(self, size: int) -> int:
        """Return room for an order, exponentials, and the sorting."""
        return pairwise_workspace(size)

    def _swap(self, size: int) -> float:
        """Return the largest difference of two neighbouring discounts."""
        discounts = self.task.discounts(size)
        return float((discounts[:-1] - discounts[1:]).max(initial=0.0))

    @property
    def self_bound(self) -> float:
        """M for up to ``most`` documents."""
        first = float(self.task.discounts(self.most)[0])
        return 0.5 * SELF_BOUND * self._swap(self.most) * self.most / (first * math.log(2.0))
