"""What all checks share: how laws are stated, and what they are tried on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from driftline.errors import InputError
from driftline.tasks import Task
from driftline.typing import Label

__all__ = ["BrokenLawError", "labels_of", "law", "scores"]


class BrokenLawError(AssertionError):
    """A part breaks a law that it claims."""


def law(holds: object, words: str, **seen: object) -> None:
    """Raise :class:`BrokenLawError` with the law and what was seen, unless the law holds."""
    if not holds:
        numbers = "; ".join(f"{name} = {value!r}" for name, value in seen.items())
        raise BrokenLawError(f"{words}, but not for {numbers}")


def labels_of(task: Task, labels: Sequence[Label] | None) -> list[Label]:
    """Return the labels to try: those given, or all where the task names them."""
    chosen = list(task.labels.all) if labels is None else list(labels)
    if not chosen:
        raise InputError(f"{task!r} does not name its labels: give some by labels=[...]")
    return chosen


def scores(dim: int, trials: int, generator: np.random.Generator) -> Iterator[np.ndarray]:
    """Yield scores of many magnitudes, and ties of every number of scores."""
    for scale in (0.01, 0.3, 1.0, 3.0, 10.0, 40.0):
        yield from scale * generator.standard_normal((max(1, trials // 6), dim))
    for tied in range(1, dim + 1):
        for gap in (1e-6, 0.1, 1.0, 5.0, 60.0):
            theta = np.full(dim, -gap)
            theta[:tied] = 0.0
            yield theta
