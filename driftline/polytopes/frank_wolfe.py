r"""Frank-Wolfe: minimise over a polytope that is known only by its linear oracle.

The current point is a mixture of vertices, the *active set*. A round asks the oracle for the
best vertex :math:`s` in the direction of descent; the duality gap
:math:`g = \langle -\nabla f(\mu), s - \mu \rangle` bounds how far the value is from its
minimum. Then weight moves. With *pairwise* steps it goes from the worst vertex of the active set
to the best one; with *away* steps from all vertices to the best one, or from the worst one
to all others, whichever descends more steeply. As long as steps within the active set promise at
least half of the gap, the oracle is not called; where such steps zigzag, every tenth step is a
Newton step over the weights of the active set. A vertex of weight 0 is dropped, and the set is
never larger than Caratheodory's theorem needs.

References
----------
Lacoste-Julien and Jaggi (2015), *On the global linear convergence of Frank-Wolfe optimization
variants*; Tsuji, Tanaka and Pokutta (2022), *Pairwise conditional gradients without swap steps*.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np

from driftline.errors import InputError
from driftline.polytopes.base import Mixture

__all__ = ["ActiveSet", "Objective", "SolverWarning", "minimize", "nearest_point", "warn_inexact"]

#: Every CORRECTION-th step is a Newton step over the weights of the active vertices. Second
#: derivatives are differences of gradients at a distance of NEARBY.
CORRECTION = 10
NEARBY = 1e-6

Oracle = Callable[[np.ndarray], np.ndarray]


class SolverWarning(UserWarning):
    """A solver stopped at its limit; its answer comes with the gap it reached."""


def warn_inexact(gap: float, tolerance: float, stacklevel: int = 3) -> None:
    """Warn that an answer is less exact than the tolerance."""
    warnings.warn(
        f"a solver stopped at its limit of steps with a duality gap of {gap:.2g}, above its "
        f"tolerance {tolerance:.2g}; the gap is part of the answer",
        SolverWarning,
        stacklevel=stacklevel,
    )


class Objective(Protocol):
    """A convex function to be minimised."""

    def descent(self, point: np.ndarray) -> np.ndarray:
        """Return minus the gradient."""

    def step(self, point: np.ndarray, direction: np.ndarray, limit: float) -> float:
        """Return the best step along a direction of descent, at most ``limit``."""


@dataclass(frozen=True)
class Distance:
    """Half the squared distance to a target; its steps are exact."""

    target: np.ndarray

    def descent(self, point: np.ndarray) -> np.ndarray:
        """Return the direction to the target."""
        return self.target - point

    def step(self, point: np.ndarray, direction: np.ndarray, limit: float) -> float:
        """Return the step to the nearest point on the line."""
        return min(limit, float((self.target - point) @ direction) / float(direction @ direction))


class ActiveSet:
    """A mixture of vertices, between which weight is moved."""

    def __init__(self, vertex: np.ndarray):
        self.vertices = np.array(vertex, dtype=np.float64)[np.newaxis]
        self.weights = np.ones(1)

    def __len__(self) -> int:
        """Return the number of vertices."""
        return len(self.weights)

    @property
    def point(self) -> np.ndarray:
        """The mean of the mixture, computed anew."""
        return self.weights @ self.vertices

    @property
    def mixture(self) -> Mixture:
        """The vertices and their weights."""
        return Mixture(self.vertices.copy(), self.weights.copy())

    def copy(self) -> ActiveSet:
        """Return an independent copy."""
        other = ActiveSet(self.vertices[0])
        other.vertices, other.weights = self.vertices.copy(), self.weights.copy()
        return other

    def find(self, vertex: np.ndarray) -> int:
        """Return the index of a vertex, adding it with no weight if it is new."""
        same = np.flatnonzero(np.abs(self.vertices - vertex).max(axis=1) < 1e-12)
        if same.size:
            return int(same[0])
        self.vertices = np.vstack([self.vertices, vertex])
        self.weights = np.append(self.weights, 0.0)
        return len(self) - 1

    def move(self, source: int, goal: int, amount: float) -> None:
        """Move weight from one vertex to another."""
        self.weights[source] -= amount
        self.weights[goal] += amount

    def pull(self, goal: int, share: float) -> None:
        """Move a share of all weight to one vertex."""
        self.weights *= 1.0 - share
        self.weights[goal] += share

    def shift(self, change: np.ndarray, share: float) -> None:
        """Add a share of a change, which adds up to 0, to all weights."""
        self.weights += share * change

    def push(self, source: int, share: float) -> None:
        """Move weight from one vertex to all, in proportion to their weights."""
        self.weights *= 1.0 + share
        self.weights[source] -= share

    def tidy(self, most: int) -> None:
        """Drop vertices without weight, make weights add up to 1, keep at most ``most``."""
        kept = self.weights > 1e-15
        self.vertices, self.weights = self.vertices[kept], self.weights[kept]
        while len(self) > most:
            self._drop_one()
        self.weights /= self.weights.sum()

    def _drop_one(self) -> None:
        """Move along an affine dependence of the vertices until a weight is 0."""
        system = np.vstack([self.vertices.T, np.ones(len(self))])
        direction = np.linalg.svd(system)[2][-1]
        falling = direction > 0.0 if (direction > 0.0).any() else direction < 0.0
        ratio = np.full(len(self), np.inf)
        ratio[falling] = self.weights[falling] / np.abs(direction[falling])
        first = int(np.argmin(ratio))
        self.weights -= ratio[first] * direction * np.sign(direction[first])
        self.weights = np.maximum(np.delete(self.weights, first), 0.0)
        self.vertices = np.delete(self.vertices, first, axis=0)


def minimize(
    objective: Objective,
    oracle: Oracle,
    start: ActiveSet,
    most: int,
    tolerance: float = 1e-9,
    iterations: int = 20_000,
    steps: str = "pairwise",
) -> tuple[ActiveSet, float]:
    """Return the active set of the best point of a polytope, and its duality gap.

    The gap bounds the value minus its minimum. It is at most ``tolerance`` (or the rounding error
    of 0) unless the iterations ran out. ``start`` is not changed.
    """
    active = start.copy()
    point, gap = active.point, np.inf
    for count in range(iterations):
        down = objective.descent(point)
        noise = 1e-14 * max(1.0, float(np.abs(down).max()))
        values = active.vertices @ down
        worst = int(np.argmin(np.where(active.weights > 0.0, values, np.inf)))
        best = int(np.argmax(values))
        inside = values[best] - values[worst]
        if not (inside > 0.5 * gap and inside > noise):
            vertex = _ask(oracle, down)
            gap = float(down @ (vertex - point))
            if gap <= max(tolerance, _rounding(down, vertex, point)):
                return active, max(gap, 0.0)
            if inside < 0.5 * gap or inside < gap and values[best] < down @ vertex - noise:
                best = active.find(vertex)
        toward, away = active.vertices[best], active.vertices[worst]
        heavy = float(active.weights[worst])
        if count % CORRECTION == CORRECTION - 1 and len(active) > 1:
            change = _correction(objective, active, point, down)
            direction, limit = change @ active.vertices, _room(active.weights, change)
            move = partial(active.shift, change)
            if not direction @ down > 0.0:
                continue
        elif steps == "pairwise":
            direction, limit = toward - away, heavy
            move = partial(active.move, worst, best)
        elif heavy == 1.0 or down @ (toward + away) >= 2.0 * float(down @ point):
            direction, limit = toward - point, 1.0
            move = partial(active.pull, best)
        else:
            direction, limit = point - away, heavy / (1.0 - heavy)
            move = partial(active.push, worst)
        if not direction.any():
            break
        amount = objective.step(point, direction, limit)
        move(amount)
        if amount == limit or len(active) > most or count % 100 == 99:
            active.tidy(most)
            point = active.point
        else:
            point = point + amount * direction
    active.tidy(most)
    down = objective.descent(active.point)
    return active, max(0.0, float(down @ (_ask(oracle, down) - active.point)))


def nearest_point(
    oracle: Oracle,
    target: np.ndarray,
    most: int,
    start: ActiveSet | None = None,
    tolerance: float = 1e-9,
    iterations: int = 20_000,
    steps: str = "pairwise",
) -> tuple[ActiveSet, float]:
    """Return the active set of the point nearest to ``target``, and its duality gap.

    The gap bounds ``|point - target|^2 / 2`` minus its minimum. With ``start`` the search
    begins at an earlier answer.
    """
    start = ActiveSet(_ask(oracle, target)) if start is None else start
    return minimize(Distance(target), oracle, start, most, tolerance, iterations, steps)


def _correction(
    objective: Objective, active: ActiveSet, point: np.ndarray, down: np.ndarray
) -> np.ndarray:
    """Return the Newton step for the weights of the active vertices.

    Second derivatives are differences of gradients along the edges from the heaviest vertex.
    """
    heaviest = int(np.argmax(active.weights))
    edges = np.delete(active.vertices, heaviest, axis=0) - active.vertices[heaviest]
    bends = np.array([down - objective.descent(point + NEARBY * edge) for edge in edges]) / NEARBY
    steps = np.linalg.lstsq(bends @ edges.T, edges @ down, rcond=1e-12)[0]
    return np.insert(steps, heaviest, -steps.sum())


def _room(weights: np.ndarray, change: np.ndarray) -> float:
    """Return the largest share of a change that leaves all weights nonnegative."""
    falling = change < 0.0
    return float((weights[falling] / -change[falling]).min(initial=np.inf))


def _rounding(down: np.ndarray, vertex: np.ndarray, point: np.ndarray) -> float:
    """Return how far rounding may move the duality gap."""
    return 1e-16 * float(np.abs(down) @ (np.abs(vertex) + np.abs(point)))


def _ask(oracle: Oracle, direction: np.ndarray) -> np.ndarray:
    vertex = np.asarray(oracle(direction), dtype=np.float64)
    if vertex.shape != direction.shape:
        raise InputError(
            f"the oracle returned a point of shape {vertex.shape} for a direction of shape "
            f"{direction.shape}"
        )
    return vertex
