r"""The compiled side of the convolutional loss of F scores, with a quadratic.

A mean encoding of labels has the chance :math:`p_s` of every size s, and for every tag i that of
being set in a label of this size: :math:`0 \le \mu_{is} \le p_s`, :math:`\sum_i \mu_{is} = s p_s`.
Mean predictions are described by :math:`q_k` and :math:`\beta_{ik}` alike, and move the scores by
:math:`\nu = -\beta S'` with :math:`S_{sk}` what a tag earns. The best prediction for
:math:`\mu` is a linear program, so that with its multipliers t, u and W the saddle point of the
loss is one convex problem,

.. math:: \min \frac\lambda2 \|\mu\|^2 - \langle \theta, \mu \rangle + t, \qquad
   W_{ik} \ge 0, \quad W_{ik} + u_k \ge (\mu S)_{ik}, \quad t \ge k u_k + \textstyle\sum_i W_{ik},

for :math:`\mu` and p as above; :math:`\beta` and q are the multipliers of the last two constraints.
The sets of no and of all tags have but one element: each has a chance, and no column. An
interior-point method with Mehrotra's corrector follows the path on which all products of a
constraint and its multiplier are the same, to 0.

A step solves for the d - 1 entries of :math:`\mu` in the row of each tag first, then for what all
rows have in common: p, u, the multipliers y of the sums, q, and six numbers. That is O(d^4).

In the end :math:`\beta` and :math:`\mu` are made feasible, and the duality gap follows from the best
prediction and the best label: whatever the path came to, the gap is that of the move.

References
----------
Waegeman, Dembczynski, Jachnik, Cheng and Hullermeier (2014), *On the Bayes-optimality of F-measure
maximizers*; Mehrotra (1992), *On the implementation of a primal-dual interior point method*.
"""  # noqa: E501

from __future__ import annotations

import math

from driftline.kernels import (
    LOSS,
    add_scaled,
    dot,
    factorise,
    furthest,
    helper,
    kernel,
    padded,
    pitch_of,
    product,
    product_from,
    routine,
    solve_factored,
    sort_decreasing,
    sorting_room,
    system_room,
)
from driftline.losses.fenchel_young_kernels import positive, quadratic_loss
from driftline.polytopes.hypersimplex import threshold

__all__ = ["fscore_chances", "fscore_gap", "fscore_quadratic", "fscore_workspace"]

#: Steps of the path, the sum of products at which it ends over the size of scores, and how far a
#: step goes of what keeps all numbers positive.
STEPS, ENOUGH, NEARLY = 60, 1e-12, 0.995

#: The least square of a pivot over what it is a difference of: rounding leaves no less.
ROUNDED = 1e-14

#: How far a step may miss what chances add up to.
MISSED = 1e-8

#: How many parameters there are before the number of tags and what they earn.
HEADER = 3


def fscore_gap(size: int) -> int:
    """Return where the gap stands in the workspace, for this many scores."""
    return 3 * size


def fscore_chances(size: int) -> tuple[int, int]:
    """Return where the chances of sizes and tags stand, and how many there are."""
    return 3 * size + 1, size


def fscore_workspace(size: int) -> int:
    """Return room for move, moved scores, mean label, gap, chances, and the path."""
    d = math.isqrt(size - 1)
    inner, m = d * (d - 1), 4 * d + 2
    pairs = 4 * inner + d + 3
    path = 5 * pairs + 3 * d + m + inner + padded(m) + inner * (d - 1 + padded(m))
    path += system_room(m)
    return sum(fscore_chances(size)) + path + 4 * d + sorting_room(d)


@helper
def harmonic(first, second):
    """Return two ratios of multipliers to constraints as their sum's inverse and second share."""
    inverse = 1.0 / (first + second)
    return inverse, second * inverse


