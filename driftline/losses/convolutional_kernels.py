"""The compiled side of convolutional losses: classes, tags, relevance grades, other polytopes.

All write the best move of the scores first into the workspace. Parameters are the factor of
the whole loss, the scale of the regularizer, and 1 if its domain is the whole space.
"""

from __future__ import annotations

import math

from driftline.kernels import (
    LOSS,
    call_conjugate,
    call_point,
    dot,
    helper,
    kernel,
    pool_decreasing,
    sort_decreasing,
)
from driftline.kernels.sorting import sorting_room
from driftline.losses.fenchel_young_kernels import positive, quadratic_loss
from driftline.losses.logistic import soft_slope, soften
from driftline.polytopes.relevance import onto_relevance
from driftline.polytopes.simplex import onto_simplex, simplex_threshold


@helper
def move_classes(theta, work):
    """Write the probability that each class is missed, and the scores cut at the threshold.

    The latter are relative to the highest score, which matters only in the whole space.
    """
    d = theta.size
    top, threshold = simplex_threshold(theta, work[d : 2 * d])
    for i in range(d):
        work[i] = min(1.0, 1.0 - (theta[i] - top - threshold))
        work[d + i] = min(theta[i] - top, threshold)


@kernel(LOSS)
def classes_entropy(theta, target, params, work, grad):
    """Sparsemax for the decoder, softmax of the moved scores for the gradient."""
    d = theta.size
    scale = params[1]
    move_classes(theta, work)
    moved = work[d : 2 * d]
    for i in range(d):
        moved[i] /= scale
    rest = scale * soften(moved, target, work[2 * d :])
    soft_slope(target, work[2 * d :], params[0], grad)
    return params[0] * (dot(target, work[:d]) + rest)


@kernel(LOSS)
def classes_quadratic(theta, target, params, work, grad):
    """Sparsemax twice, for the decoder and for the gradient."""
    d = theta.size
    scale = params[1]
    move_classes(theta, work)
    moved = work[d : 2 * d]
    mu = work[2 * d : 3 * d]
    if params[2] > 0.0:
        for i in range(d):
            moved[i] = theta[i] + work[i]
            mu[i] = moved[i] / scale
    else:
        for i in range(d):
            moved[i] /= scale
        onto_simplex(moved, mu)
        for i in range(d):
            moved[i] *= scale
    rest = quadratic_loss(moved, mu, target, scale, params[0], grad)
    return params[0] * (dot(target, work[:d]) + rest)


@helper
def move_tags(theta, work):
    """Write the move of every score towards 0, by half the share of a tag at most."""
    d = theta.size
    most = 0.5 / d
    for i in range(d):
        work[i] = -min(most, max(-most, theta[i]))
        work[d + i] = theta[i] + work[i]


@helper
def risk_of_tags(work, target):
    """Return the expected share of wrong tags."""
    total = 0.0
    for i in range(target.size):
        total += 0.5 / target.size + target[i] * work[i]
    return positive(total)


@kernel(LOSS)
def tags_entropy(theta, target, params, work, grad):
    """Sum the logistic losses of scores moved towards 0."""
    d = theta.size
    scale = params[1]
    move_tags(theta, work)
    total = 0.0
    for i in range(d):
        margin = 2.0 * target[i] * work[d + i] / scale
        small = math.exp(-abs(margin))
        doubt = small / (1.0 + small)
        value = math.log1p(small)
        if margin < 0.0:
            value -= margin
            doubt = 1.0 - doubt
        total += scale * value
        grad[i] = -2.0 * params[0] * target[i] * doubt
    return params[0] * (risk_of_tags(work, target) + total)


@kernel(LOSS)
def tags_quadratic(theta, target, params, work, grad):
    """Sum the Huber losses of scores moved towards 0."""
    d = theta.size
    scale = params[1]
    move_tags(theta, work)
    moved = work[d : 2 * d]
    mu = work[2 * d : 3 * d]
    for i in range(d):
        mu[i] = moved[i] / scale
        if params[2] == 0.0:
            mu[i] = min(1.0, max(-1.0, mu[i]))
    rest = quadratic_loss(moved, mu, target, scale, params[0], grad)
    return params[0] * (risk_of_tags(work, target) + rest)


