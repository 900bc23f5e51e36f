r"""Weights of the members of a committee, with nothing to set.

Fixed share (Herbster and Warmuth, 1998) with learning rate :math:`\eta` and share :math:`\alpha`
multiplies the weight of every member by :math:`e^{-\eta \ell}` and then gives a share
:math:`\alpha` of all weight back to all members, so that one that has become good again can rise.
Which :math:`\eta` and :math:`\alpha` are right depends on the stream: one such set of weights runs
for every pair of a small grid, and AdaHedge (de Rooij et al., 2014), which needs no parameter,
weighs these by their own losses.

*Sample weights.* A round of weight h has losses up to h, and is divided by a scale H, the smallest
power of 2 that no weight so far exceeds; a round of weight 0 changes nothing. When H grows, all
sets count alike again, but each keeps its weights of members.

*Late labels.* When a label comes, weights of members move by what members paid for their
prediction, and sets are weighed by what their weights *at the prediction* paid: with those of now a
set that follows the last labels seems good that never was.
"""

from __future__ import annotations

import math

import numpy as np

from driftline.committee.beliefs import Beliefs, believe, mean_belief
from driftline.detectors.alarms import PARAMS, AlarmLog, note, skip
from driftline.errors import InputError
from driftline.kernels import SHARES, helper, kernel
from driftline.kernels.products import padded, pitch_of
from driftline.kernels.vectors import LANES, load, power_down, spread, store, total
from driftline.state import Stateful

__all__ = ["Shares", "choose", "lay_out", "move", "put_back", "rescale", "weigh"]

RATES = (0.25, 1.0, 4.0)
SHARE_VALUES = (1e-4, 1e-3, 1e-2, 5e-2)

#: The state begins with the mixability gap so far, and the scale of sample weights, 0 before the
#: first. The gap starts above 0, so that the first decisions do not depend on rounding.
GAP, SCALE, HEAD, FIRST_GAP = 0, 1, 2, 1.0

#: Rows of the room in which sets lie side by side, before those of members: chances, minus learning
#: rates, what is left to a member that errs, what members keep and are given, and what sets pay.
CHANCE, RATE, WORST, KEEPS, GIVES, PAID, OF_SETS = range(7)

#: The arguments where there are no surrogate losses, and so no beliefs.
NOTHING = (np.empty((0, 0)), np.empty(0), np.empty(0), np.empty((0, 0)))
NOWHERE = np.empty((0, 0))

#: Sample weights of rounds that all count once.
ONCE = np.empty(0)

#: No log of alarms.
SILENT = (PARAMS, np.empty(0))

#: How many products of weights and means are in memory at a time.
MOST_PRODUCTS = 1 << 16

#: Labels that come at once.
AT_ONCE = (np.empty(0, np.int64), np.empty((0, 0)))


@kernel(SHARES)
def update(
    losses, largest, sample_weight, grid, state, work, weights, surrogate, nats, beliefs, believed,
    params, alarms, rounds_of, kept,
):  # fmt: skip
    """Write the weights before every round, and learn from its losses over the largest possible.

    ``grid`` has a row of learning rate and share for every set. ``state`` has gap and scale, the
    loss of every set, its chance, and the sets' weights. A round in which all members fare alike
    moves no chance: nothing but the shares are given back.
    Beliefs are moved by surrogate losses, and written to ``believed`` before every round; alarms
    are noted by the weighted mean of losses: unless these are empty. Where labels come late,
    ``kept`` has what sets pay when a round is asked for, over the largest loss.
    """
    rounds, members = losses.shape
    sets = grid.shape[0]
    totals = state[HEAD : HEAD + sets]
    chances = state[HEAD + sets : HEAD + 2 * sets]
    lost, factors = work[:members], work[members : 2 * members]
    room = work[2 * members :].reshape(OF_SETS + members, pitch_of(sets))
    lay_out(state, grid, room)
    for t in range(rounds):
        weigh(room, weights[t])
        if believed.size > 0:
            mean_belief(beliefs, believed[t])
        counts = sample_weight[t] if sample_weight.size > 0 else 1.0
        if counts < 0.0 and rounds_of.size > 0:
            for j in range(members):
                lost[j] = max(losses[t, j] / largest, 0.0)
            pay(room, lost)
            for g in range(sets):
                kept[rounds_of[t], g] = room[PAID, g]
        if counts <= 0.0:
            if counts == 0.0 and alarms.size > 0:
                skip(alarms)
            continue
        if counts > state[SCALE]:
            rescale(state, totals, chances, counts, room)
        if nats.size > 0:
            believe(surrogate[t], nats, state[SCALE], beliefs, factors)
        best, alike, most, first = 1.0, True, largest * state[SCALE], -1
        for j in range(members):
            lost[j] = min(max(losses[t, j] / most, 0.0), 1.0)
            if weights[t, j] > 0.0:
                first = j if first < 0 else first
                best = min(best, lost[j])
                alike = alike and lost[j] == lost[first]
        if alarms.size > 0:
            mean = 0.0
            for j in range(members):
                mean += weights[t, j] * lost[j]
            note(mean * (state[SCALE] / counts), params, alarms)
        if not alike:
            if rounds_of.size > 0 and kept[rounds_of[t], 0] >= 0.0:  # else it is told at once
                for g in range(sets):
                    room[PAID, g] = min(kept[rounds_of[t], g] / state[SCALE], 1.0)
            else:
                pay(room, lost)
            choose(state, totals, chances, room)
        move(room, lost, best, alike)
    put_back(room, state, sets)


