"""Laws that every polytope must obey, against all of its vertices."""

import itertools

import numpy as np
import pytest
from howmany import examples
from hypothesis import given
from hypothesis import strategies as st

import driftline as dl
from driftline import polytopes as po
from driftline.polytopes import birkhoff_kernels
from driftline.polytopes.frank_wolfe import ActiveSet, nearest_point


def signs(d):
    return np.array(list(itertools.product([-1.0, 1.0], repeat=d)))


def staircases(d):
    return np.array([[1.0] * k + [-1.0] * (d - k) for k in range(d + 1)])


def subsets(d, m):
    return np.array(
        [[float(i in s) for i in range(d)] for s in itertools.combinations(range(d), m)]
    )


def orders(weights):
    return np.array(list(itertools.permutations(weights)))


def matchings(n):
    return np.array([np.eye(n)[list(p)].ravel() for p in itertools.permutations(range(n))])


def walks(n, k):
    hull = po.Chain(n, k)
    return np.array([hull.vertex(s) for s in itertools.product(range(k), repeat=n)])


def gains(weights, low, high):
    """All normalised gains, those of more than two levels among them."""
    all_gains = [
        np.array(y, float) for y in itertools.product(range(low, high + 1), repeat=len(weights))
    ]
    return np.array([y / (np.sort(y)[::-1] @ weights) for y in all_gains if y.any()])


I2 = np.eye(2)
DIAMOND = np.vstack([np.eye(3), -np.eye(3)])
POLYTOPES = [
    (po.Simplex(2), np.eye(2)),
    (po.Simplex(5), np.eye(5)),
    (po.Cube(4), signs(4)),
    (po.Cube(3, 0.0, 1.0), (signs(3) + 1) / 2),
    (po.OrderSimplex(1), staircases(1)),
    (po.OrderSimplex(5), staircases(5)),
    (po.Hypersimplex(5, 2), subsets(5, 2)),
    (po.Hypersimplex(4, 3), subsets(4, 3)),
    (po.Permutahedron((3.0, 2.0, 1.0, 0.0)), orders([3.0, 2.0, 1.0, 0.0])),
    (po.Permutahedron((1.0, 0.5, 0.5, -2.0)), orders([1.0, 0.5, 0.5, -2.0])),
    (po.Permutahedron((1.0, 0.0)), orders([1.0, 0.0])),
    (po.Birkhoff(2), matchings(2)),
    (po.Birkhoff(4), matchings(4)),
    (po.Positions(1, 3), np.eye(3)),
    (po.Positions(3, 2), np.array([np.r_[a, b, c] for a in I2 for b in I2 for c in I2])),
    (po.Chain(1, 3), walks(1, 3)),
    (po.Chain(3, 2), walks(3, 2)),
    (po.Chain(4, 3), walks(4, 3)),
    (po.Relevance((1.0,)), gains((1.0,), 0, 1)),
    (po.Relevance((1.0, 0.63, 0.5)), gains((1.0, 0.63, 0.5), 0, 2)),
    (po.Relevance((1.0, 0.63, 0.5, 0.4)), gains((1.0, 0.63, 0.5, 0.4), 0, 1)),
    (po.Relevance((1.0, 1.0, 0.0, 0.0)), gains((1.0, 1.0, 0.0, 0.0), 0, 1)),
    (po.PositiveRelevance((1.0, 0.63, 0.5), 1, 3), gains((1.0, 0.63, 0.5), 1, 3)),
    (po.Affine(po.Simplex(3), -1.0, 1.0), 1.0 - np.eye(3)),
    (po.Affine(po.Hypersimplex(4, 2), 0.5), 0.5 * subsets(4, 2)),
    (po.Hull(3, lambda v: DIAMOND[np.argmax(DIAMOND @ v)]), DIAMOND),
]
#: Polytopes whose mixtures come from Frank-Wolfe, up to its tolerance.
BY_SOLVER = (po.Hull, po.Relevance, po.PositiveRelevance)
every_polytope = pytest.mark.parametrize(
    "hull, vertices", POLYTOPES, ids=[f"{type(h).__name__}-{h.dim}" for h, _ in POLYTOPES]
)


