"""Predictions of many inputs at once are those of each, and change nothing."""

import numpy as np
import pytest
from scipy.sparse import csr_array

import driftline as dl
from driftline.engines import PlainEngine

T = dl.tasks

TASKS = {
    "classes": T.Multiclass(3),
    "sign": T.Binary(),
    "tags": T.Multilabel(3),
    "levels": T.Ordinal(4),
    "rankings": T.LabelRanking(4),
    "matchings": T.Matching(3),
    "F1": T.FScore(3),
    "costs": T.CostSensitive([[0, 1, 0.3], [5, 0, 0.3]]),
    "sequences": T.Sequence(3),
    "documents": T.NDCG(2),
}


def stream_of(name):
    rng, task = np.random.default_rng(1), TASKS[name]
    if name == "sequences":
        inputs = [rng.normal(size=(n, 5)) for n in rng.integers(1, 7, 60)]
        return inputs, [rng.integers(0, 3, len(x)) for x in inputs]
    if name == "documents":
        inputs = [rng.normal(size=(n, 5)) for n in rng.integers(1, 7, 60)]
        return inputs, [rng.integers(0, 3, len(x)) for x in inputs]
    stream = dl.streams.Planted(task, rounds=60, flips=1, features=5, noise=0.1, seed=0)
    return stream.inputs, stream.labels


def same(one, two):
    return len(one) == len(two) and all(map(np.array_equal, one, two))


def check(learner, inputs):
    before = learner.to_saved()
    made = learner.predict_rows(inputs)
    assert same(made, [learner.predict(x) for x in inputs])
    after = learner.to_saved()
    assert before[0] == after[0]
    assert all(np.array_equal(a, after[1][k], equal_nan=True) for k, a in before[1].items())


@pytest.mark.parametrize("budget", [None, 1.5])
@pytest.mark.parametrize("name", TASKS)
def test_predictions_of_many_inputs_are_those_of_each(name, budget):
    inputs, labels = stream_of(name)
    learner = dl.auto(TASKS[name], effort="fast", combine="vote", budget=budget)
    check(learner, inputs[:3])  # before anything was learned
    learner.run(inputs[:40], labels[:40])
    check(learner, inputs[40:])
    assert learner.predict_rows(inputs[:0]) == []


@pytest.mark.parametrize("name", ["F1", "classes", "sequences"])
def test_random_and_plain_learners_agree(name):
    task = TASKS[name]
    loss = {"classes": dl.losses.Logistic, "F1": dl.losses.ConvolutionalFenchelYoung}
    learner = dl.OGD(loss.get(name, dl.losses.CRF)(task), seed=4)
    inputs, labels = stream_of(name)
    learner.run(inputs[:40], labels[:40])
    check(learner, inputs[40:])
    plain = learner.copy()
    plain.engine = PlainEngine(plain.parts)
    plain.restore(learner.state)
    assert same(plain.predict_rows(inputs[40:]), learner.predict_rows(inputs[40:]))


def test_sparse_sequences_are_predicted_together():
    inputs, labels = stream_of("sequences")
    sparse = [csr_array(x * (np.abs(x) > 0.5)) for x in inputs]
    learner = dl.auto(TASKS["sequences"])
    learner.run(sparse[:40], labels[:40])
    check(learner, sparse[40:])


def test_bad_inputs_are_named_and_nothing_changes():
    inputs, labels = stream_of("classes")
    learner = dl.auto(TASKS["classes"])
    learner.run(inputs, labels)
    bad = inputs[:5].copy()
    bad[3, 1] = np.nan
    with pytest.raises(dl.InputError, match="row 3"):
        learner.predict_rows(bad)
    with pytest.raises(dl.InputError, match="features"):
        learner.predict_rows(inputs[:5, :3])
    check(learner, inputs[:5])
