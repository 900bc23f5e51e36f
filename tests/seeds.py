"""Seeds that nobody has tried, for ``make test-hard``."""

import os

import numpy as np


def fresh_seed():
    """Return a new seed, or that in ``DRIFTLINE_SEED``; it is shown, so that it can be repeated."""
    seed = int(os.environ.get("DRIFTLINE_SEED") or np.random.SeedSequence().entropy % 2**31)
    print(f"\nDRIFTLINE_SEED={seed}")
    return seed
