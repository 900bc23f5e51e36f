"""Laws that every decoder must obey, and facts about each one."""

import functools
import math

import naive
import numpy as np
import pytest
from howmany import number
from hypothesis import given
from hypothesis import strategies as st
from strategies import BINARY, DECODERS, adversarial_scores, scores

import driftline as dl

every_decoder = pytest.mark.parametrize("decoder", DECODERS, ids=repr)


def risks(decoder, theta):
    return np.array([decoder.risk(theta, label) for label in decoder.loss.task.labels.all])


@functools.cache
def table(task):
    """The loss of every prediction for every label."""
    return np.array([[task.loss(a, label) for a in task.labels.all] for label in task.labels.all])


@every_decoder
@given(data=st.data())
def test_distribution_mean_and_risk_agree(decoder, data):
    task = decoder.loss.task
    theta = data.draw(scores(task.dim))
    atoms, weights = decoder.distribution(theta)
    assert weights.sum() == pytest.approx(1.0, abs=1e-10) and (weights > 0).all()
    mean = weights @ np.array([task.encode_loss(atom) for atom in atoms])
    np.testing.assert_allclose(decoder.mean_loss_encoding(theta), mean, atol=1e-10)
    losses, places = table(task), [list(task.labels.all).index(atom) for atom in atoms]
    np.testing.assert_allclose(risks(decoder, theta), losses[:, places] @ weights, atol=1e-10)


@every_decoder
@given(data=st.data())
def test_surrogate_gap_and_rate_floor(decoder, data):
    """The two inequalities that carry the theorem, to full relative precision."""
    theta = data.draw(scores(decoder.loss.task.dim))
    check_gap_and_floor(decoder, theta)


@every_decoder
def test_surrogate_gap_and_rate_floor_on_adversarial_scores(decoder):
    generator = np.random.default_rng(0)
    dim = decoder.loss.task.dim
    for theta in adversarial_scores(dim, generator, number(30, 60) if dim < 50 else 10):
        check_gap_and_floor(decoder, theta)


def check_gap_and_floor(decoder, theta):
    values, squares = decoder.loss.values(theta)
    risk = risks(decoder, theta)
    if decoder.loss_ratio is None:  # nothing is promised
        assert decoder.surrogate_gap == decoder.rate_floor == 0.0
        return
    assert (risk <= (1 - decoder.surrogate_gap) * values * (1 + 1e-12)).all()
    gaps = values - risk
    assert (gaps >= 0.5 * decoder.rate_floor * squares - 1e-13 * values).all()
    if decoder.numerical_rate_floor is not None:
        assert (gaps >= 0.499 * decoder.numerical_rate_floor * squares - 1e-13 * values).all()


@every_decoder
@given(data=st.data())
def test_kernel_and_python_agree(decoder, data):
    """The kernel that the loop calls, against the methods that users call."""
    task = decoder.loss.task
    theta = data.draw(scores(task.dim))
    label = data.draw(st.sampled_from(list(task.labels.all)))
    mean, risk = decoder._decode(theta, task.encode(label), task.offset(label))
    np.testing.assert_allclose(mean, decoder.mean_loss_encoding(theta), atol=1e-13)
    assert risk == pytest.approx(decoder.risk(theta, label), rel=1e-12, abs=1e-300)


NAIVE = {
    dl.decoders.UniformMix: naive.uniform_mix,
    dl.decoders.GapOptimal: naive.gap_optimal,
    dl.decoders.StepOptimal: naive.step_optimal,
    dl.decoders.Lazy: naive.lazy,
    dl.decoders.Exploring: lambda theta, values, squares, labels, vector: naive.exploring(
        values, 0.05 * squares
    ),
    dl.decoders.NearestVertex: naive.nearest_vertex,
    dl.decoders.Argmax: naive.argmax,
}


PAIRS = [
    (make, loss_type)
    for make in NAIVE
    for loss_type in (dl.losses.Logistic, dl.losses.SmoothHinge)
    if loss_type is dl.losses.Logistic or make not in (dl.decoders.NearestVertex, dl.decoders.Lazy)
]