@helper
def lay_out(state, grid, room):
    """Lay sets side by side: their own rows of the room, then one of each member's weights.

    Columns beyond the last set are as the first one, with no chance.
    """
    sets, members = grid.shape[0], room.shape[0] - OF_SETS
    own, able = state[HEAD + 2 * sets :], 0
    for j in range(members):
        able += 1 if own[j] > 0.0 else 0
    for g in range(room.shape[1]):
        of = g if g < sets else 0
        room[CHANCE, g] = state[HEAD + sets + g] if g < sets else 0.0
        room[RATE, g], room[WORST, g] = -grid[of, 0], math.exp(-grid[of, 0])
        room[KEEPS, g], room[GIVES, g] = 1.0 - grid[of, 1], grid[of, 1] / able
        for j in range(members):
            room[OF_SETS + j, g] = own[of * members + j]


@helper
def put_back(room, state, sets):
    """Write the sets' weights of members to the state."""
    own, members = state[HEAD + 2 * sets :], room.shape[0] - OF_SETS
    for g in range(sets):
        for j in range(members):
            own[g * members + j] = room[OF_SETS + j, g]


@helper
def weigh(room, weights):
    """Write the members' weights: means over sets, by their chances."""
    for j in range(weights.size):
        mean = load(room[CHANCE], 0) * load(room[OF_SETS + j], 0)
        for s in range(LANES, room.shape[1], LANES):
            mean = mean + load(room[CHANCE], s) * load(room[OF_SETS + j], s)
        weights[j] = total(mean)


@helper
def pay(room, lost):
    """Write what each set pays: the mean over members, one after the other."""
    for s in range(0, room.shape[1], LANES):
        paid = load(room[OF_SETS], s) * lost[0]
        for j in range(1, lost.size):
            paid = paid + load(room[OF_SETS + j], s) * lost[j]
        store(paid, room[PAID], s)


@helper
def move(room, lost, best, alike):
    """Let every set's weights of members learn from losses, of which ``best`` is the least.

    Then each member gets its share of all weight back: nothing but that if all fare alike. A member
    without any weight never gets one.
    """
    for s in range(0, room.shape[1], LANES):
        keeps, gives = load(room[KEEPS], s), load(room[GIVES], s)
        if not alike:
            norm = spread(0.0)
            for j in range(lost.size):
                away, own = lost[j] - best, load(room[OF_SETS + j], s)
                if away == 1.0:  # of a member that errs where another does not
                    own = own * load(room[WORST], s)
                elif away > 0.0:
                    own = own * power_down(load(room[RATE], s) * away)
                store(own, room[OF_SETS + j], s)
                norm = norm + own
            keeps = keeps / norm
        for j in range(lost.size):
            if room[OF_SETS + j, 0] > 0.0:
                store(load(room[OF_SETS + j], s) * keeps + gives, room[OF_SETS + j], s)


@helper
def rescale(state, totals, chances, counts, room):
    """Let the scale be a power of 2 that is not below a weight; all sets count alike again."""
    scale = 1.0
    while scale < counts:
        scale *= 2.0
    while 0.5 * scale >= counts:
        scale *= 0.5
    state[GAP], state[SCALE] = FIRST_GAP, scale
    for g in range(chances.size):
        totals[g], chances[g] = 0.0, 1.0 / chances.size
        room[CHANCE, g] = chances[g]


@helper
def choose(state, totals, chances, room):
    """Let the chances of the sets learn from what each has paid."""
    sets, paid = totals.size, room[PAID]
    rate = math.log(sets) / state[GAP]
    mean, inside, least = 0.0, 0.0, math.inf
    for g in range(sets):
        mean += chances[g] * paid[g]
    for g in range(sets):
        inside += chances[g] * math.exp(-rate * (paid[g] - mean))
        totals[g] += paid[g]
        least = min(least, totals[g])
    state[GAP] += max(0.0, math.log(inside) / rate)  # mean minus mix loss
    rate, norm = math.log(sets) / state[GAP], 0.0
    for g in range(sets):
        totals[g] -= least  # differences are all that counts
        chances[g] = math.exp(-rate * totals[g])
        norm += chances[g]
    for g in range(sets):
        chances[g] /= norm
        room[CHANCE, g] = chances[g]


