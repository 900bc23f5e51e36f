"""Audit a committee: replay its members, its weights and its votes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from driftline.certificates.audit import certify
from driftline.certificates.certificate import Certificate
from driftline.certificates.committee_certificate import (
    CommitteeCertificate,
    CommitteeRounds,
    Guarded,
)
from driftline.certificates.events import Events
from driftline.certificates.inside import Inside
from driftline.certificates.late import certify_late
from driftline.certificates.recorded import (
    as_rows,
    learner_of,
    makes_steps,
)
from driftline.certificates.rerun import certify_again
from driftline.committee import Committee, CommitteeTrace
from driftline.committee.account import Account as Guard
from driftline.committee.account import late_of, promised
from driftline.committee.combine import Combine, rule_of
from driftline.committee.trace import GUARDED
from driftline.comparators import Fixed, check_comparator
from driftline.comparators.checking import Comparator
from driftline.errors import InputError
from driftline.inputs import fingerprint
from driftline.inputs.taking import take, take_labels
from driftline.learner import Account
from driftline.tasks import Task
from driftline.trace import Trace
from driftline.typing import CheckedLabels, Inputs, Labels

__all__ = ["certify_committee"]


def certify_committee(
    trace: CommitteeTrace,
    comparator: Comparator | Sequence[Comparator | None] | None,
    inputs: Inputs,
    labels: Labels,
    chance: float,
    keep: bool,
    progress: Callable[[int], None] | None,
) -> CommitteeCertificate:
    """Return the certificate of a committee's run.

    Every member is replayed, with its map. Then the committee is played again, from its state
    before the run on: its weights, its predictions and what a guard has done.
    """
    first = trace.origin
    if first is None:
        raise InputError("the trace does not say what the committee was before its first round")
    rule = rule_of(first.combine)
    if trace.carried:
        raise InputError(
            f"labels of {trace.carried} rounds of an earlier run came in this one: play both as "
            "one run to certify it"
        )
    for name in GUARDED if first.state.guard is not None else ():
        if np.shape(getattr(trace, name)) != (len(trace),):
            raise InputError(f"the {name} of the guard was not recorded in every round")
    members, shrunk = _members(trace, comparator, inputs, labels, chance, progress)
    task = learner_of(trace.members[0]).task
    labels, largest = task.labels.check_all(labels), task.largest_loss
    rounds_seen = [member.rounds_seen for member in members if member.rounds_seen]
    made = [as_rows(member.prediction) for member in trace.members]
    losses = np.stack([seen.target_loss for seen in rounds_seen], axis=1)
    risk = np.stack([seen.risk for seen in rounds_seen], axis=1)
    counts, order, events = trace.sample_weight, np.arange(len(trace)), None
    if trace.arrival is not None:
        events = Events(trace.members[0])
        order = events.order
    played, guard = _played_again(trace, task, inputs, labels, events)
    weights, wanted = played["weights"], played["prediction"]
    if events is not None:
        counts = None if counts is None else counts[order]
    rows = as_rows(trace.prediction)
    theirs = [own[order] for own in made]
    codes = take_labels(labels, order)
    target = _targets(task, rows[order], wanted[order], theirs, losses, codes, counts)
    average = (weights[order] * risk).sum(axis=1)

    findings = [f"member {j}: {found}" for j, m in enumerate(members) for found in m.findings]
    if first.digest and first.digest != fingerprint(task.layout.rows(inputs), labels):
        findings.append("the stream is not the one of the trace: its fingerprint differs")
    findings += _differ("risk of a member", trace.member_risk[order], risk)
    findings += _differ("weight of a member", trace.weights, weights)
    findings += _differ("target loss", trace.target_loss[order], target)
    expected = played["risk"][order]
    findings += _differ("risk", trace.risk[order], expected)
    for name in GUARDED if guard is not None else ():
        findings += _differ(f"{name} of the guard", getattr(trace, name), played[name])
    findings += _predicted(rows, wanted, rule)

    heaviest, variance, book = 1.0 if counts is None else float(counts.max()), 0.0, None
    if guard is not None:
        book, most = played["book"][order], largest if counts is None else largest * counts
        drawn = np.where(guard.draws & (played["acted"][order] == 1.0), expected, 0.0)
        variance = float((drawn * np.maximum(most - drawn, 0.0)).sum())
    return CommitteeCertificate(
        start=first.state.rounds,
        stop=first.state.rounds + len(order),
        combine=first.combine,
        total=float(target.sum()),
        average=float(average.sum()),
        variance=variance,
        largest_loss=largest,
        members=tuple(members if keep else (replace(m, rounds_seen=None) for m in members)),
        mapped=any("features" in member.config for member in trace.members),
        shrunk=tuple(shrunk),
        findings=tuple(findings),
        chance=chance,
        rounds_seen=CommitteeRounds(target, weights[order], risk, counts, book) if keep else None,
        outstanding=None if trace.arrival is None else len(trace) - len(order),
        guarded=None if guard is None else _guarded(trace, played, guard, members, order, heaviest),
    )


def _played_again(
    trace: CommitteeTrace, task: Task, inputs: Inputs, labels: CheckedLabels, events: Events | None
) -> tuple[dict[str, np.ndarray], Guard | None]:
    """Play a committee again, from its members' states on.

    Return its columns, and its guard after the run.
    """
    first = trace.origin
    assert first is not None
    members = [learner_of(member, replay=False) for member in trace.members]
    state = first.state.replaced(late=None)
    promise: Any = {} if state.guard is None else promised(state.guard)
    committee = Committee(members, first.combine, **promise, _played=True)
    committee.restore(state.replaced(members=tuple(member.state for member in members)))
    rows, counts, account = task.layout.rows(inputs), trace.sample_weight, None
    asked = np.ones(rows.rounds, dtype=bool)
    if events is not None:
        weights = np.ones(len(trace)) if counts is None else counts
        needed = trace.arrived if trace.reserve is None else trace.arrived | (trace.reserve > 0.0)
        rows, labels = take(rows, events.rounds), take_labels(labels, events.rounds)
        counts = None if counts is None else counts[events.rounds]
        asked = rows.asked = events.asked
        account = Account(events.rounds, events.asked, weights, needed=needed)
    rows.labels = labels
    size, parts = committee._batch_size(rows), []
    for start in range(0, rows.rounds, size):
        stop = min(start + size, rows.rounds)
        part, number = labels[start:stop], state.tickets + int(np.count_nonzero(asked[:start]))
        room = committee._room(part).weighted(None if counts is None else counts[start:stop])
        if account is not None:
            room = room.delayed(account, start, stop)
        committee._play(rows, start, stop, part, number, room)
        committee._combine(part, number, room)
        parts.append(room.columns)
    names = ("weights", "prediction", "risk", *(GUARDED if committee.guard else ()))
    columns = {name: np.concatenate([part[name] for part in parts]) for name in names}
    made = {name: column[asked] for name, column in columns.items()}
    if events is not None and committee.guard is not None:
        made["book"][events.order] = columns["book"][~asked]
    return made, committee.guard


def _guarded(
    trace: CommitteeTrace,
    played: dict[str, np.ndarray],
    guard: Guard,
    members: Sequence[Certificate],
    order: np.ndarray,
    heaviest: float,
) -> Guarded:
    """Return what a guard says of a run, with the bound against the members' comparators."""
    first = trace.origin
    assert first is not None and first.state.guard is not None
    late = guard.late - late_of(first.state.guard, guard.members)
    more = late + guard.heaviest * guard.lent
    pairs = [(own, made) for own, made in zip(guard.known, members, strict=True) if own is not None]
    formula: float | str = min(
        guard.formula(own, made.comparator_loss, made.path_length) + made.tally.gap + more
        for own, made in pairs
    )
    if first.state.rounds:
        formula = f"the book had seen {first.state.rounds} rounds before"
    elif heaviest > guard.heaviest:
        formula = f"a sample weight of {heaviest:.4g} is above the largest, {guard.heaviest:.4g}"
    return Guarded(
        float(played["risk"][order].sum()),
        float(played["book"][order].sum()),
        guard.bound - guard.total,
        float(played["account"].max()),
        int(np.count_nonzero(played["acted"][order])),
        formula,
        late,
    )


