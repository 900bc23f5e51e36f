"""Transformers that were fitted elsewhere: the laws of maps, names in files, and refusals."""

import copy
import subprocess
import sys
import threading

import numpy as np
import pytest
import test_features as laws
from howmany import chosen
from scipy import sparse
from sklearn.decomposition import PCA
from sklearn.feature_extraction import FeatureHasher
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

import driftline as dl
from driftline.checks import check_learner
from driftline.errors import InputError
from driftline.features import Chain, Fitted, Hats, Ranks, Shorten, Union
from driftline.inputs import rows_of

ROWS = laws.table()


class Duck:
    """Anything with a method transform will do: here two numbers of each row, whatever it has."""

    def __init__(self, change=lambda made, rows: made):
        self.change = change

    def transform(self, rows):
        return self.change(np.stack([rows.min(axis=1), np.tanh(rows).sum(axis=1)], axis=1), rows)


PARTS = [
    Fitted(PCA(3).fit(ROWS), "pca"),
    Fitted(StandardScaler(copy=False).fit(ROWS), "in place"),
    Fitted(Duck(), "duck", columns=2),
    Chain(Ranks(8), Fitted(Duck(), "later", columns=2), Shorten()),
    Union(Hats(3), Fitted(PCA(1).fit(ROWS), "beside")),
]

every_part = pytest.mark.parametrize("part", chosen(PARTS[1::2] + PARTS[-1:], PARTS), ids=repr)

LAWS = [
    laws.test_no_map_refuses_rows_of_the_size_that_it_bears,
    laws.test_rows_are_mapped_by_those_before_whatever_the_pieces,
    laws.test_looking_gives_what_learning_would_and_changes_nothing,
    laws.test_some_of_the_rows_can_be_looked_at,
    laws.test_what_was_transformed_stays,
    laws.test_no_rows_are_no_rows,
    laws.test_what_was_saved_is_a_copy,
    laws.test_rows_of_another_length_are_refused,
    laws.test_growing_by_nothing_changes_nothing,
    laws.test_runs_in_two_pieces_are_certified,
    laws.test_members_with_maps_step_as_they_run,
    laws.test_learners_keep_their_page_with_any_map,
]


@every_part
@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
def test_fitted_transformers_keep_the_laws_of_maps(part, law):
    if law is laws.test_learners_keep_their_page_with_any_map:
        check_learner(laws.learner(part), *laws.stream(40))
    else:
        law(part)


@every_part
@pytest.mark.parametrize("known", [0, 30])
def test_bad_rows_are_refused_by_their_number(part, known):
    laws.test_a_row_that_is_not_finite_is_refused_by_its_number(part, known)


def test_mapped_rows_are_what_the_transformer_makes_of_each():
    pca = PCA(3).fit(ROWS)
    made = Fitted(pca, "some").transform(ROWS)
    np.testing.assert_allclose(made, pca.transform(ROWS), atol=1e-9)
    assert made[:1].tobytes() == pca.transform(ROWS[:1]).tobytes()


def test_what_does_not_name_its_features_is_asked_by_a_row_of_zeros():
    tanh = FunctionTransformer(np.tanh)
    assert Fitted(make_pipeline(PCA(2), tanh).fit(ROWS), "pipeline").width(6) == 2
    assert Fitted(tanh.fit(ROWS), "a function").width(6) == 6
    assert Fitted(FunctionTransformer(np.tanh), "unfitted", columns=6).width(6) == 6


def test_rows_are_left_alone_by_transformers_that_write():
    rows = ROWS.copy()
    Fitted(StandardScaler(copy=False).fit(ROWS), "writes").transform(rows)
    np.testing.assert_array_equal(rows, ROWS)


def test_fitting_the_original_again_changes_nothing():
    scaler = StandardScaler().fit(ROWS)
    learner = laws.learner(Fitted(scaler, "again"))
    learner.run(*laws.stream(40))
    before = learner.scores(ROWS[0])
    scaler.fit(1e6 * ROWS + 7.0)
    np.testing.assert_array_equal(learner.scores(ROWS[0]), before)
    np.testing.assert_array_equal(learner.copy().scores(ROWS[0]), before)


# -- files have the name alone


