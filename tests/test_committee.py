"""Committees: weights against a naive reference, votes, and equality of step and run."""

import math

import numpy as np
import pytest
from howmany import number
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import driftline as dl
from driftline.certificates import best_sequences
from driftline.committee import Shares
from driftline.committee.combine import RULES, Made
from driftline.committee.shares import FIRST_GAP, RATES, SHARE_VALUES, choose
from driftline.kernels.backend import njit
from tests import naive
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


def coins(weights, t, generator):
    return generator.random(len(weights)) < 0.5


def parts(weights, t, generator):
    return generator.random(len(weights)) ** 3


def seldom(weights, t, generator):
    return generator.random(len(weights)) < 0.03


def one_is_good(weights, t, generator):
    losses = np.ones(len(weights))
    losses[0] = generator.random() < 0.02
    return losses


def each_is_good_for_a_while(weights, t, generator):
    return np.arange(len(weights)) != t // 40 % len(weights)


def the_trusted_fails(weights, t, generator):
    return np.arange(len(weights)) == np.argmax(weights)


def the_trusted_fails_but_for_one(weights, t, generator):
    losses = the_trusted_fails(weights, t, generator)
    losses[0] = generator.random() < 0.05
    return losses


def most_of_the_trust_fails(weights, t, generator):
    order = np.argsort(-weights)
    failing = np.cumsum(weights[order]) <= 0.6
    losses = np.zeros(len(weights))
    losses[order[failing]] = 1.0
    losses[order[0]] = 1.0
    return losses * (t % 3 == 0)


KINDS = [
    coins,
    parts,
    seldom,
    one_is_good,
    each_is_good_for_a_while,
    the_trusted_fails,
    the_trusted_fails_but_for_one,
    most_of_the_trust_fails,
]


def play_against(kind, rounds, members, seed):
    """Return losses that may depend on the weights, what was paid, and the weights after."""
    generator, shares = np.random.default_rng(seed), Shares(members)
    losses, paid = np.empty((rounds, members)), 0.0
    for t in range(rounds):
        losses[t] = kind(shares.now, t, generator)
        paid += shares.update(losses[t : t + 1])[0] @ losses[t]
    return losses, paid, shares


def check_what_was_paid(losses, paid, shares):
    rounds, members = losses.shape
    for k, total in enumerate(best_sequences(losses, min(rounds - 1, 40))):
        assert paid <= Shares(members).loss_bound(total, rounds, k) + 1e-9
    gap = shares.state[0] - FIRST_GAP
    spread = max(0.0, paid * (1 - paid / rounds))  # a sum of weights may round above 1
    assert gap <= math.sqrt(spread * math.log(len(shares.grid))) + 1e-9


@pytest.mark.parametrize("kind", KINDS)
@given(seed=st.integers(0, 10**6), rounds=st.integers(1, 150), members=st.integers(1, 6))
def test_the_loss_bound_holds_for_every_number_of_changes(kind, seed, rounds, members):
    check_what_was_paid(*play_against(kind, rounds, members, seed))


@pytest.mark.parametrize("members", [2, 5])
@pytest.mark.parametrize("kind", KINDS)
def test_the_loss_bound_holds_in_the_long_run(kind, members):
    check_what_was_paid(*play_against(kind, 4000, members, seed=1))


@given(
    losses=st.integers(1, 4).flatmap(
        lambda members: st.lists(
            st.lists(st.floats(0.0, 1.0), min_size=members, max_size=members),
            min_size=1,
            max_size=30,
        )
    )
)
def test_the_loss_bound_holds_for_any_losses(losses):
    losses, shares = np.array(losses), Shares(len(losses[0]))
    paid = float((shares.update(losses) * losses).sum())
    check_what_was_paid(losses, paid, shares)


@pytest.mark.parametrize("kind", KINDS)
@given(seed=st.integers(0, 10**6), rounds=st.integers(1, 80), members=st.integers(1, 6))
def test_weights_from_elsewhere_count_as_one_change_more(kind, seed, rounds, members):
    _, _, elsewhere = play_against(the_trusted_fails, 100, members, seed)
    shares, generator = Shares(members), np.random.default_rng(seed)
    assert shares.changes == 0
    shares.of_members[:] = elsewhere.of_members
    more = shares.changes
    assert more == (members > 1)
    losses, paid = np.empty((rounds, members)), 0.0
    for t in range(rounds):
        losses[t] = kind(shares.now, t, generator)
        paid += shares.update(losses[t : t + 1])[0] @ losses[t]
    for k, total in enumerate(best_sequences(losses, min(rounds - 1, 40))):
        assert paid <= Shares(members).loss_bound(total, rounds, k + more) + 1e-9


@given(seed=st.integers(0, 10**6), rounds=st.integers(1, 60), members=st.integers(1, 5))
def test_each_set_keeps_its_part_of_the_bound(seed, rounds, members):
    """The proof's first half, with the grid's pairs and others."""
    generator = np.random.default_rng(seed)
    losses, _, _ = play_against(KINDS[seed % len(KINDS)], rounds, members, seed)
    eta, share = float(generator.choice([0.1, *RATES])), float(generator.choice([0.2, 1e-3]))
    paid = naive.fixed_share(losses.tolist(), eta, share)
    for k, total in enumerate(best_sequences(losses, rounds - 1)):
        bound = naive.fixed_share_bound(total, rounds, k, members, eta, share)
        assert paid <= bound + 1e-9
        words = math.log(members) + k * math.log(members / share)
        words -= (rounds - 1 - k) * math.log(1 - share + share / members)
        assert bound <= (eta * total + words) / (1 - math.exp(-eta)) + 1e-9
        assert bound <= total + words / eta + eta * rounds / 8 + 1e-9


