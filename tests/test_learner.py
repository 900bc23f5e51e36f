"""Whole runs: equal to the naive learner, to themselves in pieces, and within the theorem."""

import copy
import math
from dataclasses import dataclass
from typing import ClassVar

import naive
import numpy as np
import pytest
from howmany import number
from scipy import sparse

import driftline as dl

COLUMNS = ("loss", "risk", "target_loss", "eta", "grad_sq", "prediction")


def data(classes=3, rounds=300, features=5, seed=0, vector=False):
    """Separable and drifting, with one label in ten wrong."""
    generator = np.random.default_rng(seed)
    X = generator.standard_normal((rounds, features))
    X /= np.maximum(1.0, np.linalg.norm(X, axis=1, keepdims=True)) / generator.uniform(0.2, 1.5)
    W = generator.standard_normal((2, classes, features))
    half = rounds // 2
    y = np.concatenate([np.argmax(X[:half] @ W[0].T, 1), np.argmax(X[half:] @ W[1].T, 1)])
    noisy = generator.random(rounds) < 0.1
    y[noisy] = generator.integers(0, classes, noisy.sum())
    return X, (2 * y - 1 if vector else y)


def naive_polyak(monotone=True, cap=math.inf):
    def rate(value, risk, grad_sq, history):
        eta = min(cap, 2 * (value - risk) / grad_sq)
        past = [e for e in history if not math.isnan(e)]
        return min([eta, *past]) if monotone else eta

    return rate


def naive_adagrad(diameter):
    total = 0.0

    def rate(value, risk, grad_sq, history):
        nonlocal total
        total += grad_sq
        return diameter / math.sqrt(2 * total)

    return rate


LOSSES = {"Logistic": naive.logistic, "SmoothHinge": naive.smooth_hinge}
DECODERS = {
    "UniformMix": naive.uniform_mix,
    "GapOptimal": naive.gap_optimal,
    "StepOptimal": naive.step_optimal,
    "Lazy": naive.lazy,
    "NearestVertex": naive.nearest_vertex,
    "Argmax": naive.argmax,
}
RATES = {
    "constant": (dl.rates.Constant(0.4), lambda: lambda *_: 0.4),
    "adagrad": (dl.rates.AdaGrad(), lambda: naive_adagrad(4.0)),
    "polyak": (dl.rates.Polyak(), naive_polyak),
    "capped": (dl.rates.Polyak(cap=2.0), lambda: naive_polyak(cap=2.0)),
    "free": (dl.rates.Polyak(monotone=False, cap=3.0), lambda: naive_polyak(False, 3.0)),
}
COMBINATIONS = [
    (loss, decoder, rate, classes)
    for loss in LOSSES
    for decoder in DECODERS
    for rate in RATES
    for classes in (1, 3)
    if not (decoder in ("NearestVertex", "Lazy") and loss == "SmoothHinge")
]


def make_learner(loss, decoder, rate, classes, diameter=4.0, intercept=False):
    task = dl.tasks.Binary() if classes == 1 else dl.tasks.Multiclass(classes)
    surrogate = getattr(dl.losses, loss)(task)
    if decoder == "Argmax":
        surrogate = dl.losses.Scaled(surrogate, 2.0)
    return dl.OGD(
        surrogate,
        getattr(dl.decoders, decoder)(surrogate),
        RATES[rate][0],
        dl.domains.Ball(diameter),
        intercept=intercept,
    )


def assert_same(a, b, tolerance=0.0):
    for name in COLUMNS:
        left, right = getattr(a, name), getattr(b, name)
        np.testing.assert_allclose(left, right, rtol=tolerance, atol=tolerance, err_msg=name)


