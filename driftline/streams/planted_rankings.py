"""Documents graded by planted weights that change."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from driftline.comparators import Piecewise
from driftline.errors import InputError
from driftline.streams.base import (
    Stream,
    check_count,
    check_noise,
    segment_starts,
    unit_vectors,
)
from driftline.tasks import RelevanceTask

__all__ = ["PlantedRankings"]


class PlantedRankings(Stream):
    """Queries of random documents, graded by thresholds on planted scores.

    Documents are random vectors of norm 1, and a planted weight vector of norm 1 scores them.
    Half of them have the lowest grade, and every further grade is half as frequent as the one
    below, but for the highest, which is as frequent as its neighbour. The weights are the
    comparator.

    Parameters
    ----------
    task
        :class:`~driftline.tasks.NDCG` or :class:`~driftline.tasks.PrecisionAtK`, for queries with
        their own documents.
    documents
        The smallest and the largest number of documents of a query; all from one to the other
        are equally likely.
    noise
        The share of documents whose grade is that of another random document.
    turn
        What a flip does to the weights: None draws new ones, ``"flip"`` negates them, a number
        rotates them by this angle, in radians, in a random direction.

    Examples
    --------
    >>> from driftline.tasks import NDCG
    >>> stream = PlantedRankings(NDCG(4), rounds=90, flips=2, seed=0)
    >>> stream.labels[0], stream.comparator
    (array([2, 1, 0, 0, 1, 0, 1, 2, 0, 2, 0, 0, 4, 1]), Piecewise(3 segments of shape (1, 10)))
    """

    def __init__(
        self,
        task: RelevanceTask,
        rounds: int = 10_000,
        flips: int = 10,
        features: int = 10,
        documents: tuple[int, int] = (5, 15),
        noise: float = 0.0,
        turn: Literal["flip"] | float | None = None,
        seed: int | None = 0,
    ):
        if not task.labels.graded or task.items is not None:
            raise InputError(f"task must be NDCG or PrecisionAtK with items=None, but is {task!r}")
        features = check_count(features, 2, "features")
        least, most = (check_count(count, 1, "documents") for count in documents)
        if least > most:
            raise InputError(f"documents must be a range, but {least} is more than {most}")
        check_noise(noise)
        self.task = task
        self.starts = segment_starts(rounds, flips)
        generator = np.random.default_rng(seed)
        weights = _weights(generator, flips + 1, features, turn)
        self.comparator = Piecewise(self.starts, weights[:, np.newaxis])

        sizes = generator.integers(least, most + 1, rounds)
        vectors = unit_vectors(generator, int(sizes.sum()), features)
        seen = vectors.copy()
        wrong = generator.random(len(seen)) < noise
        seen[wrong] = unit_vectors(generator, int(wrong.sum()), features)
        segment = np.searchsorted(self.starts, np.arange(rounds), side="right") - 1
        scores = np.einsum("nf,nf->n", seen, weights[np.repeat(segment, sizes)])
        cuts = _thresholds(task.highest - task.lowest, features)
        grades = task.lowest + np.searchsorted(cuts, scores, side="right")
        ends = np.cumsum(sizes)[:-1]
        self.inputs = np.split(vectors, ends)
        self.labels = np.split(grades, ends)


def _weights(
    generator: np.random.Generator, segments: int, features: int, turn: str | float | None
) -> np.ndarray:
    """Return one vector of norm 1 for every segment."""
    drawn = unit_vectors(generator, segments, features)
    if turn is None:
        return drawn
    if turn == "flip":
        return drawn[0] * (-1.0) ** np.arange(segments)[:, np.newaxis]
    if isinstance(turn, str) or not math.isfinite(turn):
        raise InputError(f"turn must be None, 'flip' or an angle in radians, but is {turn!r}")
    for before, after in zip(drawn, drawn[1:], strict=False):
        side = after - (after @ before) * before
        after[:] = math.cos(turn) * before + math.sin(turn) * side / np.linalg.norm(side)
    return drawn


def _thresholds(grades: int, features: int) -> np.ndarray:
    """Return the scores above which a half, a quarter, and so on of all documents lie."""
    from scipy.special import betaincinv

    shape = 0.5 * (features - 1)
    shares = 1.0 - 0.5 ** np.arange(1, grades + 1)
    return 2.0 * betaincinv(shape, shape, shares) - 1.0
