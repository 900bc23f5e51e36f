"""What a run tells of a champion: a column of a model's predictions, which is followed and guarded.

The champion and the mean of all members' probabilities have losses beside those of baselines. A row
in which the champion says nothing costs it as much as no answer, or a mistake.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from driftline.committee import CommitteeTrace
from driftline.errors import InputError
from driftline.inputs import rows_of
from driftline.members import Column
from driftline.tasks import Task
from driftline.typing import CheckedLabels, Inputs, Json

__all__ = ["ACCOUNT", "OTHERS", "Acts", "beside_of"]

#: Names of losses beside those of baselines, and of the journal's column for the account.
OTHERS, ACCOUNT = ("your model", "averaged"), "account"

#: After how many rows without a refusal a stretch of refusals is over.
GAP = 100


class Beside(NamedTuple):
    """Losses of champion and average, a column each; and which rows have a refusal, or silence."""

    losses: np.ndarray
    refused: np.ndarray
    silent: np.ndarray


def beside_of(
    task: Task, inputs: Inputs, labels: CheckedLabels, trace: CommitteeTrace, rounds: Any = None
) -> Beside:
    """Return what a champion and the average have paid in rounds, times their sample weights.

    ``rounds`` are those of the trace that are meant, by default all.
    """
    which = slice(None) if rounds is None else rounds
    said = Column.said(rows_of(inputs))
    silent = (said < 1.0) | (said > task.dim)
    codes = np.where(silent, 0, said - 1).astype(np.int64)
    truth = np.asarray(task.labels.check_all(labels))
    none = task.predictions.doubt.cost if task.answers is not task else task.largest_loss
    paid = np.where(silent, none, task.many.losses(codes[:, np.newaxis], truth))
    if trace.sample_weight is not None:
        paid = paid * trace.sample_weight[which]
    assert trace.averaged is not None and trace.acted is not None
    refused = (trace.acted[which] > 0.0) & ~silent
    return Beside(np.column_stack([paid, trace.averaged[which]]), refused, silent)


class Acts:
    """In which rows a guard has refused what the champion said.

    >>> acts = Acts()
    >>> acts.add(np.arange(400) % 300 == 7, np.zeros(400, dtype=bool), first=1)
    >>> acts.rows, acts.stretches, acts.first
    (2, 2, 8)
    """

    def __init__(self) -> None:
        #: How many rows have a refusal, how many stretches of them there are, the first such row
        #: and the last one, 0 for none; and in how many rows the champion said nothing.
        self.rows = self.stretches = self.first = self.last = self.silent = 0

    def add(self, refused: np.ndarray, silent: np.ndarray, first: int) -> None:
        """Add some rows, of which the first has this number."""
        self.silent += int(np.count_nonzero(silent))
        places = np.flatnonzero(refused) + first
        if not len(places):
            return
        gaps = np.diff(places, prepend=self.last if self.rows else places[0] - GAP - 1)
        self.rows += len(places)
        self.stretches += int(np.count_nonzero(gaps > GAP))
        self.first, self.last = self.first or int(places[0]), int(places[-1])

    def to_saved(self) -> Json:
        """Return all as plain data."""
        return dict(vars(self))

    @classmethod
    def from_saved(cls, about: Json) -> Acts:
        """Return the object from what :meth:`to_saved` returned."""
        made = cls()
        for name in vars(made):
            value = about[name]
            if type(value) is not int or value < 0:
                raise InputError(f"refusals cannot be {about!r:.80}")
            setattr(made, name, value)
        return made
