r"""The guard of classes and signs: averaged probabilities, held to the bound of a theorem.

*The book* mixes members' probabilities by their logarithmic losses (fixed share at learning rate 1,
Herbster and Warmuth, 1998). Every set of weights has a share s; they are mixed by Bayes' rule
(Monteleoni and Jaakkola, 2003). Half of the prior is on the set with s = 0 that holds the *sure*
members alone, which have a theorem for their own losses L in bits: gradient steps of constant size
:math:`\eta = \beta / M`, :math:`0 < \beta < 1`, from the centre of a ball of diameter D, on rows no
longer than 1, with the self-bounding constant M, against every comparator in the ball, with losses
F and path length P:

.. math:: (1 - \beta) \sum_t L_t \le F + \frac{M D}{\beta} \Big( \frac D8 + P \Big).

For n of them the mixture loses at most :math:`1 + \log_2 n` bits more than the best.

*What may be paid.* A decoder with surrogate gap :math:`\alpha` has the expected loss
:math:`(1 - \alpha) L(p, y)` at most; so before the label comes, the book states
:math:`b(y) = \min(1, (1 - \alpha) L(p, y))`, and the account (:mod:`driftline.committee.account`)
holds predictions to it. From the first round on the sum of b is at most, for every sure member,

.. math:: (1 - \alpha) \Big( \frac{F + M D (D / 8 + P) / \beta}{1 - \beta} + 1 + \log_2 n \Big).

Labels that come late: e, b and r are those of the round in which the prediction was made, and the
formula holds for losses of the book when labels come; the sum of the differences is known.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from driftline.committee.account import (
    ACCOUNT,
    HEAD,
    NONE,
    RESERVED,
    SCALE,
    SOME,
    SURE,
    Account,
    Watched,
    beside,
    check_heaviest,
    heard,
    overdraws,
    released,
    reserved,
    rounded_up,
    settled,
)
from driftline.errors import InputError
from driftline.kernels import GUARD, kernel
from driftline.kernels.elementary import log
from driftline.kernels.products import padded, pitch_of
from driftline.kernels.vectors import (
    LANES,
    LEAST_POWER,
    above,
    load,
    power_down,
    spread,
    store,
    total,
)
from driftline.learner import Member, Ticket
from driftline.tasks import Task

__all__ = ["Guard", "Sure", "sure_of"]

#: What is shared among members in each round, set by set; the first is that of sure members.
SHARE_VALUES = (0.0, 1e-4, 1e-3, 1e-2, 5e-2)

#: Parameters: 1 - alpha, the budget, the cost of no answer, the least probability of an answer, and
#: whether what is asked for is reserved.
RATIO, MOST, COST, CHANCE, RESERVES = range(5)

#: The least probability that is counted.
LEAST = 1e-300

#: Rows of a room with a column for each member, before one for each label: whether it has
#: probabilities, and keeps the book; its weight among those, its mean weight over that of all of
#: its labels, and one over this; and its weights in all sets, of which the first are logarithms.
ABLE, KEEPER, SURELY, MEAN, NORM, LOGS, OF_LABELS = 0, 1, 2, 3, 4, 5, 5 + len(SHARE_VALUES)


@kernel(GUARD)
def watch(
    scores, champion, labels, uniforms, sample_weight, kinds, params, state, work, played, paid,
    book, rounds_of, kept,
):  # fmt: skip
    """Decide who predicts in every round, and learn from its label.

    ``scores`` are by round, label and member, ``champion`` what is predicted without the guard, or
    several predictions, of which the next one may cost a budget more than the one before.
    ``played`` is what is predicted, and ``paid`` has e and b of its label, account and reserves
    after the round, what was reserved for it, and the share of predictions that were refused, 1 if
    the book predicts. Without ``labels`` nothing is learned, and ``book`` has e and b of all
    labels, and that share. A sample weight of -1 is for a round that is only asked for, -2 for one
    whose label never comes: e - b, b, what is reserved and which prediction it is stand last in the
    round's row of ``kept``. Behind the head of the state stand the logarithms of the sets' weights,
    those of the sure members' weights, and the other sets' weights.
    """
    rounds, count, members = scores.shape
    sets, learning = len(SHARE_VALUES), labels.size > 0
    ratio, cost = params[RATIO], params[COST]
    of_sets = state[HEAD : HEAD + sets]
    own = state[HEAD + sets :]
    lanes = pitch_of(members)
    room = work[: (OF_LABELS + count) * lanes].reshape(OF_LABELS + count, lanes)
    logs, chances = work[room.size :][:LANES], work[room.size + LANES :][:LANES]
    rest = work[room.size + 2 * LANES :]
    p, b, e = rest[:count], rest[count : 2 * count], rest[2 * count : 3 * count]
    may_pay, powers = rest[3 * count : 4 * count], room[OF_LABELS:]
    able = 0
    for j in range(lanes):
        kind, given = kinds[j] if j < members else NONE, j < members
        able += 1 if kind != NONE else 0
        room[ABLE, j] = 1.0 if kind != NONE else 0.0
        room[KEEPER, j] = 1.0 if kind == SURE else 0.0
        for g in range(sets):
            room[LOGS + g, j] = own[g * members + j] if given else 0.0
        for k in range(count):
            powers[k, j] = 0.0
    for g in range(LANES):
        logs[g] = of_sets[g] if g < sets else LEAST_POWER
    for t in range(rounds):
        likely = power_down(load(logs, 0))
        store(likely / total(likely), chances, 0)
        whole = spread(0.0)
        for c in range(0, lanes, LANES):
            made = power_down(load(room[LOGS], c)) * load(room[KEEPER], c)
            store(made, room[SURELY], c)
            whole = whole + made
        per = 1.0 / total(whole)
        for k in range(count):
            for j in range(members):
                powers[k, j] = scores[t, k, j]
        for c in range(0, lanes, LANES):
            made = load(room[SURELY], c) * per
            store(made, room[SURELY], c)
            made = made * chances[0]
            for g in range(1, sets):
                made = made + load(room[LOGS + g], c) * chances[g]
            top, norm = load(powers[0], c), spread(0.0)
            for k in range(1, count):
                other = load(powers[k], c)
                top = above(other, top, other, top)
            for k in range(count):
                other = power_down(load(powers[k], c) - top)
                store(other, powers[k], c)
                norm = norm + other
            norm = 1.0 / norm
            store(norm, room[NORM], c)
            store(made * norm, room[MEAN], c)
        best = 0
        for k in range(count):
            whole = spread(0.0)
            for c in range(0, lanes, LANES):
                whole = whole + load(room[MEAN], c) * load(powers[k], c)
            p[k] = min(max(total(whole), LEAST), 1.0)
            may_pay[k] = -ratio * math.log2(p[k])
            b[k] = min(1.0, may_pay[k])
            if p[k] > p[best]:
                best = k
        acts, v, most, refused, levels = True, -1, 0.0, 0, champion.shape[1]
        for level in range(levels):
            v, most, refused = champion[t, level], 0.0, level
            if v < -1:  # nothing was said
                continue
            for k in range(count):
                e[k] = cost if v < 0 else 0.0 if k == v else 1.0
                most = max(most, e[k] - b[k])
            most = rounded_up(most)
            acts = overdraws(state, most, (level + 1) * params[MOST])
            if not acts:
                break
        acted = 1.0 if acts else refused / levels
        if acts:
            most, v = 0.0, best
            if cost < math.inf:  # the decoder that may have no answer
                v = best if p[best] >= params[CHANCE] else -1
                for k in range(count):
                    e[k] = cost if v < 0 else 0.0 if k == v else 1.0
            else:  # 1 - b for all labels but the most probable one
                left, drawn = 1.0, 0.0
                for k in range(count):
                    if k != best:
                        e[k] = b[k]
                        left -= 1.0 - b[k]
                        drawn += 1.0 - b[k]
                        if v == best and uniforms[t] < drawn:
                            v = k
                e[best] = min(max(1.0 - left, 0.0), b[best])
        played[t, 0] = v
        if not learning:
            for k in range(count):
                book[t, k], book[t, count + k] = e[k], b[k]
            book[t, 2 * count] = acted
            if params[RESERVES] > 0.0:
                reserved(state, most, 1.0)
            continue
        y = labels[t]
        excess, may = e[y] - b[y], b[y]
        counts = sample_weight[t] if sample_weight.size > 0 else 1.0
        if counts < 0.0:
            beside(state)
            most = most if counts > -2.0 else 0.0
            reserved(state, most, 1.0)
        paid[t, 0], paid[t, 1], paid[t, 3], paid[t, 4] = e[y], may, state[SCALE] * most, acted
        if counts < 0.0:
            row = kept[rounds_of[t]]
            row[row.size - 4], row[row.size - 3] = excess, may
            row[row.size - 2], row[row.size - 1] = most, acted
        if counts >= 0.0 and rounds_of.size > 0:
            row = kept[rounds_of[t]]
            excess, may = row[row.size - 4], row[row.size - 3]
            paid[t, 1] = may
            released(state, row[row.size - 2], 1.0)
            acted = row[row.size - 1]
        if counts >= 0.0:
            heard(state, acted)
            if rounds_of.size == 0:
                beside(state)
        if counts > 0.0:
            settled(state, counts, excess, may, may_pay[y])
            share, high, largest = counts / state[SCALE], -math.inf, -math.inf
            for g in range(LANES):
                chances[g] = 1.0
            whole = spread(0.0)
            for c in range(0, lanes, LANES):
                made = load(powers[y], c) * load(room[NORM], c)
                made = above(made, LEAST, made, LEAST)
                loss = log(made) * share
                if share != 1.0:
                    made = power_down(loss)
                store(made, room[NORM], c)
                store(load(room[LOGS], c) + loss * load(room[KEEPER], c), room[LOGS], c)
                whole = whole + load(room[SURELY], c) * made
            chances[0] = max(total(whole), LEAST)
            for j in range(members):
                if kinds[j] == SURE:
                    high = max(high, room[LOGS, j])
            for c in range(0, lanes, LANES):
                store((load(room[LOGS], c) - high) * load(room[KEEPER], c), room[LOGS], c)
            for g in range(1, sets):
                whole = spread(0.0)
                for c in range(0, lanes, LANES):
                    made = load(room[LOGS + g], c) * load(room[NORM], c)
                    store(made, room[LOGS + g], c)
                    whole = whole + made
                chances[g] = max(total(whole), LEAST)
                keeps, gives = (1.0 - SHARE_VALUES[g]) / chances[g], SHARE_VALUES[g] / able
                for c in range(0, lanes, LANES):
                    made = load(room[LOGS + g], c) * keeps + load(room[ABLE], c) * gives
                    store(made, room[LOGS + g], c)
            store(load(logs, 0) + log(load(chances, 0)), logs, 0)
            for g in range(sets):
                largest = max(largest, logs[g])
            for g in range(sets):
                logs[g] -= largest
        paid[t, 2] = state[ACCOUNT] + state[SCALE] * state[RESERVED]
    for g in range(sets if learning else 0):
        of_sets[g] = logs[g]
        for j in range(members):
            own[g * members + j] = room[LOGS + g, j]


class Sure(NamedTuple):
    """A member with a theorem for its own losses: see :mod:`driftline.committee.guard`.

    ``norm`` is the largest norm of its rows, and ``steep`` its self-bounding constant.
    """

    beta: float
    diameter: float
    steep: float
    norm: float

    def bits(self, comparator_loss: float, path_length: float, heaviest: float = 1.0) -> float:
        """Return the most that it loses, against a comparator with these losses and this path."""
        price = self.steep * self.norm**2 * heaviest * self.diameter / self.beta
        total = comparator_loss + price * (self.diameter / 8.0 + path_length)
        return total / (1.0 - self.beta)


def sure_of(member: Member, heaviest: float = 1.0) -> Sure | None:
    """Return what is known of a member's losses beforehand, None if that is nothing.

    By facts of its parts: base-2 logistic loss, constant steps from the centre of a ball, no
    restarts, a map whose rows are no longer than a known length.
    """
    nats = member._fixed.nats
    if not member._fixed.steps or nats is None or abs(nats - math.log(2.0)) > 1e-12:
        return None
    learner: Any = member
    parts = learner.parts
    if parts.restart is not None or parts.domain.radius is None:
        return None
    steps, diameter = parts.rate.step_range(parts.setting), parts.domain.diameter
    longest = math.inf if learner.map is None else learner.map.longest
    norm = math.hypot(longest, parts.intercept)
    start = parts.domain.farthest(np.zeros((1, 1)))
    start = start if learner.rounds else learner.engine.first_distance
    constant = steps.monotone and math.isinf(steps.floor) and math.isfinite(steps.most)
    if not constant or math.isinf(norm) or start > diameter / 2.0:
        return None
    steep = parts.loss.self_bound
    beta = steps.most * steep * norm**2 * heaviest
    return Sure(beta, diameter, steep, norm) if beta < 1.0 else None


class Guard(Account):
    """An account between a committee's predictions and the probabilities of sure members.

    >>> import driftline as dl
    >>> learner = dl.auto(dl.tasks.Multiclass(3))
    >>> learner.guard.budget, len(learner.guard.sure)
    (5.0, 10)
    """

    kept = 4

    def __init__(
        self,
        task: Task,
        members: Sequence[Member],
        budget: float,
        heaviest: float = 1.0,
        levels: int = 1,
    ):
        self.levels, sets, heaviest = levels, len(SHARE_VALUES), check_heaviest(heaviest)
        self.known = tuple(sure_of(member, heaviest) for member in members)
        if not self.sure or not task.geometry.classes:
            raise InputError(
                "a guard needs a member with a theorem for its losses, as dl.auto(task) has them "
                f"for classes and signs; the members for {task!r:.80} have none"
            )
        kinds = [
            SURE if made is not None else NONE if member._fixed.nats is None else SOME
            for made, member in zip(self.known, members, strict=True)
        ]
        more = sets + sets * len(members)
        super().__init__(task, np.array(kinds, dtype=np.int64), budget, heaviest, more)
        self.labels = len(list(task.answers.labels.all))
        limit, cost = task.predictions.doubt
        self.cost = cost if math.isfinite(limit) else math.inf
        self.ratio, self.chance, self.draws = 0.5, 0.0, math.isinf(self.cost)
        if math.isfinite(self.cost):
            doubting: Any = task
            self.ratio, self.chance = 1.0 / doubting.odds, doubting.least_chance
        self.state[HEAD : HEAD + sets] = np.log([0.5, *[0.5 / (sets - 1)] * (sets - 1)])
        self.state[HEAD + sets + self.members :] = np.tile(
            (self.kinds != NONE) / np.count_nonzero(self.kinds), sets - 1
        )

    # -- what is known

    @property
    def price(self) -> float:
        """How many bits more the book loses than its best sure member."""
        return 1.0 + math.log2(len(self.sure))

    def formula(self, known: Sure, comparator_loss: float, path_length: float) -> float:
        """Return the bound of the total against a comparator, by one sure member."""
        bits = known.bits(comparator_loss, path_length, self.heaviest)
        return self.ratio * bits + self.heaviest * (self.ratio * self.price + self.most)

    def least(self, comparator_loss: float, path_length: float, diameter: float = 0.0) -> float:
        """Return the least of these bounds, by members whose ball is no smaller than this.

        >>> import driftline as dl
        >>> guard = dl.auto(dl.tasks.Multiclass(3)).guard
        >>> [round(guard.least(100.0, path, diameter=20.0)) for path in (0.0, 10.0)]
        [152, 401]
        """
        able = [sure for sure in self.sure if sure.diameter >= diameter]
        made = [self.formula(sure, comparator_loss, path_length) for sure in able]
        return min(made, default=math.inf)

    def describe(self) -> list[str]:
        """Say what is promised beforehand."""
        made = min(self.sure, key=lambda sure: self.formula(sure, 100.0, 1.0))
        lean = min(self.sure, key=lambda sure: (sure.beta, sure.diameter))
        lines = []
        for name, sure in (("bound ", made), ("   and", lean)):
            start = self.formula(sure, 0.0, 0.0)
            share = self.formula(sure, 1.0, 0.0) - start
            path = self.formula(sure, 0.0, 1.0) - start
            loss = "F_T" if abs(share - 1.0) < 1e-12 else f"{share:.4g} F_T"
            lines.append(
                f"{name} E[total target loss] <= {loss} + {start:.4g} + {path:.4g} P_T, in a ball "
                f"of diameter {sure.diameter:g}"
            )
        lines[0] += f", on standardised rows of norm {made.norm:.4g} at most"
        lines.append(self._promise(f"{len(self.sure)} members with a theorem"))
        return lines

    # -- rounds

    def codes(self, labels: np.ndarray) -> np.ndarray:
        """Return places of labels: of a sign 0 or 1."""
        made = self.task.labels.codes(np.reshape(labels, -1))
        return np.ascontiguousarray(made, dtype=np.int64)

    def learn(
        self,
        scores: np.ndarray,
        champion: np.ndarray,
        labels: Any,
        uniforms: np.ndarray,
        sample_weight: np.ndarray | None = None,
        late: tuple[np.ndarray, np.ndarray] | None = None,
    ) -> Watched:
        """Decide who predicts in every round, and learn from the labels."""
        counts = np.empty(0) if sample_weight is None else np.ascontiguousarray(sample_weight)
        given = self.codes(labels), uniforms, counts
        return self._watch(scores, champion, given, self.state, late)

    def look(
        self, scores: np.ndarray, champion: np.ndarray, uniforms: np.ndarray, reserves: bool
    ) -> Watched:
        """Return what would be played next; any number of threads may.

        Rounds follow each other if their predictions are reserved, else each would be the next one.
        """
        given = np.empty(0, np.int64), uniforms, np.empty(0)
        return self._watch(scores, champion, given, self.state.copy(), None, reserves)

    def _watch(
        self,
        scores: np.ndarray,
        champion: np.ndarray,
        given: tuple[np.ndarray, np.ndarray, np.ndarray],
        state: np.ndarray,
        late: tuple[np.ndarray, np.ndarray] | None,
        reserves: bool = False,
    ) -> Watched:
        rounds, count, members = scores.shape
        params = [self.ratio, self.budget, self.cost, self.chance, float(reserves)]
        played, paid = np.empty((rounds, 1), np.int64), np.empty((rounds, 5))
        book = np.empty((0 if len(given[0]) else rounds, 2 * count + 1))
        work = np.empty((OF_LABELS + count) * padded(members) + 2 * LANES + 4 * count)
        rounds_of, kept = late or (np.empty(0, np.int64), np.empty((0, self.kept)))
        watch.compiled(
            *(scores, self.codes(champion).reshape(rounds, -1), *given, self.kinds),
            np.array(params),
            *(state, work, played, paid, book, rounds_of, kept),
        )
        return Watched(self.task.labels.from_codes(played), paid, book)

    def means(self, watched: Watched, encoded: np.ndarray) -> np.ndarray:
        """Return mean loss encodings of predictions; ``encoded`` are those of what was drawn."""
        drawn = np.flatnonzero(watched.book[:, -1] == 1.0)
        if len(drawn) and math.isinf(self.cost):
            rows = np.array(list(self.task.answers.labels.all))[:, np.newaxis]
            chances = 1.0 - watched.book[drawn, : self.labels]
            encoded[drawn] = chances @ self.task.many.encode_losses(rows, self.task.dim)
        return encoded

    def _book(self, ticket: Ticket) -> np.ndarray:
        """Return e and b of all labels, and the share of predictions that were refused."""
        book = ticket.checked_book()
        if not ((book >= 0.0) & (book <= 1.0)).all() or len(book) < 5 or len(book) % 2 == 0:
            raise InputError(
                f"ticket {ticket.number} needs what a guard has written, not {book!r:.50}"
            )
        return book

    def then(self, ticket: Ticket, label: Any) -> np.ndarray:
        """Return the row that is kept of a ticket until its label counts; it reserves nothing."""
        book = self._book(ticket)
        count = (len(book) - 1) // 2
        (code,) = self.codes(np.asarray(label))
        if code >= count:  # a class from after the ticket
            return np.array([0.0, 1.0, 0.0, book[-1]])
        return np.array([book[code] - book[count + code], book[count + code], 0.0, book[-1]])

    def _most_of(self, ticket: Ticket) -> float:
        book = self._book(ticket)
        count = (len(book) - 1) // 2
        return float((book[:count] - book[count:-1]).max()) if book[-1] < 1.0 else 0.0

    def _may_be(self, kinds: np.ndarray, rest: np.ndarray) -> bool:
        sets, some = len(SHARE_VALUES), self.kinds != NONE
        good = bool(((kinds == self.kinds) | (kinds == SOME)).all())
        if not good or not (kinds == SURE).any() or ((kinds == NONE) == some).any():
            return False
        logs, weights = rest[sets : sets + self.members], rest[sets + self.members :]
        weights = weights.reshape(sets - 1, self.members)
        good = -1.0 < rest[:sets].max() <= 1e-9 and -1.0 < logs[kinds == SURE].max()
        good = good and logs.max() <= 1e-9
        good = good and bool((weights[:, some] > 0.0).all()) and not weights[:, ~some].any()
        return good and np.allclose(weights.sum(axis=1), 1.0, atol=1e-6)