def relevance_workspace(size: int) -> int:
    """Return the size of the buffer of :func:`relevance_quadratic`."""
    return 5 * size + sorting_room(size)


@kernel(LOSS)
def relevance_quadratic(theta, target, params, work, grad):
    """One sort; pooling gives the move, and the moved scores in order; then one root.

    The move subtracts from the scores their projection onto all orders of the discounts. The rest
    is decreasing in the order of the scores, so that its own projection needs no sort.
    """
    d = theta.size
    scale = params[1]
    discounts = params[3:]
    move = work[:d]
    order = work[d : 2 * d]
    left = work[2 * d : 3 * d]
    mu = work[3 * d : 4 * d]
    excess = work[4 * d : 5 * d]
    buffer = work[5 * d :]
    sort_decreasing(theta, order, buffer)
    for i in range(d):
        excess[i] = theta[int(order[i])] - discounts[i]
    pool_decreasing(excess, buffer, left)
    for i in range(d):
        move[int(order[i])] = left[i] - theta[int(order[i])]
        left[i] /= scale
    if params[2] > 0.0:
        for i in range(d):
            mu[i] = left[i]
    else:
        onto_relevance(left, discounts, buffer, mu)
    rest = 0.0
    asked = False
    for i in range(d):
        j = int(order[i])
        slope = mu[i] - target[j]
        rest += scale * (left[i] - 0.5 * (mu[i] + target[j])) * slope
        grad[j] = params[0] * slope
        asked = asked or target[j] != 0.0
    if not asked:
        for i in range(d):
            grad[i] = 0.0
        return 0.0
    return params[0] * (positive(1.0 + dot(target, move)) + positive(rest))


#: How many parameters there are before those of the polytope: the three of all, the factor of loss
#: encodings, the offset, the addresses of the projection and of the entropy's conjugate, and the
#: size of parts (`Geometry.part_size`), each of which is a simplex.
HEADER = 8


@helper
def move_vertices(theta, params, work):
    """Write the projection of minus the scores onto loss encodings, and the moved scores."""
    d, factor, shift = theta.size, params[3], 0.0
    if params[7] > 0.0:  # the projection onto a simplex does not depend on the shift
        factor *= params[7] / d
        shift = -factor
    move, moved, point = work[:d], work[d : 2 * d], work[3 * d : 4 * d]
    for i in range(d):
        point[i] = -theta[i] / factor
    call_point(int(params[5]), (point, params[HEADER:], work[4 * d :], move))
    for i in range(d):
        move[i] = factor * move[i] + shift
        moved[i] = theta[i] + move[i]


@helper
def risk_of_move(work, target, params):
    """Return the expected target loss of the move."""
    return positive(dot(target, work[: target.size]) + params[4])


@kernel(LOSS)
def vertices_quadratic(theta, target, params, work, grad):
    """Project twice, for the decoder and for the gradient."""
    d, scale = theta.size, params[1]
    move_vertices(theta, params, work)
    moved, mu, point = work[d : 2 * d], work[2 * d : 3 * d], work[3 * d : 4 * d]
    for i in range(d):
        point[i] = moved[i] / scale
        mu[i] = point[i]
    if params[2] == 0.0:
        call_point(int(params[5]), (point, params[HEADER:], work[4 * d :], mu))
    rest = quadratic_loss(moved, mu, target, scale, params[0], grad)
    return params[0] * (risk_of_move(work, target, params) + rest)


@kernel(LOSS)
def vertices_entropy(theta, target, params, work, grad):
    """Project for the decoder, and take the conjugate at the moved scores for the gradient."""
    d, scale = theta.size, params[1]
    move_vertices(theta, params, work)
    moved, mu, point = work[d : 2 * d], work[2 * d : 3 * d], work[3 * d : 4 * d]
    for i in range(d):
        point[i] = moved[i] / scale
    value = call_conjugate(int(params[6]), (point, params[HEADER:], work[4 * d :], mu))
    for i in range(d):
        grad[i] = params[0] * (mu[i] - target[i])
    rest = positive(scale * (value - dot(point, target)))
    return params[0] * (risk_of_move(work, target, params) + rest)
