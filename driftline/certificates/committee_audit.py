"""Audit a committee: replay its members, its weights and its votes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from driftline.certificates.audit import certify, parts_of
from driftline.certificates.certificate import Certificate
from driftline.certificates.committee_certificate import CommitteeCertificate, CommitteeRounds
from driftline.certificates.inside import Inside
from driftline.certificates.sequences import best_sequences
from driftline.committee import CommitteeTrace, Shares
from driftline.committee.vote import vote, vote_factor
from driftline.comparators import Fixed
from driftline.errors import InputError
from driftline.models import fingerprint
from driftline.trace import Trace

__all__ = ["certify_committee"]

#: How many changes the best sequences of members have at most.
SWITCHES = 32


def certify_committee(
    trace: CommitteeTrace,
    comparator: Any,
    inputs: Any,
    labels: Any,
    chance: float,
    keep: bool,
    progress: Callable[[int], None] | None,
) -> CommitteeCertificate:
    """Return the certificate of a committee's run.

    Inputs are scaled again and every member is replayed on them. The weights are computed anew
    from the risks of the replay, the vote and all target losses from the predictions that were
    recorded. Of a draw only the member drawn is believed.
    """
    first = trace.first
    if first is None:
        raise InputError("the trace does not say what the committee was before its first round")
    members, shrunk = _members(trace, comparator, inputs, labels, chance, progress)
    parts = [parts_of(member) for member in trace.members]
    task: Any = parts[0].loss.task
    labels, largest = task.check_labels(labels), task.largest_loss
    made = [_rows(member.prediction) for member in trace.members]
    losses = np.stack([_losses(task, rows, labels) for rows in made], axis=1)
    target = _losses(task, _rows(trace.prediction), labels)
    risk = np.stack([member.rounds_seen.risk for member in members if member.rounds_seen], axis=1)
    weights = first.shares.copy().update(np.clip(risk / largest, 0.0, 1.0))
    average = (weights * risk).sum(axis=1)

    findings = [f"member {j}: {found}" for j, m in enumerate(members) for found in m.findings]
    if first.digest and first.digest != fingerprint(task.rows_of(inputs), labels):
        findings.append("the stream is not the one of the trace: its fingerprint differs")
    for j, member in enumerate(trace.members):
        findings += _differ(f"target loss of member {j}", member.target_loss, losses[:, j])
        if parts[j].decoder.deterministic:
            findings += _differ(f"risk of member {j}'s prediction", losses[:, j], risk[:, j])
    findings += _differ("risk of a member", trace.member_risk, risk)
    findings += _differ("weight of a member", trace.weights, weights)
    findings += _differ("target loss", trace.target_loss, target)
    findings += _differ("risk", trace.risk, target if first.combine == "vote" else average)
    findings += _predicted(task, trace, first.combine, made)

    certain = first.combine == "vote" and np.allclose(losses, risk, rtol=0.0, atol=1e-9)
    variance = 0.0 if certain else float((average * np.maximum(largest - average, 0.0)).sum())
    return CommitteeCertificate(
        start=first.rounds,
        stop=first.rounds + len(trace),
        combine=first.combine,
        factor=1.0 if first.combine == "draw" else vote_factor(task),
        total=float(target.sum()),
        average=float(average.sum()),
        sampled_average=float((weights * losses).sum()),
        variance=variance,
        largest_loss=largest,
        members=tuple(members if keep else (replace(m, rounds_seen=None) for m in members)),
        sequences=tuple(best_sequences(risk, min(SWITCHES, len(trace) - 1)).tolist()),
        shares=first.shares,
        no_regret_bound=_no_regret_bound(first.shares, first.rounds, float(risk.max()), largest),
        scaled=first.scaling is not None,
        shrunk=tuple(shrunk),
        findings=tuple(findings),
        chance=chance,
        rounds_seen=CommitteeRounds(target, weights, risk) if keep else None,
    )


def _members(
    trace: CommitteeTrace, comparator: Any, inputs: Any, labels: Any, chance: float, progress: Any
) -> tuple[list[Certificate], list[bool]]:
    """Return the members' certificates, and for whom the comparator was too large."""
    count = len(trace.members)
    if not trace.weights.shape == trace.member_risk.shape == (len(trace), count):
        raise InputError(
            f"{len(trace)} rounds of {count} members need as many weights and risks, but these "
            f"have the shapes {trace.weights.shape} and {trace.member_risk.shape}"
        )
    given = list(comparator) if isinstance(comparator, (list, tuple)) else [comparator] * count
    if len(given) != count:
        raise InputError(f"there are {count} members, but {len(given)} comparators")
    seen, members, shrunk = trace.scaled(inputs), [], []
    for j, (member, weights) in enumerate(zip(trace.members, given, strict=True)):
        try:
            made, outside = _member(member, weights, seen, labels, chance, progress)
        except InputError as error:
            raise InputError(f"member {j}: {error}") from error
        members.append(made)
        shrunk.append(outside)
    return members, shrunk


