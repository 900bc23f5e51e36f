"""What is true of hashed rows, beside the laws of all maps."""

import itertools
import math

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import driftline as dl
from driftline.features import Chain, Hashing, Standardise, Union
from driftline.inputs import rows_of

every_kind = pytest.mark.parametrize("categories", [False, True, (1, 4)])


def rows_with_zeros(seed=0, rows=60, features=9):
    rng = np.random.default_rng(seed)
    made = np.round(rng.standard_normal((rows, features)), rng.integers(0, 3))
    made[rng.random(made.shape) < 0.4] = 0.0
    made[0], made[1, 2:] = 0.0, 0.0
    return made


@every_kind
@pytest.mark.parametrize("columns", [1, 2, 7, 1000, 2**14])
def test_hashes_are_those_written_out(categories, columns):
    rows = rows_with_zeros()
    part = Hashing(columns, categories, seed=5)
    constants = part.constants(9)
    made = part.transform(rows)
    assert made.has_canonical_format and made.shape == (60, columns)
    picked = np.unique(made.indices)
    expected = naive.hashing(rows, columns, constants[2:], categories)
    np.testing.assert_allclose(made[:, picked].toarray(), expected[:, picked], atol=1e-14)
    assert np.count_nonzero(np.delete(expected, picked, axis=1)) == 0


@given(
    cells=st.lists(
        st.one_of(st.integers(-3, 3), st.floats(allow_nan=False, allow_infinity=False)),
        min_size=1,
        max_size=30,
    ),
    columns=st.integers(1, 40),
    categories=st.booleans(),
)
def test_any_finite_row_has_norm_1_at_most_in_columns_that_rise(cells, columns, categories):
    made = Hashing(columns, categories).transform(np.array([cells], dtype=np.float64))
    assert (np.diff(made.indices) > 0).all() and made.nnz <= min(columns, len(cells))
    assert np.linalg.norm(made.data) <= 1.0 + 1e-12
    assert np.isfinite(made.data).all()


@every_kind
@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csr_matrix])
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_dense_and_sparse_rows_are_mapped_alike_and_may_be_mixed(categories, kind, index):
    rows, mapper = rows_with_zeros(), Hashing(50, categories).mapper()
    thin = kind(rows)
    thin.indices, thin.indptr = thin.indices.astype(index), thin.indptr.astype(index)
    one, other = mapper.transform(rows), mapper.transform(thin)
    for name in ("data", "indices", "indptr"):
        assert getattr(one, name).tobytes() == getattr(other, name).tobytes()
    some = mapper.piece(rows_of(thin), 7, 20).matrix
    assert (some != one[7:20]).nnz == 0


def test_a_learner_of_hashed_rows_takes_dense_and_sparse_ones_in_turn():
    loss = dl.losses.Logistic(dl.tasks.Multiclass(2))
    one, other = (dl.OGD(loss, features=Hashing(50)) for _ in range(2))
    rows, labels = rows_with_zeros(), np.arange(60) % 2
    one.run(rows, labels)
    other.run(rows[:20], labels[:20])
    other.run(sparse.csr_array(rows[20:]), labels[20:])
    np.testing.assert_array_equal(one.weights, other.weights)


@every_kind
def test_a_feature_that_is_0_is_no_feature(categories):
    """So that new features, which were 0 so far, change nothing."""
    rows = rows_with_zeros()
    wide = np.hstack([rows, np.zeros((60, 5))])
    one, other = Hashing(50, categories).transform(rows), Hashing(50, categories).transform(wide)
    assert one.data.tobytes() == other.data.tobytes()
    assert one.indices.tobytes() == other.indices.tobytes()


