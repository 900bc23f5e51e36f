"""Laws that every task must obey, and facts about each one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import driftline as dl

rng = np.random.default_rng(0)


def random_costs(labels, predictions):
    costs = rng.uniform(0.1, 3.0, (labels, predictions))
    costs[np.arange(labels), rng.integers(0, predictions, labels)] = 0.0
    return costs


#: Every task with its target loss as a naive function of prediction and label.
COSTS = [random_costs(3, 3), random_costs(2, 5), random_costs(4, 2)]
TASKS = [
    *((dl.tasks.Multiclass(k), range(k), lambda p, y: float(p != y)) for k in (2, 3, 7)),
    (dl.tasks.Binary(), (-1, 1), lambda p, y: float(p != y)),
    *((dl.tasks.CostSensitive(c), range(c.shape[1]), lambda p, y, c=c: c[y, p]) for c in COSTS),
]
every_task = pytest.mark.parametrize(
    "task, predictions, naive",
    TASKS,
    ids=[f"{type(row[0]).__name__}-{i}" for i, row in enumerate(TASKS)],
)


@every_task
def test_decomposition_reproduces_the_loss(task, predictions, naive):
    for prediction in predictions:
        for label in task.labels.all:
            split = task.encode(label) @ task.encode_loss(prediction) + task.offset(label)
            assert split == pytest.approx(naive(prediction, label), abs=1e-14)
            assert task.loss(prediction, label) == pytest.approx(naive(prediction, label))


@every_task
def test_every_label_has_a_free_prediction(task, predictions, naive):
    for label in task.labels.all:
        assert min(task.loss(prediction, label) for prediction in predictions) == 0.0


@every_task
@given(data=st.data())
def test_decompose_reproduces_the_mean(task, predictions, naive, data):
    weights = data.draw(
        st.lists(st.floats(0, 1), min_size=len(predictions), max_size=len(predictions))
    )
    weights = np.array(weights) + 1e-3
    weights /= weights.sum()
    mean = weights @ np.array([task.encode_loss(p) for p in predictions])
    atoms, parts = task.decompose(mean)
    assert parts.sum() == pytest.approx(1.0)
    assert (parts > 0).all() and set(np.asarray(atoms).tolist()) <= set(predictions)
    again = parts @ np.array([task.encode_loss(atom) for atom in atoms])
    np.testing.assert_allclose(again, mean, atol=1e-9)


@every_task
def test_draws_have_the_right_mean(task, predictions, naive):
    weights = np.arange(1.0, len(predictions) + 1)
    mean = (weights / weights.sum()) @ np.array([task.encode_loss(p) for p in predictions])
    grid = (np.arange(4000) + 0.5) / 4000
    drawn = [task.draw(mean, np.array([u])) for u in grid]
    average = np.mean([task.encode_loss(p) for p in drawn], axis=0)
    np.testing.assert_allclose(average, mean, atol=4 * task.largest_loss / 4000)


@every_task
@given(data=st.data())
def test_best_prediction_has_least_expected_loss(task, predictions, naive, data):
    mu = data.draw(
        st.lists(st.floats(0, 1), min_size=len(task.labels.all), max_size=len(task.labels.all))
    )
    mu = np.array(mu) + 1e-3
    mu /= mu.sum()
    encoded = mu @ np.array([task.encode(label) for label in task.labels.all])
    best = task.best_prediction(encoded)

    def cost(prediction):
        return sum(m * naive(prediction, y) for m, y in zip(mu, task.labels.all, strict=True))

    assert cost(best) <= min(map(cost, predictions)) + 1e-12


@pytest.mark.parametrize(
    "task, naive",
    [(task, naive) for task, _, naive in TASKS if task.zero_one],
    ids=["2", "3", "7", "±"],
)
def test_constants_of_the_first_theorem(task, naive):
    norm = lambda v: np.abs(v).sum()  # noqa: E731
    encodings = [task.encode(y) for y in task.labels.all]
    distances = [
        norm(a - b) for i, a in enumerate(encodings) for j, b in enumerate(encodings) if i != j
    ]
    assert min(distances) == pytest.approx(task.separation)
    for _ in range(50):
        pi = rng.dirichlet(np.full(len(task.labels.all), 0.5))
        mean = pi @ np.array(encodings)
        for y in task.labels.all:
            expected = sum(w * naive(p, y) for w, p in zip(pi, task.labels.all, strict=True))
            assert expected <= task.loss_slope * norm(mean - task.encode(y)) + 1e-12


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
