"""Slow, plain references that share no code with the package.

Everything is written from the formulas, with weights as a matrix, exact projections and
explicit distributions over labels. Labels are class indices; the binary task is told
apart by ``vector=True`` (one score, labels -1 and +1 as indices 0 and 1).
"""

import itertools
import math

import numpy as np
from scipy.optimize import lsq_linear, nnls


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
    """Take the largest step for which no set of classes would have more chance than 1."""
    sets = np.array(list(itertools.product([0, 1], repeat=classes)))
    losses_of, squares_of = sets @ losses, sets @ squares
    moved = squares_of > 0
    steps = 2 * (1 - sets.sum(axis=1) + losses_of)[moved] / squares_of[moved]
    return np.maximum(0, 1 - losses + max(steps.min(), 0) / 2 * squares)


def lazy(theta, losses, squares, classes, vector):
    p = 2.0**-losses
    pi = np.array([1.0 + 0.5 * math.log2(x) if x > 0.25 else 0.0 for x in p])
    best = top(theta, vector)
    pi[best] += 1.0 - pi.sum()
    return pi


def argmax(theta, losses, squares, classes, vector):
    return np.eye(classes)[top(theta, vector)]


def odds(cost):
    """Return the root u of 2^(-cost u) + 2^(-u) = 1, with x = 2^(-u) by a fixed point."""
    low, high = 0.0, 0.5
    for _ in range(200):
        x = (low + high) / 2
        low, high = (x, high) if x + x**cost < 1.0 else (low, x)
    return -math.log2(x)


def abstain(cost):
    """Return the decoder that says nothing (a last entry of 1) where it is not sure enough."""
    chance = 2.0 ** (-cost * odds(cost))

    def decode(theta, losses, squares, classes, vector):
        p = np.exp(theta - theta.max())
        p /= p.sum()
        sure = p.max() >= chance
        return np.append(np.eye(classes)[top(theta)] * sure, 1.0 - sure)

    return decode


def paid(prediction, label, cost):
    return cost if prediction is None else float(prediction != label)


def cautious_vote(predictions, weights, cost):
    """Return the vote by the worst label of all: the least ratio of its cost to the mean cost."""
    labels = {p for p in predictions if p is not None} | {-5}  # one that nobody names
    said = {}
    for prediction, weight in zip(predictions, weights, strict=True):
        said[prediction] = said.get(prediction, 0.0) + weight
    leading = [p for p in said if p is not None]
    if not leading:
        return None
    lead = min(leading, key=lambda p: (-said[p], p))
    worst = {}
    for vote in (lead, None):
        ratios = [0.0]
        for y in labels:
            mean = sum(w * paid(p, y, cost) for p, w in said.items())
            own = paid(vote, y, cost)
            ratios.append(own / mean if mean > 0 else (0.0 if own == 0 else math.inf))
        worst[vote] = max(ratios)
    return lead if worst[lead] <= worst[None] else None


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
    h=None,
    cost=1.0,
):
    """Play a stream; ``rate(loss, risk, grad_sq, history)`` returns the step.

    ``h`` are sample weights; ``cost`` is that of no answer, the last entry of what ``decode``
    returns if it has one more entry than there are classes.
    """
    h = np.ones(len(y)) if h is None else h
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
        value, grad = h[t] * factor * both[label][0], h[t] * factor * both[label][1]
        none = pi[classes] if len(pi) > classes else 0.0
        risk = h[t] * (1 - pi[label] - none + cost * none)
        grad_sq = grad @ grad * (x @ x)
        eta = rate(value, risk, grad_sq, etas) if grad_sq > 1e-150 else 0.0
        if eta > 0:
            W = W - eta * np.outer(grad, x)
            norm = np.linalg.norm(W)
            if norm > radius:
                W = W * (radius / norm)
        etas.append(eta if eta > 0 else (etas[-1] if etas else np.nan))
        prediction = min(int(np.searchsorted(np.cumsum(pi), uniforms[t], "right")), len(pi) - 1)
        prediction = -1 if prediction == classes else prediction
        predictions.append(prediction)
        target = cost if prediction < 0 else float(prediction != label)
        rows.append((value, risk, h[t] * target, etas[-1], grad_sq))
    return np.array(rows).T, np.array(predictions), W


def nearest_marginals(nodes, edges, scale):
    """Return the projection of scores over a scale onto the marginals of all sequences listed.

    Nonnegative least squares: the nearest point to 0 of the sequences' encodings minus the scores.
    """
    n, tags = nodes.shape
    target = np.concatenate([nodes.ravel(), edges.ravel()]) / scale
    paths = list(itertools.product(range(tags), repeat=n))
    vertices = np.array([chain_encoding(path, tags) for path in paths])
    system = np.vstack([(vertices - target).T, np.ones(len(paths))])
    wanted = np.append(np.zeros(target.size), 1.0)
    weights = nnls(system, wanted, maxiter=100 * len(paths))[0]
    mu = weights @ vertices / weights.sum()
    if ((vertices - mu) @ (target - mu)).max() > 1e-9:  # nnls may end early where points tie
        weights = lsq_linear(system, wanted, (0.0, np.inf), method="bvls", tol=1e-15).x
        mu = weights @ vertices / weights.sum()
    return mu, vertices, paths


def lazy_positions(chances):
    """Return what the lazy decoder gives each tag, from marginals as positions x tags."""
    return np.array([lazy(q, -np.log2(q), None, len(q), False) for q in chances])


def chain_encoding(path, tags):
    """Return unit vectors of the tags, and of all pairs of neighbours."""
    pairs = [tags * i + k for i, k in itertools.pairwise(path)]
    return np.concatenate([np.eye(tags)[list(path)].ravel(), np.eye(tags**2)[pairs].ravel()])


