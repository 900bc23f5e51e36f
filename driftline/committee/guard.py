r"""The guard: predictions of any committee, held to the bound of a theorem.

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
:math:`b(y) = \min(1, (1 - \alpha) L(p, y))`.

*The account.* The committee's own prediction costs e(y) in expectation. It may exceed the book by
:math:`r = \max_y (e(y) - b(y))_+`, which is reserved until the label comes. If account and reserves
would exceed the budget c, the book's own decoder predicts, for which :math:`e \le b`. At the label
the reserve is given back, and :math:`A \leftarrow \max(0, A + e(y) - b(y))`. So
:math:`A + \text{reserves} \le c` in every round, and on every interval

.. math:: \sum_t e_t \le \sum_t b_t + c.

From the first round on the sum of b is at most, for every sure member,

.. math:: (1 - \alpha) \Big( \frac{F + M D (D / 8 + P) / \beta}{1 - \beta} + 1 + \log_2 n \Big).

Labels that come late: e, b and r are those of the round in which the prediction was made, and the
formula holds for losses of the book when labels come; the sum of the differences is known.

The idea of a budget is that of conservative bandits (Wu et al., 2016), for the surrogate gap:
credit accrues while the committee predicts, and the price is c.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from driftline.errors import InputError
from driftline.kernels import GUARD, exp, kernel
from driftline.learner import Member, Ticket
from driftline.learner.sample_weight import LEAST_WEIGHT, MOST_WEIGHT
from driftline.tasks import Task

__all__ = ["BUDGET", "KEPT", "Guard", "Sure", "Watched", "late_of", "promised", "sure_of"]

#: The usual budget, in mistakes.
BUDGET = 5.0

#: What is shared among members in each round, set by set; the first is that of sure members.
SHARE_VALUES = (0.0, 1e-4, 1e-3, 1e-2, 5e-2)

#: The state begins with the account, what is reserved, the sum of b, in how many rounds the book
#: has predicted, and by how much b exceeds (1 - alpha) L at the label in sum, which is negative
#: where labels come at once, and the scale of sample weights; then come the logarithms of the sets'
#: weights, those of the sure members' weights, and the other sets' weights. Reserves are for a
#: weight of 1: they count times the scale, which may grow until labels come.
ACCOUNT, RESERVED, BOOK, ACTED, LATE, SCALE, HEAD = 0, 1, 2, 3, 4, 5, 6

#: What is kept of a round until its label: e - b, b, what is reserved, which prediction it is.
KEPT = 4

#: Parameters: 1 - alpha, the budget, the cost of no answer, the least probability of an answer, and
#: whether what is asked for is reserved.
RATIO, MOST, COST, CHANCE, RESERVES = range(5)

#: Reserves are multiples of this, so that their sums have no rounding.
GRAIN = 2.0**24

#: The least probability that is counted.
LEAST = 1e-300

#: Kinds of members: without probabilities, with them, sure.
NONE, SOME, SURE = 0, 1, 2


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
    whose label never comes: what is :data:`KEPT` stands last in the round's row of ``kept``.
    """
    rounds, count, members = scores.shape
    sets, learning = len(SHARE_VALUES), labels.size > 0
    ratio, cost, scale = params[RATIO], params[COST], state[SCALE]
    of_sets = state[HEAD : HEAD + sets]
    own = state[HEAD + sets :]
    mean = work[:members]
    norm = work[members : 2 * members]
    top = work[2 * members : 3 * members]
    sure = work[3 * members : 4 * members]
    powers = work[4 * members : (4 + count) * members]
    rest = work[(4 + count) * members :]
    p, b, e = rest[:count], rest[count : 2 * count], rest[2 * count : 3 * count]
    may_pay, chances = rest[3 * count : 4 * count], rest[4 * count :]
    able = 0
    for j in range(members):
        if kinds[j] != NONE:
            able += 1
    account, reserved = state[ACCOUNT], state[RESERVED]
    for t in range(rounds):
        total = 0.0
        for j in range(members):
            sure[j] = 0.0
            if kinds[j] == SURE:
                sure[j] = exp(own[j])
                total += sure[j]
        largest, whole = of_sets[0], 0.0
        for g in range(1, sets):
            largest = max(largest, of_sets[g])
        for g in range(sets):
            chances[g] = exp(of_sets[g] - largest)
            whole += chances[g]
        for j in range(members):
            sure[j] /= total
            mean[j] = chances[0] / whole * sure[j]
        for g in range(1, sets):
            weight = chances[g] / whole
            for j in range(members):
                mean[j] += weight * own[g * members + j]
        for j in range(members):
            top[j] = scores[t, 0, j]
        for k in range(1, count):
            for j in range(members):
                top[j] = max(top[j], scores[t, k, j])
        for j in range(members):
            norm[j] = 0.0
        for k in range(count):
            for j in range(members):
                powers[k * members + j] = exp(scores[t, k, j] - top[j])
                norm[j] += powers[k * members + j]
        for j in range(members):
            norm[j] = 1.0 / norm[j]
            mean[j] *= norm[j]
        best = 0
        for k in range(count):
            p[k] = 0.0
            for j in range(members):
                p[k] += mean[j] * powers[k * members + j]
            p[k] = min(max(p[k], LEAST), 1.0)
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
            most = math.ceil(most * GRAIN) / GRAIN
            acts = account + scale * (reserved + most) > (level + 1) * params[MOST] * scale
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
                reserved += most
            continue
        y = labels[t]
        excess, may = e[y] - b[y], b[y]
        counts = sample_weight[t] if sample_weight.size > 0 else 1.0
        most = most if counts > -2.0 else 0.0
        paid[t, 0], paid[t, 1], paid[t, 3], paid[t, 4] = e[y], may, scale * most, acted
        if counts < 0.0:
            reserved += most
            row = kept[rounds_of[t]]
            row[row.size - 4], row[row.size - 3] = excess, may
            row[row.size - 2], row[row.size - 1] = most, acted
        if counts >= 0.0 and rounds_of.size > 0:
            row = kept[rounds_of[t]]
            excess, may = row[row.size - 4], row[row.size - 3]
            reserved, acted = reserved - row[row.size - 2], row[row.size - 1]
        if counts > 0.0:
            while scale < counts:
                scale *= 2.0
            account = max(0.0, account + counts * excess)
            state[BOOK] += counts * may
            state[LATE] += counts * (may - may_pay[y])
            state[ACTED] += 1.0 if acted > 0.0 else 0.0
            power, high = counts / scale, -math.inf
            for j in range(members):
                norm[j] = max(powers[y * members + j] * norm[j], LEAST)
                if kinds[j] == SURE:
                    own[j] += power * math.log(norm[j])
                    high = max(high, own[j])
                if power != 1.0:
                    norm[j] = math.exp(power * math.log(norm[j]))
            given = 0.0
            for j in range(members):
                given += sure[j] * norm[j]
                if kinds[j] == SURE:
                    own[j] -= high
            of_sets[0] += math.log(max(given, LEAST))
            largest = of_sets[0]
            for g in range(1, sets):
                given = 0.0
                for j in range(members):
                    own[g * members + j] *= norm[j]
                    given += own[g * members + j]
                given = max(given, LEAST)
                keeps, gives = (1.0 - SHARE_VALUES[g]) / given, SHARE_VALUES[g] / able
                for j in range(members):
                    if kinds[j] != NONE:
                        own[g * members + j] = keeps * own[g * members + j] + gives
                of_sets[g] += math.log(given)
                largest = max(largest, of_sets[g])
            for g in range(sets):
                of_sets[g] -= largest
        paid[t, 2] = account + scale * reserved
    if learning:
        state[ACCOUNT], state[RESERVED], state[SCALE] = account, reserved, scale


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


