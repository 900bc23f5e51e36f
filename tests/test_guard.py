"""The guard: whatever a committee predicts, it costs a theorem's bound and a budget at most."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import driftline as dl
from driftline.app.cli.screen import guarantee_lines
from driftline.app.runs.guarantee import Guarantee
from driftline.checks import check_learner
from driftline.committee.account import LENIENCE, PEAK, WAITING
from driftline.committee.guard import SHARE_VALUES, Guard, sure_of
from driftline.committee.trace import GUARDED
from driftline.learner import Ticket
from tests import naive
from tests.howmany import examples, number

pytestmark = pytest.mark.usefixtures("no_ids")

T, L = dl.tasks, dl.losses
TASKS = [T.Multiclass(2), T.Multiclass(4), T.Binary(), T.Abstaining(T.Multiclass(3), 0.3)]
every_task = pytest.mark.parametrize("task", TASKS, ids=repr)
SHORT = dl.features.Shorten()


def sure(task, diameter=10.0, beta=0.5, **rest):
    """A member with a theorem for its losses."""
    loss = L.Logistic(task.answers)
    decoder = dl.decoders.Argmax(loss)
    if task.answers is not task:
        decoder = dl.decoders.Abstain(loss, cost=task.predictions.doubt.cost)
    rate, ball = dl.rates.Constant(beta / loss.self_bound), dl.domains.Ball(diameter)
    return dl.OGD(loss, decoder, rate, ball, **{"features": SHORT, **rest})


def other(task):
    """A member with probabilities, and without a theorem for its losses."""
    loss = L.Scaled(L.Logistic(task.answers), 2.0)
    decoder = dl.decoders.Argmax(loss)
    if task.answers is not task:
        decoder = dl.decoders.Abstain(loss, cost=task.predictions.doubt.cost)
    return dl.OGD(loss, decoder)


def guarded(task, budget=1.0, largest_weight=1.0):
    members = [other(task), sure(task), sure(task, 20.0, 0.25)]
    return dl.Committee(members, "mix", budget=budget, largest_weight=largest_weight)


def pair(task, budget, heaviest=1.0):
    """A guard over four members of all kinds, and the naive one."""
    hinge = dl.OGD(L.Scaled(L.SmoothHinge(task.answers), 4.0)) if task.answers is task else None
    members = [other(task), sure(task), sure(task, 20.0, 0.25)]
    made = Guard(task, [*members, *([hinge] if hinge else [])], budget, heaviest)
    rest = made.ratio, made.cost, made.chance, heaviest
    return made, naive.Guard(made.kinds, budget, SHARE_VALUES, *rest)


def histories(generator, made, rounds):
    """Scores by round, label and member, a champion of some kind, and labels."""
    size = generator.choice([0.1, 1.0, 5.0])
    scores = size * generator.standard_normal((rounds, made.labels, made.members))
    labels = generator.integers(0, made.labels, rounds)
    kind = generator.integers(5)
    champion = generator.integers(-1 if made.cost < math.inf else 0, made.labels, rounds)
    if kind == 0:  # always wrong
        champion = (labels + 1) % made.labels
    elif kind == 1:  # right, and then wrong
        champion = np.where(np.arange(rounds) < rounds // 2, labels, (labels + 1) % made.labels)
    elif kind == 2:  # the book knows, and the champion does not
        scores[np.arange(rounds), labels] += 3.0 * size
    elif kind == 3:  # a label that the book takes to be impossible
        scores[np.arange(rounds), labels] -= 300.0
    return scores, champion, labels


def as_numbers(task, codes):
    made = np.asarray(codes)[:, np.newaxis]
    return 2 * made - 1 if task.kind == "sign" else made


@every_task
@given(st.integers(0, 2**32 - 1))
def test_accounts_are_those_of_the_formulas(task, seed):
    generator = np.random.default_rng(seed)
    rounds, budget = 40, float(generator.choice([0.013, 0.7, 5.0]))
    heaviest = float(generator.choice([1.0, 3.0]))
    made, simple = pair(task, budget, heaviest)
    scores, champion, codes = histories(generator, made, rounds)
    weight = (
        generator.choice([0.0, 0.5, 1.0, heaviest, 5.0], rounds) if seed % 2 else np.ones(rounds)
    )
    labels, draws = as_numbers(task, codes)[:, 0], generator.random(rounds)
    champions = as_numbers(task, champion)
    watched = made.learn(scores, champions, labels, draws, weight if seed % 2 else None)
    for t in range(rounds):
        played, e, b, most = simple.ask(scores[t].T, champion[t], reserve=False)
        risk, may, account, reserve, acted = watched.paid[t]
        scale = simple.heaviest
        simple.tell(scores[t].T, codes[t], e, b, weight=weight[t])
        assert acted == (played is not None)
        assert reserve == pytest.approx(scale * most, abs=scale * 1e-7)
        np.testing.assert_allclose([risk, may], [e[codes[t]], b[codes[t]]], atol=1e-9)
        assert account == pytest.approx(simple.A, abs=1e-9)
        (mine,) = made.codes(watched.played[t])
        if played is None or np.ndim(played) == 0:
            assert mine == (champion[t] if played is None else played)
        else:
            assert played[mine] > 0.0
    assert made.total == pytest.approx(simple.book, abs=1e-9)


@every_task
@given(st.integers(0, 2**32 - 1))
def test_no_history_costs_more_than_the_book_and_the_budget(task, seed):
    """In sum over every interval, with labels in any order and some that never come."""
    generator = np.random.default_rng(seed)
    rounds, budget = 60, float(generator.choice([0.0, 0.5, 2.0, 5.0]))
    made, _ = pair(task, budget)
    scores, champion, codes = histories(generator, made, 2 * rounds)
    delays = generator.integers(0, 12, rounds)
    never = generator.random(rounds) < generator.choice([0.0, 0.5])
    events = [(t, True, t) for t in range(rounds)]
    events += [(t + delays[t] + 0.5, False, t) for t in range(rounds) if not never[t]]
    order = [(asked, t) for _, asked, t in sorted(events)]
    rows = np.array([t for _, t in order])
    counts = np.array([(-2.0 if never[t] else -1.0) if asked else 1.0 for asked, t in order])
    kept = np.full((rounds, Guard.kept), np.nan)
    watched = made.learn(
        scores[: len(rows)],
        as_numbers(task, champion[rows]),
        as_numbers(task, codes[rows])[:, 0],
        generator.random(len(rows)),
        counts,
        (rows, kept),
    )
    lent = LENIENCE * made.state[PEAK]
    assert (watched.paid[:, 2] <= budget + lent + 1e-9).all()  # account and reserves
    told = rows[counts > 0.0]
    sums = np.r_[0.0, np.cumsum(kept[told, 0])]  # of e - b in the order of arrival
    assert (sums - np.minimum.accumulate(sums)).max() <= budget + lent + 1e-9
    assert made.state[1] == 0.0  # all reserves of labels that come are given back
    assert made.acted == kept[told, 3].sum()


@every_task
@given(st.integers(0, 2**32 - 1))
def test_the_book_loses_what_a_sure_member_does_and_the_price(task, seed):
    generator = np.random.default_rng(seed)
    made, _ = pair(task, 5.0)
    scores, champion, codes = histories(generator, made, 100)
    labels = as_numbers(task, codes)[:, 0]
    made.learn(scores, as_numbers(task, champion), labels, np.zeros(100))
    logs = scores - scores.max(axis=1, keepdims=True)
    logs = (logs - np.log(np.exp(logs).sum(axis=1, keepdims=True)))[np.arange(100), codes]
    bits = -logs.sum(axis=0)[made.kinds == 2] / math.log(2.0)
    assert made.total <= made.ratio * (bits.min() + made.price) + 1e-9


@every_task
@given(st.integers(0, 2**32 - 1))
def test_rounds_in_pieces_have_the_bits_of_one_piece(task, seed):
    generator = np.random.default_rng(seed)
    (whole, _), (cut, _) = pair(task, 0.5), pair(task, 0.5)
    scores, champion, codes = histories(generator, whole, 20)
    labels, champions = as_numbers(task, codes)[:, 0], as_numbers(task, champion)
    draws = generator.random(20)
    made, parts = whole.learn(scores, champions, labels, draws), []
    for a, b in ((0, 1), (1, 7), (7, 20)):
        looked = cut.look(scores[a:b], champions[a:b], draws[a:b], reserves=False)
        parts.append(cut.learn(scores[a:b], champions[a:b], labels[a:b], draws[a:b]))
        np.testing.assert_array_equal(looked.played[0], parts[-1].played[0])
        assert looked.book[0, codes[a]] == parts[-1].paid[0, 0]
    np.testing.assert_array_equal(made.played, np.concatenate([own.played for own in parts]))
    np.testing.assert_array_equal(made.paid, np.concatenate([own.paid for own in parts]))
    np.testing.assert_array_equal(whole.state, cut.state)


# -- in committees


def table(task, rounds=160, seed=3):
    random = np.random.default_rng(seed)
    X = random.standard_normal((rounds, 4))
    labels = np.array(list(task.answers.labels.all))
    cuts = np.linspace(-0.5, 0.5, len(labels) - 1)
    places = np.digitize(X[:, 0] + 0.3 * random.standard_normal(rounds), cuts)
    places[rounds // 2 :] = (places[rounds // 2 :] + 1) % len(labels)  # what was right is wrong
    return X, labels[places]


@pytest.mark.ids
@every_task
@pytest.mark.parametrize("budget", [0.0, 1.0])
def test_guarded_committees_obey_the_laws_of_learners(task, budget):
    check_learner(guarded(task, budget), *table(task, 40))


@every_task
def test_steps_tickets_and_pieces_have_the_bits_of_a_run(task):
    X, y = table(task)
    whole, steps, tickets, pieces = (guarded(task, 0.3) for _ in range(4))
    trace = whole.run(X, y)
    assert 0 < trace.acted.sum() < len(y)
    made = [steps.step(x, label) for x, label in zip(X, y, strict=True)]
    np.testing.assert_array_equal([one.risk for one in made], trace.risk)
    np.testing.assert_array_equal([one.target_loss for one in made], trace.target_loss)
    for x, label, prediction in zip(X, y, trace.prediction, strict=True):
        ticket = tickets.ask(x)
        assert np.array_equal(-1 if ticket.prediction is None else ticket.prediction, prediction)
        tickets.tell(Ticket.from_bytes(ticket.to_bytes()), label)
    for a, b in ((0, 50), (50, 51), (51, len(y))):
        pieces.run(X[a:b], y[a:b])
    for learner in (steps, tickets, pieces):
        np.testing.assert_array_equal(learner.guard.state, whole.guard.state)


@every_task
@pytest.mark.parametrize("seed", examples(2, 12))
def test_late_labels_by_tickets_have_the_bits_of_a_run(task, seed, tmp_path):
    generator = np.random.default_rng(seed)
    X, y = table(task, seed=seed)
    delays = generator.integers(-1, 9, len(y))
    run, asks = guarded(task, 0.6), guarded(task, 0.6)
    half = len(y) // 2
    first = run.run(X[:half], y[:half], delay=delays[:half])
    if seed % 2:
        run = dl.load(run.save(tmp_path / "half"))
    second = run.run(X[half:], y[half:], delay=delays[half:])
    tickets, due = {}, {}
    played, book = [], []
    for t in range(len(y)):
        tickets[t] = asks.ask(X[t])
        played.append(-1 if tickets[t].prediction is None else tickets[t].prediction)
        if delays[t] >= 0:
            due.setdefault(t + delays[t], []).append(t)
        else:
            asks.forget(tickets[t])
        for s in sorted(due.pop(t, [])):
            asks.tell(tickets[s], y[s])
        book.append(asks.guard.total)
    np.testing.assert_array_equal(played, np.r_[first.prediction, second.prediction])
    np.testing.assert_allclose(asks.guard.state, run.guard.state, atol=1e-9)
    assert asks.guard.state[0] + asks.guard.state[1] <= 0.6 + asks.guard.lent
    waiting = [t for own in due.values() for t in own]
    for t in waiting:
        asks.forget(tickets[t])
    assert asks.guard.state[1] == 0.0 and not asks.guard.reserves


def test_reserves_of_late_rows_keep_up_with_sample_weights():
    """Those of before the first heavy row too; and a row that counts nothing gives its own back."""
    task = T.Multiclass(3)
    X, y = table(task, 400)
    heavy, cut = guarded(task), guarded(task)
    weights = np.where(np.arange(400) % 7, 1024.0, 0.0)
    delays = np.where(np.arange(400) == 100, 0, 150)
    trace = heavy.run(X, y, delay=delays, sample_weight=weights)
    assert heavy.guard.acted == np.count_nonzero(trace.acted[trace.arrived])  # of weight 0, too
    assert trace.account.max() <= 1024.0 * (1.0 + heavy.guard.lent) * (1.0 + 1e-9)
    for a, b in ((0, 90), (90, 170), (170, 400)):
        cut.run(X[a:b], y[a:b], delay=delays[a:b], sample_weight=weights[a:b])
    np.testing.assert_array_equal(cut.guard.state, heavy.guard.state)


def test_reserves_are_given_back_when_tickets_are_forgotten(tmp_path):
    task = T.Multiclass(3)
    X, y = table(task)
    learner = guarded(task, 0.8)
    learner.run(X[:20], y[:20])
    tickets = learner.ask_rows(X[:40])
    reserved, own = learner.guard.reserves, [one.book for one in tickets if not one.book[-1]]
    most = np.array([max(0.0, (b[:3] - b[3:6]).max()) for b in own])
    assert sum(reserved.values()) == pytest.approx(most.sum(), abs=1e-5)
    over = np.maximum(0.0, most - LENIENCE).sum()
    assert learner.guard.state[1] == pytest.approx(over, abs=1e-5) and over <= 0.8
    assert learner.guard.state[WAITING] == len(reserved) == np.count_nonzero(most)
    again = dl.load(learner.save(tmp_path / "model"))
    for one in (learner, again):
        one.forget(tickets[0])
        assert tickets[0].number not in one.guard.reserves
        one.forget(before=10**9)
        assert one.guard.state[1] == 0.0
    copy = learner.copy()
    (ticket,) = copy.ask_rows(X[:1], numbers=[70])
    assert copy.guard.state[1] == 0.0  # of a copy, nothing is outstanding
    learner.tell(learner.admit(ticket), y[0])
    assert learner.guard.state[1] == 0.0


def test_the_bound_counts_what_copies_exceed():
    """Each of them has the budget for itself."""
    task = T.Multiclass(3)
    X, y = table(task)
    learner, plays = guarded(task), 0.0
    learner.run(X[:50], y[:50])
    before, copy = learner.guard.total, learner.copy()
    tickets = [copy.ask_rows(X[i : i + 1], numbers=[1000 + i])[0] for i in range(50, 150)]
    own = [learner.admit(ticket) for ticket in tickets]
    for ticket in own:
        worst = int(np.argmax(ticket.book[:3] - ticket.book[3:6]))
        plays += ticket.book[worst]
        learner.tell(ticket, worst)
    guard = learner.guard
    assert plays > guard.total - before + guard.budget
    assert plays <= guard.bound - before + 1e-9 and not guard.reserves


def test_labels_that_were_outstanding_are_counted_where_members_are_left_out():
    """By the first row that is learned from, after tickets for many others."""
    task = T.Multiclass(3)
    learner = dl.auto(task, budget=1.0)
    tickets = learner.ask_rows(np.random.default_rng(0).standard_normal((30, 200)))
    members, lent = len(learner.members), learner.guard.lent
    for ticket in tickets:
        learner.tell(ticket, (ticket.prediction + 1) % 3)
    guard = learner.guard
    assert len(learner.members) < members and guard.lent == lent == LENIENCE * 29
    assert guard.state[0] <= guard.most + guard.lent


def test_looking_reserves_nothing():
    X, y = table(T.Multiclass(3))
    learner = guarded(T.Multiclass(3), 0.5)
    learner.run(X, y)
    before = learner.guard.state.copy()
    made = learner.predict_rows(X[:30])
    assert made == [learner.predict(x) for x in X[:30]]
    assert made[0] == learner.snapshot().predict(X[0]) == learner.ask(X[0]).prediction
    learner.forget(before=10**9)
    np.testing.assert_array_equal(learner.guard.state, before)


@pytest.mark.parametrize("task", TASKS[1:2], ids=repr)
def test_new_classes_and_sample_weights_are_counted(task):
    X, y = table(task)
    learner = guarded(task, 1.0, largest_weight=3.0)
    weights = np.random.default_rng(0).choice([0.0, 0.5, 3.0], len(y))
    trace = learner.run(X, y, sample_weight=weights)
    made = dl.certify(trace, None, X, y, sample_weight=weights)
    assert made.valid and made.guarded.book == pytest.approx(learner.guard.total)
    assert trace.risk.sum() <= made.guarded.bound
    ticket = learner.ask(X[0])
    grown = learner.grown(classes=6)
    np.testing.assert_array_equal(grown.guard.state, learner.guard.state)
    grown.tell(ticket, 5)
    assert grown.guard.total == learner.guard.total + 1.0  # what nobody knew of costs 1
    light = guarded(task, 1.0)
    said = dl.certify(light.run(X, y, sample_weight=weights), None, X, y, sample_weight=weights)
    assert said.valid and "above the largest" in said.guarded.formula


def test_accounts_of_files_are_checked():
    task = T.Multiclass(3)
    X, y = table(task)
    learner = guarded(task)
    learner.run(X, y)
    learner.ask_rows(X[:5])
    about, arrays = learner.to_saved()
    assert dl.Committee.from_saved(about, arrays).predict(X[0]) == learner.predict(X[0])
    state = arrays["guard"]
    changes = [
        {"guard": state[:-1]},
        {"guard": np.r_[9.0, state[1:]]},  # another budget
        {"guard": np.r_[state[:2], 2.0, state[3:]]},  # another sure member
        {"guard": np.r_[state[:5], -1.0, state[6:]]},
        {"guard": np.r_[state[:10], 0.5, state[11:]]},  # a scale below the largest weight
        {"guard": state * np.nan},
        {"reserved": arrays["reserved"] * -1.0},
        {"reserved": arrays["reserved"][1:]},
        {"reserved": arrays["reserved"].astype(complex)},
        {"reserved": arrays["reserved"].astype(bool)},
        {"reserved": arrays["reserved"] * 0.0 + 1.5},  # more than a mistake
        {"reserved.numbers": arrays["reserved.numbers"] - 10**6},
        {"reserved.numbers": arrays["reserved.numbers"] + 10**6},  # of nobody
        {"reserved.numbers": arrays["reserved.numbers"].astype(str)},
        {"reserved.numbers": arrays["reserved.numbers"] * 0 + len(y)},
        {"guard": np.r_[state[:14], state[14:19] - 2000.0, state[19:]]},  # no set has a weight
        {"guard": np.r_[state[:20], state[20:22] - 2000.0, state[22:]]},  # no sure member has
        {"guard": np.r_[state[:19], 1e308, state[20:]]},  # another member has more than all
    ]
    assert len(arrays["reserved"]) > 1
    for change in changes:
        with pytest.raises(dl.InputError, match="no account of a guard"):
            dl.Committee.from_saved(about, arrays | change)
    with pytest.raises(dl.InputError, match="budget must be"):
        dl.Committee.from_saved(about | {"budget": -1.0}, arrays)


def test_states_that_are_refused_change_nothing():
    task = T.Multiclass(3)
    X, y = table(task)
    learner, other = guarded(task), guarded(task)
    learner.run(X[:50], y[:50], delay=7)
    other.run(X[50:80], y[50:80])
    state, before = learner.state, other.to_saved()
    about, arrays = state.late
    kept = arrays["kept"]
    for place, wrong in ((-4, 1.5), (-3, 1.5), (-2, 2.0), (-1, 0.5)):
        changed = kept.copy()
        changed[0, place] = wrong
        with pytest.raises(dl.InputError, match="a guard cannot have kept"):
            other.restore(state.replaced(late=(about, arrays | {"kept": changed})))
    with pytest.raises(dl.InputError, match="cannot have paid"):
        other.restore(state.replaced(late=(about, arrays | {"kept": kept + 1e300})))
    with pytest.raises(dl.InputError, match="must be finite"):
        other.restore(state.replaced(late=(about, arrays | {"kept": kept * np.nan})))
    after = other.to_saved()
    assert after[0] == before[0] and after[1].keys() == before[1].keys()
    assert all(np.array_equal(own, after[1][name]) for name, own in before[1].items())
    other.restore(state)
    np.testing.assert_array_equal(other.guard.state, learner.guard.state)


def test_forged_tickets_are_refused():
    task = T.Multiclass(3)
    X, y = table(task)
    learner = guarded(task)
    learner.run(X, y)
    ticket = learner.ask(X[0])
    before = learner.to_saved()[1]
    for book in (
        None,
        ticket.book[:-1],
        ticket.book * 3.0,
        ticket.book.astype(int),
        np.ones(7) * np.nan,
    ):
        with pytest.raises(dl.InputError, match="what a guard has written"):
            learner.tell(dataclasses.replace(ticket, book=book), y[0])
    assert all(np.array_equal(own, learner.to_saved()[1][name]) for name, own in before.items())
    learner.tell(ticket, y[0])


# -- promises


@pytest.mark.parametrize("flips", [1, 10])
def test_the_formula_holds_against_the_best_comparator(flips):
    """Known before the first round, and far below guessing, which pays half of the rounds."""
    stream = dl.streams.LabelFlips(rounds=number(2000, 10_000), flips=flips, seed=0)
    learner = dl.auto(stream.task)
    trace = learner.run(stream)
    place = min(j for j, own in enumerate(learner.guard.known) if own is not None)
    seen, diameter = trace.seen_by(place, stream.inputs), {1: 20.0, 10: 10.0}[flips]
    found = dl.certificates.best_piecewise(
        *(learner.members[place].loss, seen, stream.labels, dl.domains.Ball(diameter)),
        segments=flips + 1,
        candidates=stream.starts[1:],
        step=2.0,
    )
    same = [one.map == learner.members[place].map for one in learner.members]
    own = [found.comparator if one else None for one in same]
    made = dl.certify(trace, own, stream.inputs, stream.labels)
    assert made.valid and trace.risk.sum() <= made.guarded.bound <= made.guarded.formula
    beforehand = learner.guard.least(found.loss, found.comparator.path_length, diameter)
    assert made.guarded.formula <= beforehand + 1e-6
    if len(stream) == 10_000:
        assert beforehand < {1: 1100, 10: 2300}[flips]


def test_sure_members_are_known_by_their_facts():
    task = T.Multiclass(3)
    made = sure_of(sure(task, 20.0, 0.25))
    assert made == pytest.approx((0.25, 20.0, L.Logistic(task).self_bound, 1.0))
    assert sure_of(sure(task), heaviest=1.5).beta == pytest.approx(0.75)
    cusum = dl.detectors.Cusum()
    for wrong in (
        other(task),
        sure(task, features=None),
        sure(task, beta=1.0),
        sure(task, restart=cusum),
        dl.members.NaiveBayes(task),
        dl.OGD(L.Logistic(task), rate=dl.rates.Polyak(), features=SHORT),
    ):
        assert sure_of(wrong) is None
    with pytest.raises(dl.InputError, match="a member with a theorem for its losses"):
        dl.Committee([other(task)], "mix", budget=1.0)
    for budget in (-1.0, math.nan, math.inf, 10**400, "5", True):
        with pytest.raises(dl.InputError, match="budget must be"):
            dl.auto(task, budget=budget)
    for heaviest in (0.0, -1.0, math.nan, 1e300, True, "5", None, [1.0]):
        with pytest.raises(dl.InputError, match="largest_weight must be"):
            guarded(task, 1.0, heaviest)


@pytest.mark.parametrize("delay", [None, 5])
def test_an_audit_says_what_a_guard_has_done(delay):
    task = T.Multiclass(3)
    X, y = table(task)
    learner = guarded(task, 0.5)
    trace = learner.run(X, y, delay=delay)
    made = dl.certify(trace, None, X, y)
    assert made.valid and made.guarded.acted > 0 and not made.findings
    assert made.guarded.book == pytest.approx(learner.guard.total)
    for name in (*GUARDED, "prediction"):
        column = getattr(trace, name).copy()
        column[7] = (column[7] + 1) % 3 if name == "prediction" else column[7] + 0.5
        assert dl.certify(dataclasses.replace(trace, **{name: column}), None, X, y).findings


@pytest.mark.parametrize("name", GUARDED)
def test_columns_that_are_infinite_or_missing_are_found(name):
    X, y = table(T.Multiclass(3))
    trace = guarded(T.Multiclass(3), 0.5).run(X, y)
    for wrong in (None, getattr(trace, name)[:-1]):
        with pytest.raises(dl.InputError, match="was not recorded in every round"):
            dl.certify(dataclasses.replace(trace, **{name: wrong}), None, X, y)
    for column in (getattr(trace, name), trace.risk, trace.target_loss):
        kept, column[7] = column[7], math.inf
        assert dl.certify(trace, None, X, y).findings
        column[7] = kept
    assert not dl.certify(trace, None, X, y).findings


@pytest.mark.parametrize("task", [T.Multiclass(2), T.Abstaining(T.Multiclass(3), 0.3)], ids=repr)
def test_rows_that_the_book_draws_deviate(task):
    X, y = table(task)
    learner = guarded(task, 0.0)
    trace = learner.run(X, y, sample_weight=np.full(len(y), 2.0))
    made = dl.certify(trace, None, X, y, sample_weight=trace.sample_weight)
    assert trace.acted.any() and made.valid
    drawn = np.where(trace.acted > 0.0, trace.risk, 0.0) if task.answers is task else np.zeros(1)
    assert made.variance == pytest.approx((drawn * (2.0 - drawn)).sum())
    assert abs(made.total - trace.risk.sum()) <= made.deviation < math.inf
    assert ("but with chance" in str(made)) == (task.answers is task)
    assert "guarded" in learner.describe().splitlines()[0]
    given = (9, 5.0, 4.0, 5.0, None, None)
    lines = guarantee_lines(Guarantee(*given, budget=1.0, acted=2))
    assert "of the expected loss" in lines[3] and "the guard acted" in lines[2]
    assert Guarantee(*given, budget=1.0, acted=2).expected is None
    assert Guarantee(*given, budget=1.0).expected == 5.0
    assert "expected" not in guarantee_lines(Guarantee(*given, budget=1.0))[2]


def test_wide_rows_have_a_formula_of_their_own():
    learner = dl.auto(T.Multiclass(3))
    before = learner.guard.least(100.0, 0.0, 10.0)
    assert "wide rows leave some of these out" in learner.describe()
    narrow = dl.auto(T.Multiclass(3))
    for made, features in ((narrow, 5), (learner, 200)):
        made.step(np.ones(features), 1)
        assert "wide rows" not in made.describe()
    assert narrow.guard.least(100.0, 0.0, 10.0) == before < learner.guard.least(100.0, 0.0, 10.0)
    assert "wide rows" not in guarded(T.Multiclass(3)).describe()


def test_what_is_promised_is_said(tmp_path):
    learner = dl.auto(T.Multiclass(3))
    line = next(one for one in learner.describe().splitlines() if one.startswith("bound"))
    assert "F_T" in line and "P_T" in line and "diameter 10" in line
    X, y = table(T.Multiclass(3))
    trace = learner.run(X, y)
    again = dl.CommitteeTrace.load(trace.save(tmp_path / "trace"))
    np.testing.assert_array_equal(again.book, trace.book)
    made = dl.certify(again, None, X, y)
    assert made.valid and "the book allows" in str(made)
    assert dl.auto(T.Multiclass(3), effort="fast").guard is None
    assert dl.auto(T.Multiclass(3), effort="fast", budget=2.0).guard.budget == 2.0


# -- models from elsewhere


class Stale:
    """A fitted model, as scikit-learn has them, of names that the task does not know."""

    def __init__(self, cut=0.0):
        self.asked, self.cut = 0, cut

    def predict(self, X):
        self.asked += len(X)
        return np.where(X[:, 0] > self.cut, "late", "early")


def turned(rounds=1200, seed=0):
    """Two classes, whose border turns round half-way."""
    random = np.random.default_rng(seed)
    X = random.standard_normal((rounds, 4)) * [3.0, 1.0, 1.0, 1.0] + [5.0, 0.0, 0.0, 0.0]
    y = (X[:, 0] > 5.0).astype(int)
    y[rounds // 2 :] = 1 - y[rounds // 2 :]
    return X, y


def test_a_model_is_followed_while_it_is_good_and_left_when_it_is_stale():
    X, y = turned()
    task, half = T.Multiclass(2), len(y) // 2
    learner = dl.Guarded(Stale(cut=5.0), task, ["early", "late"], effort="fast")
    trace = learner.run(X, y)
    assert not trace.target_loss[:half].any() and not trace.acted[:half].any()
    assert trace.target_loss[half + 200 :].mean() < 0.05  # the model errs in every row
    assert trace.acted[half + 200 :].any()
    assert trace.risk.sum() <= learner.guard.bound
    by_hand = trace.acted == 0.5  # where the model was refused, the average was predicted
    np.testing.assert_array_equal(trace.averaged[by_hand], trace.target_loss[by_hand])
    assert trace.averaged.sum() < trace.target_loss.sum()
    assert learner.guard.bound == pytest.approx(trace.book.sum() + 10.0)
    assert (trace.account <= 10.0 + 1e-9).all()
    made = dl.certify(trace, None, X, y)
    assert made.valid and made.guarded.acted == np.count_nonzero(trace.acted)
    assert "by the first member" in learner.describe()


@pytest.mark.parametrize("said", [None, 7, "never heard of", np.nan, ValueError])
def test_a_model_that_says_nothing_costs_nothing(said):
    def model(row):
        if said is ValueError:
            raise said("no")
        return said

    X, y = turned(400)
    silent = dl.Guarded(model, T.Multiclass(2), effort="fast").run(X, y)
    without = dl.auto(T.Multiclass(2), effort="fast", budget=5.0)
    assert (silent.acted == 0.5).all()
    assert silent.target_loss.sum() <= without.run(X, y).target_loss.sum() + 5


@pytest.mark.parametrize("task", [T.Multiclass(2), T.Binary()], ids=repr)
def test_models_of_all_kinds_are_taken(task):
    X, y = turned(300)
    labels = 2 * y - 1 if task.kind == "sign" else y
    other = dl.OGD(L.Logistic(task))
    tree = type("Tree", (), {"learn_one": lambda s, x, y: None, "predict_one": lambda s, x: None})
    for model in (lambda row: labels[0], other, dl.auto(task, effort="fast"), tree()):
        learner = dl.Guarded(model, task, effort="fast", budget=1.0)
        steps = dl.Guarded(model, task, effort="fast", budget=1.0)
        trace = learner.run(X, labels, delay=3)
        assert dl.certify(trace, None, X, labels).valid
        made = [steps.step(x, label).prediction for x, label in zip(X[:50], labels, strict=False)]
        again = dl.Guarded(model, task, effort="fast", budget=1.0).run(X[:50], labels[:50])
        np.testing.assert_array_equal(made, again.prediction)
        learner.predict(X[0]), learner.forget(learner.ask(X[0]))
    assert other.rounds == 0  # a copy of a learner learns
    followed = dl.auto(task, effort="fast", members=[lambda row: labels[0]])
    assert len(followed.members) == len(dl.auto(task, effort="fast").members) + 1
    followed.run(X, labels)


class Learns:
    """A model that learns, as River has them."""

    said = None

    def learn_one(self, x, y):
        self.said = y

    def predict_one(self, x):
        return self.said


@pytest.mark.parametrize("task", [T.Multiclass(2), T.Binary()], ids=repr)
@pytest.mark.parametrize("late", [None, 5])
def test_files_have_all_but_the_model_of_another_library(task, late, tmp_path):
    X, y = turned(300)
    labels, names = 2 * y - 1 if task.kind == "sign" else y, ["early", "late"]
    inner = dl.auto(task, effort="fast")
    inner.run(X[:50], labels[:50])

    def function(row):
        return labels[0]

    for model, classes, word in (
        (Stale(5.0), names, "Stale"),
        (function, None, "function"),
        (Learns(), None, "Learns"),
        (inner, None, ""),
        (dl.Guarded(Stale(5.0), task, names, effort="fast"), None, "Stale"),
    ):
        learner = dl.Guarded(model, task, classes, effort="fast", budget=1.0)
        learner.run(X[:200], labels[:200], delay=late)
        path = learner.save(tmp_path / "model")
        held = {"Stale": Stale(5.0), "function": function, "Learns": learner.members[0].model}
        if word:
            with pytest.raises(dl.InputError, match=rf"its model, a {word}.*model=\.\.\."):
                dl.load(path)
        else:
            with pytest.raises(dl.InputError, match="all its models inside"):
                dl.load(path, model=model)
        again = dl.load(path, model=held.get(word))
        for name, array in learner.to_saved()[1].items():
            np.testing.assert_array_equal(array, again.to_saved()[1][name])
        given, delay = (X[200:], labels[200:]), None if late is None else 2
        one, other = learner.run(*given, delay=delay), again.run(*given, delay=delay)
        np.testing.assert_array_equal(one.prediction, other.prediction)
        np.testing.assert_array_equal(one.account, other.account)
        assert again.guard.bound == learner.guard.bound


def test_several_models_of_a_file_are_passed_in_their_order(tmp_path):
    X, y = turned(100)
    task, stale = T.Multiclass(2), Stale(5.0)
    two = dl.auto(task, effort="fast", members=[Learns(), stale.predict])
    two.run(X, y)
    path = two.save(tmp_path / "model")
    with pytest.raises(dl.InputError, match="its models, Learns, method, .* in this order"):
        dl.load(path)
    with pytest.raises(dl.InputError, match="without 2 models"):
        dl.load(path, model=Learns())
    assert len(dl.load(path, model=[Learns(), stale.predict]).members) == len(two.members)
    names = ["early", "late"]
    grown = dl.Guarded(stale, task, names, effort="fast").grown(classes=3)
    assert dl.load(grown.save(tmp_path / "grown"), model=stale).task.dim == 3


def test_names_of_labels_can_be_written(tmp_path):
    task = T.Multiclass(2)
    made = dl.Guarded(Stale(), task, np.array([3, 4]), effort="fast")
    assert dl.load(made.save(tmp_path / "m"), model=Stale()).members[0].model.codes == {3: 0, 4: 1}
    for wrong in ([(1,), (2,)], [b"a", b"b"], [None, "a"]):
        with pytest.raises(dl.InputError, match="texts, numbers or booleans"):
            dl.Guarded(Stale(), task, wrong)


def test_what_cannot_be_guarded_is_refused():
    task = T.Multiclass(2)
    for model in (3, "model", Stale):
        with pytest.raises(dl.InputError, match="a fitted estimator"):
            dl.Guarded(model, task)
    with pytest.raises(dl.InputError, match="classes= must name the labels"):
        dl.Guarded(Stale(), task, ["early"])
    with pytest.raises(dl.InputError, match="classes and signs"):
        dl.Guarded(Stale(), T.Ordinal(3))
    with pytest.raises(dl.InputError, match="needs a guard"):
        dl.Committee([other(task), sure(task)], "first")
