"""What was paid for every key of a run, beside baselines."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from driftline.app.runs.baselines import Baselines, baselines_of
from driftline.app.runs.predictions import escaped
from driftline.errors import InputError
from driftline.inputs.taking import take_labels
from driftline.keyed.index import KeyIndex
from driftline.keyed.keys import Key, keys_of
from driftline.keyed.trace import KeyTotals
from driftline.reports.key_table import KeyRow, KeyTable
from driftline.tasks import Task
from driftline.typing import Labels

__all__ = ["KeyScores"]

#: How many rounds a key has at least to be compared with others.
LEAST = 10


class KeyScores:
    """Sums by key since the first round: rounds, weights, losses, and those of baselines.

    Baselines are of each key: its last label again, and its most frequent one so far. ``others``
    are names of other learners of the same rows. ``risks`` are the expected losses of the members
    of a key's committee.
    """

    def __init__(self, task: Task, others: Sequence[str] = ()):
        self._task, self._index = task, KeyIndex()
        self.baselines: list[Baselines] = []
        own = baselines_of(task).names
        self.names, self._own = (*own, *others), len(own)
        self.rounds = np.zeros(0, dtype=np.int64)
        #: Weights, losses, and losses of baselines and others, a row for each key.
        self.sums = np.zeros((0, 2 + len(self.names)))
        self.risks = np.zeros((0, 0))

    def __len__(self) -> int:
        """Return how many keys there are."""
        return len(self.baselines)

    @property
    def keys(self) -> list[str]:
        """All keys, in the order in which they came."""
        return [str(key) for key in self._index]

    @property
    def members(self) -> int:
        """How many members the committee of a key has, 0 before the first round."""
        return self.risks.shape[1]

    def places(self, keys: Sequence[str]) -> np.ndarray:
        """Return the places of keys; new ones are added."""
        made = self._index.slots(keys_of(list(keys)), add=True)
        more = self._index.size - len(self)
        if more > 0:
            self.baselines += [baselines_of(self._task) for _ in range(more)]
        if len(self) > len(self.rounds):
            room = max(len(self), len(self.rounds) * 9 // 8)
            self.rounds = _longer(self.rounds, room)
            self.sums, self.risks = _longer(self.sums, room), _longer(self.risks, room)
        return made

    def add(
        self,
        keys: Sequence[str],
        losses: np.ndarray,
        risks: np.ndarray,
        weights: np.ndarray | None = None,
        others: np.ndarray | None = None,
    ) -> None:
        """Add what was paid in some rounds, also by others, and what members had to expect."""
        places = self.places(keys)
        if not self.risks.shape[1]:
            self.risks = np.zeros((len(self.rounds), risks.shape[1]))
        np.add.at(self.rounds, places, 1)
        np.add.at(self.sums[:, 0], places, 1.0 if weights is None else weights)
        np.add.at(self.sums[:, 1], places, losses)
        np.add.at(self.risks, places, risks)
        if others is not None:
            np.add.at(self.sums[:, 2 + self._own :], places, others)

    def beside(
        self, keys: Sequence[str], labels: Labels, weights: np.ndarray | None = None
    ) -> np.ndarray:
        """Return what the baselines of each key pay for its next labels, and add it up."""
        places = self.places(keys)
        made = np.empty((len(places), self._own))
        order = np.argsort(places, kind="stable")
        for rows in np.split(order, np.flatnonzero(np.diff(places[order])) + 1):
            own = self.baselines[places[rows[0]]]
            made[rows] = own.losses(take_labels(labels, rows))
        if weights is not None:
            made *= weights[:, np.newaxis]
        np.add.at(self.sums[:, 2 : 2 + self._own], places, made)
        return made

    # -- what is told of them

    @property
    def totals(self) -> KeyTotals:
        """Rounds and losses by key; losses over the mean weight, if rows have weights."""
        count = len(self)
        rounds, (weights, losses) = self.rounds[:count], self.sums[:count, :2].T
        with np.errstate(divide="ignore", invalid="ignore"):
            losses = np.where(weights > 0.0, losses * (rounds / weights), 0.0)
        return KeyTotals(self.keys, rounds, losses, losses)

    @property
    def means(self) -> np.ndarray:
        """Mean losses of learners and of baselines, a row for each key."""
        weights, losses = self.sums[: len(self), :1], self.sums[: len(self), 1:]
        return losses / np.where(weights > 0.0, weights, 1.0)

    def rows(self, places: np.ndarray, alarms: Mapping[Key, int]) -> Iterator[KeyRow]:
        """Yield what is told of some keys."""
        keys, means, names = self.keys, self.means, ("learner", *self.names)
        for place in places.tolist():
            key, own = keys[place], dict(zip(names, means[place].tolist(), strict=True))
            yield KeyRow(key, int(self.rounds[place]), own, alarms.get(key, 0))

    def table(self, column: str, alarms: Mapping[Key, int], count: int = 10) -> KeyTable:
        """Return what a report tells of keys.

        ``column`` is the name of theirs, and ``alarms`` are how often their losses rose.
        """
        rounds, means = self.rounds[: len(self)], self.means
        least = LEAST if (rounds >= LEAST).any() else 1
        compared = means[rounds >= least]
        picked = self.totals.picked(count, least)
        names = ("learner", *self.names)
        return KeyTable(
            column,
            len(self),
            (int(rounds.min()), int(rounds.max())) if len(self) else (0, 0),
            least,
            len(compared),
            int((compared[:, 1:].min(axis=1) <= compared[:, 0]).sum()),
            sum(own > 0 for own in alarms.values()),
            sum(alarms.values()),
            {name: np.sort(compared[:, k]) for k, name in enumerate(names)},
            {what: list(self.rows(places, alarms)) for what, places in picked.items()},
        )

    def to_csv(self, alarms: Mapping[Key, int]) -> str:
        """Return all keys as CSV, the worst first; those with few rounds come after others."""
        made = io.StringIO()
        writer = csv.writer(made, lineterminator="\n")
        names = [name.replace(" ", "_") for name in self.names]
        writer.writerow(["key", "rounds", "mean_loss", *names, "alarms"])
        order = self.totals.worst_first()
        order = order[np.argsort(self.rounds[order] < LEAST, kind="stable")]
        for row in self.rows(order, alarms):
            shown = [f"{mean:.6g}" for mean in row.mean_loss.values()]
            writer.writerow([escaped(row.key), row.rounds, *shown, row.alarms])
        return made.getvalue()

    # -- files

    def to_saved(self) -> tuple[list[object], dict[str, np.ndarray]]:
        """Return states of baselines and sums, in the order of keys."""
        count = len(self)
        arrays = {"rounds": self.rounds, "sums": self.sums, "risks": self.risks}
        return [own.state() for own in self.baselines], {k: a[:count] for k, a in arrays.items()}

    @classmethod
    def from_saved(
        cls,
        task: Task,
        others: Sequence[str],
        keys: Sequence[str],
        states: Sequence[list[object]],
        arrays: Mapping[str, np.ndarray],
    ) -> KeyScores:
        """Return what :meth:`to_saved` returned, for these keys, or refuse it."""
        made = cls(task, others)
        if keys:
            made.places(keys)
        rounds, sums, risks = (arrays[name] for name in ("rounds", "sums", "risks"))
        if len(made) != len(keys) or len(states) != len(keys):
            raise InputError(f"{len(keys)} keys cannot have {len(states)} baselines")
        shapes = (len(keys),), (len(keys), made.sums.shape[1]), (len(keys), *risks.shape[1:2])
        numbers = [own for own in (sums, risks) if own.dtype == np.float64]
        good = [own.shape for own in (rounds, sums, risks)] == list(shapes)
        good &= rounds.dtype == np.int64 and bool((rounds >= 0).all()) and len(numbers) == 2
        if not good or not all(bool(((own >= 0.0) & (own < np.inf)).all()) for own in numbers):
            raise InputError("sums of keys are damaged")
        for own, state in zip(made.baselines, states, strict=True):
            own.resume(state)
        made.rounds, made.sums, made.risks = rounds.copy(), sums.copy(), risks.copy()
        return made


def _longer(array: np.ndarray, size: int) -> np.ndarray:
    """Return an array with zeros after its rows."""
    made = np.zeros((size, *array.shape[1:]), dtype=array.dtype)
    made[: len(array)] = array
    return made
