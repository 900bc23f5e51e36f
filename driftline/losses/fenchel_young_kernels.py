"""The compiled side of Fenchel-Young losses: one kernel for a regularizer, whatever the polytope.

The kernel of the polytope is called by its address, an integer that a parameter holds exactly.
Parameters are the factor of the whole loss, the scale of the regularizer, the address, 1 if the
kernel is a solver's, which leaves its duality gap first in its scratch space, the number of tags if
scores are folded (`Geometry.pair_tags`), and those of the polytope. The workspace begins with the
mean prediction, of all entries, for the decoder. It ends with the gap, a place that is the same in
rounds of all sizes.
"""

from __future__ import annotations

from driftline.kernels import LOSS, call_conjugate, call_point, dot, helper, kernel
from driftline.polytopes.chain_kernels import unfold, unfolded_size

__all__ = ["entropy", "positive", "quadratic", "quadratic_loss"]

#: How many parameters there are before those of the polytope.
HEADER = 5


@helper
def positive(value):
    """Return max(0, value), against rounding; NaN stays NaN, so that it is noticed."""
    return 0.0 if value < 0.0 else value


@helper
def quadratic_loss(theta, mu, target, scale, factor, grad):
    """Write the gradient; return the loss of a quadratic, given the mean prediction."""
    return positive(quadratic_sum(theta, mu, target, scale, factor, grad))


@helper
def quadratic_sum(theta, mu, target, scale, factor, grad):
    """Do the same, but for rounding errors of 0."""
    total = 0.0
    for i in range(target.size):
        slope = mu[i] - target[i]
        total += (theta[i] - 0.5 * scale * (mu[i] + target[i])) * slope
        grad[i] = factor * slope
    return total


@helper
def pairs_sum(theta, mu, target, scale, factor, tags, grad):
    """Do the same for transitions: folded scores, and their gradient, but means of all pairs.

    A label has a pair where it has both of its tags.
    """
    total, nodes, square = 0.0, target.size - tags * tags, tags * tags
    for i in range(square):
        grad[nodes + i] = 0.0
    for t in range(nodes // tags - 1):
        for i in range(tags):
            start, edge = t * tags, nodes + i * tags
            for k in range(tags):
                mean = mu[nodes + t * square + i * tags + k]
                label = target[start + i] * target[start + tags + k]
                slope = mean - label
                total += (theta[edge + k] - 0.5 * scale * (mean + label)) * slope
                grad[edge + k] += factor * slope
    return total


@kernel(LOSS)
def quadratic(theta, target, params, work, grad):
    """Project the scores."""
    scale, tags = params[1], int(params[4])
    d, nodes = unfolded_size(theta.size, tags), theta.size - tags * tags
    mu, point = work[:d], work[d : 2 * d]
    unfold(theta, tags, scale, point)
    call_point(int(params[2]), (point, params[HEADER:], work[2 * d :], mu))
    if params[3] > 0.0:
        work[work.size - 1] = params[0] * scale * work[2 * d]
    total = quadratic_sum(theta, mu, target[:nodes], scale, params[0], grad)
    if tags > 0:
        total += pairs_sum(theta, mu, target, scale, params[0], tags, grad)
    return params[0] * positive(total)


@kernel(LOSS)
def entropy(theta, target, params, work, grad):
    """Take the conjugate; the entropy of a label is 0."""
    scale, tags = params[1], int(params[4])
    d, nodes = unfolded_size(theta.size, tags), theta.size - tags * tags
    mu, point = work[:d], work[d : 2 * d]
    unfold(theta, tags, scale, point)
    value = call_conjugate(int(params[2]), (point, params[HEADER:], work[2 * d :], mu))
    value -= dot(point[:nodes], target[:nodes])
    for i in range(nodes):
        grad[i] = params[0] * (mu[i] - target[i])
    for i in range(nodes, theta.size):
        total = -target[i]
        for place in range(i, d, tags * tags):
            total += mu[place]
        grad[i] = params[0] * total
        value -= theta[i] / scale * target[i]
    return params[0] * positive(scale * value)
