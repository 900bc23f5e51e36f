r"""Classes whose mistakes cost differently, with predictions of another kind allowed.

With costs :math:`C \in \mathbb R^{K \times N}`, every row of which has a 0,

.. math:: \rho(y) = e_y, \qquad \ell^\rho(\hat y) = C e_{\hat y}, \qquad c = 0.

Asymmetric costs, classes in a hierarchy and the option to reject are all of this kind.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from driftline.errors import InputError
from driftline.tasks.base import Distribution, Task
from driftline.tasks.multiclass import check_class, check_classes

__all__ = ["CostSensitive"]


@dataclass(frozen=True)
class CostSensitive(Task):
    """Labels ``0 .. K-1`` and predictions ``0 .. N-1`` at the costs of a K x N matrix.

    >>> task = CostSensitive([[0, 1, 0.3], [5, 0, 0.3]])  # the third prediction: "not sure"
    >>> task.loss(prediction=0, label=1), task.loss(prediction=2, label=1)
    (5.0, 0.3)
    >>> task.best_prediction(np.array([0.9, 0.1]))
    2
    """

    costs: Sequence[Sequence[float]]

    def __post_init__(self) -> None:
        """Refuse what is not a matrix of costs whose rows have a 0."""
        matrix = np.array(self.costs, dtype=np.float64)
        if matrix.ndim != 2 or min(matrix.shape) < 1:
            raise InputError(f"costs must be a matrix, but have shape {matrix.shape}")
        if matrix.shape[0] < 2:
            raise InputError("a cost matrix needs a row for each of 2 labels or more, not 1")
        if not np.isfinite(matrix).all():
            raise InputError("costs must be finite, but one is not")
        lowest = matrix.min(axis=1)
        if lowest.any():
            row = int(np.flatnonzero(lowest)[0])
            raise InputError(
                f"the least cost of every label must be 0, but that of row {row} is {lowest[row]}"
            )
        object.__setattr__(self, "costs", tuple(map(tuple, matrix.tolist())))

    @cached_property
    def matrix(self) -> np.ndarray:
        """The costs as an array."""
        return np.array(self.costs)

    @property
    def dim(self) -> int:
        """One score per label."""
        return len(self.costs)

    @property
    def labels(self) -> range:
        """All labels."""
        return range(self.dim)

    @property
    def largest_loss(self) -> float:
        """The largest cost."""
        return float(self.matrix.max())

    @property
    def guess_loss(self) -> float:
        """The least worst-case expected loss that a fixed prediction or a uniform guess has."""
        return float(min(self.matrix.mean(axis=1).max(), self.matrix.max(axis=0).min()))

    def check_label(self, label: Any) -> int:
        """Return the label as an integer."""
        return int(check_class(label, self.dim, "label")[0])

    def check_labels(self, labels: Any) -> np.ndarray:
        """Return the labels as a vector of integers."""
        return check_classes(labels, self.dim)[:, 0]

    def encode(self, label: Any) -> np.ndarray:
        """Return the indicator of the label."""
        target = np.zeros(self.dim)
        target[self.check_label(label)] = 1.0
        return target

    def encode_loss(self, prediction: Any) -> np.ndarray:
        """Return the costs of a prediction for every label."""
        column = check_class(prediction, self.matrix.shape[1], "prediction")[0]
        return self.matrix[:, column].copy()

    def best_prediction(self, mu: np.ndarray) -> int:
        """Return the prediction of least mean cost, the lowest of several."""
        return int(np.argmin(np.asarray(mu) @ self.matrix))

    def decompose(self, mean: np.ndarray) -> Distribution:
        """Return at most K + 1 predictions whose mean costs are ``mean``."""
        from scipy.optimize import nnls

        system = np.vstack([self.matrix, np.ones(self.matrix.shape[1])])
        weights, error = nnls(system, np.append(mean, 1.0))
        if error > 1e-8 * max(1.0, self.largest_loss):
            raise InputError(f"no distribution over predictions has the mean costs {mean}")
        atoms = np.flatnonzero(weights)
        return Distribution(atoms, weights[atoms] / weights.sum())
