"""Laws of labels that come late: tickets are told in any order, at the weights of now."""

import dataclasses

import numpy as np
import pytest
from scipy.sparse import csr_array

import driftline as dl
from driftline.committee import Shares
from driftline.committee.account import PEAK
from driftline.members import Forest, NaiveBayes, Neighbours, Tables
from driftline.state import archive
from tests import naive
from tests.howmany import examples

pytestmark = pytest.mark.usefixtures("no_ids")

TASK = dl.tasks.Multiclass(3)
X = np.random.default_rng(0).normal(size=(80, 4))
Y = np.where(X[:, 0] > 0.0, 0, 1 + (X[:, 1] > 0.0))


def ogd(rate=None, decoder=dl.decoders.GapOptimal, **rest):
    loss = dl.losses.Logistic(TASK)
    rate = dl.rates.Constant(0.4) if rate is None else rate
    return dl.OGD(loss, decoder(loss), rate, dl.domains.Ball(6.0), seed=1, **rest)


def certain(rate=None, **rest):
    loss = dl.losses.Scaled(dl.losses.Logistic(TASK), 2.0)
    return dl.OGD(loss, dl.decoders.Argmax(loss), rate or dl.rates.Polyak(), **rest)


def committee(budget=None):
    members = [certain(), certain(dl.rates.Constant(0.5)), NaiveBayes(TASK)]
    return dl.Committee([*members, ogd()] if budget else members, budget=budget)


LEARNERS = {
    "drawing": ogd,
    "certain": certain,
    "restarts": lambda: certain(dl.rates.Decaying(5.0), restart=dl.detectors.Cusum(0.5)),
    "mapped": lambda: certain(features=dl.features.Hats(6)),
    "lags": lambda: certain(features=dl.features.Lags(2, classes=3)),
    "bayes": lambda: NaiveBayes(TASK),
    "tables": lambda: Tables(TASK),
    "neighbours": lambda: Neighbours(TASK, window=20),
    "forest": lambda: Forest(TASK, trees=2),
    "bandit": lambda: dl.bandit.Bandit(TASK),
    "vote": committee,
    "guarded": lambda: committee(1.5),
    "auto": lambda: dl.auto(TASK),
}
every_learner = pytest.mark.parametrize("make", LEARNERS.values(), ids=LEARNERS)


def history(rng, rounds, lost=0.1):
    """Return asks and tells in a random order: the number of a round, and whether it is told."""
    made, waiting = [], []
    for t in range(rounds):
        made.append((t, False))
        waiting.append(t)
        while waiting and rng.random() < 0.45:
            place = int(rng.integers(len(waiting)))
            made.append((waiting.pop(place), True))
    made += [(t, True) for t in rng.permutation(waiting).tolist() if rng.random() > lost]
    return made


def played(learner, events, inputs=X, labels=Y):
    """Play a history; return the tickets."""
    tickets = {}
    for t, told in events:
        if told:
            learner.tell(tickets[t], labels[t])
        else:
            tickets[t] = learner.ask(inputs[t])
    return tickets


def bits(learner):
    return archive.packed(*learner.to_saved())


@every_learner
def test_labels_come_in_any_order(make):
    events = history(np.random.default_rng(1), 60)
    one, two = make(), make()
    tickets = played(one, events)
    told = sum(done for _, done in events)
    assert one.rounds == told and one.outstanding == 60 - told
    again = {}
    for i, (t, done) in enumerate(events):
        if done:
            two.tell(dl.Ticket.from_bytes(again.pop(t)), Y[t])
        else:
            again[t] = two.ask(X[t]).to_bytes()
            assert dl.Ticket.from_bytes(again[t]).prediction == tickets[t].prediction
        if i % 17 == 5:
            two = two.copy()
    assert bits(one) == bits(two)


@every_learner
def test_labels_at_once_are_a_run(make):
    one, two = make(), make()
    played(one, [(t, done) for t in range(40) for done in (False, True)])
    two.run(X[:40], Y[:40])
    assert bits(one) == bits(two)


def test_a_file_keeps_what_is_outstanding(tmp_path):
    one = committee()
    tickets = [one.ask(x) for x in X[:5]]
    one.tell(tickets[3], Y[3])
    two = dl.load(one.save(tmp_path / "learner"))
    assert two.outstanding == 4
    for learner in (one, two):
        learner.tell(tickets[0], Y[0])
        with pytest.raises(dl.InputError, match="ticket 3 is not outstanding"):
            learner.tell(tickets[3], Y[3])
    assert bits(one) == bits(two)


@pytest.mark.parametrize("seed", examples(2, 20))
@pytest.mark.parametrize("decode", ["gap_optimal", "argmax"])
def test_steps_are_made_at_the_weights_of_the_arrival(decode, seed):
    kind = {"gap_optimal": dl.decoders.GapOptimal, "argmax": dl.decoders.Argmax}[decode]
    loss = dl.losses.Scaled(dl.losses.Logistic(TASK), 2.0)
    learner = dl.OGD(loss, kind(loss), dl.rates.Constant(0.4), dl.domains.Ball(6.0), seed=seed)
    events = history(np.random.default_rng(seed), 50)
    tickets = played(learner, events)
    order = [t for t, told in events if told]

    def choose(theta, losses, squares, classes, vector):
        return getattr(naive, decode)(theta, 2.0 * losses, 4.0 * squares, classes, vector)

    rows, _, W = naive.run(
        X[order], Y[order], 3, naive.logistic, choose, lambda *_: 0.4, radius=3.0, factor=2.0,
        uniforms=np.full(len(order), 0.5),
    )  # fmt: skip
    assert np.allclose(learner.weights, W, atol=1e-10)
    assert len(rows[0]) == learner.rounds and len(tickets) == 50