def sparsemap_round(nodes, pairs, label, scale):
    """Return loss, gradient in nodes and shared pairs, and the risk of nearest-vertex decoding."""
    n, tags = nodes.shape
    edges = np.tile(pairs, (n - 1, 1, 1))
    mu, vertices, _ = nearest_marginals(nodes, edges, scale)
    theta, truth = np.concatenate([nodes.ravel(), edges.ravel()]), chain_encoding(label, tags)
    loss = theta @ mu - scale / 2 * mu @ mu + scale / 2 * truth @ truth - theta @ truth
    slope = mu - truth
    distances = np.linalg.norm(vertices - mu, axis=1)
    nearest = vertices[np.argmin(distances)]
    q = min(1.0, 2.0 * distances.min() / math.sqrt(2.0))
    mean = (1.0 - q) * nearest + q * mu
    risk = 1.0 - mean[: n * tags] @ truth[: n * tags] / n
    shared = slope[n * tags :].reshape(n - 1, tags * tags).sum(axis=0)
    return loss, np.concatenate([slope[: n * tags], shared]), risk


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


def settled(values):
    """Location, scale, how many values told them, and whether most of them are equal."""
    ordered = np.sort(np.array(values))
    n = len(ordered)
    median = np.median(ordered)
    away = np.abs(ordered - median)
    usual = 1.4826 * np.median(away)
    if usual == 0.0:
        others = away[away > 0.0]
        if not len(others):
            return median, 0.0, n, True
        share = math.sqrt(len(others) / n)
        return median, np.median(others) * max(share, 0.5), len(others), True
    square = min(np.mean(away**2), 9.0 * usual**2)
    for _ in range(32):
        clipped = np.mean(np.minimum(away**2, 9.0 * square))
        done = clipped > 0.99 * square
        square = min(square, clipped)
        if done:
            break
    scale = min(math.sqrt(square), usual if n < 9 else np.inf)
    return ordered[away <= 3.0 * scale].mean(), scale, n, False


