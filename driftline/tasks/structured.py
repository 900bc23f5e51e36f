r"""Tasks whose predictions are labels, encoded as vertices of a polytope.

For all of them the loss encoding is a multiple of the label's own encoding,
:math:`\ell^\rho(\hat y) = a \rho(\hat y)`, and the offset is a constant. So drawing a
prediction with a given mean loss encoding is drawing a vertex with a given mean.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from driftline.errors import InputError
from driftline.parts import fact
from driftline.tasks.base import Distribution, Task
from driftline.tasks.many import Many
from driftline.tasks.vertices import ManyVertices
from driftline.typing import Label, Prediction

__all__ = ["StructuredTask"]


class StructuredTask(Task):
    """Base of tasks that live on a polytope.

    They state their ``label_hull``, how to convert labels to vertices and back, the factor
    ``loss_factor`` (a above) and the constant ``constant_offset``.
    """

    _many: ClassVar[type[Many]] = ManyVertices

    @fact
    def loss_factor(self) -> float:
        """The factor of the loss encoding."""
        raise InputError(f"{type(self).__name__} does not say its `loss_factor`")

    @fact
    def constant_offset(self) -> float:
        """The offset, by which the loss of equal labels is 0."""
        raise InputError(f"{type(self).__name__} does not say its `constant_offset`")

    @property
    def dim(self) -> int:
        """One score per coordinate of the encoding."""
        return self.label_hull.dim

    def from_vertex(self, vertex: np.ndarray) -> Prediction:
        """Return the label that a vertex encodes."""
        raise InputError(f"{type(self).__name__} does not define from_vertex")

    @property
    def loss_slope(self) -> float:
        """Gamma in the Euclidean norm."""
        return self._euclidean()[0]

    @property
    def separation(self) -> float:
        """Nu in the Euclidean norm."""
        return self._euclidean()[1]

    def _euclidean(self) -> tuple[float, float]:
        constants = self.constants("l2")
        if constants is None:
            raise InputError(f"{type(self).__name__} does not know its constants")
        return constants

    def offset(self, label: Label) -> float:
        """Return the constant."""
        return self.constant_offset

    def encode_loss(self, prediction: Prediction) -> np.ndarray:
        """Return the multiple of the prediction's encoding."""
        return self.loss_factor * self.encode(prediction)

    def best_prediction(self, mu: np.ndarray) -> Prediction:
        """Return the label of the best vertex in the direction of the mean encoding."""
        return self.from_vertex(self.label_hull.maximize(mu))

    def decompose(self, mean: np.ndarray) -> Distribution:
        """Return a mixture of labels with this mean loss encoding."""
        mixture = self.label_hull.decompose(np.asarray(mean) / self.loss_factor)
        atoms = np.array([self.from_vertex(vertex) for vertex in mixture.vertices])
        return Distribution(atoms, mixture.weights)
