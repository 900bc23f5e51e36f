"""Compiled rounds of every structure are those of the plain engine, and keep all laws."""

import dataclasses

import numpy as np
import pytest
from scipy.sparse import csr_array

import driftline as dl
from driftline.engines import CompiledEngine, PlainEngine
from tests.howmany import examples, number

T, L, D, R = dl.tasks, dl.losses, dl.decoders, dl.rates
Q, E = dl.regularizers.Quadratic, dl.regularizers.Entropy

#: Fenchel-Young losses by task, with scales at which nearest-vertex decoding has a gap.
TASKS = {
    "levels": T.Ordinal(5),
    "two levels": T.Ordinal(2),
    "sets": T.FixedSize(6, 2),
    "large sets": T.FixedSize(40, 15),
    "rankings": T.LabelRanking(5),
    "long rankings": T.LabelRanking(40),
    "matchings": T.Matching(3),
    "larger matchings": T.Matching(6),
    "tags": T.Multilabel(4),
    "one tag": T.Multilabel(1),
    "classes": T.Multiclass(4),
    "sign": T.Binary(),
}

#: Sets of tags by their F scores.
SCORES = {"F1": T.FScore(4), "F1 of one tag": T.FScore(1), "F2": T.FScore(3, beta=2.0)}

#: Costs by a matrix: with an answer for doubt, and with more predictions than labels; and the
#: distance, under which several mixtures of predictions are best.
COSTS = {
    "doubt": T.CostSensitive([[0, 1, 0.3], [5, 0, 0.3]]),
    "many": T.CostSensitive([[0, 2.1, 1.3, 3, 1.2], [2.2, 0, 1, 0.1, 0.7], [1.4, 0.9, 1, 2, 0]]),
}
DISTANCE = T.CostSensitive(np.abs(np.subtract.outer(range(5), range(5))) / 4)


def fenchel_young(task, omega):
    """Return the loss with a scale that gives nearest-vertex decoding a gap."""
    loss = L.FenchelYoung(task, omega(1.0))
    ratio = loss.nearest_vertex_ratio
    return L.FenchelYoung(task, omega(2.0 * ratio)) if ratio else loss


def cases():
    """Yield a name, a loss and a decoder, for everything that runs compiled."""
    for name, task in TASKS.items():
        for omega in (Q, E):
            try:
                loss = fenchel_young(task, omega)
            except dl.InputError:
                continue  # no entropy is known for it
            kind = omega.__name__.lower()
            if loss.nearest_vertex_ratio is not None:
                yield f"{name}, {kind}, nearest", loss, D.NearestVertex(loss)
            if loss.argmax_ratio is not None:
                scaled = L.Scaled(loss, 2.0 * loss.argmax_ratio)
                yield f"{name}, {kind}, argmax", scaled, D.Argmax(scaled)
            for whole in (False, True) if omega is Q else (False,):
                if isinstance(task, T.Matching):
                    continue  # found by a solver in Python
                loss = L.ConvolutionalFenchelYoung(task, omega(0.7), whole_space=whole)
                words = "whole space" if whole else "convolutional"
                yield f"{name}, {kind}, {words}", loss, D.Convolutional(loss)
    for name, task in SCORES.items():
        loss = L.ConvolutionalFenchelYoung(task, Q(0.7))
        yield f"{name}, convolutional", loss, D.Convolutional(loss)
    for name, task in COSTS.items():
        for omega, whole in ((Q(0.5), False), (E(0.3), False), (Q(0.5), True)):
            loss = L.ConvolutionalFenchelYoung(task, omega, whole_space=whole)
            yield f"{name}, {omega!r}{', whole' * whole}", loss, D.Convolutional(loss)


CASES = {name: (loss, decoder) for name, loss, decoder in cases()}
every_case = pytest.mark.parametrize("name", CASES)


def made(name, **rest):
    loss, decoder = CASES[name]
    return dl.OGD(loss, decoder, R.Polyak(monotone=False, cap=20.0), seed=3, **rest)


def both(name, **rest):
    """Return a compiled learner and a plain one with the same parts."""
    fast, slow = made(name, **rest), made(name, **rest)
    assert type(fast.engine) is CompiledEngine
    state, slow.engine = slow.state, PlainEngine(slow.parts)
    slow.restore(state)
    return fast, slow


