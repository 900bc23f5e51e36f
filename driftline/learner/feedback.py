"""What a learner sees of a label: a part of the round.

Most learners see labels. Others see whether a prediction was right, judgements of what was shown,
or a loss: see :mod:`driftline.bandit`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

from driftline.errors import InputError
from driftline.learner.ticket import Ticket
from driftline.tasks import Task
from driftline.typing import Label

if TYPE_CHECKING:
    from driftline.learner.late import Waiting

__all__ = ["FULL", "Feedback", "Full", "is_hit"]


class Feedback(ABC):
    """What becomes of a label before it is learned from, and what is kept of a round until then."""

    #: Whether labels are seen as they are.
    full: ClassVar[bool] = False

    @abstractmethod
    def seen(self, task: Task, ticket: Ticket, label: Label, loss: float | None) -> Label:
        """Return what is seen of a ticket's label, or of the loss that was told in its place."""

    def check_waiting(self, waiting: Waiting) -> None:
        """Refuse what cannot be kept of rounds that wait; shape and finiteness are checked."""
        return


class Full(Feedback):
    """Labels; where there are two, the loss of a prediction names the label."""

    full = True

    def seen(self, task: Task, ticket: Ticket, label: Label, loss: float | None) -> Label:
        """Return the checked label."""
        if loss is None:
            return task.labels.check(label)
        labels = list(task.labels.all) if task.zero_one else []
        if len(labels) != 2:
            raise InputError(
                f"the loss alone does not name the label of {task!r}: give the label, or make "
                "a learner for bandit feedback, as by dl.auto(task, feedback='bandit')"
            )
        hit = is_hit(loss)
        predicted = task.labels.value(task.labels.check(ticket.prediction))
        (named,) = [one for one in labels if (one == predicted) == hit]
        return task.labels.check(named)


FULL = Full()


def is_hit(loss: float) -> bool:
    """Say whether a loss that was told is that of a hit; refuse all but hits and misses."""
    if loss not in (0.0, 1.0):
        raise InputError(f"the loss is 0 for a hit and 1 for a miss, but is {loss!r:.80}")
    return loss == 0.0
