r"""Members whose state is one vector of numbers, moved by one kernel.

A kernel scores a row from this memory, and then updates the memory with the row and its label
(:data:`driftline.kernels.MEMBER`). Scores are logarithms of probabilities, the class of highest
score is predicted, and the recorded loss is :math:`-\ln p(y)`. There is no gradient: the trace has
steps of 1 and gradients of 0.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Self

import numpy as np

from driftline.engines import warn_without_numba
from driftline.errors import InputError
from driftline.features import Map
from driftline.inputs import DenseRows, Rows, refuse
from driftline.inputs.flags import every, none
from driftline.kernels import TRACE_COLUMNS, Kernel, helper
from driftline.learner import Growth, round_rows
from driftline.learner.member import Played
from driftline.losses import Loss
from driftline.members.classes import ClassMember
from driftline.parts import from_config
from driftline.state import State
from driftline.state.arena import Field, Layout, grown_places
from driftline.tasks import Task
from driftline.tasks.abstaining import log_sum
from driftline.trace import Batch
from driftline.typing import CheckedLabels, Json, Label

__all__ = [
    "CountingMember",
    "all_finite",
    "check_weights",
    "dense",
    "settle",
    "weight_of",
]

LOSS, RISK, TARGET, ETA, GRAD = range(len(TRACE_COLUMNS))

#: The largest size of a memory, in numbers.
MOST = 2**28

NO_NUMBERS = np.zeros(0)

#: Sample weights of rounds that all count once.
ONCE = np.zeros(0)


@helper
def all_finite(x):
    """Say whether all entries of a row are finite."""
    for j in range(x.size):
        if not abs(x[j]) < math.inf:
            return False
    return True


@helper
def weight_of(sample_weight, t):
    """Return the sample weight of round t."""
    return sample_weight[t] if sample_weight.size > 0 else 1.0


@helper
def settle(scores, label, weight, constants, t, trace, predictions):
    """Record round t: the prediction, its target loss, and ``-ln p(label)``, times its weight.

    The last two constants are up to which ``-ln p`` the most probable class is predicted, and the
    cost of no answer. Return that class.
    """
    top = 0
    for k in range(1, scores.size):
        if scores[k] > scores[top]:
            top = k
    doubt = log_sum(scores, top)
    trace[LOSS, t] = weight * max(0.0, doubt + scores[top] - scores[label])
    predictions[t, 0] = top
    trace[RISK, t] = 0.0 if top == label else weight
    if doubt > constants[constants.size - 2]:
        predictions[t, 0] = -1
        trace[RISK, t] = weight * constants[constants.size - 1]
    trace[TARGET, t] = trace[RISK, t]
    trace[ETA, t] = 1.0
    trace[GRAD, t] = 0.0
    return top


def check_weights(weights: np.ndarray, seen: int) -> None:
    """Refuse sample weights of 0 among kept rows; ``seen`` rows fill the first."""
    if (weights[:seen] <= 0.0).any():
        raise InputError("rows that are kept count more than 0")


class CountingMember(ClassMember):
    """Base of members with a kernel and a memory, for classes and signs.

    A kind says its ``settings``, and declares the fields of its memory.
    """

    learned: ClassVar[tuple[str, ...]] = (*ClassMember.learned, "memory")
    scratch = ("_scores", "_column", "_prediction")

    kernel: ClassVar[Kernel]

    #: Whether rounds are played by the kernel.
    compiled: ClassVar[bool] = True

    def __init__(
        self,
        task: Task,
        features: Map | None,
        settings: Mapping[str, float],
        seed: int | None,
    ):
        super().__init__(task, seed, features)
        if self.compiled and task.kernels is None:
            raise InputError(
                f"{type(self).__name__} needs a task with kernels, but got {task!r:.80}"
            )
        if self.compiled:
            warn_without_numba()
        self.settings = settings
        #: The memory; empty before the first row.
        self.memory = np.zeros(0)
        self._unshare()
        self._scores = np.zeros((1, self._classes))
        self._column = np.empty((round_rows(task), 1))
        self._prediction = np.empty((1, 1), dtype=np.int64)

    # -- what every kind says

    @abstractmethod
    def constants(self, width: int) -> list[float]:
        """Return the kernel's constants, for rows of this length."""

    @abstractmethod
    def fields(self, width: int) -> tuple[Field, ...]:
        """Return what is learned of rows of this length, in the order of the kernel.

        Fields grow by the axes "classes" and "features".
        """

    @abstractmethod
    def space(self, width: int) -> int:
        """Return how many numbers of scratch space the kernel needs at most."""

    def check(self, memory: Any, width: int) -> None:
        """Refuse a memory that no rows can lead to, by name; each field is in its range."""
        return

    def add(self, memory: Any, places: np.ndarray, zero: np.ndarray) -> None:
        """Write what the memory has of new features; see :meth:`ClassMember._add`."""
        return

    # -- the memory

    def _unshare(self) -> None:
        super()._unshare()
        #: What the kernel needs for rows of a length: this, constants, scratch space.
        self._sized: tuple[int | None, np.ndarray, np.ndarray] = (None, NO_NUMBERS, NO_NUMBERS)

    def _ready(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the kernel's constants and scratch space for rows of the length that is known."""
        if (width := self._width) != self._sized[0] and width is not None:
            self._sized = width, self._all_constants(width), np.empty(self.space(width))
        return self._sized[1:]

    def layout(self, width: int, memory: np.ndarray | None = None) -> Layout:
        """Return where the fields lie in this memory; at the start, in one without it."""
        return Layout(self.fields(width), classes=self._classes, features=width)

    def size(self, width: int) -> int:
        """Return the size of the memory at the start, for rows of this length."""
        return self.layout(width).size

    def started(self, width: int) -> np.ndarray:
        """Return the memory before the first row, unless that would be too large."""
        layout = self.layout(width)
        if layout.size > MOST:
            raise InputError(
                f"{self!r} would remember {layout.size} numbers of {width} features: expected "
                f"{MOST} at most"
            )
        return layout.new()

    def with_features(
        self, memory: np.ndarray, width: int, places: np.ndarray, zero: np.ndarray
    ) -> np.ndarray:
        """Return the memory for more features."""
        made = self.layout(width, memory).grown(memory, features=places)
        self.add(self.layout(len(places), made).views(made), places, zero)
        return made

    @property
    def views(self) -> Any:
        """Views of the fields of the memory, by name."""
        assert self._width is not None
        return self.layout(self._width, self.memory).views(self.memory)

    # -- facts

    @property
    def no_theorem(self) -> str:
        """Why no theorem bounds the loss beforehand: none is known for this kind of member."""
        return "what is counted makes no gradient steps"

    @property
    def never_refuses(self) -> bool:
        """Whether no finite row can be refused: True."""
        return True

    def config(self) -> Json:
        """Return task, map and settings as plain data."""
        made = {"kind": type(self).__name__, "task": self.task.config(), **self.settings}
        return made if self.map is None else made | {"features": self.map.config()}

    def __repr__(self) -> str:
        """Name the task, the settings and the map."""
        words = [repr(self.task), *(f"{k}={v!r}" for k, v in self.settings.items())]
        return f"{type(self).__name__}({', '.join([*words, f'features={self.map!r}'])})"

    def _class_scores(self, rows: Rows) -> np.ndarray:
        """Return the scores of every class; any number of threads may call this at once."""
        (inputs,) = dense(rows).arrays(0, rows.rounds)
        made = np.zeros((rows.rounds, self._classes))
        width = self._width
        if width is None:
            width = rows.features
            memory, constants = self.started(width), self._all_constants(width)
        else:
            memory, constants = self.memory, self._ready()[0]
        labels, rest = np.zeros((0, 1), np.int64), np.zeros((0, 0))
        given = (inputs, labels, ONCE, constants, memory, np.empty(self.space(width)))
        good = self.kernel(*given, False, none(0), made, rest, labels)
        if good < rows.rounds:
            refuse(rows, good)
        return made

    # -- rounds

    def _play_mapped(
        self, rows: Rows, start: int, stop: int, labels: CheckedLabels, number: int, room: Batch
    ) -> None:
        assert room.table is not None
        (inputs,) = dense(rows).arrays(start, stop)
        self._begin(rows)
        weights, wanted = room.columns.get("sample_weight", ONCE), room.columns.get("scores")
        given = (np.asarray(labels), room.table, room["prediction"], np.ascontiguousarray(weights))
        scores = None if wanted is None else np.empty((len(inputs), self._classes))
        played = self._advance(inputs, *given, room.columns.get("asked"), scores)
        if played < len(inputs):
            refuse(rows, start + played)
        if wanted is not None and scores is not None:
            wanted[:] = self._task_scores(scores)

    def _learn_one_mapped(
        self, row: Rows, label: Label, number: int
    ) -> tuple[np.ndarray, np.ndarray]:
        (inputs,) = dense(row).arrays(0, 1)
        if self._width is None and not np.isfinite(inputs).all():
            refuse(row, 0)  # before memory is allocated for it
        self._begin(row)
        if not self._advance(inputs, label[np.newaxis], self._column, self._prediction):
            refuse(row, 0)
        self._column[-self.task.dim :, 0] = self._task_scores(self._scores)[0]
        return self._prediction[0], self._column[:, 0]

    def _begin(self, rows: Rows) -> None:
        """Allocate the memory for rows like these, if they are the first."""
        if self._width is None:
            self._hold(rows.features, self.started(rows.features))

    def _hold(self, width: int, memory: np.ndarray) -> None:
        self._width, self.memory = width, memory

    def _round(self, row: Rows, label: Label | None, play: Callable[[Rows], Played]) -> Played:
        if self._width is not None:
            return super()._round(row, label, play)
        try:
            return super()._round(row, label, play)
        except BaseException:
            if self.rounds == 0:  # no memory for a first round that failed
                self._width, self.memory = None, np.zeros(0)
            raise

    def _all_constants(self, width: int) -> np.ndarray:
        """Return the kernel's constants, and behind them when there is no answer."""
        return np.array([*self.constants(width), *self.task.predictions.doubt], dtype=np.float64)

    def _advance(
        self,
        inputs: np.ndarray,
        labels: np.ndarray,
        trace: np.ndarray,
        predictions: np.ndarray,
        sample_weight: np.ndarray = ONCE,
        asked: np.ndarray | None = None,
        scores: np.ndarray | None = None,
    ) -> int:
        """Play rounds up to the first row that is not finite; return how many were played."""
        learning = every(len(inputs)) if asked is None else ~asked
        codes = self.task.labels.codes(labels)
        constants, space = self._ready()
        given = (inputs, codes, sample_weight, constants, self.memory, space, True)
        room = self._scores if scores is None else scores
        played = int(self.kernel.compiled(*given, learning, room, trace, predictions))
        if self._sign:
            predictions *= 2
            predictions -= 1
        self._rounds += played if asked is None else int(np.count_nonzero(learning[:played]))
        return played

    # -- the state as a value

    def _learned(self, weights: bool) -> dict[str, Any]:
        return {"memory": self.memory.copy() if weights and self._width is not None else None}

    def _checked(self, state: State) -> State:
        memory, width = state.memory, state.features
        if state.weights is not None:
            raise InputError(f"expected a state with a memory, but got weights: {state!r:.80}")
        if memory is None or width is None:
            if memory is not None or width is not None or state.rounds:
                raise InputError(
                    f"expected a state with a memory of its rows, or before the first one, but got "
                    f"{width} features and {state.rounds} rounds"
                )
            return state
        if not 1 <= width <= 10**8:
            raise InputError(f"rows have 1 feature or more, not {width}")
        self.check(self.layout(width, memory).check(memory), width)
        return state

    def _resume(self, state: State) -> None:
        if state.features is None or state.memory is None:
            self._width, self.memory = None, np.zeros(0)
        else:
            self._hold(state.features, np.array(state.memory))

    def _add(self, made: Self, state: State, more: Growth) -> State:
        memory, width = state.memory, self._width
        if memory is None or width is None:
            return state
        layout = self.layout(width, memory)
        old, new = layout.sizes["classes"], made.layout(width).sizes["classes"]
        memory = layout.grown(memory, classes=grown_places(old, new))
        if more.places is not None:
            memory = made.with_features(memory, width, more.places, more.zero)
            width = len(more.places)
        return state.replaced(memory=memory, features=width)

    def _like(self, classes: int | None = None) -> Self:
        return self._for_task(self._with_more(self.task, classes))

    def _for_task(self, task: Task) -> Self:
        kind: Any = type(self)
        made: Self = kind(self._made_of(task), features=self.map, **self.settings)
        return made

    def _own_bytes(self, width: int, task: Task) -> int:
        return 8 * self._for_task(task).size(width)

    def _made_of(self, task: Task) -> Task | Loss:
        """Return the first argument of a new member of this kind, for a task."""
        return task

    # -- files

    @classmethod
    def from_config(cls, config: Json) -> Self:
        """Return a new member from what :meth:`config` returned."""
        fields = {name: from_config(value) for name, value in config.items() if name != "kind"}
        return cls(**{"features": None, **fields})

    # -- what a shell asks for

    def _copies_cheaply(self, size: int) -> bool:
        return self.memory.size <= size

    def _filled(self, origin: State | None, keep: bool) -> State | None:
        if origin is None or origin.memory is not None or self._width is None:
            return origin
        return origin.replaced(memory=self.started(self._width), features=self._width)


def dense(rows: Rows) -> DenseRows:
    """Return rows that are dense, or refuse them."""
    if not isinstance(rows, DenseRows):
        raise InputError("this member is for dense rows: give an array, as by .toarray()")
    return rows
