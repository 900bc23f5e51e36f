r"""An account between what a committee predicts and a book that has a theorem.

*The book* states what a prediction may cost: :math:`b_t(y)`, at most the largest loss h of the
task, and at least what the book's own decoder expects to pay. *The account* compares: the
committee's own prediction costs e(y) in expectation and may exceed the book by :math:`r \ge \max_y
(e(y) - b(y))_+`. If account, r, and what is in *reserve* for predictions whose labels are
outstanding would exceed the budget c, the book's own decoder predicts. Else
:math:`(r - \kappa)_+` is in reserve until the label comes, and then
:math:`A \leftarrow \max(0, A + e(y) - b(y))`.

So account and reserves are c at most when the committee's own prediction is made, and rise by
:math:`\kappa` at most with every label that was outstanding then: if that were never more than N
others, on every interval

.. math:: \sum_t e_t \le \sum_t b_t + c + \kappa N .

N is 0 where labels come at once. With :math:`\kappa = 0` reserves of outstanding rows fill the
budget, and the book predicts instead, which errs more often. With :math:`\kappa = h / 2` a class
that is the book's most probable one, too, reserves nothing.

There are two books: averaged probabilities (:mod:`driftline.committee.guard`), and one learner with
a theorem for any task (:mod:`driftline.committee.one_book`).

The idea of a budget is that of conservative bandits (Wu et al., 2016), for the surrogate gap:
credit accrues while the committee predicts, and the price is c.
"""

from __future__ import annotations

import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from driftline.errors import InputError
from driftline.kernels import helper
from driftline.learner import Ticket
from driftline.learner.sample_weight import LEAST_WEIGHT, MOST_WEIGHT
from driftline.state import Stateful
from driftline.tasks import Task
from driftline.typing import Label

__all__ = ["BUDGET", "LENIENCE", "Account", "Watched", "late_of", "promised"]

#: The usual budget, in units of the largest loss.
BUDGET = 5.0

#: What an outstanding prediction may cost without being reserved, in units of the largest loss.
LENIENCE = 0.5

#: The state begins with the account, what is reserved, the sum of b, in how many rounds a
#: prediction was refused, by how much late labels and the cap of b have added to the formula, the
#: scale of sample weights, how many labels came, how many outstanding predictions may cost more
#: than the book, and how many these were at most when another row was predicted. Reserves are for a
#: weight of 1: they count times the scale, which may grow until labels come.
ACCOUNT, RESERVED, BOOK, ACTED, LATE, SCALE, TOLD, WAITING, PEAK, HEAD = range(10)

#: Kinds of members: without probabilities, with them, those that keep the book.
NONE, SOME, SURE = 0, 1, 2

#: Reserves are multiples of this, so that their sums have no rounding.
GRAIN = 2.0**24

#: What a budget and a weight may be.
NUMBERS = (int, float, np.integer, np.floating)

#: What is taken for the rounding of a sum, as a share of the grain: it reserves nothing.
NOISE = 2.0**-10


def whole_grains(reserve):
    """Return a reserve as the next multiple of the grain; what rounding has added is none."""
    return math.ceil(reserve * GRAIN - NOISE) / GRAIN


rounded_up = helper(whole_grains)


@helper
def overdraws(state, most, budget):
    """Say whether a prediction that may cost so much beyond the book is not made."""
    return state[ACCOUNT] + state[SCALE] * (state[RESERVED] + most) > budget * state[SCALE]


@helper
def beside(state):
    """Note how many labels are outstanding where another row is predicted."""
    state[PEAK] = max(state[PEAK], state[WAITING])


@helper
def reserved(state, most, largest):
    """Reserve for a prediction whose label is outstanding, and which may cost so much."""
    if most > 0.0:
        state[RESERVED] += max(0.0, most - LENIENCE * largest)
        state[WAITING] += 1.0


@helper
def released(state, most, largest):
    """Give the reserve back when the label has come."""
    if most > 0.0:
        state[RESERVED] -= max(0.0, most - LENIENCE * largest)
        state[WAITING] -= 1.0


@helper
def heard(state, acted):
    """Note that a label came, and whether a prediction had been refused."""
    state[TOLD] += 1.0
    state[ACTED] += 1.0 if acted > 0.0 else 0.0


@helper
def settled(state, counts, excess, may, formula):
    """Add a round of sample weight ``counts`` whose label came; ``formula`` is what bounds b.

    The account itself is a local variable of loops: return it.
    """
    while state[SCALE] < counts:
        state[SCALE] *= 2.0
    state[BOOK] += counts * may
    state[LATE] += counts * (may - formula)
    state[ACCOUNT] = max(0.0, state[ACCOUNT] + counts * excess)