def sure_of(member: Member, heaviest: float = 1.0, scaled: float = math.inf) -> Sure | None:
    """Return what is known of a member's losses beforehand, None if that is nothing.

    By facts of its parts: base-2 logistic loss, constant steps from the centre of a ball, no
    restarts, rows of known length. Rows of members without a map are no longer than ``scaled``.
    """
    nats = member.nats
    if not member.steps or nats is None or abs(nats - math.log(2.0)) > 1e-12:
        return None
    learner: Any = member
    parts = learner.parts
    if parts.restart is not None or parts.domain.radius is None:
        return None
    steps, diameter = parts.rate.step_range(parts.setting), parts.domain.diameter
    longest = scaled if learner.map is None else learner.map.longest
    norm = math.hypot(longest, parts.intercept)
    start = parts.domain.farthest(np.zeros((1, 1)))
    start = start if learner.rounds else learner.engine.first_distance
    constant = steps.monotone and math.isinf(steps.floor) and math.isfinite(steps.most)
    if not constant or math.isinf(norm) or start > diameter / 2.0:
        return None
    steep = parts.loss.self_bound
    beta = steps.most * steep * norm**2 * heaviest
    return Sure(beta, diameter, steep, norm) if beta < 1.0 else None


class Watched(NamedTuple):
    """What a guard makes of some rounds.

    ``played`` are predictions as rows of numbers, ``paid`` the columns of :func:`watch`, and
    ``book`` has e and b of all labels where nothing was learned.
    """

    played: np.ndarray
    paid: np.ndarray
    book: np.ndarray


