r"""Convolutional Fenchel-Young losses: surrogates for tasks that do not predict labels.

Let V be the hull of the loss encodings :math:`\ell^\rho(\hat y)` of all predictions. The loss adds
the best of them to the scores before it looks at labels:

.. math::

    L(\theta, y) = \min_{\nu \in V} \Omega^*(\theta + \nu) + \Omega(\rho(y)) + c(y)
    - \langle \theta, \rho(y) \rangle, \qquad \nabla L = \mu - \rho(y),

with :math:`\mu = \nabla\Omega^*(\theta + \nu)`. The minimiser :math:`\nu` is the mean loss encoding
of a random prediction, the decoder that belongs to the loss, and then

.. math:: \mathbb E[\ell] = L(\theta, y) - L_\Omega(\theta + \nu, y)
   \le L(\theta, y) - \frac\lambda2 \|\mu - \rho(y)\|^2:

surrogate and target differ by a Fenchel-Young loss at the moved scores. The value is computed as
this sum: expected target loss plus Fenchel-Young loss. For an inexact :math:`\nu` the sum is too
large by at most its duality gap.

References
----------
Cao, Bao, Feng and An (2025), *Establishing linear surrogate regret bounds for convex smooth
losses via convolutional Fenchel-Young losses*; for least majorised points, Tamir (1995), *Least
majorized elements and generalized polymatroids*.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np

from driftline.errors import InputError
from driftline.kernels import Kernel
from driftline.losses.base import Loss, LossKernels, check_scores
from driftline.losses.convolutional_kernels import (
    classes_entropy,
    classes_quadratic,
    relevance_quadratic,
    relevance_workspace,
    tags_entropy,
    tags_quadratic,
    vertices_entropy,
    vertices_quadratic,
)
from driftline.losses.cost_kernels import cost_chances, cost_gap, cost_workspace, costs
from driftline.losses.fenchel_young import least_curvature
from driftline.losses.fscore_kernels import (
    fscore_chances,
    fscore_gap,
    fscore_quadratic,
    fscore_workspace,
)
from driftline.losses.logistic import EXTRA
from driftline.losses.matching_kernels import (
    matching_gap,
    matching_workspace,
    matchings_quadratic,
)
from driftline.polytopes import (
    ActiveSet,
    Affine,
    Cube,
    Mixture,
    Polytope,
    Simplex,
    Space,
    minimize,
    nearest_point,
    warn_inexact,
)
from driftline.regularizers import Entropy, Quadratic, Regularizer
from driftline.tasks import Task
from driftline.typing import Label

__all__ = ["ConvolutionalFenchelYoung"]

#: With more predictions than this at listed costs, Frank-Wolfe is faster: few of them have chances,
#: and a step of the kernel takes the third power of their number.
MANY = 60


class Solution(NamedTuple):
    """The result of one computation at some scores."""

    theta: np.ndarray
    nu: np.ndarray
    mu: np.ndarray
    gap: float
    mixture: Mixture | None  # of loss encodings, where a solver found nu


class Route(NamedTuple):
    """A kernel of the loss, and what it needs in rounds of some size."""

    kernel: Kernel
    more: Callable[[int], tuple[float, ...]] = lambda size: ()
    room: Callable[[int], int] = lambda size: 3 * size + EXTRA
    gap: Callable[[int], int] = lambda size: -1
    chances: Callable[[int], tuple[int, int]] | None = None
    apart: bool = False  # whether values in Python are found without it


@dataclass(frozen=True)
class Convolution:
    """The conjugate of a regularizer at moved scores, as a function of the move."""

    regularizer: Regularizer
    hull: Polytope
    theta: np.ndarray

    def descent(self, point: np.ndarray) -> np.ndarray:
        """Return minus the mean prediction."""
        return -self.regularizer.solve(self.theta + point, self.hull)[0]

    def step(self, point: np.ndarray, direction: np.ndarray, limit: float) -> float:
        """Return where the slope along the direction vanishes."""
        from scipy.optimize import brentq

        def slope(step: float) -> float:
            return -float(self.descent(point + step * direction) @ direction)

        if slope(limit) <= 0.0:
            return limit
        if slope(0.0) >= 0.0:
            return 0.0
        return float(brentq(slope, 0.0, limit, xtol=1e-16 * limit, rtol=1e-15, maxiter=200))


@dataclass(frozen=True)
class ConvolutionalFenchelYoung(Loss):
    r"""The convolutional Fenchel-Young loss of a task and a regularizer.

    Parameters
    ----------
    task
        Any task with a best prediction for a mean encoding.
    regularizer
        Its domain is the hull of label encodings. A larger scale means larger steps and a larger
        surrogate loss for comparators. Default: :func:`default_regularizer`.
    whole_space
        Whether the domain of a quadratic regularizer is the whole space instead. Then
        :math:`L - \mathbb E[\ell] = \frac\lambda2 \|\nabla L\|^2` exactly; losses behave like
        squares and never vanish on a region.
    tolerance
        The largest duality gap of the solver, where no closed form is known.

    Notes
    -----
    The minimum is a single projection wherever V is a base polytope and the regularizer is
    symmetric (classes, sets of a fixed size, rankings, NDCG, precision at k), coordinatewise
    on cubes (tags), and position by position for sequences without transitions. Elsewhere, and
    for regularizers that are not ``symmetric``, it is found by Frank-Wolfe.

    Examples
    --------
    >>> from driftline.tasks import Multiclass
    >>> loss = ConvolutionalFenchelYoung(Multiclass(3), Quadratic(1.0))
    >>> value, grad = loss.value_and_grad([2.5, 0.5, 0.0], label=0)
    >>> value, grad
    (0.0, array([0., 0., 0.]))
    """

    overestimates: ClassVar[bool] = True

    task: Any
    regularizer: Regularizer | None = None
    whole_space: bool = False
    tolerance: float = 1e-10

    def __post_init__(self) -> None:
        """Refuse regularizers that the polytope does not support."""
        if self.regularizer is None:
            object.__setattr__(self, "regularizer", default_regularizer(self.task))
        if self.whole_space and not isinstance(self.regularizer, Quadratic):
            raise InputError(f"only a quadratic takes the whole space, not {self.regularizer!r}")
        if self._omega.strong_convexity(self._hull(self.task.label_hull), "l2") is None:
            raise InputError(f"{self.regularizer!r} is not known on {self.task.label_hull!r}")
        if not self.tolerance > 0.0:
            raise InputError(f"the tolerance must be positive, but is {self.tolerance}")

    @property
    def _omega(self) -> Regularizer:
        assert self.regularizer is not None
        return self.regularizer

    def _hull(self, hull: Polytope) -> Polytope:
        return Space(hull.dim) if self.whole_space else hull

    # -- the one computation

    def solve(self, theta: np.ndarray) -> Solution:
        """Return the best move of the scores, with the mean prediction and the gap.

        The last answer is cached, since loss and decoder of a round need the same one.
        """
        theta = check_scores(theta, self.task)
        last = self.__dict__.get("_last")
        if last is None or not np.array_equal(last.theta, theta):
            last = self.__dict__["_last"] = self._solve(theta.copy())
        return last

    def _solve(self, theta: np.ndarray) -> Solution:
        hull, moves = (
            self._hull(self.task.geometry.hull_of(theta)),
            self.task.geometry.loss_hull_of(theta),
        )
        gap, mixture = 0.0, None
        if self._closed(hull, moves):
            nu = moves.project(-theta)
        else:
            active, gap = self._search(hull, moves, theta)
            nu, mixture = active.point, active.mixture
        mu, inner = self._omega.solve(theta + nu, hull)
        gap += inner
        if gap > self.tolerance * max(1.0, float(np.abs(theta).max())) and self._first_time(
            "short"
        ):
            warn_inexact(gap, self.tolerance)
        return Solution(theta, nu, mu, gap, mixture)

    def _closed(self, hull: Polytope, moves: Polytope) -> bool:
        """Say whether the best move is the projection of minus the scores."""
        if not moves.closed:
            return False
        if self.whole_space or (self._omega.symmetric and moves.base and hull.symmetric):
            return True
        alike = isinstance(moves, Affine) and moves.hull == hull and hull.coordinatewise
        if self._omega.symmetric:
            return alike
        if (moves.base or alike) and self._first_time("asymmetric"):
            warnings.warn(
                f"{type(self._omega).__name__} does not call itself symmetric: the closed form "
                "for it does not apply, and a solver takes its place",
                stacklevel=6,
            )
        return False

    def _search(
        self, hull: Polytope, moves: Polytope, theta: np.ndarray
    ) -> tuple[ActiveSet, float]:
        """Find the best move by Frank-Wolfe."""
        tolerance, most = 0.5 * self.tolerance, moves.most_vertices
        if self.whole_space:
            scale = self._omega.scale
            active, gap = nearest_point(moves.maximize, -theta, most, None, tolerance * scale)
            return active, gap / scale
        objective = Convolution(self._omega, hull, theta)
        start = ActiveSet(moves.maximize(objective.descent(np.zeros(theta.size))))
        return minimize(objective, moves.maximize, start, most, tolerance)

    # -- values

    def value_and_grad(self, theta: np.ndarray, label: Label) -> tuple[float, np.ndarray]:
        """Return the loss at scores ``theta`` and its gradient in them."""
        theta = check_scores(theta, self.task)
        target, offset = self.task.encode(label), self.task.offset(label)
        if target.size != theta.size:
            raise InputError(f"{theta.size} scores do not fit a label of {target.size} entries")
        if self.task.geometry.idle(label):
            return 0.0, np.zeros_like(theta)
        if self._route is not None and not self._route.apart:
            return super().value_and_grad(theta, label)
        found = self.solve(theta)
        risk = max(0.0, float(target @ found.nu) + offset)
        hull = self._hull(self.task.geometry.hull_of(theta))
        rest = self._omega.loss(theta + found.nu, target, found.mu, hull)
        return risk + max(0.0, rest), found.mu - target

    values = Loss._values_one_by_one

    def mean_loss_encoding(self, theta: np.ndarray) -> np.ndarray:
        """Return nu, the mean loss encoding of the decoder that belongs to the loss."""
        if self._route is not None and not self._route.apart:
            theta = check_scores(theta, self.task)
            return self._work(theta)[: theta.size].copy()
        return self.solve(theta).nu.copy()

    def solver_gap(self, theta: np.ndarray) -> float:
        """Return by how much the value at these scores may be too large."""
        if not self.inexact:
            return 0.0
        if self._route is None or self._route.apart:
            return self.solve(theta).gap
        theta = check_scores(theta, self.task)
        return float(self._work(theta)[self._route.gap(theta.size)])

    @property
    def inexact(self) -> bool:
        """Whether values come from a solver, and not from a closed form."""
        hull = self._hull(self.task.label_hull)
        known = isinstance(self._omega, Entropy) or hull.closed
        return not (known and self._closed(hull, self.task.geometry.loss_hull))

    # -- constants

    @property
    def bounded_rate(self) -> bool:
        """Whether the loss is exactly 0 on a region, as for the quadratic."""
        return isinstance(self._omega, Quadratic)

    @property
    def self_bound(self) -> float:
        """One over the rate floor: the loss is at least half the floor times the gradient."""
        return 1.0 / self.rate_floor

    @property
    def rate_floor(self) -> float:
        r"""The largest known number with :math:`L - E[\ell] \ge \frac12` floor :math:`\|g\|^2`.

        It is that of the Fenchel-Young loss at the moved scores, which is their difference.
        """
        return least_curvature(self._omega, self._hull(self.task.label_hull))

    # -- the compiled side

    @property
    def _route(self) -> Route | None:
        """How the loss is computed by a kernel, None where there is none."""
        found = self.__dict__.get("_found", self)
        if found is self:
            found = self.__dict__["_found"] = self._find_route()
        return found

    def _find_route(self) -> Route | None:
        task, quadratic = self.task, type(self._omega) is Quadratic
        if not quadratic and type(self._omega) is not Entropy:
            return None
        match task.kind:
            case "classes":
                return Route(classes_quadratic if quadratic else classes_entropy)
            case "sign" | "tags":
                return Route(tags_quadratic if quadratic else tags_entropy)
            case "relevance":
                known = quadratic and (self.whole_space or task.lowest == 0)
                room = relevance_workspace
                return Route(relevance_quadratic, task.discounts, room) if known else None
            case "matching" if quadratic and not self.whole_space:
                gap = matching_gap
                return Route(matchings_quadratic, room=matching_workspace, gap=gap, apart=True)
            case "f-score" if not self.whole_space:
                more = (float(task.tags), *task.shares.ravel())
                given = (fscore_workspace, fscore_gap, fscore_chances)
                return Route(fscore_quadratic, lambda size: more, *given)
            case "costs" if isinstance(task.label_hull, Simplex) and not any(task.offsets):
                columns = len(task.prediction_matrix)
                if columns > MANY:
                    return None
                more = (float(columns), float(not quadratic), *task.geometry.loss_matrix.ravel())
                room, chances = partial(cost_workspace, columns), partial(cost_chances, columns)
                return Route(costs, lambda size: more, room, cost_gap, chances)
        hull, moves = task.label_hull, task.geometry.loss_hull
        if task.kernels is None or not isinstance(moves, Affine) or moves.hull != hull:
            return None
        if hull.project_kernel is None or not self._closed(self._hull(hull), moves):
            return None
        if not quadratic and hull.entropy_kernel is None:
            return None
        found = (hull.project_kernel, hull.entropy_kernel)
        addresses = [0.0 if kernel is None else float(kernel.address) for kernel in found]
        offset = 0.0 if task.geometry.part_size else task.constant_offset
        more = (task.loss_factor, offset, *addresses, float(task.geometry.part_size), *hull.params)
        chosen = vertices_quadratic if quadratic else vertices_entropy
        return Route(chosen, lambda size: more, lambda size: 4 * size + hull.scratch, apart=True)

    @property
    def kernels(self) -> LossKernels | None:
        """Kernels by the kind of task, and where a projection is all."""
        return None if self._route is None else LossKernels(self._route.kernel)

    def params(self, size: int) -> tuple[float, ...]:
        """Return the factor of the loss, the scale, ``whole_space``, and those of the kernel."""
        more = () if self._route is None else self._route.more(size)
        return (1.0, self._omega.scale, float(self.whole_space), *more)

    def gap_place(self, size: int) -> int:
        """Return where the gap of a solver stands; other kernels are exact."""
        return -1 if self._route is None else self._route.gap(size)

    @property
    def finds_chances(self) -> bool:
        """Whether the kernel leaves chances of predictions, which their mean does not say."""
        return self._route is not None and self._route.chances is not None

    def chances(self, size: int) -> tuple[int, int]:
        """Return where in the workspace the chances of predictions are, and how many."""
        assert self._route is not None and self._route.chances is not None
        return self._route.chances(size)

    @property
    def discounts_at(self) -> int | None:
        """Behind the parameters of all kernels, where there are discounts."""
        return 3 if self.task.labels.graded else None

    def workspace(self, size: int) -> int:
        """Return room for the move, and for the buffers to find it."""
        return 0 if self._route is None else self._route.room(size)


def default_regularizer(task: Task) -> Regularizer:
    """Return the regularizer that a task gets when none is named.

    Its scale is about the best on planted streams with little drift, in a ball of diameter 20
    (``driftline scales``): 3 for relevance grades, 0.3 for classes and costs, 0.2 for tags. Larger
    scales are better in larger balls and under more drift, smaller ones with many classes or noise.
    """
    hull = task.label_hull
    if task.labels.graded:
        return Quadratic(3.0)
    if isinstance(hull, Simplex):
        return Entropy(0.3)
    return Entropy(0.2) if isinstance(hull, Cube) else Quadratic(1.0)
