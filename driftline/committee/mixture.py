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
    HEAD,
    ONCE,
    SCALE,
    SILENT,
    Shares,
    choose,
    move,
    rescale,
)
from driftline.detectors import AlarmLog
from driftline.detectors.alarms import PARAMS, note, skip
from driftline.errors import InputError
from driftline.kernels import MIXTURE, exp, helper, kernel
from driftline.kernels.inner import inner
from driftline.learner import Member
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

#: Rows of a working space with a column for each learner, beside twice the number of labels.
NORM, FACTOR, CHOSEN = 0, 1, 2
ROWS = CHOSEN + TEMPERATURES

#: Where nothing is learned: no losses, and no labels. Where something is: no predictions of sets.
NO_LOSSES, NO_LABELS, NOT_ASKED = (
    np.empty((0, 0)),
    np.empty(0, np.int64),
    np.empty((0, 0), np.int64),
)


@helper
def temper(room, calibration, labels, label):
    """From exponentials at the least temperature to probabilities, side by side for all learners.

    ``room`` has a row of exponentials for every label, then one of probabilities for each, and then
    ROWS more. Those of ``label`` by temperature are kept for :func:`calibrate`.
    """
    learners, at = room.shape[1], 2 * labels
    norm, factor = room[at + NORM], room[at + FACTOR]
    for i in range(TEMPERATURES):
        own, kept = calibration[i], room[at + CHOSEN + i]
        for j in range(learners):
            norm[j] = room[0, j]
        for k in range(1, labels):
            powers = room[k]
            for j in range(learners):
                norm[j] += powers[j]
        for j in range(learners):
            norm[j] = 1.0 / norm[j]
            factor[j] = own[j] * norm[j]
        for k in range(labels):
            powers, mixed = room[k], room[labels + k]
            if i == 0:
                for j in range(learners):
                    mixed[j] = factor[j] * powers[j]
            else:
                for j in range(learners):
                    mixed[j] += factor[j] * powers[j]
            if k == label:
                for j in range(learners):
                    kept[j] = norm[j] * powers[j]
            for j in range(learners):
                powers[j] *= powers[j]


@helper
def calibrate(room, calibration, labels, weight):
    """Let weights of temperatures learn from the label that :func:`temper` was given."""
    learners, at = room.shape[1], 2 * labels
    total = room[at + NORM]
    for j in range(learners):
        total[j] = 0.0
    for i in range(TEMPERATURES):
        own, kept = calibration[i], room[at + CHOSEN + i]
        if weight != 1.0:
            for j in range(learners):
                kept[j] = math.exp(weight * math.log(max(kept[j], LEAST)))
        for j in range(learners):
            own[j] *= max(kept[j], LEAST)
            total[j] += own[j]
    for j in range(learners):
        total[j] = (1.0 - SHARE) / total[j]
    for i in range(TEMPERATURES):
        own = calibration[i]
        for j in range(learners):
            own[j] = own[j] * total[j] + SHARE / TEMPERATURES


@helper
def best_of(probabilities, cost):
    """Return the most probable label, or -1 where no answer costs less."""
    top = 0
    for k in range(1, probabilities.size):
        if probabilities[k] > probabilities[top]:
            top = k
    return -1 if 1.0 - probabilities[top] > cost else top


