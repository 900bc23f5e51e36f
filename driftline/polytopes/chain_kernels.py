r"""Best paths and marginals of a chain whose transitions have the same scores everywhere.

Scores are *folded*: those of all n positions, :math:`\theta_{tk}`, and then once those of all
transitions, :math:`S_{ik}`. An encoding is folded, too: unit vectors of the positions, and how
often each transition occurs. With :math:`E = e^{S - \max S}` and :math:`u_t = e^{\theta_t - \max
\theta_t}`, forward and backward sums are products of vectors and one matrix,

.. math:: \alpha_t = u_t \circ (E^\top \alpha_{t-1}) / c_t, \qquad
   \beta_{t-1} = E (u_t \circ \beta_t) / c_t,

with :math:`c_t` such that :math:`\alpha_t` adds up to 1. Marginals of positions are
:math:`\alpha_t \circ \beta_t`, and those of transitions add up to
:math:`E \circ \sum_t \alpha_{t-1} (u_t \circ \beta_t / c_t)^\top`, one product of matrices.

Where transition scores differ by R at most, every :math:`\beta_t` is within :math:`e^{\pm R}`: to
go on from another tag costs that much at most. So a term below :math:`e^{-400}` that counts as 0
changes no sum by more than :math:`e^{R - 400}` of it, and nothing overflows. For R above 200 sums
are computed by logarithms.
"""

from __future__ import annotations

import math

import numpy as np

from driftline.kernels import (
    best_sums,
    dot,
    exponentials,
    helper,
    loose,
    loose_distinct,
    padded,
    pitch_of,
    product,
    turn,
)

__all__ = [
    "best_path",
    "folded_length",
    "length_of",
    "marginals",
    "marginals_room",
    "path_room",
    "unfold",
    "unfolded_length",
    "unfolded_size",
]

#: The largest difference of transition scores for which sums are computed without logarithms.
LARGEST_RANGE = 200.0

#: Sums are multiplied up to this size before their logarithm is taken, and down to one over it.
LARGE = 2.0**300


def folded_length(size: int, tags: int, transitions: bool) -> int:
    """Return how many positions there are, from the size of folded scores."""
    return (size - (tags * tags if transitions else 0)) // tags


#: The same for kernels.
length_of = helper(folded_length)


@helper
def unfolded_length(size, tags):
    """Return how many positions there are, from the number of all tags and edges."""
    return (size + tags * tags) // (tags + tags * tags)