def points(dim):
    entry = st.one_of(st.floats(-4, 4), st.sampled_from([0.0, 1.0, -1.0, 0.5, 1e-9, 100.0]))
    return st.lists(entry, min_size=dim, max_size=dim).map(np.array)


def mixtures(vertices):
    """Points of the hull: mixtures of all vertices, of few, and vertices themselves."""
    count = len(vertices)
    some = st.lists(st.integers(0, count - 1), min_size=1, max_size=4)
    shares = st.lists(st.floats(0.01, 1), min_size=4, max_size=4)
    few = st.builds(
        lambda i, s: np.average(vertices[i], axis=0, weights=np.array(s)[: len(i)]), some, shares
    )
    many = st.integers(0, 10**6).map(
        lambda seed: np.random.default_rng(seed).dirichlet(np.ones(count)) @ vertices
    )
    return st.one_of(few, many)


@every_polytope
@given(data=st.data())
def test_maximize_finds_the_best_vertex(hull, vertices, data):
    direction = data.draw(points(hull.dim))
    best = hull.maximize(direction)
    assert (np.abs(vertices - best).max(axis=1) < 1e-12).any()
    assert best @ direction == pytest.approx((vertices @ direction).max(), abs=1e-9)


@every_polytope
@given(data=st.data())
def test_project_satisfies_its_variational_inequality(hull, vertices, data):
    point = data.draw(points(hull.dim))
    nearest = hull.project(point)
    scale = 1.0 + np.abs(point).max()
    assert ((vertices - nearest) @ (point - nearest)).max() <= 1e-9 * scale
    again = hull.decompose(nearest).mean  # and it lies inside
    np.testing.assert_allclose(again, nearest, atol=2e-5 if isinstance(hull, BY_SOLVER) else 1e-9)


@every_polytope
@given(data=st.data())
def test_project_keeps_points_of_the_hull(hull, vertices, data):
    point = data.draw(mixtures(vertices))
    np.testing.assert_allclose(
        hull.project(point), point, atol=2e-5 if "solve" in dir(hull) else 1e-12
    )


@every_polytope
@given(data=st.data())
def test_decompose_reproduces_the_point_with_few_vertices(hull, vertices, data):
    point = data.draw(mixtures(vertices))
    mixture = hull.decompose(point)
    assert (mixture.weights > 0).all() and mixture.weights.sum() == pytest.approx(1.0)
    assert len(mixture.weights) <= hull.most_vertices
    for vertex in mixture.vertices:
        assert (np.abs(vertices - vertex).max(axis=1) < 1e-12).any()
    tolerance = 2e-5 if isinstance(hull, BY_SOLVER) else 1e-10
    np.testing.assert_allclose(mixture.mean, point, atol=tolerance)


@pytest.mark.parametrize("d", [10, 50, 200])
def test_large_permutahedra(d):
    generator = np.random.default_rng(d)
    hull = po.Permutahedron(np.sort(generator.standard_normal(d))[::-1])
    point = hull.project(2 * generator.standard_normal(d))
    mixture = hull.decompose(point)
    assert len(mixture.weights) <= d
    np.testing.assert_allclose(mixture.mean, point, atol=1e-10)


@pytest.mark.parametrize("task", [*map(dl.tasks.LabelRanking, [10, 50, 200]), dl.tasks.Matching(7)])
def test_draws_of_many_decisions_have_the_right_mean(task):
    generator = np.random.default_rng(task.dim)
    point = task.label_hull.project(task.dim * generator.standard_normal(task.dim))
    mean = task.loss_factor * point
    drawn = [task.encode(task.draw(mean, generator.random(1))) for _ in range(4000)]
    spread = np.ptp(drawn[0])
    assert np.abs(np.mean(drawn, axis=0) - point).max() < 0.05 * spread


@pytest.mark.parametrize("n", [5, 10, 20])
def test_large_birkhoff_decompositions(n):
    generator = np.random.default_rng(n)
    matrix = generator.random((n, n))
    for _ in range(2000):
        matrix /= matrix.sum(axis=0)
        matrix /= matrix.sum(axis=1, keepdims=True)
    hull = po.Birkhoff(n)
    mixture = hull.decompose(matrix.ravel())
    assert len(mixture.weights) <= (n - 1) ** 2 + 1
    np.testing.assert_allclose(mixture.mean, matrix.ravel(), atol=1e-10)


