"""Feedback that is less than a label: what is drawn, kept until then, and learned from it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from driftline.bandit.policy import Policy
from driftline.errors import InputError
from driftline.inputs import Rows, refuse
from driftline.inputs.flags import none
from driftline.kernels import round_table
from driftline.learner import Feedback, Ticket, Waiting
from driftline.members.remembering import dense
from driftline.state.arena import Field
from driftline.tasks import Task
from driftline.trace import Batch
from driftline.typing import CheckedLabels, Label, Prediction

__all__ = ["Looked", "Partial", "Schedule", "are_chances", "finite"]

#: What a probability may be above 1, by rounding.
ROUNDING = 1e-9

#: No events, where every round is predicted and learned from at once; and a round that is told.
AT_ONCE = none(0), np.zeros(0, np.int64), np.zeros((0, 0))
TOLD = none(1), np.zeros(1, np.int64)


class Schedule(NamedTuple):
    """Which rounds are asked for, where each has its row of what is kept, and these rows.

    Beside them, random numbers of all rounds.
    """

    asked: np.ndarray
    places: np.ndarray
    kept: np.ndarray
    uniforms: np.ndarray

    @classmethod
    def at_once(cls, uniforms: np.ndarray) -> Schedule:
        """Return that of rounds which are predicted and learned from at once."""
        return cls(*AT_ONCE, uniforms)

    @classmethod
    def told(cls, kept: np.ndarray) -> Schedule:
        """Return that of one round, which is told."""
        return cls(*TOLD, kept[np.newaxis], np.zeros((1, 1)))

    @property
    def late(self) -> bool:
        """Whether labels come late."""
        return len(self.places) > 0


class Looked(NamedTuple):
    """What would be predicted, its mean loss encoding, and what a ticket keeps of chances."""

    prediction: Prediction
    mean: np.ndarray
    means: np.ndarray


class Partial(Feedback):
    """Feedback of which a learner draws its predictions; all here is frozen.

    What is learned is a memory that its learner has, whose first field counts rounds.
    """

    #: What is mixed, and the places of the policies that a theorem holds for.
    policies: tuple[Policy, ...] = ()
    carriers: Sequence[int] = ()

    #: Over how many parts of a label, each seen or not, the target loss is a mean.
    parts = 1

    def __init__(self, task: Task, rows: int):
        self.task = task
        #: How many rows of weights there are.
        self.rows = rows

    @property
    @abstractmethod
    def no_bound(self) -> str:
        """Why no policy has a bound, "" if one has."""

    @abstractmethod
    def options(self, task: Task) -> dict[str, Any]:
        """Return the arguments of a learner from such feedback, for this task."""

    @abstractmethod
    def describe(self, learner: Any) -> str:
        """Say what is learned from, and which bound there is."""

    # -- what is learned

    @abstractmethod
    def fields(self) -> tuple[Field, ...]:
        """Return what is learned; the first field counts rounds."""

    @abstractmethod
    def check(self, memory: Any) -> None:
        """Refuse a memory that no rows can lead to."""

    @abstractmethod
    def scores(self, memory: Any, rows: Rows) -> np.ndarray:
        """Return the scores of rows; without a memory, those before the first."""

    # -- rounds

    def room(self, labels: CheckedLabels, audit: bool = False) -> Batch:
        """Return columns for rounds with these labels; an audit needs those of its bounds, too."""
        table, columns = round_table(len(labels))
        predictions = self.task.predictions
        columns["prediction"] = predictions.rows(len(labels), predictions.width(labels))
        count = len(self.carriers)
        if count:
            columns["slack"] = np.empty((len(labels), count))
        if count and audit:
            columns["noise"] = np.empty((len(labels), count))
            columns["inverse"] = np.empty((len(labels), self.parts))
        return Batch(columns, table=table)

    @abstractmethod
    def play(
        self,
        memory: np.ndarray,
        rows: Rows,
        start: int,
        stop: int,
        labels: CheckedLabels,
        events: Schedule,
        room: Batch | None,
    ) -> int:
        """Play rounds up to the first row that is refused; return how many were played.

        Without a room nothing is recorded, and labels are what was seen of them.
        """

    @abstractmethod
    def look(self, memory: np.ndarray, rows: Rows, uniform: np.ndarray) -> Looked | None:
        """Return what would be predicted for one row, None if the row is refused."""

    # -- what is kept

    @abstractmethod
    def kept_size(self, labels: CheckedLabels) -> int:
        """Return how many numbers are kept of rounds like these until their labels come."""

    @abstractmethod
    def check_kept(self, kept: np.ndarray, label: Label) -> None:
        """Refuse numbers that cannot be kept of a round with this label."""

    @abstractmethod
    def kept_of(self, ticket: Ticket, label: Label) -> np.ndarray:
        """Return the numbers that a ticket has kept, if they can be some."""

    def check_waiting(self, waiting: Waiting) -> None:
        """Refuse what cannot be kept of rounds that wait."""
        kept = waiting.kept
        if kept is None:
            raise InputError("nothing is kept of the rounds that wait")
        for row, label in zip(kept, waiting.labels, strict=True):
            size = self.kept_size([label])
            if row[size:].any():
                raise InputError(f"{size} numbers are kept of a round at most, not {len(row)}")
            with np.errstate(invalid="ignore"):  # of numbers too large to be whole ones
                self.check_kept(np.pad(row[:size], (0, max(0, size - len(row)))), label)

    # -- what a certificate asks for

    def guess_loss(self, labels: CheckedLabels) -> float:
        """Return the mean target loss of a guess."""
        made = self.task.guess.mean(labels, None)
        assert made is not None  # None only without labels
        return made

    def diameter(self, policy: Policy) -> float:
        """Return the diameter of the ball in which the weights of a policy lie."""
        return policy.diameter

    def surrogate_losses(self, theta: np.ndarray, labels: CheckedLabels) -> np.ndarray:
        """Return the losses of scores, a row each, with a column for every part of the label."""
        raise NotImplementedError


def are_chances(numbers: np.ndarray) -> bool:
    """Say whether numbers can be probabilities."""
    return bool(((numbers >= 0.0) & (numbers <= 1.0 + ROUNDING)).all())


def finite(rows: Rows) -> np.ndarray:
    """Return vectors, a row each; refuse the first that is not finite."""
    (inputs,) = dense(rows).arrays(0, rows.rounds)
    if not np.isfinite(inputs).all():
        refuse(rows, int(np.argmax(~np.isfinite(inputs).all(axis=1))))
    made: np.ndarray = inputs
    return made
