"""Laws of clicks: judgements of what was shown, and of nothing else."""

import dataclasses
import itertools

import numpy as np
import pytest

import driftline as dl
from driftline.bandit import Clicks, Policy
from driftline.bandit.mix import FLOOR, RATE, SHARE
from driftline.checks import check_learner
from tests import naive
from tests.howmany import examples, number

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 4))
TAGS = (X[:, :3] + 0.3 * RNG.normal(size=(200, 3)) > 0.2).astype(int)
QUERIES = [RNG.normal(size=(int(n), 4)) for n in RNG.integers(2, 8, size=200)]
GRADES = [(q[:, 0] > 0.3).astype(int) for q in QUERIES]
FIXED = (X @ RNG.normal(size=(4, 6)) > 0.8).astype(int)

CASES = {
    "tags": (lambda: Clicks(dl.tasks.Multilabel(3)), X, TAGS),
    "one policy": (lambda: Clicks(dl.tasks.Multilabel(3), [Policy(0.3)], features=None), X, TAGS),
    "set": (lambda: Clicks(dl.tasks.PrecisionAtK(2, items=6)), X, FIXED),
    "list": (lambda: Clicks(dl.tasks.NDCG(1, cutoff=3, items=6)), X, FIXED),
    "documents": (lambda: Clicks(dl.tasks.NDCG(1, cutoff=3)), QUERIES, GRADES),
    "documents, raw": (lambda: Clicks(dl.tasks.PrecisionAtK(3), features=None), QUERIES, GRADES),
    "auto": (lambda: dl.auto(dl.tasks.NDCG(1, cutoff=2), feedback="clicks"), QUERIES, GRADES),
}
every_case = pytest.mark.parametrize("make, inputs, labels", CASES.values(), ids=CASES)


def shown_of(task, trace, labels):
    """Return which items of every round were shown."""
    made = []
    for row, label in zip(trace.prediction, labels, strict=True):
        flags = np.zeros(len(label), dtype=bool)
        if task.kind == "tags":
            flags = row > 0
        elif hasattr(task, "k"):
            flags[row[row >= 0]] = True
        else:
            flags = row[: len(label)] < task.cutoff
        made.append(flags)
    return made


@every_case
def test_the_contract_of_learners(make, inputs, labels):
    check_learner(make(), inputs[:60], labels[:60])


@every_case
def test_what_was_not_shown_is_not_read(make, inputs, labels):
    one, two = make(), make()
    first = one.run(inputs, labels)
    shown = shown_of(one.task, first, labels)
    others = [np.where(s, y, 1 - np.asarray(y)) for s, y in zip(shown, labels, strict=True)]
    second = two.run(inputs, np.array(others) if len({len(y) for y in labels}) == 1 else others)
    np.testing.assert_array_equal(first.prediction, second.prediction)
    assert (one.memory == two.memory).all()


@every_case
def test_late_tickets(make, inputs, labels):
    one, rng, waiting = make(), np.random.default_rng(0), []
    for t in range(60):
        waiting.append((one.ask(inputs[t]), labels[t]))
        while len(waiting) > 7:
            ticket, label = waiting.pop(int(rng.integers(len(waiting))))
            one.tell(dl.Ticket.from_bytes(ticket.to_bytes()), label)
    assert one.rounds == 53 and one.outstanding == 7
    again = one.copy()
    for ticket, label in waiting:
        one.tell(ticket, label)
        again.tell(ticket, label)
    assert (one.memory == again.memory).all()


@pytest.mark.parametrize("seed", examples(20, 300))
def test_the_chance_of_a_tag_needs_the_least_slack(seed):
    rng = np.random.default_rng(seed)
    step = float(10.0 ** rng.uniform(-3, 0.5))
    learner = Clicks(dl.tasks.Multilabel(1), [Policy(step, diameter=100.0)], features=None)
    learner.run([[1.0]], [[0]])
    theta = float(rng.normal() * rng.choice([0.1, 1.0, 5.0]))
    memory = np.r_[learner.memory[:-1], theta]
    learner.restore(learner.state.replaced(memory=memory))
    x = float(rng.choice([0.3, 1.0]))
    chance, slack = naive.tag_chance(theta * x, step * x * x / 2.0)
    found = learner.ask([x]).mean[0]
    assert found == pytest.approx(chance, abs=2e-4)
    assert learner.run([[x]], [[1]]).slack[0, 0] == pytest.approx(slack, abs=1e-6)


