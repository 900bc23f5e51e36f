r"""Weights of the members of a committee, with nothing to set.

Fixed share (Herbster and Warmuth, 1998) with learning rate :math:`\eta` and share :math:`\alpha`
multiplies the weight of every member by :math:`e^{-\eta \ell}` and then gives a share
:math:`\alpha` of all weight back to all members, so that one that has become good again can rise.
Which :math:`\eta` and :math:`\alpha` are right depends on the stream: one such set of weights runs
for every pair of a small grid, and AdaHedge (de Rooij et al., 2014), which needs no parameter,
weighs these by their own losses.

What they pay is bounded as follows, for losses in [0, 1], T rounds, m members and K sets.

*One set.* If a sequence of members that changes k times pays S, and

.. math:: \beta = \ln m + k \ln \frac m\alpha - (T - 1 - k) \ln(1 - \alpha + \frac\alpha m)

is minus the logarithm of its probability, then the set's mix losses
:math:`-\frac1\eta \ln \sum_j w_j e^{-\eta \ell_j}` add up to at most :math:`S + \beta / \eta`.
Since :math:`e^{-\eta \ell} \le 1 - (1 - e^{-\eta}) \ell`, a mean loss is at most
:math:`(1 - e^{-\eta x}) / (1 - e^{-\eta})` for a mix loss x. This is concave in x, so the set
pays at most

.. math:: L = T \, \frac{1 - e^{-(\eta S + \beta) / T}}{1 - e^{-\eta}} \le
   \min\Big( \frac{\eta S + \beta}{1 - e^{-\eta}}, \, S + \frac\beta\eta + \frac{\eta T}8 \Big),

where the last is Hoeffding's lemma.

*All sets.* In round t let :math:`h_t` be the sets' mean loss, and :math:`\delta_t` how far it lies
above their mix loss, with the rate :math:`\eta_t = \ln K / D_{t-1}`; then
:math:`D_t = D_{t-1} + \delta_t`. Rates fall, so the mix losses add up to at most
:math:`L + \ln K / \eta_T \le L + D_T`, and what is paid to
:math:`A = \sum_t h_t \le L + D_0 + 2 X` with :math:`X = D_T - D_0`. Now
:math:`\delta_t \le \eta_t / 8 \le \ln K / (8 D_0)` by Hoeffding's lemma, and
:math:`\delta_t (\frac1{\eta_t} - \frac13) \le \frac12 h_t (1 - h_t)` by Bernstein's inequality,
since the variance of the sets' losses is at most :math:`h_t (1 - h_t)`. With both,
:math:`D_t^2 - D_{t-1}^2 = 2 \delta_t \ln K / \eta_t + \delta_t^2` adds up to

.. math:: X^2 \le \ln K \sum_t h_t (1 - h_t) + c X, \qquad
   c = \big( \tfrac23 + \tfrac1{8 D_0} \big) \ln K - 2 D_0 .

Hence :math:`X \le \max(c, 0) + \sqrt{A (1 - A / T) \ln K}`, and A is at most the larger root of

.. math:: A = B + 2 \sqrt{A (1 - A / T) \ln K}, \qquad B = L + D_0 + 2 \max(c, 0),

or T if B is above it. For twelve sets and :math:`D_0 = 1`, c is negative.

*Sample weights.* A round of weight h has losses up to h, and is divided by a scale H, the smallest
power of 2 that no weight so far exceeds; a round of weight 0 changes nothing. When H grows, all
sets count alike again, but each keeps its weights of members, none of which is below
:math:`\alpha / m`. So from there on a sequence of members has the words of one that changes once
more, and all of the above holds with losses over the new H. The members' weights in that round were
still the old ones, which costs H at most. With :math:`T_s` rounds of positive weight in stretch s,
whose scale is :math:`H_s`, what is paid is at most

.. math:: S + \sum_s H_s \big( R(T_s, k + [s > 0]) + [s > 0] \big),

R the regret bound; and, since the rounds before the last stretch cost their weights at most, also
these and :math:`H_s (L(S / H_s, T_s, k + [s > 0]) + [s > 0])` of the last one, L the loss bound.
Scales double at least, so that all stretches together cost no more than twice the last.

*Weights from elsewhere.* Where all sets count alike, but have weights of members that were learned
from other rounds, it is the same: a sequence of members has the words of one that changes once
more.

*Late labels.* When a label comes, weights of members move by what members paid for their
prediction, and sets are weighed by what their weights *at the prediction* paid, :math:`p_{t,g}`:
with those of now a set that follows the last labels seems good that never was. All of the above
holds for a set with its weights of now, which would have paid :math:`q_{t,g}`, and for the sets'
mean :math:`h_t = \sum_g c_{t,g} p_{t,g}`, c their chances of now. So what is paid is larger than
the bound by what is known when labels come, and added up then (:class:`Bills`): for the set of the
bound :math:`\sum_t (p_{t,g} - q_{t,g})`; and, if the weights of the prediction paid :math:`A_t`
and those of now would have paid :math:`a_t`,

.. math:: \sum_t \Big( A_t - a_t - \sum_g c_{t,g} (p_{t,g} - q_{t,g}) \Big) .

While the scale stays, :math:`a_t = \sum_g c_{t,g} q_{t,g}`, and this is :math:`\sum_t (A_t - h_t)`.
In the round in which it grows, all sets count alike at once, and :math:`a_t` is by the chances
before: the H of that round, which the bound has already, is what they may differ by. Where there
are several stretches, each has a best set of its own, so that the largest :math:`p_{t,g} - q_{t,g}`
of every round is added in place of one set's. A label that comes at once adds nothing to any of it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from driftline.committee.beliefs import Beliefs, believe, mean_belief
from driftline.detectors.alarms import PARAMS, AlarmLog, note, skip
from driftline.errors import InputError
from driftline.kernels import SHARES, helper, kernel

__all__ = ["Bills", "Shares", "Stretch", "choose", "move", "rescale", "stretches_of"]

RATES = (0.25, 1.0, 4.0)
SHARE_VALUES = (1e-4, 1e-3, 1e-2, 5e-2)

#: The state begins with the mixability gap so far, and the scale of sample weights, 0 before the
#: first. The gap starts above 0, so that the first decisions do not depend on rounding.
GAP, SCALE, HEAD, FIRST_GAP = 0, 1, 2, 1.0

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
NO_BILLS = np.empty(0)

#: Bills begin with the one of the mean and the one of the worst set; those of all sets follow.
MEAN, WORST, OF_SETS = 0, 1, 2


@kernel(SHARES)
def update(
    losses, largest, sample_weight, grid, state, work, weights, surrogate, nats, beliefs, believed,
    params, alarms, rounds_of, kept, bills,
):  # fmt: skip
    """Write the weights before every round, and learn from its losses over the largest possible.

    ``grid`` has a row of learning rate and share for every set, rows of the same rate side by
    side. ``state`` has gap and scale, the loss of every set, its chance, and the sets' weights. A
    round in which all members fare alike moves no chance: nothing but the shares are given back.
    Beliefs are moved by surrogate losses, and written to ``believed`` before every round; alarms
    are noted by the weighted mean of losses: unless these are empty. Where labels come late,
    ``kept`` has what sets pay when a round is asked for, and last what the weights pay, over the
    largest loss; ``bills`` adds up what :class:`Bills` has.
    """
    rounds, members = losses.shape
    sets = grid.shape[0]
    totals = state[HEAD : HEAD + sets]
    chances = state[HEAD + sets : HEAD + 2 * sets]
    own = state[HEAD + 2 * sets :]
    paid = work[:sets]
    factors = work[sets : sets + members]
    lost = work[sets + members : sets + 2 * members]
    for t in range(rounds):
        for j in range(members):
            weights[t, j] = 0.0
            for g in range(sets):
                weights[t, j] += chances[g] * own[g * members + j]
        if believed.size > 0:
            mean_belief(beliefs, believed[t])
        counts = sample_weight[t] if sample_weight.size > 0 else 1.0
        if counts < 0.0 and rounds_of.size > 0:
            for g in range(sets):
                total = 0.0
                for j in range(members):
                    total += own[g * members + j] * max(losses[t, j] / largest, 0.0)
                kept[rounds_of[t], g] = total
            kept[rounds_of[t], sets] = _mean(weights[t], losses[t], largest)
        if counts <= 0.0:
            if counts == 0.0 and alarms.size > 0:
                skip(alarms)
            continue
        if counts > state[SCALE]:
            rescale(state, totals, chances, counts)
        if nats.size > 0:
            believe(surrogate[t], nats, state[SCALE], beliefs, factors)
        best, alike, most = 1.0, True, largest * state[SCALE]
        for j in range(members):
            lost[j] = min(max(losses[t, j] / most, 0.0), 1.0)
            best = min(best, lost[j])
            alike = alike and lost[j] == lost[0]
        if alarms.size > 0:
            mean = 0.0
            for j in range(members):
                mean += weights[t, j] * lost[j]
            note(mean * (state[SCALE] / counts), params, alarms)
        late = rounds_of.size > 0 and kept[rounds_of[t], 0] >= 0.0  # else it is told at once
        if not alike or late:
            more, worst = 0.0, 0.0
            for g in range(sets):
                paid[g] = 0.0
                for j in range(members):
                    paid[g] += own[g * members + j] * lost[j]
                if late:
                    now = min(paid[g], 1.0)
                    paid[g] = min(kept[rounds_of[t], g] / state[SCALE], 1.0)
                    more += chances[g] * (paid[g] - now)
                    worst = max(worst, paid[g] - now)
                    bills[OF_SETS + g] += most * (paid[g] - now)
            if late:
                then = min(kept[rounds_of[t], sets] / state[SCALE], 1.0)
                now = min(_mean(weights[t], losses[t], largest) / state[SCALE], 1.0)
                bills[MEAN] += most * (then - now - more)
                bills[WORST] += most * worst
        if not alike:
            choose(state, totals, chances, paid)
        move(own, lost, best, alike, grid, factors)


@helper
def move(own, lost, best, alike, grid, factors):
    """Let every set's weights of members learn from losses, of which ``best`` is the least.

    Then each member gets its share of all weight back: nothing but that if all fare alike. A member
    without any weight never gets one.
    """
    sets, members = grid.shape[0], lost.size
    for g in range(sets):
        if not alike:
            if g == 0 or grid[g, 0] != grid[g - 1, 0]:
                worst = math.exp(-grid[g, 0])  # of a member that errs where another does not
                for j in range(members):
                    away = lost[j] - best
                    if away == 0.0:
                        factors[j] = 1.0
                    elif away == 1.0:
                        factors[j] = worst
                    else:
                        factors[j] = math.exp(-grid[g, 0] * away)
            norm = 0.0
            for j in range(members):
                own[g * members + j] *= factors[j]
                norm += own[g * members + j]
            for j in range(members):
                own[g * members + j] /= norm
        count = 0
        for j in range(members):
            count += 1 if own[g * members + j] > 0.0 else 0
        keeps, gives = 1.0 - grid[g, 1], grid[g, 1] / count
        for j in range(members):
            if own[g * members + j] > 0.0:
                own[g * members + j] = keeps * own[g * members + j] + gives


@helper
def _mean(weights, losses, largest):
    """Return the mean loss under weights, over the largest one."""
    total = 0.0
    for j in range(losses.size):
        total += weights[j] * max(losses[j] / largest, 0.0)
    return total


@helper
def rescale(state, totals, chances, counts):
    """Let the scale be a power of 2 that is not below a weight; all sets count alike again."""
    scale = 1.0
    while scale < counts:
        scale *= 2.0
    while 0.5 * scale >= counts:
        scale *= 0.5
    state[GAP], state[SCALE] = FIRST_GAP, scale
    for g in range(chances.size):
        totals[g], chances[g] = 0.0, 1.0 / chances.size


@helper
def choose(state, totals, chances, paid):
    """Let the chances of the sets learn from what each has paid."""
    sets = totals.size
    rate = math.log(sets) / state[GAP]
    mean, inside, least = 0.0, 0.0, math.inf
    for g in range(sets):
        mean += chances[g] * paid[g]
    for g in range(sets):
        inside += chances[g] * math.exp(-rate * (paid[g] - mean))
        totals[g] += paid[g]
        least = min(least, totals[g])
    state[GAP] += max(0.0, math.log(inside) / rate)  # mean minus mix loss
    rate, total = math.log(sets) / state[GAP], 0.0
    for g in range(sets):
        totals[g] -= least  # differences are all that counts
        chances[g] = math.exp(-rate * totals[g])
        total += chances[g]
    for g in range(sets):
        chances[g] /= total


class Bills(NamedTuple):
    """What late labels add to bounds of the weights.

    ``mean`` is how much more predictions' weights have paid than the sets' mean, ``sets`` how much
    more each set has paid than its weights of the arrival would have, and ``worst`` the sum of the
    largest of these in every round. ``mean`` and ``sets`` are negative where old weights were the
    better ones.
    """

    mean: float
    worst: float
    sets: np.ndarray

    def over(self, largest: float) -> Bills:
        """Return the bills of losses that are divided by the largest one."""
        return Bills(self.mean / largest, self.worst / largest, self.sets / largest)


class Stretch(NamedTuple):
    """Consecutive rounds with the same scale: how many of positive weight, and their weights."""

    scale: float
    rounds: int
    weight: float


def stretches_of(
    sample_weight: np.ndarray | None, rounds: int, before: Sequence[Stretch] = ()
) -> tuple[Stretch, ...]:
    """Return the stretches of a run from its first round on; ``before`` are those up to now.

    >>> [tuple(stretch) for stretch in stretches_of(np.array([1.0, 0.0, 0.5, 3.0, 2.0]), 5)]
    [(1.0, 2, 1.5), (4.0, 2, 5.0)]
    """
    if before:
        scale, known, weight = before[-1]
        if sample_weight is None and scale >= 1.0:
            last = Stretch(scale, known + rounds, weight + (scale + rounds) - scale)
            return (*before[:-1], last)
        first = np.r_[scale, np.ones(rounds) if sample_weight is None else sample_weight]
        (_, more, added), *rest = stretches_of(first, rounds + 1)
        last = Stretch(scale, known + more - 1, weight + added - scale)
        return (*before[:-1], last, *rest)
    if sample_weight is None:
        return (Stretch(1.0, rounds, float(rounds)),) if rounds else ()
    counted = sample_weight[sample_weight > 0.0]
    if not len(counted):
        return ()
    scales = np.maximum.accumulate(_power(counted))
    starts = np.flatnonzero(np.r_[True, scales[1:] > scales[:-1]])
    parts = zip(scales[starts], np.split(counted, starts[1:]), strict=True)
    return tuple(Stretch(float(scale), len(own), float(own.sum())) for scale, own in parts)


def _power(weights: np.ndarray) -> np.ndarray:
    """Return the smallest powers of 2 that are not below weights."""
    shares, exponents = np.frexp(weights)
    return np.ldexp(1.0, exponents - (shares == 0.5))


class Shares:
    """A distribution over members that follows their losses, as shares of the largest possible.

    ``state`` is all that decides weights, and ``sums`` what late labels have added to bounds since
    the first round (:attr:`bills`). Members that are not ``weighed`` have no weight, ever.

    >>> shares = Shares(2)
    >>> _ = shares.update(np.tile([1.0, 0.0], (50, 1)))
    >>> shares.now.round(2)
    array([0., 1.])
    """

    def __init__(self, members: int, weighed: np.ndarray | None = None):
        self.members = members
        self.grid = np.array([(eta, share) for eta in RATES for share in SHARE_VALUES])
        sets = len(self.grid)
        self.state = np.zeros(HEAD + 2 * sets + sets * members)
        self.state[GAP] = FIRST_GAP
        self.state[HEAD + sets : HEAD + 2 * sets] = 1.0 / sets
        every = np.ones(members, dtype=bool) if weighed is None else weighed
        self.state[HEAD + 2 * sets :] = np.tile(every / np.count_nonzero(every), sets)
        self.sums = np.zeros(OF_SETS + sets)
        self._work = np.empty(sets + 2 * members)

    @property
    def bills(self) -> Bills:
        """What late labels have added to bounds since the first round, in units of the loss."""
        sums = self.sums
        return Bills(float(sums[MEAN]), float(sums[WORST]), sums[OF_SETS:].copy())

    @property
    def kept(self) -> int:
        """How many numbers must be known of a round when its label comes late.

        What each set of weights pays when it is asked for, and last what the weights pay.
        """
        return len(self.grid) + 1

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
        What late labels add to bounds is added to :attr:`bills`.
        """
        losses = np.ascontiguousarray(losses, dtype=np.float64)
        if losses.ndim != 2 or losses.shape[1] != self.members:
            raise InputError(f"expected losses of {self.members} members, not {losses.shape}")
        weights = np.empty(losses.shape) if out is None else out
        counts = ONCE if sample_weight is None else np.ascontiguousarray(sample_weight)
        given = (losses, largest, counts, self.grid, self.state, self._work, weights)
        log = SILENT if alarms is None else (PARAMS, alarms.state)
        rest = (*log, *(late or AT_ONCE), self.sums)
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
        update.compiled(*given, *NOTHING, *SILENT, *AT_ONCE, NO_BILLS)
        return weights[0]

    def means(self, means: np.ndarray, now: np.ndarray) -> np.ndarray:
        """Return means over members under each set of weights, and last under those of now.

        ``means`` has a row for every member of every round, and so has what is returned for every
        set. Members are added one after the other, as the kernel does, in rounds of any number.
        """
        sets, (rounds, members, size) = len(self.grid), means.shape
        own = self.state[HEAD + 2 * sets :].reshape(sets, members)
        weights = np.empty((members, 1, sets + 1, 1))
        weights[:, 0, :-1, 0], weights[:, 0, -1, 0] = own.T, now
        made = np.empty((rounds, sets + 1, size))
        step = max(1, MOST_PRODUCTS // (weights.size * size))
        for start in range(0, rounds, step):
            part = means[start : start + step].transpose(1, 2, 0)[:, :, np.newaxis]
            products = np.empty((members, size, sets + 1, part.shape[-1]))
            np.multiply(weights, part, out=products)  # in which rounds lie side by side
            made[start : start + step] = np.add.reduce(products, axis=0).transpose(2, 1, 0)
        return made

    @property
    def fresh(self) -> bool:
        """Whether nothing was learned yet."""
        return np.array_equal(self.state, Shares(self.members).state)

    @property
    def of_members(self) -> np.ndarray:
        """The weights of members in every set: a view of the end of the state."""
        return self.state[HEAD + 2 * len(self.grid) :]

    @property
    def changes(self) -> int | None:
        """By how many changes of members bounds from here on have to count more, if there are any.

        0 if nothing was learned yet, and 1 if all sets count alike, but have weights of members
        from elsewhere, none of which is below the share that all get. None where weights of sets
        were learned: bounds hold from their first round on.
        """
        if self.fresh:
            return 0
        head = slice(HEAD + 2 * len(self.grid))
        alike = np.array_equal(self.state[head], Shares(self.members).state[head])
        least = np.repeat(self.grid[:, 1] / self.members, self.members)
        return 1 if alike and (self.of_members >= least * (1.0 - 1e-9)).all() else None

    def resume(self, state: np.ndarray, sums: np.ndarray) -> None:
        """Go on from a saved state and its sums, if these are valid for this number of members."""
        sets = len(self.grid)
        good = state.shape == self.state.shape and np.isfinite(state).all() and (state >= 0.0).all()
        if good:
            chances = state[HEAD + sets : HEAD + 2 * sets].sum()
            own = state[HEAD + 2 * sets :].reshape(sets, self.members).sum(axis=1)
            good = state[GAP] >= FIRST_GAP and np.allclose([chances, *own], 1.0, atol=1e-6)
        if not good:
            raise InputError(f"these are no weights of {self.members} members")
        _check_sums(sums, sets)
        self.state[:], self.sums[:] = state, sums

    def copy(self) -> Shares:
        """Return an independent copy."""
        other = object.__new__(Shares)
        other.members, other.grid, other.state = self.members, self.grid, self.state.copy()
        other.sums = self.sums.copy()
        other._work = np.empty_like(self._work)
        return other

    def regret_bound(
        self, rounds: int, switches: int = 0, billed: np.ndarray | float = 0.0
    ) -> float:
        """Return by how much the total mean loss may exceed that of the best members.

        It holds against any sequence of members that changes ``switches`` times, whatever it pays.
        ``billed`` is what late labels add for each set.
        """
        sets, eta = len(self.grid), self.grid[:, 0]
        top = math.sqrt(rounds * math.log(sets)) + 4.0 / 3.0 * math.log(sets) + 2.0
        top += 2.0 * FIRST_GAP
        costs = self._words(rounds, switches) / eta + eta * rounds / 8.0 + billed
        return top + float(costs.min())

    def loss_bound(
        self, total: float, rounds: int, switches: int = 0, billed: np.ndarray | float = 0.0
    ) -> float:
        """Return a bound of the total mean loss.

        It holds if some sequence of members that changes ``switches`` times pays at most ``total``.
        Never more than ``total`` plus the regret bound, and much less where ``total`` is small.

        >>> shares = Shares(2)
        >>> round(shares.loss_bound(190.0, 10_000)), round(190 + shares.regret_bound(10_000))
        (272, 672)
        """
        if rounds == 0:
            return 0.0
        eta, log_sets = self.grid[:, 0], math.log(len(self.grid))
        words = self._words(rounds, switches)
        mixed = (eta * max(total, 0.0) + words) / rounds
        least = float((rounds * np.expm1(-mixed) / np.expm1(-eta) + billed).min())
        least = max(least, 0.0)
        more = (2.0 / 3.0 + 0.125 / FIRST_GAP) * log_sets - 2.0 * FIRST_GAP
        base = min(least + FIRST_GAP + 2.0 * max(more, 0.0), float(rounds))
        root = math.sqrt(log_sets * (log_sets + base * (1.0 - base / rounds)))
        return (base + 2.0 * log_sets + 2.0 * root) / (1.0 + 4.0 * log_sets / rounds)

    def weighted_regret(
        self, stretches: Sequence[Stretch], switches: int = 0, bills: Bills | None = None
    ) -> float:
        """Return the regret bound of rounds with sample weights, and of late labels."""
        if bills is not None:
            if len(stretches) == 1:
                ((scale, rounds, _),) = stretches
                regret = self.regret_bound(rounds, switches, bills.sets / scale)
                return bills.mean + scale * regret
            return bills.mean + bills.worst + self.weighted_regret(stretches, switches)
        return sum(
            scale * (self.regret_bound(rounds, switches + (i > 0)) + (i > 0))
            for i, (scale, rounds, _) in enumerate(stretches)
        )

    def weighted_bound(
        self,
        total: float,
        stretches: Sequence[Stretch],
        switches: int = 0,
        bills: Bills | None = None,
    ) -> float:
        """Return the loss bound of rounds with sample weights: for ``total``, theirs included."""
        if not stretches:
            return 0.0
        (scale, rounds, _), later = stretches[-1], len(stretches) > 1
        weights = [weight for _, _, weight in stretches]
        regret = self.weighted_regret(stretches, switches, bills)
        if bills is not None:
            if later:
                return min(total + regret, sum(weights))
            loss = self.loss_bound(total / scale, rounds, switches, bills.sets / scale)
            return min(total + regret, bills.mean + scale * loss, sum(weights))
        last = self.loss_bound(total / scale, rounds, switches + later) + later
        return min(total + regret, sum(weights[:-1]) + scale * last, sum(weights))

    def _words(self, rounds: int, switches: int) -> np.ndarray:
        """Return minus the log-probability that each set gives to a sequence of members."""
        members, share = self.members, self.grid[:, 1]
        stay, leave = -np.log(1.0 - share + share / members), np.log(members / share)
        words = math.log(members) + switches * leave + max(0, rounds - 1 - switches) * stay
        return np.asarray(words)


def _check_sums(sums: np.ndarray, sets: int) -> None:
    """Refuse what late labels cannot have added."""
    good = np.shape(sums) == (OF_SETS + sets,) and np.asarray(sums).dtype == np.float64
    if not (good and np.isfinite(sums).all() and sums[WORST] >= 0.0):
        raise InputError(f"late labels cannot have added {sums!r:.80} to bounds")
