r"""The compiled side of the pairwise logistic loss.

Documents are sorted by gain, so that pairs of the same two gains, which have the same weight, stand
in blocks. With :math:`q = e^{\theta_j - \theta_i}`, a ratio of two exponentials that are computed
once for each document, a pair costs a division: its pull is :math:`q / (1 + q)`, and the logarithms
of :math:`1 + q` are taken of products of many.
"""

from __future__ import annotations

import math

from driftline.kernels import LOSS, helper, kernel, loose_distinct, sort_decreasing
from driftline.kernels.sorting import sorting_room

__all__ = ["pairwise", "pairwise_workspace"]

#: Ratios are multiplied in chunks before a logarithm is taken, of as many pairs as have no product
#: above the exponential of ``MOST``; from ``NEAR`` on scores are too far apart for that. A chunk
#: whose ratios add up to less than ``SMALL`` is summed, so that small losses keep their digits.
CHUNK, MOST, NEAR, SMALL = 64, 640.0, 80.0, 1e-3


def pairwise_workspace(size: int) -> int:
    """Return room for an order, exponentials and gradients in it, and the sorting."""
    return 3 * size + sorting_room(size)


@helper
def largest_swap(discounts, d):
    """Return the largest difference of two neighbouring discounts."""
    most = 0.0
    for i in range(d - 1):
        most = max(most, discounts[i] - discounts[i + 1])
    return most


@loose_distinct
def pull_chunk(powers, slopes, inverse, weight):
    """Add the pulls of one document at some others.

    Return the sum of the ratios, the product of one plus each, and the sum of the pulls.
    """
    total, product, pulled = 0.0, 1.0, 0.0
    for k in range(powers.size):
        ratio = powers[k] * inverse
        share = ratio / (1.0 + ratio)
        slopes[k] += weight * share
        total += ratio
        product *= 1.0 + ratio
        pulled += share
    return total, product, pulled


@helper
def logarithms(powers, inverse):
    """Return the sum of log(1 + ratio) for small ratios, by five terms of its series."""
    total = 0.0
    for k in range(powers.size):
        ratio = powers[k] * inverse
        total += ratio * (1.0 - ratio * (0.5 - ratio * (1 / 3 - ratio * (0.25 - ratio * 0.2))))
    return total


@helper
def pull_near(powers, slopes, inverse, weight, chunk):
    """Add the pulls of one document at a block; return the logarithms of its pairs, its pull."""
    value, pulled = 0.0, 0.0
    for first in range(0, powers.size, chunk):
        stop = min(first + chunk, powers.size)
        part = powers[first:stop]
        total, product, own = pull_chunk(part, slopes[first:stop], inverse, weight)
        value += logarithms(part, inverse) if total < SMALL else math.log(product)
        pulled += own
    return value, pulled


@helper
def pull_far(scores, score, slopes, weight):
    """Do the same where exponentials could overflow: each pair has one of its own."""
    value, pulled = 0.0, 0.0
    for k in range(scores.size):
        margin = score - scores[k]
        small = math.exp(-abs(margin))
        share = small / (1.0 + small) if margin > 0.0 else 1.0 / (1.0 + small)
        slopes[k] += weight * share
        value += math.log1p(small) + max(0.0, -margin)
        pulled += share
    return value, pulled


@helper
def stop_of(order, target, first):
    """Return where the documents with the gain of this one end."""
    stop = first
    while stop < order.size and target[int(order[stop])] == target[int(order[first])]:
        stop += 1
    return stop


@kernel(LOSS)
def pairwise(theta, target, params, work, grad):
    """Add up all pairs of different gains; parameters are the factor, and the discounts."""
    d = theta.size
    order, powers, slopes = work[:d], work[d : 2 * d], work[2 * d : 3 * d]
    swap = largest_swap(params[1:], d) * params[0] / math.log(2.0)
    sort_decreasing(target, order, work[3 * d :])
    low, high = theta[0], theta[0]
    for i in range(d):
        low, high = min(low, theta[i]), max(high, theta[i])
    near = high - low < NEAR
    chunk = int(min(CHUNK, MOST / (high - low + 1.0))) if near else 1
    for place in range(d):  # all in the order of gains
        score = theta[int(order[place])]
        powers[place] = math.exp(score - 0.5 * (low + high)) if near else score
        slopes[place] = 0.0
    value, start = 0.0, 0
    while start < d:
        stop = stop_of(order, target, start)
        first = stop
        while first < d:
            last = stop_of(order, target, first)
            weight = swap * (target[int(order[start])] - target[int(order[first])])
            others, pulls = powers[first:last], slopes[first:last]
            for place in range(start, stop):
                if near:
                    logs, pulled = pull_near(others, pulls, 1.0 / powers[place], weight, chunk)
                else:
                    logs, pulled = pull_far(others, powers[place], pulls, weight)
                value += weight * logs
                slopes[place] -= weight * pulled
            first = last
        start = stop
    for place in range(d):
        grad[int(order[place])] = slopes[place]
    return value
