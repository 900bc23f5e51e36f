"""Play the rounds of a member without gradient steps again, and compare them with the record.

The memory of such a member is a function of rows and labels. So the rounds are played from the
state before the first one, and losses, risks and predictions must be the same. There are no bounds:
the certificate has totals, and says why it has no bounds.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from driftline import inputs
from driftline.certificates.certificate import Certificate, Delayed, Premises
from driftline.certificates.events import Events
from driftline.certificates.recorded import as_rows, learner_of, stream_of
from driftline.errors import InputError
from driftline.inputs import Rows
from driftline.inputs.taking import take, take_labels
from driftline.learner import Member
from driftline.regret import Tally, Watched
from driftline.trace import Batch, Trace
from driftline.typing import CheckedLabels, Inputs, Labels

__all__ = ["certify_again"]

#: The relative error that rounding on another machine may cause in a recorded loss.
ROUNDING = 1e-6


def certify_again(
    trace: Trace,
    given: Inputs,
    labels: Labels,
    chance: float,
    keep: bool,
    progress: Callable[[int], None] | None,
) -> Certificate:
    """Return the certificate of a run whose rounds are played again."""
    trace = Trace.from_saved(*trace.to_saved())  # checked like one from a file
    learner = learner_of(trace)
    task = learner.task
    rows, labels = stream_of(trace, task, given, labels)
    if trace.arrival is not None:
        return _certify_late(learner, trace, rows, labels, chance, keep)
    rows.labels = labels
    tally, parts, findings = Tally(task.largest_loss), [], dict[str, tuple[int, int]]()
    for start in range(0, rows.rounds, rows.block):
        stop = min(start + rows.block, rows.rounds)
        seen = _again(learner, trace, rows, labels, (start, stop), findings)
        tally.add(seen)
        if keep:
            parts.append(seen)
        if progress is not None:
            progress(stop - start)
    words = [f"{n} {words}, the first in round {t}" for words, (n, t) in findings.items()]
    if trace.digest and trace.digest != inputs.fingerprint(rows, labels):
        words.append("the stream is not the one of the trace: its fingerprint differs")
    return Certificate(
        0,
        len(trace),
        tally,
        _premises(learner, labels, trace.sample_weight),
        tuple(words),
        chance,
        Watched.join(parts) if keep else None,
    )


def _certify_late(
    learner: Member,
    trace: Trace,
    rows: Rows,
    labels: CheckedLabels,
    chance: float,
    keep: bool,
) -> Certificate:
    """Return the certificate of a run whose labels came late: its events are played again."""
    events = Events(trace)
    order, told = events.order, ~events.asked
    given = take(rows, events.rounds)
    codes = take_labels(labels, events.rounds)
    given.asked, given.labels = events.asked, codes
    weights = None if trace.sample_weight is None else trace.sample_weight[events.rounds]
    room = learner._room(codes).weighted(weights).beside("asked", events.asked)
    learner._play(given, 0, len(codes), codes, learner._tickets, room)
    made, came = as_rows(trace.prediction), trace.arrived
    risk, predicted = room["risk"][events.asked], room["prediction"][events.asked]
    assert trace.arrival_risk is not None
    off = {
        "recorded losses are not those of the rounds": np.abs(
            trace.loss[order] - room["loss"][told]
        )
        > ROUNDING * (1.0 + room["loss"][told]),
        "recorded risks are not those of the rounds": trace.risk[came] != risk[came],
        "risks at arrival are not those of the rounds": trace.arrival_risk[order]
        != room["risk"][told],
        "predictions are not what the learner predicts": (made != predicted).any(axis=1),
        "target losses are not those of the predictions": trace.target_loss[came]
        != room["target_loss"][events.asked][came],
    }
    words = [f"{int(where.sum())} {what}" for what, where in off.items() if where.any()]
    if trace.digest and trace.digest != inputs.fingerprint(rows, labels):
        words.append("the stream is not the one of the trace: its fingerprint differs")
    columns = {name: getattr(trace, name)[order] for name in ("loss", "risk")}
    columns |= {"eta": np.ones(len(order)), "grad_sq": np.zeros(len(order))}
    counts = None if trace.sample_weight is None else trace.sample_weight[order]
    seen = _watched(Batch(columns).weighted(counts), trace.target_loss[order])
    tally = Tally(learner.task.largest_loss)
    tally.add(seen)
    cost = float((trace.risk - trace.arrival_risk)[order].sum())
    arrived = take_labels(labels, order)
    return Certificate(
        0,
        len(order),
        tally,
        _premises(learner, arrived, counts),
        tuple(words),
        chance,
        seen if keep else None,
        (),
        Delayed(cost, len(trace) - len(order)),
    )


def _again(
    learner: Member,
    trace: Trace,
    rows: Rows,
    labels: CheckedLabels,
    ends: tuple[int, int],
    findings: dict[str, tuple[int, int]],
) -> Watched:
    """Play some rounds again, and record where the trace differs from them."""
    start, stop = ends
    part, own = labels[start:stop], _recorded(trace, start, stop)
    if learner.features not in (None, rows.features):
        raise InputError(
            f"inputs have {rows.features} features, but the learner had {learner.features}"
        )
    weights = None if trace.sample_weight is None else trace.sample_weight[start:stop]
    room: Batch = learner._room(part).weighted(weights)
    learner._play(rows, start, stop, part, learner._tickets + start, room)
    made, off = as_rows(own["prediction"]), {}
    if made.shape != room["prediction"].shape:
        raise InputError(
            f"predictions of {learner.task!r} have the shape {room['prediction'].shape} here, but "
            f"the trace has {made.shape}"
        )
    for name in ("loss", "eta", "grad_sq"):
        slack = ROUNDING * (1.0 + np.abs(room[name]))
        off[f"recorded numbers ({name}) are not those of the rounds"] = (
            np.abs(own[name] - room[name]) > slack
        )
    off["recorded risks are not those of the rounds"] = own["risk"] != room["risk"]
    different = (made != room["prediction"]).any(axis=1)
    off["predictions are not what the learner predicts"] = different
    target, other = room["target_loss"].copy(), np.flatnonzero(different)
    try:
        if len(other):
            theirs = [part[t] for t in other.tolist()]
            target[other] = learner.task.many.losses(made[other], theirs)
            if weights is not None:
                target[other] *= weights[other]
    except InputError as error:
        raise InputError(f"the trace has predictions that are not valid: {error}") from error
    off["target losses are not those of the predictions"] = own["target_loss"] != target
    for words, where in off.items():
        if where.any():
            count, first = findings.get(words, (0, start + int(np.argmax(where))))
            findings[words] = count + int(where.sum()), first
    return _watched(room, target)


def _recorded(trace: Trace, start: int, stop: int) -> dict[str, np.ndarray]:
    return {name: column[start:stop] for name, column in trace.to_dict().items()}


def _watched(room: Batch, target: np.ndarray) -> Watched:
    """Return rounds without a comparator: the risk stands for the comparator's loss."""
    nothing, count = np.zeros(len(target)), len(target)
    return Watched(
        **{name: room[name] for name in ("loss", "risk", "eta", "grad_sq")},
        target_loss=target,
        gap=nothing,
        comparator_loss=nothing,
        distance=nothing,
        old_distance=nothing,
        move=nothing,
        restarted=np.zeros(count, dtype=bool),
        idle=np.ones(count, dtype=bool),
        sample_weight=room.columns.get("sample_weight", np.ones(count)),
        end=0.0,
    )


def _premises(learner: Member, labels: Labels, sample_weight: np.ndarray | None) -> Premises:
    task = learner.task
    guess = task.guess.mean(labels, sample_weight)
    assert guess is not None  # None only without labels
    reason = f"{type(learner).__name__} has no theorem: {learner._fixed.no_theorem}"
    return Premises(
        math.inf,
        0.0,
        guess,
        task.largest_loss,
        task.guess.words,
        no_theorem=reason,
        no_bound=reason,
    )
