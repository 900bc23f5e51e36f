"""Laws that every surrogate loss must obey, and facts about each one."""

import math

import naive
import numpy as np
import pytest
from howmany import examples
from hypothesis import assume, given
from hypothesis import strategies as st
from strategies import (
    ALL_LOSSES,
    BINARY,
    CONVEX_LOSSES,
    SELF_BOUNDING_LOSSES,
    adversarial_scores,
    scores,
)

import driftline as dl


def every(losses):
    return pytest.mark.parametrize("loss", losses, ids=repr)


def draw_round(loss, data):
    theta = data.draw(scores(loss.task.dim))
    return theta, data.draw(st.sampled_from(list(loss.task.labels.all)))


@every(ALL_LOSSES)
@given(data=st.data())
def test_value_is_nonnegative_and_finite(loss, data):
    theta, label = draw_round(loss, data)
    value, grad = loss.value_and_grad(theta, label)
    assert 0.0 <= value < np.inf
    assert np.isfinite(grad).all()


@every(CONVEX_LOSSES)
@given(data=st.data())
def test_convexity_and_subgradient(loss, data):
    """The tangent at one point lies below the loss at every other."""
    theta, label = draw_round(loss, data)
    other = data.draw(scores(loss.task.dim))
    value, grad = loss.value_and_grad(theta, label)
    there, _ = loss.value_and_grad(other, label)
    tangent = value + grad @ (other - theta)
    assert there >= tangent - 1e-10 * (1 + abs(tangent) + np.abs(grad) @ np.abs(other - theta))


@every(ALL_LOSSES)
@given(data=st.data())
def test_gradient_is_the_derivative(loss, data):
    """Fourth-order differences, away from kinks."""
    seed = data.draw(st.integers(0, 2**32))
    theta = 1.5 * np.random.default_rng(seed).standard_normal(loss.task.dim)
    label = data.draw(st.sampled_from(list(loss.task.labels.all)))
    direction = np.cos(np.arange(theta.size) + 1.0)
    h = 1e-4
    assume(all(abs(kink) > 1e-2 for kink in loss.kinks(theta, label)))

    def along(step):
        return loss.value_and_grad(theta + step * h * direction, label)[0]

    slope = (8 * (along(1) - along(-1)) - (along(2) - along(-2))) / (12 * h)
    _, grad = loss.value_and_grad(theta, label)
    assert slope == pytest.approx(grad @ direction, abs=1e-7 * (1 + abs(slope)))


@every([loss for loss in ALL_LOSSES if loss.kinks(np.zeros(loss.task.dim), 1)])
def test_kinks_are_where_the_gradient_bends(loss):
    """Along a line the gradient changes its slope where a kink vanishes, and nowhere else."""
    generator = np.random.default_rng(0)
    label = list(loss.task.labels.all)[-1]
    for _ in examples(2, 20):
        here, there = 2.0 * generator.standard_normal((2, loss.task.dim))
        line = here + np.linspace(0, 1, 4001)[:, np.newaxis] * (there - here)
        slopes = np.array([loss.value_and_grad(t, label)[1] @ (there - here) for t in line])
        bends = np.abs(np.diff(slopes, 2)) > 1e-9
        kinks = np.array([loss.kinks(t, label) for t in line])
        # the strongest rivals change places where their distance has a minimum near 0
        near = np.abs(kinks).min(axis=1) < 4.0 * np.abs(there - here).max() / 4000
        assert not (bends & ~near[1:-1]).any()
        crossed = (np.sign(kinks[:-1, 0]) != np.sign(kinks[1:, 0])).any()
        assert not crossed or bends.any()


@every(SELF_BOUNDING_LOSSES)
@given(data=st.data())
def test_self_bounding(loss, data):
    theta, label = draw_round(loss, data)
    value, grad = loss.value_and_grad(theta, label)
    assert grad @ grad <= 2 * loss.self_bound * value * (1 + 1e-12)


