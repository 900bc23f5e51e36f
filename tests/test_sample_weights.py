"""Laws of sample weights: a round of weight h has h times the loss and the target loss."""

import dataclasses
import math

import numpy as np
import pytest

import driftline as dl
from driftline.committee import Shares
from driftline.detectors import alarms_of
from driftline.engines import PlainEngine
from driftline.members import Forest, NaiveBayes, Neighbours, Tables
from driftline.members.growing import DRAWS
from tests import naive
from tests.howmany import examples

TASK = dl.tasks.Multiclass(3)


def stream(rounds=120, features=3, seed=0):
    """Return rows, labels that follow one feature with noise, and weights, some of them 0."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rounds, features))
    y = np.where(rng.random(rounds) < 0.2, rng.integers(0, 3, rounds), (X[:, 0] > 0.3).astype(int))
    h = np.round(np.exp(rng.normal(size=rounds)), 3)
    h[rng.random(rounds) < 0.2] = 0.0
    return X, y, h


def ogd(rate=None, decoder=dl.decoders.GapOptimal, domain=None, **rest):
    loss = dl.losses.Logistic(TASK)
    domain = dl.domains.Ball(20.0) if domain is None else domain
    return dl.OGD(loss, decoder(loss), dl.rates.Polyak() if rate is None else rate, domain, **rest)


def certain(factor=2.0, rate=None, **rest):
    loss = dl.losses.Scaled(dl.losses.Logistic(TASK), factor)
    rate = dl.rates.Polyak() if rate is None else rate
    return dl.OGD(loss, dl.decoders.Argmax(loss), rate, dl.domains.Ball(20.0), **rest)


class Plain(dl.rates.Constant):
    """A constant rate without a kernel, so that rounds are played in Python."""

    kernel = None

    def next(self, loss, risk, grad_sq, input_sq, previous, setting, memory):
        return self.params(setting)[0]


def committee(budget=None, counting=True):
    members = [certain(), certain(4.0, dl.rates.Decaying(1.0), restart=dl.detectors.Cusum())]
    if counting:
        members += [NaiveBayes(TASK, features=None), Neighbours(TASK, window=50, features=None)]
    return dl.Committee([*members, ogd()] if budget else members, budget=budget)


LEARNERS = {
    "monotone": lambda: ogd(),
    "free": lambda: ogd(dl.rates.Polyak(monotone=False, cap=5.0)),
    "floor": lambda: ogd(dl.rates.Constant()),
    "adagrad": lambda: ogd(dl.rates.AdaGrad()),
    "certain": lambda: certain(),
    "restarts": lambda: certain(rate=dl.rates.Decaying(1.0), restart=dl.detectors.Cusum()),
    "intercept": lambda: ogd(intercept=True),
    "mapped": lambda: ogd(features=dl.features.Hats(6)),
    "plain": lambda: ogd(Plain(0.3)),
    "bayes": lambda: NaiveBayes(TASK),
    "tables": lambda: Tables(TASK),
    "neighbours": lambda: Neighbours(TASK, window=40),
    "forest": lambda: Forest(TASK, trees=3),
    "vote": lambda: committee(),
    "guarded": lambda: committee(1.5),
    "auto": lambda: dl.auto(TASK, effort="fast"),
}
every_learner = pytest.mark.parametrize("make", LEARNERS.values(), ids=LEARNERS)
UNMAPPED = ["monotone", "free", "floor", "adagrad", "certain", "restarts", "intercept", "plain"]
UNMAPPED += ["vote", "guarded"]


def same(one, two):
    """Say whether two states have the same bits."""
    (about, arrays), (other, theirs) = one.to_saved(), two.to_saved()
    return about == other and all(np.array_equal(a, theirs[k]) for k, a in arrays.items())


def columns(trace):
    return {k: v for k, v in trace.columns().items() if "sample_weight" not in k}


@every_learner
def test_weights_of_one_change_no_bit(make):
    X, y, _ = stream()
    one, two = make(), make()
    with_weights, without = one.run(X, y, sample_weight=np.ones(len(y))), two.run(X, y)
    theirs = columns(without)
    assert all(np.array_equal(v, theirs[k]) for k, v in columns(with_weights).items())
    assert same(one, two)
    assert without.sample_weight is None and np.array_equal(
        with_weights.sample_weight, np.ones(len(y))
    )


@every_learner
def test_pieces_are_one_run(make, tmp_path):
    X, y, h = stream()
    whole, pieces = make(), make()
    trace = whole.run(X, y, sample_weight=h)
    first = pieces.run(X[:50], y[:50], sample_weight=h[:50])
    pieces = dl.load(pieces.save(tmp_path / "half")) if make is not LEARNERS["plain"] else pieces
    pieces.learn_rows(X[50:90], y[50:90], h[50:90])
    last = pieces.run(X[90:], y[90:], sample_weight=h[90:])
    assert same(whole, pieces)
    assert np.array_equal(trace.target_loss[:50], first.target_loss)
    assert np.array_equal(trace.risk[90:], last.risk)


@pytest.mark.parametrize("name", UNMAPPED)
def test_rounds_of_weight_zero_are_as_if_they_were_not(name):
    X, y, h = stream()
    one, two, kept = LEARNERS[name](), LEARNERS[name](), h > 0.0
    trace, short = one.run(X, y, sample_weight=h), two.run(X[kept], y[kept], sample_weight=h[kept])
    assert 10 < kept.sum() < len(kept) - 10
    if name in ("certain", "restarts", "vote"):  # others draw by the number of the round
        assert np.array_equal(trace.prediction[kept], short.prediction)
    assert np.array_equal(trace.risk[kept], short.risk)
    assert not trace.risk[~kept].any() and not trace.target_loss[~kept].any()
    if hasattr(one, "members"):
        assert np.array_equal(one.weights, two.weights)
        assert np.array_equal(one.beliefs, two.beliefs)
    else:
        assert np.array_equal(one.weights, two.weights)


@pytest.mark.parametrize("kind", [NaiveBayes, Tables, Neighbours, Forest])
def test_members_remember_nothing_of_rounds_of_weight_zero(kind):
    X, y, h = stream()
    one, two, kept = kind(TASK, features=None), kind(TASK, features=None), h > 0.0
    one.run(X, y, sample_weight=h)
    two.run(X[kept], y[kept], sample_weight=h[kept])
    assert np.array_equal(one.memory, two.memory)


@pytest.mark.parametrize("decode", ["gap_optimal", "argmax"])
@pytest.mark.parametrize("plain", [False, True], ids=["compiled", "plain"])
def test_rounds_are_those_of_the_formula(decode, plain):
    X, y, h = stream()
    kind = {"gap_optimal": dl.decoders.GapOptimal, "argmax": dl.decoders.Argmax}[decode]
    factor = 2.0 if decode == "argmax" else 1.0
    loss = dl.losses.Scaled(dl.losses.Logistic(TASK), factor)
    rate = Plain(0.4) if plain else dl.rates.Constant(0.4)
    learner = dl.OGD(loss, kind(loss), rate, dl.domains.Ball(6.0), seed=1)
    trace = learner.run(X, y, sample_weight=h)

    def choose(theta, losses, squares, classes, vector):
        return getattr(naive, decode)(theta, factor * losses, factor**2 * squares, classes, vector)

    heavy = []

    def step(value, risk, grad_sq, before):
        weight, eta = h[len(before)], 0.4
        counted = np.count_nonzero(h[: len(before) + 1])
        limit = min([math.inf, *(most * 1.003 ** (counted - t) for t, most in heavy)])
        if weight > 1.0:
            eta = min(eta, max(2.0 * (value - risk) / grad_sq, eta / weight))
            heavy.append((counted, min(eta, limit)))
        return min(eta, limit)

    rows, predictions, W = naive.run(
        X, y, 3, naive.logistic, choose, step, radius=3.0, factor=factor,
        uniforms=naive.uniforms(1, len(y)), h=h,
    )  # fmt: skip
    made = [trace.loss, trace.risk, trace.target_loss, trace.eta, trace.grad_sq]
    assert np.allclose(learner.weights, W, atol=1e-10)
    assert np.array_equal(trace.prediction, predictions)
    for name, own, theirs in zip(
        ("loss", "risk", "target", "eta", "grad"), made, rows, strict=True
    ):
        assert np.allclose(own, theirs, atol=1e-10, equal_nan=name == "eta") or name == "eta", name


@pytest.mark.parametrize("rate", [dl.rates.Constant(3.0), dl.rates.Decaying(3.0)], ids=repr)
def test_heavy_rounds_do_not_overshoot(rate):
    X, y, h = stream()
    trace = ogd(rate).run(X, y, sample_weight=100.0 * h)
    stepped = trace.grad_sq > 0.0
    ends = 2.0 * (trace.loss - trace.risk)[stepped] / trace.grad_sq[stepped]
    alone = 3.0 / np.maximum(1.0, 100.0 * h[stepped])  # as far as with weight 1
    assert (trace.eta[stepped] <= np.maximum(ends, alone) * (1.0 + 1e-12)).all()
    last, limit = None, math.inf  # lighter rounds do not undo them: steps hardly grow again
    for t in np.flatnonzero(h > 0.0):
        limit *= 1.003
        if stepped[t]:
            assert trace.eta[t] <= limit * (1.0 + 1e-9), (t, last)
            limit, last = min(limit, trace.eta[t]), t


def forest(Z, y, h, **settings):
    rest = {"window": 2000, "nodes": 255, "bins": 64, "least": 1.0, "subset": 0.6}
    rest |= {"trees": 3, "smoothing": 0.5, "restart": True} | settings
    return naive.forest(Z, y, 3, np.random.default_rng(0).random(DRAWS), **rest, h=h)


MEMBERS = {
    "bayes": (
        NaiveBayes(TASK, bins=4, half_life=7.0),
        lambda *given, h: naive.naive_bayes(*given, 3, 4, 7.0, 0.1, h),
    ),
    "tables": (
        Tables(TASK, bins=5, coarse=3, half_life=9.0, patience=4.0),
        lambda *given, h: naive.tables(*given, 3, 5, 3, 9.0, 4.0, 1.0, h),
    ),
    "neighbours": (
        Neighbours(TASK, k=4, window=11),
        lambda *given, h: naive.neighbours(*given, 3, 4, 11, True, h),
    ),
    "forest": (Forest(TASK, trees=3), lambda *given, h: forest(*given, h)),
}


@pytest.mark.parametrize("name", MEMBERS)
def test_members_count_rows_by_their_weights(name):
    (member, reference), (X, y, h) = MEMBERS[name], stream(rounds=200)
    h = 2.0 ** np.random.default_rng(1).integers(-2, 3, len(y))  # whose sums have no rounding
    chances = reference(member.map.transform(X), y, h=h)
    trace = member.copy().run(X, y, sample_weight=h)
    assert np.allclose(trace.loss, -h * np.log(chances[np.arange(len(y)), y]), atol=1e-8)
    assert np.array_equal(trace.risk, h * (trace.prediction != y))


def test_weight_two_is_twice_in_the_limit_of_small_steps():
    X, y, _ = stream(rounds=40)
    off = []
    for eta in (1e-2, 1e-3, 1e-4):
        twice, weighted = ogd(dl.rates.Constant(eta)), ogd(dl.rates.Constant(eta))
        twice.run(np.repeat(X, 2, axis=0), np.repeat(y, 2))
        weighted.run(X, y, sample_weight=np.full(len(y), 2.0))
        off.append(np.abs(twice.weights - weighted.weights).max() / eta)
    assert off[1] < 0.15 * off[0] and off[2] < 0.15 * off[1]


CERTIFIED = [name for name in LEARNERS if name not in ("plain", "auto")]


@pytest.mark.parametrize("name", CERTIFIED)
@pytest.mark.parametrize("seed", examples(2, 20))
def test_certificates_hold_on_weighted_runs(name, seed):
    X, y, h = stream(rounds=300, seed=seed)
    rng = np.random.default_rng(seed)
    h *= [1.0, 1e-2, 30.0][seed % 3]
    learner, comparator = LEARNERS[name](), None
    trace = learner.run(X, y, sample_weight=h, seed=seed)
    if isinstance(learner, dl.OGD):
        start = int(rng.integers(1, 300))
        pieces = [rng.normal(size=learner.weights.shape) for _ in range(2)]
        comparator = dl.comparators.Piecewise([0, start], pieces)
    made = dl.certify(trace, comparator, X, y, sample_weight=h)
    assert made.valid, str(made)
    assert made.unchecked == ()
    guess = 2.0 / 3.0 * h.sum()
    assert np.isclose(made.trivial, guess)
    again = dl.certify(trace, comparator, X, y)
    assert again.valid and "sample weights" in again.unchecked[0]
    if hasattr(made, "over"):
        assert all(part.valid for part in made.intervals(50))


@pytest.mark.parametrize("name", ["monotone", "bayes", "vote"])
def test_other_weights_than_recorded_are_found(name, tmp_path):
    X, y, h = stream()
    trace = LEARNERS[name]().run(X, y, sample_weight=h)
    trace = type(trace).load(trace.save(tmp_path / "trace"))
    assert np.array_equal(trace.sample_weight, h)
    other = h.copy()
    other[7] += 1.0
    found = dl.certify(trace, *comparator_of(trace), X, y, sample_weight=other).findings
    assert found == ("1 sample weights are not those of the trace, the first in round 7",)
    parts = {"sample_weight": other}
    if hasattr(trace, "members"):
        parts["members"] = tuple(dataclasses.replace(m, sample_weight=other) for m in trace.members)
    forged = dataclasses.replace(trace, **parts)
    assert not dl.certify(forged, *comparator_of(trace), X, y, sample_weight=other).valid


def comparator_of(trace):
    weights = getattr(trace, "first_weights", None)
    return [None if weights is None else dl.comparators.Fixed(np.zeros(weights.shape))]


def test_floor_is_divided_by_the_largest_weight():
    X, y, h = stream(rounds=500)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    learner = ogd()
    trace = learner.run(X, y, sample_weight=h)
    floor = learner.decoder.rate_floor
    assert trace.eta.min() >= floor / h.max() * (1.0 - 1e-12)
    assert trace.admissible.all()
    made = dl.certify(trace, dl.comparators.Fixed(np.zeros((3, 3))), X, y)
    assert np.isclose(made.premises.floor, floor / h.max(), rtol=1e-9)
    assert np.isclose(learner.facts.largest_input, np.sqrt(h.max()))


def test_constant_steps_at_the_floor_have_no_theorem_for_weights_above_one():
    X, y, _ = stream()
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    light, heavy = ogd(dl.rates.Constant()), ogd(dl.rates.Constant())
    light.run(X, y, sample_weight=np.full(len(y), 0.7))
    heavy.run(X, y, sample_weight=np.full(len(y), 3.0))
    assert not light.facts.no_theorem and "admissible up to norm 1" in heavy.facts.no_theorem


def test_detectors_see_losses_without_weights():
    X, y, h = stream(rounds=600)
    y[300:] = (y[300:] + 1) % 3
    learner = certain(rate=dl.rates.Decaying(1.0), restart=dl.detectors.Cusum())
    weights = np.tile([0.0, 5.0], 300)
    trace = learner.run(X, y, sample_weight=weights)
    found = naive.cusum_alarms((trace.risk[1::2] / 5.0).tolist())
    assert found and [2 * t + 2 for t in found] == np.flatnonzero(trace.restarted).tolist()
    assert np.array_equal(trace.alarms, 2 * alarms_of(trace.risk[1::2] / 5.0) + 1)


def test_alarms_of_a_committee_are_those_of_its_trace():
    X, y, h = stream(rounds=800)
    y[400:] = (y[400:] + 1) % 3
    made = committee()
    trace = made.run(X, y, sample_weight=h)
    assert len(trace.alarms) and np.array_equal(made.alarms, trace.alarms)


def test_scale_does_not_matter_to_shares():
    rng = np.random.default_rng(0)
    losses, h = rng.random((200, 3)), np.exp(rng.normal(size=200))
    one = Shares(3).update(losses * h[:, np.newaxis], sample_weight=h)
    two = Shares(3).update(losses * h[:, np.newaxis] / 4.0, sample_weight=h / 4.0)
    assert np.array_equal(one, two)


WRONG = {
    "negative": (lambda h: np.where(np.arange(len(h)) == 5, -1.0, h), "row 5 is -1"),
    "nan": (lambda h: np.where(np.arange(len(h)) == 5, np.nan, h), "row 5 is nan"),
    "infinite": (lambda h: np.where(np.arange(len(h)) == 5, np.inf, h), "row 5 is inf"),
    "huge": (lambda h: h * 1e9, "between 1e-09 and 1e"),
    "tiny": (lambda h: np.where(np.arange(len(h)) == 5, 1e-310, h), "row 5 is 1e-310"),
    "complex": (lambda h: h * 1j, "complex"),
    "short": (lambda h: h[:-1], r"each of 120 rounds, but got the shape \(119,\)"),
    "matrix": (lambda h: h[:, np.newaxis], r"shape \(120, 1\)"),
    "one": (lambda h: 2.0, r"shape \(\)"),
    "words": (lambda h: ["heavy"] * len(h), "must be numbers"),
}


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.parametrize("make", [LEARNERS["monotone"], LEARNERS["vote"]], ids=["ogd", "vote"])
def test_wrong_weights_are_refused_before_anything_changes(name, make):
    X, y, h = stream()
    (wrong, words), one, two = WRONG[name], make(), make()
    for call in (
        lambda: one.run(X, y, sample_weight=wrong(h)),
        lambda: one.learn_rows(X, y, wrong(h)),
    ):
        with pytest.raises(dl.InputError, match=words):
            call()
    assert same(one, two)


def test_weights_are_copied():
    X, y, h = stream()
    trace = ogd().run(X, y, sample_weight=h)
    before = h.copy()
    h[:] = 0.0
    assert np.array_equal(trace.sample_weight, before)


def test_structured_rounds_have_weights_too():
    rng = np.random.default_rng(0)
    task = dl.tasks.NDCG(2)
    X = [rng.normal(size=(int(n), 4)) for n in rng.integers(2, 6, 60)]
    y = [rng.integers(0, 3, len(x)) for x in X]
    h = rng.random(60) * 3.0
    made = dl.auto(task)
    trace = made.run(X, y, sample_weight=h)
    certificate = dl.certify(trace, None, X, y, sample_weight=h)
    assert certificate.valid, str(certificate)


def test_sparse_rows_have_weights_too():
    from scipy.sparse import csr_array

    X, y, h = stream()
    X[np.abs(X) < 0.5] = 0.0
    dense, sparse = ogd(), ogd()
    one = dense.run(X, y, sample_weight=h)
    two = sparse.run(csr_array(X), y, sample_weight=h)
    assert np.allclose(one.loss, two.loss) and np.allclose(dense.weights, sparse.weights)


def test_account_of_a_learner_counts_weights():
    X, y, h = stream()
    learner = ogd()
    learner.run(X[:20], y[:20])
    comparator = dl.comparators.Fixed(np.ones((3, 3)))
    learner.watch(comparator)
    learner.run(X[20:], y[20:], sample_weight=h[20:])
    made = dl.certify(learner)
    assert made.valid and np.isclose(made.tally.weight, h[20:].sum())
    loss = learner.loss
    theirs = sum(
        w * loss.value_and_grad(np.ones((3, 3)) @ x, int(k))[0]
        for x, k, w in zip(X[20:], y[20:], h[20:], strict=True)
    )
    assert np.isclose(made.comparator_loss, theirs)


class Counts:
    """A model of another library, which counts the labels by their weights."""

    def __init__(self):
        self.counts = {}

    def learn_one(self, x, y, w=1.0):
        self.counts[y] = self.counts.get(y, 0.0) + w

    def predict_proba_one(self, x):
        return self.counts


class Deaf(Counts):
    """The same, without weights."""

    def learn_one(self, x, y):
        super().learn_one(x, y)


def test_models_of_other_libraries_are_told_of_weights():
    X, y, h = stream()
    member = dl.members.River(TASK, Counts())
    trace = member.run(X, y, sample_weight=h)
    expected = {k: h[y == k].sum() for k in range(3)}
    assert member.model.counts == pytest.approx(expected)
    assert np.array_equal(trace.risk, h * (trace.prediction != y))
    assert dl.certify(trace, None, X, y, sample_weight=h).valid


def test_models_without_weights_refuse_all_but_0_and_1():
    X, y, h = stream()
    member = dl.members.River(TASK, Deaf())
    member.run(X, y, sample_weight=(h > 0.0).astype(float))
    assert sum(member.model.counts.values()) == np.count_nonzero(h)
    with pytest.raises(dl.InputError, match="the model Deaf raised TypeError.*'w'"):
        member.run(X, y, sample_weight=h)


def test_one_heavy_round_does_not_end_all_learning():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6000, 4))
    y, h = (X[:, 0] > 0.0).astype(int), np.ones(6000)
    h[100] = 1e6
    y[3000:] = 1 - y[3000:]
    loss = dl.losses.Scaled(dl.losses.Logistic(dl.tasks.Multiclass(2)), 2.0)
    for rate in (dl.rates.Constant(1.0), dl.rates.Polyak(monotone=False, cap=10.0)):
        learner = dl.OGD(loss, dl.decoders.Argmax(loss), rate, dl.domains.Ball(200.0))
        trace = learner.run(X, y, sample_weight=h)
        assert (trace.prediction != y)[5500:].mean() < 0.1


def test_traces_with_and_without_weights_are_not_joined():
    X, y, h = stream()
    for make in (ogd, committee):
        learner = make()
        one, two = learner.run(X, y, sample_weight=h), learner.run(X, y)
        for traces in ((one, two), (two, one)):
            with pytest.raises(dl.InputError, match="cannot be joined"):
                type(one).join(traces)


def test_an_account_takes_no_weights():
    X, y, h = stream()
    learner = ogd()
    learner.run(X[:5], y[:5])
    learner.watch(dl.comparators.Fixed(np.zeros((3, 3))))
    learner.run(X, y, sample_weight=h)
    with pytest.raises(dl.InputError, match="give no weights"):
        dl.certify(learner, sample_weight=h)


@pytest.mark.parametrize("plain", [False, True])
def test_relative_steps_grow_with_the_weight_and_limit_no_others(plain):
    rng, task = np.random.default_rng(0), dl.tasks.NDCG(2)
    sizes = [300, *rng.integers(3, 8, 40)]
    queries = [rng.normal(size=(n, 4)) for n in sizes]
    grades = [np.digitize(x[:, 0] + 0.5 * rng.normal(size=len(x)), [0.0, 1.0]) for x in queries]

    def play(weights):
        loss = dl.losses.Scaled(dl.losses.PairwiseLogistic(task, most=300), 2.0)
        rate = dl.rates.Relative(0.001)
        learner = dl.OGD(loss, dl.decoders.Argmax(loss), rate, dl.domains.Ball(1000.0))
        if plain:
            learner.engine = PlainEngine(learner.parts)
        trace = learner.run(queries, grades, sample_weight=weights)
        return learner, trace

    once, alone = play(np.ones(41))
    heavy = np.r_[1.5, np.ones(40)]
    more, first = play(heavy)
    assert np.allclose(first.eta[1:], alone.eta[1:], rtol=0.2)  # a long query limits no short ones
    twice, _ = play(np.full(41, 1.9))
    assert np.linalg.norm(twice.weights) == pytest.approx(
        1.9 * np.linalg.norm(once.weights), rel=0.1
    )