def _members(
    trace: CommitteeTrace,
    comparator: Comparator | Sequence[Comparator | None] | None,
    inputs: Inputs,
    labels: Labels,
    chance: float,
    progress: Callable[[int], None] | None,
) -> tuple[list[Certificate], list[bool]]:
    """Return the members' certificates, and for which members the comparator was too large."""
    count = len(trace.members)
    if not trace.weights.shape == trace.member_risk.shape == (len(trace), count):
        raise InputError(
            f"{len(trace)} rounds of {count} members need as many weights and risks, but these "
            f"have the shapes {trace.weights.shape} and {trace.member_risk.shape}"
        )
    tasks = [learner_of(member).task for member in trace.members]
    if any(task != tasks[0] for task in tasks):
        raise InputError("the members of a committee must have the same task")
    known = trace.members[0].known
    if not all(_same(m.arrival, trace.arrival) and _same(m.known, known) for m in trace.members):
        raise InputError("labels come to all members of a committee at once, and so to itself")
    given: list[Any] = [comparator] * count
    if isinstance(comparator, (list, tuple)):
        given = list(comparator)
    if len(given) != count:
        raise InputError(f"there are {count} members, but {len(given)} comparators")
    rest, members, shrunk = trace.rest(inputs), [], []
    for j, (member, weights) in enumerate(zip(trace.members, given, strict=True)):
        try:
            own = inputs if trace.reads_first(j) else rest
            made, outside = _member(member, weights, own, labels, chance, progress)
        except InputError as error:
            raise InputError(f"member {j}: {error}") from error
        members.append(made)
        shrunk.append(outside)
    return members, shrunk


