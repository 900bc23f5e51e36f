r"""What every decoder offers.

A decoder turns scores into a distribution over predictions. All the theory needs of it is
the mean loss encoding; every distribution with this mean has the same expected loss, so
drawing is left to the task.

Two numbers carry the guarantee. The surrogate gap :math:`\alpha` is such that the expected
target loss never exceeds :math:`(1 - \alpha) L`. The rate floor is a number below which
:math:`2 (L - \mathbb E \ell) / \|g\|^2` never falls, :math:`\alpha / M` or better: divided
by the squared input norm, it is a step size that is always admissible.
"""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from driftline.errors import InputError, NoGuaranteeError
from driftline.kernels import (
    DECODE,
    Kernel,
    at_peak,
    call_mix,
    call_values,
    helper,
    kernel,
    where,
)
from driftline.losses import Logistic, Loss
from driftline.losses.base import check_scores
from driftline.parts import Part, fact
from driftline.tasks import Distribution, Task
from driftline.typing import Label, Prediction

__all__ = ["Decoder", "ValueDecoder", "write_mean"]


class Decoder(Part):
    """Base of all decoders.

    A decoder of one's own needs a ``loss`` and one of :meth:`mean_loss_encoding` and
    :meth:`distribution` in plain NumPy; with a ``kernel`` in their place it runs compiled.
    To be used with a Polyak rate it says its ``rate_floor``.
    """

    loss: Loss
    mix: ClassVar[Kernel | None] = None

    #: Whether predictions are deterministic, so that risk and target loss are the same.
    deterministic: ClassVar[bool] = False

    #: Whether the prediction depends on scores alone, and is what :meth:`top_rows` returns.
    takes_top: ClassVar[bool] = False

    #: How members of a line-up with this decoder differ from others, in a word.
    in_short: ClassVar[str] = ""

    #: The name under which losses state the ratio of risk to loss, see :meth:`Loss.ratio`.
    ratio_name: ClassVar[str] = ""

    @fact
    def task(self) -> Task:
        """The task of the predictions: that of the loss, or one with the same labels.

        By it predictions are drawn, and their target losses counted.
        """
        return self.loss.task

    @fact
    def kernel(self) -> Kernel | None:
        """The compiled side, where there is one."""
        return None

    @fact
    def draw_kernel(self) -> Kernel | None:
        """A kernel that draws the prediction from what the decoder left in its scratch space.

        By default the task draws one, from the mean loss encoding.
        """
        return None

    @fact
    def allow_no_gap(self) -> bool:
        """Whether a pair without a guarantee is explicitly allowed."""
        return False

    @fact
    def loss_ratio(self) -> float | None:
        """The largest ratio of risk to loss, None where nothing is known."""
        return self.loss.ratio(self.ratio_name)

    @fact
    def surrogate_gap(self) -> float:
        """The constant alpha, one minus the ratio; 0 if there is none."""
        return 0.0 if self.loss_ratio is None else max(0.0, 1.0 - self.loss_ratio)

    @fact
    def rate_floor(self) -> float:
        """The sharpest proved lower bound of ``2 (L - risk) / |g|^2``, 0 if there is none."""
        return self.surrogate_gap / self.loss.self_bound

    @fact
    def theorem(self) -> str:
        """Where a bound with this rate floor comes from."""
        return "theorem 1 (surrogate gap)" if self.surrogate_gap > 0.0 else "its rate floor"

    @fact
    def numerical_rate_floor(self) -> float | None:
        """The floor found by numerical search where it is higher than any proof, or None."""
        return None

    @fact
    def params(self) -> tuple[float, ...]:
        """Parameters for the kernel."""
        return ()

    def scratch(self, size: int) -> int:
        """Return how many numbers of scratch space the kernel needs at ``size`` scores."""
        return 0

    def mean_loss_encoding(self, theta: np.ndarray) -> np.ndarray:
        """Return the expected loss encoding of the prediction at scores ``theta``."""
        if type(self).distribution is not Decoder.distribution:
            atoms, weights = self.distribution(theta)
            return weights @ np.array([self.task.encode_loss(atom) for atom in atoms])
        return self._decode(theta, np.zeros(np.size(theta)), 0.0)[0]

    def distribution(self, theta: np.ndarray) -> Distribution:
        """Return few predictions with weights, whose mean loss encoding is that of draws.

        So every label has the same expected loss as under draws. For classes, signs and levels the
        weights are the probabilities of the draws. For other tasks, such as orders, draws may come
        from another distribution with this mean: there may be too many predictions to list.
        """
        return self.task.decompose(self.mean_loss_encoding(theta))

    def risk(self, theta: np.ndarray, label: Label) -> float:
        """Return the expected target loss at scores ``theta`` when ``label`` is true."""
        task = self.task
        target, offset = task.encode(label), task.offset(label)
        if self.kernel is not None and self.loss.kernels is not None:
            return self._decode(theta, target, offset)[1]
        return float(target @ self.mean_loss_encoding(theta) + offset)

    def draw(self, theta: np.ndarray, uniforms: np.ndarray) -> Prediction:
        """Draw a prediction at scores ``theta``."""
        return self.task.draw(self.mean_loss_encoding(theta), uniforms)

    def top_rows(self, scores: np.ndarray) -> np.ndarray:
        """Return the predictions of highest score, a row of integers for each row of scores."""
        return self.task.many.top(scores)

    def _decode(
        self, theta: np.ndarray, target: np.ndarray, offset: float
    ) -> tuple[np.ndarray, float]:
        if self.kernel is None or self.loss.kernels is None:
            raise InputError(
                f"{type(self).__name__} with {type(self.loss).__name__} defines neither "
                "mean_loss_encoding nor distribution nor kernels"
            )
        theta = check_scores(theta, self.loss.task)
        mean = np.empty(theta.size)
        values = self.loss.kernels.values
        risk = self.kernel(
            theta,
            target,
            offset,
            np.array(self.params, dtype=np.float64),
            self.loss._work(theta),
            0 if values is None else values.address,
            self.loss._params(theta.size),
            0 if self.mix is None else self.mix.address,
            np.empty(self.scratch(theta.size)),
            mean,
        )
        return mean, float(risk)

    def _require_gap(self, reason: str) -> None:
        """Refuse a pair whose ratio of risk to loss is not known to be below 1."""
        if not self.allow_no_gap and (self.loss_ratio is None or self.loss_ratio >= 1.0):
            raise NoGuaranteeError(
                f"{type(self).__name__} has no surrogate gap with {self.loss!r}: {reason} "
                "(allow_no_gap=True admits it without a guarantee)"
            )

    def _require_half(self) -> None:
        """Refuse losses that are too small for a surrogate gap of 1/2, up to rounding."""
        if self.loss_ratio is None or self.loss_ratio > 0.5 * (1.0 + 1e-12):
            raise NoGuaranteeError(
                f"{type(self).__name__} has no surrogate gap of 1/2 with {self.loss!r}: use "
                "base=2.0, and no factor below 1"
            )

    def _found(self, floor: float) -> float | None:
        """Return the numerical floor for the base-2 logistic loss, None for other losses.

        It is stated for one weight vector per class; with one score it is twice as high.
        """
        if not (isinstance(self.loss.family, Logistic) and math.isclose(self.loss.unit, 1.0)):
            return None
        return 2.0 * floor if self.loss.task.dim == 1 else floor


