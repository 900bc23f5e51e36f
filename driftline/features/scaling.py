r"""Robust online scaling of dense rows, whatever some of their cells are.

A cell x of a feature with location m and deviation s, learned from n cells before it, becomes

.. math:: z = \mathrm{clip}\Big(\frac{x - m'}{s}, \pm 3\Big), \qquad
   m' = m \max\Big(0, 1 - \frac{4 s^2}{n m^2}\Big),

and a row is divided by the root of the number of features. The location is drawn to 0 as long as
it may be 0 (the positive part of a James-Stein estimate, at two standard errors), so that rows
which are centred already are not moved by noise.

*Learning.* The scaling learns from clipped cells: with :math:`\bar z, \overline{z^2}` the means of
a block of b rows and w = b / (n + b),

.. math:: m \leftarrow (1 - w) m + w (m' + s \bar z), \qquad
   s^2 \leftarrow s^2 \big(1 - w + w \overline{z^2} - (w \bar z)^2\big),

so that a cell outside counts as one at three deviations, and a share of them below 1/9 moves the
scale by a bounded factor. One at more than 20 deviations is not learned from. n grows up to 4000:
older rows are forgotten slowly.

*Cells far outside*, outliers and numbers that stand for a missing one, count as the location: z = 0
for a cell at more than L deviations. Large cells of heavy tails are no outliers, and are clipped as
others are: with q the share of clipped cells among those at up to 20 deviations,

.. math:: L = 20 \big(1 - q / 0.04\big)^{-3},

and infinite from q = 0.04 on (normal cells have 0.003, exponential ones 0.025, Cauchy's 0.055). A
feature begins with q = 0.05. L is infinite, too, while so many cells are far outside that they may
be those of a change.

*One value in most rows* (flags, events, rare counts). That value is the location, and only other
cells are learned from, so that their usual distance becomes two deviations.

*Following changes.* Where many cells of the last rows were clipped, the stream has changed:
location and scale of the feature are estimated anew ("settled") from the 16 newest rows that were
kept (:mod:`driftline.features.settling`). If that comes soon after another change, the feature may
go on switching: then the scale covers both levels. Where cells were all near each other without
being equal, the feature is settled from every other of the last 128 rows. Thirty bad rows suffice
for neither, nor sixty that are far outside: such a cell counts as half a clipped one here.

*Starting.* In the first 64 rows a cell counts itself, in a closed form that needs no copy: with
:math:`z_0` the value from n cells before it,
:math:`z = z_0 \sqrt{n / (n + 1)} / \sqrt{1 + z_0^2 / (n + 1)}`.

A feature that was constant so far has no scale: the first cell that differs becomes 3 or -3, and
others are measured by it until there are more.

*Several rows a round* (documents of a query, positions of a sequence). All are scaled by the state
before the round, and only then learned from, one after the other: the state is then the same as
after single rows. In the beginning a round may have more rows than all before it. It is scaled by
the state after it: otherwise all of the first round would be zeros, which a round of 2000 documents
is too valuable for.
"""

from __future__ import annotations

import math

from driftline.features.settling import CLIP, OTHERS, settle, sort_together
from driftline.kernels import (
    SCALE,
    SCALE_ROUNDS,
    SCALE_ROUNDS_SINGLE,
    SCALE_SINGLE,
    Kernel,
    helper,
    kernel,
    loose,
    loose_distinct,
    prefetch_row,
)

__all__ = [
    "HEADER",
    "LARGEST",
    "WIDTH",
    "standardise",
    "standardise_rounds",
    "standardise_rounds_single",
    "standardise_single",
]

#: Rows that a feature is settled from: the first ones, and the last ones.
WINDOW = 64

#: The state of every feature, beside its last cells. SHOWN is the location that cells are
#: measured from, INVERSE one over the deviation, LIMIT the deviations from which on cells count as
#: missing; sums and TALLY are those of the block; CLIPPED, MEAN and SQUARE are running means over
#: the window: of how often a cell is clipped, of its value, of its square; WIDE is the share of
#: clipped cells among all but those far outside; FAR counts cells at more than FAR_OUT deviations.
(
    SHOWN, INVERSE, LIMIT, CENTER, COUNT, SUM, SUM_SQ, TALLY, CLIPPED, MEAN, SQUARE, TARGET, WIDE,
    FAR,
) = range(14)  # fmt: skip

#: The size of a feature's state; and of the header before all features: the rows seen, those in the
#: block, and, in the beginning, the row at which features are next settled.
WIDTH, HEADER = 14 + WINDOW, 3
ROWS, BLOCK, NEXT = range(HEADER)