@routine
def build(d, scale, shares, X, Z, factors, columns, system, row):
    """Write the factors of every tag's own system, and of what they have in common.

    A tag has its factor of d - 1 rows, and as many rows of columns by which common unknowns enter,
    multiplied by the inverse of the factor. ``row`` is room for one of them.
    """
    D, m, pitch = d - 1, 4 * d + 2, pitch_of(4 * d + 2)
    N, o = d * D, 4 * d * D + D
    full, none = 2 * D, 2 * D + 1
    ys, qs, qfull, qnone, z, t = 2 * D + 2, 3 * D + 2, 4 * D + 2, 4 * D + 3, 4 * D + 4, 4 * D + 5
    for j in range(m * pitch):
        system[j] = 0.0
    for s in range(D):
        system[s * pitch + ys + s] = -(s + 1.0)
        system[s * pitch + z] = 1.0
        system[(D + s) * pitch + qs + s] = s + 1.0
        system[(qs + s) * pitch + qs + s] = -X[4 * N + s] / Z[4 * N + s]
        system[(qs + s) * pitch + t] = -1.0
    system[full * pitch + full] = scale * d + Z[o + 1] / X[o + 1]
    system[none * pitch + none] = scale + Z[o] / X[o]
    system[full * pitch + z], system[none * pitch + z], system[none * pitch + qnone] = 1.0, 1.0, 1.0
    system[full * pitch + qfull] = d * shares[d * d - 1]
    system[qfull * pitch + qfull] = -X[o + 3] / Z[o + 3]
    system[qnone * pitch + qnone] = -X[o + 2] / Z[o + 2]
    system[qfull * pitch + t], system[qnone * pitch + t] = -1.0, -1.0
    for i in range(d):
        factor = factors[i * D * D : (i + 1) * D * D]
        own = columns[i * D * pitch : (i + 1) * D * pitch]
        for j in range(D * D):
            factor[j] = 0.0
        for j in range(D * pitch):
            own[j] = 0.0
        for k in range(D):
            e = i * D + k
            inverse, part = harmonic(Z[2 * N + e] / X[2 * N + e], Z[3 * N + e] / X[3 * N + e])
            bend, last = part * Z[2 * N + e] / X[2 * N + e], shares[D * d + k]
            system[(D + k) * pitch + D + k] += bend
            system[(D + k) * pitch + full] -= bend * last
            system[full * pitch + full] += bend * last * last
            system[(D + k) * pitch + qs + k] -= part
            system[full * pitch + qs + k] += part * last
            system[(qs + k) * pitch + qs + k] -= inverse
            for s in range(D):
                share = shares[s * d + k]
                own[s * pitch + D + k] = -bend * share
                own[s * pitch + full] += bend * share * last
                own[s * pitch + qs + k] = part * share
                for r in range(s + 1):
                    factor[s * D + r] += bend * share * shares[r * d + k]
        for s in range(D):
            e = i * D + s
            ratio = Z[N + e] / X[N + e]
            factor[s * D + s] += scale + Z[e] / X[e] + ratio
            system[s * pitch + s] += ratio
            own[s * pitch + s] = -ratio
            own[s * pitch + ys + s] = 1.0
            own[s * pitch + qfull] = shares[s * d + D]
        for s in range(D):
            for r in range(s + 1):
                less = dot(factor[s * D : s * D + r], factor[r * D : r * D + r])
                if r < s:
                    factor[s * D + r] = (factor[s * D + r] - less) / factor[r * D + r]
                else:
                    own_sq = factor[s * D + s]
                    factor[s * D + s] = math.sqrt(max(own_sq - less, ROUNDED * own_sq))
        for s in range(D):
            here = own[s * pitch : (s + 1) * pitch]
            product(factor[s * D :], 1, s, own, pitch, row)
            for j in range(pitch):
                here[j] = (here[j] - row[j]) / factor[s * D + s]
    for j in range(m):
        product_from(columns[j:], pitch, N, columns, pitch, j, row)
        for k in range(j, m):
            system[j * pitch + k] -= row[k]
    factorise(system, m, ys, t)


