"""Replay a recorded run, and report where the record differs from the replay.

The recorded steps are repeated, so that rounding errors do not add up: on the machine that made a
record its replay has the same bits, and elsewhere it stays close. All else is computed anew:
losses, risks and gradients from the inputs, predictions from scores and the seed, target losses
from predictions, the step that the rate would have made and the alarms that the detector would have
given.
"""

from __future__ import annotations

import math

import numpy as np

from driftline import inputs
from driftline.certificates.recorded import as_rows, uniforms_of
from driftline.comparators.checking import Comparator
from driftline.engines import Block
from driftline.errors import InputError
from driftline.inputs import Rows
from driftline.kernels import REPLAYED_COLUMNS
from driftline.learner import OGD
from driftline.regret import Watch, Watched
from driftline.trace import Trace, at_most_rounding
from driftline.typing import CheckedLabels

__all__ = ["Replay"]

#: The relative error that rounding on another machine may cause in a recorded number.
ROUNDING = {"float64": 1e-6, "float32": 1e-3}


class Replay:
    """A recorded run and its stream: plays rounds again, and collects what differs."""

    def __init__(
        self, learner: OGD, trace: Trace, comparator: Comparator, rows: Rows, labels: CheckedLabels
    ):
        self.learner, self.trace, self.rows, self.labels = learner, trace, rows, labels
        rows.labels = labels
        engine = learner.engine
        if learner.features not in (None, rows.features):
            raise InputError(
                f"inputs have {rows.features} features, but the learner had {learner.features}"
            )
        self.predictions = as_rows(trace.prediction)
        if trace.restarted is None and self.learner.parts.restart is not None:
            raise InputError("the trace does not say where the learner started again")
        self.watch = Watch(engine, comparator)
        origin = trace.origin
        assert origin is not None
        self.uniforms = uniforms_of(origin.key, origin.tickets, len(trace))
        self.rounding = ROUNDING[engine.dtype.name]
        self._range = learner.rate.step_range(learner.parts.setting, origin.rate_memory)
        #: Whether the detector gave an alarm in the last round that was replayed.
        self.alarm = origin.restarted
        self._worst: dict[str, tuple[float, int]] = {}
        self._wrong: dict[str, list[int]] = {}

    def play(self, start: int, stop: int) -> Watched:
        """Play some rounds, and compare them with the record."""
        trace, count, rows, first = self.trace, stop - start, self.rows, start
        if self.learner.mapper is not None:
            rows, first = self.learner.mapper.piece(rows, start, stop), 0
            self.learner.check_mapped(rows)
        self.learner.engine.hold(rows)
        columns = np.zeros((len(REPLAYED_COLUMNS), count))
        block = Block(
            rows,
            first,
            first + count,
            self.labels[start:stop],
            self.uniforms[start:stop],
            columns,
            self.learner.task.predictions.rows(count, self.predictions.shape[1]),
            restarted=None if trace.restarted is None else trace.restarted[start:stop].copy(),
            sample_weight=None if (own := trace.sample_weight) is None else own[start:stop],
        )
        block.column("eta")[:] = trace.eta[start:stop]
        played, seen = self.watch.play(block)
        if played < count:
            inputs.refuse(self.rows, start + played)
        for name in ("loss", "risk", "grad_sq", "eta"):
            self._differ(name, getattr(trace, name)[start:stop], getattr(seen, name), start)
        own_eta = block.column("own_eta")
        self._compare_range(seen, own_eta > 0.0, start)
        self._compare_steps(seen, own_eta, start)
        self._compare_restarts(block.column("own_alarm") > 0.0, start)
        target = self._targets(block, start)
        off = np.abs(trace.target_loss[start:stop] - target) > 1e-9 * (1.0 + target)
        self._note("target losses are not those of the predictions", np.flatnonzero(off) + start)
        return Watched(**(vars(seen) | {"target_loss": target}))

    def _targets(self, block: Block, start: int) -> np.ndarray:
        """Return the target losses of the recorded predictions, from round ``start`` on."""
        task, target = self.learner.task, block.column("target_loss").copy()
        recorded = self.predictions[start : start + len(target)]
        other = np.flatnonzero((recorded != block.predictions).any(axis=1))
        labels = [block.labels[int(t)] for t in other]
        try:
            if len(other):
                target[other] = task.many.losses(recorded[other], labels)
                if block.sample_weight is not None:
                    target[other] *= block.sample_weight[other]
        except InputError as error:
            raise InputError(f"the trace has predictions that are not valid: {error}") from error
        self._note("predictions are not what the decoder draws", other + start)
        return target

    def _compare_steps(self, seen: Watched, own: np.ndarray, start: int) -> None:
        """Record steps that the rate would not have made.

        The gap that a rate divides may be much smaller than the loss, and its relative rounding
        error is larger by the same factor.
        """
        allowed, resolution = self.rounding * own, self.learner.rate.resolution
        if resolution is not None:
            gap = np.maximum(seen.loss - seen.risk, resolution * seen.loss)
            digits = 1e3 * np.finfo(np.float64).eps  # losses are in double precision, always
            allowed = allowed + digits * own * seen.loss / np.maximum(gap, 1e-300)
        wrong = np.flatnonzero((own > 0.0) & ~(np.abs(seen.eta - own) <= allowed))
        self._note(f"steps are not those of {self.learner.rate!r}", wrong + start)

    def _compare_range(self, seen: Watched, stepped: np.ndarray, start: int) -> None:
        """Record steps above the admissible range, for a rate that never leaves it."""
        if not math.isinf(self._range.norm):
            return
        residual = 0.5 * seen.eta * seen.grad_sq - (seen.loss - seen.risk)
        residual[~stepped] = 0.0
        own = seen.gap if self.learner.loss.overestimates else None  # else the comparator's
        wrong = np.flatnonzero(~at_most_rounding(residual, seen.loss, own))
        self._note("steps lie above the admissible range", wrong + start)

    def _compare_restarts(self, alarms: np.ndarray, start: int) -> None:
        """Record restarts without an alarm, and alarms without a restart."""
        due = np.r_[self.alarm, alarms[:-1]]
        self.alarm = bool(alarms[-1])
        if self.trace.restarted is None:
            return
        wrong = np.flatnonzero(due != self.trace.restarted[start : start + len(due)])
        words = f"new starts are not those of {self.learner.parts.restart!r}"
        self._note(words, wrong + start)

    def _differ(self, name: str, recorded: np.ndarray, found: np.ndarray, start: int) -> None:
        """Keep the largest difference between the record and the replay."""
        scale = np.abs(found) + 1e-6 * max(1.0, float(np.abs(found).max()))
        off = np.abs(recorded - found) / scale
        t = int(np.argmax(off))
        if not off[t] <= self._worst.get(name, (0.0, 0))[0]:
            self._worst[name] = float(off[t]), start + t

    def _note(self, words: str, rounds: np.ndarray) -> None:
        if len(rounds):
            self._wrong.setdefault(words, []).extend(rounds.tolist())

    def findings(self) -> tuple[str, ...]:
        """Return all differences, once all rounds were played."""
        found = [
            f"the replayed {name} differs from the recorded one by a share of {off:.2g} in round "
            f"{t}"
            for name, (off, t) in self._worst.items()
            if not off <= self.rounding
        ]
        found += [
            f"{len(rounds)} {words}, the first in round {rounds[0]}"
            for words, rounds in self._wrong.items()
        ]
        if not self._same_stream():
            found.append("the stream is not the one of the trace: its fingerprint differs")
        return tuple(found)

    def _same_stream(self) -> bool:
        """Say whether the stream is the one of the trace."""
        digest = self.trace.digest
        return not digest or digest == inputs.fingerprint(self.rows, self.labels)

    @property
    def floor(self) -> float:
        """A lower bound of the steps, given the rate's memory before the run; 0 if unknown."""
        largest = self.learner.engine.largest_input_sq
        return self._range.least(largest) if largest > 0.0 else 0.0
