r"""The hull of normalised relevance grades.

With discounts :math:`w_1 \ge w_2 \ge \dots \ge 0`, gains :math:`y` in an interval are encoded by
:math:`y / N(y)`, where :math:`N(y) = \langle w, y_\downarrow \rangle` is what the best order of
them earns. A linear function of this is a ratio of two linear ones in the sorted gains, so
its largest value is reached at gains of two levels only: the highest for some entries, the
lowest for all others.

If the lowest gain is 0 the hull is
:math:`\{u \ge 0,\ \langle w, u_\downarrow \rangle \le 1,\ w_1 \sum u \ge 1\}`: any such u is
majorised by a decreasing s with :math:`\langle w, s \rangle = 1`, found along a path of
majorisation from u to :math:`(\sum u, 0, \dots, 0)`, and s mixes vectors of two levels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from driftline.errors import InputError
from driftline.kernels import (
    POINT,
    Kernel,
    helper,
    kernel,
    pool_decreasing,
    sort_decreasing,
    sorting_room,
)
from driftline.polytopes.base import Mixture, Polytope
from driftline.polytopes.solved import SolvedPolytope

__all__ = ["PositiveRelevance", "Relevance"]


@kernel(POINT)
def maximize(point, params, scratch, out):
    """Try all numbers of entries of the highest gain, in the order of the direction."""
    d = point.size
    low, high = params[0], params[1]
    weights = params[2:]
    order = scratch[:d]
    sort_decreasing(point, order, scratch[d:])
    value = 0.0
    norm = 0.0
    for i in range(d):
        value += low * point[i]
        norm += low * weights[i]
    best = 0
    top = value / norm if low > 0.0 else -np.inf
    level = norm
    for i in range(d):
        value += (high - low) * point[int(order[i])]
        norm += (high - low) * weights[i]
        if value / norm > top:
            top = value / norm
            best = i + 1
            level = norm
    for i in range(d):
        out[int(order[i])] = (high if i < best else low) / level


@helper
def discounted(values, weights, factor, buffer, out):
    """Write the nearest decreasing nonnegative vector to ``values - factor * weights``.

    Return its discounted sum, and how fast that falls with the factor.
    """
    d = values.size
    excess = buffer[:d]
    for i in range(d):
        excess[i] = values[i] - factor * weights[i]
    pool_decreasing(excess, buffer[d : 3 * d], out)
    total = 0.0
    slope = 0.0
    i = 0
    while i < d and out[i] > 0.0:
        first = i
        mean = out[i]
        sum_of_weights = 0.0
        while i < d and out[i] == mean:
            sum_of_weights += weights[i]
            i += 1
        total += sum_of_weights * mean
        slope += sum_of_weights * sum_of_weights / (i - first)
    for j in range(i, d):
        out[j] = 0.0
    return total, slope


@helper
def onto_relevance(values, weights, buffer, out):
    """Write the point of the hull nearest to a decreasing vector, for lowest gain 0.

    Three cases: if the sum is too small, it is raised to its least value; if no constraint is
    active, negative entries are set to 0; else a multiple of the weights is subtracted.
    """
    d = values.size
    total = 0.0
    earned = 0.0
    for i in range(d):
        total += max(0.0, values[i])
        earned += weights[i] * max(0.0, values[i])
    if weights[0] * total <= 1.0:
        least = 1.0 / weights[0]
        above = 0.0
        threshold = -least
        for i in range(d):  # sorted, so that the entries kept come first
            above += values[i] - values[0]
            root = (above - least) / (i + 1)
            if values[i] - values[0] <= root:
                break
            threshold = root
        for i in range(d):
            out[i] = max(0.0, values[i] - values[0] - threshold)
        return
    if earned <= 1.0:
        for i in range(d):
            out[i] = max(0.0, values[i])
        return
    low = 0.0
    high = 0.0  # at which nothing is left
    above = 0.0
    below = 0.0
    for i in range(d):
        above += values[i]
        below += weights[i]
        high = max(high, above / below)
    factor = 0.0
    for _ in range(100):  # Newton's method inside a shrinking bracket
        earned, slope = discounted(values, weights, factor, buffer, out)
        if earned > 1.0:
            low = factor
        elif earned < 1.0:
            high = factor
        else:
            break
        step = factor + (earned - 1.0) / slope if slope > 0.0 else low
        if not low < step < high:
            step = 0.5 * (low + high)
        if step == factor or step == low or step == high:
            break
        factor = step
    for i in range(d):  # remove the excess due to rounding
        out[i] /= earned


@kernel(POINT)
def project(point, params, scratch, out):
    """Sort, project the sorted vector, and put everything back in its place."""
    d = point.size
    order = scratch[:d]
    values = scratch[d : 2 * d]
    nearest = scratch[2 * d : 3 * d]
    sort_decreasing(point, order, scratch[3 * d :])
    for i in range(d):
        values[i] = point[int(order[i])]
    onto_relevance(values, params[2:], scratch[3 * d :], nearest)
    for i in range(d):
        out[int(order[i])] = nearest[i]


@dataclass(frozen=True)
class Relevance(Polytope):
    """The hull of ``y / N(y)`` for gains from 0 to any highest one, not all 0.

    >>> hull = Relevance((1.0, 0.5))
    >>> hull.maximize(np.array([3.0, 2.0])), hull.maximize(np.array([3.0, 1.0]))
    (array([0.66666667, 0.66666667]), array([1., 0.]))
    """

    weights: Sequence[float]

    maximize_kernel: ClassVar[Kernel] = maximize
    project_kernel: ClassVar[Kernel] = project
    equal_norms: ClassVar[bool] = False
    symmetric: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Refuse weights that are negative, increase, or are all 0."""
        object.__setattr__(self, "weights", _check_weights(self.weights))

    @property
    def dim(self) -> int:
        """The number of weights."""
        return len(self.weights)

    @property
    def params(self) -> tuple[float, ...]:
        """Lowest and highest gain, and the weights."""
        return (0.0, 1.0, *self.weights)

    @property
    def scratch(self) -> int:
        """Two orders, the nearest point, and room to find them."""
        return 3 * self.dim + sorting_room(self.dim)

    def decompose(self, point: np.ndarray) -> Mixture:
        """Return the active set of a Frank-Wolfe search for the point."""
        return _by_solver(self).decompose(point)


