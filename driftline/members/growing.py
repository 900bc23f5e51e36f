r"""How a decision tree is grown from rows that are kept.

Cuts of a feature lie between quantiles of its values, or between all of them if there are few. A
node with class weights :math:`n_k` and total n is cut where

.. math:: \frac1{n_L} \sum_k n_{L,k}^2 + \frac1{n_R} \sum_k n_{R,k}^2

is largest, which is Gini's criterion (Breiman et al., 1984), among some features that are drawn for
the node. Nodes are cut in the order in which they were created, until there is no room for more, or
no cut improves a node.
"""

from __future__ import annotations

from driftline.kernels import helper, sort_decreasing

__all__ = ["DRAWS", "grow", "leaf_of", "write_codes"]

#: How many random numbers there are. They are used cyclically; their number is a prime, so that the
#: cycle does not coincide with other ones.
DRAWS = 8191

#: A cut counts as better if it is better by this factor.
BETTER = 1.0 + 1e-9

#: The chances that a row is drawn at most 0, 1, 2 or 3 times: those of Poisson's distribution.
NEVER, ONCE, TWICE, THRICE = 0.36787944, 0.73575888, 0.91969860, 0.98101184


@helper
def leaf_of(nodes, x):
    """Return the leaf that a row comes to."""
    place = 0
    while nodes[place, 0] >= 0.0:
        right = x[int(nodes[place, 0])] > nodes[place, 1]
        place = int(nodes[place, 2]) + (1 if right else 0)
    return place


@helper
def cut_between(low, high):
    """Return a number c with ``low <= c < high``."""
    middle = 0.5 * low + 0.5 * high
    return middle if middle < high else low


@helper
def write_cuts(ordered, count, bins, cuts):
    """Write cuts between sorted values, for equal shares of them; return how many there are."""
    distinct, found, last = 1, 0, 0
    for i in range(1, count):
        if ordered[i] > ordered[i - 1]:
            distinct += 1
    if distinct <= bins:
        for i in range(1, count):
            if ordered[i] > ordered[i - 1]:
                cuts[found] = cut_between(ordered[i - 1], ordered[i])
                found += 1
        return found
    for b in range(1, bins):
        at = b * count // bins
        if at <= last:
            continue
        while at < count and not ordered[at] > ordered[at - 1]:
            at += 1
        if at == count:
            break
        cuts[found] = cut_between(ordered[at - 1], ordered[at])
        found += 1
        last = at
    return found


@helper
def write_codes(values, bins, ordered, order, buffer, cuts, codes):
    """Choose the cuts of a feature, and write how many of them lie below each of its values."""
    count = values.size
    sort_decreasing(values, order[:count], buffer)
    for i in range(count):
        ordered[i] = values[int(order[count - 1 - i])]
    found = write_cuts(ordered, count, bins, cuts)
    below = 0
    for i in range(count):
        while below < found and ordered[i] > cuts[below]:
            below += 1
        codes[int(order[count - 1 - i])] = below
    return found


@helper
def times_drawn(u):
    """Return how often a row is in a sample, by a number drawn uniformly."""
    if u < ONCE:
        return 0.0 if u < NEVER else 1.0
    if u < TWICE:
        return 2.0
    return 3.0 if u < THRICE else 4.0


@helper
def write_counts(labels, weight, start, stop, out):
    """Write the weight of every class among some rows."""
    for k in range(out.size):
        out[k] = 0.0
    for i in range(start, stop):
        out[labels[i]] += weight[i]


@helper
def best_cut(cells, count, own, total, least, left, best):
    """Return the best cut of a feature and its value, -1 if none is better than ``best``.

    ``cells`` has the weights of all classes between cuts; ``left`` is 0 before and after.
    """
    classes, below, where = own.size, 0.0, -1
    for b in range(count):
        here = 0.0
        for k in range(classes):
            here += cells[b * classes + k]
            left[k] += cells[b * classes + k]
        below += here
        if here == 0.0 or below < least or total - below < least:
            continue
        low, high = 0.0, 0.0
        for k in range(classes):
            low += left[k] * left[k]
            high += (own[k] - left[k]) * (own[k] - left[k])
        value = low / below + high / (total - below)
        if value > best:
            best, where = value, b
    for k in range(classes):
        left[k] = 0.0
    return where, best