@every([loss for loss in SELF_BOUNDING_LOSSES if loss.task.dim <= 10])
def test_self_bound_is_tight(loss):
    """Some scores come within a thousandth of the constant."""
    worst = 0.0
    for gap in np.linspace(-3, 3, 601):
        theta = np.full(loss.task.dim, -60.0)
        theta[0] = gap
        if theta.size > 1:
            theta[1] = 0.0
        for label in list(loss.task.labels.all)[:2]:
            value, grad = loss.value_and_grad(theta, label)
            if value > 0:
                worst = max(worst, grad @ grad / (2 * value))
    assert worst == pytest.approx(loss.self_bound, rel=1e-3)


@every([loss for loss in ALL_LOSSES if loss.kernels.values is not None])
@given(data=st.data())
def test_values_of_all_labels_agree_with_each(loss, data):
    theta = data.draw(scores(loss.task.dim))
    values, squares = loss.values(theta)
    for label, value, square in zip(loss.task.labels.all, values, squares, strict=True):
        one, grad = loss.value_and_grad(theta, label)
        assert value == pytest.approx(one, rel=1e-13, abs=1e-300)
        assert square == pytest.approx(grad @ grad, rel=1e-10, abs=1e-300)


@given(data=st.data())
@pytest.mark.parametrize("classes", [2, 3, 10])
def test_equal_to_the_naive_losses(classes, data):
    theta = data.draw(scores(classes).filter(lambda v: np.abs(v).max() < 100))
    label = data.draw(st.integers(0, classes - 1))
    task = dl.tasks.Multiclass(classes)
    for ours, theirs in (
        (dl.losses.Logistic(task), naive.logistic(theta, label)),
        (dl.losses.Logistic(task, base=7.0), naive.logistic(theta, label, base=7.0)),
        (dl.losses.SmoothHinge(task), naive.smooth_hinge(theta, label)),
    ):
        value, grad = ours.value_and_grad(theta, label)
        assert value == pytest.approx(theirs[0], abs=1e-12)
        np.testing.assert_allclose(grad, theirs[1], atol=1e-12)


@given(score=st.floats(-50, 50), label=st.sampled_from([-1, 1]))
def test_equal_to_the_naive_losses_with_one_score(score, label):
    theta, index = np.array([score]), (label + 1) // 2
    for ours, theirs in (
        (dl.losses.Logistic(BINARY), naive.logistic(theta, index, vector=True)),
        (dl.losses.SmoothHinge(BINARY), naive.smooth_hinge(theta, index, vector=True)),
    ):
        value, grad = ours.value_and_grad(theta, label)
        assert value == pytest.approx(theirs[0], abs=1e-12)
        np.testing.assert_allclose(grad, theirs[1], atol=1e-12)


@given(score=st.floats(-300, 300), label=st.sampled_from([0, 1]))
def test_two_classes_with_opposite_weights_are_one_score(score, label):
    """The matrix form of two classes sees the difference of its scores."""
    for make in (dl.losses.Logistic, dl.losses.SmoothHinge):
        vector, _ = make(BINARY).value_and_grad(np.array([score]), 2 * label - 1)
        theta = np.array([-score / 2, score / 2])
        matrix, _ = make(dl.tasks.Multiclass(2)).value_and_grad(theta, label)
        assert vector == pytest.approx(matrix, rel=1e-12)


def test_logistic_of_equal_scores_is_one_bit_per_doubling():
    value, _ = dl.losses.Logistic(dl.tasks.Multiclass(8)).value_and_grad(np.zeros(8), 3)
    assert value == pytest.approx(3.0)


@pytest.mark.parametrize("gap", [1.0, 20.0, 50.0, 300.0])
def test_logistic_keeps_its_precision_on_confident_scores(gap):
    """Neither the loss nor the gradient is lost to rounding when they are tiny."""
    rest = math.exp(-gap)
    loss = dl.losses.Logistic(dl.tasks.Multiclass(2), base=math.e)
    value, grad = loss.value_and_grad(np.array([gap, 0.0]), 0)
    assert value == pytest.approx(math.log1p(rest), rel=1e-13)
    assert -grad[0] == pytest.approx(rest / (1 + rest), rel=1e-13)
    vector = dl.losses.Logistic(BINARY, base=math.e)
    assert vector.value_and_grad(np.array([gap]), 1)[0] == pytest.approx(value, rel=1e-13)


