"""Slow, plain references that share no code with the package.

Everything is written from the formulas, with weights as a matrix, exact projections and
explicit distributions over labels. Labels are class indices; the binary task is told
apart by ``vector=True`` (one score, labels -1 and +1 as indices 0 and 1).
"""

import math

import numpy as np


def logistic(theta, y, base=2.0, vector=False):
    if vector:
        sign = 2 * y - 1
        z = -sign * theta[0]
        value = math.log1p(math.exp(z)) if z < 30 else z + math.exp(-z)
        grad = np.array([-sign / (1.0 + math.exp(-z))])
    else:
        shifted = theta - theta.max()
        p = np.exp(shifted) / np.exp(shifted).sum()
        value = math.log(np.exp(shifted).sum()) - shifted[y]
        grad = p - np.eye(len(theta))[y]
    return value / math.log(base), grad / math.log(base)


def smooth_hinge(theta, y, vector=False):
    if vector:
        sign = 2 * y - 1
        margin, direction = sign * theta[0], np.array([-float(sign)])
    else:
        others = [theta[i] if i != y else -np.inf for i in range(len(theta))]
        rival = int(np.argmax(others))
        margin = theta[y] - theta[rival]
        direction = np.eye(len(theta))[rival] - np.eye(len(theta))[y]
    if margin <= 0:
        return 1 - 2 * margin, 2 * direction
    if margin < 1:
        return (1 - margin) ** 2, 2 * (1 - margin) * direction
    return 0.0, 0 * direction


def top(theta, vector=False):
    return int(theta[0] > 0) if vector else int(np.argmax(theta))


def uniform_mix(theta, losses, squares, classes, vector):
    a = min(1.0, losses[top(theta, vector)])
    pi = np.full(classes, a / classes)
    pi[top(theta, vector)] += 1 - a
    return pi


def nearest_vertex(theta, losses, squares, classes, vector):
    if vector:
        plus = 1 / (1 + math.exp(-theta[0]))
        p = np.array([1 - plus, plus])
    else:
        p = np.exp(theta - theta.max())
        p /= p.sum()
    best = top(theta, vector)
    q = min(1.0, 2 * (1 - p[best]))
    pi = q * p
    pi[best] += 1 - q
    return pi


def gap_optimal(theta, losses, squares, classes, vector):
    ordered = np.sort(losses)
    c = max((m - 1) / ordered[:m].sum() for m in range(2, classes + 1))
    return np.maximum(0, 1 - c * losses)


def step_optimal(theta, losses, squares, classes, vector):
    low, high = 0.0, 1e9
    for _ in range(300):
        middle = (low + high) / 2
        if np.maximum(0, 1 - losses + middle / 2 * squares).sum() <= 1:
            low = middle
        else:
            high = middle
    return np.maximum(0, 1 - losses + low / 2 * squares)


def argmax(theta, losses, squares, classes, vector):
    return np.eye(classes)[top(theta, vector)]


def run(
    X,
    y,
    classes,
    loss,
    decode,
    rate,
    radius=10.0,
    factor=1.0,
    vector=False,
    intercept=False,
    uniforms=None,
):
    """Play a stream; ``rate(loss, risk, grad_sq, history)`` returns the step."""
    if intercept:
        X = np.column_stack([X, np.ones(len(X))])
    W = np.zeros((1 if vector else classes, X.shape[1]))
    rows, predictions, etas = [], [], []
    for t, (x, label) in enumerate(zip(X, y, strict=True)):
        theta = W @ x
        both = [loss(theta, k, vector=vector) for k in range(classes)]
        losses = np.array([value for value, _ in both])
        squares = np.array([g @ g for _, g in both])
        pi = decode(theta, losses, squares, classes, vector)
        value, grad = factor * both[label][0], factor * both[label][1]
        risk = 1 - pi[label]
        grad_sq = grad @ grad * (x @ x)
        eta = rate(value, risk, grad_sq, etas) if grad_sq > 1e-150 else 0.0
        if eta > 0:
            W = W - eta * np.outer(grad, x)
            norm = np.linalg.norm(W)
            if norm > radius:
                W = W * (radius / norm)
        etas.append(eta if eta > 0 else (etas[-1] if etas else np.nan))
        prediction = min(int(np.searchsorted(np.cumsum(pi), uniforms[t], "right")), classes - 1)
        predictions.append(prediction)
        rows.append((value, risk, float(prediction != label), etas[-1], grad_sq))
    return np.array(rows).T, np.array(predictions), W