def stream_of(task, rounds=60, seed=0):
    return dl.streams.Planted(task, rounds=rounds, flips=2, features=4, noise=0.2, seed=seed)


@pytest.mark.parametrize("seed", examples(1, 10))
@every_case
def test_compiled_rounds_are_those_of_the_plain_engine(name, seed):
    task, rng = CASES[name][0].task, np.random.default_rng(seed)
    start = 0.1 * rng.normal(size=(task.dim, 4))  # from 0, matchings would be tied but for rounding
    fast, slow = both(name, initial=start)
    stream = stream_of(task, seed=seed)
    inputs = stream.inputs * rng.choice([0.1, 1.0, 5.0], (60, 1))
    one, two = fast.run(inputs, stream.labels), slow.run(inputs, stream.labels)
    for column in ("loss", "risk", "grad_sq"):
        assert np.allclose(getattr(one, column), getattr(two, column), rtol=1e-9, atol=1e-9), column
    clear = one.loss - one.risk > 1e-6 * (1.0 + one.loss)  # else the gap is lost in rounding
    assert np.allclose(one.eta[clear], two.eta[clear], rtol=1e-8)
    assert np.array_equal(one.prediction, two.prediction)
    assert np.allclose(one.target_loss, two.target_loss, atol=1e-12)
    assert np.allclose(fast.weights, slow.weights, rtol=1e-8, atol=1e-9)


@every_case
def test_sparse_rows_and_steps_have_the_same_rounds(name):
    whole, steps, sparse = made(name), made(name), made(name)
    stream = stream_of(whole.task, rounds=30)
    trace = whole.run(stream.inputs, stream.labels)
    for t in range(30):
        played = steps.step(stream.inputs[t], stream.labels[t])
        assert np.array_equal(played.prediction, trace.prediction[t])
    other = sparse.run(csr_array(stream.inputs), stream.labels)
    assert np.array_equal(trace.prediction, other.prediction)
    assert np.array_equal(whole.weights, steps.weights)
    error = 1e-9 if whole.loss.inexact else 1e-12  # a solver's last digits are its own
    assert np.allclose(whole.weights, sparse.weights, rtol=1e-9, atol=error)


@every_case
def test_certificates_replay_compiled_structures(name):
    learner = made(name)
    stream = stream_of(learner.task)
    trace = learner.run(stream)
    certificate = dl.certify(trace, stream.comparator, stream)
    assert certificate.valid, str(certificate)
    assert trace.risk.sum() <= certificate.exact + 1e-9


@pytest.mark.parametrize(
    "name", [name for name in CASES if name.startswith(("lev", "sets", "ran"))]
)
def test_single_precision_is_close(name):
    single, double = made(name, dtype=np.float32), made(name)
    stream = stream_of(single.task, rounds=40)
    single.run(stream)
    double.run(stream)
    assert np.allclose(single.weights, double.weights, rtol=1e-2, atol=1e-2)


def test_items_that_share_their_weights():
    task = T.LabelRanking(4, shared=True)
    loss = fenchel_young(task, Q)
    fast, slow = (dl.OGD(loss, D.NearestVertex(loss), seed=1) for _ in range(2))
    assert type(fast.engine) is CompiledEngine
    slow.engine = PlainEngine(slow.parts)
    rng = np.random.default_rng(0)
    inputs = [rng.normal(size=(4, 3)) for _ in range(50)]
    labels = [np.argsort(np.argsort(-x[:, 0])) for x in inputs]
    one, two = fast.run(inputs, labels), slow.run(inputs, labels)
    assert np.array_equal(one.prediction, two.prediction)
    assert np.allclose(one.loss, two.loss, atol=1e-9)