def test_base_two_is_never_below_the_zero_one_loss_of_the_argmax():
    generator = np.random.default_rng(1)
    for classes in (2, 5, 100):
        task = dl.tasks.Multiclass(classes)
        for make in (dl.losses.Logistic, dl.losses.SmoothHinge):
            loss = make(task)
            for theta in adversarial_scores(classes, generator, 10):
                values, _ = loss.values(theta)
                wrong = np.arange(classes) != np.argmax(theta)
                assert (values[wrong] >= 1 - 1e-12).all()


def test_smooth_hinge_is_zero_from_margin_one_on():
    loss = dl.losses.SmoothHinge(dl.tasks.Multiclass(3))
    value, grad = loss.value_and_grad(np.array([0.0, 1.0, -3.0]), 1)
    assert value == 0.0 and not grad.any()


@every(CONVEX_LOSSES)
def test_scaling_scales_everything(loss):
    scaled = dl.losses.Scaled(loss, 3.0)
    theta = np.linspace(-1, 1, loss.task.dim)
    label = list(loss.task.labels.all)[-1]
    value, grad = loss.value_and_grad(theta, label)
    many, more = scaled.value_and_grad(theta, label)
    assert many == pytest.approx(3 * value)
    np.testing.assert_allclose(more, 3 * grad)
    assert scaled.self_bound == pytest.approx(3 * loss.self_bound)
    for decoder in ("argmax", "uniform_mix", "nearest_vertex", "gap_optimal", "nobody", ""):
        ratio = loss.ratio(decoder)
        assert scaled.ratio(decoder) == (None if ratio is None else ratio / 3.0)
    assert scaled.family is loss.family and scaled.kinks(theta, label) == loss.kinks(theta, label)


class TestHinge:
    """The counterexample of the paper: each variant lacks one of the two properties."""

    def test_below_one_it_jumps(self):
        loss = dl.losses.Hinge(dl.tasks.Multiclass(2), kappa=0.5)
        here, _ = loss.value_and_grad(np.array([0.5, 0.0]), 0)
        beyond, _ = loss.value_and_grad(np.array([0.5 + 1e-12, 0.0]), 0)
        assert here == 0.5 and beyond == 0.0
        assert not loss.convex and "discontinuous" in loss.caveat

    def test_below_one_it_is_not_convex(self):
        loss = dl.losses.Hinge(dl.tasks.Multiclass(2), kappa=0.5)
        left, middle, right = (
            loss.value_and_grad(np.array([m, 0.0]), 0)[0] for m in (0.2, 0.5, 0.8)
        )
        assert middle > (left + right) / 2

    def test_at_one_it_is_not_self_bounding(self):
        loss = dl.losses.Hinge(dl.tasks.Multiclass(2), kappa=1.0)
        ratios = []
        for margin in (0.9, 0.99, 0.999):
            value, grad = loss.value_and_grad(np.array([margin, 0.0]), 0)
            ratios.append(grad @ grad / (2 * value))
        assert ratios[2] > 9 * ratios[1] > 81 * ratios[0]
        assert math.isinf(loss.self_bound) and "self-bounding" in loss.caveat

    def test_no_theorem_is_claimed(self):
        for kappa in (0.5, 1.0):
            loss = dl.losses.Hinge(dl.tasks.Multiclass(2), kappa=kappa)
            learner = dl.OGD(loss, dl.decoders.Argmax(loss), dl.rates.Constant(0.1))
            assert f"none: the loss is {loss.caveat}" in learner.describe()


