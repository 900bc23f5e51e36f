r"""A committee's total beside its bounds.

A guard (:mod:`driftline.committee.account`) holds the expected loss of a committee to what its book
allows, :math:`\sum_t e_t \le \sum_t b_t + c`, and the book has a formula against comparators of the
members that keep it. Without a guard nothing is claimed of a committee. The certificates of the
members hold on every interval.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from driftline.certificates.certificate import Audited, Certificate
from driftline.committee.combine import Combine, rule_of
from driftline.regret import Tally
from driftline.typing import Json

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["NO_GUARD", "CommitteeCertificate", "CommitteeRounds", "Guarded"]

#: Why a committee has no bound.
NO_GUARD = "without a budget no guard holds the committee to a theorem"


class CommitteeRounds(NamedTuple):
    """What is kept of every round: the committee's loss, members' weights and expected losses.

    And what the book of a guard has allowed.
    """

    target_loss: np.ndarray
    weights: np.ndarray
    member_risk: np.ndarray
    sample_weight: np.ndarray | None = None
    book: np.ndarray | None = None

    @classmethod
    def join(cls, parts: Sequence[CommitteeRounds]) -> CommitteeRounds:
        """Return rounds that follow each other as one."""
        columns = zip(*parts, strict=True)
        made: Any = (None if own[0] is None else np.concatenate(own) for own in columns)
        return cls(*made)


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
class CommitteeCertificate(Audited):
    """The losses of a committee's run beside their bounds; print it for a table.

    ``total`` is the target loss of its predictions, ``average`` the weighted average of its
    members' expected losses. ``members`` are the members' own certificates, for the inputs as they
    saw them: ``mapped`` says whether these differ from the stream's. ``shrunk`` lists the members
    for which the comparator was too large. ``guarded`` is what a guard says, None without one.
    """

    start: int
    stop: int
    combine: str
    total: float
    average: float
    variance: float
    largest_loss: float
    members: tuple[Certificate, ...]
    mapped: bool = False
    shrunk: tuple[bool, ...] = ()
    findings: tuple[str, ...] = ()
    unchecked: tuple[str, ...] = ()
    chance: float = 0.05
    rounds_seen: CommitteeRounds | None = field(default=None, repr=False)
    #: How many labels have not come; None where all came at once.
    outstanding: int | None = None
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
        """The expected total, given what members have predicted."""
        return self.total if self.guarded is None else self.guarded.expected

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

        It is that of the rounds in which the book of a guard draws.
        """
        if self.guarded is None or not self.variance:
            return 0.0
        largest = max((member.tally.most_weight for member in self.members), default=0.0)
        tally = Tally(
            self.largest_loss, rounds=self.rounds, variance=self.variance, most_weight=largest
        )
        return tally.deviation(self.chance)

    # -- bounds

    def member_bounds(self, form: str) -> list[float | str]:
        """Return a bound of every member's total, or why it has none."""
        return [member.bounds()[form] for member in self.members]

    def bounds(self) -> dict[str, float | str]:
        """Return every bound of the committee's expected total, or why there is none."""
        if (guarded := self.guarded) is not None:
            return {"book": guarded.bound, "worst_case": guarded.formula}
        return dict.fromkeys(("book", "worst_case"), NO_GUARD)

    @property
    def broken(self) -> list[str]:
        """The bounds that are exceeded by more than rounding: there should be none."""
        given = self.bounds().items()
        over = [k for k, v in given if isinstance(v, float) and self.expected > v + 1e-6]
        theirs = [(j, form) for j, member in enumerate(self.members) for form in member.broken]
        return over + [f"{form} of member {j}" for j, form in theirs]

    # -- for people and machines

    def plot(self, path: str | Path | None = None) -> Figure:
        """Draw totals under their bound, and the weights; return the figure."""
        from driftline.certificates.plots import plot_committee

        return plot_committee(self, path)

    def to_dict(self) -> Json:
        """Return all numbers by name; bounds that do not exist are None."""
        names = ("start", "stop", "combine", "total", "average")
        made = {name: getattr(self, name) for name in names}
        bounds = {k: v if isinstance(v, float) else None for k, v in self.bounds().items()}
        return (
            made
            | {"best": self.best, "best_total": self.best_total, "regret": self.regret}
            | {"bounds": bounds, "trivial": self.trivial, "vacuous": self.vacuous}
            | {"deviation": self.deviation, "chance": self.chance}
            | {"mapped": self.mapped, "shrunk": list(self.shrunk)}
            | {"valid": self.valid, "findings": list(self.findings)}
            | {"unchecked": list(self.unchecked)}
            | {"outstanding": self.outstanding}
            | {"guard": None if self.guarded is None else self.guarded._asdict()}
            | {"members": [member.to_dict() for member in self.members]}
        )

    def __str__(self) -> str:
        """Return a short table."""
        from driftline.certificates.committee_table import table

        return table(self)