@pytest.mark.parametrize("n", [2, 3, 5])
def test_the_joint_problem_of_matchings_is_solved_as_by_frank_wolfe(n):
    rng, task = np.random.default_rng(n), T.Matching(n)
    for k in range(number(6, 40)):
        scale, theta = float(rng.choice([0.3, 1.0, 3.0])), rng.normal(size=n * n)
        theta *= 10.0 ** rng.uniform(-3, 2)
        loss = L.ConvolutionalFenchelYoung(task, Q(scale))
        label, work, grad = rng.permutation(n), np.empty(loss.workspace(n * n)), np.empty(n * n)
        params, target = np.array(loss.params(n * n)), task.encode(label)
        value = loss.kernels.loss(theta, target, params, work, grad)
        wanted, slope = loss.value_and_grad(theta, label)
        size = max(1.0, np.abs(theta).max())
        assert 0.0 <= work[loss.gap_place(n * n)] <= 1e-11 * size, k
        assert abs(value - wanted) <= 1e-8 * size and np.allclose(grad, slope, atol=1e-4)
        move = -n * work[: n * n].reshape(n, n)  # the mean matching
        assert (move >= 0.0).all()
        assert np.allclose([move.sum(axis=0), move.sum(axis=1)], 1.0, atol=1e-12)


def test_convolutional_losses_of_matchings_run_compiled():
    task = T.Matching(4)
    loss = L.ConvolutionalFenchelYoung(task, Q(0.5))
    learner = dl.OGD(loss, seed=0)
    assert type(learner.engine) is CompiledEngine
    stream = stream_of(task, rounds=200)
    trace = learner.run(stream)
    assert (trace.gap >= 0.0).all() and trace.gap.max() <= 1e-10
    made = dl.certify(trace, stream.comparator, stream)
    assert made.valid and trace.risk.sum() <= made.exact + 1e-9
    assert trace.risk[-60:].mean() < trace.risk[:20].mean()


@pytest.mark.parametrize("kind", ["generic", "tied", "sure"])
@pytest.mark.parametrize("task", [*SCORES.values(), T.FScore(2)], ids=repr)
def test_the_joint_problem_of_f_scores_is_solved_as_by_frank_wolfe(task, kind):
    rng = np.random.default_rng(task.tags)
    for k in range(number(5, 40)):
        scale = float(rng.choice([0.3, 1.0, 3.0]))
        theta = rng.normal(size=task.dim) * 10.0 ** rng.uniform(-3, 2)
        if kind == "tied":
            theta = rng.integers(-2, 3, task.dim) / 2.0
        label = rng.integers(0, 2, task.tags)
        if kind == "sure":
            theta = 5.0 * task.encode(label)
        loss = L.ConvolutionalFenchelYoung(task, Q(scale))
        value, grad = loss.value_and_grad(theta, label)
        found, size = loss.solve(theta), max(1.0, np.abs(theta).max())  # by Frank-Wolfe
        target = task.encode(label)
        rest = loss.regularizer.loss(theta + found.nu, target, found.mu, task.label_hull)
        wanted = target @ found.nu + task.offset(label) + rest
        assert loss.solver_gap(theta) <= 1e-8 * size, k
        assert abs(value - wanted) <= 1e-8 * size + found.gap, k
        assert np.allclose(grad, found.mu - target, atol=1e-4), k


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("omega", [Q(0.5), E(0.3)], ids=repr)
@pytest.mark.parametrize("task", [*COSTS.values(), DISTANCE], ids=[*COSTS, "distance"])
def test_the_joint_problem_of_costs_is_solved_as_by_frank_wolfe(task, omega, whole):
    rng, whole = np.random.default_rng(0), whole and isinstance(omega, Q)
    loss = L.ConvolutionalFenchelYoung(task, omega, whole_space=whole)
    hull = loss._hull(task.label_hull)
    for k in range(number(10, 100)):
        theta = rng.normal(size=task.dim) * 10.0 ** rng.uniform(-3, 2)
        if k % 4 == 0:
            theta = rng.integers(-2, 3, task.dim) / 2.0
        label, found = int(rng.integers(task.dim)), loss.solve(theta)
        value, grad = loss.value_and_grad(theta, label)
        target, size = task.encode(label), max(1.0, np.abs(theta).max())
        wanted = target @ found.nu + loss.regularizer.loss(theta + found.nu, target, found.mu, hull)
        assert loss.solver_gap(theta) <= 1e-9
        assert abs(value - wanted) <= 1e-10 * size + found.gap
        assert np.allclose(grad, found.mu - target, atol=1e-4)


