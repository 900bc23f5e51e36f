"""Speed of convolutional losses: rankings of many documents, many classes."""

from __future__ import annotations

import numpy as np
from scipy.optimize import isotonic_regression, linear_sum_assignment

import driftline as dl
from benchmarks.timing import best_times
from driftline.polytopes import ActiveSet, minimize

GENERATOR = np.random.default_rng(0)
FEATURES = 50


class OverBirkhoff:
    """Half the squared distance of discounts, ordered by a doubly stochastic matrix, to scores."""

    def __init__(self, theta, weights):
        self.theta, self.weights = theta, weights

    def descent(self, point):
        """Return minus the gradient."""
        d = self.theta.size
        return np.outer(self.theta - point.reshape(d, d) @ self.weights, self.weights).ravel()

    def step(self, point, direction, limit):
        """Return the exact step."""
        d = self.theta.size
        move = direction.reshape(d, d) @ self.weights
        rest = self.theta - point.reshape(d, d) @ self.weights
        return min(limit, float(rest @ move) / float(move @ move))


def matching(direction):
    """Return the best permutation matrix, flattened."""
    d = int(round(direction.size**0.5))
    vertex = np.zeros((d, d))
    vertex[linear_sum_assignment(direction.reshape(d, d), maximize=True)] = 1.0
    return vertex.ravel()


def rankings():
    """NDCG rounds of more and more documents, beside Frank-Wolfe over matchings and isotonic
    regression alone.
    """  # noqa: D205
    loss = dl.losses.ConvolutionalFenchelYoung(dl.tasks.NDCG(4), dl.regularizers.Quadratic(0.3))
    before = None
    for d, rounds in ((10, 2000), (50, 1000), (100, 500), (1000, 50), (10_000, 8)):
        inputs = GENERATOR.standard_normal((rounds * d, FEATURES)) / np.sqrt(FEATURES)
        starts = np.arange(rounds + 1) * d
        labels = list(GENERATOR.integers(0, 5, (rounds, d)))
        learner = dl.OGD(loss)
        scores = learner.run((inputs, starts), labels) and inputs @ learner.weights[0]
        weights = loss.task.discounts(d)
        contenders = {
            "ours": lambda i=inputs, s=starts, y=labels, m=learner: m.run((i, s), y),
            "scipy": lambda t=scores, d=d, w=weights: [
                isotonic_regression(np.sort(x)[::-1] - w, increasing=False)
                for x in t.reshape(-1, d)
            ],
        }
        times = best_times(contenders, 3)
        each = 1e6 * times["ours"] / rounds
        what = f"ndcg, {d} documents: microseconds a round"
        yield "ndcg", what, each, "", rounds / times["ours"]
        what = f"ndcg, {d} documents: round / (sort + isotonic regression alone)"
        yield "ndcg", what, times["ours"] / times["scipy"], "", None
        if before is not None:
            growth = (each / before[1]) / ((d * np.log(d)) / (before[0] * np.log(before[0])))
            what = f"ndcg, {before[0]} to {d} documents: growth / growth of d log d"
            yield "ndcg", what, growth, "<= 2", None
        before = d, each
        if d <= 50:
            few = scores.reshape(-1, d)[:3]
            slow = best_times({"slow": lambda t=few, w=weights: _over_matchings(t, w)}, 1)["slow"]
            ratio = slow / len(few) * rounds / times["ours"]
            what = f"ndcg, {d} documents: Frank-Wolfe over matchings (gap 1e-6) / our whole round"
            yield "ndcg", what, ratio, ">= 100" if d == 50 else "", None


def _over_matchings(scores, weights):
    for theta in scores:
        start = ActiveSet(matching(np.outer(theta, weights).ravel()))
        minimize(OverBirkhoff(theta, weights), matching, start, theta.size**2 + 1, 1e-6, 2000)


def many_classes():
    """Time the convolutional loss of classes beside the logistic loss, both alone."""
    for classes in (10, 1000, 100_000):
        task = dl.tasks.Multiclass(classes)
        losses = {
            "logistic": dl.losses.Logistic(task),
            "entropy": dl.losses.ConvolutionalFenchelYoung(task, dl.regularizers.Entropy(1.0)),
            "quadratic": dl.losses.ConvolutionalFenchelYoung(task, dl.regularizers.Quadratic(1.0)),
        }
        thetas = GENERATOR.standard_normal((max(20, 20_000 // classes), classes))
        target = task.encode(0)
        times = best_times(
            {name: _player(loss, thetas, target) for name, loss in losses.items()}, 5
        )
        for name in ("entropy", "quadratic"):
            what = f"{classes} classes, convolutional with {name}: time / logistic loss"
            yield (
                "classes",
                what,
                times[name] / times["logistic"],
                "<= 3",
                len(thetas) / times[name],
            )


def _player(loss, thetas, target):
    kernel, size = loss.kernels.loss.compiled, target.size
    params, work = np.array(loss.params(size)), np.empty(loss.workspace(size))
    grad = np.empty(size)

    def play():
        for theta in thetas:
            kernel(theta, target, params, work, grad)

    return play