def test_weights_of_a_committee_move_by_what_was_predicted():
    made, events = committee(), history(np.random.default_rng(3), 60)
    count, tickets, asked = len(made.members), {}, {}
    shares = naive.LateShares(count, Shares(count).grid)
    for t, told in events:
        if not told:
            asked[t] = shares.ask()
            theirs = (
                [member.mean_loss_encoding(member.scores(X[t])) for member in made.members]
                if made.rounds
                else None
            )
            tickets[t] = made.ask(X[t])
            if theirs is not None:
                assert np.allclose(tickets[t].means[:count], theirs)
                assert np.allclose(tickets[t].means[count:], asked[t][0] @ theirs)
        else:
            shares.tell(tickets[t].means[:count, Y[t]], asked[t])
            made.tell(tickets[t], Y[t])
            assert np.allclose(made.weights, shares.now)


def test_a_restart_in_between_is_no_special_case():
    rng = np.random.default_rng(0)
    learner = certain(dl.rates.Decaying(5.0), restart=dl.detectors.Cusum(1.0))
    labels = np.where(np.arange(80) < 40, Y, (Y + 1) % 3)
    late, restarts = [], 0
    for t in range(80):
        late.append((t, learner.ask(X[t])))
        before = learner.weights if learner.rounds else None
        if len(late) > 7:
            u, ticket = late.pop(int(rng.integers(len(late))))
            learner.tell(ticket, labels[u])
            restarts += before is not None and before.any() and not learner.weights.any()
    assert restarts > 0 and learner.outstanding == len(late)


@pytest.mark.parametrize("make", [certain, committee, lambda: dl.auto(TASK)])
def test_a_new_class_in_between(make):
    learner = make()
    learner.run(X[:20], Y[:20])
    ticket, other = learner.ask(X[20]), learner.ask(X[21])
    grown = learner.grown(classes=5)
    assert grown.outstanding == 2
    grown.tell(other, 1)
    grown.tell(ticket, 4)
    assert grown.rounds == 22 and grown.outstanding == 0
    with pytest.raises(dl.InputError):
        learner.tell(ticket, 4)  # which knows three classes only


def test_new_features_in_between():
    learner = dl.auto(TASK, effort="fast")
    learner.run(X[:20], Y[:20])
    ticket = learner.ask(X[20])
    grown = learner.grown(features=6)
    with pytest.raises(dl.InputError, match="4 features"):
        grown.tell(ticket, 1)
    assert grown.outstanding == 1


@every_learner
def test_tickets_are_forgotten(make):
    learner = make()
    tickets = [learner.ask(x) for x in X[:10]]
    learner.forget(tickets[4])
    learner.forget(before=tickets[3])
    assert learner.outstanding == 6
    for t in (0, 2, 4):
        with pytest.raises(dl.InputError, match="not outstanding"):
            learner.tell(tickets[t], Y[t])
        with pytest.raises(dl.InputError, match="not outstanding"):
            learner.forget(tickets[t])
    learner.tell(tickets[3], Y[3])
    learner.forget(before=1000)
    assert learner.outstanding == 0


@pytest.mark.parametrize(
    "given", [{}, {"ticket": None}, {"before": "yesterday"}, {"before": True}, {"ticket": "one"}]
)
def test_what_cannot_be_forgotten_is_refused(given):
    learner = certain()
    learner.ask(X[0])
    with pytest.raises(dl.InputError):
        learner.forget(**given)
    with pytest.raises(dl.InputError, match="not both"):
        learner.forget(learner.ask(X[0]), before=3)
    assert learner.outstanding == 2


FORGED = {
    "no means": lambda ticket: dataclasses.replace(ticket, means=None),
    "means of others": lambda ticket: dataclasses.replace(ticket, means=ticket.means[:2]),
    "not finite": lambda ticket: dataclasses.replace(ticket, means=ticket.means * np.nan),
    "other sizes": lambda ticket: dataclasses.replace(ticket, means=np.ones((3, 7))),
    "numbers of another kind": lambda ticket: dataclasses.replace(
        ticket, means=ticket.means.astype(int)
    ),
    "another input": lambda ticket: dataclasses.replace(ticket, input=X[0, :2]),
    "an earlier number": lambda ticket: dataclasses.replace(ticket, number=0),
}


@pytest.mark.parametrize("name", FORGED)
def test_forged_late_tickets_are_refused_and_change_nothing(name):
    made = committee()
    made.run(X[:10], Y[:10])
    ticket = made.ask(X[10])
    made.step(X[11], Y[11])
    before = bits(made)
    with pytest.raises(dl.InputError):
        made.tell(FORGED[name](ticket), 1)
    assert bits(made) == before
    made.tell(ticket, 1)


def test_costs_beyond_the_largest_do_no_harm():
    made = committee()
    made.run(X[:10], Y[:10])
    ticket = made.ask(X[10])
    made.step(X[11], Y[11])
    made.tell(dataclasses.replace(ticket, means=1e300 * ticket.means), 1)
    assert np.isclose(made.weights.sum(), 1.0)


@pytest.mark.ids
def test_a_new_seed_ends_what_is_outstanding():
    learner = ogd()
    ticket = learner.ask(X[0])
    learner.run(X[:5], Y[:5], seed=7)
    assert learner.outstanding == 0
    with pytest.raises(dl.InputError, match="that of a learner"):
        learner.tell(ticket, 1)