# -- chains


def naive_marginals(theta, n, k):
    """The sum over all sequences."""
    vertices = walks(n, k)
    scores = vertices @ theta
    top = scores.max()
    weights = np.exp(scores - top)
    return top + np.log(weights.sum()), weights @ vertices / weights.sum()


@pytest.mark.parametrize("n, k", [(1, 3), (2, 2), (5, 3), (4, 4)])
@pytest.mark.parametrize("scale", [0.1, 1.0, 10.0, 1e4])
def test_forward_backward_equals_the_sum_over_all_sequences(n, k, scale):
    hull = po.Chain(n, k)
    generator = np.random.default_rng(n + k)
    for _ in range(5):
        theta = scale * generator.standard_normal(hull.dim)
        normaliser, marginals = hull.marginals(theta)
        expected = naive_marginals(theta, n, k)
        assert normaliser == pytest.approx(expected[0], rel=1e-12)
        np.testing.assert_allclose(marginals, expected[1], atol=1e-10)
        nodes, edges = hull.split(marginals)
        np.testing.assert_allclose(nodes.sum(axis=1), 1.0)
        np.testing.assert_allclose(edges.sum(axis=2), nodes[:-1], atol=1e-10)
        np.testing.assert_allclose(edges.sum(axis=1), nodes[1:], atol=1e-10)


def test_the_gradient_of_the_normaliser_is_the_marginals():
    hull = po.Chain(4, 3)
    theta = np.random.default_rng(0).standard_normal(hull.dim)
    direction = np.cos(np.arange(hull.dim))
    ahead, behind = (hull.marginals(theta + s * 1e-5 * direction)[0] for s in (1, -1))
    slope = (ahead - behind) / 2e-5
    assert slope == pytest.approx(hull.marginals(theta)[1] @ direction, abs=1e-8)


def test_frank_wolfe_reaches_a_small_gap_on_a_chain():
    hull = po.Chain(10, 5, tolerance=1e-9)
    target = np.random.default_rng(0).standard_normal(hull.dim)
    active, gap = hull.solve(target)
    assert gap <= 1e-8 and len(active) <= hull.most_vertices
    np.testing.assert_allclose(active.point, nearest_flow(hull, target), atol=1e-4)


def nearest_flow(hull, target, rounds=20_000):
    """The same point as a quadratic program: nonnegative, and what flows in flows out."""
    n, k = hull.length, hull.tags
    rows, right = [], []

    def add(value, **parts):
        row = np.zeros(hull.dim)
        nodes, edges = hull.split(row)
        for t, i, sign in parts.get("nodes", ()):
            nodes[t, i] += sign
        for t, i, j, sign in parts.get("edges", ()):
            edges[t, i, j] += sign
        rows.append(row)
        right.append(value)

    add(1.0, nodes=[(0, i, 1.0) for i in range(k)])
    for t in range(n - 1):
        for i in range(k):
            add(0.0, nodes=[(t, i, -1.0)], edges=[(t, i, j, 1.0) for j in range(k)])
            add(0.0, nodes=[(t + 1, i, -1.0)], edges=[(t, j, i, 1.0) for j in range(k)])
    A, b = np.array(rows), np.array(right)
    back = np.linalg.pinv(A)
    x, memory = target.copy(), np.zeros(hull.dim)
    for _ in range(rounds):
        y = x - back @ (A @ x - b)
        z = np.maximum(y + memory, 0.0)
        memory = y + memory - z
        if np.abs(z - x).max() < 1e-12:
            break
        x = z
    return x


# -- Frank-Wolfe


def test_frank_wolfe_reaches_a_small_gap_on_the_birkhoff_polytope():
    generator = np.random.default_rng(0)
    for n in (3, 6, 10):
        hull = po.Birkhoff(n, tolerance=1e-9)
        for _ in range(3):
            target = generator.standard_normal(n * n)
            active, gap = hull.solve(target)
            assert gap <= 1e-8 and len(active) <= hull.most_vertices
            assert active.weights.sum() == pytest.approx(1.0)
            np.testing.assert_allclose(
                active.point, dykstra(target.reshape(n, n)).ravel(), atol=1e-4
            )