@dataclass(frozen=True)
class PositiveRelevance(SolvedPolytope):
    """The hull of ``y / N(y)`` for gains from ``low`` to ``high``, both above 0."""

    weights: Sequence[float]
    low: float
    high: float
    tolerance: float = 1e-12

    maximize_kernel: ClassVar[Kernel] = maximize
    equal_norms: ClassVar[bool] = False
    symmetric: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Refuse invalid weights, and bounds that are not in order."""
        object.__setattr__(self, "weights", _check_weights(self.weights))
        if not 0.0 < self.low <= self.high:
            raise InputError(f"gains must be positive, but reach from {self.low} to {self.high}")

    @property
    def dim(self) -> int:
        """The number of weights."""
        return len(self.weights)

    @property
    def params(self) -> tuple[float, ...]:
        """Lowest and highest gain, and the weights."""
        return (self.low, self.high, *self.weights)

    @property
    def scratch(self) -> int:
        """An order, and room to find it."""
        return self.dim + sorting_room(self.dim)

    def decompose(self, point: np.ndarray) -> Mixture:
        """Return the active set of a Frank-Wolfe search for the point."""
        return self.solve(point)[0].mixture


def _by_solver(hull: Relevance) -> SolvedPolytope:
    from driftline.polytopes.hull import Hull

    return Hull(hull.dim, hull.maximize)


def _check_weights(weights: Sequence[float]) -> tuple[float, ...]:
    values = tuple(float(w) for w in weights)
    falling = all(a >= b for a, b in zip(values, values[1:], strict=False))
    if not (
        values and falling and values[-1] >= 0.0 and values[0] > 0.0 and np.isfinite(values[0])
    ):
        raise InputError(
            "discounts must fall from rank to rank, from above 0 to no less than 0, but are "
            f"{', '.join(f'{w:g}' for w in values[:6])}{', ...' if len(values) > 6 else ''}"
        )
    return values