@pytest.mark.parametrize("seed", examples(3, 40))
def test_costs_of_many_kinds_are_solved(seed):
    rng = np.random.default_rng(seed)
    for k in range(200):
        rows, columns = rng.integers(2, 9, 2)
        costs = rng.random((rows, columns)) * rng.choice([0.5, 1.0, 5.0])
        if k % 3 == 1:
            costs = np.abs(np.subtract.outer(np.arange(rows), np.arange(columns))) / 8.0
        if k % 3 == 2:
            costs = rng.integers(0, 4, (rows, columns)).astype(float)
        costs -= costs.min(axis=1, keepdims=True)
        omega = (Q, E)[k % 2](float(rng.choice([0.03, 0.1, 0.3, 1.0, 3.0])))
        whole = k % 4 == 0
        loss = L.ConvolutionalFenchelYoung(T.CostSensitive(costs), omega, whole_space=whole)
        theta = rng.normal(size=rows) * 10.0 ** rng.uniform(-3, 2)
        assert loss.solver_gap(theta) <= 1e-8, (seed, k)


@pytest.mark.parametrize(
    "task", [*SCORES.values(), *COSTS.values(), DISTANCE, T.FScore(7)], ids=repr
)
def test_draws_by_chances_have_the_mean_of_the_decoder(task):
    rng = np.random.default_rng(3)
    loss = L.ConvolutionalFenchelYoung(task, Q(0.5))
    decoder = D.Convolutional(loss)
    for _ in range(3):
        theta = 0.5 * rng.normal(size=task.dim)
        mean, (atoms, weights) = decoder.mean_loss_encoding(theta), decoder.distribution(theta)
        assert weights.sum() == pytest.approx(1.0, abs=1e-12) and (weights >= 0.0).all()
        encoded = [task.encode_loss(atom) for atom in atoms]
        assert np.allclose(weights @ np.array(encoded), mean, atol=1e-12)
        steps = (np.arange(2000) + 0.5) / 2000
        drawn = [decoder.draw(theta, np.array([u])) for u in steps]
        assert np.allclose(np.mean([task.encode_loss(p) for p in drawn], axis=0), mean, atol=0.02)


def test_runs_with_tied_costs_are_certified():
    learner = dl.OGD(L.ConvolutionalFenchelYoung(DISTANCE), seed=1)
    assert type(learner.engine) is CompiledEngine
    stream = stream_of(DISTANCE, rounds=300)
    trace = learner.run(stream)
    assert (trace.gap >= 0.0).all() and trace.gap.max() <= 1e-9
    made = dl.certify(trace, stream.comparator, stream)
    assert made.valid and trace.risk.sum() <= made.exact + 1e-9


def test_a_solver_far_from_its_answer_is_named_once():
    task = T.FScore(5)
    learner = dl.OGD(L.ConvolutionalFenchelYoung(task, Q(3.0)), seed=0)
    stream = stream_of(task, rounds=20)
    start = np.random.default_rng(0).integers(-2, 3, (task.dim, 4)) * 1e8
    wild = dl.OGD(learner.loss, domain=dl.domains.Ball(1e12), initial=start, seed=0)
    with pytest.warns(dl.polytopes.SolverWarning, match="a duality gap of"):
        trace = wild.run(np.eye(4)[np.arange(20) % 4], stream.labels)
    assert trace.gap.max() > 1e-6
    wild.run(np.eye(4), stream.labels[:4])  # not again


def test_losses_of_predictions_that_do_not_exist_are_refused():
    with pytest.raises(dl.InputError, match="prediction 3"):
        COSTS["doubt"].many.losses(np.array([[0], [3]]), np.array([[0], [1]]))


@pytest.mark.parametrize("task", SCORES.values(), ids=repr)
def test_f_scores_are_what_their_formula_says(task):
    rng, square = np.random.default_rng(0), task.beta**2
    for _ in range(30):
        p, y = rng.integers(0, 2, (2, task.tags))
        right, wrong, missed = (p & y).sum(), (p & ~y & 1).sum(), (~p & y & 1).sum()
        below = (1 + square) * right + square * missed + wrong
        wanted = 1.0 - (1 + square) * right / below if below else 0.0
        assert task.loss(p, y) == pytest.approx(wanted, abs=1e-12)
        encoded = task.encode(y) @ task.encode_loss(p) + task.offset(y)
        assert encoded == pytest.approx(wanted, abs=1e-12)


