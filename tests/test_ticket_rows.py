"""Tickets that are asked for and told together: the bits of single ones, all or nothing."""

import dataclasses

import numpy as np
import pytest
import scipy.sparse as sp
from howmany import number
from test_clicks import CASES as CLICKS
from test_loss_only import LOSSES
from test_saving import CASES
from test_tickets import row, saved

import driftline as dl
from driftline.bandit import LossOnly

pytestmark = pytest.mark.usefixtures("no_ids")

T = dl.tasks
RNG = np.random.default_rng(5)
X = RNG.normal(size=(60, 4))
Y = (X[:, 0] + X[:, 1] ** 2 > 0.5).astype(int) + (X[:, 2] > 1.0)
SEQUENCES = [RNG.normal(size=(n, 4)) for n in RNG.integers(1, 6, 30)]
TAGS = [RNG.integers(0, 3, len(x)) for x in SEQUENCES]
THIN = [sp.csr_array(x * (np.abs(x) > 0.6)) for x in SEQUENCES]
WIDE = [sp.csr_array(np.pad(x, [(0, 0), (0, 2000)]) * (np.abs(x).max() > 0)) for x in SEQUENCES]


def plain():
    """A learner that plays in Python."""
    learner = CASES["classes"][0]()
    learner.engine = dl.engines.PlainEngine(learner.parts)
    return learner


#: Learners beside those of files, with what they play.
MORE = {
    "balanced": (lambda: dl.auto(T.Multiclass(3)), lambda: (X, Y)),
    "balanced, guarded vote": (
        lambda: dl.auto(T.Multiclass(3), combine="vote", budget=1.5),
        lambda: (X, Y),
    ),
    "restarting committee": (lambda: dl.auto(T.Binary()), lambda: (X, 2 * (Y > 0) - 1)),
    "tags, guarded": (
        lambda: dl.auto(T.Multilabel(3), effort="fast", budget=1.5),
        lambda: (X, (X[:, :3] > 0.0).astype(int)),
    ),
    "levels, voting": (lambda: dl.auto(T.Ordinal(3), effort="fast"), lambda: (X, Y)),
    "single precision": (
        lambda: dl.auto(T.Multiclass(3), effort="fast"),
        lambda: (X.astype(np.float32), Y),
    ),
    "doubtful cases": (
        lambda: dl.auto(T.Abstaining(T.Multiclass(3), 0.2), effort="fast"),
        lambda: (X, Y),
    ),
    "documents, voting": (
        lambda: dl.auto(T.NDCG(2), effort="fast"),
        lambda: (SEQUENCES, TAGS),
    ),
    "wide documents": (lambda: dl.auto(T.NDCG(2), effort="fast"), lambda: (WIDE, TAGS)),
    "sparse words": (lambda: dl.auto(T.Sequence(3), effort="fast"), lambda: (THIN, TAGS)),
    "words, guarded": (
        lambda: dl.auto(T.Sequence(3), effort="fast", budget=3.0),
        lambda: (SEQUENCES, TAGS),
    ),
    "lags": (
        lambda: dl.Committee(
            [
                dl.OGD(
                    dl.losses.Logistic(T.Multiclass(3)), features=dl.features.Lags(2, classes=3)
                ),
                dl.OGD(dl.losses.Logistic(T.Multiclass(3))),
            ]
        ),
        lambda: (X, Y),
    ),
    "naive Bayes": (
        lambda: dl.members.NaiveBayes(T.Multiclass(3), features=None),
        lambda: (X, Y),
    ),
    "in Python": (plain, lambda: (X, Y)),
    "hits and misses": (lambda: dl.auto(T.Multiclass(3), feedback="bandit"), lambda: (X, Y)),
    "clicks on documents": (
        CLICKS["documents"][0],
        lambda: CLICKS["documents"][1:],
    ),
    "clicks on tags": (CLICKS["tags"][0], lambda: CLICKS["tags"][1:]),
    "losses alone": (
        lambda: LossOnly(LOSSES["tags"]),
        lambda: (X, (RNG.random((60, LOSSES["tags"].task.dim)) > 0.5).astype(int)),
    ),
}
FAMILY = CASES | MORE
every_learner = pytest.mark.parametrize("case", FAMILY)


def some(rows, places):
    """Return rounds by their places, in the form that streams have."""
    if isinstance(rows, list):
        return [rows[t] for t in places]
    return rows[np.asarray(places, dtype=int)]


def whole(learner):
    """Return all of a learner as bytes."""
    about, arrays = learner.to_saved()
    return about, {k: (a.dtype, a.shape, a.tobytes()) for k, a in arrays.items()}


