"""The bounds of a run beside its loss."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from driftline.app.runs.audit_buffer import AuditBuffer
from driftline.app.runs.committee_model import CommitteeModel
from driftline.app.runs.keyed_model import KeyedModel
from driftline.app.runs.model import Model
from driftline.certificates import best_piecewise, certify
from driftline.certificates.committee_certificate import NO_GUARD, CommitteeCertificate
from driftline.comparators import Piecewise
from driftline.domains import Ball
from driftline.typing import Inputs, Json, Labels

__all__ = ["Guarantee", "audited", "guarantee_of"]

#: The number of rounds at which weights in hindsight may change, and what a change must save.
CANDIDATES, PENALTY = 8, 100.0
#: The most products in a pass of a search for them, if it was not asked for. An entry of a sparse
#: row, and a round of several rows, count as this many products.
MOST_WORK, SPARSE_ENTRY, PLAIN_ROUND = 2e7, 4, 1e5

#: Why there is no bound.
ALONE = "the bound of a single learner is known only by an audit of its rounds"

#: Why keys have no bound, or no audit.
ACCOUNTS = "every key has a guard with an account of its own, and these are not added up"
BY_KEY = "rounds of keys are not kept"


@dataclass(frozen=True)
class Guarantee:
    """Bounds of a committee's loss since its first round, or of a single learner's in a run.

    ``paid`` is its own loss in these ``rounds`` and ``best`` the expected loss of its best member.
    In expectation it is at most ``allowed``, by the book of a guard or the audit of a single
    learner, and the ``budget`` of the guard, which has ``acted`` in so many rounds. If predictions
    are ``random``, this bounds the expected loss, not the actual one. ``alone`` is whether there is
    only one learner.
    ``certificate`` is the audit of the run, None if there is none, and ``reason`` is why;
    ``searched`` is whether it is against weights fitted in hindsight, and not against zeros.
    ``guess`` says what ``guessing`` is the loss of. ``delay_cost`` is what late labels have added
    to the bound of a single learner, negative where older weights were the better ones.
    ``no_bound`` says in words why there is none, "" if there is one.

    Where every key has a committee, all are sums over keys, and ``keys`` is how many there are.
    """

    rounds: int
    paid: float
    best: float
    allowed: float
    guessing: float | None
    certificate: CommitteeCertificate | None
    reason: str = ""
    random: bool = False
    alone: bool = False
    searched: bool = False
    guess: str = "guessing"
    delay_cost: float = 0.0
    no_bound: str = ""
    keys: int = 0
    budget: float | None = None
    acted: int = 0

    @property
    def bound(self) -> float:
        """The bound of the model's loss, infinite if there is none."""
        return self.allowed + (self.budget or 0.0)

    @property
    def expected(self) -> float | None:
        """The expected loss; None if several members are random, or a guard has predicted."""
        if self.random or self.acted:
            return self.best if self.alone else None
        return self.paid

    @property
    def vacuous(self) -> bool:
        """Whether guessing is as good as the bound."""
        return self.guessing is not None and not self.bound < self.guessing

    def to_dict(self) -> Json:
        """Return all numbers by name; bounds that do not exist are None."""
        made = self.certificate
        return {
            "rounds": self.rounds,
            "paid": self.paid,
            "random": self.random,
            "expected": self.expected,
            "best_member": self.best,
            "bound": self.bound if math.isfinite(self.bound) else None,
            "delay_cost": self.delay_cost,
            "guess": self.guess,
            "guessing": self.guessing,
            "vacuous": self.vacuous,
            "audited": made is not None,
            "valid": None if made is None else made.valid,
            "findings": [] if made is None else list(made.findings),
            "bounds": {} if made is None else _bounds(made),
            "reason": self.reason,
            "budget": self.budget,
            "guard_acted": self.acted,
            "keys": self.keys or None,
        }