#: After the first rows, one in ``KEPT`` is kept.
KEPT = 2

#: The tally of a block counts cells that are not at the location, clipped ones and those far
#: outside: three numbers below ``DIGIT``, as the digits of one.
DIGIT = 2.0**10
OTHER, OUTSIDE, LOST = 1.0, 1.0 + DIGIT, 1.0 + DIGIT + DIGIT * DIGIT

#: How many of the kept rows a feature is settled from after a change: all are from after it.
NEWEST = 16

#: A change this soon after the last one is a switch: the scale then covers both levels.
SOON = 2000.0

#: Blocks have a hundredth of all rows, and at most this many.
LONGEST_BLOCK = 64

#: The largest n: older rows are forgotten slowly.
MEMORY = 4000.0

#: Squared standard errors by which a location is drawn to 0.
DOUBT = 4.0

#: Thresholds of a change: the share of clipped cells in the window is above ``OFTEN``, or their
#: variance below ``SMALL``. For features with one value in most rows: the share of clipped other
#: cells is above ``OFTEN_OTHERS``, their mean square, over its expected value, below
#: ``SMALL_OTHERS``, or their share above ``MOST``.
OFTEN, SMALL = 0.3, 0.1
OFTEN_OTHERS, SMALL_OTHERS, MOST = 0.6, 0.2, 0.6

#: Cells at more deviations than these are counted as far outside.
FAR_OUT = 20.0

#: The square of a clipped value, less the square of 1 that is learned from a cell far outside.
AMISS = CLIP * CLIP - 1.0

#: The share of clipped cells, among all but those far outside, from which on tails are so heavy
#: that no cell counts as missing; and the share that a feature begins with.
HEAVY, UNSURE = 0.04, 0.05

#: The weight of a cell far outside in the share of clipped cells: it is more often wrong than the
#: first one after a change. Half of the share that tells a change lifts the limit.
DOUBTED = 0.5

#: The least of what a limit is divided by, at the third power. Only cells of more than 1e150 are
#: beyond the limit then, where they are the first ones of a feature to differ.
LIGHTEST = 1e-100
UNLIMITED = FAR_OUT / (LIGHTEST * LIGHTEST * LIGHTEST)

#: One over the deviation of a feature that has not varied.
UNKNOWN = 1e150
LARGEST_KNOWN = UNKNOWN / 2.0

#: Larger cells are learned from as if they had this size.
LARGEST = 1e150

#: How many features have their last cells gathered together: as many as lie on one cache line. And
#: the size of the buffer: twice these cells, and those of one more feature.
GROUP = 8
ROOM = (2 * GROUP + 1) * WINDOW

#: In the beginning features are settled anew when the number of rows has grown by this factor.
GROWTH = 1.5


@helper
def counting_itself(z, rows):
    """Return a value as if its own cell had been counted, after ``rows`` others."""
    z = min(1e6, max(-1e6, z))
    return z * math.sqrt(rows / (rows + 1.0)) / math.sqrt(1.0 + z * z / (rows + 1.0))


@helper
def shown_from(center, inverse, count):
    """Return the location that cells are measured from."""
    sure = count * (center * inverse) ** 2
    return center * (1.0 - DOUBT / sure) if sure > DOUBT else 0.0


@loose
def count_bad(x):
    """Count the cells that are not finite."""
    bad = 0.0
    for j in range(x.size):
        bad += 0.0 if x[j] - x[j] == 0.0 else 1.0
    return bad


@loose_distinct
def place(x, shown, inverse, limit, factor, out):
    """Write a row, clipped; a cell beyond the limit counts as missing: 0."""
    for j in range(x.size):
        away = (x[j] - shown[j]) * inverse[j]
        z = away if away < CLIP else CLIP
        z = z if z > -CLIP else -CLIP
        out[j] = factor * (z if abs(away) <= limit[j] else 0.0)


@loose_distinct
def place_and_sum(x, shown, inverse, limit, factor, out, sums, squares, tally):
    """Do the same, and add clipped values to the sums of the block; return how many were far out.

    A cell far outside adds nothing to the sum, and the square of a clipped value to the squares.
    """
    far = 0.0
    for j in range(x.size):
        away = (x[j] - shown[j]) * inverse[j]
        z = away if away < CLIP else CLIP
        z = z if z > -CLIP else -CLIP
        out[j] = factor * (z if abs(away) <= limit[j] else 0.0)
        near = abs(away) <= FAR_OUT
        far += 0.0 if near else 1.0
        sums[j] += z if near else 0.0
        squares[j] += z * z
        inside = OTHER if away != 0.0 else 0.0
        tally[j] += (inside if z == away else OUTSIDE) if near else LOST
    return far


