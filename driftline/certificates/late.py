r"""Audit a run whose labels came late.

A step is made at the weights :math:`W_\tau` of the arrival. So the inequality of every bound holds
in the order of arrival, with one change: the residual of a round is

.. math:: r_t = \frac{\eta_t}2 \|G_t\|^2 - (L_t(W_\tau) - \mathbb E \ell_t),

where loss and gradient belong to the arrival, and :math:`\mathbb E \ell_t` is what the prediction
cost. Exact, diameter and weighted bounds extend. The theorem's bound beforehand holds for a
constant step of :math:`\alpha / ((1 + 2 d) M)` at most, over the largest squared input, if no more
than d labels come between a prediction and its own: then residuals never add up to more than 0. The
price of delay is a number that can be read: the sum of :math:`\mathbb E \ell_t` minus what a
prediction at the weights of the arrival would have cost.

The account is kept by replaying the steps in the order of arrival. Predictions and their costs are
checked by a second replay, of all events in their order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from driftline.certificates.certificate import Certificate, Delayed, Premises
from driftline.certificates.events import Events
from driftline.certificates.premises import premises_of
from driftline.certificates.recorded import as_rows, learner_of, stream_of, uniforms_of
from driftline.certificates.replay import Replay
from driftline.comparators.checking import Comparator
from driftline.engines import Block
from driftline.errors import InputError
from driftline.inputs import Rows, fingerprint
from driftline.inputs.taking import take, take_labels
from driftline.kernels import REPLAYED_COLUMNS
from driftline.regret import Tally, Watched, mark_idle
from driftline.trace import Trace
from driftline.typing import CheckedLabels, Inputs, Labels

__all__ = ["InOrder", "certify_late"]

#: How far a recorded cost of a prediction may be from that of the replay.
ROUNDING = 1e-6


class InOrder:
    """A comparator in the order of arrival: with its weights of the rounds in ``order``."""

    def __init__(self, comparator: Comparator, order: np.ndarray, rounds: int):
        ends, self._weights = [0], []
        for weights, stop in comparator.pieces(0, rounds):
            self._weights.append(weights)
            ends.append(stop)
        self._parts = np.searchsorted(np.array(ends[1:]), order, side="right")

    def pieces(self, start: int, stop: int) -> Iterator[tuple[np.ndarray, int]]:
        """Yield the weights of arrivals ``start`` to ``stop``, each with where it ends."""
        parts = self._parts[start:stop]
        changes = (np.flatnonzero(np.diff(parts)) + 1 + start).tolist()
        for first, last in pairwise([start, *changes, stop]):
            yield self._weights[int(self._parts[first])], last


class _Arrivals(Replay):
    """Replays steps in the order of arrival; predictions are not those of the arrival."""

    def _targets(self, block: Block, start: int) -> np.ndarray:
        return self.trace.target_loss[start : start + len(block.labels)]

    def _same_stream(self) -> bool:
        return True


def certify_late(
    trace: Trace,
    comparator: Comparator,
    inputs: Inputs,
    labels: Labels,
    chance: float,
    keep: bool,
    progress: Callable[[int], None] | None,
) -> Certificate:
    """Return the certificate of a single learner's run whose labels came late."""
    learner = learner_of(trace)
    task, parts = learner.task, learner.parts
    rows, labels = stream_of(trace, task, inputs, labels)
    events = Events(trace)
    order = events.order
    told = _in_order(trace, order)
    given = take(rows, order), take_labels(labels, order)
    replay = _Arrivals(learner, told, InOrder(comparator, order, len(trace)), *given)
    tally, seen_parts = Tally(task.largest_loss), list[Watched]()
    size = learner._batch_size(rows)
    for start in range(0, len(order), size):
        stop = min(start + size, len(order))
        seen = mark_idle(replay.play(start, stop), parts)
        seen = replace(seen, risk=trace.risk[order[start:stop]])  # what predictions have cost
        tally.add(seen)
        if keep:
            seen_parts.append(seen)
        if progress is not None:
            progress(stop - start)
    played = take(rows, events.rounds)
    findings = [*replay.findings(), *_asked(trace, events, played, labels, replay.alarm)]
    if trace.digest and trace.digest != fingerprint(rows, labels):
        findings.append("the stream is not the one of the trace: its fingerprint differs")
    weights = None if told.sample_weight is None else told.sample_weight
    guess = task.guess.mean(given[1], weights)
    assert guess is not None and trace.arrival_risk is not None
    late = bool((events.asked[:-1] & events.asked[1:]).any()) or len(order) < len(trace)
    made = replace(premises_of(learner.engine, replay.floor, trace.first_weights), guess_loss=guess)
    if late and not made.no_theorem:
        made = _beforehand(made, learner, trace, order)
    cost = float((trace.risk - trace.arrival_risk)[order].sum())
    return Certificate(
        0,
        len(order),
        tally,
        made,
        tuple(findings),
        chance,
        Watched.join(seen_parts) if keep else None,
        delayed=Delayed(cost, len(trace) - len(order)),
    )


