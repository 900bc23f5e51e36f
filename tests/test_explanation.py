"""Laws of explanations: how much features matter, and how chances depend on them."""

import numpy as np
import pytest

import driftline as dl
from driftline.explanation import EXCHANGES, chances

CLASSES, SIGN, TAGS = dl.tasks.Multiclass(3), dl.tasks.Binary(), dl.tasks.Multilabel(2)


def stream(task, rounds=400, features=4, seed=0):
    """Return rows, and labels by the first two features."""
    X = np.random.default_rng(seed).normal(size=(rounds, features))
    first, second = X[:, 0] > 0.0, X[:, 1] > 0.5
    if task == TAGS:
        return X, np.column_stack([first, second]).astype(int)
    return X, np.where(first, 1, -1) if task == SIGN else first.astype(int) + (first & second)


def learned(make, task):
    learner, (X, y) = make(task), stream(task)
    learner.run(X, y)
    return learner, X


LEARNERS = {
    "ogd": (lambda task: dl.OGD(dl.losses.Logistic(task)), (CLASSES, SIGN, TAGS)),
    "curves": (
        lambda task: dl.OGD(dl.losses.Logistic(task), features=dl.features.Hats(4)),
        (CLASSES, SIGN, TAGS),
    ),
    "fast": (lambda task: dl.auto(task, effort="fast"), (CLASSES, SIGN, TAGS)),
    "forest": (lambda task: dl.members.Forest(task, trees=3), (CLASSES, SIGN)),
    "mixed": (
        lambda task: dl.Committee([dl.members.Tables(task), dl.members.NaiveBayes(task)]),
        (CLASSES,),
    ),
}
CASES = [(make, task) for make, tasks in LEARNERS.values() for task in tasks]
IDS = [f"{name}-{task!r}" for name, (_, tasks) in LEARNERS.items() for task in tasks]
every_case = pytest.mark.parametrize("make, task", CASES, ids=IDS)


@every_case
def test_features_that_decide_matter_most_and_nothing_is_learned(make, task):
    learner, X = learned(make, task)
    before = learner.copy()
    told = dl.explain(learner, X, names="abcd")
    assert set(told.order[:2]) == {"a", "b"} or task == SIGN and told.order[0] == "a"
    assert (told.importance >= 0.0).all() and (told.importance <= 1.0).all()
    rows, labels = stream(task, seed=1)
    assert np.array_equal(learner.run(rows, labels).risk, before.run(rows, labels).risk)


@every_case
def test_chances_are_what_is_predicted(make, task):
    learner, X = learned(make, task)
    made = chances(learner, X)
    assert (made >= 0.0).all() and (made <= 1.0 + 1e-12).all()
    if task != TAGS:
        assert np.allclose(made.sum(axis=1), 1.0)
        if isinstance(learner, dl.members.Forest):
            labels = np.array(task.labels.all)[made.argmax(axis=1)]
            assert labels.tolist() == [learner.predict(x) for x in X]


@every_case
def test_curves_are_means_over_rows(make, task):
    learner, X = learned(make, task)
    told = dl.explain(learner, X[:50], names="abcd")
    for name, curve in told.curves.items():
        for value, seen in zip(curve.values[::7], curve.chances[::7], strict=True):
            rows = X[:50].copy()
            rows[:, "abcd".index(name)] = value
            assert np.allclose(seen, chances(learner, rows).mean(axis=0))


def test_importance_is_what_the_formula_says():
    learner, X = learned(LEARNERS["ogd"][0], CLASSES)
    rows, rng, expected = X[:30], np.random.default_rng(5), np.zeros(4)

    def softmax(x):
        powers = np.exp(learner.weights @ x)
        return powers / powers.sum()

    for _ in range(EXCHANGES):
        cycle = rng.permutation(30)
        for place, i in enumerate(cycle):
            other = cycle[place - 1]
            for j in range(4):
                changed = rows[i].copy()
                changed[j] = rows[other, j]
                expected[j] += 0.5 * np.abs(softmax(rows[i]) - softmax(changed)).sum()
    made = dl.explain(learner, rows, seed=5).importance
    assert np.allclose(made, expected / (30 * EXCHANGES))


@every_case
def test_a_feature_that_never_changes_does_not_matter(make, task):
    learner, X = learned(make, task)
    rows = X.copy()
    rows[:, 0] = 0.3
    told = dl.explain(learner, rows, names="abcd")
    assert told.importance[0] == 0.0
    assert len(told.curves["a"].values) == 1


def test_a_committee_keeps_rows_to_be_asked_about():
    X, y = stream(CLASSES, rounds=301)
    learner = dl.auto(CLASSES, effort="fast")
    learner.run(X[:40], y[:40])
    assert np.array_equal(learner.standardiser.kept, X[:40])
    learner.run(X[40:], y[40:])
    kept = learner.standardiser.kept
    assert len(kept) == 64
    assert {tuple(row) for row in kept} <= {tuple(row) for row in X[-130:]}
    told, again = dl.explain(learner), dl.explain(learner, kept)
    assert np.array_equal(told.importance, again.importance)
    assert dl.auto(CLASSES).standardiser.kept is None


def test_an_explanation_says_what_matters_and_who_is_listened_to():
    learner, X = learned(LEARNERS["fast"][0], CLASSES)
    told = dl.explain(learner, names=["heat", "rain", "wind", "day"], labels=["low", "mid", "high"])
    words = str(told)
    assert words.splitlines()[0].startswith("after 400 rounds")
    assert words.splitlines()[1].split()[0] == "heat" and "low -" in words and "weights: " in words
    assert sum(told.weights.values()) == pytest.approx(1.0)
    wide = dl.OGD(dl.losses.Logistic(CLASSES))
    wide.run(np.random.default_rng(0).normal(size=(50, 20)), np.arange(50) % 3)
    assert "and 12 more" in str(dl.explain(wide, np.random.default_rng(1).normal(size=(50, 20))))


