r"""The loss of a conditional random field: minus the log-probability of the true sequence.

.. math::

    L(\theta, y) = \frac{\ln \sum_{y'} e^{\langle \theta, \rho(y') \rangle}
    - \langle \theta, \rho(y) \rangle}{\ln b}, \qquad
    \nabla L(\theta, y) = \frac{\mu(\theta) - \rho(y)}{\ln b},

with :math:`\mu` the marginals of the Gibbs distribution. Each of the n positions and n - 1 pairs of
neighbours has marginals that add up to 1, and that of the label is at least the probability p of
the whole sequence; so each adds at most :math:`2 (1 - p)^2` to :math:`\|\mu - \rho(y)\|^2`. Since
:math:`(1 - p)^2 \le -0.4073 \ln p`, :math:`\|g\|^2 \le 2 M (2n-1) L` with
:math:`M = 0.4073 / \ln b`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from driftline.errors import InputError
from driftline.kernels import LOSS, kernel
from driftline.losses.base import Loss, LossKernels, check_scores
from driftline.losses.fenchel_young import FenchelYoung
from driftline.losses.fenchel_young_kernels import positive
from driftline.losses.logistic import SELF_BOUND
from driftline.polytopes.chain_kernels import folded_length, length_of, marginals, marginals_room
from driftline.polytopes.positions import softmaxes
from driftline.regularizers import Entropy
from driftline.tasks import Task
from driftline.typing import Label

__all__ = ["CRF"]


@kernel(LOSS)
def crf(theta, target, params, work, grad):
    """Write marginals minus the label; scores and label are folded, see `Geometry.folded`.

    Parameters are one over ln b, how many tags there are, and 1 with transitions. The workspace
    begins with the marginals, for the decoder.
    """
    tags, transitions, mu = int(params[1]), params[2] > 0.0, work[: theta.size]
    if transitions:
        n = length_of(theta.size, tags, transitions)
        value = marginals(theta, target, n, tags, work[theta.size :], mu)
    else:
        value = softmaxes(theta, target, 1.0, tags, mu)
    for i in range(grad.size):
        grad[i] = params[0] * (mu[i] - target[i])
    return params[0] * positive(value)


@dataclass(frozen=True)
class CRF(Loss):
    """Negative log-likelihood of tag sequences along a chain, or of classes or tags.

    For classes this is the logistic loss, for tags the sum of theirs with twice the scores.

    In base 2, the default, the loss is never below the Hamming loss of the best sequence: a
    sequence that is not the best has probability 1/2 at most.

    >>> from driftline.tasks import Sequence
    >>> loss = CRF(Sequence(2))
    >>> value, _ = loss.value_and_grad(np.zeros(14), label=[0, 1, 1])
    >>> value
    3.0

    References
    ----------
    Lafferty, McCallum and Pereira (2001), *Conditional random fields*.
    """

    task: Task
    base: float = 2.0

    _kernels: ClassVar[dict[str, LossKernels]] = {"chain": LossKernels(crf)}

    def __post_init__(self) -> None:
        """Refuse a base that has no logarithm, and tasks of another kind."""
        geometry = self.task.geometry
        if not (geometry.part_size or geometry.tags or geometry.classes == self.task.dim):
            raise InputError(
                f"CRF takes a Sequence, Multiclass or Multilabel task, not {self.task!r}"
            )
        if not (math.isfinite(self.base) and self.base > 1.0):
            raise InputError(f"the base of a logarithm must exceed 1, but is {self.base}")

    # -- the compiled side

    def params(self, size: int) -> tuple[float, ...]:
        """Return the factor of the loss, the number of tags, and whether there are transitions."""
        task: Any = self.task
        return (1.0 / math.log(self.base), float(task.tags), float(task.transitions))

    def workspace(self, size: int) -> int:
        """Return room for marginals, and for sums over paths where there are transitions."""
        task: Any = self.task
        if not task.transitions:
            return size
        return size + marginals_room(folded_length(size, task.tags, True), task.tags)

    # -- in Python

    def value_and_grad(self, theta: np.ndarray, label: Label) -> tuple[float, np.ndarray]:
        """Return the loss at scores ``theta`` and its gradient in them."""
        if self._entropic is not None:
            value, grad = self._entropic.value_and_grad(theta, label)
            return value / math.log(self.base), grad / math.log(self.base)
        theta = check_scores(theta, self.task)
        target = self.task.encode(label)
        if target.size != theta.size:
            raise InputError(f"{theta.size} scores do not fit a label of {len(label)} tags")
        normaliser, marginals = self.task.geometry.hull_of(theta).marginals(theta)
        value = max(0.0, normaliser - float(theta @ target))
        return value / math.log(self.base), (marginals - target) / math.log(self.base)

    @cached_property
    def _entropic(self) -> FenchelYoung | None:
        """The same loss as that of the entropy, where there is no chain."""
        if self.task.geometry.part_size:
            return None
        return FenchelYoung(self.task, Entropy())

    @property
    def self_bound(self) -> float:
        """M for an encoding of norm 1; the length is part of the inputs' norm."""
        if self._entropic is not None:
            return self._entropic.self_bound / math.log(self.base)
        return SELF_BOUND / math.log(self.base)

    @property
    def argmax_ratio(self) -> float:
        """A label that is not the best has probability 1/2 at most, and costs 1 at most."""
        if self._entropic is not None and self._entropic.argmax_ratio is not None:
            return self._entropic.argmax_ratio * math.log(self.base)
        return math.log2(self.base)

    @property
    def marginal_ratio(self) -> float:
        """Half the logarithm of the base, for sequences of any length."""
        return 0.5 * math.log2(self.base)