@routine
def direct(theta, d, scale, shares, X, Z, goal, free, factors, columns, system, x, dX, dZ, bends):
    """Write the step that makes all products what ``goal`` says; common unknowns in ``x``."""
    D, m, pitch = d - 1, 4 * d + 2, pitch_of(4 * d + 2)
    N, o = d * D, 4 * d * D + D
    full, none = 2 * D, 2 * D + 1
    ys, qs, qfull, qnone, z, t = 2 * D + 2, 3 * D + 2, 4 * D + 2, 4 * D + 3, 4 * D + 4, 4 * D + 5
    for j in range(4 * N + D + 4):
        dZ[j] = goal[j] / X[j] - Z[j]  # and later less Z / X times the step of X
    x[z], x[t] = 1.0 - X[o] - X[o + 1], Z[o + 2] + Z[o + 3] - 1.0
    x[none] = theta[0] - scale * X[o] - free[3 * D + 1] + Z[o] - Z[o + 2] + dZ[o]
    x[full] = Z[o + 1] - scale * d * X[o + 1] - free[3 * D + 1] - d * shares[d * d - 1] * Z[o + 3]
    x[full] += dZ[o + 1]
    x[qfull] = -(goal[o + 3] / Z[o + 3] - X[o + 3])
    x[qnone] = -(goal[o + 2] / Z[o + 2] - X[o + 2])
    for s in range(D):
        x[z] -= free[s]
        x[t] += Z[4 * N + s]
        x[s] = (s + 1.0) * free[2 * D + s] - free[3 * D + 1]
        x[D + s] = -(s + 1.0) * Z[4 * N + s]
        x[ys + s] = (s + 1.0) * free[s]
        x[qs + s] = -(goal[4 * N + s] / Z[4 * N + s] - X[4 * N + s])
    for i in range(d):
        factor, right = factors[i * D * D : (i + 1) * D * D], dX[i * D : (i + 1) * D]
        x[full] += theta[1 + i * d + D]
        for s in range(D):
            e = i * D + s
            gradient = scale * X[e] - theta[1 + i * d + s] + free[2 * D + s] - Z[e] + Z[N + e]
            right[s] = dZ[e] - dZ[N + e] - gradient - shares[s * d + D] * Z[o + 3]
            x[s] += Z[N + e] + dZ[N + e]
            x[ys + s] -= X[e]
        for k in range(D):
            e = i * D + k
            inverse, part = harmonic(Z[2 * N + e] / X[2 * N + e], Z[3 * N + e] / X[3 * N + e])
            lack = Z[4 * N + k] - Z[2 * N + e] - Z[3 * N + e]
            both = dZ[2 * N + e] + dZ[3 * N + e] - lack
            bends[e] = dZ[3 * N + e] - part * both
            x[D + k] += Z[3 * N + e] + bends[e]
            x[full] -= shares[D * d + k] * (Z[3 * N + e] + bends[e])
            x[qs + k] -= inverse * both
            for s in range(D):
                right[s] -= shares[s * d + k] * (Z[3 * N + e] + bends[e])
        for s in range(D):
            right[s] -= dot(factor[s * D : s * D + s], right[:s])
            right[s] /= factor[s * D + s]
            start = (i * D + s) * pitch
            add_scaled(x, -right[s], columns[start : start + m])
    solve_factored(system, m, x)
    for k in range(D):
        dX[4 * N + k] = x[t] - (k + 1.0) * x[D + k]
        dZ[4 * N + k] = x[qs + k]
    dX[o], dX[o + 1], dX[o + 2] = x[none], x[full], x[t] - x[none]
    dX[o + 3] = x[t] - d * shares[d * d - 1] * x[full]
    for j in range(2):
        dZ[o + j] -= Z[o + j] / X[o + j] * dX[o + j]
    dZ[o + 2], dZ[o + 3] = x[qnone], x[qfull]
    for i in range(d):
        factor, step = factors[i * D * D : (i + 1) * D * D], dX[i * D : (i + 1) * D]
        for s in range(D):
            start = (i * D + s) * pitch
            step[s] -= dot(columns[start : start + m], x)
        for s in range(D - 1, -1, -1):
            for r in range(s + 1, D):
                step[s] -= factor[r * D + s] * step[r]
            step[s] /= factor[s * D + s]
        for s in range(D):
            e = i * D + s
            dX[N + e] = x[s] - step[s]
            dX[o + 3] -= shares[s * d + D] * step[s]
            dZ[e] -= Z[e] / X[e] * dX[e]
            dZ[N + e] -= Z[N + e] / X[N + e] * dX[N + e]
        for k in range(D):
            e = i * D + k
            first, second = Z[2 * N + e] / X[2 * N + e], Z[3 * N + e] / X[3 * N + e]
            inverse, part = harmonic(first, second)
            earned = shares[D * d + k] * x[full]
            for s in range(D):
                earned += shares[s * d + k] * step[s]
            lack = Z[4 * N + k] - Z[2 * N + e] - Z[3 * N + e]
            both = dZ[2 * N + e] + dZ[3 * N + e] - lack
            less = x[D + k] - earned
            move = inverse * (both - x[qs + k] - second * less)
            dX[2 * N + e], dX[3 * N + e] = move, move + less
            dX[4 * N + k] -= move
            dZ[2 * N + e] -= first * move
            dZ[3 * N + e] = bends[e] + part * x[qs + k] - part * first * less


