r"""A committee's total beside its bounds.

Let member j have the expected loss :math:`r_{t,j}` and the weight :math:`w_{t,j}` in round t. For
any sequence of members :math:`i_t` that changes k times,

.. math:: A = \sum_t \sum_j w_{t,j} r_{t,j} \le R(S, T, k) \le S + R(T, k), \qquad
   S = \sum_t r_{t,i_t},

with R the loss bound and the regret bound of the weights (:mod:`driftline.committee.shares`). The
loss bound is far smaller where S is small. It grows with S, and the total of a single member is at
most each of its own bounds. What the committee pays is

- by *drawing* a member, expected: A itself;
- by *voting*, expected over the members' randomness: at most c A, with c = 2 if the target loss is
  a metric and a little more if it is nearly one (see :mod:`driftline.committee.combine.vote`).
  Nothing is claimed for other losses.

Where labels come late, :math:`w_{t,j}` are the weights of the prediction, and R holds with what is
known when labels come: how much more these have paid than the weights at the arrival (``bills``,
see :mod:`driftline.committee.shares`).

R holds from the first round of the weights on, and the weights never restart: so there is no such
bound for an interval, nor for a run that continues an earlier one. The certificates of the members
hold on every interval.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from driftline.certificates.certificate import FORMS, Certificate, or_reason
from driftline.committee import Shares
from driftline.committee.combine import Combine, rule_of
from driftline.committee.shares import Bills, Stretch
from driftline.errors import NoGuaranteeError
from driftline.regret import Tally
from driftline.typing import Json

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["CommitteeCertificate", "CommitteeRounds", "Guarded"]


class CommitteeRounds(NamedTuple):
    """What is kept of every round: the committee's loss, members' weights and expected losses."""

    target_loss: np.ndarray
    weights: np.ndarray
    member_risk: np.ndarray
    sample_weight: np.ndarray | None = None


class Guarded(NamedTuple):
    """What a guard has allowed and done: see :mod:`driftline.committee.guard`.

    ``expected`` is what predictions cost in expectation, ``book`` what the book allows in sum,
    ``account`` the most that account and reserves were, ``acted`` in how many labelled rounds a
    prediction was refused, and ``formula`` the bound against the comparators of sure members, or
    why there is none; late labels have added ``late`` to it.
    """

    expected: float
    book: float
    budget: float
    account: float
    acted: int
    formula: float | str
    late: float = 0.0

    @property
    def bound(self) -> float:
        """What predictions cost in expectation at most."""
        return self.book + self.budget


@dataclass(frozen=True)
class CommitteeCertificate:
    """The losses of a committee's run beside their bounds; print it for a table.

    ``total`` is the target loss of its predictions, ``average`` the weighted average of its
    members' expected losses, ``sampled_average`` that of the losses of their predictions. The
    committee pays at most ``factor`` times the average in expectation (1 for a draw; infinite if
    nothing is claimed).
    ``sequences`` are the totals of the best sequences of members that change at most 0, 1, ...
    times. ``members`` are the members' own certificates, for the inputs as they saw them:
    ``scaled`` says whether these differ from the stream's. ``shrunk`` lists the members for which
    the comparator was too large.
    """

    start: int
    stop: int
    combine: str
    factor: float
    total: float
    average: float
    sampled_average: float
    variance: float
    largest_loss: float
    members: tuple[Certificate, ...]
    sequences: tuple[float, ...]
    shares: Shares = field(repr=False)
    #: Rounds of the same scale of sample weights; one stretch of scale 1 without any.
    stretches: tuple[Stretch, ...] = field(repr=False)
    no_regret_bound: str = ""
    scaled: bool = False
    shrunk: tuple[bool, ...] = ()
    findings: tuple[str, ...] = ()
    unchecked: tuple[str, ...] = ()
    chance: float = 0.05
    rounds_seen: CommitteeRounds | None = field(default=None, repr=False)
    #: What it has cost that the weights of predictions were older than those when labels came;
    #: None where all came at once.
    bills: Bills | None = None
    #: How many labels have not come; None where all came at once.
    outstanding: int | None = None
    #: What the guard says, None without one.
    guarded: Guarded | None = None

    # -- totals

    @property
    def rule(self) -> Combine:
        """The rule by which members' predictions were combined."""
        return rule_of(self.combine)

    @property
    def rounds(self) -> int:
        """How many rounds."""
        return self.stop - self.start

    @property
    def expected(self) -> float:
        """The expected total: of a draw the average, of a vote, which is certain, the total."""
        if self.guarded is not None:
            return self.guarded.expected
        return self.total if self.rule.certain else self.average

    @property
    def best(self) -> int:
        """The member with the least expected total, the first of several."""
        return int(np.argmin([member.expected for member in self.members]))

    @property
    def best_total(self) -> float:
        """The expected total of the best member."""
        return self.members[self.best].expected

    @property
    def regret(self) -> float:
        """The weighted average minus the best member's total; it may be negative."""
        return self.average - self.best_total

    @property
    def trivial(self) -> float:
        """The loss of uniform guessing: a bound above it is vacuous."""
        return self.members[0].trivial

    @property
    def deviation(self) -> float:
        """By how much ``total`` may exceed a bound of its expectation, except with a small chance.

        The loss of a draw has the round's average as its mean. So has the average loss of the
        members' predictions, and a vote costs at most ``factor`` times that. If all members are
        deterministic, a vote has no deviation. Under a guard it is that of the rounds in which the
        book draws.
        """
        largest = max((member.tally.most_weight for member in self.members), default=0.0)
        tally = Tally(
            self.largest_loss, rounds=self.rounds, variance=self.variance, most_weight=largest
        )
        if not self.rule.certain or (self.guarded is not None and self.variance):
            return tally.deviation(self.chance)
        return self.factor * tally.deviation(self.chance) if self.variance else 0.0

    # -- bounds

    def regret_bound(self, switches: int = 0) -> float:
        """Return by how much the average may exceed the best sequence with this many changes.

        It holds whatever this sequence pays: :meth:`most` is never above its total plus this.
        """
        if self.no_regret_bound:
            raise NoGuaranteeError(self.no_regret_bound)
        switches += self.shares.changes or 0
        regret = self.shares.weighted_regret(self.stretches, switches, self._shares_of_bills)
        return float(self.largest_loss * regret)

    def most(self, total: float, switches: int = 0) -> float:
        """Return a bound of the average, if a sequence of members pays at most ``total``."""
        if self.no_regret_bound:
            raise NoGuaranteeError(self.no_regret_bound)
        largest, bills = self.largest_loss, self._shares_of_bills
        switches += self.shares.changes or 0
        return largest * self.shares.weighted_bound(
            total / largest, self.stretches, switches, bills
        )

    @property
    def _shares_of_bills(self) -> Bills | None:
        """The bills of losses over the largest one."""
        return None if self.bills is None else self.bills.over(self.largest_loss)

    @property
    def bill(self) -> float:
        """What late labels have added to the bound of the best member; 0 without any."""
        if self.bills is None or self.no_regret_bound:
            return 0.0
        own = replace(self, bills=None)
        return self.most(self.best_total) - own.most(self.best_total)

    @property
    def switches(self) -> int:
        """The number of changes of the sequence of members with the smallest bound."""
        if self.no_regret_bound:
            return 0
        return int(np.argmin([self.most(total, k) for k, total in enumerate(self.sequences)]))

    def member_bounds(self, form: str) -> list[float | str]:
        """Return a bound of every member's total, or why it has none."""
        return [member.bounds()[form] for member in self.members]

    def member_totals(self) -> dict[str, float | str]:
        """Return the members' totals that the committee's bounds are computed from, by name.

        The actual totals of the best member and of the best sequence of members; then the smallest
        bound that any member has, for each form of bound, or why there is none.
        """
        made: dict[str, float | str] = {
            "best_member": self.best_total,
            "best_sequence": self.sequences[self.switches],
        }
        for form in FORMS:
            given = self.member_bounds(form)
            known = [bound for bound in given if isinstance(bound, float)]
            made[form] = min(known) if known else f"no member has one: {given[0]}"
        return made

    def average_bounds(self) -> dict[str, float | str]:
        """Return every bound of the weighted average, or why there is none.

        They follow from the :meth:`member_totals` by the loss bound of the weights.
        """
        made: dict[str, float | str] = {}
        for form, total in self.member_totals().items():
            switches = self.switches if form == "best_sequence" else 0
            if not isinstance(total, str):
                total = or_reason(partial(self.most, total, switches))
            made[form] = total
        return made

    def bounds(self) -> dict[str, float | str]:
        """Return every bound of the committee's expected total, or why there is none."""
        if (guarded := self.guarded) is not None:
            return {"book": guarded.bound, "worst_case": guarded.formula}
        if math.isinf(self.factor):
            return dict.fromkeys(self.average_bounds(), self.rule.no_bound)
        given = self.average_bounds().items()
        return {k: self.factor * v if isinstance(v, float) else v for k, v in given}

    @property
    def vacuous(self) -> dict[str, bool]:
        """Whether each bound is no better than the loss of uniform guessing."""
        given = self.bounds().items()
        return {form: value >= self.trivial for form, value in given if isinstance(value, float)}

    @property
    def broken(self) -> list[str]:
        """The bounds that are exceeded by more than rounding: there should be none."""
        slack = 1e-9 * max(1.0, self.average)
        over = [
            form
            for form, value in self.average_bounds().items()
            if isinstance(value, float) and not self.average <= value + slack
        ]
        if self.guarded is not None:
            given = self.bounds().items()
            over += [k for k, v in given if isinstance(v, float) and self.expected > v + 1e-6]
        elif self.rule.certain and self.total > self.factor * (self.sampled_average + slack):
            over.append(self.combine)
        theirs = [(j, form) for j, member in enumerate(self.members) for form in member.broken]
        return over + [f"{form} of member {j}" for j, form in theirs]

    @property
    def valid(self) -> bool:
        """Whether every bound holds, and the audit found nothing."""
        return not self.broken and not self.findings

    # -- for people and machines

    def plot(self, path: str | Path | None = None) -> Figure:
        """Draw totals under their bound, and the weights; return the figure."""
        from driftline.certificates.committee_plots import plot

        return plot(self, path)

    def to_dict(self) -> Json:
        """Return all numbers by name; bounds that do not exist are None."""
        names = ("start", "stop", "combine", "factor", "total", "average", "sampled_average")
        made = {name: getattr(self, name) for name in names}
        bounds = {k: v if isinstance(v, float) else None for k, v in self.bounds().items()}
        regret = or_reason(self.regret_bound)
        return (
            made
            | {"best": self.best, "best_total": self.best_total, "regret": self.regret}
            | {"regret_bound": regret if isinstance(regret, float) else None}
            | {"sequences": list(self.sequences), "switches": self.switches}
            | {"bounds": bounds, "trivial": self.trivial, "vacuous": self.vacuous}
            | {"deviation": self.deviation, "chance": self.chance}
            | {"scaled": self.scaled, "shrunk": list(self.shrunk)}
            | {"valid": self.valid, "findings": list(self.findings)}
            | {"unchecked": list(self.unchecked)}
            | {"bill": self.bill, "outstanding": self.outstanding}
            | {"guard": None if self.guarded is None else self.guarded._asdict()}
            | {"members": [member.to_dict() for member in self.members]}
        )

    def __str__(self) -> str:
        """Return a short table."""
        from driftline.certificates.committee_table import table

        return table(self)
