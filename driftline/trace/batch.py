"""Some rounds of a run, in columns by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

__all__ = ["Batch"]


@dataclass(frozen=True, eq=False)
class Batch:
    """Columns of equal length, and those of each member of a committee.

    Predictions are rows of integers, filled up by -1 where they differ in length.

    >>> batch = Batch({"risk": np.zeros(3), "prediction": np.ones((3, 1), dtype=np.int64)})
    >>> len(Batch.join([batch, batch])["risk"])
    6
    """

    columns: dict[str, np.ndarray]
    members: tuple[Batch, ...] = ()

    def __len__(self) -> int:
        """Return the number of rounds."""
        return len(self.columns["risk"])

    def __getitem__(self, name: str) -> np.ndarray:
        """Return a column."""
        return self.columns[name]

    @classmethod
    def join(cls, batches: Sequence[Batch]) -> Batch:
        """Return all rounds of some batches, one after the other."""
        if len(batches) == 1:
            return batches[0]
        names = batches[0].columns
        columns = {name: _joined([batch[name] for batch in batches]) for name in names}
        members = zip(*(batch.members for batch in batches), strict=True)
        return cls(columns, tuple(cls.join(own) for own in members))


def _joined(parts: list[np.ndarray]) -> np.ndarray:
    width = max(part.shape[1] for part in parts) if parts[0].ndim == 2 else 0
    if parts[0].dtype == np.int64 and width:
        parts = [np.pad(p, [(0, 0), (0, width - p.shape[1])], constant_values=-1) for p in parts]
    return np.concatenate(parts)
