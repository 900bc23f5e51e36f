"""Compare the columns of a trace with those of its replay, and say where they differ."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from driftline.certificates.replay import Piece
from driftline.committee import CommitteeTrace
from driftline.committee.trace import GUARDED
from driftline.errors import InputError
from driftline.inputs.taking import take_labels
from driftline.tasks import Task
from driftline.trace import ASKED, CAME, TOLD, Batch, Trace, at_most_rounding
from driftline.typing import CheckedLabels

__all__ = ["Differences"]

#: The relative error that rounding on another machine may cause in a recorded number, by the type
#: of weights; and in a target loss, which no weights are in.
ROUNDING, EXACT = {"float64": 1e-6, "float32": 1e-3}, 1e-9

#: The columns of numbers that are computed anew, but for what a guard's book allows.
COMPARED = (
    "loss", "risk", "target_loss", "eta", "grad_sq", "chance", "slack",
    "weights", "member_risk", "account", "reserve", "acted", "averaged",
)  # fmt: skip

#: Columns by names that say whose they are.
WORDS = {"weights": "weight of a member", "member_risk": "risk of a member"}
WORDS |= {name: f"{name} of the guard" for name in GUARDED}


class Differences:
    """Where the record of a learner's run differs from the replay; ``words`` says all of it.

    A number may differ by a share of it that is due to rounding. Where recorded steps are repeated
    small numbers are as precise as large ones; elsewhere not more so than numbers of size 1.
    """

    def __init__(self, learner: Any, trace: Trace | CommitteeTrace, labels: CheckedLabels):
        self.learner, self.trace = learner, trace
        self._rows = _as_rows(trace.prediction)
        _check_predictions(learner.task, trace.prediction, labels)
        committee = isinstance(trace, CommitteeTrace)
        self._steps = not committee and learner._fixed.steps
        self._predicted = "not what the learner predicts"
        if committee:
            self._predicted = learner.rule.wrong
        elif self._steps:
            self._predicted = "not what the decoder draws"
        self._rounding = ROUNDING[np.dtype(learner._dtype).name]
        self._worst: dict[str, tuple[float, str]] = {}
        self._wrong: dict[str, list[int]] = {}

    def compare(self, piece: Piece, batch: Batch) -> np.ndarray:
        """Compare some events; return the target losses of the recorded predictions by event.

        ``batch`` is the learner's own part of the piece.
        """
        rounds, came = piece.rounds, self.trace.arrived[piece.rounds]
        asks, tells = piece.asks, piece.tells
        target = self._targets(piece, batch)
        places = {ASKED: asks, CAME: asks[came[asks]], TOLD: tells}
        computed = batch.columns | {"target_loss": target}
        for name in COMPARED:
            if name in self.trace.kinds:
                where = places[self.trace.kinds[name].when]
                self._compare(name, computed.get(name), rounds, where)
        for where in (tells, asks[~came[asks]]):  # of rounds without a label, what it is so far
            self._compare("book", batch.columns.get("book"), rounds, where)
        if self.trace.arrival is not None and isinstance(self.trace, Trace):
            self._compare("arrival_risk", batch["risk"], rounds, tells)
        if self._steps and len(tells):
            self._check_steps(batch, rounds, tells)
        return target

    def _compare(
        self, name: str, column: np.ndarray | None, rounds: np.ndarray, places: np.ndarray
    ) -> None:
        """Keep the largest difference between the record and the replay of some events."""
        if column is None or not len(places):
            return
        made, whole = column[places], getattr(self.trace, name, None)
        own = made[:0] if whole is None else whole[rounds[places]]
        if own.shape != made.shape:
            raise InputError(f"the trace has no column {name!r} of the learner's rounds")
        size, rounding = np.abs(made), self._rounding
        least = 1e-6 * max(1.0, float(size.max())) if self._steps else 1.0
        if name == "target_loss" or (name.endswith("risk") and self._certain):
            least, rounding = 1.0, EXACT
        off = np.abs(own - made) / (rounding * (size + least))
        place = np.unravel_index(int(np.argmax(off)), off.shape)
        share = float(off[place])
        if share <= 1.0 or share <= self._worst.get(name, (0.0, ""))[0]:
            return
        self._worst[name] = (
            math.inf if math.isnan(share) else share,
            f"the {WORDS.get(name, name)} is {made[place]:.6g} when computed anew, but "
            f"{own[place]:.6g} was recorded, in round {rounds[places[place[0]]]}",
        )

    @property
    def _certain(self) -> bool:
        """Whether risks are target losses."""
        return isinstance(self.trace, Trace) and bool(self.learner._fixed.certain)

    def _targets(self, piece: Piece, batch: Batch) -> np.ndarray:
        """Return the target losses of the recorded predictions in the events that ask for them."""
        task, asks = self.learner.task, piece.asks
        made, own = batch["prediction"][asks], self._rows[piece.rounds[asks]]
        width = max(made.shape[1], own.shape[1])
        same = (_padded(made, width) == _padded(own, width)).all(axis=1)
        target, other = batch["target_loss"].copy(), asks[~same]
        if not len(other):
            return target
        try:
            target[other] = task.many.losses(own[~same], take_labels(piece.labels, other))
        except InputError as error:
            if self.learner.feedback.full:  # elsewhere a difference is enough
                raise InputError(f"the trace has invalid predictions: {error}") from error
        if (weight := batch.columns.get("sample_weight")) is not None:
            target[other] *= weight[other]
        self._note(f"predictions are {self._predicted}", piece.rounds[other])
        return target

    def _check_steps(self, batch: Batch, rounds: np.ndarray, tells: np.ndarray) -> None:
        """Note steps and new starts that rate and detector would not have made.

        The gap that a rate divides may be much smaller than the loss, and its relative rounding
        error is larger by the same factor.
        """
        learner, rounds = self.learner, rounds[tells]
        names = ("own_eta", "eta", "loss", "risk", "grad_sq", "restarted", "due")
        own, eta, loss, risk, grad_sq, restarted, due = (batch[name][tells] for name in names)
        allowed, resolution = self._rounding * own, learner.rate.resolution
        if resolution is not None:
            gap = np.maximum(loss - risk, resolution * loss)
            digits = 1e3 * np.finfo(np.float64).eps  # losses are in double precision, always
            allowed = allowed + digits * own * loss / np.maximum(gap, 1e-300)
        wrong = (own > 0.0) & ~(np.abs(eta - own) <= allowed)
        self._note(f"steps are not those of {learner.rate!r}", rounds[wrong])
        if math.isinf(learner.steps_range.norm):
            residual = np.where(own > 0.0, 0.5 * eta * grad_sq - (loss - risk), 0.0)
            gaps = learner.seen.gap if learner.loss.overestimates else None  # the comparator's
            above = ~at_most_rounding(residual, loss, gaps)
            self._note("steps lie above the admissible range", rounds[above])
        if isinstance(self.trace, Trace) and self.trace.restarted is not None:
            words = f"new starts are not those of {learner.parts.restart!r}"
            self._note(words, rounds[due != restarted])

    def _note(self, words: str, rounds: np.ndarray) -> None:
        if len(rounds):
            self._wrong.setdefault(words, []).extend(rounds.tolist())

    @property
    def words(self) -> list[str]:
        """All differences, once all rounds were played."""
        found = [said for _, said in self._worst.values()]
        for words, rounds in self._wrong.items():
            found.append(f"{len(rounds)} {words}, the first in round {rounds[0]}")
        return found


def _check_predictions(task: Task, made: np.ndarray, labels: CheckedLabels) -> None:
    """Raise if a column cannot have predictions of a task."""
    if (width := task.predictions.width(labels)) != (own := _as_rows(made).shape[1]):
        raise InputError(
            f"predictions of {task!r} have {width} numbers here, but the trace has {own}"
        )
    dtype = np.dtype(task.predictions.dtype)
    if made.dtype != dtype:
        raise InputError(f"predictions of {task!r} must be {dtype}, but the trace has {made.dtype}")


def _as_rows(predictions: np.ndarray) -> np.ndarray:
    """Return predictions as a matrix with a row for each."""
    return predictions[:, np.newaxis] if predictions.ndim == 1 else predictions


def _padded(rows: np.ndarray, width: int) -> np.ndarray:
    short = width - rows.shape[1]
    return np.pad(rows, ((0, 0), (0, short)), constant_values=-1) if short else rows
