"""A control for ``make test-hard``: bounds checking is on, and finds what it should."""

import os

import numpy as np
import pytest

from driftline.kernels import POINT, kernel

CHECKED = os.environ.get("NUMBA_BOUNDSCHECK") == "1"


@kernel(POINT)
def read_past_the_end(point, params, scratch, out):
    """Read one number too many."""
    out[0] = point[point.size]


@pytest.mark.hard
@pytest.mark.skipif(not CHECKED, reason="only with NUMBA_BOUNDSCHECK=1, in a cache of its own")
def test_a_kernel_that_reads_past_its_buffer_fails():
    with pytest.raises(IndexError):
        read_past_the_end(np.zeros(3), np.zeros(1), np.zeros(1), np.zeros(1))
