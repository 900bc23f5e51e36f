"""Laws of structured tasks, their losses and decoders, by enumeration of all labels."""

import math

import numpy as np
import pytest
from howmany import number
from hypothesis import given
from hypothesis import strategies as st
from strategies import TASKS, bits

import driftline as dl
from driftline import polytopes as po

Q, E = dl.regularizers.Quadratic, dl.regularizers.Entropy


#: Fenchel-Young losses with a scale at which nearest-vertex decoding has a gap.
LOSSES = {
    "multilabel quadratic": ("tags", Q(1.0)),
    "multilabel entropy": ("tags", E(1.5)),
    "one tag quadratic": ("one tag", Q(1.2)),
    "fixed size quadratic": ("2 of 5", Q(2.0)),
    "fixed size entropy": ("2 of 5", E(1.0)),
    "ordinal quadratic": ("levels", Q(1.0)),
    "ranking quadratic": ("rankings", Q(1.0)),
    "matching quadratic": ("matchings", Q(1.5)),
    "matching entropy": ("matchings", E(1.0)),
    "signs quadratic": ("signs", Q(1.2)),
    "signs entropy": ("signs", E(1.5)),
    "classes quadratic": ("classes", Q(3.0)),
    "classes entropy": ("classes", E(1.5)),
}
every_loss = pytest.mark.parametrize("name", LOSSES)


def make_loss(name):
    task_name, regularizer = LOSSES[name]
    task, labels, _, naive = TASKS[task_name]
    return dl.losses.FenchelYoung(task, regularizer), labels, naive


def random_scores(dim, seed, scale=None):
    generator = np.random.default_rng(seed)
    scale = 10.0 ** generator.uniform(-2, 1.3) if scale is None else scale
    theta = scale * generator.standard_normal(dim)
    return np.round(theta, 1) if seed % 5 == 0 else theta  # some ties


# -- losses


@every_loss
@given(seed=st.integers(0, 10**6))
def test_the_mean_prediction_is_optimal(name, seed):
    """The variational inequality over all vertices, with the regularizer's own derivative."""
    loss, labels, _ = make_loss(name)
    theta = random_scores(loss.task.dim, seed)
    mu = loss.mean_prediction(theta)
    encodings = np.array([loss.task.encode(label) for label in labels])
    scale = loss.regularizer.scale
    if isinstance(loss.regularizer, Q):
        slope = theta - scale * mu
    elif isinstance(loss.task.label_hull, po.Cube):
        slope = theta - scale * np.arctanh(np.clip(mu, -1 + 1e-15, 1 - 1e-15))
        if np.abs(theta).max() > 6 * scale:
            return
    else:
        slope = theta - scale * (1 + np.log(np.maximum(mu, 1e-300)))
    inner = (encodings - mu) @ slope
    # where an entropy's mean sits at a bound, its derivative is lost to rounding
    if isinstance(loss.regularizer, Q) or np.abs(theta).max() < 15 * scale:
        assert inner.max() <= 1e-7 * (1 + np.abs(theta).max())


@every_loss
@given(seed=st.integers(0, 10**6))
def test_the_value_is_the_naive_maximum(name, seed):
    """Against the best mixture that a general solver finds."""
    from scipy.optimize import minimize, nnls

    loss, labels, _ = make_loss(name)
    theta = random_scores(loss.task.dim, seed, scale=1.0)
    encodings = np.array([loss.task.encode(label) for label in labels])
    hull, regularizer = loss.task.label_hull, loss.regularizer
    mu = loss.mean_prediction(theta)
    best = regularizer.conjugate(theta, hull)

    def mixed(logits):
        pi = np.exp(logits - logits.max())
        return pi / pi.sum() @ encodings

    def negative(point):
        return regularizer.value(point, hull) - theta @ point

    if isinstance(regularizer, Q):  # a least-squares problem in nonnegative weights
        system = np.vstack([encodings.T, np.full(len(labels), 1e4)])
        pi, _ = nnls(system, np.r_[theta / regularizer.scale, 1e4])
        found = pi / pi.sum() @ encodings
        np.testing.assert_allclose(mu, found, atol=1e-5)
    else:
        start, options = np.zeros(len(labels)), {"gtol": 1e-9}
        found = mixed(minimize(lambda x: negative(mixed(x)), start, options=options).x)
    near = 1e-8 if isinstance(regularizer, Q) else 1e-7  # its gradients are finite differences
    assert best == pytest.approx(-negative(found), abs=near)
    label = labels[seed % len(labels)]
    value, grad = loss.value_and_grad(theta, label)
    target = loss.task.encode(label)
    assert value == pytest.approx(best + regularizer.value(target, hull) - theta @ target, abs=1e-8)
    np.testing.assert_allclose(grad, mu - target, atol=1e-9)


