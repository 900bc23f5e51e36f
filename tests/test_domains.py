"""Laws that every domain must obey."""

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
