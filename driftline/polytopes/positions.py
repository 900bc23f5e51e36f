"""One simplex for every position: the hull of tag sequences without transitions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from driftline.errors import InputError
from driftline.kernels import CONJUGATE, POINT, Kernel, argmax, dot, helper, kernel
from driftline.polytopes.base import Mixture, Polytope, keep_positive
from driftline.polytopes.simplex import onto_simplex

__all__ = ["Positions", "check_tags", "softmaxes"]


@kernel(POINT)
def maximize(point, params, scratch, out):
    """Take the best tag at every position."""
    tags = int(params[1])
    for i in range(out.size):
        out[i] = 0.0
    for start in range(0, point.size, tags):
        out[start + argmax(point[start : start + tags])] = 1.0


@kernel(POINT)
def project(point, params, scratch, out):
    """Project every position."""
    tags = int(params[1])
    for start in range(0, point.size, tags):
        onto_simplex(point[start : start + tags], out[start : start + tags])


@helper
def softmaxes(point, target, factor, tags, out):
    """Write softmaxes; return the log-normaliser minus ``factor`` times the target's score."""
    value = 0.0
    for start in range(0, point.size, tags):
        own, mean = point[start : start + tags], out[start : start + tags]
        top, total = own[argmax(own)], 0.0
        for k in range(tags):
            mean[k] = math.exp(own[k] - top)
            total += mean[k]
        for k in range(tags):
            mean[k] /= total
        value += math.log(total) + (top - factor * dot(own, target[start : start + tags]))
    return value


@kernel(CONJUGATE)
def log_normaliser(point, params, scratch, out):
    """Write the softmax of every position, return the logarithm of the normaliser of all."""
    return softmaxes(point, point, 0.0, int(params[1]), out)


@dataclass(frozen=True)
class Positions(Polytope):
    """``length`` simplices of ``tags`` entries each, one after the other.

    >>> Positions(2, 2).project(np.array([2.0, 0.0, 0.6, 0.6]))
    array([1. , 0. , 0.5, 0.5])
    """

    length: int
    tags: int

    maximize_kernel: ClassVar[Kernel] = maximize
    project_kernel: ClassVar[Kernel] = project
    entropy_kernel: ClassVar[Kernel] = log_normaliser
    coordinatewise: ClassVar[bool] = True

    @property
    def dim(self) -> int:
        """Positions times tags."""
        return self.length * self.tags

    @property
    def params(self) -> tuple[float, ...]:
        """Length and number of tags."""
        return (float(self.length), float(self.tags))

    @property
    def most_vertices(self) -> int:
        """One more than there are free entries."""
        return self.length * (self.tags - 1) + 1

    def vertex(self, sequence: np.ndarray) -> np.ndarray:
        """Return the encoding of a sequence."""
        tags = check_tags(sequence, self.length, self.tags)
        return np.eye(self.tags)[tags].ravel()

    def sequence(self, vertex: np.ndarray) -> np.ndarray:
        """Return the sequence that a vertex encodes."""
        return self.split(vertex)[0].argmax(axis=1)

    def split(self, point: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the entries as positions x tags, and no transitions."""
        return point.reshape(self.length, self.tags), np.empty((0, self.tags, self.tags))

    def marginals(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the log-normaliser and the marginals of the Gibbs distribution of scores."""
        scores, _ = self.split(self.check(theta))
        top = scores.max(axis=1, keepdims=True)
        powers = np.exp(scores - top)
        sums = powers.sum(axis=1, keepdims=True)
        return float((top + np.log(sums)).sum()), (powers / sums).ravel()

    def decompose(self, point: np.ndarray) -> Mixture:
        """One uniform number for all positions: its sequence changes at every threshold."""
        sums = np.cumsum(self.split(self.check(point))[0], axis=1)
        sums[:, -1] = 1.0
        ends = np.unique(np.r_[0.0, sums.ravel()].clip(0.0, 1.0))
        widths = np.diff(ends)
        vertices = [self._pick(sums, u) for u in ends[:-1] + widths / 2]
        return keep_positive(np.array(vertices), np.where(widths > 1e-15, widths, 0.0))

    def _pick(self, sums: np.ndarray, uniform: float) -> np.ndarray:
        tags = (sums <= uniform).sum(axis=1)
        return self.vertex(np.minimum(tags, self.tags - 1))


def check_tags(sequence: np.ndarray, length: int, tags: int) -> np.ndarray:
    """Return a sequence as an array, or say what is wrong with it."""
    array = np.asarray(sequence)
    if array.shape != (length,) or array.min() < 0 or array.max() >= tags:
        raise InputError(f"expected {length} tags from 0..{tags - 1}, but got {array.tolist()}")
    return array
