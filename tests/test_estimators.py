"""Estimators: scikit-learn's own checks, the learner's bits behind them, and their files."""

import copy
import pickle
import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import driftline as dl
from driftline.estimators.labels import Labels
from driftline.estimators.queries import starts_of
from driftline.features import Standardiser
from driftline.inputs import rows_of
from driftline.state import archive
from driftline.streams import Planted, PlantedRankings, PlantedSequences
from tests.strategies import committee_by

T = dl.tasks
NAMES = np.array(["pear", "apple", "fig"])


def plain(task):
    """Return the learner of the paper, with a random decoder."""
    return dl.OGD(dl.losses.Logistic(task))


def digits(rounds=400):
    stream = dl.streams.DigitTriples(rounds=rounds, flips=0, seed=0)
    return stream.inputs, stream.labels


def queries():
    stream = PlantedRankings(T.NDCG(max_relevance=3), rounds=60, flips=0, seed=0)
    qid = np.repeat(np.arange(60), [len(x) for x in stream.inputs])
    return np.concatenate(stream.inputs), np.concatenate(stream.labels), qid


def sequences():
    stream = PlantedSequences(rounds=40, tags=3, flips=0, seed=0)
    return list(stream.inputs), [NAMES[tags] for tags in stream.labels]


ONE_BY_ONE = "rows are learned from one after the other: the same row twice is two smaller steps"
IN_ORDER = {
    "check_sample_weight_equivalence_on_dense_data": ONE_BY_ONE,
    "check_sample_weight_equivalence_on_sparse_data": ONE_BY_ONE,
}


def expected_failures(estimator):
    """Return the checks that no online learner passes, and those that need more rows."""
    few = "the heavy class has 25 rows: too few for the linear members of tags, or without scaling"
    if isinstance(estimator, dl.DriftMultilabelClassifier) or not estimator.scaling:
        return IN_ORDER | {"check_class_weight_classifiers": few}
    return IN_ORDER


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks(
    [
        dl.DriftClassifier("fast"),
        dl.DriftMultilabelClassifier("fast"),
        dl.DriftOrdinalClassifier(learner="fast"),
    ],
    expected_failed_checks=expected_failures,
)
def test_all_checks_of_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks(
    [dl.DriftClassifier("paper"), dl.DriftClassifier("paper", scaling=False, epochs=5)],
    expected_failed_checks=expected_failures,
)
def test_all_checks_with_one_learner(estimator, check):
    check(estimator)


def test_scikit_learn_is_imported_only_when_an_estimator_is_used():
    code = "import driftline as dl, sys; dl.OGD, dl.auto, dl.load; print('sklearn' in sys.modules)"
    code += "; dl.DriftClassifier; print('sklearn' in sys.modules)"
    made = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert made.stdout.split() == ["False", "True"], made.stderr


# -- learning


@pytest.mark.parametrize("how", ["fast", "paper", plain])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_one_row_at_a_time_is_the_same_as_batches_and_as_the_learner_itself(how, form):
    X, y = digits(120)
    X = form(X)
    single, whole = dl.DriftClassifier(how), dl.DriftClassifier(how)
    for t in range(120):
        single.partial_fit(X[t : t + 1], y[t : t + 1], classes=[0, 1, 2] if t == 0 else None)
    whole.partial_fit(X[:50], y[:50], classes=[0, 1, 2]).partial_fit(X[50:], y[50:])
    once = dl.DriftClassifier(how).fit(X, y)
    for one in (whole, once):
        assert (single.predict_proba(X) == one.predict_proba(X)).all()
    if how is not plain and how != "fast":
        return
    learner = dl.auto(T.Multiclass(3), effort="fast") if how == "fast" else plain(T.Multiclass(3))
    learner.run(X, y)
    assert (learner.score_rows(X) == once.learner_.score_rows(X)).all()
    assert single.n_rounds_ == 120


def drawing(task):
    return dl.Committee([plain(task), plain(task)], seed=3)


@pytest.mark.parametrize("make", [plain, dl.auto, drawing])
def test_learning_without_a_trace_ends_where_a_run_does(make):
    X, y = digits(90)
    played, learned, single = (make(T.Multiclass(3)) for _ in range(3))
    played.run(X, y)
    learned.learn_rows(X[:40], y[:40])
    learned.learn_rows(X[40:], y[40:])
    for x, label in zip(X, y.tolist(), strict=True):
        single.learn_row(x, label)
    expected, arrays = played.to_saved()
    for other in (learned, single):
        about, own = other.to_saved()
        assert about == expected
        assert all(np.array_equal(own[name], array) for name, array in arrays.items())
    bad = np.vstack([X, np.full(64, np.inf)])
    for refused in (
        lambda: single.learn_rows(bad, np.r_[y, 0]),
        lambda: single.learn_row(bad[-1], 0),
    ):
        with pytest.raises(dl.InputError):
            refused()
    assert all(np.array_equal(single.to_saved()[1][name], a) for name, a in arrays.items())