@helper
def missed(d, X, Z, dX, dZ, free, x):
    """Return by how much sums of chances and of tags would miss what they are to be."""
    D = d - 1
    N, o = d * D, 4 * d * D + D
    labels = X[o] + dX[o] + X[o + 1] + dX[o + 1] - 1.0
    predictions = Z[o + 2] + dZ[o + 2] + Z[o + 3] + dZ[o + 3] - 1.0
    most = 0.0
    for s in range(D):
        chance = free[s] + x[s]
        lack = -(s + 1.0) * chance
        for i in range(d):
            lack += X[i * D + s] + dX[i * D + s]
        labels += chance
        predictions += Z[4 * N + s] + dZ[4 * N + s]
        most = max(most, abs(lack))
    return max(most, abs(labels), abs(predictions))


@helper
def begin(d, size, shares, X, Z, free):
    """Write a start: all sizes are as likely, and so are all sets of a size."""
    D = d - 1
    N, o = d * D, 4 * d * D + D
    chance, tau, top = 1.0 / (d + 1.0), size / (d * (d + 1.0)), 0.0
    X[o], X[o + 1] = chance, chance
    for s in range(D):
        free[s], free[2 * D + s] = chance, 0.0
        Z[4 * N + s] = chance
        for i in range(d):
            X[i * D + s] = chance * (s + 1.0) / d
            X[N + i * D + s] = chance - X[i * D + s]
            Z[3 * N + i * D + s] = chance * (s + 1.0) / d
            Z[2 * N + i * D + s] = chance - Z[3 * N + i * D + s]
    for k in range(D):
        earned = shares[D * d + k] * chance
        for s in range(D):
            earned += shares[s * d + k] * X[s]
        wide, slack = tau / Z[2 * N + k], tau / Z[3 * N + k]
        free[D + k] = slack - wide + earned
        for i in range(d):
            X[2 * N + i * D + k], X[3 * N + i * D + k] = wide, slack
        X[4 * N + k] = -(k + 1.0) * free[D + k] - d * wide
        top = max(top, -X[4 * N + k])
    earned = shares[d * d - 1] * chance
    for s in range(D):
        earned += shares[s * d + D] * X[s]
    X[o + 2], X[o + 3] = -chance, -d * earned
    top = max(top, chance, d * earned) + tau * (d + 1.0)
    free[3 * D], free[3 * D + 1] = top, 0.0
    for k in range(D):
        X[4 * N + k] += top
    X[o + 2] += top
    X[o + 3] += top
    Z[o + 2], Z[o + 3] = chance, chance
    for j in range(2 * N):
        Z[j] = tau / X[j]
    Z[o], Z[o + 1] = tau / chance, tau / chance


@routine
def follow(theta, d, scale, shares, room):
    """Follow the path; the room begins with the mean label and what belongs to it then.

    Constraints X and multipliers Z are those of: entries of the mean label from below and from
    above, W, its slack, the sums of sizes; then the mean of no and of all tags, and their sums.
    """
    D, m, pitch = d - 1, 4 * d + 2, pitch_of(4 * d + 2)
    N, P = d * D, 4 * d * D + d + 3
    X, Z = room[:P], room[P : 2 * P]
    dX, dZ, goal = room[2 * P : 3 * P], room[3 * P : 4 * P], room[4 * P : 5 * P]
    rest = room[5 * P :]
    free, x, rest = rest[: 3 * D + 2], rest[3 * d : 3 * d + m], rest[3 * d + m :]
    bends, row, rest = rest[:N], rest[N : N + pitch], rest[N + pitch :]
    factors, columns = rest[: N * D], rest[N * D : N * (D + pitch)]
    system = rest[N * (D + pitch) :]
    size = max(1.0, scale)  # 1 is that of moves
    for j in range(theta.size):
        size = max(size, abs(theta[j]))
    begin(d, size, shares, X, Z, free)
    given = (free, factors, columns, system, x, dX, dZ, bends)
    for _ in range(STEPS):
        total = dot(X, Z)
        if not total > ENOUGH * size:
            break
        build(d, scale, shares, X, Z, factors, columns, system, row)
        for j in range(P):
            goal[j] = 0.0
        direct(theta, d, scale, shares, X, Z, goal, *given)
        far = furthest(X, dX, furthest(Z, dZ, 1.0))
        after = 0.0
        for j in range(P):
            after += (X[j] + far * dX[j]) * (Z[j] + far * dZ[j])
        if not after < total:
            break  # what is left is rounding
        centre = total / P * min(1.0, max(after, 0.0) / total) ** 3
        for j in range(P):
            goal[j] = centre - dX[j] * dZ[j]
        direct(theta, d, scale, shares, X, Z, goal, *given)
        far = NEARLY * furthest(X, dX, furthest(Z, dZ, 1.0))
        if not (far > 1e-8 and dot(x, x) < math.inf):
            break
        if missed(d, X, Z, dX, dZ, free, x) > MISSED:
            break  # rounding errors are the larger part of the step
        for j in range(P):
            X[j] += far * dX[j]
            Z[j] += far * dZ[j]
        for j in range(D):
            free[j] += far * x[j]
            free[D + j] += far * x[D + j]
            free[2 * D + j] += far * x[2 * D + 2 + j]
        free[3 * D] += far * x[m - 1]
        free[3 * D + 1] += far * x[m - 2]


