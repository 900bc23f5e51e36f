"""Many uniform numbers from one.

A random prediction may take more than one decision. All of them come from one uniform number,
so that a round takes one from the generator, whatever its size: its bits are the seed of
SplitMix64 (Steele, Lea and Flood, 2014), whose i-th output is a function of seed and i alone.
"""

from __future__ import annotations

import numpy as np

from driftline.kernels.compile import helper

STEP = np.uint64(0x9E3779B97F4A7C15)
FIRST = np.uint64(0xBF58476D1CE4E5B9)
SECOND = np.uint64(0x94D049BB133111EB)


@helper
def spread(uniform, i):
    """Return the i-th number that one uniform number stands for."""
    bits = np.uint64(uniform * 9007199254740992.0) + STEP * (np.uint64(i) + np.uint64(1))
    bits = (bits ^ (bits >> np.uint64(30))) * FIRST
    bits = (bits ^ (bits >> np.uint64(27))) * SECOND
    bits = bits ^ (bits >> np.uint64(31))
    return (bits >> np.uint64(11)) / 9007199254740992.0
