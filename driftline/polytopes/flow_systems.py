r"""Newton's step for the potentials of a flow through a chain.

Second derivatives count arcs: with :math:`E_t` the matrix of the edges after position t that carry
flow, in zeros and ones, the potentials :math:`a_t` behind the tags of a position meet those
:math:`b_t` before them in the identity, and the next ones, :math:`b_{t+1}`, in :math:`-E_t`. Among
themselves the :math:`a_t` do not meet, and are eliminated at once. What is left is a chain of
blocks for :math:`b_2, \dots, b_n` and the potential of the end, each of the tags that have an edge
with flow, at most K:

.. math:: B_{t+1} = \mathrm{diag} - E_t^\top D_t^{-1} E_t - G_t^\top B_t^{-1} G_t,
   \qquad G_t = D_t^{-1} E_t,

with :math:`D_t` the diagonal of the :math:`a_t`. A tag without such an edge stands alone, and its
potentials share what it lacks. So a step costs n times the cube of the number of tags in play.
"""

from __future__ import annotations

import math
from collections import namedtuple

from driftline.kernels import (
    add_scaled,
    dot,
    eliminate,
    helper,
    loose,
    padded,
    pitch_of,
    product_from,
    routine,
    solve_backward,
    solve_forward,
    system_room,
)

__all__ = ["Newton", "newton_room", "newton_step", "newton_work", "slope_along"]

#: The buffers of a step: how many edges with flow each tag has to the next position (``onward``)
#: and from the one before (``inward``); one over the root of the diagonal of each; the tags in play
#: and their number, for each position; right sides, factors and their inverse pivots; a block, what
#: is left of the next one, and its edges.
Newton = namedtuple(
    "Newton", "onward inward roots played counts right factors inverse block carried links"
)


def newton_room(n: int, tags: int) -> int:
    """Return the room for a step."""
    pairs = tags * padded(2 * tags)
    blocks = n * (pairs + tags) + system_room(2 * tags) + 2 * tags * padded(tags)
    return 5 * n * tags + n + 2 + blocks


@helper
def newton_work(n, tags, room):
    """Give names to the parts of the room."""
    size, pairs, square = n * tags, tags * pitch_of(2 * tags), tags * pitch_of(tags)
    first = 5 * size + n + 2
    second = first + n * pairs
    third = second + size
    return Newton(
        room[:size],
        room[size : 2 * size],
        room[2 * size : 3 * size],
        room[3 * size : 4 * size],
        room[4 * size : 4 * size + n + 1],
        room[4 * size + n + 1 : first],
        room[first:second],
        room[second:third],
        room[third + 2 * square :],
        room[third : third + square],
        room[third + square : third + 2 * square],
    )


@loose
def count_edges(edges, heads, tail, inward):
    """Count the edges from one tag that carry flow, and add each to its end; return how many."""
    total = 0.0
    for k in range(edges.size):
        one = 1.0 if edges[k] + heads[k] > tail else 0.0
        inward[k] += one
        total += one
    return total


@helper
def find_played(scores, n, tags, a, b, more, least, w):
    """Count the edges with flow, and list the tags that have one."""
    for i in range(n * tags):
        w.inward[i], w.onward[i] = 0.0, 0.0
    for t in range(n - 1):
        heads, inward = b[(t + 1) * tags :], w.inward[(t + 1) * tags : (t + 2) * tags]
        for i in range(tags):
            start = (n + t * tags + i) * tags
            edges = scores[start : start + tags]
            w.onward[t * tags + i] = count_edges(edges, heads, a[t * tags + i] + least, inward)
    for i in range(n * tags):
        w.roots[i] = 1.0 / math.sqrt(1.0 + w.onward[i] + more)
    for t in range(n):
        count = 0
        for k in range(tags):
            if w.onward[t * tags + k] > 0.0 or w.inward[t * tags + k] > 0.0:
                w.played[t * tags + count] = k
                count += 1
        w.counts[t] = count
    w.counts[n] = 1.0


@helper
def link(scores, n, t, tags, a, b, least, w):
    """Write the edges with flow after a position, over the roots of the diagonal of their tags."""
    rows, columns = int(w.counts[t]), int(w.counts[t + 1])
    pitch = pitch_of(columns)
    for j in range(rows):
        i = int(w.played[t * tags + j])
        edges, root = scores[(n + t * tags + i) * tags :], w.roots[t * tags + i]
        for k in range(pitch):
            w.links[j * pitch + k] = 0.0
        for k in range(columns):
            tag = int(w.played[(t + 1) * tags + k])
            if edges[tag] + b[(t + 1) * tags + tag] > a[t * tags + i] + least:
                w.links[j * pitch + k] = root


