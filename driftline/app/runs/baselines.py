"""Baselines: the last label again, and the most frequent one so far."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from driftline.errors import InputError
from driftline.tasks import Task
from driftline.typing import Labels

__all__ = ["Baselines", "baselines_of"]


class Baselines(Protocol):
    """Predictors that use earlier labels only, and no inputs."""

    #: Their names.
    names: tuple[str, str]

    def losses(self, labels: Labels) -> np.ndarray:
        """Return the losses on the next labels, a row each, and remember these."""
        ...

    def late_losses(self, told: Labels, labels: Labels, known: np.ndarray) -> np.ndarray:
        """Return the losses on some labels, a row each, and remember those that were told.

        Of these, ``known`` were known when each of the others was predicted.
        """
        ...

    def state(self) -> list[Any]:
        """Return what is remembered as plain data."""
        ...

    def resume(self, state: list[Any]) -> None:
        """Go on from what was remembered."""
        ...


def baselines_of(task: Task) -> Baselines:
    """Return the baselines of a task."""
    if task.geometry.tags:
        return OfTags(task.dim)
    if task.labels.graded:
        return OfDocuments(task)
    return OfClasses(None if task.answers.zero_one else len(task.labels.all) - 1)


class OfClasses:
    """For classes and levels; before the first label both predict 0, ties keep the leader.

    >>> OfClasses().losses(np.array([1, 1, 0, 1])).tolist()
    [[1.0, 1.0], [0.0, 0.0], [1.0, 1.0], [1.0, 0.0]]
    """

    names = ("no change", "majority")

    def __init__(self, steps: int | None = None):
        self.steps, self.last, self.leader = steps, 0, 0
        self.counts: dict[int, int] = {}

    def losses(self, labels: Labels) -> np.ndarray:
        """Return the losses on the next labels, a row each, and remember these."""
        return self.late_losses(labels, labels, np.arange(len(labels)))

    def late_losses(self, told: Labels, labels: Labels, known: np.ndarray) -> np.ndarray:
        """Return the losses on labels, a row each, and remember those that were told."""
        codes, counts, leader = np.asarray(told, dtype=np.int64), self.counts, self.leader
        leaders = [leader]
        for code in codes.tolist():
            counts[code] = counts.get(code, 0) + 1
            if counts[code] > counts.get(leader, 0):
                leader = code
            leaders.append(leader)
        said = np.stack([np.r_[self.last, codes], leaders], axis=1)
        self.last, self.leader = int(said[-1, 0]), leader
        away = np.abs(said[known] - np.asarray(labels)[:, np.newaxis])
        return away / self.steps if self.steps else (away > 0).astype(np.float64)

    def state(self) -> list[Any]:
        """Return what is remembered as plain data."""
        return [self.last, self.leader, [list(pair) for pair in self.counts.items()]]

    def resume(self, state: list[Any]) -> None:
        """Go on from what was remembered."""
        last, leader, counts = state
        self.last, self.leader = _whole(last), _whole(leader)
        self.counts = {_whole(code): _whole(count) for code, count in counts}


class OfTags:
    """The same for every tag on its own; no tags before the first label.

    ``tags`` is their number, None if it may grow.
    """

    names = ("no change", "majority")

    def __init__(self, tags: int | None = None) -> None:
        self.tags, self.rounds = tags, 0
        self.last, self.counts = np.zeros((2, tags or 1), dtype=np.int64)

    def losses(self, labels: Labels) -> np.ndarray:
        """Return the losses on the next labels, a row each, and remember these."""
        return self.late_losses(labels, labels, np.arange(len(labels)))

    def late_losses(self, told: Labels, labels: Labels, known: np.ndarray) -> np.ndarray:
        """Return the losses on labels, a row each, and remember those that were told."""
        came, tags = np.asarray(told), np.asarray(labels)
        none = np.zeros((1, tags.shape[1]), dtype=np.int64)
        came = came.reshape(-1, tags.shape[1])
        last = np.vstack([none + self.last, came])
        counts = np.cumsum(np.vstack([none + self.counts, came]), axis=0)
        rounds = self.rounds + np.arange(len(counts))[:, np.newaxis]
        most = (2 * counts > rounds).astype(np.int64)
        self.last, self.counts, self.rounds = last[-1], counts[-1], int(rounds[-1, 0])
        said = [last[known] != tags, most[known] != tags]
        return np.stack([wrong.mean(axis=1) for wrong in said], axis=1)

    def state(self) -> list[Any]:
        """Return what is remembered as plain data."""
        return [self.last.tolist(), self.counts.tolist(), self.rounds]

    def resume(self, state: list[Any]) -> None:
        """Go on from what was remembered."""
        last, counts, rounds = state
        if len(last) != len(counts) or len(last) != (self.tags or len(last)):
            raise InputError(f"{self.tags} tags cannot have the counts {counts}")
        self.last, self.counts = (np.array([_whole(n) for n in part]) for part in (last, counts))
        self.rounds = _whole(rounds)


class OfDocuments:
    """Documents in the given order, and in a random order, with its expected loss."""

    names = ("as listed", "at random")

    def __init__(self, task: Task):
        self.task: Any = task

    def losses(self, labels: Labels) -> np.ndarray:
        """Return the losses on the next labels, a row each."""
        task = self.task
        pairs = [(task.loss(np.arange(len(y)), y), task.guess.of(y)) for y in labels]
        return np.array(pairs, dtype=np.float64).reshape(-1, 2)

    def late_losses(self, told: Labels, labels: Labels, known: np.ndarray) -> np.ndarray:
        """Return the losses on labels, a row each: nothing is remembered."""
        return self.losses(labels)

    def state(self) -> list[Any]:
        """Return an empty state."""
        return []

    def resume(self, state: list[Any]) -> None:
        """Do nothing: there is no state."""


def _whole(value: object) -> int:
    """Return a count from a file, if it is a whole number of 0 or more."""
    if not isinstance(value, int) or not 0 <= value < 2**62:
        raise InputError(f"expected a whole number, 0 or more, but saw {value!r}")
    return int(value)