@every_case
def test_learners_of_structures_keep_the_page(name):
    dl.checks.check_learner(made(name))


@pytest.mark.parametrize("name", [name for name in TASKS if name not in ("classes", "sign")])
def test_votes_and_best_labels_of_many_rounds_are_those_of_each(name):
    task, rng = TASKS[name], np.random.default_rng(0)
    scores = rng.normal(size=(30, task.dim)).round(1)  # some are tied
    rows = task.many.top(scores)
    for theta, row in zip(scores, rows, strict=True):
        assert np.array_equal(task.predictions.value(row), task.top_prediction(theta))
    members = [task.many.top(rng.normal(size=(30, task.dim))) for _ in range(5)]
    weights = rng.dirichlet(np.ones(5), 30)
    voted = task.many.average(members, weights)
    for t in range(30):
        alone = task.average([task.predictions.value(rows[t]) for rows in members], weights[t])
        assert np.array_equal(task.predictions.value(voted[t]), alone)


@pytest.mark.parametrize("name", [name for name in TASKS if name not in ("classes", "sign")])
def test_target_losses_of_many_rounds_are_those_of_each(name):
    task, rng = TASKS[name], np.random.default_rng(0)
    rows, labels = (task.many.top(rng.normal(size=(30, task.dim))) for _ in range(2))
    made = task.many.losses(rows, labels)
    pairs = zip(rows, labels, strict=True)
    alone = [
        task.loss(task.predictions.value(row), task.predictions.value(label))
        for row, label in pairs
    ]
    assert np.allclose(made, alone, atol=1e-14)
    with pytest.raises(dl.InputError):
        task.many.losses(rows + 99, labels)


# -- documents

RELEVANCE = {
    "grades": T.NDCG(3),
    "cutoff": T.NDCG(3, cutoff=2),
    "from 1": T.NDCG(2, lowest=1),
    "exponential": T.NDCG(3, gain="exponential", discount="reciprocal"),
    "own discounts": T.NDCG(2, discount=(1.0, 0.9, 0.2)),
    "precision": T.PrecisionAtK(3),
}


def documents(task, rng, rounds=40, most=12):
    queries = [rng.normal(size=(int(n), 3)) for n in rng.integers(1, most + 1, rounds)]
    edges = np.linspace(-1.0, 2.0, task.highest - task.lowest)
    return queries, [task.lowest + np.digitize(x[:, 0] + x[:, 1], edges) for x in queries]


def sorting(task):
    loss = L.Scaled(L.PairwiseLogistic(task, most=200), 2.0)
    rate = R.Polyak(monotone=False, cap=30.0)
    return dl.OGD(loss, D.Argmax(loss), rate, dl.domains.Ball(60.0))


@pytest.mark.parametrize("scale", [1.0, 300.0])
@pytest.mark.parametrize("name", RELEVANCE)
def test_pairs_of_documents_run_compiled_as_in_python(name, scale):
    task, rng = RELEVANCE[name], np.random.default_rng(0)
    queries, labels = documents(task, rng)
    queries = [scale * query for query in queries]
    fast, slow = sorting(task), sorting(task)
    assert type(fast.engine) is CompiledEngine
    slow.engine = PlainEngine(slow.parts)
    one, two = fast.run(queries, labels), slow.run(queries, labels)
    for column in ("loss", "risk", "grad_sq"):
        assert np.allclose(getattr(one, column), getattr(two, column), rtol=1e-9, atol=1e-9), column
    assert np.array_equal(one.prediction, two.prediction)
    assert dl.certify(one, dl.comparators.Fixed(np.zeros((1, 3))), queries, labels).valid