class Watched(NamedTuple):
    """What a guard makes of some rounds.

    ``played`` are predictions as rows of numbers. ``paid`` has, of every round, e and b of its
    label, account and reserves after the round, what was reserved for it, and the share of
    predictions that were refused; where nothing was learned, only that. ``book`` is what a ticket
    needs, where nothing was learned. ``losses`` are target losses, and ``theirs`` those of the
    committee without a guard, where these are known.
    """

    played: np.ndarray
    paid: np.ndarray
    book: np.ndarray
    losses: np.ndarray | None = None
    theirs: np.ndarray | None = None

    @property
    def columns(self) -> dict[str, np.ndarray]:
        """What a batch has of rounds that were learned from."""
        made = {"played": self.played, "paid": self.paid}
        more = {"losses": self.losses, "theirs": self.theirs}
        return made | {name: own for name, own in more.items() if own is not None}


class Account(Stateful, ABC):
    """The state of a guard, and what is reserved for outstanding tickets.

    ``known`` has what is known beforehand of every member that keeps the book, None for others;
    ``reserves`` what outstanding tickets may cost beyond the book, by their numbers.
    """

    _learned: ClassVar[tuple[str, ...]] = ("state", "reserves")
    _derived = ("kinds", "known")

    #: How many numbers must be known of a round until its label comes; reserves are second to last.
    kept: ClassVar[int]

    #: How many predictions there are to choose from before the book's own.
    levels: int = 1

    #: Whether the book draws its predictions.
    draws: bool

    known: tuple[Any, ...]

    def __init__(self, task: Task, kinds: np.ndarray, budget: float, heaviest: float, more: int):
        self.task, self.kinds, self.members = task, kinds, len(kinds)
        self.budget, self.heaviest = check_budget(budget), check_heaviest(heaviest)
        self.largest = float(task.largest_loss)
        self.reserves: dict[int, float] = {}
        self.state = np.zeros(HEAD + more)
        self.state[SCALE] = self.heaviest

    # -- what is known

    @property
    def sure(self) -> list[Any]:
        """What is known of the members that keep the book."""
        return [made for made in self.known if made is not None]

    @property
    def weighed(self) -> np.ndarray:
        """Which members are combined: all but those that are there for the book."""
        others: np.ndarray = self.kinds != SURE
        return others if others.any() else ~others

    @property
    def most(self) -> float:
        """The most that account and reserves may be, for a sample weight of 1."""
        return self.levels * self.budget * self.largest

    @property
    def total(self) -> float:
        """What the book has allowed since the first round."""
        return float(self.state[BOOK])

    @property
    def bound(self) -> float:
        """What predictions have cost since the first round at most, in expectation.

        The budget counts losses of the largest weight, doubled until no row was heavier. The
        account is above it only where copies have predicted, each with the budget for itself.
        """
        most = (self.most + self.lent) * float(self.state[SCALE])
        return self.total + max(most, float(self.state[ACCOUNT]))

    @property
    def lent(self) -> float:
        """What outstanding labels have added to the budget, for a sample weight of 1."""
        return LENIENCE * self.largest * float(self.state[PEAK])

    @property
    def acted(self) -> int:
        """In how many rounds a prediction was refused, of those whose label came."""
        return int(self.state[ACTED])

    @property
    def late(self) -> float:
        """What late labels, and that b is capped, have added to the formula."""
        return float(self.state[LATE])

    @abstractmethod
    def formula(self, known: Any, comparator_loss: float, path_length: float) -> float:
        """Return the bound of the total against a comparator, by one member of the book."""

    @abstractmethod
    def describe(self) -> list[str]:
        """Say what is promised beforehand."""

    def _promise(self, members: str) -> str:
        """Say who keeps the book, and what the guard has done."""
        return (
            f"guard  by {members}, with a budget of {self.budget:g}, and {LENIENCE:g} for each "
            f"other label that is outstanding: it has acted in {self.acted} rounds"
        )

    # -- tickets

    @abstractmethod
    def then(self, ticket: Ticket, label: Label) -> np.ndarray:
        """Return the row that is kept of a ticket until its label counts; it reserves nothing."""

    @abstractmethod
    def _most_of(self, ticket: Ticket) -> float:
        """Return by how much the prediction of a ticket may cost more than the book allows."""

    def reserve(self, tickets: Sequence[Ticket]) -> None:
        """Reserve what the predictions of tickets may cost beyond the book."""
        for ticket in tickets:
            most = whole_grains(self._most_of(ticket))  # or the ticket is refused
            self.state[PEAK] = max(self.state[PEAK], self.state[WAITING])
            if most > 0.0:
                self.reserves[ticket.number] = most
                self.state[WAITING] += 1.0

    def settle(self, outstanding: Any, waiting: np.ndarray | None) -> None:
        """Let reserves be those of outstanding tickets, and of rounds of a run that wait."""
        if self.reserves:
            self.reserves = {n: own for n, own in self.reserves.items() if n in outstanding}
        most = np.array(list(self.reserves.values()))
        if waiting is not None:
            most = np.r_[most, waiting[:, -2]]
        free = LENIENCE * self.largest
        self.state[RESERVED] = math.fsum(np.maximum(0.0, most - free))
        self.state[WAITING] = np.count_nonzero(most)

    # -- the state as a value

    def saved(self) -> dict[str, np.ndarray]:
        """Return the state as arrays; the sum of reserves follows from them."""
        numbers, state = np.array(list(self.reserves), dtype=np.int64), self.state.copy()
        state[RESERVED] = state[WAITING] = 0.0
        return {
            "guard": np.r_[self.budget, self.heaviest, self.kinds, state],
            "reserved.numbers": numbers,
            "reserved": np.array(list(self.reserves.values()), dtype=np.float64),
        }

    def resume(self, saved: Any, outstanding: Any = None) -> None:
        """Go on from a saved state, if it is valid for this committee and its tickets."""
        first = 2 + self.members
        given: Any = saved if isinstance(saved, dict) else {}
        state, numbers, reserved = map(given.get, ("guard", "reserved.numbers", "reserved"))
        good: Any = isinstance(state, np.ndarray) and state.shape == (first + len(self.state),)
        good = good and state.dtype == np.float64 and bool(np.isfinite(state).all())
        good = good and tuple(state[:2]) == (self.budget, self.heaviest)
        if good:
            kinds, state = state[2:first], state[first:]
            heads = np.delete(state[:HEAD], LATE)
            good = bool((heads >= 0.0).all() and state[SCALE] >= self.heaviest)
            good = good and self._may_be(kinds, state[HEAD:])
        if good:
            good = isinstance(numbers, np.ndarray) and isinstance(reserved, np.ndarray)
            good = good and (numbers.dtype, reserved.dtype) == (np.int64, np.float64)
            good = good and numbers.shape == reserved.shape == (numbers.size,)
            good = good and bool(((reserved > 0.0) & (reserved <= self.largest + 1 / GRAIN)).all())
            good = good and bool((np.diff(numbers) > 0).all())
            good = good and (outstanding is None or bool(np.isin(numbers, outstanding).all()))
        if not good:
            raise InputError("this is no account of a guard of these members")
        self.kinds, self.state = kinds.astype(np.int64), np.array(state)
        pairs = zip(self.known, self.kinds, strict=True)
        self.known = tuple(made if kind == SURE else None for made, kind in pairs)
        self.reserves = dict(zip(numbers.tolist(), reserved.tolist(), strict=True))

    @abstractmethod
    def _may_be(self, kinds: np.ndarray, rest: np.ndarray) -> bool:
        """Say whether these may be kinds of members, and the rest of a state."""

    def check_kept(self, kept: np.ndarray) -> None:
        """Refuse what no guard has kept of rounds."""
        excess, may, most, acted = kept.T[-4:]
        top = self.largest * (1.0 + 1e-9) + 1.0 / GRAIN
        inside = [((own >= 0.0) & (own <= top)).all() for own in (may, most)]
        whole = ((acted >= 0.0) & (acted <= 1.0)).all() and not (acted * self.levels % 1.0).any()
        if not all(inside) or not whole or (np.abs(excess) > top).any():
            raise InputError(f"a guard cannot have kept {kept!r:.60} of rounds that wait")


def promised(saved: dict[str, np.ndarray]) -> dict[str, float]:
    """Return budget and largest weight of a saved guard, by name."""
    budget, heaviest = saved["guard"][:2].tolist()
    return {"budget": budget, "largest_weight": heaviest}


def late_of(saved: dict[str, np.ndarray], members: int) -> float:
    """Return :attr:`Account.late` of a saved guard of so many members."""
    return float(saved["guard"][2 + members + LATE])


def check_budget(budget: Any) -> float:
    """Return a budget, if it can be one: 0 or more of the largest losses."""
    good = isinstance(budget, NUMBERS) and not isinstance(budget, bool)
    if not good or not 0.0 <= budget <= sys.float_info.max:
        raise InputError(f"budget must be a number of mistakes, 0 or more, not {budget!r:.80}")
    return float(budget)


def check_heaviest(weight: Any) -> float:
    """Return the largest sample weight, if it can be one."""
    good = isinstance(weight, NUMBERS) and not isinstance(weight, bool)
    if not good or not LEAST_WEIGHT <= weight <= MOST_WEIGHT:
        raise InputError(
            f"largest_weight must be from {LEAST_WEIGHT:g} to {MOST_WEIGHT:g}, not {weight!r:.80}"
        )
    return float(weight)
