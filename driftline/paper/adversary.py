r"""The lower bound against one learner, in every run and not only on average.

The adversary knows the distribution that the next prediction is drawn from, and chooses a label of
probability at most 1/2: the expected loss is at least 1/2 in every round. The comparator of
:class:`~driftline.streams.LowerBound` stays and pays 3 for every other label, or follows the labels
and pays by moving: T rounds cost at least T / 2, and that is at least (F + P) / 6.
"""

from __future__ import annotations

import numpy as np

from driftline.learner import OGD
from driftline.streams.base import check_count

__all__ = ["play_adversary"]

INPUT = np.array([1.0, 0.0])


def play_adversary(learner: OGD, rounds: int) -> tuple[np.ndarray, np.ndarray]:
    """Play rounds against a learner of two classes; return the labels and its expected losses.

    >>> import driftline as dl
    >>> learner = dl.OGD(dl.losses.SmoothHinge(dl.tasks.Multiclass(2)), domain=dl.domains.Ball(2.0))
    >>> labels, risk = play_adversary(learner, 100)
    >>> bool(risk.min() >= 0.5)
    True
    """
    rounds = check_count(rounds, 1, "rounds")
    labels, risk = np.empty(rounds, dtype=np.int64), np.empty(rounds)
    for t in range(rounds):
        chances = np.zeros(2)
        atoms, weights = learner.distribution(INPUT)
        chances[atoms] = weights
        labels[t] = int(np.argmin(chances))
        risk[t] = learner.step(INPUT, int(labels[t])).risk
    return labels, risk