@pytest.mark.parametrize("loss, decoder, rate, classes", COMBINATIONS)
@pytest.mark.parametrize("intercept", [False, True])
def test_run_equals_the_naive_learner(loss, decoder, rate, classes, intercept):
    vector = classes == 1
    X, y = data(max(classes, 2), vector=vector, rounds=number(100, 200))
    learner = make_learner(loss, decoder, rate, classes, intercept=intercept)
    trace = learner.run(X, y, seed=7)
    rows, predictions, W = naive.run(
        X,
        (y + 1) // 2 if vector else y,
        max(classes, 2),
        LOSSES[loss],
        DECODERS[decoder],
        RATES[rate][1](),
        radius=2.0,
        factor=2.0 if decoder == "Argmax" else 1.0,
        vector=vector,
        intercept=intercept,
        uniforms=naive.uniforms(7, len(y)),
    )
    for name, column in zip(COLUMNS, rows, strict=False):
        np.testing.assert_allclose(
            getattr(trace, name), column, rtol=1e-10, atol=1e-10, err_msg=name
        )
    ours = (trace.prediction + 1) // 2 if vector else trace.prediction
    np.testing.assert_array_equal(ours, predictions)
    np.testing.assert_allclose(learner.weights, W, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("loss, decoder, rate, classes", COMBINATIONS)
def test_step_equals_run_to_the_bit(loss, decoder, rate, classes):
    X, y = data(max(classes, 2), vector=classes == 1, rounds=60)
    whole = make_learner(loss, decoder, rate, classes)
    trace = whole.run(X, y, seed=3)
    single = make_learner(loss, decoder, rate, classes)
    single.run(X[:1], y[:1], seed=3)
    rounds = [single.step(x, label) for x, label in zip(X[1:], y[1:].tolist(), strict=True)]
    for name in COLUMNS:
        column = getattr(trace, name)[1:]
        np.testing.assert_array_equal(column, [getattr(r, name) for r in rounds], err_msg=name)
    np.testing.assert_array_equal(whole.weights, single.weights)


def test_chunks_equal_one_piece_to_the_bit():
    X, y = data(rounds=700)
    whole, pieces = (make_learner("Logistic", "GapOptimal", "polyak", 3) for _ in range(2))
    trace = whole.run(X, y, seed=1)
    parts = [pieces.run(X[:100], y[:100], seed=1)]
    parts += [pieces.run(X[a:b], y[a:b]) for a, b in ((100, 101), (101, 450), (450, 700))]
    for name in COLUMNS:
        joined = np.concatenate([getattr(part, name) for part in parts])
        np.testing.assert_array_equal(getattr(trace, name), joined, err_msg=name)
    np.testing.assert_array_equal(whole.weights, pieces.weights)


def test_an_interrupted_run_was_never_begun():
    X, y = data(rounds=700)
    learner = make_learner("Logistic", "UniformMix", "polyak", 3)
    committee = dl.auto(dl.tasks.Multiclass(3), effort="fast")
    for one in (learner, committee):
        other = copy.deepcopy(one)
        one.run(X[:300], y[:300])
        other.run(X[:300], y[:300])

        def stop(_):
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            one.run(X[300:], y[300:], progress=stop)
        trace, same = one.run(X[300:], y[300:]), other.run(X[300:], y[300:])
        np.testing.assert_array_equal(trace.target_loss, same.target_loss)
        np.testing.assert_array_equal(trace.prediction, same.prediction)


def test_same_seed_same_bits_and_other_seed_other_draws():
    X, y = data()
    runs = [
        make_learner("Logistic", "UniformMix", "polyak", 3).run(X, y, seed=s) for s in (5, 5, 6)
    ]
    assert_same(runs[0], runs[1])
    assert (runs[0].prediction != runs[2].prediction).any()
    np.testing.assert_array_equal(runs[0].risk, runs[2].risk)


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csr_matrix])
@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("rate", RATES)
def test_sparse_equals_dense(kind, index, intercept, rate):
    X, y = data(features=12)
    X[np.random.default_rng(1).random(X.shape) < 0.6] = 0.0
    S = kind(X)
    S.indices, S.indptr = S.indices.astype(index), S.indptr.astype(index)
    dense = make_learner("Logistic", "GapOptimal", rate, 3, intercept=intercept)
    thin = make_learner("Logistic", "GapOptimal", rate, 3, intercept=intercept)
    assert_same(dense.run(X, y, seed=2), thin.run(S, y, seed=2), 1e-10)
    np.testing.assert_allclose(dense.weights, thin.weights, atol=1e-10)
    assert thin.scores(S[[0]]) == pytest.approx(dense.scores(X[0]), abs=1e-10)


