"""The projection onto the marginals of a chain, and SparseMAP of sequences with transitions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array, vstack

import driftline as dl
from driftline.engines import CompiledEngine
from driftline.polytopes.flow_kernels import flow_room, project_flow
from tests import naive
from tests.howmany import examples, number

T, L, D, R = dl.tasks, dl.losses, dl.decoders, dl.rates

GUARD = 12345.678


def project(point, tags, length):
    """Return the projection and its gap, from a scratch space full of NaN with guards around it."""
    room = flow_room(length, tags)
    scratch, out = np.full(room + 8, np.nan), np.full(point.size + 8, GUARD)
    scratch[room:] = GUARD
    project_flow(point, np.array([1.0, tags]), scratch[:room], out[: point.size])
    assert (scratch[room:] == GUARD).all() and (out[point.size :] == GUARD).all()
    return out[: point.size], float(scratch[0])


def check_flow(point, mu, gap, length, tags, tolerance=1e-9):
    """Check that the answer is a flow, and that its gap is that of the best sequence."""
    hull = dl.polytopes.Chain(length, tags)
    nodes, edges = hull.split(mu)
    assert (mu >= 0.0).all()
    np.testing.assert_allclose(nodes.sum(axis=1), 1.0, atol=1e-12)
    np.testing.assert_allclose(edges.sum(axis=2), nodes[:-1], atol=1e-12)
    np.testing.assert_allclose(edges.sum(axis=1), nodes[1:], atol=1e-12)
    size = max(1.0, np.abs(point).max())
    down = point - mu
    true = down @ (hull.maximize(down) - mu)
    rounding = 1e-15 * size * (2 * length - 1) * (2 * length)
    assert true <= gap + rounding and gap <= tolerance * size
    return true


def random_point(rng, length, tags, size, shared):
    nodes = size * rng.standard_normal(length * tags)
    edges = size * rng.standard_normal((length - 1, tags * tags))
    return np.concatenate([nodes, (edges * 0.0 + edges[:1] if shared else edges).ravel()])


@settings(max_examples=number(30, 200))
@given(seed=st.integers(0, 10**6))
def test_projections_are_those_over_all_sequences(seed):
    rng = np.random.default_rng(seed)
    length, tags = [(1, 5), (2, 2), (2, 6), (3, 3), (4, 2), (4, 3), (6, 2)][seed % 7]
    point = random_point(rng, length, tags, rng.choice([0.01, 0.1, 0.4, 1.0, 3.0, 20.0]), seed % 2)
    if seed % 5 == 0:
        point = np.round(2.0 * point) / 2.0  # ties
    mu, gap = project(point, tags, length)
    check_flow(point, mu, gap, length, tags)
    nodes, edges = dl.polytopes.Chain(length, tags).split(point)
    expected, *_ = naive.nearest_marginals(nodes, edges, 1.0)
    np.testing.assert_allclose(mu, expected, atol=1e-9)


@given(seed=st.integers(0, 10**6))
def test_gaps_are_small_at_any_length_and_size_of_scores(seed):
    rng = np.random.default_rng(seed)
    length, tags = int(np.exp(rng.uniform(0, 5))), int(np.exp(rng.uniform(0.7, 3)))
    size = 10.0 ** rng.uniform(-9, 6)
    point = random_point(rng, length, tags, size, rng.random() < 0.7)
    if rng.random() < 0.3:
        point = size * np.round(2.0 * point / size)
    mu, gap = project(point, tags, length)
    check_flow(point, mu, gap, length, tags, 1e-7)  # one in some thousand is above 1e-9


@pytest.mark.parametrize("seed", examples(4, 30))
@pytest.mark.parametrize(("length", "tags"), [(300, 3), (25, 50), (120, 8), (2, 50), (500, 2)])
def test_long_sequences_and_many_tags(length, tags, seed):
    rng = np.random.default_rng(seed)
    size = [0.3, 1.0, 3.0, 10.0][seed % 4]
    point = random_point(rng, length, tags, size, True)
    check_flow(point, *project(point, tags, length), length, tags, 1e-8)


@pytest.mark.parametrize("value", [0.0, 1.0, -3.0, 1e-300, 1e6, -1e50])
@pytest.mark.parametrize(("length", "tags"), [(1, 2), (2, 3), (7, 5), (30, 26), (200, 2)])
def test_equal_scores_are_mixed_equally(length, tags, value):
    hull = dl.polytopes.Chain(length, tags)
    mu, gap = project(np.full(hull.dim, value), tags, length)
    nodes, edges = hull.split(mu)
    if abs(value) < 1e10:  # beyond, ties are lost in rounding
        np.testing.assert_allclose(nodes, 1.0 / tags, atol=1e-9)
        np.testing.assert_allclose(edges, 1.0 / tags**2, atol=1e-9)
    assert gap <= 1e-10 * max(1.0, abs(value))
    assert np.isfinite(mu).all()


def test_two_tied_sequences_get_a_half_each_however_large_scores_are():
    hull = dl.polytopes.Chain(6, 4)
    one, two = hull.vertex([0, 1, 2, 3, 0, 1]), hull.vertex([1, 1, 0, 0, 0, 2])
    for size in (10.0, 1e3, 2.0**40, 2.0**300):
        point = size * np.maximum(one, two)  # and mixtures of their pieces, which meet twice
        mu, gap = project(point, 4, 6)
        check_flow(point, mu, gap, 6, 4)
        np.testing.assert_allclose(mu, (one + two) / 2.0, atol=1e-9)
    mu, _ = project(one, 4, 6)
    np.testing.assert_allclose(mu, one, atol=1e-12)  # a label's own encoding stays


def test_scores_far_from_all_others_are_decided():
    rng = np.random.default_rng(0)
    hull = dl.polytopes.Chain(9, 6)
    for size in (1e3, 1e9, 1e15, 1e100, 1e300):
        point = size * rng.standard_normal(hull.dim)
        mu, gap = project(point, 6, 9)
        assert np.array_equal(mu, hull.maximize(point)) and gap == 0.0


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_scores_that_are_not_numbers_are_noticed(bad):
    for place in (0, 7, 12, 38):
        point = np.zeros(39)
        point[place] = bad
        mu, gap = project(point, 3, 4)
        assert np.isnan(mu).all() and np.isnan(gap)


def test_projections_are_those_of_frank_wolfe():
    rng = np.random.default_rng(1)
    for length, tags in ((3, 4), (8, 3)):
        hull = dl.polytopes.Chain(length, tags, tolerance=1e-12)
        for size in (0.1, 1.0, 5.0):
            point = random_point(rng, length, tags, size, True)
            active, gap = hull.solve(point)
            found, own = hull.nearest(point)
            bound = np.sqrt(2.0 * (gap + own)) + 1e-9  # half the squared distance
            assert np.linalg.norm(found - active.point) <= bound


# -- the loss and its decoder


def sparsemap(tags, scale=None):
    loss = L.SparseMAP(T.Sequence(tags))
    return L.SparseMAP(loss.task, scale or 2.0 * loss.nearest_vertex_ratio)


@given(seed=st.integers(0, 10**6))
def test_compiled_rounds_are_those_of_the_formulas(seed):
    rng = np.random.default_rng(seed)
    length, tags = [(1, 3), (2, 4), (3, 3), (5, 2)][seed % 4]
    loss = sparsemap(tags, rng.choice([3.0, 5.0]))
    decoder, task = D.NearestVertex(loss), loss.task
    theta = rng.choice([0.1, 1.0, 4.0, 30.0]) * rng.standard_normal((length + tags) * tags)
    label, longest = rng.integers(0, tags, length), theta.size + tags * rng.integers(0, 3)
    target, grad, mean = np.empty((3, theta.size))
    offset = task.kernels.encode(label, np.array(task.params(longest)), target)
    params, work = np.array(loss.params(longest)), np.full(loss.workspace(longest), np.nan)
    value = loss.kernels.loss(theta, target, params, work, grad)
    scratch = np.full(decoder.scratch(longest), np.nan)
    given = (np.array(decoder.params), work, 0, params, 0, scratch)
    risk = decoder.kernel(theta, target, offset, *given, mean)
    pairs = theta[length * tags :].reshape(tags, tags)
    nodes = theta[: length * tags].reshape(length, tags)
    expected = naive.sparsemap_round(nodes, pairs, label, loss.regularizer.scale)
    size = 1.0 + np.abs(theta).max()
    assert value == pytest.approx(expected[0], abs=1e-9 * size)
    np.testing.assert_allclose(grad, expected[1], atol=1e-8)
    assert risk == pytest.approx(expected[2], abs=1e-8)
    assert task.offset(label) + target @ mean == pytest.approx(risk, abs=1e-9)
    assert 0.0 <= work[loss.gap_place(longest)] <= 1e-9 * size


def test_the_entropy_of_sequences_runs_compiled_as_the_crf_does():
    task = T.Sequence(4)
    losses = L.FenchelYoung(task, dl.regularizers.Entropy(1.0)), L.CRF(task, base=np.e)
    rate = R.Decaying(0.3)
    learners = [dl.OGD(loss, D.Argmax(loss), rate) for loss in losses]
    assert all(type(learner.engine) is CompiledEngine for learner in learners)
    inputs, labels = words(4)
    one, two = (learner.run(inputs, labels) for learner in learners)
    np.testing.assert_allclose(one.loss, two.loss, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(one.grad_sq, two.grad_sq, rtol=1e-8, atol=1e-9)
    assert np.array_equal(one.prediction, two.prediction)


def words(tags, rounds=30, longest=20, features=40, seed=0):
    """Return sequences of positions with few entries, of many lengths."""
    rng = np.random.default_rng(seed)
    inputs, labels = [], []
    for n in [1, 2, longest, *rng.integers(1, longest + 1, rounds - 3)]:
        y = (rng.integers(tags) + np.arange(n)) % tags
        x = np.where(rng.random((n, features)) < 0.1, rng.standard_normal((n, features)), 0.0)
        x[np.arange(n), y] += 1.0
        inputs.append(x / np.sqrt(4 * n))
        labels.append(y)
    return inputs, labels


def learner_of(tags, **rest):
    return dl.OGD(sparsemap(tags), seed=5, **rest)


@pytest.mark.parametrize("intercept", [False, True])
def test_sparse_positions_have_the_rounds_of_dense_ones(intercept):
    inputs, labels = words(5)
    dense, sparse = learner_of(5, intercept=intercept), learner_of(5, intercept=intercept)
    one = dense.run(inputs, labels)
    two = sparse.run([csr_array(x) for x in inputs], labels)
    assert type(sparse.engine) is CompiledEngine and sparse.engine.transposed
    for column in ("loss", "risk", "grad_sq"):
        first, second = getattr(one, column), getattr(two, column)
        np.testing.assert_allclose(first, second, rtol=1e-9, atol=1e-9)
    assert np.array_equal(one.prediction, two.prediction)
    assert one.gap.max() <= 1e-9 and two.gap.max() <= 1e-9
    np.testing.assert_allclose(dense.weights, sparse.weights, atol=1e-9)


def test_tickets_and_steps_have_the_bits_of_runs_on_sparse_positions():
    inputs, labels = words(4)
    whole, tickets, steps = learner_of(4), learner_of(4), learner_of(4)
    rows = vstack([csr_array(x) for x in inputs], format="csr")
    trace = whole.run((rows, np.cumsum([0, *map(len, inputs)])), labels)
    for t, (x, y) in enumerate(zip(inputs, labels, strict=True)):
        ticket = tickets.ask(csr_array(x))
        ticket = type(ticket).from_bytes(ticket.to_bytes())
        assert np.array_equal(ticket.prediction, trace.prediction[t][: len(y)])
        tickets.tell(ticket, y)
        assert steps.step(csr_array(x), y).loss == trace.loss[t]
    assert np.array_equal(whole.weights, tickets.weights)
    assert np.array_equal(whole.weights, steps.weights)


def test_committees_of_crf_and_sparsemap_are_certified(tmp_path):
    inputs, labels = words(4)
    crf = L.Scaled(L.CRF(T.Sequence(4)), 2.0)
    members = [dl.OGD(crf, D.Argmax(crf)), learner_of(4), learner_of(4, intercept=True)]
    committee = dl.Committee(members)
    trace = committee.run(inputs, labels, audit=True)
    certificate = dl.certify(trace, None, inputs, labels)
    assert certificate.valid, certificate.findings
    committee.save(tmp_path / "committee")
    again = dl.load(tmp_path / "committee")
    assert np.array_equal(again.predict(inputs[3]), committee.predict(inputs[3]))


def test_gaps_of_sparsemap_reach_traces_and_certificates():
    inputs, labels = words(3)
    learner = learner_of(3)
    trace = learner.run(inputs, labels, sample_weight=np.full(30, 2.0))
    assert trace.gap.shape == (30,) and 0.0 <= trace.gap.min() and trace.gap.max() <= 1e-8
    shape = learner.weights.shape
    comparator = np.random.default_rng(0).normal(size=shape) / 10
    weights = {"sample_weight": np.full(30, 2.0)}
    certificate = dl.certify(trace, dl.comparators.Fixed(comparator), inputs, labels, **weights)
    assert certificate.valid, str(certificate)


def test_draws_of_nearest_vertices_have_their_mean():
    inputs, labels = words(3, rounds=number(12, 30))
    learner = learner_of(3)
    learner.run(inputs, labels)
    rounds, start = number(2000, 20_000), learner.weights
    still = dl.OGD(learner.loss, learner.decoder, R.Constant(1e-12), seed=1, initial=start)
    trace = still.run([inputs[5]] * rounds, [labels[5]] * rounds)
    assert trace.target_loss.std() > 0.0
    error = 4.5 * trace.target_loss.std() / np.sqrt(rounds) + 1e-9
    assert abs(trace.target_loss.mean() - trace.risk.mean()) <= error