def test_a_refused_run_leaves_outstanding_tickets():
    learner = committee()
    ticket = learner.ask(X[0])
    bad = X[:20].copy()
    bad[10] = np.nan
    with pytest.raises(dl.InputError):
        learner.run(bad, Y[:20])
    assert learner.outstanding == 1
    learner.run(X[:20], Y[:20])
    learner.tell(ticket, Y[0])
    assert learner.rounds == 21


@pytest.mark.parametrize("effort", ["fast", "balanced"])
def test_sparse_rows_come_late_too(effort):
    rows, made = csr_array(np.where(np.abs(X) > 0.5, X, 0.0)), dl.auto(TASK, effort=effort)
    tickets = [made.ask(rows[[t]]) for t in range(12)]
    for t in (5, 1, 11, 0):
        made.tell(tickets[t], Y[t])
    assert made.rounds == 4 and made.outstanding == 8


def test_structured_labels_come_late_too():
    stream = dl.streams.PlantedSequences(rounds=12, tags=3, seed=0)
    made = dl.auto(stream.task)
    tickets = [made.ask(x) for x in stream.inputs]
    for t in (5, 1, 11, 0):
        made.tell(tickets[t], stream.labels[t])
    assert made.rounds == 4 and made.outstanding == 8


def test_outstanding_tickets_take_8_bytes_each():
    learner = certain()
    for _ in range(1000):
        learner.ask(X[0])
    assert learner.state.outstanding.nbytes == 8000
    assert learner._outstanding._numbers.itemsize == 8


@pytest.mark.parametrize("numbers", [[3, 2], [-1], [5], [1, 1]])
def test_outstanding_tickets_that_cannot_be_are_refused(numbers):
    learner = certain()
    for x in X[:4]:
        learner.ask(x)
    state = learner.state
    wrong = state.replaced(outstanding=np.array(numbers, dtype=np.int64))
    with pytest.raises(dl.InputError, match="outstanding"):
        learner.restore(wrong)
    with pytest.raises(dl.InputError, match="outstanding"):
        learner.restore(state.replaced(outstanding=[1, 2]))
    assert learner.outstanding == 4


# -- runs


def as_history(delays, rounds):
    """Return asks and tells of a run with these delays."""
    made = []
    for tick in range(rounds):
        made.append((tick, False))
        made += [(t, True) for t in range(tick + 1) if delays[t] >= 0 and t + delays[t] == tick]
    return made


DELAYS = {
    "at once": lambda rng, n: np.zeros(n, dtype=int),
    "fixed": lambda rng, n: np.full(n, 7),
    "random": lambda rng, n: rng.integers(-1, 15, n),
    "batches": lambda rng, n: dl.delays.Batches(10).rounds(0, n),
    "long": lambda rng, n: np.r_[np.full(n - 20, 25), np.full(20, -1)],
}


@pytest.mark.parametrize("name", DELAYS)
@every_learner
def test_runs_have_the_bits_of_tickets(make, name):
    delays = DELAYS[name](np.random.default_rng(1), 60)
    one, two = make(), make()
    trace = one.run(X[:60], Y[:60], delay=delays)
    tickets = played(two, as_history(delays, 60))
    assert np.array_equal(trace.prediction, [tickets[t].prediction for t in range(60)])
    came = (delays >= 0) & (np.arange(60) + delays < 60)
    assert np.array_equal(trace.arrived, came) and trace.carried == 0
    assert one.rounds == came.sum() and one.outstanding == two.outstanding == 60 - came.sum()
    wrong = (trace.prediction != Y[:60]).astype(float)
    assert np.array_equal(trace.target_loss[came], wrong[came])
    assert np.isnan(trace.risk[~came]).all() and np.isnan(trace.target_loss[~came]).all()
    order = [t for t, told in as_history(delays, 60) if told]
    rounds = np.flatnonzero(came)
    assert rounds[np.argsort(trace.arrival[came])].tolist() == order
    for learner in (one, two):
        learner.forget(before=60)
        if getattr(learner, "guard", None):  # tickets of labels that never come were outstanding
            learner.guard.state[PEAK] = 0.0
    assert bits(one) == bits(two)


@pytest.mark.parametrize("name", ["fixed", "random", "long"])
@every_learner
def test_labels_that_have_not_come_come_in_the_next_run(make, name):
    delays = DELAYS[name](np.random.default_rng(2), 60)
    whole, pieces = make(), make()
    trace = whole.run(X[:60], Y[:60], delay=delays)
    cuts = (0, 30, 31, 60)
    parts = [
        pieces.run(X[a:b], Y[a:b], delay=delays[a:b])
        for a, b in zip(cuts[:-1], cuts[1:], strict=True)
    ]
    assert np.array_equal(np.concatenate([part.prediction for part in parts]), trace.prediction)
    assert sum(part.arrived.sum() + part.carried for part in parts) == trace.arrived.sum()
    assert pieces.outstanding == whole.outstanding
    for learner in (whole, pieces):
        learner.forget(before=60)
    assert bits(whole) == bits(pieces)


def rounds_of(kind):
    """Return a learner, inputs and labels, for rows of some kind."""
    if kind == "sequences":
        stream = dl.streams.PlantedSequences(rounds=60, tags=3, seed=0)
        return dl.auto(stream.task), stream.inputs, stream.labels
    if kind == "tags":
        task = dl.tasks.Multilabel(3)
        return dl.auto(task, effort="fast"), X[:60], np.stack([X[:60, j] > 0 for j in range(3)], 1)
    if kind == "documents":
        rng, task = np.random.default_rng(0), dl.tasks.NDCG(2)
        documents = [rng.normal(size=(int(n), 3)) for n in rng.integers(2, 6, 60)]
        return dl.auto(task), documents, [np.digitize(x[:, 0], [0.0, 1.0]) for x in documents]
    if kind == "binary":
        return dl.auto(dl.tasks.Binary(), effort="fast"), X[:60], np.where(Y[:60] == 0, 1, -1)
    if kind == "sparse":
        rows = csr_array(np.where(np.abs(X[:60]) > 0.5, X[:60], 0.0))
        return dl.auto(TASK, effort="fast"), rows, Y[:60]
    inputs = np.round(9.0 * X[:60]).astype(int) if kind == "integers" else X[:60]
    return dl.auto(TASK, effort="fast"), inputs.astype(np.float32, copy=kind == "single"), Y[:60]


