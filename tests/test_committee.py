"""Committees: weights against a naive reference, votes, and equality of step and run."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import driftline as dl
from driftline.committee import Shares
from driftline.committee.shares import FIRST_GAP, RATES, SHARE_VALUES
from driftline.committee.vote import vote
from driftline.errors import InputError
from driftline.models import Standardiser
from tests import naive

T = dl.tasks


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
    np.testing.assert_allclose(shares.now, Shares.copy(shares).now)


@pytest.mark.parametrize("switches", [0, 1, 5])
@pytest.mark.parametrize("kind", ["coins", "alternating", "adversarial"])
def test_the_regret_bound_holds(kind, switches):
    rounds, members = 2000, 4
    generator = np.random.default_rng(switches)
    losses = (generator.random((rounds, members)) < 0.5).astype(float)
    if kind == "alternating":
        losses = np.tile(np.arange(rounds)[:, None] % 2, (1, members)) ^ (np.arange(members) % 2)
        losses = losses.astype(float)
    best = np.arange(rounds) * (switches + 1) // rounds % members
    losses[np.arange(rounds), best] *= 0.3
    shares, paid = Shares(members), 0.0
    for t in range(rounds):
        if kind == "adversarial":  # whoever is trusted most fails, and the best one seldom
            weights = shares.now
            losses[t] = 0.0
            losses[t, np.argmax(weights)] = 1.0
            losses[t, best[t]] = float(generator.random() < 0.1)
        weights = shares.update(losses[t : t + 1])[0]
        paid += weights @ losses[t]
    theirs = losses[np.arange(rounds), best].sum()
    assert paid <= theirs + shares.regret_bound(rounds, switches)


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


@given(seed=st.integers(0, 10**6))
def test_a_vote_errs_at_most_twice_the_average(seed):
    generator = np.random.default_rng(seed)
    predictions = [generator.integers(0, 3, (50, 1)) for _ in range(4)]
    weights = generator.dirichlet(np.ones(4), 50)
    labels = generator.integers(0, 3, (50, 1))
    wrong = (vote(T.Multiclass(3), predictions, weights) != labels)[:, 0]
    average = sum(weights[:, j] * (rows != labels)[:, 0] for j, rows in enumerate(predictions))
    assert (wrong <= 2 * average + 1e-12).all()


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


@pytest.mark.parametrize("combine", ["vote", "draw"])
@pytest.mark.parametrize("name", STREAMS)
def test_step_equals_run_in_one_piece_or_many(name, combine):
    stream = STREAMS[name]
    made = [dl.auto(stream.task) for _ in range(3)]
    for committee in made:
        committee.combine = combine
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
    if combine == "draw":
        np.testing.assert_allclose(whole.risk, whole.average)
    elif stream.task.zero_one:
        assert (whole.risk <= 2 * whole.average + 1e-12).all()
    assert made[0].describe().count("\n") >= len(made[0].members)


def test_a_committee_is_about_as_good_as_its_best_member():
    stream = dl.streams.DigitTriples(rounds=3000, flips=5, seed=1)
    trace = dl.auto(stream.task).run(stream)
    best = trace.member_risk.sum(axis=0).min()
    assert trace.target_loss.sum() <= max(1.05 * best, best + 10)


def test_a_refused_stream_leaves_everybody_as_they_were():
    stream = STREAMS["classes"]
    committee = dl.auto(stream.task)
    committee.run(stream)
    weights, members = committee.weights, [m.weights for m in committee.members]
    seen = committee.scaling.state.copy()
    bad = stream.inputs.copy()
    bad[50, 3] = np.nan
    with pytest.raises(dl.InputError, match="row 50"):
        committee.run(bad, stream.labels)
    with pytest.raises(dl.InputError, match="outside 0..2"):
        committee.run(stream.inputs, stream.labels + 5)
    np.testing.assert_array_equal(committee.weights, weights)
    np.testing.assert_array_equal(committee.scaling.state, seen)
    for member, before in zip(committee.members, members, strict=True):
        np.testing.assert_array_equal(member.weights, before)


def test_a_member_that_fails_late_takes_all_others_back():
    stream = STREAMS["classes"]
    committee = dl.auto(stream.task)
    committee.run(stream)
    marks = [m.mark() for m in committee.members]
    last = committee.members[-1]
    last.run = lambda *args, **options: dl.OGD.run(last, np.full((80, 3), 1.0), args[1])
    with pytest.raises(dl.InputError, match="3 features"):
        committee.run(stream, seed=5)
    for member, mark in zip(committee.members, marks, strict=True):
        assert member.mark().generator == mark.generator
        np.testing.assert_array_equal(member.mark().snapshot.stored, mark.snapshot.stored)


def test_sparse_rows_are_played_unscaled_and_refused_scaled():
    from scipy.sparse import csr_array

    stream = STREAMS["classes"]
    rows = csr_array(stream.inputs)
    whole = dl.auto(stream.task, scaling=False).run(rows, stream.labels)
    committee = dl.auto(stream.task, scaling=False)
    steps = [committee.step(rows[[t]], stream.labels[t]).target_loss for t in range(20)]
    np.testing.assert_array_equal(whole.target_loss[:20], steps)
    with pytest.raises(dl.InputError, match="sparse inputs cannot be centred"):
        dl.auto(stream.task).run(rows, stream.labels)


def test_bad_committees_are_named():
    one = dl.OGD(dl.losses.Logistic(T.Multiclass(3)))
    two = dl.OGD(dl.losses.Logistic(T.Multiclass(2)))
    for make, words in (
        (lambda: dl.Committee([]), "1 member or more"),
        (lambda: dl.Committee([one, two]), "the same task"),
        (lambda: dl.Committee([one], "average"), "'vote' or 'draw'"),
        (lambda: dl.auto(T.Task()), "no committee is known"),
    ):
        with pytest.raises(dl.InputError, match=words):
            make()
    one.step([1.0, 2.0], 0)
    with pytest.raises(dl.InputError, match="not have played"):
        dl.Committee([one])


# -- scaling


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("constant", [True, False])
def test_sparse_rows_are_scaled_as_written_out(constant, index):
    generator = np.random.default_rng(0)
    rows = generator.standard_normal((40, 6)) * [1, 10, 100, 1, 1, 1]
    rows[generator.random(rows.shape) < 0.6] = 0.0
    rows[:2] = 0.0
    matrix = sparse.csr_array(rows)
    matrix.indices, matrix.indptr = matrix.indices.astype(index), matrix.indptr.astype(index)
    whole = Standardiser(constant).transform(matrix)
    np.testing.assert_allclose(whole.toarray(), naive.scaled_sparse(rows, constant), atol=1e-12)
    assert whole.indices.dtype == index
    pieces = Standardiser(constant)
    made = sparse.vstack([pieces.transform(matrix[a:b]) for a, b in ((0, 1), (1, 13), (13, 40))])
    np.testing.assert_array_equal(made.toarray(), whole.toarray())


def test_rows_do_not_change_their_kind():
    scaling = Standardiser()
    scaling.transform(np.eye(3))
    with pytest.raises(InputError, match="inputs are sparse, but those before were dense"):
        scaling.transform(sparse.csr_array(np.eye(3)))
    with pytest.raises(InputError, match="4 features, but 3"):
        scaling.transform(np.eye(4))
    with pytest.raises(InputError, match="row 1 has the entry nan"):
        Standardiser().transform(sparse.csr_array([[1.0, 0.0], [0.0, np.nan]]))


def test_standardised_rows_look_at_nothing_later():
    generator = np.random.default_rng(0)
    rows = generator.standard_normal((50, 4)) * [1.0, 100.0, 0.01, 0.0] + [0.0, 5.0, -3.0, 2.0]
    whole = Standardiser(constant=False).transform(rows)
    pieces = Standardiser(constant=False)
    np.testing.assert_array_equal(
        np.vstack([pieces.transform(rows[:7]), pieces.transform(rows[7:])]), whole
    )
    for t in (1, 10, 49):
        seen = rows[: t + 1]
        deviation = seen.std(axis=0)
        deviation[3] = 1.0
        z = (rows[t] - seen.mean(axis=0)) / deviation
        z[3] = 0.0
        np.testing.assert_allclose(whole[t], z / max(np.linalg.norm(z), 2.0), atol=1e-9)
    assert np.linalg.norm(whole, axis=1).max() <= 1.0 + 1e-12
    np.testing.assert_array_equal(Standardiser().transform(rows), np.c_[whole, np.full(50, 0.5)])
    with pytest.raises(dl.InputError, match="3 features, but 4"):
        pieces.transform(rows[:, :3])
    with pytest.raises(dl.InputError, match="row 2 has the entry inf"):
        Standardiser().transform([[1.0], [2.0], [np.inf]])
