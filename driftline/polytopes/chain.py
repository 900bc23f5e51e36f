r"""Marginals of a chain: the hull of tag sequences.

A sequence of n tags out of K is encoded by its n unit vectors and by its n - 1 transitions, each
the indicator of a pair of tags: :math:`nK + (n-1)K^2` numbers, positions first. The hull
consists of the node and edge marginals of distributions over sequences. It is the polytope of
unit flows through the chain: the best vertex is found by Viterbi's algorithm, the mean of the
Gibbs distribution by forward and backward sums, the nearest point by Newton's method on
potentials (:mod:`driftline.polytopes.flow_kernels`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from driftline.errors import InputError
from driftline.kernels import CONJUGATE, POINT, Kernel, helper, kernel
from driftline.polytopes.base import Mixture
from driftline.polytopes.chain_kernels import unfolded_length
from driftline.polytopes.flow_kernels import flow_room, project_flow
from driftline.polytopes.positions import check_tags
from driftline.polytopes.solved import SolvedPolytope

__all__ = ["Chain"]


@helper
def edge(n, K, t, i):
    """Where the scores of the transitions from tag i after position t begin."""
    return n * K + (t * K + i) * K


@kernel(POINT)
def viterbi(point, params, scratch, out):
    """Write the best sequence; ties go to the lowest tag."""
    K = int(params[1])
    n = unfolded_length(point.size, K)
    best = scratch[: n * K]  # of sequences that end here
    came = scratch[n * K : 2 * n * K]
    for k in range(K):
        best[k] = point[k]
    for t in range(1, n):
        for k in range(K):
            top = 0
            value = best[(t - 1) * K] + point[edge(n, K, t - 1, 0) + k]
            for i in range(1, K):
                other = best[(t - 1) * K + i] + point[edge(n, K, t - 1, i) + k]
                if other > value:
                    value = other
                    top = i
            best[t * K + k] = value + point[t * K + k]
            came[t * K + k] = top
    for i in range(out.size):
        out[i] = 0.0
    tag = 0
    for k in range(1, K):
        if best[(n - 1) * K + k] > best[(n - 1) * K + tag]:
            tag = k
    out[(n - 1) * K + tag] = 1.0
    for t in range(n - 1, 0, -1):
        before = int(came[t * K + tag])
        out[edge(n, K, t - 1, before) + tag] = 1.0
        out[(t - 1) * K + before] = 1.0
        tag = before


@kernel(CONJUGATE)
def forward_backward(point, params, scratch, out):
    """Write the marginals of the Gibbs distribution, return the logarithm of its normaliser."""
    K = int(params[1])
    n = unfolded_length(point.size, K)
    ahead = scratch[: n * K]
    behind = scratch[n * K : 2 * n * K]
    for k in range(K):
        ahead[k] = point[k]
        behind[(n - 1) * K + k] = 0.0
    for t in range(1, n):
        for k in range(K):
            top = -np.inf
            for i in range(K):
                top = max(top, ahead[(t - 1) * K + i] + point[edge(n, K, t - 1, i) + k])
            total = 0.0
            for i in range(K):
                term = ahead[(t - 1) * K + i] + point[edge(n, K, t - 1, i) + k]
                total += math.exp(term - top)
            ahead[t * K + k] = top + math.log(total) + point[t * K + k]
    for t in range(n - 2, -1, -1):
        for i in range(K):
            start = edge(n, K, t, i)
            top = -np.inf
            for k in range(K):
                later = point[(t + 1) * K + k] + behind[(t + 1) * K + k]
                top = max(top, point[start + k] + later)
            total = 0.0
            for k in range(K):
                later = point[(t + 1) * K + k] + behind[(t + 1) * K + k]
                total += math.exp(point[start + k] + later - top)
            behind[t * K + i] = top + math.log(total)
    top = -np.inf
    for k in range(K):
        top = max(top, ahead[(n - 1) * K + k])
    total = 0.0
    for k in range(K):
        total += math.exp(ahead[(n - 1) * K + k] - top)
    normaliser = top + math.log(total)
    for t in range(n):
        for k in range(K):
            out[t * K + k] = math.exp(ahead[t * K + k] + behind[t * K + k] - normaliser)
    for t in range(n - 1):
        for i in range(K):
            for k in range(K):
                later = point[(t + 1) * K + k] + behind[(t + 1) * K + k]
                place = edge(n, K, t, i) + k
                out[place] = math.exp(ahead[t * K + i] + point[place] + later - normaliser)
    return normaliser


@dataclass(frozen=True)
class Chain(SolvedPolytope):
    """Node and edge marginals of sequences of ``length`` tags out of ``tags``.

    >>> hull = Chain(length=3, tags=2)
    >>> hull.dim, hull.sequence(hull.vertex([1, 0, 0]))
    (14, array([1, 0, 0]))
    >>> normaliser, _ = hull.marginals(np.zeros(14))
    >>> round(math.exp(normaliser), 6)  # all sequences
    8.0
    """

    length: int
    tags: int
    tolerance: float = 1e-10

    maximize_kernel: ClassVar[Kernel] = viterbi
    project_kernel: ClassVar[Kernel] = project_flow
    entropy_kernel: ClassVar[Kernel] = forward_backward

    def __post_init__(self) -> None:
        """Refuse empty sequences and fewer than two tags."""
        if self.length < 1:
            raise InputError(f"a sequence has 1 position or more, not {self.length}")
        if self.tags < 2:
            raise InputError(f"a sequence needs 2 tags or more, not {self.tags}")

    @property
    def dim(self) -> int:
        """Positions times tags, and transitions times pairs of tags."""
        return self.length * self.tags + (self.length - 1) * self.tags**2

    @property
    def params(self) -> tuple[float, ...]:
        """Length and number of tags; kernels know the length from the size of a point."""
        return (float(self.length), float(self.tags))

    @property
    def scratch(self) -> int:
        """What the projection needs."""
        return flow_room(self.length, self.tags)

    @property
    def most_vertices(self) -> int:
        """One more than the dimension of the polytope of unit flows."""
        return (self.length - 1) * (self.tags - 1) * self.tags + self.tags

    def vertex(self, sequence: np.ndarray) -> np.ndarray:
        """Return the encoding of a sequence."""
        tags = check_tags(sequence, self.length, self.tags)
        out = np.zeros(self.dim)
        nodes, edges = self.split(out)
        nodes[np.arange(self.length), tags] = 1.0
        edges[np.arange(self.length - 1), tags[:-1], tags[1:]] = 1.0
        return out

    def sequence(self, vertex: np.ndarray) -> np.ndarray:
        """Return the sequence that a vertex encodes."""
        return self.split(vertex)[0].argmax(axis=1)

    def split(self, point: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the node part (positions x tags) and the edge part of a point, as views."""
        n, K = self.length, self.tags
        return point[: n * K].reshape(n, K), point[n * K :].reshape(n - 1, K, K)

    def marginals(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the log-normaliser and the marginals of the Gibbs distribution of scores."""
        out = np.empty(self.dim)
        params, scratch = np.array(self.params), np.empty(self.scratch)
        normaliser = forward_backward(self.check(theta), params, scratch, out)
        return float(normaliser), out

    def decompose(self, point: np.ndarray) -> Mixture:
        """Subtract paths from the flow, each with the weight of its smallest edge.

        A path follows the largest edges; every path reduces an edge or node to 0.
        """
        rest = self.check(point).copy()
        nodes, edges = self.split(rest)
        vertices: list[np.ndarray] = []
        weights: list[float] = []
        while nodes[0].max() > 1e-13 and len(vertices) < self.most_vertices:
            path = [int(nodes[0].argmax())]
            for t in range(self.length - 1):
                path.append(int(edges[t, path[-1]].argmax()))
            vertex = self.vertex(np.array(path))
            amount = float(rest[vertex > 0.0].min())
            if amount <= 1e-15:
                break
            vertices.append(vertex)
            weights.append(amount)
            rest[vertex > 0.0] = np.maximum(rest[vertex > 0.0] - amount, 0.0)
        if abs(sum(weights) - 1.0) > 1e-6:
            raise InputError("the point is no vector of marginals: its flow does not add up to 1")
        total = np.array(weights)
        return Mixture(np.array(vertices), total / total.sum())
