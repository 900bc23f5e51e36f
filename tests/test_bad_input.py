"""Bad input gets a clear error, and leaves the learner as it was."""

import math

import numpy as np
import pytest
from scipy import sparse

import driftline as dl

TASK = dl.tasks.Multiclass(3)
LOSS = dl.losses.Logistic(TASK)
rng = np.random.default_rng(0)
X = rng.standard_normal((40, 4))
Y = rng.integers(0, 3, 40)


def with_entry(value, row=25, column=2):
    changed = X.copy()
    changed[row, column] = value
    return changed


BAD_STREAMS = [
    (with_entry(np.nan), Y, "row 25 has nan as feature 2"),
    (with_entry(np.inf), Y, "row 25 has inf as feature 2"),
    (with_entry(1e200), Y, "row 25 is too large"),
    (sparse.csr_array(with_entry(np.nan)), Y, "row 25 has nan as feature 2"),
    (X, np.where(np.arange(40) == 9, 3, Y), "label 3 in row 9 is outside 0..2"),
    (X, Y[:-1], "40 inputs but 39 labels"),
    (X[:0], Y[:0], "empty"),
    (np.zeros((40, 5)), Y, "5 features, but the learner has seen 4"),
    (X[:, 0], Y, "two dimensions"),
    (sparse.csc_array(X), Y, "CSR format, but these are in CSC"),
    (sparse.coo_array(X), Y, "CSR format, but these are in COO"),
    (X.astype(complex), Y, "real numbers"),
    (np.full((40, 4), "a"), Y, "real numbers"),
    ([[1.0, 2.0], [3.0]], Y[:2], "do not form an array"),
    (X, np.full(40, "a"), "whole numbers"),
    (X, None, "or a stream"),
]


def fresh(learned):
    learner = dl.OGD(LOSS, seed=3)
    if learned:
        learner.run(X, Y)
    return learner


def state(learner):
    return (
        None if learner.engine.stored is None else learner.weights.tobytes(),
        learner.engine.vector.tobytes(),
        learner.engine.features,
        str(learner.to_saved()[0]),
    )


def new_and_old(cases):
    """For a learner that has learned already, and for a new one, which takes any size."""
    return [(*case, old) for case in cases for old in (True, False) if old or "seen" not in case[2]]


@pytest.mark.parametrize(
    "inputs, labels, words, learned", new_and_old(BAD_STREAMS), ids=lambda v: str(v)[:40]
)
def test_a_bad_stream_is_refused_and_nothing_changes(inputs, labels, words, learned):
    learner = fresh(learned)
    before = state(learner)
    with pytest.raises(dl.InputError, match=words):
        learner.run(inputs, labels, seed=99)
    assert state(learner) == before


BAD_ROUNDS = [
    ([1.0, np.nan, 0.0, 0.0], 0, "nan as feature 1"),
    (np.array([1.0, 0.0, -np.inf, 0.0]), 0, "-inf as feature 2"),
    (sparse.csr_array([[0.0, np.nan, 0.0, 1.0]]), 0, "nan as feature 1"),
    ([1.0, 0.0, 0.0, 0.0], 3, "label 3 is outside"),
    ([1.0, 0.0, 0.0, 0.0], "b", "whole numbers"),
    (np.ones((2, 4)), 0, "one round, but got 2"),
    (np.ones(5), 0, "5 features, but the learner has seen 4"),
]


@pytest.mark.parametrize(
    "x, label, words, learned", new_and_old(BAD_ROUNDS), ids=lambda v: str(v)[:30]
)
@pytest.mark.parametrize("method", ["step", "learn"])
def test_a_bad_round_is_refused_and_nothing_changes(x, label, words, learned, method):
    learner = fresh(learned)
    learner.predict(X[0])
    before = state(learner)
    with pytest.raises(dl.InputError, match=words):
        getattr(learner, method)(x, label)
    assert state(learner) == before


@pytest.mark.parametrize("method", ["scores", "predict", "distribution"])
def test_looking_at_bad_input_is_refused(method):
    with pytest.raises(dl.InputError, match="nan as feature 0"):
        getattr(fresh(True), method)([np.nan, 0, 0, 0])


def test_weights_before_the_first_input():
    with pytest.raises(dl.InputError, match="before its first input"):
        _ = fresh(False).weights


def test_column_indices_out_of_range_never_reach_the_loop():
    broken = sparse.csr_array(X)
    broken.indices[7] = 10**6
    broken.has_canonical_format = True
    with pytest.raises(dl.InputError, match="column indices"):
        fresh(True).run(broken, Y)


HINGE = dl.losses.SmoothHinge(TASK)


@pytest.mark.parametrize(
    "make, error, words",
    [
        (lambda: dl.domains.Ball(-1.0), dl.InputError, "must be positive, but is -1"),
        (lambda: dl.domains.Ball(math.nan), dl.InputError, "must be positive"),
        (lambda: dl.domains.Ball(math.inf), dl.InputError, "must be positive"),
        (lambda: dl.rates.Constant(0.0), dl.InputError, "must be positive"),
        (lambda: dl.rates.Constant(input_norm=-1), dl.InputError, "input_norm"),
        (lambda: dl.rates.Polyak(cap=0.0), dl.InputError, "cap"),
        (lambda: dl.rates.Polyak(cap=math.nan), dl.InputError, "cap"),
        (
            lambda: dl.OGD(LOSS, dl.decoders.Argmax(LOSS)),
            dl.NoGuaranteeError,
            "Scale the loss above",
        ),
        (
            lambda: dl.OGD(LOSS, rate=dl.rates.Polyak(monotone=False)),
            dl.NoGuaranteeError,
            "finite cap",
        ),
        (
            lambda: dl.OGD(LOSS, rate=dl.rates.AdaGrad(), domain=dl.domains.Unbounded()),
            dl.NoGuaranteeError,
            "unbounded",
        ),
        (
            lambda: dl.OGD(LOSS, dl.decoders.Argmax(LOSS), dl.rates.Constant()),
            dl.NoGuaranteeError,
            "give eta",
        ),
        (lambda: dl.OGD(LOSS, dl.decoders.GapOptimal(HINGE)), dl.InputError, "was made for"),
        (lambda: dl.OGD(LOSS, initial=np.zeros((2, 4))), dl.InputError, "3 rows"),
        (lambda: dl.OGD(LOSS, initial=np.full((3, 4), np.nan)), dl.InputError, "finite"),
        (lambda: dl.OGD(LOSS, initial=np.full((3, 4), 9.0)), dl.InputError, "in the domain"),
    ],
)
def test_parts_that_do_not_fit_are_refused(make, error, words):
    with pytest.raises(error, match=words):
        make()


def test_what_is_refused_has_a_way_out():
    dl.OGD(HINGE, rate=dl.rates.Polyak(monotone=False))
    dl.OGD(LOSS, rate=dl.rates.Polyak(monotone=False, cap=5.0))
    scaled = dl.losses.Scaled(LOSS, 2.0)
    dl.OGD(scaled, dl.decoders.Argmax(scaled))
    learner = dl.OGD(LOSS, domain=dl.domains.Unbounded())
    learner.run(X, Y)
    assert "unbounded" in learner.describe()


def test_errors_are_value_errors():
    assert issubclass(dl.InputError, ValueError) and issubclass(dl.NoGuaranteeError, ValueError)
