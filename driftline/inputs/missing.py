"""Missing cells: how they may be treated, and the running means that they are filled by."""

from __future__ import annotations

import numpy as np

__all__ = ["FILLS", "running_sums"]

#: Refused, 0, or the mean of all values in the rows before.
FILLS = ("refuse", "zero", "mean")
#: Larger values count as this in means, so that no sum of them overflows.
LARGEST = 1e150


def running_sums(
    cells: np.ndarray, counted: np.ndarray, sums: np.ndarray, counts: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return sums and counts of every feature before each row, and after the last one.

    Cells that are not ``counted`` may be anything. Rows are added one after the other, so that
    pieces of any size give the same bits.

    >>> cells = np.array([[1.0], [np.nan], [4.0]])
    >>> sums, counts = running_sums(cells, ~np.isnan(cells), np.zeros(1), np.zeros(1))
    >>> sums.ravel().tolist(), counts.ravel().tolist()
    ([0.0, 1.0, 1.0, 5.0], [0.0, 1.0, 1.0, 2.0])
    """
    known = np.where(counted, np.clip(cells, -LARGEST, LARGEST), 0.0)
    made = np.cumsum(np.vstack([sums, known]), axis=0, dtype=np.float64)
    return made, np.cumsum(np.vstack([counts, counted]), axis=0, dtype=np.float64)
