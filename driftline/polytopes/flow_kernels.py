r"""The projection onto the marginals of a chain, by Newton's method on potentials.

Sequences are paths through a network: an arc for every tag of a position, from a point before it to
one behind it, and an arc for every edge, from behind a tag to before the next one. All arcs of
the first position begin in one point, and all of the last end in one. Marginals are unit flows. With
potentials b before and a behind the tags, the nearest flow has on every arc the positive part of
its score plus the difference of its ends,

.. math:: \nu_{tk} = \theta_{tk} + a_{tk} - b_{tk}, \qquad
   \mu_{tik} = [S_{tik} + b_{t+1,k} - a_{ti}]_+ ,

and potentials minimise half the sum of squares minus the potential of the end, a convex function
whose gradient is what flows in and not out. (That of a tag is not negative where that is 0.)
Which arcs carry flow settles after about ten steps, and the next one is exact. The number of steps
hardly depends on how many sequences the nearest point mixes: among scores that are small these are
as many as the polytope has dimensions, so that an active set of sequences would have to be as large.

Before the first step potentials are added with which the score of an edge is what the best sequence
through it lacks, and that of a tag 0: the same problem, in which no number is large that counts.

In the end the flow is made exact, from position to position, and its duality gap is that of
Frank-Wolfe: whatever Newton's method came to, the gap is that of the answer.
"""  # noqa: E501

from __future__ import annotations

import math

from driftline.kernels import POINT, argmax, best_sums, dot, helper, kernel, loose, routine
from driftline.polytopes.chain_kernels import unfolded_length
from driftline.polytopes.flow_systems import newton_room, newton_step, newton_work, slope_along
from driftline.polytopes.simplex import onto_simplex

__all__ = ["flow_room", "project_flow"]

#: Newton steps before they start again, and halvings of one; after a step that is shorter than
#: SHORT, or none, more is added to second derivatives.
MOST_STEPS, HALVINGS, SHORT = 200, 30, 1e-4

#: How far flow in and out may be apart, times the squared length, since what is missing adds up
#: along a sequence; the least that rounding lets one hope for; and from where on steps end if
#: so many of them have not halved the difference.
CLOSE, CLOSEST, ROUNDED = 1e-12, 1e-15, 1e-12
PATIENCE = 3

#: Added to second derivatives, beside a share of the largest difference: where arcs with flow are
#: not connected, steps stay short, and near the solution they are Newton's. Where steps make no
#: way with one share, they do with another.
PROXIMAL, SHARES = 1e-12, (1e-4, 1e-6, 1e-3, 1e-5)

#: Edges with less flow than this are left to rounding, and count as edges without.
LITTLE = 1e-15


def flow_room(n: int, tags: int) -> int:
    """Return the scratch space of :func:`project_flow`: the gap first."""
    return 1 + 12 * n * tags + tags * tags + newton_room(n, tags)


@helper
def move_to_edges(point, n, tags, out):
    """Write scores with those of tags moved to the edges before them; return their largest size."""
    size = 0.0
    for i in range(n * tags):
        out[i] = 0.0
    for t in range(n - 1):
        for i in range(tags):
            start, first = (n + t * tags + i) * tags, point[i] if t == 0 else 0.0
            for k in range(tags):
                out[start + k] = point[start + k] + (first + point[(t + 1) * tags + k])
                size = max(size, abs(out[start + k]))
    return size


