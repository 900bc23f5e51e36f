"""Laws of convolutional Fenchel-Young losses, by enumeration of all labels and predictions."""

import itertools
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import driftline as dl
from driftline import polytopes as po

Q, E = dl.regularizers.Quadratic, dl.regularizers.Entropy
CFY = dl.losses.ConvolutionalFenchelYoung


def bits(d):
    return [np.array(v) for v in itertools.product([0, 1], repeat=d)]


def orders(d):
    return [np.array(v) for v in itertools.permutations(range(d))]


def grades(d, low, high):
    return [np.array(v) for v in itertools.product(range(low, high + 1), repeat=d) if any(v)]


def choices(d, k):
    return [np.array(c) for c in itertools.combinations(range(d), k)]


def ndcg(weights, exponential=False):
    def loss(ranks, y):
        gains = 2.0**y - 1.0 if exponential else y.astype(float)
        best = np.sort(gains)[::-1] @ weights
        return 1.0 - sum(g * weights[r] for g, r in zip(gains, ranks, strict=True)) / best

    return loss


def f1(p, y):
    total = p.sum() + y.sum()
    return 1.0 - 2.0 * (p @ y) / total if total else 0.0


LOG = 1.0 / np.log2(np.arange(4) + 2.0)
COSTS = np.random.default_rng(0).random((4, 5)) * (1.0 - np.eye(4, 5))
COSTS -= COSTS.min(axis=1, keepdims=True)
T = dl.tasks

#: Every task at a small size with all labels, all predictions, and its loss written plainly.
TASKS = {
    "classes": (T.Multiclass(4), range(4), range(4), lambda p, y: float(p != y)),
    "signs": (T.Binary(), [-1, 1], [-1, 1], lambda p, y: float(p != y)),
    "tags": (T.Multilabel(3), bits(3), bits(3), lambda p, y: np.mean(p != y)),
    "sets": (
        T.FixedSize(4, 2),
        [v for v in bits(4) if v.sum() == 2],
        [v for v in bits(4) if v.sum() == 2],
        lambda p, y: np.mean(p != y),
    ),
    "levels": (T.Ordinal(4), range(4), range(4), lambda p, y: abs(p - y) / 3),
    "rankings": (
        T.LabelRanking(3),
        orders(3),
        orders(3),
        lambda p, y: ((p - y) ** 2).sum() / 2 / 4,
    ),
    "matchings": (T.Matching(3), orders(3), orders(3), lambda p, y: np.mean(p != y)),
    "words": (
        T.Sequence(3, transitions=False),
        [np.array(v) for v in itertools.product(range(3), repeat=2)],
        [np.array(v) for v in itertools.product(range(3), repeat=2)],
        lambda p, y: np.mean(p != y),
    ),
    "chains": (T.Sequence(2), bits(3), bits(3), lambda p, y: np.mean(p != y)),
    "ndcg": (T.NDCG(2), grades(3, 0, 2), orders(3), ndcg(LOG[:3])),
    "ndcg of 4": (T.NDCG(1), grades(4, 0, 1), orders(4), ndcg(LOG)),
    "ndcg cut": (
        T.NDCG(2, cutoff=2),
        grades(4, 0, 2)[::3],
        orders(4),
        ndcg(LOG * [1, 1, 0, 0]),
    ),
    "ndcg exponential": (
        T.NDCG(2, gain="exponential", discount=(1.0, 0.4, 0.1), items=3),
        grades(3, 0, 2),
        orders(3),
        ndcg(np.array([1.0, 0.4, 0.1]), True),
    ),
    "ndcg from 1": (T.NDCG(3, lowest=1), grades(3, 1, 3), orders(3), ndcg(LOG[:3])),
    "ndcg of 1": (T.NDCG(2), grades(1, 0, 2), orders(1), ndcg(LOG[:1])),
    "precision": (
        T.PrecisionAtK(2),
        grades(4, 0, 1),
        choices(4, 2),
        lambda p, y: 1.0 - y[p].sum() / min(2, y.sum()),
    ),
    "precision of few": (
        T.PrecisionAtK(3),
        grades(2, 0, 1),
        choices(2, 2),
        lambda p, y: 0.0,
    ),
    "f1": (T.FScore(3), bits(3), bits(3), f1),
    "costs": (T.CostSensitive(COSTS), range(4), range(5), lambda p, y: COSTS[y, p]),
}

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
    if isinstance(loss.task, T.PrecisionAtK):
        return rho, np.array([loss.task.encode_loss(p, rho.shape[1]) for p in predictions])
    return rho, np.array([loss.task.encode_loss(p) for p in predictions])


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
def test_the_decomposition_reproduces_the_loss(name):
    loss, labels, predictions, naive = make(name)
    rho, losses = encodings(loss, labels, predictions)
    for y, row in zip(labels, rho, strict=True):
        given = [row @ column + loss.task.offset(y) for column in losses]
        wanted = [naive(p, y) for p in predictions]
        np.testing.assert_allclose(given, wanted, atol=1e-12)
        np.testing.assert_allclose([loss.task.loss(p, y) for p in predictions], wanted, atol=1e-12)
        assert min(wanted) == pytest.approx(0.0, abs=1e-12)


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
    hull = po.Space(theta.size) if loss.whole_space else loss.task.hull_of(theta)

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
    hull = po.Space(theta.size) if loss.whole_space else loss.task.hull_of(theta)
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
        np.testing.assert_allclose(grad, wanted_grad, atol=1e-7 if size < 10 else 1e-6)


def test_an_asymmetric_regularizer_is_left_to_the_solver_and_says_so_once():
    loss = CFY(dl.tasks.Multiclass(3), SlowQuadratic(1.0))
    with pytest.warns(UserWarning, match="does not call itself symmetric") as caught:
        for seed in range(3):
            loss.value_and_grad(np.random.default_rng(seed).standard_normal(3), 0)
    assert len(caught) == 1