def test_a_learner_takes_dense_and_sparse_rows_in_turn():
    X, y = data(features=8)
    whole, mixed = (make_learner("SmoothHinge", "GapOptimal", "polyak", 3) for _ in range(2))
    trace = whole.run(X, y, seed=0)
    first = mixed.run(sparse.csr_array(X[:150]), y[:150], seed=0)
    second = mixed.run(X[150:], y[150:])
    np.testing.assert_allclose(trace.loss, np.r_[first.loss, second.loss], atol=1e-10)


def test_sparse_rows_with_a_column_twice_are_added_up():
    y = np.array([0, 1])
    double = sparse.csr_array(
        (np.array([0.2, 0.3, 1.0]), np.array([0, 0, 1]), np.array([0, 2, 3])), shape=(2, 2)
    )
    dense = np.array([[0.5, 0.0], [0.0, 1.0]])
    one, two = (make_learner("Logistic", "GapOptimal", "polyak", 3) for _ in range(2))
    assert_same(one.run(double, y, seed=0), two.run(dense, y, seed=0), 1e-12)
    assert double.nnz == 3  # the caller's matrix is as it was


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.uint8, bool])
def test_other_number_types_and_strides_give_the_same(dtype):
    X = np.random.default_rng(0).integers(0, 2, (80, 6)).astype(dtype)
    y = np.random.default_rng(1).integers(0, 3, 80)
    plain = make_learner("Logistic", "GapOptimal", "polyak", 3).run(X.astype(float), y, seed=0)
    for other in (X, np.asfortranarray(X), np.repeat(X, 2, axis=1)[:, ::2], sparse.csr_array(X)):
        learner = make_learner("Logistic", "GapOptimal", "polyak", 3)
        assert_same(learner.run(other, y, seed=0), plain, 1e-12)


def test_read_only_inputs_are_fine():
    X, y = data()
    X.flags.writeable = y.flags.writeable = False
    make_learner("Logistic", "GapOptimal", "polyak", 3).run(X, y)


# -- the theorem, on whole runs


def adversary(loss, decoder, rate, classes, rounds=400):
    """Labels chosen against the learner: always the one it is least ready for."""
    learner = make_learner(loss, decoder, rate, classes, diameter=20.0)
    generator = np.random.default_rng(11)
    X = generator.standard_normal((rounds, 3))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    rows = []
    for x in X:
        theta = learner.scores(x)
        values, _ = learner.loss.values(theta)
        rows.append(learner.step(x, list(learner.task.labels.all)[int(np.argmax(values))]))
    return learner, np.array([tuple(r)[1:] for r in rows]).T


@pytest.mark.parametrize(
    "loss, decoder, rate, classes",
    [row for row in COMBINATIONS if row[2] in ("polyak", "capped", "free")],
)
@pytest.mark.parametrize("stream", ["drift", "adversary"])
def test_the_rate_stays_in_its_range(loss, decoder, rate, classes, stream):
    if stream == "drift":
        X, y = data(max(classes, 2), vector=classes == 1)
        learner = make_learner(loss, decoder, rate, classes, diameter=20.0)
        trace = learner.run(X, y)
        value, risk, eta, grad_sq = trace.loss, trace.risk, trace.eta, trace.grad_sq
        assert trace.admissible.all()
    else:
        learner, (value, risk, _, eta, grad_sq) = adversary(loss, decoder, rate, classes)
    stepped = grad_sq > 0
    assert (0.5 * eta * grad_sq <= value - risk + 1e-9 * value)[stepped].all()
    floor = min(learner.decoder.rate_floor / learner.facts.largest_input**2, learner.rate.cap)
    assert (eta >= floor * (1 - 1e-9)).all()
    if learner.rate.monotone:
        assert (np.diff(eta[int(np.argmax(stepped)) :]) <= 0).all()


