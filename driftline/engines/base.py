"""What both engines share: the parts, the weights, the state."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from driftline.decoders import Decoder
from driftline.detectors import Detector
from driftline.domains import Domain
from driftline.errors import InputError
from driftline.kernels import on_lines, zeros_on_lines
from driftline.kernels import program as at
from driftline.losses import Loss
from driftline.models import Rows
from driftline.rates import Rate, Setting

__all__ = ["Block", "Engine", "Parts", "Snapshot"]

#: How far weights may leave their ball by rounding, as a share of its radius.
PRECISION = {"float64": 1e-6, "float32": 1e-3}


class Parts(NamedTuple):
    """What a learner is made of."""

    loss: Loss
    decoder: Decoder
    rate: Rate
    domain: Domain
    intercept: bool
    restart: Detector | None = None

    @property
    def setting(self) -> Setting:
        """What the rate is told of the other parts."""
        return Setting(
            self.decoder.rate_floor,
            self.domain.diameter,
            self.loss.bounded_rate,
            self.decoder.allow_no_gap,
        )

    @property
    def have_kernels(self) -> bool:
        """Whether every part can run compiled."""
        task = self.loss.task
        kernels = (task.kernels, self.loss.kernels, self.decoder.kernel, self.rate.kernel)
        plain = self.restart is not None and self.restart.kernel is None
        return None not in kernels and self.domain.radius is not None and not plain


class Block(NamedTuple):
    """Some rounds to play, and the columns that their record goes to."""

    rows: Rows
    start: int
    stop: int
    labels: Any
    uniforms: np.ndarray
    trace: np.ndarray
    predictions: np.ndarray
    gaps: np.ndarray | None = None
    shadow: np.ndarray | None = None  # a comparator's weights, one row per score
    comparator_gaps: np.ndarray | None = None
    restarted: np.ndarray | None = None  # whether each round was the first of a new start

    def cut(self, first: int, size: int) -> Block:
        """Return some of the rounds."""
        part = slice(first, first + size)
        return self._replace(
            start=self.start + first,
            stop=self.start + first + size,
            labels=self.labels[part],
            uniforms=self.uniforms[part],
            trace=self.trace[:, part],
            predictions=self.predictions[part],
            gaps=None if self.gaps is None else self.gaps[part],
            comparator_gaps=None if self.comparator_gaps is None else self.comparator_gaps[part],
            restarted=None if self.restarted is None else self.restarted[part],
        )


class Snapshot(NamedTuple):
    """An engine's weights and state at one moment."""

    stored: np.ndarray | None
    transposed: bool
    state: np.ndarray

    @property
    def weights(self) -> np.ndarray | None:
        """One row per score."""
        if self.stored is None:
            return None
        rows, scale = self._rows, self.state[at.SCALE]
        return rows if scale == 1.0 else (rows * scale).astype(rows.dtype, copy=False)

    @property
    def _rows(self) -> np.ndarray:
        assert self.stored is not None
        return self.stored.T if self.transposed else self.stored


