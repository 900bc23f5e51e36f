r"""What every task offers.

A task splits its target loss as

.. math:: \ell(\hat y, y) = \langle \rho(y), \ell^\rho(\hat y) \rangle + c(y),

with :math:`\rho` = ``encode``, :math:`\ell^\rho` = ``encode_loss`` and :math:`c` =
``offset`` (Cao et al., 2025). So the expected loss of a random prediction depends on its
distribution through one vector only, the mean of ``encode_loss``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from driftline.errors import InputError
from driftline.inputs import Layout, OneVector
from driftline.kernels import Kernel
from driftline.parts import Part, fact
from driftline.polytopes import Hull, Polytope
from driftline.typing import CheckedLabels, Label, Labels, Prediction

__all__ = ["Distribution", "Doubt", "Task", "TaskKernels"]


class Distribution(NamedTuple):
    """A distribution over predictions: those of positive weight, and the weights."""

    atoms: np.ndarray
    weights: np.ndarray


class Doubt(NamedTuple):
    """When there is no answer, and what that costs."""

    #: The largest ``-ln p`` of the most probable label with which it is predicted.
    limit: float
    cost: float


class TaskKernels(NamedTuple):
    """The compiled side of a task."""

    encode: Kernel
    encode_loss: Kernel
    draw: Kernel


class Task(Part):
    """Base of all tasks.

    A task of one's own needs ``dim``, :meth:`encode` and :meth:`encode_loss` (and
    :meth:`offset` unless it is 0), :meth:`best_prediction` for deterministic and
    :meth:`decompose` for random predictions, all in plain NumPy. With ``kernels`` in
    their place it runs compiled; labels are then rows of ``label_size`` integers. All else that
    other code needs to know of a task are the facts below, which have defaults.
    """

    kernels: ClassVar[TaskKernels | None] = None

    #: The kind of labels, by which losses and line-ups are chosen: ``classes``, unit vectors under
    #: the 0-1 loss; ``sign``, -1 or +1 in one score under the 0-1 loss; ``tags``, a sign each under
    #: the share of wrong ones; ``levels``, a sign for each step up, under the distance of levels;
    #: ``chain``, tags of positions as :class:`~driftline.tasks.Sequence` encodes them;
    #: ``matching``, permutation matrices, under the share of rows that are assigned wrongly;
    #: ``relevance``, gains as :class:`~driftline.tasks.RelevanceTask` encodes them;
    #: ``f-score``, sets of tags as :class:`~driftline.tasks.FScore` encodes them;
    #: ``costs``, listed labels and predictions, whose losses are a matrix;
    #: ``answers``, ``classes`` with predictions that may be none.
    kind: ClassVar[str] = ""

    #: Whether the target loss is 0 for the label itself and 1 for all else.
    zero_one: ClassVar[bool] = False

    #: The dtype of predictions in arrays and files. ``np.float64`` is for tasks of one's own whose
    #: predictions are real numbers; kernels write whole ones.
    prediction_dtype: ClassVar[npt.DTypeLike] = np.int64

    @fact
    def layout(self) -> Layout:
        """How scores are computed from inputs and weights; by default one vector a round."""
        return OneVector(self.dim)

    @fact
    def answers(self) -> Task:
        """The task of the labels, which losses take: itself, unless predictions may be none."""
        return self

    @fact
    def doubt(self) -> Doubt:
        """When there is no answer; by default there is always one."""
        return Doubt(math.inf, 1.0)

    @fact
    def guess(self) -> str:
        """The prediction that ``guess_loss`` is the loss of, in words."""
        return "uniform guessing"

    @fact
    def all_labels(self) -> Sequence[Label]:
        """All labels, where they are few."""
        return ()

    @fact
    def largest_loss(self) -> float:
        """The largest target loss."""
        return 1.0

    @fact
    def guess_loss(self) -> float:
        """The loss of the ``guess``, which bounds are compared with."""
        return math.inf

    @fact
    def loss_matrix(self) -> np.ndarray | None:
        """The loss of every label (row) and prediction (column), where both are listed."""
        return None

    @fact
    def vertex_loss(self) -> tuple[float, float] | None:
        """Factor and shift by which a label's encoding becomes its loss encoding, if they do."""
        return None

    @fact
    def predicts_ranks(self) -> bool:
        """Whether a prediction is the rank of every item."""
        return False

    @fact
    def part_size(self) -> int:
        """How many entries of an encoding a part has, if the loss is a mean over parts; else 0.

        ``vertex_loss`` is then that of one part.
        """
        return 0

    @fact
    def pair_tags(self) -> int:
        """Of how many tags folded scores end with those of all pairs, see :meth:`folded`; else 0.

        These hold for every pair of neighbouring parts, and predictions cost nothing there.
        """
        return 0

    @fact
    def predicts_top(self) -> bool:
        """Whether to predict by the highest score makes sense, as where scores are of labels."""
        return self.zero_one

    @fact
    def dim(self) -> int:
        """Number of scores."""
        raise InputError(f"{type(self).__name__} does not say its number of scores `dim`")

    def size_of(self, label: Label) -> int:
        """Return how many scores a round with this label has."""
        return self.dim

    def params(self, size: int) -> tuple[float, ...]:
        """Return parameters for the kernels in rounds of up to ``size`` scores."""
        return (float(size),)

    def folded(self, scores: np.ndarray) -> np.ndarray:
        """Return scores, or a loss encoding, as kernels take them: by default all of them.

        Where some of them are always equal, kernels take these once, and encodings have their sums.
        """
        return scores

    def unfolded(self, scores: np.ndarray) -> np.ndarray:
        """Return all scores, from those that kernels take."""
        return scores

    def hull_at(self, size: int) -> Polytope:
        """Return the hull of rounds whose scores are ``size`` numbers, as kernels take them."""
        return self.label_hull

    def scratch(self, size: int) -> int:
        """Return how many numbers of scratch space drawing needs at ``size`` scores."""
        return 0

    @fact
    def label_size(self) -> int:
        """How many integers make a label, for the kernels."""
        return 1

    @fact
    def prediction_size(self) -> int:
        """How many integers make a prediction, for the kernels; 0 for one per score."""
        return 1

    @fact
    def label_hull(self) -> Polytope:
        """The hull of all encodings; where sizes differ from round to round, the smallest."""
        raise InputError(f"{type(self).__name__} does not say its label_hull")

    def hull_of(self, theta: np.ndarray) -> Any:
        """Return the hull of encodings that scores of this size belong to."""
        return self.label_hull

    @fact
    def loss_hull(self) -> Polytope:
        """The hull of all loss encodings, for the size of ``label_hull``."""
        return self.loss_hull_of(np.empty(self.label_hull.dim))

    def loss_hull_of(self, theta: np.ndarray) -> Polytope:
        """Return the hull of loss encodings that scores of this size belong to."""
        return Hull(self.dim, lambda v: self.encode_loss(self.best_prediction(-v)))

    def idle(self, label: Label) -> bool:
        """Return whether rounds with this label have no loss and make no step."""
        return False

    def constants(self, norm: str) -> tuple[float, float] | None:
        """Return gamma and nu of the first theorem in the norm ``l1`` or ``l2``, if known."""
        return None

    def score_size(self, theta: np.ndarray) -> int:
        """Return how many scores there must be, given some scores."""
        return self.dim

    @fact
    def scores_in_words(self) -> str:
        """How many scores a round has."""
        if self.layout.ragged:
            return "a score for every item"
        return f"{self.dim} score{'s' if self.dim > 1 else ''}"

    # -- labels as users give them

    def check_label(self, label: Label) -> Label:
        """Return the label as the kernels take it, or raise :class:`InputError`."""
        return label

    def with_classes(self, classes: int) -> Task:
        """Return the task with more classes or tags, where their number can grow."""
        raise InputError(f"only classes and tags can become more, not {self!r}")

    def any_label(self, size: int) -> Label:
        """Return some valid label of ``size`` entries, as :meth:`check_label` does.

        Compiled code that only predicts takes it in place of the unknown true label.
        """
        if len(self.all_labels):
            return self.check_label(self.all_labels[0])
        return np.zeros(size if self.layout.ragged else self.label_size, dtype=np.int64)

    def check_labels(self, labels: Labels) -> CheckedLabels:
        """Check many labels at once: an integer array with a row per label."""
        return [self.check_label(label) for label in labels]

    def label(self, checked: Label) -> Label:
        """Return a label as users give it, from what :meth:`check_label` returned."""
        return checked if self.kernels is None else self.prediction(checked)

    def prediction(self, row: np.ndarray) -> Prediction:
        """Return a prediction as users get it from one row of numbers."""
        return row.item() if row.size == 1 else row.copy()

    def numbers(self, prediction: Prediction) -> np.ndarray:
        """Return the numbers of a prediction as users get it, the inverse of `prediction`."""
        given = np.ravel(prediction)
        if given.dtype == self.prediction_dtype:
            return given
        made = given.astype(self.prediction_dtype)
        if not np.array_equal(made, given):
            raise InputError(
                f"{type(self).__name__} predicts {given!r:.60}, but its prediction_dtype is "
                f"{made.dtype}: where predictions are real numbers, state np.float64"
            )
        return made

    def prediction_rows(self, count: int, width: int) -> np.ndarray:
        """Return rows for predictions, filled with what stands behind shorter ones: -1 or NaN."""
        dtype = np.dtype(self.prediction_dtype)
        return np.full((count, width), np.nan if dtype.kind == "f" else -1, dtype=dtype)

    def prediction_width(self, labels: CheckedLabels) -> int:
        """Return how many integers the predictions for these labels take."""
        return self.prediction_size

    def predictions(self, rows: np.ndarray) -> np.ndarray:
        """Return many predictions as users get them."""
        return rows[:, 0] if rows.shape[1] == 1 else rows

    # -- the decomposition

    def encode(self, label: Label) -> np.ndarray:
        """Return rho(label)."""
        target, _ = self._encode(label)
        return target

    def offset(self, label: Label) -> float:
        """Return c(label)."""
        if self.kernels is None:
            return 0.0
        return self._encode(label)[1]

    def encode_loss(self, prediction: Prediction) -> np.ndarray:
        """Return the loss encoding of a prediction."""
        kernels = self._need_kernels("encode_loss")
        row = self._prediction_row(prediction)
        out = np.empty(self.size_of(row))
        kernels.encode_loss(row, self._params(out.size), out)
        return out

    def sized_loss_encoding(self, prediction: Prediction, size: int) -> np.ndarray:
        """Return the loss encoding of a prediction in a round with ``size`` scores."""
        return self.encode_loss(prediction)

    def encode_losses(self, rows: np.ndarray, size: int) -> np.ndarray:
        """Return the loss encodings of many predictions, a row each, from rows of integers.

        Each that is different is encoded once; all rounds have ``size`` scores.
        """
        if len(rows) == 1:
            return self.sized_loss_encoding(self.prediction(rows[0]), size)[np.newaxis]
        given = rows[:, 0] if rows.shape[1] == 1 else rows
        kinds, places = np.unique(given, axis=0, return_inverse=True)
        kinds = kinds.reshape(len(kinds), -1)
        encoded = [self.sized_loss_encoding(self.prediction(row), size) for row in kinds]
        return np.array(encoded, dtype=np.float64)[places.ravel()]

    def loss(self, prediction: Prediction, label: Label) -> float:
        """Return the target loss of a prediction."""
        value = self.encode(label) @ self.encode_loss(prediction) + self.offset(label)
        return max(0.0, float(value))

    def losses(self, rows: np.ndarray, labels: CheckedLabels) -> np.ndarray:
        """Return the target losses of many predictions; refuse rows that are not predictions."""
        if self.zero_one and self.kernels is not None:
            if rows.shape[1] != 1:
                raise InputError(f"predictions of {self!r} are single numbers, not {rows.shape[1]}")
            wrong = np.asarray(self.check_labels(rows[:, 0])) != np.asarray(labels)
            return np.asarray(wrong.any(axis=1), dtype=np.float64)
        pairs = zip(rows, labels, strict=True)
        return np.array([self.loss(self.prediction(p), self.label(y)) for p, y in pairs])

    def widened(self, means: np.ndarray, size: int) -> np.ndarray:
        """Return mean loss encodings, a row each, of predictions from before labels were added.

        ``size`` is how many scores there are now. By default sizes do not change.
        """
        return means

    def loss_of_mean(self, mean: np.ndarray) -> np.ndarray:
        """Return the mean loss encoding of predicting a random label with this mean encoding."""
        raise InputError(f"{type(self).__name__} does not predict labels")

    def mean_guess(
        self, labels: Labels = None, sample_weight: np.ndarray | None = None
    ) -> float | None:
        """Return the mean loss of the guess on these labels; without labels, None if it varies."""
        return self.guess_loss

    # -- predictions

    def best_prediction(self, mu: np.ndarray) -> Prediction:
        """Return the prediction of least expected loss when ``mu`` is the mean of rho."""
        raise InputError(f"{type(self).__name__} does not define best_prediction")

    def top_prediction(self, theta: np.ndarray) -> Prediction:
        """Return the prediction that has the highest score (MAP)."""
        return self.best_prediction(theta)

    def top_label(self, theta: np.ndarray) -> Label:
        """Return the label that has the highest score."""
        return self.top_prediction(theta)

    def top_rows(self, scores: np.ndarray) -> np.ndarray:
        """Return the predictions of highest score, a row of integers for each row of scores."""
        rows = [self.numbers(self.top_prediction(theta)) for theta in scores]
        return np.array(rows).reshape(len(rows), self.prediction_size or scores.shape[1])

    def average(self, predictions: Sequence[Prediction], weights: np.ndarray) -> Prediction:
        """Return a committee's prediction from its members' predictions and weights.

        It is the prediction of least mean loss if the label were a member's, drawn by weight.
        """
        return self.best_prediction(
            sum(w * self.encode(p) for w, p in zip(weights, predictions, strict=True))
        )

    def average_rows(self, predictions: list[np.ndarray], weights: np.ndarray) -> np.ndarray:
        """Return the average of many rounds, a row each, from rows of every member."""
        out = self.prediction_rows(*predictions[0].shape)
        for t in range(len(out)):
            rows = [self.prediction(member[t]) for member in predictions]
            chosen = self.numbers(self.average(rows, weights[t]))
            out[t, : chosen.size] = chosen
        return out

    def top_loss_encoding(self, theta: np.ndarray) -> np.ndarray:
        """Return the loss encoding of the prediction that has the highest score."""
        return self.encode_loss(self.top_prediction(theta))

    def decompose(self, mean: np.ndarray) -> Distribution:
        """Return a distribution over predictions whose mean loss encoding is ``mean``."""
        raise InputError(f"{type(self).__name__} does not define decompose")

    def draw(self, mean: np.ndarray, uniforms: np.ndarray) -> Prediction:
        """Draw a prediction whose expected loss encoding is ``mean``."""
        if self.kernels is None:
            return draw_atom(self.decompose(mean), uniforms[0])
        size = mean.size
        row = np.full(self.prediction_size or size, -1, dtype=np.int64)
        scratch, encoded = np.empty(self.scratch(size)), np.empty(size)
        self.kernels.draw(mean, self._params(size), uniforms, scratch, row, encoded)
        return self.prediction(row)

    # -- how the methods above reach the kernels

    def _params(self, size: int) -> np.ndarray:
        return np.asarray(self.params(size), dtype=np.float64)

    def _need_kernels(self, method: str) -> TaskKernels:
        if self.kernels is None:
            raise InputError(f"{type(self).__name__} defines neither {method} nor kernels")
        return self.kernels

    def _encode(self, label: Label) -> tuple[np.ndarray, float]:
        kernels = self._need_kernels("encode")
        row = self.check_label(label)
        target = np.empty(self.size_of(row))
        offset = kernels.encode(row, self._params(target.size), target)
        return target, float(offset)

    def _prediction_row(self, prediction: Prediction) -> np.ndarray:
        """Return a prediction as a row of integers; by default predictions are labels."""
        row: np.ndarray = self.check_label(prediction)
        return row


