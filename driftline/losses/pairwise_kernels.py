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
#: above the exponential of ``MOST``. Scores that are further apart than ``NEAR`` count by their
#: distance, beyond which the logarithm is linear; beyond ``FAR`` exponentials overflow. A chunk
#: whose ratios add up to less than ``SMALL`` is summed, so that small losses keep their digits.
CHUNK, MOST, NEAR, FAR, SMALL = 64, 640.0, 37.0, 1400.0, 1e-3

#: Up to this many different gains are sorted by a pass for each, which is faster than sorting.
FEW_GAINS = 8

#: The largest ratio of scores that are near.
LARGE = math.exp(NEAR)


def pairwise_workspace(size: int) -> int:
    """Return room for an order, exponentials and gradients in it, and the sorting."""
    return 4 * size + sorting_room(size)


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


@loose_distinct
def pull_wide(powers, slopes, inverse, weight, scores, score):
    """Do the same with ratios of at most ``LARGE``; return beside it how far scores are beyond."""
    total, product, pulled, beyond = 0.0, 1.0, 0.0, 0.0
    for k in range(powers.size):
        ratio = powers[k] * inverse
        ratio = ratio if ratio < LARGE else LARGE
        away = scores[k] - score - NEAR
        share = ratio / (1.0 + ratio)
        slopes[k] += weight * share
        total += ratio
        product *= 1.0 + ratio
        pulled += share
        beyond += away if away > 0.0 else 0.0
    return total, product, pulled, beyond


@helper
def logarithms(powers, inverse):
    """Return the sum of log(1 + ratio) for small ratios, by five terms of its series."""
    total = 0.0
    for k in range(powers.size):
        ratio = powers[k] * inverse
        total += ratio * (1.0 - ratio * (0.5 - ratio * (1 / 3 - ratio * (0.25 - ratio * 0.2))))
    return total


@helper
def pull_near(better, own, powers, slopes, weight, chunk, high, scores):
    """Add the pulls of all documents of a block at those of another; return the logarithms.

    Scores of both are given where some are not near.
    """
    value, carried, count = 0.0, 1.0, 0
    for place in range(better.size):
        inverse, pulled = 1.0 / better[place], 0.0
        for first in range(0, powers.size, chunk):
            stop = min(first + chunk, powers.size)
            part, pulls = powers[first:stop], slopes[first:stop]
            if scores.size > 0:
                given = scores[first:stop], high[place]
                total, product, pull, beyond = pull_wide(part, pulls, inverse, weight, *given)
                value += beyond
            else:
                total, product, pull = pull_chunk(part, pulls, inverse, weight)
            pulled += pull
            if total < SMALL:
                value += logarithms(part, inverse)
                continue
            if count + stop - first > chunk:
                value += math.log(carried)
                carried, count = 1.0, 0
            carried *= product
            count += stop - first
        own[place] -= weight * pulled
    return value + math.log(carried)


@helper
def pull_far(better, own, scores, slopes, weight):
    """Do the same where exponentials could overflow: each pair has one of its own."""
    value = 0.0
    for place in range(better.size):
        for k in range(scores.size):
            margin = better[place] - scores[k]
            small = math.exp(-abs(margin))
            share = small / (1.0 + small) if margin > 0.0 else 1.0 / (1.0 + small)
            slopes[k] += weight * share
            own[place] -= weight * share
            value += math.log1p(small) + max(0.0, -margin)
    return value


@helper
def sort_gains(target, order, room):
    """Write the indices of gains, largest first, equal ones in their order."""
    placed, gain = 0, target[0]
    for i in range(target.size):
        gain = max(gain, target[i])
    for _ in range(FEW_GAINS):
        below = -1.0
        for i in range(target.size):
            if target[i] == gain:
                order[placed] = i
                placed += 1
            elif target[i] < gain:
                below = max(below, target[i])
        if placed == target.size:
            return
        gain = below
    sort_decreasing(target, order, room)


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
    scores = work[3 * d : 4 * d]
    swap = largest_swap(params[1:], d) * params[0] / math.log(2.0)
    sort_gains(target, order, work[4 * d :])
    low, high = theta[0], theta[0]
    for i in range(d):
        low, high = min(low, theta[i]), max(high, theta[i])
    near, far = high - low < NEAR, not high - low < FAR
    chunk = int(min(CHUNK, MOST / (min(high - low, NEAR) + 1.0)))
    for place in range(d):  # all in the order of gains
        scores[place] = theta[int(order[place])]
        powers[place] = 0.0 if far else math.exp(scores[place] - 0.5 * (low + high))
        slopes[place] = 0.0
    value, start = 0.0, 0
    while start < d:
        stop = stop_of(order, target, start)
        first = stop
        while first < d:
            last = stop_of(order, target, first)
            weight = swap * (target[int(order[start])] - target[int(order[first])])
            own, pulls = slopes[start:stop], slopes[first:last]
            better, others = scores[start:stop], scores[first : first if near else last]
            if far:
                logs = pull_far(better, own, others, pulls, weight)
            else:
                given = powers[first:last], pulls, weight, chunk, better, others
                logs = pull_near(powers[start:stop], own, *given)
            value += weight * logs
            first = last
        start = stop
    for place in range(d):
        grad[int(order[place])] = slopes[place]
    return value