def _same(one: np.ndarray | None, other: np.ndarray | None) -> bool:
    if one is None or other is None:
        return one is other
    return np.array_equal(one, other)


def _member(
    trace: Trace,
    comparator: Comparator | None,
    inputs: Inputs,
    labels: Labels,
    chance: float,
    progress: Callable[[int], None] | None,
) -> tuple[Certificate, bool]:
    """Return a member's certificate, and whether the comparator was too large for it.

    A member without weights takes no comparator.
    """
    if not makes_steps(trace):
        return certify_again(trace, inputs, labels, chance, True, progress), False
    if comparator is None:
        shape = (1, 1) if trace.first_weights is None else trace.first_weights.shape
        comparator = Fixed(np.zeros(shape))
    check_comparator(comparator)
    inside = Inside(comparator, learner_of(trace).domain)
    if trace.arrival is not None:
        checked = Trace.from_saved(*trace.to_saved())
        late = certify_late(checked, inside, inputs, labels, chance, True, progress)
        return late, inside.shrunk
    weights = trace.sample_weight  # compared with what was given for the committee, not here
    made = certify(
        trace, inside, inputs, labels, chance=chance, progress=progress, sample_weight=weights
    )
    return made, inside.shrunk


def _differ(name: str, recorded: np.ndarray, found: np.ndarray) -> list[str]:
    """Say in which round two columns differ most, if they do."""
    off = np.abs(recorded - found)
    worst = np.unravel_index(int(np.argmax(off)), off.shape)
    if off[worst] <= 1e-6 * (1.0 + abs(float(found[worst]))):
        return []
    return [
        f"the {name} is {found[worst]:.6g} when computed anew, but {recorded[worst]:.6g} was "
        f"recorded, in round {int(worst[0])}"
    ]


def _targets(
    task: Task,
    rows: np.ndarray,
    wanted: np.ndarray,
    made: list[np.ndarray],
    losses: np.ndarray,
    labels: Labels,
    sample_weight: np.ndarray | None,
) -> np.ndarray:
    """Return the target losses of the committee's predictions; those of members are known."""
    if rows.shape != wanted.shape:
        raise InputError(f"predictions have the shape {rows.shape}: expected {wanted.shape}")
    target = np.full(len(rows), np.nan)
    for j, theirs in enumerate(made):
        same = (rows == theirs).all(axis=1)
        target[same] = losses[same, j]
    other = np.flatnonzero(np.isnan(target))
    if len(other):
        target[other] = task.many.losses(rows[other], [labels[t] for t in other])
        if sample_weight is not None:
            target[other] *= sample_weight[other]
    return target


def _predicted(rows: np.ndarray, wanted: np.ndarray, rule: Combine) -> list[str]:
    """Say where a prediction is not the rule's."""
    wrong = np.flatnonzero((rows != wanted).any(axis=1))
    if not len(wrong):
        return []
    return [f"{len(wrong)} predictions are {rule.wrong}, the first in round {int(wrong[0])}"]