def draw_atom(distribution: Distribution, uniform: float) -> Prediction:
    """Draw from a distribution by one uniform number."""
    index = np.searchsorted(np.cumsum(distribution.weights), uniform, side="right")
    return distribution.atoms[min(int(index), len(distribution.atoms) - 1)]


def mean_rows(predictions: list[np.ndarray], weights: np.ndarray) -> np.ndarray:
    """Return the weighted sums of the members' rows."""
    return np.asarray(sum(weights[:, j, None] * rows for j, rows in enumerate(predictions)))


#: The names of labels in messages.
LABELS = ("labels", "a label", "tags")


def real_numbers(values: npt.ArrayLike, what: str) -> np.ndarray:
    """Return a copy of ``values`` in float64, refusing what is not an array of numbers."""
    try:
        return np.array(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{what} must be an array of numbers: {error}") from error


def whole_numbers(values: npt.ArrayLike, what: str) -> np.ndarray:
    """Return a copy of ``values`` in int64, refusing anything that is not a whole number.

    It is always a contiguous copy, which nobody else can write to: compiled code reads exactly what
    is checked afterwards.
    """
    if np.ma.is_masked(values):
        raise InputError(f"{what} have masked entries")
    try:
        array = np.asarray(values)
    except (ValueError, OverflowError) as error:
        raise InputError(f"{what} do not form an array: {error}") from error
    if array.dtype.kind in "iub":
        return np.array(array, dtype=np.int64, order="C")
    if array.dtype.kind == "f":
        with np.errstate(invalid="ignore"):
            rounded = array.astype(np.int64)
        if np.array_equal(rounded, array):
            return rounded
        bad = array[rounded != array].flat[0]
        raise InputError(f"{what} must be whole numbers, but one is {bad}")
    words = [value for value in array.flat if isinstance(value, str)]
    if words and what in LABELS:
        raise InputError(
            f"{what} must be whole numbers, but one is {str(words[0])!r:.40}: estimators such as "
            "dl.DriftClassifier learn from labels that are words"
        )
    raise InputError(f"{what} must be whole numbers, but their type is {array.dtype}")
