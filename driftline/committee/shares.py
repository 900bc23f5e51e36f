r"""Weights of the members of a committee, with nothing to set.

Fixed share (Herbster and Warmuth, 1998) with learning rate :math:`\eta` and share :math:`\alpha`
multiplies the weight of every member by :math:`e^{-\eta \ell}` and then gives a share
:math:`\alpha` of all weight back to everybody, so that who has become good again can rise.
Which :math:`\eta` and :math:`\alpha` are right depends on the stream: one such set of weights runs
for every pair of a small grid, and AdaHedge (de Rooij et al., 2014), which needs no parameter,
weighs these by their own losses.
"""

from __future__ import annotations

import math

import numpy as np

from driftline.kernels import SHARES, helper, kernel

__all__ = ["Shares"]

RATES = (0.25, 1.0, 4.0)
SHARE_VALUES = (1e-4, 1e-3, 1e-2, 5e-2)

#: What stands first in the state: the mixability gap so far. It starts above 0, so that the first
#: decisions do not hang on rounding.
HEAD, FIRST_GAP = 1, 1.0


@kernel(SHARES)
def update(losses, grid, state, work, weights):
    """Write the weights before every round, and learn from its losses.

    ``grid`` has a row of learning rate and share for every set, rows of the same rate side by
    side. ``state`` has the gap, the loss of every set, its chance, and the sets' weights. A round
    in which all members fare alike moves no chance: nothing but the shares are given back.
    """
    rounds, members = losses.shape
    sets = grid.shape[0]
    totals = state[HEAD : HEAD + sets]
    chances = state[HEAD + sets : HEAD + 2 * sets]
    own = state[HEAD + 2 * sets :]
    paid = work[:sets]
    factors = work[sets : sets + members]
    for t in range(rounds):
        best, alike = losses[t, 0], True
        for j in range(members):
            best = min(best, losses[t, j])
            alike = alike and losses[t, j] == losses[t, 0]
            weights[t, j] = 0.0
        for g in range(sets):
            paid[g] = 0.0
            for j in range(members):
                weight = own[g * members + j]
                weights[t, j] += chances[g] * weight
                paid[g] += weight * losses[t, j]
        if not alike:
            _choose(state, totals, chances, paid)
        for g in range(sets):
            norm = 1.0
            if not alike:
                if g == 0 or grid[g, 0] != grid[g - 1, 0]:
                    for j in range(members):
                        factors[j] = math.exp(-grid[g, 0] * (losses[t, j] - best))
                norm = 0.0
                for j in range(members):
                    own[g * members + j] *= factors[j]
                    norm += own[g * members + j]
            keep, give = (1.0 - grid[g, 1]) / norm, grid[g, 1] / members
            for j in range(members):
                own[g * members + j] = keep * own[g * members + j] + give


@helper
def _choose(state, totals, chances, paid):
    """Let the chances of the sets learn from what each has paid."""
    sets = totals.size
    rate = math.log(sets) / state[0]
    mean, inside, least = 0.0, 0.0, math.inf
    for g in range(sets):
        mean += chances[g] * paid[g]
    for g in range(sets):
        inside += chances[g] * math.exp(-rate * (paid[g] - mean))
        totals[g] += paid[g]
        least = min(least, totals[g])
    state[0] += max(0.0, math.log(inside) / rate)  # mean minus mix loss
    rate, total = math.log(sets) / state[0], 0.0
    for g in range(sets):
        totals[g] -= least  # differences are all that counts
        chances[g] = math.exp(-rate * totals[g])
        total += chances[g]
    for g in range(sets):
        chances[g] /= total


class Shares:
    """A distribution over members that follows their losses, which lie between 0 and 1.

    >>> shares = Shares(2)
    >>> _ = shares.update(np.tile([1.0, 0.0], (50, 1)))
    >>> shares.now.round(2)
    array([0., 1.])
    """

    def __init__(self, members: int):
        self.members = members
        self.grid = np.array([(eta, share) for eta in RATES for share in SHARE_VALUES])
        sets = len(self.grid)
        self.state = np.zeros(HEAD + 2 * sets + sets * members)
        self.state[0] = FIRST_GAP
        self.state[HEAD + sets : HEAD + 2 * sets] = 1.0 / sets
        self.state[HEAD + 2 * sets :] = 1.0 / members
        self._work = np.empty(sets + members)

    def update(self, losses: np.ndarray) -> np.ndarray:
        """Return the weights before every round, a row each, and learn from the losses."""
        losses = np.ascontiguousarray(losses, dtype=np.float64)
        weights = np.empty(losses.shape)
        update(losses, self.grid, self.state, self._work, weights)
        return weights

    @property
    def now(self) -> np.ndarray:
        """The weights for the next round."""
        other = self.copy()
        return other.update(np.zeros((1, self.members)))[0]

    def copy(self) -> Shares:
        """Return weights that move on their own."""
        other = Shares(self.members)
        other.state[:] = self.state
        return other

    def regret_bound(self, rounds: int, switches: int = 0) -> float:
        """Return how far the mean loss may exceed that of the best members, added up.

        Against any sequence of members that changes ``switches`` times.
        """
        members, sets = self.members, len(self.grid)
        top = math.sqrt(rounds * math.log(sets)) + 4.0 / 3.0 * math.log(sets) + 2.0
        top += 2.0 * FIRST_GAP
        costs = []
        for eta, share in self.grid:
            stay = -math.log(1.0 - share + share / members)
            leave = math.log(members / share)
            words = math.log(members) + switches * leave + max(0, rounds - 1 - switches) * stay
            costs.append(words / eta + eta * rounds / 8.0)
        return top + min(costs)