@helper
def best_cut_of_few(
    codes, order, labels, weight, start, stop, count, own, squares, least, left, heads, places, best
):
    """Do the same where rows are fewer than cells of a table: row by row, in the order of codes.

    Sums of whole numbers are exact, so that the result is the same. ``left`` is 0 before and after.
    """
    total, low, high, below, where = 0.0, 0.0, squares, 0.0, -1
    for b in range(count + 2):
        heads[b] = 0
    for i in range(start, stop):
        heads[codes[order[i]] + 1] += 1
        total += weight[i]
    for b in range(count + 1):
        heads[b + 1] += heads[b]
    for i in range(start, stop):
        code = codes[order[i]]
        places[heads[code]] = i
        heads[code] += 1  # now where the next code begins
    i = 0
    for b in range(count):
        first = i
        while i < heads[b]:
            k, own_weight = labels[places[i]], weight[places[i]]
            low += own_weight * (2.0 * left[k] + own_weight)
            high -= own_weight * (2.0 * (own[k] - left[k]) - own_weight)
            left[k] += own_weight
            below += own_weight
            i += 1
        if i == first or below < least or total - below < least:
            continue
        value = low / below + high / (total - below)
        if value > best:
            best, where = value, b
    for i in range(start, stop):
        left[labels[i]] = 0.0
    return where, best


@helper
def part(order, labels, weight, codes, cut, start, stop):
    """Put rows at or below a cut before the others; return where these begin."""
    low, high = start, stop - 1
    while low <= high:
        row = order[low]
        if codes[row] <= cut:
            low += 1
        else:
            order[low], order[high] = order[high], row
            labels[low], labels[high] = labels[high], labels[low]
            weight[low], weight[high] = weight[high], weight[low]
            high -= 1
    return low


@helper
def grow(
    known, counted, codes, cuts, found, draws, at, tried, least, drawn, nodes, leaves,
    order, labels, weight, cells, features, spans, left, heads, places,
):  # fmt: skip
    """Grow a tree; return how many random numbers were used up to now.

    ``known`` has the classes of rows, ``counted`` their sample weights, ``codes`` their places
    among the cuts of every feature;
    ``tried`` features that can be cut are looked at for a node, more while none is any good;
    ``drawn`` says whether rows are drawn at random with replacement. ``order`` has the rows of the
    sample, those of a node side by side, with ``labels`` and ``weight`` beside them.
    """
    classes, most = leaves.shape[1], nodes.shape[0]
    rows = 0
    for i in range(known.size):
        times = 1.0
        if drawn:
            times = times_drawn(draws[at])
            at = (at + 1) % DRAWS
        if times > 0.0:
            order[rows], labels[rows], weight[rows] = i, int(known[i]), times * counted[i]
            rows += 1
    for j in range(features.size):
        features[j] = j
    for k in range(classes):
        left[k] = 0.0
    spans[0, 0], spans[0, 1] = 0, rows
    used, place = 1, 0
    while place < used:
        start, stop, own = int(spans[place, 0]), int(spans[place, 1]), leaves[place]
        write_counts(labels, weight, start, stop, own)
        total, squares = 0.0, 0.0
        for k in range(classes):
            total += own[k]
            squares += own[k] * own[k]
        nodes[place, 0], nodes[place, 1], nodes[place, 2] = -1.0, 0.0, 0.0
        which, where, looked = -1, -1, 0
        if used + 2 <= most and total >= 2.0 * least and squares < total * total:
            best = squares / total * BETTER
            for j in range(features.size):
                other = j + int(draws[at] * (features.size - j))
                at = (at + 1) % DRAWS
                feature = int(features[other])
                features[other], features[j] = features[j], feature
                count_of = int(found[feature])
                if count_of == 0:
                    continue
                looked += 1
                if looked > tried and which >= 0:
                    break
                mine = codes[feature]
                if stop - start < count_of * classes:
                    cut, value = best_cut_of_few(
                        mine, order, labels, weight, start, stop, count_of, own, squares, least,
                        left, heads, places, best,
                    )  # fmt: skip
                else:
                    for c in range((count_of + 1) * classes):
                        cells[c] = 0.0
                    for i in range(start, stop):
                        cells[mine[order[i]] * classes + labels[i]] += weight[i]
                    cut, value = best_cut(cells, count_of, own, total, least, left, best)
                if cut >= 0:
                    which, where, best = feature, cut, value
        if which >= 0:
            middle = part(order, labels, weight, codes[which], where, start, stop)
            nodes[place, 0], nodes[place, 1], nodes[place, 2] = which, cuts[which, where], used
            spans[used, 0], spans[used, 1] = start, middle
            spans[used + 1, 0], spans[used + 1, 1] = middle, stop
            used += 2
        place += 1
    return at
