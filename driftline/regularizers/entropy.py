r"""Negative entropy.

On the simplex, the hypersimplex and the Birkhoff polytope
:math:`\Omega(\mu) = \sigma \sum_i \mu_i \ln \mu_i`; on a cube the sum of the entropies of its
coordinates, with :math:`p_i` the share of the upper bound,
:math:`\sigma \sum_i p_i \ln p_i + (1 - p_i) \ln (1 - p_i)`; along a chain that of the Markov
chain with the given marginals, edges minus inner nodes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from driftline.errors import InputError
from driftline.polytopes import (
    Birkhoff,
    Chain,
    Cube,
    Hypersimplex,
    Polytope,
    Positions,
    Simplex,
)
from driftline.regularizers.base import Regularizer

__all__ = ["Entropy"]


@dataclass(frozen=True)
class Entropy(Regularizer):
    """``scale`` times the negative Shannon entropy.

    >>> Entropy().mean_prediction(np.log([1.0, 2.0, 1.0]), Simplex(3))
    array([0.25, 0.5 , 0.25])
    """

    scale: float = 1.0

    symmetric: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Refuse a scale that is not positive."""
        self._check_scale()

    def value(self, mu: np.ndarray, hull: Polytope) -> float:
        """Return the negative entropy, scaled."""
        if isinstance(hull, Cube):
            share = (mu - hull.low) / (hull.high - hull.low)
            return self.scale * (_entropy(share) + _entropy(1.0 - share))
        if isinstance(hull, Chain) and hull.length > 1:
            nodes, edges = hull.split(mu)
            return self.scale * (_entropy(edges) - _entropy(nodes[1:-1]))
        return self.scale * _entropy(mu)

    def mean_prediction(self, theta: np.ndarray, hull: Polytope) -> np.ndarray:
        """Return the mean prediction: a softmax, sigmoids, marginals, depending on the polytope."""
        scores = np.asarray(theta, dtype=np.float64) / self.scale
        match hull:
            case Simplex():
                powers = np.exp(scores - scores.max())
                return powers / powers.sum()
            case Cube(_, low, high):
                return low + (high - low) / (
                    1.0 + np.exp(-np.clip((high - low) * scores, -700, 700))
                )
            case Hypersimplex(_, size):
                return capped_softmax(scores, size)
            case Chain() | Positions():
                return hull.marginals(scores)[1]
            case Birkhoff(size):
                return sinkhorn(scores.reshape(size, size)).ravel()
        raise InputError(f"no entropy is known on {hull!r}; use Quadratic")

    def strong_convexity(self, hull: Polytope, norm: str) -> float | None:
        """Return the modulus: in l1 by Pinsker's inequality, in l2 from the second derivative."""
        match hull:
            case Simplex():
                return self.scale * (1.0 if norm == "l1" else 2.0)
            case Cube(dim, low, high):
                modulus = 4.0 * self.scale / (high - low) ** 2
                return modulus / dim if norm == "l1" else modulus
            case Positions(length, _):
                return self.scale * (1.0 / length if norm == "l1" else 2.0)
            case Chain(length, _):
                ones = 2 * length - 1
                return self.scale * (1.0 / ones**2 if norm == "l1" else 2.0 / ones)
            case Hypersimplex(_, size) | Birkhoff(size):
                return self.scale / size if norm == "l1" else self.scale
        return None


def _entropy(mu: np.ndarray) -> float:
    positive = mu[mu > 0.0]
    return float(positive @ np.log(positive))


def capped_softmax(scores: np.ndarray, size: int) -> np.ndarray:
    """Return min(1, exp(scores - t)) with t such that the sum is ``size``.

    The largest entries are cut at 1, one after the other, until the others fit.
    """
    order = np.argsort(-scores, kind="stable")
    for cut in range(size):
        powers = np.exp(scores[order[cut:]] - scores[order[cut]])
        factor = (size - cut) / powers.sum()
        if factor <= 1.0:
            break
    mu = np.ones_like(scores)
    mu[order[cut:]] = powers * factor
    return mu


def sinkhorn(scores: np.ndarray, tolerance: float = 1e-12) -> np.ndarray:
    """Return exp(scores + rows + columns) with all sums 1.

    Sinkhorn's algorithm, in log space, slows down where the scores are nearly decided; after
    some rounds Newton's method on the row and column terms takes over.
    """
    matrix = scores - scores.max()
    n = len(matrix)
    error = np.inf
    for count in range(1000):
        if count < 20 or error > 0.5:
            matrix = matrix - _log_sum(matrix, 1)
            matrix = matrix - _log_sum(matrix, 0)
        else:
            powers = np.exp(matrix)
            system = np.block(
                [[np.diag(powers.sum(axis=1)), powers], [powers.T, np.diag(powers.sum(axis=0))]]
            )
            missing = np.r_[1.0 - powers.sum(axis=1), 1.0 - powers.sum(axis=0)]
            move = np.linalg.lstsq(system, missing, rcond=1e-15)[0]
            step = 1.0
            while step > 1e-6:
                trial = matrix + step * (move[:n, None] + move[None, n:])
                if trial.max() < 1.0 and _imbalance(trial) < error:
                    break
                step /= 2.0
            else:
                trial = matrix - _log_sum(matrix, 1)
                trial = trial - _log_sum(trial, 0)
            matrix = trial
        error = _imbalance(matrix)
        if error < tolerance:
            break
    return np.exp(matrix)


def _imbalance(matrix: np.ndarray) -> float:
    """Return how far the sums of rows and columns of exp(matrix) are from 1."""
    powers = np.exp(matrix)
    rows, columns = powers.sum(axis=1), powers.sum(axis=0)
    return float(max(np.abs(rows - 1.0).max(), np.abs(columns - 1.0).max()))


def _log_sum(matrix: np.ndarray, axis: int) -> np.ndarray:
    top = matrix.max(axis=axis, keepdims=True)
    return top + np.log(np.exp(matrix - top).sum(axis=axis, keepdims=True))