@every_loss
@given(seed=st.integers(0, 10**6))
def test_convexity_gradient_and_self_bounding(name, seed):
    loss, labels, _ = make_loss(name)
    theta, other = (random_scores(loss.task.dim, seed + k) for k in (0, 1))
    label = labels[seed % len(labels)]
    value, grad = loss.value_and_grad(theta, label)
    there, _ = loss.value_and_grad(other, label)
    slack = 1e-8 * (1 + np.abs(theta).max() + np.abs(other).max())
    assert there >= value + grad @ (other - theta) - slack
    assert grad @ grad <= 2 * loss.self_bound * value + slack


@every_loss
def test_the_loss_is_zero_exactly_at_the_encoding(name):
    loss, labels, _ = make_loss(name)
    for label in labels[:5]:
        theta = 40 * loss.regularizer.scale * loss.task.encode(label)
        value, grad = loss.value_and_grad(theta, label)
        assert value == pytest.approx(0.0, abs=1e-9) and np.abs(grad).max() < 1e-6
        others = [other for other in labels if not np.array_equal(other, label)]
        assert min(loss.value_and_grad(theta, other)[0] for other in others) > 0.1


@every_loss
def test_the_gradient_is_the_derivative(name):
    loss, labels, _ = make_loss(name)
    for seed in range(1, 9):
        theta = random_scores(loss.task.dim, seed, scale=1.0)
        direction = np.cos(np.arange(theta.size) + 1.0)
        label = labels[seed % len(labels)]
        h = 1e-5
        ahead, behind = (loss.value_and_grad(theta + s * h * direction, label)[0] for s in (1, -1))
        slope = (ahead - behind) / (2 * h)
        assert slope == pytest.approx(loss.value_and_grad(theta, label)[1] @ direction, abs=1e-4)


# -- decoders


@every_loss
@given(seed=st.integers(0, 10**6))
def test_nearest_vertex_has_its_gap(name, seed):
    loss, labels, naive = make_loss(name)
    decoder = dl.decoders.NearestVertex(loss)
    assert 0 < decoder.surrogate_gap < 1
    near = random_scores(loss.task.dim, seed, scale=0.2)
    pair = loss.task.encode(labels[seed % len(labels)]) + loss.task.encode(labels[-1])
    for theta in (random_scores(loss.task.dim, seed), loss.regularizer.scale * pair / 2 + near):
        atoms, weights = decoder.distribution(theta)
        for y in labels:
            expected = sum(w * naive(a, y) for a, w in zip(atoms, weights, strict=True))
            risk = decoder.risk(theta, y)
            assert risk == pytest.approx(expected, abs=1e-7)
            value, grad = loss.value_and_grad(theta, y)
            assert risk <= (1 - decoder.surrogate_gap) * value + 1e-8
            assert value - risk >= 0.5 * decoder.rate_floor * (grad @ grad) - 1e-8


def test_the_gap_is_nearly_attained_by_sparsemap_on_the_cube():
    """Scores that put the mean half-way between two labels in one coordinate, all alike."""
    task = dl.tasks.Multilabel(3)
    loss = dl.losses.SparseMAP(task, 2.0)
    decoder = dl.decoders.NearestVertex(loss)
    worst = 0.0
    for level in np.linspace(-1, 1, 201):
        theta = np.full(3, 2.0 * level)
        for y in (np.ones(3, dtype=int), np.zeros(3, dtype=int)):
            value, _ = loss.value_and_grad(theta, y)
            if value > 1e-9:
                worst = max(worst, decoder.risk(theta, y) / value)
    assert worst == pytest.approx(1 - decoder.surrogate_gap, rel=0.05)


