r"""The predictions of a model from elsewhere, which come with the rows.

The first value of a row is 0 where the model has predicted nothing, and k + 1 where it has
predicted class k. Then the chances are :math:`1 - \varepsilon + \varepsilon / K` for class k and
:math:`\varepsilon / K` for others, with :math:`\varepsilon = 0.001`. Where nothing was predicted
all are equal. Nothing is learned. Other members, and the scaling, see rows without this value.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, Self

import numpy as np

from driftline.errors import InputError
from driftline.inputs import Rows
from driftline.inputs.first import first_values
from driftline.kernels import program as at
from driftline.learner import Growth
from driftline.members.classes import EVEN, ClassMember
from driftline.parts import from_config
from driftline.state import State
from driftline.tasks import Task
from driftline.trace import Batch
from driftline.typing import CheckedLabels, Json, Label

__all__ = ["Column"]

#: What it remembers.
NOTHING = np.zeros(0)


class Column(ClassMember):
    """A model whose predictions are the first value of every row: a class plus 1, 0 for none.

    Any other number is no prediction either. It is the model of :func:`driftline.Guarded`, or one
    of the ``members`` of :func:`driftline.auto`, where predictions are known and the model is not
    at hand. All other members of a committee see rows without their first value.

    >>> import driftline as dl
    >>> stream = dl.streams.LabelFlips(rounds=1000, flips=1, seed=0)
    >>> old = stream.labels[0] * np.ones(1000)  # a model that always says the same
    >>> learner = dl.Guarded(dl.members.Column(stream.task), stream.task, effort="fast")
    >>> trace = learner.run(np.column_stack([old + 1, stream.inputs]), stream.labels)
    >>> bool(trace.members[0].target_loss.sum() > 400), bool(trace.target_loss.sum() < 100)
    (True, True)
    """

    reads_first: ClassVar[bool] = True

    def __init__(self, task: Task, *, seed: int | None = 0):
        super().__init__(task, seed, None)

    # -- facts

    @property
    def no_theorem(self) -> str:
        """Why no theorem bounds the loss beforehand: predictions may be anything."""
        return "nothing is known of where its predictions come from"

    @property
    def never_refuses(self) -> bool:
        """Whether no finite row can be refused: True."""
        return True

    def config(self) -> Json:
        """Return the task as plain data."""
        return {"kind": "Column", "task": self.task.config()}

    def __repr__(self) -> str:
        """Name the task."""
        return f"Column({self.task!r})"

    # -- rounds

    def _class_scores(self, rows: Rows) -> np.ndarray:
        return self._said_scores(first_values(rows, 0, rows.rounds))

    def _said_scores(self, said: np.ndarray) -> np.ndarray:
        """Return the logarithms of chances, given the first values of rows."""
        labels = self._classes
        scores = np.full((len(said), labels), -math.log(labels))
        (rows,) = np.nonzero((said >= 1.0) & (said <= labels) & (said == np.floor(said)))
        scores[rows] = math.log(EVEN / labels)
        scores[rows, said[rows].astype(np.int64) - 1] = math.log(1.0 - EVEN + EVEN / labels)
        return scores

    def _play_mapped(
        self, rows: Rows, start: int, stop: int, labels: CheckedLabels, number: int, room: Batch
    ) -> None:
        assert room.table is not None
        made, table, theta = self._played_rows(
            rows, start, stop, np.asarray(labels), room.columns.get("sample_weight")
        )
        room["prediction"][:], room.table[:] = made, table
        if (scores := room.columns.get("scores")) is not None:
            scores[:] = theta
        asked = room.columns.get("asked")
        self._rounds += stop - start - (0 if asked is None else int(np.count_nonzero(asked)))

    def _learn_one_mapped(
        self, row: Rows, label: Label, number: int
    ) -> tuple[np.ndarray, np.ndarray]:
        made, table, theta = self._played_rows(row, 0, 1, np.asarray(label)[np.newaxis], None)
        self._rounds += 1
        column = np.zeros(at.SCORES)
        column[: len(table)] = table[:, 0]
        return made[0], np.r_[column, theta[0]]

    def _played_rows(
        self, rows: Rows, start: int, stop: int, labels: np.ndarray, weights: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return predictions, columns of the record, and scores."""
        scores = self._said_scores(first_values(rows, start, stop))
        theta, rounds = self._task_scores(scores), np.arange(stop - start)
        made, codes = self.task.top_rows(theta), labels[:, 0]
        counts = np.ones(stop - start) if weights is None else weights
        table = np.zeros((len(at.TRACE_COLUMNS), stop - start))
        table[at.LOSS_ROW] = -counts * scores[rounds, (codes + 1) // 2 if self._sign else codes]
        table[at.RISK_ROW] = table[at.TARGET_ROW] = counts * self.task.losses(made, labels)
        table[at.ETA_ROW] = 1.0
        self._width = rows.features
        return made, table, theta

    # -- the state as a value

    def _learned(self, weights: bool) -> dict[str, Any]:
        return {"memory": NOTHING}

    def _checked(self, state: State) -> State:
        if state.memory is None or state.memory.size or state.weights is not None:
            raise InputError(f"expected a state without a memory, but got {state!r:.80}")
        return state

    def _resume(self, state: State) -> None:
        return

    def _like(self, classes: int | None = None) -> Self:
        return type(self)(self._with_more(self.task, classes))

    def _add(self, made: Self, state: State, more: Growth) -> State:
        return state if more.places is None else state.replaced(features=len(more.places))

    @classmethod
    def from_config(cls, config: Json) -> Self:
        """Return a new member from what :meth:`config` returned."""
        return cls(from_config(config["task"]))
