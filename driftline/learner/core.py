"""What a learner that plays batches must say of itself, and what it knows of its tickets."""

from __future__ import annotations

import secrets
from abc import abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any, ClassVar, NamedTuple, Self, TypedDict

import numpy as np

from driftline.engines import Asked
from driftline.errors import InputError
from driftline.inputs import Rows
from driftline.learner.base import Learner
from driftline.learner.late import LateRun, ToldRun, Waiting
from driftline.learner.outstanding import Outstanding
from driftline.learner.probabilities import log_probabilities
from driftline.learner.ticket import Ticket
from driftline.learner.turn import Turn
from driftline.state import Checkpoint, Draws, Stateful
from driftline.tasks import Task
from driftline.trace import Batch, Sink
from driftline.typing import CheckedLabels, Input, Json, Label, Saved

__all__ = ["Core", "Given"]

#: The weights of a learner by itself.
ONE = np.ones((1, 1))

#: What a learner knows of its tickets.
TICKETS = frozenset({"_tickets", "_outstanding", "_identity", "_late"})

#: For learners whose rounds are one call.
UNSHIELDED = nullcontext()


@cache
def _without_tickets(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name for name in names if name not in TICKETS)


class TicketFields(TypedDict):
    """The fields of a state on outstanding tickets."""

    outstanding: np.ndarray | None
    identity: str
    late: Saved | None


class Given(NamedTuple):
    """What a run is given beside rows and labels: see :meth:`Shell.run`.

    A trace is made if there is a ``digest`` for it. ``late`` are the events of the rows, where
    labels come late.
    """

    sample_weight: np.ndarray | None = None
    digest: str | None = None
    seed: int | None = None
    progress: Callable[[int], None] | None = None
    audit: bool | None = None
    sink: Sink | None = None
    late: LateRun | ToldRun | None = None
    probabilities: bool = False