@pytest.mark.parametrize(
    "loss, gap",
    [
        (dl.losses.SparseMAP(dl.tasks.Multilabel(9), 1.0), 1 - 1 / 3),
        (dl.losses.FenchelYoung(dl.tasks.FixedSize(10, 2), E(1.0)), 1 - 2 * 2 / 10),
        (dl.losses.FenchelYoung(dl.tasks.Matching(5), E(1.0)), 1 - 1 / 2),
        (dl.losses.SparseMAP(dl.tasks.LabelRanking(4), 1.0), 1 - 0.6325),
        (dl.losses.SparseMAP(dl.tasks.Ordinal(10), 1.0), 1 - 1 / 3),
        (dl.losses.SparseMAP(dl.tasks.Matching(4), 1.0), 1 - math.sqrt(3) / 2),
    ],
)
def test_the_constants_of_the_notes(loss, gap):
    assert dl.decoders.NearestVertex(loss).surrogate_gap == pytest.approx(gap, abs=1e-4)


def test_too_small_a_scale_is_refused_with_the_one_that_would_do():
    loss = dl.losses.SparseMAP(dl.tasks.Multilabel(4), 0.25)
    with pytest.raises(dl.NoGuaranteeError, match="scale above 2 times"):
        dl.decoders.NearestVertex(loss)
    assert dl.decoders.NearestVertex(dl.losses.SparseMAP(dl.tasks.Multilabel(4), 0.51))


@every_loss
@given(seed=st.integers(0, 10**6))
def test_argmax_is_bounded_by_kappa(name, seed):
    loss, labels, naive = make_loss(name)
    decoder = dl.decoders.Argmax(loss)
    if math.isinf(decoder.kappa):
        return
    theta = random_scores(loss.task.dim, seed)
    best = loss.task.best_prediction(theta)
    for y in labels:
        value, _ = loss.value_and_grad(theta, y)
        assert naive(best, y) <= decoder.kappa * value + 1e-8


def test_an_unknown_kappa_is_infinite_and_refused():
    loss = dl.losses.FenchelYoung(dl.tasks.Matching(3), E(1.0))
    assert math.isinf(dl.decoders.Argmax(loss).kappa)
    with pytest.raises(dl.NoGuaranteeError):
        dl.OGD(loss, dl.decoders.Argmax(loss))


# -- several tags with the logistic loss, compiled

TAGS = dl.losses.Logistic(dl.tasks.Multilabel(5))


@given(seed=st.integers(0, 10**6))
def test_logistic_of_tags_is_the_mean_of_binary_ones(seed):
    theta = random_scores(5, seed)
    label = np.random.default_rng(seed).integers(0, 2, 5)
    value, grad = TAGS.value_and_grad(theta, label)
    one = dl.losses.Logistic(dl.tasks.Binary())
    parts = [one.value_and_grad([t], int(2 * y - 1)) for t, y in zip(theta, label, strict=True)]
    assert value == pytest.approx(np.mean([v for v, _ in parts]))
    np.testing.assert_allclose(grad, [g[0] / 5 for _, g in parts], atol=1e-15)
    assert grad @ grad <= 2 * TAGS.self_bound * value * (1 + 1e-12)


@given(seed=st.integers(0, 10**6))
@pytest.mark.parametrize("base", [2.0, 1.5, 3.0])
def test_coordinatewise_has_its_gap(seed, base):
    loss = dl.losses.Logistic(dl.tasks.Multilabel(4), base=base)
    decoder = dl.decoders.Coordinatewise(loss)
    theta = random_scores(4, seed)
    atoms, weights = decoder.distribution(theta)
    for y in bits(4):
        risk = decoder.risk(theta, y)
        expected = sum(w * np.mean(a != y) for a, w in zip(atoms, weights, strict=True))
        assert risk == pytest.approx(expected, abs=1e-12)
        value, grad = loss.value_and_grad(theta, y)
        assert risk <= (1 - decoder.surrogate_gap) * value * (1 + 1e-12)
        assert value - risk >= 0.5 * decoder.rate_floor * (grad @ grad) - 1e-13


