"""The laws of polytopes, regularizers and domains."""

from __future__ import annotations

import numpy as np

from driftline.checks.base import law, scores
from driftline.domains import Domain
from driftline.polytopes import Polytope
from driftline.regularizers import Regularizer

__all__ = ["check_domain", "check_polytope", "check_regularizer"]

#: The relative error that is allowed: for a closed form, and for a solver.
EXACT, SOLVED = 1e-9, 1e-4


def check_polytope(
    polytope: Polytope,
    known: np.ndarray | None = None,
    *,
    trials: int = 60,
    seed: int = 0,
) -> None:
    """Check a polytope: its oracle, its projection, and how points become mixtures of vertices.

    An oracle that never returns some vertices is detected by projections and mixtures beyond those
    that it returns, unless these are computed by the oracle itself; and by ``known``, all vertices,
    a row each.

    >>> import driftline as dl
    >>> check_polytope(dl.polytopes.Simplex(4), np.eye(4))
    """
    generator = np.random.default_rng(seed)
    slack = EXACT if polytope.closed else SOLVED
    directions = list(scores(polytope.dim, trials, generator))
    vertices = [polytope.maximize(direction) for direction in directions]
    if known is not None:
        _check_known(directions, vertices, np.asarray(known, dtype=np.float64))
    norms = [float(vertex @ vertex) for vertex in vertices]
    if polytope.equal_norms:
        law(np.ptp(norms) <= EXACT * (1.0 + max(norms)), "all vertices have one norm", norms=norms)
    for direction, vertex in zip(directions, vertices, strict=True):
        far = max(float(direction @ other) for other in vertices)
        size = 1.0 + float(np.abs(direction).sum())
        words = "maximize returns the vertex farthest in a direction"
        law(direction @ vertex >= far - EXACT * size, words, direction=direction, vertex=vertex)
        again = polytope.project(vertex)
        words = "a vertex is its own projection"
        law(np.abs(again - vertex).max() <= slack * size, words, vertex=vertex)
        point = polytope.project(direction)
        for other in vertices:  # the angle to the rest of the polytope is obtuse
            inner = float((direction - point) @ (other - point))
            words = "project returns the nearest point"
            law(inner <= slack * size**2, words, point=direction, projection=point, nearer=other)
        mixture = polytope.decompose(point)
        most = polytope.most_vertices
        law(len(mixture.weights) <= most, f"a mixture has {most} vertices at most", point=point)
        good = (mixture.weights >= 0.0).all() and abs(mixture.weights.sum() - 1.0) <= EXACT
        law(good, "weights of a mixture add up to 1", point=point, weights=mixture.weights)
        off = float(np.abs(mixture.mean - point).max())
        law(off <= 10.0 * slack * size, "a mixture has the point as its mean", point=point, off=off)
        _check_beyond(directions, vertices, np.vstack([point, mixture.vertices]), slack * size)
    if polytope.symmetric:
        _check_symmetry(polytope, directions, vertices, generator)


def _check_beyond(
    directions: list[np.ndarray], vertices: list[np.ndarray], points: np.ndarray, slack: float
) -> None:
    """Check that no point of the polytope is farther in a direction than the oracle's vertex."""
    for direction, vertex in zip(directions, vertices, strict=True):
        size = 1.0 + float(np.abs(direction).sum())
        far = points[np.argmax(points @ direction)]
        words = "no point of the polytope lies beyond what maximize returns"
        good = direction @ far <= direction @ vertex + slack * size
        law(good, words, direction=direction, vertex=vertex, beyond=far)


def _check_known(
    directions: list[np.ndarray], vertices: list[np.ndarray], known: np.ndarray
) -> None:
    """Check an oracle against all vertices."""
    for direction, vertex in zip(directions, vertices, strict=True):
        size = 1.0 + float(np.abs(direction).sum())
        far = known[np.argmax(known @ direction)]
        words = "no vertex lies beyond what maximize returns"
        law(direction @ far <= direction @ vertex + EXACT * size, words, vertex=vertex, beyond=far)
        near = np.abs(known - vertex).max(axis=1).min()
        words = "maximize returns one of the vertices"
        law(near <= EXACT * (1.0 + np.abs(vertex).max()), words, vertex=vertex)


def _check_symmetry(
    polytope: Polytope,
    directions: list[np.ndarray],
    vertices: list[np.ndarray],
    generator: np.random.Generator,
) -> None:
    """Check that a symmetric polytope has the same maxima with coordinates permuted."""
    for direction, vertex in zip(directions, vertices, strict=True):
        other = generator.permutation(direction)
        far, size = float(direction @ vertex), 1.0 + float(np.abs(direction).sum())
        again = float(other @ polytope.maximize(other))
        words = "a symmetric polytope reaches as far in a permuted direction"
        law(abs(again - far) <= EXACT * size, words, direction=direction, far=far, permuted=again)


