"""Test data for the laws of learners: streams, bad and longer rows, files as bytes."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from driftline.checks.base import law
from driftline.errors import InputError
from driftline.learner import Learner
from driftline.state import archive
from driftline.streams import Planted, PlantedRankings, PlantedSequences, Stream
from driftline.typing import Input, Inputs, Json, Labels, Prediction

__all__ = [
    "Refused",
    "check_refused",
    "equal",
    "features_of",
    "longer",
    "other_labels",
    "planted",
    "row",
    "saved",
    "spoiled",
]

#: A call that must be refused: the words of the two laws (refused, unchanged), and the call.
Refused = tuple[str, str, Callable[[], object]]


def planted(learner: Learner, rounds: int, seed: int) -> tuple[Inputs, Labels]:
    """Return a stream for a task: plain rows, chains of tags, or documents."""
    task: Any = learner.task
    stream: Stream
    if not task.layout.ragged:
        stream = Planted(task, rounds=rounds, flips=2, seed=seed)
    elif hasattr(task, "tags"):
        stream = PlantedSequences(rounds=rounds, tags=task.tags, longest=4, seed=seed)
    else:
        stream = PlantedRankings(task, rounds=rounds, seed=seed)
    return stream.inputs, stream.labels


def row(inputs: Inputs, t: int) -> Input:
    """Return the input of one round."""
    return inputs[[t]] if _sparse(inputs) else inputs[t]


def features_of(inputs: Inputs) -> int:
    """Return how many features the rows of a stream have."""
    first = inputs if _sparse(inputs) else np.asarray(inputs[0])
    return int(first.shape[-1])


def spoiled(inputs: Inputs, t: int) -> Inputs:
    """Return a copy of a stream in which one row is not finite."""
    if _sparse(inputs):
        made = inputs.astype(np.float64, copy=True)
        made.data[made.indptr[t] : made.indptr[t + 1]] = np.nan
        return made
    if isinstance(inputs, np.ndarray):
        made = inputs.astype(np.float64, copy=True)
        made[t] = np.nan
        return made
    return [*inputs[:t], np.asarray(inputs[t]) * np.nan, *inputs[t + 1 :]]


def longer(inputs: Inputs, more: int) -> Inputs:
    """Return plain rows with features of 0 after the others."""
    if _sparse(inputs):
        made = inputs.copy()
        made.resize((inputs.shape[0], inputs.shape[1] + more))
        return made
    return np.pad(np.asarray(inputs), [(0, 0), (0, more)])


def other_labels(learner: Learner, labels: Labels) -> Labels:
    """Return labels that fit the same rows, most of them wrong."""
    if learner.task.layout.ragged:
        return [np.asarray(label)[::-1] for label in labels]
    return np.roll(np.asarray(labels), 1, axis=0)


def equal(one: Prediction, other: Prediction) -> bool:
    """Say whether two predictions are the same."""
    return np.array_equal(np.asarray(one), np.asarray(other))


def saved(learner: Learner) -> bytes:
    """Return the file that a learner is saved to, without its id."""
    with tempfile.TemporaryDirectory() as folder:
        about, arrays = archive.read(learner.save(Path(folder) / "learner"))
    return archive.packed(without_id(about), arrays)


def without_id(about: Json) -> Json:
    """Leave out the id of a learner, which is no part of what makes it equal to another."""
    return {
        name: without_id(value) if isinstance(value, dict) else value
        for name, value in about.items()
        if name != "identity"
    }


def check_refused(learner: Learner, calls: Iterable[Refused]) -> None:
    """Check that calls are refused by an InputError, and that each leaves the learner unchanged.

    Each call comes with the words of the laws that it must not break.
    """
    before = saved(learner), learner.rounds, learner.features
    for what, unchanged, call in calls:
        raised: Exception | None = None
        try:
            call()
        except Exception as error:  # a learner of one's own may raise anything
            raised = error
        law(isinstance(raised, InputError), f"{what}, by an InputError", raised=raised, by=learner)
        after = saved(learner), learner.rounds, learner.features
        law(after == before, unchanged, learner=learner)


def _sparse(inputs: Inputs) -> bool:
    return hasattr(inputs, "indptr")
