r"""What every surrogate loss offers.

A loss :math:`L(\theta, y) \ge 0` is convex in the scores :math:`\theta` and self-bounding,
:math:`\|g\|^2 \le 2 M L`, for the gradient :math:`g` in the scores. At a kink, where
several subgradients exist, ties go to the lowest index.

Decoders rely on :meth:`Loss.ratio`: the largest value of (expected target loss) / (surrogate
loss) over all scores and labels under the decoder of that name, or None where nothing is
known. A ratio below 1 is a surrogate gap. A loss states it as an attribute, such as
``argmax_ratio``, and a decoder of one's own may bring a name of its own.
"""

from __future__ import annotations

import warnings
from typing import ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from driftline.errors import InputError
from driftline.kernels import Kernel
from driftline.parts import Part, fact
from driftline.polytopes import SolverWarning
from driftline.tasks import Task
from driftline.typing import Label

__all__ = ["Loss", "LossKernels", "check_scores"]

#: Duality gaps above this share of one plus the loss are worth a warning.
LARGE_GAP = 1e-6


class LossKernels(NamedTuple):
    """The compiled side of a loss; ``values`` only where the labels are few."""

    loss: Kernel
    values: Kernel | None = None


class Loss(Part):
    """Base of all losses.

    A loss of one's own needs a ``task``, :meth:`value_and_grad` and ``self_bound`` in
    plain NumPy, and :meth:`values` for decoders that compare labels. With ``kernels`` and
    ``params`` in their place it runs compiled.
    """

    task: Task

    #: Kernels by the kind of task.
    _kernels: ClassVar[dict[str, LossKernels]] = {}

    @fact
    def kernels(self) -> LossKernels | None:
        """The compiled side, where there is one."""
        return self._kernels.get(self.task.kind)

    @fact
    def convex(self) -> bool:
        """Whether the loss is convex in the scores. Without it no bound holds."""
        return True

    @fact
    def bounded_rate(self) -> bool:
        """Whether ``2 L / |g|^2`` stays bounded where the loss is small.

        If not, a free Polyak rate needs a cap.
        """
        return False

    @fact
    def inexact(self) -> bool:
        """Whether values come from a solver with a duality gap, see :meth:`solver_gap`."""
        return False

    @fact
    def overestimates(self) -> bool:
        """Whether an inexact value is too large, by :meth:`solver_gap` at most, not too small."""
        return False

    @fact
    def unit(self) -> float:
        """The factor of this loss over the loss of its family for which decoders were made."""
        return 1.0

    def ratio(self, decoder: str) -> float | None:
        """Return the largest ratio of risk to loss under a decoder, by ``<decoder>_ratio``."""
        return getattr(self, f"{decoder}_ratio", None) if decoder else None

    @fact
    def family(self) -> Loss:
        """The loss without its factors."""
        return self

    @fact
    def nats(self) -> float | None:
        """The factor from the loss to ``-ln p(label)``, None without probabilities.

        For tags, to the mean over them.
        """
        return None

    def kinks(self, theta: np.ndarray, label: Label) -> tuple[float, ...]:
        """Return numbers that vanish where loss or gradient have a kink or a jump.

        Empty for a loss that is smooth, or whose gradient has kinks that are not listed.
        """
        return ()

    @fact
    def caveat(self) -> str:
        """Why no theorem applies to a learner with this loss, "" if there is no such reason."""
        return "" if self.convex else "not convex"

    @fact
    def self_bound(self) -> float:
        """The constant M with ``|g|^2 <= 2 M L``."""
        raise InputError(f"{type(self).__name__} does not say its constant `self_bound`")

    def params(self, size: int) -> tuple[float, ...]:
        """Return parameters for the kernels in rounds of up to ``size`` scores.

        The first is a factor of the whole loss.
        """
        return (1.0,)

    def workspace(self, size: int) -> int:
        """Return the size of the workspace that the loss passes to ``values`` and the decoder."""
        return 0

    def check_size(self, size: int) -> None:
        """Refuse rounds of more scores than the loss is stated for; by default there are none."""

    @fact
    def discounts_at(self) -> int | None:
        """Where in the parameters the discounts of ranks begin, None where there are none."""
        return None

    def gap_place(self, size: int) -> int:
        """Return where in the workspace the kernel leaves its duality gap, -1 if it has none."""
        return -1

    def value_and_grad(self, theta: np.ndarray, label: Label) -> tuple[float, np.ndarray]:
        """Return the loss at scores ``theta`` and its gradient in them."""
        kernels = self._need_kernels("value_and_grad")
        theta = check_scores(theta, self.task)
        target = self.task.encode(label)
        if target.size != theta.size:
            raise InputError(f"{theta.size} scores do not fit a label of {target.size} entries")
        work, grad = np.empty(self.workspace(theta.size)), np.empty_like(theta)
        value = kernels.loss(theta, target, self._params(theta.size), work, grad)
        return float(value), grad

    def solver_gap(self, theta: np.ndarray) -> float:
        """Return how far the value at these scores may be from the true one, 0 if it is exact."""
        return 0.0

    def values(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return, for every label, the loss and the squared norm of its gradient."""
        kernels = self._need_kernels("values")
        if kernels.values is None:
            raise InputError(f"{type(self).__name__} cannot list its values for all labels")
        theta = check_scores(theta, self.task)
        values, squares = np.empty((2, len(self.task.labels.all)))
        params = self._params(theta.size)
        kernels.values(theta, params, self._work(theta), values, squares)
        return values, squares

    def _values_one_by_one(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return, for every label, the loss and the squared norm of its gradient."""
        if not len(self.task.labels.all):
            raise InputError(f"{self.task!r} has too many labels to list their losses")
        both = [self.value_and_grad(theta, label) for label in self.task.labels.all]
        return np.array([v for v, _ in both]), np.array([g @ g for _, g in both])

    def check_gaps(self, gaps: np.ndarray, values: np.ndarray) -> None:
        """Warn once if duality gaps of compiled rounds are large beside their losses."""
        large = gaps > LARGE_GAP * (1.0 + values)
        if large.any() and self._first_time("gap"):
            warnings.warn(
                f"the solver of {type(self.family).__name__} left a duality gap of "
                f"{gaps[large].max():.2g}: it is part of the trace and of certificates; scores "
                "may be too large or too small beside the scale of the regularizer",
                SolverWarning,
                stacklevel=2,
            )

    def _first_time(self, what: str) -> bool:
        """Return whether a warning was not yet given for this loss."""
        said = self.__dict__.setdefault("_said", set())
        new = what not in said
        said.add(what)
        return new

    def _params(self, size: int) -> np.ndarray:
        return np.asarray(self.params(size), dtype=np.float64)

    def _work(self, theta: np.ndarray) -> np.ndarray:
        """Return the workspace, which does not depend on the label."""
        work, any_label = np.empty(self.workspace(theta.size)), np.zeros(theta.size)
        params = self._params(theta.size)
        self._need_kernels("values").loss(theta, any_label, params, work, np.empty_like(theta))
        return work

    def _need_kernels(self, method: str) -> LossKernels:
        if self.kernels is None:
            raise InputError(f"{type(self).__name__} defines neither {method} nor kernels")
        return self.kernels


def check_scores(theta: npt.ArrayLike, task: Task) -> np.ndarray:
    """Return scores as a float64 vector, or raise an InputError."""
    scores = np.ascontiguousarray(theta, dtype=np.float64)
    if scores.ndim != 1 or scores.size != task.geometry.score_size(scores):
        expected = task.geometry.score_size(scores)
        raise InputError(f"expected {expected} scores, but got an array of shape {scores.shape}")
    if not np.isfinite(scores).all():
        raise InputError("scores must be finite, but one is not")
    return scores