@helper
def write_mean(wrong, target, mean):
    """Turn the chances of missing each label into the mean loss encoding; return the risk.

    The risk is one of the chances itself, to full relative precision however small it is. With one
    score, the labels are -1 and +1.
    """
    if mean.size == 1:
        mean[0] = 0.5 * (wrong[1] - wrong[0])
        return where(target[0] > 0.0, wrong[1], wrong[0])
    for k in range(mean.size):
        mean[k] = wrong[k]
    return at_peak(target, wrong)


@kernel(DECODE)
def decode_by_values(theta, target, offset, params, work, values, loss_params, mix, scratch, mean):
    """Decode from the losses of all labels."""
    labels = scratch.size // 3
    losses = scratch[:labels]
    squares = scratch[labels : 2 * labels]
    wrong = scratch[2 * labels :]
    call_values(values, (theta, loss_params, work, losses, squares))
    call_mix(mix, (losses, squares, params, wrong))
    return write_mean(wrong, target, mean)


class ValueDecoder(Decoder):
    """Base of decoders for the 0-1 loss that depend only on the losses of all labels.

    Such a decoder consists of ``mix``: from the losses (and squared gradients) of all
    labels to the probability with which each label would be missed.
    """

    @fact
    def kernel(self) -> Kernel | None:
        """The kernel that calls ``mix``."""
        return decode_by_values

    def _require_best_gap(self) -> None:
        """Refuse losses with which no decoder has a gap."""
        self._require_gap(
            "no decoder has one with the logistic loss from base 4 on, nor with less than "
            "1 - 1/K times the smooth hinge; use a smaller base or a larger factor",
        )

    def _check_parts(self) -> None:
        """Refuse target losses other than 0-1, and surrogates without ``values``."""
        task, family = self.loss.task, self.loss.family
        if not task.zero_one:
            raise NoGuaranteeError(
                f"{type(self).__name__} is made for the 0-1 loss, not for {task!r}"
            )
        listed = family.kernels is not None and family.kernels.values is not None
        if not listed and type(family).values is Loss.values:
            raise NoGuaranteeError(
                f"{type(self).__name__} compares the losses of all labels, "
                f"but {family!r} does not offer its values"
            )

    def scratch(self, size: int) -> int:
        """Return room for losses, squared gradients and chances of all labels."""
        return 3 * len(self.loss.task.labels.all)

    def mean_loss_encoding(self, theta: np.ndarray) -> np.ndarray:
        """Return the expected loss encoding of the prediction at scores ``theta``."""
        wrong = self._wrong(theta)
        return np.array([0.5 * (wrong[1] - wrong[0])]) if self.loss.task.dim == 1 else wrong

    def risk(self, theta: np.ndarray, label: Label) -> float:
        """Return the probability of missing ``label`` at scores ``theta``."""
        index = list(self.loss.task.labels.all).index(label)
        return float(self._wrong(theta)[index])

    def _wrong(self, theta: np.ndarray) -> np.ndarray:
        assert self.mix is not None
        values, squares = self.loss.values(theta)
        wrong = np.empty_like(values)
        self.mix(values, squares, np.array(self.params, dtype=np.float64), wrong)
        return wrong
