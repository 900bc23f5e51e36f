"""Members that predict classes or signs by scores that are logarithms of chances."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np

from driftline.errors import InputError
from driftline.features import Map
from driftline.inputs import DenseRows, Rows, SparseRows, rows_of
from driftline.kernels import round_table
from driftline.learner import Asked, Member, round_rows
from driftline.parts import check_plain
from driftline.state import State
from driftline.tasks import Task
from driftline.trace import Batch
from driftline.typing import CheckedLabels, Input, Inputs, Json, Label, Saved

__all__ = ["EVEN", "ClassMember", "RowMember"]

#: The share of chances that is given to all classes alike, where a model is sure of one.
EVEN = 1e-3


class ClassMember(Member):
    """Base of members without gradient steps: the class of highest score is predicted."""

    learned: ClassVar[tuple[str, ...]] = (*Member.learned, "_width", "_rounds")

    def __init__(self, task: Task, seed: int | None, features: Map | None):
        if not isinstance(task, Task) or not self._suits(task):
            raise InputError(
                f"expected a task of classes, such as dl.tasks.Multiclass(3), but got {task!r:.80}"
            )
        super().__init__(task, seed, features)
        self._width: int | None = None
        self._rounds = 0
        self._classes, self._sign = len(task.labels.all), task.labels.signs

    def _suits(self, task: Task) -> bool:
        """Return whether the member is for tasks like this: classes and signs."""
        return task.geometry.classes > 0

    @abstractmethod
    def _class_scores(self, rows: Rows) -> np.ndarray:
        """Return the scores of every class of mapped rows, and change nothing."""

    # -- facts

    @property
    def nats(self) -> float | None:
        """Scores are log-chances, and losses are in nats."""
        return 1.0

    @property
    def rounds(self) -> int:
        """How many rounds were learned from."""
        return self._rounds

    @property
    def width(self) -> int | None:
        """How many features mapped rows have, None before the first."""
        return self._width

    def describe(self) -> str:
        """Say what is learned, and that no theorem applies."""
        return f"{self!r}\nbound    none: {self.no_theorem}"

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
        return self._task_scores(self._class_scores(rows))

    def _task_scores(self, scores: np.ndarray) -> np.ndarray:
        """Return the scores of classes as a task has them: of signs, the difference."""
        return scores[:, 1:] - scores[:, :1] if self._sign else scores

    def _look_mapped(self, rows: Rows, numbers: np.ndarray, whole: bool) -> Asked:
        scores, task = self._score_mapped(rows), self.task
        made = task.many.top(scores)
        if not whole:
            return Asked(made)
        return Asked(made, task.many.encode_losses(made, task.dim), scores=scores[np.newaxis])

    # -- the state as a value

    @abstractmethod
    def _learned(self, weights: bool) -> dict[str, Any]:
        """Return what was learned, by the names of the fields of a state; all if ``weights``."""

    @abstractmethod
    def _resume(self, state: State) -> None:
        """Go on from what was learned, which is valid."""

    def _state(self, weights: bool = True) -> State:
        return State(
            key=self._draws.key,
            tickets=self._tickets,
            **self._waiting,
            rounds=self.rounds,
            features=self._width,
            map=None if self.mapper is None else self.mapper.to_saved(),
            **self._learned(weights),
        )

    def _adopt(self, state: State) -> None:
        self._resume_tickets(state)
        self._resume(state)
        self._width, self._rounds = state.features, state.rounds

    def _copies_cheaply(self, size: int) -> bool:
        return True

    def _origin(self, keep: bool) -> State | None:
        return self._state() if keep else None

    def _filled(self, origin: State | None, keep: bool) -> State | None:
        return origin

    # -- files

    def _to_saved(self) -> Saved:
        for part in (self.task, self.map):
            if part is not None:
                check_plain(part)
        state, arrays = self._state().to_saved()
        return {"kind": type(self).__name__, "config": self.config(), "state": state}, arrays

    @classmethod
    @abstractmethod
    def from_config(cls, config: Json) -> Self:
        """Return a new member from what :meth:`config` returned."""

    @classmethod
    def from_saved(cls, about: Json, arrays: Mapping[str, np.ndarray]) -> Self:
        """Return the member from what :meth:`to_saved` returned."""
        made = cls.from_config(about["config"])
        made.restore(State.from_saved(about["state"], arrays))
        return made

    # -- what a shell asks for

    def _copies(self, rows: Rows) -> bool:
        return True

    def _room(self, labels: CheckedLabels) -> Batch:
        table, columns = round_table(len(labels))
        columns["prediction"] = np.empty((len(labels), 1), dtype=np.int64)
        return Batch(columns, table=table)


class RowMember(ClassMember):
    """Base of members that have no kernel: rows are scored and learned from in Python."""

    @abstractmethod
    def _learned_rows(
        self, rows: Rows, start: int, stop: int, codes: np.ndarray, weights: np.ndarray
    ) -> np.ndarray:
        """Return the scores of every class of some rows, each before it is learned from.

        ``codes`` are those of the labels. Rows of weight 0 are not learned from.
        """

    def _play_mapped(
        self, rows: Rows, start: int, stop: int, labels: CheckedLabels, number: int, room: Batch
    ) -> None:
        assert room.table is not None
        given = room.columns.get("sample_weight"), room.columns.get("asked")
        made, table, theta = self._played_rows(rows, start, stop, np.asarray(labels), *given)
        room["prediction"][:], room.table[:] = made, table
        if (scores := room.columns.get("scores")) is not None:
            scores[:] = theta

    def _learn_one_mapped(
        self, row: Rows, label: Label, number: int
    ) -> tuple[np.ndarray, np.ndarray]:
        made, table, theta = self._played_rows(row, 0, 1, np.asarray(label)[np.newaxis])
        column = np.zeros(round_rows(self.task))
        column[: len(table)], column[-self.task.dim :] = table[:, 0], theta[0]
        return made[0], column

    def _played_rows(
        self,
        rows: Rows,
        start: int,
        stop: int,
        labels: np.ndarray,
        weights: np.ndarray | None = None,
        asked: np.ndarray | None = None,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return predictions, columns of the record, and scores."""
        counts = np.ones(stop - start) if weights is None else weights
        codes = self.task.labels.codes(labels[:, 0])
        told = counts if asked is None else np.where(asked, 0.0, counts)
        scores = self._learned_rows(rows, start, stop, codes, told)
        theta = self._task_scores(scores)
        made = self.task.many.top(theta)
        table, columns = round_table(stop - start)
        columns["loss"][:] = -counts * scores[np.arange(stop - start), codes]
        columns["risk"][:] = columns["target_loss"][:] = counts * self.task.many.losses(
            made, labels
        )
        columns["eta"][:] = 1.0
        learned = stop - start - (0 if asked is None else int(np.count_nonzero(asked)))
        self._width = rows.features if learned else self._width
        self._rounds += learned
        return made, table, theta