class Column:
    """One feature, clipped at 3 deviations, by what was known before each cell."""

    def __init__(self):
        self.rows, self.far, self.kept, self.block = 0, 0, {}, []
        self.settle_at(0.0, 0.0, 0, True)

    def settle_at(self, center, scale, count, equal):
        self.center, self.count, self.equal = center, count, equal
        self.inverse = 1.0 / scale if scale > 0.0 else None
        self.often, self.around, self.spread = 0.0, 0.0, 1.0
        self.wide, self.limit = 0.05, math.inf
        self.show()

    def show(self):
        self.shown = self.center
        if not self.equal and self.inverse is not None:
            sure = self.count * (self.center * self.inverse) ** 2
            self.shown = self.center * (1.0 - 4.0 / sure) if sure > 4.0 else 0.0

    def next(self, x):
        """What the cell becomes if it comes next."""
        t, away = self.rows, self.away(x)
        if t >= 64 and abs(away) > self.limit:
            return 0.0
        if t < 64:
            z = np.clip(away, -1e6, 1e6)
            away = z * math.sqrt(t / (t + 1)) / math.sqrt(1 + z * z / (t + 1))
        return float(np.clip(away, -3, 3)) if t else 0.0

    def away(self, x):
        return (x - self.shown) * (self.inverse if self.inverse is not None else 1e150)

    def scale(self, x):
        made, away = self.next(x), self.away(x)
        t, self.rows = self.rows, self.rows + 1
        if t < 64:
            self.kept[t] = x
            if t + 1 in (1, 2, 3, 4, 6, 9, 13, 19, 28, 42, 64):
                self.settle_at(*settled([self.kept[i] for i in range(t + 1)]))
            return made
        z, lost = float(np.clip(away, -3, 3)), abs(away) > 20.0
        one = (0.0, 1.0, True, True, True) if lost else (z, z * z, z != away, away != 0.0, False)
        self.block.append(one)
        if self.inverse is None and x != self.shown:
            self.inverse, self.count = 2.0 / abs(x - self.shown), 1
            self.block = [(0.0, 0.0, False, False, False)] * len(self.block)
        elif lost:
            self.far += 1
        if t % 2 == 0:
            self.kept[(t // 2) % 64] = x
        if len(self.block) >= min(64, 0.01 * (t + 1)):
            self.learn()
            if self.inverse is not None and self.changed():
                self.settle_again(t // 2)
        return made

    def learn(self):
        size = len(self.block)
        sums = np.sum(np.array(self.block, dtype=float), axis=0)
        cells = sums[3] if self.equal else size
        mean, square = sums[0] / size, sums[1] / max(cells, 1) / (4.0 if self.equal else 1.0)
        w = cells / (self.count + max(cells, 1))
        rows = self.count + cells
        recent, quick = size / 128, size / 128
        if self.equal:
            recent, quick = cells / (min(rows, 64) + cells), cells / (min(rows, 16) + cells)
        self.wide += (sums[2] - sums[4] - self.wide * (cells - sums[4])) / (rows + (cells == 0))
        self.count = min(self.count + cells, 4000)
        if self.inverse is not None:
            moved = 0.0 if self.equal else w * mean
            if not self.equal:
                self.center += w * (self.shown - self.center) + moved / self.inverse
            self.inverse /= math.sqrt(max(1 - w + w * square - moved**2, 1e-4))
            self.show()
        doubted = 0.0 if self.equal else sums[4] / 2
        self.often += recent * ((sums[2] - doubted) / max(cells, 1) - self.often)
        light = self.often < (0.3 if self.equal else 0.15) and self.wide < 0.04
        self.limit = 20.0 / (1.0 - self.wide / 0.04) ** 3 if light else math.inf
        power = self.spread + (0.0 if self.equal else self.around**2)
        self.around += size / 128 * ((sums[3] / size if self.equal else mean) - self.around)
        level = 0.0 if self.equal else self.around**2
        self.spread = power + quick * (square - power) - level
        self.block = []

    def changed(self):
        if self.equal:
            return self.often > 0.6 or self.spread < 0.2 or self.around > 0.6
        return self.often > 0.3 or self.spread < 0.1

    def settle_again(self, last):
        cells = [self.kept[(last - i) % 64] for i in range(64)]
        if not self.equal and self.often > 0.3:
            center, scale, told, equal = settled(cells[:16])
            if self.count < 2000 or scale == 0.0:
                scale = max(scale, 1.0 / self.inverse, abs(center - self.center) / 2)
                center, equal = (center + self.center) / 2, False
            self.settle_at(center, scale, told, equal)
            return
        center, scale, told, equal = settled(cells)
        smaller = 3.0 * scale * self.inverse < 1.0
        if scale > 0.0 and (smaller or (self.equal and (not equal or self.often > 0.6))):
            self.far += bool(self.equal and 20.0 * scale * self.inverse < 1.0)
            self.settle_at(center, scale, told, equal)
        else:
            self.often, self.spread = 0.0, 1.0
            if self.equal:
                self.spread, self.around = 1.0 + self.around**2, 0.0


def scaled_column(cells):
    """All values of one feature, and how many were far outside."""
    column = Column()
    return np.array([column.scale(x) for x in cells]), column.far


def scaled_sparse(rows, constant):
    """Entries over the usual size of their feature's entries, row by row."""
    made, norms = [], []
    about = [{"count": 0, "square": 0.0, "streak": 0} for _ in rows.T]
    for cells in rows:
        row = np.zeros(len(cells))
        for j in np.flatnonzero(cells):
            known, value = about[j], cells[j]
            n, square = known["count"], known["square"]
            size = abs(value) / math.sqrt(square) if n else 1.0
            z = min(size, 1e6) * math.sqrt((n + 1) / (n + min(size, 1e6) ** 2)) if n < 64 else size
            row[j] = math.copysign(min(z, 3.0) if n else 1.0, value)
            streak = known["streak"]
            kind = 1 if size > 3.0 else -1 if size < 0.1 else 0
            streak = streak + kind if kind * streak > 0 else kind
            if n == 0 or abs(streak) >= (3 if n < 8 else 40):
                known.update(count=1, square=value**2, streak=0)
            else:
                grown = square + square * (min(size, 3.0) ** 2 - 1) / (n + 1)
                known.update(count=min(n + 1, 10_000), square=grown, streak=streak)
        norms.append(row @ row)
        usual = np.mean(norms)
        row /= np.sqrt(max(row @ row, usual)) if usual > 0 else 1.0
        made.append(np.r_[row, 1.0 / np.sqrt(max(usual, 1.0))] if constant else row)
    return np.array(made)


def uniforms(seed, rounds, branch=0):
    """Return the random numbers of the first rounds, one after the other."""
    words = np.random.SeedSequence(seed, spawn_key=(branch,)).generate_state(2, np.uint64)
    key = int(words[0]) * 2**64 + int(words[1])
    generator = np.random.Generator(np.random.Philox(key=key))
    return np.array([generator.random() for _ in range(rounds)])


def beliefs(logs, shares):
    """Return weights of members by fixed share on logarithmic losses, mixed over some shares."""
    members = len(logs[0])
    weights = [[1 / members] * members for _ in shares]
    chances = [1 / len(shares)] * len(shares)
    for row in logs:
        bets = [math.exp(min(row) - loss) for loss in row]
        given = [sum(w * b for w, b in zip(own, bets, strict=True)) for own in weights]
        chances = [c * g for c, g in zip(chances, given, strict=True)]
        chances = [c / sum(chances) for c in chances]
        weights = [
            [(1 - a) * w * b / g + a / members for w, b in zip(own, bets, strict=True)]
            for own, g, a in zip(weights, given, shares, strict=True)
        ]
    return [
        sum(c * own[j] for c, own in zip(chances, weights, strict=True)) for j in range(members)
    ]


class Champion:
    """The mean of members' calibrated probabilities, by weights that follow mistakes.

    Written from the formulas: temperatures, fixed share, and a set of weights for every rate and
    share, of which AdaHedge chooses by the losses of what each set would have predicted.
    """

    def __init__(self, members, labels, rates, shares, cost=math.inf):
        self.labels, self.cost = labels, cost
        self.temperatures = [2.0**i for i in range(-5, 2)]
        self.settings = [(rate, share) for rate in rates for share in shares]
        self.weights = [np.full(members, 1 / members) for _ in self.settings]
        self.of_members = [np.full(7, 1 / 7) for _ in range(members)]
        self.own = np.full(7, 1 / 7)
        self.scale, self.gap, self.paid = 0.0, 1.0, np.zeros(len(self.settings))

    def chances(self):
        rate = math.log(len(self.paid)) / self.gap
        made = np.exp(-rate * (self.paid - self.paid.min()))
        return made / made.sum()

    def tempered(self, scores):
        made = [np.exp(tau * (scores - scores.max())) for tau in self.temperatures]
        return np.array([own / own.sum() for own in made])

    def look(self, scores):
        """Return weights, probabilities, the prediction, and that of every set."""
        sets = self.each(scores)
        mean = self.chances() @ np.array(sets)
        made = self.own @ self.tempered(np.log(np.maximum(mean, 1e-290)))
        weights = self.chances() @ np.array(self.weights)
        return weights, made, self.best(mean, made), [self.best(own, own) for own in sets]

    def best(self, order, chances):
        top = int(np.argmax(order))
        return -1 if 1 - chances[top] > self.cost else top

    def loss(self, prediction, label):
        return self.cost if prediction < 0 else float(prediction != label)

    def learn(self, scores, losses, label, weight=1.0, then=None):
        """Learn from a label; ``then`` are the sets' predictions when the round was asked for."""
        if weight == 0.0:
            return
        mean = np.log(np.maximum(self.chances() @ np.array(self.each(scores)), 1e-290))
        if weight > self.scale:
            self.scale = 2.0 ** math.ceil(math.log2(weight))
            self.gap, self.paid = 1.0, np.zeros(len(self.paid))
        weight /= self.scale
        sets = self.look(scores)[3] if then is None else then
        for v, own in zip([*self.of_members, self.own], [*scores, mean], strict=True):
            v *= np.maximum(self.tempered(own)[:, label], 1e-290) ** weight
            v[:] = 0.999 * v / v.sum() + 0.001 / 7
        paid = weight * np.array([self.loss(own, label) for own in sets])
        if (paid != paid[0]).any():
            rate, chances = math.log(len(paid)) / self.gap, self.chances()
            mixed = -math.log(chances @ np.exp(-rate * paid)) / rate
            self.gap += max(0.0, chances @ paid - mixed)
            self.paid = self.paid + paid
        for (rate, share), own in zip(self.settings, self.weights, strict=True):
            own *= np.exp(-rate * weight * np.asarray(losses))
            own[:] = (1 - share) * own / own.sum() + share / len(own)

    def each(self, scores):
        theirs = [v @ self.tempered(own) for v, own in zip(self.of_members, scores, strict=True)]
        return [weights @ np.array(theirs) for weights in self.weights]


class Guard:
    """A book of mixed probabilities, and the account between it and a champion, from the formulas.

    ``kinds`` are 0 for members without probabilities, 1 for those with some, 2 for sure ones.
    """

    def __init__(self, kinds, budget, shares, ratio=0.5, cost=math.inf, least=0.0, heaviest=1.0):
        self.kinds, self.budget, self.ratio = np.array(kinds), budget, ratio
        self.cost, self.least, self.heaviest = cost, least, heaviest
        self.A = self.reserved = self.book = 0.0
        sure, some = self.kinds == 2, self.kinds > 0
        self.shares = shares
        self.weights = [sure / sure.sum(), *[some / some.sum() for _ in shares[1:]]]
        self.sets = np.array([0.5, *[0.5 / (len(shares) - 1)] * (len(shares) - 1)])

    def probabilities(self, scores):
        made = np.exp(scores - scores.max(axis=1, keepdims=True))
        return made / made.sum(axis=1, keepdims=True)

    def ask(self, scores, champion, reserve=True):
        """Return what is predicted (its chances), e and b of all labels, and the reserve.

        Reserves are for a weight of 1.
        """
        p = self.sets @ np.array(self.weights) @ self.probabilities(scores)
        b = np.minimum(1.0, -self.ratio * np.log2(p))
        e = self.losses_of(champion, len(p))
        excess = max(0.0, float((e - b).max()))
        most = math.ceil(excess * 2**24) / 2**24
        if self.A + self.heaviest * (self.reserved + most) <= self.budget * self.heaviest:
            self.reserved += most if reserve else 0.0
            return None, e, b, most
        top = int(p.argmax())
        if self.cost < math.inf:
            played = top if p[top] >= self.least else -1
            return played, self.losses_of(played, len(p)), b, 0.0
        chances = np.maximum(1.0 + 0.5 * np.log2(p), 0.0)
        chances[top] = 0.0
        chances[top] = 1.0 - chances.sum()
        return chances, 1.0 - chances, b, 0.0

    def losses_of(self, label, labels):
        return np.full(labels, self.cost) if label < 0 else 1.0 - np.eye(labels)[label]

    def tell(self, scores, label, e, b, most=0.0, weight=1.0):
        """Learn from a label at the scores of now; ``most`` was reserved."""
        self.reserved -= most
        if weight == 0.0:
            return
        while self.heaviest < weight:
            self.heaviest *= 2.0
        self.A = max(0.0, self.A + weight * (e[label] - b[label]))
        self.book += weight * b[label]
        q = np.maximum(self.probabilities(scores)[:, label], 1e-300) ** (weight / self.heaviest)
        given = np.array([own @ q for own in self.weights])
        self.sets = self.sets * given / (self.sets * given).sum()
        able = self.kinds > 0
        self.weights = [
            (1.0 - s) * own * q / g + s * able / able.sum()
            for s, own, g in zip(self.shares, self.weights, given, strict=True)
        ]


class OneBook:
    """The account between a committee and what one learner may pay, from the formulas."""

    def __init__(self, budget, largest, heaviest=1.0):
        self.budget, self.largest, self.heaviest = budget, largest, heaviest
        self.A = self.book = 0.0

    def acts(self):
        return self.A + self.heaviest * self.largest > self.budget * self.heaviest

    def tell(self, champion, own, b, weight=1.0):
        """Return e and b of a label that comes at once, and learn from it."""
        b = min(self.largest, max(b, own))
        e = own if self.acts() else champion
        if weight > 0.0:
            while self.heaviest < weight:
                self.heaviest *= 2.0
            self.A = max(0.0, self.A + weight * (e - b))
            self.book += weight * b
        return e, b


def knots(cells, most, kept=256):
    """Return the knots of a feature after these cells: values of what was kept at the last move."""
    seen = len(cells)
    if seen < 4:
        return np.zeros(0)
    last = 2 ** (seen.bit_length() - 1)
    stride = max(1, last // 2 // kept)
    pool = cells[:last] if last <= kept else cells[last // 2 : last : stride]
    values, counts = np.unique(pool, return_counts=True)
    if len(values) <= most:
        return values
    heavy = values[counts * most > len(pool)]
    rest = np.sort(pool[~np.isin(pool, heavy)])
    others = most - len(heavy)
    places = [(2 * i + 1) * len(rest) // (2 * others) for i in range(others)]
    middles = rest[places] if len(rest) else []
    return np.unique(np.r_[heavy, middles])


def each_by_those_before(rows, picked, of_cell):
    """Map cells of some rows, each by those of its feature in rows before."""
    return np.array([[of_cell(x, rows[:t, j]) for j, x in enumerate(rows[t])] for t in picked])


def inverse_counts(rounds, gain, power):
    """Return rounds of dense rows, each cell by how many rows of rounds before were not 0 there."""
    made = []
    for t, rows in enumerate(rounds):
        before = [row for other in rounds[:t] for row in other]
        counts = [sum(row[j] != 0.0 for row in before) for j in range(rows.shape[1])]
        made.append(gain * rows / (1.0 + np.array(counts)) ** power)
    return made


def hats(rows, most, picked):
    """Return hats: every knot's function is 1 there, 0 at all others, and linear in between."""

    def of_cell(x, before):
        own, made = knots(before, most), np.zeros(most)
        for i in range(len(own)):
            made[i] = np.interp(x, own, np.eye(len(own))[i])
        return made

    made = each_by_those_before(rows, picked, of_cell)
    return made.reshape(len(picked), -1) / math.sqrt(rows.shape[1])


def ranks(rows, most, picked):
    """Return ranks between knots, centred, with variance 1 if they are uniform."""

    def of_cell(x, before):
        own = knots(before, most)
        return np.interp(x, own, np.linspace(0, 1, len(own))) if len(own) > 1 else 0.5

    return (each_by_those_before(rows, picked, of_cell) - 0.5) * math.sqrt(12 / rows.shape[1])


def nearest(x, before, most):
    """Return the number of the knot nearest to a cell, None where there are none."""
    own = knots(before, most)
    return int(np.argmin(np.abs(own - x))) if len(own) else None


def bins(rows, most, picked):
    """Return a column for every knot: that of the nearest one has the entry."""

    def of_cell(x, before):
        place = nearest(x, before, most)
        return np.zeros(most) if place is None else np.eye(most)[place]

    made = each_by_those_before(rows, picked, of_cell)
    return made.reshape(len(picked), -1) / math.sqrt(rows.shape[1])


def crosses(rows, most, picked, pairs=None):
    """Return a column for every pair of bins: outer products of both features' columns."""
    features = rows.shape[1]
    if pairs is None:
        pairs = [(i, j) for j in range(features) for i in range(features) if i < j]
    single = bins(rows, most, picked).reshape(len(picked), features, most) * math.sqrt(features)
    made = [np.einsum("ta,tb->tab", single[:, i], single[:, j]) for i, j in pairs]
    return np.hstack([part.reshape(len(picked), -1) for part in made]) / math.sqrt(len(pairs))


def hashing(rows, columns, coefficients, categories):
    """Hash the cells of rows, by dictionaries and whole numbers of any size."""
    prime, out = 2**31 - 1, np.zeros((len(rows), columns))
    place, sign, pair = np.array(coefficients).astype(int).reshape(3, 4).tolist()
    for t, row in enumerate(rows.tolist()):
        found, length = {}, 0.0
        for j, v in enumerate(row):
            if v == 0.0 or (type(categories) is tuple and j not in categories):
                continue
            key, worth = j, v
            if categories is not False:
                mantissa, exponent = math.frexp(v)
                high, low = divmod(abs(int(math.ldexp(mantissa, 53))), 2**26)
                bits = (j, high, low, 2 * (exponent + 1100) + (v < 0))
                key, worth = sum(a * b for a, b in zip(pair, bits, strict=True)) % prime, 1.0
            powers = [key**3, key**2, key, 1]
            at = sum(a * b for a, b in zip(place, powers, strict=True)) % prime % columns
            odd = sum(a * b for a, b in zip(sign, powers, strict=True)) % prime % 2
            found.setdefault(at, []).append(worth if odd else -worth)
            length = math.hypot(length, worth)
        for at, several in found.items():
            out[t, at] = math.fsum(several)
        out[t] /= max(length, math.hypot(*out[t])) or 1.0
    return out


def leaves(rows, splits, picked, most=32):
    """Return the columns of the leaves that rows fall into, by halving the leaves at every node."""
    features = rows.shape[1]
    z = ranks(rows, most, picked) / math.sqrt(12 / features) + 0.5
    made = []
    for row in z:
        columns = []
        for i, nodes in enumerate(splits):
            leaf, node = range(len(nodes) + 1), 0
            while len(leaf) > 1:
                share, level = nodes[node]
                above = row[int(share * features)] > level + 1e-12
                half = len(leaf) // 2
                leaf, node = (leaf[half:], 2 * node + 2) if above else (leaf[:half], 2 * node + 1)
            columns.append(i * (len(nodes) + 1) + leaf[0])
        made.append(columns)
    return np.array(made)


def fourier(rows, phases, frequencies):
    """Return cosines of angles in turns."""
    turns = phases + rows @ frequencies
    return np.cos(2 * math.pi * turns) * math.sqrt(2 / len(phases))


def bin_numbers(Z, bins):
    """Return bins of mapped rows: equal parts between plus and minus the root of 3/d."""
    edges = np.linspace(-1.0, 1.0, bins + 1)[1:-1] * np.sqrt(3.0 / Z.shape[1])
    return np.searchsorted(edges - 1e-12, Z, side="left")


def ages(t, half_life):
    """Return what each of t rows counts when row t comes: half after a half-life."""
    return 0.5 ** (np.arange(t)[::-1] / half_life)


def naive_bayes(Z, y, classes, bins, half_life, smoothing, h=None):
    """Return the chances of naive Bayes before every round, by summing over all rows."""
    B, rounds = bin_numbers(Z, bins), len(y)
    made, h = np.empty((rounds, classes)), np.ones(rounds) if h is None else h
    for t in range(rounds):
        w = ages(t, half_life) * h[:t]
        for k in range(classes):
            own = w * (y[:t] == k)
            made[t, k] = own.sum() + smoothing
            for j in range(Z.shape[1]):
                same = own[B[:t, j] == B[t, j]].sum()
                made[t, k] *= (same + smoothing) / (own.sum() + smoothing * bins)
    return made / made.sum(axis=1, keepdims=True)


def tables(Z, y, classes, bins, coarse, half_life, patience, smoothing, h=None):
    """Return the chances of the best table before every round, by summing over all rows."""
    h = np.ones(len(y)) if h is None else h
    fine, rounds, features = bin_numbers(Z, bins), len(y), Z.shape[1]
    cells = [fine[:, j] for j in range(features)]
    if coarse is not None:
        C = bin_numbers(Z, coarse)
        pairs = [(i, j) for i in range(features) for j in range(features) if i < j]
        cells += [C[:, i] * coarse + C[:, j] for i, j in pairs]
    wrong, made = np.zeros(len(cells)), np.empty((rounds, classes))
    for t in range(rounds):
        w = ages(t, half_life) * h[:t]
        shares = np.array([(w * (y[:t] == k)).sum() + 1.0 / classes for k in range(classes)])
        chances = []
        for cell in cells:
            here = w * (cell[:t] == cell[t])
            counts = np.array([(here * (y[:t] == k)).sum() for k in range(classes)])
            own = counts + smoothing * shares / shares.sum()
            chances.append(own / own.sum())
        made[t] = chances[int(np.argmin(np.round(wrong, 9)))]
        missed = np.array([int(np.argmax(own)) != y[t] for own in chances])
        wrong = wrong * 0.5 ** (1.0 / patience) + h[t] * missed
    return made


def neighbours(Z, y, classes, k, window, weighted, h=None):
    """Return the chances that the nearest of the last rows give before every round."""
    made, h = np.empty((len(y), classes)), np.ones(len(y)) if h is None else h
    for t in range(len(y)):
        first = max(0, t - window)
        away = np.linalg.norm(Z[first:t] - Z[t], axis=1)
        near = np.argsort(away, kind="stable")[:k]
        votes = np.zeros(classes)
        for i in near:
            vote = 1.0 / np.sqrt(away[i] ** 2 + 1e-12) if weighted else 1.0
            votes[y[first + i]] += h[first + i] * vote
        share = votes / votes.sum() if len(near) else np.full(classes, 1.0 / classes)
        made[t] = (len(near) * share + 1.0 / classes) / (len(near) + 1.0)
    return made


def cuts_of(values, bins):
    """Return numbers between values that leave about equally many in every part."""
    ordered = np.sort(values)
    rises = [i for i in range(1, len(ordered)) if ordered[i] > ordered[i - 1]]
    if len(rises) >= bins:
        wanted, chosen = [b * len(ordered) // bins for b in range(1, bins)], []
        for place in wanted:
            later = [i for i in rises if i >= place]
            if place > (chosen[-1] if chosen else 0) and later:
                chosen.append(later[0])
        rises = chosen
    return [(ordered[i - 1] + ordered[i]) / 2.0 for i in rises]


def tree(X, y, w, classes, cuts, draw, nodes, least, tried):
    """Grow a tree, node by node in the order of their numbers; return a function of rows.

    The function returns the weights of the classes in the leaf of a row, which may be added to.
    """

    def weights(rows):
        return np.bincount(y[rows], weights=w[rows], minlength=classes)

    def spread(counts):
        return (counts**2).sum() / counts.sum()

    count, features = len(y), list(range(X.shape[1]))
    queue = [{"rows": np.flatnonzero(w > 0.0)}]
    for node in queue:
        rows = node["rows"]
        node["counts"] = total = weights(rows)
        pure = np.count_nonzero(total) <= 1
        if len(queue) + 2 > nodes or total.sum() < 2 * least or pure:
            continue
        best, looked = spread(total) * (1.0 + 1e-9), 0
        for j in range(len(features)):
            other = j + int(draw() * (len(features) - j))
            features[j], features[other] = features[other], features[j]
            if not cuts[features[j]]:
                continue
            looked += 1
            if looked > tried and "cut" in node:
                break
            for cut in cuts[features[j]]:
                low = rows[X[rows, features[j]] <= cut]
                left = weights(low)
                if min(left.sum(), (total - left).sum()) < least:
                    continue
                if spread(left) + spread(total - left) > best:
                    best = spread(left) + spread(total - left)
                    node["cut"] = features[j], cut
        if "cut" in node:
            feature, cut = node["cut"]
            above = X[rows, feature] > cut
            node["children"] = [{"rows": rows[~above]}, {"rows": rows[above]}]
            queue += node["children"]

    def leaf(x):
        node = queue[0]
        while "cut" in node:
            node = node["children"][int(x[node["cut"][0]] > node["cut"][1])]
        return node["counts"]

    assert count == len(w)
    return leaf


def forest(
    Z, y, classes, draws, trees, window, nodes, bins, least, subset, smoothing, restart, h=None
):  # fmt: skip
    """Return the mean chances of all trees before every round."""
    made, place = np.empty((len(y), classes)), [0]
    h = np.ones(len(y)) if h is None else h
    first, wait, mistakes, excess = 0, 8, [], 0.0

    def draw():
        place[0] += 1
        return draws[(place[0] - 1) % len(draws)]

    def times():
        return int(
            np.searchsorted([0.36787944, 0.73575888, 0.91969860, 0.98101184], draw(), "right")
        )

    def empty():
        counts = [np.zeros(classes) for _ in range(trees)]
        return [lambda x, own=own: own for own in counts]

    grown, tried = empty(), max(1, int(np.ceil(subset * Z.shape[1])))
    for t in range(len(y)):
        leaves = [leaf(Z[t]) for leaf in grown]
        chances = [(own + smoothing / classes) / (own.sum() + smoothing) for own in leaves]
        made[t] = np.mean(chances, axis=0)
        mean = (sum(mistakes) + 1) / (len(mistakes) + 2)
        mistakes.append(int(np.argmax(made[t])) != y[t])
        excess = max(0.0, excess + mistakes[-1] - mean - 0.25)
        if restart and excess > 5.0:
            first, wait, mistakes, excess, grown = t, 8, [], 0.0, empty()
            leaves = [leaf(Z[t]) for leaf in grown]
        for own in leaves:
            own[y[t]] += h[t]
        wait -= 1
        if wait == 0:
            seen = t + 1 - first
            # rows lie in the order of a ring: where the oldest was, the newest is
            ring = [max(i for i in range(first, t + 1) if (i - first) % window == p)
                    for p in range(min(seen, window))]  # fmt: skip
            wait = max(8, len(ring) // 2)
            X, labels = Z[ring], y[ring]
            cuts = [cuts_of(column, bins) for column in X.T]
            grown = []
            for i in range(trees):
                w = np.array([h[r] * (1.0 if i == 0 else times()) for r in ring])
                grown.append(tree(X, labels, w, classes, cuts, draw, nodes, least, tried))
    return made


def exploring(values, costs):
    """Return the chances of labels that need the least slack."""
    return explored(values, costs)[0]


def explored(values, costs):
    """Return the chances of labels that need the least slack, and that slack, by bisection."""
    lo, hi = -values.max() - 2.0, 10.0 + costs.sum()
    for _ in range(300):
        s = (lo + hi) / 2.0
        room = 1.0 - values - s
        root = np.sqrt(room**2 + 4.0 * costs)
        chances = np.where(
            room > 0.0, (room + root) / 2.0, 2.0 * costs / np.maximum(root - room, 1e-300)
        )
        lo, hi = (s, hi) if chances.sum() > 1.0 else (lo, s)
    return chances / chances.sum(), s


def bandit(Z, y, uniforms, classes, policies, rate, share, floor):
    """Play a mixture of policies that see only hits; return predictions, risks, slacks, shares."""
    V = [np.zeros((classes, Z.shape[1])) for _ in policies]
    w = np.full(len(policies), 1.0 / len(policies))
    made, risks, slacks = [], [], []
    for t, (x, label) in enumerate(zip(Z, y, strict=True)):
        own = []
        for W, (step, decaying, exploration, *_) in zip(V, policies, strict=True):
            eta = step / np.sqrt(t + 1.0) if decaying else step
            q = np.exp(W @ x - (W @ x).max())
            q /= q.sum()
            squares = np.array([((q - e) ** 2).sum() for e in np.eye(classes)]) / np.log(2.0) ** 2
            costs = eta / 2.0 * squares * (x @ x)
            own.append((eta, q, -np.log2(q), costs, exploring(-np.log2(q), exploration * costs)))
        p = sum(share * chances for share, (*_, chances) in zip(w, own, strict=True))
        chosen = min(int(np.searchsorted(np.cumsum(p), uniforms[t], "right")), classes - 1)
        made.append(chosen)
        risks.append(1.0 - p[label])
        slacks.append([
            max(1.0 - p[k] + costs[k] / p[k] - losses[k] for k in range(classes))
            for (_, _, losses, costs, _), policy in zip(own, policies, strict=True)
            if policy[3] == np.inf and policy[4] == 0.0
        ])  # fmt: skip
        hit = chosen == label
        if hit:
            w = w * np.exp(rate * np.array([c[chosen] for *_, c in own]) / max(p[chosen], floor))
            w = (1.0 - share) * w / w.sum() + share / len(w)
        for i, (eta, q, *_) in enumerate(own):
            _, _, _, clip, misses, radius = policies[i]
            e = np.eye(classes)[chosen]
            if hit:
                g = min(1.0 / p[chosen], clip) * (q - e)
            else:  # of -log(1 - q_chosen)
                g = misses * q[chosen] * (e - np.where(e > 0, 0.0, q) / (1.0 - q[chosen]))
            V[i] = V[i] - eta / np.log(2.0) * np.outer(g, x)
            V[i] *= min(1.0, radius / max(np.linalg.norm(V[i]), 1e-300))
    return np.array(made), np.array(risks), np.array(slacks), w


def late_bandit(Z, y, delays, draws, classes, policies, rate, share, floor):
    """Play a mixture of policies whose hits are told late, with given draws."""
    V = [np.zeros((classes, Z.shape[1])) for _ in policies]
    w, count = np.full(len(policies), 1.0 / len(policies)), len(y)
    chances, own, order = np.zeros((count, classes)), np.zeros((count, len(policies), classes)), []
    losses, squares, slacks = np.full((3, count, len(policies)), np.nan)

    def scored(W, policy, x):
        eta = policy[0] / np.sqrt(len(order) + 1.0) if policy[1] else policy[0]
        q = np.exp(W @ x - (W @ x).max())
        q /= q.sum()
        sizes = np.array([((q - e) ** 2).sum() for e in np.eye(classes)]) * (x @ x)
        return eta, q, -np.log2(q), sizes / np.log(2.0) ** 2

    for tick in range(count):
        for i, policy in enumerate(policies):
            eta, _, values, sizes = scored(V[i], policy, Z[tick])
            own[tick, i] = exploring(values, policy[2] * eta / 2.0 * sizes)
        chances[tick] = w @ own[tick]
        for t in range(tick + 1):
            if delays[t] < 0 or t + delays[t] != tick:
                continue
            p, chosen, hit = chances[t], draws[t], draws[t] == y[t]
            if hit:
                w = w * np.exp(rate * own[t, :, chosen] / max(p[chosen], floor))
                w = (1.0 - share) * w / w.sum() + share / len(w)
            for i, policy in enumerate(policies):
                _, _, _, clip, misses, radius = policy
                eta, q, values, sizes = scored(V[i], policy, Z[t])
                losses[t, i], squares[t, i] = values[y[t]], sizes[y[t]]
                slacks[t, i] = (1.0 - p + eta / 2.0 * sizes / p - values).max()
                e = np.eye(classes)[chosen]
                if hit:
                    g = min(1.0 / p[chosen], clip) * (q - e)
                else:
                    g = misses * q[chosen] * (e - np.where(e > 0, 0.0, q) / (1.0 - q[chosen]))
                V[i] = V[i] - eta / np.log(2.0) * np.outer(g, Z[t])
                V[i] *= min(1.0, radius / max(np.linalg.norm(V[i]), 1e-300))
            order.append(t)
    made = {"chances": chances, "losses": losses, "squares": squares, "slacks": slacks}
    return made | {"shares": w, "order": order}


def tag_chance(theta, half):
    """Return the chance of showing a tag with the least slack, on a grid that is refined."""
    q = 1.0 / (1.0 + np.exp(-theta))
    L1, L0 = np.log2(1.0 + np.exp(-theta)), np.log2(1.0 + np.exp(theta))
    c1, c0 = half * ((1.0 - q) / np.log(2.0)) ** 2, half * (q / np.log(2.0)) ** 2
    low, high = 1e-12, 1.0
    for _ in range(12):
        grid = np.linspace(low, high, 2001)
        worst = np.maximum(1.0 - grid + c1 / grid - L1, grid + c0 / grid - L0)
        best = int(np.argmin(worst))
        low, high = grid[max(best - 1, 0)], grid[min(best + 1, 2000)]
    return grid[best], worst[best]


def tags_from_clicks(Z, y, shown, policies, radius_of, rate, share, floor):
    """Play policies that learn from shown tags; return risks, slacks, losses, squares, chances."""
    d = y.shape[1]
    V = [np.zeros((d, Z.shape[1])) for _ in policies]
    w = np.full(len(policies), 1.0 / len(policies))
    risks, slacks, losses, squares, chances = [], [], [], [], []
    for t, (x, label) in enumerate(zip(Z, y, strict=True)):
        etas = [p[0] / np.sqrt(t + 1.0) if p[1] else p[0] for p in policies]
        own = np.array([
            [tag_chance(W[j] @ x, eta * (x @ x) * policy[2] / 2.0)[0] for j in range(d)]
            for W, eta, policy in zip(V, etas, policies, strict=True)
        ])  # fmt: skip
        p = np.minimum(1.0, w @ own)
        risks.append(np.where(label, 1.0 - p, p).mean())
        chances.append(p)
        row = []
        for W, eta in zip(V, etas, strict=True):
            theta = W @ x
            q, half = 1.0 / (1.0 + np.exp(-theta)), eta * (x @ x) / 2.0 / np.log(2.0) ** 2
            one = 1.0 - p + half * (1.0 - q) ** 2 / p - np.log2(1.0 + np.exp(-theta))
            none = p + half * q**2 / p - np.log2(1.0 + np.exp(theta))
            row.append(np.maximum(one, none).mean())
        slacks.append(row)
        theta = np.array([W @ x for W in V])
        q = 1.0 / (1.0 + np.exp(-theta))
        losses.append(np.log2(1.0 + np.exp(np.where(label, -theta, theta))))
        squares.append(((q - label) / np.log(2.0)) ** 2 * (x @ x))
        s = shown[t] > 0
        paid = (np.where(label, 1.0 - own, own) * s / np.maximum(p, floor)).mean(axis=1)
        w = w * np.exp(-rate * paid)
        w = (1.0 - share) * w / w.sum() + share / len(w)
        for i, policy in enumerate(policies):
            h = np.minimum(1.0 / p, policy[3]) * s
            V[i] = V[i] - etas[i] / np.log(2.0) * np.outer(h * (q[i] - label), x)
            V[i] *= min(1.0, radius_of(policy) / max(np.linalg.norm(V[i]), 1e-300))
    return tuple(np.array(made) for made in (risks, slacks, losses, squares, chances)), w


def tags_bound(Z, y, shown, U, diameter, etas, slacks, losses, squares, chances):
    """Return what chance adds to the bound of a policy, and the bound without it."""
    d = y.shape[1]
    D, F, P, noise, last = diameter * np.sqrt(d), 0.0, 0.0, 0.0, None
    for t, (x, label) in enumerate(zip(Z, y, strict=True)):
        V = U[t] * min(1.0, D / 2.0 / max(np.linalg.norm(U[t]), 1e-300))
        P += 0.0 if last is None else np.linalg.norm(V - last)
        last = V
        for j in range(d):
            theirs = np.log2(1.0 + np.exp((1 - 2 * label[j]) * (V[j] @ x)))
            h = (shown[t, j] > 0) / chances[t, j]
            F += theirs / d
            half = etas[t] / 2.0 * squares[t, j] / chances[t, j]
            noise += (1.0 - h) * (losses[t, j] - theirs - half) / d
    return noise, F + D * (D / 2.0 + P) / (d * etas[-1]) + slacks.sum()


def adaptive_sets(chances, labels, coverage, account=19.5, memory=1000.0):
    """Sets of labels by an account of misses, with all of the past at hand."""
    miss, made, past, told = 1.0 - coverage, [], [], 0.0
    for row, label in zip(chances, labels, strict=True):
        places = [
            min(max(math.floor(10.0 * (math.log1p(-p) - math.log(p))), -200), 199)
            if 0.0 < p < 1.0
            else (199 if p == 0.0 else -200)
            for p in row.tolist()
        ]
        if told >= 0.0:
            share = miss * (1.0 - (told / account) ** 2)
        else:
            share = miss + (1.0 - miss) * (told / (account - miss)) ** 2
        if share <= 0.0 or not past:
            inside = [True] * len(row)
        else:
            ages = range(len(past) - 1, -1, -1)
            weighted = sorted(zip(past, ((1.0 - 1.0 / memory) ** age for age in ages), strict=True))
            total, limit, seen = sum(weight for _, weight in weighted), -300, 0.0
            for place, weight in weighted:
                if share >= 1.0:
                    break
                seen += weight
                limit = place
                if seen >= (1.0 - share) * total:
                    break
            inside = [place <= limit for place in places]
        inside[int(np.argmax(row))] = True
        made.append(inside)
        told = max(-account, told + (not inside[label]) - miss)
        past.append(places[label])
    return np.array(made)


class LateShares:
    """Fixed shares of a grid under AdaHedge, where sets pay what they would have at predictions.

    ``paid`` is what predictions' weights have paid. ``mean``, ``worst`` and ``more`` are the bills:
    how much more that is than the sets' mean, and how much more sets paid than they would have when
    labels came, in the worst set of every round and in each.
    """

    def __init__(self, members, grid):
        self.grid, sets = grid, len(grid)
        self.own, self.totals, self.gap = (
            np.full((sets, members), 1.0 / members),
            np.zeros(sets),
            1.0,
        )
        self.scale = self.paid = self.mean = self.worst = 0.0
        self.more = np.zeros(sets)

    @property
    def chances(self):
        made = np.exp(-np.log(len(self.grid)) / self.gap * (self.totals - self.totals.min()))
        return made / made.sum()

    @property
    def now(self):
        return self.chances @ self.own

    def ask(self):
        return self.own.copy(), self.now

    def tell(self, losses, asked, weight=1.0):
        """Learn from a round of some weight, by which its losses are multiplied already."""
        if weight == 0.0:
            return
        (own, weights), jump = asked, 0.0
        if weight > self.scale:
            before = self.now
            self.scale, self.gap = 2.0 ** np.ceil(np.log2(weight)), 1.0
            self.totals = np.zeros(len(self.grid))
            jump = (before - self.now) @ losses  # what it costs that all sets count alike again
        paid, would = own @ losses, self.own @ losses
        self.paid += weights @ losses
        self.mean += weights @ losses - self.chances @ paid - jump
        self.worst += max(0.0, (paid - would).max())
        self.more += paid - would
        losses = losses / self.scale
        if np.ptp(losses) > 0.0:
            paid, rate = own @ losses, np.log(len(self.grid)) / self.gap
            mix = -np.log(self.chances @ np.exp(-rate * paid)) / rate
            mean = self.chances @ paid
            self.gap, self.totals = self.gap + max(0.0, mean - mix), self.totals + paid
            self.own = self.own * np.exp(-self.grid[:, :1] * losses)
            self.own /= self.own.sum(axis=1, keepdims=True)
        share = self.grid[:, 1:]
        self.own = (1.0 - share) * self.own + share / self.own.shape[1]


def best_of_labels_so_far(labels):
    """Return the most frequent of the labels before each; the first to lead stays on ties."""
    made, leader = [], 0
    for t, label in enumerate(labels):
        made.append(leader)
        before = labels[: t + 1]
        if before.count(label) > before.count(leader):
            leader = label
    return np.array(made)
