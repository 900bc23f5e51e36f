"""No run ever exceeds a bound that is called valid; every term of a bound is needed."""

import dataclasses

import numpy as np
import pytest
from howmany import number
from hypothesis import given
from hypothesis import strategies as st

import driftline as dl
from driftline.regret import Tally, Watched
from driftline.state import State

L, T, D = dl.losses, dl.tasks, dl.decoders
Q, E = dl.regularizers.Quadratic, dl.regularizers.Entropy


def scaled(loss, factor):
    made = L.Scaled(loss, factor)
    return made, D.Argmax(made)


def own(loss):
    return loss, None


COSTS = [[0.0, 1.0, 0.3], [0.7, 0.0, 0.3], [1.0, 0.4, 0.0]]

#: A loss with its decoder for every kind of task.
PAIRS = {
    "logistic, gap-optimal": own(L.Logistic(T.Multiclass(3))),
    "logistic, step-optimal": (
        L.Logistic(T.Multiclass(3)),
        D.StepOptimal(L.Logistic(T.Multiclass(3))),
    ),
    "logistic, uniform mix": (
        L.Logistic(T.Multiclass(3)),
        D.UniformMix(L.Logistic(T.Multiclass(3))),
    ),
    "logistic, lazy": (L.Logistic(T.Multiclass(3)), D.Lazy(L.Logistic(T.Multiclass(3)))),
    "hinge, argmax": scaled(L.SmoothHinge(T.Multiclass(3)), 4.0),
    "signs": own(L.Logistic(T.Binary())),
    "tags": own(L.Logistic(T.Multilabel(3))),
    "sparse tags": own(L.SparseMAP(T.Multilabel(4), 1.0)),
    "levels": own(L.SparseMAP(T.Ordinal(4), 2.0)),
    "sets": own(L.SparseMAP(T.FixedSize(4, 2), 2.0)),
    "rankings": own(L.SparseMAP(T.LabelRanking(4), 1.0)),
    "matchings": own(L.SparseMAP(T.Matching(3), 2.0)),
    "classes, convolutional": own(L.ConvolutionalFenchelYoung(T.Multiclass(3), E(0.5))),
    "costs, convolutional": own(L.ConvolutionalFenchelYoung(T.CostSensitive(COSTS), Q(0.5))),
    "sequences": own(L.CRF(T.Sequence(3))),
    "sequences, marginals": (L.CRF(T.Sequence(3)), D.Marginal(L.CRF(T.Sequence(3)))),
    "ndcg": own(L.ConvolutionalFenchelYoung(T.NDCG(2), Q(0.5))),
    "precision": own(L.ConvolutionalFenchelYoung(T.PrecisionAtK(2), Q(0.5))),
}

RATES = {
    "polyak": dl.rates.Polyak(),
    "free": dl.rates.Polyak(monotone=False, cap=50.0),
    "adagrad": dl.rates.AdaGrad(),
    "large constant": dl.rates.Constant(0.7),
}


def any_label(task, generator, size):
    match task:
        case T.Sequence():
            return generator.integers(0, task.tags, size)
        case T.NDCG():
            return generator.integers(0, 3, size)
        case T.PrecisionAtK():
            return generator.integers(0, 2, size)
        case T.Multilabel():
            return generator.integers(0, 2, task.tags)
        case T.FixedSize():
            return generator.permutation(np.r_[np.ones(2, int), np.zeros(2, int)])
        case T.LabelRanking():
            return generator.permutation(task.items)
        case T.Matching():
            return generator.permutation(task.size)
        case T.Binary():
            return int(generator.choice([-1, 1]))
        case _:
            return int(generator.integers(0, 3))


def random_stream(task, rounds, seed, features=3):
    """Random labels: the worst kind of noise there is."""
    generator = np.random.default_rng(seed)
    sizes = generator.integers(2, 5, rounds)
    labels = [any_label(task, generator, int(size)) for size in sizes]
    if task.layout.ragged:
        return [generator.standard_normal((size, features)) / 2 for size in sizes], labels
    inputs = generator.standard_normal((rounds, features))
    return inputs / np.linalg.norm(inputs, axis=1, keepdims=True), labels


def random_comparator(shape, rounds, seed, radius):
    generator = np.random.default_rng(seed)
    kind = seed % 3
    pieces = 1 if kind == 0 else int(generator.integers(2, 5))
    count = rounds if kind == 2 else pieces
    weights = generator.standard_normal((count, *shape))
    norms = np.sqrt((weights**2).sum(axis=(1, 2), keepdims=True))
    weights *= radius * generator.random((count, 1, 1)) / norms
    if kind == 0:
        return dl.comparators.Fixed(weights[0])
    if kind == 2:
        return dl.comparators.Sequence(weights)
    starts = np.r_[0, np.sort(generator.choice(np.arange(1, rounds), pieces - 1, replace=False))]
    return dl.comparators.Piecewise(starts, weights)