@pytest.mark.parametrize("theta", [-50.0, -1e4, -1e8])
def test_tags_that_are_surely_wrong_are_shown_at_times(theta):
    learner = Clicks(dl.tasks.Multilabel(1), [Policy(1e-3, diameter=1e9)], features=None)
    learner.run([[1.0]], [[0]])
    learner.restore(learner.state.replaced(memory=np.r_[learner.memory[:-1], theta]))
    p, room = learner.ask([1.0]).mean[0], 1.0 + theta / np.log(2.0)
    cost = 0.5e-3 / np.log(2.0) ** 2
    assert p > 0.0 and 2.0 * p * p - room * p == pytest.approx(cost, rel=1e-9)


@pytest.mark.parametrize("seed", examples(6, 100))
def test_the_bound_holds_in_every_run_with_its_noise(seed):
    """For tags, against the naive policies and any comparator."""
    rng = np.random.default_rng(seed)
    d, m, rounds = int(rng.integers(1, 5)), int(rng.integers(1, 4)), 80
    steps = rng.choice([0.05, 0.5, 2.0], size=2)
    policies = [
        Policy(float(steps[0]), bool(rng.random() < 0.5), diameter=3.0),
        Policy(float(steps[1]), clip=2.0),
    ]
    Z = rng.normal(size=(rounds, m))
    Z /= np.maximum(1.0, np.linalg.norm(Z, axis=1, keepdims=True))
    y = (Z @ rng.normal(size=(m, d)) > 0).astype(int)
    learner = Clicks(dl.tasks.Multilabel(d), policies, features=None, seed=seed)
    trace = learner.run(Z, y)
    options = [policy.constants for policy in policies]
    side = np.sqrt(d)
    (risks, slacks, losses, squares, chances), shares = naive.tags_from_clicks(
        Z, y, trace.prediction, options, lambda policy: side * policy[5], RATE, SHARE, FLOOR
    )
    np.testing.assert_allclose(trace.risk, risks, atol=2e-4)
    np.testing.assert_allclose(trace.slack[:, 0], slacks[:, 0], atol=1e-3, rtol=1e-3)
    np.testing.assert_allclose(learner.shares, shares, rtol=1e-3)
    D = 3.0 * side
    for scale in (0.0, 1.0, 50.0):
        U = scale * rng.normal(size=(d, m))
        U *= min(1.0, D / 2.0 / max(np.linalg.norm(U), 1e-300))
        theta = Z @ U.T
        theirs = np.log2(1.0 + np.exp(np.where(y, -theta, theta)))
        eta = policies[0].at(np.arange(rounds))
        h = (trace.prediction > 0) / chances
        noise = (1.0 - h) * (losses[:, 0] - theirs)
        noise += eta[:, None] / 2.0 * squares[:, 0] * (h**2 - 1.0 / chances)
        price = D * D / 2.0 / eta[-1] / d
        total = theirs.mean(axis=1).sum() + price + slacks[:, 0].sum() + noise.mean(axis=1).sum()
        assert risks.sum() <= total + 1e-6


# -- certificates


def random_tags(seed, rounds=80):
    """Return a learner without a map, one of whose policies has a bound, and a stream."""
    rng = np.random.default_rng(seed)
    d, m = int(rng.integers(1, 5)), int(rng.integers(1, 4))
    policies = [
        Policy(
            float(rng.choice([0.05, 0.5, 2.0])),
            bool(rng.random() < 0.5),
            float(rng.choice([1.0, 0.1])),
            diameter=float(rng.choice([2.0, 20.0])),
        ),
        Policy(0.5, clip=2.0),
    ]
    inputs = rng.normal(size=(rounds, m)) * rng.choice([0.3, 1.0, 3.0])
    labels = (inputs @ rng.normal(size=(m, d)) > 0).astype(int)
    learner = Clicks(dl.tasks.Multilabel(d), policies, features=None, seed=seed)
    return learner, inputs, labels


