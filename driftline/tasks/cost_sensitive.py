r"""Classes whose mistakes cost differently, with predictions of another kind allowed.

With costs :math:`C \in \mathbb R^{K \times N}`, every row of which has a 0,

.. math:: \rho(y) = e_y, \qquad \ell^\rho(\hat y) = C e_{\hat y}, \qquad c = 0.

Asymmetric costs, classes in a hierarchy and the option to reject are all of this kind.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from driftline.errors import InputError
from driftline.tasks.finite import Finite
from driftline.tasks.numbers import real_numbers
from driftline.typing import Json

__all__ = ["CostSensitive"]


class CostSensitive(Finite):
    """Labels ``0 .. K-1`` and predictions ``0 .. N-1`` at the costs of a K x N matrix.

    >>> task = CostSensitive([[0, 1, 0.3], [5, 0, 0.3]])  # the third prediction: "not sure"
    >>> task.loss(prediction=0, label=1), task.loss(prediction=2, label=1)
    (5.0, 0.3)
    >>> task.best_prediction(np.array([0.9, 0.1]))
    2
    """

    _made_from: ClassVar[tuple[str, ...]] = ("costs",)

    def __init__(self, costs: Sequence[Sequence[float]]):
        matrix = real_numbers(costs, "costs")
        if matrix.ndim != 2 or min(matrix.shape) < 1:
            raise InputError(f"costs must be a matrix, but have shape {matrix.shape}")
        if not np.isfinite(matrix).all():
            raise InputError("costs must be finite, but one is not")
        lowest = matrix.min(axis=1)
        if lowest.any():
            row = int(np.flatnonzero(lowest)[0])
            raise InputError(
                f"the least cost of every label must be 0, but that of row {row} is {lowest[row]}"
            )
        super().__init__(np.eye(len(matrix)), matrix.T, np.zeros(len(matrix)))

    def __repr__(self) -> str:
        """Name the costs."""
        return f"CostSensitive(costs={tuple(map(tuple, self.loss_matrix.tolist()))})"

    def config(self) -> Json:
        """Return the costs as plain data."""
        return {"type": self._part_name(), "costs": self.loss_matrix.tolist()}
