"""Laws of convolutional Fenchel-Young losses, by enumeration of all labels and predictions."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import COSTS, TASKS

import driftline as dl
from driftline import engines
from driftline import polytopes as po

Q, E = dl.regularizers.Quadratic, dl.regularizers.Entropy
CFY = dl.losses.ConvolutionalFenchelYoung
T = dl.tasks


CASES = {
    "classes quadratic": ("classes", Q(1.0)),
    "classes entropy": ("classes", E(0.7)),
    "classes, whole space": ("classes", Q(0.5), True),
    "signs quadratic": ("signs", Q(0.6)),
    "signs entropy": ("signs", E(1.0)),
    "tags quadratic": ("tags", Q(0.5)),
    "tags entropy": ("tags", E(0.3)),
    "tags, whole space": ("tags", Q(1.0), True),
    "sets quadratic": ("sets", Q(1.0)),
    "sets entropy": ("sets", E(0.5)),
    "levels quadratic": ("levels", Q(0.5)),
    "levels, whole space": ("levels", Q(0.5), True),
    "rankings quadratic": ("rankings", Q(0.3)),
    "rankings, whole space": ("rankings", Q(0.3), True),
    "matchings entropy": ("matchings", E(0.5)),
    "matchings, whole space": ("matchings", Q(0.5), True),
    "words quadratic": ("words", Q(0.5)),
    "words entropy": ("words", E(0.4)),
    "chains entropy": ("chains", E(0.4)),
    "ndcg quadratic": ("ndcg", Q(0.7)),
    "ndcg, whole space": ("ndcg", Q(0.7), True),
    "ndcg of 4": ("ndcg of 4", Q(0.3)),
    "ndcg cut": ("ndcg cut", Q(0.5)),
    "ndcg exponential": ("ndcg exponential", Q(0.5)),
    "ndcg from 1": ("ndcg from 1", Q(0.5)),
    "ndcg from 1, whole space": ("ndcg from 1", Q(0.5), True),
    "ndcg of 1": ("ndcg of 1", Q(0.5)),
    "precision quadratic": ("precision", Q(0.6)),
    "precision, whole space": ("precision", Q(0.6), True),
    "precision of few": ("precision of few", Q(0.6)),
    "f1, whole space": ("f1", Q(0.5), True),
    "costs quadratic": ("costs", Q(0.5)),
    "costs entropy": ("costs", E(0.5)),
    "costs, whole space": ("costs", Q(0.5), True),
}
every_case = pytest.mark.parametrize("name", CASES)


def make(name):
    task_name, regularizer, *whole = CASES[name]
    task, labels, predictions, naive = TASKS[task_name]
    return CFY(task, regularizer, *whole), list(labels), list(predictions), naive


def encodings(loss, labels, predictions):
    rho = np.array([loss.task.encode(y) for y in labels])
    encode = loss.task.geometry.encode_loss
    return rho, np.array([encode(p, rho.shape[1]) for p in predictions])


def draw_scores(rho, seed):
    """Ordinary scores, ties, equal ones, confident ones, scores on the edge of a face."""
    generator = np.random.default_rng(seed)
    theta = generator.standard_normal(rho.shape[1]) * generator.choice([0.1, 1.0, 5.0])
    match seed % 5:
        case 1:
            theta = np.round(theta)
        case 2:
            theta = np.full(theta.size, theta[0])
        case 3:
            theta = theta * 0.1 + 3.0 * rho[seed % len(rho)]
    return theta


def tolerance(loss, theta):
    size = max(1.0, np.abs(theta).max())
    return (2e-9 if loss.inexact else 1e-12) * size


@every_case
@given(seed=st.integers(0, 10**6))
def test_the_move_is_best_and_the_identity_holds(name, seed):
    """Surrogate minus target is the Fenchel-Young loss at the moved scores, and nu is optimal."""
    loss, labels, predictions, _ = make(name)
    rho, losses = encodings(loss, labels, predictions)
    theta = draw_scores(rho, seed)
    decoder, omega = dl.decoders.Convolutional(loss), loss.regularizer
    nu = decoder.mean_loss_encoding(theta)
    moved, near = theta + nu, tolerance(loss, theta)
    hull = po.Space(theta.size) if loss.whole_space else loss.task.geometry.hull_of(theta)

    value, grad = loss.value_and_grad(theta, labels[0])
    mu = grad + rho[0]
    if loss.whole_space:
        np.testing.assert_allclose(mu, moved / omega.scale, atol=1e-11)
    elif isinstance(omega, Q):  # the variational inequality of a projection
        assert ((rho - mu) @ (moved - omega.scale * mu)).max() <= max(1e-9, near)
    else:
        np.testing.assert_allclose(mu, omega.mean_prediction(moved, hull), atol=1e-11)
    assert mu @ nu - (losses @ mu).min() <= max(1e-9, near)  # without this the rest is empty

    conjugate = moved @ mu - omega.value(mu, hull)
    for y, row in zip(labels, rho, strict=True):
        value, grad = loss.value_and_grad(theta, y)
        np.testing.assert_allclose(grad, mu - row, atol=1e-10)
        offset = loss.task.offset(y)
        by_hand = conjugate + omega.value(row, hull) + offset - theta @ row
        size = max(1.0, np.abs(theta).max())
        assert value == pytest.approx(by_hand, abs=max(1e-10 * size, near))
        risk = decoder.risk(theta, y)
        assert risk == pytest.approx(row @ nu + offset, abs=1e-12)
        rest = omega.value(row, hull) + conjugate - moved @ row
        assert value - risk == pytest.approx(rest, abs=max(1e-10 * size, near))
        assert value >= risk - 1e-12 and risk >= 0.0
        floor = decoder.rate_floor
        if isinstance(hull, po.Chain):  # stated for one position
            floor /= 2 * hull.length - 1
        assert value - risk >= 0.5 * floor * (grad @ grad) - max(1e-10 * size, near)
        if loss.whole_space:  # exactly
            assert value - risk == pytest.approx(0.5 * omega.scale * (grad @ grad), abs=1e-9)


@every_case
@given(seed=st.integers(0, 10**6))
def test_the_decoder_has_the_mean_that_it_says(name, seed):
    loss, labels, predictions, naive = make(name)
    rho, _ = encodings(loss, labels, predictions)
    theta = draw_scores(rho, seed)
    decoder = dl.decoders.Convolutional(loss)
    atoms, weights = decoder.distribution(theta)
    assert (weights > 0).all() and weights.sum() == pytest.approx(1.0)
    _, mixed = encodings(loss, labels[:1], atoms)
    near = 5e-5 if loss.inexact else 1e-9
    np.testing.assert_allclose(weights @ mixed, decoder.mean_loss_encoding(theta), atol=near)
    for y in labels[:: 1 + len(labels) // 5]:
        expected = sum(w * naive(a, y) for a, w in zip(atoms, weights, strict=True))
        assert decoder.risk(theta, y) == pytest.approx(expected, abs=near)
    drawn = decoder.draw(theta, np.array([0.37]))
    assert any(np.array_equal(drawn, p) for p in predictions)


@pytest.mark.parametrize("name", ["classes entropy", "ndcg quadratic", "precision quadratic"])
def test_draws_have_the_mean(name):
    loss, labels, predictions, _ = make(name)
    rho, _ = encodings(loss, labels, predictions)
    theta = 0.3 * np.random.default_rng(1).standard_normal(rho.shape[1])
    decoder = dl.decoders.Convolutional(loss)
    uniforms = np.random.default_rng(2).random((4000, 1))
    drawn = [decoder.draw(theta, u) for u in uniforms]
    _, mixed = encodings(loss, labels[:1], drawn)
    np.testing.assert_allclose(mixed.mean(axis=0), decoder.mean_loss_encoding(theta), atol=0.03)


@every_case
def test_the_gradient_is_the_derivative(name):
    loss, labels, predictions, _ = make(name)
    rho, _ = encodings(loss, labels, predictions)
    h = 1e-3 if loss.inexact else 1e-5
    for seed in (0, 5, 10):
        theta = draw_scores(rho, seed)
        direction = np.random.default_rng(seed + 1).standard_normal(theta.size)
        for y in (labels[0], labels[-1]):
            above, _ = loss.value_and_grad(theta + h * direction, y)
            below, _ = loss.value_and_grad(theta - h * direction, y)
            _, grad = loss.value_and_grad(theta, y)
            slack = 10 * h * (direction @ direction) / loss.rate_floor
            assert (above - below) / (2 * h) == pytest.approx(grad @ direction, abs=slack)


@every_case
@given(seed=st.integers(0, 10**6))
def test_excess_risk_transfers(name, seed):
    """Surrogate excess over a random label: a Fenchel-Young loss plus the target excess."""
    loss, labels, predictions, naive = make(name)
    rho, losses = encodings(loss, labels, predictions)
    theta = draw_scores(rho, seed)
    chances = np.random.default_rng(seed).dirichlet(np.full(len(labels), 0.5))
    omega, mean = loss.regularizer, chances @ rho
    hull = po.Space(theta.size) if loss.whole_space else loss.task.geometry.hull_of(theta)
    expected = np.array([naive(p, y) for y in labels for p in predictions])
    best = (chances @ expected.reshape(len(labels), len(predictions))).min()
    risk = chances @ [dl.decoders.Convolutional(loss).risk(theta, y) for y in labels]
    surrogate = chances @ [loss.value_and_grad(theta, y)[0] for y in labels]
    least = chances @ [omega.value(row, hull) for row in rho] - omega.value(mean, hull) + best
    value, grad = loss.value_and_grad(theta, labels[0])
    moved, mu = theta + loss.mean_loss_encoding(theta), grad + rho[0]
    rest = omega.loss(moved, mean, mu, hull)
    near = max(1e-9 * max(1.0, np.abs(theta).max()), tolerance(loss, theta))
    assert surrogate - least == pytest.approx(rest + risk - best, abs=near)
    assert surrogate >= least - near


@pytest.mark.parametrize(
    "name", ["classes quadratic", "tags quadratic", "ndcg of 4", "precision quadratic"]
)
def test_the_loss_vanishes_far_enough_inside(name):
    """For labels whose encoding is a vertex: at large scores in a direction that it wins."""
    loss, labels, predictions, _ = make(name)
    rho, _ = encodings(loss, labels, predictions)
    for y, row in zip(labels, rho, strict=True):
        others = rho[np.abs(rho - row).max(axis=1) > 1e-9]
        if name.startswith(("ndcg", "precision")):
            direction = np.where(row > 0, 1.0, -1.0)
        else:
            direction = row - rho.mean(axis=0)
        if (others @ direction).max(initial=-np.inf) >= row @ direction - 1e-9:
            continue
        assert loss.value_and_grad(20.0 * direction, y)[0] == pytest.approx(0.0, abs=1e-10)


# -- closed forms against the solver


class SlowQuadratic(Q):
    """A quadratic that does not call itself symmetric, and so is left to the solver."""

    symmetric = False


class SlowEntropy(E):
    """An entropy that does not call itself symmetric, and so is left to the solver."""

    symmetric = False


@pytest.mark.filterwarnings("ignore:.*symmetric.*")
@pytest.mark.parametrize("size", [0.3, 3.0, 1e6])
@pytest.mark.parametrize(
    "name",
    [n for n, c in CASES.items() if len(c) == 2 and not make(n)[0].inexact and n != "ndcg of 1"],
)
def test_closed_forms_agree_with_the_solver(name, size):
    loss, labels, predictions, _ = make(name)
    rho, _ = encodings(loss, labels, predictions)
    slow_type = SlowQuadratic if isinstance(loss.regularizer, Q) else SlowEntropy
    slow = CFY(loss.task, slow_type(loss.regularizer.scale), tolerance=1e-14)
    generator = np.random.default_rng(0)
    for trial in range(6):
        theta = size * generator.standard_normal(rho.shape[1])
        if trial % 3 == 1:
            theta = size * np.round(theta / size)
        if trial % 3 == 2:
            theta[:] = theta[0]
        y = labels[trial % len(labels)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", po.SolverWarning)
            wanted, wanted_grad = slow.value_and_grad(theta, y)
        value, grad = loss.value_and_grad(theta, y)
        assert value == pytest.approx(wanted, rel=1e-7, abs=1e-7)
        np.testing.assert_allclose(grad, wanted_grad, atol=1e-7)


def test_an_asymmetric_regularizer_is_left_to_the_solver_and_says_so_once():
    loss = CFY(dl.tasks.Multiclass(3), SlowQuadratic(1.0))
    with pytest.warns(UserWarning, match="does not call itself symmetric") as caught:
        for seed in range(3):
            loss.value_and_grad(np.random.default_rng(seed).standard_normal(3), 0)
    assert len(caught) == 1


# -- whole runs


def documents(task, rounds=300, features=6, flips=2, seed=0):
    """Queries of up to 7 documents, graded by planted weights that change."""
    generator = np.random.default_rng(seed)
    weights = generator.standard_normal((flips + 1, 1, features))
    weights /= np.linalg.norm(weights, axis=2, keepdims=True)
    starts = np.arange(flips + 1) * rounds // (flips + 1)
    comparator = dl.comparators.Piecewise(starts, 3.0 * weights)
    inputs, labels = [], []
    for t in range(rounds):
        x = generator.standard_normal((generator.integers(1, 8), features))
        x /= np.linalg.norm(x, axis=1, keepdims=True)
        inputs.append(x)
        level = 2.0 * (1 + task.highest - task.lowest) * (x @ comparator.at(t)[0]) / 3.0
        labels.append(np.clip(np.floor(level), task.lowest, task.highest).astype(int))
    return inputs, labels, comparator


def vectors(task, pick, rounds=120, features=4, flips=2, seed=0):
    """Inputs of norm 1, labelled from planted scores that change."""
    generator = np.random.default_rng(seed)
    weights = generator.standard_normal((flips + 1, task.dim, features))
    weights /= np.sqrt((weights**2).sum(axis=(1, 2), keepdims=True))
    starts = np.arange(flips + 1) * rounds // (flips + 1)
    comparator = dl.comparators.Piecewise(starts, 5.0 * weights)
    inputs = generator.standard_normal((rounds, features))
    inputs /= np.linalg.norm(inputs, axis=1, keepdims=True)
    labels = [pick(comparator.at(t) @ inputs[t]) for t in range(rounds)]
    return inputs, labels, comparator


RUNS = {
    "ndcg": (CFY(T.NDCG(3), Q(0.3)), None),
    "ndcg, whole space": (CFY(T.NDCG(3, cutoff=3), Q(0.3), True), None),
    "ndcg from 1": (CFY(T.NDCG(3, lowest=1), Q(0.3)), None),
    "precision": (CFY(T.PrecisionAtK(2), Q(0.3)), None),
    "f1": (CFY(T.FScore(3), Q(0.3), True), T.FScore(3).best_prediction),
    "costs": (CFY(T.CostSensitive(COSTS), E(0.3)), np.argmax),
    "costs quadratic": (CFY(T.CostSensitive(COSTS), Q(0.3)), np.argmax),
    "levels": (CFY(T.Ordinal(4), Q(0.3)), T.Ordinal(4).best_prediction),
    "classes": (CFY(T.Multiclass(4), E(0.5)), np.argmax),
    "tags": (CFY(T.Multilabel(4), Q(0.2)), T.Multilabel(4).best_prediction),
}


@pytest.mark.parametrize("monotone", [True, False])
@pytest.mark.parametrize("name", RUNS)
def test_runs_stay_within_the_theorem(name, monotone):
    loss, pick = RUNS[name]
    inputs, labels, comparator = documents(loss.task) if pick is None else vectors(loss.task, pick)
    diameter, cap = 20.0, np.inf if loss.bounded_rate or monotone else 50.0
    rate = dl.rates.Polyak(monotone=monotone, cap=cap)
    learner = dl.OGD(loss, rate=rate, domain=dl.domains.Ball(diameter))
    trace = learner.run(inputs, labels, seed=0)
    assert trace.admissible.all()
    floor = learner.decoder.rate_floor / learner.facts.largest_input**2
    assert trace.eta.min() >= floor * (1 - 1e-9)

    rows = loss.task.layout.rows(inputs)
    scores = [rows.scores(comparator.at(t), False, t, False) for t in range(len(labels))]
    theirs = np.array([loss.value_and_grad(s, y)[0] for s, y in zip(scores, labels, strict=True)])
    path = comparator.path_length
    move = diameter * (diameter / 2 + path)
    solver = 0.0 if trace.gap is None else trace.gap.sum()
    if monotone:
        assert trace.risk.sum() <= theirs.sum() + move / trace.eta[-1] + solver
        assert trace.risk.sum() <= theirs.sum() + move / floor + solver
    else:
        weighted = trace.eta @ theirs + move + trace.eta.max() * solver
        assert trace.eta @ trace.risk <= weighted


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("name", ["ndcg", "ndcg, whole space", "precision", "classes", "tags"])
def test_compiled_rounds_equal_plain_ones(name, intercept):
    loss, pick = RUNS[name]
    inputs, labels, _ = documents(loss.task) if pick is None else vectors(loss.task, pick)
    fast, slow = (dl.OGD(loss, intercept=intercept) for _ in range(2))
    slow.engine = engines.PlainEngine(slow.parts)
    assert isinstance(fast.engine, engines.CompiledEngine)
    one, two = (learner.run(inputs, labels, seed=3) for learner in (fast, slow))
    for column in ("loss", "risk", "target_loss", "eta", "grad_sq"):
        np.testing.assert_allclose(
            getattr(one, column), getattr(two, column), rtol=1e-9, atol=1e-12
        )
    np.testing.assert_array_equal(one.prediction, two.prediction)
    np.testing.assert_allclose(fast.weights, slow.weights, rtol=1e-9, atol=1e-12)


def test_queries_come_as_lists_arrays_or_sparse_rows_in_one_piece_or_many():
    from scipy.sparse import csr_array

    loss = CFY(T.NDCG(3), Q(0.3))
    inputs, labels, _ = documents(loss.task, rounds=60)
    starts = np.cumsum([0, *map(len, inputs)])
    whole = np.concatenate(inputs)
    traces = [
        dl.OGD(loss).run(i, labels) for i in (inputs, (whole, starts), (csr_array(whole), starts))
    ]
    pieces = dl.OGD(loss)
    parts = [pieces.run(inputs[a:b], labels[a:b]) for a, b in ((0, 1), (1, 40), (40, 60))]
    stepping = dl.OGD(loss)
    steps = []
    for x, y in zip(inputs, labels, strict=True):
        seen = stepping.predict(x)
        steps.append(stepping.step(x, y))
        np.testing.assert_array_equal(seen, steps[-1].prediction)
    for column in ("loss", "risk", "target_loss", "eta", "grad_sq"):
        first = getattr(traces[0], column)
        for trace in traces[1:]:
            np.testing.assert_array_equal(first, getattr(trace, column))
        np.testing.assert_array_equal(first, np.concatenate([getattr(p, column) for p in parts]))
        np.testing.assert_array_equal(first, [getattr(s, column) for s in steps])


@pytest.mark.parametrize("task", [T.NDCG(2), T.PrecisionAtK(2)])
@pytest.mark.parametrize("whole", [False, True])
def test_a_query_without_relevance_costs_nothing_and_makes_no_step(task, whole):
    learner = dl.OGD(CFY(task, Q(0.5), whole))
    x = np.eye(3)
    learner.step(x, [1, 0, 0])
    before = learner.weights
    made = learner.step(2.0 * x, [0, 0, 0])
    assert (made.loss, made.risk, made.target_loss, made.grad_sq) == (0.0, 0.0, 0.0, 0.0)
    np.testing.assert_array_equal(learner.weights, before)
    assert learner.loss.value_and_grad([1.0, 2.0, 3.0], [0, 0, 0])[0] == 0.0
    alone = learner.step(x[:1], [1])  # one document: nothing to order
    assert alone.target_loss == 0.0 and alone.risk == 0.0


def test_many_documents():
    """Ranks are an order, and draws cost on average what the risk says."""
    loss = CFY(T.NDCG(4), Q(0.3))
    generator = np.random.default_rng(0)
    theta = 0.4 * generator.standard_normal(3000)
    label = generator.integers(0, 5, 3000)
    decoder = dl.decoders.Convolutional(loss)
    drawn = [decoder.draw(theta, generator.random(1)) for _ in range(200)]
    assert all(np.array_equal(np.sort(ranks), np.arange(3000)) for ranks in drawn)
    losses = [loss.task.loss(ranks, label) for ranks in drawn]
    assert np.mean(losses) == pytest.approx(decoder.risk(theta, label), abs=5 * np.std(losses) / 14)


@pytest.mark.parametrize("name", ["ndcg", "ndcg cut", "precision"])
def test_guessing_costs_the_mean_over_all_predictions(name):
    task, labels, predictions, naive = TASKS[name]
    for y in labels:
        assert task.guess.of(y) == pytest.approx(np.mean([naive(p, y) for p in predictions]))


@pytest.mark.parametrize("name", ["ndcg", "ndcg cut", "precision"])
def test_argmax_sorts_by_score(name):
    loss, labels, predictions, naive = make(f"{name} quadratic" if name != "ndcg cut" else name)
    decoder = dl.decoders.Argmax(loss)
    theta = np.array([0.3, 0.3, -1.0, 2.0])[: len(labels[0])]
    best = decoder.draw(theta, np.array([0.5]))
    for y in labels:
        assert decoder.risk(theta, y) == pytest.approx(naive(best, y))


# -- bad input


@pytest.mark.parametrize(
    "make_it, words",
    [
        (lambda: T.NDCG(2).labels.check([0, 3]), "grades must lie in 0..2, but one is 3"),
        (lambda: T.NDCG(2, lowest=1).labels.check([0, 1]), "in 1..2, but one is 0"),
        (lambda: T.NDCG(2).labels.check_all([[0, 1], [0.5]]), "query 1: grades must be whole"),
        (lambda: T.NDCG(2).labels.check([]), "has shape"),
        (lambda: T.NDCG(0), "above 0"),
        (lambda: T.NDCG(2, lowest=2), "0 or 1"),
        (lambda: T.NDCG(2, discount="sqrt"), "'log2', 'reciprocal'"),
        (lambda: T.NDCG(2, discount=(1.0, -0.5)), "never be negative"),
        (lambda: T.NDCG(2, discount=(0.5, 1.0)), "fall from rank to rank"),
        (lambda: T.NDCG(2, discount=(0.0, 0.0)), "from above 0"),
        (lambda: T.NDCG(2, cutoff=0), "1 rank or more"),
        (lambda: T.NDCG(2, gain="square"), "'linear' or 'exponential'"),
        (lambda: T.NDCG(2).loss([0, 0, 1], [1, 0, 2]), "an order of 0, 1"),
        (lambda: T.NDCG(2).loss([0, 1], [1, 0, 2]), "do not fit"),
        (lambda: T.PrecisionAtK(0), "at least 1"),
        (lambda: T.PrecisionAtK(3, items=2), "cannot be chosen"),
        (lambda: T.PrecisionAtK(2).loss([0, 0], [1, 0, 1]), "2 items"),
        (lambda: T.PrecisionAtK(2).loss([0, 5], [1, 0, 1]), "0..2"),
        (lambda: T.PrecisionAtK(2).labels.check([0, 2]), "relevances must lie in 0..1"),
        (lambda: T.FScore(0), "1 tag or more"),
        (lambda: T.FScore(2).labels.check([1, 2]), "zeros and ones"),
        (lambda: CFY(T.NDCG(2), E()), "is not known on"),
        (lambda: CFY(T.Multiclass(2), E(), True), "only a quadratic"),
        (lambda: CFY(T.Multiclass(2), Q(), tolerance=0.0), "tolerance"),
        (lambda: CFY(T.NDCG(2)).value_and_grad([1.0, 2.0], [1, 0, 2]), "2 scores do not fit"),
        (lambda: dl.decoders.Convolutional(dl.losses.Logistic(T.Multiclass(2))), "needs a Conv"),
    ],
)
def test_bad_input_is_named(make_it, words):
    with pytest.raises((dl.InputError, dl.NoGuaranteeError), match=words):
        make_it()


@pytest.mark.parametrize(
    "inputs, labels, words",
    [
        ([np.eye(3)], [[1, 0]], "set 0 has 3 items, but its label has 2"),
        ([np.eye(3)], [[1, 0, 4]], "query 0: grades must lie in 0..2"),
        ([np.full((2, 3), np.nan)], [[1, 0]], "expected finite numbers"),
        ([np.eye(2)], [[1, 0]], "2 features"),
    ],
)
def test_a_bad_query_leaves_the_learner_unchanged(inputs, labels, words):
    learner = dl.OGD(CFY(T.NDCG(2), Q(0.5)))
    learner.run([np.eye(3)], [[2, 0, 1]])
    before = learner.weights
    with pytest.raises(dl.InputError, match=words):
        learner.run(inputs, labels)
    with pytest.raises(dl.InputError, match=words.replace("query 0: ", "")):
        learner.step(inputs[0], labels[0])
    np.testing.assert_array_equal(learner.weights, before)


def test_many_tags_say_what_they_cost():
    with pytest.warns(UserWarning, match="10001 scores"):
        T.FScore(100)


def test_a_convolutional_learner_is_described_and_read_back():
    learner = dl.OGD(CFY(T.NDCG(2, discount=(1.0, 0.5)), Q(0.5)))
    assert "theorem 2 (convolutional)" in learner.describe()
    from driftline.parts import from_config

    assert from_config(learner.loss.config()) == learner.loss
    assert from_config(learner.decoder.config()) == learner.decoder


SOLVED = [CFY(T.FScore(3)), CFY(T.FScore(4)), CFY(T.CostSensitive(COSTS)), CFY(T.Matching(3))]


@pytest.mark.parametrize("loss", SOLVED, ids=repr)
def test_runs_of_a_solver_pass_their_audit(loss):
    """A step may lie above its range by the solver's gap, which the bound adds."""
    for seed in range(12):
        stream = dl.streams.Planted(loss.task, rounds=60, flips=0, seed=seed)
        trace = dl.OGD(loss).run(stream)
        weights = np.zeros((loss.task.dim, stream.inputs.shape[1]))
        certificate = dl.certify(trace, dl.comparators.Fixed(weights), stream.inputs, stream.labels)
        assert trace.admissible.all() and certificate.findings == (), seed
