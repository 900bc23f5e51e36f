"""Labels from planted weights that change."""

from __future__ import annotations

import numpy as np

from driftline.comparators import Piecewise
from driftline.streams.base import (
    Stream,
    check_count,
    check_noise,
    segment_starts,
    unit_vectors,
)
from driftline.tasks import Task

__all__ = ["Planted"]


class Planted(Stream):
    """Random inputs of norm 1, with the label that planted linear scores put first.

    At every flip new weights are drawn, of Frobenius norm 1; they are the comparator. A share
    ``noise`` of the labels is that of another random input.

    >>> from driftline.tasks import LabelRanking
    >>> stream = Planted(LabelRanking(4), rounds=90, flips=2, seed=0)
    >>> stream.labels.shape, stream.comparator
    ((90, 4), Piecewise(3 segments of shape (4, 10)))
    """

    def __init__(
        self,
        task: Task,
        rounds: int = 10_000,
        flips: int = 10,
        features: int = 10,
        noise: float = 0.0,
        seed: int | None = 0,
    ):
        features = check_count(features, 1, "features")
        check_noise(noise)
        self.task = task
        self.starts = segment_starts(rounds, flips)
        generator = np.random.default_rng(seed)
        self.inputs = unit_vectors(generator, rounds, features)
        weights = generator.standard_normal((flips + 1, task.dim, features))
        weights /= np.sqrt((weights**2).sum(axis=(1, 2), keepdims=True))
        self.comparator = Piecewise(self.starts, weights)
        segment = np.searchsorted(self.starts, np.arange(rounds), side="right") - 1
        seen = self.inputs.copy()
        wrong = generator.random(rounds) < noise
        seen[wrong] = unit_vectors(generator, int(wrong.sum()), features)
        scores = np.einsum("tdf,tf->td", weights[segment], seen)
        self.labels = np.array([task.geometry.top_label(theta) for theta in scores])
