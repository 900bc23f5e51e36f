"""The decoder that belongs to a convolutional Fenchel-Young loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from driftline.decoders.base import Decoder
from driftline.errors import NoGuaranteeError
from driftline.kernels import DECODE, Kernel, dot, kernel
from driftline.losses import ConvolutionalFenchelYoung, Loss, Scaled
from driftline.losses.base import check_scores
from driftline.tasks import Distribution
from driftline.tasks.base import draw_atom
from driftline.typing import Label, Prediction

__all__ = ["Convolutional"]


@kernel(DECODE)
def decode(theta, target, offset, params, work, values, loss_params, mix, scratch, mean):
    """Take the move that the loss found."""
    for i in range(theta.size):
        mean[i] = work[i]
    return max(0.0, dot(target, mean) + offset)


@kernel(DECODE)
def decode_chances(theta, target, offset, params, work, values, loss_params, mix, scratch, mean):
    """Take the move, and leave the chances of predictions for the draw."""
    first = int(params[0])
    for i in range(int(params[1])):
        scratch[i] = work[first + i]
    for i in range(theta.size):
        mean[i] = work[i]
    return max(0.0, dot(target, mean) + offset)


@dataclass(frozen=True)
class Convolutional(Decoder):
    r"""Predict with the mean loss encoding that minimises the loss.

    The surrogate loss exceeds the expected target loss by a Fenchel-Young loss at the moved
    scores, hence by :math:`\frac\lambda2 \|g\|^2` at least: the rate floor is the loss's
    :attr:`~driftline.losses.ConvolutionalFenchelYoung.rate_floor`, and carries the paper's second
    theorem. A surrogate gap in the sense of the first does not exist: on confident scores
    the two losses approach each other.

    >>> from driftline.tasks import NDCG
    >>> decoder = Convolutional(ConvolutionalFenchelYoung(NDCG(max_relevance=1)))
    >>> decoder.distribution(np.array([1.0, 0.9, 0.0])).atoms
    array([[0, 1, 2],
           [1, 0, 2]])
    """

    loss: Loss

    theorem: ClassVar[str] = "theorem 2 (convolutional)"

    def __post_init__(self) -> None:
        """Refuse other losses."""
        if isinstance(self.loss, Scaled):
            raise NoGuaranteeError(
                "a multiple of a convolutional loss has no decoder, since the target loss is part "
                f"of the loss and is not multiplied: give {self.loss.loss!r} a regularizer of "
                "another scale instead"
            )
        if not isinstance(self.loss, ConvolutionalFenchelYoung):
            raise NoGuaranteeError(
                f"Convolutional needs a ConvolutionalFenchelYoung loss, not {self.loss!r}"
            )

    @property
    def _surrogate(self) -> Any:
        return self.loss

    @property
    def kernel(self) -> Kernel | None:
        """The kernel, where the loss has one."""
        if self.loss.kernels is None:
            return None
        return decode_chances if self._surrogate.finds_chances else decode

    @property
    def params(self) -> tuple[float, ...]:
        """Where the chances of predictions are, if there are any."""
        if not self._surrogate.finds_chances:
            return ()
        first, count = self._surrogate.chances(self.loss.task.dim)
        return float(first), float(count)

    @property
    def rate_floor(self) -> float:
        """The rate floor of the loss."""
        return self._surrogate.rate_floor

    def mean_loss_encoding(self, theta: np.ndarray) -> np.ndarray:
        """Return the move of the scores that the loss found."""
        return self._surrogate.mean_loss_encoding(theta)

    def risk(self, theta: np.ndarray, label: Label) -> float:
        """Return the expected target loss at scores ``theta`` when ``label`` is true."""
        task = self.loss.task
        return max(
            0.0, float(task.encode(label) @ self.mean_loss_encoding(theta)) + task.offset(label)
        )

    def distribution(self, theta: np.ndarray) -> Distribution:
        """Return few predictions with weights, whose mean loss encoding is that of draws."""
        found = self._known(theta)
        return super().distribution(theta) if found is None else found

    def draw(self, theta: np.ndarray, uniforms: np.ndarray) -> Prediction:
        """Draw a prediction at scores ``theta``."""
        task = self.loss.task
        if self._surrogate.finds_chances:
            chances, row = (self._chances(theta), np.empty(task.predictions.size, dtype=np.int64))
            given = (np.asarray(task.params(theta.size), dtype=np.float64), np.asarray(uniforms))
            kernels = task._need_kernels("draw")
            kernels.draw(np.empty(theta.size), *given, chances, row, np.empty(theta.size))
            return task.predictions.value(row)
        found = self._known(theta)
        return super().draw(theta, uniforms) if found is None else draw_atom(found, uniforms[0])

    def _chances(self, theta: np.ndarray) -> np.ndarray:
        """Return the chances of predictions that the loss found."""
        first, count = self._surrogate.chances(theta.size)
        return self._surrogate._work(check_scores(theta, self.loss.task))[first : first + count]

    def _known(self, theta: np.ndarray) -> Distribution | None:
        """Return the predictions in the solver's mixture, if there is one and they are known."""
        task: Any = self.loss.task
        if self._surrogate.finds_chances:
            return task.mixture(self._chances(theta))
        if not hasattr(task, "from_loss_encoding"):
            return None
        mixture = self._surrogate.solve(theta).mixture
        if mixture is None:
            return None
        atoms = np.array([task.from_loss_encoding(vertex) for vertex in mixture.vertices])
        return Distribution(atoms, mixture.weights)
