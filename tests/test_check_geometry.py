"""The public checks of domains and polytopes: ours pass, and wrong ones are named by their law."""

import dataclasses

import numpy as np
import pytest
from howmany import number
from test_domains import DOMAINS
from test_polytopes import POLYTOPES

import driftline as dl
from driftline.checks import BrokenLawError, check_domain, check_polytope

po = dl.polytopes


@pytest.mark.parametrize("domain", [*DOMAINS, dl.domains.Unbounded()], ids=repr)
def test_domains_of_ours_pass(domain):
    check_domain(domain)


@pytest.mark.parametrize(
    "hull, vertices", POLYTOPES, ids=[f"{type(h).__name__}-{h.dim}" for h, _ in POLYTOPES]
)
def test_polytopes_of_ours_pass(hull, vertices):
    check_polytope(hull, vertices, trials=number(5, 12))


@dataclasses.dataclass(frozen=True)
class Stated(dl.domains.Domain):
    """Projects onto one set, and states the sizes of another."""

    inner: dl.domains.Domain
    diameter: float
    radius: float | None = None

    def project(self, weights):
        return self.inner.project(weights)


CENTRE = np.full((3, 4), 0.1)


@pytest.mark.parametrize(
    "domain, words",
    [
        (Stated(dl.domains.Ball(1.0), 2.0, 1.0), "onto the ball of its radius"),
        (Stated(dl.domains.Ball(4.0), 2.0, 1.0), "onto the ball of its radius"),
        (Stated(dl.domains.BallAround(CENTRE, 1.0), 2.0, 1.0), "onto the ball of its radius"),
        (Stated(dl.domains.RowBalls(3, 1.0), 2.0, 1.0), "onto the ball of its radius"),
        (Stated(dl.domains.Ball(2.0), 2.0, np.inf), "twice its radius"),
        (Stated(dl.domains.Ball(2.0), np.inf, np.inf), "onto the ball of its radius"),
        (Stated(dl.domains.Ball(2.0), 3.0, 1.0), "twice its radius"),
        (Stated(dl.domains.Ball(2.0), 1.0), "farther apart than the diameter"),
        (Stated(dl.domains.Ball(2.0), 5.0), "as far apart as the diameter says"),
        (Stated(dl.domains.Ball(2.0), np.nan), "diameter"),
    ],
    ids=repr,
)
def test_a_domain_that_is_not_what_it_states_is_named(domain, words):
    with pytest.raises(BrokenLawError, match=words):
        check_domain(domain)


class Forgetful(po.Simplex):
    """Never returns its last vertex, but projects onto all of the simplex."""

    def maximize(self, direction):
        return np.eye(self.dim)[np.argmax(direction[:-1])]


class Mixes(po.Cube):
    """Never returns its first vertex, but makes mixtures of it."""

    def maximize(self, direction):
        best = super().maximize(direction)
        if (best == -1.0).all():
            best[np.argmax(direction)] = 1.0
        return best


SQUARE = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])


def hull_of(vertices):
    """A polytope that is known by its oracle alone."""
    return po.Hull(vertices.shape[1], lambda v: vertices[np.argmax(vertices @ v)])


class Lopsided(po.Hull):
    """A triangle that says it is the same under every permutation of coordinates."""

    symmetric = True


@pytest.mark.parametrize(
    "hull, vertices, words",
    [
        (Forgetful(4), None, "no point of the polytope lies beyond"),
        (Mixes(3), None, "no point of the polytope lies beyond"),
        (hull_of(SQUARE[:3]), SQUARE, "no vertex lies beyond"),
        (hull_of(SQUARE), SQUARE[:3], "maximize returns one of the vertices"),
        (Lopsided(2, hull_of(SQUARE[:2]).oracle), None, "in a permuted direction"),
    ],
)
def test_an_oracle_that_never_returns_some_vertices_is_named(hull, vertices, words):
    with pytest.raises(BrokenLawError, match=words):
        check_polytope(hull, vertices, trials=30)


def test_a_hull_of_fewer_vertices_is_a_polytope_of_its_own():
    check_polytope(hull_of(SQUARE[:3]))