def dykstra(matrix, rounds=20_000):
    """Nearest doubly stochastic matrix by alternating projections with memory."""
    n = len(matrix)
    x, p = matrix.copy(), np.zeros_like(matrix)
    for _ in range(rounds):
        y = x + (1 - x.sum(1, keepdims=True)) / n
        y += (1 - y.sum(0, keepdims=True)) / n
        z = np.maximum(y + p, 0.0)
        p = y + p - z
        if np.abs(z - x).max() < 1e-12:
            break
        x = z
    return x


def test_a_warm_start_saves_work_and_leaves_its_start_alone():
    hull = po.Birkhoff(6)
    generator = np.random.default_rng(1)
    target = generator.standard_normal(36)
    active, _ = hull.solve(target)
    before = active.weights.copy()
    cached = po.CachedOracle(hull.maximize)
    nearest_point(cached, target + 1e-6, hull.most_vertices, active)
    cold = po.CachedOracle(hull.maximize)
    nearest_point(cold, target + 1e-6, hull.most_vertices)
    assert cached.calls < cold.calls
    np.testing.assert_array_equal(active.weights, before)


def test_an_active_set_is_never_larger_than_it_must_be():
    generator = np.random.default_rng(2)
    active = ActiveSet(generator.standard_normal(3))
    for _ in range(9):
        active.pull(active.find(generator.standard_normal(3)), 0.2)
    point = active.point
    active.tidy(most=4)
    assert len(active) <= 4 and (active.weights >= 0).all()
    np.testing.assert_allclose(active.point, point, atol=1e-12)


@pytest.mark.parametrize("n", [2, 3, 5, 9])
@pytest.mark.parametrize("seed", examples(4, 40))
def test_the_dual_projection_of_matchings_is_that_of_frank_wolfe(n, seed):
    rng = np.random.default_rng([n, seed])
    hull, scale = po.Birkhoff(n), 10.0 ** rng.uniform(-4, 3)
    point = scale * rng.standard_normal(n * n)
    if seed % 4 == 3:
        point = scale * rng.integers(-1, 2, n * n)  # many ties
    found, gap = hull.nearest(point)
    rows = found.reshape(n, n)
    for sums in (rows.sum(axis=0), rows.sum(axis=1)):
        np.testing.assert_allclose(sums, 1.0, atol=1e-12 * max(1.0, scale))
    assert (found >= 0.0).all() and 0.0 <= gap <= 1e-9 * max(1.0, scale)
    towards = (point - found) @ (hull.maximize(point - found) - found)  # the gap of Frank-Wolfe
    assert towards <= 1e-10 * max(1.0, scale)
    active, left = nearest_point(hull.maximize, point, hull.most_vertices, None, 1e-9)
    assert ((active.point - found) ** 2).sum() <= 2.0 * left + 1e-8 * max(1.0, scale)


@pytest.mark.parametrize("n", [2, 4, 7])
def test_the_oracle_of_matchings_finds_the_best_assignment(n):
    from scipy.optimize import linear_sum_assignment

    rng, hull = np.random.default_rng(n), po.Birkhoff(n)
    for _ in range(50):
        matrix = rng.integers(-3, 4, (n, n)) * 10.0 ** rng.integers(-2, 3)
        best = matrix[linear_sum_assignment(matrix, maximize=True)].sum()
        assert np.isclose(hull.maximize(matrix.ravel()) @ matrix.ravel(), best)


@pytest.mark.parametrize("bad", [np.inf, -np.inf, np.nan])
def test_the_assignment_is_one_whatever_stands_in_the_scratch_space(bad):
    n = 4
    scratch, out = np.full(n + birkhoff_kernels.assign_room(n), 1e6), np.empty(n * n)
    birkhoff_kernels.maximize(np.full(n * n, bad), np.array([float(n)]), scratch, out)
    assert (out.reshape(n, n).sum(axis=0) == 1.0).all()
    assert (out.reshape(n, n).sum(axis=1) == 1.0).all()


def test_matchings_are_projected_where_positive_entries_fall_into_blocks():
    rng = np.random.default_rng(0)
    for _ in range(100):  # some per cent of such points need it
        nearest = po.Birkhoff(8).project(10.0 * (rng.random(64) < 0.25)).reshape(8, 8)
        assert nearest.sum(axis=0) == pytest.approx(1.0, abs=1e-9)
        assert nearest.sum(axis=1) == pytest.approx(1.0, abs=1e-9)


