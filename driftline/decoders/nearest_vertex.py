"""The nearest label, or else a random one with the mean that the loss believes in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from driftline.decoders.base import Decoder, write_mean
from driftline.errors import NoGuaranteeError
from driftline.kernels import DECODE, Kernel, argmax, kernel
from driftline.losses import Logistic, Loss

__all__ = ["NearestVertex"]


@kernel(DECODE)
def nearest_vertex(theta, target, offset, params, work, values, loss_params, mix, scratch, mean):
    """For classes: top class p with probability 1 - q + q p, where q = min(1, 2 (1 - p))."""
    d = theta.size
    doubt = work[d + 1]
    q = min(1.0, 2.0 * doubt)
    if d == 1:
        top = 1 if theta[0] > 0.0 else 0
        scratch[1 - top] = 1.0 - q * doubt
    else:
        top = argmax(theta)
        for k in range(d):
            scratch[k] = 1.0 - q * work[k]
    scratch[top] = q * doubt
    return write_mean(scratch, target, mean)


@dataclass(frozen=True)
class NearestVertex(Decoder):
    r"""The randomized decoding of Sakaue et al. (2024).

    Let :math:`\mu` be the mean prediction of the loss (the softmax), :math:`y^*` the label
    whose encoding is nearest to it, at distance :math:`\Delta^*`. Return :math:`y^*` with
    probability :math:`1 - q`, :math:`q = \min(1, 2 \Delta^* / \nu)`, else a random label of
    mean :math:`\mu`. The expected loss is at most
    :math:`(2 \gamma / \nu) \|\mu - \rho(y)\|^2 \le \frac{4 \gamma}{\lambda \nu} L`, hence the
    surrogate gap :math:`1 - 4 \gamma / (\lambda \nu)`, for the logistic loss in base b
    :math:`1 - \ln b`. (The published form of the bound prints
    :math:`4 \gamma / (\lambda \nu)` for the gap itself: a slip.)
    """

    loss: Loss
    allow_no_gap: bool = False

    kernel: ClassVar[Kernel] = nearest_vertex

    def __post_init__(self) -> None:
        """Refuse losses that are not of Fenchel-Young type, or without a gap."""
        if not isinstance(self._family, Logistic):
            raise NoGuaranteeError(
                f"NearestVertex needs a Fenchel-Young loss, such as Logistic, not {self.loss!r}"
            )
        self._require_gap(
            self.loss.nearest_vertex_ratio,
            "4 gamma / (lambda nu) is "
            f"{self.loss.nearest_vertex_ratio:.4g}, which is not below 1; use a base below e",
        )

    @property
    def surrogate_gap(self) -> float:
        """1 - 4 gamma / (lambda nu)."""
        ratio = self.loss.nearest_vertex_ratio
        return 0.0 if ratio is None else max(0.0, 1.0 - ratio)

    @property
    def numerical_surrogate_gap(self) -> float:
        """The gap found by numerical search: 0.4824 in base 2."""
        return max(0.0, 1.0 - 0.5176 / self.loss.unit)

    @property
    def numerical_rate_floor(self) -> float | None:
        """0.8555 for the base-2 logistic loss, twice that with one score."""
        return self._found(0.8555)

    @property
    def scratch(self) -> int:
        """One number per label."""
        return len(self.loss.task.all_labels)
