r"""The compiled side of convolutional losses of costs by a matrix; labels are unit vectors.

With a column of costs :math:`C_j` for every prediction, and q their chances, the loss needs the
minimum of :math:`\Omega^*(\theta + C q)`. Where one prediction is best for the mean label that it
leads to, it is certain, and nothing else is to be done. Else the minimum and the mean label
:math:`\mu` are found together, as a saddle point: with z the multiplier of the sum of :math:`\mu`
and -t the least cost,

.. math:: \nabla \Omega(\mu) = \theta + C q - z 1 + \alpha, \quad C' \mu + t 1 = r, \quad
   \alpha, \mu, q, r \ge 0, \quad \alpha_k \mu_k = q_j r_j = 0.

An interior-point method with Mehrotra's corrector follows the path on which all these products are
the same, to 0. The entropy needs no :math:`\alpha`; there the steps are those of the logarithms of
:math:`\mu`, in which the first equation is linear. A step solves a system for q, z and t. In the
end q is made feasible, and the duality gap follows from the best prediction at the mean label that
belongs to it.

Parameters behind those of all kernels: the number of predictions, 1 for the entropy, and costs by
label and prediction.
"""

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
from driftline.polytopes.simplex import onto_simplex

__all__ = ["cost_chances", "cost_gap", "cost_workspace", "costs"]

#: Steps of the path, the products at its end over the size of costs, and the change of chances
#: below which they are found: where several are best, nearly equal scores have nearly equal ends.
STEPS, ENOUGH, SAME = 200, 1e-18, 1e-13

#: Products of this sum over the size of costs, which no longer fall, are rounding errors.
ROUNDED = 1e-12

#: How far a step goes of what keeps all numbers positive, by how much a logarithm may grow in one,
#: from which share of the last sum on a step was slow, how small products may be beside what sums
#: lack that are not linear, and how many predictions are tried alone.
NEARLY, GROWTH, SLOW, LAG, ALONE = 0.995, 1.5, 0.5, 0.1, 3

#: Before the end of the path, the entropy has at least this times the sum of products as its scale:
#: where costs are many times the scale, mean labels would vanish that are to come back later.
SOFT = 1.0

HEADER = 5


def cost_gap(size: int) -> int:
    """Return where the gap stands in the workspace, for this many scores."""
    return 4 * size


def cost_chances(predictions: int, size: int) -> tuple[int, int]:
    """Return where the chances of predictions stand, and how many there are."""
    return 4 * size + 1, predictions


def cost_workspace(predictions: int, size: int) -> int:
    """Return room for move, moved scores, mean label, a point, gap, chances, and the path."""
    path = 7 * size + 4 * predictions + 4 + system_room(predictions + 2)
    return 4 * size + 1 + predictions + path


@helper
def respond(theta, costs, chances, scale, kind, work):
    """Write move, moved scores and the mean label for some chances.

    ``kind`` is 0 for a quadratic, 1 for the entropy, 2 for the whole space.
    """
    K, N = theta.size, chances.size
    move, moved, mu, point = work[:K], work[K : 2 * K], work[2 * K : 3 * K], work[3 * K : 4 * K]
    top, total = -math.inf, 0.0
    for k in range(K):
        move[k] = dot(costs[k * N : (k + 1) * N], chances)
        moved[k] = theta[k] + move[k]
        point[k] = moved[k] / scale
        top = max(top, point[k])
    if kind == 0:
        onto_simplex(point, mu)
    elif kind == 1:
        for k in range(K):
            mu[k] = math.exp(point[k] - top)
            total += mu[k]
        for k in range(K):
            mu[k] /= total
    else:
        for k in range(K):
            mu[k] = point[k]


@helper
def expect(costs, mu, paid):
    """Write the mean cost of every prediction; return the first of the least."""
    N, best = paid.size, 0
    for j in range(N):
        paid[j] = 0.0
    for k in range(mu.size):
        for j in range(N):
            paid[j] += mu[k] * costs[k * N + j]
    for j in range(N):
        if paid[j] < paid[best]:
            best = j
    return best


@helper
def build(costs, scale, kind, mu, alpha, q, r, inverse, system):
    """Write the factors of the matrix of a step, for q, z and t; and inverse curvatures."""
    K, N = mu.size, q.size
    m, pitch = N + 2, pitch_of(N + 2)
    for j in range(m * pitch):
        system[j] = 0.0
    for k in range(K):
        here = costs[k * N : (k + 1) * N]
        if kind == 0:
            inverse[k] = mu[k] / (scale * mu[k] + alpha[k])
        else:
            inverse[k] = mu[k] / scale if kind == 1 else 1.0 / scale
        for j in range(N):
            part = inverse[k] * here[j]
            for i in range(j, N):
                system[j * pitch + i] += part * here[i]
            system[j * pitch + N] -= part
        system[N * pitch + N] += inverse[k]
    for j in range(N):
        system[j * pitch + j] += r[j] / q[j]
        system[j * pitch + N + 1] = 1.0
        if kind == 2:
            system[j * pitch + N] = 0.0
    factorise(system, m, N + 1, m)