class Guard:
    """An account between a committee's predictions and a book with a theorem.

    ``reserves`` has what is reserved for outstanding tickets, by their numbers.

    >>> import driftline as dl
    >>> learner = dl.auto(dl.tasks.Multiclass(3))
    >>> learner.guard.budget, len(learner.guard.sure)
    (5.0, 10)
    """

    def __init__(
        self,
        task: Task,
        members: Sequence[Member],
        budget: float,
        heaviest: float = 1.0,
        levels: int = 1,
        scaled: float = math.inf,
    ):
        self.task, self.members, self.levels = task, len(members), levels
        self.budget, self.heaviest = check_budget(budget), check_heaviest(heaviest)
        self.known = [sure_of(member, self.heaviest, scaled) for member in members]
        if not self.sure or task.answers.kind not in ("classes", "sign"):
            raise InputError(
                "a guard needs a member with a theorem for its losses, as dl.auto(task) has them "
                f"for classes and signs; the members for {task!r:.80} have none"
            )
        kinds = [
            SURE if made is not None else NONE if member.nats is None else SOME
            for made, member in zip(self.known, members, strict=True)
        ]
        self.kinds = np.array(kinds, dtype=np.int64)
        self.labels = len(list(task.answers.all_labels))
        limit, cost = task.doubt
        self.cost = cost if math.isfinite(limit) else math.inf
        self.ratio, self.chance = 0.5, 0.0
        if math.isfinite(self.cost):
            doubting: Any = task
            self.ratio, self.chance = 1.0 / doubting.odds, doubting.least_chance
        self.reserves: dict[int, float] = {}
        sets = len(SHARE_VALUES)
        self.state = np.zeros(HEAD + sets + sets * self.members)
        self.state[SCALE] = self.heaviest
        self.state[HEAD : HEAD + sets] = np.log([0.5, *[0.5 / (sets - 1)] * (sets - 1)])
        self.state[HEAD + sets + self.members :] = np.tile(
            (self.kinds != NONE) / np.count_nonzero(self.kinds), sets - 1
        )

    # -- what is known

    @property
    def sure(self) -> list[Sure]:
        """What is known of the members that have a theorem for their losses."""
        return [made for made in self.known if made is not None]

    @property
    def weighed(self) -> np.ndarray:
        """Which members are averaged: all but sure ones, which are there for the book."""
        others: np.ndarray = self.kinds != SURE
        return others if others.any() else ~others

    @property
    def price(self) -> float:
        """How many bits more the book loses than its best sure member."""
        return 1.0 + math.log2(len(self.sure))

    @property
    def total(self) -> float:
        """What the book has allowed since the first round."""
        return float(self.state[BOOK])

    @property
    def bound(self) -> float:
        """What predictions have cost since the first round at most, in expectation.

        The budget counts mistakes of the largest weight, doubled until no row was heavier. The
        account is above it only where copies have predicted, each with the budget for itself.
        """
        most = self.levels * self.budget * float(self.state[SCALE])
        return self.total + max(most, float(self.state[ACCOUNT]))

    @property
    def acted(self) -> int:
        """In how many rounds a prediction was refused, of those whose label came."""
        return int(self.state[ACTED])

    @property
    def late(self) -> float:
        """What late labels, and that b is 1 at most, have added to the formula."""
        return float(self.state[LATE])

    def formula(self, sure: Sure, comparator_loss: float, path_length: float) -> float:
        """Return the bound of the total against a comparator, by one sure member."""
        bits = sure.bits(comparator_loss, path_length, self.heaviest)
        budget = self.levels * self.budget
        return self.ratio * bits + self.heaviest * (self.ratio * self.price + budget)

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
        lines.append(
            f"guard  by {len(self.sure)} members with a theorem, with a budget of {self.budget:g}: "
            f"it has acted in {self.acted} rounds"
        )
        return lines

    # -- rounds

    def codes(self, labels: np.ndarray) -> np.ndarray:
        """Return places of labels: of a sign 0 or 1."""
        labels = np.reshape(labels, -1)
        made = (labels + 1) // 2 if self.task.kind == "sign" else labels
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
        work = np.empty((4 + count) * members + 4 * count + len(SHARE_VALUES))
        rounds_of, kept = late or (np.empty(0, np.int64), np.empty((0, KEPT)))
        watch.compiled(
            *(scores, self.codes(champion).reshape(rounds, -1), *given, self.kinds),
            np.array(params),
            *(state, work, played, paid, book, rounds_of, kept),
        )
        return Watched(2 * played - 1 if self.task.kind == "sign" else played, paid, book)

    def means(self, watched: Watched, encoded: np.ndarray) -> np.ndarray:
        """Return mean loss encodings of predictions; ``encoded`` are those of what was drawn."""
        drawn = np.flatnonzero(watched.book[:, -1] == 1.0)
        if len(drawn) and math.isinf(self.cost):
            rows = np.array(list(self.task.answers.all_labels))[:, np.newaxis]
            chances = 1.0 - watched.book[drawn, : self.labels]
            encoded[drawn] = chances @ self.task.encode_losses(rows, self.task.dim)
        return encoded

    def then(self, ticket: Ticket, label: Any) -> np.ndarray:
        """Return what is :data:`KEPT` of a ticket, given its label; nothing is reserved by it."""
        book = ticket.checked_book()
        count = (len(book) - 1) // 2
        (code,) = self.codes(np.asarray(label))
        if code >= count:  # a class from after the ticket
            return np.array([0.0, 1.0, 0.0, book[-1]])
        return np.array([book[code] - book[count + code], book[count + code], 0.0, book[-1]])

    # -- reserves

    def reserve(self, tickets: Sequence[Ticket]) -> None:
        """Reserve what the predictions of tickets may cost beyond the book."""
        for ticket in tickets:
            book = ticket.checked_book()
            count = (len(book) - 1) // 2
            most = float((book[:count] - book[count:-1]).max())
            if most > 0.0 and book[-1] < 1.0:
                self.reserves[ticket.number] = math.ceil(most * GRAIN) / GRAIN

    def settle(self, outstanding: Any, waiting: np.ndarray | None) -> None:
        """Let reserves be those of outstanding tickets, and of rounds of a run that wait."""
        if self.reserves:
            self.reserves = {n: own for n, own in self.reserves.items() if n in outstanding}
        total = math.fsum(self.reserves.values())
        self.state[RESERVED] = total if waiting is None else total + waiting[:, -2].sum()

    # -- the state as a value

    def saved(self) -> dict[str, np.ndarray]:
        """Return the state as arrays; the sum of reserves follows from them."""
        numbers, state = np.array(list(self.reserves), dtype=np.int64), self.state.copy()
        state[RESERVED] = 0.0
        return {
            "guard": np.r_[self.budget, self.heaviest, self.kinds, state],
            "reserved.numbers": numbers,
            "reserved": np.array(list(self.reserves.values()), dtype=np.float64),
        }

    def resume(self, saved: Any, outstanding: Any = None) -> None:
        """Go on from a saved state, if it is valid for this committee and its tickets."""
        sets, first = len(SHARE_VALUES), 2 + self.members
        given: Any = saved if isinstance(saved, dict) else {}
        state, numbers, reserved = map(given.get, ("guard", "reserved.numbers", "reserved"))
        good: Any = isinstance(state, np.ndarray) and state.shape == (first + len(self.state),)
        good = good and state.dtype == np.float64 and bool(np.isfinite(state).all())
        good = good and tuple(state[:2]) == (self.budget, self.heaviest)
        good = good and bool(((state[2:first] == self.kinds) | (state[2:first] == SOME)).all())
        if good:
            kinds, state = state[2:first].astype(np.int64), state[first:]
            good = bool((kinds == SURE).any() and ((kinds == NONE) == (self.kinds == NONE)).all())
        if good:
            weights = state[HEAD + sets + self.members :].reshape(sets - 1, self.members)
            some = self.kinds != NONE
            logs = state[HEAD + sets : HEAD + sets + self.members]
            heads = np.delete(state[:HEAD], LATE)
            good = bool((heads >= 0.0).all() and state[SCALE] >= self.heaviest)
            good = good and -1.0 < state[HEAD : HEAD + sets].max() <= 1e-9
            good = good and -1.0 < logs[kinds == SURE].max() <= 1e-9
            good = good and bool((weights[:, some] > 0.0).all()) and not weights[:, ~some].any()
            good = good and np.allclose(weights.sum(axis=1), 1.0, atol=1e-6)
        if good:
            good = isinstance(numbers, np.ndarray) and isinstance(reserved, np.ndarray)
            good = good and (numbers.dtype, reserved.dtype) == (np.int64, np.float64)
            good = good and numbers.shape == reserved.shape == (numbers.size,)
            good = good and bool(((reserved > 0.0) & (reserved <= 1.0)).all())
            good = good and bool((np.diff(numbers) > 0).all())
            good = good and (outstanding is None or bool(np.isin(numbers, outstanding).all()))
        if not good:
            raise InputError("this is no account of a guard of these members")
        self.kinds, self.state = kinds, np.array(state)
        pairs = zip(self.known, kinds, strict=True)
        self.known = [made if kind == SURE else None for made, kind in pairs]
        self.reserves = dict(zip(numbers.tolist(), reserved.tolist(), strict=True))

    def check_kept(self, kept: np.ndarray) -> None:
        """Refuse what no guard has :data:`KEPT` of rounds."""
        excess, rest = kept[:, 0], kept[:, 1:]
        whole = ((rest >= 0.0) & (rest <= 1.0)).all() and not (
            rest[:, -1] * self.levels % 1.0
        ).any()
        if not whole or (np.abs(excess) > 1.0).any():
            raise InputError(f"a guard cannot have kept {kept!r:.60} of rounds that wait")

    def copy(self) -> Guard:
        """Return an independent copy."""
        other = object.__new__(Guard)
        other.__dict__.update(self.__dict__)
        other.state, other.reserves = self.state.copy(), dict(self.reserves)
        return other


