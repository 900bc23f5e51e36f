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

from driftline.kernels import SHARES, kernel

__all__ = ["Shares"]

RATES = (0.25, 1.0, 4.0)
SHARE_VALUES = (1e-4, 1e-3, 1e-2, 5e-2)

#: What stands before the weights in the state: the mixability gap so far. It starts above 0,
#: so that the first decisions do not hang on rounding.
HEAD, FIRST_GAP = 1, 1.0


@kernel(SHARES)
def update(losses, grid, state, work, weights):
    """Write the weights before every round, and learn from its losses.

    ``grid`` has a row of learning rate and share for every set. ``state`` has the gap, the loss of
    every set, and the sets' weights.
    """
    rounds, members = losses.shape
    sets = grid.shape[0]
    totals = state[HEAD : HEAD + sets]
    own = state[HEAD + sets :]
    chances = work[:sets]
    paid = work[sets : 2 * sets]
    for t in range(rounds):
        least = totals[0]
        for g in range(sets):
            least = min(least, totals[g])
        rate = math.log(sets) / state[0]
        total = 0.0
        for g in range(sets):
            chances[g] = math.exp(-rate * (totals[g] - least))
            total += chances[g]
        for j in range(members):
            weights[t, j] = 0.0
        mean = 0.0
        for g in range(sets):
            chances[g] /= total
            paid[g] = 0.0
            for j in range(members):
                weight = own[g * members + j]
                weights[t, j] += chances[g] * weight
                paid[g] += weight * losses[t, j]
            mean += chances[g] * paid[g]

        inside = 0.0
        for g in range(sets):
            inside += chances[g] * math.exp(-rate * (paid[g] - mean))
        state[0] += max(0.0, math.log(inside) / rate)  # mean minus mix loss

        for g in range(sets):
            totals[g] += paid[g]
            best = math.inf
            for j in range(members):
                best = min(best, losses[t, j])
            norm = 0.0
            for j in range(members):
                own[g * members + j] *= math.exp(-grid[g, 0] * (losses[t, j] - best))
                norm += own[g * members + j]
            for j in range(members):
                kept = (1.0 - grid[g, 1]) * own[g * members + j] / norm
                own[g * members + j] = kept + grid[g, 1] / members


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
        self.state = np.zeros(HEAD + sets + sets * members)
        self.state[0] = FIRST_GAP
        self.state[HEAD + sets :] = 1.0 / members
        self._work = np.empty(2 * sets)

    def update(self, losses: np.ndarray) -> np.ndarray:
        """Return the weights before every round, a row each, and learn from the losses."""
        weights = np.empty_like(losses, dtype=np.float64)
        losses = np.ascontiguousarray(losses, dtype=np.float64)
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