@pytest.mark.parametrize(
    "kind", ["single", "integers", "sparse", "sequences", "documents", "tags", "binary"]
)
def test_rounds_of_every_kind_wait_in_a_file(kind, tmp_path):
    made, inputs, labels = rounds_of(kind)
    whole, pieces = made.copy(), made
    weights = None if kind in ("sequences", "documents") else np.linspace(0.5, 2.0, 60)
    whole.run(inputs, labels, delay=9, sample_weight=weights)
    for a, b in ((0, 5), (5, 33), (33, 60)):
        own = None if weights is None else weights[a:b]
        pieces.run(inputs[a:b], labels[a:b], delay=9, sample_weight=own)
        pieces = dl.load(pieces.save(tmp_path / "learner"))
    assert pieces.outstanding == 9 and bits(whole) == bits(pieces)


@every_learner
def test_rounds_wait_in_a_file(make, tmp_path):
    delays = np.random.default_rng(2).integers(-1, 15, 60)
    whole, pieces = make(), make()
    trace = whole.run(X[:60], Y[:60], delay=delays)
    made = []
    for a, b in ((0, 20), (20, 21), (21, 60)):
        made.append(pieces.run(X[a:b], Y[a:b], delay=delays[a:b]).prediction)
        pieces = dl.load(pieces.save(tmp_path / "learner"))
    assert np.array_equal(np.concatenate(made), trace.prediction)
    assert bits(whole) == bits(pieces)


FORGED_ROUNDS = {
    "no version": lambda about, arrays: about.pop("version"),
    "labels beyond": lambda about, arrays: arrays["labels"].fill(9),
    "other labels": lambda about, arrays: arrays.update(labels=arrays["labels"][:2]),
    "no inputs": lambda about, arrays: arrays.pop("inputs"),
    "not finite": lambda about, arrays: arrays["inputs"].fill(np.nan),
    "before its round": lambda about, arrays: arrays["due"].fill(0),
    "of others": lambda about, arrays: arrays["numbers"].fill(3),
    "paid nothing known": lambda about, arrays: arrays["kept"].fill(np.nan),
    "weights": lambda about, arrays: arrays["sample_weight"].fill(-1.0),
}


def test_a_refused_state_of_rounds_that_wait_changes_nothing():
    random = np.random.default_rng(0)
    X, y = random.standard_normal((60, 3)), random.integers(0, 3, 60)
    waits, other = (dl.OGD(dl.losses.Logistic(dl.tasks.Multiclass(3))) for _ in range(2))
    waits.run(X[:40], y[:40], delay=7)
    other.run(X[:50], y[:50])
    (about, arrays), weights = waits.state.late, other.weights.copy()
    forged = about, arrays | {"numbers": arrays["numbers"] + 1000}
    with pytest.raises(dl.InputError):
        other.restore(waits.state.replaced(late=forged))
    assert other.rounds == 50
    np.testing.assert_array_equal(other.weights, weights)


@pytest.mark.parametrize("name", FORGED_ROUNDS)
def test_forged_rounds_that_wait_are_refused(name):
    made = committee()
    made.run(X[:30], Y[:30], delay=5)
    state, before = made.state, bits(made)
    about, arrays = dict(state.late[0]), {k: a.copy() for k, a in state.late[1].items()}
    FORGED_ROUNDS[name](about, arrays)
    with pytest.raises(dl.InputError):
        made.restore(state.replaced(late=(about, arrays)))
    assert bits(made) == before


@every_learner
def test_runs_in_which_no_label_comes_are_pieces_too(make):
    whole, pieces = make(), make()
    trace = whole.run(X[:60], Y[:60], delay=25)
    cuts = (0, 10, 20, 40, 60)
    parts = [pieces.run(X[a:b], Y[a:b], delay=25) for a, b in zip(cuts[:-1], cuts[1:], strict=True)]
    assert not parts[0].arrived.any() and np.isnan(parts[0].risk).all()
    assert np.array_equal(np.concatenate([part.prediction for part in parts]), trace.prediction)
    for learner in (whole, pieces):
        learner.forget(before=60)
    assert bits(whole) == bits(pieces)


# -- learners that do not see labels

TAGS = (X[:, :3] > 0.2).astype(int)
ITEMS = (X @ np.random.default_rng(1).normal(size=(4, 6)) > 0.5).astype(int)
QUERIES = [np.random.default_rng(t).normal(size=(2 + t % 5, 3)) for t in range(80)]
GRADES = [(query[:, 0] > 0.0).astype(int) for query in QUERIES]
RANKINGS = dl.streams.Planted(dl.tasks.LabelRanking(4), rounds=80, flips=0, features=3, seed=0)

