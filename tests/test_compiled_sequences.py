"""Compiled sequences are those of the plain engine, round for round."""

import itertools

import numpy as np
import pytest

import driftline as dl
from driftline.engines import CompiledEngine, PlainEngine
from tests.howmany import examples

T, L, D, R = dl.tasks, dl.losses, dl.decoders, dl.rates
Q, E = dl.regularizers.Quadratic, dl.regularizers.Entropy


def fenchel_young(omega, tags=4):
    loss = L.FenchelYoung(T.Sequence(tags, transitions=False), omega(1.0))
    return L.FenchelYoung(loss.task, omega(2.0 * loss.nearest_vertex_ratio))


def crf(tags, transitions=True):
    loss = L.Scaled(L.CRF(T.Sequence(tags, transitions)), 2.0)
    return loss, D.Argmax(loss)


def cases():
    """Yield a name, a loss and a decoder, for everything that runs compiled."""
    for tags, transitions in itertools.product((2, 5, 8, 23, 40), (True, False)):
        words = "transitions" if transitions else "positions"
        yield f"{tags} tags, {words}", *crf(tags, transitions)
        loss = L.CRF(T.Sequence(tags, transitions))
        yield f"{tags} tags, {words}, marginals", loss, D.Marginal(loss)
    for omega in (Q, E):
        kind, loss = omega.__name__.lower(), fenchel_young(omega)
        yield f"{kind}, nearest", loss, D.NearestVertex(loss)
        convolutional = L.ConvolutionalFenchelYoung(loss.task, omega(0.7))
        yield f"{kind}, convolutional", convolutional, D.Convolutional(convolutional)
    scaled = L.Scaled(L.SparseMAP(loss.task), 2.0 * L.SparseMAP(loss.task).argmax_ratio)
    yield "quadratic, argmax", scaled, D.Argmax(scaled)
    for tags in (2, 5, 11):
        loss = L.SparseMAP(T.Sequence(tags))
        loss = L.SparseMAP(loss.task, 2.0 * loss.nearest_vertex_ratio)
        yield f"{tags} tags, SparseMAP, nearest", loss, D.NearestVertex(loss)
    loss = L.SparseMAP(T.Sequence(4), 0.7)
    scaled = L.Scaled(loss, 2.0 * loss.argmax_ratio)
    yield "SparseMAP, argmax", scaled, D.Argmax(scaled)


CASES = {name: (loss, decoder) for name, loss, decoder in cases()}
every_case = pytest.mark.parametrize("name", CASES)
FEW = ["5 tags, transitions", "5 tags, transitions, marginals", "8 tags, positions"]
FEW += ["5 tags, SparseMAP, nearest"]
few_cases = pytest.mark.parametrize("name", FEW)


def made(name, rate=None, **rest):
    loss, decoder = CASES[name]
    return dl.OGD(loss, decoder, rate or R.Polyak(), seed=3, **rest)


def both(name, **rest):
    """Return a compiled learner and a plain one with the same parts."""
    fast, slow = made(name, **rest), made(name, **rest)
    assert type(fast.engine) is CompiledEngine
    slow.engine = PlainEngine(slow.parts)
    return fast, slow


