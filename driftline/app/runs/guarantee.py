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
from driftline.certificates.committee_certificate import CommitteeCertificate
from driftline.committee.shares import Shares, stretches_of
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
WEIGHTED = "bounds by key are for rows that count once, and these have weights"
ACCOUNTS = "every key has a guard with an account of its own, and these are not added up"
BY_KEY = "rounds of keys are not kept: bounds are those of the weights of every key's committee"


@dataclass(frozen=True)
class Guarantee:
    """Bounds of a committee's loss since its first round, or of a single learner's in a run.

    ``paid`` is its own loss in these ``rounds`` and ``best`` the expected loss of its best member.
    The weighted average of the members is at most ``average``, and the vote at most ``factor``
    times that, infinite where nothing is known. If predictions are ``random``, this bounds the
    expected loss, not the actual one. ``alone`` is whether there is only one learner.
    ``certificate`` is the audit of the run, None if there is none, and ``reason`` is why;
    ``searched`` is whether it is against weights fitted in hindsight, and not against zeros.
    ``guess`` says what ``guessing`` is the loss of.
    ``delay_cost`` is what late labels have added to the bound: 0 where all came at once, negative
    where older weights were the better ones, infinite where there is no bound. ``no_bound`` says in
    words why there is none, "" if there is one.

    Of a guarded committee ``average`` is what the book has allowed, ``budget`` what may be paid
    above that, and ``acted`` in how many rounds the book has predicted.

    Where every key has a committee, all are sums over keys, and ``keys`` is how many there are.
    """

    rounds: int
    paid: float
    best: float
    average: float
    factor: float
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
        """The bound of the model's loss: of the weighted average, times the factor of the vote.

        Of a guarded committee, what the book has allowed and the budget.
        """
        return self.factor * self.average + (self.budget or 0.0)

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
            "delay_cost": self.delay_cost if math.isfinite(self.delay_cost) else None,
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
    average, factor, added, why = math.inf, 1.0, math.inf, ALONE
    guard = model.learner.guard
    if guard is not None:
        average, factor, added, why = guard.total, 1.0, 0.0, ""
    elif not alone:
        task, rule = model.learner.task, model.learner.rule
        average, added, why = _average(model, best)
        factor = rule.factor(task)
        why = why if math.isfinite(factor) else rule.no_bound
    elif made is not None:  # bounds of a learner are those of the run
        rounds, paid, best = made.rounds, made.total, made.best_total
        average = min(_bounds(made).values(), default=math.inf)
        held = made.members[0]
        added = 0.0 if held.delayed is None else held.delayed.cost
        why = "" if math.isfinite(average) else str(next(iter(held.bounds().values())))
    cost = 0.0
    if model.late:
        cost = math.inf if why else factor * added
    guessing = _guessing(model, made, rounds)
    how: dict[str, Any] = {"random": model.random, "alone": alone, "searched": searched}
    guess = model.learner.task.guess.removeprefix("uniform ")
    given = (rounds, paid, best, average, factor, guessing, made, reason)
    if guard is not None:
        how |= {"budget": guard.bound - guard.total, "acted": guard.acted}
    return Guarantee(*given, **how, guess=guess, delay_cost=cost, no_bound=why)


def _of_keys(model: KeyedModel) -> Guarantee:
    """Return the sums of bounds over keys, each of which has a committee of its own.

    The bound of a sum is the sum of bounds. A committee that began with the votes of another has
    one change of members more to count.
    """
    scores, task = model.scores, model.task
    rounds, risks = scores.rounds[: len(scores)], scores.risks[: len(scores)]
    largest, alone = task.largest_loss, risks.shape[1] == 1
    best = risks.min(axis=1) if risks.size else np.zeros(len(scores))
    rule, average, why = model.learner.prototype.rule, math.inf, ""
    factor = 1.0 if alone else rule.factor(task)
    if alone:
        why = ALONE
    elif model.learner.prototype.guard is not None:
        why = ACCOUNTS
    elif rule.scored:
        why = rule.no_bound
    elif model.weighs:
        why = WEIGHTED
    elif model.largest_risk > largest * (1.0 + 1e-9):
        why = _beyond(model.largest_risk, largest)
    else:
        changes, shares = int(model.learner.start == "shared"), Shares(risks.shape[1])
        pairs, places = np.unique(np.column_stack([best, rounds]), axis=0, return_inverse=True)
        bounds = [
            shares.weighted_bound(total / largest, stretches_of(None, int(count)), changes)
            for total, count in pairs.tolist()
        ]
        average = float(largest * np.array(bounds)[places.ravel()].sum()) if bounds else 0.0
        why = "" if math.isfinite(factor) else rule.no_bound
    guess = task.mean_guess()
    return Guarantee(
        int(rounds.sum()),
        model.loss,
        float(best.sum()),
        average,
        factor,
        None if guess is None else float(guess) * model.weight,
        None,
        BY_KEY,
        random=model.random,
        alone=alone,
        guess=task.guess.removeprefix("uniform "),
        no_bound=why,
        keys=len(scores),
    )


def _beyond(seen: float, largest: float) -> str:
    """Say why there is no bound after a loss that was too large."""
    said = f"an expected loss of {seen:.4g} was above the largest, {largest:.4g}"
    return f"{said}: the bound of the weights does not hold for such losses"


def _average(model: CommitteeModel, best: float) -> tuple[float, float, str]:
    """Return the bound of the members' weighted average, and what late labels have added to it.

    And why there is none: then both are infinite.
    """
    learner, largest = model.learner, model.learner.task.largest_loss
    if learner.rule.scored:  # whose weights follow other losses
        return math.inf, math.inf, learner.rule.no_bound
    if model.largest_risk > largest * (1.0 + 1e-9):  # the weights' bound is for those in range
        return math.inf, math.inf, _beyond(model.largest_risk, largest)
    given = best / largest, model.stretches
    at_once = largest * learner.shares.weighted_bound(*given)
    if not model.late:
        return at_once, 0.0, ""
    bound = largest * learner.shares.weighted_bound(*given, bills=learner.bills.over(largest))
    return bound, bound - at_once, ""


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
    guess = model.learner.task.mean_guess()
    return None if guess is None else float(guess) * model.weight


def audited(
    model: CommitteeModel, buffer: AuditBuffer, thorough: bool
) -> tuple[CommitteeCertificate, bool]:
    """Return the audit of a run, and whether it is against weights found in hindsight.

    The weights are for the best of the members that have weights, or for those of a guard.
    """
    trace, inputs, labels = buffer.trace(), buffer.inputs(), buffer.labels()
    members, comparator = model.learner.members, None
    told = len(members) == 1 or math.isfinite(model.learner.rule.factor(model.task))
    guard = model.learner.guard
    sure = [] if guard is None else [j for j, own in enumerate(guard.known) if own is not None]
    able = sure or [j for j, member in enumerate(members) if told and member.searchable]
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
