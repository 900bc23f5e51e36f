"""What a run was promised, held to what it paid."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from driftline.certificates import best_piecewise, certify
from driftline.certificates.committee_certificate import CommitteeCertificate
from driftline.committee.vote import vote_factor
from driftline.domains import Ball
from driftline.runs.kept import Kept
from driftline.runs.model import Model
from driftline.tasks import RelevanceTask

__all__ = ["Promise", "promise_of"]

#: Where weights in hindsight may change, and what a change must save.
CANDIDATES, PENALTY = 8, 100.0


@dataclass(frozen=True)
class Promise:
    """Bounds of all that a committee has paid since its first round, or one learner in a run.

    ``paid`` is its own loss and ``best`` the expected loss of its best member. The weighted average
    of the members is at most ``average``, and the vote at most ``factor`` times that, infinite
    where nothing is known. ``certificate`` is the audit of the run, None without one for the
    ``reason``.
    """

    paid: float
    best: float
    average: float
    factor: float
    guessing: float | None
    certificate: CommitteeCertificate | None
    reason: str = ""

    @property
    def bound(self) -> float:
        """What the model pays at most: the best member's loss, what the weights add, the vote."""
        return self.factor * self.average

    @property
    def vacuous(self) -> bool:
        """Whether guessing is as good as the bound."""
        return self.guessing is not None and not self.bound < self.guessing

    def to_dict(self) -> dict[str, Any]:
        """Return all numbers by name; bounds that do not exist are None."""
        made = self.certificate
        return {
            "paid": self.paid,
            "best_member": self.best,
            "bound": self.bound if math.isfinite(self.bound) else None,
            "guessing": self.guessing,
            "vacuous": self.vacuous,
            "audited": made is not None,
            "valid": None if made is None else made.valid,
            "findings": [] if made is None else list(made.findings),
            "bounds": {}
            if made is None
            else {k: v for k, v in made.bounds().items() if isinstance(v, float)},
            "reason": self.reason,
        }


def promise_of(model: Model, kept: Kept | None) -> Promise:
    """Return what holds for a model, with an audit if its rounds were kept."""
    learner, made = model.learner, None
    reason = "nothing was kept for an audit" if kept is None else kept.reason
    if kept is not None and kept.traces:
        made = _audited(model, kept)
    if len(learner.members) == 1:
        return _alone(model, made, reason)
    largest, best = learner.task.largest_loss, float(model.totals.min())
    average = largest * learner.shares.loss_bound(best / largest, model.rounds)
    if model.largest_risk > largest * (1.0 + 1e-9):
        average = math.inf  # the weights' bound is for losses in their range
    guessing = _guessing(model, made, model.rounds)
    return Promise(model.loss, best, average, vote_factor(learner.task), guessing, made, reason)


def _alone(model: Model, made: CommitteeCertificate | None, reason: str) -> Promise:
    """Return the promise of a single learner: its smallest bound, if the run was audited."""
    if made is None:
        best = float(model.totals[0])
        guessing = _guessing(model, made, model.rounds)
        return Promise(model.loss, best, math.inf, 1.0, guessing, made, reason)
    bounds = [bound for bound in made.members[0].bounds().values() if isinstance(bound, float)]
    bound = min(bounds, default=math.inf)
    return Promise(made.total, made.best_total, bound, 1.0, made.trivial, made, reason)


def _guessing(model: Model, made: CommitteeCertificate | None, rounds: int) -> float | None:
    """Return what guessing would have cost; None if that depends on labels that are gone."""
    if made is not None and made.rounds == rounds:
        return made.trivial
    task: Any = model.learner.task
    return None if isinstance(task, RelevanceTask) else float(task.guess_loss) * rounds


def _audited(model: Model, kept: Kept) -> CommitteeCertificate:
    trace, inputs, labels = kept.trace(), kept.inputs(), kept.labels()
    member = model.learner.members[int(model.totals.argmin())]
    comparator: Any = None
    if member.parts.have_kernels and member.loss.convex:
        found = best_piecewise(
            member.loss,
            trace.scaled(inputs),
            labels,
            Ball(60.0),
            penalty=PENALTY,
            candidates=min(CANDIDATES, len(trace) - 1),
            intercept=member.parts.intercept,
            tolerance=0.01,
        )
        comparator = found.comparator
    return certify(trace, comparator, inputs, labels, keep=False)
