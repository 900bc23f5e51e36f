"""What we measure ourselves against: a plain NumPy loop, and bare compiled loops.

The NumPy loop is the paper's algorithm as one would write it in an afternoon. The bare
loops compute scores and a rank-one update and nothing else: no loss, no decoder, no
rate, no projection, no trace. The passes alone are the same, by the learner's own passes over the
weights, which read and write each weight once: what a round can cost at least.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from driftline.kernels.compile import OPTIONS, DistinctArguments
from driftline.kernels.gathers import gather, scatter
from driftline.kernels.prefetch import prefetch_row, prefetch_rows
from driftline.kernels.sweeps import sweep


def numpy_loop(X, y, classes, radius=10.0, seed=0):
    """Base-2 logistic loss, uniform mix, Polyak rate, projection, and the same trace."""
    generator = np.random.default_rng(seed)
    W = np.zeros((classes, X.shape[1]))
    eta = math.inf
    trace = np.empty((6, len(y)))
    for t, (x, label) in enumerate(zip(X, y, strict=True)):
        theta = W @ x
        p = np.exp(theta - theta.max())
        p /= p.sum()
        top = int(np.argmax(p))
        a = min(1.0, -math.log2(p[top]))
        pi = np.full(classes, a / classes)
        pi[top] += 1.0 - a
        prediction = min(int(np.searchsorted(np.cumsum(pi), generator.random())), classes - 1)
        grad = p.copy()
        grad[label] -= 1.0
        grad /= math.log(2.0)
        grad_sq = (grad @ grad) * (x @ x)
        value, risk = -math.log2(p[label]), 1.0 - pi[label]
        if grad_sq > 0.0:
            eta = min(eta, 2.0 * (value - risk) / grad_sq)
            W -= eta * np.outer(grad, x)
            norm = np.linalg.norm(W)
            if norm > radius:
                W *= radius / norm
        trace[:, t] = value, risk, prediction != label, eta, grad_sq, prediction
    return trace


@njit(fastmath=True)
def bare_dense(X, y, W):
    classes, features = W.shape
    theta = np.empty(classes)
    for t in range(X.shape[0]):
        for k in range(classes):
            total = 0.0
            for j in range(features):
                total += W[k, j] * X[t, j]
            theta[k] = total
        for k in range(classes):
            step = 0.1 * ((1.0 if k == y[t] else 0.0) - theta[k])
            for j in range(features):
                W[k, j] += step * X[t, j]


@njit(fastmath=True)
def bare_sparse(values, columns, starts, y, W):
    classes = W.shape[1]
    theta = np.empty(classes)
    for t in range(starts.size - 1):
        theta[:] = 0.0
        for i in range(starts[t], starts[t + 1]):
            row = W[columns[i]]
            for k in range(classes):
                theta[k] += values[i] * row[k]
        for k in range(classes):
            theta[k] = 0.1 * ((1.0 if k == y[t] else 0.0) - theta[k])
        for i in range(starts[t], starts[t + 1]):
            row = W[columns[i]]
            for k in range(classes):
                row[k] += theta[k] * values[i]


@njit(pipeline_class=DistinctArguments, **OPTIONS)
def passes_dense(X, y, W, steps, scores):
    steps[:] = 0.0
    for t in range(X.shape[0]):
        if t + 1 < X.shape[0]:
            prefetch_row(X, t + 1)
        sweep(W, steps, X[max(t - 1, 0)], X[t], scores)
        for k in range(steps.size):
            steps[k] = 0.1 * ((1.0 if k == y[t] else 0.0) - scores[k])


@njit(pipeline_class=DistinctArguments, **OPTIONS)
def passes_sparse(values, columns, starts, y, W, scores):
    for t in range(starts.size - 1):
        gather(W, values, columns, starts[t], starts[t + 1], scores)
        if t + 2 < starts.size:
            prefetch_rows(W, columns, starts[t + 1], starts[t + 2])
        for k in range(scores.size):
            scores[k] = 0.1 * ((1.0 if k == y[t] else 0.0) - scores[k])
        scatter(W, values, columns, starts[t], starts[t + 1], scores)


@njit(fastmath=True)
def bare_forward_backward(nodes, edges, ahead, behind, node_out, edge_out):
    """Sum over a chain in log space and write the marginals; nothing is checked."""
    n, K = nodes.shape
    ahead[0] = nodes[0]
    for t in range(1, n):
        for k in range(K):
            top = (ahead[t - 1] + edges[t - 1, :, k]).max()
            total = 0.0
            for i in range(K):
                total += math.exp(ahead[t - 1, i] + edges[t - 1, i, k] - top)
            ahead[t, k] = top + math.log(total) + nodes[t, k]
    behind[n - 1] = 0.0
    for t in range(n - 2, -1, -1):
        for i in range(K):
            top = (edges[t, i] + nodes[t + 1] + behind[t + 1]).max()
            total = 0.0
            for k in range(K):
                total += math.exp(edges[t, i, k] + nodes[t + 1, k] + behind[t + 1, k] - top)
            behind[t, i] = top + math.log(total)
    top = ahead[n - 1].max()
    normaliser = top + math.log(np.exp(ahead[n - 1] - top).sum())
    for t in range(n):
        for k in range(K):
            node_out[t, k] = math.exp(ahead[t, k] + behind[t, k] - normaliser)
    for t in range(n - 1):
        for i in range(K):
            for k in range(K):
                later = nodes[t + 1, k] + behind[t + 1, k] - normaliser
                edge_out[t, i, k] = math.exp(ahead[t, i] + edges[t, i, k] + later)
    return normaliser
