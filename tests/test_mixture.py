"""Averaged probabilities: what is predicted, how it is calibrated, and what moves the weights."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import driftline as dl
from driftline.checks import check_learner
from driftline.committee import Shares
from driftline.committee.mixture import Mixture
from driftline.committee.shares import RATES, SHARE_VALUES
from tests import naive
from tests.strategies import committee_by

T = dl.tasks
TASKS = [T.Multiclass(2), T.Multiclass(4), T.Binary(), T.Abstaining(T.Multiclass(3), 0.3)]
every_task = pytest.mark.parametrize("task", TASKS, ids=repr)


def mixture_of(task, members=3):
    """A mixture over members that a test plays itself."""
    loss = dl.losses.Scaled(dl.losses.Logistic(task.answers), 2.0)
    decoder = dl.decoders.Argmax(loss) if task.answers is task else None
    if decoder is None:
        decoder = dl.decoders.Abstain(loss, cost=task.predictions.doubt.cost)
    return Mixture([dl.OGD(loss, decoder) for _ in range(members)]), Shares(members)


def played(task, mixture, generator, rounds):
    """Scores by round, label and member, their losses, codes of labels, and the naive one."""
    size = generator.choice([0.1, 1.0, 30.0])
    scores = mixture.room(rounds)
    for j, own in enumerate(mixture.parts(scores)):
        own[:] = size * generator.standard_normal(own.shape) * (j + 1)
    codes = generator.integers(0, mixture.labels, rounds)
    cost = mixture.cost
    champion = naive.Champion(mixture.members, mixture.labels, RATES, SHARE_VALUES, cost)
    losses = (scores.argmax(axis=1) != codes[:, np.newaxis]).astype(float)
    labels = 2 * codes - 1 if task.kind == "sign" else codes
    return scores, losses, codes, labels, champion


def as_codes(task, predictions):
    return (predictions[:, 0] + 1) // 2 if task.kind == "sign" else predictions[:, 0]


@every_task
@given(st.integers(0, 2**32 - 1))
def test_mixtures_are_those_of_the_formulas(task, seed):
    generator = np.random.default_rng(seed)
    mixture, shares = mixture_of(task)
    scores, losses, codes, labels, champion = played(task, mixture, generator, 40)
    weight = generator.choice([0.0, 0.5, 1.0, 3.0], 40) if seed % 2 else np.ones(40)
    paid = losses * weight[:, np.newaxis]
    mixed = mixture.learn(shares, scores, paid, labels, sample_weight=weight)
    predicted = as_codes(task, mixed.predictions)
    for t in range(40):
        weights, chances, prediction, _ = champion.look(scores[t].T)
        np.testing.assert_allclose(mixed.weights[t], weights, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(mixed.probabilities[t], chances, rtol=1e-6, atol=1e-9)
        assert predicted[t] == prediction
        champion.learn(scores[t].T, losses[t], codes[t], weight[t])


@every_task
@given(st.integers(0, 2**32 - 1))
def test_late_labels_move_calibrations_of_now_and_judge_predictions_of_then(task, seed):
    generator = np.random.default_rng(seed)
    mixture, shares = mixture_of(task)
    rounds, delay = 30, int(generator.integers(0, 8))
    scores, losses, codes, labels, champion = played(task, mixture, generator, 2 * rounds)
    due = sorted(range(rounds), key=lambda t: t + delay * (1 + t % 3))
    events, waiting = [], list(due)
    for t in range(rounds):
        events.append((t, True))
        while waiting and waiting[0] + delay * (1 + waiting[0] % 3) <= t:
            events.append((waiting.pop(0), False))
    rows = np.array([t for t, _ in events])
    asked = np.array([own for _, own in events])
    scores, kept = scores[: len(events)], np.full((rounds, shares.kept), np.nan)
    late = rows, kept
    counts = np.where(asked, -1.0, 1.0)
    mixed = mixture.learn(
        *(shares, scores, losses[rows], labels[rows]), sample_weight=counts, late=late
    )
    predicted, then = as_codes(task, mixed.predictions), {}
    for i, (t, is_asked) in enumerate(events):
        weights, chances, prediction, sets = champion.look(scores[i].T)
        np.testing.assert_allclose(mixed.weights[i], weights, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(mixed.probabilities[i], chances, rtol=1e-6, atol=1e-9)
        assert predicted[i] == prediction
        if is_asked:
            then[t] = sets
        else:
            champion.learn(scores[i].T, losses[t], codes[t], then=then.pop(t))


@every_task
@given(st.integers(0, 2**32 - 1))
def test_rounds_in_pieces_have_the_bits_of_one_piece_and_looking_changes_nothing(task, seed):
    generator = np.random.default_rng(seed)
    (whole, one), (cut, two) = mixture_of(task), mixture_of(task)
    scores, losses, _, labels, _ = played(task, whole, generator, 20)
    mixed, parts = whole.learn(one, scores, losses, labels), []
    for a, b in ((0, 1), (1, 7), (7, 20)):
        looked = cut.look(two, scores[a:b])
        parts.append(cut.learn(two, scores[a:b], losses[a:b], labels[a:b]))
        for name in ("weights", "probabilities", "predictions"):  # of the round that came next
            own = getattr(parts[-1], name)[0]
            np.testing.assert_array_equal(getattr(looked, name)[0], own)
    for name in ("weights", "probabilities", "predictions"):
        own = np.concatenate([getattr(part, name) for part in parts])
        np.testing.assert_array_equal(getattr(mixed, name), own)
    np.testing.assert_array_equal(whole.state, cut.state)
    np.testing.assert_array_equal(one.state, two.state)


@given(st.integers(0, 2**32 - 1))
def test_scores_of_any_size_have_probabilities(seed):
    generator = np.random.default_rng(seed)
    mixture, shares = mixture_of(TASKS[1])
    scores = mixture.room(60)
    scores[:] = generator.choice([-1e300, -1e5, 0.0, 1e-300, 1e5, 1e300], scores.shape)
    labels = generator.integers(0, 4, 60)
    losses = (scores.argmax(axis=1) != labels[:, np.newaxis]).astype(float)
    made = mixture.learn(shares, scores, losses, labels)
    assert np.isfinite(made.probabilities).all() and (made.probabilities >= 0.0).all()
    np.testing.assert_allclose(made.probabilities.sum(axis=1), 1.0)
    assert np.isfinite(mixture.state).all() and (mixture.state > 0.0).all()


def table(task, rounds=200):
    random = np.random.default_rng(3)
    X = random.standard_normal((rounds, 4))
    labels = np.array(list(task.answers.labels.all))
    cuts = np.linspace(-0.5, 0.5, len(labels) - 1)
    return X, labels[np.digitize(X[:, 0] + 0.3 * random.standard_normal(rounds), cuts)]


@every_task
def test_the_prediction_is_the_most_probable_label(task):
    X, y = table(task)
    learner = dl.auto(task)
    assert learner.combine == "mix"
    trace = learner.run(X, y, probabilities=True)
    labels = np.array(list(task.answers.labels.all))
    top, none = labels[trace.probabilities.argmax(axis=1)], np.zeros(len(y), dtype=bool)
    if task.answers is not task:
        none = 1.0 - trace.probabilities.max(axis=1) > task.predictions.doubt.cost
        assert 0 < none.sum() < len(y)
    np.testing.assert_array_equal(trace.prediction, np.where(none, -1, top))
    ticket = learner.ask_rows(X[:5], probabilities=True)
    again = learner.look(X[:5]).probabilities
    np.testing.assert_array_equal([own.probabilities for own in ticket], again)


@every_task
def test_mixing_committees_obey_the_laws_of_learners(task):
    check_learner(committee_by("mix", task), *table(task, 60))


def test_a_member_without_probabilities_takes_part_by_its_predictions():
    task = T.Multiclass(3)
    losses = [make(task) for make in (dl.losses.Logistic, dl.losses.SmoothHinge)]
    losses = [dl.losses.Scaled(loss, 4.0) for loss in losses]
    members = [dl.OGD(loss, dl.decoders.Argmax(loss)) for loss in losses]
    learner = dl.Committee(members, "mix")
    assert learner._mixture.sure == [1]
    X, y = table(task)
    trace = learner.run(X, y, probabilities=True)
    again = dl.Committee([dl.OGD(m.loss, m.decoder) for m in members], "mix")
    steps = [again.step(x, label) for x, label in zip(X, y, strict=True)]
    np.testing.assert_array_equal(trace.prediction, [one.prediction for one in steps])
    assert dl.certify(trace, None, X, y).valid


@pytest.mark.parametrize("task", [T.Multilabel(3), T.Ordinal(3), T.LabelRanking(3)], ids=repr)
def test_other_tasks_are_refused(task):
    with pytest.raises(dl.InputError, match="classes and signs, not of .*: take 'vote'"):
        dl.auto(task, combine="mix")
    assert dl.auto(task).combine == "vote"


def test_calibrations_of_a_file_are_checked(tmp_path):
    X, y = table(TASKS[1])
    learner = dl.auto(TASKS[1], effort="fast")
    learner.run(X, y)
    about, arrays = learner.to_saved()
    assert dl.Committee.from_saved(about, arrays).predict(X[0]) == learner.predict(X[0])
    own = arrays["beliefs"]
    for wrong in (own * 2.0, own[1:], -own, own.astype(complex), own.astype(str)):
        with pytest.raises(dl.InputError, match="no calibrations of"):
            dl.Committee.from_saved(about, arrays | {"beliefs": wrong})


def test_an_audit_finds_predictions_that_are_not_the_most_probable():
    X, y = table(TASKS[1])
    trace = dl.auto(TASKS[1], effort="fast").run(X, y)
    assert dl.certify(trace, None, X, y).valid
    trace.prediction[7] = (trace.prediction[7] + 1) % 4
    said = dl.certify(trace, None, X, y).findings
    assert "1 predictions are not what is most probable, the first in round 7" in said


def test_a_ticket_has_a_number_for_each_member_and_not_one_for_each_label():
    X, y = table(TASKS[1])
    learner = dl.auto(TASKS[1])
    learner.run(X, y)
    ticket = learner.ask(X[0])
    assert ticket.means is None and ticket.made.nbytes == 4 * (len(learner.members) + 12)
    again = dl.learner.Ticket.from_bytes(ticket.to_bytes())
    np.testing.assert_array_equal(again.made, ticket.made)
    learner.step(X[1], y[1])
    before = learner.to_saved()[1]
    made = ticket.made
    for wrong in (None, made[:-1], made.astype(float), made + 4, made - 4, made[:, np.newaxis]):
        with pytest.raises(dl.InputError):
            learner.tell(dataclasses.replace(ticket, made=wrong), y[0])
    after = learner.to_saved()[1]
    assert all(np.array_equal(before[name], after[name]) for name in before)
    learner.tell(ticket, y[0])
