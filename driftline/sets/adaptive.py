r"""A set of labels for every row, which has the label in a given share of rounds.

Let :math:`c` be the goal, :math:`\alpha = 1 - c`, and :math:`m_t` be 1 if the label of round t was
not in its set, else 0. An account of misses is kept, with :math:`h = 19.5` and :math:`D_1 = 0`,

.. math:: D_{t+1} = \max(-h, \; D_t + m_t - \alpha),

and the set of round t has the most probable label, and every label whose chance is at least a
quantile of the chances that labels had in about the last thousand rounds: the share that is left
out is

.. math:: a_t = \alpha (1 - (D_t / h)^2) \text{ if } D_t \ge 0, \qquad
   a_t = \alpha + (1 - \alpha) (D_t / (h - \alpha))^2 \text{ if } D_t < 0.

At :math:`D_t \ge h` nothing is left out: the set has all labels. At :math:`D_t \le \alpha - h` it
has the most probable label alone. Whatever the labels, the chances and the quantiles are:

- **In any n rounds in a row there are fewer than** :math:`\alpha n + 40` **misses.** A set of all
  labels has no miss, so that the account only rises from below h, by at most
  :math:`1 - \alpha`: always :math:`D_t \le h + 1 - \alpha`. It rises by at least the sum of
  :math:`m_t - \alpha`, and is never below :math:`-h`: so that sum is at most
  :math:`2 h + 1 - \alpha = 40 - \alpha`. From the first round on, where the account is 0, it is at
  most 20.5.
- **There are more than** :math:`\alpha n - 40` **misses, but for rounds that the most probable
  label covers alone.** The account is cut off at :math:`-h` only after a round with
  :math:`D_t < \alpha - h`, whose set is the most probable label: every such round takes at most
  :math:`\alpha` from the misses, and coverage cannot be lowered there, since no set is empty.

A label that comes up for the first time is in no set: each adds at most one miss. Where labels come
late, the account moves when they come; then at most as many misses are added as labels are
outstanding at a time, since those were predicted before the account could know.

No step size is chosen: the account is that of adaptive conformal inference, whose step is bounded
by :math:`\alpha / h`, with a saturation (as in conformal PID control) that gives the bound for
every window, and no memory of coverage that was not needed. Scores are chances, and not cumulated
chances, whose sets are larger by a tenth and more. No randomness is needed: between two values of a
discrete score the account itself alternates.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from driftline.delays import Delay
from driftline.errors import InputError
from driftline.parts import Part
from driftline.sets.level import SetLevel
from driftline.sets.run import SetRun, played
from driftline.typing import Inputs, Labels

__all__ = ["Adaptive"]


@dataclass(frozen=True)
class Adaptive(Part):
    """Sets with the label in a share ``coverage`` of rounds, over any stretch, whatever drifts.

    >>> import driftline as dl
    >>> stream = dl.streams.Planted(dl.tasks.Multiclass(5), rounds=2000, flips=3, noise=0.2, seed=0)
    >>> sets = dl.sets.Adaptive(coverage=0.9)
    >>> made = sets.run(dl.auto(stream.task, effort="fast"), stream.inputs, stream.labels)
    >>> made
    SetRun(2000 rounds, 89.6% covered, 2.72 labels a set)
    >>> made.sets.shape, int(made.size.min())
    ((2000, 5), 1)

    References
    ----------
    Gibbs and Candes (2021), *Adaptive conformal inference under distribution shift*; Angelopoulos,
    Candes and Tibshirani (2023), *Conformal PID control for time series prediction*.
    """

    coverage: float = 0.9

    def __post_init__(self) -> None:
        """Refuse what is no share."""
        given = self.coverage
        number = isinstance(given, (int, float, np.floating)) and not isinstance(given, bool)
        if not number or not 0.0 < given < 1.0:
            raise InputError(f"coverage must lie between 0 and 1, but is {given!r:.80}")
        object.__setattr__(self, "coverage", float(given))

    def level(self) -> SetLevel:
        """Return the level of sets before the first round."""
        return SetLevel(self)

    def run(
        self,
        learner: Any,
        inputs: Inputs,
        labels: Labels = None,
        *,
        level: SetLevel | None = None,
        delay: Delay | npt.ArrayLike | None = None,
        sample_weight: np.ndarray | None = None,
    ) -> SetRun:
        """Let a learner play a stream, and give every row a set before its label is seen.

        Parameters
        ----------
        learner
            A learner of classes, signs or levels; it learns as by its own ``run``.
        inputs, labels, delay, sample_weight
            As there. A row of any sample weight counts once in the coverage.
        level
            The level that an earlier run ended with, to go on from; it is not changed. Default:
            that before the first round.
        """
        return played(self, learner, inputs, labels, level, delay, sample_weight)