def best_sequence(losses, switches):
    """Return the least total of all sequences of columns with at most so many changes."""

    def rest(t, last, left):
        if t == len(losses):
            return 0.0
        options = []
        for j, loss in enumerate(losses[t]):
            used = 0 if last is None or j == last else 1
            if used <= left:
                options.append(loss + rest(t + 1, j, left - used))
        return min(options)

    return rest(0, None, switches)


def fixed_share(losses, eta, share):
    """Return what fixed share pays."""
    members, paid = len(losses[0]), 0.0
    weights = [1.0 / members] * members
    for loss in losses:
        paid += sum(w * x for w, x in zip(weights, loss, strict=True))
        weights = [w * math.exp(-eta * x) for w, x in zip(weights, loss, strict=True)]
        weights = [(1 - share) * w / sum(weights) + share / members for w in weights]
    return paid


def largest(holds, low, high):
    """Return the largest number for which something holds that holds at low and up to it."""
    if holds(high):
        return high
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def fixed_share_bound(total, rounds, switches, members, eta, share):
    """The largest loss whose mix losses, if the rounds are alike, a sequence allows."""
    chance = (1 - share + share / members) ** max(0, rounds - 1 - switches)
    words = -math.log(chance * (share / members) ** switches / members)

    def holds(paid):
        left = 1 - paid / rounds * (1 - math.exp(-eta))
        return -rounds * math.log(left) <= eta * total + words

    return largest(holds, 0.0, float(rounds))


def adahedge_bound(least, rounds, sets, first=1.0):
    """The largest A with A <= least + first + 2 X, X^2 <= A (1 - A / T) ln K + c X."""
    c = (2 / 3 + 1 / (8 * first)) * math.log(sets) - 2 * first

    def holds(paid):
        gap = max(c, 0.0) + math.sqrt(math.log(sets) * paid * (1 - paid / rounds))
        return paid <= least + first + 2 * gap

    return largest(holds, min(least, rounds), float(rounds))


def cusum_alarms(losses, threshold=6.0, factor=2.0, more=0.4, patience=20):
    """Page's test with the mean so far, afresh from all rounds since the last alarm."""
    found, since = [], 0
    for t in range(len(losses)):
        total = 0.0
        for s in range(since, t + 1):
            seen = losses[since : s + 1]
            p = (sum(seen) + 1) / (len(seen) + 2)
            q = max(p, min(0.9, max(factor * p, p + more)))
            ratio = losses[s] * math.log(q / p) + (1 - losses[s]) * math.log((1 - q) / (1 - p))
            total = max(0.0, total + ratio)
        if t - since + 1 >= patience and total > threshold:
            found.append(t)
            since = t + 1
    return found


def scaled_sparse(rows, constant):
    """Entries over the root mean square of their feature's entries so far, row by row."""
    made, norms = [], []
    for t in range(len(rows)):
        row = np.zeros(rows.shape[1])
        for j in np.flatnonzero(rows[t]):
            seen = rows[: t + 1, j]
            row[j] = rows[t, j] / np.sqrt((seen[seen != 0] ** 2).mean())
        norms.append(row @ row)
        usual = np.mean(norms)
        row /= np.sqrt(max(row @ row, usual)) if usual > 0 else 1.0
        made.append(np.r_[row, 1.0 / np.sqrt(max(usual, 1.0))] if constant else row)
    return np.array(made)