@pytest.mark.parametrize(
    "loss, decoder, classes",
    [(loss, decoder, classes) for loss, decoder, rate, classes in COMBINATIONS if rate == "polyak"],
)
def test_the_constant_rate_at_the_floor_stays_in_its_range(loss, decoder, classes):
    base = make_learner(loss, decoder, "polyak", classes)
    X, y = data(max(classes, 2), vector=classes == 1)
    norm = np.linalg.norm(X, axis=1).max()
    learner = dl.OGD(base.loss, base.decoder, dl.rates.Constant(input_norm=norm))
    trace = learner.run(X, y)
    assert trace.admissible.all()
    np.testing.assert_allclose(trace.eta, base.decoder.rate_floor / norm**2)


def test_adagrad_need_not_stay_in_range_and_the_trace_says_how_often():
    stream = dl.streams.LabelFlips(rounds=2000, flips=20)
    loss = dl.losses.Logistic(stream.task)
    trace = dl.OGD(loss, dl.decoders.UniformMix(loss), dl.rates.AdaGrad()).run(stream)
    assert 0.5 < trace.summary()["admissible"] < 1.0


@pytest.mark.parametrize("flips", [0, 3, 30])
@pytest.mark.parametrize("form", ["vector", "matrix"])
@pytest.mark.parametrize(
    "make",
    [
        dl.decoders.UniformMix,
        dl.decoders.GapOptimal,
        dl.decoders.StepOptimal,
        dl.decoders.Lazy,
        dl.decoders.NearestVertex,
    ],
)
def test_total_risk_is_within_the_theorem(flips, form, make):
    """F_T + (D / floor) (D/2 + P_T), against the comparator that made the labels."""
    stream = dl.streams.LabelFlips(rounds=number(500, 2000), flips=flips, form=form, seed=4)
    loss = dl.losses.Logistic(stream.task)
    decoder = make(loss)
    trace = dl.OGD(loss, decoder, domain=dl.domains.Ball(20.0)).run(stream)
    for scale in (1.0, 3.0, 10.0):
        comparator = stream.comparator.scaled(scale)
        total = sum(
            loss.value_and_grad(comparator.at(t) @ x, y)[0]
            for t, (x, y) in enumerate(zip(stream.inputs, stream.labels.tolist(), strict=True))
        )
        bound = total + 20.0 / decoder.rate_floor * (10.0 + comparator.path_length)
        assert trace.risk.sum() <= bound


def test_piecewise_separable_data_cost_a_bounded_number_of_mistakes():
    """With a margin and F_T = 0, ten times the rounds cost no more than the flips do."""
    totals = []
    for rounds in (4000, 40_000):
        stream = dl.streams.LabelFlips(rounds=rounds, flips=3, form="matrix", seed=0)
        clear = np.abs(stream.inputs.sum(axis=1)) > 0.4
        loss = dl.losses.Scaled(dl.losses.SmoothHinge(stream.task), 4.0)
        learner = dl.OGD(loss, dl.decoders.Argmax(loss), dl.rates.Polyak(monotone=False))
        trace = learner.run(stream.inputs[clear], stream.labels[clear])
        totals.append(trace.target_loss.sum())
    assert totals[1] <= 1.5 * totals[0] < 100


def test_weights_stay_in_the_ball_over_a_long_run():
    stream = dl.streams.LabelFlips(rounds=30_000, flips=300, form="matrix")
    learner = make_learner("Logistic", "GapOptimal", "polyak", 2, diameter=1.0)
    learner.run(stream)
    assert np.linalg.norm(learner.weights) <= 0.5 * (1 + 1e-9)
    # The rescaled array underneath was folded back at least once, and the norm is exact.
    assert learner.state.norm_sq == pytest.approx((learner.weights**2).sum(), rel=1e-9)


# -- rounds that say nothing


