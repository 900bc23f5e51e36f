r"""Fenchel-Young losses: one for every polytope and regularizer.

.. math::

    L_\Omega(\theta, y) = \Omega^*(\theta) + \Omega(\rho(y)) - \langle \theta, \rho(y) \rangle,
    \qquad \nabla L_\Omega(\theta, y) = \mu(\theta) - \rho(y),

with :math:`\mu(\theta)` the mean prediction. The loss is 0 exactly where
:math:`\mu(\theta) = \rho(y)`, and if :math:`\Omega` is :math:`\lambda`-strongly convex it is at
least :math:`\frac\lambda2 \|\mu - \rho(y)\|^2`, hence self-bounding with :math:`M = 1/\lambda`.

For the entropy more is known. On the simplex :math:`L_\Omega = -\lambda \ln p` and
:math:`\|g\|^2 \le 2 (1 - p)^2`, with p the probability of the label, so that
:math:`M = \frac1\lambda \max_p \frac{(1-p)^2}{-\ln p} = 0.4073 / \lambda`; on the cube of plus and
minus ones every coordinate has :math:`g^2 = 4 (1 - p)^2`, and M is twice that. On a chain it is the
loss of :class:`~driftline.losses.CRF`.

For matchings and sets of m tags :math:`L_\Omega \ge -\lambda \sum_{i \in y} \ln \mu_i`. Every row
of a matching has :math:`\|g\|^2 \le 2 (1 - \mu_i)^2`, as on a simplex, and M is the same. The tags
outside of a set have :math:`\sum \mu_j^2 \le \sum \mu_j = \sum_{i \in y} (1 - \mu_i)`, so that with
:math:`r = 1 - \mu_i` it is :math:`\frac1\lambda \max_r \frac{r (1 + r)}{-2 \ln(1 - r)} = 0.5486 /
\lambda`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from driftline.errors import InputError
from driftline.kernels import Kernel
from driftline.losses.base import Loss, LossKernels, check_scores
from driftline.losses.fenchel_young_kernels import entropy, quadratic
from driftline.losses.logistic import SELF_BOUND
from driftline.polytopes import (
    Birkhoff,
    Chain,
    Cube,
    Hypersimplex,
    Polytope,
    Positions,
    Simplex,
    SolvedPolytope,
    warn_inexact,
)
from driftline.regularizers import Entropy, Quadratic, Regularizer
from driftline.tasks import Task
from driftline.typing import Json, Label

__all__ = ["FenchelYoung", "SparseMAP", "least_curvature"]

#: max over r of r (1 + r) / (-2 ln(1 - r)).
WORST_SHARE = 0.36809976862122373
SETS = WORST_SHARE * (1.0 + WORST_SHARE) / (-2.0 * math.log1p(-WORST_SHARE))


def least_curvature(omega: Regularizer, hull: Polytope) -> float:
    r"""Return the largest known number c with :math:`L_\Omega \ge \frac c2 \|g\|^2`."""
    if isinstance(omega, Entropy) and isinstance(hull, (Simplex, Positions, Chain, Birkhoff)):
        return omega.scale / SELF_BOUND
    if isinstance(omega, Entropy) and isinstance(hull, Hypersimplex):
        return omega.scale / SETS
    if isinstance(omega, Entropy) and isinstance(hull, Cube):
        return 2.0 * omega.scale / (SELF_BOUND * (hull.high - hull.low) ** 2)
    modulus = omega.strong_convexity(hull, "l2")
    assert modulus is not None
    return modulus


@dataclass(frozen=True)
class FenchelYoung(Loss):
    """The Fenchel-Young loss of a task's label polytope and a regularizer.

    >>> from driftline.tasks import Multilabel
    >>> loss = FenchelYoung(Multilabel(2), Quadratic(1.0))
    >>> loss.value_and_grad([0.5, -3.0], label=[1, 0])
    (0.125, array([-0.5,  0. ]))

    References
    ----------
    Blondel, Martins and Niculae (2020), *Learning with Fenchel-Young losses*.
    """

    task: Task
    regularizer: Regularizer

    def __post_init__(self) -> None:
        """Refuse tasks without a polytope and regularizers that it does not support."""
        if self.regularizer.strong_convexity(self.task.label_hull, "l2") is None:
            raise InputError(f"{self.regularizer!r} is not known on {self.task.label_hull!r}")

    # -- the compiled side

    @property
    def _solver(self) -> Kernel | None:
        """The kernel of the polytope by which mean predictions are found."""
        hull = self.task.label_hull
        if type(self.regularizer) is Quadratic:
            return hull.project_kernel
        return hull.entropy_kernel if type(self.regularizer) is Entropy else None

    @property
    def kernels(self) -> LossKernels | None:
        """That of the regularizer, where the polytope has one of its own."""
        if self._solver is None:
            return None
        return LossKernels(quadratic if isinstance(self.regularizer, Quadratic) else entropy)

    def params(self, size: int) -> tuple[float, ...]:
        """Return the factor of the whole loss, the scale, and what the polytope needs."""
        solver = self._solver
        address = 0 if solver is None else solver.address
        facts = (float(self.inexact), float(self.task.geometry.pair_tags))
        return (1.0, self.regularizer.scale, float(address), *facts, *self.task.label_hull.params)

    def gap_place(self, size: int) -> int:
        """Return the last place of the workspace, if a solver finds mean predictions."""
        return self.workspace(size) - 1 if self.inexact else -1

    def workspace(self, size: int) -> int:
        """Return room for the mean prediction, a point, what the polytope needs, and the gap."""
        hull = self.task.geometry.hull_at(size)
        return 2 * max(size, hull.dim) + hull.scratch + 1

    # -- in Python

    def mean_prediction(self, theta: np.ndarray) -> np.ndarray:
        """Return mu(theta), the mean prediction at these scores.

        The last answer is cached, since loss and decoder of a round need the same one.
        """
        return self._solve(check_scores(theta, self.task))[1].copy()

    def _solve(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        """Return scores, mean prediction and duality gap."""
        last = self.__dict__.get("_last")
        if last is None or not np.array_equal(last[0], theta):
            hull = self.task.geometry.hull_of(theta)
            mu, gap = self.regularizer.solve(theta, hull)
            last = self.__dict__["_last"] = (theta.copy(), mu, gap)
            if isinstance(hull, SolvedPolytope) and hull.missed(
                gap / self.regularizer.scale, theta
            ):
                if self._first_time("short"):
                    warn_inexact(gap, self.regularizer.scale * hull.tolerance)
        return last

    def solver_gap(self, theta: np.ndarray) -> float:
        """Return by how much the mean prediction at these scores may miss the best value."""
        return self._solve(check_scores(theta, self.task))[2]

    @property
    def inexact(self) -> bool:
        """Whether mean predictions come from a solver, and not from a closed form."""
        solved = isinstance(self.task.label_hull, SolvedPolytope)
        return solved and isinstance(self.regularizer, Quadratic)

    def value_and_grad(self, theta: np.ndarray, label: Label) -> tuple[float, np.ndarray]:
        """Return the loss at scores ``theta`` and its gradient in them."""
        theta = check_scores(theta, self.task)
        target = self.task.encode(label)
        if target.size != theta.size:
            raise InputError(f"{theta.size} scores do not fit a label of {target.size} entries")
        hull, mu = self.task.geometry.hull_of(theta), self.mean_prediction(theta)
        return max(0.0, self.regularizer.loss(theta, target, mu, hull)), mu - target

    values = Loss._values_one_by_one

    @property
    def bounded_rate(self) -> bool:
        """Whether the loss is exactly 0 on a region, as for the quadratic."""
        return isinstance(self.regularizer, Quadratic)

    @property
    def self_bound(self) -> float:
        """One over the floor of the loss."""
        return 1.0 / least_curvature(self.regularizer, self.task.label_hull)

    @property
    def nearest_vertex_norm(self) -> str:
        """The norm in which 4 gamma / (lambda nu) is smallest."""
        return min(("l2", "l1"), key=lambda norm: self._ratio_in(norm))

    @property
    def nearest_vertex_ratio(self) -> float | None:
        """The smallest known 4 gamma / (lambda nu)."""
        ratio = self._ratio_in(self.nearest_vertex_norm)
        return None if math.isinf(ratio) else ratio

    def _ratio_in(self, norm: str) -> float:
        if isinstance(self.task.label_hull, Chain) and isinstance(self.regularizer, Entropy):
            return math.inf  # (2n-1)^2 / (2n) at length n
        constants = self.task.constants(norm)
        modulus = self.regularizer.strong_convexity(self.task.label_hull, norm)
        if constants is None or modulus is None:
            return math.inf
        slope, separation = constants
        return 4.0 * slope / (modulus * separation)

    @property
    def argmax_ratio(self) -> float | None:
        """The constant kappa of the best vertex, None where it is infinite or unknown.

        For the quadratic and vertices of one norm, a wrong best vertex leaves a loss of at
        least an eighth of scale times the squared distance of the two encodings, of which the
        target loss is a multiple. For the entropy of coordinates, a wrong sign costs ln 2.
        """
        hull, scale = self.task.label_hull, self.regularizer.scale
        if not hasattr(self.task, "loss_factor"):
            return None
        if isinstance(self.regularizer, Quadratic) and hull.equal_norms:
            return 4.0 * abs(self.task.loss_factor) / scale
        if isinstance(self.regularizer, Entropy) and isinstance(hull, Simplex):
            return 1.0 / (scale * math.log(2.0))
        if isinstance(self.regularizer, Entropy) and isinstance(hull, Cube) and hull.equal_norms:
            return 1.0 / (hull.dim * scale * math.log(2.0))
        return None


class SparseMAP(FenchelYoung):
    """The Fenchel-Young loss of the quadratic, whose mean predictions mix few labels.

    >>> from driftline.tasks import LabelRanking
    >>> SparseMAP(LabelRanking(4), 2.0)
    SparseMAP(LabelRanking(items=4, shared=False), 2.0)

    References
    ----------
    Niculae et al. (2018), *SparseMAP: differentiable sparse structured inference*.
    """

    _made_from: ClassVar[tuple[str, ...]] = ("task", "scale")

    def __init__(self, task: Task, scale: float = 1.0):
        super().__init__(task, Quadratic(float(scale)))

    def __repr__(self) -> str:
        """Name the task and the scale."""
        return f"SparseMAP({self.task!r}, {self.regularizer.scale})"

    def config(self) -> Json:
        """Return task and scale as plain data."""
        return {
            "type": self._part_name(),
            "task": self.task.config(),
            "scale": self.regularizer.scale,
        }
