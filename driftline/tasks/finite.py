r"""Any finite sets of labels and predictions, given by their encodings.

.. math:: \ell(\hat y, y) = \langle \rho_y, \ell^\rho_{\hat y} \rangle + c_y
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from driftline.errors import InputError
from driftline.kernels import DRAW, ENCODE, ENCODE_LOSS, kernel
from driftline.polytopes import Hull, Polytope, Simplex
from driftline.tasks.base import Distribution, Guess, Task, TaskKernels, draw_atom
from driftline.tasks.geometry import Geometry
from driftline.tasks.many import Many
from driftline.tasks.numbers import real_numbers
from driftline.tasks.plurality import Plurality
from driftline.tasks.spaces import Classes
from driftline.typing import CheckedLabels, Label, Prediction

__all__ = ["Finite"]


@kernel(ENCODE)
def encode(label, params, target):
    """Write the row of a label; the first parameter is how many there are."""
    K, d = int(params[0]), target.size
    row = params[1 + label[0] * d :]
    for i in range(d):
        target[i] = row[i]
    return params[1 + K * d + label[0]]


@kernel(ENCODE_LOSS)
def encode_loss(prediction, params, out):
    """Write the row of a prediction, which stand behind the offsets of labels."""
    K, d = int(params[0]), out.size
    row = params[1 + K * (d + 1) + prediction[0] * d :]
    for i in range(d):
        out[i] = row[i]


@kernel(DRAW)
def draw(mean, params, uniforms, scratch, prediction, encoded):
    """Walk along the chances of predictions, which are in the scratch space."""
    K, d, below = int(params[0]), mean.size, 0.0
    predictions = (params.size - 1 - K * (d + 1)) // d
    for j in range(predictions):
        if scratch[j] > 0.0:
            prediction[0] = j  # kept if rounding leaves the sum short of 1
            below += scratch[j]
            if uniforms[0] < below:
                break
    row = params[1 + K * (d + 1) + prediction[0] * d :]
    for i in range(d):
        encoded[i] = row[i]


class FiniteGeometry(Geometry):
    """Labels and predictions as the rows of matrices."""

    @property
    def loss_matrix(self) -> np.ndarray:
        """The loss of every label (row) and prediction (column)."""
        return self.task.loss_matrix

    def top_label(self, theta: np.ndarray) -> int:
        """Return the label that has the highest score, which is not a prediction."""
        return int(np.argmax(self.task.label_matrix @ theta))


class ManyFinite(Plurality):
    """Many predictions at once, whose losses are entries of a matrix."""

    def losses(self, rows: np.ndarray, labels: CheckedLabels) -> np.ndarray:
        """Return the entries of the loss matrix; refuse rows that are not predictions."""
        self._refuse_wide(rows)
        known = self.task.predictions.check_all(rows[:, 0])
        return self.task.loss_matrix[np.asarray(labels)[:, 0], known[:, 0]]


@dataclass(frozen=True)
class Finite(Task):
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

    kernels: ClassVar[TaskKernels] = TaskKernels(encode, encode_loss, draw)
    kind: ClassVar[str] = "costs"
    _geometry: ClassVar[type[Geometry]] = FiniteGeometry
    _many: ClassVar[type[Many]] = ManyFinite

    def __post_init__(self) -> None:
        """Refuse matrices of other shapes, and losses that are negative or never 0."""
        labels = real_numbers(self.encodings, "encodings")
        predictions = real_numbers(self.loss_encodings, "loss encodings")
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
        given = -least if self.offsets is None else real_numbers(self.offsets, "offsets")
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

    def params(self, size: int) -> tuple[float, ...]:
        """Return how many labels there are, their rows, their offsets, and rows of predictions."""
        labels, predictions = self.label_matrix.ravel(), self.prediction_matrix.ravel()
        return (float(len(self.label_matrix)), *labels, *self.offsets, *predictions)

    def _scratch(self, size: int) -> int:
        """Return room for the chances of predictions."""
        return len(self.prediction_matrix)

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
    def labels(self) -> Classes:
        """A number for every row of the encodings."""
        return Classes(len(self.label_matrix))

    @cached_property
    def predictions(self) -> Classes:
        """A number for every row of the loss encodings."""
        return Classes(len(self.prediction_matrix), "prediction")

    @property
    def largest_loss(self) -> float:
        """The largest entry of the loss matrix."""
        return float(self.loss_matrix.max())

    @property
    def guess(self) -> Guess:
        """A uniform guess or a fixed prediction, whichever costs less at worst."""
        losses = self.loss_matrix
        uniform, fixed = float(losses.mean(axis=1).max()), float(losses.max(axis=0).min())
        return Guess(uniform) if uniform <= fixed else Guess(fixed, "the safest choice")

    @cached_property
    def label_hull(self) -> Polytope:
        """The hull of the encodings: a simplex if they are unit vectors."""
        if np.array_equal(self.label_matrix, np.eye(self.dim)):
            return Simplex(self.dim)
        norms = (self.label_matrix**2).sum(axis=1)
        return Hull(self.dim, self._best_label, equal_norms=bool(np.ptp(norms) < 1e-12))

    def _best_label(self, direction: np.ndarray) -> np.ndarray:
        return self.label_matrix[np.argmax(self.label_matrix @ direction)]

    @property
    def dim(self) -> int:
        """The length of an encoding."""
        return self.label_matrix.shape[1]

    def loss(self, prediction: Prediction, label: Label) -> float:
        """Return the entry of the loss matrix."""
        row, column = self.labels.check(label)[0], self.predictions.check(prediction)[0]
        return float(self.loss_matrix[row, column])

    def best_prediction(self, mu: np.ndarray) -> int:
        """Return the prediction of least mean loss, the lowest of several."""
        return int(np.argmin(self.prediction_matrix @ np.asarray(mu)))

    def decompose(self, mean: np.ndarray) -> Distribution:
        """Return few predictions with this mean loss encoding."""
        from scipy.optimize import nnls

        system = np.vstack([self.prediction_matrix.T, np.ones(len(self.prediction_matrix))])
        weights, error = nnls(system, np.append(mean, 1.0))
        if error > 1e-8 * (1.0 + np.abs(mean).max()):
            raise InputError(f"no distribution over predictions has the mean encoding {mean}")
        return self.mixture(weights / weights.sum())

    def draw(self, mean: np.ndarray, uniforms: np.ndarray) -> Prediction:
        """Draw a prediction whose expected loss encoding is ``mean``."""
        return draw_atom(self.decompose(mean), uniforms[0])

    def mixture(self, chances: np.ndarray) -> Distribution:
        """Return predictions with these chances, as kernels have them."""
        atoms = np.flatnonzero(chances)
        return Distribution(atoms, chances[atoms])