class Core(Learner, Stateful):
    """State of tickets and random numbers, and what single learners and committees must say."""

    learned: ClassVar[tuple[str, ...]] = (
        "_draws",
        "_tickets",
        "_outstanding",
        "_identity",
        "_late",
    )

    #: What is learned from: ``"full"`` for labels, ``"bandit"`` for hits and misses alone,
    #: ``"clicks"`` for judgements of what was shown.
    feedback: ClassVar[str] = "full"

    #: The branch of the seed, so that a committee does not draw its members' numbers.
    _BRANCH = 0

    def __init__(self, task: Task, seed: int | None):
        self.task = task
        self._layout, self._largest_loss = task.layout, task.largest_loss  # asked in every round
        self._turn = Turn()
        self._draws = Draws.from_seed(seed, self._BRANCH)
        self._tickets = 0  # the number of the next one
        self._outstanding = Outstanding()
        #: The id by which a learner knows its own tickets, "" before the first one. It goes into
        #: copies and files, and is no part of what makes learners equal.
        self._identity = ""
        #: Rounds of a run whose labels are still to come.
        self._late: Waiting | None = None

    @property
    def inside(self) -> tuple[str, ...]:
        """The names of what changes in a member of a committee, which has no tickets of its own."""
        return _without_tickets(self.learned)

    def copy(self) -> Self:
        """Return a learner of the same parts and state, which goes on by itself."""
        with self._turn.lock:
            self._check_copied()
            return Stateful.copy(self)

    def _check_copied(self) -> None:
        """Raise if the learner cannot be copied now."""
        return

    def _unshare(self) -> None:
        self._turn = Turn()

    #: What a committee knows of the rows that it has met, beside its state; None for nothing.
    _met: Any = None

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

    def identify(self, given: str = "") -> str:
        """Return the id of the learner, 32 hexadecimal digits; if there is none yet, make it.

        ``given`` is that of a learner whose tickets go to nobody else.
        """
        if not self._identity:
            self._identity = given or secrets.token_hex(16)
        return self._identity

    def _reseed(self, seed: int) -> None:
        """Draw by another seed; tickets of the old one are those of another learner."""
        self._draws, self._identity = Draws.from_seed(seed, self._BRANCH), ""
        self._outstanding, self._late = Outstanding(), None

    def _resume_tickets(self, state: Any) -> None:
        """Go on with the random numbers and the tickets of a state."""
        made, numbers = self._late_of(state), state.outstanding
        self._draws, self._tickets = Draws(state.key), state.tickets
        self._identity = state.identity or self._identity
        self._outstanding, self._late = Outstanding(numbers), made

    def _late_of(self, state: Any) -> Waiting | None:
        """Return the rounds of a state that wait for labels, if they can be this learner's."""
        late, numbers = state.late, state.outstanding
        made = None if late is None else Waiting.from_saved(self.task, late, numbers)
        if made is not None:
            self._check_waiting(made)
        return made

    def _check_waiting(self, waiting: Waiting) -> None:
        """Refuse what cannot be kept of rounds that wait; shape and finiteness are checked."""
        return

    @property
    def _waiting(self) -> TicketFields:
        """What a state has of tickets that are outstanding: their numbers, and whose they are."""
        if not len(self._outstanding):
            return {"outstanding": None, "identity": self._identity, "late": None}
        late = None if self._late is None else self._late.to_saved()
        numbers = self._outstanding.to_array()
        return {"outstanding": numbers, "identity": self._identity, "late": late}

    def _row(self, x: Input) -> Rows:
        """Wrap the input of one round."""
        return self._layout.row(x)

    def _check_features(self, rows: Rows) -> None:
        expected = self.features
        if expected is not None and rows.features != expected:
            raise InputError(
                f"inputs have {rows.features} features, but the learner has seen {expected}"
            )

    # -- what every kind does by itself

    #: The precision in which inputs must be finite.
    _dtype: Any = np.float64

    @abstractmethod
    def config(self) -> Json:
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

    @property
    def _scored(self) -> int:
        """How many members have scores of their own."""
        return 1

    @property
    def _takes_top(self) -> bool:
        """Whether predictions are functions of scores: nothing is drawn."""
        return False

    def _probabilities_in(self, batch: Batch) -> np.ndarray:
        """Return the probabilities of labels before rounds that were played with their scores."""
        return self._probabilities(*self._scores_of(batch), batch["prediction"])

    def _scores_of(self, batch: Batch) -> tuple[np.ndarray, np.ndarray]:
        """Return the scores of rounds, members first, and the weights of members in each."""
        return batch["scores"][np.newaxis], ONE

    def _believed(self, members: int) -> np.ndarray:
        """Return the weights of so many members now, as a row."""
        return ONE

    def _probabilities(
        self, scores: np.ndarray, weights: np.ndarray, predicted: np.ndarray
    ) -> np.ndarray:
        """Return the probabilities of labels; a prediction that is certain is the most probable."""
        codes = predicted if self._takes_top else None
        made: np.ndarray = np.exp(log_probabilities(self.task, scores, weights, codes))
        return made

    @abstractmethod
    def _learn_one(self, row: Rows, label: Label, number: int) -> object:
        """Play one round by a ticket's number, and count it; nothing changes if it is refused."""

    def _learn_late(self, row: Rows, label: Label, number: int, paid: np.ndarray | None) -> None:
        """Play a round whose prediction was made before others were learned from."""
        self._learn_one(row, label, number)

    def _accepts(self, rounds: Sequence[Rows]) -> bool:
        """Say whether it is known that none of these rounds can be refused."""
        return False

    @property
    def _tells_together(self) -> bool:
        """Whether tickets can be told together, as one run."""
        return True

    def _paid_then(
        self, tickets: Sequence[Ticket], labels: CheckedLabels, first: Rows
    ) -> np.ndarray | None:
        """Return what was paid for tickets when they were asked for, a row each; None if no matter.

        ``first`` is the input of the first ticket.
        """
        return None

    @abstractmethod
    def _run(self, rows: Rows, labels: CheckedLabels, given: Given) -> Any:
        """Play rows, all or nothing; return a trace if there is a digest for it."""

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
