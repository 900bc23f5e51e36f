r"""Cells as numbers of bins, and counts that forget.

A cell x of d features lies in one of b bins of equal size between :math:`-\sqrt{3/d}` and
:math:`\sqrt{3/d}`; outside, in the first or the last. That is where
:class:`~driftline.features.Ranks` puts cells, so that bins are quantiles; of standardised rows they
are equal parts of 1.7 deviations on either side.

Counts forget: after h rounds, the half-life, a row counts half. In place of all counts becoming
smaller, every new row counts more, by a factor :math:`2^{1/h}`; from time to time all is divided by
what a row counts now.
"""

from __future__ import annotations

import math

import numpy as np

from driftline.kernels import helper

__all__ = ["bin_of", "bins_of", "cut_of", "growth_of", "shrink"]

#: All counts are divided when a row counts more than this.
LARGEST = 1e100


def cut_of(width: int) -> float:
    """Return where the last bin of mapped rows of this length ends."""
    return math.sqrt(3.0 / width)


def growth_of(half_life: float) -> float:
    """Return how many times the row before a row counts."""
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
    """Divide counts by what a row counts, if that is much; return what it counts from now on."""
    if weight < LARGEST:
        return weight
    for i in range(counts.size):
        counts[i] /= weight
    return 1.0