@pytest.mark.parametrize("make, loss_type", PAIRS, ids=lambda cls: cls.__name__)
@pytest.mark.parametrize("classes", [1, 2, 3, 10])
def test_equal_to_the_naive_decoders(make, loss_type, classes):
    vector = classes == 1
    task = BINARY if vector else dl.tasks.Multiclass(classes)
    decoder = make(loss_type(task))
    generator = np.random.default_rng(2)
    for theta in 2.0 * generator.standard_normal((number(40, 100), classes)):
        values, squares = decoder.loss.values(theta)
        pi = NAIVE[make](theta, values, squares, len(task.labels.all), vector)
        np.testing.assert_allclose(1 - risks(decoder, theta), pi, atol=1e-9)


def linear_program(values):
    """The best ratio of risk to loss that any distribution has, by brute force over scipy."""
    from scipy.optimize import linprog

    labels = values.size
    above = np.hstack([-np.eye(labels), -values[:, None]])  # 1 - pi_y <= c L_y
    result = linprog(
        np.r_[np.zeros(labels), 1.0],
        A_ub=above,
        b_ub=-np.ones(labels),
        A_eq=np.r_[np.ones(labels), 0.0][None],
        b_eq=[1.0],
        bounds=(0, None),
    )
    return result.fun


@pytest.mark.parametrize("loss_type", [dl.losses.Logistic, dl.losses.SmoothHinge])
def test_no_decoder_has_a_larger_gap_than_the_gap_optimal_one(loss_type):
    generator = np.random.default_rng(3)
    for classes in (2, 3, 6):
        decoder = dl.decoders.GapOptimal(loss_type(dl.tasks.Multiclass(classes)))
        for theta in 2 * generator.standard_normal((30, classes)):
            values, _ = decoder.loss.values(theta)
            if values.min() < 1e-6:
                continue
            ratio = (risks(decoder, theta) / values).max()
            assert ratio == pytest.approx(linear_program(values), rel=1e-6)


@every_decoder
def test_step_optimal_has_the_largest_smallest_step(decoder):
    best = dl.decoders.StepOptimal(decoder.loss)
    generator = np.random.default_rng(4)
    dim = decoder.loss.task.dim

    def smallest(which, theta):
        values, squares = which.loss.values(theta)
        gaps = values - risks(which, theta)
        if (gaps[squares <= 1e-12] < -1e-9).any():
            return -np.inf  # a label without loss is missed: no step makes up for that
        return (2 * gaps[squares > 1e-12] / squares[squares > 1e-12]).min()

    for theta in 1.5 * generator.standard_normal((30, dim)):
        assert smallest(best, theta) >= smallest(decoder, theta) * (1 - 1e-6) - 1e-9


@pytest.mark.parametrize("classes", [2, 3, 10, 100])
def test_gap_optimal_reaches_one_half_for_any_number_of_classes(classes):
    loss = dl.losses.Logistic(dl.tasks.Multiclass(classes))
    decoder = dl.decoders.GapOptimal(loss)
    theta = np.full(classes, -80.0)
    theta[:2] = 0.0
    assert decoder.surrogate_gap == 0.5
    assert decoder.risk(theta, 0) == pytest.approx(0.5 * loss.value_and_grad(theta, 0)[0])
    assert dl.decoders.UniformMix(loss).surrogate_gap == pytest.approx(1 / classes)


@pytest.mark.parametrize("classes", [1, 2, 3, 10, 100])
def test_the_lazy_decoder_gives_no_label_but_the_top_more_than_the_gap_optimal_one(classes):
    task = BINARY if classes == 1 else dl.tasks.Multiclass(classes)
    lazy, best = (
        make(dl.losses.Logistic(task)) for make in (dl.decoders.Lazy, dl.decoders.GapOptimal)
    )
    assert lazy.surrogate_gap == 0.5
    assert lazy.rate_floor == pytest.approx(1.702 if classes == 1 else 0.851, abs=1e-4)
    for theta in adversarial_scores(classes, np.random.default_rng(5), number(20, 60)):
        values, top = lazy.loss.values(theta)[0], naive.top(theta, classes == 1)
        ours, theirs = (np.delete(risks(one, theta), top) for one in (lazy, best))
        assert (ours >= theirs * (1 - 1e-12)).all()
        if (np.delete(values, top) >= 2.0).all():
            assert lazy.risk(theta, list(task.labels.all)[top]) == 0.0 and (ours == 1.0).all()