def _beforehand(made: Premises, learner: Any, trace: Trace, order: np.ndarray) -> Premises:
    """Return what was known before the run: something, if steps were constant and small enough."""
    parts, steps = learner.parts, trace.eta[order]
    assert trace.arrival is not None and trace.known is not None
    between = int((trace.arrival - trace.known)[order].max())
    most = parts.decoder.surrogate_gap / parts.loss.self_bound / (1 + 2 * between)
    small = bool(steps.max() * learner.engine.largest_input_sq <= most * (1.0 + 1e-9))
    if small and np.ptp(steps) == 0.0 and trace.sample_weight is None:
        return replace(made, theorem=f"{made.theorem}, at most {between} labels in between")
    words = (
        f"labels came late, up to {between} of them between a prediction and its own: the theorem "
        f"is for constant steps of {most:.3g} at most then, over the largest squared input"
    )
    return replace(made, no_theorem=words)


def _in_order(trace: Trace, order: np.ndarray) -> Trace:
    """Return the rounds whose labels came, in that order, as if they were predicted then."""
    assert trace.arrival_risk is not None
    columns: dict[str, Any] = {name: own[order] for name, own in trace.columns().items()}
    columns["risk"] = columns["arrival_risk"]
    return replace(trace, **(columns | {"arrival": None, "known": None, "arrival_risk": None}))


def _asked(
    trace: Trace, events: Events, rows: Rows, labels: CheckedLabels, alarm: bool
) -> list[str]:
    """Replay all events, and say where predictions or their costs differ from the record.

    ``rows`` are those of the events; ``alarm`` is whether the last label gave one.
    """
    learner = learner_of(trace)
    engine, origin, recorded = learner.engine, trace.origin, as_rows(trace.prediction)
    assert origin is not None
    count = len(events.rounds)
    codes = take_labels(labels, events.rounds)
    rows.asked, rows.labels = events.asked, codes
    columns = np.zeros((len(REPLAYED_COLUMNS), count))
    uniforms = np.full((count, 1), 0.5)
    uniforms[events.asked] = uniforms_of(origin.key, origin.tickets, len(trace))
    whole = Block(
        rows,
        0,
        count,
        codes,
        uniforms,
        columns,
        learner.task.predictions.rows(count, recorded.shape[1]),
        restarted=_restarts(trace, events, alarm),
        sample_weight=_of_events(trace.sample_weight, events),
        asked=events.asked,
    )
    whole.column("eta")[~events.asked] = trace.eta[events.order]
    size = learner._batch_size(rows)
    for start in range(0, count, size):
        stop = min(start + size, count)
        block = whole.cut(start, stop - start)
        if learner.mapper is not None:
            mapped = learner.mapper.piece(rows, start, stop)
            block = block._replace(rows=mapped, start=0, stop=stop - start)
        engine.hold(block.rows)
        if engine.play(block) < stop - start:
            raise InputError(f"the events {start} to {stop} of the run cannot be played again")
    came = trace.arrived
    found = []
    risk, made = whole.column("risk")[events.asked], whole.predictions[events.asked]
    off = np.flatnonzero(came & ~(np.abs(risk - trace.risk) <= ROUNDING * (1.0 + np.abs(risk))))
    if len(off):
        found.append(f"{len(off)} risks are not those of predictions, the first in round {off[0]}")
    other = (recorded != made).any(axis=1)
    if other.any():
        words = "predictions are not what the decoder draws"
        found.append(f"{other.sum()} {words}, the first in round {int(np.argmax(other))}")
    target = whole.column("target_loss")[events.asked]
    same = came & ~other
    wrong = np.flatnonzero(same & (np.abs(trace.target_loss - target) > 1e-9 * (1.0 + target)))
    if len(wrong):
        words = "target losses are not those of the predictions"
        found.append(f"{len(wrong)} {words}, the first in round {wrong[0]}")
    return found


def _of_events(column: np.ndarray | None, events: Events) -> np.ndarray | None:
    return None if column is None else column[events.rounds]


def _restarts(trace: Trace, events: Events, alarm: bool) -> np.ndarray | None:
    """Return restarts at the events that follow the label after which they were.

    The trace has those before a label came; after the last label there may be one more.
    """
    if trace.restarted is None:
        return None
    made, told = np.zeros(len(events.rounds), dtype=bool), np.flatnonzero(~events.asked)
    before = np.r_[0, told[:-1] + 1]
    made[before[trace.restarted[events.order]]] = True
    if alarm and told[-1] + 1 < len(made):
        made[told[-1] + 1] = True
    return made
