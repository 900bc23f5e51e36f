"""What a kind of learner must say of itself, and may say otherwise: declarations, and no rounds."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Self

import numpy as np

from driftline.engines import Asked
from driftline.inputs import Rows
from driftline.learner.base import Learner
from driftline.learner.ticket import Ticket
from driftline.state import Checkpoint, Stateful
from driftline.trace import Batch
from driftline.typing import CheckedLabels, Json, Label, Saved

__all__ = ["Hooks"]

#: The weights of a learner by itself.
ONE = np.ones((1, 1))

#: For learners whose rounds are one call.
UNSHIELDED = nullcontext()


class Hooks(Learner, Stateful):
    """What :class:`~driftline.learner.Shell` asks of each kind: what is abstract each must say."""

    @abstractmethod
    def _config(self) -> Json:
        """Return the parts as plain data."""

    @classmethod
    @abstractmethod
    def from_saved(cls, about: Json, arrays: dict[str, np.ndarray]) -> Self:
        """Return the learner from what :meth:`to_saved` returned."""

    @abstractmethod
    def _to_saved(self) -> Saved: ...

    @abstractmethod
    def _room(self, labels: CheckedLabels) -> Batch:
        """Return columns for the rounds with these labels, to be written by :meth:`_play`."""

    def _audit_room(self, labels: CheckedLabels) -> Batch:
        """Return columns for rounds that are played again, with what only a bound needs."""
        return self._room(labels)

    def _meet(self, rows: Rows) -> None:
        """Prepare for the first rows, which are about to be learned from."""
        return

    @abstractmethod
    def _play(
        self, rows: Rows, start: int, stop: int, labels: CheckedLabels, number: int, room: Batch
    ) -> None:
        """Play some rows, the first with ticket ``number``; refuse the first bad one."""

    def _combine(self, labels: CheckedLabels, number: int, room: Batch) -> None:
        """Write columns that follow from the rounds just played, and that nothing learns from."""
        return

    @abstractmethod
    def _learn_one(self, row: Rows, label: Label, number: int) -> object:
        """Play one round by a ticket's number, and count it; nothing changes if it is refused."""

    def _learn_late(self, row: Rows, label: Label, number: int, paid: np.ndarray | None) -> None:
        """Play a round whose prediction was made before others were learned from."""
        self._learn_one(row, label, number)

    def _accepts(self, rounds: Sequence[Rows]) -> bool:
        """Say whether it is known that none of these rounds can be refused."""
        return False

    def _paid_then(
        self, tickets: Sequence[Ticket], labels: CheckedLabels, first: Rows
    ) -> np.ndarray | None:
        """Return what was paid for tickets when they were asked for, a row each; None if no matter.

        ``first`` is the input of the first ticket.
        """
        return None

    @abstractmethod
    def _look(self, rows: Rows, numbers: np.ndarray, whole: bool = True) -> Asked:
        """Return what would be predicted now for each of some rounds, and change nothing.

        Random predictions are drawn by the numbers of tickets. ``whole`` says whether all that a
        ticket keeps is wanted, or only the predictions.
        """

    @abstractmethod
    def _trace(self, batch: Batch, origin: Any, digest: str) -> Any:
        """Return the trace of a run."""

    @abstractmethod
    def _copies(self, rows: Rows) -> bool:
        """Say whether the state is copied before these rows are played."""

    @abstractmethod
    def _batch_size(self, rows: Rows) -> int:
        """Return how many rows are played at a time."""

    def _checkpoint(self, weights: bool = True) -> Checkpoint:
        """Return what :meth:`_rollback` needs, with a copy of the weights if ``weights``."""
        return Checkpoint(self, weights)

    def _rollback(self, checkpoint: Checkpoint) -> None:
        """Go back to a checkpoint."""
        checkpoint.restore()

    @abstractmethod
    def _origin(self, keep: bool) -> Any:
        """Return the state before a run as a value, with weights if ``keep``: for its trace."""

    @abstractmethod
    def _filled(self, origin: Any, keep: bool) -> Any:
        """Return an origin with first weights, if it is from before the first input.

        A trace keeps them even where it does not keep later weights.
        """

    def _shield(self) -> AbstractContextManager[None]:
        """Return a context manager that delays interrupts while one round is played, if needed."""
        return UNSHIELDED

    def _settle(self) -> None:
        """Finish the last round that counts, after an exception; this may be done twice."""
        return

    @property
    def _torn(self) -> bool:
        """Whether an interruption has left parts of the learner after different rounds."""
        return False

    def _check_copied(self) -> None:
        """Raise if the learner cannot be copied now."""
        return

    @property
    def _scored(self) -> int:
        """How many members have scores of their own."""
        return 1

    @property
    def _takes_top(self) -> bool:
        """Whether predictions are functions of scores: nothing is drawn."""
        return False

    def _scores_of(self, batch: Batch) -> tuple[np.ndarray, np.ndarray]:
        """Return the scores of rounds, members first, and the weights of members in each."""
        return batch["scores"][np.newaxis], ONE

    def _believed(self, members: int) -> np.ndarray:
        """Return the weights of so many members now, as a row."""
        return ONE

    #: What a committee knows of the rows that it has met, beside its state; None for nothing.
    _met: Any = None

    #: The precision in which inputs must be finite.
    _dtype: Any = np.float64
