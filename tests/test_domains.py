"""Laws that every domain must obey."""

from dataclasses import dataclass

import numpy as np
import pytest

import driftline as dl

rng = np.random.default_rng(0)
DOMAINS = [
    dl.domains.Ball(2.0),
    dl.domains.BallAround(rng.standard_normal((3, 4)), 2.0),
    dl.domains.Box(-rng.random((3, 4)), rng.random((3, 4))),
    dl.domains.RowBalls(3, 1.5),
]
every_domain = pytest.mark.parametrize("domain", DOMAINS, ids=lambda d: type(d).__name__)


def points(domain, count=40):
    return [domain.project(3.0 * rng.standard_normal((3, 4))) for _ in range(count)]


@every_domain
def test_a_projection_is_the_nearest_point(domain):
    inside = points(domain)
    for scale in (0.1, 1.0, 10.0):
        weights = scale * rng.standard_normal((3, 4))
        nearest = domain.project(weights)
        np.testing.assert_allclose(domain.project(nearest), nearest, atol=1e-12)
        for other in inside:  # the variational inequality
            assert np.vdot(weights - nearest, other - nearest) <= 1e-9


@every_domain
def test_no_two_points_are_farther_apart_than_the_diameter(domain):
    far = [1e6 * rng.standard_normal((3, 4)) for _ in range(30)]
    ends = [domain.project(w) for w in far] + [domain.project(-w) for w in far]
    apart = max(np.linalg.norm(a - b) for a in ends for b in ends)
    assert 0.5 * domain.diameter < apart <= domain.diameter * (1.0 + 1e-9)


@every_domain
def test_nothing_is_farther_away_than_the_farthest(domain):
    ends = [domain.project(1e6 * rng.standard_normal((3, 4))) for _ in range(2000)]
    for start in [domain.project(np.zeros((3, 4))), *points(domain, 5)]:
        apart, most = max(np.linalg.norm(end - start) for end in ends), domain.farthest(start)
        assert 0.6 * most < apart <= most * (1.0 + 1e-9) <= domain.diameter * (1.0 + 2e-9)


@every_domain
def test_runs_stay_inside_and_within_their_bounds(domain):
    inputs, labels = rng.standard_normal((60, 4)), rng.integers(0, 3, 60)
    learner = dl.OGD(dl.losses.Logistic(dl.tasks.Multiclass(3)), domain=domain)
    trace = learner.run(inputs, labels)
    np.testing.assert_allclose(domain.project(learner.weights), learner.weights, atol=1e-9)
    comparator = dl.comparators.Fixed(points(domain, 1)[0])
    made = dl.certify(trace, comparator, inputs, labels)
    assert made.valid, str(made)
    assert made.expected <= made.worst_case


@pytest.mark.parametrize(
    "make, words",
    [
        (lambda: dl.domains.Box([[0.0]], [[0.0]]), "below the highest"),
        (lambda: dl.domains.Box([[0.0]], [[np.inf]]), "finite"),
        (lambda: dl.domains.Box([0.0], [1.0]), "of one shape"),
        (lambda: dl.domains.Box([["a"]], [[1.0]]), "rows of numbers"),
        (lambda: dl.domains.RowBalls(0, 1.0), "1 row"),
        (lambda: dl.domains.RowBalls(2, -1.0), "positive"),
        (lambda: DOMAINS[2].project(np.zeros((2, 2))), "shape"),
        (lambda: DOMAINS[3].project(np.zeros((2, 2))), "3 balls"),
    ],
)
def test_domains_that_are_none_are_refused(make, words):
    with pytest.raises(dl.InputError, match=words):
        make()


@dataclass(frozen=True)
class AsConstant(dl.domains.Domain):
    diameter = 2.0
    radius = 1.0


@dataclass(frozen=True)
class AsField(dl.domains.Domain):
    diameter: float
    radius: float | None = 1.0


@dataclass(frozen=True)
class AsProperty(dl.domains.Domain):
    @property
    def diameter(self):
        return 2.0

    @property
    def radius(self):
        return 1.0


@pytest.mark.parametrize("domain", [AsConstant(), AsField(2.0), AsProperty()], ids=repr)
def test_a_fact_is_a_constant_or_a_field_or_a_property(domain):
    assert (domain.diameter, domain.radius) == (2.0, 1.0)
    loss = dl.losses.Logistic(dl.tasks.Multiclass(3))
    ours, usual = dl.OGD(loss, domain=domain), dl.OGD(loss, domain=dl.domains.Ball(2.0))
    for label in (2, 0, 1):
        assert ours.step([30.0, 40.0], label) == usual.step([30.0, 40.0], label)


def test_a_field_without_a_default_is_not_given_that_of_the_fact():
    with pytest.raises(TypeError, match="diameter"):
        AsField()


def test_a_domain_that_does_not_say_its_diameter_is_told_so():
    assert dl.domains.Domain().radius is None
    with pytest.raises(dl.InputError, match="diameter"):
        _ = dl.domains.Domain().diameter
