r"""Any finite sets of labels and predictions, given by their encodings.

.. math:: \ell(\hat y, y) = \langle \rho_y, \ell^\rho_{\hat y} \rangle + c_y
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from driftline.errors import InputError
from driftline.polytopes import Hull, Polytope, Simplex
from driftline.tasks.base import Distribution
from driftline.tasks.multiclass import check_class, check_classes
from driftline.tasks.plurality import PluralityTask
from driftline.typing import Label, Labels, Prediction

__all__ = ["Finite"]


@dataclass(frozen=True)
class Finite(PluralityTask):
    """Labels and predictions as rows of matrices.

    Parameters
    ----------
    encodings
        A row for every label.
    loss_encodings
        A row for every prediction, as long as those of the labels.
    offsets
        A number for every label; by default such that its least loss is 0.

    Examples
    --------
    >>> task = Finite([[1, 0], [0, 1]], [[0, 5], [1, 0], [0.3, 0.3]])
    >>> task.loss(prediction=0, label=1)
    5.0
    """

    encodings: npt.ArrayLike
    loss_encodings: npt.ArrayLike
    offsets: Any = None

    def __post_init__(self) -> None:
        """Refuse matrices of other shapes, and losses that are negative or never 0."""
        labels = np.array(self.encodings, dtype=np.float64)
        predictions = np.array(self.loss_encodings, dtype=np.float64)
        if labels.ndim != 2 or predictions.ndim != 2 or labels.shape[1] != predictions.shape[1]:
            raise InputError(
                "encodings must be two matrices with rows of the same length, but their shapes "
                f"are {labels.shape} and {predictions.shape}"
            )
        if len(labels) < 2:
            raise InputError(f"a task needs 2 labels or more, not {len(labels)}")
        if not (np.isfinite(labels).all() and np.isfinite(predictions).all()):
            raise InputError("encodings must be finite, but an entry is not")
        least = (labels @ predictions.T).min(axis=1)
        given = -least if self.offsets is None else np.array(self.offsets, dtype=np.float64)
        if given.shape != (len(labels),):
            raise InputError(f"{len(labels)} labels need as many offsets, not {given.shape}")
        wrong = np.abs(least + given) > 1e-9 * (1.0 + np.abs(least))
        if wrong.any():
            row = int(np.argmax(wrong))
            raise InputError(
                f"the least loss of every label must be 0, but that of label {row} is "
                f"{least[row] + given[row]:g}"
            )
        for name, value in (("encodings", labels), ("loss_encodings", predictions)):
            object.__setattr__(self, name, tuple(map(tuple, value.tolist())))
        object.__setattr__(self, "offsets", tuple(given.tolist()))

    @cached_property
    def label_matrix(self) -> np.ndarray:
        """The encodings of labels."""
        return np.array(self.encodings)

    @cached_property
    def prediction_matrix(self) -> np.ndarray:
        """The loss encodings of predictions."""
        return np.array(self.loss_encodings)

    @cached_property
    def loss_matrix(self) -> np.ndarray:
        """The loss of every label (row) and prediction (column)."""
        losses = self.label_matrix @ self.prediction_matrix.T + np.array(self.offsets)[:, None]
        return np.maximum(losses, 0.0)

    @cached_property
    def label_hull(self) -> Polytope:
        """The hull of the encodings: a simplex if they are unit vectors."""
        if np.array_equal(self.label_matrix, np.eye(self.dim)):
            return Simplex(self.dim)
        norms = (self.label_matrix**2).sum(axis=1)
        return Hull(self.dim, self._best_label, equal_norms=bool(np.ptp(norms) < 1e-12))

    def loss_hull_of(self, theta: np.ndarray) -> Hull:
        """Return the hull of the predictions' loss encodings."""
        return Hull(
            self.dim, lambda v: self.prediction_matrix[np.argmax(self.prediction_matrix @ v)]
        )

    def _best_label(self, direction: np.ndarray) -> np.ndarray:
        return self.label_matrix[np.argmax(self.label_matrix @ direction)]

    @property
    def dim(self) -> int:
        """The length of an encoding."""
        return self.label_matrix.shape[1]

    @property
    def all_labels(self) -> range:
        """All labels."""
        return range(len(self.label_matrix))

    @property
    def largest_loss(self) -> float:
        """The largest entry of the loss matrix."""
        return float(self.loss_matrix.max())

    @property
    def guess_loss(self) -> float:
        """The least worst-case loss of a uniform guess or of a fixed prediction."""
        losses = self.loss_matrix
        return float(min(losses.mean(axis=1).max(), losses.max(axis=0).min()))

    def check_label(self, label: Label) -> int:
        """Return the label as an integer."""
        return int(check_class(label, len(self.label_matrix), "label")[0])

    def check_labels(self, labels: Labels) -> np.ndarray:
        """Return the labels as a vector of integers."""
        return check_classes(labels, len(self.label_matrix))[:, 0]

    def encode(self, label: Label) -> np.ndarray:
        """Return the row of a label."""
        return self.label_matrix[self.check_label(label)].copy()

    def encode_loss(self, prediction: Prediction) -> np.ndarray:
        """Return the row of a prediction."""
        row = check_class(prediction, len(self.prediction_matrix), "prediction")[0]
        return self.prediction_matrix[row].copy()

    def offset(self, label: Label) -> float:
        """Return the offset of a label."""
        return self.offsets[self.check_label(label)]

    def loss(self, prediction: Prediction, label: Label) -> float:
        """Return the entry of the loss matrix."""
        row = check_class(prediction, len(self.prediction_matrix), "prediction")[0]
        return float(self.loss_matrix[self.check_label(label), row])

    def best_prediction(self, mu: np.ndarray) -> int:
        """Return the prediction of least mean loss, the lowest of several."""
        return int(np.argmin(self.prediction_matrix @ np.asarray(mu)))

    def top_label(self, theta: np.ndarray) -> int:
        """Return the label that has the highest score, which is not a prediction."""
        return int(np.argmax(self.label_matrix @ theta))

    def decompose(self, mean: np.ndarray) -> Distribution:
        """Return few predictions with this mean loss encoding."""
        from scipy.optimize import nnls

        system = np.vstack([self.prediction_matrix.T, np.ones(len(self.prediction_matrix))])
        weights, error = nnls(system, np.append(mean, 1.0))
        if error > 1e-8 * (1.0 + np.abs(mean).max()):
            raise InputError(f"no distribution over predictions has the mean encoding {mean}")
        atoms = np.flatnonzero(weights)
        return Distribution(atoms, weights[atoms] / weights.sum())
