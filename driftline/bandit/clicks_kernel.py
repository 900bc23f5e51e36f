r"""The compiled loop of rounds in which the items that were shown are judged.

An item that is shown with probability p is judged then, one that is not shown never: apple tasting.
With :math:`c_1, c_0` half a step times the squares of both gradients, ask for

.. math:: 1 - p + \frac{c_1}p \le L_1 + s, \qquad p + \frac{c_0}p \le L_0 + s.

The first left side falls in p, the second falls up to :math:`\sqrt{c_0}` and grows from there. So the
p with the least s is :math:`\sqrt{c_0}`, if the second is the larger one there, and else the larger
root of :math:`2 p^2 - (1 - L_1 + L_0) p = c_1 - c_0`, where both are equal; or 1.

Where exactly k items are shown, and one that is not relevant costs nothing but its place, the second
is :math:`c_0 / p \le L_0 + s`. Both give a least p for every s, which falls in s. The slack is the
least one of 0 or more at which these add up to k at most, and what is left of k goes to the items
that are most likely to be relevant.
"""  # noqa: E501

from __future__ import annotations

import math

from driftline.bandit.kernel import LONGEST_SQ, shrink, square_after, step_of
from driftline.decoders.exploring import LEAST, least_chance
from driftline.kernels import CLICKS, dot, helper, kernel, spread

__all__ = ["HEADER", "OPTIONS", "clicks"]

#: How many constants there are before those of policies, and of each policy.
HEADER, OPTIONS = 7, 6

#: How often the slack of a list is halved: to the last digit; and what is left of all places then.
HALVINGS, ENOUGH = 60, 1e-12

LOSS, RISK, TARGET, ETA, GRAD = range(5)

#: Nats in bits.
UNIT = 1.0 / math.log(2.0)


@helper
def logistic(theta):
    """Return the loss of the likelier label, and the probability that the label is 1."""
    doubt = math.exp(-abs(theta))
    q = 1.0 / (1.0 + doubt) if theta > 0.0 else doubt / (1.0 + doubt)
    return math.log1p(doubt) * UNIT, q


@helper
def tag_chance(theta, first, second):
    """Return the probability of showing a tag that needs the least slack; costs of 1 and 0."""
    low = min(1.0, math.sqrt(second))
    room = 1.0 + theta / math.log(2.0)  # 1 - L_1 + L_0
    if low > 0.0 and room - 2.0 * low + (first - second) / low <= 0.0:
        return low
    root = math.sqrt(max(0.0, room * room + 8.0 * (first - second)))
    if room < 0.0:  # where the sum of both would lose all digits
        return min(1.0, max(low, 2.0 * (first - second) / (root - room)))
    return min(1.0, max(low, 0.25 * (room + root)))


@helper
def needed(losses, others, first, second, size, s, chances):
    """Write the least probabilities of showing items with slack s; return their sum."""
    total = 0.0
    for j in range(size):
        p = least_chance(1.0 - losses[j] - s, first[j])
        if second[j] > 0.0:
            p = max(p, second[j] / (others[j] + s))
        chances[j] = min(1.0, p)
        total += chances[j]
    return total


@helper
def list_chances(losses, others, first, second, size, most, chances):
    """Write the probabilities of showing items, which add up to ``most``.

    The least slack of 0 or more is found by halving; what is left of all places goes to the items
    that are most likely to be relevant.
    """
    low, high = 0.0, 2.0
    for j in range(size):
        high = max(high, 2.0 + first[j] + size * second[j])
    total = needed(losses, others, first, second, size, low, chances)
    if total > most:
        for _ in range(HALVINGS):
            s = 0.5 * (low + high)
            if needed(losses, others, first, second, size, s, chances) > most:
                low = s
            else:
                high = s
        total = needed(losses, others, first, second, size, high, chances)
    while most - total > ENOUGH:
        best = -1
        for j in range(size):
            if chances[j] < 1.0 and (best < 0 or losses[j] < losses[best]):
                best = j
        if best < 0:
            break
        more = min(1.0 - chances[best], most - total)
        chances[best] = 1.0 if more == 1.0 - chances[best] else chances[best] + more
        total += more


@helper
def score(rows, weights, policy, eta, share, theta, losses, others, first, second, order):
    """Write scores of items, losses of both labels and costs of steps; add to chances of a 1."""
    last, tables = rows.shape[0] - 1, weights.shape[0] - 1  # one row, or one table, may be for all
    for j in range(theta.size):
        x = rows[min(j, last)]
        theta[j] = dot(weights[min(j, tables)], x)
        half = 0.5 * eta * dot(x, x) * policy[2]
        small, q = logistic(theta[j])
        losses[j] = small + max(0.0, -theta[j]) * UNIT
        others[j] = small + max(0.0, theta[j]) * UNIT
        first[j] = half * ((1.0 - q) * UNIT) ** 2
        second[j] = half * (q * UNIT) ** 2
        order[j] += share * q