@pytest.fixture
def saved(tmp_path):
    learner = laws.learner(Fitted(StandardScaler().fit(ROWS), "prices"))
    learner.run(*laws.stream(40))
    return learner, learner.save(tmp_path / "model.driftline")


def test_a_learner_is_loaded_by_the_name_of_its_transformer(saved):
    learner, path = saved
    again = dl.load(path)
    assert again.map == learner.map and again.map.transformer is learner.map.transformer
    np.testing.assert_array_equal(again.scores(ROWS[0]), learner.scores(ROWS[0]))
    assert b"StandardScaler" not in path.read_bytes()


def test_without_its_transformer_nothing_is_loaded(saved, monkeypatch):
    _, path = saved
    monkeypatch.setattr(Fitted, "known", {})
    with pytest.raises(InputError, match="no transformer is known as 'prices': files hold its"):
        dl.load(path)
    Fitted(StandardScaler().fit(ROWS), "prices")  # an equal one will do
    assert dl.load(path).rounds == 40


def test_another_transformer_of_the_name_is_found_out(saved, monkeypatch):
    _, path = saved
    monkeypatch.setattr(Fitted, "known", {})
    Fitted(StandardScaler().fit(ROWS + 1.0), "prices")
    with pytest.raises(InputError, match="another transformer, or was fitted again"):
        dl.load(path)
    Fitted(PCA(2).fit(ROWS), "prices")
    with pytest.raises(InputError, match="must be 9 finite numbers"):
        dl.load(path)


def test_two_transformers_are_two_maps_whatever_their_names():
    scaler = StandardScaler().fit(ROWS)
    one, other = Fitted(scaler, "twice"), Fitted(StandardScaler().fit(ROWS + 1.0), "twice")
    assert one != other and one == one and Fitted(name="twice") == other
    assert Fitted(scaler, "a name") != Fitted(name="twice")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"features": 7}, "is for 6 features, but rows have 7"),
        ({"features": True}, "1 feature or more, or none, not True"),
        ({"features": None}, "before the first row must be 0 finite numbers"),
        ({"features": "6"}, "or none, not '6'"),
    ],
)
def test_an_edited_state_is_refused(change, words):
    mapper = laws.after(Fitted(StandardScaler().fit(ROWS), "edited"), ROWS[:9])
    about, arrays = mapper.to_saved()
    before = laws.saved(mapper)
    with pytest.raises(InputError, match=words):
        mapper.restore({**about, **change}, arrays)
    for name, array in arrays.items():
        for other in (None, array[:-1], array[np.newaxis], array.astype(object), array * np.nan):
            with pytest.raises(InputError):
                mapper.restore(about, {**arrays, name: other})
    other = arrays["state"].copy()
    mapper.layout.views(other).mapped[:] += 0.1
    with pytest.raises(InputError, match="another transformer"):
        mapper.restore(about, {"state": other})
    with pytest.raises(InputError):
        mapper.restore(about, {})
    assert laws.saved(mapper) == before


# -- what transformers may do wrong


