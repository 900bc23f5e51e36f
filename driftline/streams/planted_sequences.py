"""Tag sequences from planted weights that change."""

from __future__ import annotations

import numpy as np

from driftline.comparators import Piecewise
from driftline.streams.base import Stream, check_count, segment_starts
from driftline.tasks import Sequence

__all__ = ["PlantedSequences"]


class PlantedSequences(Stream):
    """Sequences of random vectors of norm 1, labelled by the best path for planted weights.

    Lengths are drawn uniformly up to ``longest``. At every flip new weights of tags and
    transitions are drawn, of Frobenius norm 1; they are the comparator.

    >>> stream = PlantedSequences(rounds=20, flips=1, seed=0)
    >>> len(stream.inputs), stream.comparator
    (20, Piecewise(2 segments of shape (5, 15)))
    """

    def __init__(
        self,
        rounds: int = 2000,
        flips: int = 10,
        tags: int = 5,
        features: int = 10,
        longest: int = 8,
        seed: int | None = 0,
    ):
        features = check_count(features, 1, "features")
        longest = check_count(longest, 1, "longest")
        self.task = Sequence(tags)
        self.starts = segment_starts(rounds, flips)
        generator = np.random.default_rng(seed)
        weights = generator.standard_normal((flips + 1, tags, features + tags))
        weights /= np.sqrt((weights**2).sum(axis=(1, 2), keepdims=True))
        self.comparator = Piecewise(self.starts, weights)
        self.inputs = []
        for length in generator.integers(1, longest + 1, rounds):
            x = generator.standard_normal((length, features))
            self.inputs.append(x / np.linalg.norm(x, axis=1, keepdims=True))
        rows = self.task.layout.rows(self.inputs)
        scores = (rows.scores(self.comparator.at(t), False, t, False) for t in range(rounds))
        self.labels = [self.task.top_prediction(theta) for theta in scores]