def test_the_floor_of_the_lazy_decoder_is_attained():
    decoder = dl.decoders.Lazy(dl.losses.Logistic(dl.tasks.Multiclass(2)))
    p = 0.2846681370067596
    theta = np.log([p, 1.0 - p])
    values, squares = decoder.loss.values(theta)
    assert 2 * (values - risks(decoder, theta))[0] / squares[0] == pytest.approx(decoder.rate_floor)


def test_the_constants_of_the_notes():
    two, three = (dl.losses.Logistic(dl.tasks.Multiclass(k)) for k in (2, 3))
    binary = dl.losses.Logistic(BINARY)
    assert two.self_bound == pytest.approx(0.5876, abs=1e-4)
    assert binary.self_bound == pytest.approx(0.2938, abs=1e-4)
    assert dl.decoders.GapOptimal(three).rate_floor == pytest.approx(0.851, abs=1e-3)
    assert dl.decoders.NearestVertex(three).surrogate_gap == pytest.approx(1 - math.log(2))
    hinge = dl.losses.SmoothHinge(dl.tasks.Multiclass(3))
    assert dl.decoders.UniformMix(hinge).rate_floor == pytest.approx(1 / 12)
    for base, gap in ((2.0, 0.5), (math.e, 1 - 0.5 / math.log(2)), (3.0, 1 - 0.5 * math.log2(3))):
        loss = dl.losses.Logistic(dl.tasks.Multiclass(3), base=base)
        assert dl.decoders.GapOptimal(loss).surrogate_gap == pytest.approx(gap)


@pytest.mark.parametrize(
    "make, classes",
    [
        (dl.decoders.UniformMix, 2),
        (dl.decoders.UniformMix, 3),
        (dl.decoders.UniformMix, 10),
        (dl.decoders.GapOptimal, 3),
        (dl.decoders.StepOptimal, 3),
        (dl.decoders.StepOptimal, 10),
        (dl.decoders.NearestVertex, 3),
    ],
)
def test_numerical_floors_are_attained(make, classes):
    """A search along two tied or nearly tied classes comes close to the stated floor."""
    decoder = make(dl.losses.Logistic(dl.tasks.Multiclass(classes)))
    lowest = np.inf
    for gap in np.linspace(0, 4, 401):
        for floor in (-60.0, -gap - 1.0, 0.0):
            theta = np.full(classes, floor)
            theta[:2] = gap, 0.0
            values, squares = decoder.loss.values(theta)
            lowest = min(lowest, (2 * (values - risks(decoder, theta)) / squares).min())
    assert lowest == pytest.approx(decoder.numerical_rate_floor, rel=2e-3)


def test_nearest_vertex_is_better_than_its_guarantee():
    decoder = dl.decoders.NearestVertex(dl.losses.Logistic(dl.tasks.Multiclass(3)))
    worst = 0.0
    for theta in adversarial_scores(3, np.random.default_rng(0), number(600, 3000)):
        values, _ = decoder.loss.values(theta)
        worst = max(worst, (risks(decoder, theta) / values).max())
    assert 0.50 <= worst <= 1 - decoder.numerical_surrogate_gap + 1e-9


def test_ties_go_to_the_lowest_index():
    for classes in (2, 4):
        loss = dl.losses.Logistic(dl.tasks.Multiclass(classes))
        atoms, weights = dl.decoders.Argmax(loss).distribution(np.zeros(classes))
        assert atoms.tolist() == [0] and weights.tolist() == [1.0]
    binary = dl.decoders.Argmax(dl.losses.Logistic(BINARY))
    assert binary.distribution(np.zeros(1)).atoms.tolist() == [-1]


def logistic(classes=3, base=2.0):
    return dl.losses.Logistic(dl.tasks.Multiclass(classes), base=base)


