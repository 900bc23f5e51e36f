r"""What is known of a committee's total before the first round.

A member whose theorem bounds its own total by S lets the weights' average pay R(S, T) at most, the
loss bound of the weights (:mod:`driftline.committee.shares`). Drawing a member pays that average
in expectation, and a vote c times it at most (:mod:`driftline.committee.combine.vote`): so

.. math:: \mathbb E[\text{total}] \le c \, R\Big(s F_T + \frac D{\underline\eta} \Big(
   \frac D2 + P_T \Big), \, T \Big)

for every comparator on the rows that this member sees, with the losses :math:`F_T` of its own
surrogate. R is no constant that is added: it is close to S where S is small, and never above T.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from driftline.committee.shares import Shares
from driftline.learner import Member
from driftline.theorem import AprioriBound

__all__ = ["CommitteeBound", "in_words", "bound_of"]

#: The member's totals, as shares of all rounds, for which the bound of the weights is shown.
SHARES, ROUNDS = (0.0, 0.01, 0.1, 0.3), 10_000


class CommitteeBound(NamedTuple):
    """The bound of a committee before the first round, by the theorem of one member.

    The committee pays at most ``factor`` times the weighted average: 1 for a draw.
    """

    #: The number of the member, and its own bound.
    member: int
    own: AprioriBound
    shares: Shares
    factor: float = 1.0
    largest_loss: float = 1.0

    @property
    def norm(self) -> float:
        """The norm of rows in the bound: the largest so far or possible, else 1."""
        known = min(self.own.longest, self.own.steps.norm)
        return known if math.isfinite(known) else 1.0

    def total(
        self,
        comparator_loss: float,
        path_length: float,
        rounds: int,
        norm: float | None = None,
    ) -> float:
        """Return what the expected target losses add up to at most.

        Against a comparator on the rows of the member, none of which is longer than ``norm``.
        """
        total = self.own.total(comparator_loss, path_length, self.norm if norm is None else norm)
        return self.factor * self.average(total, rounds)

    def average(self, total: float, rounds: int) -> float:
        """Return the bound of the weighted average, given a member's total."""
        if not math.isfinite(total):
            return self.largest_loss * rounds
        return self.largest_loss * self.shares.loss_bound(total / self.largest_loss, rounds)


def bound_of(
    members: Sequence[Member], shares: Shares, factor: float, largest: float
) -> CommitteeBound | None:
    """Return the bound by the member that promises least, None if no member has one.

    Promises are compared for a comparator of loss 100 that moves by 1: start and path count, and
    that steps which may grow pay a multiple of the comparator's loss.
    """
    made = [
        CommitteeBound(j, member.apriori_bound, shares, factor, largest)
        for j, member in enumerate(members)
        if member.apriori_bound is not None
    ]
    if not made or not math.isfinite(factor):
        return None
    return min(made, key=lambda each: each.own.total(100.0, 1.0, each.norm))


def in_words(made: CommitteeBound) -> list[str]:
    """Return the bound in two lines."""
    known = ", ".join(
        f"R({share * ROUNDS:g}) = {made.average(share * ROUNDS, ROUNDS):.5g}" for share in SHARES
    )
    times = "" if made.factor == 1.0 else f"{made.factor:g} "
    total, where = _total(made)
    return [
        f"bound  E[total target loss] <= {times}R({total}), by {made.own.theorem} of member "
        f"{made.member}, {where}",
        f"       with R what the weights make of a total, shares.loss_bound: in {ROUNDS} rounds "
        f"{known}",
    ]


def _total(made: CommitteeBound) -> tuple[str, str]:
    """Say what bounds the member's own total, and for which rows."""
    spread, start, path = made.own.prices(made.norm)
    loss, price = "F_T" if spread == 1.0 else f"{spread:.5g} F_T", f"{start:.5g} + {path:.5g} P_T"
    if made.own.longest <= made.norm:
        return f"{loss} + {price}", f"whose rows have norm {made.norm:.4g} at most"
    if math.isfinite(made.own.steps.norm):
        return f"{loss} + {price}", f"up to norm {made.norm:.4g} of {made.own.rows}"
    total = f"{loss} + B^2 ({price})" if spread == 1.0 else f"B^2 ({loss} + {price})"
    return total, f"B >= 1 the largest norm of {made.own.rows}"
