"""How large a state will be is known before it is allocated."""

import numpy as np
import pytest

import driftline as dl
from driftline.committee import named
from driftline.tasks import Abstaining, Binary, Multiclass, Multilabel, Ordinal

#: The estimate over the size of the arrays in the file of a learner that has seen some rows.
LEAST, MOST = 0.8, 1.5


def learned(learner, features, sparse=False):
    """Let a learner see some rows."""
    X = np.random.default_rng(0).normal(size=(4, features))
    task = learner.task.answers
    if task.kind == "tags":
        labels = np.zeros((4, task.dim), dtype=int)
    else:
        labels = np.array(list(task.labels.all)[:2] * 2)
    if sparse:
        from scipy.sparse import csr_array

        X = csr_array(X)
    learner.run(X, labels)
    return learner


def actual(learner):
    return sum(array.nbytes for array in learner.to_saved()[1].values())


@pytest.mark.parametrize("name", ["fast", "auto", "best", "polyak", "paper", "adagrad"])
@pytest.mark.parametrize(
    ("task", "features"),
    [
        (Multiclass(2), 3),
        (Multiclass(40), 12),
        (Multiclass(3), 60),
        (Multiclass(3), 300),
        (Multiclass(200), 129),
        (Binary(), 12),
        (Multilabel(6), 12),
        (Ordinal(5), 12),
        (Abstaining(Multiclass(3), 0.3), 9),
    ],
)
def test_the_size_of_a_state_is_known_before_its_first_row(name, task, features):
    learner = named(name, task)
    before = learner._state_bytes(features)
    assert learner.features is None  # nothing was allocated
    size = actual(learned(learner, features))
    assert LEAST * size <= before <= MOST * size
    assert learner._state_bytes(features) == pytest.approx(before, rel=0.03)


@pytest.mark.parametrize("name", ["fast", "auto", "best"])
def test_the_size_with_more_classes_is_known_before_it_grows(name):
    learner = learned(named(name, Multiclass(3)), 9)
    before = learner._state_bytes(9, classes=150)
    grown = learner.grown(classes=150)
    assert LEAST * actual(grown) <= before <= MOST * actual(grown)
    assert before > 1.5 * learner._state_bytes(9)


def test_the_size_for_sparse_rows_is_known():
    learner = named("auto", Multiclass(3))
    before = learner._state_bytes(400, sparse=True)
    size = actual(learned(learner, 400, sparse=True))
    assert LEAST * size <= before <= MOST * size


@pytest.mark.parametrize(
    "learner",
    [
        dl.OGD(dl.losses.Logistic(Multiclass(5))),
        dl.OGD(dl.losses.Logistic(Multiclass(5)), dtype=np.float32),
        dl.OGD(dl.losses.Logistic(Multiclass(5)), features=dl.features.Hats(12)),
        dl.members.NaiveBayes(Multiclass(5)),
        dl.members.Forest(Multiclass(5)),
    ],
    ids=lambda learner: repr(learner)[:20],
)
def test_single_learners_say_their_size(learner):
    before = learner._state_bytes(100)
    size = actual(learned(learner, 100))
    assert LEAST * size <= before <= MOST * size
