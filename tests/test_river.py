"""Classifiers inside River."""

import numpy as np
import pytest
from howmany import number

import driftline as dl

river = pytest.importorskip("river")

from river import checks, compose, datasets, evaluate, metrics, preprocessing  # noqa: E402

from driftline.integrations.river import (  # noqa: E402
    DriftClassifier,
    DriftMultiLabelClassifier,
)

MODELS = [DriftClassifier(), DriftClassifier("free"), DriftMultiLabelClassifier()]


class Moods:
    """Stands for River's multilabel data, which must be fetched from elsewhere."""

    def take(self, count):
        generator = np.random.default_rng(0)
        for _ in range(count):
            x = {f"sound {j}": float(v) for j, v in enumerate(generator.random(8))}
            yield x, {"calm": x["sound 0"] > 0.5, "loud": x["sound 1"] + x["sound 2"] > 1.0}


def all_checks():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(datasets, "Music", Moods)
        for model in MODELS:
            for i, check in enumerate(checks.yield_checks(model)):
                yield pytest.param(model, check, id=f"{model}-{i}-{check.__name__}")


@pytest.mark.parametrize(("model", "check"), list(all_checks()))
def test_river_has_no_complaint(model, check):
    check(model.clone())


def test_the_same_rows_give_the_same_predictions_as_the_learner():
    stream = dl.streams.DigitTriples(rounds=300, flips=1, seed=0)
    model, committee = DriftClassifier(), dl.auto(stream.task)
    for j in range(3):  # the classes in their order
        model._labels[j] = j
    names = [f"p{j:02}" for j in range(64)]
    for x, y in zip(stream.inputs, stream.labels.tolist(), strict=True):
        model.learn_one(dict(zip(names, x.tolist(), strict=True)), y)
    committee.run(stream)
    np.testing.assert_array_equal(model._model.weights, committee.weights)


def test_features_and_classes_come_and_go():
    model = DriftClassifier()
    assert model.predict_one({"a": 1.0}) is None
    generator = np.random.default_rng(0)
    right = 0
    for t in range(900):
        a, b = generator.standard_normal(2)
        x = {"a": a} if t < 300 else {"a": a, "b": b, "town": "York" if b > 1 else "Bath"}
        y = "right" if a > 0 else "left"
        if t >= 600 and b > 1:
            y = "up"
        right += t >= 800 and model.predict_one(x) == y
        model.learn_one(x, y)
    assert right > 85
    chances = model.predict_proba_one({"a": 0.1, "never": 3.0, "town": "Rome"})
    assert set(chances) == {"left", "right", "up"}
    assert sum(chances.values()) == pytest.approx(1.0)


def test_pipelines_and_delays():
    model = compose.Pipeline(preprocessing.StandardScaler(), DriftClassifier())
    rows = list(datasets.Phishing().take(600))
    now = evaluate.progressive_val_score(rows, model.clone(), metrics.Accuracy())
    later = evaluate.progressive_val_score(rows, model.clone(), metrics.Accuracy(), delay=10)
    assert now.get() > 0.85
    assert later.get() > 0.8


def test_many_rows_are_learned_as_one_by_one():
    pd = pytest.importorskip("pandas")
    rows = list(datasets.Phishing().take(200))
    one, many = DriftClassifier(), DriftClassifier()
    for x, y in rows:
        one.learn_one(x, y)
    frame = pd.DataFrame([x for x, _ in rows])
    many.learn_many(frame, pd.Series([y for _, y in rows]))
    wanted = [one.predict_proba_one(x)[True] for x, _ in rows[:20]]
    made = many.predict_proba_many(frame[:20])
    np.testing.assert_allclose(made[True], wanted, atol=1e-9)
    assert len(many.predict_many(frame[:20])) == 20


def test_a_new_label_of_a_set_is_learned():
    model = DriftMultiLabelClassifier()
    for t in range(300):
        a = float(np.sin(t))
        labels = {"high": a > 0.0}
        if t > 100:
            labels["low"] = a < -0.5
        model.learn_one({"a": a}, labels)
    assert model.predict_one({"a": -0.9}) == {"high": False, "low": True}


def test_sets_may_be_empty_at_first():
    model = DriftMultiLabelClassifier()
    model.learn_one({"a": 1.0}, {})
    assert model.predict_one({"a": 1.0}) == {}
    model.learn_one({"a": 1.0}, {"x": True})
    assert list(model.predict_proba_one({"a": 1.0})) == ["x"]


@pytest.mark.parametrize("value", [None, [1.0], 1j, np.datetime64("2020-01-01"), float("nan")])
def test_features_that_are_no_numbers_are_named(value):
    model = DriftClassifier()
    with pytest.raises(dl.InputError, match="a|0"):
        model.learn_one({"a": value}, 1)
    assert model.predict_one({"a": 1.0}) is None  # nothing was learned
    model.learn_one({"a": 1.0}, 1)
    assert model.predict_one({"a": 1.0}) == 1


