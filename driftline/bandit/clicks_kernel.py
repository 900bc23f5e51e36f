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
    theta = room[: policies * width].reshape(policies, width)
    own = room[policies * width : 2 * policies * width].reshape(policies, width)
    rest = room[2 * policies * width :].reshape(6, width)
    mixed, first, second, losses, others, order = (
        rest[0], rest[1], rest[2], rest[3], rest[4], rest[5],
    )  # fmt: skip
    unit, log2 = 1.0 / math.log(2.0), math.log(2.0)
    for t in range(rounds):
        start = starts[t] if several else 0
        size = starts[t + 1] - start if several else scores
        base = start if several else t * scores
        for j in range(size):
            x = inputs[start + j] if several else inputs[t]
            if not dot(x, x) < LONGEST_SQ:
                return t
            mixed[j] = 0.0
            order[j] = 0.0
        bounded = 0 < most
        for i in range(policies):
            eta = step_of(options[i], memory[0])
            for j in range(size):
                x = inputs[start + j] if several else inputs[t]
                theta[i, j] = dot(weights[i, 0 if several else j], x)
                half, doubt = 0.5 * eta * dot(x, x) * options[i, 2], math.exp(-abs(theta[i, j]))
                small = math.log1p(doubt) * unit
                q = 1.0 / (1.0 + doubt) if theta[i, j] > 0.0 else doubt / (1.0 + doubt)
                losses[j] = small + max(0.0, -theta[i, j]) * unit
                others[j] = small + max(0.0, theta[i, j]) * unit
                first[j] = half * ((1.0 - q) * unit) ** 2
                second[j] = half * (q * unit) ** 2
                order[j] += shares[i] * q
                if not bounded:
                    own[i, j] = tag_chance(theta[i, j], first[j], second[j])
            if bounded and size > most:
                list_chances(losses, others, first, second, size, most, own[i])
            for j in range(size):
                if bounded and size <= most:
                    own[i, j] = 1.0
                mixed[j] += shares[i] * own[i, j]
        late = places.size > 0
        told = late and not asked[t]
        for j in range(size):
            mixed[j] = min(1.0, mixed[j])
            chances[base + j] = mixed[j]
        if told:  # by the probabilities of then
            for j in range(size):
                at = j * (2 + policies)
                shown[base + j] = int(kept[places[t], at])
                chances[base + j] = min(1.0, kept[places[t], at + 1])
                for i in range(policies):
                    own[i, j] = kept[places[t], at + 2 + i]
        elif bounded:
            total, count = 0.0, 0
            least = min(most, size)
            for j in range(size):
                total += mixed[j]
                left = size - j
                shown[base + j] = 0
                if count < least and (total > uniforms[t, 0] + count or left == least - count):
                    shown[base + j] = 1
                    count += 1
            for place in range(1, count + 1):  # the most relevant first
                best = -1
                for j in range(size):
                    if shown[base + j] == 1 and (best < 0 or order[j] > order[best]):
                        best = j
                shown[base + best] = -place
            for j in range(size):
                shown[base + j] = -shown[base + j]
        else:
            for j in range(size):
                shown[base + j] = 1 if spread(uniforms[t, 0], j) < mixed[j] else 0
        if late and not told:
            for j in range(size, kept.shape[1] // (2 + policies)):  # of an earlier, longer round
                for i in range(2 + policies):
                    kept[places[t], j * (2 + policies) + i] = 0.0
            for j in range(size):
                at = j * (2 + policies)
                kept[places[t], at] = shown[base + j]
                kept[places[t], at + 1] = mixed[j]
                for i in range(policies):
                    kept[places[t], at + 2 + i] = own[i, j]
        if labels.size == 0:
            continue
        if trace.shape[1] > 0:
            loss, risk, target, earned, best = 0.0, 0.0, 0.0, 0.0, 0.0
            for j in range(size):
                r, p = labels[base + j] / top, mixed[j]
                for i in range(policies):
                    value = math.log1p(math.exp(-abs(theta[i, j]))) + max(0.0, theta[i, j])
                    loss += shares[i] * (value - r * theta[i, j]) * unit / size
                if bounded:
                    place = shown[base + j]
                    earned += r * discounts[place - 1] if place > 0 else 0.0
                    risk += r * p
                else:
                    risk += (r * (1.0 - p) + (1.0 - r) * p) / size
                    target += (1.0 - r if shown[base + j] > 0 else r) / size
            if bounded:
                for place in range(min(most, size)):
                    best += discounts[place]
                target = 1.0 - earned / best
                flat = discounts[0] == discounts[min(most, size) - 1]
                risk = 1.0 - risk / min(most, size) if flat else target
            trace[LOSS, t] = loss
            trace[RISK, t] = max(0.0, risk)
            trace[TARGET, t] = max(0.0, target)
            trace[ETA, t] = 1.0
            trace[GRAD, t] = 0.0
            if inverse.shape[0] > 0:
                for j in range(size):
                    p = max(chances[base + j], LEAST)
                    inverse[t, j] = 1.0 / p if shown[base + j] > 0 else 0.0
            place = 0
            for i in range(policies):
                if options[i, 3] == math.inf and not bounded:
                    x_sq, total, by_chance = dot(inputs[t], inputs[t]), 0.0, 0.0
                    half = 0.5 * step_of(options[i], memory[0]) * x_sq
                    for j in range(size):
                        doubt, p = math.exp(-abs(theta[i, j])), chances[base + j]
                        small = math.log1p(doubt) * unit
                        q = 1.0 / (1.0 + doubt) if theta[i, j] > 0.0 else doubt / (1.0 + doubt)
                        one = 1.0 - p - small - max(0.0, -theta[i, j]) * unit
                        none = p - small - max(0.0, theta[i, j]) * unit
                        if half > 0.0:
                            one += half * ((1.0 - q) * unit) ** 2 / max(p, LEAST)
                            none += half * (q * unit) ** 2 / max(p, LEAST)
                        total += max(one, none) / size
                        if noise.shape[0] > 0:  # the target loss minus what is to be covered
                            value = 1.0 - p - one if labels[base + j] == 1 else p - none
                            by_chance += (1.0 - inverse[t, j]) * value / size
                    slack[t, place] = total
                    if noise.shape[0] > 0:
                        noise[t, place] = by_chance
                    place += 1
        if not learning or (late and not told):
            continue
        total = 0.0
        for i in range(policies):
            paid = 0.0
            for j in range(size):
                if shown[base + j] > 0:
                    r = labels[base + j] / top
                    p = own[i, j]
                    cost = -r * p if bounded else r * (1.0 - p) + (1.0 - r) * p
                    paid += cost / max(chances[base + j], floor)
            shares[i] *= math.exp(-rate * paid / (min(most, size) if bounded else size))
            total += shares[i]
        for i in range(policies):
            shares[i] = (1.0 - share) * shares[i] / total + share / policies
            eta = step_of(options[i], memory[0]) / log2
            for j in range(size):
                if shown[base + j] > 0:
                    x = inputs[start + j] if several else inputs[t]
                    doubt = math.exp(-abs(theta[i, j]))
                    q = 1.0 / (1.0 + doubt) if theta[i, j] > 0.0 else doubt / (1.0 + doubt)
                    length = eta * min(1.0 / max(chances[base + j], LEAST), options[i, 3])
                    gradient = q - labels[base + j] / top
                    square_after(weights[i, 0 if several else j], -length * gradient, x)
            square, radius = 0.0, options[i, 5]
            for k in range(scores):
                square += dot(weights[i, k], weights[i, k])
            if square > radius * radius:
                for k in range(scores):
                    shrink(weights[i, k], radius / math.sqrt(square))
        memory[0] += 1.0
    return rounds
