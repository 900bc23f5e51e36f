"""Laws of bandit feedback: only whether a prediction was right is seen."""

import dataclasses
import itertools

import numpy as np
import pytest

import driftline as dl
from driftline.bandit import DEFAULT, Bandit, Policy
from driftline.bandit.mix import FLOOR, RATE, SHARE
from driftline.checks import check_learner
from tests import naive
from tests.howmany import examples, number

TASK = dl.tasks.Multiclass(3)
X = np.random.default_rng(0).normal(size=(300, 4))
Y = np.where(X[:, 0] > 0.0, 0, 1 + (X[:, 1] > 0.0))

COUNT = 1 + len(DEFAULT)
LAGS = dl.features.Lags(2, classes=3)

LEARNERS = {
    "one policy": lambda: Bandit(TASK, [Policy(0.3, diameter=6.0)]),
    "raw inputs": lambda: Bandit(TASK, [Policy(0.1), Policy(1.0, decaying=True)], features=None),
    "biased": lambda: Bandit(TASK, [Policy(0.3, clip=2.0, misses=1.0)]),
    "default": lambda: Bandit(TASK, seed=3),
    "auto": lambda: dl.auto(TASK, feedback="bandit"),
}
every_learner = pytest.mark.parametrize("make", LEARNERS.values(), ids=LEARNERS)


def random_case(seed):
    """Return a learner without a map, and a stream with flips."""
    rng = np.random.default_rng(seed)
    classes, features, rounds = int(rng.integers(3, 7)), int(rng.integers(1, 6)), 120
    made = tuple(
        Policy(
            float(rng.choice([0.03, 0.3, 2.0])),
            bool(rng.random() < 0.4),
            float(rng.choice([1.0, 0.1])),
            None if rng.random() < 0.6 else float(rng.choice([1.0, 3.0])),
            float(rng.choice([0.0, 0.0, 1.0])),
            float(rng.choice([2.0, 20.0])),
        )
        for _ in range(int(rng.integers(1, 4)))
    )
    task = dl.tasks.Multiclass(classes)
    stream = dl.streams.Planted(task, rounds, int(rng.integers(0, 4)), features, seed=seed)
    learner = Bandit(task, made, features=None, seed=seed)
    return learner, stream.inputs * rng.choice([0.3, 1.0, 3.0]), np.asarray(stream.labels)


# -- the decoder


@pytest.mark.parametrize("classes", [2, 3, 10])
def test_no_chances_have_a_smaller_slack(classes):
    rng = np.random.default_rng(0)
    loss = dl.losses.Logistic(dl.tasks.Multiclass(classes))
    for _ in range(number(20, 200)):
        decoder = dl.decoders.Exploring(loss, step=float(10.0 ** rng.uniform(-4, 0)))
        theta = rng.normal(size=classes) * rng.choice([0.1, 1.0, 10.0])
        values, squares = loss.values(theta)
        costs, slack = decoder.params[0] * squares, decoder.slack(theta)
        best = 1.0 - decoder.mean_loss_encoding(theta)
        for mixed in rng.dirichlet(np.ones(classes), 30):
            share = 10.0 ** rng.uniform(-6, 0)
            other = (1.0 - share) * best + share * mixed
            assert (1.0 - other + costs / other - values).max() >= slack - 1e-9


@pytest.mark.parametrize("step", [1e-4, 0.3, 3.0, 30.0, 1e4])
def test_slack_loses_no_digits(step):
    rng = np.random.default_rng(3)
    decoder = dl.decoders.Exploring(dl.losses.Logistic(dl.tasks.Multiclass(4)), step=step)
    for scale in (0.1, 3.0, 30.0, 300.0):
        theta = scale * rng.normal(size=4)
        values, squares = decoder.loss.values(theta)
        slack = naive.explored(values, decoder.params[0] * squares)[1]
        assert decoder.slack(theta) == pytest.approx(slack, rel=1e-9, abs=1e-12)


def test_slack_is_that_of_the_theory_at_most():
    """Found by search: sup s / ((K-1) step) is .12, .24 at steps .001, .1, and below .66 at .5."""
    rng = np.random.default_rng(1)
    for classes in (3, 6):
        loss = dl.losses.Logistic(dl.tasks.Multiclass(classes))
        for step, most in ((0.001, 0.121), (0.1, 0.245), (0.5, 0.66)):
            decoder = dl.decoders.Exploring(loss, step=step)
            thetas = rng.normal(size=(number(100, 1000), classes)) * rng.uniform(0, 8, (1, 1))
            slacks = [decoder.slack(theta) for theta in thetas]
            assert max(slacks) <= most * (classes - 1) * step


