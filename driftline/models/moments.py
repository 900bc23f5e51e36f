"""Means and deviations of features, learned row by row: one pass for what is learned and written.

Every feature goes its own way through these loops, and always the same one, so a stream in pieces
gives the bits of a stream in one.
"""

import math

from driftline.kernels import loose


@loose
def count_in(x, share, means, squares, scales, out):
    """Let means and sums of squared deviations (Welford) learn a row of this share.

    Write how far it is from the means, scaled, and return the squared norm of that.
    """
    total = 0.0
    for j in range(x.size):
        away = x[j] - means[j]
        mean = means[j] + share * away
        rest = x[j] - mean
        means[j] = mean
        squares[j] += away * rest
        far = scales[j] * rest
        total += far * far
        out[j] = far
    return total


@loose
def renew(share, squares, scales):
    """Write one over the deviation of every feature, 0 for one that has not varied."""
    for j in range(scales.size):
        variance = share * squares[j]
        scales[j] = 1.0 / math.sqrt(variance) if variance > 0.0 else 0.0


@loose
def place(x, means, scales, out):
    """Write how far a row is from the means, scaled; return the squared norm of that."""
    total = 0.0
    for j in range(x.size):
        far = scales[j] * (x[j] - means[j])
        total += far * far
        out[j] = far
    return total


@loose
def multiply(out, factor):
    """``out *= factor``, in the precision of ``out``."""
    factor = out.dtype.type(factor)
    for j in range(out.size):
        out[j] *= factor