@every_learner
def test_tickets_of_many_rows_are_those_of_each(case):
    make, data = FAMILY[case]
    inputs, labels = data()
    one, other = make(), make()
    for learned in (0, 3, 3):  # before anything was learned, and twice after
        if learned:
            places = range(one.rounds, one.rounds + learned)
            for learner in (one, other):
                learner.run(some(inputs, places), some(labels, places))
        places = RNG.integers(0, len(labels), 6)
        made = one.ask_rows(some(inputs, places))
        expected = [other.ask(row(inputs, t)) for t in places]
        for ticket, wanted in zip(made, expected, strict=True):
            assert ticket.to_bytes() == wanted.to_bytes()
            assert type(ticket.prediction) is type(wanted.prediction)
        assert whole(one) == whole(other)


@every_learner
@pytest.mark.parametrize("seed", range(number(1, 3)))
def test_any_history_has_the_bits_of_single_calls(case, seed):
    """Asks, tells, steps, runs and forgotten tickets, in random order, alone and together."""
    make, data = FAMILY[case]
    inputs, labels = data()
    one, other = make(), make()
    rng, open_tickets = np.random.default_rng(seed), []
    for _ in range(number(25, 60)):
        what = rng.choice(["ask", "ask_rows", "tell", "tell_rows", "step", "run", "forget", "late"])
        count = int(rng.integers(1, 6)) if rng.random() < 0.8 else 14
        places = rng.integers(0, len(labels), count).tolist()
        if what == "ask":
            t = places[0]
            open_tickets.append((t, one.ask(row(inputs, t)), other.ask(row(inputs, t))))
        elif what == "ask_rows":
            again = [other.ask(row(inputs, t)) for t in places]
            open_tickets += zip(places, one.ask_rows(some(inputs, places)), again, strict=True)
        elif what == "tell" and open_tickets:
            t, mine, theirs = open_tickets.pop(int(rng.integers(len(open_tickets))))
            one.tell(mine, labels[t])
            other.tell(theirs, labels[t])
        elif what == "tell_rows":
            order = rng.permutation(len(open_tickets))[: int(rng.integers(0, 24))].tolist()
            told = [open_tickets[i] for i in order]
            open_tickets = [own for i, own in enumerate(open_tickets) if i not in order]
            one.tell_rows([mine for _, mine, _ in told], some(labels, [t for t, *_ in told]))
            for t, _, theirs in told:
                other.tell(theirs, labels[t])
        elif what == "forget" and open_tickets:
            _, mine, theirs = open_tickets.pop()
            one.forget(mine)
            other.forget(theirs)
        elif what == "step":
            for learner in (one, other):
                learner.step(row(inputs, places[0]), labels[places[0]])
        elif what == "late" and one.facts.feedback == "full":
            delays = rng.integers(0, 4, count)
            for learner in (one, other):
                learner.run(some(inputs, places), some(labels, places), delay=delays)
        elif what == "run" and not one._waits:
            for learner in (one, other):
                learner.run(some(inputs, places), some(labels, places))
        assert one.outstanding == other.outstanding
        np.testing.assert_array_equal(one._late_numbers, other._late_numbers)
    assert whole(one) == whole(other)


@every_learner
def test_a_list_with_one_bad_entry_changes_nothing(case):
    make, data = FAMILY[case]
    inputs, labels = data()
    one = make()
    one.run(some(inputs, range(5)), some(labels, range(5)))
    tickets = one.ask_rows(some(inputs, range(5)))
    one.step(row(inputs, 6), labels[6])
    before = whole(one)
    given = tickets[2].input
    if isinstance(given, tuple):
        bad = (given[0], given[1] * np.nan, *given[2:])
        short = (given[0], given[1], given[2] + 1, *given[3:])
    else:
        bad, short = given * np.nan, given[..., :-1]
    changes = [
        ({"number": 10**6}, "place 2 of the list: there is no ticket"),
        ({"learner": "another"}, "place 2 of the list: the ticket is that of"),
        ({"input": bad}, "2"),
        ({"input": short}, "features|2"),
        ({"number": tickets[0].number}, "place 2 of the list: ticket .* twice"),
    ]
    if one.facts.feedback != "full" or isinstance(one, dl.Committee):
        if tickets[2].made is not None:
            for codes in (None, tickets[2].made[:-1], tickets[2].made * 1.0):
                changes.append(({"made": codes}, "predictions of members"))
        else:
            means = np.asarray(tickets[2].means)
            for other in (None, means[:-1], np.full_like(means, np.inf), means + np.nan):
                changes.append(({"means": other}, "distributions"))
    own = some(labels, range(5))
    for change, words in changes:
        forged = [*tickets[:2], dataclasses.replace(tickets[2], **change), *tickets[3:]]
        with pytest.raises(dl.InputError, match=words):
            one.tell_rows(forged, own)
        assert whole(one) == before
    if case != "losses alone":
        wrong = [*list(own)[:3], "no label", *list(own)[4:]]
        with pytest.raises(dl.InputError, match="place 3 of the list"):
            one.tell_rows(tickets, wrong)
    for arguments in ((tickets, own[:4]), (tickets, None), (tickets[0], own[:1]), (7, own)):
        with pytest.raises(dl.InputError):
            one.tell_rows(*arguments)
    assert whole(one) == before
    one.tell_rows(tickets, own)
    assert one.outstanding == 0