@routine
def reduce_edges(scores, n, tags, ahead, behind):
    """Replace the score of an edge by what the best sequence through it lacks.

    That is the mean of what is lacking before the edge and behind it, neither of which is positive.
    """
    for k in range(tags):  # the best sums up to a position, and from there on
        ahead[k], behind[(n - 1) * tags + k] = 0.0, 0.0
    for t in range(n - 1):
        edges = scores[(n + t * tags) * tags :]
        here, then = ahead[t * tags :], ahead[(t + 1) * tags : (t + 2) * tags]
        best_sums(here, 1, tags, edges, tags, then)
    for t in range(n - 2, -1, -1):
        for i in range(tags):
            start, top = (n + t * tags + i) * tags, -math.inf
            for k in range(tags):
                top = max(top, scores[start + k] + behind[(t + 1) * tags + k])
            behind[t * tags + i] = top
    last = ahead[(n - 1) * tags : n * tags]
    start_top, end_top = behind[argmax(behind[:tags])], last[argmax(last)]
    for t in range(n - 1):
        for i in range(tags):
            start, tail = (n + t * tags + i) * tags, t * tags + i
            first = behind[i] - start_top if t == 0 else 0.0
            for k in range(tags):
                head, edge = (t + 1) * tags + k, scores[start + k]
                left, right = ahead[tail] + edge - ahead[head], edge + behind[head] - behind[tail]
                final = last[k] - end_top if t == n - 2 else 0.0
                scores[start + k] = 0.5 * (left + right + (first + final))


@loose
def flow_from(edges, heads, tail, inward):
    """Add the flow from behind one tag to what comes in; return its sum and its squares."""
    total, squares = 0.0, 0.0
    for k in range(edges.size):
        value = edges[k] + heads[k] - tail
        value = value if value > 0.0 else 0.0
        inward[k] += value
        total += value
        squares += value * value
    return total, squares


@routine
def balance(scores, n, tags, a, b, ga, gb):
    """Write how much more flows in than out, behind and before all tags; return the function.

    Behind the last position, that is the flow itself.
    """
    value = 0.0
    for i in range(n * tags):
        ga[i] = scores[i] + a[i] - b[i]
        gb[i] = -ga[i]
        value += ga[i] * ga[i]
    for t in range(n - 1):
        heads, inward = b[(t + 1) * tags :], gb[(t + 1) * tags : (t + 2) * tags]
        for i in range(tags):
            start = (n + t * tags + i) * tags
            edges = scores[start : start + tags]
            total, squares = flow_from(edges, heads, a[t * tags + i], inward)
            ga[t * tags + i] -= total
            value += squares
    return 0.5 * value - a[(n - 1) * tags]


@helper
def largest_lack(n, tags, ga, gb):
    """Return how far flow in and out are apart at most, and by how much the end misses 1."""
    most, end = 0.0, -1.0
    for i in range((n - 1) * tags):
        most = max(most, abs(ga[i]), abs(gb[tags + i]))
    for k in range(tags):
        end += ga[(n - 1) * tags + k]
    return max(most, abs(end)), end


@routine
def minimise(scores, n, tags, close, share, room):
    """Add the potentials to the scores, whose positive parts are then the flow.

    Return how far flow in and out are apart.
    """
    size = n * tags
    a, b = room[:size], room[size : 2 * size]
    ga, gb = room[2 * size : 3 * size], room[3 * size : 4 * size]
    da, db = room[4 * size : 5 * size], room[5 * size : 6 * size]
    new_a, new_b = room[6 * size : 7 * size], room[7 * size : 8 * size]
    new_ga, new_gb = room[8 * size : 9 * size], room[9 * size : 10 * size]
    best_a, best_b = room[10 * size : 11 * size], room[11 * size : 12 * size]
    work = newton_work(n, tags, room[12 * size :])
    for i in range(size):
        a[i], b[i] = 0.0, 0.0
    value, least, idle = balance(scores, n, tags, a, b, ga, gb), math.inf, 0
    caution = 1.0
    for _ in range(MOST_STEPS):
        lack, end = largest_lack(n, tags, ga, gb)
        idle = 0 if lack < 0.5 * least else idle + 1
        if lack < least or least > ROUNDED:  # there, only the function must fall
            least = lack
            for i in range(size):
                best_a[i], best_b[i] = a[i], b[i]
        if lack <= close or (idle > PATIENCE and least <= ROUNDED):
            break
        more = (PROXIMAL + share * min(1.0, lack)) * caution
        newton_step(scores, n, tags, a, b, ga, gb, more, LITTLE, work, da, db)
        slope, step, done, new = slope_along(n, tags, ga, gb, end, da, db), 1.0, False, value
        for _ in range(HALVINGS if slope < 0.0 else 0):
            for i in range(size):
                new_a[i], new_b[i] = a[i] + step * da[i], b[i] + step * db[i]
            new = balance(scores, n, tags, new_a, new_b, new_ga, new_gb)
            small = abs(new - value) <= 1e-13 * (1.0 + abs(value))  # rounding decides no more
            if new <= value + 1e-4 * step * slope or (small and step == 1.0):
                done = True
                break
            step *= 0.5
        if not done:
            caution *= 1e3
            if caution > 1e9:
                break
            continue
        value, caution = new, 1.0
        for i in range(size):
            a[i], b[i], ga[i], gb[i] = new_a[i], new_b[i], new_ga[i], new_gb[i]
        if step < SHORT:
            caution *= 1e3
    for i in range(size):
        scores[i] += best_a[i] - best_b[i]
    for t in range(n - 1):
        for i in range(tags):
            start = (n + t * tags + i) * tags
            for k in range(tags):
                scores[start + k] += best_b[(t + 1) * tags + k] - best_a[t * tags + i]
    return least


