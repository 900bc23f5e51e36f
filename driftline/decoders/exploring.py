r"""The decoder that explores as much as gradient steps from bandit feedback need.

Only whether the prediction was right is seen. A gradient that is made on a hit, divided by its
probability, is unbiased, but its square is :math:`\|g_y\|^2 \|x\|^2 / p_y` on average. With a step
:math:`\eta` and :math:`c_y = \frac\eta2 \|g_y\|^2 \|x\|^2`, ask for every label that

.. math:: 1 - p_y + c_y / p_y \le L_y + s.

The smallest such probability is

.. math:: p_y(s) = \tfrac12 \Bigl(b_y + \sqrt{b_y^2 + 4 c_y}\Bigr), \qquad b_y = 1 - L_y - s,

and the *slack* s is the root of :math:`\sum_y p_y(s) = 1`. The left side is convex and falls in s,
so that Newton's method from :math:`-\min_y L_y`, where it is at least 1, rises to the root.
Where steps are small, p is the projection of :math:`-L` onto the simplex.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from driftline.decoders.base import ValueDecoder
from driftline.errors import InputError
from driftline.kernels import MIX, Kernel, helper, kernel
from driftline.losses import Loss

__all__ = ["LEAST", "Exploring", "explore", "least_chance", "slack_of"]

#: The least probability that a cost, an estimate or a step is divided by.
LEAST = 2.0**-60

#: The most steps of Newton's method; about ten are enough.
MOST_STEPS = 100


@helper
def least_chance(room, cost):
    """Return the p >= 0 with ``p - cost / p = room``, to full relative precision."""
    root = math.sqrt(room * room + 4.0 * cost)
    if room > 0.0:
        return 0.5 * (room + root)
    return 2.0 * cost / (root - room) if cost > 0.0 else 0.0


@helper
def explore(losses, costs, chances):
    """Write the probabilities of all labels, which add up to 1; return the slack."""
    s = -losses[0]
    for k in range(1, losses.size):
        s = max(s, -losses[k])
    total = 1.0
    for _ in range(MOST_STEPS):
        total = 0.0
        slope = 0.0
        for k in range(losses.size):
            room = 1.0 - losses[k] - s
            chances[k] = least_chance(room, costs[k])
            total += chances[k]
            root = math.sqrt(room * room + 4.0 * costs[k])
            if root > 0.0:
                slope += chances[k] / root
        further = (total - 1.0) / slope if slope > 0.0 else 0.0
        if not s + further > s:
            break
        s += further
    for k in range(losses.size):
        chances[k] /= total
    return s


@helper
def slack_of(losses, costs, chances):
    """Return the least s that any probabilities allow: the largest excess over all labels.

    Where a label came late, probabilities are those of then, and may be 0 where costs are not.
    """
    s = -math.inf
    for k in range(losses.size):
        excess = 1.0 - chances[k] - losses[k]
        if costs[k] > 0.0:
            excess += costs[k] / max(chances[k], LEAST)
        s = max(s, excess)
    return s


@kernel(MIX)
def exploring(values, squares, params, wrong):
    """Explore for the steps that ``params`` has half of, times the squared norm of inputs."""
    for k in range(values.size):
        squares[k] *= params[0]
    explore(values, squares, wrong)
    for k in range(values.size):
        wrong[k] = 1.0 - wrong[k]


@dataclass(frozen=True)
class Exploring(ValueDecoder):
    r"""Explore as much as steps of a given size need, if only hits and misses are seen.

    For labels that do not depend on the draws, and inputs no longer than ``input_norm``,

    .. math:: \mathbb E \sum_t \ell_t \le F_T + \frac D\eta \Bigl(\frac D2 + P_T\Bigr)
        + \mathbb E \sum_t s_t,

    where the :meth:`slack` s is known before any feedback. :class:`driftline.bandit.Bandit` makes
    such steps, at the length of each input.

    >>> from driftline.losses import Logistic
    >>> from driftline.tasks import Multiclass
    >>> decoder = Exploring(Logistic(Multiclass(3)), step=0.1)
    >>> chances = decoder.distribution(np.array([5.0, 0.0, 0.0])).weights
    >>> chances.round(3), round(decoder.slack(np.array([5.0, 0.0, 0.0])), 3)
    (array([0.935, 0.032, 0.032]), 0.045)

    References
    ----------
    van der Hoeven (2020), *Exploiting the surrogate gap in online multiclass classification*.
    """

    loss: Loss
    step: float = 0.1
    input_norm: float = 1.0

    mix: ClassVar[Kernel] = exploring

    def __post_init__(self) -> None:
        """Refuse other losses than 0-1, and steps that are no lengths."""
        self._check_parts()
        for name in ("step", "input_norm"):
            value = getattr(self, name)
            if not (isinstance(value, (int, float)) and 0.0 < value < math.inf):
                raise InputError(f"{name} must be a positive number, not {value!r}")

    @property
    def params(self) -> tuple[float, ...]:
        """Half of the step, times the largest squared norm."""
        return (0.5 * self.step * self.input_norm**2,)

    def slack(self, theta: np.ndarray) -> float:
        """Return by how much expected losses and the price of steps may exceed the surrogate.

        The excess of all labels with a chance is equal; that of the likeliest loses no digits.
        """
        (losses, squares), wrong = self.loss.values(theta), self._wrong(theta)
        k = int(wrong.argmin())
        return float(wrong[k] + self.params[0] * squares[k] / (1.0 - wrong[k]) - losses[k])
