"""The guard of any task: a committee costs what one member's theorem allows, and a budget."""

import dataclasses
import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import driftline as dl
from driftline.committee.account import WAITING
from driftline.committee.one_book import OneBook
from driftline.decoders import default_decoder
from driftline.learner import Ticket
from tests import naive
from tests.howmany import examples, number

pytestmark = pytest.mark.usefixtures("no_ids")

T, L = dl.tasks, dl.losses


def subsets(size):
    return [np.array(row) for row in itertools.product((0, 1), repeat=size)]


def orders(size):
    return [np.array(row) for row in itertools.permutations(range(size))]


#: Tasks whose rounds have one size, and all their labels.
TASKS = {
    "classes": (T.Multiclass(3), [0, 1, 2]),
    "signs": (T.Binary(), [-1, 1]),
    "doubt": (T.Abstaining(T.Multiclass(3), 0.3), [0, 1, 2]),
    "tags": (T.Multilabel(3), subsets(3)),
    "levels": (T.Ordinal(4), list(range(4))),
    "sets": (T.FixedSize(4, 2), [own for own in subsets(4) if own.sum() == 2]),
    "rankings": (T.LabelRanking(3), orders(3)),
    "matchings": (T.Matching(3), orders(3)),
    "costs": (T.CostSensitive([[0.0, 1.0, 4.7], [2.0, 0.0, 1.0], [1.0, 3.0, 0.0]]), [0, 1, 2]),
    "f-score": (T.FScore(3), subsets(3)),
}
every_task = pytest.mark.parametrize("name", TASKS)
ROUNDS = number(40, 120)


def book(task):
    """A member with a theorem for its losses."""
    made = L.Logistic if task.answers.kind in ("classes", "sign", "tags") else None
    loss = (made or L.ConvolutionalFenchelYoung)(task.answers)
    loss, decoder = default_decoder(loss, task)
    return dl.OGD(loss, decoder, dl.rates.Polyak(), dl.domains.Ball(6.0), seed=5)


def committee(task, budget, largest_weight=1.0):
    """A committee with one member that is voted for, which is as bad as members can be."""
    loss, decoder = book(task).parts[:2]
    lazy = dl.OGD(loss, decoder, dl.rates.Constant(1e-9), dl.domains.Ball(6.0), seed=2)
    return dl.Committee([lazy, book(task)], budget=budget, largest_weight=largest_weight)