@helper
def loss_of(prediction, label, cost):
    """Return the target loss of a prediction, of which -1 is no answer."""
    if prediction < 0:
        return cost
    return 0.0 if prediction == label else 1.0


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
    own = state[HEAD + 2 * sets :]
    rows = 2 * count + ROWS
    room = work[: rows * members].reshape(rows, members)
    rest = work[rows * members :]
    alone = rest[:rows].reshape(rows, 1)
    each = rest[rows : rows + sets * count].reshape(sets, count)
    paid = rest[rows + sets * count :][:sets]
    lost, factors = rest[rows + sets * (count + 1) :][:members], room[2 * count + NORM]
    of_members = calibration[: TEMPERATURES * members].reshape(TEMPERATURES, members)
    of_all = calibration[TEMPERATURES * members :].reshape(TEMPERATURES, 1)
    for t in range(rounds):
        label = labels[t] if learning else -1
        own_weights, mean = weights[t], probabilities[t]
        for j in range(members):
            own_weights[j] = 0.0
        for g in range(sets):
            for j in range(members):
                own_weights[j] += chances[g] * own[g * members + j]
        top = room[2 * count]
        for j in range(members):
            top[j] = scores[t, 0, j]
        for k in range(1, count):
            for j in range(members):
                top[j] = max(top[j], scores[t, k, j])
        for k in range(count):
            for j in range(members):
                room[k, j] = exp((scores[t, k, j] - top[j]) * 0.5**ROOTS)
        temper(room, of_members, count, label)
        for k in range(count):
            mean[k] = 0.0
        for g in range(sets):
            for k in range(count):
                each[g, k] = inner(own[g * members : (g + 1) * members], room[count + k])
                mean[k] += chances[g] * each[g, k]
        highest = mean[0]
        for k in range(1, count):
            highest = max(highest, mean[k])
        for k in range(count):
            power = max(mean[k] / highest, LEAST)
            for _ in range(ROOTS):
                power = math.sqrt(power)
            alone[k, 0] = power
        temper(alone, of_all, count, label)
        total = 0.0
        for k in range(count):
            total += alone[count + k, 0]
        for k in range(count):
            mean[k] = alone[count + k, 0] / total
        predictions[t, 0] = best_of(mean, cost)
        if not learning:
            for g in range(theirs.shape[1]):
                theirs[t, g] = best_of(each[g], cost)
            continue
        counts = sample_weight[t] if sample_weight.size > 0 else 1.0
        for g in range(sets):
            paid[g] = loss_of(best_of(each[g], cost), label, cost)
        if counts < 0.0:  # a round that is only asked for
            for g in range(sets):
                kept[rounds_of[t], g] = paid[g]
        if counts <= 0.0:
            if counts == 0.0 and alarms.size > 0:
                skip(alarms)
            continue
        if counts > state[SCALE]:
            rescale(state, totals, chances, counts)
        scale, least, alike, average = state[SCALE], 1.0, True, 0.0
        calibrate(alone, of_all, count, counts / scale)
        calibrate(room, of_members, count, counts / scale)
        for j in range(members):
            lost[j] = min(max(losses[t, j] / scale, 0.0), 1.0)
            least = min(least, lost[j])
            alike = alike and lost[j] == lost[0]
            average += own_weights[j] * lost[j]
        if alarms.size > 0:
            note(average * (scale / counts), params, alarms)
        if rounds_of.size > 0 and kept[rounds_of[t], 0] >= 0.0:  # by what they predicted then
            for g in range(sets):
                paid[g] = kept[rounds_of[t], g]
        differ = False
        for g in range(sets):
            paid[g] *= counts / scale
            differ = differ or paid[g] != paid[0]
        if differ:
            choose(state, totals, chances, paid)
        move(own, lost, least, alike, grid, factors)


class Mixed(NamedTuple):
    """What mixtures say of some rounds, before each.

    The members' weights, the probabilities of labels, and predictions as rows of numbers: the
    committee's, and with a column for each those of all sets of weights, if nothing was learned.
    """

    weights: np.ndarray
    probabilities: np.ndarray
    predictions: np.ndarray
    theirs: np.ndarray


class Mixture:
    """The mean of members' probabilities, and how far each of these is believed.

    ``state`` has weights of temperatures, a column for each member, and then the committee's own.
    It moves together with :class:`~driftline.committee.Shares`.

    >>> import driftline as dl
    >>> loss = dl.losses.Logistic(dl.tasks.Multiclass(3))
    >>> Mixture([dl.OGD(loss)]).state.shape
    (14,)
    """

    def __init__(self, members: Sequence[Member]):
        self.task, self.members = members[0].task, len(members)
        self.labels = len(list(self.task.answers.all_labels))
        #: Members without probabilities.
        self.sure = [j for j, member in enumerate(members) if member.nats is None]
        limit, cost = self.task.doubt
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
            codes = self._codes(np.reshape(predictions[j], -1))
            rounds = np.flatnonzero(codes >= 0)
            scores[rounds, codes[rounds], j] = SURE

    def _codes(self, labels: np.ndarray) -> np.ndarray:
        return (labels + 1) // 2 if self.task.kind == "sign" else labels

    def _numbers(self, codes: np.ndarray) -> np.ndarray:
        return 2 * codes - 1 if self.task.kind == "sign" else codes

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
        codes = np.ascontiguousarray(self._codes(np.reshape(labels, -1)))
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
        sets, rows = shares.kept, 2 * count + ROWS
        work = np.empty((rows + 1) * members + rows + sets * (count + 1))
        weights = np.empty((rounds, members)) if out is None else out
        probabilities, made = np.empty((rounds, count)), np.empty((rounds, 1), np.int64)
        mix.compiled(
            *(scores, losses, labels, self.cost, sample_weight),
            *(shares.grid, shares.state, self.state, work),
            *(weights, probabilities, made, theirs, *rest),
        )
        return Mixed(weights, probabilities, self._numbers(made), self._numbers(theirs))

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