HIDDEN = {
    "bandit": (lambda: dl.bandit.Bandit(TASK), X, Y),
    "bandit, raw": (lambda: dl.bandit.Bandit(TASK, features=None, seed=2), X, Y),
    "tags": (lambda: dl.bandit.Clicks(dl.tasks.Multilabel(3)), X, TAGS),
    "set": (lambda: dl.bandit.Clicks(dl.tasks.PrecisionAtK(2, items=6)), X, ITEMS),
    "list": (lambda: dl.bandit.Clicks(dl.tasks.NDCG(1, cutoff=2)), QUERIES, GRADES),
    "documents": (
        lambda: dl.bandit.Clicks(dl.tasks.PrecisionAtK(2), features=None), QUERIES, GRADES
    ),
    "losses": (
        lambda: dl.bandit.LossOnly(
            dl.losses.FenchelYoung(RANKINGS.task, dl.regularizers.Quadratic())
        ),
        RANKINGS.inputs,
        RANKINGS.labels,
    ),
    "losses, tags": (
        lambda: dl.bandit.LossOnly(dl.losses.Logistic(dl.tasks.Multilabel(3))), X, TAGS
    ),
}  # fmt: skip
HIDDEN |= {
    f"losses, {task!r}": (
        lambda task=task: dl.bandit.LossOnly(
            dl.losses.FenchelYoung(task, dl.regularizers.Quadratic(4.0))
        ),
        X,
        dl.streams.Planted(task, rounds=80, flips=0, seed=0).labels,
    )
    for task in (dl.tasks.FixedSize(5, 2), dl.tasks.Matching(3), dl.tasks.Ordinal(4))
}
every_hidden = pytest.mark.parametrize("make, inputs, labels", HIDDEN.values(), ids=HIDDEN)


def of_same_length(predictions, width):
    rows = [np.atleast_1d(prediction) for prediction in predictions]
    return np.array([np.pad(row, (0, width - len(row)), constant_values=-1) for row in rows])


@pytest.mark.parametrize("name", ["at once", "random", "long"])
@every_hidden
def test_runs_that_see_no_labels_have_the_bits_of_tickets(make, inputs, labels, name):
    delays = DELAYS[name](np.random.default_rng(1), 60)
    one, two = make(), make()
    trace = one.run(inputs[:60], labels[:60], delay=delays)
    tickets = played(two, as_history(delays, 60), inputs, labels)
    rows = trace.prediction.reshape(60, -1)
    told = of_same_length([tickets[t].prediction for t in range(60)], rows.shape[1])
    assert np.array_equal(rows, told)
    one.forget(before=60)
    two.forget(before=60)
    assert bits(one) == bits(two)


@every_hidden
def test_runs_that_see_no_labels_are_one_run_in_pieces(make, inputs, labels, tmp_path):
    delays = np.random.default_rng(2).integers(-1, 15, 80)
    whole, pieces = make(), make()
    trace = whole.run(inputs, labels, delay=delays)
    made = []
    for a, b in ((0, 20), (20, 21), (21, 55), (55, 80)):
        part = pieces.run(inputs[a:b], labels[a:b], delay=delays[a:b]).prediction
        made += list(part.reshape(b - a, -1))
        pieces = dl.load(pieces.save(tmp_path / "learner"))
    rows = trace.prediction.reshape(80, -1)
    assert np.array_equal(of_same_length(made, rows.shape[1]), rows)
    assert whole._waits > 0 and bits(whole) == bits(pieces)


def unseen(learner, prediction, label):
    """Return another label, of which what is seen is the same."""
    label = np.asarray(label)
    if learner.facts.feedback == "bandit":
        return label if prediction == label else 3 - prediction - label
    if learner.facts.feedback == "losses":  # tags: all of one size cost the same
        wrong = np.random.default_rng(int(label.sum())).permutation(prediction != label)
        return np.where(wrong, 1 - prediction, prediction)
    if learner.task.kind == "tags":
        shown = prediction > 0
    elif hasattr(learner.task, "k"):
        shown = np.isin(np.arange(len(label)), prediction)
    else:
        shown = prediction[: len(label)] < learner.task.cutoff
    return np.where(shown, label, 1 - label)


@pytest.mark.parametrize("name", ["bandit", "tags", "set", "list", "documents", "losses, tags"])
def test_late_labels_stay_hidden(name):
    """Others in their place, of which the same is seen, change nothing."""
    make, inputs, labels = HIDDEN[name]
    delays = np.random.default_rng(2).integers(0, 15, 80)
    one, two = make(), make()
    first = one.run(inputs, labels, delay=delays)
    pairs = zip(first.prediction, labels, strict=True)
    others = [unseen(one, prediction, label) for prediction, label in pairs]
    assert any((a != b).any() for a, b in zip(map(np.asarray, labels), others, strict=True))
    same = len({np.shape(label) for label in labels}) == 1
    second = two.run(inputs, np.array(others) if same else others, delay=delays)
    assert np.array_equal(first.prediction, second.prediction)
    assert (one.memory == two.memory).all()


@every_hidden
def test_certificates_of_late_runs_that_see_no_labels(make, inputs, labels, tmp_path):
    learner, delays = make(), np.random.default_rng(2).integers(-1, 15, 80)
    learner.run(inputs[:10], labels[:10])
    trace = learner.run(inputs, labels, delay=delays)
    trace = dl.Trace.load(trace.save(tmp_path / "trace"))
    made = dl.certify(trace, None, inputs, labels)
    assert made.valid and made.rounds == trace.arrived.sum(), str(made)
    assert f"{80 - made.rounds} have not come" in str(made)
    again = learner.run(inputs[:20], labels[:20], delay=0)
    with pytest.raises(dl.InputError, match="of an earlier run came in this one"):
        dl.certify(again, None, inputs[:20], labels[:20])