def table(name, rounds=ROUNDS, seed=0):
    """Rows, and labels that follow them until half-way."""
    task, labels = TASKS[name]
    random = np.random.default_rng(seed)
    X = random.standard_normal((rounds, 3))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    places = np.digitize(X[:, 0], np.linspace(-0.8, 0.8, len(labels) - 1))
    places[rounds // 2 :] = (places[rounds // 2 :] + 1) % len(labels)
    made = [labels[place] for place in places]
    return X, made if np.ndim(made[0]) else np.array(made)


# -- the account, by itself


def columns(random, rounds, largest):
    """What a learner with a theorem may have paid: its decoder expects b or less."""
    loss = random.random(rounds) * random.choice([0.1, 1.0, 3.0]) * largest
    grad_sq = random.random(rounds) * 4.0
    risk = loss * random.random(rounds)
    eta = np.minimum(2.0 * (loss - risk) / np.maximum(grad_sq, 1e-9), 5.0)
    return {"loss": loss, "risk": risk, "eta": eta, "grad_sq": grad_sq, "target_loss": risk}


@every_task
@given(seed=st.integers(0, 2**32 - 1))
def test_accounts_are_those_of_the_formulas(name, seed):
    (task, labels), random = TASKS[name], np.random.default_rng(seed)
    budget, heaviest = float(random.choice([0.0, 1.0, 2.5])), float(random.choice([1.0, 3.0]))
    made = OneBook(task, [book(task)], budget, heaviest)
    simple = naive.OneBook(budget * task.largest_loss, task.largest_loss, heaviest)
    given = columns(random, 30, task.largest_loss)
    weight = random.choice([0.0, 0.5, 1.0, heaviest, 5.0], 30)
    truth = [labels[k] for k in random.integers(len(labels), size=30)]
    rows = np.array([np.atleast_1d(labels[k]) for k in random.integers(len(labels), size=30)])
    weighted = {k: v * weight if k != "eta" else v for k, v in given.items()}
    weighted["eta"] = given["eta"] / np.where(weight > 0.0, weight, 1.0)
    weighted["grad_sq"] = given["grad_sq"] * weight**2
    weighted |= {"sample_weight": weight, "prediction": rows[::-1]}
    watched = made.learn(rows, weighted, task.labels.check_all(truth), weight)
    for t in range(30):
        champion = task.loss(task.predictions.value(rows[t]), truth[t])
        b = given["loss"][t] - 0.5 * given["eta"][t] * given["grad_sq"][t]
        acts = simple.acts()
        e, b = simple.tell(champion, given["risk"][t], b, weight[t])
        if weight[t] == 0.0:
            continue
        assert watched.paid[t, 4] == acts
        np.testing.assert_allclose(watched.paid[t, :2], [e, b], atol=1e-9)
        assert watched.paid[t, 2] == pytest.approx(simple.A, abs=1e-8)
        np.testing.assert_array_equal(watched.played[t], rows[::-1][t] if acts else rows[t])
    assert made.total == pytest.approx(simple.book, abs=1e-8)


@every_task
@given(seed=st.integers(0, 2**32 - 1))
def test_what_is_reserved_is_the_most_that_any_label_costs(name, seed):
    (task, labels), random = TASKS[name], np.random.default_rng(seed)
    guard = OneBook(task, [book(task)], 5.0)
    decoder = guard.member.decoder
    theta = random.choice([0.3, 3.0]) * random.standard_normal(task.answers.dim)
    mean = decoder.mean_loss_encoding(theta)
    encoded = task.encode_loss(labels[random.integers(len(labels))])
    most = max(float(task.encode(y) @ (encoded - mean)) for y in labels)
    assert guard.reserve_of(encoded, mean) == pytest.approx(max(most, 0.0), abs=1e-7)


# -- in committees


@pytest.mark.ids
@every_task
@pytest.mark.parametrize("budget", [0.0, 1.5])
def test_guarded_votes_obey_the_laws_of_learners(name, budget):
    dl.checks.check_learner(committee(TASKS[name][0], budget), *table(name, 30))


def events_of(random, rounds):
    """Rounds that are asked for and told, in any order; some labels never come."""
    delays = random.integers(0, int(random.choice([1, 4, 15])) + 1, rounds)
    never = random.random(rounds) < random.choice([0.0, 0.4])
    made = [(t, 0, t) for t in range(rounds)]
    made += [(t + delays[t], 1, t) for t in range(rounds) if not never[t]]
    return [(bool(told), t) for _, told, t in sorted(made)]


@every_task
@pytest.mark.parametrize("seed", examples(3, 100))
def test_no_history_costs_more_than_the_book_and_the_budget(name, seed, tmp_path):
    """Labels late and lost, weights, files in between, labels against the committee."""
    (task, labels), random = TASKS[name], np.random.default_rng([seed, len(name)])
    budget, heaviest = float(random.choice([0.0, 1.0, 2.5])), float(random.choice([1.0, 2.0]))
    learner = committee(task, budget, heaviest)
    X, y = table(name, 60, seed)
    tickets, sums, most = {}, [0.0], budget * task.largest_loss * heaviest
    against = random.random() < 0.7
    for told, t in events_of(random, 60):
        guard = learner.guard
        if not told:
            tickets[t] = Ticket.from_bytes(learner.ask(X[t]).to_bytes())
            reserved = sum(guard.reserves.values())
            account = guard.state[0] + guard.state[5] * reserved
            assert account <= most + heaviest * guard.lent + 1e-9
        elif random.random() < 0.05:
            learner.forget(tickets.pop(t))
        else:
            ticket, label = tickets.pop(t), y[t]
            if against:
                label = max(labels, key=lambda y: task.loss(ticket.prediction, y))
            before = guard.total
            paid = float(task.encode(label) @ ticket.mean) + task.offset(label)
            learner.tell(ticket, label)
            sums.append(sums[-1] + paid - (learner.guard.total - before))
        if random.random() < 0.1:
            learner = dl.load(learner.save(tmp_path / "learner"))
    sums = np.array(sums)
    assert (sums - np.minimum.accumulate(sums)).max() <= most + heaviest * learner.guard.lent + 1e-9
    learner.forget(before=10**6)
    assert learner.guard.state[1] == 0.0 and not learner.guard.reserves


@every_task
@pytest.mark.parametrize("seed", examples(3, 30))
def test_late_labels_by_tickets_have_the_bits_of_a_run(name, seed):
    task, random = TASKS[name][0], np.random.default_rng(seed)
    X, y = table(name, 50, seed)
    delays = random.integers(-1, 8, 50)
    one, two = committee(task, 2.0), committee(task, 2.0)
    trace = one.run(X, y, delay=delays)
    tickets, due = {}, {}
    for t in range(50):
        tickets[t] = two.ask(X[t])
        if delays[t] < 0:
            two.forget(tickets[t])
        else:
            due.setdefault(t + delays[t], []).append(t)
        for told in sorted(due.pop(t, [])):
            two.tell(tickets[told], y[told])
    for t, ticket in tickets.items():
        made = -1 if ticket.prediction is None else ticket.prediction
        np.testing.assert_array_equal(made, trace.prediction[t])
    np.testing.assert_allclose(one.guard.state, two.guard.state, rtol=1e-12, atol=1e-6)
    made = dl.certify(trace, None, X, y)
    assert made.valid, made.findings
    assert made.expected <= made.bounds()["book"] + 1e-9


@every_task
@pytest.mark.parametrize("seed", examples(3, 30))
def test_columns_say_what_was_charged(name, seed):
    """Of labels that come at once, among others that come late or never."""
    task, random = TASKS[name][0], np.random.default_rng(seed)
    X, y = table(name, 50, seed)
    delays, weights = random.integers(-1, 2, 50), random.choice([0.5, 1.0, 1.5], 50)
    learner = committee(task, 1.0, largest_weight=1.5)
    trace = learner.run(X, y, delay=delays, sample_weight=weights)
    came = trace.arrived
    assert trace.book[came].sum() == pytest.approx(learner.guard.total, abs=1e-9)
    made = dl.certify(trace, None, X, y, sample_weight=weights)
    assert made.valid, (made.findings, made.broken)
    assert made.guarded.book == pytest.approx(learner.guard.total, abs=1e-9)


def test_rounding_reserves_nothing():
    """An expectation that is off in its last bits is not one more label that may cost."""
    task = TASKS["rankings"][0]
    guard = OneBook(task, [book(task)], 5.0)
    ticket = committee(task, 5.0).ask(np.ones(3) / 2.0)
    for most, kept in ((1e-15, 0), (1e-6, 1)):
        noisy = np.r_[ticket.book[:-2], most, 0.0]
        guard.reserve([dataclasses.replace(ticket, number=7 + kept, book=noisy)])
        assert len(guard.reserves) == guard.state[WAITING] == kept


@every_task
def test_a_committee_that_turns_bad_is_left(name):
    """The member that is voted for never learns: its account runs over, and the book predicts."""
    task = TASKS[name][0]
    X, y = table(name, 300)
    learner = committee(task, 1.5)
    trace = learner.run(X, y)
    assert trace.risk.sum() <= learner.guard.bound + 1e-9
    assert trace.acted.sum() == learner.guard.acted
    assert learner.guard.acted or trace.member_risk[:, 0].sum() <= learner.guard.bound


def test_forged_tickets_are_refused():
    learner = committee(TASKS["tags"][0], 1.5)
    X, y = table("tags")
    ticket = learner.ask(X[0])
    later = learner.ask(X[1])
    learner.tell(later, y[1])
    for book in (
        None,
        np.zeros(1),
        np.r_[ticket.book[:-1], 0.5],
        np.r_[ticket.book[:-2], 9.0, 0.0],
    ):
        with pytest.raises(dl.InputError, match="guard"):
            learner.tell(dataclasses.replace(ticket, book=book), y[0])
    learner.tell(ticket, y[0])


def test_forged_tickets_change_nothing_or_little():
    X, y = table("tags")
    learner = committee(TASKS["tags"][0], 1.5)
    learner.run(X[:10], y[:10])
    ticket, later = learner.ask(X[10]), learner.ask(X[11])
    learner.tell(later, y[11])
    before = learner.guard.state.copy()
    for rounds in (10**30, 13):
        with pytest.raises(dl.InputError, match="but there were only"):
            learner.tell(dataclasses.replace(ticket, rounds=rounds), y[10])
    for wrong in ({"rounds": "x"}, {"rounds": None}, {"book": None}, {"book": np.zeros(1)}):
        with pytest.raises(dl.InputError):
            learner.admit(dataclasses.replace(ticket, **wrong))
    assert learner.outstanding == 1
    np.testing.assert_array_equal(learner.guard.state, before)
    means = np.full_like(ticket.means, 1e9)
    book = np.r_[ticket.book[:-1], 1.0]  # as if the book had predicted
    learner.tell(dataclasses.replace(ticket, means=means, book=book), y[10])
    assert learner.guard.state[0] <= before[0] + 1.0  # one largest loss, and not 1e9
    learner.run(X[12:], y[12:])


def test_members_without_a_theorem_cannot_be_guarded():
    loss = L.Scaled(L.Logistic(T.Multilabel(3)), 2.0)
    one = dl.OGD(loss, dl.decoders.Argmax(loss), dl.rates.Decaying(1.0))
    with pytest.raises(dl.InputError, match="whose steps never grow"):
        dl.Committee([one], budget=5.0)
    free = dl.OGD(loss, dl.decoders.Argmax(loss), dl.rates.Polyak(monotone=False, cap=3.0))
    with pytest.raises(dl.InputError, match="whose steps never grow"):
        dl.Committee([free], budget=5.0)