def test_a_zero_input_makes_no_step_and_keeps_eta():
    learner = make_learner("Logistic", "GapOptimal", "polyak", 3)
    floor = learner.decoder.rate_floor
    first = learner.step(np.zeros(4), 0)
    assert first.eta == floor and first.grad_sq == 0.0
    second = learner.step(np.eye(4)[0], 1)
    before = learner.weights
    third = learner.step(np.zeros(4), 2)
    assert third.eta == second.eta > floor
    np.testing.assert_array_equal(learner.weights, before)


@pytest.mark.parametrize("decoder", [d for d in DECODERS if d != "Argmax"])
@pytest.mark.parametrize("classes", [1, 3])
@pytest.mark.parametrize("size", [10.0, 40.0, 200.0, 900.0])
def test_confident_rounds_do_not_spoil_the_rate(decoder, classes, size):
    """Where losses are far below rounding of 1, the rate is still what it should be."""
    learner = make_learner("Logistic", decoder, "polyak", classes, diameter=2e4)
    label = 1 if classes == 1 else 0
    learner.run(np.eye(2), np.array([label, label]))
    eta = learner.step(np.array([0.1, 0.3]), label).eta
    for _ in range(50):
        last = learner.step(np.array([size, size]), label)
    assert last.loss < 1e-2
    assert last.eta >= min(eta, learner.decoder.rate_floor / (2 * size**2))
    assert math.isfinite(last.eta) and np.isfinite(learner.weights).all()


def test_huge_steps_on_tiny_inputs_stay_finite():
    task = dl.tasks.Multiclass(2)
    loss = dl.losses.Scaled(dl.losses.SmoothHinge(task), 4.0)
    learner = dl.OGD(loss, dl.decoders.Argmax(loss), dl.rates.Polyak(monotone=False))
    for power in (1e-3, 1e-30, 1e-74, 1e-120, 1e-300):
        learner.step(np.array([power, power]), 1)
        learner.step(np.array([power, -power]), 0)
    assert np.isfinite(learner.weights).all()
    assert np.linalg.norm(learner.weights) <= 10 * (1 + 1e-9)


# -- looking without learning


def test_looking_changes_nothing():
    X, y = data(rounds=50)
    watched, alone = (make_learner("Logistic", "UniformMix", "polyak", 3) for _ in range(2))
    for x, label in zip(X, y.tolist(), strict=True):
        expected = watched.predict(x), watched.scores(x), watched.distribution(x)
        assert watched.predict(x) == expected[0]
        a, b = watched.step(x, label), alone.step(x, label)
        assert a == b and a.prediction == expected[0]


def test_run_goes_on_after_a_look():
    X, y = data(rounds=50)
    watched, alone = (make_learner("Logistic", "UniformMix", "polyak", 3) for _ in range(2))
    watched.predict(X[0])
    assert_same(watched.run(X, y), alone.run(X, y))


def test_learn_moves_the_weights_as_step_does_and_draws_nothing():
    X, y = data(rounds=50)
    learns, steps = (make_learner("Logistic", "UniformMix", "polyak", 3) for _ in range(2))
    for x, label in zip(X, y.tolist(), strict=True):
        learns.learn(x, label)
        steps.step(x, label)
    np.testing.assert_array_equal(learns.weights, steps.weights)
    fresh = make_learner("Logistic", "UniformMix", "polyak", 3)
    assert learns.state.tickets == fresh.state.tickets == 0


def test_first_weights_of_ones_own():
    X, y = data()
    W = np.full((3, 5), 0.1)
    learner = dl.OGD(dl.losses.Logistic(dl.tasks.Multiclass(3)), initial=W)
    W[:] = 9.0
    np.testing.assert_array_equal(learner.weights, np.full((3, 5), 0.1))
    trace = learner.run(X, y)
    np.testing.assert_array_equal(trace.first_weights, np.full((3, 5), 0.1))


def test_a_stream_can_be_run_as_it_is():
    stream = dl.streams.LabelFlips(rounds=100, flips=1)
    a, b = (make_learner("Logistic", "GapOptimal", "polyak", 1) for _ in range(2))
    assert_same(a.run(stream, seed=0), b.run(stream.inputs, stream.labels, seed=0))


