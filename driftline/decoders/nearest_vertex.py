"""The nearest label, or else a random one with the mean prediction of the loss."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from driftline.decoders.base import Decoder, write_mean
from driftline.decoders.vertices import (
    VERTEX_HEADER,
    finds_vertices,
    vertex_params,
    vertex_scratch,
)
from driftline.errors import NoGuaranteeError
from driftline.kernels import DECODE, Kernel, argmax, call_point, kernel
from driftline.losses import FenchelYoung, Logistic, Loss
from driftline.polytopes.chain_kernels import unfolded_size
from driftline.typing import Label

__all__ = ["NearestVertex"]


@kernel(DECODE)
def nearest_class(theta, target, offset, params, work, values, loss_params, mix, scratch, mean):
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


@kernel(DECODE)
def nearest_vertex(theta, target, offset, params, work, values, loss_params, mix, scratch, mean):
    """Mix the nearest vertex and the mean prediction, with which the workspace of losses begins."""
    pairs = int(params[6])
    d, every = theta.size - pairs * pairs, unfolded_size(theta.size, pairs)
    mu, vertex = work[:every], scratch[:every]
    call_point(int(params[2]), (mu, params[VERTEX_HEADER:], scratch[every:], vertex))
    distance = 0.0
    for i in range(every):
        away = abs(vertex[i] - mu[i])
        distance += away if params[4] == 1.0 else away * away
    if params[4] != 1.0:
        distance = math.sqrt(distance)
    q = min(1.0, 2.0 * distance / params[3])
    parts = d / params[5] if params[5] > 0.0 else 1.0
    factor, shift, risk = params[0] / parts, params[1] / parts, 0.0
    for i in range(d):
        point = vertex[i] + q * (mu[i] - vertex[i])
        mean[i] = factor * point + shift
        risk += target[i] * factor * (point - target[i])
    for i in range(d, theta.size):
        mean[i] = 0.0
    return max(0.0, risk)


@dataclass(frozen=True)
class NearestVertex(Decoder):
    r"""The randomized decoding of Sakaue et al. (2024), for any Fenchel-Young loss.

    Let :math:`\mu` be the mean prediction of the loss, :math:`y^*` the label whose encoding is
    nearest to it, at distance :math:`\Delta^*`. Return :math:`y^*` with probability
    :math:`1 - q`, :math:`q = \min(1, 2 \Delta^* / \nu)`, else a random label of mean
    :math:`\mu`. The expected loss is at most
    :math:`(2 \gamma / \nu) \|\mu - \rho(y)\|^2 \le \frac{4 \gamma}{\lambda \nu} L`, hence the
    surrogate gap :math:`1 - 4 \gamma / (\lambda \nu)`, for the logistic loss in base b
    :math:`1 - \ln b`. (The published form of the bound prints
    :math:`4 \gamma / (\lambda \nu)` for the gap itself: a slip.)

    >>> from driftline.losses import SparseMAP
    >>> from driftline.tasks import Multilabel
    >>> NearestVertex(SparseMAP(Multilabel(4), 1.0)).surrogate_gap
    0.5
    """

    loss: Loss
    allow_no_gap: bool = False

    ratio_name: ClassVar[str] = "nearest_vertex"

    def __post_init__(self) -> None:
        """Refuse losses that are not of Fenchel-Young type, or without a gap."""
        if not self._of_classes and not isinstance(self.loss.family, FenchelYoung):
            raise NoGuaranteeError(
                f"NearestVertex needs a Fenchel-Young loss, such as Logistic or SparseMAP, not "
                f"{self.loss!r}"
            )
        ratio = self.loss_ratio
        self._require_gap(
            "its constants are not known"
            if ratio is None
            else f"4 gamma / (lambda nu) is {ratio:.4g}, which is not below 1; "
            + (
                "use a base below e"
                if self._of_classes
                else f"a scale above {ratio:.4g} times the present one will do"
            ),
        )

    @property
    def _of_classes(self) -> bool:
        """Whether this is the logistic loss of classes, which has a kernel."""
        family = self.loss.family
        return isinstance(family, Logistic) and family.task.geometry.classes > 0

    @property
    def kernel(self) -> Kernel | None:
        """The kernel for the logistic loss of classes, or for vertices of any polytope."""
        if self._of_classes:
            return nearest_class
        known = self.loss.kernels is not None and finds_vertices(self.loss.task)
        return nearest_vertex if known else None

    @property
    def params(self) -> tuple[float, ...]:
        """What the kernel needs of the polytope, and of the norm in which vertices are apart."""
        if self.kernel is not nearest_vertex:
            return ()
        family: Any = self.loss.family
        norm = family.nearest_vertex_norm
        separation = family.task.constants(norm)[1]
        return vertex_params(family.task, separation, 1.0 if norm == "l1" else 2.0)

    @property
    def numerical_surrogate_gap(self) -> float | None:
        """The gap found by numerical search for classes: 0.4824 in base 2."""
        return max(0.0, 1.0 - 0.5176 / self.loss.unit) if self._of_classes else None

    @property
    def numerical_rate_floor(self) -> float | None:
        """0.8555 for the base-2 logistic loss, twice that with one score."""
        return self._found(0.8555) if self._of_classes else None

    def scratch(self, size: int) -> int:
        """Return one number per label, for classes; for others, room for a vertex."""
        if self._of_classes:
            return len(self.loss.task.labels.all)
        return vertex_scratch(self.loss.task, size) if self.kernel is nearest_vertex else 0

    def mean_encoding(self, theta: np.ndarray) -> np.ndarray:
        """Return the mean encoding of the prediction at scores ``theta``."""
        family: Any = self.loss.family
        hull = family.task.geometry.hull_of(np.asarray(theta))
        mu = family.mean_prediction(theta)  # a factor of the loss does not change it
        vertex = hull.maximize(mu)
        norm = family.nearest_vertex_norm
        distance = np.linalg.norm(vertex - mu, 1 if norm == "l1" else 2)
        q = min(1.0, 2.0 * float(distance) / family.task.constants(norm)[1])
        return vertex + q * (mu - vertex)

    def mean_loss_encoding(self, theta: np.ndarray) -> np.ndarray:
        """Return the expected loss encoding of the prediction at scores ``theta``."""
        if self._of_classes:
            return super().mean_loss_encoding(theta)
        return self.loss.task.geometry.loss_of_mean(self.mean_encoding(theta))

    def risk(self, theta: np.ndarray, label: Label) -> float:
        """Return the expected target loss, exact where it is small."""
        if self._of_classes:
            return super().risk(theta, label)
        task = self.loss.task
        target, mean = task.encode(label), self.mean_encoding(theta)
        return max(
            0.0,
            float(target @ (task.geometry.loss_of_mean(mean) - task.geometry.loss_of_mean(target))),
        )
