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

from driftline.kernels import helper
from driftline.state.arena import Field

__all__ = ["bin_of", "bins_of", "counts", "cut_of", "growth_of", "shrink", "weight"]

#: All counts are divided when a row counts more than this.
LARGEST = 1e100

#: The largest sum of counts, in rows of the newest weight, whatever the half-life.
MOST_ROWS = 1e16


def weight(name: str) -> Field:
    """Return the field of the weight of a row, or of a mistake."""
    return Field(name, fill=1.0, least=1.0, most=2.0 * LARGEST)


def counts(name: str, *axes: str | int) -> Field:
    """Return a field of counts that forget."""
    return Field(name, axes, least=0.0, most=LARGEST * MOST_ROWS)


def cut_of(width: int) -> float:
    """Return where the last bin of mapped rows of this length ends."""
    return math.sqrt(3.0 / width)


def growth_of(half_life: float) -> float:
    """Return by which factor a row counts more than the row before it."""
    return float(2.0 ** (1.0 / half_life))


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
