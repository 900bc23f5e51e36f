r"""The probabilities of labels in a committee: a mixture of those of its members.

A member whose scores are logarithms of chances bets :math:`p_j(y)` on the label y, and
:math:`-\ln p_j(y)` is a multiple of its logistic loss: nothing but the recorded loss is needed. A
mixture :math:`\sum_j v_j p_j` is what the committee believes. Its weights move by fixed share
(Herbster and Warmuth, 1998) with learning rate 1, for which the logarithmic loss is mixable: one
set of weights for every share :math:`\alpha` of a small grid,

.. math:: v_{\alpha j} \leftarrow (1 - \alpha) \, \frac{v_{\alpha j} \, p_j(y)}{\sum_i
   v_{\alpha i} \, p_i(y)} + \frac\alpha m,

and the sets are mixed by the product of what they gave to the labels so far (Bayes' rule). The
product of all mixtures is a mixture of products, so that for every sequence of members that changes
k times and every :math:`\alpha` of the grid, of A values, the total logarithmic loss exceeds theirs
by at most

.. math:: \ln A + \ln m + k \ln\frac m\alpha - (T - 1 - k) \ln\Big(1 - \alpha + \frac\alpha m\Big).

A round of sample weight h has h times the logarithmic loss, divided by the scale of the weights of
the vote, so that the learning rate of 1 is small enough.

These are not the weights of the vote (:class:`~driftline.committee.Shares`), which follow mistakes:
the member with the fewest mistakes need not have the best probabilities.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from driftline.errors import InputError
from driftline.kernels import MIX, helper, kernel
from driftline.state import Stateful

__all__ = ["Beliefs", "believe", "mean_belief"]

SHARE_VALUES = (1e-4, 1e-3, 1e-2, 5e-2)

#: The least probability that a member is taken to have given, as a share of the best member's.
LEAST = 1e-100


@helper
def believe(losses, nats, scale, state, bets):
    """Let the weights learn from the members' losses of one round, divided by a scale."""
    members, sets = nats.size, len(SHARE_VALUES)
    best = math.inf
    for j in range(members):
        bets[j] = nats[j] * losses[j] / scale
        best = min(best, bets[j])
    for j in range(members):
        away = bets[j] - best
        bets[j] = math.exp(-away) if away > 1e-12 else 1.0
    total = 0.0
    for a in range(sets):
        share, first = SHARE_VALUES[a], sets + a * members
        given = 0.0
        for j in range(members):
            state[first + j] *= bets[j]
            given += state[first + j]
        given = max(given, LEAST)
        keeps, gives = (1.0 - share) / given, share / members
        for j in range(members):
            state[first + j] = keeps * state[first + j] + gives
        state[a] *= given
        total += state[a]
    for a in range(sets):
        state[a] = max(state[a] / total, LEAST)


@helper
def mean_belief(state, out):
    """Write the weights for the next round: the mean of all sets."""
    members, sets = out.size, len(SHARE_VALUES)
    total = 0.0
    for a in range(sets):
        total += state[a]
    for j in range(members):
        out[j] = 0.0
        for a in range(sets):
            out[j] += state[a] / total * state[sets + a * members + j]


@kernel(MIX)
def write_belief(state, nothing, params, out):
    """Write the weights for the next round."""
    mean_belief(state, out)


class Beliefs(Stateful):
    """A distribution over members that follows their logarithmic losses.

    ``nats`` are the factors from each member's recorded loss to its logarithmic loss. Beliefs are
    updated together with the weights of the vote, by :meth:`Shares.update
    <driftline.committee.Shares.update>`.

    >>> from driftline.committee import Shares
    >>> beliefs, losses = Beliefs(np.ones(2)), np.tile([0.1, 2.0], (50, 1))
    >>> _ = Shares(2).update(np.zeros((50, 2)), beliefs=beliefs, surrogate=losses)
    >>> beliefs.now.round(2)
    array([1., 0.])
    """

    _learned = _inherited = ("state",)

    def __init__(self, nats: np.ndarray):
        self.nats = np.ascontiguousarray(nats, dtype=np.float64)
        sets, members = len(SHARE_VALUES), len(self.nats)
        self.state = np.r_[np.full(sets, 1.0 / sets), np.full(sets * members, 1.0 / members)]

    @property
    def now(self) -> np.ndarray:
        """The weights for the next round."""
        out, nothing = np.empty(len(self.nats)), np.empty(0)
        write_belief(self.state, nothing, nothing, out)
        return out

    def resume(self, state: Any) -> None:
        """Go on from a saved state, if it is valid for this number of members."""
        sets, good = len(SHARE_VALUES), isinstance(state, np.ndarray)
        good = good and state.shape == self.state.shape
        if good:
            own = state[sets:].reshape(sets, -1).sum(axis=1)
            good = bool((state > 0.0).all()) and np.allclose(own, 1.0, atol=1e-6)
            good = good and bool(np.isclose(state[:sets].sum(), 1.0, atol=1e-6))
        if not good:
            raise InputError(f"these are no beliefs in {len(self.nats)} members")
        self.state = np.array(state, dtype=np.float64)