def test_probabilities_of_one_learner_are_the_softmax_of_its_scores():
    X, y = digits()
    model = dl.DriftClassifier(plain).fit(X, y)
    scores = np.array([model.learner_.scores(x) for x in X])
    np.testing.assert_allclose(model.learner_.score_rows(X), scores, rtol=1e-9, atol=1e-12)
    expected = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.predict_proba(X), expected, rtol=1e-9)
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), expected, rtol=1e-9)
    assert (model.predict(X) == scores.argmax(axis=1)).all()


def test_probabilities_of_a_committee_are_the_mean_of_its_members():
    X, y = digits()
    model = dl.DriftClassifier(lambda task: committee_by("vote", task)).fit(X, y)
    committee = model.learner_
    scores = committee.score_rows(X)
    each = np.exp(scores) / np.exp(scores).sum(axis=2, keepdims=True)
    mean = np.einsum("j,jnk->nk", committee.beliefs, each)
    votes = np.array([committee.predict(x) for x in X])
    np.testing.assert_array_equal(votes, model.predict(X))
    agree = mean.argmax(axis=1) == votes
    assert agree.mean() > 0.9
    np.testing.assert_allclose(model.predict_proba(X)[agree], mean[agree], rtol=1e-9)
    np.testing.assert_allclose(np.sort(model.predict_proba(X)), np.sort(mean), rtol=1e-9)


def test_looking_changes_nothing():
    X, y = digits(200)
    looked, other = dl.DriftClassifier("fast").fit(X, y), dl.DriftClassifier("fast").fit(X, y)
    looked.predict(1000.0 * X), looked.decoding_distribution(X), looked.sample_predict(X, 0)
    looked.partial_fit(X, y), other.partial_fit(X, y)
    assert (looked.predict_proba(X) == other.predict_proba(X)).all()


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_scaling_looks_as_it_would_play_after_many_rows(form):
    X, _ = digits(400)
    X = np.where(np.abs(X) < 0.1, 0.0, X)
    scaling = Standardiser()
    scaling.transform(form(np.tile(X, (5, 1))))
    seen, played = scaling.look(form(X[:1])), scaling.copy().piece(rows_of(form(X[:1])), 0, 1)
    np.testing.assert_allclose(_dense(seen), _dense(played), atol=5e-3)


def _dense(rows):
    return rows.matrix.toarray() if hasattr(rows, "matrix") else rows.array


