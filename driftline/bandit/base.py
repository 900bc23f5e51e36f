"""What learners share that do not see labels."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from driftline.bandit.policy import Policy
from driftline.errors import InputError
from driftline.features import Map
from driftline.inputs import Rows, refuse
from driftline.inputs.flags import none
from driftline.inputs.taking import take
from driftline.learner import Asked, Waiting
from driftline.members.base import CountingMember
from driftline.state.arena import Field, Layout
from driftline.tasks import Task
from driftline.trace import Batch
from driftline.typing import CheckedLabels, Json, Label, Prediction

__all__ = ["AT_ONCE", "TOLD", "Hidden", "Mixed", "Schedule", "are_chances"]

#: What a probability may be above 1, by rounding.
ROUNDING = 1e-9


def are_chances(numbers: np.ndarray) -> bool:
    """Say whether numbers can be probabilities."""
    return bool(((numbers >= 0.0) & (numbers <= 1.0 + ROUNDING)).all())


#: No events, where every round is predicted and learned from at once; and a round that is told.
AT_ONCE = none(0), np.zeros(0, np.int64), np.zeros((0, 0))
TOLD = none(1), np.zeros(1, np.int64)


class Schedule(NamedTuple):
    """Which rounds are asked for, where each has its row of what is kept, and these rows.

    Beside them, random numbers of all rounds, and how many are learned from.
    """

    asked: np.ndarray
    places: np.ndarray
    kept: np.ndarray
    uniforms: np.ndarray
    learned: int


class Hidden(CountingMember):
    """Base of learners that see less than labels: no map of theirs may see these either.

    A certificate asks which policies a bound holds for, and else why there is none.
    """

    #: What is mixed, and the places of the policies that a theorem holds for.
    policies: tuple[Policy, ...] = ()
    carriers: Sequence[int] = ()

    @property
    @abstractmethod
    def no_bound(self) -> str:
        """Why no policy has a bound, "" if one has."""

    def guess_loss(self, labels: CheckedLabels) -> float:
        """Return the mean target loss of a guess."""
        made = self.task.guess.mean(labels, None)
        assert made is not None  # None only without labels
        return made

    @property
    def nats(self) -> None:
        """Losses are no logarithms of chances."""
        return None

    @property
    def certain(self) -> bool:
        """Predictions are drawn."""
        return False

    @property
    def takes_top(self) -> bool:
        """Predictions are drawn."""
        return False

    @property
    def never_refuses(self) -> bool:
        """Rows that are too long are refused."""
        return False

    # -- rounds

    @property
    def _tells_together(self) -> bool:
        return False

    @abstractmethod
    def _look_one(self, row: Rows, number: int) -> Asked:
        """Return what would be predicted now for one round, drawn by a ticket's number."""

    def _asked(
        self, prediction: Prediction, mean: np.ndarray, mapped: Rows, means: np.ndarray
    ) -> Asked:
        """Return what was predicted for one round."""
        kept = None if self.mapper is None else mapped
        return Asked(self.task.predictions.numbers(prediction)[np.newaxis], [mean], [means], kept)

    def _look(self, rows: Rows, numbers: np.ndarray, whole: bool = True) -> Asked:
        """Look at one round after the other."""
        if rows.rounds == 1:
            return self._look_one(rows, int(numbers[0]))
        if (bad := rows.first_bad_row()) is not None:
            refuse(rows, bad)
        places = np.arange(rows.rounds)[:, np.newaxis]
        pairs = zip(places, numbers.tolist(), strict=True)
        made = [self._look_one(take(rows, place), number) for place, number in pairs]
        width = max(one.predictions.shape[1] for one in made)
        predictions = self.task.predictions.rows(len(made), width)
        for row, one in zip(predictions, made, strict=True):
            row[: one.predictions.shape[1]] = one.predictions[0]
        mapped = None if self.mapper is None else self._mapped(rows)
        means = [one.means[0] for one in made if one.means is not None]
        return Asked(predictions, [one.mean[0] for one in made], means, mapped)

    @abstractmethod
    def _kept_size(self, labels: CheckedLabels) -> int:
        """Return how many numbers are kept of rounds like these until their labels come."""

    @abstractmethod
    def _check_kept(self, kept: np.ndarray, label: Label) -> None:
        """Refuse numbers that cannot be kept of a round with this label."""

    def _check_waiting(self, waiting: Waiting) -> None:
        kept = waiting.kept
        if kept is None:
            raise InputError("nothing is kept of the rounds that wait")
        for row, label in zip(kept, waiting.labels, strict=True):
            size = self._kept_size([label])
            if row[size:].any():
                raise InputError(f"{size} numbers are kept of a round at most, not {len(row)}")
            with np.errstate(invalid="ignore"):  # of numbers too large to be whole ones
                self._check_kept(np.pad(row[:size], (0, max(0, size - len(row)))), label)

    def _schedule(self, room: Batch, labels: CheckedLabels, number: int) -> Schedule:
        """Return which rounds are asked for and told, and random numbers of the former."""
        count = len(labels)
        if room.late is None:
            return Schedule(*AT_ONCE, self._draws.uniforms(number, count), count)
        late, first = room.late
        asked, uniforms = room["asked"], np.full((count, 1), 0.5)
        drawn = int(np.count_nonzero(asked))
        uniforms[asked] = self._draws.uniforms(number, drawn)
        places, kept = late.kept.rows(first, first + count, self._kept_size(labels))
        return Schedule(asked, places, kept, uniforms, count - drawn)

    def _play(
        self, rows: Rows, start: int, stop: int, labels: CheckedLabels, number: int, room: Batch
    ) -> None:
        rows.labels = None
        if "sample_weight" in room.columns:
            raise InputError(
                f"rounds that are learned from {self.feedback} count once each: give no sample "
                "weights"
            )
        super()._play(rows, start, stop, labels, number, room)


