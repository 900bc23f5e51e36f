r"""Members' probabilities, averaged by weights that follow mistakes.

*Calibration.* Scores :math:`\theta` of a member become probabilities at seven temperatures,
:math:`q_\tau = \mathrm{softmax}(\tau \theta)` with :math:`\tau = 2^{-5}, \dots, 2`, and these are
mixed by weights that follow logarithmic losses (fixed share, Herbster and Warmuth, 1998):

.. math:: p = \sum_\tau v_\tau q_\tau, \qquad
   v_\tau \leftarrow (1 - s) \frac{v_\tau q_\tau(y)}{\sum_\sigma v_\sigma q_\sigma(y)} + \frac s7,
   \qquad s = 10^{-3}.

So a member that is too sure of itself is believed less, and one that is too modest more. A round of
sample weight h moves them by :math:`q_\tau(y)^h`, over the scale of sample weights.

*Sets of weights.* Every set of :class:`~driftline.committee.Shares` moves by the members' target
losses and averages their probabilities. It is judged by the target loss of what it would have
predicted itself, its most probable label, and not by the mean of its members' losses: an average is
better than what is averaged. AdaHedge weighs the sets by these losses, the committee's
probabilities are the mean over sets, and they are calibrated as members' are, which does not change
their order. The most probable label is predicted; or none, where one minus its probability is more
than no answer costs.

A member without probabilities takes part by its predictions. Labels that come late move members'
weights and calibrations when they come; sets are judged by what they predicted when the round was
asked for.

Temperatures are powers of two: one exponential for each member and label, and squares of it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from driftline.committee.shares import (
    AT_ONCE,
    CHANCE,
    HEAD,
    OF_SETS,
    ONCE,
    PAID,
    SCALE,
    SILENT,
    Shares,
    choose,
    lay_out,
    move,
    put_back,
    rescale,
    weigh,
)
from driftline.detectors import AlarmLog
from driftline.detectors.alarms import PARAMS, note, skip
from driftline.errors import InputError
from driftline.kernels import MIXTURE, helper, kernel
from driftline.kernels.products import padded, pitch_of
from driftline.kernels.vectors import (
    LANES,
    above,
    load,
    power_down,
    spread,
    squares,
    store,
    total,
)
from driftline.learner import Member
from driftline.state import Stateful
from driftline.typing import CheckedLabels

__all__ = ["Mixed", "Mixture"]

#: Temperatures are powers of two from 2^-ROOTS on.
ROOTS, TEMPERATURES = 5, 7

#: What is shared among temperatures in every round.
SHARE = 1e-3

#: The least probability that a temperature is taken to have given.
LEAST = 1e-290

#: The score of the label that a member without probabilities predicts; others have 0.
SURE = 2000.0

#: Rows of a room with a column for each member, before one for each label: the weights of
#: temperatures, what these gave the label, and what members paid.
OWN, CHOSEN, LOST, OF_MEMBERS = 0, TEMPERATURES, 2 * TEMPERATURES, 2 * TEMPERATURES + 1

#: Rows of a room of single vectors, before two for each label: the committee's weights of
#: temperatures, what is shared among them, and what these gave the label.
ALL, SHARED, GIVEN, OF_LABELS = 0, 1, 2, 3

#: Where nothing is learned: no losses, and no labels. Where something is: no predictions of sets.
NO_LOSSES, NO_LABELS, NOT_ASKED = (
    np.empty((0, 0)),
    np.empty(0, np.int64),
    np.empty((0, 0), np.int64),
)


@helper
def temper(scores, room, powers, label):
    """Write the members' probabilities, a row for each label behind OF_MEMBERS.

    ``powers`` has a vector for each label, of the exponentials of some members side by side. What
    temperatures gave ``label`` is kept for :func:`calibrate`.
    """
    labels, members = scores.shape
    for b in range(0, room.shape[1], LANES):
        for k in range(labels):
            for j in range(min(members - b, LANES)):
                powers[k, j] = scores[k, b + j]
        top = load(powers[0], 0)
        for k in range(1, labels):
            own = load(powers[k], 0)
            top = above(own, top, own, top)
        for k in range(labels):
            store(power_down((load(powers[k], 0) - top) * 0.5**ROOTS), powers[k], 0)
            store(spread(0.0), room[OF_MEMBERS + k], b)
        for i in range(TEMPERATURES):
            norm = load(powers[0], 0)
            for k in range(1, labels):
                norm = norm + load(powers[k], 0)
            norm = 1.0 / norm
            factor = norm * load(room[OWN + i], b)
            if label >= 0:
                store(norm * load(powers[label], 0), room[CHOSEN + i], b)
            for k in range(labels):
                own, mixed = load(powers[k], 0), room[OF_MEMBERS + k]
                store(load(mixed, b) + factor * own, mixed, b)
                store(own * own, powers[k], 0)


@helper
def calibrate(room, weight):
    """Let weights of temperatures learn from the label that :func:`temper` was given."""
    for b in range(0, room.shape[1], LANES):
        norm = spread(0.0)
        for i in range(TEMPERATURES):
            if weight != 1.0:
                weaken(room[CHOSEN + i][b : b + LANES], weight)
            chosen = load(room[CHOSEN + i], b)
            own = load(room[OWN + i], b) * above(chosen, LEAST, chosen, LEAST)
            store(own, room[OWN + i], b)
            norm = norm + own
        norm = (1.0 - SHARE) / norm
        for i in range(TEMPERATURES):
            store(load(room[OWN + i], b) * norm + SHARE / TEMPERATURES, room[OWN + i], b)


@helper
def weaken(probabilities, weight):
    """Let probabilities count as often as a sample weight says."""
    for i in range(probabilities.size):
        probabilities[i] = math.exp(weight * math.log(max(probabilities[i], LEAST)))


@helper
def best_of(probabilities, cost):
    """Return the most probable label, or -1 where no answer costs less."""
    top = 0
    for k in range(1, probabilities.size):
        if probabilities[k] > probabilities[top]:
            top = k
    return -1 if 1.0 - probabilities[top] > cost else top


@kernel(MIXTURE)
def mix(
    scores, losses, labels, cost, sample_weight, grid, state, calibration, work, weights,
    probabilities, predictions, theirs, params, alarms, rounds_of, kept,
):  # fmt: skip
    """Write weights, probabilities and predictions before every round, and learn from its label.

    ``scores`` are by round, label and member; ``losses`` those of members' predictions, times the
    sample weight. Without ``labels`` nothing is learned, and the predictions of sets go to
    ``theirs``. ``cost`` is that of no answer, infinite where there is always one. The last column
    of ``calibration`` is that of the committee. Alarms and late labels are those of the weights of
    a vote (:mod:`driftline.committee.shares`).
    """
    rounds, count, members = scores.shape
    sets, learning = grid.shape[0], labels.size > 0
    totals = state[HEAD : HEAD + sets]
    chances = state[HEAD + sets : HEAD + 2 * sets]
    lanes, width = pitch_of(members), pitch_of(sets)
    first = (OF_MEMBERS + count) * lanes
    second = first + (OF_LABELS + 2 * count) * LANES
    third = second + (OF_SETS + members) * width
    by_member = work[:first].reshape(OF_MEMBERS + count, lanes)
    single = work[first:second].reshape(OF_LABELS + 2 * count, LANES)
    by_set = work[second:third].reshape(OF_SETS + members, width)
    each = work[third : third + count * width].reshape(count, width)
    lost, powers, own = by_member[LOST][:members], single[OF_LABELS:], single[OF_LABELS + count :]
    lay_out(state, grid, by_set)
    for i in range(LANES):
        at, given = TEMPERATURES * members + i, i < TEMPERATURES
        single[ALL, i] = calibration[at] if given else 0.0
        single[SHARED, i] = SHARE / TEMPERATURES if given else 0.0
        for k in range(count):
            powers[k, i] = 0.0
        for j in range(lanes if given else 0):
            by_member[OWN + i, j] = calibration[i * members + j] if j < members else 1.0
    for t in range(rounds):
        label = labels[t] if learning else -1
        mean = probabilities[t]
        weigh(by_set, weights[t])
        temper(scores[t], by_member, powers, label)
        for k in range(count):
            of_label, among = by_member[OF_MEMBERS + k], spread(0.0)
            for s in range(0, width, LANES):
                made = load(by_set[OF_SETS], s) * of_label[0]
                for j in range(1, members):
                    made = made + load(by_set[OF_SETS + j], s) * of_label[j]
                store(made, each[k], s)
                among = among + load(by_set[CHANCE], s) * made
            mean[k] = total(among)
        highest = mean[0]
        for k in range(1, count):
            highest = max(highest, mean[k])
        norm, whole = spread(0.0), 0.0
        for k in range(count):
            power = max(mean[k] / highest, LEAST)
            for _ in range(ROOTS):
                power = math.sqrt(power)
            made = squares(power)
            store(made, own[k], 0)
            norm = norm + made
        norm = 1.0 / norm
        for k in range(count):
            mean[k] = total(load(single[ALL], 0) * norm * load(own[k], 0))
            whole += mean[k]
        for k in range(count):
            mean[k] /= whole
        predictions[t, 0] = best_of(mean, cost)
        if not learning:
            for g in range(theirs.shape[1]):
                theirs[t, g] = best_of(each[:, g], cost)
            continue
        counts = sample_weight[t] if sample_weight.size > 0 else 1.0
        for s in range(0, width, LANES):
            top, paid = load(each[0], s), spread(0.0 if label == 0 else 1.0)
            for k in range(1, count):
                made = load(each[k], s)
                paid = above(made, top, 0.0 if label == k else 1.0, paid)
                top = above(made, top, made, top)
            store(above(1.0 - top, cost, cost, paid), by_set[PAID], s)
        if counts < 0.0:  # a round that is only asked for
            for g in range(sets):
                kept[rounds_of[t], g] = by_set[PAID, g]
        if counts <= 0.0:
            if counts == 0.0 and alarms.size > 0:
                skip(alarms)
            continue
        if counts > state[SCALE]:
            rescale(state, totals, chances, counts, by_set)
        scale, least, alike, average = state[SCALE], 1.0, True, 0.0
        calibrate(by_member, counts / scale)
        store(norm * load(own[label], 0), single[GIVEN], 0)
        if counts != scale:
            weaken(single[GIVEN], counts / scale)
        made = load(single[GIVEN], 0)
        made = load(single[ALL], 0) * above(made, LEAST, made, LEAST)
        store(made * ((1.0 - SHARE) / total(made)) + load(single[SHARED], 0), single[ALL], 0)
        for j in range(members):
            lost[j] = min(max(losses[t, j] / scale, 0.0), 1.0)
            least = min(least, lost[j])
            alike = alike and lost[j] == lost[0]
            average += weights[t, j] * lost[j]
        if alarms.size > 0:
            note(average * (scale / counts), params, alarms)
        if rounds_of.size > 0 and kept[rounds_of[t], 0] >= 0.0:  # by what they predicted then
            for g in range(sets):
                by_set[PAID, g] = kept[rounds_of[t], g]
        differ = False
        for g in range(sets):
            by_set[PAID, g] *= counts / scale
            differ = differ or by_set[PAID, g] != by_set[PAID, 0]
        if differ:
            choose(state, totals, chances, by_set)
        move(by_set, lost, least, alike)
    if learning:
        put_back(by_set, state, sets)
        for i in range(TEMPERATURES):
            calibration[TEMPERATURES * members + i] = single[ALL, i]
            for j in range(members):
                calibration[i * members + j] = by_member[OWN + i, j]


class Mixed(NamedTuple):
    """What mixtures say of some rounds, before each.

    The members' weights, the probabilities of labels, and predictions as rows of numbers: the
    committee's, and with a column for each those of all sets of weights, if nothing was learned.
    """

    weights: np.ndarray
    probabilities: np.ndarray
    predictions: np.ndarray
    theirs: np.ndarray


class Mixture(Stateful):
    """The mean of members' probabilities, and how far each of these is believed.

    ``state`` has weights of temperatures, a column for each member, and then the committee's own.
    It moves together with :class:`~driftline.committee.Shares`.

    >>> import driftline as dl
    >>> loss = dl.losses.Logistic(dl.tasks.Multiclass(3))
    >>> Mixture([dl.OGD(loss)]).state.shape
    (14,)
    """

    _learned = _inherited = ("state",)

    def __init__(self, members: Sequence[Member]):
        self.task, self.members = members[0].task, len(members)
        self.labels = len(list(self.task.answers.labels.all))
        #: Members without probabilities.
        self.sure = [j for j, member in enumerate(members) if member._fixed.nats is None]
        limit, cost = self.task.predictions.doubt
        self.cost = cost if math.isfinite(limit) else math.inf
        self.state = np.full(TEMPERATURES * (self.members + 1), 1.0 / TEMPERATURES)

    def room(self, rounds: int) -> np.ndarray:
        """Return room for the scores of rounds, by round, label and member."""
        made = np.empty((rounds, self.labels, self.members))
        made[:, : self.labels - self.task.dim] = 0.0  # of the first sign
        return made

    def parts(self, scores: np.ndarray) -> list[np.ndarray]:
        """Return the room for each member's scores."""
        own = scores[:, self.labels - self.task.dim :]
        return [own[:, :, j] for j in range(self.members)]

    def fill(self, scores: np.ndarray, predictions: Sequence[np.ndarray] | np.ndarray) -> None:
        """Write scores of members without probabilities: of what each of all members predicts."""
        for j in self.sure:
            scores[:, :, j] = 0.0
            codes = self.task.labels.codes(np.reshape(predictions[j], -1))
            rounds = np.flatnonzero(codes >= 0)
            scores[rounds, codes[rounds], j] = SURE

    def learn(
        self,
        shares: Shares,
        scores: np.ndarray,
        losses: np.ndarray,
        labels: CheckedLabels,
        *,
        sample_weight: np.ndarray | None = None,
        alarms: AlarmLog | None = None,
        late: tuple[np.ndarray, np.ndarray] | None = None,
        out: np.ndarray | None = None,
    ) -> Mixed:
        """Return what is said before every round, and learn from the rounds, as weights do.

        See :meth:`Shares.update <driftline.committee.Shares.update>`; weights go to ``out``.
        """
        counts = ONCE if sample_weight is None else np.ascontiguousarray(sample_weight)
        log = SILENT if alarms is None else (PARAMS, alarms.state)
        codes = np.ascontiguousarray(self.task.labels.codes(np.reshape(labels, -1)))
        given = (np.ascontiguousarray(losses), codes, counts)
        return self._mix(shares, scores, *given, (*log, *(late or AT_ONCE)), NOT_ASKED, out)

    def look(self, shares: Shares, scores: np.ndarray) -> Mixed:
        """Return what would be said next of each of some rounds; any number of threads may."""
        theirs = np.empty((len(scores), shares.kept), np.int64)
        given = (NO_LOSSES, NO_LABELS, ONCE)
        return self._mix(shares, scores, *given, (*SILENT, *AT_ONCE), theirs)

    def _mix(
        self,
        shares: Shares,
        scores: np.ndarray,
        losses: np.ndarray,
        labels: np.ndarray,
        sample_weight: np.ndarray,
        rest: tuple[np.ndarray, ...],
        theirs: np.ndarray,
        out: np.ndarray | None = None,
    ) -> Mixed:
        rounds, count, members = scores.shape
        lanes, width = padded(members), padded(shares.kept)
        size = (OF_MEMBERS + count) * lanes + (OF_LABELS + 2 * count) * LANES
        work = np.empty(size + (OF_SETS + members + count) * width)
        weights = np.empty((rounds, members)) if out is None else out
        probabilities, made = np.empty((rounds, count)), np.empty((rounds, 1), np.int64)
        mix.compiled(
            *(scores, losses, labels, self.cost, sample_weight),
            *(shares.grid, shares.state, self.state, work),
            *(weights, probabilities, made, theirs, *rest),
        )
        return Mixed(
            weights,
            probabilities,
            self.task.labels.from_codes(made),
            self.task.labels.from_codes(theirs),
        )

    def resume(self, state: object) -> None:
        """Go on from a saved state, if it is valid for this number of members."""
        good = isinstance(state, np.ndarray) and state.shape == self.state.shape
        good = good and getattr(state, "dtype", None) == np.float64
        if good and isinstance(state, np.ndarray):
            own = state[: TEMPERATURES * self.members].reshape(TEMPERATURES, self.members)
            sums = [*own.sum(axis=0), state[TEMPERATURES * self.members :].sum()]
            good = bool((state > 0.0).all()) and np.allclose(sums, 1.0, atol=1e-6)
        if not good:
            raise InputError(f"these are no calibrations of {self.members} members")
        self.state = np.array(state, dtype=np.float64)