def words(tags, rounds=40, longest=60, features=6, seed=0):
    """Return sequences of many lengths, also of one position, and of inputs of several sizes."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(tags, features))
    inputs, labels = [], []
    for n in [1, 2, longest, *rng.integers(1, longest + 1, rounds - 3)]:
        y = (rng.integers(tags) + np.arange(n) * rng.integers(1, 3)) % tags
        x = centres[y] + rng.normal(size=(n, features))
        inputs.append(rng.choice([0.1, 0.5, 1.0]) * x / np.sqrt(features * n))
        labels.append(y)
    return inputs, labels


def assert_same(one, two):
    for column in ("loss", "risk", "grad_sq"):
        first, second = getattr(one, column), getattr(two, column)
        assert np.allclose(first, second, rtol=1e-9, atol=1e-9, equal_nan=True), column
    assert np.allclose(one.target_loss, two.target_loss, atol=1e-12, equal_nan=True)
    assert np.array_equal(one.prediction, two.prediction)


@pytest.mark.parametrize("seed", examples(1, 10))
@pytest.mark.parametrize("intercept", [False, True])
@every_case
def test_compiled_rounds_are_those_of_the_plain_engine(name, intercept, seed):
    fast, slow = both(name, intercept=intercept)
    stream = words(fast.task.tags, seed=seed)
    one, two = fast.run(*stream), slow.run(*stream)
    assert_same(one, two)
    assert np.allclose(fast.weights, slow.weights, rtol=1e-8, atol=1e-9)
    assert fast.facts.largest_input == pytest.approx(slow.facts.largest_input)


@few_cases
def test_sample_weights_restarts_and_late_labels(name):
    weights = np.random.default_rng(1).choice([0.0, 0.5, 1.0, 3.0], 40)
    change = dl.detectors.Cusum(threshold=1.0, more=0.05)
    fast, slow = both(name, restart=change)
    stream = words(fast.task.tags)
    other = words(fast.task.tags, seed=1)
    stream = [*stream[0], *other[0]], [*stream[1], *other[1]]
    one = fast.run(*stream, sample_weight=np.tile(weights, 2))
    two = slow.run(*stream, sample_weight=np.tile(weights, 2))
    assert_same(one, two)
    assert np.array_equal(one.restarted, two.restarted)
    fast, slow = both(name)
    assert_same(fast.run(*stream, delay=3), slow.run(*stream, delay=3))


@few_cases
def test_pieces_steps_and_files_have_the_same_bits(name, tmp_path):
    whole, steps, pieces = made(name), made(name), made(name)
    inputs, labels = words(whole.task.tags)
    trace = whole.run(inputs, labels)
    for t, (x, y) in enumerate(zip(inputs, labels, strict=True)):
        assert np.array_equal(steps.predict(x), trace.prediction[t][: len(y)])
        played = steps.step(x, y)
        assert np.array_equal(played.prediction, trace.prediction[t][: len(y)])
        assert played.loss == trace.loss[t]
    pieces.run(inputs[:11], labels[:11])
    pieces.save(tmp_path / "learner")
    again = dl.load(tmp_path / "learner")
    again.run((np.concatenate(inputs[11:]), np.cumsum([0, *map(len, inputs[11:])])), labels[11:])
    assert np.array_equal(whole.weights, steps.weights)
    assert np.array_equal(whole.weights, again.weights)


@every_case
def test_certificates_replay_compiled_sequences(name):
    learner = made(name)
    inputs, labels = words(learner.task.tags, rounds=20, longest=9)
    trace = learner.run(inputs, labels)
    columns = 6 + 1 * learner.parts.intercept + learner.task.tags * learner.task.transitions
    comparator = np.random.default_rng(0).normal(size=(learner.task.tags, columns)) / 10
    certificate = dl.certify(trace, dl.comparators.Fixed(comparator), inputs, labels)
    assert certificate.valid, str(certificate)
    assert trace.risk.sum() <= certificate.exact + 1e-9


@few_cases
def test_accounts_against_a_comparator_are_those_of_the_plain_engine(name):
    fast, slow = both(name)
    inputs, labels = words(fast.task.tags)
    columns = 6 + 1 * fast.parts.intercept + fast.task.tags * fast.task.transitions
    comparator = np.random.default_rng(0).normal(size=(fast.task.tags, columns)) / 10
    for learner in (fast, slow):
        learner.watch(dl.comparators.Fixed(comparator))
        learner.run(inputs, labels)
    for sum_ in ("comparator_loss", "residual", "end"):
        one, two = getattr(fast.tally, sum_), getattr(slow.tally, sum_)
        assert one == pytest.approx(two, rel=1e-9), sum_


@few_cases
def test_single_precision_is_close(name):
    single, double = made(name, dtype=np.float32), made(name)
    stream = words(single.task.tags)
    single.run(*stream)
    double.run(*stream)
    assert single.weights.dtype == np.float32
    assert np.allclose(single.weights, double.weights, rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize(
    "name",
    [
        *("2 tags, transitions", "5 tags, positions", "2 tags, transitions, marginals"),
        *("entropy, nearest", "2 tags, SparseMAP, nearest"),
    ],
)
def test_learners_of_sequences_keep_the_page(name):
    dl.checks.check_learner(made(name))


@pytest.mark.parametrize("pairs", [1.0, 40.0, 500.0])
@pytest.mark.parametrize("nodes", [0.0, 1.0, 500.0, 1e5])
@pytest.mark.parametrize("tags", [2, 7, 23])
def test_losses_are_exact_at_scores_of_any_size(tags, nodes, pairs):
    task = T.Sequence(tags)
    loss = L.CRF(task, base=np.e)
    rng = np.random.default_rng(int(nodes) + tags)
    for n in (1, 2, 7, 60):
        theta = np.concatenate(
            [rng.uniform(-nodes, nodes, n * tags), rng.uniform(-pairs, pairs, tags * tags)]
        )
        label = rng.integers(0, tags, n)
        target, grad = np.empty_like(theta), np.empty_like(theta)
        task.kernels.encode(label, np.array(task.params(theta.size)), target)
        work = np.full(loss.workspace(theta.size), np.nan)
        value = loss.kernels.loss(theta, target, np.array(loss.params(theta.size)), work, grad)
        expected, slope = loss.value_and_grad(task.geometry.unfolded(theta), label)
        assert value == pytest.approx(expected, rel=1e-11, abs=1e-11 * (1 + n * (nodes + pairs)))
        edges = slope[n * tags :].reshape(n - 1, tags * tags).sum(axis=0)
        close = 1e-9 + 1e-14 * n * nodes  # logarithms of large sums lose digits
        assert np.allclose(grad, np.concatenate([slope[: n * tags], edges]), atol=close)


def test_scores_that_are_not_numbers_are_noticed():
    task = T.Sequence(3)
    loss = L.CRF(task)
    for place in (2, 9, 14):
        theta = np.zeros(18)
        theta[place] = np.nan
        work, grad = np.empty(loss.workspace(18)), np.empty(18)
        params = np.array(loss.params(18))
        assert not np.isfinite(loss.kernels.loss(theta, np.zeros(18), params, work, grad))


def test_folded_scores_are_those_of_equal_transitions():
    task = T.Sequence(3)
    for n in (1, 2, 5):
        folded = np.arange((n + 3) * 3, dtype=np.float64)
        again = task.geometry.folded(task.geometry.unfolded(folded))
        assert np.array_equal(again[: 3 * n], folded[: 3 * n])
        assert n == 1 or np.array_equal(again, folded)


@pytest.mark.parametrize("transitions", [True, False])
def test_votes_and_target_losses_of_many_rounds_are_those_of_each(transitions):
    task, rng = T.Sequence(4, transitions), np.random.default_rng(0)
    sizes = rng.integers(1, 9, 30)
    members = [np.full((30, 8), -1) for _ in range(5)]
    for rows in members:
        for row, n in zip(rows, sizes, strict=True):
            row[:n] = rng.integers(0, 4, n)
    weights = rng.dirichlet(np.ones(5), 30)
    weights[:5] = 0.2  # votes that are tied
    voted = task.many.average(members, weights)
    labels = [rng.integers(0, 4, n) for n in sizes]
    losses = task.many.losses(voted, labels)
    for t, n in enumerate(sizes):
        alone = task.average([rows[t, :n] for rows in members], weights[t])
        assert np.array_equal(task.predictions.value(voted[t]), alone)
        assert losses[t] == pytest.approx(task.loss(alone, labels[t]), abs=1e-15)
    for wrong in (voted[:, :1], voted + 9, voted[:4]):
        with pytest.raises((dl.InputError, ValueError)):
            task.many.losses(wrong, labels)