@helper
def unfolded_size(size, tags):
    """Return how many numbers folded scores stand for; 0 tags if they are not folded."""
    return size + ((size - tags * tags) // tags - 2) * tags * tags if tags > 0 else size


@helper
def unfold(scores, tags, divisor, out):
    """Write all scores over a divisor, those of transitions after every position."""
    square = tags * tags
    nodes = scores.size - square
    for i in range(nodes):
        out[i] = scores[i] / divisor
    for i in range(min(square, out.size - nodes)):
        pair = scores[nodes + i] / divisor
        for place in range(nodes + i, out.size, square):
            out[place] = pair


@helper
def copy_row(row, shift, tags, out, rest):
    """Write a row of scores minus a number, and ``rest`` behind it."""
    for k in range(tags):
        out[k] = row[k] - shift
    for k in range(tags, out.size):
        out[k] = rest


@loose
def multiply(out, x):
    """``out *= x``; return the sum."""
    total = 0.0
    for k in range(out.size):
        out[k] *= x[k]
        total += out[k]
    return total


@loose_distinct
def write_product(x, y, out):
    """``out = x y``."""
    for k in range(x.size):
        out[k] = x[k] * y[k]


@loose
def shift(out, by):
    """``out -= by``."""
    for k in range(out.size):
        out[k] -= by


@helper
def largest(matrix, rows, pitch, room):
    """Return the largest entry of a padded matrix, none of whose padding is larger."""
    room[pitch] = 0.0
    best_sums(room[pitch:], 0, rows, matrix, pitch, room)
    top = room[0]
    for k in range(1, pitch):
        top = max(top, room[k])
    return top


@loose
def shrink(out, factor):
    """``out *= factor``."""
    for k in range(out.size):
        out[k] *= factor


def path_room(n: int, tags: int) -> int:
    """Return the room for :func:`best_path`."""
    return (n + tags) * padded(tags)


@helper
def best_path(theta, n, tags, room, path):
    """Write the best sequence (Viterbi's algorithm); ties go to the lowest tag."""
    pitch = pitch_of(tags)
    scores, best = room[: tags * pitch], room[tags * pitch :]
    for i in range(tags):
        copy_row(theta[(n + i) * tags :], 0.0, tags, scores[i * pitch : (i + 1) * pitch], 0.0)
    copy_row(theta, 0.0, tags, best[:pitch], 0.0)
    for t in range(1, n):
        here = best[t * pitch : (t + 1) * pitch]
        best_sums(best[(t - 1) * pitch :], 1, tags, scores, pitch, here)
        for k in range(tags):
            here[k] += theta[t * tags + k]
    tag = 0
    last = best[(n - 1) * pitch :]
    for k in range(1, tags):
        if last[k] > last[tag]:
            tag = k
    path[n - 1] = tag
    for t in range(n - 1, 0, -1):
        before, top = best[(t - 1) * pitch : t * pitch], 0
        value = before[0] + scores[tag]
        for i in range(1, tags):
            other = before[i] + scores[i * pitch + tag]
            if other > value:
                value, top = other, i
        tag = top
        path[t - 1] = tag


def marginals_room(n: int, tags: int) -> int:
    """Return the room for :func:`marginals`."""
    return (2 * n + 3 * padded(tags) + 1) * padded(tags)


@helper
def marginals(theta, target, n, tags, room, out):
    """Write the folded marginals; return the log-normaliser minus the score of the target."""
    pitch = pitch_of(tags)
    square = pitch * pitch
    powers, turned, pairs = room[:square], room[square : 2 * square], room[2 * square : 3 * square]
    behind = room[3 * square : 3 * square + pitch]
    ahead = room[3 * square + pitch : 3 * square + (n + 1) * pitch]
    later = room[3 * square + (n + 1) * pitch : 3 * square + (2 * n + 1) * pitch]
    for i in range(pitch):
        row = theta[(n + i if i < tags else n) * tags :]
        copy_row(row, 0.0, tags if i < tags else 0, powers[i * pitch : (i + 1) * pitch], -np.inf)
    high = largest(powers, tags, pitch, room[3 * square :])
    for i in range(square):
        turned[i] = -powers[i] if powers[i] > -np.inf else -np.inf
    if not high + largest(turned, tags, pitch, room[3 * square :]) <= LARGEST_RANGE:
        return marginals_by_logarithms(theta, target, n, tags, room, out)
    value = (n - 1) * high - dot(theta[n * tags :], target[n * tags :])
    shift(powers, high)
    exponentials(powers)
    turn(powers, pitch, turned)
    for t in range(n):  # powers of all positions at once
        own = theta[t * tags : (t + 1) * tags]
        top = own[0]
        for k in range(1, tags):
            top = max(top, own[k])
        copy_row(own, top, tags, later[t * pitch : (t + 1) * pitch], -np.inf)
        value += top - dot(own, target[t * tags : (t + 1) * tags])
    exponentials(later)
    for k in range(pitch):
        behind[k] = 1.0 if k < tags else 0.0
    scale = 1.0
    for t in range(n):
        here, own = ahead[t * pitch : (t + 1) * pitch], later[t * pitch : (t + 1) * pitch]
        if t > 0:
            product(ahead[(t - 1) * pitch :], 1, tags, powers, pitch, here)
        else:
            copy_row(behind, 0.0, pitch, here, 0.0)
        total = multiply(here, own)
        shrink(here, 1.0 / total)
        shrink(own, 1.0 / total)
        scale *= total
        if scale > LARGE or scale < 1.0 / LARGE:
            value += math.log(scale)
            scale = 1.0
    value += math.log(scale)
    for t in range(n - 1, -1, -1):
        here, own = ahead[t * pitch : (t + 1) * pitch], later[t * pitch : (t + 1) * pitch]
        write_product(here[:tags], behind[:tags], out[t * tags : (t + 1) * tags])
        if t > 0:
            multiply(own, behind)
            product(own, 1, tags, turned, pitch, behind)
    for i in range(tags):
        product(ahead[i:], pitch, n - 1, later[pitch:], pitch, pairs[i * pitch :])
        place, row = (n + i) * tags, i * pitch
        write_product(pairs[row : row + tags], powers[row : row + tags], out[place : place + tags])
    return value


@helper
def marginals_by_logarithms(theta, target, n, tags, room, out):
    """Do the same for scores of any size, at the cost of an exponential for every pair."""
    ahead, behind = room[: n * tags], room[n * tags : 2 * n * tags]
    scores = theta[n * tags :]
    for k in range(tags):
        ahead[k] = theta[k]
        behind[(n - 1) * tags + k] = 0.0
    for t in range(1, n):
        before = ahead[(t - 1) * tags : t * tags]
        for k in range(tags):
            top, total = -np.inf, 0.0
            for i in range(tags):
                top = max(top, before[i] + scores[i * tags + k])
            for i in range(tags):
                total += math.exp(before[i] + scores[i * tags + k] - top)
            ahead[t * tags + k] = top + math.log(total) + theta[t * tags + k]
    for t in range(n - 2, -1, -1):
        for i in range(tags):
            top, total = -np.inf, 0.0
            for k in range(tags):
                rest = theta[(t + 1) * tags + k] + behind[(t + 1) * tags + k]
                top = max(top, scores[i * tags + k] + rest)
            for k in range(tags):
                rest = theta[(t + 1) * tags + k] + behind[(t + 1) * tags + k]
                total += math.exp(scores[i * tags + k] + rest - top)
            behind[t * tags + i] = top + math.log(total)
    top, total = -np.inf, 0.0
    for k in range(tags):
        top = max(top, ahead[(n - 1) * tags + k])
    for k in range(tags):
        total += math.exp(ahead[(n - 1) * tags + k] - top)
    normaliser = top + math.log(total)
    for i in range(n * tags):
        out[i] = math.exp(ahead[i] + behind[i] - normaliser)
    for i in range(tags * tags):
        out[n * tags + i] = 0.0
    for t in range(n - 1):
        for i in range(tags):
            for k in range(tags):
                rest = theta[(t + 1) * tags + k] + behind[(t + 1) * tags + k] - normaliser
                score = ahead[t * tags + i] + scores[i * tags + k] + rest
                out[n * tags + i * tags + k] += math.exp(score)
    value = normaliser
    for i in range(theta.size):
        value -= theta[i] * target[i]
    return value