@pytest.mark.parametrize("fitted", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("asked", [np.asarray, sparse.csr_array, sparse.coo_array])
def test_dense_and_sparse_rows_go_together(fitted, asked):
    X, y = digits()
    model = dl.DriftClassifier("fast").fit(fitted(X), y)
    assert (model.predict(asked(X)) == model.predict(fitted(X))).all()
    assert model.partial_fit(asked(X), y).score(X, y) > 0.9


@pytest.mark.parametrize("how", ["auto", plain])
@pytest.mark.parametrize(
    "names", [NAMES, NAMES.astype(object), np.array([7, -2, 3]), np.array([5.0, 2.0, 1.0])]
)
def test_classes_may_first_appear_later(how, names):
    X, y = digits()
    known = y < 2
    model = dl.DriftClassifier(how).partial_fit(X[known], names[y[known]])
    before = model.learner_.score_rows(X)
    model.partial_fit(X[:0:-1], names[y[:0:-1]])
    assert (model.classes_ == np.sort(names)).all()
    assert model.score(X, names[y]) > 0.8
    fresh = dl.DriftClassifier(how).partial_fit(X[known], names[y[known]])
    fresh.partial_fit(X[known][:1], names[y[known]][:1], classes=names)
    after = dl.DriftClassifier(how).partial_fit(X[known], names[y[known]])
    after._add_classes(names[y[:1]], names)  # grows, and learns nothing
    grown = after.learner_.score_rows(X)[..., :2]
    if isinstance(after.learner_, dl.Committee):  # who counts smooths counts over all classes
        steps = [isinstance(member, dl.OGD) for member in after.learner_.members]
        assert (grown.argmax(axis=2) == before.argmax(axis=2)).all()
        grown, before = grown[steps], before[steps]
    np.testing.assert_allclose(grown, before, rtol=1e-12, atol=1e-12)  # products of matrices
    assert fresh.predict_proba(X).shape == (400, 3)


def test_a_single_class_is_no_error():
    X, y = digits(50)
    model = dl.DriftClassifier("fast").partial_fit(X, ["a"] * 50)
    assert (model.predict(X) == "a").all()
    assert (model.predict_proba(X) == 1.0).all() and model.predict_proba(X).shape == (50, 1)
    assert (model.decoding_distribution(X) == 1.0).all()
    assert (model.decision_function(X) == 0.0).all()
    assert model.partial_fit(X, NAMES[y]).predict_proba(X).shape == (50, 4)


def test_labels_of_another_kind_are_refused():
    X, y = digits(50)
    model = dl.DriftClassifier("fast").fit(X, y)
    with pytest.raises(ValueError, match="do not go with those known before"):
        model.partial_fit(X, NAMES[y])
    with pytest.raises(ValueError, match="NaN"):
        model.partial_fit(np.full((1, 64), np.nan), [0])
    with pytest.raises(ValueError, match="NaN"):
        model.predict(np.full((1, 64), np.nan))
    with pytest.raises(ValueError, match="features"):
        model.partial_fit(X[:1, :5], y[:1])
    assert model.n_rounds_ == 50


@pytest.mark.parametrize(
    "how, words",
    [
        ("quick", "one of 'auto', 'fast', .* or a function"),
        (lambda task: 3, "expected an OGD or a Committee"),
        (lambda task: plain(T.Multiclass(7)), "for Multiclass"),
    ],
)
def test_what_is_no_learner_is_refused(how, words):
    X, y = digits(10)
    with pytest.raises(ValueError, match=words):
        dl.DriftClassifier(how).fit(X, y)
    with pytest.raises(ValueError, match="epochs"):
        dl.DriftClassifier(epochs=0).fit(X, y)


# -- the random decoder


@pytest.mark.parametrize("how", ["auto", "paper", plain])
def test_decoding_distributions_and_their_draws(how):
    X, y = digits()
    model = dl.DriftClassifier(how).fit(X[:30], NAMES[y[:30]])
    chances = model.decoding_distribution(X)
    np.testing.assert_allclose(chances.sum(axis=1), 1.0)
    row = np.repeat(X[np.argmin(chances.max(axis=1))][np.newaxis], 5000, axis=0)
    drawn = model.sample_predict(row, np.random.default_rng(0))
    shares = (drawn[:, np.newaxis] == model.classes_).mean(axis=0)
    np.testing.assert_allclose(shares, model.decoding_distribution(row[:1])[0], atol=0.03)
    assert (model.sample_predict(X, 3) == model.sample_predict(X, 3)).all()
    model.sample_predict(X, np.random.RandomState(0))


def test_the_distribution_of_one_learner_is_its_decoders():
    X, y = digits(60)
    model = dl.DriftClassifier(plain).fit(X, y)
    for x, chances in zip(X, model.decoding_distribution(X), strict=True):
        atoms, weights = model.learner_.distribution(x)
        np.testing.assert_allclose(chances[atoms], weights, atol=1e-9)


# -- scikit-learn's tools


def test_pipelines_searches_and_clones():
    X, y = digits()
    model = make_pipeline(StandardScaler(), dl.DriftClassifier(scaling=False))
    assert model.fit(X, NAMES[y]).score(X, NAMES[y]) > 0.9
    grid = {"learner": ["auto", "paper", plain], "epochs": [1, 2]}
    search = GridSearchCV(dl.DriftClassifier("fast"), grid, cv=2).fit(X, NAMES[y])
    assert search.best_score_ > 0.8 and len(search.cv_results_["params"]) == 6
    copied = clone(search.best_estimator_)
    assert copied.get_params() == search.best_estimator_.get_params()
    with pytest.raises(NotFittedError):
        copied.predict(X)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_names_of_features_are_kept_compared_and_saved(library, tmp_path):
    made = pytest.importorskip(library)
    X, y = digits(60)
    table = made.DataFrame({f"pixel {i}": X[:, i] for i in range(64)})
    labels = made.Series(NAMES[y].tolist())
    model = dl.DriftClassifier("fast").fit(table, labels)
    assert model.feature_names_in_[3] == "pixel 3"
    model = dl.load(model.save(tmp_path / "model")).partial_fit(table, labels)
    assert model.n_rounds_ == 120 and model.predict(table).shape == (60,)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(made.DataFrame({f"pixel {i}": X[:, i] for i in range(63, -1, -1)}))
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        model.predict(X)


# -- files, copies


def tags():
    stream = Planted(T.Multilabel(4), rounds=100, features=6, flips=0, seed=0)
    return stream.inputs, stream.labels


def levels():
    stream = Planted(T.Ordinal(3), rounds=60, features=4, flips=0, seed=0)
    return stream.inputs, NAMES[stream.labels]


def fitted(name):
    X, y = digits(100)
    match name:
        case "classes":
            return dl.DriftClassifier("fast").partial_fit(X, NAMES[y]), (X, NAMES[y])
        case "numbers, sparse, float32":
            made = dl.DriftClassifier(dtype=np.float32, random_state=3)
            return made.partial_fit(sparse.csr_array(X), y), (sparse.csr_array(X), y)
        case "classes, objects":
            labels = NAMES[y].astype(object)
            return dl.DriftClassifier("fast").fit(X, labels), (X, labels)
        case "own learner":
            return dl.DriftClassifier(plain).fit(X, y), (X, y)
        case "tags":
            return dl.DriftMultilabelClassifier("fast").fit(*tags()), tags()
        case "classes as tags":
            return dl.DriftMultilabelClassifier("paper").fit(X, NAMES[y]), (X, NAMES[y])
        case "levels":
            return dl.DriftOrdinalClassifier(learner="fast", levels=NAMES.tolist()).fit(
                *levels()
            ), levels()
        case "ranking":
            X, y, qid = queries()
            return dl.DriftRanker().fit(X, y, qid=qid), (X, y)
        case "sequences":
            return dl.DriftTagger().fit(*sequences()), sequences()


CASES = [
    "classes",
    "numbers, sparse, float32",
    "classes, objects",
    "own learner",
    "tags",
    "classes as tags",
    "levels",
    "ranking",
    "sequences",
]


def same(left, right):
    if isinstance(left, list):
        return all(map(same, left, right))
    return left.dtype == right.dtype and np.array_equal(left, right)


@pytest.mark.parametrize("name", CASES)
def test_files_pickles_and_copies_go_on_with_the_same_bits(name, tmp_path):
    model, (X, y) = fitted(name)
    others = [
        dl.load(model.save(tmp_path / "model")),
        pickle.loads(pickle.dumps(model)),
        copy.deepcopy(model),
    ]
    model.partial_fit(X, y)
    for other in others:
        assert type(other) is type(model) and other.n_features_in_ == model.n_features_in_
        other.partial_fit(X, y)
        assert same(other.predict(X), model.predict(X))
        if hasattr(model, "predict_proba"):
            assert same(other.predict_proba(X), model.predict_proba(X))
            assert same(other.classes_, model.classes_)
            assert same(other.sample_predict(X, 0), model.sample_predict(X, 0))


def test_a_function_is_not_saved_and_missed_only_by_fit(tmp_path):
    model, (X, y) = fitted("own learner")
    again = dl.load(model.save(tmp_path / "model"))
    assert again.learner is None
    with pytest.raises(ValueError, match="set `learner`"):
        again.fit(X, y)
    assert again.set_params(learner=plain).fit(X, y).n_rounds_ == 100


def test_what_is_no_plain_data_is_not_saved(tmp_path):
    X, y = digits(30)
    with pytest.raises(NotFittedError):
        dl.DriftClassifier("fast").save(tmp_path / "model")
    model = dl.DriftClassifier(random_state=np.random.RandomState(0)).fit(X, y)
    with pytest.raises(ValueError, match="random_state"):
        model.save(tmp_path / "model")
    with pytest.raises(ValueError, match="strings or numbers"):
        Labels(np.array([1 + 2j, 3])).to_plain()


@pytest.mark.parametrize(
    "change",
    [
        {"fitted": {"names": [["a"], "b", "c"], "dtype": "|O"}},
        {"fitted": {"names": ["a", "b", "c"], "dtype": "M8[s]"}},
        {"fitted": {"names": ["a", "b"], "dtype": "<U1"}},
        {"features": 3},
        {"params": {"size": 3}},
        {"learner": {"kind": "Trace"}},
    ],
)
def test_files_that_were_edited_are_refused(change, tmp_path):
    model, _ = fitted("classes")
    about, arrays = model.to_saved()
    archive.write(tmp_path / "model", about | change, arrays)
    with pytest.raises(dl.InputError):
        dl.load(tmp_path / "model")


def test_learners_are_pickled_without_their_compiled_code(tmp_path):
    X, y = digits(100)
    learners = plain(T.Multiclass(3)), dl.auto(T.Multiclass(3), effort="fast")
    for learner in learners:
        learner.run(X, y)
    (tmp_path / "learners").write_bytes(b"".join(map(pickle.dumps, learners)))
    code = f"import pickle; file = open({str(tmp_path / 'learners')!r}, 'rb')"
    code += "\nfor one in (pickle.load(file), pickle.load(file)):"
    code += "\n    print(one.rounds, one.step([0.1] * 64, 1).target_loss)"
    made = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    for learner, line in zip(learners, made.stdout.splitlines(), strict=True):
        shallow = copy.copy(learner)
        expected = learner.step([0.1] * 64, 1).target_loss
        assert line.split() == ["100", str(expected)], made.stderr
        assert shallow.rounds == 100 and shallow.step([0.1] * 64, 1).target_loss == expected


# -- other tasks


def test_tags():
    X, y = tags()
    model = dl.DriftMultilabelClassifier(epochs=5).fit(X, y)
    assert (model.predict(X) == y).mean() > 0.8
    assert ((model.predict_proba(X) > 0.5) == model.predict(X)).all()
    thin = dl.DriftMultilabelClassifier(epochs=5).fit(X, sparse.csr_array(y))
    assert (thin.predict(X) == model.predict(X)).all()
    single = dl.DriftMultilabelClassifier("fast")
    for t in range(100):
        single.partial_fit(X[t : t + 1], y[t : t + 1])
    assert (
        single.predict_proba(X) == dl.DriftMultilabelClassifier("fast").fit(X, y).predict_proba(X)
    ).all()
    for words, wrong in (("zeros and ones", 2 * y), ("4 tags", y[:, :3])):
        with pytest.raises(ValueError, match=words):
            model.partial_fit(X, wrong)


def test_draws_of_tags_have_their_distribution():
    X, y = tags()
    model = dl.DriftMultilabelClassifier("paper").fit(X, y)
    row = np.repeat(X[:1], 5000, axis=0)
    chances = model.decoding_distribution(X[:1])[0]
    np.testing.assert_allclose(model.sample_predict(row, 0).mean(axis=0), chances, atol=0.03)
    member = model.learner_.members[0]
    scores = model.learner_.score_rows(X[:1])[0, 0]
    atoms, weights = member.decoder.distribution(scores)
    np.testing.assert_allclose(weights @ atoms, chances, atol=1e-9)


def test_levels_keep_their_order():
    X, y = levels()
    model = dl.DriftOrdinalClassifier(learner="fast", levels=NAMES.tolist()).fit(X, y)
    assert model.classes_.tolist() == NAMES.tolist()
    np.testing.assert_allclose(model.decoding_distribution(X).sum(axis=1), 1.0)
    assert set(model.sample_predict(X, 0)) <= set(NAMES)
    with pytest.raises(ValueError, match="not among the levels"):
        model.partial_fit(X[:1], ["plum"])


def test_ranking():
    X, y, qid = queries()
    sizes = np.unique(qid, return_counts=True)[1]
    model = dl.DriftRanker().fit(X, y, qid=qid)
    other = dl.DriftRanker().partial_fit(X, y, group=sizes)
    assert (model.predict(X) == other.predict(X)).all()
    assert model.score(X, y, qid=qid) > 0.9
    ranks = model.rank(X, qid=qid)
    for query in range(3):
        rows = qid == query
        assert sorted(ranks[rows]) == list(range(rows.sum()))
        best = np.argmax(model.predict(X[rows]))
        assert ranks[rows][best] == 0
    np.testing.assert_allclose(model.predict(sparse.csr_array(X)), model.predict(X))
    with pytest.raises(ValueError, match="set max_relevance"):
        model.partial_fit(X[:2], [9, 0])


@pytest.mark.parametrize(
    "options, words",
    [
        ({"qid": [1, 2, 1]}, "stand together"),
        ({"qid": [1, 2]}, "one qid for each of 3"),
        ({"group": [1, 1]}, "add up to 3"),
        ({"group": [3], "qid": [1, 1, 1]}, "not by both"),
    ],
)
def test_queries_that_do_not_fit_their_rows(options, words):
    with pytest.raises(ValueError, match=words):
        starts_of(3, **options)


def test_sequences():
    X, y = sequences()
    model = dl.DriftTagger(epochs=2).fit(X, y)
    assert model.classes_.tolist() == sorted(NAMES)
    assert model.score(X, y) > 0.5
    assert [len(made) for made in model.predict(X)] == [len(tags) for tags in y]
    with pytest.raises(ValueError, match="not among"):
        model.partial_fit(X[:1], [["plum"] * len(y[0])])
    with pytest.raises(ValueError, match="features"):
        model.predict([X[0][:, :1]])


def test_draws_of_classes_as_tags_come_in_the_order_of_the_classes():
    """Of classes that were not named in the first call, places are not the sorted order."""
    X, y = digits()
    names = np.array(["zeta", "alpha", "mid"])[y]
    model = dl.DriftMultilabelClassifier("fast").partial_fit(X, names, classes=["zeta", "mid"])
    assert model._labels.names.tolist() == ["mid", "zeta", "alpha"]
    assert model.classes_.tolist() == ["alpha", "mid", "zeta"]
    wanted = names[:, np.newaxis] == model.classes_
    assert ((model.decoding_distribution(X) > 0.5) == wanted).mean() > 0.9
    assert (model.sample_predict(X, rng=0) == wanted).mean() > 0.9


@pytest.mark.parametrize("levels", [np.arange(3), list(np.arange(3)), (0, 1, 2)], ids=repr)
def test_levels_of_numpy_are_saved(levels, tmp_path):
    X, y = digits()
    model = dl.DriftOrdinalClassifier(learner="fast", levels=levels).fit(X, y)
    again = dl.load(model.save(tmp_path / "model"))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_files_of_labels_that_fill_the_memory_are_refused(tmp_path):
    X, y = digits()
    model = dl.DriftMultilabelClassifier("fast").fit(X, np.eye(3, dtype=int)[y])
    about, arrays = model.to_saved()
    with pytest.raises(dl.InputError, match="3 tags"):
        dl.load(archive.write(tmp_path / "tags", about | {"fitted": 10**12}, arrays))
    about, arrays = dl.DriftClassifier("fast").fit(X, y).to_saved()
    for fitted in ({"names": ["a", "b", "c"], "dtype": "<U300000000"}, {"names": [[]] * 3}):
        with pytest.raises(dl.InputError):
            dl.load(archive.write(tmp_path / "other", about | {"fitted": fitted}, arrays))
    for change in ({"names": ["a"]}, {"params": {**about["params"], "dtype": "int8"}}):
        with pytest.raises(dl.InputError):
            dl.load(archive.write(tmp_path / "other", about | change, arrays))


def test_scores_of_other_lengths_are_named():
    inputs, tags = sequences()
    model = dl.DriftTagger().fit(inputs, tags)
    for wrong in (tags[:-1], [own[:-1] for own in tags]):
        with pytest.raises(dl.InputError, match="a tag for every position"):
            model.score(inputs, wrong)
    X, y, qid = queries()
    with pytest.raises(dl.InputError, match="expected"):
        dl.DriftRanker().fit(X, y, qid=qid).score(X, y[:-1], qid=qid)


def test_classes_named_in_every_call_change_nothing():
    generator = np.random.default_rng(0)
    X, y = generator.normal(size=(60, 4)), generator.integers(0, 3, 60)
    once, always = (
        dl.estimators.DriftClassifier(random_state=0),
        dl.estimators.DriftClassifier(random_state=0),
    )
    for t in range(60):
        once.partial_fit(X[t : t + 1], y[t : t + 1], classes=None if t else [0, 1, 2])
        always.partial_fit(X[t : t + 1], y[t : t + 1], classes=[0, 1, 2] if t % 2 else (2, 1, 0))
    np.testing.assert_array_equal(once.predict_proba(X), always.predict_proba(X))
    assert always.partial_fit(X[:1], y[:1], classes=[0, 3]).classes_.tolist() == [0, 1, 2, 3]
    with pytest.raises(dl.InputError, match="do not go with"):
        always.partial_fit(X[:1], y[:1], classes=["a", "b"])


# -- missing cells, and messages


def with_holes(rows=300, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(rows, 3)) + 5.0
    y = (X[:, 0] > 5.0).astype(int)
    X[random.random(X.shape) < 0.2] = np.nan
    return X, y


def test_nan_is_refused_by_row_and_feature():
    X, y = with_holes()
    row, column = np.argwhere(np.isnan(X))[0]
    with pytest.raises(ValueError, match=f"NaN: row {row} has nan as feature {column}.*missing="):
        dl.DriftClassifier("fast").fit(X, y)
    with pytest.raises(dl.InputError, match="missing must be one of 'refuse', 'zero', 'mean'"):
        dl.DriftClassifier("fast", missing="median").fit(X, y)


@pytest.mark.parametrize("missing", ["zero", "mean"])
@pytest.mark.parametrize("make", [dl.DriftClassifier, dl.DriftOrdinalClassifier])
def test_missing_cells_are_filled_alike_in_pieces_and_after_loading(tmp_path, make, missing):
    X, y = with_holes()
    whole = make("fast", missing=missing).fit(X, y)
    parts = make("fast", missing=missing)
    for a, b in ((0, 1), (1, 90), (90, 91), (91, 300)):
        parts.partial_fit(X[a:b], y[a:b], classes=[0, 1])
        parts = dl.load(parts.save(tmp_path / "parts"))
    assert np.array_equal(parts.predict_proba(X), whole.predict_proba(X))
    filled = X.copy()
    if missing == "zero":
        filled = np.nan_to_num(X)
    else:  # each by the values in the rows before it
        for t, j in np.argwhere(np.isnan(X)):
            before = X[:t, j][~np.isnan(X[:t, j])]
            filled[t, j] = before.mean() if before.size else 0.0
    plain = make("fast").fit(filled, y)
    assert np.allclose(plain.learner_.weights, whole.learner_.weights)


def test_missing_cells_of_sparse_rows_are_zeros():
    X, y = with_holes()
    X = np.where(np.random.default_rng(1).random(X.shape) < 0.5, 0.0, X)
    made = dl.DriftClassifier("fast", missing="zero").fit(sparse.csr_array(X), y)
    other = dl.DriftClassifier("fast").fit(sparse.csr_array(np.nan_to_num(X)), y)
    assert np.array_equal(
        made.predict(sparse.csr_array(X)), other.predict(sparse.csr_array(np.nan_to_num(X)))
    )
    with pytest.raises(dl.InputError, match="for dense rows"):
        dl.DriftClassifier("fast", missing="mean").fit(sparse.csr_array(X), y)


def test_edited_means_are_refused():
    X, y = with_holes()
    about, arrays = dl.DriftClassifier("fast", missing="mean").fit(X, y).to_saved()
    for means in ([[1.0]], [[np.inf] * 3, [1.0] * 3], [[0.0] * 3, [-1.0] * 3]):
        with pytest.raises(dl.InputError, match="sums and counts"):
            dl.DriftClassifier.from_saved(about | {"means": means}, arrays)


def test_messages_name_the_class_that_was_called():
    for make in (dl.DriftClassifier, dl.DriftOrdinalClassifier, dl.DriftMultilabelClassifier):
        with pytest.raises(TypeError, match=rf"{make.__name__}\.fit\(\)"):
            make().fit()


def test_levels_that_are_words_are_not_sorted_silently():
    X, words = np.arange(6.0)[:, np.newaxis], np.array(["low", "high", "middle"] * 2)
    with pytest.warns(UserWarning, match="alphabet, high, low, middle: name them"):
        dl.DriftOrdinalClassifier("fast").fit(X, words)
    dl.DriftOrdinalClassifier("fast", levels=["low", "middle", "high"]).fit(X, words)
    dl.DriftOrdinalClassifier("fast").fit(X, np.arange(6) % 3)


# -- weights


def imbalanced(seed=0, rounds=3000, rare=19, away=3.0):
    """Return rows of two classes, one of them rare."""
    rng = np.random.default_rng(seed)
    y = np.zeros(rounds, dtype=int)
    y[rng.choice(rounds, rare, replace=False)] = 1
    X = rng.normal(size=(rounds, 5))
    X[y == 1, :2] += away
    return X, np.array(["usual", "rare"])[y]


def test_balanced_weights_follow_the_frequencies_so_far():
    X, y = imbalanced(rounds=300, rare=9)
    model = dl.DriftClassifier("paper", class_weight="balanced")
    plain = dl.DriftClassifier("paper")
    counts = {"usual": 0, "rare": 0}
    weights = []
    for label in y:
        counts[label] += 1
        seen = sum(n > 0 for n in counts.values())
        weights.append(min(100.0, sum(counts.values()) / (seen * counts[label])))
    model.fit(X, y)
    plain.fit(X, y, sample_weight=weights)
    assert np.array_equal(model.predict_proba(X), plain.predict_proba(X))


def test_balanced_pieces_are_one_fit(tmp_path):
    X, y = imbalanced(rounds=400, rare=30)
    classes = ["rare", "usual"]
    whole = dl.DriftClassifier("fast", class_weight="balanced").partial_fit(X, y, classes)
    model = dl.DriftClassifier("fast", class_weight="balanced").partial_fit(X[:9], y[:9], classes)
    for i in range(9, 60):
        model.partial_fit(X[i : i + 1], y[i : i + 1])
    model = dl.load(model.save(tmp_path / "model"))
    model = pickle.loads(pickle.dumps(model)).partial_fit(X[60:], y[60:])
    assert np.array_equal(model.predict_proba(X), whole.predict_proba(X))
    assert model.class_weight == "balanced" and model._balance.counts.sum() == 400


def test_refused_rows_are_not_counted():
    X, y = imbalanced(rounds=200, rare=30)
    model = dl.DriftClassifier("fast", class_weight="balanced").fit(X[:100], y[:100])
    bad = X[100:].copy()
    bad[50, 2] = np.inf
    with pytest.raises(ValueError):
        model.partial_fit(bad, y[100:])
    model.partial_fit(X[100:], y[100:])
    other = dl.DriftClassifier("fast", class_weight="balanced").fit(X, y)
    assert np.array_equal(model.predict_proba(X), other.predict_proba(X))


def test_weights_of_classes_multiply_those_of_rows(tmp_path):
    X, y = imbalanced(rounds=200, rare=30)
    weights = np.random.default_rng(0).random(200)
    model = dl.DriftClassifier("fast", class_weight={"rare": 5.0}).fit(X, y, sample_weight=weights)
    other = dl.DriftClassifier("fast").fit(X, y, weights * np.where(y == "rare", 5.0, 1.0))
    assert np.array_equal(model.predict_proba(X), other.predict_proba(X))
    assert dl.load(model.save(tmp_path / "model")).class_weight == {"rare": 5.0}
    numbers = dl.DriftClassifier("fast", class_weight={1: 5.0}).fit(X, (y == "rare").astype(int))
    assert dl.load(numbers.save(tmp_path / "model")).class_weight == {1: 5.0}


@pytest.mark.parametrize("seed", range(3))
def test_balanced_classifier_finds_what_is_rare(seed):
    X, y = imbalanced(seed)
    found = {}
    for how in (None, "balanced"):
        model, made = dl.DriftClassifier(class_weight=how), []
        for start in range(0, 3000, 50):
            rows = slice(start, start + 50)
            if start:
                made.append(model.predict(X[rows]))
            model.partial_fit(X[rows], y[rows], classes=["rare", "usual"])
        alarms, truth = np.concatenate(made) == "rare", y[50:] == "rare"
        found[how] = alarms[truth].mean(), alarms[~truth].mean()
    assert found["balanced"][0] >= 0.5 and found["balanced"][1] <= 0.1, found
    assert found["balanced"][0] > found[None][0]


@pytest.mark.parametrize("how", ["even", 3, {"rare": -1.0}, {"rare": "much"}])
def test_wrong_weights_of_classes_are_refused(how):
    X, y = imbalanced(rounds=50, rare=5)
    with pytest.raises(ValueError):
        dl.DriftClassifier("fast", class_weight=how).fit(X, y)


def test_rows_of_weight_zero_may_come_alone():
    X, y = imbalanced(rounds=60, rare=9)
    weights = np.random.default_rng(0).random(60) * (np.arange(60) % 3 > 0)
    one = dl.DriftClassifier("fast").fit(X[:20], y[:20], sample_weight=weights[:20])
    two = dl.DriftClassifier("fast").fit(X[:20], y[:20], sample_weight=weights[:20])
    one.partial_fit(X[20:], y[20:], sample_weight=weights[20:])
    for i in range(20, 60):
        two.partial_fit(X[i : i + 1], y[i : i + 1], sample_weight=weights[i : i + 1])
    assert np.array_equal(one.predict_proba(X), two.predict_proba(X))


def test_weights_of_rows_and_classes_multiply_up_to_the_largest():
    X, y = imbalanced(rounds=60, rare=9)
    model = dl.DriftClassifier("fast", class_weight={"rare": 100.0})
    other = dl.DriftClassifier("fast")
    model.fit(X, y, sample_weight=np.full(60, 1e5))
    other.fit(X, y, sample_weight=np.where(y == "rare", 1e6, 1e5))
    assert np.array_equal(model.predict_proba(X), other.predict_proba(X))


def test_tags_have_no_weights_of_classes():
    X, tags = np.random.default_rng(0).normal(size=(20, 3)), np.eye(4, dtype=int)[np.arange(20) % 4]
    tags[0] = 1
    with pytest.raises(dl.InputError, match="rows of one class each"):
        dl.DriftMultilabelClassifier("fast", class_weight="balanced").fit(X, tags)
    dl.DriftMultilabelClassifier("fast").fit(X, tags, sample_weight=np.arange(20.0))


@pytest.mark.parametrize("weights", [[-1.0] * 50, [np.nan] * 50, [1.0] * 49, [1e7] * 50])
def test_wrong_weights_of_rows_are_refused(weights):
    X, y = imbalanced(rounds=50, rare=5)
    model = dl.DriftClassifier("fast").fit(X, y)
    before = model.predict_proba(X)
    with pytest.raises(ValueError):
        model.partial_fit(X, y, sample_weight=weights)
    assert np.array_equal(model.predict_proba(X), before)


def test_queries_and_sequences_have_weights():
    rng = np.random.default_rng(0)
    X, qid = rng.standard_normal((60, 4)), np.repeat(np.arange(10), 6)
    y, weights = (X[:, 0] > 0.5).astype(int), rng.random(10)
    one = dl.DriftRanker().fit(X, y, qid=qid, sample_weight=np.ones(10))
    two = dl.DriftRanker().fit(X, y, qid=qid)
    other = dl.DriftRanker().partial_fit(X, y, qid=qid, sample_weight=weights)
    assert np.array_equal(one.predict(X), two.predict(X))
    assert not np.array_equal(one.predict(X), other.predict(X))
    with pytest.raises(dl.InputError, match="each of 10 rounds"):
        two.partial_fit(X, y, qid=qid, sample_weight=np.ones(60))
    stream = PlantedSequences(rounds=20, tags=3, seed=0)
    tagger = dl.DriftTagger().fit(stream.inputs, stream.labels, sample_weight=np.zeros(20))
    assert not any(member.weights.any() for member in tagger.learner_.members)