@pytest.mark.parametrize("seed", examples(12, 300))
def test_certificates_hold_in_every_run(seed):
    learner, inputs, labels = random_tags(seed)
    rng = np.random.default_rng(seed)
    cut = int(rng.integers(0, 40))
    if cut:
        learner.run(inputs[:cut], labels[:cut])
    trace = learner.run(inputs[cut:], labels[cut:])
    rest, shape = len(labels) - cut, (2, labels.shape[1], inputs.shape[1])
    for scale in (0.0, 1.0, 100.0):
        against = dl.comparators.Piecewise([0, rest // 2], scale * rng.normal(size=shape))
        made = dl.certify(trace, against, inputs[cut:], labels[cut:])
        assert made.valid, str(made)
        assert made.policy == learner.policies[0]
        assert made.expected == pytest.approx(trace.risk.sum()) and made.expected <= made.exact


@pytest.mark.parametrize("seed", examples(8, 300))
def test_certificates_of_late_labels_hold_in_every_run(seed):
    learner, inputs, labels = random_tags(seed)
    rng, count = np.random.default_rng(seed), len(labels)
    trace = learner.run(inputs, labels, delay=rng.integers(-1, int(rng.choice([2, 20, 60])), count))
    shape = (2, labels.shape[1], inputs.shape[1])
    for scale in (0.0, 1.0, 100.0):
        against = dl.comparators.Piecewise([0, count // 2], scale * rng.normal(size=shape))
        made = dl.certify(trace, against, inputs, labels)
        assert made.valid and made.expected <= made.exact < np.inf, str(made)
        assert made.expected == pytest.approx(np.nansum(trace.risk))


@pytest.mark.parametrize("seed", examples(3, 30))
def test_certificates_are_equal_to_the_naive_sums(seed):
    learner, inputs, labels = random_tags(seed, rounds=40)
    trace, policy, d = learner.run(inputs, labels), learner.policies[0], labels.shape[1]
    weights = np.random.default_rng(seed).normal(size=(2, d, inputs.shape[1]))
    made = dl.certify(trace, dl.comparators.Piecewise([0, 20], weights), inputs, labels)
    options = [policy.constants for policy in learner.policies]
    (_, slacks, *sums), _ = naive.tags_from_clicks(
        inputs, labels, trace.prediction, options, lambda own: np.sqrt(d) * own[5], RATE, SHARE,
        FLOOR,
    )  # fmt: skip
    noise, bound = naive.tags_bound(
        inputs, labels, trace.prediction, weights[[0] * 20 + [1] * 20], policy.diameter,
        policy.at(np.arange(40)), slacks[:, 0], *(column[:, 0] for column in sums[:2]), sums[2],
    )  # fmt: skip
    assert made.noise == pytest.approx(noise, abs=0.02 * (1.0 + abs(noise)))
    assert made.bound == pytest.approx(bound, rel=0.01)


@pytest.mark.parametrize("decaying", [False, True])
def test_noise_is_0_over_all_draws(decaying):
    """By brute force: of two rounds with two tags there are 16."""
    rng = np.random.default_rng(decaying)
    inputs, labels = rng.normal(size=(2, 2)), rng.integers(0, 2, size=(2, 2))
    options = [Policy(1.0, decaying, diameter=3.0).constants, Policy(3.0, clip=2.0).constants]
    weights, mean, sizes = rng.normal(size=(2, 2, 2)), 0.0, 0.0
    for draws in itertools.product([0, 1], repeat=4):
        shown = np.array(draws).reshape(2, 2)
        (risks, slacks, losses, squares, chances), _ = naive.tags_from_clicks(
            inputs, labels, shown, options, lambda own: np.sqrt(2.0) * own[5], RATE, SHARE, FLOOR
        )
        noise, bound = naive.tags_bound(
            inputs, labels, shown, weights, 3.0, np.array([1.0, 0.5**0.5 if decaying else 1.0]),
            slacks[:, 0], losses[:, 0], squares[:, 0], chances,
        )  # fmt: skip
        chance = np.where(shown, chances, 1.0 - chances).prod()
        mean, sizes = mean + chance * noise, sizes + chance * abs(noise)
        assert risks.sum() <= bound + noise
    assert abs(mean) < 1e-12 < 0.01 < sizes


@every_case
def test_a_certificate_says_whether_there_is_a_bound(make, inputs, labels):
    learner = make()
    learner.run(inputs[:50], labels[:50])
    trace = learner.run(inputs[50:], labels[50:])
    made = dl.certify(trace, None, inputs[50:], labels[50:])
    assert made.valid and made.sampled == pytest.approx(trace.target_loss.sum()), str(made)
    tags = learner.task.kind == "tags"
    assert ("none is stated for sets and lists" in str(made)) != tags and (
        made.bound < np.inf
    ) == tags
    with pytest.raises(dl.InputError, match="no sample weights"):
        dl.certify(trace, None, inputs[50:], labels[50:], sample_weight=np.ones(150))


def test_a_certificate_of_clicked_lists_knows_guesses_by_chance():
    """Of any items in any order, by the loss that clicks are learned for."""
    task, rng = dl.tasks.NDCG(1, cutoff=2), np.random.default_rng(0)
    trace = Clicks(task).run(QUERIES, GRADES)
    guess = dl.certify(trace, None, QUERIES, GRADES).trivial
    discounts, total = 1.0 / np.log2([2.0, 3.0]), 0.0
    for grades in GRADES:
        draws = [rng.permutation(grades)[:2] for _ in range(200)]
        total += np.mean(
            [1.0 - (r * discounts[: len(r)]).sum() / discounts[: len(r)].sum() for r in draws]
        )
    assert guess == pytest.approx(total, rel=0.02)


def test_one_policy_has_a_bound_worth_reading():
    stream = dl.streams.Planted(dl.tasks.Multilabel(3), rounds=20_000, flips=0, features=4, seed=1)
    learner = Clicks(stream.task, [Policy(1.0, decaying=True, diameter=4.0)], features=None)
    made = dl.certify(learner.run(stream), stream.comparator.scaled(4.0), stream)
    assert made.valid and not made.vacuous
    assert made.expected <= made.bound < 3.0 * made.expected


@pytest.mark.parametrize("k", [1, 2, 5])
def test_as_many_items_as_asked_for_are_shown(k):
    rng = np.random.default_rng(k)
    learner = Clicks(dl.tasks.PrecisionAtK(k), features=None)
    queries = [rng.normal(size=(int(n), 3)) for n in rng.integers(1, 9, size=number(60, 300))]
    labels = [(q[:, 0] > 0).astype(int) for q in queries]
    trace = learner.run(queries, labels)
    for query, row in zip(queries, trace.prediction, strict=True):
        assert len(set(row[row >= 0])) == min(k, len(query))
    ticket = learner.ask(queries[0])
    assert ticket.mean.sum() == pytest.approx(min(k, len(queries[0])))


def test_chances_of_a_list_are_those_of_its_draws():
    learner = Clicks(dl.tasks.PrecisionAtK(2), features=None)
    learner.run(QUERIES, GRADES)
    query, counts = np.random.default_rng(5).normal(size=(5, 4)), np.zeros(5)
    chances = learner.ask(query).mean
    rounds = number(2000, 20000)
    for _ in range(rounds):
        counts[learner.ask(query).prediction] += 1
    np.testing.assert_allclose(counts / rounds, chances, atol=5.0 / np.sqrt(rounds))


def test_more_is_learned_than_guessing_has():
    stream = dl.streams.Planted(dl.tasks.Multilabel(4), rounds=4000, flips=1, seed=1)
    assert Clicks(stream.task).run(stream).target_loss[-1000:].mean() < 0.1
    trace = Clicks(dl.tasks.PrecisionAtK(1)).run(QUERIES * 5, GRADES * 5)
    best = np.mean([not grades.any() for grades in GRADES])
    guess = np.mean([1.0 - grades.mean() for grades in GRADES])
    assert trace.target_loss[-500:].mean() < best + 0.3 * (guess - best)


@pytest.mark.parametrize(
    "make, words",
    [
        (lambda: Clicks(dl.tasks.Multiclass(3)), "tags, sets and lists"),
        (lambda: Clicks(dl.tasks.NDCG(2)), "nothing is hidden"),
        (lambda: Clicks(dl.tasks.NDCG(2, cutoff=1, gain="exponential")), "tags, sets and lists"),
        (lambda: Clicks(dl.tasks.Multilabel(3), []), "policies must be"),
        (lambda: Clicks(dl.tasks.NDCG(1, cutoff=2), features=dl.features.Hats(4)), "no other map"),
        (lambda: Clicks(dl.tasks.Multilabel(3)).run(X, TAGS + 1), "zeros and ones"),
        (lambda: Clicks(dl.tasks.Multilabel(3), features=None).run(X * 1e120, TAGS), "too large"),
        (lambda: dl.Committee([Clicks(dl.tasks.Multilabel(3))]), "learn from labels"),
        (lambda: dl.auto(dl.tasks.Multiclass(3), feedback="clicks"), "tags, sets and lists"),
        (lambda: dl.auto(dl.tasks.Multilabel(3), feedback="bandit"), "feedback='clicks'"),
    ],
)
def test_what_makes_no_sense_is_refused(make, words):
    with pytest.raises(dl.InputError, match=words):
        make()


def test_tickets_that_were_changed_are_refused():
    learner = Clicks(dl.tasks.Multilabel(3))
    learner.run(X[:20], TAGS[:20])
    ticket = learner.ask(X[20])
    before = learner.memory.copy()
    for changes in (
        {"means": None},
        {"means": ticket.means[:1]},
        {"means": ticket.means[:, :2]},
        {"means": ticket.means + 2.0},
        {"means": ticket.means + 0.25},
    ):
        with pytest.raises(dl.InputError):
            learner.tell(dataclasses.replace(ticket, **changes), TAGS[20])
    with pytest.raises(dl.InputError, match="does not name the label"):
        learner.tell(ticket, loss=1.0)
    assert (learner.memory == before).all()
