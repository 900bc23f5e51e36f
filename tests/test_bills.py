"""What late labels add to bounds is added up as they come, and the bounds hold with it."""

import math

import numpy as np
import pytest

import driftline as dl
from driftline.app.runs import guarantee
from driftline.certificates import best_sequences
from driftline.committee import Shares
from driftline.committee.shares import stretches_of
from driftline.members import NaiveBayes
from driftline.state import archive
from tests import naive
from tests.howmany import examples
from tests.strategies import committee_by

pytestmark = pytest.mark.usefixtures("no_ids")

ROUNDS = 120
X = np.random.default_rng(0).normal(size=(ROUNDS, 4))
BEND = np.where(np.arange(ROUNDS)[:, np.newaxis] // 40 % 2, -X, X)  # concepts come and go
CLASSES = np.where(BEND[:, 0] > 0.0, 0, 1 + (BEND[:, 1] > 0.0))
TAGS = (BEND[:, :3] > 0.2).astype(int)
COSTS = dl.tasks.CostSensitive([[0.0, 1.0, 4.7], [2.0, 0.0, 1.0], [1.0, 3.0, 0.0]])


def committee(task, combine):
    """Members that pay 0 or 1, and for a draw or for tags some that pay fractions."""
    plain = dl.losses.Logistic(task)
    scaled = dl.losses.Scaled(plain, 2.0)
    members = [dl.OGD(scaled, dl.decoders.Argmax(scaled), rate) for rate in RATES]
    if combine == "draw":
        members.append(dl.OGD(plain, rate=dl.rates.Constant(0.1), domain=dl.domains.Ball(6.0)))
    elif isinstance(task, dl.tasks.Multiclass):
        members.append(NaiveBayes(task))
    return dl.Committee(members, combine)


RATES = (dl.rates.Polyak(), dl.rates.Constant(0.5), dl.rates.Constant(0.02))
KINDS = {
    "vote": (lambda: committee(dl.tasks.Multiclass(3), "vote"), CLASSES),
    "draw": (lambda: committee(dl.tasks.Multiclass(3), "draw"), CLASSES),
    "tags": (lambda: committee(dl.tasks.Multilabel(3), "vote"), TAGS),
    "tags, drawn": (lambda: committee(dl.tasks.Multilabel(3), "draw"), TAGS),
    "costs": (lambda: dl.auto(COSTS, effort="fast"), CLASSES),
    "votes": (lambda: committee_by("vote", dl.tasks.Multiclass(3)), CLASSES),
}
every_kind = pytest.mark.parametrize("make, labels", KINDS.values(), ids=KINDS)


def delays_of(rng):
    """Return delays of any length; some labels never come, and some at once."""
    longest = int(rng.choice([1, 3, 20, 60]))
    return rng.integers(-1, longest + 1, ROUNDS) if rng.random() < 0.8 else np.full(ROUNDS, longest)


def weights_of(rng):
    """Return sample weights: none, of one scale, of scales that grow; some are 0."""
    kind = int(rng.integers(3))
    if kind == 0:
        return None
    made = rng.choice([0.0, 0.3, 0.5, 0.9], ROUNDS)
    return made if kind == 1 else made * np.where(np.arange(ROUNDS) < 50, 1.0, rng.choice([3, 9]))


def events_of(trace, delays):
    """Return the asks and tells of a run in their order."""
    for tick in range(len(trace)):
        yield tick, False
        due = np.flatnonzero((delays >= 0) & (np.arange(len(trace)) + delays == tick))
        yield from ((int(t), True) for t in due)


def as_told(trace, delays, weights, largest):
    """Play a recorded run in plain Python; return the weights' account and the order of labels."""
    count = trace.member_risk.shape[1]
    shares, asked, order = naive.LateShares(count, Shares(count).grid), {}, []
    for t, told in events_of(trace, delays):
        if told:
            each = 1.0 if weights is None else weights[t]
            shares.tell(trace.member_risk[t] / largest, asked[t], each)
            order.append(t)
        else:
            asked[t] = shares.ask()
            assert np.allclose(asked[t][1], trace.weights[t])
    return shares, order


def assert_bills(bills, mean, worst, sets):
    assert np.isclose(bills.mean, mean, rtol=0.0, atol=1e-9)
    assert np.isclose(bills.worst, worst, rtol=0.0, atol=1e-9)
    assert np.allclose(bills.sets, sets, rtol=0.0, atol=1e-9)


def bits(learner):
    return archive.packed(*learner.to_saved())


@pytest.mark.parametrize("seed", examples(6, 200))
@every_kind
def test_bills_are_those_of_the_record_and_of_the_audit(make, labels, seed):
    rng, learner = np.random.default_rng(seed), make()
    delays, weights = delays_of(rng), weights_of(rng)
    trace = learner.run(X, labels, delay=delays, sample_weight=weights)
    largest = learner.task.largest_loss
    shares, order = as_told(trace, delays, weights, largest)
    bills = learner.bills
    assert_bills(bills.over(largest), shares.mean, shares.worst, shares.more)
    made = dl.certify(trace, None, X, labels, sample_weight=weights)
    assert made.valid and made.bills is not None
    assert_bills(bills, *made.bills)
    counted = None if weights is None else weights[order]
    stretches = stretches_of(counted, len(order))
    average = float((trace.weights * trace.member_risk)[order].sum())
    assert average == pytest.approx(largest * shares.paid, abs=1e-9)
    totals = best_sequences(trace.member_risk[order], min(5, len(order) - 1))
    for switches, total in enumerate(totals.tolist()):
        given = (total / largest, stretches, switches, bills.over(largest))
        bound = largest * learner.shares.weighted_bound(*given)
        assert average <= bound + 1e-9
        assert bound == pytest.approx(made.most(total, switches), abs=1e-9)


@pytest.mark.parametrize("seed", examples(3, 60))
@every_kind
def test_bills_are_the_same_in_pieces_and_after_a_load(make, labels, seed, tmp_path):
    rng = np.random.default_rng(seed)
    delays, weights = delays_of(rng), weights_of(rng)
    whole, pieces = make(), make()
    whole.run(X, labels, delay=delays, sample_weight=weights)
    cuts = [0, *sorted(rng.choice(np.arange(1, ROUNDS), 3, replace=False).tolist()), ROUNDS]
    for i, (a, b) in enumerate(zip(cuts[:-1], cuts[1:], strict=True)):
        own = None if weights is None else weights[a:b]
        if i % 2:
            pieces.run_events(X[a:b], labels[a:b], delays[a:b], sample_weight=own)
        else:
            pieces.run(X[a:b], labels[a:b], delay=delays[a:b], sample_weight=own)
        pieces = dl.load(pieces.save(tmp_path / "learner"))
    for learner in (whole, pieces):
        learner.forget(before=ROUNDS)
    assert np.array_equal(whole.shares.sums, pieces.shares.sums)
    assert bits(whole) == bits(pieces)


@pytest.mark.parametrize("seed", examples(2, 60))
@every_kind
def test_tickets_of_all_ways_add_up_the_same(make, labels, seed):
    """Told one by one, in groups, and asked for by copies; in between, rounds at once."""
    rng, one, two, three = np.random.default_rng(seed), make(), make(), make()
    count, largest = len(one.members), one.task.largest_loss
    shares = naive.LateShares(count, Shares(count).grid)
    if seed % 2:  # so that the scale grows when weights of 1 come
        small = np.full(6, 0.2)
        for learner in (one, two, three):
            trace = learner.run(X[:6], labels[:6], sample_weight=small)
        for row in trace.member_risk:
            shares.tell(row / largest, shares.ask(), 0.2)
    waiting = []
    for t in range(6, ROUNDS):
        copy = three.copy()
        (ticket,) = copy.ask_rows(X[t : t + 1], numbers=[three._tickets])
        tickets = one.ask(X[t]), two.ask(X[t]), three.admit(ticket)
        assert np.array_equal(tickets[0].means, tickets[2].means)
        waiting.append((t, tickets, shares.ask()))
        if rng.random() < 0.2:
            group = rng.permutation(len(waiting))[: int(rng.integers(1, 6))].tolist()
            told = [waiting[i] for i in group]
            waiting = [own for i, own in enumerate(waiting) if i not in group]
            two.tell_rows([own[1] for _, own, _ in told], [labels[u] for u, _, _ in told])
            for u, own, asked in told:
                risks = one.tell_risks([own[0]], labels[u : u + 1])[0]
                shares.tell(risks / largest, asked)
                three.tell(own[2], labels[u])
            assert_bills(one.bills.over(largest), shares.mean, shares.worst, shares.more)
    assert one.bills.worst > 0.0
    assert bits(one) == bits(two) and np.array_equal(one.shares.sums, three.shares.sums)


@every_kind
def test_labels_at_once_add_nothing(make, labels):
    weights = np.linspace(0.3, 5.0, ROUNDS)
    for way in ("run", "step", "tickets", "groups", "delay", "delay and weights"):
        learner = make()
        if way == "run":
            learner.run(X, labels, sample_weight=weights)
        elif way == "delay":
            learner.run(X, labels, delay=0)
        elif way == "delay and weights":
            learner.run(X, labels, delay=0, sample_weight=weights)
        elif way == "groups":
            for t in range(30):
                learner.tell_rows(learner.ask_rows(X[t : t + 1]), labels[t : t + 1])
        else:
            for x, y in zip(X[:30], labels[:30], strict=True):
                if way == "step":
                    learner.step(x, y)
                else:
                    learner.tell(learner.ask(x), y)
        assert not learner.shares.sums.any(), way
        assert learner.bills.mean == 0.0


def test_bills_go_where_the_state_goes():
    learner = committee(dl.tasks.Multiclass(3), "vote")
    learner.run(X[:60], CLASSES[:60], delay=9)
    sums = learner.shares.sums.copy()
    assert sums.all()
    grown, copied, state = learner.grown(classes=5), learner.copy(), learner.state
    for other in (grown, copied):
        assert np.array_equal(other.shares.sums, sums)
    bad = X[60:90].copy()
    bad[20] = np.nan
    with pytest.raises(dl.InputError):
        learner.run(bad, CLASSES[60:90], delay=9)
    assert np.array_equal(learner.shares.sums, sums)
    learner.run(X[60:], CLASSES[60:], delay=9)
    assert (learner.shares.sums != sums).any()
    assert np.array_equal(copied.shares.sums, sums) and np.array_equal(state.shares.sums, sums)
    learner.restore(state)
    assert np.array_equal(learner.shares.sums, sums)
    learner.bills.sets.fill(7.0)
    assert np.array_equal(learner.shares.sums, sums)


@pytest.mark.parametrize(
    "change",
    [
        lambda sums: sums[:-1],
        lambda sums: sums * np.nan,
        lambda sums: np.r_[-np.inf, sums[1:]],
        lambda sums: np.r_[sums[0], -1.0, sums[2:]],
        lambda sums: np.r_[sums[:-1], np.inf],
        lambda sums: sums.astype(int),
    ],
)
def test_sums_that_cannot_be_are_refused(change):
    learner = committee(dl.tasks.Multiclass(3), "vote")
    learner.run(X[:60], CLASSES[:60], delay=9)
    before, (about, arrays) = bits(learner), learner.to_saved()
    with pytest.raises(dl.InputError, match="late labels cannot"):
        dl.Committee.from_saved(about, arrays | {"bills": change(arrays["bills"])})
    state = learner.state
    state.shares.sums = change(state.shares.sums)
    with pytest.raises(dl.InputError, match="late labels cannot"):
        learner.restore(state)
    assert bits(learner) == before


def test_forged_rounds_that_wait_are_refused():
    learner = committee(dl.tasks.Multiclass(3), "vote")
    learner.run(X[:60], CLASSES[:60], delay=9)
    about, arrays = learner.to_saved()
    kept = arrays["late.kept"]
    forged = kept[:, :5], kept[:, :-1], kept - 2.0, np.c_[kept[:, :-1], np.full(len(kept), -0.5)]
    for other in forged:
        with pytest.raises(dl.InputError):
            dl.Committee.from_saved(about, arrays | {"late.kept": other})


# -- the guarantee of a model


def table(count, seed=0):
    rng = np.random.default_rng(seed)
    rows = [{"warm": float(a), "wet": float(b)} for a, b in rng.normal(size=(count, 2))]
    turned = [row["warm"] > 0.0 if t // 60 % 2 else row["wet"] > 0.0 for t, row in enumerate(rows)]
    return rows, ["yes" if own else "no" for own in turned]


@pytest.mark.usefixtures("voting")
@pytest.mark.parametrize("seed", examples(3, 40))
def test_a_model_has_a_bound_while_labels_come_late(seed):
    rng, (rows, labels) = np.random.default_rng(seed), table(200, seed)
    model = dl.TableModel.new(
        [row | {"y": y} for row, y in zip(rows[:40], labels, strict=False)], "y", learner="fast"
    )
    made = model.guarantee()
    assert made.bound == 0.0 and made.delay_cost == 0.0
    model.learn(rows[:20], labels[:20])
    assert model.guarantee().delay_cost == 0.0 and math.isfinite(model.guarantee().bound)
    paid, waiting, plain = 0.0, [], model.guarantee()
    for t in range(20, 200):
        weights = model.learner.weights
        waiting.append((t, model.ask(rows[t]), weights))
        while waiting and rng.random() < 0.45:
            u, ticket, weights = waiting.pop(int(rng.integers(len(waiting))))
            before = model._model.totals.copy()
            model.tell(ticket, labels[u])
            risks = model._model.totals - before
            paid += float(weights @ risks)
            made = model.guarantee()
            assert paid <= made.average + 1e-9 and made.no_bound == ""
            assert math.isfinite(made.delay_cost) and made.certificate is None
    assert made.to_dict()["delay_cost"] == made.delay_cost != 0.0 == plain.delay_cost
    assert made.to_dict()["bound"] == made.bound == made.factor * made.average
    largest, own = model.learner.task.largest_loss, model._model
    bound = largest * model.learner.shares.weighted_bound(made.best / largest, own.stretches)
    assert made.bound - made.delay_cost == pytest.approx(made.factor * bound)


@pytest.mark.usefixtures("voting")
def test_why_there_is_no_bound_is_said_in_words():
    rows, labels = table(60)
    first = [row | {"y": y} for row, y in zip(rows[:40], labels, strict=False)]
    model = dl.TableModel.new(first, "y", learner="polyak")
    model.learn(rows[:20], labels[:20])
    made = model.guarantee()
    assert math.isinf(made.bound) and made.no_bound == guarantee.ALONE and made.delay_cost == 0.0
    assert made.to_dict()["bound"] is None
    model._model.largest_risk = 3.0
    assert model.guarantee().no_bound == guarantee.ALONE
    model = dl.TableModel.new(first, "y", learner="fast")
    model.learn(rows[:20], labels[:20])
    model._model.largest_risk = 3.0
    made = model.guarantee()
    assert math.isinf(made.bound) and "an expected loss of 3 was above" in made.no_bound
