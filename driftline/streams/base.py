"""What every stream offers."""

from __future__ import annotations

import numpy as np

from driftline.comparators import Piecewise
from driftline.errors import InputError
from driftline.tasks import Task
from driftline.typing import Inputs, Labels

__all__ = ["Stream", "check_count", "check_noise", "segment_starts", "unit_vectors"]


class Stream:
    """Rounds to play: a task, inputs and labels.

    ``comparator`` has the weights that made the labels, None where none are known;
    ``starts`` are the rounds at which the stream changes, the first 0.
    """

    task: Task
    inputs: Inputs
    labels: Labels
    comparator: Piecewise | None = None
    starts: np.ndarray

    def __len__(self) -> int:
        """Return the number of rounds."""
        return len(self.labels)


def check_count(value: float, least: int, what: str) -> int:
    """Return a whole number that is at least ``least``."""
    if int(value) != value or value < least:
        raise InputError(f"{what} must be a whole number of at least {least}, but is {value}")
    return int(value)


def segment_starts(rounds: int, flips: int) -> np.ndarray:
    """Return the starts of the n + 1 segments between n flips, of nearly equal lengths.

    >>> segment_starts(10, 2)
    array([0, 3, 6])
    """
    rounds = check_count(rounds, 1, "rounds")
    flips = check_count(flips, 0, "flips")
    if flips >= rounds:
        raise InputError(f"{rounds} rounds have no room for {flips} flips")
    return np.arange(flips + 1) * rounds // (flips + 1)


def check_noise(noise: float) -> None:
    """Refuse a noise that is not between 0 and 1."""
    if not 0.0 <= noise <= 1.0:
        raise InputError(f"noise must be a share from 0 to 1, but is {noise}")


def unit_vectors(generator: np.random.Generator, count: int, features: int) -> np.ndarray:
    """Return vectors drawn uniformly from those of norm 1, one a row."""
    rows: np.ndarray = generator.standard_normal((count, features))
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def unit_circle(rounds: int, generator: np.random.Generator) -> np.ndarray:
    """Return points drawn uniformly from the unit circle."""
    return unit_vectors(generator, rounds, 2)