def test_what_matters_is_told_over_time():
    X = np.random.default_rng(0).normal(size=(1200, 3))
    y = (np.where(np.arange(1200) < 600, X[:, 0], X[:, 2]) > 0.0).astype(int)
    task = dl.tasks.Multiclass(2)
    learner, alone = dl.auto(task, effort="fast"), dl.auto(task, effort="fast")
    told = dl.explain_run(learner, X, y, every=250, names="abc")
    assert told.rounds.tolist() == [250, 500, 750, 1000, 1200]
    assert told.importance.shape == (5, 3)
    assert told.importance[1].argmax() == 0 and told.importance[-1].argmax() == 2
    assert np.array_equal(told.target_loss, alone.run(X, y).target_loss)


@pytest.mark.parametrize("task", (CLASSES, SIGN, TAGS), ids=repr)
def test_figures_are_drawn(task, tmp_path):
    learner, X = learned(LEARNERS["fast"][0], task)
    figure = dl.explain(learner, names="abcd").plot()
    figure.savefig(tmp_path / "told.png")
    assert len(figure.axes) == 1 + 6  # a place for each curve, of which there are four
    more = dl.explain_run(learner, X, stream(task)[1], every=200).plot()
    more.savefig(tmp_path / "more.png")


def bad(X):
    """Return rows of which the last is not finite."""
    made = X.copy()
    made[-1, 1] = np.nan
    return made


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda one, X: dl.explain("model"), "expected a learner"),
        (lambda one, X: dl.explain(one), "nothing is kept of the last rows"),
        (lambda one, X: dl.explain(dl.auto(CLASSES)), "nothing is kept of the last rows"),
        (lambda one, X: dl.explain(one, X[:1]), "give 2 or more"),
        (lambda one, X: dl.explain(one, X[:, :3]), "features"),
        (lambda one, X: dl.explain(one, X, names=["a", "b"]), "4 different names of features"),
        (lambda one, X: dl.explain(one, X, names="aabc"), "4 different names of features"),
        (lambda one, X: dl.explain(one, X, labels="ab"), "3 different names of labels"),
        (lambda one, X: dl.explain(dl.auto(dl.tasks.LabelRanking(3)), X), "levels and tags"),
        (lambda one, X: dl.explain(one, X, names=5), "expected names of features"),
        (lambda one, X: dl.explain(one, X, seed=-1), "seed must be"),
        (lambda one, X: dl.explain_run(one, X, np.zeros(400, int), every=0), "every must be"),
        (lambda one, X: dl.explain_run(one, X, np.zeros(399, int)), "400 inputs but 399 labels"),
        (lambda one, X: dl.explain_run(one, X, None), "expected inputs and labels"),
        (lambda one, X: dl.explain_run(one, X, np.full(400, 7)), "label"),
        (lambda one, X: dl.explain_run(one, bad(X), np.zeros(400, int)), "row 399 has nan"),
        (lambda one, X: dl.explain_run(one, X[:0], np.zeros(0, int)), "the stream is empty"),
        (lambda one, X: dl.explain_run(one, X[:1], np.zeros(1, int)), "nothing to explain"),
    ],
)  # fmt: skip
def test_bad_input_is_named(call, words):
    one, X = learned(LEARNERS["ogd"][0], CLASSES)
    with pytest.raises(dl.InputError, match=words):
        call(one, X)
    assert one.rounds == 400


def test_every_round_can_be_asked_about():
    X, y = stream(CLASSES, rounds=6)
    told = dl.explain_run(dl.OGD(dl.losses.Logistic(CLASSES)), X, y, every=1)
    assert told.rounds.tolist() == [2, 3, 4, 5, 6] and len(told.target_loss) == 6


def test_names_are_drawn_as_they_are(tmp_path):
    learner, X = learned(LEARNERS["fast"][0], CLASSES)
    told = dl.explain(
        learner, names=["price $a_$", "$5 to $9", "_c", "d"], labels=["_", "$", "$x^$"]
    )
    told.plot().savefig(tmp_path / "told.png")
    legend = told.plot().axes[1].get_legend()
    assert len(legend.get_texts()) == 3


def test_sparse_rows_are_refused():
    from scipy.sparse import csr_array

    one, X = learned(LEARNERS["ogd"][0], CLASSES)
    for call in (dl.explain, lambda *given: dl.explain_run(*given, np.zeros(400, int))):
        with pytest.raises(dl.InputError, match="dense rows"):
            call(one, csr_array(X))


@pytest.mark.parametrize(
    "make, labels",
    [
        (dl.DriftClassifier, np.array(["no", "yes"])),
        (dl.DriftOrdinalClassifier, np.array([3, 4])),
        (dl.DriftMultilabelClassifier, None),
    ],
)
def test_estimators_explain_by_names(make, labels):
    X = np.random.default_rng(0).normal(size=(600, 3))
    y = (X[:, 1] > 0).astype(int)
    model = make(learner="fast").fit(
        X, np.stack([y, 1 - y], axis=1) if labels is None else labels[y]
    )
    told = model.explain()
    assert told.order[0] == "1" and told.labels == tuple(map(str, model.classes_))
    assert model.explain(X[:50]).order[0] == "1"
    assert model.explain(X[:50]).in_words("1")
    with pytest.raises(ValueError, match="3 features"):
        model.explain(X[:, :2])