def make(pair, rate, rounds=40, seed=0, diameter=6.0):
    loss, decoder = PAIRS[pair]
    stream = random_stream(loss.task, rounds, seed)
    learner = dl.OGD(loss, decoder, RATES[rate], dl.domains.Ball(diameter))
    trace = learner.run(*stream, seed=seed, audit=True)
    comparator = random_comparator(learner.weights.shape, rounds, seed, diameter / 2)
    return learner, trace, comparator, stream


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("pair", PAIRS)
def test_no_total_exceeds_its_bounds(pair, rate):
    first = [*PAIRS].index(pair) + [*RATES].index(rate)  # all kinds of comparators come up
    for seed in (k % 6 for k in range(first, first + number(1, 6))):
        learner, trace, comparator, stream = make(pair, rate, seed=seed)
        made = dl.certify(trace, comparator, *stream)
        assert made.valid, (seed, str(made))
        assert made.expected == pytest.approx(trace.risk.sum(), rel=1e-6)
        assert made.sampled == trace.target_loss.sum()
        slack = 1e-7 * (1.0 + made.diameter)
        assert made.expected <= made.exact + slack
        assert made.exact <= made.diameter + slack
        if rate == "polyak":
            assert made.diameter <= made.worst_case + slack
        generator = np.random.default_rng(seed)
        for _ in range(5):
            start, stop = np.sort(generator.choice(41, 2, replace=False))
            part = made.over(int(start), int(stop))
            assert part.expected <= part.exact + slack and part.exact <= part.diameter + slack
            assert part.weighted_total <= part.weighted_bound + slack
            assert part.expected == pytest.approx(trace.risk[start:stop].sum(), rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("pair", ["logistic, gap-optimal", "levels", "ndcg", "sequences"])
def test_comparator_losses_and_distances_are_those_computed_plainly(pair):
    for seed in range(3):
        learner, trace, comparator, (inputs, labels) = make(pair, "polyak", seed=seed)
        made = dl.certify(trace, comparator, inputs, labels)
        loss, again = learner.loss, dl.OGD(*learner.parts[:4])
        rows = loss.task.layout.rows(inputs)
        theirs, previous, path = 0.0, None, 0.0
        pieces = [w for w, stop in comparator.pieces(0, 40) for w in [w]]
        if isinstance(comparator, dl.comparators.Piecewise):
            pieces = [comparator.at(t) for t in range(40)]
        for t in range(40):
            U = pieces[t]
            W = np.zeros_like(U) if t == 0 else again.weights
            assert made.rounds_seen.distance[t] == pytest.approx(((W - U) ** 2).sum(), abs=1e-8)
            value, _ = loss.value_and_grad(rows.scores(U, False, t, False), labels[t])
            theirs += value
            path += 0.0 if previous is None else float(np.linalg.norm(U - previous))
            previous = U
            again.step(inputs[t], labels[t])
        assert made.comparator_loss == pytest.approx(theirs, rel=1e-9)
        plain = dl.certificates.surrogate_losses(comparator, loss, inputs, labels)
        assert plain.sum() == pytest.approx(theirs, rel=1e-9)
        assert comparator.path_length == pytest.approx(path, abs=1e-9)
        assert made.path_length == pytest.approx(path, abs=1e-9)
        assert made.tally.end == pytest.approx(((again.weights - previous) ** 2).sum(), abs=1e-8)


# -- every term counts


def straight_line(comparator_moves, restarts=()):
    """One weight, linear losses: the exact form is an equation."""
    generator = np.random.default_rng(0)
    rounds, w = 30, 0.0
    u = np.where(np.arange(rounds) < 15, 0.7, -0.4) if comparator_moves else np.full(rounds, 0.7)
    columns = {name: np.empty(rounds) for name in Watched.__dataclass_fields__ if name != "end"}
    columns["restarted"] = np.isin(np.arange(rounds), restarts)
    columns["idle"] = np.zeros(rounds, dtype=bool)
    for t in range(rounds):
        old, w = w, 0.0 if t in restarts else w
        slope, eta = generator.standard_normal(), float(generator.uniform(0.1, 1.0))
        before = u[t - 1] if t else u[0]
        loss = 3.0 + slope * w  # linear: convexity loses nothing
        columns["loss"][t], columns["comparator_loss"][t] = loss, 3.0 + slope * u[t]
        columns["risk"][t] = columns["target_loss"][t] = 0.4 * loss
        columns["eta"][t], columns["grad_sq"][t], columns["gap"][t] = eta, slope**2, 0.0
        columns["distance"][t], columns["old_distance"][t] = (w - u[t]) ** 2, (old - before) ** 2
        columns["move"][t] = abs(u[t] - before)
        w -= eta * slope
    return Watched(**columns, end=(w - u[-1]) ** 2)


@pytest.mark.parametrize("moves", [False, True])
@pytest.mark.parametrize("restarts", [(), (7, 15, 22)])
def test_exact_and_weighted_forms_are_equations_on_linear_losses(moves, restarts):
    tally = Tally()
    tally.add(straight_line(moves, restarts))
    assert tally.exact == pytest.approx(tally.risk, abs=1e-10)
    assert tally.weighted_bound == pytest.approx(tally.weighted_risk, abs=1e-10)


@pytest.mark.parametrize(
    "term",
    ["owed", "telescope", "residual", "first_distance", "end", "gap"],
)
def test_leaving_out_any_term_breaks_the_equation(term):
    tally = Tally()
    tally.add(straight_line(True))
    tally.gap = 0.25  # stands for what a solver left
    broken = dataclasses.replace(tally, **{term: 0.0})
    assert abs(broken.exact - tally.exact) > 1e-3
    if term not in ("telescope", "gap", "owed", "residual"):
        assert abs(broken.weighted_bound - tally.weighted_bound) > 1e-3
    for other in ("weighted_loss", "weighted_rest"):
        assert (
            abs(dataclasses.replace(tally, **{other: 0.0}).weighted_bound - tally.weighted_bound)
            > 1e-3
        )


@pytest.mark.parametrize("term", ["rises", "charged", "first_distance", "residual"])
def test_the_diameter_form_needs_all_its_terms(term):
    """A comparator that runs away each time the learner has come near, at falling steps."""
    rounds, w = 12, 0.5 if term == "rises" else 0.0
    names = [name for name in Watched.__dataclass_fields__ if name != "end"]
    flags = {name: np.zeros(rounds, bool) for name in ("restarted", "idle")}
    columns = {name: np.zeros(rounds) for name in names} | flags
    u = 0.5 if term != "rises" else -0.5
    before = u
    for t in range(rounds):
        eta = {"rises": 0.05 / (1 + t), "residual": 3.0}.get(term, 1.0)
        if term == "charged":
            u = -0.5 if w > 0 else 0.5
        slope = np.sign(w - u) or 1.0
        columns["loss"][t], columns["comparator_loss"][t] = 10.0 + slope * w, 10.0 + slope * u
        gap = 0.5 * eta * slope**2 if term != "residual" else 0.0
        columns["risk"][t] = columns["loss"][t] - gap
        columns["eta"][t], columns["grad_sq"][t] = eta, slope**2
        columns["distance"][t], columns["old_distance"][t] = (w - u) ** 2, (w - before) ** 2
        columns["move"][t] = abs(u - before)
        before = u
        w = float(np.clip(w - eta * slope, -0.5, 0.5))
    tally = Tally()
    tally.add(Watched(**columns, end=(w - u) ** 2))
    assert tally.risk <= tally.diameter(1.0) + 1e-12
    broken = dataclasses.replace(tally, **{term: 0.0})
    if term == "first_distance":
        assert broken.diameter(1.0) < tally.diameter(1.0)
    else:
        assert broken.risk > broken.diameter(1.0)


# -- what the audit finds


def test_a_step_outside_its_range_is_caught_and_named():
    class Greedy(dl.rates.Polyak):
        kernel = None

        def next(self, loss, risk, grad_sq, input_sq, previous, setting, memory):
            return 3.0 * 2.0 * (loss - risk) / grad_sq

    loss = L.Logistic(T.Multiclass(3))
    stream = random_stream(loss.task, 30, 0)
    trace = dl.OGD(loss, rate=Greedy()).run(*stream)
    config = dict(trace.config, rate=dl.rates.Polyak().config())
    comparator = dl.comparators.Fixed(np.zeros((3, 3)))
    made = dl.certify(dataclasses.replace(trace, config=config), comparator, *stream)
    assert not made.valid and any("above the admissible range" in f for f in made.findings)
    assert made.expected <= made.exact + 1e-9  # the account holds all the same


def test_a_trace_that_was_tampered_with_is_found_out():
    _, trace, comparator, stream = make("logistic, gap-optimal", "polyak", seed=3)
    better = dataclasses.replace(trace, risk=0.5 * trace.risk)
    made = dl.certify(better, comparator, *stream)
    assert not made.valid and "the risk is" in str(made)
    assert made.expected == pytest.approx(trace.risk.sum())
    steps = trace.eta.copy()
    steps[5] *= 0.5
    found = dl.certify(dataclasses.replace(trace, eta=steps), comparator, *stream).findings
    assert any("loss is" in finding for finding in found)
    other = np.roll(np.asarray(stream[1]), 1)
    found = dl.certify(trace, comparator, stream[0], other).findings
    assert any("fingerprint" in finding for finding in found)


# -- accounts kept while running


@pytest.mark.parametrize("pair", ["logistic, gap-optimal", "levels", "ndcg", "tags"])
def test_an_account_kept_online_is_the_certificate(pair):
    loss, decoder = PAIRS[pair]
    inputs, labels = random_stream(loss.task, 40, 1)
    plain = dl.OGD(loss, decoder, domain=dl.domains.Ball(6.0))
    trace = plain.run(inputs, labels, audit=True)
    comparator = random_comparator(plain.weights.shape, 40, 1, 3.0)
    wanted = dl.certify(trace, comparator, inputs, labels)
    learner = dl.OGD(loss, decoder, domain=dl.domains.Ball(6.0))
    learner.watch(comparator)
    learner.run(inputs[:10], labels[:10])
    for t in range(10, 25):
        learner.step(inputs[t], labels[t])
    learner.run(inputs[25:], labels[25:])
    made = dl.certify(learner)
    for name in ("expected", "comparator_loss", "path_length", "exact", "diameter", "worst_case"):
        assert getattr(made, name) == pytest.approx(getattr(wanted, name), rel=1e-7), name
    assert made.weighted_bound == pytest.approx(wanted.weighted_bound, rel=1e-7)
    assert made.sampled == pytest.approx(wanted.sampled) and made.valid
    np.testing.assert_array_equal(learner.weights, plain.weights)


def test_a_refused_stream_leaves_the_account_as_it_was():
    loss = L.Logistic(T.Multiclass(3))
    inputs, labels = random_stream(loss.task, 20, 0)
    learner = dl.OGD(loss)
    learner.watch(dl.comparators.Fixed(np.ones((3, 3))))
    learner.run(inputs, labels)
    before = dataclasses.replace(learner.tally)
    inputs[10, 1] = np.nan
    with pytest.raises(dl.InputError, match="row 10"):
        learner.run(inputs, labels)
    assert learner.tally == before


def test_rounds_without_a_step_count_as_what_they_cost():
    """Without a rate floor a round may see no gap and make no step."""
    loss = L.SparseMAP(T.Multilabel(2), 0.1)
    decoder = D.NearestVertex(loss, allow_no_gap=True)
    stream = random_stream(loss.task, 60, 2)
    trace = dl.OGD(loss, decoder, domain=dl.domains.Ball(4.0)).run(*stream)
    idle = (trace.grad_sq > 0) & (trace.loss <= trace.risk)
    assert idle.any() and decoder.rate_floor == 0.0
    comparator = dl.comparators.Fixed(np.zeros((2, 3)))
    made = dl.certify(trace, comparator, *stream)
    assert made.findings == () and made.expected <= made.exact + 1e-9
    learner = dl.OGD(loss, decoder, domain=dl.domains.Ball(4.0))
    learner.watch(comparator)
    learner.run(*stream)
    assert dl.certify(learner).exact == pytest.approx(made.exact)


def test_a_refused_round_loses_no_move_of_the_comparator():
    loss = L.Logistic(T.Multiclass(3))
    inputs, labels = random_stream(loss.task, 6, 0)
    weights = np.random.default_rng(0).standard_normal((6, 3, 3))
    learner = dl.OGD(loss)
    learner.watch(dl.comparators.Sequence(weights))
    for t in range(6):
        with pytest.raises(dl.InputError):
            learner.step(np.full(3, np.nan), labels[t])
        learner.step(inputs[t], labels[t])
    path = np.linalg.norm(np.diff(weights, axis=0), axis=(1, 2)).sum()
    assert learner.tally.path_length == pytest.approx(path)


# -- sampled losses


def test_sampled_totals_stay_below_their_deviation():
    generator = np.random.default_rng(0)
    for rate in (0.01, 0.2, 0.5):
        above = 0
        for _ in range(300):
            risk = np.full(400, rate)
            drawn = (generator.random(400) < risk).astype(float)
            zeros = np.zeros(400)
            ones = np.ones(400)
            tally = Tally()
            quiet = np.zeros(400, dtype=bool)
            seen = (
                ones,
                risk,
                drawn,
                ones,
                zeros,
                zeros,
                ones,
                ones,
                ones,
                zeros,
                quiet,
                quiet,
                ones,
            )
            tally.add(Watched(*seen, 0.0))
            above += tally.sampled > tally.risk + tally.deviation(0.05)
            assert tally.deviation(0.05) < 8 * np.sqrt(tally.variance) + 8
        assert above <= 15  # 0.05 of 300


# -- bad input


def test_bad_input_is_named():
    learner, trace, _, stream = make("logistic, gap-optimal", "polyak", seed=0)
    fixed = dl.comparators.Fixed
    for comparator, words in (
        (fixed(np.ones((3, 3)) * 9), "must lie in the domain"),
        (fixed(np.ones((2, 3)) * 0.1), r"shape \(2, 3\), but the learner's have \(3, 3\)"),
        (dl.comparators.Sequence(np.zeros((5, 3, 3))), "ends after 5 rounds"),
    ):
        with pytest.raises(dl.InputError, match=words):
            dl.certify(trace, comparator, *stream)
    good = fixed(np.zeros((3, 3)))
    with pytest.raises(dl.InputError, match="the trace has 40 rounds, but there are 39"):
        dl.certify(trace, good, stream[0][:39], stream[1][:39])
    with pytest.raises(dl.InputError, match="expected a trace"):
        dl.certify(3, good, *stream)
    with pytest.raises(dl.InputError, match="inputs and labels"):
        dl.certify(trace, good)
    with pytest.raises(dl.InputError, match="audit=True"):
        dl.certify(dataclasses.replace(trace, origin=None), good, *stream)
    with pytest.raises(dl.InputError, match="no interval"):
        dl.certify(trace, good, *stream).over(10, 50)
    with pytest.raises(dl.InputError, match="keeps no account"):
        dl.certify(learner)
    loss = L.Logistic(T.Multiclass(3))
    free = dl.OGD(loss, rate=dl.rates.Constant(0.1), domain=dl.domains.Unbounded())
    made = dl.certify(free.run(*stream), good, *stream)
    assert made.expected <= made.exact
    with pytest.raises(dl.InputError, match="needs a bounded domain; `exact`"):
        _ = made.diameter
    assert "needs a bounded domain" in str(made)
    assert made.to_dict()["diameter"] is None
    greedy = dl.OGD(loss, rate=dl.rates.AdaGrad())
    with pytest.raises(dl.NoGuaranteeError, match=r"AdaGrad\(\) may leave"):
        _ = dl.certify(greedy.run(*stream), good, *stream).worst_case


def test_iterators_are_used_up_and_arrays_are_not():
    _, trace, _, stream = make("logistic, gap-optimal", "polyak", seed=0)
    weights = np.random.default_rng(0).standard_normal((40, 3, 3)) / 9
    whole = dl.comparators.Sequence(weights)
    once = dl.comparators.Sequence(iter(weights))
    first = dl.certify(trace, whole, *stream)
    assert dl.certify(trace, whole, *stream).exact == first.exact
    assert dl.certify(trace, once, *stream).exact == first.exact
    with pytest.raises(dl.InputError, match="is an iterator that has come to round 40"):
        dl.certify(trace, once, *stream)


@given(seed=st.integers(0, 10**6))
def test_intervals_hold_everywhere(seed):
    _, trace, comparator, stream = make("hinge, argmax", "free", rounds=64, seed=seed % 50)
    made = dl.certify(trace, comparator, *stream)
    parts = made.intervals(shortest=4)
    assert len(parts) == 1 + 2 + 4 + 8 + 16
    slack = 1e-9 * (1.0 + made.tally.surrogate)
    assert all(part.expected <= part.exact + slack for part in parts)
    assert made.tightest(4).exact - made.tightest(4).expected <= made.exact
    assert "rounds" in str(made.loosest(4))


# -- the worst case


@pytest.mark.parametrize("monotone", [True, False])
@pytest.mark.parametrize("together", [True, False])
def test_a_cap_below_the_step_of_short_inputs_is_the_least_step(monotone, together):
    stream = dl.streams.LabelFlips(rounds=2000, flips=1, seed=0)
    inputs = 0.1 * stream.inputs
    loss = L.Scaled(L.Logistic(stream.task), 2.0)
    rate = dl.rates.Polyak(monotone=monotone, cap=3.0)
    learner = dl.OGD(loss, D.Argmax(loss), rate)
    comparator = stream.comparator.scaled(9.0)
    if together:
        trace = dl.Committee([learner]).run(inputs, stream.labels)
        made = dl.certify(trace, comparator, inputs, stream.labels).members[0]
    else:
        trace = learner.run(inputs, stream.labels)
        made = dl.certify(trace, comparator, inputs, stream.labels)
    assert made.premises.floor == 3.0 and made.premises.spread == 1.0
    assert made.expected <= made.worst_case and made.valid
    assert made.worst_case - made.comparator_loss == pytest.approx(
        20.0 * (2.5 + made.path_length) / 3.0  # all steps are the cap, from the centre
    )


def test_the_free_rate_multiplies_solver_gaps_by_the_spread_of_its_steps():
    _, trace, comparator, stream = make("costs, convolutional", "free")
    made = dl.certify(trace, comparator, *stream)
    assert made.premises.spread > 10.0
    more = dataclasses.replace(made, tally=dataclasses.replace(made.tally, gap=made.tally.gap + 1))
    assert more.worst_case - made.worst_case == pytest.approx(made.premises.spread)


def test_the_worst_case_of_a_later_run_knows_the_inputs_of_earlier_ones():
    """A monotone rate never recovers from a long row, in whichever run it came."""
    loss = L.Logistic(T.Multiclass(3))
    inputs, labels = random_stream(loss.task, 200, 0)
    learner = dl.OGD(loss, domain=dl.domains.Ball(2.0))
    learner.run(30.0 * inputs, labels)
    trace = learner.run(inputs, labels)
    comparator = dl.comparators.Fixed(np.zeros((3, 3)))
    made = dl.certify(trace, comparator, inputs, labels)
    assert made.premises.floor <= trace.eta.min() * (1 + 1e-9) < 0.1


# -- what an audit no longer believes


def test_diameter_may_be_above_the_worst_case_where_early_rounds_make_no_step():
    """They record the floor for inputs of norm 1, and short inputs have a higher one."""
    loss = L.SmoothHinge(T.Binary())
    inputs, labels = 0.1 * np.ones((30, 1)), np.ones(30, dtype=int)
    learner = dl.OGD(loss, initial=[[10.0]], domain=dl.domains.Ball(20.0))
    trace = learner.run(inputs, labels)
    assert (trace.grad_sq == 0.0).all() and (trace.eta == learner.decoder.rate_floor).all()
    made = dl.certify(trace, dl.comparators.Fixed([[-10.0]]), inputs, labels)
    assert made.exact <= made.diameter and made.worst_case < made.diameter
    assert made.valid


def test_every_part_of_a_certificate_keeps_what_was_found():
    _, trace, comparator, stream = make("logistic, gap-optimal", "polyak", seed=3)
    made = dl.certify(dataclasses.replace(trace, risk=0.5 * trace.risk), comparator, *stream)
    parts = [made.over(3, 9), made.tightest(8), *made.intervals(10)]
    assert all(part.findings == made.findings and not part.valid for part in parts)


@pytest.mark.parametrize("pair", PAIRS)
def test_predictions_are_drawn_again(pair):
    _, trace, comparator, stream = make(pair, "polyak", seed=1)
    made = dl.certify(trace, comparator, *stream)
    assert made.valid and not made.unchecked
    assert made.sampled == pytest.approx(trace.target_loss.sum())
    zeros = dataclasses.replace(trace, target_loss=np.zeros(len(trace)))
    found = dl.certify(zeros, comparator, *stream)
    assert "the target_loss is" in str(found)
    assert found.sampled == pytest.approx(trace.target_loss.sum())
    if trace.prediction.ndim == 1:
        turned = trace.prediction[::-1].copy()
    else:
        turned = trace.prediction[:, ::-1].copy()
    if pair in ("sequences", "ndcg", "precision"):  # of different lengths
        return
    found = dl.certify(dataclasses.replace(trace, prediction=turned), comparator, *stream)
    assert "predictions are not what the decoder draws" in str(found)


def test_another_rate_or_detector_than_the_stated_one_is_found_out():
    loss, decoder = scaled(L.Logistic(T.Multiclass(3)), 2.0)
    stream = random_stream(loss.task, 60, 0)
    restart = dl.detectors.Cusum(0.3, 1.5, 0.05, 5)
    comparator = dl.comparators.Fixed(np.zeros((3, 3)))

    def found(trace, **parts):
        config = trace.config | {name: part.config() for name, part in parts.items()}
        made = dl.certify(dataclasses.replace(trace, config=config), comparator, *stream)
        return " ".join(made.findings)

    trace = dl.OGD(loss, decoder, dl.rates.Decaying(0.5), restart=restart).run(*stream)
    assert trace.restarted.any() and not found(trace)
    assert "steps are not those of Polyak" in found(trace, rate=dl.rates.Polyak())
    assert "new starts are not those of Cusum" in found(trace, restart=dl.detectors.Cusum())
    for t, flag in ((3, True), (int(np.argmax(trace.restarted)), False)):
        flags = trace.restarted.copy()
        flags[t] = flag
        assert "new starts are not those" in found(dataclasses.replace(trace, restarted=flags))
    alone = dl.OGD(loss, decoder).run(*stream)
    flags = np.zeros(60, dtype=bool)
    assert not found(dataclasses.replace(alone, restarted=flags))
    flags[5] = True
    assert "new starts are not those of None" in found(dataclasses.replace(alone, restarted=flags))


def test_a_step_below_the_range_is_found_out():
    _, trace, comparator, stream = make("logistic, gap-optimal", "polyak", seed=3)
    steps = trace.eta.copy()
    steps[20:] *= 1e-3
    slow = dataclasses.replace(trace, eta=steps)
    assert "steps are not those of" in str(dl.certify(slow, comparator, *stream))


def test_a_detector_or_rate_of_ones_own_is_replayed():
    class Every(dl.detectors.Detector):
        def memory(self):
            return (0.0,)

        def sees(self, loss, memory):
            memory[0] += 1.0
            return memory[0] >= 7.0

    loss, decoder = scaled(L.Logistic(T.Multiclass(3)), 2.0)
    stream = random_stream(loss.task, 60, 0)
    learner = dl.OGD(loss, decoder, dl.rates.AdaGrad(), restart=Every())
    learner.run(*stream)
    trace = learner.run(*stream)
    comparator = dl.comparators.Fixed(np.zeros((3, 3)))
    made = dl.certify(trace, comparator, *stream)
    assert made.valid, str(made)
    later = dataclasses.replace(trace, restarted=np.roll(trace.restarted, 1))
    assert not dl.certify(later, comparator, *stream).valid


def test_the_comparators_loss_is_its_loss_where_rounds_made_no_step():
    loss = L.SparseMAP(T.Multilabel(2), 0.1)
    decoder = D.NearestVertex(loss, allow_no_gap=True)
    inputs, labels = random_stream(loss.task, 60, 0)
    trace = dl.OGD(loss, decoder).run(inputs, labels)
    comparator = dl.comparators.Fixed(np.full((2, 3), 0.3))
    made = dl.certify(trace, comparator, inputs, labels)
    plain = dl.certificates.surrogate_losses(comparator, loss, inputs, labels)
    assert made.rounds_seen.idle.any()
    assert made.comparator_loss == pytest.approx(plain.sum()) != pytest.approx(made.tally.owed)
    assert made.valid and made.expected <= made.exact + 1e-9


@pytest.mark.parametrize("norm", [1e-20, 1e10, 1e20])
def test_bounds_hold_up_to_rounding_at_any_norm(norm):
    task = T.NDCG(2)
    for seed in range(10):
        documents, grades = random_stream(task, 40, seed)
        documents = [norm * rows for rows in documents]
        loss = L.ConvolutionalFenchelYoung(task, Q(0.5))
        trace = dl.OGD(loss, domain=dl.domains.Ball(6.0)).run(documents, grades)
        comparator = random_comparator((1, 3), 40, seed, 3.0)
        made = dl.certify(trace, comparator, documents, grades)
        assert made.valid, (seed, str(made))


class Halfspace(dl.domains.Domain):
    """Weights whose first entry is 1 at least, up to 9: no weights of 0."""

    diameter = 16.0

    def project(self, weights):
        weights = np.clip(weights, -4.0, 4.0)
        weights[0, 0] = max(weights[0, 0], 1.0)
        return weights


def test_weights_begin_inside_a_domain_of_ones_own_and_do_so_again():
    loss, decoder = scaled(L.Logistic(T.Multiclass(3)), 2.0)
    stream = random_stream(loss.task, 60, 0)
    restart = dl.detectors.Cusum(0.3, 1.5, 0.05, 5)
    first = np.zeros((3, 3))
    first[0, 0] = 1.0
    learner = dl.OGD(loss, decoder, domain=Halfspace(), restart=restart)
    np.testing.assert_array_equal(learner.scores([2.0, 0.0, 0.0]), [2.0, 0.0, 0.0])
    trace = learner.run(*stream)
    assert trace.restarted.any()
    np.testing.assert_array_equal(trace.first_weights, first)
    learner.engine.set_back()
    np.testing.assert_array_equal(learner.weights, first)
    made = dl.certify(trace, dl.comparators.Fixed(first), *stream)
    assert made.valid, str(made)


def test_guessing_costs_what_it_is_said_to():
    task = T.FScore(3)
    guesses = [[i, j, k] for i in (0, 1) for j in (0, 1) for k in (0, 1)]
    losses = [np.mean([task.loss(guess, label) for guess in guesses]) for label in guesses]
    assert task.guess.loss == pytest.approx(max(losses))

    def top(theta):
        return np.eye(3)[np.argmax(theta)]

    task = T.Oracle(3, top, loss_factor=-1.0, squared_norm=1.0)
    learner = dl.OGD(L.ConvolutionalFenchelYoung(task, Q(1.0)))
    learner.watch(dl.comparators.Fixed(np.zeros((3, 2))))
    inputs = np.random.default_rng(0).standard_normal((5, 2))
    learner.run(inputs, np.eye(3, dtype=int)[[0, 1, 2, 0, 1]])
    words = str(dl.certify(learner))
    assert "no overlap at all" in words and "uniform guessing" not in words
    assert task.guess.loss == task.loss([1, 0, 0], [0, 1, 0])


@pytest.mark.parametrize("safe, words", [(0.3, "the safest choice"), (0.9, "uniform guessing")])
def test_the_guess_of_costs_is_the_one_whose_loss_is_said(safe, words):
    task = T.CostSensitive([[0.0, 1.0, safe], [1.0, 0.0, safe]])
    assert task.guess.words == words
    uniform, fixed = (
        task.geometry.loss_matrix.mean(axis=1).max(),
        task.geometry.loss_matrix.max(axis=0).min(),
    )
    assert task.guess.loss == (fixed if words == "the safest choice" else uniform)


@pytest.mark.parametrize(
    "column, value, words",
    [
        ("eta", np.inf, "finite"),
        ("eta", 0.0, "positive"),
        ("risk", np.nan, "finite"),
        ("loss", np.zeros(3), "differ in length"),
        ("prediction", np.zeros(40), "must be int64"),
        ("restarted", np.zeros(40), "must be bool"),
        ("origin", State(weights=np.zeros((300_000, 3))), "weights of 3 rows, not 300000"),
    ],
)
def test_a_trace_in_memory_is_checked_as_one_from_a_file(column, value, words):
    _, trace, comparator, stream = make("logistic, gap-optimal", "polyak")
    if isinstance(value, float):
        changed = getattr(trace, column).copy()
        changed[7] = value
        value = changed
    with pytest.raises(dl.InputError, match=words):
        dl.certify(dataclasses.replace(trace, **{column: value}), comparator, *stream)


def test_a_ball_around_ones_own_weights_has_the_bounds_of_its_diameter():
    """Weights learned before, and a small ball around them: the bound is small, too."""
    stream = dl.streams.LabelFlips(rounds=600, flips=0, seed=0, form="matrix")
    loss, decoder = scaled(L.Logistic(stream.task), 2.0)
    before = dl.OGD(loss, decoder)
    before.run(stream.inputs[:300], stream.labels[:300])
    later = stream.inputs[300:], stream.labels[300:]
    near = dl.domains.BallAround(before.weights, 1.0)
    learner = dl.OGD(loss, decoder, domain=near, initial=before.weights)
    trace = learner.run(*later)
    made = dl.certify(trace, dl.comparators.Fixed(before.weights), *later)
    assert made.valid and made.premises.diameter == 1.0
    assert np.linalg.norm(learner.weights - before.weights) <= 0.5 + 1e-9
    wide = before.run(*later)
    assert (
        made.worst_case < 0.5 * dl.certify(wide, made_of(before.weights, 10.0), *later).worst_case
    )
    with pytest.raises(dl.InputError, match="must lie in the domain"):
        dl.certify(trace, dl.comparators.Fixed(np.zeros((2, 2))), *later)
    with pytest.raises(dl.InputError, match="rows of finite numbers"):
        dl.domains.BallAround([1.0, 2.0], 1.0)
    with pytest.raises(dl.InputError, match="the centre of their ball has"):
        dl.OGD(loss, decoder, domain=near).run(np.ones((3, 5)), [0, 1, 0])


def made_of(weights, radius):
    return dl.comparators.Fixed(weights * min(1.0, radius / np.linalg.norm(weights)))