@pytest.mark.parametrize("number", [-1.0, 0.5, 1e300, np.nan])
@every_hidden
def test_forged_rounds_that_wait_unseen_are_refused(make, inputs, labels, number):
    learner = make()
    learner.run(inputs[:30], labels[:30], delay=5)
    state, before = learner.state, bits(learner)
    for change in (number, None, np.zeros((5, 500)) + 0.5):
        about, arrays = dict(state.late[0]), {k: a.copy() for k, a in state.late[1].items()}
        if change is None:
            del arrays["kept"]
        elif np.ndim(change):
            arrays["kept"] = change
        else:
            arrays["kept"][2, 0] = number
        with pytest.raises(dl.InputError):
            learner.restore(state.replaced(late=(about, arrays)))
        assert bits(learner) == before


@every_hidden
def test_a_refused_run_leaves_rounds_that_wait_unseen(make, inputs, labels):
    learner = make()
    learner.run(inputs[:30], labels[:30], delay=9)
    before, bad = bits(learner), [np.array(x, dtype=float) for x in inputs[30:50]]
    bad[15] = np.full_like(bad[15], np.nan)
    with pytest.raises(dl.InputError):
        learner.run(bad if isinstance(inputs, list) else np.array(bad), labels[30:50], delay=3)
    assert bits(learner) == before


def test_a_new_class_while_hits_and_misses_wait():
    learner = dl.bandit.Bandit(TASK)
    learner.run(X[:30], Y[:30], delay=5)
    grown = learner.grown(classes=5)
    grown.run(X[30:60], np.r_[Y[30:59], 4], delay=0)
    assert grown.rounds == 60 and grown.outstanding == 0


def test_weights_of_late_rounds():
    delays = np.random.default_rng(3).integers(-1, 9, 60)
    weights = np.random.default_rng(4).random(60) * 2.0
    for name in ("drawing", "vote", "guarded", "neighbours"):
        whole, pieces = LEARNERS[name](), LEARNERS[name]()
        trace = whole.run(X[:60], Y[:60], delay=delays, sample_weight=weights)
        pieces.run(X[:25], Y[:25], delay=delays[:25], sample_weight=weights[:25])
        pieces.run(X[25:60], Y[25:60], delay=delays[25:], sample_weight=weights[25:])
        came = trace.arrived
        wrong = weights * (trace.prediction != Y[:60])
        assert np.array_equal(trace.target_loss[came], wrong[came])
        for learner in (whole, pieces):
            learner.forget(before=60)
        assert bits(whole) == bits(pieces)


def test_distributions_of_delays():
    rounds = dl.delays.Geometric(mean=50.0, seed=3).rounds(0, 20_000)
    assert abs(rounds.mean() - 50.0) < 2.0 and rounds.min() == 0
    assert np.array_equal(rounds[100:200], dl.delays.Geometric(50.0, seed=3).rounds(100, 100))
    late = [rounds, dl.delays.Fixed(5).rounds(7, 3), dl.delays.Batches(4).rounds(2, 6)]
    assert late[1].tolist() == [5, 5, 5] and late[2].tolist() == [1, 0, 3, 2, 1, 0]


@pytest.mark.parametrize(
    "delay",
    [dl.delays.Fixed(7), 7, np.full(40, 7), [7] * 40],
    ids=["fixed", "int", "array", "list"],
)
def test_delays_in_all_forms(delay):
    one, two = certain(), certain()
    made, expected = (
        one.run(X[:40], Y[:40], delay=delay),
        two.run(X[:40], Y[:40], delay=np.full(40, 7)),
    )
    assert np.array_equal(made.prediction, expected.prediction) and made.arrived.sum() == 33


