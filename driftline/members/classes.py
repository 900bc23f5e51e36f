r"""Members that predict classes or signs by scores that are logarithms of chances.

A kernel scores a row from a memory, and then updates the memory with the row and its label
(:data:`driftline.kernels.MEMBER`). The class of highest score is predicted, and the recorded loss
is :math:`-\ln p(y)`. There is no gradient: the trace has steps of 1 and gradients of 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from driftline.engines import warn_without_numba
from driftline.errors import InputError
from driftline.features import Map
from driftline.inputs import Rows, refuse
from driftline.inputs.flags import every, none
from driftline.kernels import Kernel, round_table
from driftline.learner import Asked, Facts, Member, round_rows
from driftline.members.counting import ETA, GRAD, LOSS, RISK, TARGET
from driftline.members.remembering import REMEMBERED, Remembering, dense
from driftline.tasks import Task
from driftline.trace import Batch
from driftline.typing import CheckedLabels, Label

__all__ = ["EVEN", "ClassMember"]

#: The share of chances that is given to all classes alike, where a model is sure of one.
EVEN = 1e-3

NO_NUMBERS = np.zeros(0)

#: Sample weights of rounds that all count once.
ONCE = np.zeros(0)


class ClassMember(Remembering, Member):
    """Base of members without gradient steps: the class of highest score is predicted.

    A kind has a kernel, says its ``settings``, and declares the fields of its memory.
    """

    _learned: ClassVar[tuple[str, ...]] = (*Member._learned, *REMEMBERED)
    _scratch = ("_scores", "_column", "_prediction")

    _fixed = Facts(
        nats=1.0, never_refuses=True, no_theorem="what is counted makes no gradient steps"
    )

    #: What plays rounds; None for kinds that score rows and learn from them in Python.
    kernel: ClassVar[Kernel | None] = None

    def __init__(
        self, task: Task, features: Map | None, settings: Mapping[str, Any], seed: int | None
    ):
        if not isinstance(task, Task) or not task.geometry.classes:
            raise InputError(
                f"expected a task of classes, such as dl.tasks.Multiclass(3), but got {task!r:.80}"
            )
        super().__init__(task, seed, features)
        if self.kernel is not None:
            if task.kernels is None:
                raise InputError(
                    f"{type(self).__name__} needs a task with kernels, but got {task!r:.80}"
                )
            warn_without_numba()
        self.settings = settings
        self._forget_all()
        self._classes, self._sign = len(task.labels.all), task.labels.signs
        self._unshare()
        self._scores = np.zeros((1, self._classes))
        self._column = np.empty((round_rows(task), 1))
        self._prediction = np.empty((1, 1), dtype=np.int64)

    # -- what every kind says

    def _options(self, task: Task) -> dict[str, Any]:
        return {"task": task, **self.settings}

    def constants(self, width: int) -> list[float]:
        """Return the kernel's constants, for rows of this length."""
        raise NotImplementedError

    def space(self, width: int) -> int:
        """Return how many numbers of scratch space the kernel needs at most."""
        raise NotImplementedError

    # -- scores

    def _score_mapped(self, rows: Rows) -> np.ndarray:
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

    def _class_scores(self, rows: Rows) -> np.ndarray:
        """Return the scores of every class; any number of threads may call this at once."""
        assert self.kernel is not None
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

    def _learned_rows(
        self, rows: Rows, start: int, stop: int, codes: np.ndarray, weights: np.ndarray
    ) -> np.ndarray:
        """Return the scores of every class of some rows, each before it is learned from.

        ``codes`` are those of the labels. Rows of weight 0 are not learned from. For kinds without
        a kernel.
        """
        raise NotImplementedError

    def _room(self, labels: CheckedLabels) -> Batch:
        table, columns = round_table(len(labels))
        columns["prediction"] = np.empty((len(labels), 1), dtype=np.int64)
        return Batch(columns, table=table)

    def _play_mapped(
        self, rows: Rows, start: int, stop: int, labels: CheckedLabels, number: int, room: Batch
    ) -> None:
        assert room.table is not None
        weights, wanted = room.columns.get("sample_weight", ONCE), room.columns.get("scores")
        given = (np.asarray(labels), room.table, room["prediction"], np.ascontiguousarray(weights))
        scores = None if wanted is None else np.empty((stop - start, self._classes))
        asked = room.columns.get("asked")
        played = self._advance(rows, start, stop, *given, asked, scores)
        if played < stop - start:
            refuse(rows, start + played)
        if wanted is not None and scores is not None:
            wanted[:] = self._task_scores(scores)

    def _learn_one_mapped(
        self, row: Rows, label: Label, number: int
    ) -> tuple[np.ndarray, np.ndarray]:
        if self._width is None and not np.isfinite(row.row(0)).all():
            refuse(row, 0)  # before memory is allocated for it
        if not self._advance(row, 0, 1, label[np.newaxis], self._column, self._prediction):
            refuse(row, 0)
        self._column[-self.task.dim :, 0] = self._task_scores(self._scores)[0]
        return self._prediction[0], self._column[:, 0]

    def _advance(
        self,
        rows: Rows,
        start: int,
        stop: int,
        labels: np.ndarray,
        trace: np.ndarray,
        predictions: np.ndarray,
        sample_weight: np.ndarray = ONCE,
        asked: np.ndarray | None = None,
        scores: np.ndarray | None = None,
    ) -> int:
        """Play rounds up to the first row that is not finite; return how many were played."""
        if self.kernel is None:
            counts = sample_weight if len(sample_weight) else np.ones(stop - start)
            told = counts if asked is None else np.where(asked, 0.0, counts)
            own = self._learned_rows(rows, start, stop, self.task.labels.codes(labels[:, 0]), told)
            self._record(own, labels, counts, trace, predictions, scores)
            learned = stop - start - (0 if asked is None else int(np.count_nonzero(asked)))
            self._width = rows.features if learned else self._width
            self._rounds += learned
            return stop - start
        (inputs,) = dense(rows).arrays(start, stop)
        self._begin(rows)
        learning = every(len(inputs)) if asked is None else ~asked
        constants, space = self._ready()
        codes = self.task.labels.codes(labels)
        given = (inputs, codes, sample_weight, constants, self.memory, space, True)
        room = self._scores if scores is None else scores
        played = int(self.kernel.compiled(*given, learning, room, trace, predictions))
        if self._sign:
            predictions *= 2
            predictions -= 1
        self._rounds += played if asked is None else int(np.count_nonzero(learning[:played]))
        return played

    def _unshare(self) -> None:
        super()._unshare()
        #: What the kernel needs for rows of a length: this, constants, scratch space.
        self._sized: tuple[int | None, np.ndarray, np.ndarray] = (None, NO_NUMBERS, NO_NUMBERS)

    def _ready(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the kernel's constants and scratch space for rows of the length that is known."""
        if (width := self._width) != self._sized[0] and width is not None:
            self._sized = width, self._all_constants(width), np.empty(self.space(width))
        return self._sized[1:]

    def _all_constants(self, width: int) -> np.ndarray:
        """Return the kernel's constants, and behind them when there is no answer."""
        return np.array([*self.constants(width), *self.task.predictions.doubt], dtype=np.float64)

    def _record(
        self,
        made: np.ndarray,
        labels: np.ndarray,
        counts: np.ndarray,
        trace: np.ndarray,
        predictions: np.ndarray,
        scores: np.ndarray | None,
    ) -> None:
        """Write what is recorded of rounds whose classes had these scores."""
        room, codes = self._scores if scores is None else scores, self.task.labels.codes(labels)
        room[:] = made[-len(room) :]
        predictions[:] = self.task.many.top(self._task_scores(made))
        trace[LOSS] = -counts * made[np.arange(len(made)), codes[:, 0]]
        trace[RISK] = trace[TARGET] = counts * self.task.many.losses(predictions, labels)
        trace[ETA], trace[GRAD] = 1.0, 0.0
