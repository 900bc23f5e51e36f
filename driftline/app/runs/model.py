"""What learns in a run: a committee, or one for every key, with the encoder of its columns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from driftline.app.runs.baselines import Baselines
from driftline.app.tables import Encoder
from driftline.app.tables.columns import Memory
from driftline.committee import CommitteeTrace
from driftline.errors import InputError
from driftline.learner import Balance, multiplied
from driftline.learner.late import LateRun
from driftline.sets import SetLevel
from driftline.state import archive
from driftline.tasks import Task
from driftline.typing import CheckedLabels, Inputs, Json, Label, Labels, Prediction, Saved

__all__ = ["Model", "Played"]


class Played(NamedTuple):
    """What happened in some rounds: predictions, and what was paid for them, times their weights.

    There are no losses where nothing was learned. ``columns`` are those of the journal, and
    ``others`` the losses of :attr:`Model.others`, a column each, None without any. ``trace`` is
    that of a committee, of all events where labels come late, and ``late`` says which these are.
    ``probabilities`` are those of every label before each row, None if nobody asked for them;
    ``known`` says how many labels were known before it, None for all; and ``sets`` which labels are
    in its set, None without sets. ``refused`` and ``silent`` say where a guard has refused what a
    champion said, and where that said nothing; None without a champion.
    """

    prediction: CheckedLabels
    losses: np.ndarray | None = None
    weights: np.ndarray | None = None
    columns: dict[str, np.ndarray] = {}
    others: np.ndarray | None = None
    trace: CommitteeTrace | None = None
    late: LateRun | None = None
    probabilities: np.ndarray | None = None
    known: np.ndarray | None = None
    sets: np.ndarray | None = None
    refused: np.ndarray | None = None
    silent: np.ndarray | None = None


class Model(ABC):
    """A learner, and the encoder that makes inputs and labels for it.

    ``loss`` is what it has paid since its first round. ``baselines`` have seen the same labels.
    ``classes`` is how many classes have a name in rows that were learned from, or had one from the
    start: the encoder may have met others in rows to come. ``predicted`` is how many rounds were
    predicted before their label was known; labels that came late, or never, make it larger than
    ``rounds``, and ``late`` is whether there were any.

    Where the encoder has a column of keys, inputs come with the key of every row.
    """

    def __init__(self, learner: Any, encoder: Encoder, baselines: Baselines, about: str = ""):
        self.learner, self.encoder, self.about = learner, encoder, about
        self.loss = 0.0
        self.predicted, self.late = 0, False
        self.classes = len(encoder.labels.values)
        self.balance = Balance() if encoder.balanced else None
        self.baselines = baselines
        #: What baselines paid for labels that were learned from by a :class:`TableModel`.
        self.baseline_losses = np.zeros(len(baselines.names))
        #: The level of sets of labels, None without sets.
        self.sets: SetLevel | None = None

    # -- facts

    @property
    def task(self) -> Task:
        """What is predicted."""
        made: Task = self.learner.task
        return made

    @property
    @abstractmethod
    def rounds(self) -> int:
        """How many rounds were learned from."""

    @property
    @abstractmethod
    def weight(self) -> float:
        """The weights of all rounds together."""

    @property
    @abstractmethod
    def waits(self) -> int:
        """How many labels are still to come."""

    @property
    @abstractmethod
    def alarms(self) -> Sequence[int] | np.ndarray:
        """The rounds after which losses were seen to have risen, counted from 0."""

    @property
    @abstractmethod
    def random(self) -> bool:
        """Whether predictions are random, so that losses differ from expected losses."""

    @property
    @abstractmethod
    def columns(self) -> list[str]:
        """The names of the columns of the journal beside losses."""

    @property
    def others(self) -> tuple[str, ...]:
        """Names of other learners of the same rows, which are told beside baselines."""
        return ()

    @property
    @abstractmethod
    def far_outside(self) -> dict[str, int]:
        """How many values of each column of numbers were far outside, where any were."""

    @abstractmethod
    def describe(self) -> str:
        """Say which learner it is, and which theorem applies."""

    @property
    def abstains(self) -> bool:
        """Whether predictions may be none."""
        return self.task.answers is not self.task

    @property
    def weighs(self) -> bool:
        """Whether rows do not all count once."""
        return self.encoder.weight is not None or self.balance is not None

    # -- rounds

    @abstractmethod
    def learn(
        self,
        inputs: Inputs,
        labels: Labels,
        weights: np.ndarray | None = None,
        keys: Sequence[str] | None = None,
        audit: bool = False,
        probabilities: bool = False,
    ) -> Played:
        """Play rounds; classes that are new are added first.

        ``weights`` are those of the table. If rounds are refused, nothing changes.
        """

    @abstractmethod
    def predict(
        self, inputs: Inputs, keys: Sequence[str] | None = None
    ) -> Sequence[Prediction] | np.ndarray:
        """Return predictions without learning; random ones are drawn from seed 0."""

    @abstractmethod
    def next_predictions(
        self, inputs: Inputs, keys: Sequence[str] | None = None
    ) -> Sequence[Prediction]:
        """Return what would be predicted for each row if it came next.

        It depends on the state alone, also where predictions are random.
        """

    def beside(
        self,
        labels: Labels,
        weights: np.ndarray | None = None,
        keys: Sequence[str] | None = None,
    ) -> np.ndarray:
        """Return what baselines pay for the next labels, a row each, times their weights."""
        made = self.baselines.losses(labels)
        return made if weights is None else made * weights[:, np.newaxis]

    def count_labels(
        self,
        labels: Labels,
        keys: Sequence[str] | None = None,
        weights: np.ndarray | None = None,
    ) -> None:
        """Let baselines predict labels, and then learn of them; losses count by weights."""
        losses = self.beside(labels, weights, keys)
        # Added one by one: groups of any size, same bits.
        self.baseline_losses = np.cumsum(np.vstack([self.baseline_losses, losses]), axis=0)[-1]

    def remember(self, memory: Memory | None) -> None:
        """Save the state of the columns after the rows learned from, not after later ones."""
        if memory is not None and not isinstance(self.encoder.columns, int):
            self.encoder.columns.learned = memory

    def _grown(self, labels: Labels, learner: Any = None) -> tuple[Any, int]:
        """Return a learner that knows the classes of these labels, and how many have a name."""
        learner = self.learner if learner is None else learner
        if not self.encoder.labels.grows:
            return learner, self.classes
        classes = max(self.classes, int(np.max(labels)) + 1)
        return learner.grown(classes=classes) if classes > learner.task.dim else learner, classes

    def _balanced(
        self, labels: Labels, weights: np.ndarray | None
    ) -> tuple[np.ndarray | None, Balance | None]:
        """Return the weights of rows with those of rare classes, and the balance after them."""
        if self.balance is None:
            return weights, None
        rare, balance = self.balance.weigh(labels)
        return rare if weights is None else multiplied(rare, weights), balance

    def loss_of(self, prediction: Prediction, label: Label) -> float:
        """Return the loss of a prediction; a class that was never learned counts as wrong."""
        if not self.task.answers.zero_one:
            return float(self.task.loss(prediction, label))
        none = self.abstains and (prediction is None or prediction < 0)
        return self.task.predictions.doubt.cost if none else float(prediction != label)

    # -- files

    def save(self, path: str | Path) -> Path:
        """Write the model to one file of plain data."""
        return archive.write(path, *self.to_saved())

    def to_saved(self) -> Saved:
        """Return all of the model as plain data and arrays."""
        about, arrays = self.learner.to_saved()
        about["table"] = table = self.encoder.config()
        if self.encoder.labels.grows:  # without those of rows that were not learned from
            table["labels"]["values"] = table["labels"]["values"][: self.classes]
        about["run"] = {
            "name": self.about,
            "loss": self.loss,
            "baselines": self.baselines.state(),
            "baseline_losses": self.baseline_losses.tolist(),
            "balance": None if self.balance is None else self.balance.to_plain(),
            "predicted": self.predicted,
            "late": self.late,
        }
        return about, arrays

    def _resume(self, run: Json) -> None:
        """Go on with what :meth:`to_saved` has beside the learner, or refuse it."""
        self.loss = float(run["loss"])
        if not 0.0 <= self.loss < np.inf:
            raise InputError(f"a loss cannot be {self.loss}")
        self.baselines.resume(run["baselines"])
        losses = np.array(run["baseline_losses"], dtype=np.float64)
        if losses.shape != self.baseline_losses.shape or not (losses >= 0.0).all():
            raise InputError(f"baselines cannot have paid {run['baseline_losses']!r:.80}")
        self.baseline_losses = losses
        self.predicted = int(run["predicted"])
        self.late = run["late"] is True
        if self.balance is not None:
            self.balance = Balance.from_plain(run["balance"])
        if self.encoder.labels.task != self.task:
            raise InputError("its columns and its learner do not fit each other")