@helper
def start_flow(scores, n, tags, flow):
    """Write what flows from each tag of the first position, 1 in all."""
    total = 0.0
    for i in range(tags):
        flow[i] = 0.0
        for k in range(tags):
            flow[i] += max(0.0, scores[(n + i) * tags + k])
        total += flow[i]
    for i in range(tags):
        flow[i] = flow[i] / total if total > 0.0 else 1.0 / tags


@routine
def settle(n, tags, room, out):
    """Replace scores by the flow, such that none is lost; return its duality gap.

    What comes to a tag goes on in the proportions of the positive parts. The gap is that of scores
    with their potentials, which differ from the flow by rounding where there is any.
    """
    size = n * tags
    flow, best, rest, gap = room[:size], room[size : 2 * size], room[2 * size :], 0.0
    start_flow(out, n, tags, flow)
    for t in range(n):
        own = flow[t * tags : (t + 1) * tags]
        for k in range(tags):
            tag = t * tags + k
            lack = out[tag] - own[k]
            best[tag] = lack + (best[tag] if t > 0 else 0.0)
            gap -= own[k] * lack
            out[tag] = own[k]
        if t == n - 1:
            break
        coming = flow[(t + 1) * tags : (t + 2) * tags]
        for k in range(tags):
            coming[k] = 0.0
        for i in range(tags):
            start, total = (n + t * tags + i) * tags, 0.0
            edges, row = out[start : start + tags], rest[i * tags : (i + 1) * tags]
            for k in range(tags):
                row[k] = edges[k]
                edges[k] = max(0.0, row[k])
                total += edges[k]
            if not total > 0.0:
                edges[argmax(row)], total = 1.0, 1.0
            share = own[i] / total
            for k in range(tags):
                edges[k] *= share
                coming[k] += edges[k]
                row[k] -= edges[k]
            gap -= dot(edges, row)
        best_sums(best[t * tags :], 1, tags, rest, tags, best[(t + 1) * tags : (t + 2) * tags])
    last = best[(n - 1) * tags : size]
    return max(0.0, gap + last[argmax(last)])


@kernel(POINT)
def project_flow(point, params, scratch, out):
    """Write the nearest marginals; the scratch space begins with their gap."""
    tags = int(params[1])
    n, total = unfolded_length(point.size, tags), 0.0
    for i in range(point.size):
        total += abs(point[i])
    if not total < math.inf:  # to be noticed
        for i in range(point.size):
            out[i] = math.nan
        scratch[0] = math.nan
        return
    if n == 1:
        onto_simplex(point, out)
        scratch[0] = 0.0
        return
    room, size = scratch[1:], n * tags
    large = move_to_edges(point, n, tags, out)
    while True:  # until rounding leaves nothing that is large
        reduce_edges(out, n, tags, room[:size], room[size : 2 * size])
        large *= n * ROUNDED
        if not large > 1e-3:
            break
    for i in range(point.size):
        out[i] += 1.0  # the flow of a single best sequence
    close = max(CLOSEST, CLOSE / (n * n))
    for share in SHARES:  # with potentials from 0 on, which rounding hurts less
        if minimise(out, n, tags, close, share, room) <= close:
            break
    scratch[0] = settle(n, tags, room, out)