class Engine:
    """Weights, stored as the model likes them, and the state beside them."""

    def __init__(self, parts: Parts, replay: bool = False, dtype: Any = np.float64):
        self.parts = parts
        #: The type of the weights, and of inputs where they meet.
        self.dtype = np.dtype(dtype)
        #: Whether steps are those already in the trace, and not the rate's.
        self.replay = replay
        self.stored: np.ndarray | None = None
        self.transposed = False
        #: The number of features that inputs must have, None while it is open.
        self.features: int | None = None
        detector = () if parts.restart is None else parts.restart.memory()
        self._memory = (*parts.rate.memory(parts.setting), *detector)
        self.state = np.zeros(at.MEMORY + len(self._memory))
        self.state[at.SCALE] = 1.0
        self.state[at.ETA] = parts.rate.first(parts.setting)
        radius = parts.domain.radius
        self.state[at.RADIUS] = np.inf if radius is None else radius
        self.state[at.MEMORY :] = self._memory

    def start(self, weights: np.ndarray) -> None:
        """Begin with these weights, one row per score, and go on in their precision."""
        task = self.parts.loss.task
        extra = self.parts.intercept + task.extra_columns
        if weights.ndim != 2 or len(weights) != task.weight_rows or weights.shape[1] < extra:
            raise InputError(
                f"expected weights with {task.weight_rows} rows, but got the shape {weights.shape}"
            )
        norm = self._norm(weights, 1.0)
        self.stored, self.transposed = on_lines(weights, apart=True), False
        self.dtype = weights.dtype
        self.features = weights.shape[1] - extra
        self.state[at.NORM_SQ] = norm**2
        self.state[at.REFRESH] = max(4096, weights.size)

    def _norm(self, rows: np.ndarray, scale: float) -> float:
        """Return the norm of weights times a scale, if they are finite and in the domain."""
        with np.errstate(over="ignore", invalid="ignore"):
            weights = rows.astype(np.float64) * scale
            norm, away = float(np.linalg.norm(weights)), 0.0
        if not np.isfinite(norm):
            raise InputError("weights must be finite, and so must their norm")
        if self.parts.domain.radius is None:
            away = float(np.linalg.norm(weights - self.parts.domain.project(weights)))
        allowed = PRECISION[rows.dtype.name]
        if not norm <= self.state[at.RADIUS] * (1.0 + allowed) or away > allowed * max(1.0, norm):
            raise InputError(f"the norm {norm:.6g} of the weights is outside their domain")
        return norm

    def hold(self, rows: Rows) -> None:
        """Make the weights ready for rows of this kind; they begin at zero."""
        if self.stored is None:
            self.transposed, self.features = self.wants_transposed(rows), rows.features
            shape = self._shape(rows)[::-1] if self.transposed else self._shape(rows)
            self.stored = zeros_on_lines(shape, self.dtype, apart=not self.transposed)
            self._begin(self.stored)
            self.state[at.REFRESH] = max(4096, self.stored.size)
        elif self.transposed != self.wants_transposed(rows):
            self.stored = on_lines(self.stored.T, apart=self.transposed)
            self.transposed = not self.transposed

    def _begin(self, stored: np.ndarray) -> np.ndarray:
        """Set weights to 0, or to what is nearest to that in a domain of one's own."""
        stored[:] = 0.0
        if self.parts.domain.radius is None:  # such weights are never transposed
            stored[:] = self.parts.domain.project(stored)
        return stored

    def _shape(self, rows: Rows) -> tuple[int, int]:
        task = self.parts.loss.task
        return task.weight_rows, rows.features + self.parts.intercept + task.extra_columns

    def wants_transposed(self, rows: Rows) -> bool:
        """Say whether these rows want the weights transposed."""
        return False

    def look(self) -> Snapshot:
        """Return weights and state as they are, not copied."""
        return Snapshot(self.stored, self.transposed, self.state)

    def snapshot(self) -> Snapshot:
        """Return a copy of weights and state."""
        stored = None if self.stored is None else on_lines(self.stored, not self.transposed)
        return Snapshot(stored, self.transposed, self.state.copy())

    def filled(self, snapshot: Snapshot) -> Snapshot:
        """Return a snapshot from before the first input with what weights began as."""
        if snapshot.stored is not None or self.stored is None:
            return snapshot
        state = snapshot.state.copy()
        state[at.REFRESH] = max(4096, self.stored.size)
        return Snapshot(self._begin(np.empty_like(self.stored)), self.transposed, state)

    def restore(self, snapshot: Snapshot) -> None:
        """Go back to a snapshot."""
        self.stored, self.transposed, state = snapshot
        self.features = self.features if self.stored is not None else None
        self.state[:] = state

    def resume(self, saved: Snapshot, features: int | None) -> None:
        """Go on from weights and state that were saved, if they can be those of these parts."""
        stored, transposed, state = saved
        if state.shape != self.state.shape or np.isnan(state).any():
            raise InputError(f"expected a state of {self.state.size} numbers, but got {state}")
        settled = (at.SCALE, at.NORM_SQ, at.REFRESH, at.ROUNDS, at.LARGEST_INPUT_SQ, at.ETA)
        values = state[list(settled)]
        if not np.isfinite(values).all() or (values < 0.0).any() or not state[at.SCALE] > 0.0:
            raise InputError(f"the state has impossible values: {values}")
        if state[at.RADIUS] != self.state[at.RADIUS]:
            raise InputError(f"the state's radius {state[at.RADIUS]} is not that of the domain")
        if (stored is None) != (features is None):
            raise InputError("weights and the number of features must be given both or neither")
        if stored is not None and features is not None:
            task = self.parts.loss.task
            columns = features + self.parts.intercept + task.extra_columns
            shape = (task.weight_rows, columns)
            if stored.shape != (shape[::-1] if transposed else shape) or stored.dtype != self.dtype:
                raise InputError(
                    f"expected weights of shape {shape} in {self.dtype}, but got {stored.shape} in "
                    f"{stored.dtype}"
                )
            norm = self._norm(stored.T if transposed else stored, float(state[at.SCALE]))
            off, radius = abs(norm**2 - float(state[at.NORM_SQ])), float(state[at.RADIUS])
            followed = self.parts.have_kernels and np.isfinite(radius)
            if followed and off > PRECISION["float32"] * radius**2:
                raise InputError(f"the norm of the weights is {norm:.6g}: the state has another")
            if state[at.REFRESH] > state[at.ROUNDS] + max(4096, stored.size):
                raise InputError("the state says that the norm will not be computed again")
            self.stored = on_lines(stored, apart=not transposed)
        self.transposed, self.features = transposed, features
        self.state[:] = state

    def scores(self, rows: Rows, t: int) -> np.ndarray:
        """Return the scores of one row, at the cost of its entries."""
        stored = self._begin(np.empty(self._shape(rows))) if self.stored is None else self.stored
        scores = rows.scores(stored, self.transposed, t, self.parts.intercept)
        return scores * self.state[at.SCALE]

    def all_scores(self, rows: Any) -> np.ndarray:
        """Return the scores of all rows, a row each; one weight vector per score."""
        stored = self._begin(np.empty(self._shape(rows))) if self.stored is None else self.stored
        scores: np.ndarray = rows.all_scores(stored, self.transposed, self.parts.intercept)
        return scores * self.state[at.SCALE]

    def compare(self, weights: np.ndarray) -> tuple[float, float]:
        """Begin to watch for a comparator: return inner product and squared norm, exactly."""
        own = np.asarray(self.look().weights, dtype=np.float64)
        self.state[at.INNER] = float(np.vdot(own, weights))
        return float(self.state[at.INNER]), float(np.vdot(own, own))

    def play(self, block: Block) -> int:
        """Play the rounds into the trace, whatever alarms there are; return how many were good."""
        if self.parts.restart is None:
            return self.advance(block)
        return sum(self.stretches(block))

    def play_one(
        self, row: Any, labels: Any, uniforms: Any, trace: np.ndarray, prediction: np.ndarray
    ) -> int:
        """Play one round into columns of length 1; return 1 if it was good and 0 if not."""
        return self.play(Block(row, 0, 1, labels, uniforms, trace, prediction))

    def stretches(self, block: Block) -> Iterator[int]:
        """Play the rounds, and pause at every new start before the weights are set back.

        Yield how many rounds were played since the last pause. New starts are noted in the block;
        in a replay they are those that it has.
        """
        done, count, noted = 0, block.stop - block.start, block.restarted
        while done < count:
            if self.replay and noted is not None and noted[done]:
                self.set_back()
            elif noted is not None and not self.replay:
                noted[done] = self.state[at.ALARM] == at.HEEDED
            self.state[at.ALARM] = at.QUIET
            size = count - done
            if self.replay and noted is not None and noted[done + 1 :].any():
                size = 1 + int(np.argmax(noted[done + 1 :]))
            played = self.advance(block if size == count else block.cut(done, size))
            if played:
                yield played
            done += played
            if self.state[at.ALARM] == at.GIVEN:
                self.set_back()
            elif played < size:
                return

    def set_back(self) -> None:
        """Start again: first weights, and nothing remembered by rate and detector."""
        assert self.stored is not None
        self._begin(self.stored)
        state = self.state
        state[at.SCALE], state[at.NORM_SQ], state[at.INNER] = 1.0, 0.0, 0.0
        state[at.REFRESH] = state[at.ROUNDS] + max(4096, self.stored.size)
        state[at.ETA] = self.parts.rate.first(self.parts.setting)
        state[at.ALARM] = at.HEEDED
        state[at.MEMORY :] = self._memory

    def advance(self, block: Block) -> int:
        """Play the rounds up to the first alarm; return how many were good."""
        raise InputError("an engine must say how it plays")