def guarantee_of(model: Model, buffer: AuditBuffer | None, thorough: bool = False) -> Guarantee:
    """Return the bounds of a model, with an audit if its rounds were kept.

    Weights in hindsight are searched for if that is fast, or if ``thorough``.
    """
    if isinstance(model, KeyedModel):
        return _of_keys(model)
    assert isinstance(model, CommitteeModel)
    made, searched, rounds = None, False, model.rounds
    reason = "nothing was kept for an audit" if buffer is None else buffer.reason
    if buffer is not None and buffer.traces:
        made, searched = audited(model, buffer, thorough)
    alone = len(model.learner.members) == 1
    paid, best = model.loss, float(model.totals.min())
    allowed, cost, why, guard = math.inf, 0.0, NO_GUARD, model.learner.guard
    how: dict[str, Any] = {}
    if guard is not None:
        allowed, why = guard.total, ""
        how = {"budget": guard.bound - guard.total, "acted": guard.acted}
    elif alone and made is not None:  # bounds of a learner are those of the run
        rounds, paid, best = made.rounds, made.total, made.best_total
        allowed = min(_bounds(made).values(), default=math.inf)
        held = made.members[0]
        cost = 0.0 if held.delayed is None else held.delayed.cost
        why = "" if math.isfinite(allowed) else str(next(iter(held.bounds().values())))
    elif alone:
        why = ALONE
    guessing = _guessing(model, made, rounds)
    how |= {"random": model.random, "alone": alone, "searched": searched, "no_bound": why}
    guess = model.learner.task.guess.words.removeprefix("uniform ")
    given = (rounds, paid, best, allowed, guessing, made, reason)
    return Guarantee(*given, **how, guess=guess, delay_cost=cost)


def _of_keys(model: KeyedModel) -> Guarantee:
    """Return the sums over keys, each of which has a committee of its own."""
    scores, task = model.scores, model.task
    rounds, risks = scores.rounds[: len(scores)], scores.risks[: len(scores)]
    best = risks.min(axis=1) if risks.size else np.zeros(len(scores))
    alone, guarded = risks.shape[1] == 1, model.learner.prototype.guard is not None
    guess = task.guess.mean()
    return Guarantee(
        int(rounds.sum()),
        model.loss,
        float(best.sum()),
        math.inf,
        None if guess is None else float(guess) * model.weight,
        None,
        BY_KEY,
        random=model.random,
        alone=alone,
        guess=task.guess.words.removeprefix("uniform "),
        no_bound=ALONE if alone else ACCOUNTS if guarded else NO_GUARD,
        keys=len(scores),
    )


def _bounds(made: CommitteeCertificate) -> dict[str, float]:
    """Return the bounds that exist; for a single member, its own."""
    held = made.members[0] if len(made.members) == 1 else made
    return {form: bound for form, bound in held.bounds().items() if isinstance(bound, float)}


def _guessing(
    model: CommitteeModel, made: CommitteeCertificate | None, rounds: int
) -> float | None:
    """Return the loss of guessing; None if it depends on labels that were not kept."""
    if made is not None and made.rounds == rounds:
        return made.trivial
    guess = model.learner.task.guess.mean()
    return None if guess is None else float(guess) * model.weight


def audited(
    model: CommitteeModel, buffer: AuditBuffer, thorough: bool
) -> tuple[CommitteeCertificate, bool]:
    """Return the audit of a run, and whether it is against weights found in hindsight.

    The weights are for the best of the members that have weights, or for those of a guard.
    """
    trace, inputs, labels = buffer.trace(), buffer.inputs(), buffer.labels()
    members, comparator = model.learner.members, None
    told = len(members) == 1
    guard = model.learner.guard
    sure = [] if guard is None else [j for j, own in enumerate(guard.known) if own is not None]
    able = sure or [j for j, member in enumerate(members) if told and member._fixed.searchable]
    given: list[Any] = [None] * len(members)
    if able:
        best = min(able, key=lambda j: float(model.totals[j]))
        member = members[best]
        comparator = _in_hindsight(member, trace.seen_by(best, inputs, labels), labels, thorough)
        given = [comparator if own.map == member.map else None for own in members]
    weights = buffer.weights()
    made = certify(trace, given, inputs, labels, keep=False, sample_weight=weights)
    return made, comparator is not None


def _in_hindsight(member: Any, inputs: Inputs, labels: Labels, thorough: bool) -> Piecewise | None:
    """Return weights fitted in hindsight, None if that would take long."""
    if not hasattr(inputs, "shape"):  # a list of many rows a round
        work = PLAIN_ROUND * len(labels)
    else:  # a pass goes over all entries, and over all weights
        entries = SPARSE_ENTRY * inputs.nnz if hasattr(inputs, "nnz") else inputs.size
        work = member.task.layout.weight_rows * (entries + inputs.shape[1])
    if work > MOST_WORK and not thorough:
        return None
    found = best_piecewise(
        member.loss,
        inputs,
        labels,
        Ball(60.0),
        penalty=PENALTY,
        candidates=min(CANDIDATES, len(labels) - 1),
        intercept=member.parts.intercept,
        tolerance=0.01,
    )
    return found.comparator
