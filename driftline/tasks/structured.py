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
from driftline.polytopes import Affine, Polytope
from driftline.tasks.base import Distribution, Task, whole_numbers
from driftline.tasks.vertices import Vertices
from driftline.typing import CheckedLabels, Label, Labels, Prediction

__all__ = ["StructuredTask", "VectorTask", "refuse_first"]


class StructuredTask(Task):
    """Base of tasks that live on a polytope.

    They state their ``label_hull``, how to convert labels to vertices and back, the factor
    ``loss_factor`` (a above) and the constant ``constant_offset``.
    """

    predicts_top: ClassVar[bool] = True

    @fact
    def loss_factor(self) -> float:
        """The factor of the loss encoding."""
        raise InputError(f"{type(self).__name__} does not say its `loss_factor`")

    @fact
    def constant_offset(self) -> float:
        """The offset, by which the loss of equal labels is 0."""
        raise InputError(f"{type(self).__name__} does not say its `constant_offset`")

    @property
    def vertex_loss(self) -> tuple[float, float]:
        """The factor, and no shift."""
        return self.loss_factor, 0.0

    @property
    def dim(self) -> int:
        """One score per coordinate of the encoding."""
        return self.label_hull.dim

    def loss_hull_of(self, theta: np.ndarray) -> Polytope:
        """Return the label hull, stretched by the factor."""
        return Affine(self.label_hull, self.loss_factor)

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

    def label(self, checked: Label) -> Label:
        """Return a label as users give it."""
        return self.prediction(checked)

    def offset(self, label: Label) -> float:
        """Return the constant."""
        return self.constant_offset

    def encode_loss(self, prediction: Prediction) -> np.ndarray:
        """Return the multiple of the prediction's encoding."""
        return self.loss_of_mean(self.encode(prediction))

    def loss_of_mean(self, mean: np.ndarray) -> np.ndarray:
        """Return the multiple of a mean encoding."""
        return self.loss_factor * mean

    def best_prediction(self, mu: np.ndarray) -> Prediction:
        """Return the label of the best vertex in the direction of the mean encoding."""
        return self.from_vertex(self.label_hull.maximize(mu))

    def losses(self, rows: np.ndarray, labels: CheckedLabels) -> np.ndarray:
        """Return the target losses of many predictions; refuse rows that are not predictions."""
        found = Vertices.of(self)
        if found is None:
            return super().losses(rows, labels)
        known = np.asarray(self.check_labels(self.predictions(rows)))
        return found.losses(known, np.ascontiguousarray(labels, dtype=np.int64))

    def top_rows(self, scores: np.ndarray) -> np.ndarray:
        """Return the labels of the best vertices, a row of integers for each row of scores."""
        found = Vertices.of(self)
        if found is None or not np.isfinite(scores).all():
            return super().top_rows(scores)
        return found.best(scores, self.prediction_size)

    def average_rows(self, predictions: list[np.ndarray], weights: np.ndarray) -> np.ndarray:
        """Return the best labels for mean encodings of the members' labels, a row each."""
        found = Vertices.of(self)
        if found is None:
            return super().average_rows(predictions, weights)
        return found.average(predictions, weights)

    def decompose(self, mean: np.ndarray) -> Distribution:
        """Return a mixture of labels with this mean loss encoding."""
        mixture = self.label_hull.decompose(np.asarray(mean) / self.loss_factor)
        atoms = np.array([self.from_vertex(vertex) for vertex in mixture.vertices])
        return Distribution(atoms, mixture.weights)

    def draw(self, mean: np.ndarray, uniforms: np.ndarray) -> Prediction:
        """Draw a label with this mean loss encoding."""
        vertex = self.label_hull.sample(np.asarray(mean) / self.loss_factor, uniforms)
        return self.from_vertex(vertex)


class VectorTask(StructuredTask):
    """Base of structured tasks whose labels are vectors of whole numbers."""

    #: What the entries of a label are, for messages.
    entries: ClassVar[str] = "numbers"

    @property
    def label_size(self) -> int:
        """The length of a label."""
        return self.dim

    @property
    def prediction_size(self) -> int:
        """The length of a prediction."""
        return self.label_size

    def prediction(self, row: np.ndarray) -> np.ndarray:
        """Return a vector, even if it has length 1."""
        return row.copy()

    def predictions(self, rows: np.ndarray) -> np.ndarray:
        """Return a row for every prediction."""
        return rows

    def check_label(self, label: Label) -> np.ndarray:
        """Return one label as a vector."""
        return self.check_labels(np.asarray(label)[np.newaxis])[0]

    def check_labels(self, labels: Labels) -> np.ndarray:
        """Return labels as rows."""
        rows = whole_numbers(labels, "labels")
        if rows.ndim != 2 or rows.shape[1] != self.label_size:
            raise InputError(
                f"labels must be rows of {self.label_size} {self.entries}, but their shape is "
                f"{rows.shape}"
            )
        self.check_rows(rows)
        return np.ascontiguousarray(rows)

    def check_rows(self, rows: np.ndarray) -> None:
        """Refuse rows that are not labels."""


def refuse_first(wrong: np.ndarray, rows: np.ndarray, expected: str) -> None:
    """Raise for the first row that is wrong, if there is one."""
    if wrong.any():
        first = int(np.argmax(wrong))
        raise InputError(f"label {rows[first].tolist()} in row {first} is not {expected}")