def test_rounding_along_cycles_keeps_the_mean():
    rng, task = np.random.default_rng(0), dl.tasks.Matching(4)
    point = task.label_hull.project(0.3 * rng.standard_normal(16))
    made = [task.draw(task.loss_factor * point, u) for u in rng.random((20_000, 1))]
    drawn = np.eye(4)[np.array(made)].reshape(len(made), -1)
    error = np.sqrt(point * (1.0 - point) / len(drawn))
    assert (np.abs(drawn.mean(axis=0) - point) <= 4.5 * error + 1e-9).all()
    assert len(np.unique(drawn, axis=0)) > 10


def test_the_limit_of_iterations_is_a_warning_with_the_gap(monkeypatch):
    chain = po.Chain(4, 3)
    hull = po.Hull(chain.dim, chain.maximize, most=chain.most_vertices)
    target = np.random.default_rng(3).standard_normal(hull.dim)
    active, gap = nearest_point(hull.maximize, target, hull.most_vertices, iterations=3)
    assert gap > 1e-9
    monkeypatch.setattr(po.SolvedPolytope, "iterations", 3)
    with pytest.warns(po.SolverWarning, match="duality gap of"):
        np.testing.assert_array_equal(hull.project(target), active.point)


@pytest.mark.parametrize("steps", ["pairwise", "away"])
@pytest.mark.parametrize(
    "hull", [po.Birkhoff(5), po.Chain(6, 3), po.Hull(3, lambda v: DIAMOND[np.argmax(DIAMOND @ v)])]
)
def test_both_kinds_of_steps_reach_the_same_point(hull, steps):
    for seed in range(5):
        target = np.random.default_rng(seed).standard_normal(hull.dim)
        active, gap = nearest_point(
            hull.maximize, target, hull.most_vertices, tolerance=1e-11, steps=steps
        )
        assert gap <= 1e-11 and len(active) <= hull.most_vertices
        assert (active.weights > 0).all() and active.weights.sum() == pytest.approx(1.0)
        np.testing.assert_allclose(active.point, hull.project(target), atol=2e-5)


def test_any_convex_function_can_be_minimised():
    class Softmax:  # log-sum-exp plus a linear function, on the simplex
        def __init__(self, tilt):
            self.tilt = tilt

        def descent(self, point):
            powers = np.exp(point - point.max())
            return self.tilt - powers / powers.sum()

        def step(self, point, direction, limit):
            low, high = 0.0, limit
            for _ in range(60):
                middle = (low + high) / 2
                if self.descent(point + middle * direction) @ direction > 0:
                    low = middle
                else:
                    high = middle
            return low

    hull, tilt = po.Simplex(4), np.array([0.3, 0.25, 0.2, 0.1])
    active, gap = po.minimize(Softmax(tilt), hull.maximize, ActiveSet(np.eye(4)[0]), 4, 1e-10)
    down = Softmax(tilt).descent(active.point)
    assert gap <= 1e-10 and down.max() - down @ active.point <= 1e-10


def test_an_oracle_of_the_wrong_shape_is_named():
    broken = po.Hull(3, lambda v: np.zeros(2))
    with pytest.raises(dl.InputError, match="shape"):
        broken.project(np.ones(3))


@pytest.mark.parametrize(
    "make, words",
    [
        (lambda: po.Hypersimplex(3, 3), "between 1 and 2"),
        (lambda: po.Permutahedron((1.0, 2.0)), "decreasing"),
        (lambda: po.Simplex(3).project([1.0, 2.0]), "size 3"),
        (lambda: po.Simplex(2).project([1.0, np.nan]), "finite"),
        (lambda: po.Chain(0, 3), "1 position or more"),
        (lambda: po.Chain(3, 1), "2 tags or more"),
        (lambda: po.Chain(3, 2).vertex([0, 1]), "expected 3 tags"),
        (lambda: po.Chain(2, 2).decompose(np.full(8, 0.1)), "no vector of marginals"),
        (lambda: po.Birkhoff(2).decompose([0.9, 0.0, 0.0, 0.9]), "doubly stochastic"),
    ],
)
def test_bad_input_is_named(make, words):
    with pytest.raises(dl.InputError, match=words):
        make()
