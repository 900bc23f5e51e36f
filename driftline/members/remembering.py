r"""Members whose state is one vector of numbers, the fields of which have names.

A kind declares the fields of its memory (:class:`~driftline.state.arena.Field`) and the arguments
that it is made with. Its state, growth, files and words follow from these.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from driftline.errors import InputError
from driftline.inputs import DenseRows, Rows, SparseRows, rows_of
from driftline.learner import Growth, Played
from driftline.parts import Part, check_plain, from_config
from driftline.state import State
from driftline.state.arena import Field, Layout, grown_places
from driftline.tasks import Task
from driftline.typing import Input, Inputs, Json, Label, Saved

if TYPE_CHECKING:
    from driftline.learner import Member as Base
else:
    Base = object

__all__ = ["REMEMBERED", "Remembering", "dense"]

#: The largest size of a memory, in numbers.
MOST = 2**28

#: The names of what learning changes.
REMEMBERED = ("_width", "_rounds", "memory")


class Remembering(Base):
    """An ability of members: their state is a memory of named fields."""

    #: The memory; empty before the first row.
    memory: np.ndarray
    _width: int | None
    _rounds: int

    #: How long the axis "classes" is.
    _classes: int

    def _forget_all(self) -> None:
        """Begin without a memory."""
        self._width, self._rounds, self.memory = None, 0, np.zeros(0)

    # -- what every kind says

    def _options(self, task: Task) -> dict[str, Any]:
        """Return the arguments of a member of this kind for a task; the first is positional."""
        raise NotImplementedError

    def fields(self, width: int) -> tuple[Field, ...]:
        """Return what is learned of rows of this length, in the order of the kernel.

        Fields grow by the axes "classes" and "features".
        """
        return ()

    def _class_scores(self, rows: Rows) -> np.ndarray:
        """Return the scores of every class of mapped rows, and change nothing."""
        raise NotImplementedError

    def check(self, memory: Any, width: int) -> None:
        """Refuse a memory that no rows can lead to, by name; each field is in its range."""
        return

    def add(self, memory: Any, places: np.ndarray, zero: np.ndarray) -> None:
        """Write what the memory has of new features; see :class:`~driftline.learner.Growth`."""
        return

    # -- the memory

    def layout(self, width: int, memory: np.ndarray | None = None) -> Layout:
        """Return where the fields lie in this memory; at the start, in one without it."""
        return Layout(self.fields(width), classes=self._classes, features=width)

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

    # -- facts and words

    @property
    def rounds(self) -> int:
        """How many rounds were learned from."""
        return self._rounds

    def _config(self) -> Json:
        """Return the arguments of the member as plain data."""
        own = {name: _plain(value) for name, value in self._options(self.task).items()}
        made = {"kind": type(self).__name__, **own}
        return made if self.map is None else made | {"features": self.map.config()}

    @classmethod
    def from_config(cls, config: Json) -> Self:
        """Return a new member from what :meth:`_config` returned."""
        fields = {name: from_config(value) for name, value in config.items() if name != "kind"}
        return cls(**{"features": None, **fields})

    def __repr__(self) -> str:
        """Name the arguments and the map."""
        first, *rest = self._options(self.task).items()
        words = [repr(first[1]), *(f"{k}={v!r}" for k, v in rest), f"features={self.map!r}"]
        return f"{type(self).__name__}({', '.join(words)})"

    def describe(self) -> str:
        """Say what is learned, and that no theorem applies."""
        return f"{self!r}\nbound    none: {self._fixed.no_theorem}"

    # -- scores

    def scores(self, x: Input) -> np.ndarray:
        """Return the scores of an input."""
        row = self._row(x)
        with self._turn.lock:
            self._check_features(row)
            return self._score_mapped(self._mapped(row))[0]

    def score_rows(self, inputs: Inputs) -> np.ndarray:
        """Return the scores of many inputs, a row each."""
        rows = inputs if isinstance(inputs, (DenseRows, SparseRows)) else rows_of(inputs)
        self._check_features(rows)
        with self._turn.lock:
            return self._score_mapped(self._mapped(rows))

    def _score_mapped(self, rows: Rows) -> np.ndarray:
        """Return the scores of mapped rows."""
        return self._class_scores(rows)

    # -- the state as a value

    def _memory_fields(self, weights: bool) -> dict[str, Any]:
        """Return what was learned, by the names of the fields of a state; all if ``weights``."""
        return {"memory": self.memory.copy() if weights and self._width is not None else None}

    def _resume(self, state: State) -> None:
        """Go on from what was learned, which is valid."""
        if state.features is None or state.memory is None:
            self._width, self.memory = None, np.zeros(0)
        else:
            self._hold(state.features, np.array(state.memory))

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

    def _state(self, weights: bool = True) -> State:
        return State(
            key=self._draws.key,
            tickets=self._tickets,
            **self._waiting,
            rounds=self.rounds,
            features=self._width,
            map=None if self.mapper is None else self.mapper.to_saved(),
            **self._memory_fields(weights),
        )

    def _adopt(self, state: State) -> None:
        self._resume_tickets(state)
        self._resume(state)
        self._width, self._rounds = state.features, state.rounds

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
        made: Self = kind(**self._options(task), features=self.map)
        return made

    def _own_bytes(self, width: int, task: Task) -> int:
        like = self if task == self.task else self._for_task(task)
        return like.layout(width).size * 8

    def _copies(self, rows: Rows) -> bool:
        return True

    def _copies_cheaply(self, size: int) -> bool:
        return self.memory.size <= size

    def _origin(self, keep: bool) -> State | None:
        return self._state() if keep else None

    def _filled(self, origin: State | None, keep: bool) -> State | None:
        if origin is None or origin.memory is not None or self._width is None:
            return origin
        return origin.replaced(memory=self.started(self._width), features=self._width)

    # -- files

    def _to_saved(self) -> Saved:
        for part in (*self._options(self.task).values(), self.map):
            if isinstance(part, Part):
                check_plain(part)
        state, arrays = self._state().to_saved()
        return {"kind": type(self).__name__, "config": self._config(), "state": state}, arrays

    @classmethod
    def from_saved(cls, about: Json, arrays: Mapping[str, np.ndarray]) -> Self:
        """Return the member from what :meth:`to_saved` returned."""
        made = cls.from_config(about["config"])
        made.restore(State.from_saved(about["state"], arrays))
        return made


def _plain(value: Any) -> Any:
    """Return an argument as plain data."""
    if isinstance(value, tuple):
        return [_plain(own) for own in value]
    return value.config() if isinstance(value, Part) else value


def dense(rows: Rows) -> DenseRows:
    """Return rows that are dense, or refuse them."""
    if not isinstance(rows, DenseRows):
        raise InputError("this member is for dense rows: give an array, as by .toarray()")
    return rows
