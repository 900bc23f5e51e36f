r"""The predictions of a model from elsewhere, which come with the rows.

The first value of a row is 0 where the model has predicted nothing, and k + 1 where it has
predicted class k. Then the chances are :math:`1 - \varepsilon + \varepsilon / K` for class k and
:math:`\varepsilon / K` for others, with :math:`\varepsilon = 0.001`. Where nothing was predicted
all are equal. Nothing is learned.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Self

import numpy as np

from driftline.features import Block
from driftline.inputs import Rows, SparseRows
from driftline.members.classes import EVEN, ClassMember
from driftline.parts import from_config
from driftline.tasks import Task
from driftline.typing import Json

__all__ = ["Column"]


class Column(ClassMember):
    """A model whose predictions are the first value of every row: a class plus 1, 0 for none.

    Any other number is no prediction either. It is the model of :func:`driftline.Guarded`, or one
    of the ``members`` of :func:`driftline.auto`, where predictions are known and the model is not
    at hand. Other members that these make read rows without this value; those that are made by
    hand do so with ``features=dl.features.Block(1)``.

    >>> import driftline as dl
    >>> stream = dl.streams.LabelFlips(rounds=1000, flips=1, seed=0)
    >>> old = stream.labels[0] * np.ones(1000)  # a model that always says the same
    >>> learner = dl.Guarded(dl.members.Column(stream.task), stream.task, effort="fast")
    >>> trace = learner.run(np.column_stack([old + 1, stream.inputs]), stream.labels)
    >>> bool(trace.members[0].target_loss.sum() > 400), bool(trace.target_loss.sum() < 100)
    (True, True)
    """

    _fixed = replace(
        ClassMember._fixed, no_theorem="nothing is known of where its predictions come from"
    )

    def __init__(self, task: Task, *, seed: int | None = 0):
        super().__init__(task, Block(stop=1), {}, seed)

    def _config(self) -> Json:
        return {"kind": "Column", "task": self.task.config()}

    def __repr__(self) -> str:
        """Name the task."""
        return f"Column({self.task!r})"

    # -- rounds

    @staticmethod
    def said(rows: Rows, start: int = 0, stop: int | None = None) -> np.ndarray:
        """Return the first value of some rows, mapped or as they come."""
        if isinstance(rows, SparseRows):
            first: np.ndarray = rows.matrix[start:stop].toarray()[:, 0]
            return first
        (vectors,) = rows.arrays(start, rows.rounds if stop is None else stop)
        return vectors[:, 0]

    def _class_scores(self, rows: Rows) -> np.ndarray:
        return self._said_scores(self.said(rows))

    def _said_scores(self, said: np.ndarray) -> np.ndarray:
        """Return the logarithms of chances, given the first values of rows."""
        labels = self._classes
        scores = np.full((len(said), labels), -math.log(labels))
        (rows,) = np.nonzero((said >= 1.0) & (said <= labels) & (said == np.floor(said)))
        scores[rows] = math.log(EVEN / labels)
        scores[rows, said[rows].astype(np.int64) - 1] = math.log(1.0 - EVEN + EVEN / labels)
        return scores

    def _learned_rows(
        self, rows: Rows, start: int, stop: int, codes: np.ndarray, weights: np.ndarray
    ) -> np.ndarray:
        return self._said_scores(self.said(rows, start, stop))

    def _for_task(self, task: Task) -> Self:
        return type(self)(task)

    @classmethod
    def from_config(cls, config: Json) -> Self:
        """Return a new member from what :meth:`_config` returned."""
        return cls(from_config(config["task"]))
