"""Laws of the passes over weights: right to rounding, and the same bits however a stream is cut."""

import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import types
from scipy import sparse

import driftline as dl
from driftline import inputs
from driftline.kernels import aligned, aligned_zeros, kernel
from driftline.kernels.gathers import gather, scatter
from driftline.kernels.prefetch import prefetch_rows
from driftline.kernels.signatures import vector
from driftline.kernels.sweeps import sweep

COLUMNS = ("loss", "risk", "target_loss", "eta", "grad_sq", "prediction")
every_type = pytest.mark.parametrize("dtype", [np.float64, np.float32])


def table(dtype, layout="C"):
    return types.Array(dtype, 2, layout)


def rows(dtype):
    return types.Array(dtype, 1, "C")


def sweeper(number):
    @kernel(types.float64(table(number, "A"), vector, rows(number), rows(number), vector))
    def play(weights, steps, old, new, scores):
        return sweep(weights, steps, old, new, scores)

    return play


def gatherer(number):
    columns = types.Array(types.int32, 1, "C")
    whole = types.int64

    @kernel(types.void(table(number), rows(number), columns, whole, whole, vector))
    def read(weights, values, columns, first, stop, scores):
        prefetch_rows(weights, columns, first, stop)
        gather(weights, values, columns, first, stop, scores)

    @kernel(types.void(table(number), rows(number), columns, whole, whole, vector))
    def move(weights, values, columns, first, stop, steps):
        scatter(weights, values, columns, first, stop, steps)

    return read, move


SWEEPS = {np.float64: sweeper(types.float64), np.float32: sweeper(types.float32)}
GATHERS = {np.float64: gatherer(types.float64), np.float32: gatherer(types.float32)}


@every_type
@settings(deadline=None, max_examples=60)
@given(st.integers(1, 12), st.integers(1, 40), st.integers(0, 2**32 - 1))
def test_a_sweep_moves_the_weights_and_scores_them(dtype, outputs, features, seed):
    generator = np.random.default_rng(seed)
    spare = int(generator.integers(0, 2))  # an intercept's column is not touched
    W = generator.standard_normal((outputs, features + spare)).astype(dtype)
    old, new = generator.standard_normal((2, features)).astype(dtype)
    steps = generator.standard_normal(outputs) * (generator.random(outputs) < 0.6)
    play, apart = SWEEPS[dtype], bool(generator.integers(0, 2))
    moved, scores, again = aligned(W, apart), np.empty(outputs), np.empty(outputs)
    norm_sq = play(moved, steps, old, new, scores)
    expected = W.astype(float)
    expected[:, :features] += np.outer(steps, old)
    tolerance = 1e-12 if dtype == np.float64 else 1e-4
    np.testing.assert_allclose(moved, expected, atol=tolerance)
    np.testing.assert_allclose(scores, expected[:, :features] @ new, atol=tolerance)
    np.testing.assert_array_equal(moved[:, features:], W[:, features:])
    np.testing.assert_array_equal(moved[steps == 0], W[steps == 0])
    kept = moved.copy()
    play(moved, np.zeros(outputs), old, new, again)  # only read now: the same bits
    np.testing.assert_array_equal(again, scores)
    np.testing.assert_array_equal(moved, kept)
    assert norm_sq == pytest.approx(float(new @ new), rel=tolerance)


@every_type
@given(st.integers(1, 9), st.integers(1, 40))
def test_weights_lie_on_lines(dtype, outputs, features):
    W = np.arange(outputs * features, dtype=dtype).reshape(outputs, features)
    for apart in (False, True):
        zeros, copy = aligned_zeros(W.shape, dtype, apart), aligned(W, apart)
        np.testing.assert_array_equal(copy, W)
        assert not zeros.any()
        for made in (zeros, copy):
            assert made.dtype == dtype and made.ctypes.data % 64 == 0
            assert made.flags.writeable and made.strides[1] == made.itemsize
            assert made.strides[0] % 64 == 0 if apart else made.flags.c_contiguous


@every_type
@settings(deadline=None, max_examples=60)
@given(st.integers(1, 40), st.integers(0, 12), st.integers(0, 2**32 - 1))
def test_gathering_and_scattering(dtype, outputs, entries, seed):
    generator = np.random.default_rng(seed)
    W = generator.standard_normal((20, outputs)).astype(dtype)
    values = generator.standard_normal(entries + 3).astype(dtype)
    columns = generator.permutation(20)[: entries + 3].astype(np.int32)
    used = slice(2, 2 + entries)
    read, move = GATHERS[dtype]
    scores, steps = np.empty(outputs), generator.standard_normal(outputs)
    tolerance = 1e-12 if dtype == np.float64 else 1e-4
    read(W, values, columns, 2, 2 + entries, scores)
    np.testing.assert_allclose(scores, values[used] @ W[columns[used]], atol=tolerance)
    moved = W.copy()
    move(moved, values, columns, 2, 2 + entries, steps)
    expected = W.astype(float)
    expected[columns[used]] += np.outer(values[used], steps)
    np.testing.assert_allclose(moved, expected, atol=tolerance)


def stream_of(generator, outputs, features, rounds, thin):
    X = generator.standard_normal((rounds, features)) * generator.uniform(0.1, 2.0)
    X[generator.random(X.shape) < 0.5] = 0.0
    labels = generator.integers(0, max(outputs, 2), rounds)
    if outputs == 1:
        labels = 2 * labels - 1
    return (sparse.csr_array(X) if thin else X), labels


