"""The inner loops everything else waits for.

Strict floating point keeps a dot product from being vectorised. In functions marked as loose, and
only there, the compiler may reorder sums and fuse multiplications with additions. It may not assume
that numbers are finite, since bad input is found by sums that are not.
"""

from driftline.kernels.backend import njit
from driftline.kernels.compile import INLINED, DistinctPieces, helper
from driftline.kernels.elementary import where

REORDER = {"reassoc", "contract", "nsz"}

loose = njit(fastmath=REORDER, **INLINED)

#: The same for functions none of whose arrays overlap. A loop over many slices of one array is not
#: vectorised otherwise: there would be too many pairs of addresses to compare.
loose_distinct = njit(fastmath=REORDER, **INLINED | {"pipeline_class": DistinctPieces})


@loose
def dot(a, b):
    """Inner product."""
    total = 0.0
    for i in range(a.size):
        total += a[i] * b[i]
    return total


@loose
def add_scaled(out, factor, x):
    """``out += factor * x``."""
    for i in range(x.size):
        out[i] += factor * x[i]


@helper
def scaled_square(x, factor):
    """Squared norm of ``factor * x``, in double precision.

    Strictly one after the other: it is rare, and must have the same bits in every loop, whatever
    the compiler makes of it there.
    """
    total = 0.0
    for i in range(x.size):
        total += (factor * x[i]) ** 2
    return total


@loose
def make_smaller(out, factor):
    """``out *= factor``, and set entries that are then smaller than the factor to 0."""
    factor = out.dtype.type(factor)
    for i in range(out.size):
        small = out[i] * factor
        out[i] = small if abs(small) >= factor else out.dtype.type(0.0)


@helper
def peak(a):
    """Return the largest entry and its index, the lowest of several."""
    high, top = a[0], 0.0
    for i in range(1, a.size):
        top = where(a[i] > high, i, top)
        high = where(a[i] > high, a[i], high)
    return high, top


@helper
def at_peak(a, values):
    """Return what stands in ``values`` where the largest entry of a is."""
    high, value = a[0], values[0]
    for i in range(1, a.size):
        value = where(a[i] > high, values[i], value)
        high = where(a[i] > high, a[i], high)
    return value


@helper
def argmax(a):
    """Index of the largest entry, the lowest of several."""
    best = 0
    for i in range(1, a.size):
        if a[i] > a[best]:
            best = i
    return best
