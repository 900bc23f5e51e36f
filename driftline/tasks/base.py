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
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from driftline.errors import InputError
from driftline.inputs import Layout, OneVector
from driftline.kernels import Kernel
from driftline.parts import Part, fact
from driftline.polytopes import Polytope
from driftline.tasks.geometry import Geometry
from driftline.tasks.many import Many
from driftline.tasks.spaces import Given, Space
from driftline.typing import Label, Labels, Prediction

__all__ = ["Distribution", "Guess", "Task", "TaskKernels", "with_classes"]


class Distribution(NamedTuple):
    """A distribution over predictions: those of positive weight, and the weights."""

    atoms: np.ndarray
    weights: np.ndarray


class TaskKernels(NamedTuple):
    """The compiled side of a task."""

    encode: Kernel
    encode_loss: Kernel
    draw: Kernel


@dataclass(frozen=True)
class Guess:
    """The prediction that bounds are compared with: its expected loss, and its name in words."""

    loss: float = math.inf
    words: str = "uniform guessing"

    def mean(self, labels: Labels = None, sample_weight: np.ndarray | None = None) -> float | None:
        """Return the mean loss on these labels; without labels, None if it varies."""
        return self.loss


class Task(Part):
    """Base of all tasks.

    A task of one's own needs ``dim``, :meth:`encode` and :meth:`encode_loss` (and
    :meth:`offset` unless it is 0), :meth:`best_prediction` for deterministic and
    :meth:`decompose` for random predictions, all in plain NumPy. With ``kernels`` in
    their place it runs compiled; labels are then rows of integers. All else that
    other code needs to know of a task are the facts below, which have defaults.
    """

    kernels: ClassVar[TaskKernels | None] = None

    #: The name by which losses and line-ups are chosen. There are ``classes``, unit vectors under
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

    #: What stands behind :attr:`geometry` and :attr:`many`.
    _geometry: ClassVar[type[Geometry]] = Geometry
    _many: ClassVar[type[Many]] = Many

    #: The shift of loss encodings, see :attr:`Geometry.vertex_loss`.
    _loss_shift: ClassVar[float] = 0.0

    #: The field with the number of classes or tags, where it can grow.
    _grows: ClassVar[str] = ""

    @fact
    def dim(self) -> int:
        """Number of scores."""
        raise InputError(f"{type(self).__name__} does not say its number of scores `dim`")

    @fact
    def layout(self) -> Layout:
        """How scores are computed from inputs and weights; by default one vector a round."""
        return OneVector(self.dim)

    @fact
    def labels(self) -> Space:
        """What labels are; by default whatever is given."""
        return Given()

    @fact
    def predictions(self) -> Space:
        """What predictions are; by default labels, or whole numbers if those are not known."""
        labels = self.labels
        made = Space() if isinstance(labels, Given) else labels
        self.__dict__["predictions"] = made  # asked in every round
        return made

    @fact
    def answers(self) -> Task:
        """The task of the labels, which losses take: itself, unless predictions may be none."""
        return self

    @fact
    def guess(self) -> Guess:
        """What bounds are compared with."""
        return Guess()

    @fact
    def largest_loss(self) -> float:
        """The largest target loss."""
        return 1.0

    @fact
    def label_hull(self) -> Polytope:
        """The hull of all encodings; where sizes differ from round to round, the smallest."""
        raise InputError(f"{type(self).__name__} does not say its label_hull")

    @fact
    def geometry(self) -> Geometry:
        """Where encodings lie, in rounds of every size."""
        return self._geometry(self)

    @fact
    def many(self) -> Many:
        """Predictions of many rounds at once."""
        return self._many(self)

    def constants(self, norm: str) -> tuple[float, float] | None:
        """Return gamma and nu of the first theorem in the norm ``l1`` or ``l2``, if known."""
        return None

    def params(self, size: int) -> tuple[float, ...]:
        """Return parameters for the kernels in rounds of up to ``size`` scores."""
        return (float(size),)

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
        row = self.predictions.check(prediction)
        out = np.empty(self.geometry.size_of(row))
        kernels.encode_loss(row, self._params(out.size), out)
        return out

    def loss(self, prediction: Prediction, label: Label) -> float:
        """Return the target loss of a prediction."""
        value = self.encode(label) @ self.encode_loss(prediction) + self.offset(label)
        return max(0.0, float(value))

    # -- predictions

    def best_prediction(self, mu: np.ndarray) -> Prediction:
        """Return the prediction of least expected loss when ``mu`` is the mean of rho."""
        raise InputError(f"{type(self).__name__} does not define best_prediction")

    def top_prediction(self, theta: np.ndarray) -> Prediction:
        """Return the prediction that has the highest score (MAP)."""
        return self.best_prediction(theta)

    def average(self, predictions: Sequence[Prediction], weights: np.ndarray) -> Prediction:
        """Return a committee's prediction from its members' predictions and weights.

        It is the prediction of least mean loss if the label were a member's, drawn by weight.
        """
        return self.many.average_one(predictions, weights)

    def decompose(self, mean: np.ndarray) -> Distribution:
        """Return a distribution over predictions whose mean loss encoding is ``mean``."""
        raise InputError(f"{type(self).__name__} does not define decompose")

    def draw(self, mean: np.ndarray, uniforms: np.ndarray) -> Prediction:
        """Draw a prediction whose expected loss encoding is ``mean``."""
        if self.kernels is None:
            return draw_atom(self.decompose(mean), uniforms[0])
        size, space = mean.size, self.predictions
        row = np.full(space.size or size, -1, dtype=np.int64)
        scratch, encoded = np.empty(self._scratch(size)), np.empty(size)
        self.kernels.draw(mean, self._params(size), uniforms, scratch, row, encoded)
        return space.value(row)

    # -- how the methods above reach the kernels

    def _scratch(self, size: int) -> int:
        """Return how many numbers of scratch space drawing needs at ``size`` scores."""
        return 0

    def _params(self, size: int) -> np.ndarray:
        return np.asarray(self.params(size), dtype=np.float64)

    def _need_kernels(self, method: str) -> TaskKernels:
        if self.kernels is None:
            raise InputError(f"{type(self).__name__} defines neither {method} nor kernels")
        return self.kernels

    def _encode(self, label: Label) -> tuple[np.ndarray, float]:
        kernels = self._need_kernels("encode")
        row = self.labels.check(label)
        target = np.empty(self.geometry.size_of(row))
        offset = kernels.encode(row, self._params(target.size), target)
        return target, float(offset)


def with_classes(task: Any, classes: int) -> Any:
    """Return a task with more classes or tags, where their number can grow."""
    if not task._grows:
        raise InputError(f"only classes and tags can become more, not {task!r}")
    old = getattr(task, task._grows)
    return replace(
        task, **{task._grows: with_classes(old, classes) if isinstance(old, Task) else classes}
    )


def draw_atom(distribution: Distribution, uniform: float) -> Prediction:
    """Draw from a distribution by one uniform number."""
    index = np.searchsorted(np.cumsum(distribution.weights), uniform, side="right")
    return distribution.atoms[min(int(index), len(distribution.atoms) - 1)]
