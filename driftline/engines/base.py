"""What both engines share: the parts, the weights, the state."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

from driftline.decoders import Decoder
from driftline.detectors import Detector
from driftline.domains import Domain
from driftline.errors import InputError
from driftline.inputs import DenseRows, Rows, SparseRows, refuse
from driftline.kernels import aligned, aligned_zeros
from driftline.kernels import program as at
from driftline.losses import Loss
from driftline.rates import Rate, Setting
from driftline.state import Checkpoint, State, Stateful
from driftline.tasks import Task
from driftline.typing import CheckedLabels

__all__ = ["Asked", "Block", "Engine", "Parts"]

#: How far weights may leave their ball by rounding, as a share of its radius.
PRECISION = {"float64": 1e-6, "float32": 1e-3}


def refresh_after(weights: np.ndarray) -> int:
    """Return after how many rounds the norm of the weights is computed anew."""
    return max(4096, weights.size)


class Parts(NamedTuple):
    """What a learner is made of: a frozen choice, whose state is another object."""

    loss: Loss
    decoder: Decoder
    rate: Rate
    domain: Domain
    intercept: bool
    restart: Detector | None = None

    @property
    def task(self) -> Task:
        """The task of the predictions, which the decoder states."""
        return self.decoder.task

    @property
    def setting(self) -> Setting:
        """What the rate needs to know of the other parts."""
        return Setting(
            self.decoder.rate_floor,
            self.domain.diameter,
            self.loss.bounded_rate,
            self.decoder.allow_no_gap,
        )

    @property
    def have_kernels(self) -> bool:
        """Whether every part can run compiled."""
        task = self.task
        kernels = (task.kernels, self.loss.kernels, self.decoder.kernel, self.rate.kernel)
        plain = self.restart is not None and self.restart.kernel is None
        return None not in kernels and self.domain.radius is not None and not plain

    def init(self, features: int | None = None, dtype: npt.DTypeLike = np.float64) -> State:
        """Return the state before the first round; without ``features`` it has no weights yet."""
        weights = None
        if features is not None:
            weights = self.first_weights(aligned_zeros(self.shape(features), dtype, apart=True))
        return State(
            features=features,
            norm_sq=0.0 if weights is None else float(np.vdot(weights, weights)),
            refresh=0 if weights is None else refresh_after(weights),
            eta=self.rate.first(self.setting),
            weights=weights,
            rate_memory=np.array(self.rate.memory(self.setting), dtype=np.float64),
            detector_memory=np.array(self.detector_start, dtype=np.float64),
        )

    @property
    def detector_start(self) -> tuple[float, ...]:
        """The detector's memory before the first round."""
        return () if self.restart is None else self.restart.memory()

    def shape(self, features: int) -> tuple[int, int]:
        """Return how many weights there are: one row per score."""
        task = self.task
        return task.layout.weight_rows, features + self.intercept + task.layout.extra_columns

    def first_weights(self, weights: np.ndarray) -> np.ndarray:
        """Set weights to 0, or to the nearest point of the domain if it is a user's own."""
        weights[:] = 0.0
        if self.domain.radius is None:  # such weights are never transposed
            weights[:] = self.domain.project(weights)
        return weights


