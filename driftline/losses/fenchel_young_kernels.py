"""The compiled side of Fenchel-Young losses: one kernel for a regularizer, whatever the polytope.

The kernel of the polytope is called by its address, an integer that a parameter holds exactly.
Parameters are the factor of the whole loss, the scale of the regularizer, the address, 1 if the
kernel is a solver's, which leaves its duality gap first in its scratch space, and those of the
polytope. The workspace begins with the mean prediction, for the decoder.
"""

from __future__ import annotations

from driftline.kernels import LOSS, call_conjugate, call_point, dot, helper, kernel

__all__ = ["entropy", "positive", "quadratic", "quadratic_loss"]

#: How many parameters there are before those of the polytope.
HEADER = 4


@helper
def positive(value):
    """Return max(0, value), against rounding; NaN stays NaN, so that it is noticed."""
    return 0.0 if value < 0.0 else value


@helper
def quadratic_loss(theta, mu, target, scale, factor, grad):
    """Write the gradient; return the loss of a quadratic, given the mean prediction."""
    total = 0.0
    for i in range(mu.size):
        slope = mu[i] - target[i]
        total += (theta[i] - 0.5 * scale * (mu[i] + target[i])) * slope
        grad[i] = factor * slope
    return positive(total)


@kernel(LOSS)
def quadratic(theta, target, params, work, grad):
    """Project the scores."""
    d, scale = theta.size, params[1]
    mu, point = work[:d], work[d : 2 * d]
    for i in range(d):
        point[i] = theta[i] / scale
    call_point(int(params[2]), (point, params[HEADER:], work[2 * d :], mu))
    if params[3] > 0.0:
        work[2 * d] *= params[0] * scale
    return params[0] * quadratic_loss(theta, mu, target, scale, params[0], grad)


@kernel(LOSS)
def entropy(theta, target, params, work, grad):
    """Take the conjugate; the entropy of a label is 0."""
    d, scale = theta.size, params[1]
    mu, point = work[:d], work[d : 2 * d]
    for i in range(d):
        point[i] = theta[i] / scale
    value = call_conjugate(int(params[2]), (point, params[HEADER:], work[2 * d :], mu))
    for i in range(d):
        grad[i] = params[0] * (mu[i] - target[i])
    return params[0] * positive(scale * (value - dot(point, target)))
