"""Sums over the replayed rounds of a committee and its members, and its certificate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from driftline.certificates.accounts import Account, Asked
from driftline.certificates.certificate import Certificate
from driftline.certificates.committee_certificate import (
    CommitteeCertificate,
    CommitteeRounds,
    Guarded,
)
from driftline.certificates.differences import Differences
from driftline.certificates.replay import Piece, Stream
from driftline.committee import Committee, CommitteeTrace
from driftline.committee.account import late_of
from driftline.committee.trace import GUARDED
from driftline.comparators.checking import Comparator
from driftline.errors import InputError

__all__ = ["CommitteeAccount"]


class CommitteeAccount:
    """The account of a committee, with those of its members."""

    def __init__(
        self,
        learner: Committee,
        trace: CommitteeTrace,
        comparator: Comparator | Sequence[Comparator | None] | None,
        stream: Stream,
        chance: float,
        keep: bool,
    ):
        self.learner, self.trace, self.stream = learner, trace, stream
        self.chance, self.keep, count = chance, keep, len(trace.members)
        if not trace.weights.shape == trace.member_risk.shape == (len(trace), count):
            raise InputError(
                f"{len(trace)} rounds of {count} members need as many weights and risks, but these "
                f"have the shapes {trace.weights.shape} and {trace.member_risk.shape}"
            )
        for name in GUARDED if learner.guard is not None else ():
            if np.shape(getattr(trace, name)) != (len(trace),):
                raise InputError(f"the {name} of the guard was not recorded in every round")
        given: list[Any] = [comparator] * count
        if isinstance(comparator, (list, tuple)):
            given = list(comparator)
        if len(given) != count:
            raise InputError(f"there are {count} members, but {len(given)} comparators")
        self.members = list[Account]()
        for j, own in enumerate(given):
            named = learner.members[j], trace.members[j], own, stream, chance, keep, f"member {j}: "
            try:
                self.members.append(Account(*named))
            except InputError as error:
                raise InputError(f"member {j}: {error}") from error
        self.differences = Differences(learner, trace, stream.labels)
        self.asked, self.parts = Asked(stream.order), list[CommitteeRounds]()
        self.total = self.average = self.expected = self.variance = self.book = self.most = 0.0
        self.acted = 0

    def add(self, piece: Piece) -> None:
        """Add some events."""
        batch, guard, tells = piece.batch, self.learner.guard, piece.tells
        pairs = zip(self.members, batch.members, strict=True)
        risk = np.stack([account.add(piece, own).risk for account, own in pairs], axis=1)
        target = self.differences.compare(piece, batch)
        names = ("weights", "risk", *(("acted",) if guard is not None else ()))
        told = {name: self.asked.told(piece, name, batch[name]) for name in names}
        target, counts = self.asked.told(piece, "target", target), None
        if "sample_weight" in batch.columns:
            counts = batch["sample_weight"][tells]
        self.total += float(target.sum())
        self.average += float((told["weights"] * risk).sum())
        self.expected += float(told["risk"].sum())
        book = None
        if guard is not None:
            book = batch["book"][tells]
            self.book += float(book.sum())
            self.acted += int(np.count_nonzero(told["acted"]))
            self.most = max(self.most, float(batch["account"][piece.asks].max(initial=0.0)))
            most = self.learner.task.largest_loss * (1.0 if counts is None else counts)
            drawn = np.where(guard.draws & (told["acted"] == 1.0), told["risk"], 0.0)
            self.variance += float((drawn * np.maximum(most - drawn, 0.0)).sum())
        if self.keep:
            self.parts.append(CommitteeRounds(target, told["weights"], risk, counts, book))

    def certificate(self) -> CommitteeCertificate:
        """Return the certificate, once all events were added."""
        first, order, trace = self.trace.origin, self.stream.order, self.trace
        assert first is not None
        members = [account.certificate() for account in self.members]
        findings = [f"member {j}: {found}" for j, m in enumerate(members) for found in m.findings]
        return CommitteeCertificate(
            start=first.state.rounds,
            stop=first.state.rounds + len(order.order),
            combine=first.combine,
            total=self.total,
            average=self.average,
            variance=self.variance,
            largest_loss=self.learner.task.largest_loss,
            members=tuple(members),
            mapped=any("features" in member.config for member in trace.members),
            shrunk=tuple(account.shrunk for account in self.members),
            findings=(*findings, *self.stream.differs(first.digest), *self.differences.words),
            chance=self.chance,
            rounds_seen=CommitteeRounds.join(self.parts) if self.keep else None,
            outstanding=len(trace) - len(order.order) if order.late else None,
            guarded=None if self.learner.guard is None else self._guarded(members),
        )

    def _guarded(self, members: Sequence[Certificate]) -> Guarded:
        """Return what a guard says of a run, with the bound against the members' comparators."""
        first, guard, counts = self.trace.origin, self.learner.guard, self.stream.sample_weight
        assert first is not None and guard is not None and first.state.guard is not None
        late = guard.late - late_of(first.state.guard, guard.members)
        more = late + guard.heaviest * guard.lent
        heaviest = 1.0 if counts is None else float(counts[self.stream.order.order].max())
        pairs = [(k, made) for k, made in zip(guard.known, members, strict=True) if k is not None]
        formula: float | str = min(
            guard.formula(own, made.comparator_loss, made.path_length) + made.tally.gap + more
            for own, made in pairs
        )
        if first.state.rounds:
            formula = f"the book had seen {first.state.rounds} rounds before"
        elif heaviest > guard.heaviest:
            formula = (
                f"a sample weight of {heaviest:.4g} is above the largest, {guard.heaviest:.4g}"
            )
        budget = guard.bound - guard.total
        return Guarded(self.expected, self.book, budget, self.most, self.acted, formula, late)
