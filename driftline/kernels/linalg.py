"""The inner loops everything else waits for.

Strict floating point keeps a dot product from being vectorised; here, and only here,
the compiler may reorder sums and fuse multiplications with additions. It may not
assume that numbers are finite: that is how bad input is found.
"""

import numpy as np
from numba import njit

from driftline.kernels.compile import OPTIONS, helper

_fast = njit(fastmath={"reassoc", "contract", "nsz"}, forceinline=True, **OPTIONS)


@_fast
def dot(a, b):
    """Inner product."""
    total = 0.0
    for i in range(a.size):
        total += a[i] * b[i]
    return total


@_fast
def add_scaled(out, factor, x):
    """``out += factor * x``."""
    for i in range(x.size):
        out[i] += factor * x[i]


@_fast
def rescale(out, factor):
    """``out *= factor``; return the squared norm of the result."""
    total = 0.0
    for i in range(out.size):
        out[i] *= factor
        total += np.float64(out[i]) * np.float64(out[i])
    return total


@helper
def argmax(a):
    """Index of the largest entry, the lowest of several."""
    best = 0
    for i in range(1, a.size):
        if a[i] > a[best]:
            best = i
    return best