@pytest.mark.parametrize(
    "make, loss, words",
    [
        (dl.decoders.UniformMix, logistic(base=math.e), "up to base 2"),
        (dl.decoders.UniformMix, logistic(base=4.0), "up to base 2"),
        (dl.decoders.NearestVertex, logistic(base=math.e), "not below 1"),
        (dl.decoders.NearestVertex, dl.losses.SmoothHinge(BINARY), "Fenchel-Young"),
        (dl.decoders.GapOptimal, logistic(base=4.0), "from base 4 on"),
        (dl.decoders.StepOptimal, logistic(base=5.0), "from base 4 on"),
        (dl.decoders.GapOptimal, dl.losses.Hinge(BINARY), "does not offer its values"),
        (dl.decoders.Lazy, dl.losses.SmoothHinge(BINARY), "of the logistic loss"),
        (dl.decoders.Lazy, dl.losses.Logistic(dl.tasks.Multilabel(3)), "made for the 0-1 loss"),
        (dl.decoders.Lazy, logistic(base=math.e), "gap of 1/2"),
        (dl.decoders.Lazy, dl.losses.Scaled(logistic(), 0.9), "no factor below 1"),
        (dl.decoders.Marginal, logistic(), "made for CRF"),
        (dl.decoders.Marginal, dl.losses.CRF(dl.tasks.Multiclass(3)), "made for CRF"),
        (dl.decoders.Marginal, dl.losses.CRF(dl.tasks.Sequence(3), base=3.0), "use base=2.0"),
        (
            dl.decoders.UniformMix,
            dl.losses.Scaled(dl.losses.SmoothHinge(dl.tasks.Multiclass(3)), 0.5),
            "no surrogate gap",
        ),
    ],
)
def test_pairs_without_a_gap_are_refused_with_the_reason(make, loss, words):
    with pytest.raises(dl.NoGuaranteeError, match=words):
        make(loss)


@pytest.mark.parametrize(
    "make, base",
    [
        (dl.decoders.UniformMix, math.e),
        (dl.decoders.NearestVertex, math.e),
        (dl.decoders.GapOptimal, 4.0),
        (dl.decoders.StepOptimal, 6.0),
    ],
)
def test_pairs_without_a_gap_can_be_asked_for(make, base):
    decoder = make(logistic(base=base), allow_no_gap=True)
    assert decoder.surrogate_gap == 0.0 and decoder.rate_floor == 0.0
    learner = dl.OGD(decoder.loss, decoder, dl.rates.Polyak())
    assert "no surrogate gap" in learner.describe()
    stream = dl.streams.DigitTriples(rounds=300, flips=1)
    trace = learner.run(stream)
    assert np.isfinite(trace.loss).all() and (trace.eta > 0).all()


def test_two_tied_classes_leave_no_decoder_a_gap_from_base_four_on():
    values, _ = logistic(classes=2, base=4.0).values(np.zeros(2))
    assert linear_program(values) >= 1 - 1e-12


def test_a_multiple_of_a_convolutional_loss_is_refused_for_what_it_is():
    loss = dl.losses.Scaled(dl.losses.ConvolutionalFenchelYoung(dl.tasks.Multiclass(3)), 2.0)
    for make in (dl.OGD, dl.decoders.Convolutional):
        with pytest.raises(dl.NoGuaranteeError, match="a regularizer of another scale"):
            make(loss)


@pytest.mark.parametrize(
    "loss",
    [
        dl.losses.Logistic(dl.tasks.Multiclass(4)),
        dl.losses.Logistic(dl.tasks.Binary()),
        dl.losses.SparseMAP(dl.tasks.Ordinal(4), 2.0),
        dl.losses.SparseMAP(dl.tasks.LabelRanking(4), 1.0),
        dl.losses.ConvolutionalFenchelYoung(dl.tasks.NDCG(2)),
    ],
    ids=repr,
)
def test_a_distribution_has_the_expected_losses_of_draws(loss):
    """Of single numbers it is that of the draws; of orders it only has the same mean."""
    decoder, task = dl.decoders.default_decoder(loss)[1], loss.task
    random, count = np.random.default_rng(0), number(1000, 4000)
    for _ in range(3):
        theta = random.standard_normal(4 if task.layout.ragged else task.dim)
        atoms, weights = decoder.distribution(theta)
        uniforms = (np.arange(count)[:, np.newaxis] + 0.5) / count
        drawn = [decoder.draw(theta, u) for u in uniforms]
        mean = np.mean([task.encode_loss(made) for made in drawn], axis=0)
        listed = weights @ np.array([task.encode_loss(atom) for atom in atoms])
        np.testing.assert_allclose(mean, listed, atol=0.03)
        if np.ndim(atoms) == 1:
            shares = [np.mean(np.asarray(drawn) == atom) for atom in atoms]
            np.testing.assert_allclose(shares, weights, atol=2.0 / count)
