"""The laws of polytopes, regularizers and domains."""

from __future__ import annotations

import numpy as np

from driftline.checks.base import law, scores
from driftline.domains import Domain
from driftline.polytopes import Polytope
from driftline.regularizers import Regularizer

__all__ = ["check_domain", "check_polytope", "check_regularizer"]

#: How far numbers may be off, as a share: where a closed form is at work, and where a solver is.
EXACT, SOLVED = 1e-9, 1e-4


def check_polytope(polytope: Polytope, *, trials: int = 60, seed: int = 0) -> None:
    """Check a polytope: its oracle, its projection, and how points become mixtures of vertices.

    >>> import driftline as dl
    >>> check_polytope(dl.polytopes.Simplex(4))
    """
    generator = np.random.default_rng(seed)
    slack = EXACT if polytope.closed else SOLVED
    directions = list(scores(polytope.dim, trials, generator))
    vertices = [polytope.maximize(direction) for direction in directions]
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
    """Check a domain: projections are nearest points in it, and no two are farther apart than said.

    >>> import driftline as dl
    >>> check_domain(dl.domains.Ball(diameter=2.0))
    """
    generator = np.random.default_rng(seed)
    given = [
        scale * generator.standard_normal(shape)
        for scale in np.repeat([1e-3, 0.3, 1.0, 10.0, 1e3], max(2, trials // 5))
    ]
    inside = [domain.project(weights) for weights in given]
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
        if domain.radius is not None:
            words = "all weights lie within the radius"
            law(np.linalg.norm(point) <= domain.radius * (1.0 + EXACT), words, weights=point)