@helper
def build(n, t, tags, before, ga, gb, more, w, x):
    """Write the block of a position and its coupling to the next; return how many rows it has.

    ``x`` begins with the right side of this position, behind which that of the next is written.
    """
    rows, following = int(w.counts[t]), int(w.counts[t + 1])
    m, links = before + following, pitch_of(following)
    pitch, here = pitch_of(m), t * tags
    less = w.block[m * pitch : (m + 1) * pitch]
    for j in range(before):
        for k in range(j, before):
            w.block[j * pitch + k] = w.carried[j * pitch_of(before) + k]
    if t == n - 1:  # the end of all sequences
        total = 1.0
        for j in range(before):
            w.block[j * pitch + before] = -1.0
            total -= ga[here + int(w.played[here + j])]
        w.block[before * pitch + before] = before + more
        x[before] = total
        return m
    for j in range(before):
        root = w.roots[here + int(w.played[here + j])]
        for k in range(following):
            w.block[j * pitch + before + k] = -root * w.links[j * links + k]
    for j in range(following):
        tag = here + tags + int(w.played[here + tags + j])
        product_from(w.links[j:], links, rows, w.links, links, j, less)
        own = (before + j) * pitch + before
        for k in range(j, following):
            w.block[own + k] = -less[k]
        diagonal, pull = 1.0 + w.inward[tag] + more, -gb[tag]
        if t + 2 < n:
            diagonal -= w.roots[tag] ** 2
            pull -= w.roots[tag] ** 2 * ga[tag]
        w.block[own + j] += diagonal
        x[before + j] = pull
    for i in range(rows):
        tag = here + int(w.played[here + i])
        row = w.links[i * links : i * links + following]
        add_scaled(x[before : before + following], -w.roots[tag] * ga[tag], row)
    return m


@routine
def newton_step(scores, n, tags, a, b, ga, gb, more, least, w, da, db):
    """Write the step of all potentials; ``more`` is added to the diagonal.

    Edges with a flow up to ``least`` count as edges without.
    """
    find_played(scores, n, tags, a, b, more, least, w)
    pairs, place = tags * pitch_of(2 * tags), 0
    for t in range(n):
        before, x = int(w.counts[t]) if t > 0 else 0, w.right[place:]
        if t + 1 < n:
            link(scores, n, t, tags, a, b, least, w)
        m = build(n, t, tags, before, ga, gb, more, w, x)
        pitch = pitch_of(m)
        eliminate(w.block, m, before, 0, 0)
        inverse = w.block[(m + 2) * pitch :]
        solve_forward(w.block, inverse, m, before, x[:m])
        for i in range(before * pitch):
            w.factors[t * pairs + i] = w.block[i]
        for j in range(before):
            w.inverse[t * tags + j] = inverse[j]
        for j in range(m - before):
            for k in range(j, m - before):
                rest = w.block[(before + j) * pitch + before + k]
                w.carried[j * pitch_of(m - before) + k] = rest
        place += before
    end = w.right[place] / max(w.carried[0], more)
    w.right[place] = end
    for t in range(n - 1, 0, -1):
        before = int(w.counts[t])
        place -= before
        m, x = before + int(w.counts[t + 1]), w.right[place:]
        solve_backward(w.factors[t * pairs :], w.inverse[t * tags :], m, before, x[:m])
        spread_out(n, t, tags, ga, gb, end, w, x, da, db)
    for k in range(tags):
        da[(n - 1) * tags + k], db[k] = end, 0.0
    for t in range(n - 1):
        heads = db[(t + 1) * tags : (t + 2) * tags]
        for i in range(tags):
            tag, start = t * tags + i, (n + t * tags + i) * tags
            if w.onward[tag] > 0.0 or w.inward[tag] > 0.0 or t == 0:
                total = db[tag] - ga[tag]
                for k in range(tags if w.onward[tag] > 0.0 else 0):
                    if scores[start + k] + b[(t + 1) * tags + k] > a[tag] + least:
                        total += heads[k]
                da[tag] = total * w.roots[tag] ** 2


@helper
def spread_out(n, t, tags, ga, gb, end, w, x, da, db):
    """Write the steps before the tags of a position; those of tags that stand alone are halves."""
    for k in range(tags):
        tag = t * tags + k
        if t + 1 < n:
            da[tag], db[tag] = -0.5 * ga[tag], -0.5 * gb[tag]
        else:
            db[tag] = end - gb[tag]
    for j in range(int(w.counts[t])):
        db[t * tags + int(w.played[t * tags + j])] = x[j]


@helper
def slope_along(n, tags, ga, gb, lacks, da, db):
    """Return the derivative along a step; ``lacks`` is that of the end."""
    inner = (n - 1) * tags
    return dot(ga[:inner], da[:inner]) + dot(gb[tags:], db[tags:]) + lacks * da[inner]