def test_small_steps_project_on_the_simplex():
    loss = dl.losses.Logistic(dl.tasks.Multiclass(4))
    decoder, rng = dl.decoders.Exploring(loss, step=1e-12), np.random.default_rng(2)
    for theta in rng.normal(size=(20, 4)):
        expected = dl.polytopes.Simplex(4).project(-loss.values(theta)[0])
        np.testing.assert_allclose(1.0 - decoder.mean_loss_encoding(theta), expected, atol=1e-5)


# -- rounds


@pytest.mark.parametrize("seed", examples(6, 60))
def test_equal_to_the_naive_rounds(seed):
    learner, inputs, labels = random_case(seed)
    uniforms = learner._draws.uniforms(0, len(labels))[:, 0]
    trace = learner.run(inputs, labels)
    options = [policy.constants for policy in learner.policies]
    given = (inputs, labels, uniforms, learner.task.classes, options, RATE, SHARE, FLOOR)
    made, risks, slacks, shares = naive.bandit(*given)
    np.testing.assert_array_equal(trace.prediction, made)
    np.testing.assert_allclose(trace.risk, risks, atol=1e-6)
    np.testing.assert_allclose(learner.shares, shares, rtol=1e-5)
    if trace.slack is not None:
        np.testing.assert_allclose(trace.slack, slacks, rtol=1e-4, atol=1e-6)


@every_learner
def test_the_contract_of_learners(make):
    check_learner(make(), X[:60], Y[:60])


@every_learner
def test_labels_of_misses_are_not_seen(make):
    """Another wrong label in their place changes nothing that comes later."""
    one, two = make(), make()
    first = one.run(X, Y)
    others = np.where(first.prediction == Y, Y, 3 - first.prediction - Y)
    second = two.run(X, others)
    np.testing.assert_array_equal(first.prediction, second.prediction)
    assert (first.chance == second.chance).all()


@every_learner
def test_a_loss_tells_as_much_as_a_label(make):
    one, two = make(), make()
    trace = one.run(X[:100], Y[:100])
    for t in range(100):
        ticket = two.ask(X[t])
        assert ticket.prediction == trace.prediction[t]
        two.tell(ticket, loss=float(ticket.prediction != Y[t]))
    assert (one.memory == two.memory).all() and one.rounds == two.rounds


@every_learner
def test_late_tickets_have_the_chances_of_their_predictions(make):
    one, rng = make(), np.random.default_rng(0)
    waiting = []
    for t in range(120):
        waiting.append((one.ask(X[t]), Y[t]))
        while len(waiting) > 10:
            ticket, label = waiting.pop(int(rng.integers(len(waiting))))
            one.tell(dl.Ticket.from_bytes(ticket.to_bytes()), label)
    assert one.rounds == 110 and one.outstanding == 10
    again = one.copy()
    for ticket, label in waiting:
        one.tell(ticket, label)
        again.tell(ticket, loss=float(ticket.prediction != label))
    assert (one.memory == again.memory).all()


def test_what_is_learned_late_is_the_gradient_of_now_over_the_chance_of_then():
    learner = Bandit(TASK, [Policy(0.3)], features=None)
    learner.run(X[:50], Y[:50])
    first, second = learner.ask(X[50]), learner.ask(X[51])
    learner.tell(second, loss=0.0)
    W = learner.memory[2:].reshape(3, 4).copy()
    learner.tell(first, loss=0.0)
    q = np.exp(W @ X[50])
    q /= q.sum()
    chance = 1.0 - first.mean[first.prediction]
    step = 0.3 / np.log(2.0) / chance * np.outer(q - np.eye(3)[first.prediction], X[50])
    expected = W - step
    expected *= min(1.0, 10.0 / np.linalg.norm(expected))
    np.testing.assert_allclose(learner.memory[2:].reshape(3, 4), expected, rtol=1e-9)