@pytest.mark.parametrize("count", [6, 20])
@pytest.mark.parametrize("kind", ["fast", "balanced", "OGD"])
def test_a_step_that_overflows_takes_all_back(kind, count):
    loss = dl.losses.Logistic(T.Multiclass(3))
    one = dl.OGD(loss) if kind == "OGD" else dl.auto(T.Multiclass(3), effort=kind, scaling=False)
    one.run(X, Y)
    tickets = one.ask_rows(X[:count])
    before = whole(one)
    tickets[4] = dataclasses.replace(tickets[4], input=np.full(4, 1e200))
    with pytest.raises(dl.InputError, match="(row|place) 4"):
        one.tell_rows(tickets, Y[:count])
    assert whole(one) == before


def test_rows_of_different_kinds_are_told_one_by_one():
    loss = dl.losses.Logistic(T.Multiclass(3))
    one, other = dl.OGD(loss), dl.OGD(loss)
    mixed = [X[0], sp.csr_array(X[1:2]), X[2].astype(np.float32), X[3]]
    for learner in (one, other):
        learner.run(X, Y)
    tickets, again = ([learner.ask(x) for x in mixed] for learner in (one, other))
    one.tell_rows(tickets, Y[:4])
    for ticket, label in zip(again, Y[:4], strict=True):
        other.tell(ticket, label)
    assert whole(one) == whole(other)
    tickets = [one.ask(x) for x in mixed]
    before = whole(one)
    tickets[3] = dataclasses.replace(tickets[3], input=np.full(4, np.nan))
    with pytest.raises(dl.InputError, match="place 3 of the list"):
        one.tell_rows(tickets, Y[:4])
    assert whole(one) == before


@pytest.mark.parametrize(
    ("make", "labels"),
    [
        (lambda: dl.OGD(dl.losses.Logistic(T.Binary())), [-1, 1]),
        (lambda: dl.auto(T.Multiclass(2), effort="fast"), [0, 1]),
        (lambda: dl.auto(T.Multiclass(2), feedback="bandit"), [0, 1]),
    ],
)
def test_losses_come_in_place_of_labels(make, labels):
    one, other = make(), make()
    truth = np.array(labels)[(X[:, 0] > 0.0).astype(int)]
    for learner in (one, other):
        learner.run(X, truth)
    tickets, again = one.ask_rows(X[:9]), other.ask_rows(X[:9])
    losses = [float(ticket.prediction != y) for ticket, y in zip(tickets, truth, strict=False)]
    before = whole(one)
    with pytest.raises(dl.InputError, match="place 8 of the list"):
        one.tell_rows(tickets, losses=[*losses[:8], 0.5])
    with pytest.raises(dl.InputError, match="place 0 of the list: loss= must be a number"):
        one.tell_rows(tickets, losses=["a", *losses[1:]])
    with pytest.raises(dl.InputError, match="not both"):
        one.tell_rows(tickets, truth[:9], losses=losses)
    assert whole(one) == before
    one.tell_rows(tickets, losses=losses)
    for ticket, loss in zip(again, losses, strict=True):
        other.tell(ticket, loss=loss)
    assert whole(one) == whole(other)


def test_losses_alone_are_told_together():
    loss = LOSSES["tags"]
    one, other = LossOnly(loss), LossOnly(loss)
    tickets, again = one.ask_rows(X[:9]), other.ask_rows(X[:9])
    one.tell_rows(tickets, losses=np.linspace(0.0, 1.0, 9))
    for ticket, value in zip(again, np.linspace(0.0, 1.0, 9), strict=True):
        other.tell(ticket, loss=value)
    assert whole(one) == whole(other)


@pytest.mark.parametrize("effort", ["fast", "balanced"])
def test_tickets_from_before_new_classes(effort):
    one, other = (dl.auto(T.Multiclass(2), effort=effort) for _ in range(2))
    for learner in (one, other):
        learner.run(X, (Y > 0).astype(int))
    tickets, again = one.ask_rows(X[:5]), other.ask_rows(X[:5])
    one, other = one.grown(classes=3), other.grown(classes=3)
    tickets += one.ask_rows(X[5:9])
    again += other.ask_rows(X[5:9])
    one.tell_rows(tickets, Y[:9])
    for ticket, label in zip(again, Y, strict=False):
        other.tell(ticket, label)
    assert whole(one) == whole(other)


