r"""The compiled loop of rounds with bandit feedback.

Policy i has scores :math:`\theta^i = W^i x` and probabilities :math:`p^i` of predictions
(:mod:`driftline.decoders.exploring`); the prediction is drawn from :math:`p = \sum_i v_i p^i`, with
weights :math:`v`. On a hit all policies know the label: each makes a step along its gradient over
:math:`p_y`, and weights grow by :math:`e^{r p^i_y / p_y}`, since :math:`1 - 1[\hat y = y] p^i_y / p_y`
estimates the risk of policy i without bias. On a miss only some policies make a step.
"""  # noqa: E501

from __future__ import annotations

import math

from driftline.decoders.exploring import LEAST, explore, slack_of
from driftline.kernels import BANDIT, dot, helper, kernel, loose

__all__ = ["HEADER", "OPTIONS", "bandit"]

#: How many constants there are before those of policies, and of each policy.
HEADER, OPTIONS = 5, 6

#: Rows whose squared norm is not below this are refused, so that no step overflows.
LONGEST_SQ = 1e200

#: Columns of the trace.
LOSS, RISK, TARGET, ETA, GRAD = range(5)


@loose
def square_after(weights, factor, x):
    """Add ``factor * x`` to the weights; return their squared norm."""
    total = 0.0
    for j in range(x.size):
        weights[j] += factor * x[j]
        total += weights[j] * weights[j]
    return total


@loose
def shrink(weights, factor):
    """Multiply weights by a factor."""
    for j in range(weights.size):
        weights[j] *= factor


@helper
def step_of(policy, rounds):
    """Return the step of a policy after so many rounds."""
    return policy[0] / math.sqrt(rounds + 1.0) if policy[1] > 0.0 else policy[0]


@helper
def score(weights, x, half, mean, losses, squares, costs):
    """Write probabilities by the softmax, all losses, squared gradients, and costs of steps.

    ``half`` is half of the step times the squared norm of the input.
    """
    classes = weights.shape[0]
    top = -math.inf
    for k in range(classes):
        mean[k] = dot(weights[k], x)
        top = max(top, mean[k])
    total = 0.0
    for k in range(classes):
        losses[k] = mean[k] - top
        mean[k] = math.exp(losses[k])
        total += mean[k]
    unit, square, log = 1.0 / math.log(2.0), 0.0, math.log(total)
    for k in range(classes):
        losses[k] = max(0.0, (log - losses[k]) * unit)
        mean[k] /= total
        square += mean[k] * mean[k]
    for k in range(classes):
        rest = 1.0 - mean[k]
        squares[k] = unit * unit * max(0.0, rest * rest + square - mean[k] * mean[k])
        costs[k] = half * squares[k]


@helper
def move(weights, x, mean, chosen, hit, length, misses, radius):
    """Make a step on a hit, or one after a miss; go back into the ball."""
    unit = length / math.log(2.0)
    top, square = mean[chosen], 0.0
    if not hit:
        unit *= misses
    for k in range(weights.shape[0]):
        if hit:
            gradient = mean[k] - (1.0 if k == chosen else 0.0)
        elif k == chosen:
            gradient = top
        else:
            gradient = -mean[k] * top / max(1.0 - top, LEAST)
        square += square_after(weights[k], -unit * gradient, x)
    if square > radius * radius:
        factor = radius / math.sqrt(square)
        for k in range(weights.shape[0]):
            shrink(weights[k], factor)


@helper
def drawn(mixed, uniform):
    """Return the class that a uniform number draws."""
    chosen, below, top = -1, 0.0, 0
    for k in range(mixed.size):
        below += mixed[k]
        if mixed[k] > mixed[top]:
            top = k
        if chosen < 0 and uniform < below:
            chosen = k
    return top if chosen < 0 else chosen  # rounding may leave the sum short of 1


@helper
def keep(chosen, chances, mixed, kept):
    """Keep a prediction, its probability by each policy, and those of all classes."""
    policies = chances.shape[0]
    kept[0] = chosen
    for i in range(policies):
        kept[1 + i] = chances[i, chosen]
    for k in range(mixed.size):
        kept[1 + policies + k] = mixed[k]


@helper
def recall(kept, chances, mixed):
    """Read what :func:`keep` has written; return the prediction."""
    policies, chosen = chances.shape[0], int(kept[0])
    for i in range(policies):
        chances[i, chosen] = kept[1 + i]
    for k in range(mixed.size):
        mixed[k] = kept[1 + policies + k]
    return chosen


