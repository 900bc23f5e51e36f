r"""One of K classes, at the price of 1 for a wrong one.

.. math:: \rho(y) = e_y, \qquad \ell^\rho(\hat y) = 1 - e_{\hat y}, \qquad c = 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from driftline.errors import InputError
from driftline.kernels import DRAW, ENCODE, ENCODE_LOSS, helper, kernel
from driftline.polytopes import Simplex
from driftline.tasks.base import Distribution, Guess, Task, TaskKernels
from driftline.tasks.many import Many
from driftline.tasks.numbers import whole_numbers
from driftline.tasks.plurality import Plurality
from driftline.tasks.spaces import Classes

__all__ = ["Multiclass"]


@kernel(ENCODE)
def encode(label, params, target):
    """Write the indicator of the class."""
    for k in range(target.size):
        target[k] = 0.0
    target[label[0]] = 1.0
    return 0.0


@helper
def write_loss(prediction, out):
    """Write 1 for every class but the predicted one."""
    for k in range(out.size):
        out[k] = 1.0
    out[prediction] = 0.0


@kernel(ENCODE_LOSS)
def encode_loss(prediction, params, out):
    """Write the loss encoding of a class."""
    write_loss(prediction[0], out)


@kernel(DRAW)
def draw(mean, params, uniforms, scratch, prediction, encoded):
    """Walk along the classes until their probability exceeds the uniform number."""
    below = 0.0
    for k in range(mean.size):
        if mean[k] < 1.0:
            prediction[0] = k  # kept if rounding leaves the sum short of 1
            below += 1.0 - mean[k]
            if uniforms[0] < below:
                break
    write_loss(prediction[0], encoded)


class ManyClasses(Plurality):
    """Many classes at once."""

    def top(self, scores: np.ndarray) -> np.ndarray:
        """Return the classes of highest score, a row each."""
        return scores.argmax(axis=1)[:, np.newaxis]

    def widened(self, means: np.ndarray, size: int) -> np.ndarray:
        """Return encodings in which classes that nobody predicted cost 1."""
        new = max(0, size - means.shape[1])
        return np.pad(means, [(0, 0), (0, new)], constant_values=1.0)


@dataclass(frozen=True)
class Multiclass(Task):
    """Classification under the 0-1 loss; labels and predictions are ``0 .. classes-1``.

    >>> task = Multiclass(3)
    >>> task.encode(1), task.encode_loss(1)
    (array([0., 1., 0.]), array([1., 0., 1.]))
    >>> task.loss(prediction=2, label=1)
    1.0
    """

    classes: int

    kernels: ClassVar[TaskKernels] = TaskKernels(encode, encode_loss, draw)
    kind: ClassVar[str] = "classes"
    zero_one: ClassVar[bool] = True
    _many: ClassVar[type[Many]] = ManyClasses

    #: gamma and nu of the first theorem, in the l1 norm (Sakaue et al., 2024).
    loss_slope: ClassVar[float] = 0.5
    separation: ClassVar[float] = 2.0

    #: The loss encoding is this multiple of the label's own encoding, plus 1.
    loss_factor: ClassVar[float] = -1.0
    _loss_shift: ClassVar[float] = 1.0

    _grows: ClassVar[str] = "classes"

    def __post_init__(self) -> None:
        """Refuse fewer than two classes."""
        count = whole_numbers(self.classes, "the number of classes")
        if count.ndim or count < 2:
            raise InputError(f"a multiclass task needs 2 classes or more, not {self.classes!r}")
        object.__setattr__(self, "classes", int(count))

    @property
    def dim(self) -> int:
        """One score per class."""
        return self.classes

    @cached_property
    def labels(self) -> Classes:
        """The classes."""
        return Classes(self.classes)

    @property
    def guess(self) -> Guess:
        """A uniform guess."""
        return Guess(1.0 - 1.0 / self.classes)

    @property
    def label_hull(self) -> Simplex:
        """The hull of all encodings."""
        return Simplex(self.classes)

    def constants(self, norm: str) -> tuple[float, float]:
        """In l1, gamma is 1/2 and nu 2; in l2, sqrt((K-1) / K) and sqrt 2."""
        if norm == "l1":
            return self.loss_slope, self.separation
        return math.sqrt(1.0 - 1.0 / self.classes), math.sqrt(2.0)

    def best_prediction(self, mu: np.ndarray) -> int:
        """Return the most probable class, the lowest of several."""
        return int(np.argmax(mu))

    def decompose(self, mean: np.ndarray) -> Distribution:
        """Return the classes of positive probability."""
        weights = 1.0 - np.asarray(mean)
        atoms = np.flatnonzero(weights > 0.0)
        return Distribution(atoms, weights[atoms])