def _member(
    trace: Trace, comparator: Any, inputs: Any, labels: Any, chance: float, progress: Any
) -> tuple[Certificate, bool]:
    """Return a member's certificate, and whether the comparator was too large for it."""
    if comparator is None:
        shape = (1, 1) if trace.first_weights is None else trace.first_weights.shape
        comparator = Fixed(np.zeros(shape))
    inside = Inside(comparator, parts_of(trace).domain)
    return certify(trace, inside, inputs, labels, chance=chance, progress=progress), inside.shrunk


def _rows(predictions: np.ndarray) -> np.ndarray:
    return predictions[:, np.newaxis] if predictions.ndim == 1 else predictions


def _losses(task: Any, rows: np.ndarray, labels: Any) -> np.ndarray:
    """Return the target loss of every prediction."""
    if task.zero_one:
        return (rows != np.asarray(labels)).any(axis=1).astype(np.float64)
    pairs = zip(rows, labels, strict=True)
    return np.array([task.loss(task.prediction(row), task.label(label)) for row, label in pairs])


def _differ(name: str, recorded: np.ndarray, found: np.ndarray) -> list[str]:
    """Say in which round two columns differ most, if they do."""
    off = np.abs(recorded - found)
    worst = np.unravel_index(int(np.argmax(off)), off.shape)
    if off[worst] <= 1e-6 * (1.0 + abs(float(recorded[worst]))):
        return []
    return [
        f"the {name} is {found[worst]:.6g} when computed anew, but {recorded[worst]:.6g} was "
        f"recorded, in round {int(worst[0])}"
    ]


def _predicted(task: Any, trace: CommitteeTrace, combine: str, made: list[np.ndarray]) -> list[str]:
    """Say where a prediction is not the vote, or no member's that could be drawn."""
    mine = _rows(trace.prediction)
    if combine == "vote":
        right = (vote(task, made, trace.weights) == mine).all(axis=1)
        words = "not the vote"
    else:
        theirs = np.stack([(rows == mine).all(axis=1) for rows in made], axis=1)
        right = (theirs & (trace.weights > 0.0)).any(axis=1)
        words = "that of no member"
    wrong = np.flatnonzero(~right)
    if not len(wrong):
        return []
    return [f"{len(wrong)} predictions are {words}, the first in round {int(wrong[0])}"]


def _no_regret_bound(shares: Shares, rounds: int, most: float, largest: float) -> str:
    """Say why the regret of the weights is not bounded, "" if it is."""
    if not np.array_equal(shares.state, Shares(shares.members).state):
        return (
            f"the weights had seen {rounds} rounds before, and their regret is bounded only from "
            "their first round on"
        )
    if most > largest * (1.0 + 1e-9):
        return f"an expected loss of {most:.4g} is above the task's largest, {largest:.4g}"
    return ""