@pytest.mark.parametrize(
    "make, words",
    [
        (lambda: dl.losses.Logistic(BINARY, base=1.0), "must exceed 1"),
        (lambda: dl.losses.Logistic(BINARY, base=math.inf), "must exceed 1"),
        (
            lambda: dl.losses.Logistic(dl.tasks.CostSensitive([[0, 1], [1, 0]])),
            "takes a Multiclass",
        ),
        (lambda: dl.losses.SmoothHinge(dl.tasks.CostSensitive([[0, 1], [1, 0]])), "Multiclass"),
        (lambda: dl.losses.Scaled(dl.losses.Logistic(BINARY), 0.0), "must be positive"),
        (lambda: dl.losses.Hinge(BINARY, kappa=2.0), "0..1"),
        (lambda: dl.losses.Logistic(BINARY).value_and_grad([1.0, 2.0], 1), "expected 1 scores"),
        (lambda: dl.losses.Logistic(BINARY).value_and_grad([np.nan], 1), "finite"),
        (lambda: dl.losses.Hinge(BINARY).values(np.zeros(1)), "cannot list"),
    ],
)
def test_bad_input_is_named(make, words):
    with pytest.raises(dl.InputError, match=words):
        make()


SHARP = [
    dl.losses.FenchelYoung(dl.tasks.Multiclass(2), dl.regularizers.Entropy(0.7)),
    dl.losses.FenchelYoung(dl.tasks.Multilabel(2), dl.regularizers.Entropy(1.5)),
    dl.losses.CRF(dl.tasks.Sequence(2, transitions=False)),
    dl.losses.CRF(dl.tasks.Sequence(2), base=3.0),
    dl.losses.PairwiseLogistic(dl.tasks.NDCG(1), most=2),
    dl.losses.FenchelYoung(dl.tasks.Matching(2), dl.regularizers.Entropy(0.7)),
    dl.losses.FenchelYoung(dl.tasks.FixedSize(26, 19), dl.regularizers.Entropy(2.0)),
]


@pytest.mark.parametrize("loss", SHARP, ids=repr)
def test_self_bounds_of_structured_losses_are_attained(loss):
    """One position, two documents, all tags alike: no smaller constant would do.

    Of sets the worst have all tags of the label alike, and all others with a probability of 1.
    """
    worst, task = 0.0, loss.task
    for gap in np.linspace(0.0, 4.0, 801):
        match task:
            case dl.tasks.Multilabel():
                theta, label = np.full(2, -gap / 2), [1, 1]
            case dl.tasks.Sequence():
                theta, label = np.array([0.0, gap]), [0]
            case dl.tasks.NDCG():
                theta, label = np.array([0.0, gap]), [1, 0]
            case dl.tasks.Matching():
                theta, label = np.array([0.0, gap, gap, 0.0]), [0, 1]
            case dl.tasks.FixedSize():
                label = [1] * 19 + [0] * 7
                theta = np.r_[np.zeros(19), np.full(7, gap)]
            case _:
                theta, label = np.array([0.0, gap]), 0
        value, grad = loss.value_and_grad(theta, label)
        worst = max(worst, grad @ grad / (2.0 * value))
    assert worst == pytest.approx(loss.self_bound, rel=1e-3)


@pytest.mark.parametrize(
    "task", [dl.tasks.Matching(3), dl.tasks.FixedSize(6, 3), dl.tasks.FixedSize(5, 1)], ids=repr
)
def test_no_scores_exceed_the_self_bound_of_an_entropy(task):
    rng, loss = np.random.default_rng(0), dl.losses.FenchelYoung(task, dl.regularizers.Entropy())
    stream = dl.streams.Planted(task, rounds=50, flips=0, seed=0)
    for scale in (0.03, 0.3, 1.0, 3.0):
        for label in stream.labels:
            value, grad = loss.value_and_grad(scale * rng.standard_normal(task.dim), label)
            assert grad @ grad <= 2.0 * loss.self_bound * value * (1.0 + 1e-9)


@pytest.mark.parametrize("documents", [3, 6, 10])
def test_the_pairwise_self_bound_is_attained_by_one_relevant_document(documents):
    loss = dl.losses.PairwiseLogistic(dl.tasks.NDCG(1), most=documents)
    label = np.eye(documents, dtype=int)[0]
    worst = 0.0
    for gap in np.linspace(0.0, 4.0, 401):
        theta = np.r_[0.0, np.full(documents - 1, gap)]
        value, grad = loss.value_and_grad(theta, label)
        worst = max(worst, grad @ grad / (2.0 * value))
    assert worst == pytest.approx(loss.self_bound, rel=1e-3)
