"""What both engines share: the parts, the weights, the state."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from driftline.decoders import Decoder
from driftline.domains import Domain
from driftline.errors import InputError
from driftline.kernels import program as at
from driftline.losses import Loss
from driftline.models import Rows
from driftline.rates import Rate, Setting

__all__ = ["Block", "Engine", "Parts", "Snapshot"]


class Parts(NamedTuple):
    """What a learner is made of."""

    loss: Loss
    decoder: Decoder
    rate: Rate
    domain: Domain
    intercept: bool

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
        return None not in kernels and self.domain.radius is not None


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
        rows = self.stored.T if self.transposed else self.stored
        scale = self.state[at.SCALE]
        return rows if scale == 1.0 else rows * scale


class Engine:
    """Weights, stored as the model likes them, and the state beside them."""

    def __init__(self, parts: Parts, replay: bool = False):
        self.parts = parts
        #: Whether steps are those already in the trace, and not the rate's.
        self.replay = replay
        self.stored: np.ndarray | None = None
        self.transposed = False
        #: The number of features that inputs must have, None while it is open.
        self.features: int | None = None
        memory = parts.rate.memory(parts.setting)
        self.state = np.zeros(at.MEMORY + len(memory))
        self.state[at.SCALE] = 1.0
        self.state[at.ETA] = parts.rate.first(parts.setting)
        radius = parts.domain.radius
        self.state[at.RADIUS] = np.inf if radius is None else radius
        self.state[at.MEMORY :] = memory

    def start(self, weights: np.ndarray) -> None:
        """Begin with these weights, one row per score."""
        self.stored, self.transposed = weights, False
        extra = self.parts.intercept + self.parts.loss.task.extra_columns
        self.features = weights.shape[1] - extra
        self.state[at.NORM_SQ] = float(np.vdot(weights, weights))
        self.state[at.REFRESH] = max(4096, weights.size)

    def hold(self, rows: Rows) -> None:
        """Make the weights ready for rows of this kind; they begin at zero."""
        if self.stored is None:
            shape = self._shape(rows)
            self.stored = np.zeros(shape[::-1] if self.wants_transposed(rows) else shape)
            self.transposed, self.features = self.wants_transposed(rows), rows.features
            self.state[at.REFRESH] = max(4096, self.stored.size)
        elif self.transposed != self.wants_transposed(rows):
            self.stored = np.ascontiguousarray(self.stored.T)
            self.transposed = self.wants_transposed(rows)

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
        stored = None if self.stored is None else self.stored.copy()
        return Snapshot(stored, self.transposed, self.state.copy())

    def restore(self, snapshot: Snapshot) -> None:
        """Go back to a snapshot."""
        self.stored, self.transposed, state = snapshot
        self.features = self.features if self.stored is not None else None
        self.state[:] = state

    def scores(self, rows: Rows, t: int) -> np.ndarray:
        """Return the scores of one row, at the cost of its entries."""
        stored = np.zeros(self._shape(rows)) if self.stored is None else self.stored
        scores = rows.scores(stored, self.transposed, t, self.parts.intercept)
        return scores * self.state[at.SCALE]

    def compare(self, weights: np.ndarray) -> tuple[float, float]:
        """Begin to watch for a comparator: return inner product and squared norm, exactly."""
        own = self.look().weights
        assert own is not None
        self.state[at.INNER] = float(np.vdot(own, weights))
        return float(self.state[at.INNER]), float(np.vdot(own, own))

    def play(self, block: Block) -> int:
        """Play the rounds into the trace; return how many were good."""
        raise InputError("an engine must say how it plays")