class Block(NamedTuple):
    """Some rounds to play, and the columns that their record goes to."""

    rows: Rows
    start: int
    stop: int
    labels: CheckedLabels
    uniforms: np.ndarray
    trace: np.ndarray
    predictions: np.ndarray
    gaps: np.ndarray | None = None
    shadow: np.ndarray | None = None  # a comparator's weights, one row per score
    comparator_gaps: np.ndarray | None = None
    restarted: np.ndarray | None = None  # whether each round was the first of a new start
    sample_weight: np.ndarray | None = None  # how often each round counts; None for once
    asked: np.ndarray | None = None  # which rounds are predicted only; None for none
    scores: np.ndarray | None = None  # where the scores of every round go; None for nowhere

    @property
    def extras(self) -> np.ndarray:
        """Uniform numbers; beside them sample weights, and which rounds are predicted only."""
        if self.sample_weight is None and self.asked is None:
            return self.uniforms
        weights = np.ones(len(self.uniforms)) if self.sample_weight is None else self.sample_weight
        if self.asked is None:
            return np.column_stack([self.uniforms, weights])
        return np.column_stack([self.uniforms, weights, self.asked])

    def weight(self, t: int) -> float:
        """Return the sample weight of one round."""
        return 1.0 if self.sample_weight is None else float(self.sample_weight[t])

    def column(self, name: str) -> np.ndarray:
        """Return a column of the record by name: a view, through which it can be written."""
        return self.trace[at.ROW[name]]

    def write(self, t: int, **values: float) -> None:
        """Write some columns of one round."""
        for name, value in values.items():
            self.trace[at.ROW[name], t] = value

    def scored_below(self) -> Block:
        """Return the block with scores written below its record, if there are such rows."""
        if len(self.trace) <= at.SCORES:
            return self
        return self._replace(scores=self.trace[at.SCORES :].T)

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
            sample_weight=None if self.sample_weight is None else self.sample_weight[part],
            asked=None if self.asked is None else self.asked[part],
            scores=None if self.scores is None else self.scores[part],
        )


class Asked(NamedTuple):
    """The predictions of some rounds, and all that tickets keep of them, if that was wanted.

    ``predictions`` are rows of integers, with -1 behind shorter ones. ``mean`` are the mean loss
    encodings, and ``means`` those of members: they have an array for every round, and are lists
    where rounds differ in size. ``mapped`` are the rows after the feature map, None without one.
    ``scores`` are by member, round and score, None where rounds differ in size. ``probabilities``
    of labels are there if they are what is predicted by. ``made`` are predictions of members, of
    sets of weights and of the committee, a row a round: in place of ``means`` if all are labels.
    ``book`` is what a guard must know of rounds.
    """

    predictions: np.ndarray
    mean: Sequence[np.ndarray] | np.ndarray = ()
    means: Sequence[np.ndarray] | np.ndarray | None = None
    mapped: Rows | None = None
    scores: np.ndarray | None = None
    probabilities: np.ndarray | None = None
    made: np.ndarray | None = None
    book: np.ndarray | None = None