@njit
def called(state, totals, chances, paid):
    """Call a piece of a kernel, which only compiled code can."""
    choose(state, totals, chances, paid)


@pytest.mark.parametrize("sets", [2, 12, 40])
@pytest.mark.parametrize("kind", ["leaders", "pair", "coins", "seldom", "greedy"])
def test_the_choice_among_sets_keeps_its_part_of_the_bound(kind, sets):
    """The proof's second half, for sets that pay what hurts most."""
    rounds = 1500 if sets == 12 else number(300, 1500)  # to see that the constant is needed
    generator = np.random.default_rng(sets)
    state, chances, shifted = np.array([FIRST_GAP]), np.full(sets, 1 / sets), np.zeros(sets)
    totals, paid, variance = np.zeros(sets), 0.0, 0.0
    c = (2 / 3 + 1 / (8 * FIRST_GAP)) * math.log(sets) - 2 * FIRST_GAP
    for t in range(rounds):
        if kind == "leaders":
            losses = (np.argsort(np.argsort(totals)) < sets / 2).astype(float)
        elif kind == "pair":
            losses = (np.arange(sets) != t % 2).astype(float)
        elif kind == "coins":
            losses = np.rint(generator.random(sets))
        elif kind == "seldom":
            losses = (generator.random(sets) < 0.02).astype(float)
        else:  # what widens the gap most
            tried = (generator.random((50, sets)) < generator.random((50, 1))).astype(float)
            rate = math.log(sets) / state[0]
            mixed = -np.log(np.exp(-rate * tried) @ chances) / rate
            losses = tried[np.argmax(tried @ chances - mixed)]
        mean = chances @ losses
        paid, totals = paid + mean, totals + losses
        variance += mean * (1 - mean)
        called(state, shifted, chances, losses)
        gap = state[0] - FIRST_GAP
        assert gap**2 <= variance * math.log(sets) + c * gap + 1e-9
        assert paid <= totals.min() + FIRST_GAP + 2 * gap + 1e-9
        assert paid <= naive.adahedge_bound(totals.min(), t + 1, sets, FIRST_GAP) + 1e-9
    if sets == 12 and kind in ("leaders", "pair", "coins", "greedy"):
        assert gap**2 >= 0.9 * variance * math.log(sets)  # no room for a smaller constant


rounds_and_totals = given(
    rounds=st.integers(1, 10**6),
    part=st.floats(0.0, 1.2),
    more=st.floats(0.0, 1.0),
    switches=st.integers(0, 50),
    members=st.integers(1, 8),
)


@rounds_and_totals
def test_the_loss_bound_is_what_the_proof_says(rounds, part, more, switches, members):
    shares, total = Shares(members), part * rounds
    bound = shares.loss_bound(total, rounds, switches)
    each = [
        naive.fixed_share_bound(total, rounds, switches, members, eta, share)
        for eta, share in shares.grid
        if (1 - share) ** rounds * (share / members) ** switches > 1e-300
    ]
    if each:
        wanted = naive.adahedge_bound(min(each), rounds, len(shares.grid), FIRST_GAP)
        assert bound <= wanted * (1 + 1e-6) + 1e-6
    if len(each) == len(shares.grid):
        assert bound == pytest.approx(wanted, rel=1e-6, abs=1e-6)


@rounds_and_totals
def test_the_loss_bound_grows_and_is_never_above_the_regret_bound(
    rounds, part, more, switches, members
):
    shares, total = Shares(members), part * rounds
    bound, slack = shares.loss_bound(total, rounds, switches), 1e-9 * rounds
    assert bound <= total + shares.regret_bound(rounds, switches) + slack
    assert min(total, rounds) - slack <= bound <= rounds + slack
    assert bound <= shares.loss_bound(total + more * rounds, rounds, switches) + slack
    assert bound <= shares.loss_bound(total, rounds, switches + 1) + slack
    assert bound <= shares.loss_bound(total, rounds + 1, switches) + slack


def test_the_loss_bound_is_small_where_the_total_is():
    for members in (2, 6):
        shares = Shares(members)
        assert shares.loss_bound(190.0, 10_000) < 280.0
        assert shares.loss_bound(0.0, 10_000) < 17.0
        assert shares.loss_bound(0.0, 10_000, switches=1) < 35.0
        assert 190.0 + shares.regret_bound(10_000) > 650.0
    assert shares.loss_bound(5.0, 0) == 0.0
    assert shares.loss_bound(math.inf, 100) == pytest.approx(100.0)


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
    if combine == "draw":
        np.testing.assert_allclose(whole.risk, whole.average)
    elif combine == "vote" and stream.task.zero_one:
        assert (whole.risk <= 2 * whole.average + 1e-12).all()
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
        (lambda: dl.Committee([one], "average"), "one of 'vote', 'draw', 'mix'"),
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