def test_looking_changes_nothing_and_copies_go_on_alike():
    import copy
    import pickle

    model = DriftClassifier("paper")
    generator = np.random.default_rng(0)
    for t in range(40):
        model.learn_one({"a": float(generator.standard_normal()), "b": "xy"[t % 2]}, t % 3)
    before = pickle.dumps(model)
    model.predict_one({"a": 1.0, "new": 3.0, "b": "z"})
    model.predict_proba_one({"c": 1.0})
    assert pickle.dumps(model) == before
    copies = [pickle.loads(before), copy.deepcopy(model), model]
    for other in copies:
        other.learn_one({"a": 1.0, "b": "x", "d": 2.0}, 5)
    made = [other.predict_proba_one({"a": 1.0, "d": 1.0}) for other in copies]
    assert made[0] == made[1] == made[2]
    assert model.clone().predict_one({"a": 1.0}) is None


def test_many_sets_are_learned_as_one_by_one():
    pd = pytest.importorskip("pandas")
    rows = list(Moods().take(120))
    one, many = DriftMultiLabelClassifier(), DriftMultiLabelClassifier()
    for x, y in rows:
        one.learn_one(x, y)
    frame = pd.DataFrame([x for x, _ in rows])
    many.learn_many(frame, pd.DataFrame([y for _, y in rows]))
    made = many.predict_many(frame[:20]).to_dict("records")
    assert made == [one.predict_one(x) for x, _ in rows[:20]]
    assert len({str(row) for row in made}) > 1


# -- models of River as members


def members():
    from river import forest, linear_model, naive_bayes, neighbors, tree

    scaled = compose.Pipeline(preprocessing.StandardScaler(), linear_model.SoftmaxRegression())
    return {
        "tree": tree.HoeffdingTreeClassifier(grace_period=20),
        "forest": forest.ARFClassifier(n_models=3, seed=1),
        "naive Bayes": naive_bayes.GaussianNB(),
        "neighbours": neighbors.KNNClassifier(),
        "pipeline": scaled,
        "no chances": linear_model.PAClassifier(),
    }


@pytest.mark.parametrize("name", members())
def test_a_model_of_river_steps_as_it_runs_and_looking_writes_nothing(name):
    task = dl.tasks.Binary() if name == "no chances" else dl.tasks.Multiclass(3)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((number(60, 150), 4))
    y = (X[:, 0] > 0.0).astype(int) + (X[:, 1] > 0.5)
    y = np.where(y > 0, 1, -1) if name == "no chances" else y
    ran, stepped = (dl.members.River(task, members()[name]) for _ in range(2))
    trace = ran.run(X, y)
    for t, (x, label) in enumerate(zip(X, y, strict=True)):
        for other in X[t % 50 : t % 50 + 2]:
            stepped.predict(other)
        assert stepped.step(x, label)[:2] == (trace.prediction[t], trace.loss[t])
    assert dl.certify(trace, None, X, y).valid
    later = ran.copy().run(X, y)
    assert later.loss.tobytes() == stepped.run(X, y).loss.tobytes()


def test_a_committee_with_a_model_of_river_follows_it_where_it_is_better():
    from river.tree import HoeffdingTreeClassifier

    X = np.random.default_rng(0).random((1500, 3))
    y = ((X[:, 0] > 0.3) & (X[:, 0] < 0.7)).astype(int)
    task = dl.tasks.Multiclass(2)
    loss = dl.losses.Scaled(dl.losses.Logistic(task), 2.0)
    tree = dl.members.River(task, HoeffdingTreeClassifier(grace_period=50))
    committee = dl.Committee([dl.OGD(loss, dl.decoders.Argmax(loss)), tree])
    trace = committee.run(X, y)
    assert committee.weights[1] > 0.9
    assert trace.target_loss.sum() < 0.7 * trace.member_risk[:, 0].sum()


def test_a_model_for_two_classes_is_wrapped_for_more():
    from river.linear_model import LogisticRegression
    from river.multiclass import OneVsRestClassifier

    task, two = dl.tasks.Multiclass(3), dl.tasks.Multiclass(2)
    scaled = compose.Pipeline(preprocessing.StandardScaler(), LogisticRegression())
    for model in (LogisticRegression(), scaled):
        with pytest.raises(dl.InputError, match="is for two classes, not 3: wrap it"):
            dl.members.River(task, model)
        dl.members.River(two, model).run(np.eye(2), [0, 1])
    dl.members.River(task, OneVsRestClassifier(LogisticRegression())).run(np.eye(3), [0, 1, 2])


@pytest.mark.parametrize("value", [float("nan"), float("inf"), None])
@pytest.mark.parametrize("names", [("a", "b"), ("a", "new")])
def test_what_is_no_number_is_named_by_its_key_and_changes_nothing(value, names):
    model = DriftClassifier("fast")
    model.learn_one({"a": 1.0, "b": 2.0}, "x")
    with pytest.raises(ValueError, match=f"feature '{names[1]}' is"):
        model.learn_one({names[0]: 1.0, names[1]: value}, "y")
    assert list(model.predict_proba_one({"a": 1.0})) == ["x"]