def test_progress_is_called_with_all_rounds():
    stream = dl.streams.LabelFlips(rounds=40_000, flips=1)
    seen = []
    make_learner("Logistic", "GapOptimal", "polyak", 1).run(stream, progress=seen.append)
    assert sum(seen) == 40_000 and len(seen) > 1


# -- parts of one's own, in plain NumPy


class PlainTask(dl.tasks.Task):
    """Three classes without kernels."""

    labels = dl.tasks.Classes(3)
    zero_one = True
    dim = 3

    def encode(self, label):
        return np.eye(3)[label]

    def encode_loss(self, prediction):
        return 1.0 - np.eye(3)[prediction]

    def best_prediction(self, mu):
        return int(np.argmax(mu))

    def decompose(self, mean):
        return dl.tasks.Distribution(np.arange(3), 1.0 - mean)


@dataclass(frozen=True)
class PlainLogistic(dl.losses.Loss):
    task: dl.tasks.Task
    self_bound: ClassVar[float] = 0.5876
    argmax_ratio: ClassVar[float] = 1.0
    uniform_mix_ratio: ClassVar[float] = 2 / 3
    gap_optimal_ratio: ClassVar[float] = 0.5

    def value_and_grad(self, theta, label):
        assert isinstance(label, int)
        return naive.logistic(theta, label)

    def values(self, theta):
        both = [naive.logistic(theta, k) for k in range(3)]
        return np.array([v for v, _ in both]), np.array([g @ g for _, g in both])


@dataclass(frozen=True)
class PlainMix(dl.decoders.Decoder):
    loss: dl.losses.Loss
    surrogate_gap: ClassVar[float] = 1 / 3

    def distribution(self, theta):
        values, _ = self.loss.values(theta)
        pi = naive.uniform_mix(theta, values, None, 3, False)
        return dl.tasks.Distribution(np.arange(3), pi)


class PlainPolyak(dl.rates.Rate):
    def memory(self, setting):
        return (math.inf,)

    def next(self, loss, risk, grad_sq, input_sq, previous, setting, memory):
        memory[0] = min(memory[0], 2 * (loss - risk) / grad_sq)
        return float(memory[0])


class PlainBall(dl.domains.Domain):
    diameter = 4.0

    def project(self, weights):
        norm = np.linalg.norm(weights)
        return weights if norm <= 2.0 else weights * (2.0 / norm)


MULTICLASS = dl.tasks.Multiclass(3)


@pytest.mark.parametrize(
    "task, own_loss", [(MULTICLASS, False), (MULTICLASS, True), (PlainTask(), True)]
)
@pytest.mark.parametrize("own_decoder", [False, True])
@pytest.mark.parametrize("own_rate", [False, True])
@pytest.mark.parametrize("own_domain", [False, True])
def test_parts_of_ones_own_give_the_same_results(task, own_loss, own_decoder, own_rate, own_domain):
    X, y = data(rounds=80)
    loss = PlainLogistic(task) if own_loss else dl.losses.Logistic(task)
    learner = dl.OGD(
        loss,
        PlainMix(loss) if own_decoder else dl.decoders.UniformMix(loss),
        PlainPolyak() if own_rate else dl.rates.Polyak(),
        PlainBall() if own_domain else dl.domains.Ball(4.0),
    )
    reference = make_learner("Logistic", "UniformMix", "polyak", 3).run(X, y, seed=0)
    trace = learner.run(X, y, seed=0)
    assert_same(trace, reference, 1e-10)
    own = {
        "task": isinstance(task, PlainTask),
        "loss": own_loss,
        "decoder": own_decoder,
        "rate": own_rate,
        "domain": own_domain,
    }
    words = learner.describe()
    assert ("plain Python" in words) == any(own.values())
    named = words.split("speed")[-1] if any(own.values()) else ""
    assert all((name in named) == is_own for name, is_own in own.items())