class Engine(Stateful):
    """The weights, in the layout that suits the rows, and the rest of the state as a vector."""

    _learned = ("vector", "stored", "transposed", "features")
    _large = ("stored",)

    #: Whether one compiled call plays rounds up to an alarm.
    compiled = True

    def __init__(self, parts: Parts, replay: bool = False, dtype: npt.DTypeLike = np.float64):
        self.parts = parts
        #: The type of the weights, and of the inputs that they are multiplied with.
        self.dtype = np.dtype(dtype)
        #: Whether steps are those already in the trace, and not the rate's.
        self.replay = replay
        self.stored: np.ndarray | None = None
        self.transposed = False
        #: The number of features that inputs must have, None before the first input.
        self.features: int | None = None
        self._first = parts.init()
        self._split = at.MEMORY + len(self._first.rate_memory)  # where the detector's memory begins
        #: The state but for the weights, in the layout of :mod:`driftline.kernels.program`.
        self.vector = np.zeros(self._split + len(self._first.detector_memory))
        radius = parts.domain.radius
        self.vector[at.RADIUS] = np.inf if radius is None else radius
        self.restore(self._first)

    def _begin_as(self, other: Self) -> None:
        """Begin with the weights of another engine."""
        if other.stored is not None:
            self.stored = aligned(other.stored, not other.transposed)
            self.transposed, self.features = other.transposed, other.features
            self.vector[at.REFRESH] = refresh_after(self.stored)
            for place in (at.SCALE, at.NORM_SQ):
                self.vector[place] = other.vector[place]

    def begin_with(self, weights: np.ndarray, scale: float, norm_sq: float) -> None:
        """Begin with these weights, stored as here, times a scale."""
        assert self.stored is not None
        self.stored[:] = weights.reshape(self.stored.shape)
        self.vector[at.SCALE], self.vector[at.NORM_SQ] = scale, norm_sq

    # -- a single round: all of it or nothing, whatever is raised

    def go_back(self, before: Checkpoint, rounds: int) -> None:
        """Go back to where a round began, if it does not count yet; else finish it.

        ``rounds`` is how many counted then: the compiled call that changes weights and vector
        counts them. ``before`` needs no copy of the weights.
        """
        if self.rounds != rounds:
            self.settle()
        else:
            before.restore()

    def settle(self) -> None:
        """Restart, if the last round gave an alarm; this may be done twice."""
        if self.vector.item(at.ALARM) == at.GIVEN:
            self.set_back()

    # -- state

    def state(self, weights: bool = True) -> State:
        """Return the state as a value, with a copy of the weights unless ``weights`` is False."""
        vector, stored = self.vector, self.stored if weights else None
        return State(
            rounds=int(vector[at.ROUNDS]),
            features=self.features,
            transposed=self.transposed,
            scale=float(vector[at.SCALE]),
            norm_sq=float(vector[at.NORM_SQ]),
            refresh=int(vector[at.REFRESH]),
            largest_input_sq=float(vector[at.LARGEST_INPUT_SQ]),
            eta=float(vector[at.ETA]),
            inner=float(vector[at.INNER]),
            most_eta=float(vector[at.MOST_ETA]) if np.isfinite(vector[at.MOST_ETA]) else 0.0,
            restarted=bool(vector[at.ALARM] == at.HEEDED),
            weights=None if stored is None else aligned(stored, not self.transposed),
            rate_memory=vector[at.MEMORY : self._split].copy(),
            detector_memory=vector[self._split :].copy(),
        )

    def restore(self, state: State) -> None:
        """Go on from a trusted state. Its weights are not copied: the engine moves them."""
        self.stored, self.transposed = state.weights, state.transposed
        self.features = state.features
        vector = self.vector
        vector[at.ROUNDS], vector[at.SCALE] = state.rounds, state.scale
        vector[at.NORM_SQ], vector[at.REFRESH] = state.norm_sq, state.refresh
        vector[at.LARGEST_INPUT_SQ], vector[at.ETA] = state.largest_input_sq, state.eta
        vector[at.INNER] = state.inner
        vector[at.MOST_ETA] = state.most_eta or np.inf
        vector[at.MEMORY : self._split] = state.rate_memory
        vector[self._split :] = state.detector_memory
        vector[at.ALARM] = at.HEEDED if state.restarted else at.QUIET  # last: see settle()

    def checked(self, state: State) -> State:
        """Return a state of any origin with a copy of its weights, if it fits these parts."""
        first, memory = self._first, state.rate_memory
        sizes = (len(self.vector), first.detector_memory.size)
        given = at.MEMORY + memory.size
        if (given + state.detector_memory.size, state.detector_memory.size) != sizes:
            raise InputError(
                f"expected {self._split - at.MEMORY} numbers of {self.parts.rate!r} and "
                f"{sizes[1]} of {self.parts.restart!r} in the state, but got "
                f"{given - at.MEMORY} and {state.detector_memory.size}"
            )
        for numbers in (memory, state.detector_memory):
            if np.isnan(numbers).any():
                raise InputError(f"the state has a memory that is not a number: {numbers}")
        if state.weights is None:
            if state.features is not None:
                raise InputError(f"a state with {state.features} features must have weights")
            return state
        if state.features is None:
            raise InputError("a state with weights must say how many features there are")
        shape = self.parts.shape(state.features)
        stored = state.weights
        if stored.shape != (shape[::-1] if state.transposed else shape):
            raise InputError(
                f"expected weights of shape {shape}, but got "
                f"{stored.T.shape if state.transposed else stored.shape}"
            )
        if stored.dtype != self.dtype:
            raise InputError(f"expected weights of {self.dtype}, but got {stored.dtype}")
        norm = self._norm(stored.T if state.transposed else stored, state.scale)
        radius = float(self.vector[at.RADIUS])
        followed = self.parts.have_kernels and np.isfinite(radius)
        if followed and abs(norm**2 - state.norm_sq) > PRECISION["float32"] * radius**2:
            raise InputError(f"the norm of the weights is {norm:.6g}: the state has another")
        if state.refresh > state.rounds + refresh_after(stored):
            raise InputError("the state says that the norm will not be computed again")
        return state.replaced(weights=aligned(stored, apart=not state.transposed))

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
        if not norm <= self.vector[at.RADIUS] * (1.0 + allowed) or away > allowed * max(1.0, norm):
            raise InputError(f"the norm {norm:.6g} of the weights is outside their domain")
        return norm

    def started(self, weights: np.ndarray) -> State:
        """Return the state before the first round with these weights, one row per score."""
        extra = self.parts.shape(0)[1]
        if weights.ndim != 2 or len(weights) != self.parts.shape(0)[0] or weights.shape[1] < extra:
            raise InputError(
                f"expected weights with {self.parts.shape(0)[0]} rows, but got the shape "
                f"{weights.shape}"
            )
        return self._first.replaced(
            features=weights.shape[1] - extra,
            weights=aligned(weights, apart=True),
            norm_sq=self._norm(weights, 1.0) ** 2,
            refresh=refresh_after(weights),
        )

    def filled(self, state: State) -> State:
        """Return a state, with first weights if it is from before the first input."""
        if state.weights is not None or self.stored is None:
            return state
        return state.replaced(
            features=self.features,
            transposed=self.transposed,
            weights=self.parts.first_weights(np.empty_like(self.stored)),
            refresh=refresh_after(self.stored),
        )

    def holds(self, rows: Rows) -> bool:
        """Say whether the weights are ready for rows of this kind."""
        return self.stored is not None and self.transposed == self.wants_transposed(rows)

    def hold(self, rows: Rows) -> None:
        """Make the weights ready for rows of this kind; they begin at zero."""
        if self.stored is None:
            transposed = self.wants_transposed(rows)
            scores, columns = self.parts.shape(rows.features)
            shape = (columns, scores) if transposed else (scores, columns)
            stored = aligned_zeros(shape, self.dtype, apart=not transposed)
            self.stored = self.parts.first_weights(stored)
            self.transposed, self.features = transposed, rows.features
            self.vector[at.REFRESH] = refresh_after(stored)
        elif self.transposed != self.wants_transposed(rows):
            self.stored = aligned(self.stored.T, apart=self.transposed)
            self.transposed = not self.transposed

    def wants_transposed(self, rows: Rows) -> bool:
        """Say whether these rows want the weights transposed."""
        return False

    @property
    def weights(self) -> np.ndarray | None:
        """The weights, one row per score: a view where their scale is 1."""
        if self.stored is None:
            return None
        rows, scale = self.stored.T if self.transposed else self.stored, self.vector[at.SCALE]
        return rows if scale == 1.0 else (rows * scale).astype(rows.dtype, copy=False)

    @property
    def rounds(self) -> int:
        """How many rounds were played or learned from."""
        return int(self.vector.item(at.ROUNDS))

    @property
    def first_distance(self) -> float:
        """The largest distance of a comparator to first weights; later, to any others."""
        domain, weights = self.parts.domain, self.weights
        if self.rounds or (weights is None and domain.radius is None):
            return domain.diameter
        return domain.farthest(np.zeros((1, 1)) if weights is None else weights)

    @property
    def largest_input_sq(self) -> float:
        """The largest squared norm of an input so far, times its sample weight."""
        return float(self.vector[at.LARGEST_INPUT_SQ])

    # -- scores

    def scores(self, rows: Rows, t: int) -> np.ndarray:
        """Return the scores of one row, at the cost of its entries."""
        scores = rows.scores(self._held(rows), self.transposed, t, self.parts.intercept)
        return scores * self.vector[at.SCALE]

    def look(self, rows: Rows, uniforms: np.ndarray, means: bool = True) -> Asked:
        """Predict rounds by a uniform number each, and change nothing; ``means`` if wanted."""
        if (bad := rows.first_bad_row(self.dtype)) is not None:
            refuse(rows, bad)
        task, decoder = self.parts.task, self.parts.decoder
        scores = [self.scores(rows, t) for t in range(rows.rounds)]
        pairs = zip(scores, uniforms, strict=True)
        made = [task.predictions.numbers(decoder.draw(theta, uniform)) for theta, uniform in pairs]
        predictions = task.predictions.rows(len(made), max(map(len, made), default=0))
        for row, numbers in zip(predictions, made, strict=True):
            row[: len(numbers)] = numbers
        encoded = [decoder.mean_loss_encoding(theta) for theta in scores] if means else ()
        if task.layout.ragged or not means:
            return Asked(predictions, encoded)
        return Asked(predictions, np.array(encoded), scores=np.array(scores)[np.newaxis])

    def all_scores(self, rows: DenseRows | SparseRows) -> np.ndarray:
        """Return the scores of all rows, a row each; one weight vector per score."""
        scores = rows.all_scores(self._held(rows), self.transposed, self.parts.intercept)
        return scores * self.vector[at.SCALE]

    def _held(self, rows: Rows) -> np.ndarray:
        """Return the weights as they are stored, or what they will begin as."""
        if self.stored is not None:
            return self.stored
        return self.parts.first_weights(np.empty(self.parts.shape(rows.features)))

    # -- rounds

    def compare(self, weights: np.ndarray) -> tuple[float, float]:
        """Begin an account against a comparator: return inner product and squared norm, exactly."""
        own = np.asarray(self.weights, dtype=np.float64)
        self.vector[at.INNER] = float(np.vdot(own, weights))
        return float(self.vector[at.INNER]), float(np.vdot(own, own))

    def play(self, block: Block) -> int:
        """Play the rounds, also past alarms, and record them; return how many were accepted."""
        if self.parts.restart is None:
            return self.advance(block)
        return sum(self.stretches(block))

    def play_one(
        self,
        row: Rows,
        labels: CheckedLabels,
        uniforms: np.ndarray,
        trace: np.ndarray,
        prediction: np.ndarray,
    ) -> int:
        """Play one round into columns of length 1; return 1 if it was accepted, else 0."""
        block = Block(row, 0, 1, labels, uniforms, trace, prediction).scored_below()
        if self.parts.restart is None and self.compiled:
            return self.advance(block)
        before, rounds = Checkpoint(self, whole=False), self.rounds
        try:
            return self.play(block)
        except BaseException:
            self.go_back(before, rounds)
            raise

    def stretches(self, block: Block) -> Iterator[int]:
        """Play the rounds, and pause at every restart before the weights are reset.

        Yield how many rounds were played since the last pause. Restarts are recorded in the block,
        at the next round that is learned from; a replay restarts where the block says.
        """
        done, count, noted = 0, block.stop - block.start, block.restarted
        while done < count:
            learned = done if block.asked is None else done + _leading(block.asked[done:])
            if self.replay and noted is not None and noted[done]:
                self.set_back()
            elif noted is not None and not self.replay and learned < count:
                noted[learned] = self.vector[at.ALARM] == at.HEEDED
            alarm = float(self.vector[at.ALARM])
            self.vector[at.ALARM] = at.QUIET
            size = count - done
            if self.replay and noted is not None and noted[done + 1 :].any():
                size = 1 + int(np.argmax(noted[done + 1 :]))
            played = self.advance(block if size == count else block.cut(done, size))
            if played:
                yield played
            done += played
            if self.vector[at.ALARM] == at.GIVEN:
                self.set_back()
                continue
            if done <= learned:  # what is refused, or only predicted, does not use up a new start
                self.vector[at.ALARM] = alarm
            if played < size:
                return

    def set_back(self) -> None:
        """Restart: reset the weights, and the memories of rate and detector."""
        assert self.stored is not None
        rounds, largest = self.rounds, self.largest_input_sq
        self.restore(
            self._first.replaced(
                rounds=rounds,
                largest_input_sq=largest,
                features=self.features,
                transposed=self.transposed,
                weights=self.parts.first_weights(self.stored),
                refresh=rounds + refresh_after(self.stored),
                restarted=True,
            )
        )

    def advance(self, block: Block) -> int:
        """Play the rounds up to the first alarm; return how many were accepted."""
        raise InputError("an engine must say how it plays")


def _leading(asked: np.ndarray) -> int:
    """Return how many rounds come before the first one that is learned from."""
    return len(asked) if asked.all() else int(np.argmin(asked))