@helper
def settle(entries, chances, d, column):
    """Make entries and chances those of a mean set: columns add up to sizes times chances."""
    D = d - 1
    total = 0.0
    for s in range(d + 1):
        chances[s] = max(chances[s], 0.0)
        total += chances[s]
    for s in range(d + 1):
        chances[s] /= total
    for s in range(D):
        most = chances[s + 1]
        for i in range(d):
            column[i] = entries[i * D + s]
        cut = threshold(column, most, (s + 1.0) * most)
        for i in range(d):
            entries[i * D + s] = min(most, max(0.0, column[i] - cut))


@helper
def best_earning(values, empty, d, room):
    """Return the largest value of a set: of s tags, each has its value in column s - 1."""
    column, order, buffer = room[:d], room[d : 2 * d], room[2 * d :]
    best = empty
    for s in range(d):
        for i in range(d):
            column[i] = values[i * d + s]
        sort_decreasing(column, order, buffer)
        total = 0.0
        for j in range(s + 1):
            total += column[int(order[j])]
        best = max(best, total)
    return best


@kernel(LOSS)
def fscore_quadratic(theta, target, params, work, grad):
    """Find the best move on the path, and the mean label that belongs to it."""
    n, scale, d = theta.size, params[1], int(params[HEADER])
    shares = params[HEADER + 1 :]
    D, N, P = d - 1, d * (d - 1), 4 * d * (d - 1) + d + 3
    move, moved, mu = work[:n], work[n : 2 * n], work[2 * n : 3 * n]
    chances, entries = work[3 * n + 1 : 3 * n + 2 + d], work[3 * n + 2 + d : 3 * n + 2 + d + N]
    room = work[3 * n + 2 + d + N :]
    follow(theta, d, scale, shares, room)
    X, Z, free, column = room[:P], room[P : 2 * P], room[5 * P : 5 * P + D], room[2 * P : 2 * P + d]
    for j in range(N):
        entries[j] = X[j]
    chances[0], chances[d] = X[P - 4], X[P - 3]
    for s in range(D):
        chances[s + 1] = free[s]
    settle(entries, chances, d, column)
    mu[0] = chances[0]
    for i in range(d):
        for s in range(D):
            mu[1 + i * d + s] = entries[i * D + s]
        mu[1 + i * d + D] = chances[d]
    for j in range(N):
        entries[j] = Z[3 * N + j]
    chances[0], chances[d] = Z[P - 2], Z[P - 1]
    for k in range(D):
        chances[k + 1] = Z[4 * N + k]
    settle(entries, chances, d, column)
    move[0] = -chances[0]
    for i in range(d):
        for s in range(d):
            total = shares[s * d + D] * chances[d]
            for k in range(D):
                total += shares[s * d + k] * entries[i * D + k]
            move[1 + i * d + s] = -total
    values = grad[1:]
    for i in range(d):
        for k in range(d):
            total = 0.0
            for s in range(d):
                total += shares[s * d + k] * mu[1 + i * d + s]
            values[i * d + k] = total
    gap = positive(best_earning(values, mu[0], d, room) + dot(mu, move))
    for j in range(n):
        moved[j] = theta[j] + move[j]
        grad[j] = moved[j] - scale * mu[j]
    gap += positive(best_earning(grad[1:], grad[0], d, room) - dot(mu, grad))
    work[3 * n] = params[0] * gap
    rest = quadratic_loss(moved, mu, target, scale, params[0], grad)
    return params[0] * (positive(dot(target, move) + 1.0) + rest)