WRONG = {
    "short": np.ones(3, dtype=int),
    "fractions": np.full(40, 1.5),
    "words": ["late"] * 40,
    "negative": -3,
    "true": True,
    "endless": np.full(40, 2**60),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_delays_are_refused_before_anything_changes(name):
    learner = committee()
    before = bits(learner)
    with pytest.raises(dl.InputError):
        learner.run(X[:40], Y[:40], delay=WRONG[name])
    assert bits(learner) == before


@pytest.mark.parametrize("given", [{"delay": 1.5}, {"mean": 0.0}, {"mean": "long"}, {"size": 0}])
def test_wrong_distributions_are_refused(given):
    kinds = {"delay": dl.delays.Fixed, "mean": dl.delays.Geometric, "size": dl.delays.Batches}
    ((name, _),) = given.items()
    with pytest.raises(dl.InputError):
        kinds[name](**given)


def test_a_refused_late_run_changes_nothing():
    for name in ("drawing", "vote", "mapped", "forest"):
        learner = LEARNERS[name]()
        learner.run(X[:30], Y[:30], delay=5)
        before, waiting = learner.state, learner.outstanding
        bad = X[30:60].copy()
        bad[20] = np.nan
        with pytest.raises(dl.InputError):
            learner.run(bad, Y[30:60], delay=5)
        assert learner.outstanding == waiting == 5 and learner.rounds == before.rounds
        other = LEARNERS[name]()
        other.run(X[:30], Y[:30], delay=5)
        one = learner.run(X[30:60], Y[30:60], delay=5)
        two = other.run(X[30:60], Y[30:60], delay=5)
        assert np.array_equal(one.prediction, two.prediction)


@pytest.mark.parametrize("name", ["drawing", "vote", "mapped", "neighbours", "auto"])
def test_an_interrupted_late_run_changes_nothing(name):
    def interrupted(rounds):
        raise KeyboardInterrupt

    rows, labels = np.tile(X, (30, 1)), np.tile(Y, 30)
    one, two = LEARNERS[name](), LEARNERS[name]()
    for learner in (one, two):
        learner.run(X[:30], Y[:30], delay=5)
    with pytest.raises(KeyboardInterrupt):
        one.run(rows, labels, delay=5, progress=interrupted)
    assert one.outstanding == two.outstanding == 5
    made, expected = one.run(rows, labels, delay=3), two.run(rows, labels, delay=3)
    assert np.array_equal(made.prediction, expected.prediction) and made.carried == 5
    for learner in (one, two):
        learner.forget(before=10**6)
    assert bits(one) == bits(two)


def test_other_rounds_may_come_while_labels_are_waited_for():
    learner = certain()
    learner.run(X[:30], Y[:30], delay=5)
    ticket = learner.ask(X[30])
    learner.step(X[31], Y[31])
    trace = learner.run(X[32:60], Y[32:60], delay=2)
    assert trace.carried == 5 and learner.outstanding == 3
    learner.tell(ticket, Y[30])
    assert learner.outstanding == 2 and learner.rounds == 25 + 1 + 5 + 26 + 1


def test_other_rows_cannot_follow_those_that_wait():
    learner = certain()
    learner.run(X[:30], Y[:30], delay=5)
    with pytest.raises(dl.InputError, match="rows of the same kind"):
        learner.run(csr_array(X[30:]), Y[30:], delay=5)
    assert learner.outstanding == 5


def test_rounds_that_wait_are_not_passed_over(tmp_path):
    learner = certain()
    learner.run(X[:30], Y[:30], delay=5)
    with pytest.raises(dl.InputError, match="labels of 5 rounds are still to come"):
        learner.run(X[30:], Y[30:])
    copied = learner.copy()
    assert copied.run(X[30:60], Y[30:60], delay=0).carried == 5
    learner.forget(before=27)
    assert learner.outstanding == 3
    assert learner.run(X[30:60], Y[30:60], delay=0).carried == 3
    learner.run(X[60:], Y[60:])
    assert dl.load(learner.save(tmp_path / "learner")).rounds == learner.rounds


def test_rows_of_every_kind_come_late():
    rows = csr_array(np.where(np.abs(X) > 0.5, X, 0.0))
    for make in (certain, lambda: dl.auto(TASK, effort="fast")):
        whole, pieces = make(), make()
        trace = whole.run(rows, Y, delay=6)
        parts = [pieces.run(rows[:33], Y[:33], delay=6), pieces.run(rows[33:], Y[33:], delay=6)]
        assert np.array_equal(trace.prediction, np.concatenate([p.prediction for p in parts]))
    words = dl.streams.PlantedSequences(rounds=40, tags=3, seed=0)
    whole, pieces = dl.auto(words.task), dl.auto(words.task)
    trace = whole.run(words.inputs, words.labels, delay=6)
    pieces.run(words.inputs[:13], words.labels[:13], delay=6)
    pieces.run(words.inputs[13:], words.labels[13:], delay=6)
    for learner in (whole, pieces):
        learner.forget(before=40)
    assert bits(whole) == bits(pieces) and trace.arrived.sum() == 34


# -- certificates


def of(learner, rng):
    """Return a comparator of two pieces for a learner with weights; others take none."""
    if not isinstance(learner, dl.OGD):
        return None
    weights = [0.5 * rng.normal(size=learner.weights.shape) for _ in range(2)]
    return dl.comparators.Piecewise([0, int(rng.integers(1, 79))], weights)


CERTIFIED = ["drawing", "certain", "restarts", "mapped", "lags", "bayes", "neighbours", "forest"]
CERTIFIED += ["vote", "guarded"]


def crashing(learner, events, rng, path):
    """Play a history with crashes between any two events; return the tickets and who is left.

    After a crash there are the file saved last, and the tickets, which are the caller's; what came
    since the file was saved comes once more.
    """
    saved, since = learner.save(path), 0
    tickets, place = {}, 0
    while place < len(events):
        t, told = events[place]
        if told:
            learner.tell(dl.Ticket.from_bytes(tickets[t]), Y[t])
        else:
            ticket = learner.ask(X[t]).to_bytes()
            assert tickets.get(t, ticket) == ticket  # asked once more, the answer is the same
            tickets[t] = ticket
        place += 1
        if rng.random() < 0.05:
            saved, since = learner.save(path), place
        elif rng.random() < 0.05:
            learner, place = dl.load(saved), since
    return {t: dl.Ticket.from_bytes(ticket) for t, ticket in tickets.items()}, learner


@pytest.mark.parametrize("seed", examples(4, 135))
@pytest.mark.parametrize("name", CERTIFIED)
def test_certificates_hold_where_labels_come_late(name, seed, tmp_path):
    rng = np.random.default_rng(seed)
    delays = rng.integers(-1, [3, 15, 60][seed % 3], 80)
    weights = rng.random(80) * 2.0 if seed % 4 == 1 else None
    learner = LEARNERS[name]()
    first = learner.copy()
    trace = learner.run(X, Y, delay=delays, sample_weight=weights)
    if weights is None and name != "guarded":  # whose tickets without a label are outstanding
        tickets, left = crashing(first, as_history(delays, 80), rng, tmp_path / "saved")
        assert np.array_equal(trace.prediction, [tickets[t].prediction for t in range(80)])
        for one in (kept := learner.copy(), left):
            one.forget(before=80)
        assert bits(left) == bits(kept)
    comparator = of(learner, rng)
    made = dl.certify(trace, comparator, X, Y, sample_weight=weights)
    assert made.valid, str(made)
    came = trace.arrived
    assert made.rounds == came.sum()
    if isinstance(learner, dl.Committee):
        assert np.isclose(made.total, trace.target_loss[came].sum())
        assert made.outstanding == (~came).sum() and "labels came late" in str(made)
    else:
        assert np.isclose(made.expected, np.nansum(trace.risk))
        cost = np.nansum(trace.risk - trace.arrival_risk)
        assert np.isclose(made.delayed.cost, cost) and made.delayed.outstanding == (~came).sum()
    if seed == 0:
        loaded = type(trace).load(trace.save(tmp_path / "trace"))
        again = dl.certify(loaded, comparator, X, Y, sample_weight=weights)
        assert again.valid and again.to_dict() == made.to_dict()


def test_the_longest_round_may_have_no_label_yet():
    """Predictions have a column for each of its positions, which no label has that came."""
    words = dl.streams.PlantedSequences(rounds=12, tags=3, seed=0)
    sizes = [len(label) for label in words.labels]
    order = np.argsort(sizes, kind="stable")
    inputs, labels = [words.inputs[i] for i in order], [words.labels[i] for i in order]
    assert sizes[order[-1]] > sizes[order[0]]
    trace = dl.auto(words.task).run(inputs, labels, delay=11)
    made = dl.certify(trace, None, inputs, labels)
    assert made.valid and made.outstanding == 11
    with pytest.raises(dl.InputError, match="numbers here"):
        cut = [dataclasses.replace(m, prediction=m.prediction[:, 1:]) for m in trace.members]
        dl.certify(dataclasses.replace(trace, members=cut), None, inputs, labels)


@pytest.mark.parametrize("name", ["drawing", "certain", "bayes", "vote"])
def test_labels_at_once_have_the_certificate_of_a_run(name):
    one, two, rng = LEARNERS[name](), LEARNERS[name](), np.random.default_rng(0)
    late, plain = one.run(X, Y, delay=0), two.run(X, Y)
    comparator = of(one, rng)
    made, expected = dl.certify(late, comparator, X, Y), dl.certify(plain, comparator, X, Y)
    assert made.bounds().keys() == expected.bounds().keys()
    for form, bound in expected.bounds().items():
        own = made.bounds()[form]
        assert own == pytest.approx(bound) if isinstance(bound, float) else own == bound


@pytest.mark.parametrize("name", ["drawing", "restarts", "mapped"])
def test_an_account_counts_rounds_when_their_labels_come(name):
    one, two = LEARNERS[name](), LEARNERS[name]()
    trace = one.run(X, Y, delay=7)
    comparator = of(one, np.random.default_rng(0))
    made = dl.certify(trace, comparator, X, Y)
    two.watch(comparator)
    for part in (slice(0, 30), slice(30, 80)):
        two.run(X[part], Y[part], delay=7)
    kept = dl.certify(two)
    assert kept.rounds == made.rounds == 73 and kept.valid
    assert kept.expected == pytest.approx(np.nansum(trace.arrival_risk))
    for own in ("comparator_loss", "path_length"):
        assert getattr(kept, own) == pytest.approx(getattr(made, own))
    assert kept.tally.telescope == pytest.approx(made.tally.telescope)
    assert (one.weights == two.weights).all()


@pytest.mark.parametrize("name", ["drawing", "certain", "bayes", "vote"])
def test_forged_arrivals_are_refused(name):
    learner = LEARNERS[name]()
    trace = learner.run(X, Y, delay=7)
    comparator = of(learner, np.random.default_rng(0))
    given = ({"arrival": np.where(trace.arrival == 3, -1, trace.arrival)}, {"arrival": None})
    if not isinstance(learner, dl.Committee):
        given = (
            {"arrival": np.where(trace.arrival == 3, 4, trace.arrival)},
            {"known": trace.known + 1},
        )
    for columns in given:
        with pytest.raises(dl.InputError):
            dl.certify(dataclasses.replace(trace, **columns), comparator, X, Y)


def test_a_run_that_was_waited_for_is_not_certified_alone():
    for name in ("certain", "vote", "bayes"):
        learner = LEARNERS[name]()
        learner.run(X[:40], Y[:40], delay=5)
        trace = learner.run(X[40:], Y[40:], delay=5)
        with pytest.raises(dl.InputError):
            dl.certify(trace, of(learner, np.random.default_rng(0)), X[40:], Y[40:])


@pytest.mark.parametrize("seed", examples(8, 200))
def test_small_constant_steps_have_a_bound_beforehand(seed):
    rng = np.random.default_rng(seed)
    delay, rounds = int(rng.choice([0, 1, 4, 15])), 150
    inputs = rng.normal(size=(rounds, 3)) * rng.choice([0.3, 2.0])
    labels = rng.integers(0, 3, rounds) if rng.random() < 0.5 else np.arange(rounds) // 20 % 3
    loss = dl.losses.Logistic(TASK)
    decoder = dl.decoders.GapOptimal(loss)
    largest = float((inputs**2).sum(axis=1).max())
    between = 2 * delay  # of later rounds whose labels come first, too
    step = decoder.surrogate_gap / loss.self_bound / (1 + 2 * between) / largest
    delays = rng.integers(0, delay + 1, rounds)
    learner = dl.OGD(loss, decoder, dl.rates.Constant(0.999 * step), dl.domains.Ball(8.0))
    trace = learner.run(inputs, labels, delay=delays)
    for scale in (0.0, 1.0):
        weights = scale * rng.uniform(-1.0, 1.0, size=(2, 3, 3))
        against = dl.comparators.Piecewise([0, rounds // 2], weights)
        made = dl.certify(trace, against, inputs, labels)
        assert made.valid and made.expected <= made.worst_case + 1e-9
    usual = 0.999 * decoder.surrogate_gap / loss.self_bound / largest
    larger = dl.OGD(loss, decoder, dl.rates.Constant(usual), dl.domains.Ball(8.0))
    trace = larger.run(inputs, labels, delay=np.full(rounds, 15))
    with pytest.raises(dl.NoGuaranteeError, match="constant steps"):
        assert dl.certify(trace, against, inputs, labels).worst_case