@helper
def direct(theta, costs, scale, kind, mu, logs, alpha, q, r, free, goal, inverse, system, x, steps):
    """Write the step that makes products what ``goal`` says: x has those of q, z and t.

    ``steps`` has those of mu, of alpha and of r, one after the other.
    """
    K, N = mu.size, q.size
    x[N], x[N + 1] = -1.0 if kind < 2 else 0.0, 1.0
    for j in range(N):
        x[j] = goal[K + j] / q[j] - free[1]
        x[N + 1] -= q[j]
    for k in range(K):
        here = costs[k * N : (k + 1) * N]
        slope = scale * mu[k] - theta[k] + free[0] - dot(here, q)
        if kind == 0:
            slope -= goal[k] / mu[k]
        elif kind == 1:
            slope += scale * (logs[k] + 1.0 - mu[k])
        steps[k] = -slope
        moved = mu[k] - inverse[k] * slope
        x[N] += moved if kind < 2 else 0.0
        for j in range(N):
            x[j] -= moved * here[j]
    solve_factored(system, N + 2, x)
    for j in range(N):
        steps[2 * K + j] = goal[K + j] / q[j] - r[j] - r[j] / q[j] * x[j]
    for k in range(K):
        here = costs[k * N : (k + 1) * N]
        steps[k] = inverse[k] * (steps[k] + dot(here, x[:N]) - (x[N] if kind < 2 else 0.0))
        steps[K + k] = (
            goal[k] / mu[k] - alpha[k] - alpha[k] / mu[k] * steps[k] if kind == 0 else 0.0
        )


@helper
def lacking(costs, mu, q, r, free, size):
    """Return by how much r and the sum of mu miss what they are to be."""
    K, N, sum_lacks, most = mu.size, q.size, 1.0, 0.0
    for k in range(K):
        sum_lacks -= mu[k]
    for j in range(N):
        lack = r[j] - free[1]
        for k in range(K):
            lack -= costs[k * N + j] * mu[k]
        most = max(most, abs(lack))
    return max(most, size * abs(sum_lacks))


@helper
def after_step(kind, far, mu, alpha, q, r, x, steps):
    """Return the sum of products after a step of this length."""
    K, N, total = mu.size, q.size, 0.0
    for j in range(N):
        total += (q[j] + far * x[j]) * (r[j] + far * steps[2 * K + j])
    for k in range(K if kind == 0 else 0):
        total += (mu[k] + far * steps[k]) * (alpha[k] + far * steps[K + k])
    return total


@helper
def length_of(kind, mu, alpha, q, r, x, steps):
    """Return how far to go: numbers stay positive, and a logarithm does not grow by too much."""
    K, N = mu.size, q.size
    far = NEARLY * furthest(r, steps[2 * K :], furthest(q, x[:N], 1.0 / NEARLY))
    if kind == 0:
        far = min(far, NEARLY * furthest(alpha, steps[K : 2 * K], furthest(mu, steps[:K], 2.0)))
    for k in range(K if kind == 1 else 0):
        if steps[k] > 0.0:
            far = min(far, GROWTH * mu[k] / steps[k])
    return far


@helper
def advance(kind, far, mu, logs, alpha, q, r, free, x, steps):
    """Take a step of this length."""
    K, N = mu.size, q.size
    for j in range(N):
        q[j] += far * x[j]
        r[j] += far * steps[2 * K + j]
    free[0] += far * x[N]
    free[1] += far * x[N + 1]
    for k in range(K):
        if kind == 1:
            logs[k] += far * steps[k] / mu[k] if mu[k] > 0.0 else 0.0
            mu[k] = math.exp(min(logs[k], 1.0))
        else:
            mu[k] += far * steps[k]
            alpha[k] += far * steps[K + k]