class Shares(Stateful):
    """A distribution over members that follows their losses, as shares of the largest possible.

    ``state`` is all that decides weights. Members that are not ``weighed`` have no weight, ever.

    >>> shares = Shares(2)
    >>> _ = shares.update(np.tile([1.0, 0.0], (50, 1)))
    >>> shares.now.round(2)
    array([0., 1.])
    """

    _learned = ("state",)
    _scratch = ("_work",)

    def __init__(self, members: int, weighed: np.ndarray | None = None):
        self.members = members
        self.grid = np.array([(eta, share) for eta in RATES for share in SHARE_VALUES])
        sets = len(self.grid)
        self.state = np.zeros(HEAD + 2 * sets + sets * members)
        self.state[GAP] = FIRST_GAP
        self.state[HEAD + sets : HEAD + 2 * sets] = 1.0 / sets
        every = np.ones(members, dtype=bool) if weighed is None else weighed
        self.state[HEAD + 2 * sets :] = np.tile(every / np.count_nonzero(every), sets)
        self._work = np.empty(2 * members + (OF_SETS + members) * padded(sets))

    def _begin_as(self, other: Shares) -> None:
        """Begin with the weights of members; all sets count alike."""
        self.of_members[:] = other.of_members

    @property
    def kept(self) -> int:
        """How many numbers must be known of a round when its label comes late.

        What each set of weights pays when it is asked for.
        """
        return len(self.grid)

    def update(
        self,
        losses: np.ndarray,
        largest: float = 1.0,
        out: np.ndarray | None = None,
        *,
        sample_weight: np.ndarray | None = None,
        beliefs: Beliefs | None = None,
        surrogate: np.ndarray | None = None,
        alarms: AlarmLog | None = None,
        late: tuple[np.ndarray, np.ndarray] | None = None,
        believed: np.ndarray | None = None,
    ) -> np.ndarray:
        """Return the weights before every round, a row each, and learn from the losses.

        Losses are clipped to the range from 0 to the largest one, which rounding may leave; with
        sample weights they are multiplied by these already. A weight of -1 is for a round that is
        only asked for.
        Beliefs learn from the surrogate losses of the same rounds, alarms from the weighted means;
        beliefs before every round go to ``believed``.
        ``late`` has the round of every event, and for every round the numbers that are :attr:`kept`
        when it is asked for; a first one that is not a number is for a round that is told at once.
        """
        losses = np.ascontiguousarray(losses, dtype=np.float64)
        if losses.ndim != 2 or losses.shape[1] != self.members:
            raise InputError(f"expected losses of {self.members} members, not {losses.shape}")
        weights = np.empty(losses.shape) if out is None else out
        counts = ONCE if sample_weight is None else np.ascontiguousarray(sample_weight)
        given = (losses, largest, counts, self.grid, self.state, self._work, weights)
        log = SILENT if alarms is None else (PARAMS, alarms.state)
        rest = (*log, *(late or AT_ONCE))
        if beliefs is None or surrogate is None:
            update.compiled(*given, *NOTHING, *rest)
        else:
            theirs = NOWHERE if believed is None else believed
            update.compiled(*given, surrogate, beliefs.nats, beliefs.state, theirs, *rest)
        return weights

    @property
    def now(self) -> np.ndarray:
        """The weights for the next round."""
        weights, nothing = np.empty((1, self.members)), np.zeros((1, self.members))
        work = np.empty_like(self._work)  # not shared: any number of threads may call this
        given = (nothing, 1.0, ONCE, self.grid, self.state.copy(), work, weights)
        update.compiled(*given, *NOTHING, *SILENT, *AT_ONCE)
        return weights[0]

    def means(self, means: np.ndarray) -> np.ndarray:
        """Return means over members under each set of weights.

        ``means`` has a row for every member of every round, and so has what is returned for every
        set. Members are added one after the other, as the kernel does, in rounds of any number.
        """
        sets, (rounds, members, size) = len(self.grid), means.shape
        own = self.state[HEAD + 2 * sets :].reshape(sets, members)
        weights, made = own.T[:, np.newaxis, :, np.newaxis], np.empty((rounds, sets, size))
        step = max(1, MOST_PRODUCTS // (weights.size * size))
        for start in range(0, rounds, step):
            part = means[start : start + step].transpose(1, 2, 0)[:, :, np.newaxis]
            products = np.empty((members, size, sets, part.shape[-1]))
            np.multiply(weights, part, out=products)  # in which rounds lie side by side
            made[start : start + step] = np.add.reduce(products, axis=0).transpose(2, 1, 0)
        return made

    @property
    def of_members(self) -> np.ndarray:
        """The weights of members in every set: a view of the end of the state."""
        return self.state[HEAD + 2 * len(self.grid) :]

    def resume(self, state: np.ndarray) -> None:
        """Go on from a saved state, if it is valid for this number of members."""
        sets = len(self.grid)
        good = state.shape == self.state.shape and np.isfinite(state).all() and (state >= 0.0).all()
        if good:
            chances = state[HEAD + sets : HEAD + 2 * sets].sum()
            own = state[HEAD + 2 * sets :].reshape(sets, self.members).sum(axis=1)
            good = state[GAP] >= FIRST_GAP and np.allclose([chances, *own], 1.0, atol=1e-6)
        if not good:
            raise InputError(f"these are no weights of {self.members} members")
        self.state[:] = state