def assert_pieces_equal_the_whole(make, X, y, cuts):
    whole, pieces, steps = make(), make(), make()
    trace = whole.run(X, y)
    bounds = [0, *sorted(cuts), len(y)]
    parts = [pieces.run(X[a:b], y[a:b]) for a, b in zip(bounds, bounds[1:], strict=False) if a < b]
    for name in COLUMNS:
        joined = np.concatenate([getattr(part, name) for part in parts])
        np.testing.assert_array_equal(getattr(trace, name), joined, err_msg=name)
    np.testing.assert_array_equal(whole.weights, pieces.weights)
    for t in range(min(20, len(y))):
        taken = steps.step(X[[t]] if sparse.issparse(X) else X[t], y[t])
        for name in COLUMNS:
            assert getattr(taken, name) == getattr(trace, name)[t]


@every_type
@pytest.mark.parametrize("thin", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("family", [dl.losses.Logistic, dl.losses.SmoothHinge])
@settings(deadline=None, max_examples=25)
@given(data=st.data())
def test_pieces_equal_the_whole_to_the_bit(dtype, thin, family, data):
    outputs, features = data.draw(st.integers(1, 12)), data.draw(st.integers(1, 40))
    intercept, seed = data.draw(st.booleans()), data.draw(st.integers(0, 2**32 - 1))
    cuts = data.draw(st.lists(st.integers(1, 59), max_size=8))
    X, y = stream_of(np.random.default_rng(seed), outputs, features, 60, thin)
    task = dl.tasks.Binary() if outputs == 1 else dl.tasks.Multiclass(outputs)
    loss, domain = family(task), dl.domains.Ball(data.draw(st.sampled_from([1.0, 20.0])))

    def make():
        return dl.OGD(loss, domain=domain, intercept=intercept, dtype=dtype)

    assert_pieces_equal_the_whole(make, X, y, cuts)


@every_type
@pytest.mark.parametrize("outputs, features", [(10, 784), (3, 257), (2, 3)])
def test_pieces_equal_the_whole_when_weights_are_computed_afresh(dtype, outputs, features):
    generator = np.random.default_rng(features)
    rounds = 9000
    X, y = stream_of(generator, outputs, features, rounds, thin=False)
    loss = dl.losses.Logistic(dl.tasks.Multiclass(outputs))

    def make():
        return dl.OGD(loss, domain=dl.domains.Ball(1.0), dtype=dtype)

    cuts = generator.integers(1, rounds, 5)
    assert_pieces_equal_the_whole(make, X, y, [*cuts, 4095, 4096, 4097, 7840])


@every_type
@pytest.mark.parametrize("thin", [False, True], ids=["dense", "sparse"])
def test_scales_of_any_size(dtype, thin):
    """Far too long steps, cut back to the ball in every round: the scale falls and falls."""
    generator = np.random.default_rng(0)
    X, y = stream_of(generator, 3, 20, 2000, thin)
    loss = dl.losses.Logistic(dl.tasks.Multiclass(3))
    eta = dl.rates.Constant(6.0)
    one = dl.OGD(loss, dl.decoders.UniformMix(loss), eta, dl.domains.Ball(1.0), dtype=dtype)
    scales, losses = [1.0], []
    for first in range(0, 2000, 50):
        losses.append(one.run(X[first : first + 50], y[first : first + 50]).loss)
        scales.append(one.state.scale)
    lifts = np.sum(np.diff(np.log2(scales)) > 0)
    assert lifts >= (1 if dtype == np.float64 else 5)
    dense = X.toarray() if thin else X
    rows, _, W = naive.run(
        dense, y, 3, naive.logistic, naive.uniform_mix, lambda *_: 6.0, 0.5, uniforms=np.zeros(2000)
    )
    tolerance = 1e-9 if dtype == np.float64 else 1e-4
    np.testing.assert_allclose(np.concatenate(losses), rows[0], atol=tolerance)
    np.testing.assert_allclose(one.weights, W, atol=tolerance)
    assert one.state.norm_sq == pytest.approx(0.25, rel=1e-5)


@every_type
def test_what_is_nothing_beside_the_rest_becomes_0(dtype):
    """A feature that came once and never again fades away, and does not linger as a denormal."""
    X = np.zeros((4000, 2))
    X[0, 0], X[1:, 1] = 0.1, np.tile([3.0, -3.0], 2000)[:-1]
    loss = dl.losses.Logistic(dl.tasks.Multiclass(2))
    rate, domain = dl.rates.Constant(6.0), dl.domains.Ball(1.0)
    one = dl.OGD(loss, dl.decoders.UniformMix(loss), rate, domain, dtype=dtype)
    scales = [1.0]
    for x in X:  # until the weights are made smaller for the first time
        one.step(x, 0)
        scales.append(one.state.scale)
        if scales[-1] > scales[-2]:
            break
        assert (one.engine.stored[:, 0] != 0.0).all()
    assert scales[-1] > 1.0
    assert (one.engine.stored[:, 0] == 0.0).all()
    assert np.linalg.norm(one.weights) == pytest.approx(0.5, rel=1e-5)


@pytest.mark.parametrize("bad", [0, 1, 7])
def test_steps_before_a_bad_row_are_taken(bad):
    X, y = np.eye(8), np.arange(8) % 3
    X[bad, 2] = np.nan
    task = dl.tasks.Multiclass(3)
    one, two = (dl.OGD(dl.losses.Logistic(task)) for _ in range(2))
    one.run(np.full((1, 8), 0.25), y[:1])
    two.run(np.full((1, 8), 0.25), y[:1])
    if bad:
        two.run(X[:bad], y[:bad])
    block = dl.engines.Block(
        inputs.rows_of(X),
        0,
        8,
        task.labels.check_all(y),
        np.full((8, 1), 0.5),
        np.empty((5, 8)),
        np.empty((8, 1), dtype=np.int64),
    )
    assert one.engine.play(block) == bad
    np.testing.assert_array_equal(one.weights, two.weights)