@helper
def follow(theta, costs, scale, kind, size, q, room):
    """Follow the path to the chances q."""
    K, N = theta.size, q.size
    mu, logs, alpha = room[:K], room[K : 2 * K], room[2 * K : 3 * K]
    inverse, steps = room[3 * K : 4 * K], room[4 * K : 6 * K + N]
    rest = room[6 * K + N :]
    r, free = rest[:N], rest[N : N + 2]
    x, rest = rest[N + 2 : 2 * N + 4], rest[2 * N + 4 :]
    goal, system = rest[: K + N], rest[K + N :]
    free[0], free[1] = 0.0, -size
    for k in range(K):
        mu[k], logs[k], alpha[k] = 1.0 / K, -math.log(K), size
    for j in range(N):
        q[j], r[j] = 1.0 / N, size
    given, last, before = (inverse, system, x, steps), math.inf, math.inf
    pairs, end, least = N + (K if kind == 0 else 0), ENOUGH * size, scale
    scale = max(least, SOFT * size) if kind == 1 else least
    for _ in range(STEPS):
        total = dot(q, r) + (dot(mu, alpha) if kind == 0 else 0.0)
        if ROUNDED * size > total > SLOW * last:
            break  # what is left is rounding
        if kind == 1:
            scale = max(least, min(scale, SOFT * total))
        build(costs, scale, kind, mu, alpha, q, r, inverse, system)
        centre, bend, ending = end, 0.0, total <= 2.0 * pairs * end
        if not ending:
            for j in range(K + N):
                goal[j] = 0.0
            direct(theta, costs, scale, kind, mu, logs, alpha, q, r, free, goal, *given)
            far = furthest(r, steps[2 * K :], furthest(q, x[:N], 1.0))
            if kind == 0:
                far = furthest(alpha, steps[K : 2 * K], furthest(mu, steps[:K], far))
            after = after_step(kind, far, mu, alpha, q, r, x, steps)
            share, bend = min(1.0, max(after, 0.0) / total) ** 3, 1.0
            if total > SLOW * last:  # the corrector went too far: centre, without it
                share, bend = 0.5, 0.0
            lack = LAG * lacking(costs, mu, q, r, free, size) if kind == 1 else 0.0
            last, centre = total, max(end, share * total / pairs, min(0.5 * total / pairs, lack))
        for k in range(K):
            goal[k] = centre - bend * steps[k] * steps[K + k]
        for j in range(N):
            goal[K + j] = centre - bend * x[j] * steps[2 * K + j]
        direct(theta, costs, scale, kind, mu, logs, alpha, q, r, free, goal, *given)
        far, moved = length_of(kind, mu, alpha, q, r, x, steps), 0.0
        for j in range(N):
            moved = max(moved, abs(x[j]))
        if not (far > 1e-8 and dot(x, x) < math.inf) or ending and moved > 0.5 * before:
            break
        before = moved if ending else math.inf
        advance(kind, far, mu, logs, alpha, q, r, free, x, steps)
        if ending and moved <= SAME:
            break


@helper
def find_chances(theta, costs, scale, kind, size, work, chances, room):
    """Write the chances of predictions, with what :func:`respond` writes; return the gap."""
    K, N = theta.size, chances.size
    mu, paid = work[2 * K : 3 * K], room[:N]
    for j in range(N):
        chances[j] = 1.0 / N
    respond(theta, costs, chances, scale, kind, work)
    best = expect(costs, mu, paid)
    for _ in range(ALONE):
        for j in range(N):
            chances[j] = 1.0 if j == best else 0.0
        respond(theta, costs, chances, scale, kind, work)
        now = expect(costs, mu, paid)
        if paid[best] <= paid[now]:
            return 0.0
        best = now
    follow(theta, costs, scale, kind, size, chances, room)
    total = 0.0
    for j in range(N):
        total += chances[j]
    for j in range(N):
        chances[j] /= total
    respond(theta, costs, chances, scale, kind, work)
    best = expect(costs, mu, paid)
    return positive(dot(paid, chances) - paid[best])


@kernel(LOSS)
def costs(theta, target, params, work, grad):
    """Find the chances of predictions, and the mean label at the moved scores."""
    K, N, scale = theta.size, int(params[3]), params[1]
    kind = 1 if params[4] > 0.0 else (2 if params[2] > 0.0 else 0)
    table = params[HEADER : HEADER + K * N]
    chances, room, size = work[4 * K + 1 : 4 * K + 1 + N], work[4 * K + 1 + N :], 0.0
    for j in range(K * N):
        size = max(size, abs(table[j]))
    gap = find_chances(theta, table, scale, kind, size, work, chances, room)
    work[4 * K] = params[0] * gap
    moved, mu = work[K : 2 * K], work[2 * K : 3 * K]
    risk = positive(dot(target, work[:K]))
    if kind != 1:
        return params[0] * (risk + quadratic_loss(moved, mu, target, scale, params[0], grad))
    top = 0
    for k in range(K):
        if moved[k] > moved[top]:
            top = k
    rest = 0.0
    for k in range(K):
        rest += 0.0 if k == top else math.exp((moved[k] - moved[top]) / scale)
    value = scale * math.log1p(rest) + moved[top] - dot(moved, target)
    for k in range(K):
        grad[k] = params[0] * (mu[k] - target[k])
    return params[0] * (risk + positive(value))