def wrong(made, rows):
    """Fail by what stands in the first cell."""
    cell = rows[0, 0]
    if cell == 101:
        raise RuntimeError("no such shop")
    return {
        102: np.full_like(made, np.nan),
        103: np.vstack([made, made]),
        104: made[:, :1],
        105: sparse.csr_array(made),
        106: np.array([["a", "b"]]),
        107: made[0],
        108: None,
    }.get(cell, made)


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        (101, "raised RuntimeError: no such shop"),
        (102, "made nan as feature 0: expected finite numbers"),
        (103, r"made an array of shape \(2, 2\): expected \(1, 2\)"),
        (104, r"made an array of shape \(1, 1\): expected \(1, 2\)"),
        (105, "made a sparse matrix: expected an array"),
        (106, "made no numbers"),
        (107, r"made an array of shape \(2,\): expected \(1, 2\)"),
        (108, r"made an array of shape \(\): expected \(1, 2\)"),
    ],
)
@pytest.mark.parametrize("known", [0, 20])
def test_what_a_transformer_does_wrong_is_refused_before_anything_changes(cell, words, known):
    part = Fitted(Duck(wrong), "wrong", columns=2)
    learner = laws.learner(part)
    committee = dl.Committee([laws.learner(part), laws.learner(None)])
    rows, labels = laws.stream(40)
    for one in (learner, committee):
        if known:
            one.run(rows[:known], labels[:known])
        before = laws.saved(one)
        bad = rows.copy()
        bad[11, 0] = cell
        with pytest.raises(InputError, match=words) as error:
            one.run(bad, labels)
        assert cell == 105 or "row 11: " in str(error.value)
        for call in (one.step, one.learn_row):
            with pytest.raises(InputError, match=words):
                call(bad[11], 1)
        for call in (one.predict, one.ask):
            with pytest.raises(InputError, match=words):
                call(bad[11])
        assert laws.saved(one) == before
        one.run(rows, labels)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Fitted(PCA(2).fit(ROWS)), "needs a name"),
        (lambda: Fitted(PCA(2).fit(ROWS), 3), "needs a name"),
        (lambda: Fitted(PCA(2), "n"), "fit it first"),
        (lambda: Fitted(PCA, "n"), "expected a fitted transformer"),
        (lambda: Fitted(3, "n"), "expected a fitted transformer"),
        (lambda: Fitted(Duck(), "n"), "give columns="),
        (lambda: Fitted(FunctionTransformer(np.tanh), "n"), "give columns="),
        (lambda: Fitted(Duck(), "n", columns=0), "whole number from 1"),
        (lambda: Fitted(Duck(threading.Lock()), "n", columns=2), "cannot be copied"),
        (lambda: Fitted(name="never given"), "no transformer is known as 'never given'"),
        (lambda: Fitted(PCA(2).fit(ROWS), "n").transform(ROWS[:, :3]), "is for 6 features"),
        (lambda: Fitted(PCA(2).fit(ROWS), "n").transform(sparse.csr_array(ROWS)), "dense rows"),
        (lambda: Fitted(FeatureHasher(4), "n", columns=4).transform(ROWS), "raised"),
        (
            lambda: Fitted(OneHotEncoder().fit(ROWS[:, 3:4]), "n").transform(ROWS[:, 3:4]),
            "sparse_output=False",
        ),
        (
            lambda: laws.after(PARTS[0], ROWS).grown(8),
            "is for 6 features, but rows have 8: fit another",
        ),
    ],
)
def test_what_is_no_fitted_transformer_is_refused(make, words):
    with pytest.raises(InputError, match=words):
        make()


def test_scikit_learn_is_not_imported_for_it():
    code = (
        "import sys, numpy as np, driftline as dl\n"
        "class Half:\n"
        "    def transform(self, rows): return rows / 2\n"
        "dl.features.Fitted(Half(), 'half', columns=3).transform(np.ones((2, 3)))\n"
        "assert 'sklearn' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_looking_and_first_rows():
    mapper = PARTS[0].mapper()
    mapper.look_at(rows_of(ROWS[:3]))
    assert mapper.features is None and mapper.state.size == 0
    mapper.remember(rows_of(ROWS[4:5]))
    np.testing.assert_array_equal(mapper.layout.views(mapper.state).row, ROWS[4])


class Times:
    """Multiplies by a number."""

    def __init__(self, factor):
        self.factor = factor

    def transform(self, rows):
        return rows * self.factor


@pytest.mark.parametrize("played", [0, 40])
@pytest.mark.parametrize("committee", [False, True])
def test_another_transformer_of_the_same_name_changes_no_learner_in_memory(played, committee):
    random = np.random.default_rng(0)
    X, y = random.standard_normal((60, 3)), random.integers(0, 3, 60)
    loss = dl.losses.Logistic(dl.tasks.Multiclass(3))
    learner = dl.OGD(loss, features=Fitted(Times(1.0), "times", columns=3))
    learner = dl.Committee([learner]) if committee else learner
    for x, label in zip(X[:played], y[:played], strict=True):
        learner.step(x, label)
    trace = learner.copy().run(X, y)
    Fitted(Times(5.0), "times", columns=3)
    for made in (learner.copy(), copy.deepcopy(learner), learner.grown(classes=3)):
        assert np.array_equal(made.run(X, y).target_loss, trace.target_loss)
    if played:
        assert learner.snapshot().predict(X[0]) == learner.predict(X[0])
    none = None if committee else dl.comparators.Fixed(np.zeros((3, 3)))
    assert dl.certify(trace, none, X, y).valid
    assert Fitted(name="times", columns=3).transformer.factor == 5.0