def test_coordinatewise_is_the_gap_optimal_decoder_of_each_tag():
    binary = dl.decoders.GapOptimal(dl.losses.Logistic(dl.tasks.Binary()))
    decoder = dl.decoders.Coordinatewise(dl.losses.Logistic(dl.tasks.Multilabel(1)))
    for score in np.linspace(-8, 8, 41):
        for y in (0, 1):
            ours = decoder.risk(np.array([score]), [y])
            assert ours == pytest.approx(binary.risk(np.array([score]), 2 * y - 1))


# -- whole runs


def stream(name, rounds=150, features=6, seed=0):
    """Labels from a planted linear map that changes once."""
    task, *_ = TASKS[name]
    generator = np.random.default_rng(seed)
    X = generator.standard_normal((rounds, features))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    W = generator.standard_normal((2, task.dim, features))
    labels = [task.best_prediction(W[2 * t // rounds] @ X[t]) for t in range(rounds)]
    return X, np.array(labels), W


RUNS = [
    *((name, "NearestVertex") for name in LOSSES),
    *(
        (name, "Argmax")
        for name in LOSSES
        if name not in ("fixed size entropy", "matching entropy")
    ),
]


@pytest.mark.parametrize("name, decoder", RUNS)
def test_runs_stay_within_the_theorem(name, decoder):
    loss, _, _ = make_loss(name)
    X, y, W = stream(LOSSES[name][0], rounds=number(60, 150))
    if decoder == "Argmax":
        loss = dl.losses.Scaled(loss, 2 * dl.decoders.Argmax(loss).kappa)
    made = getattr(dl.decoders, decoder)(loss)
    learner = dl.OGD(loss, made, domain=dl.domains.Ball(20.0))
    trace = learner.run(X, y, seed=0)
    assert trace.admissible.mean() == 1.0
    U = [w * min(1.0, 10 / np.linalg.norm(w)) for w in W]
    total = sum(loss.value_and_grad(U[2 * t // len(y)] @ X[t], y[t])[0] for t in range(len(y)))
    path = np.linalg.norm(U[1] - U[0])
    assert trace.risk.sum() <= total + 20.0 / made.rate_floor * (10.0 + path)
    again = dl.OGD(loss, made, domain=dl.domains.Ball(20.0))
    rounds = [again.step(x, label) for x, label in zip(X[:20], y[:20], strict=True)]
    np.testing.assert_allclose([r.loss for r in rounds], trace.loss[:20])


@pytest.mark.parametrize("make", [dl.decoders.Coordinatewise, dl.decoders.Argmax])
def test_tags_run_compiled_with_the_same_result_as_plainly(make):
    from driftline.engines import CompiledEngine, PlainEngine

    X, y, _ = stream("tags")
    loss = dl.losses.Logistic(dl.tasks.Multilabel(4))
    if make is dl.decoders.Argmax:
        loss = dl.losses.Scaled(loss, 2.0)
    fast, slow = (dl.OGD(loss, make(loss), domain=dl.domains.Ball(6.0)) for _ in range(2))
    assert isinstance(fast.engine, CompiledEngine)
    slow.engine = PlainEngine(slow.parts)
    a, b = fast.run(X, y, seed=0), slow.run(X, y, seed=0)
    for column in ("loss", "risk", "target_loss", "eta", "grad_sq", "prediction"):
        np.testing.assert_allclose(getattr(a, column), getattr(b, column), atol=1e-10)
    assert a.prediction.shape == (150, 4)


# -- bad input


@pytest.mark.parametrize(
    "make, words",
    [
        (lambda: dl.tasks.Multilabel(0), "1 tag or more"),
        (lambda: dl.tasks.FixedSize(4, 4), "between 1 and 3"),
        (lambda: dl.tasks.Ordinal(1), "2 levels or more"),
        (lambda: dl.tasks.LabelRanking(1), "2 items or more"),
        (lambda: dl.tasks.Matching(1), "2 rows or more"),
        (lambda: dl.tasks.Multilabel(3).labels.check([0, 1]), "rows of 3 zeros and ones"),
        (
            lambda: dl.tasks.Multilabel(2).labels.check_all([[0, 1], [0, 2]]),
            "in row 1 is not made of",
        ),
        (lambda: dl.tasks.FixedSize(3, 1).labels.check([1, 1, 0]), "with 1 ones"),
        (lambda: dl.tasks.LabelRanking(3).labels.check([0, 0, 2]), "an order of 0..2"),
        (lambda: dl.tasks.Matching(3).labels.check([0, 1, 3]), "an order of 0..2"),
        (lambda: dl.losses.FenchelYoung(dl.tasks.LabelRanking(3), E()), "is not known on"),
        (lambda: dl.losses.FenchelYoung(dl.tasks.Task(), Q()), "does not say its label_hull"),
        (lambda: Q(0.0), "must be positive"),
        (lambda: dl.tasks.Finite([[1, 0]], [[0, 1]]), "2 labels or more"),
        (lambda: dl.tasks.Finite([[1, 0], [0, 1]], [[0, 1, 2]]), "same length"),
        (lambda: dl.tasks.Finite([[1], [1]], [[1], [2]], [0, 0]), "least loss"),
        (lambda: dl.tasks.Finite([[1], [1]], [[1], [2]], [-1]), "as many offsets"),
    ],
)
def test_bad_input_is_named(make, words):
    with pytest.raises(dl.InputError, match=words):
        make()


@pytest.mark.parametrize(
    "loss, decoder",
    [
        (dl.losses.Logistic(dl.tasks.Multiclass(3)), dl.decoders.GapOptimal),
        (dl.losses.SmoothHinge(dl.tasks.Binary()), dl.decoders.GapOptimal),
        (dl.losses.Logistic(dl.tasks.Multilabel(3)), dl.decoders.Coordinatewise),
        (dl.losses.SparseMAP(dl.tasks.LabelRanking(4)), dl.decoders.NearestVertex),
        (dl.losses.FenchelYoung(dl.tasks.Multiclass(3), E(2.0)), dl.decoders.NearestVertex),
        (
            dl.losses.Scaled(dl.losses.SparseMAP(dl.tasks.Ordinal(6)), 2.0),
            dl.decoders.NearestVertex,
        ),
        (dl.losses.CRF(dl.tasks.Sequence(3)), dl.decoders.Argmax),
        (dl.losses.Scaled(dl.losses.CRF(dl.tasks.Sequence(3)), 3.0), dl.decoders.Argmax),
    ],
)
def test_every_loss_has_a_decoder_of_its_own(loss, decoder):
    learner = dl.OGD(loss)
    assert type(learner.decoder) is decoder and learner.decoder.rate_floor > 0
    assert "bound    " in learner.describe() and "none" not in learner.describe()


def test_the_gap_of_a_solver_is_kept(tmp_path):
    stream = dl.streams.Planted(dl.tasks.Matching(3), rounds=30, flips=1, features=4, seed=0)
    loss = dl.losses.SparseMAP(stream.task, 2.0)
    trace = dl.OGD(loss).run(stream)
    assert trace.gap.shape == (30,) and (trace.gap >= 0).all() and trace.gap.max() <= 1e-9
    again = dl.Trace.load(trace.save(tmp_path / "run"))
    np.testing.assert_array_equal(again.gap, trace.gap)
    exact = dl.streams.Planted(dl.tasks.Ordinal(3), rounds=30, flips=1, seed=0)
    assert dl.OGD(dl.losses.SparseMAP(exact.task, 2.0)).run(exact).gap is None


def test_a_solver_that_falls_short_is_reported_once(monkeypatch):
    monkeypatch.setattr(po.SolvedPolytope, "iterations", 2)
    hull = po.Birkhoff(3)
    task = dl.tasks.Oracle(9, lambda v: hull.maximize(v).astype(int), -1.0 / 3.0, 3.0)
    stream = dl.streams.Planted(task, rounds=30, flips=1, features=4, seed=0)
    loss = dl.losses.SparseMAP(task, 2.0)
    learner = dl.OGD(loss, dl.decoders.Argmax(loss), dl.rates.Constant(0.1))
    with pytest.warns(po.SolverWarning, match="duality gap of") as caught:
        trace = learner.run(stream)
        learner.run(stream)
    assert len(caught) == 1
    assert (trace.gap > 1e-6).sum() > 1


def test_the_gap_bounds_what_the_solver_misses():
    hull = po.Birkhoff(5, tolerance=1e-3)
    exact = po.Birkhoff(5, tolerance=1e-12)
    for seed in range(10):
        theta = np.random.default_rng(seed).standard_normal(25)
        mu, gap = Q(1.5).solve(theta, hull)
        best = Q(1.5).conjugate(theta, exact)
        value = theta @ mu - Q(1.5).value(mu, hull)
        assert value <= best + 1e-10 <= value + gap + 2e-10


@given(seed=st.integers(0, 10**6))
def test_crf_without_a_chain_is_logistic(seed):
    theta = random_scores(4, seed)
    for base in (2.0, math.e):
        crf = dl.losses.CRF(dl.tasks.Multiclass(4), base)
        value, grad = crf.value_and_grad(theta, 1)
        expected = dl.losses.Logistic(dl.tasks.Multiclass(4), base).value_and_grad(theta, 1)
        assert value == pytest.approx(expected[0], abs=1e-9)
        np.testing.assert_allclose(grad, expected[1], atol=1e-9)
        assert crf.argmax_ratio == pytest.approx(math.log2(base))
        label = np.array([1, 0, 0, 1])
        tags = dl.losses.CRF(dl.tasks.Multilabel(4), base)
        value, grad = tags.value_and_grad(theta, label)
        mean, slope = dl.losses.Logistic(dl.tasks.Multilabel(4), base).value_and_grad(
            2 * theta, label
        )
        assert value == pytest.approx(4 * mean, abs=1e-8 * (1 + mean))
        np.testing.assert_allclose(grad, 8 * slope, atol=1e-9)
        assert grad @ grad <= 2 * tags.self_bound * value + 1e-9


def test_a_task_given_by_its_oracle_is_the_one_it_describes():
    ours = dl.tasks.FixedSize(5, 2)
    gamma, nu = ours.constants("l2")

    def best(direction):
        chosen = np.zeros(5, dtype=int)
        chosen[np.argsort(-direction, kind="stable")[:2]] = 1
        return chosen

    theirs = dl.tasks.Oracle(5, best, -2 / 5, 2.0, gamma, nu)
    X, y, _ = stream("2 of 5", rounds=60)
    runs = []
    for task in (ours, theirs):
        loss = dl.losses.SparseMAP(task, 2.0)
        runs.append(dl.OGD(loss).run(X, y, seed=0))
    np.testing.assert_allclose(runs[0].loss, runs[1].loss, atol=1e-6)
    np.testing.assert_allclose(runs[0].risk, runs[1].risk, atol=1e-4)
    assert runs[1].gap.max() <= 1e-9 and runs[0].gap is None
    with pytest.raises(dl.InputError, match="squared norm 3"):
        theirs.labels.check([1, 1, 1, 0, 0])
    with pytest.raises(dl.InputError, match="must be negative"):
        dl.tasks.Oracle(5, best, 2 / 5, 2.0)


def test_gap_optimal_decoding_of_a_finite_task_is_best_at_every_score():
    costs = np.array([[0, 1, 4, 0.5], [1, 0, 1, 0.5], [4, 1, 0, 0.5]])
    task = dl.tasks.CostSensitive(costs)
    loss = dl.losses.FenchelYoung(task, Q(8.0))
    with pytest.raises(dl.NoGuaranteeError):
        dl.decoders.GapOptimal(loss)
    decoder = dl.decoders.GapOptimal(loss, allow_no_gap=True)
    generator = np.random.default_rng(0)
    for _ in range(20):
        theta = 4 * generator.standard_normal(3)
        values, _ = loss.values(theta)
        if values.min() < 1e-6:
            continue
        risks = np.array([decoder.risk(theta, y) for y in range(3)])
        atoms, weights = decoder.distribution(theta)
        np.testing.assert_allclose(costs[:, atoms] @ weights, risks)
        best = (risks / values).max()
        for pi in generator.dirichlet(np.full(4, 0.3), 300):
            assert best <= (costs @ pi / values).max() + 1e-9
    X, y, _ = stream("classes", rounds=60)
    trace = dl.OGD(loss, decoder, dl.rates.Constant(0.1)).run(X, np.minimum(y, 2), seed=0)
    assert np.isfinite(trace.loss).all()
    assert trace.target_loss.mean() == pytest.approx(trace.risk.mean(), abs=0.25)
