r"""The compiled side of the convolutional loss of matchings, with a quadratic.

Moving the scores by minus the share :math:`\beta` of a random matching, whose rows and columns add
up to 1/n, and then finding the best doubly stochastic :math:`\mu` is a saddle point. With the
multipliers p and q of the best assignment it is one convex problem,

.. math:: \min_{\mu, p, q} \frac\lambda2 \|\mu\|^2 - \langle \theta, \mu \rangle
   + \frac1n \Big( \sum_i p_i + \sum_j q_j \Big), \qquad
   \mu \ge 0, \quad \mu_{ij} \le p_i + q_j,

for doubly stochastic :math:`\mu`; :math:`\beta` are the multipliers of the last constraint. An
interior-point method with Mehrotra's corrector follows the path on which
:math:`\alpha_{ij} \mu_{ij} = \beta_{ij} (p_i + q_j - \mu_{ij}) = \tau` to :math:`\tau = 0`, with
:math:`\alpha` the multipliers of the first. Both constraints of an entry are eliminated, so that a
step solves a system for the 4 n multipliers u, v of the sums of :math:`\mu`, and p, q. Its matrix is
quasi-definite, see :mod:`driftline.kernels.systems`.

In the end the move is made feasible by a projection, and its duality gap follows from the best
assignment: whatever the path came to, the gap is that of the move.
"""  # noqa: E501

from __future__ import annotations

import math

from driftline.kernels import (
    LOSS,
    dot,
    factorise,
    furthest,
    helper,
    kernel,
    pitch_of,
    solve_factored,
    system_room,
)
from driftline.losses.fenchel_young_kernels import positive, quadratic_loss
from driftline.polytopes.birkhoff_kernels import assign, assign_room, balance, balance_room

__all__ = ["matching_gap", "matching_workspace", "matchings_quadratic"]

#: Steps of the path, the gap at which it ends over the size of scores, and how far a step goes of
#: what keeps all numbers positive.
STEPS, ENOUGH, NEARLY = 60, 1e-13, 0.995

#: Added to the diagonal for the last columns, whose multipliers stay: nothing depends on constants
#: that move from rows to columns.
PINNED = 1e30


def matching_gap(size: int) -> int:
    """Return where the gap stands in the workspace, for so many scores."""
    return 4 * size


def matching_workspace(size: int) -> int:
    """Return room for move, moved scores, mean prediction, a point, the gap, and the path."""
    n = math.isqrt(size)
    path = 14 * size + 12 * n + system_room(4 * n)
    return 4 * size + 1 + max(path, balance_room(n), assign_room(n) + n)


@helper
def build(n, scale, mu, alpha, beta, slack, inverse, ratio, system):
    """Write the matrix of a step: blocks of u, v against p, q, symmetric; the upper half."""
    m, pitch = 4 * n, pitch_of(4 * n)
    for i in range(m * pitch):
        system[i] = 0.0
    for i in range(n):
        for j in range(n):
            e = i * n + j
            ratio[e] = beta[e] / slack[e]
            own = scale + alpha[e] / mu[e]
            inverse[e] = 1.0 / (own + ratio[e])
            first, mixed, second = inverse[e], ratio[e] * inverse[e], ratio[e] * own * inverse[e]
            u, v, p, q = i, n + j, 2 * n + i, 3 * n + j
            system[u * pitch + u] += first
            system[v * pitch + v] += first
            system[u * pitch + v] += first
            system[p * pitch + p] -= second
            system[q * pitch + q] -= second
            system[p * pitch + q] -= second
            system[u * pitch + p] += mixed
            system[v * pitch + p] += mixed
            system[u * pitch + q] += mixed
            system[v * pitch + q] += mixed
    system[(2 * n - 1) * (pitch + 1)] += PINNED
    system[(m - 1) * (pitch + 1)] -= PINNED


@helper
def direct(n, mu, alpha, beta, slack, inverse, ratio, system, lacks, pull, first, second, x, steps):
    """Write a step: multipliers, and below each other those of mu, alpha, beta and the slack.

    ``first`` and ``second`` are what the products of alpha and mu, and of beta and the slack, are
    to become; ``lacks`` what sums of mu and beta fall short of, ``pull`` minus the gradient.
    """
    N = n * n
    for i in range(4 * n):
        x[i] = lacks[i]
    for i in range(n):
        for j in range(n):
            e = i * n + j
            ga, gb = first[e] / mu[e] - alpha[e], second[e] / slack[e] - beta[e]
            c = pull[e] + ga - gb
            part = inverse[e] * c
            x[i] -= part
            x[n + j] -= part
            part = gb + ratio[e] * part
            x[2 * n + i] -= part
            x[3 * n + j] -= part
    solve_factored(system, 4 * n, x)
    for i in range(n):
        for j in range(n):
            e = i * n + j
            ga, gb = first[e] / mu[e] - alpha[e], second[e] / slack[e] - beta[e]
            both = x[2 * n + i] + x[3 * n + j]
            moved = inverse[e] * (x[i] + x[n + j] + ratio[e] * both + pull[e] + ga - gb)
            steps[e] = moved
            steps[N + e] = ga - alpha[e] / mu[e] * moved
            steps[3 * N + e] = both - moved
            steps[2 * N + e] = gb - ratio[e] * (both - moved)