@helper
def bound(options, losses, costs, mixed, label, inverse, slack, noise, t):
    """Write the slack of every unbiased policy, and what chance adds to its bound."""
    place = 0
    for i in range(losses.shape[0]):
        if options[i, 3] == math.inf and options[i, 4] == 0.0:
            slack[t, place] = slack_of(losses[i], costs[i], mixed)
            if noise.shape[0] > 0:
                value = losses[i, label] - costs[i, label] / max(mixed[label], LEAST)
                noise[t, place] = (1.0 - inverse[t, 0]) * value
            place += 1


@helper
def reweigh(shares, chances, chosen, p, rate, share, floor):
    """Move the weights of policies after a hit."""
    policies, total = shares.size, 0.0
    for i in range(policies):
        shares[i] *= math.exp(rate * chances[i, chosen] / max(p, floor))
        total += shares[i]
    for i in range(policies):
        shares[i] = (1.0 - share) * shares[i] / total + share / policies


@kernel(BANDIT)
def bandit(
    inputs, labels, uniforms, asked, places, kept, constants, memory, room, learning, trace, chance,
    slack, noise, inverse, predictions,
):  # fmt: skip
    """Draw a prediction for every row, and learn from whether it was right.

    Without ``learning`` rows are only predicted, and without labels nothing is recorded. Where
    labels come late, each input has a row in ``kept``: of one that is ``asked`` for, and only
    predicted, the prediction, its probability by each policy, and those of all classes are kept.
    One that is told is learned from by what is kept of it, at the scores of now; its label may be
    -1 after a miss. For audits, ``inverse`` is one over the
    probability of a hit, 0 after a miss, and ``noise`` what chance adds to the bound of every
    unbiased policy, without the comparator's part.
    """
    rows, features = inputs.shape
    classes, policies = int(constants[0]), int(constants[1])
    rate, share, floor = constants[2], constants[3], constants[4]
    options = constants[HEADER : HEADER + policies * OPTIONS].reshape(policies, OPTIONS)
    shares = memory[1 : 1 + policies]
    weights = memory[1 + policies :].reshape(policies, classes, features)
    size = policies * classes
    mean, losses = room[:size].reshape(policies, classes), room[size : 2 * size]
    losses = losses.reshape(policies, classes)
    squares = room[2 * size : 3 * size].reshape(policies, classes)
    costs = room[3 * size : 4 * size].reshape(policies, classes)
    chances = room[4 * size : 5 * size].reshape(policies, classes)
    mixed, needed = room[5 * size : 5 * size + classes], room[5 * size + classes :]
    for t in range(rows):
        x = inputs[t]
        length_sq = dot(x, x)
        if not length_sq < LONGEST_SQ:
            return t
        for k in range(classes):
            mixed[k] = 0.0
        for i in range(policies):
            half = 0.5 * step_of(options[i], memory[0]) * length_sq
            score(weights[i], x, half, mean[i], losses[i], squares[i], costs[i])
            for k in range(classes):
                needed[k] = options[i, 2] * costs[i, k]
            explore(losses[i], needed, chances[i])
            for k in range(classes):
                mixed[k] += shares[i] * chances[i, k]
        label = labels[t, 0] if labels.shape[0] > 0 else -1
        risk = max(0.0, 1.0 - mixed[label]) if label >= 0 else 0.0
        late = places.size > 0
        told = late and not asked[t]
        if told:  # by the probabilities of then
            chosen = recall(kept[places[t]], chances, mixed)
        else:
            chosen = drawn(mixed, uniforms[t, 0])
        predictions[t, 0] = chosen
        p = mixed[chosen]
        if late and not told:
            keep(chosen, chances, mixed, kept[places[t]])
        if labels.shape[0] == 0:
            continue
        hit = label == chosen
        if label >= 0 and trace.shape[1] > 0:
            trace[LOSS, t] = 0.0
            for i in range(policies):
                trace[LOSS, t] += shares[i] * losses[i, label]
            trace[RISK, t] = risk
            trace[TARGET, t] = 0.0 if hit else 1.0
            trace[ETA, t] = 1.0
            trace[GRAD, t] = 0.0
            chance[t] = p
            if inverse.shape[0] > 0:
                inverse[t, 0] = 1.0 / max(p, LEAST) if hit else 0.0
            bound(options, losses, costs, mixed, label, inverse, slack, noise, t)
        if not learning or (late and not told):
            continue
        if hit:
            reweigh(shares, chances, chosen, p, rate, share, floor)
        for i in range(policies):
            if hit or options[i, 4] > 0.0:
                length = step_of(options[i], memory[0])
                if hit:
                    length *= min(1.0 / max(p, LEAST), options[i, 3])
                move(weights[i], x, mean[i], chosen, hit, length, options[i, 4], options[i, 5])
        memory[0] += 1.0
    return rows
