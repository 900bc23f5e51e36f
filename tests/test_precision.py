"""Learners with weights of single precision."""

import copy

import numpy as np
import pytest
from scipy import sparse

import driftline as dl
from driftline import inputs

SINGLE = np.float32


def stream(rounds=3000, classes=4, features=30, seed=0):
    """Return unit inputs and the labels of a teacher who changes in the middle."""
    generator = np.random.default_rng(seed)
    X = generator.standard_normal((rounds, features))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    first, second = generator.standard_normal((2, classes, features))
    y = np.r_[np.argmax(X[: rounds // 2] @ first.T, 1), np.argmax(X[rounds // 2 :] @ second.T, 1)]
    return X, y


def learner(dtype=SINGLE, classes=4, family=dl.losses.Logistic, **options):
    return dl.OGD(family(dl.tasks.Multiclass(classes)), dtype=dtype, **options)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("family", [dl.losses.Logistic, dl.losses.SmoothHinge])
def test_single_is_close_to_double(kind, intercept, family):
    X, y = stream()
    X = X.astype(SINGLE)
    options = {"family": family, "intercept": intercept}
    one, two = learner(**options), learner(np.float64, **options)
    a, b = one.run(kind(X), y), two.run(kind(X), y)
    for name in ("loss", "risk", "eta", "grad_sq"):
        np.testing.assert_allclose(
            getattr(a, name), getattr(b, name), rtol=1e-4, atol=1e-4, err_msg=name
        )
    assert a.loss.sum() == pytest.approx(b.loss.sum(), rel=1e-6)
    np.testing.assert_allclose(one.weights, two.weights, atol=1e-4)


@pytest.mark.parametrize("features", [5, 2000], ids=["dense", "sparse"])
@pytest.mark.parametrize("intercept", [False, True])
def test_single_is_close_to_double_over_items(features, intercept):
    generator = np.random.default_rng(0)
    planted, made = generator.standard_normal(features), []
    sizes = generator.integers(3, 7, 150)
    queries = [sparse.random_array((n, features), density=0.4, rng=generator) for n in sizes]
    queries = [query.tocsr().astype(SINGLE) for query in queries]
    labels = [(query @ planted > 0).astype(int) for query in queries]
    loss = dl.losses.ConvolutionalFenchelYoung(dl.tasks.NDCG(max_relevance=1))
    for dtype in (SINGLE, np.float64):
        one = dl.OGD(loss, dtype=dtype, intercept=intercept)
        made.append((one.run(queries, labels), one.weights))
        assert one.weights.dtype == dtype
    (a, first), (b, second) = made
    for name in ("loss", "risk", "eta", "grad_sq"):
        np.testing.assert_allclose(getattr(a, name), getattr(b, name), rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(first, second, atol=1e-4)


def test_the_type_is_kept():
    X, y = stream(200)
    one = learner()
    first = one.state
    trace = one.run(X, y)
    assert one.weights.dtype == trace.first_weights.dtype == SINGLE
    assert all(getattr(trace, name).dtype == np.float64 for name in ("loss", "eta", "grad_sq"))
    assert one.scores(X[0]).dtype == np.float64
    weights = one.weights
    one.step(X[0], int(y[0]))
    assert one.weights.dtype == SINGLE
    one.run(sparse.csr_array(X), y)
    assert one.weights.dtype == SINGLE
    later = one.state
    one.run(X, y)
    one.restore(later)
    one.restore(first)
    again = one.run(X, y)
    assert one.weights.dtype == SINGLE
    np.testing.assert_array_equal(one.weights, weights)
    np.testing.assert_array_equal(again.loss, trace.loss)
    assert copy.deepcopy(one).weights.dtype == SINGLE
    assert learner(initial=np.eye(4)).weights.dtype == SINGLE
    assert "float32" in repr(one) and one._config()["dtype"] == "float32"


def test_inputs_of_the_type_are_not_copied():
    X = np.ones((5, 3), dtype=SINGLE)
    (same,) = inputs.rows_of(X).arrays(1, 3, SINGLE)
    assert np.shares_memory(same, X)
    thin = sparse.csr_array(X)
    assert np.shares_memory(inputs.rows_of(thin).arrays(1, 3, SINGLE)[0], thin.data)


def test_weights_stay_in_the_ball():
    X, y = stream(20_000, features=3)
    one = learner(domain=dl.domains.Ball(1.0))
    one.run(4.0 * X, y)
    assert np.linalg.norm(one.weights) <= 0.5 * (1 + 1e-5)


@pytest.mark.parametrize("size", [1e-3, 1e-9, 1e-15, 1e-18, 1e-30, 1e15])
def test_inputs_of_odd_sizes(size):
    loss = dl.losses.Scaled(dl.losses.SmoothHinge(dl.tasks.Multiclass(2)), 4.0)
    one = dl.OGD(loss, dl.decoders.Argmax(loss), dl.rates.Polyak(monotone=False), dtype=SINGLE)
    for power in (size, 1.0, size, size, 1e-2):
        one.step(np.array([power, power]), 1)
        one.step(np.array([power, -power]), 0)
    assert np.isfinite(one.weights).all()
    assert np.linalg.norm(one.weights) <= 10 * (1 + 1e-5)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("entry", [np.nan, np.inf, 1e25, 1e200])
@pytest.mark.parametrize("rounds", [2, 300])
def test_what_does_not_fit_is_refused(kind, entry, rounds):
    X, y = stream(rounds)
    one = learner()
    one.run(X, y)
    before = one.weights
    X[-1, 2] = entry
    with pytest.raises(dl.InputError, match=f"row {rounds - 1}"):
        one.run(kind(X), y)
    np.testing.assert_array_equal(one.weights, before)
    with pytest.raises(dl.InputError, match="the input"):
        one.step(kind(X)[[-1]], 0)
    np.testing.assert_array_equal(one.weights, before)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("diameter", [1.0, 20.0])
def test_certificates_hold_to_rounding(kind, diameter):
    X, y = stream()
    X = X.astype(SINGLE)
    generator = np.random.default_rng(1)
    pieces = generator.standard_normal((3, 4, 30)) * 0.03 * diameter / 20.0
    comparator = dl.comparators.Piecewise([0, 1000, 1500], list(pieces))
    made = []
    for dtype in (SINGLE, np.float64):
        one = learner(dtype, domain=dl.domains.Ball(diameter))
        trace = one.run(kind(X), y)
        made.append(dl.certify(trace, comparator, kind(X), y))
    single, double = made
    assert single.valid and not single.findings
    assert single.expected <= single.exact * (1 + 1e-6)
    for name in ("expected", "exact", "diameter", "weighted_bound"):
        assert getattr(single, name) == pytest.approx(getattr(double, name), rel=1e-4), name


def test_a_second_run_can_be_certified():
    X, y = stream()
    one = learner(domain=dl.domains.Ball(2.0))  # the weights are a scale times an array by then
    one.run(X, y)
    trace = one.run(X, y)
    certificate = dl.certify(trace, dl.comparators.Fixed(np.zeros((4, 30))), X, y)
    assert certificate.valid and not certificate.findings


def test_an_account_is_kept_as_an_audit_finds_it():
    X, y = stream()
    comparator = dl.comparators.Fixed(np.full((4, 30), 0.05))
    one = learner()
    one.run(X[:10], y[:10])
    one.watch(comparator)
    trace = one.run(X[10:], y[10:])
    audit = dl.certify(trace, comparator, X[10:], y[10:])
    assert dl.certify(one).exact == pytest.approx(audit.exact, rel=1e-5)


class Plain(dl.domains.Ball):
    """A ball that the compiled engine does not know."""

    radius = None


def test_what_is_not_offered_is_refused():
    loss = dl.losses.Logistic(dl.tasks.Multiclass(3))
    with pytest.raises(dl.InputError, match="float64 or float32, not int64"):
        dl.OGD(loss, dtype=np.int64)
    with pytest.raises(dl.InputError, match="parts without kernels"):
        dl.OGD(loss, domain=Plain(2.0), dtype=SINGLE)