@pytest.mark.parametrize("size", [2, 60, 200])
def test_pairs_keep_their_digits(size):
    rng, task = np.random.default_rng(size), T.NDCG(4)
    loss = L.PairwiseLogistic(task, most=200)
    for scale in (1e-9, 1.0, 40.0, 290.0, 1e4):
        theta, label = scale * rng.normal(size=size), rng.integers(0, 5, size)
        value, grad = loss.value_and_grad(theta, label)
        target, work, own = task.encode(label), np.empty(loss.workspace(size)), np.empty(size)
        params = np.array(loss.params(size))
        assert np.isclose(loss.kernels.loss(theta, target, params, work, own), value, rtol=1e-12)
        assert np.allclose(own, grad, rtol=1e-10, atol=1e-14)
        order = 50.0 * np.argsort(np.argsort(target, kind="stable"))  # far apart: a tiny loss
        value, _ = loss.value_and_grad(order, label)
        made = loss.kernels.loss(order, target, params, work, own)
        assert np.isclose(made, value, rtol=1e-9, atol=1e-300)


def test_larger_queries_than_stated_are_refused_before_anything_changes():
    loss = L.Scaled(L.PairwiseLogistic(T.NDCG(2), most=5), 2.0)
    learner = dl.OGD(loss, D.Argmax(loss))
    queries, labels = documents(T.NDCG(2), np.random.default_rng(0), rounds=10, most=5)
    learner.run(queries, labels)
    before = learner.weights.copy()
    with pytest.raises(dl.InputError, match="6 documents, but the loss's constant is stated for 5"):
        learner.run([*queries, np.ones((6, 3))], [*labels, np.ones(6, int)])
    assert np.array_equal(learner.weights, before)
    assert len(learner.predict(np.ones((6, 3)))) == 6  # predicting needs no constant


@pytest.mark.parametrize("name", [n for n in RELEVANCE if n != "precision"])
def test_votes_and_losses_of_orders_are_those_of_each(name):
    task, rng = RELEVANCE[name], np.random.default_rng(1)
    sizes = rng.integers(1, 8, 20)
    labels = [rng.integers(task.lowest, task.highest + 1, n) for n in sizes]
    members = []
    for _ in range(4):
        rows = np.full((20, 8), -1)
        for t, n in enumerate(sizes):
            rows[t, :n] = rng.permutation(n)
        members.append(rows)
    weights = rng.dirichlet(np.ones(4), 20)
    voted, paid = task.many.average(members, weights), task.many.losses(members[0], labels)
    for t, n in enumerate(sizes):
        alone = task.average([rows[t, :n] for rows in members], weights[t])
        assert np.array_equal(voted[t, :n], alone) and (voted[t, n:] == -1).all()
        assert np.isclose(
            paid[t],
            0.0 if task.geometry.idle(labels[t]) else task.loss(members[0][t, :n], labels[t]),
        )
    with pytest.raises(dl.InputError, match="order of 0, 1"):
        task.many.losses(np.zeros((20, 8), int), [np.full(3, task.highest)] * 20)


def test_matchings_refuse_scores_that_overflow_by_their_scale():
    loss = L.FenchelYoung(T.Matching(3), Q(1e-100))
    decoder = D.NearestVertex(loss, allow_no_gap=True)
    learner = dl.OGD(loss, decoder, R.Constant(1e100), domain=dl.domains.Unbounded())
    rows = np.random.default_rng(0).normal(size=(9, 4))
    learner.run(1e-70 * rows, np.tile([1, 2, 0], (9, 1)))
    state = learner.state
    large = np.random.default_rng(1).normal(size=state.weights.shape) * 1e130
    given = {"weights": large, "scale": 1.0, "norm_sq": float((large**2).sum())}
    learner.restore(dataclasses.replace(state, **given))
    with pytest.raises(dl.InputError, match="too large"):
        learner.predict(1e130 * rows[0])


@pytest.mark.parametrize(
    "scores", [[5, 6, -1, 7, 4, 10, -5, -4, 6], [7, 0, 0, 0, 7, 10, 10, 10, 0]], ids=str
)
def test_the_convolutional_loss_of_matchings_is_exact_where_several_moves_are_best(scores):
    loss = L.ConvolutionalFenchelYoung(T.Matching(3), Q(0.7))
    theta, label = np.array(scores) / 10.0, np.arange(3)
    rest = {"initial": theta[:, np.newaxis], "domain": dl.domains.Unbounded()}
    learner = dl.OGD(loss, D.Convolutional(loss), **rest)
    trace = learner.run(np.ones((1, 1)), [label])
    assert trace.gap.max() < 1e-8
    assert trace.loss[0] == pytest.approx(loss.value_and_grad(theta, label)[0], abs=1e-8)


