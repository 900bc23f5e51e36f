"""The confusion table of a run, updated as it goes on."""

from __future__ import annotations

import numpy as np

from driftline.errors import InputError
from driftline.typing import Labels

__all__ = ["Counts"]

#: The most classes that are counted.
MOST = 30


class Counts:
    """A table of labels by predictions for classes, or of hits and misses for every tag.

    Rounds without an answer are not in it.

    >>> counts = Counts()
    >>> counts.add(np.array([0, 2, 2]), np.array([0, 2, 1]))
    >>> counts.table.tolist()
    [[1, 0, 0], [0, 0, 0], [0, 1, 1]]
    """

    def __init__(self) -> None:
        self.table: np.ndarray | None = np.zeros((0, 0), dtype=np.int64)
        self.tags = False

    @classmethod
    def from_saved(cls, table: np.ndarray | None, tags: bool) -> Counts:
        """Return counts from a file; without a table, counting has stopped."""
        made = cls()
        if table is not None:
            good = table.ndim == 2 and table.shape[1] == (4 if tags else len(table))
            if table.dtype != np.int64 or not good or (table < 0).any():
                raise InputError(f"counts cannot have the shape {table.shape}")
        made.table, made.tags = table, tags
        return made

    def add(self, labels: Labels, predictions: np.ndarray) -> None:
        """Count some rounds; labels that are neither classes nor tags are not counted."""
        if self.table is None:
            return
        truth = np.asarray(labels) if not isinstance(labels, list) else None
        if truth is not None and truth.ndim == 2 and truth.shape[1] == 1:
            truth = truth[:, 0]
        if truth is None or truth.shape != predictions.shape or truth.ndim > 2:
            self.table = None
        elif truth.ndim == 1:
            self._classes(truth, predictions)
        else:
            kinds = [(truth == a) & (predictions == b) for a, b in ((1, 1), (1, 0), (0, 1), (0, 0))]
            more = np.stack([kind.sum(axis=0) for kind in kinds], axis=1)
            self.table = more if not self.tags else self.table + more
            self.tags = True

    def _classes(self, truth: np.ndarray, predictions: np.ndarray) -> None:
        assert self.table is not None
        answered = predictions >= 0
        truth, predictions = truth[answered], predictions[answered]
        size = 1 + int(max(truth.max(initial=0), predictions.max(initial=0)))
        if size > MOST:
            self.table = None
            return
        more = max(0, size - len(self.table))
        self.table = np.pad(self.table, [(0, more), (0, more)])
        np.add.at(self.table, (truth, predictions), 1)
