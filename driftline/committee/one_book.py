r"""The guard of any task: a committee held to the theorem of one of its members.

The *book* is a learner whose theorem holds for steps that never grow. With surrogate loss L, step
:math:`\eta` and gradient G of its own round, what its decoder expects to pay is at most

.. math:: b = L - \frac\eta2 \|G\|^2, \qquad
   \sum_t b_t \le F_T + \frac D{\eta_T} \Big( \frac D2 + P_T \Big),

for every comparator in its domain. The account (:mod:`driftline.committee.account`) holds the
committee to b, which is at most the largest loss h of the task.

Before the label comes h is reserved; where it comes late, the largest difference of expected losses
over all labels, which is linear in the label's encoding: one call of the polytope's oracle. Rounds
of many sizes, and tasks that do not say their polytope, reserve h. What a late round is held to was
known when its prediction was made, without a step: with :math:`\alpha` the surrogate gap of the
decoder

.. math:: b = \max(\mathbb E \ell, (1 - \alpha) L),

and :math:`\mathbb E \ell` in rounds of many sizes. The formula holds for losses and steps when
labels come; the sum of the differences is known.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from driftline.committee.account import (
    ACCOUNT,
    GRAIN,
    LENIENCE,
    NONE,
    RESERVED,
    SCALE,
    SURE,
    TOLD,
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
    whole_grains,
)
from driftline.errors import InputError
from driftline.kernels import BALANCE, kernel
from driftline.learner import Member, Ticket
from driftline.polytopes import Polytope
from driftline.tasks import Task
from driftline.theorem import AprioriBound
from driftline.typing import CheckedLabels, Label

__all__ = ["OneBook"]

#: Columns of what a round is decided by: the losses of the committee's prediction and of the
#: book's, expected; b of a label that comes at once, of one that comes late, what bounds it by the
#: theorem; and what is reserved until the label comes.
THEIRS, OWN, AT_ONCE, LATER, FORMULA, RESERVE, COLUMNS = 0, 1, 2, 3, 4, 5, 6


@kernel(BALANCE)
def balance(given, sample_weight, params, state, paid, rounds_of, kept):
    """Decide who predicts in every round, and learn from its label.

    ``given`` has the columns above, ``params`` budget and largest loss. A sample weight of -1 is
    for a round that is only asked for, -2 for one whose label never comes: how many labels had come
    by then, e, b, what is reserved and whether the book has predicted stand last in the round's row
    of ``kept``.
    """
    budget, largest = params[0], params[1]
    for t in range(len(given)):
        counts = sample_weight[t] if sample_weight.size > 0 else 1.0
        scale, asked, acts = state[SCALE], counts < 0.0, overdraws(state, largest, budget)
        acted, most, may = 1.0 if acts else 0.0, 0.0, given[t, AT_ONCE]
        if asked:
            may = given[t, LATER]
            beside(state)
            if counts > -2.0:
                most = 0.0 if acts else rounded_up(given[t, RESERVE])
                reserved(state, most, largest)
        excess = (given[t, OWN] if acts else given[t, THEIRS]) - may
        paid[t, 0], paid[t, 1], paid[t, 3], paid[t, 4] = excess + may, may, scale * most, acted
        if asked:
            row = kept[rounds_of[t]]
            row[row.size - 5], row[row.size - 4], row[row.size - 3] = state[TOLD], excess + may, may
            row[row.size - 2], row[row.size - 1] = most, acted
        if not asked and rounds_of.size > 0:
            row = kept[rounds_of[t]]
            released(state, row[row.size - 2], largest)
            acted = row[row.size - 1]
            paid_then = row[row.size - 4]
            if row[row.size - 5] != state[TOLD]:
                may = row[row.size - 3]
            elif acted > 0.0:  # it comes at once
                paid_then = given[t, OWN]
            excess = paid_then - may
            paid[t, 1] = may
        if not asked:
            heard(state, acted)
            if rounds_of.size == 0:
                beside(state)
        if counts > 0.0:
            settled(state, counts, excess, may, given[t, FORMULA])
        paid[t, 2] = state[ACCOUNT] + state[SCALE] * state[RESERVED]


class OneBook(Account):
    """An account between a committee's predictions and what one member with a theorem may pay.

    >>> import driftline as dl
    >>> learner = dl.auto(dl.tasks.Multilabel(3), effort="fast", budget=5.0)
    >>> print(learner.guard.describe()[0].split(",")[0])
    bound  E[total target loss] <= F_T + 71.1 + 5.088 P_T
    """

    kept = 5
    _learned = (*Account._learned, "member")

    def __init__(self, task: Task, members: Sequence[Member], budget: float, heaviest: float = 1.0):
        heaviest = check_heaviest(heaviest)
        able = [member.facts.apriori_bound for member in members]
        known = [made if made is not None and made.steps.monotone else None for made in able]
        promises = [self._promised(own) for own in known]
        self.place = int(np.argmin(promises))
        if math.isinf(promises[self.place]):
            raise InputError(
                "a guard needs a member with a theorem for its losses, whose steps never grow, as "
                f"dl.auto(task) has one; the members for {task!r:.80} have none"
            )
        kinds = np.full(len(members), NONE, dtype=np.int64)
        kinds[self.place] = SURE
        self.known = tuple(own if j == self.place else None for j, own in enumerate(known))
        super().__init__(task, kinds, budget, heaviest, 0)
        learner: Any = members[self.place]
        self.hull = _hull_of(task)
        self.member, self.draws = learner, not learner.parts.decoder.deterministic

    # -- what is known

    @staticmethod
    def _promised(known: AprioriBound | None) -> float:
        """Return the bound against a comparator of loss 100 that moves by 1, on short rows."""
        if known is None:
            return math.inf
        return known.total(100.0, 1.0, min(1.0, known.longest, known.steps.norm))

    def formula(self, known: AprioriBound, comparator_loss: float, path_length: float) -> float:
        """Return the bound of the total against a comparator.

        On rows of the largest norm that is possible, or else of the largest so far.
        """
        norm = min(known.longest * self.heaviest**0.5, known.steps.norm)
        if not math.isfinite(norm):
            norm = max(1.0, self.member.engine.largest_input_sq**0.5)
        total = known.total(comparator_loss, path_length, norm)
        return total + self.heaviest * self.most

    def describe(self) -> list[str]:
        """Say what is promised beforehand."""
        (known,) = self.sure
        norm = min(known.longest, known.steps.norm)
        scaled = math.isfinite(norm)
        _, start, path = known.prices(norm if scaled else 1.0)
        budget = self.heaviest * self.most
        price = f"F_T + {start + budget:.4g} + {path:.4g} P_T"
        where = f"on rows of norm {norm:.4g} at most, as that member sees them"
        if not scaled:
            price = f"F_T + B^2 ({start:.4g} + {path:.4g} P_T) + {budget:.4g}"
            where = f"B >= 1 the largest norm of {known.rows}"
        return [
            f"bound  E[total target loss] <= {price}, in a ball of diameter "
            f"{known.diameter:.4g}, {where}",
            self._promise(f"the theorem of member {self.place}, {known.theorem}"),
        ]

    # -- rounds

    def learn(
        self,
        rows: np.ndarray,
        book: dict[str, np.ndarray],
        labels: CheckedLabels,
        sample_weight: np.ndarray | None = None,
        late: tuple[np.ndarray, np.ndarray] | None = None,
    ) -> Watched:
        """Decide who predicts in every round, and learn from the labels.

        ``rows`` are predictions of the committee as rows of numbers, ``book`` the columns of its
        member; where some rounds are only ``asked`` for, with the member's ``scores``.
        """
        theirs, given = self.task.many.losses(rows, labels), np.zeros((len(rows), COLUMNS))
        counts = book.get("sample_weight")
        ones = np.ones(len(rows)) if counts is None else np.where(counts > 0.0, counts, 1.0)
        loss, own = book["loss"] / ones, book["risk"] / ones
        asked = book.get("asked", np.zeros(len(rows), dtype=bool))
        formula, told = loss.copy(), ~asked  # what is asked for has made no step
        formula[told] -= 0.5 * book["eta"][told] * (book["grad_sq"][told] / ones[told])
        ratio = 1.0 - self.member.parts.decoder.surrogate_gap
        given[:, THEIRS], given[:, OWN], given[:, FORMULA] = theirs, own, formula
        given[:, AT_ONCE] = np.minimum(self.largest, np.maximum(own, formula))
        later = own if self.task.layout.ragged else np.maximum(own, ratio * loss)
        given[:, LATER] = np.minimum(self.largest, later)
        places = np.flatnonzero(asked)
        given[places, RESERVE] = self._reserves(rows[places], book, places)
        counted = np.empty(0) if sample_weight is None else np.ascontiguousarray(sample_weight)
        paid, params = np.empty((len(rows), 5)), np.array([self.most, self.largest])
        rounds_of, kept = late or (np.empty(0, np.int64), np.empty((0, self.kept)))
        balance.compiled(given, counted, params, self.state, paid, rounds_of, kept)
        acted = paid[:, 4] == 1.0
        played = np.where(acted[:, np.newaxis], book["prediction"], rows)
        losses = np.where(acted, book["target_loss"] / ones, theirs)
        return Watched(played, paid, np.empty((0, 0)), losses, theirs)

    def _reserves(
        self, rows: np.ndarray, book: dict[str, np.ndarray], places: np.ndarray
    ) -> np.ndarray:
        """Return by how much predictions may cost more than the book's own, over all labels."""
        made = np.full(len(rows), self.largest)
        if (scores := book.get("scores")) is None or not len(rows):
            return made
        decoder, encoded = (
            self.member.parts.decoder,
            self.task.many.encode_losses(rows, self.task.dim),
        )
        for i, theta in enumerate(scores[places]):
            made[i] = self.reserve_of(encoded[i], decoder.mean_loss_encoding(theta))
        return made

    def reserve_of(self, encoded: np.ndarray, mean: np.ndarray) -> float:
        """Return by how much one mean loss encoding may cost more than another, for any label.

        What is below a grain is the rounding of a solver.
        """
        away = encoded - mean
        most = self.largest if self.hull is None else float(self.hull.maximize(away) @ away)
        return min(most, self.largest) if most > 1.0 / GRAIN else 0.0

    def look(
        self, rows: np.ndarray, own: np.ndarray, encoded: Any, means: Any, scores: Any, whole: bool
    ) -> Watched:
        """Return the predictions that would be made next; any number of threads may call this.

        ``rows`` and ``own`` are predictions of the committee and of the book's member, ``encoded``
        and ``means`` their mean loss encodings, ``scores`` those of the member. Rounds follow each
        other if they are predicted ``whole``, with tickets, else each would be the next one.
        """
        played, acted = rows.copy(), np.zeros(len(rows))
        account, scale, reserves = self.state[[ACCOUNT, SCALE, RESERVED]].tolist()
        books = list[np.ndarray]()
        for t in range(len(rows)):
            most, acts = 0.0, account + scale * (reserves + self.largest) > self.most * scale
            if acts:
                played[t], acted[t] = own[t], 1.0
            if whole:
                if not acts:
                    most = (
                        self.largest if encoded is None else self.reserve_of(encoded[t], means[t])
                    )
                    most = whole_grains(most)
                reserves += max(0.0, most - LENIENCE * self.largest)
                books.append(np.r_[() if scores is None else scores[t], most, acted[t]])
        return Watched(played, acted[:, np.newaxis], np.array(books))

    # -- tickets

    def _book(self, ticket: Ticket) -> np.ndarray:
        """Return scores of the book's member, what is reserved, and whether it has predicted."""
        book = ticket.checked_book()
        good = len(book) >= 2 and 0.0 <= book[-2] <= self.largest + 1.0 / GRAIN
        if not good or book[-1] not in (0.0, 1.0):
            raise InputError(
                f"ticket {ticket.number} needs what a guard has written, not {book!r:.50}"
            )
        return book

    def then(self, ticket: Ticket, label: Label, own: float = 0.0) -> np.ndarray:
        """Return the row that is kept of a ticket until its label counts; it reserves nothing.

        ``own`` is the loss that the book's member expected.
        """
        book, scores = self._book(ticket), self._book(ticket)[:-2]
        own = min(own, self.largest)  # whatever the ticket's distributions say
        ratio, may = 1.0 - self.member.parts.decoder.surrogate_gap, own
        if not self.task.layout.ragged and len(scores) == self.task.dim:
            value, _ = self.member.parts.loss.value_and_grad(scores, self.task.labels.value(label))
            may = max(may, ratio * value)
        paid = own
        if book[-1] == 0.0:
            row = np.atleast_2d(self.task.predictions.numbers(ticket.prediction))
            (paid,) = self.task.many.losses(row, [label])
        return np.array([ticket.rounds, paid, min(may, self.largest), 0.0, book[-1]])

    def _most_of(self, ticket: Ticket) -> float:
        return float(self._book(ticket)[-2])

    def _may_be(self, kinds: np.ndarray, rest: np.ndarray) -> bool:
        return bool((kinds == self.kinds).all())


def _hull_of(task: Task) -> Polytope | None:
    """Return the polytope of the labels' encodings, None if the task does not say it."""
    try:
        return None if task.layout.ragged else task.label_hull
    except InputError:
        return None
