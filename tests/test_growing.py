"""Learners that come to know more classes."""

import numpy as np
import pytest
from scipy import sparse

import driftline as dl
from driftline.errors import InputError

STREAM = dl.streams.DigitTriples(rounds=400, flips=1, seed=0)


@pytest.mark.parametrize("thin", [False, True])
@pytest.mark.parametrize("make", [dl.auto, lambda task: dl.OGD(dl.losses.Logistic(task))])
def test_a_learner_that_grew_goes_on(make, thin):
    inputs = sparse.csr_array(STREAM.inputs) if thin else STREAM.inputs
    one = make(STREAM.task)
    one.run(inputs[:200], STREAM.labels[:200])
    more = one.grown(classes=4)
    assert more.task == dl.tasks.Multiclass(4)
    assert more.rounds == 200
    labels = np.where(STREAM.labels[200:] == 2, 3, STREAM.labels[200:])  # one is new, one gone
    trace = more.run(inputs[200:], labels)
    assert trace.target_loss[-100:].mean() < 0.5  # of guesses three quarters are wrong
    assert one.rounds == 200


def test_nothing_changes_without_new_classes():
    one = dl.auto(STREAM.task, effort="fast")
    one.run(STREAM.inputs[:200], STREAM.labels[:200])
    two = one.grown(classes=3)
    rest = STREAM.inputs[200:], STREAM.labels[200:]
    np.testing.assert_array_equal(one.run(*rest).risk, two.run(*rest).risk)


def test_what_cannot_grow_says_so():
    with pytest.raises(InputError, match="not only 2"):
        dl.auto(STREAM.task, effort="fast").grown(classes=2)
    with pytest.raises(InputError, match="only classes and tags"):
        dl.auto(dl.tasks.Binary(), effort="fast").grown(classes=3)
    fresh = dl.auto(STREAM.task, effort="fast").grown(classes=7)
    assert fresh.run(STREAM.inputs, STREAM.labels).target_loss.mean() < 0.3


@pytest.mark.parametrize("thin", [False, True])
@pytest.mark.parametrize(
    "make",
    [
        dl.auto,
        lambda task: dl.auto(task, scaling=False, effort="fast"),
        lambda task: dl.OGD(dl.losses.Logistic(task), intercept=True),
    ],
)
def test_a_learner_of_longer_rows_is_one_that_always_had_them(make, thin):
    """Features that were 0 in every row so far might have been there from the start."""
    kind = sparse.csr_array if thin else np.array
    first, rest = STREAM.inputs[:200], STREAM.inputs[200:]
    padded, labels = np.pad(first, [(0, 0), (0, 5)]), STREAM.labels
    late = np.c_[rest, np.random.default_rng(0).standard_normal((200, 5))]
    one, always = make(STREAM.task), make(STREAM.task)
    one.run(kind(first), labels[:200])
    always.run(kind(padded), labels[:200])
    made = one.grown(features=STREAM.inputs.shape[1] + 5).run(kind(late), labels[200:])
    wanted = always.run(kind(late), labels[200:])
    if one._standardiser is None or thin:
        np.testing.assert_allclose(made.risk, wanted.risk, atol=1e-9)
    else:  # scaled rows are divided by the root of the number of features
        assert made.target_loss.mean() < 0.3


def test_rows_do_not_become_shorter():
    one = dl.auto(STREAM.task, effort="fast")
    assert one.grown(features=3).features is None
    one.run(STREAM)
    with pytest.raises(InputError, match="not only 3"):
        one.grown(features=3)
    with pytest.raises(InputError, match="only plain rows"):
        dl.auto(dl.tasks.NDCG(2), effort="fast").grown(features=3)


def test_tags_become_more():
    stream = dl.streams.Planted(dl.tasks.Multilabel(3), rounds=200, flips=0, seed=0)
    one = dl.auto(dl.tasks.Multilabel(2), effort="fast")
    one.run(stream.inputs[:100], stream.labels[:100, :2])
    trace = one.grown(classes=3).run(stream.inputs[100:], stream.labels[100:])
    assert trace.target_loss[-50:].mean() < 0.2


def test_a_scaling_makes_old_scores_smaller_as_features_come():
    stream = dl.streams.DigitTriples(rounds=300, flips=0, seed=0)
    inputs = stream.inputs[:3]
    longer = np.pad(inputs, [(0, 0), (0, 192)])
    plain = dl.OGD(dl.losses.Logistic(stream.task))
    plain.run(stream)
    np.testing.assert_allclose(
        plain.grown(features=256).score_rows(longer), plain.score_rows(inputs)
    )
    committee = dl.auto(stream.task, effort="fast")
    committee.run(stream)
    made = committee.grown(features=256).score_rows(longer)
    ratio = made / committee.score_rows(inputs)
    assert (ratio > 0.5 - 1e-9).all() and (ratio < 1.0).all()
