"""What a learner is, on one page.

Parts (a loss, a decoder, a rate, a domain) are a frozen choice. What moves is a *state*, a value
with named fields. A learner is the object around both that users hold. :class:`~driftline.OGD` and
:class:`~driftline.Committee` are learners; so is whatever keeps this page, and
:func:`driftline.checks.check_learner` holds it to its laws.

A round has two halves. ``ask`` predicts, and returns a ticket with all that is needed to learn
later; ``tell`` learns from a ticket and its label. Asking changes nothing but the number of the
next ticket, and random numbers are a function of the seed and that number. So ``predict`` returns
what ``ask`` would predict, however often it is called; ``step`` is both halves; and ``run`` is many
steps, compiled, with the same bits.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Self

import numpy.typing as npt

from driftline.delays import Delay
from driftline.learner.predictor import Predictor
from driftline.learner.ticket import Ticket
from driftline.tasks import Task
from driftline.trace import Sink
from driftline.typing import Input, Inputs, Label, Labels, Prediction

__all__ = ["Learner"]


class Learner(ABC):
    """Predicts, is told the truth, learns: round after round.

    Whatever is refused is refused before anything changes. One thread learns at a time: others get
    a :class:`~driftline.BusyError`, or wait if they only look; a snapshot never waits.

    After an exception within a call, such as Ctrl-C or a lack of memory, a learner is as before the
    call or as after it: where ``rounds`` and ``outstanding`` are those of before, repeat the call.
    A committee delays Ctrl-C until its round is over; another exception within a round may leave
    one that refuses to go on.
    """

    #: What is predicted, and what a mistake costs.
    task: Task

    # -- rounds

    @abstractmethod
    def ask(self, x: Input) -> Ticket:
        """Predict an input; change nothing but which tickets are outstanding, and the next one."""

    @abstractmethod
    def tell(self, ticket: Ticket, label: Label = None, *, loss: float | None = None) -> None:
        """Learn from a ticket, in the state of now; labels may come late, and in any order.

        Where a learner takes it, the target loss of the prediction may come in place of the label.

        The ticket is not trusted. It is refused if it is another learner's, or is not outstanding.
        """

    @abstractmethod
    def ask_rows(self, inputs: Inputs, *, numbers: npt.ArrayLike | None = None) -> list[Ticket]:
        """Return what :meth:`ask` returns for one input after the other; all, or none if refused.

        Same bits, but faster. With numbers, tickets have these, and none is outstanding: another
        copy of the learner may :meth:`admit` them.
        """

    @abstractmethod
    def admit(self, ticket: Ticket) -> Ticket:
        """Return the ticket of a copy as one of this learner's own, which is outstanding here.

        What members predicted is believed: admit no tickets but those of copies.
        """

    @abstractmethod
    def tell_rows(
        self,
        tickets: Iterable[Ticket],
        labels: Labels = None,
        *,
        losses: Iterable[float] | None = None,
    ) -> None:
        """Do what :meth:`tell` does with one ticket after the other; if refused, with none.

        Same bits, but faster.
        """

    @abstractmethod
    def forget(self, ticket: Ticket | None = None, *, before: Ticket | int | None = None) -> None:
        """Say that no label will come for a ticket, or for all that were asked for before one."""

    @property
    @abstractmethod
    def outstanding(self) -> int:
        """How many tickets were asked for, and neither told nor forgotten yet."""

    @abstractmethod
    def step(self, x: Input, label: Label) -> Any:
        """Ask and tell; return what happened in the round, with its ``prediction``."""

    @abstractmethod
    def run(
        self,
        inputs: Inputs,
        labels: Labels = None,
        *,
        seed: int | None = None,
        progress: Callable[[int], None] | None = None,
        audit: bool | None = None,
        sink: Sink | None = None,
        sample_weight: npt.ArrayLike | None = None,
        delay: Delay | npt.ArrayLike | None = None,
    ) -> Any:
        """Step through a stream; return its trace, or pass it to a sink. Same bits, but faster.

        A trace has a ``prediction`` for every round. With a seed, random numbers are those of this
        seed from now on. If a row is refused, the rounds before it are taken back. A round of
        sample weight h has h times the loss; without weights, and in a step, it is 1. With a delay
        each label comes so many rounds after its prediction, as if told by its ticket then.
        """

    @abstractmethod
    def learn_rows(
        self, inputs: Inputs, labels: Labels, sample_weight: npt.ArrayLike | None = None
    ) -> None:
        """Do all that :meth:`run` does, but keep no trace: for many short streams."""

    @abstractmethod
    def learn_row(self, x: Input, label: Label) -> None:
        """Do all that :meth:`step` does, but return nothing."""

    # -- looking

    @abstractmethod
    def predict(self, x: Input) -> Prediction:
        """Return what :meth:`ask` would predict now, and change nothing."""

    @abstractmethod
    def snapshot(self) -> Predictor:
        """Return a predictor that stays as the learner is now, for any number of threads."""

    # -- the state as a value

    @property
    @abstractmethod
    def state(self) -> Any:
        """All that changes when the learner learns, as an immutable value."""

    @abstractmethod
    def restore(self, state: Any) -> None:
        """Go on from a state, if it is valid for this learner."""

    @abstractmethod
    def copy(self) -> Self:
        """Return a learner of the same parts and state, which goes on by itself."""

    @abstractmethod
    def save(self, path: str | Path) -> Path:
        """Write parts and state to one file of plain data, for :func:`driftline.load`.

        Equal parts and states are written as equal bytes, but for the id of a learner that has
        issued tickets.
        """

    @abstractmethod
    def grown(self, *, classes: int | None = None, features: int | None = None) -> Learner:
        """Return a learner for more classes or features, which otherwise goes on as this one."""

    # -- facts

    @property
    @abstractmethod
    def rounds(self) -> int:
        """How many rounds were learned from."""

    @property
    @abstractmethod
    def features(self) -> int | None:
        """How many features inputs have, None before the first."""

    @abstractmethod
    def describe(self) -> str:
        """Say which theorem applies, with its constants, or why none does."""