@loose_distinct
def keep(x, recent):
    """Keep a row among the last ones."""
    for j in range(x.size):
        cell = x[j] if x[j] < LARGEST else LARGEST
        recent[j] = cell if cell > -LARGEST else -LARGEST


@helper
def begin_row(x, about, rows, factor, out):
    """Write one of the first rows, in which every cell counts itself."""
    for j in range(x.size):
        z = counting_itself((x[j] - about[SHOWN, j]) * about[INVERSE, j], rows)
        z = z if z < CLIP else CLIP
        z = z if z > -CLIP else -CLIP
        out[j] = factor * z if rows > 0.0 else 0.0


@helper
def gather(about, j, last, count, room):
    """Copy the last cells of feature j and of its neighbours, sorted, one feature after the other.

    All features are sorted together by a sorting network, which does not depend on values.
    """
    stop = min(GROUP, about.shape[1] - j)
    cells = room[GROUP * WINDOW : 2 * GROUP * WINDOW].reshape(WINDOW, GROUP)
    for i in range(count):
        slot = FAR + 1 + (last - i) % WINDOW
        for k in range(GROUP):
            cells[i, k] = about[slot, j + min(k, stop - 1)]
    sort_together(cells, count)
    for k in range(stop):
        for i in range(count):
            room[k * WINDOW + i] = cells[i, k]


@helper
def settle_at(about, j, center, deviation, told, equal):
    """Set location and deviation of feature j; it has no scale if the deviation is 0."""
    inverse = UNKNOWN
    if deviation > 0.0:
        inverse = min(1.0 / deviation, LARGEST_KNOWN)
    about[CENTER, j], about[INVERSE, j], about[COUNT, j] = center, inverse, told
    about[SHOWN, j] = center if equal else shown_from(center, inverse, told)
    about[TARGET, j] = OTHERS * OTHERS if equal else 1.0
    about[CLIPPED, j], about[MEAN, j], about[SQUARE, j] = 0.0, 0.0, 1.0
    about[WIDE, j], about[LIMIT, j] = UNSURE, UNLIMITED


@helper
def settle_again(about, j, last, room):
    """Settle feature j after a change.

    Where cells were clipped, from the newest ones alone; soon after another change with a scale
    that covers both levels. Where they are small or unlike before, from all that were kept.
    """
    recent, away = room[:WINDOW], room[ROOM - WINDOW :]
    old, inverse = about[CENTER, j], about[INVERSE, j]
    few = about[TARGET, j] > 1.0
    clipped = not few and about[CLIPPED, j] > OFTEN
    count = NEWEST if clipped else WINDOW
    gather(about, j, last, count, room)
    center, deviation, told, equal = settle(recent, away, count)
    if clipped:
        if about[COUNT, j] < SOON or deviation == 0.0:
            deviation = max(deviation, 1.0 / inverse, 0.5 * abs(center - old))
            center, equal = 0.5 * (center + old), False
        settle_at(about, j, center, deviation, told, equal)
        return
    smaller = 3.0 * deviation * inverse < 1.0
    if deviation > 0.0 and (smaller or (few and (not equal or about[CLIPPED, j] > OFTEN_OTHERS))):
        if 20.0 * deviation * inverse < 1.0 and few:  # its scale came from a cell far outside
            about[FAR, j] += 1.0
        settle_at(about, j, center, deviation, told, equal)
    else:
        about[CLIPPED, j] = 0.0
        about[SQUARE, j] = 1.0 + about[MEAN, j] ** 2
        about[MEAN, j] = 0.0 if few else about[MEAN, j]


@helper
def note_far(x, about):
    """Count cells far outside; a feature that varies for the first time gets its scale."""
    for j in range(x.size):
        away = abs(x[j] - about[SHOWN, j])
        if about[INVERSE, j] == UNKNOWN and away > 0.0:
            about[INVERSE, j], about[COUNT, j] = min(OTHERS / away, LARGEST_KNOWN), 1.0
            about[SUM, j], about[SUM_SQ, j], about[TALLY, j] = 0.0, 0.0, 0.0
        elif away * about[INVERSE, j] > FAR_OUT:
            about[FAR, j] += 1.0