def test_every_value_of_a_feature_is_a_category_of_its_own():
    """Neighbours in floating point and signs are told apart, and so are features."""
    values = [1.0, -1.0, 2.0, 1.0 + 2**-52, 1.5, 0.1, 1e-300, -1e-300, 5e-324, 1.7e308, 4711.0]
    rows = np.zeros((2 * len(values), 2))
    for i, (j, value) in enumerate(itertools.product((0, 1), values)):
        rows[i, j] = value
    made = Hashing(2**24, categories=True).transform(rows)
    assert len(set(made.indices.tolist())) == len(rows) == made.nnz
    again = Hashing(2**24, categories=True).transform(rows[::-1])
    assert again.indices[::-1].tolist() == made.indices.tolist()


def test_products_of_hashed_rows_are_those_of_rows_on_average():
    """Without a bias, and with the variance that four independent keys have."""
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((2, 20))
    x, y = x / np.linalg.norm(x), y / np.linalg.norm(y)
    columns, found = 8, []
    for seed in range(2000):
        constants = Hashing(columns, seed=seed).constants(20)
        # single features have norm 1, hence no collisions and their hashes as they are
        one = Hashing(columns, seed=seed).transform(np.eye(20)).toarray()
        assert constants[0] == columns
        found.append((x @ one) @ (y @ one))
    wanted = (1.0 + (x @ y) ** 2 - 2.0 * ((x * y) ** 2).sum()) / columns
    assert abs(np.mean(found) - x @ y) < 5.0 * math.sqrt(wanted / 2000)
    assert abs(np.var(found) / wanted - 1.0) < 0.2


def test_hashes_are_the_same_on_every_machine():
    """These columns and signs are part of what a saved model means."""
    made = Hashing(1000, seed=7).transform(np.eye(4))
    assert made.indices.tolist() == [965, 480, 335, 641]
    assert made.data.tolist() == [1.0, 1.0, -1.0, -1.0]
    made = Hashing(1000, categories=True, seed=8).transform(np.array([[1.0], [2.0], [-0.3]]))
    assert (made.indices.tolist(), made.data.tolist()) == ([600, 311, 602], [1.0, 1.0, 1.0])


def test_numbers_and_categories_side_by_side_learn_what_neither_does_alone():
    """A label that 400 users decide, unless a number does."""
    rng = np.random.default_rng(0)
    users, number = rng.integers(1, 401, 20_000), rng.standard_normal(20_000)
    labels = ((users % 2 == 0) | (number > 1.0)).astype(int)
    rows = np.stack([users, number], axis=1)
    loss = dl.losses.Scaled(dl.losses.Logistic(dl.tasks.Multiclass(2)), 2.0)

    def mistakes(features):
        ball = dl.domains.Ball(200.0)
        learner = dl.OGD(loss, dl.decoders.Argmax(loss), domain=ball, features=features)
        return learner.run(rows, labels).target_loss[10_000:].mean()

    both = mistakes(Union(Standardise(), Hashing(2**14, categories=(0,))))
    assert both < 0.5 * min(mistakes(Standardise()), mistakes(Hashing(2**14, categories=(0,))))


def test_a_bad_cell_is_refused_even_where_it_is_not_looked_at():
    for rows in (np.array([[1.0, 2.0], [1.0, math.nan]]),):
        for kind in (np.asarray, sparse.csr_array):
            with pytest.raises(dl.InputError, match="row 1 has nan as feature 1"):
                Hashing(16, categories=(0,)).transform(kind(rows))


def test_first_rows_are_checked_whatever_was_looked_at_before():
    mapper = Hashing(16, categories=(3,)).mapper()
    mapper.look_at(rows_of(np.ones((1, 9))))
    with pytest.raises(dl.InputError, match="feature 3 is to be a category, but there are 2"):
        mapper.look_at(rows_of(np.ones((1, 2))))


def test_very_wide_rows_take_no_more_memory_than_columns():
    rows = sparse.csr_array(([1.0, 2.0], ([0, 1], [5, 99_999_999])), shape=(2, 10**8))
    loss = dl.losses.Logistic(dl.tasks.Multiclass(2))
    learner = dl.OGD(loss, features=Chain(Hashing(64), Standardise()))
    learner.run(rows, [0, 1])
    assert learner.weights.shape == (2, 65) and learner.features == 10**8
