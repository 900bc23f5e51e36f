"""Committees: weights against a naive reference, votes, and equality of step and run."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import driftline as dl
from driftline.committee import Shares
from driftline.committee.combine import RULES, Made
from driftline.committee.shares import FIRST_GAP, RATES, SHARE_VALUES
from tests.strategies import committee_by

T = dl.tasks


def vote(task, made, weights):
    return RULES["vote"].predictions(task, Made(made, weights))


def naive_shares(losses):
    """Fixed share for every pair of the grid, under AdaHedge, as the papers write them."""
    rounds, members = losses.shape
    grid = [(eta, share) for eta in RATES for share in SHARE_VALUES]
    own = np.full((len(grid), members), 1.0 / members)
    totals, gap, out = np.zeros(len(grid)), FIRST_GAP, np.empty((rounds, members))
    for t, loss in enumerate(losses):
        rate = np.log(len(grid)) / gap
        q = np.exp(-rate * (totals - totals.min()))
        q /= q.sum()
        out[t] = q @ own
        paid = own @ loss
        mix = -np.log(q @ np.exp(-rate * paid)) / rate
        gap += max(0.0, q @ paid - mix)
        totals += paid
        for g, (eta, share) in enumerate(grid):
            own[g] *= np.exp(-eta * loss)
            own[g] = (1 - share) * own[g] / own[g].sum() + share / members
    return out


@given(seed=st.integers(0, 10**6))
def test_weights_equal_the_naive_ones_and_are_a_distribution(seed):
    generator = np.random.default_rng(seed)
    members = int(generator.integers(1, 6))
    losses = generator.random((60, members))
    if seed % 2:
        losses = (losses < generator.random(members)).astype(float)
    shares = Shares(members)
    weights = np.vstack([shares.update(losses[:20]), shares.update(losses[20:])])
    np.testing.assert_allclose(weights, naive_shares(losses), atol=1e-10)
    assert (weights >= 0).all()
    np.testing.assert_allclose(weights.sum(axis=1), 1.0, atol=1e-12)


# -- votes


def test_votes_are_what_costs_least():
    weights = np.array([[0.4, 0.35, 0.25], [0.2, 0.2, 0.6]])
    classes = [np.array([[0], [0]]), np.array([[1], [0]]), np.array([[1], [2]])]
    np.testing.assert_array_equal(vote(T.Multiclass(3), classes, weights), [[1], [2]])
    signs = [np.array([[1], [1]]), np.array([[-1], [1]]), np.array([[-1], [-1]])]
    np.testing.assert_array_equal(vote(T.Binary(), signs, weights), [[-1], [-1]])
    tags = [np.array([[1, 0], [1, 1]]), np.array([[1, 1], [0, 1]]), np.array([[0, 1], [0, 0]])]
    np.testing.assert_array_equal(vote(T.Multilabel(2), tags, weights), [[1, 1], [0, 0]])
    levels = [np.array([[0], [0]]), np.array([[2], [1]]), np.array([[3], [3]])]
    np.testing.assert_array_equal(vote(T.Ordinal(4), levels, weights), [[2], [3]])
    ranks = [np.array([[0, 1, 2]] * 2), np.array([[1, 0, 2]] * 2), np.array([[2, 1, 0]] * 2)]
    assert vote(T.NDCG(2), ranks, weights).shape == (2, 3)
    np.testing.assert_array_equal(vote(T.NDCG(2), ranks, weights)[1], [2, 1, 0])
    sets = [np.array([[0, 1]] * 2), np.array([[0, 2]] * 2), np.array([[2, 3]] * 2)]
    np.testing.assert_array_equal(vote(T.PrecisionAtK(2), sets, weights)[1], [2, 3])
    orders = [np.array([[0, 1, 2]] * 2), np.array([[0, 2, 1]] * 2), np.array([[2, 1, 0]] * 2)]
    for task in (T.LabelRanking(3), T.Matching(3)):
        for row, weight in zip(vote(task, orders, weights), weights, strict=True):
            mean = [
                w @ weight
                for w in np.array([[task.loss(p, o[0]) for o in orders] for p in task_orders()])
            ]
            chosen = sum(w * task.loss(row, o[0]) for w, o in zip(weight, orders, strict=True))
            assert chosen == pytest.approx(min(mean))


def task_orders():
    import itertools

    return [np.array(p) for p in itertools.permutations(range(3))]


# -- committees


STREAMS = {
    "signs": dl.streams.LabelFlips(rounds=80, flips=1, seed=0),
    "classes": dl.streams.DigitTriples(rounds=80, flips=1, seed=0),
    "tags": dl.streams.Planted(T.Multilabel(3), rounds=80, flips=1, seed=0),
    "levels": dl.streams.Planted(T.Ordinal(3), rounds=40, flips=1, seed=0),
    "words": dl.streams.PlantedSequences(rounds=30, flips=1, tags=3, longest=4, seed=0),
    "documents": dl.streams.PlantedRankings(T.NDCG(2), rounds=80, flips=1, seed=0),
    "choices": dl.streams.PlantedRankings(T.PrecisionAtK(2), rounds=80, flips=1, seed=0),
}


@pytest.mark.parametrize("combine", [name for name, rule in RULES.items() if rule.levels == 1])
@pytest.mark.parametrize("name", STREAMS)
def test_step_equals_run_in_one_piece_or_many(name, combine):
    stream = STREAMS[name]
    if combine == "mix" and stream.task.kind not in ("classes", "sign"):
        with pytest.raises(dl.InputError, match="averages probabilities of classes and signs"):
            committee_by(combine, stream.task)
        return
    made = [committee_by(combine, stream.task) for _ in range(3)]
    whole = made[0].run(stream)
    cut = len(stream) // 3
    parts = [
        made[1].run(stream.inputs[:cut], stream.labels[:cut]),
        made[1].run(stream.inputs[cut:], stream.labels[cut:]),
    ]
    steps = []
    for x, y in zip(stream.inputs, stream.labels, strict=True):
        seen = made[2].predict(x)
        steps.append(made[2].step(x, y))
        np.testing.assert_array_equal(seen, steps[-1].prediction)
    for column in ("risk", "target_loss", "weights", "member_risk"):
        pieces = np.concatenate([getattr(part, column) for part in parts])
        np.testing.assert_array_equal(getattr(whole, column), pieces)
    np.testing.assert_array_equal(whole.risk, [s.risk for s in steps])
    np.testing.assert_array_equal(whole.target_loss, [s.target_loss for s in steps])
    np.testing.assert_array_equal(made[0].weights, made[2].weights)
    assert made[0].describe().count("\n") >= len(made[0].members)


def test_a_committee_is_about_as_good_as_its_best_member():
    streams = [dl.streams.DigitTriples(rounds=3000, flips=5, seed=seed) for seed in range(5)]
    traces = [dl.auto(stream.task, effort="fast").run(stream) for stream in streams]
    best = np.mean([trace.member_risk.sum(axis=0).min() for trace in traces])
    mean = np.mean([trace.target_loss.sum() for trace in traces])
    assert mean <= max(1.05 * best, best + 10)


def test_a_refused_stream_leaves_everybody_as_they_were():
    stream = STREAMS["classes"]
    committee = dl.auto(stream.task, effort="fast")
    committee.run(stream)
    weights, members = committee.weights, [m.weights for m in committee.members]
    seen = committee.standardiser.state.copy()
    bad = stream.inputs.copy()
    bad[50, 3] = np.nan
    with pytest.raises(dl.InputError, match="row 50"):
        committee.run(bad, stream.labels)
    with pytest.raises(dl.InputError, match="outside 0..2"):
        committee.run(stream.inputs, stream.labels + 5)
    np.testing.assert_array_equal(committee.weights, weights)
    np.testing.assert_array_equal(committee.standardiser.state, seen)
    for member, before in zip(committee.members, members, strict=True):
        np.testing.assert_array_equal(member.weights, before)


def test_a_member_that_fails_late_takes_all_others_back():
    stream = STREAMS["classes"]
    committee = dl.auto(stream.task, effort="fast")
    committee.run(stream)
    before = committee.to_saved()
    last = committee.members[-1]

    def refuse(*arguments):
        raise dl.InputError("no more")

    last._play_mapped = refuse
    with pytest.raises(dl.InputError, match="no more"):
        committee.run(stream, seed=5)
    about, arrays = committee.to_saved()
    assert about == before[0]
    for name, array in before[1].items():
        np.testing.assert_array_equal(arrays[name], array)


@pytest.mark.parametrize("scaling", [True, False])
def test_sparse_rows_step_by_step_and_in_one_run(scaling):
    stream = STREAMS["classes"]
    rows = sparse.csr_array(stream.inputs)
    whole = dl.auto(stream.task, scaling=scaling, effort="fast").run(rows, stream.labels)
    committee = dl.auto(stream.task, scaling=scaling, effort="fast")
    for t in range(len(stream.labels)):
        seen = committee.predict(rows[[t]])
        made = committee.step(rows[[t]], stream.labels[t])
        assert made.prediction == seen
        assert made.target_loss == whole.target_loss[t]


def test_overflowing_members_take_a_single_round_back():
    task = T.Multiclass(2)
    loss = dl.losses.Logistic(task)
    wild = (loss, dl.decoders.Argmax(loss), dl.rates.Constant(1e90), dl.domains.Unbounded())
    committee = dl.Committee([dl.OGD(loss), dl.OGD(*wild)])
    committee.step([1.0, 0.0], 1)
    before = committee.members[0].weights
    with pytest.raises(dl.InputError, match="overflow"):
        committee.step([1e130, 0.0], 0)
    np.testing.assert_array_equal(committee.members[0].weights, before)
    assert committee.rounds == 1


class OfThreeScores(T.Task):
    """A task that says nothing but its number of scores."""

    dim = 3


def test_bad_committees_are_named():
    one = dl.OGD(dl.losses.Logistic(T.Multiclass(3)))
    two = dl.OGD(dl.losses.Logistic(T.Multiclass(2)))
    for make, words in (
        (lambda: dl.Committee([]), "1 member or more"),
        (lambda: dl.Committee([one, two]), "the same task"),
        (lambda: dl.Committee([one], "average"), "one of 'vote', 'mix'"),
        (lambda: dl.auto(T.Task(), effort="fast"), "does not say its number of scores"),
        (lambda: dl.auto(OfThreeScores(), effort="fast"), "no committee is known"),
    ):
        with pytest.raises(dl.InputError, match=words):
            make()
    one.step([1.0, 2.0], 0)
    with pytest.raises(dl.InputError, match="not have played"):
        dl.Committee([one])


# -- interruptions

PLACES = ["seen", "play_one", "weigh"]


def cut_at(committee, place, error, turn):
    """Let the committee raise in the middle of its next round."""
    groups = committee._groups.groups
    what = committee if place == "weigh" else groups[turn % len(groups)]
    name = "_weigh_one" if place == "weigh" else place
    before = getattr(what, name)

    def once(*given):
        setattr(what, name, before)
        error()
        return before(*given)

    setattr(what, name, once)


def boom():
    raise RuntimeError("boom")


@pytest.mark.usefixtures("signals")
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("turn", [0, 1, -1])
def test_an_interrupt_waits_until_the_round_is_over(place, turn):
    import signal

    X, y = np.random.default_rng(0).normal(size=(60, 3)), np.arange(60) % 3
    one, two = dl.auto(dl.tasks.Multiclass(3)), dl.auto(dl.tasks.Multiclass(3))
    for learner in (one, two):
        learner.run(X[:40], y[:40])
    for t, play in ((40, one.step), (41, one.learn_row)):
        cut_at(one, place, lambda: signal.raise_signal(signal.SIGINT), turn)
        with pytest.raises(KeyboardInterrupt):
            play(X[t], int(y[t]))
    cut_at(one, place, lambda: signal.raise_signal(signal.SIGINT), turn)
    with pytest.raises(KeyboardInterrupt):
        one.tell(one.ask(X[42]), int(y[42]))
    for t in (40, 41, 42):
        two.step(X[t], int(y[t]))
    late = [learner.run(X[43:], y[43:]) for learner in (one, two)]
    assert np.array_equal(late[0].member_risk, late[1].member_risk)
    assert np.array_equal(late[0].weights, late[1].weights)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("turn", [0, 1, -1])
def test_what_was_cut_in_two_goes_on_nowhere(place, turn, tmp_path):
    """What nobody expects to fail may fail: then nothing more is learned, nor saved."""
    X, y = np.random.default_rng(0).normal(size=(60, 3)), np.arange(60) % 3
    committee, other = dl.auto(dl.tasks.Multiclass(3)), dl.auto(dl.tasks.Multiclass(3))
    for learner in (committee, other):
        learner.run(X[:39], y[:39])
        learner.step(X[39], int(y[39]))  # the next one keeps no copy to go back to
    state = committee.state
    cut_at(committee, place, boom, turn)
    with pytest.raises(RuntimeError, match="boom"):
        committee.step(X[40], int(y[40]))
    calls = [
        lambda: committee.step(X[40], int(y[40])),
        lambda: committee.learn_row(X[40], int(y[40])),
        lambda: committee.run(X[40:], y[40:]),
        lambda: committee.ask(X[40]),
        lambda: committee.predict(X[40]),
        lambda: committee.save(tmp_path / "torn"),
        lambda: committee.copy(),
        lambda: committee.state,
    ]
    for call in calls:
        with pytest.raises(dl.TornError, match="since a call was interrupted"):
            call()
    committee.restore(state)
    late = [learner.run(X[40:], y[40:]).member_risk for learner in (committee, other)]
    assert np.array_equal(*late)


@pytest.mark.parametrize("effort", ["fast", "balanced"])
@pytest.mark.parametrize(
    "first, other", [(np.asarray, sparse.csr_array), (sparse.csr_array, np.asarray)]
)
def test_a_row_of_another_kind_is_refused_and_the_next_is_learned(effort, first, other):
    X, y = np.random.default_rng(0).normal(size=(60, 3)), np.arange(60) % 3
    one, two = (dl.auto(dl.tasks.Multiclass(3), effort=effort) for _ in range(2))
    for learner in (one, two):
        learner.run(first(X[:40]), y[:40])
    for t in range(40, 45):
        rows = {kind: X[t] if kind is np.asarray else kind(X[t : t + 1]) for kind in (first, other)}
        with pytest.raises(dl.InputError, match="those before were"):
            one.step(rows[other], int(y[t]))
        played = [learner.step(rows[first], int(y[t])) for learner in (one, two)]
        assert played[0].prediction == played[1].prediction
    late = [learner.run(first(X[45:]), y[45:]).member_risk for learner in (one, two)]
    assert np.array_equal(*late)


def test_a_committee_that_left_members_out_goes_on_from_any_state():
    rows = np.random.default_rng(0).normal(size=(12, 40))
    labels = (rows[:, 0] > 0).astype(int)
    one, other = dl.auto(dl.tasks.Multiclass(2)), dl.auto(dl.tasks.Multiclass(2))
    first = one.state
    one.learn_rows(rows[:6], labels[:6])
    later = one.state
    for own, learned in ((first, 0), (later, 6), (first, 0)):
        one.restore(own)
        assert one.rounds == learned
    expected = other.run(rows, labels)
    assert np.array_equal(one.run(rows, labels).member_risk, expected.member_risk)
