"""Laws that every task must obey, and facts about each one."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import TASKS

import driftline as dl

T = dl.tasks

rng = np.random.default_rng(0)


def random_costs(labels, predictions):
    costs = rng.uniform(0.1, 3.0, (labels, predictions))
    costs[np.arange(labels), rng.integers(0, predictions, labels)] = 0.0
    return costs


#: Tasks with all of their labels and predictions, and their target loss, written plainly.
COSTS = [random_costs(3, 3), random_costs(2, 5), random_costs(4, 2)]
CASES = {
    **TASKS,
    **{
        f"{k} classes": (T.Multiclass(k), range(k), range(k), lambda p, y: float(p != y))
        for k in (2, 7)
    },
    **{
        f"costs {c.shape}": (T.CostSensitive(c), *map(range, c.shape), lambda p, y, c=c: c[y, p])
        for c in COSTS
    },
}
every_task = pytest.mark.parametrize("task, labels, predictions, naive", CASES.values(), ids=CASES)
#: Those of which one uniform number decides once.
every_scalar = pytest.mark.parametrize(
    "task, labels, predictions, naive",
    [case for case in CASES.values() if np.ndim(case[2][0]) == 0],
    ids=lambda case: repr(case) if isinstance(case, T.Task) else "",
)


def encodings(task, labels, predictions):
    """Those of labels and the loss encodings of predictions, a row each."""
    rho = np.array([task.encode(label) for label in labels])
    return rho, np.array([task.geometry.encode_loss(p, rho.shape[1]) for p in predictions])


@every_task
def test_the_decomposition_reproduces_the_loss(task, labels, predictions, naive):
    rho, losses = encodings(task, labels, predictions)
    for label, row in zip(labels, rho, strict=True):
        wanted = [naive(prediction, label) for prediction in predictions]
        np.testing.assert_allclose(losses @ row + task.offset(label), wanted, atol=1e-12)
        np.testing.assert_allclose([task.loss(p, label) for p in predictions], wanted, atol=1e-12)
        assert min(wanted) == pytest.approx(0.0, abs=1e-12)


@every_task
@given(seed=st.integers(0, 10**6))
def test_decompose_and_draw_have_the_mean(task, labels, predictions, naive, seed):
    generator = np.random.default_rng(seed)
    pi = generator.dirichlet(np.full(len(predictions), generator.choice([0.3, 3.0])))
    mean = pi @ encodings(task, labels, predictions)[1]
    atoms, weights = task.decompose(mean)
    assert weights.sum() == pytest.approx(1.0) and (weights > 0).all()
    again = weights @ encodings(task, labels, atoms)[1]
    np.testing.assert_allclose(again, mean, atol=1e-9)
    for made in (*atoms, task.draw(mean, generator.random(1))):
        assert any(np.array_equal(made, prediction) for prediction in predictions)


@every_scalar
def test_draws_have_the_right_mean(task, labels, predictions, naive):
    weights = np.arange(1.0, len(predictions) + 1)
    mean = (weights / weights.sum()) @ np.array([task.encode_loss(p) for p in predictions])
    grid = (np.arange(4000) + 0.5) / 4000
    drawn = [task.draw(mean, np.array([u])) for u in grid]
    average = np.mean([task.encode_loss(p) for p in drawn], axis=0)
    np.testing.assert_allclose(average, mean, atol=4 * task.largest_loss / 4000)


@every_task
@given(seed=st.integers(0, 10**6))
def test_best_prediction_has_least_expected_loss(task, labels, predictions, naive, seed):
    mu = np.random.default_rng(seed).dirichlet(np.full(len(labels), 0.5))
    best = task.best_prediction(mu @ encodings(task, labels, predictions)[0])

    def cost(prediction):
        return sum(m * naive(prediction, y) for m, y in zip(mu, labels, strict=True))

    assert cost(best) <= min(map(cost, predictions)) + 1e-12


@every_task
@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_gamma_and_nu_hold(task, labels, predictions, naive, norm):
    if task.layout.ragged or (constants := task.constants(norm)) is None:
        return
    gamma, nu = constants
    assert (task.loss_slope, task.separation) in map(task.constants, ("l1", "l2"))
    length = lambda v: np.linalg.norm(v, 1 if norm == "l1" else 2)  # noqa: E731
    rho, _ = encodings(task, labels, predictions)
    distances = [length(a - b) for a, b in itertools.combinations(rho, 2)]
    assert min(distances) == pytest.approx(nu)
    generator = np.random.default_rng(0)
    for shape in (0.1, 0.5, 2.0):
        for _ in range(40):
            pi = generator.dirichlet(np.full(len(labels), shape))
            mean = pi @ rho
            for y in labels[:6]:
                expected = sum(w * naive(p, y) for w, p in zip(pi, labels, strict=True))
                assert expected <= gamma * length(mean - task.encode(y)) + 1e-12


@every_task
def test_vertices_are_encodings(task, labels, predictions, naive):
    if not isinstance(task, T.StructuredTask):
        return
    rho, _ = encodings(task, labels, predictions)
    for direction in np.random.default_rng(0).standard_normal((50, task.dim)):
        best = task.best_prediction(direction)
        assert task.encode(best) @ direction == pytest.approx((rho @ direction).max())


def test_guessing_uniformly_costs_what_the_task_says():
    assert dl.tasks.Multiclass(4).guess.loss == 0.75
    assert dl.tasks.Binary().guess.loss == 0.5


def test_a_vertex_is_drawn_whatever_the_uniform():
    task = dl.tasks.Multiclass(3)
    for u in (0.0, 0.5, np.nextafter(1.0, 0.0)):
        assert task.draw(task.encode_loss(1), np.array([u])) == 1


@pytest.mark.parametrize(
    "make, words",
    [
        (lambda: dl.tasks.Multiclass(1), "2 classes or more"),
        (lambda: dl.tasks.Multiclass(2.5), "whole number"),
        (lambda: dl.tasks.CostSensitive([[0, 1], [2, 1]]), "row 1 is 1"),
        (lambda: dl.tasks.CostSensitive([[0, 1], [-2, 0]]), "row 1 is -2"),
        (lambda: dl.tasks.CostSensitive([0, 1]), "must be a matrix"),
        (lambda: dl.tasks.CostSensitive([[0.0, np.nan], [0, 1]]), "finite"),
        (lambda: dl.tasks.Multiclass(3).labels.check(3), "outside 0..2"),
        (lambda: dl.tasks.Multiclass(3).labels.check(-1), "outside 0..2"),
        (lambda: dl.tasks.Multiclass(3).labels.check("a"), "whole numbers"),
        (lambda: dl.tasks.Multiclass(3).labels.check(1.5), "whole numbers"),
        (lambda: dl.tasks.Multiclass(3).labels.check_all([0, 1, 7]), "label 7 in row 2"),
        (lambda: dl.tasks.Multiclass(3).labels.check_all([[0, 1]]), "vector"),
        (lambda: dl.tasks.Binary().labels.check_all([1, 0]), "label 0 in row 1"),
        (lambda: dl.tasks.Binary().labels.check(0), "neither -1 nor"),
        (lambda: dl.tasks.CostSensitive([[0, 1], [1, 0]]).encode_loss(2), "prediction 2"),
    ],
)
def test_bad_input_is_named(make, words):
    with pytest.raises(dl.InputError, match=words):
        make()


def test_whole_floats_are_labels_too():
    np.testing.assert_array_equal(
        dl.tasks.Binary().labels.check_all(np.array([1.0, -1.0])), [[1], [-1]]
    )