def promised(saved: dict[str, np.ndarray]) -> dict[str, float]:
    """Return budget and largest weight of a saved guard, by name."""
    budget, heaviest = saved["guard"][:2].tolist()
    return {"budget": budget, "largest_weight": heaviest}


def late_of(saved: dict[str, np.ndarray]) -> float:
    """Return :attr:`Guard.late` of a saved guard."""
    sets = len(SHARE_VALUES)  # members have a kind, a logarithm and a weight in all other sets
    first = 2 + (len(saved["guard"]) - 2 - HEAD - sets) // (sets + 1)
    return float(saved["guard"][first + LATE])


def check_budget(budget: Any) -> float:
    """Return a budget, if it can be one: 0 or more mistakes."""
    good = isinstance(budget, (int, float)) and not isinstance(budget, bool)
    if not good or not 0.0 <= budget <= sys.float_info.max:
        raise InputError(f"budget must be a number of mistakes, 0 or more, not {budget!r:.80}")
    return float(budget)


def check_heaviest(weight: Any) -> float:
    """Return the largest sample weight, if it can be one."""
    good = isinstance(weight, (int, float)) and not isinstance(weight, bool)
    if not good or not LEAST_WEIGHT <= weight <= MOST_WEIGHT:
        raise InputError(
            f"largest_weight must be from {LEAST_WEIGHT:g} to {MOST_WEIGHT:g}, not {weight!r:.80}"
        )
    return float(weight)