def check_regularizer(
    regularizer: Regularizer, polytope: Polytope, *, trials: int = 40, seed: int = 0
) -> None:
    """Check a regularizer on a polytope: its mean prediction is best, and a gradient.

    >>> import driftline as dl
    >>> check_regularizer(dl.regularizers.Entropy(), dl.polytopes.Simplex(4))
    """
    generator = np.random.default_rng(seed)
    for theta in scores(polytope.dim, trials, generator):
        mu, gap = regularizer.solve(theta, polytope)
        slack = gap + 1e-7 * (1.0 + float(np.abs(theta).sum()))
        best = float(theta @ mu) - regularizer.value(mu, polytope)
        conjugate = regularizer.conjugate(theta, polytope)
        words = "the conjugate is the value of the mean prediction"
        law(abs(conjugate - best) <= slack, words, theta=theta, conjugate=conjugate, value=best)
        vertex = polytope.maximize(generator.standard_normal(polytope.dim))
        for share in (1e-3, 0.1, 0.5, 1.0):
            other = (1.0 - share) * mu + share * vertex
            value = float(theta @ other) - regularizer.value(other, polytope)
            words = "no point is better than the mean prediction"
            law(value <= best + slack, words, theta=theta, better=other, by=value - best)
            there = theta + share * generator.standard_normal(polytope.dim)
            tangent = best + float(mu @ (there - theta))
            words = "the mean prediction is the gradient of the conjugate"
            above = regularizer.conjugate(there, polytope)
            law(above >= tangent - 2.0 * slack, words, theta=theta, other=there)


def check_domain(
    domain: Domain, shape: tuple[int, int] = (3, 4), *, trials: int = 60, seed: int = 0
) -> None:
    """Check a domain: projections are nearest points in it, and its diameter is right.

    No two projections are farther apart than the diameter, and some are at least half as far. A
    domain that states a radius is the ball of this radius around 0: compiled rounds project onto
    that ball, whatever :meth:`~driftline.domains.Domain.project` does.

    >>> import driftline as dl
    >>> check_domain(dl.domains.Ball(diameter=2.0))
    """
    generator = np.random.default_rng(seed)
    given = [
        scale * generator.standard_normal(shape)
        for scale in np.repeat([1e-3, 0.3, 1.0, 10.0, 1e3], max(2, trials // 5))
    ]
    inside = [domain.project(weights) for weights in given]
    _check_size(domain, given)
    for weights, point in zip(given, inside, strict=True):
        size = 1.0 + float(np.linalg.norm(weights))
        again = domain.project(point)
        words = "a projection is its own projection"
        law(np.linalg.norm(again - point) <= EXACT * size, words, weights=weights)
        for other in inside:
            inner = float(np.vdot(weights - point, other - point))
            law(inner <= EXACT * size**2, "project returns the nearest weights", weights=weights)
            apart = float(np.linalg.norm(point - other))
            words = "no two weights are farther apart than the diameter"
            law(apart <= domain.diameter * (1.0 + EXACT), words, distance=apart)


def _check_size(domain: Domain, given: list[np.ndarray]) -> None:
    """Check that diameter and radius are those of the projections."""
    diameter, radius = domain.diameter, domain.radius
    law(diameter > 0.0, "a diameter is positive", diameter=diameter)
    if radius is not None:
        _check_ball(domain, radius, given)
    if np.isfinite(diameter):
        far = [1e3 * diameter * w / np.linalg.norm(w) for w in given]
        ends = [domain.project(end) for w in far for end in (w, -w)]
        apart = max(float(np.linalg.norm(one - other)) for one in ends for other in ends)
        words = "some weights are at least half as far apart as the diameter says"
        law(apart >= 0.5 * (1.0 - 1e-6) * diameter, words, diameter=diameter, farthest=apart)


def _check_ball(domain: Domain, radius: float, given: list[np.ndarray]) -> None:
    """Check that a domain that states a radius is the ball of that radius around 0."""
    words = "a diameter is twice its radius, where one is stated"
    law(domain.diameter == 2.0 * radius, words, diameter=domain.diameter, radius=radius)
    inside = [0.9 * radius * w / np.linalg.norm(w) for w in given] if np.isfinite(radius) else []
    for weights in [*given, *inside]:
        norm = float(np.linalg.norm(weights))
        nearest = weights if norm <= radius else weights * (radius / norm)
        off = float(np.linalg.norm(domain.project(weights) - nearest))
        words = "a domain that states a radius projects onto the ball of its radius"
        law(off <= EXACT * (1.0 + norm), words, weights=weights, radius=radius, off=off)