@helper
def explore(theta, losses, others, first, second, most, chances):
    """Write the probabilities by which one policy shows items: ``most``, or any number if 0."""
    size = theta.size
    if size > most > 0:
        list_chances(losses, others, first, second, size, most, chances)
        return
    for j in range(size):
        chances[j] = tag_chance(theta[j], first[j], second[j]) if most == 0 else 1.0


@helper
def show(mixed, order, most, uniform, shown):
    """Draw which items are shown; of a list, the likeliest first."""
    if most == 0:
        for j in range(mixed.size):
            shown[j] = 1 if spread(uniform, j) < mixed[j] else 0
        return
    total, count = 0.0, 0
    least = min(most, mixed.size)
    for j in range(mixed.size):
        total += mixed[j]
        left = mixed.size - j
        shown[j] = 0
        if count < least and (total > uniform + count or left == least - count):
            shown[j] = 1
            count += 1
    for place in range(1, count + 1):
        best = -1
        for j in range(mixed.size):
            if shown[j] == 1 and (best < 0 or order[j] > order[best]):
                best = j
        shown[best] = -place
    for j in range(mixed.size):
        shown[j] = -shown[j]


@helper
def keep(shown, mixed, own, kept):
    """Keep places, probabilities, and those by each policy; and zeros behind a shorter round."""
    policies, size = own.shape
    for j in range(kept.size // (2 + policies)):
        at = j * (2 + policies)
        kept[at] = shown[j] if j < size else 0.0
        kept[at + 1] = mixed[j] if j < size else 0.0
        for i in range(policies):
            kept[at + 2 + i] = own[i, j] if j < size else 0.0


@helper
def recall(kept, shown, chances, own):
    """Read what :func:`keep` has written."""
    policies, size = own.shape
    for j in range(size):
        at = j * (2 + policies)
        shown[j] = int(kept[at])
        chances[j] = min(1.0, kept[at + 1])
        for i in range(policies):
            own[i, j] = kept[at + 2 + i]


@helper
def record(theta, shares, mixed, shown, labels, discounts, most, top, trace):
    """Write the mean loss of policies, the risk, and the target loss of what is shown."""
    loss, risk, target, earned, best, size = 0.0, 0.0, 0.0, 0.0, 0.0, mixed.size
    for j in range(size):
        r, p = labels[j] / top, mixed[j]
        for i in range(shares.size):
            value = math.log1p(math.exp(-abs(theta[i, j]))) + max(0.0, theta[i, j])
            loss += shares[i] * (value - r * theta[i, j]) * UNIT / size
        if most > 0:
            place = shown[j]
            earned += r * discounts[place - 1] if place > 0 else 0.0
            risk += r * p
        else:
            risk += (r * (1.0 - p) + (1.0 - r) * p) / size
            target += (1.0 - r if shown[j] > 0 else r) / size
    if most > 0:
        for place in range(min(most, size)):
            best += discounts[place]
        target = 1.0 - earned / best
        flat = discounts[0] == discounts[min(most, size) - 1]
        risk = 1.0 - risk / min(most, size) if flat else target
    trace[LOSS] = loss
    trace[RISK] = max(0.0, risk)
    trace[TARGET] = max(0.0, target)
    trace[ETA] = 1.0
    trace[GRAD] = 0.0


@helper
def tag_slack(theta, chances, labels, half, inverse, t):
    """Return the slack of a policy's bound, and what chance adds to it where ``inverse`` is known.

    That is the target loss minus what is to be covered, in the round that was drawn.
    """
    total, by_chance, size = 0.0, 0.0, theta.size
    for j in range(size):
        p = chances[j]
        small, q = logistic(theta[j])
        one = 1.0 - p - small - max(0.0, -theta[j]) * UNIT
        none = p - small - max(0.0, theta[j]) * UNIT
        if half > 0.0:
            one += half * ((1.0 - q) * UNIT) ** 2 / max(p, LEAST)
            none += half * (q * UNIT) ** 2 / max(p, LEAST)
        total += max(one, none) / size
        if inverse.shape[0] > 0:
            value = 1.0 - p - one if labels[j] == 1 else p - none
            by_chance += (1.0 - inverse[t, j]) * value / size
    return total, by_chance


@helper
def reweigh(shares, own, shown, chances, labels, most, top, rate, share, floor):
    """Move the weights of policies by estimates of what each would have paid."""
    policies, size = own.shape
    total = 0.0
    for i in range(policies):
        paid = 0.0
        for j in range(size):
            if shown[j] > 0:
                r, p = labels[j] / top, own[i, j]
                cost = -r * p if most > 0 else r * (1.0 - p) + (1.0 - r) * p
                paid += cost / max(chances[j], floor)
        shares[i] *= math.exp(-rate * paid / (min(most, size) if most > 0 else size))
        total += shares[i]
    for i in range(policies):
        shares[i] = (1.0 - share) * shares[i] / total + share / policies


@helper
def move(rows, weights, policy, eta, theta, shown, chances, labels, top):
    """Step along the gradients of items that were shown; go back into the ball."""
    last, tables = rows.shape[0] - 1, weights.shape[0] - 1
    for j in range(theta.size):
        if shown[j] > 0:
            q = logistic(theta[j])[1]
            length = eta * min(1.0 / max(chances[j], LEAST), policy[3])
            gradient = q - labels[j] / top
            square_after(weights[min(j, tables)], -length * gradient, rows[min(j, last)])
    square, radius = 0.0, policy[5]
    for k in range(weights.shape[0]):
        square += dot(weights[k], weights[k])
    if square > radius * radius:
        for k in range(weights.shape[0]):
            shrink(weights[k], radius / math.sqrt(square))


@kernel(CLICKS)
def clicks(
    inputs, starts, labels, uniforms, asked, places, kept, constants, discounts, memory, room,
    learning, trace, slack, noise, inverse, shown, chances,
):  # fmt: skip
    """Show some items of every round, and learn from those that were shown.

    ``starts`` are where items of each round begin; without items of their own, rounds have as many
    as there are rows of weights. ``shown`` has the place of each item that is shown, from 1, and 0
    for others, and ``chances`` are the probabilities by which items are shown. Where labels come
    late, each round has a row in ``kept``: of one that is ``asked`` for, and only shown, the place,
    the probability, and that by each policy are kept for each item. A round that is told is learned
    from by what is kept of it, at the scores of now.
    For audits of tags, ``inverse`` is one over the probability of each that is shown, 0 for others,
    and ``noise`` what chance adds to the bound of every policy, without the comparator's part.
    """
    features = inputs.shape[1]
    policies, scores = int(constants[0]), int(constants[1])
    most, top = int(constants[2]), constants[3]
    rate, share, floor = constants[4], constants[5], constants[6]
    options = constants[HEADER : HEADER + policies * OPTIONS].reshape(policies, OPTIONS)
    shares = memory[1 : 1 + policies]
    weights = memory[1 + policies :].reshape(policies, scores, features)
    several = starts.size > 0
    rounds = starts.size - 1 if several else inputs.shape[0]
    width = room.size // (2 * policies + 6)
    all_theta = room[: policies * width].reshape(policies, width)
    all_own = room[policies * width : 2 * policies * width].reshape(policies, width)
    rest = room[2 * policies * width :].reshape(6, width)
    late = places.size > 0
    for t in range(rounds):
        start = starts[t] if several else t
        rows = inputs[start : starts[t + 1] if several else t + 1]
        size = rows.shape[0] if several else scores
        base = start if several else t * scores
        for j in range(rows.shape[0]):
            if not dot(rows[j], rows[j]) < LONGEST_SQ:
                return t
        theta, own, cut = all_theta[:, :size], all_own[:, :size], rest[:, :size]
        mixed, first, second, losses, others, order = (
            cut[0], cut[1], cut[2], cut[3], cut[4], cut[5],
        )  # fmt: skip
        mixed[:] = 0.0
        order[:] = 0.0
        for i in range(policies):
            eta = step_of(options[i], memory[0])
            given = (losses, others, first, second)
            score(rows, weights[i], options[i], eta, shares[i], theta[i], *given, order)
            explore(theta[i], *given, most, own[i])
            for j in range(size):
                mixed[j] += shares[i] * own[i, j]
        made, by = shown[base : base + size], chances[base : base + size]
        for j in range(size):
            mixed[j] = min(1.0, mixed[j])
            by[j] = mixed[j]
        told = late and not asked[t]
        if told:  # by the probabilities of then
            recall(kept[places[t]], made, by, own)
        else:
            show(mixed, order, most, uniforms[t, 0], made)
        if late and not told:
            keep(made, mixed, own, kept[places[t]])
        if labels.size == 0:
            continue
        truth = labels[base : base + size]
        if trace.shape[1] > 0:
            record(theta, shares, mixed, made, truth, discounts, most, top, trace[:, t])
            for j in range(size if inverse.shape[0] > 0 else 0):
                inverse[t, j] = 1.0 / max(by[j], LEAST) if made[j] > 0 else 0.0
            place = 0
            for i in range(policies if most == 0 else 0):
                if options[i, 3] == math.inf:
                    half = 0.5 * step_of(options[i], memory[0]) * dot(rows[0], rows[0])
                    found = tag_slack(theta[i], by, truth, half, inverse, t)
                    slack[t, place] = found[0]
                    if noise.shape[0] > 0:
                        noise[t, place] = found[1]
                    place += 1
        if not learning or (late and not told):
            continue
        reweigh(shares, own, made, by, truth, most, top, rate, share, floor)
        for i in range(policies):
            eta = step_of(options[i], memory[0]) / math.log(2.0)
            move(rows, weights[i], options[i], eta, theta[i], made, by, truth, top)
        memory[0] += 1.0
    return rounds
