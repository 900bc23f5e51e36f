"""Speed of what structured tasks need: projections, many tags, matchings."""

from __future__ import annotations

import math

import numpy as np
from scipy import sparse
from scipy.optimize import isotonic_regression

import driftline as dl
from benchmarks.references import bare_forward_backward
from benchmarks.timing import best_times
from driftline.polytopes import Birkhoff, CachedOracle, Chain, Permutahedron, nearest_point
from driftline.polytopes.chain import forward_backward

GENERATOR = np.random.default_rng(0)


def permutahedron():
    """Project onto the permutahedron, beside an argsort and SciPy's isotonic regression."""
    for d in (10, 100, 1000, 2000):
        weights = np.arange(d, 0, -1.0)
        hull = Permutahedron(tuple(weights))
        points = GENERATOR.standard_normal((200, d)) * d / 3
        params, scratch, out = np.array(hull.params), np.empty(hull.scratch), np.empty(d)
        kernel = hull.project_kernel.compiled

        def ours(points=points, params=params, scratch=scratch, out=out, kernel=kernel):
            for point in points:
                kernel(point, params, scratch, out)

        def scipy(points=points, weights=weights):
            for point in points:
                order = np.argsort(-point)
                isotonic_regression(point[order] - weights, increasing=False)

        times = best_times({"ours": ours, "scipy": scipy})
        rate = len(points) / times["ours"]
        what = f"permutahedron, d = {d}: time / (argsort + isotonic)"
        yield "polytope", what, times["ours"] / times["scipy"], "<= 2", rate


def chains():
    """Forward and backward sums over 14 positions and 26 tags, beside a bare loop."""
    hull = Chain(14, 26)
    thetas = GENERATOR.standard_normal((50, hull.dim))
    params, scratch, out = np.array(hull.params), np.empty(hull.scratch), np.empty(hull.dim)
    kernel = forward_backward.compiled
    ahead, behind, nodes_out = np.empty((3, 14, 26))
    edges_out = np.empty((13, 26, 26))

    def ours():
        for theta in thetas:
            kernel(theta, params, scratch, out)

    def bare():
        for theta in thetas:
            bare_forward_backward(*hull.split(theta), ahead, behind, nodes_out, edges_out)

    times = best_times({"ours": ours, "bare": bare})
    rate = len(thetas) / times["ours"]
    what = "forward-backward, 14 x 26: time / bare loop"
    yield "chain", what, times["ours"] / times["bare"], "<= 3", rate


def numpy_tags(X, Y, radius):
    """Play tags in plain NumPy: mean base-2 logistic loss, coordinatewise decoder, Polyak."""
    rounds, tags = Y.shape
    W = np.zeros((tags, X.shape[1]))
    signs, eta = 2.0 * Y - 1.0, math.inf
    for t in range(rounds):
        columns = X.indices[X.indptr[t] : X.indptr[t + 1]]
        values = X.data[X.indptr[t] : X.indptr[t + 1]]
        theta = W[:, columns] @ values
        right = np.log1p(np.exp(-np.abs(theta)))
        wrong = right + np.abs(theta)
        agree = np.where(theta > 0, 1.0, -1.0) == signs[t]
        loss = np.where(agree, right, wrong).mean() / math.log(2)
        risk = np.where(agree, right, wrong) / (right + wrong)
        grad = -signs[t] / (1.0 + np.exp(signs[t] * theta)) / (tags * math.log(2))
        eta = min(eta, 2 * (loss - risk.mean()) / ((grad @ grad) * (values @ values)))
        W[:, columns] -= eta * np.outer(grad, values)
        norm = np.linalg.norm(W)
        if norm > radius:
            W *= radius / norm
    return W


def many_tags():
    """159 tags, 1836 sparse features, as in bibtex."""
    rounds, tags, features, entries = 7000, 159, 1836, 69
    columns = np.array([GENERATOR.choice(features, entries, replace=False) for _ in range(rounds)])
    columns.sort(axis=1)
    values = np.full(rounds * entries, 1 / math.sqrt(entries))
    starts = np.arange(0, rounds * entries + 1, entries)
    X = sparse.csr_array((values, columns.ravel(), starts), shape=(rounds, features))
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    Y = (GENERATOR.random((rounds, tags)) < 0.015).astype(np.int64)
    loss = dl.losses.Logistic(dl.tasks.Multilabel(tags))
    decoder = dl.decoders.Coordinatewise(loss)
    few = X[:500]
    times = best_times(
        {
            "run": lambda: dl.OGD(loss, decoder, domain=dl.domains.Ball(600.0)).run(X, Y),
            "numpy": lambda: numpy_tags(few, Y[:500], 300.0),
        },
        repeats=3,
    )
    rate = rounds / times["run"]
    yield "tags", "run / NumPy loop, 159 tags", rate / (500 / times["numpy"]), ">= 10", rate


def matchings():
    """Oracle calls and time of a matching's mean prediction, from a cold and a warm start."""
    for n in (5, 10, 20):
        hull = Birkhoff(n)
        for kind, drift in (("independent", None), ("slowly moving", 0.01)):
            targets = [GENERATOR.standard_normal(n * n)]
            for _ in range(20):
                step = GENERATOR.standard_normal(n * n)
                targets.append(step if drift is None else targets[-1] + drift * step)

            def solve(warm, targets=targets, hull=hull):
                oracle, active = CachedOracle(hull.maximize), None
                for target in targets:
                    active, _ = nearest_point(
                        oracle, target, hull.most_vertices, active if warm else None
                    )
                return oracle.calls

            times = best_times({"warm": lambda: solve(True), "cold": lambda: solve(False)}, 2)
            calls = solve(True) / len(targets), solve(False) / len(targets)
            what = f"matching n = {n}, {kind}: warm / cold time"
            goal = f"{calls[0]:.0f} / {calls[1]:.0f} calls"
            yield "solver", what, times["warm"] / times["cold"], goal, len(targets) / times["cold"]