@pytest.mark.parametrize("omega", [Q(0.3), E(0.3)], ids=repr)
@pytest.mark.parametrize("largest", [1.0, 300.0, 1e4])
def test_costs_may_be_many_times_the_scale(largest, omega):
    rng = np.random.default_rng(0)
    for _ in range(number(100, 1000)):
        costs = largest * rng.random(rng.integers(2, 8, 2))
        task = T.CostSensitive(costs - costs.min(axis=1, keepdims=True))
        theta = largest * rng.choice([0.0, 0.1, 1.0]) * rng.normal(size=task.dim)
        assert L.ConvolutionalFenchelYoung(task, omega).solver_gap(theta) < 1e-6 * largest


@pytest.mark.parametrize("d", [1, 2, 3, 5])
@pytest.mark.parametrize("scale", [1e-12, 0.1, 1.0])
def test_f_scores_have_small_gaps_at_scores_of_any_size(d, scale):
    rng = np.random.default_rng(0)
    loss = L.ConvolutionalFenchelYoung(T.FScore(d), Q(scale))
    for size in (0.0, 1e-8, 1.0, 1e3, 1e4, 1e6):
        for _ in range(number(60, 300)):
            theta = size * rng.normal(size=loss.task.dim)
            assert loss.solver_gap(theta) < 1e-5 * max(1.0, size)


def test_costs_and_scores_that_are_no_array_of_numbers_are_refused():
    for wrong in ([[0, 1], [1]], [["a", "b"], [0, 1]], [[0, None], [{}, 0]]):
        with pytest.raises(dl.InputError):
            T.CostSensitive(wrong)
        with pytest.raises(dl.InputError):
            T.Finite(wrong, [[0, 1], [1, 0]])
        with pytest.raises(dl.InputError):
            T.Finite([[0, 1], [1, 0]], [[0, 1], [1, 0]], wrong)
        with pytest.raises(dl.InputError):
            dl.estimators.ranking_scores([0, 1], wrong)


@pytest.mark.parametrize("predictions", [60, 61])
def test_costs_of_many_predictions_are_left_to_the_solver_that_finds_few(predictions):
    costs = np.random.default_rng(0).random((3, predictions))
    task = T.CostSensitive(costs - costs.min(axis=1, keepdims=True))
    loss = L.ConvolutionalFenchelYoung(task)
    learner, stream = dl.OGD(loss, D.Convolutional(loss)), stream_of(task, rounds=20)
    assert type(learner.engine) is (CompiledEngine if predictions == 60 else PlainEngine)
    trace = learner.run(stream)
    assert trace.gap.max() < 1e-8
    assert dl.certify(trace, stream.comparator, stream).valid


@pytest.mark.parametrize("tags", [2.0, np.int64(2), np.float64(2.0)])
def test_numbers_of_tags_are_integers_of_any_type(tags):
    task = T.FScore(tags)
    assert task == T.FScore(2) and type(task.tags) is int
    loss = L.ConvolutionalFenchelYoung(task)
    assert len(dl.OGD(loss, D.Convolutional(loss)).run(stream_of(task, rounds=3))) == 3


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: T.FScore("a"), "number of tags"),
        (lambda: T.FScore(2.5), "number of tags"),
        (lambda: T.FScore([2]), "1 tag or more"),
        (lambda: T.FScore(2, "one"), "beta"),
        (lambda: T.FScore(2, [1.0]), "beta"),
        (lambda: T.FScore(2, float("nan")), "beta"),
        (lambda: R.Relative("x"), "step of a relative rate"),
        (lambda: R.Relative(1.0, after=True), "after of a relative rate"),
        (lambda: R.Relative(1.0, power=float("nan")), "power of a relative rate"),
    ],
)
def test_parts_of_wrong_types_are_named(make, words):
    with pytest.raises(dl.InputError, match=words):
        make()
