"""Members that play one round in one compiled call play what each would play alone."""

import copy

import numpy as np
import pytest
import scipy.sparse as sp

import driftline as dl
from driftline import decoders, losses, rates, tasks
from driftline.committee.fused import FusedStep


def drawn(task, dtype=np.float64):
    """Return a committee in which all predictions are drawn, and members draw their own."""
    loss = losses.Logistic(task)
    made = [
        decoders.GapOptimal(loss),
        decoders.UniformMix(loss),
        decoders.Argmax(losses.Scaled(loss, 2.0)),
    ]
    rest = {"rate": rates.Polyak(monotone=False, cap=5.0), "dtype": dtype}
    members = [
        dl.OGD(one.loss, one, intercept=j == 1, seed=j, **rest) for j, one in enumerate(made)
    ]
    return dl.Committee(members, seed=5)


def auto(task, dtype=np.float64):
    return dl.auto(task, dtype=dtype, effort="fast")


def flips(rounds=300, features=7, classes=3):
    """Return a stream whose labels change at once, so that some members start again."""
    generator = np.random.default_rng(3)
    X = generator.normal(size=(rounds, features))
    y = np.argmax(X[:, :classes], axis=1)
    y[rounds // 2 :] = (y[rounds // 2 :] + 1) % classes
    return X, y


def same(one, other):
    (about, arrays), (expected, known) = one.to_saved(), other.to_saved()
    assert about == expected
    assert all(np.array_equal(arrays[name], array) for name, array in known.items())


@pytest.fixture
def calls(monkeypatch):
    """Count the rounds that are played together."""
    played, original = [], FusedStep.play
    monkeypatch.setattr(
        FusedStep, "play", lambda self, *rest: played.append(1) or original(self, *rest)
    )
    return played


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("make", [auto, drawn])
def test_rounds_together_have_the_bits_of_a_run(make, dtype, calls):
    X, y = flips()
    ran, stepped = make(tasks.Multiclass(3), dtype), make(tasks.Multiclass(3), dtype)
    trace = ran.run(X, y)
    for t, (x, label) in enumerate(zip(X, y.tolist(), strict=True)):
        made = stepped.step(x, label)
        assert made.prediction == trace.prediction[t]
        assert made.risk == trace.risk[t] and made.target_loss == trace.target_loss[t]
        assert (made.weights == trace.weights[t]).all()
    assert len(calls) == len(y) - 1
    if make is auto:
        assert trace.members[0].restarted.any()
    same(stepped, ran)


@pytest.mark.parametrize("task", [tasks.Binary(), tasks.Multilabel(4)])
def test_tags_and_signs_together(task, calls):
    X, y = flips()
    labels = 2 * (y > 0) - 1 if isinstance(task, tasks.Binary) else (X[:, :4] > 0).astype(int)
    ran, stepped = dl.auto(task, effort="fast"), dl.auto(task, effort="fast")
    ran.run(X, labels)
    for x, label in zip(X, labels, strict=True):
        stepped.step(x, label)
    assert len(calls) == len(y) - 1
    same(stepped, ran)


@pytest.mark.parametrize("make", [auto, drawn])
def test_anything_may_happen_between_two_rounds(make, calls, tmp_path):
    X, y = flips()
    ran, stepped = make(tasks.Multiclass(3)), make(tasks.Multiclass(3))
    ran.run(X, y)
    t = 0
    while t < len(y):
        kind = t % 7
        if kind == 1:
            assert stepped.predict(X[t]) == stepped.step(X[t], int(y[t])).prediction
        elif kind == 2:
            with pytest.raises(dl.InputError):
                stepped.step(np.full(7, np.nan), 0)
            with pytest.raises(dl.InputError):
                stepped.learn_row(X[t, :3], 0)
            stepped.learn_row(X[t], int(y[t]))
        elif kind == 3:
            with pytest.raises(dl.InputError):
                stepped.run(np.vstack([X[t : t + 3], np.full(7, np.inf)]), np.zeros(4, int))
            stepped.learn_rows(X[t : t + 3], y[t : t + 3])
            t += 2
        elif kind == 4:
            stepped = copy.deepcopy(stepped)
            stepped.step(X[t], int(y[t]))
        else:
            stepped.step(X[t].tolist(), int(y[t]))
        t += 1
    assert len(calls) > 150
    same(stepped, ran)


def test_sparse_rows_and_accounts_go_the_long_way(calls):
    X, y = flips(rounds=60)
    mixed, dense = drawn(tasks.Multiclass(3)), drawn(tasks.Multiclass(3))
    for t, (x, label) in enumerate(zip(X, y.tolist(), strict=True)):
        row = sp.csr_array(x[np.newaxis]) if t % 20 > 15 else x
        np.testing.assert_allclose(mixed.step(row, label).risk, dense.step(x, label).risk, 1e-9)
    calls.clear()
    tally = mixed.members[0].watch(dl.comparators.Fixed(np.zeros((3, 7))))
    for x, label in zip(X, y.tolist(), strict=True):
        mixed.step(x, label)
    assert not calls and tally.rounds == 60
    mixed.members[0].watch(None)
    mixed.step(X[0], 0)
    assert calls