@loose_distinct
def learn_block(
    size, shown, inverse, limit, center, count, sums, squares, tally, often, average, square,
    target, wide,
):  # fmt: skip
    """Let every feature learn from the sums of a block; return how many may have changed.

    Of a feature with one value in most rows, only the other cells are learned from: its location
    stays. ``average`` is then the share of these cells.
    """
    changed = 0.0
    for j in range(sums.size):
        far = math.floor(tally[j] / (DIGIT * DIGIT))
        rest = tally[j] - DIGIT * DIGIT * far
        outside = math.floor(rest / DIGIT)
        others = rest - DIGIT * outside
        few = target[j] > 1.0
        cells = others if few else size
        per = cells if cells > 0.0 else 1.0
        mean, mean_sq = sums[j] / size, (squares[j] - AMISS * far) / (per * target[j])
        weight = cells / (count[j] + per)
        tail = wide[j] + (outside - far - wide[j] * (cells - far)) / (count[j] + per)
        rows = count[j] + cells
        window = rows if rows < WINDOW else 1.0 * WINDOW
        newest = rows if rows < NEWEST else 1.0 * NEWEST
        recent = cells / (window + cells) if few else size / (KEPT * WINDOW)
        quick = cells / (newest + cells) if few else recent
        rows = rows if rows < MEMORY else MEMORY
        moved = 0.0 if few else weight * mean
        grown = 1.0 - weight + weight * mean_sq - moved * moved
        known = inverse[j] < UNKNOWN
        middle = center[j] + (0.0 if few else weight * (shown[j] - center[j]) + moved / inverse[j])
        scale = inverse[j] / math.sqrt(grown if grown > 1e-4 else 1e-4)
        scale = scale if scale < LARGEST_KNOWN else LARGEST_KNOWN
        sure = rows * (middle * scale) ** 2
        drawn = middle * (1.0 - DOUBT / sure) if sure > DOUBT else 0.0
        center[j] = middle if known else center[j]
        inverse[j] = scale if known else inverse[j]
        shown[j] = drawn if known and not few else shown[j]
        count[j], sums[j], squares[j], tally[j] = rows, 0.0, 0.0, 0.0
        told = outside - (0.0 if few else DOUBTED * far)
        clipped = often[j] + recent * (told / per - often[j])
        light = 1.0 - tail / HEAVY if clipped < (OFTEN if few else 0.5 * OFTEN) else 0.0
        light = light if light > LIGHTEST else LIGHTEST
        wide[j], limit[j] = tail, FAR_OUT / (light * light * light)
        share = others / size
        around = average[j] + size / (KEPT * WINDOW) * ((share if few else mean) - average[j])
        level = 0.0 if few else around * around
        spread = square[j] + quick * (mean_sq - square[j]) - level
        often[j], average[j], square[j] = clipped, around, spread + level
        sudden = clipped > (OFTEN_OTHERS if few else OFTEN) or spread < (
            SMALL_OTHERS if few else SMALL
        )
        changed += 1.0 if known and (sudden or (few and around > MOST)) else 0.0
    return changed


@helper
def end_block(about, size, last, room):
    """Let every feature learn from the block, and settle those anew that have changed."""
    moments = about[SHOWN], about[INVERSE], about[LIMIT], about[CENTER], about[COUNT]
    sums, means = (about[SUM], about[SUM_SQ], about[TALLY]), (about[CLIPPED], about[MEAN])
    if learn_block(size, *moments, *sums, *means, about[SQUARE], about[TARGET], about[WIDE]) == 0.0:
        return
    for j in range(about.shape[1]):
        if about[INVERSE, j] == UNKNOWN:
            continue
        often, average = about[CLIPPED, j], about[MEAN, j]
        if about[TARGET, j] > 1.0:
            sudden = often > OFTEN_OTHERS or about[SQUARE, j] < SMALL_OTHERS or average > MOST
        else:
            sudden = often > OFTEN or about[SQUARE, j] - average * average < SMALL
        if sudden:
            settle_again(about, j, last, room)


@helper
def begin(x, state, about, factor, room, out):
    """Write and learn one of the first rows."""
    begin_row(x, about, state[ROWS], factor, out)
    keep(x, about[FAR + 1 + int(state[ROWS])])
    state[ROWS] += 1.0
    if state[ROWS] >= state[NEXT]:
        later = max(state[ROWS] + 1.0, math.floor(GROWTH * state[ROWS]))
        state[NEXT] = later if GROWTH * later <= WINDOW else max(1.0 * WINDOW, state[ROWS] + 1.0)
        count = int(state[ROWS])
        for j in range(x.size):
            k = j % GROUP
            if k == 0:
                gather(about, j, count - 1, count, room)
            recent = room[k * WINDOW : (k + 1) * WINDOW]
            center, deviation, told, equal = settle(recent, room[ROOM - WINDOW :], count)
            settle_at(about, j, center, deviation, told, equal)


