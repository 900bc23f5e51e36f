r"""Cells as numbers of bins, and counts that forget.

A cell x of d features lies in one of b bins of equal size between :math:`-\sqrt{3/d}` and
:math:`\sqrt{3/d}`; outside, in the first or the last. That is where
:class:`~driftline.features.Ranks` puts cells, so that bins are quantiles; of standardised rows they
are equal parts of 1.7 deviations on either side.

Counts decay: after h rounds, the half-life, a row counts half. Instead of shrinking all counts,
every new row counts more, by a factor :math:`2^{1/h}`; from time to time all counts are divided by
the weight of the newest row.
"""

from __future__ import annotations

import math

import numpy as np

from driftline.errors import InputError
from driftline.kernels import helper

__all__ = ["bin_of", "bins_of", "check_counts", "cut_of", "growth_of", "shrink"]

#: All counts are divided when a row counts more than this.
LARGEST = 1e100

#: The largest sum of counts, in rows of the newest weight, whatever the half-life.
MOST_ROWS = 1e16


def cut_of(width: int) -> float:
    """Return where the last bin of mapped rows of this length ends."""
    return math.sqrt(3.0 / width)


def growth_of(half_life: float) -> float:
    """Return by which factor a row counts more than the row before it."""
    return float(2.0 ** (1.0 / half_life))


def check_counts(weights: np.ndarray, counts: np.ndarray) -> None:
    """Refuse counts that no rows can add up to; ``weights`` are those of a row, or of a mistake."""
    if (weights < 1.0).any() or (weights > 2.0 * LARGEST).any():
        raise InputError(f"a row counts 1 or more, and {2.0 * LARGEST:g} at most")
    if (counts < 0.0).any() or (counts > LARGEST * MOST_ROWS).any():
        raise InputError(f"counts are 0 or more, and {LARGEST * MOST_ROWS:g} at most")


def bins_of(cells: np.ndarray, bins: int) -> np.ndarray:
    """Return the numbers of the bins that the cells of a row lie in."""
    shares = np.clip(0.5 * (cells / cut_of(len(cells)) + 1.0), 0.0, 1.0)
    return np.minimum((shares * bins).astype(np.int64), bins - 1)


@helper
def bin_of(cell, cut, bins):
    """Return the number of the bin that a cell lies in."""
    share = min(max(0.5 * (cell / cut + 1.0), 0.0), 1.0)
    return min(int(share * bins), bins - 1)


@helper
def shrink(counts, weight):
    """Divide counts by the weight of a row, if that is large; return its weight from now on."""
    if weight < LARGEST:
        return weight
    for i in range(counts.size):
        counts[i] /= weight
    return 1.0