def test_two_classes_are_full_information():
    stream = dl.streams.LabelFlips(rounds=60, flips=1, seed=0)
    one, two = (dl.auto(stream.task, effort="fast", feedback=f) for f in ("full", "bandit"))
    for x, y in zip(stream.inputs, stream.labels, strict=True):
        one.step(x, y)
        ticket = two.ask(x)
        two.tell(ticket, loss=float(ticket.prediction != y))
    assert (one.weights == two.weights).all()


def test_new_classes_and_features():
    learner = Bandit(TASK)
    learner.run(X[:100], Y[:100])
    grown = learner.grown(classes=5)
    assert grown.memory.size == 1 + len(DEFAULT) * (1 + 5 * 5) and grown.task.classes == 5
    more = grown.grown(features=6)
    more.run(np.pad(X[100:150], [(0, 0), (0, 2)]), np.r_[Y[100:149], 4])
    assert more.rounds == 150


# -- certificates


@pytest.mark.parametrize("seed", examples(8, 300))
def test_certificates_hold_in_every_run(seed):
    learner, inputs, labels = random_case(seed)
    rng = np.random.default_rng(seed)
    cut = int(rng.integers(0, 60))
    if cut:
        learner.run(inputs[:cut], labels[:cut])
    trace = learner.run(inputs[cut:], labels[cut:])
    rest = len(labels) - cut
    shape = (2, learner.task.classes, inputs.shape[1])
    for scale in (0.0, 1.0, 100.0):
        against = dl.comparators.Piecewise([0, rest // 2], scale * rng.normal(size=shape))
        made = dl.certify(trace, against, inputs[cut:], labels[cut:])
        assert made.valid, str(made)
        assert made.expected == pytest.approx(trace.risk.sum())
        if any(policy.unbiased for policy in learner.policies):
            assert made.expected <= made.exact < np.inf


def test_noise_is_0_on_average():
    stream = dl.streams.Planted(TASK, rounds=200, flips=1, features=3, seed=0)
    noises = []
    for seed in range(number(40, 200)):
        learner = Bandit(TASK, [Policy(0.3, diameter=4.0)], features=None, seed=seed)
        made = dl.certify(learner.run(stream), stream.comparator, stream)
        noises.append(made.noise)
    assert abs(np.mean(noises)) <= 4.0 * np.std(noises) / np.sqrt(len(noises))


@pytest.mark.parametrize("length", [1e3, 1e9])
def test_certificates_are_finite_where_labels_have_no_chance(length):
    rng = np.random.default_rng(0)
    X = length * rng.normal(size=(200, 3))
    y = (X @ rng.normal(size=(3, 4))).argmax(axis=1)
    trace = Bandit(dl.tasks.Multiclass(4), [Policy(1.0), Policy(1e6)], features=None).run(X, y)
    made = dl.certify(trace, None, X, y)
    assert np.isfinite(made.noise) and made.valid, str(made)
    learner = Bandit(dl.tasks.Multiclass(4), [Policy(0.03, diameter=2.0)], features=None)
    made = dl.certify(learner.run(X, y, delay=5), None, X, y)
    assert np.isfinite(made.slack) and np.isfinite(made.noise) and made.valid, str(made)


def test_a_certificate_with_a_map_is_for_mapped_inputs():
    learner = Bandit(TASK)
    trace = learner.run(X, Y)
    assert dl.certify(trace, None, X, Y).valid
    assert dl.certify(trace, dl.comparators.Fixed(np.ones((3, 5))), X, Y).valid
    with pytest.raises(dl.InputError, match="5 features"):
        dl.certify(trace, dl.comparators.Fixed(np.ones((3, 4))), X, Y)


def test_a_certificate_says_why_there_is_no_bound(tmp_path):
    trace = dl.Trace.load(Bandit(TASK, [Policy(0.3)]).run(X, Y).save(tmp_path / "trace"))
    assert "fingerprint" in str(dl.certify(trace, None, X[::-1].copy(), Y[::-1].copy()))
    assert "no bound" in str(dl.certify(Bandit(TASK, DEFAULT[:1]).run(X, Y), None, X, Y))


@pytest.mark.parametrize("seed", examples(8, 300))
def test_certificates_of_late_labels_hold_in_every_run(seed):
    learner, inputs, labels = random_case(seed)
    rng, count = np.random.default_rng(seed), len(labels)
    delays = rng.integers(-1, int(rng.choice([2, 20, 90])), count)
    trace = learner.run(inputs, labels, delay=delays)
    shape = (2, learner.task.classes, inputs.shape[1])
    for scale in (0.0, 1.0, 100.0):
        against = dl.comparators.Piecewise([0, count // 2], scale * rng.normal(size=shape))
        made = dl.certify(trace, against, inputs, labels)
        assert made.valid, str(made)
        assert (
            made.rounds == trace.arrived.sum() and made.delayed.outstanding == count - made.rounds
        )
        assert made.expected == pytest.approx(np.nansum(trace.risk))
        if any(policy.unbiased for policy in learner.policies):
            assert made.expected <= made.exact < np.inf


@pytest.mark.parametrize("seed", examples(3, 30))
def test_late_rounds_are_equal_to_the_naive_ones(seed):
    learner, inputs, labels = random_case(seed)
    delays = np.random.default_rng(seed).integers(-1, 20, len(labels))
    trace = learner.run(inputs, labels, delay=delays)
    options = [policy.constants for policy in learner.policies]
    given = (learner.task.classes, options, RATE, SHARE, FLOOR)
    made = naive.late_bandit(inputs, labels, delays, trace.prediction, *given)
    came, order = trace.arrived, made["order"]
    assert np.flatnonzero(came)[np.argsort(trace.arrival[came])].tolist() == order
    risks = 1.0 - made["chances"][np.arange(len(labels)), labels]
    np.testing.assert_allclose(trace.risk[came], risks[came], atol=1e-6)
    np.testing.assert_allclose(learner.shares, made["shares"], rtol=1e-5)
    if trace.slack is not None:
        unbiased = [i for i, policy in enumerate(learner.policies) if policy.unbiased]
        slacks = made["slacks"][order][:, unbiased]
        np.testing.assert_allclose(trace.slack[order], slacks, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("delays", [(0, 0, 0), (2, 1, 0), (2, 0, 0), (1, 1, 0), (1, -1, 0)])
def test_noise_is_0_over_all_draws_also_of_late_labels(delays):
    """By brute force: of three rounds with three classes there are 27."""
    rng = np.random.default_rng(0)
    inputs, labels = rng.normal(size=(3, 2)), np.array([0, 2, 0])
    weights, mean, sizes = rng.normal(size=(3, 2)), 0.0, 0.0
    options = [Policy(1.0, True, diameter=3.0).constants, Policy(3.0, misses=1.0).constants]
    weights *= 1.5 / np.linalg.norm(weights)
    for draws in itertools.product(range(3), repeat=3):
        given = (3, options, RATE, SHARE, FLOOR)
        made = naive.late_bandit(inputs, labels, delays, draws, *given)
        bound, noise, chance = 3.0 * 1.5 * np.sqrt(len(made["order"])), 0.0, 1.0
        for t in range(3):
            chance *= made["chances"][t, draws[t]]
        for place, t in enumerate(made["order"]):
            p, eta = made["chances"][t, labels[t]], 1.0 / np.sqrt(place + 1.0)
            theirs = np.log2(np.exp(weights @ inputs[t]).sum()) - weights[labels[t]] @ inputs[
                t
            ] / np.log(2.0)
            h = (draws[t] == labels[t]) / p
            half = eta / 2.0 * made["squares"][t, 0] / p
            noise += (1.0 - h) * (made["losses"][t, 0] - theirs - half)
            bound += theirs + made["slacks"][t, 0] - 1.0 + p
        mean, sizes = mean + chance * noise, sizes + chance * abs(noise)
        assert bound + noise >= 0.0
    assert abs(mean) < 1e-12 < 0.01 < sizes


def test_one_policy_has_a_bound_worth_reading():
    stream = dl.streams.Planted(TASK, rounds=20_000, flips=0, features=5, seed=1)
    learner = Bandit(TASK, [Policy(1.0, decaying=True, diameter=4.0)], features=None)
    made = dl.certify(learner.run(stream), stream.comparator.scaled(2.0), stream)
    assert made.valid and not made.vacuous
    assert made.expected <= made.bound < 2.5 * made.expected


# -- what is refused


@pytest.mark.parametrize(
    "make, words",
    [
        (lambda: Bandit(dl.tasks.Binary()), "three classes or more"),
        (lambda: Bandit(dl.tasks.Multiclass(2)), "a miss names the label"),
        (lambda: Bandit(dl.tasks.Multilabel(3)), "three classes or more"),
        (lambda: Bandit(TASK, []), "policies must be"),
        (lambda: Bandit(TASK, [0.1]), "policies must be"),
        (lambda: Policy(diameter=-1.0), "diameter"),
        (lambda: Policy(step=0.0), "step must be"),
        (lambda: Policy(step=True), "step must be"),
        (lambda: Policy(clip=0.5), "clip must be"),
        (lambda: Policy(exploration=2.0), "exploration must be"),
        (lambda: dl.auto(TASK, feedback="some"), "feedback must be"),
        (lambda: dl.Committee([Bandit(TASK)]), "learn from labels"),
        (lambda: Bandit(TASK).run(X, Y, sample_weight=np.ones(300)), "no sample weights"),
        (lambda: Bandit(TASK).run(X, Y, delay=3, sample_weight=np.ones(300)), "no sample weights"),
        (lambda: Bandit(TASK).run(X, Y + 1), "outside 0..2"),
        (lambda: Bandit(TASK, features=None).run(X * 1e120, Y), "too large"),
        (lambda: Bandit(TASK, features=LAGS).run(X, Y), "needs the labels"),
        (lambda: dl.decoders.Exploring(dl.losses.Logistic(TASK), step=-1.0), "step must be"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused(make, words):
    with pytest.raises(dl.InputError, match=words):
        make()


def test_feedback_that_makes_no_sense_is_refused():
    learner, full = Bandit(TASK), dl.auto(TASK, effort="fast")
    ticket, own = learner.ask(X[0]), full.ask(X[0])
    before = learner.to_saved()[1]
    for given, words in (
        ({}, "a label, or loss="),
        ({"label": 1, "loss": 1.0}, "not both"),
        ({"loss": 0.3}, "0 for a hit"),
        ({"loss": float("nan")}, "0 for a hit"),
        ({"label": 3}, "outside 0..2"),
    ):
        with pytest.raises(dl.InputError, match=words):
            learner.tell(ticket, **given)
    for changes in (
        {"means": None},
        {"means": np.zeros((COUNT, 3))},
        {"means": np.full((COUNT, 3), 2.0)},
        {"means": np.full((COUNT, 2), 0.5), "prediction": 2},
        {"prediction": 7},
        {"prediction": -1},
    ):
        with pytest.raises(dl.InputError):
            learner.tell(dataclasses.replace(ticket, **changes), loss=0.0)
    after = learner.to_saved()[1]
    assert all((after[name] == before[name]).all() for name in before)
    with pytest.raises(dl.InputError, match="feedback='bandit'"):
        full.tell(own, loss=1.0)
    learner.tell(ticket, loss=1.0)
    with pytest.raises(dl.InputError, match="not outstanding"):
        learner.tell(ticket, loss=1.0)


def test_a_state_that_no_rounds_lead_to_is_refused():
    learner = Bandit(TASK, [Policy(0.3, diameter=2.0), Policy(0.1)])
    learner.run(X, Y)
    state = learner.state
    for place, value in ((1, 0.0), (1, 0.9), (4, 5.0)):
        memory = state.memory.copy()
        memory[place] = value
        with pytest.raises(dl.InputError):
            learner.restore(state.replaced(memory=memory))


@pytest.mark.parametrize("task", [dl.tasks.Multiclass(2), dl.tasks.Multiclass(3)], ids=str)
def test_a_loss_is_one_number(task):
    learner = dl.auto(task, effort="fast", feedback="bandit")
    ticket, tickets = learner.ask([1.0, 2.0]), learner.outstanding
    for wrong in (np.array([0.0, 1.0]), [1.0], "1", 1.0j, 0.5, float("nan")):
        with pytest.raises(dl.InputError, match="loss"):
            learner.tell(ticket, loss=wrong)
    assert learner.rounds == 0 and learner.outstanding == tickets
    learner.tell(ticket, loss=np.float32(1.0))


def test_a_prediction_in_a_ticket_is_one_class():
    learner = dl.bandit.Bandit(dl.tasks.Multiclass(3))
    learner.run(np.ones((3, 2)), [0, 1, 2])
    ticket = learner.ask([1.0, 2.0])
    for wrong in (np.array([[0, 1]]), np.array([0, 1]), None, 7):
        with pytest.raises(dl.InputError):
            learner.tell(dataclasses.replace(ticket, prediction=wrong), loss=1.0)
    learner.tell(dataclasses.replace(ticket, prediction=np.array([ticket.prediction])), loss=1.0)