@helper
def go_on(x, state, about, factor, room, out):
    """Write and learn a later row."""
    moments, sums = (about[SHOWN], about[INVERSE], about[LIMIT]), (about[SUM], about[SUM_SQ])
    if place_and_sum(x, *moments, factor, out, *sums, about[TALLY]) > 0.0:
        note_far(x, about)
    rows = int(state[ROWS])
    if rows % KEPT == 0:
        keep(x, about[FAR + 1 + (rows // KEPT) % WINDOW])
    state[ROWS] += 1.0
    state[BLOCK] += 1.0
    if state[BLOCK] >= min(LONGEST_BLOCK, 0.01 * state[ROWS]):
        end_block(about, state[BLOCK], rows // KEPT, room)
        state[BLOCK] = 0.0


@helper
def write(x, state, about, factor, out):
    """Scale a row by the current state."""
    if state[ROWS] < WINDOW:
        begin_row(x, about, state[ROWS], factor, out)
    else:
        place(x, about[SHOWN], about[INVERSE], about[LIMIT], factor, out)


@helper
def write_and_learn(x, state, about, factor, room, out):
    """Scale a row by the current state, and learn from it."""
    if state[ROWS] < WINDOW:
        begin(x, state, about, factor, room, out)
    else:
        go_on(x, state, about, factor, room, out)


@kernel(SCALE)
def standardise(inputs, state, room, learning, out):
    """Scale rows, and learn from some; return how many came before one that is not finite.

    ``out`` may have one more column, which is not written; ``room`` is for ``ROOM`` numbers.
    """
    rows, features = inputs.shape
    about = state[HEADER:].reshape(WIDTH, features)
    factor = 1.0 / math.sqrt(features)
    for t in range(rows):
        if t + 1 < rows:
            prefetch_row(inputs, t + 1)
        x = inputs[t]
        if count_bad(x) > 0.0:
            return t
        if learning[t]:
            write_and_learn(x, state, about, factor, room, out[t, :features])
        else:
            write(x, state, about, factor, out[t, :features])
    return rows


@helper
def learn_and_write(inputs, first, stop, state, factor, room, out):
    """Learn from all rows of a round, and then scale them by the state that counts them."""
    features = inputs.shape[1]
    about = state[HEADER:].reshape(WIDTH, features)
    for i in range(first, stop):
        write_and_learn(inputs[i], state, about, factor, room, room[ROOM : ROOM + features])
    for i in range(first, stop):
        place(inputs[i], about[SHOWN], about[INVERSE], about[LIMIT], factor, out[i, :features])


@kernel(SCALE_ROUNDS)
def standardise_rounds(inputs, starts, state, room, learning, out):
    """Do the same with rounds of several rows; return how many came before one not finite.

    ``room`` has one more number for each feature: the row that is scaled while learning is not the
    one that was written. A round of more rows than came before counts itself; if it is not to be
    learned from, on a copy of the state, for which ``room`` has to suffice in the beginning.
    """
    features = inputs.shape[1]
    about = state[HEADER:].reshape(WIDTH, features)
    factor = 1.0 / math.sqrt(features)
    for t in range(starts.size - 1):
        first, stop = starts[t], starts[t + 1]
        early = state[ROWS] < WINDOW and stop - first > state[ROWS]
        for i in range(first, stop):
            if count_bad(inputs[i]) > 0.0:
                return t
            if not early:
                write(inputs[i], state, about, factor, out[i, :features])
        if early:
            own = state
            if not learning[t]:
                own = room[ROOM + features : ROOM + features + state.size]
                for k in range(state.size):
                    own[k] = state[k]
            learn_and_write(inputs, first, stop, own, factor, room, out)
        if early or not learning[t]:
            continue
        for i in range(first, stop):
            write_and_learn(inputs[i], state, about, factor, room, room[ROOM : ROOM + features])
    return starts.size - 1


standardise_single = Kernel(standardise.function, SCALE_SINGLE)
standardise_rounds_single = Kernel(standardise_rounds.function, SCALE_ROUNDS_SINGLE)