def test_our_decoders_serve_a_loss_of_ones_own():
    X, y = data(rounds=60)
    loss = PlainLogistic(MULTICLASS)
    for name in ("UniformMix", "GapOptimal", "StepOptimal"):
        own = dl.OGD(loss, getattr(dl.decoders, name)(loss), domain=dl.domains.Ball(4.0))
        assert_same(
            own.run(X, y, seed=0),
            make_learner("Logistic", name, "polyak", 3).run(X, y, seed=0),
            1e-10,
        )
    scaled = dl.losses.Scaled(loss, 2.0)
    own = dl.OGD(scaled, dl.decoders.Argmax(scaled), domain=dl.domains.Ball(4.0))
    assert_same(
        own.run(X, y, seed=0),
        make_learner("Logistic", "Argmax", "polyak", 3).run(X, y, seed=0),
        1e-10,
    )


def test_sparse_rows_on_the_plain_path():
    X, y = data(rounds=60)
    loss = PlainLogistic(MULTICLASS)
    a, b = (dl.OGD(loss, dl.decoders.UniformMix(loss)) for _ in range(2))
    assert_same(a.run(X, y, seed=0), b.run(sparse.csr_array(X), y, seed=0), 1e-12)


@dataclass(frozen=True)
class CostSquare(dl.losses.Loss):
    """Squared distance of the scores to the label's indicator: enough to run a cost task."""

    task: dl.tasks.CostSensitive
    self_bound: ClassVar[float] = 2.0

    def value_and_grad(self, theta, label):
        error = theta - self.task.encode(label)
        return float(error @ error), 2 * error


@dataclass(frozen=True)
class CostBest(dl.decoders.Decoder):
    loss: dl.losses.Loss

    def mean_loss_encoding(self, theta):
        return self.loss.task.encode_loss(self.loss.task.best_prediction(theta))


def test_a_cost_sensitive_task_runs_with_parts_of_ones_own():
    X, y = data(rounds=200)
    task = dl.tasks.CostSensitive([[0, 1, 4, 0.5], [1, 0, 1, 0.5], [4, 1, 0, 0.5]])
    loss = CostSquare(task)
    trace = dl.OGD(loss, CostBest(loss), dl.rates.Constant(0.1)).run(X, y)
    np.testing.assert_allclose(trace.risk, trace.target_loss, atol=1e-12)
    expected = [task.loss(p, label) for p, label in zip(trace.prediction, y, strict=True)]
    np.testing.assert_allclose(trace.target_loss, expected)


# -- what a trace keeps


def test_first_weights_are_kept_where_that_is_cheap_or_asked_for():
    X, y = data(rounds=60)
    learner = make_learner("Logistic", "GapOptimal", "polyak", 3)
    np.testing.assert_array_equal(learner.run(X, y).first_weights, np.zeros((3, 5)))
    before = learner.weights
    np.testing.assert_array_equal(learner.run(X, y).first_weights, before)
    assert learner.run(X[:1], y[:1]).first_weights is None
    before = learner.weights
    np.testing.assert_array_equal(learner.run(X[:1], y[:1], audit=True).first_weights, before)
    assert learner.run(X, y, audit=False).first_weights is None


def test_first_weights_of_sparse_runs_have_a_row_per_score():
    X, y = data(rounds=60)
    learner = make_learner("Logistic", "GapOptimal", "polyak", 3, diameter=1.0)
    learner.run(sparse.csr_array(X), y)
    before = learner.weights
    trace = learner.run(sparse.csr_array(X), y)
    np.testing.assert_array_equal(trace.first_weights, before)
    trace = learner.run(X, y)
    assert trace.first_weights.shape == (3, 5)


def test_scores_are_weights_times_input_in_every_layout():
    X, y = data(rounds=60)
    for intercept in (False, True):
        learner = make_learner("Logistic", "GapOptimal", "polyak", 3, intercept=intercept)
        for train in (X, sparse.csr_array(X)):
            learner.run(train, y)
            x = np.append(X[0], 1.0) if intercept else X[0]
            for look in (X[0], sparse.csr_array(X[:1])):
                np.testing.assert_allclose(learner.scores(look), learner.weights @ x, atol=1e-12)