class Mixed(Hidden):
    """Base of learners that mix policies, each with a table of weights, and have one draw.

    The memory has the number of rounds, the weights of policies, and their weights of features.
    """

    def __init__(
        self, task: Task, policies: Sequence[Policy], features: Map | None, seed: int | None
    ):
        policies = tuple(policies) if isinstance(policies, Sequence) else ()
        if not policies or not all(isinstance(policy, Policy) for policy in policies):
            raise InputError(f"policies must be some dl.bandit.Policy(...), not {policies!r:.80}")
        self.policies = policies
        settings: Any = {"policies": policies}
        super().__init__(task, features, settings, seed)
        #: How many rows the weights of each policy have, and by how much balls are larger for it.
        self._tables, self._side = task.layout.weight_rows, 1.0
        #: Over how many parts of a label, each seen or not, the target loss is a mean.
        self.parts = 1

    def fields(self, width: int) -> tuple[Field, ...]:
        """Count rounds, and keep the weights of policies, and their weights of features."""
        count = len(self.policies)
        return (
            Field("rounds", least=0.0, whole=True),
            Field("shares", (count,), fill=1.0 / count, least=0.0),
            Field("weights", (count, "classes", "features")),
        )

    def layout(self, width: int, memory: np.ndarray | None = None) -> Layout:
        """Return where the fields lie: there are weights for every score."""
        return Layout(self.fields(width), classes=self._tables, features=width)

    @property
    def rounds(self) -> int:
        """How many rounds were learned from: the kernel counts them beside the weights."""
        return 0 if self._width is None else int(self.memory.item(0))

    def check(self, memory: Any, width: int) -> None:
        """Raise if weights leave their ball, or those of policies are not a distribution."""
        if not (memory.shares > 0.0).all() or abs(memory.shares.sum() - 1.0) > 1e-6:
            raise InputError("the weights of policies must be positive and add up to 1")
        norms = np.sqrt(np.einsum("ikj,ikj->i", memory.weights, memory.weights))
        radii = 0.5 * np.array([self.diameter(policy) for policy in self.policies])
        if (norms > radii * (1.0 + 1e-6)).any():
            raise InputError(f"weights must lie in balls of radius {radii}, but have norms {norms}")

    # -- what a certificate asks for

    def diameter(self, policy: Policy) -> float:
        """Return the diameter of the ball in which the weights of a policy lie."""
        return self._side * policy.diameter

    @abstractmethod
    def surrogate_losses(self, theta: np.ndarray, labels: CheckedLabels) -> np.ndarray:
        """Return the losses of scores, a row each, with a column for every part of the label."""

    def _audit_room(self, labels: CheckedLabels) -> Batch:
        made = self._room(labels)
        if not self.carriers:
            return made
        made = made.beside("noise", np.empty((len(labels), len(self.carriers))))
        return made.beside("inverse", np.empty((len(labels), self.parts)))

    @property
    def shares(self) -> np.ndarray:
        """The weights of policies in the draw."""
        with self._turn.lock:
            count = len(self.policies)
            if self._width is None:
                return np.full(count, 1.0 / count)
            made: np.ndarray = self.views.shares.copy()
            return made

    def config(self) -> Json:
        """Return task, map and policies as plain data."""
        made = super().config() | {"policies": [policy.config() for policy in self.policies]}
        return made if self.map is not None else made | {"features": None}

    def _words_of_policies(self) -> list[str]:
        pairs = zip(self.policies, self.shares, strict=True)
        return [f"  {share:6.3f}  {policy!r}" for policy, share in pairs]