@helper
def miss(theta, n, scale, room, kept, lacks, pull):
    """Write what sums lack and minus the gradient; return products, and the largest pull."""
    N = n * n
    mu, alpha, beta, slack = room[:N], room[N : 2 * N], room[2 * N : 3 * N], room[3 * N : 4 * N]
    total, worst = 0.0, 0.0
    for i in range(n):
        lacks[i], lacks[n + i] = 1.0, 1.0
        lacks[2 * n + i], lacks[3 * n + i] = 1.0 / n, 1.0 / n
    for i in range(n):
        for j in range(n):
            e = i * n + j
            lacks[i] -= mu[e]
            lacks[n + j] -= mu[e]
            lacks[2 * n + i] -= beta[e]
            lacks[3 * n + j] -= beta[e]
            pull[e] = theta[e] + kept[i] + kept[n + j] + alpha[e] - beta[e] - scale * mu[e]
            total += alpha[e] * mu[e] + beta[e] * slack[e]
            worst = max(worst, abs(pull[e]))
    return total, worst


@helper
def follow(theta, n, scale, room):
    """Follow the path; the room begins with mu, alpha, beta and the slack then.

    Where several moves are best, rounding errors grow towards the end: the beta is the nearest one.
    """
    N, m = n * n, 4 * n
    mu, alpha, beta, slack = room[:N], room[N : 2 * N], room[2 * N : 3 * N], room[3 * N : 4 * N]
    steps = room[4 * N : 8 * N]
    pull, first, second = room[8 * N : 9 * N], room[9 * N : 10 * N], room[10 * N : 11 * N]
    rest = room[11 * N :]
    x, lacks, kept = rest[:m], rest[m : 2 * m], rest[2 * m : 3 * m]
    inverse, ratio = rest[3 * m : 3 * m + N], rest[3 * m + N : 3 * m + 2 * N]
    nearest, system = rest[3 * m + 2 * N : 3 * m + 3 * N], rest[3 * m + 3 * N :]
    size, least = scale, math.inf
    for e in range(N):
        size = max(size, abs(theta[e]))
    for i in range(n):
        kept[i], kept[n + i] = 0.0, 0.0
        kept[2 * n + i], kept[3 * n + i] = 0.5 / n + 0.5, 0.5 / n + 0.5
    for e in range(N):
        mu[e], alpha[e], beta[e], slack[e] = 1.0 / n, max(1.0 / n, size / N), 1.0 / N, 1.0
        nearest[e] = beta[e]
    for _ in range(STEPS):
        total, worst = miss(theta, n, scale, room, kept, lacks, pull)
        nearer = total + worst < least
        if nearer:
            least = total + worst
            for e in range(N):
                nearest[e] = beta[e]
        if not total > ENOUGH * size and (worst <= 1e-9 * size or not nearer):
            break
        build(n, scale, mu, alpha, beta, slack, inverse, ratio, system)
        factorise(system, m, 2 * n, m)
        for e in range(N):
            first[e], second[e] = 0.0, 0.0
        given = (inverse, ratio, system, lacks, pull, first, second, x, steps)
        direct(n, mu, alpha, beta, slack, *given)
        far, after = furthest(room[: 4 * N], steps, 1.0), 0.0
        for e in range(N):
            after += (alpha[e] + far * steps[N + e]) * (mu[e] + far * steps[e])
            after += (beta[e] + far * steps[2 * N + e]) * (slack[e] + far * steps[3 * N + e])
        goal = total / (2.0 * N) * min(1.0, max(after, 0.0) / total) ** 3
        for e in range(N):
            first[e] = goal - steps[N + e] * steps[e]
            second[e] = goal - steps[2 * N + e] * steps[3 * N + e]
        direct(n, mu, alpha, beta, slack, *given)
        far = min(1.0, NEARLY * furthest(room[: 4 * N], steps, 1.0))
        if not far > 1e-8:
            break
        for e in range(4 * N):
            room[e] += far * steps[e]
        for i in range(m):
            kept[i] += far * x[i]
    for e in range(N):
        beta[e] = nearest[e]


@kernel(LOSS)
def matchings_quadratic(theta, target, params, work, grad):
    """Find the best move on the path, and the mean prediction at the moved scores."""
    d, scale = theta.size, params[1]
    n = int(math.sqrt(d) + 0.5)
    move, moved, mu, point = work[:d], work[d : 2 * d], work[2 * d : 3 * d], work[3 * d : 4 * d]
    room = work[4 * d + 1 :]
    follow(theta, n, scale, room)
    for i in range(d):
        point[i] = n * room[2 * d + i]
    balance(point, n, False, room, move)
    for i in range(d):
        move[i] /= -n
        moved[i] = theta[i] + move[i]
        point[i] = moved[i] / scale
    balance(point, n, False, room, mu)
    inner = scale * room[0]
    assign(mu, n, room[n:], room[:n])
    gap = dot(mu, move)
    for i in range(n):
        gap += mu[i * n + int(room[i])] / n
    work[4 * d] = params[0] * (positive(gap) + inner)
    rest = quadratic_loss(moved, mu, target, scale, params[0], grad)
    return params[0] * (positive(dot(target, move) + 1.0) + rest)