@pytest.mark.parametrize("count", [6, 20])
def test_a_ticket_may_be_fresh_anywhere_in_the_list(count):
    """Which moves the weights by what members pay now, and not by what its means say."""
    one, other = (dl.auto(T.Multilabel(3), effort="fast") for _ in range(2))
    tags = (X[:, :3] > 0.0).astype(int)
    for learner in (one, other):
        learner.run(X, tags)
    tickets = one.ask_rows(X[:count])
    again = other.ask_rows(X[:count])
    wrong = np.full_like(tickets[3].means, 0.3)
    later = dataclasses.replace(tickets[3], rounds=tickets[3].rounds + 3, means=wrong)
    tickets[3] = again[3] = later
    one.tell_rows(tickets, tags[:count])
    for ticket, label in zip(again, tags, strict=False):
        other.tell(ticket, label)
    assert whole(one) == whole(other)


def test_an_account_against_a_comparator_sees_the_draws_of_tickets():
    loss = dl.losses.Logistic(T.Multiclass(3))
    one, other = dl.OGD(loss), dl.OGD(loss)
    for learner in (one, other):
        learner.watch(dl.comparators.Fixed(np.zeros((3, 4))))
        learner.run(X, Y)
    one.tell_rows(one.ask_rows(X[:20]), Y[:20])
    for ticket, label in zip(other.ask_rows(X[:20]), Y, strict=False):
        other.tell(ticket, label)
    assert vars(one.tally) == vars(other.tally)


def test_rounds_of_a_run_wait_on():
    one, other = (dl.auto(T.Multiclass(3), effort="fast") for _ in range(2))
    for learner in (one, other):
        learner.run(X, Y, delay=7)
    assert one._waits == 7
    tickets, again = one.ask_rows(X[:8]), other.ask_rows(X[:8])
    one.tell_rows(tickets, Y[:8])
    for ticket, label in zip(again, Y, strict=False):
        other.tell(ticket, label)
    assert one._waits == other._waits == 7
    for learner in (one, other):
        learner.run(X, Y, delay=2)
    assert whole(one) == whole(other)


def test_asking_for_a_bad_row_names_it():
    one = dl.auto(T.Multiclass(3))
    one.run(X, Y)
    before = saved(one)
    bad = X[:9].copy()
    bad[6, 1] = np.inf
    with pytest.raises(dl.InputError, match="row 6"):
        one.ask_rows(bad)
    with pytest.raises(dl.InputError, match="features"):
        one.ask_rows(X[:5, :3])
    with pytest.raises(dl.InputError, match="two dimensions"):
        one.ask_rows(X[0])
    assert saved(one) == before
    assert one.ask_rows([]) == [] == one.ask_rows(X[:0])
    one.tell_rows([], [])
    assert saved(one) == before


def test_a_ticket_does_not_keep_the_others_alive():
    one = dl.auto(T.Multiclass(3))
    one.run(X, Y)
    ticket = one.ask_rows(X)[0]
    for array in (ticket.input, ticket.mean, ticket.made):
        assert array.base is None or array.base.size <= array.size


def test_tickets_and_labels_may_come_from_generators():
    one, other = (dl.auto(T.Multiclass(3), effort="fast") for _ in range(2))
    one.tell_rows((ticket for ticket in one.ask_rows(X[:9])), (int(y) for y in Y[:9]))
    other.tell_rows(tuple(other.ask_rows(X[:9].tolist())), Y[:9])
    assert whole(one) == whole(other)


def test_a_callback_may_not_tell():
    one = dl.OGD(dl.losses.Logistic(T.Multiclass(3)))
    tickets = one.ask_rows(X[:3])
    seen = []

    def progress(_):
        for call in (lambda: one.tell_rows(tickets, Y[:3]), lambda: one.ask_rows(X[:3])):
            with pytest.raises(dl.BusyError):
                call()
            seen.append(True)

    one.run(X, Y, progress=progress)
    assert seen and one.outstanding == 3


@pytest.mark.parametrize("numbers", [[2, 1, 0], [100, 7, 7], [0, 10**12, 5], [4, 4, 4]])
def test_numbers_of_tickets_come_in_any_order(numbers):
    learner = dl.OGD(dl.losses.Logistic(T.Multiclass(3)))
    made = learner.ask_rows(X[:3], numbers=numbers)
    for x, asked, ticket in zip(X[:3], numbers, made, strict=True):
        (alone,) = learner.ask_rows([x], numbers=[asked])
        assert ticket.prediction == alone.prediction and ticket.number == asked
