r"""The compiled side of the pairwise logistic loss.

Documents are sorted by gain, so that pairs of the same two gains, which have the same weight, stand
in blocks. With :math:`q = e^{\theta_j - \theta_i}`, a ratio of two exponentials that are computed
once for each document, a pair costs a division: its pull is :math:`q / (1 + q)`, and the logarithms
of :math:`1 + q` are taken of products of many.
"""

from __future__ import annotations

import math

from driftline.kernels import LOSS, helper, kernel, sort_decreasing
from driftline.kernels.sorting import sorting_room

__all__ = ["pairwise", "pairwise_workspace"]

#: Exponentials of scores further apart than this may overflow: then each pair has its own.
WIDE = 600.0

#: Products of ratios become logarithms beyond this; ratios beyond the others are summed alone.
LARGE, HUGE, SMALL = 1e200, 1e50, 1e-5


def pairwise_workspace(size: int) -> int:
    """Return room for an order, exponentials, and the sorting."""
    return 2 * size + sorting_room(size)


@helper
def largest_swap(discounts, d):
    """Return the largest difference of two neighbouring discounts."""
    most = 0.0
    for i in range(d - 1):
        most = max(most, discounts[i] - discounts[i + 1])
    return most


@helper
def pull(theta, i, order, first, stop, powers, wide, weight, grad):
    """Add the pulls of one document at all of a block; return the logarithms of its pairs."""
    total, product, pulled = 0.0, 1.0, 0.0
    inverse = 0.0 if wide else 1.0 / powers[i]
    for place in range(first, stop):
        j = int(order[place])
        if wide:
            margin = theta[i] - theta[j]
            small = math.exp(-abs(margin))
            share = small / (1.0 + small) if margin > 0.0 else 1.0 / (1.0 + small)
            total += math.log1p(small) + max(0.0, -margin)
        else:
            ratio = powers[j] * inverse
            share = ratio / (1.0 + ratio)
            if ratio < SMALL:
                total += ratio * (1.0 - ratio * (0.5 - ratio / 3.0))
            elif ratio > HUGE:
                total += math.log1p(ratio)
            else:
                product *= 1.0 + ratio
                if product > LARGE:
                    total += math.log(product)
                    product = 1.0
        pulled += share
        grad[j] += weight * share
    grad[i] -= weight * pulled
    return total + math.log(product)


@kernel(LOSS)
def pairwise(theta, target, params, work, grad):
    """Add up all pairs of different gains; parameters are the factor, and the discounts."""
    d = theta.size
    order, powers = work[:d], work[d : 2 * d]
    swap = largest_swap(params[1:], d) * params[0] / math.log(2.0)
    sort_decreasing(target, order, work[2 * d :])
    low, high = theta[0], theta[0]
    for i in range(d):
        grad[i] = 0.0
        low, high = min(low, theta[i]), max(high, theta[i])
    wide = not high - low < WIDE
    for i in range(d):
        powers[i] = 1.0 if wide else math.exp(theta[i] - 0.5 * (low + high))
    value, start = 0.0, 0
    while start < d:
        gain, stop = target[int(order[start])], start
        while stop < d and target[int(order[stop])] == gain:
            stop += 1
        first = stop
        while first < d:
            other, last = target[int(order[first])], first
            while last < d and target[int(order[last])] == other:
                last += 1
            weight = swap * (gain - other)
            for place in range(start, stop):
                i = int(order[place])
                value += weight * pull(theta, i, order, first, last, powers, wide, weight, grad)
            first = last
        start = stop
    return value
