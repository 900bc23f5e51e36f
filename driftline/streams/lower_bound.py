r"""The stream on which no learner does better than guessing.

One input :math:`x = (1, 0)` over and over, and labels by tossing a fair coin. The class 0 stands
for +1 and the class 1 for -1, and with one weight vector per class

.. math:: U(\pm 1) = \frac12 \begin{pmatrix} \pm 1 & 1 \\ \mp 1 & 1 \end{pmatrix},
   \qquad \|U(\pm 1)\| = 1, \quad \|U(+1) - U(-1)\| = \sqrt 2.

The margin of :math:`U(z)` at label y is :math:`y z`, so that its smooth hinge loss is 0 or 3.
"""

from __future__ import annotations

import numpy as np

from driftline.comparators import Piecewise
from driftline.domains import Ball
from driftline.errors import InputError
from driftline.streams.base import Stream, check_count
from driftline.tasks import Multiclass

__all__ = ["LowerBound"]


class LowerBound(Stream):
    """The instance of the paper's lower bound: fair coins, and a comparator that knows them.

    The comparator stays at U(+1) in the first ``rounds_fixed`` rounds and pays 3 for every other
    label; in the last ``rounds_path`` rounds it is U(label) and pays by moving. So with the smooth
    hinge ``F <= 3 rounds_fixed`` and ``P <= sqrt(2) rounds_path``. Each label is independent of all
    that a learner has seen: its mistakes are as many as heads in T fair tosses, whatever it
    does, T / 2 on average, and that is at least ``(F + P) / 6``. (By Yao's principle some labels
    are as bad for a given learner as these are on average.)

    ``domain`` is the ball of diameter 2, which holds the comparator. A learner with the same seed
    draws other numbers.

    Examples
    --------
    >>> from driftline.losses import SmoothHinge
    >>> stream = LowerBound(rounds_fixed=60, rounds_path=40, seed=0)
    >>> loss, weights = SmoothHinge(stream.task), stream.comparator
    >>> losses = [loss.value_and_grad(weights.at(t) @ stream.inputs[t], stream.labels[t])[0]
    ...           for t in range(100)]
    >>> sum(losses[:60]) <= 3 * 60, sum(losses[60:]), weights.path_length <= 2**0.5 * 40
    (True, 0.0, True)
    """

    def __init__(self, rounds_fixed: int, rounds_path: int, seed: int | None = 0):
        fixed = check_count(rounds_fixed, 0, "rounds_fixed")
        path = check_count(rounds_path, 0, "rounds_path")
        rounds = fixed + path
        if rounds == 0:
            raise InputError("expected at least one round, but rounds_fixed and rounds_path are 0")
        self.task = Multiclass(2)
        self.domain = Ball(2.0)
        self.inputs = np.tile([1.0, 0.0], (rounds, 1))
        coins = np.random.SeedSequence(seed, spawn_key=(1,))
        self.labels = np.random.default_rng(coins).integers(0, 2, rounds)
        followed = np.where(np.arange(rounds) < fixed, 0, self.labels)
        self.starts = np.flatnonzero(np.r_[True, np.diff(followed) != 0])
        signs = 1.0 - 2.0 * followed[self.starts]
        weights = np.full((len(signs), 2, 2), 0.5)
        weights[:, 0, 0], weights[:, 1, 0] = 0.5 * signs, -0.5 * signs
        self.comparator = Piecewise(self.starts, weights)
