"""Tag sequences: the task, the CRF loss, Viterbi decoding, ragged streams."""

import itertools
import math

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import driftline as dl

TASK = dl.tasks.Sequence(3)
LOSS = dl.losses.CRF(TASK)


def all_sequences(n, k=3):
    return [np.array(s) for s in itertools.product(range(k), repeat=n)]


@pytest.mark.parametrize("n", [1, 2, 3])
def test_the_decomposition_reproduces_the_loss(n):
    for prediction in all_sequences(n):
        for label in all_sequences(n):
            split = TASK.encode(label) @ TASK.encode_loss(prediction) + TASK.offset(label)
            assert split == pytest.approx(np.mean(prediction != label))
            assert TASK.loss(prediction, label) == pytest.approx(np.mean(prediction != label))


@given(seed=st.integers(0, 10**6), n=st.integers(1, 4))
def test_the_loss_is_minus_the_log_probability(seed, n):
    generator = np.random.default_rng(seed)
    theta = 10.0 ** generator.uniform(-1, 1.5) * generator.standard_normal(TASK.hull(n).dim)
    sequences = all_sequences(n)
    scores = np.array([TASK.encode(s) @ theta for s in sequences])
    weights = np.exp(scores - scores.max())
    for s, score in zip(sequences, scores, strict=True):
        value, grad = LOSS.value_and_grad(theta, s)
        expected = (scores.max() + math.log(weights.sum()) - score) / math.log(2)
        assert value == pytest.approx(expected, abs=1e-9 * (1 + abs(scores).max()))
        assert grad @ grad <= 2 * LOSS.self_bound * (2 * n - 1) * value * (1 + 1e-9) + 1e-12
        # Viterbi's best sequence is never worse than the loss says
        assert TASK.loss(TASK.top_prediction(theta), s) <= LOSS.argmax_ratio * value + 1e-9


def test_scores_of_any_size_stay_finite():
    theta = 1e4 * np.random.default_rng(0).standard_normal(TASK.hull(10).dim)
    value, grad = LOSS.value_and_grad(theta, [0] * 10)
    assert np.isfinite(value) and np.isfinite(grad).all()


@given(seed=st.integers(0, 10**6))
def test_draws_and_mixtures_have_the_mean(seed):
    generator = np.random.default_rng(seed)
    pi = generator.dirichlet(np.full(27, 0.3))
    mean = pi @ np.array([TASK.encode_loss(s) for s in all_sequences(3)])
    atoms, weights = TASK.decompose(mean)
    again = weights @ np.array([TASK.encode_loss(atom) for atom in atoms])
    np.testing.assert_allclose(again, mean, atol=1e-9)
    grid = (np.arange(500) + 0.5) / 500
    drawn = np.mean([TASK.encode_loss(TASK.draw(mean, np.array([u]))) for u in grid], axis=0)
    np.testing.assert_allclose(drawn, mean, atol=0.01)


def words(rounds=300, features=6, seed=0, noise=0.6):
    """Tags that follow each other in a circle, with inputs that hardly tell them apart."""
    generator = np.random.default_rng(seed)
    centres = generator.standard_normal((3, features))
    inputs, labels = [], []
    for _ in range(rounds):
        n = generator.integers(1, 9)
        tags = (generator.integers(3) + np.arange(n)) % 3
        x = centres[tags] + noise * 3 * generator.standard_normal((n, features))
        inputs.append(x / np.linalg.norm(x, axis=1, keepdims=True))
        labels.append(tags)
    return inputs, labels


def learner(transitions=True, **options):
    loss = dl.losses.Scaled(dl.losses.CRF(dl.tasks.Sequence(3, transitions)), 2.0)
    return dl.OGD(loss, dl.decoders.Argmax(loss), **options)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("transitions", [False, True])
def test_step_equals_run_and_both_forms_of_input(intercept, transitions):
    inputs, labels = words(60)
    runs = []
    for form in (inputs, (np.concatenate(inputs), np.cumsum([0, *map(len, inputs)]))):
        runs.append(learner(transitions, intercept=intercept).run(form, labels, seed=0))
    one = learner(transitions, intercept=intercept)
    steps = [one.step(x, y) for x, y in zip(inputs, labels, strict=True)]
    for column in ("loss", "risk", "target_loss", "eta", "grad_sq"):
        np.testing.assert_array_equal(getattr(runs[0], column), getattr(runs[1], column))
        np.testing.assert_array_equal(getattr(runs[0], column), [getattr(s, column) for s in steps])
    assert runs[0].prediction.shape == (60, 8)
    for row, step, label in zip(runs[0].prediction, steps, labels, strict=True):
        np.testing.assert_array_equal(row[row >= 0], step.prediction)
        assert len(step.prediction) == len(label)
    assert one.weights.shape == (3, 6 + intercept + 3 * transitions)
    assert runs[0].admissible.all()


def test_gradient_in_the_weights():
    inputs, labels = words(3, seed=4)
    for transitions in (False, True):
        task = dl.tasks.Sequence(3, transitions)
        loss, rows = dl.losses.CRF(task), task.layout.rows(inputs)
        generator = np.random.default_rng(0)
        shape = 3, 6 + 1 + 3 * transitions
        W, direction = generator.standard_normal((2, *shape))
        for t, label in enumerate(labels):

            def value(V, t=t, label=label, rows=rows, loss=loss):
                return loss.value_and_grad(rows.scores(V, False, t, True), label)[0]

            slope = (value(W + 1e-5 * direction) - value(W - 1e-5 * direction)) / 2e-5
            _, grad = loss.value_and_grad(rows.scores(W, False, t, True), label)
            gradient = rows.gradient(grad, t, True)
            assert slope == pytest.approx(np.vdot(gradient, direction), abs=1e-6)
            # the norm of the map from weights to scores, as the rate's floor needs it
            length = 2 * len(label) - 1 if transitions else 1
            assert np.vdot(gradient, gradient) <= rows.norm_sq(t, True) / length * (grad @ grad) * (
                1 + 1e-9
            )


def test_transitions_help_where_neighbours_tell():
    inputs, labels = words(400)
    with_them = learner(True).run(inputs, labels).target_loss.sum()
    without = learner(False).run(inputs, labels).target_loss.sum()
    assert with_them < 0.8 * without


def test_looking_before_the_first_round_changes_nothing():
    inputs, labels = words(5)
    one = learner()
    assert len(one.predict(inputs[0])) == len(labels[0])
    assert one.engine.stored is None
    assert "positions and transitions" in one.describe()


@pytest.mark.parametrize(
    "change, words_",
    [
        (lambda X, y: (X, y[:-1]), "5 inputs but 4 labels"),
        (lambda X, y: (X, [*y[:-1], [0]]), "positions, but its label has 1 entries"),
        (lambda X, y: (X, [*y[:-1], []]), "vector of tags"),
        (lambda X, y: (X, [*y[:-1], [5] * len(X[-1])]), "outside 0..2"),
        (lambda X, y: ([*X[:-1], np.empty((0, 6))], y), "sequence 4 is empty"),
        (lambda X, y: ([*X[:-1], np.ones((2, 5))], y), "has 5 features"),
        (lambda X, y: ([*X[:-1], X[-1] * np.nan], y), "nan"),
    ],
)
def test_bad_input_leaves_the_learner_unchanged(change, words_):
    inputs, labels = words(5)
    one = learner()
    one.run(inputs, labels)
    before = one.weights
    with pytest.raises(dl.InputError, match=words_):
        one.run(*change(inputs, labels))
    np.testing.assert_array_equal(one.weights, before)


@pytest.mark.parametrize(
    "make, text",
    [
        (lambda: dl.tasks.Sequence(1), "2 tags or more"),
        (lambda: dl.losses.CRF(dl.tasks.Binary()), "takes a Sequence"),
        (lambda: LOSS.value_and_grad(np.zeros(5), [0]), "fit no sequence"),
        (lambda: LOSS.value_and_grad(np.zeros(3), [0, 1]), "do not fit a label"),
        (lambda: dl.streams.OCRWords(), "set DRIFTLINE_DATA"),
    ],
)
def test_bad_parts_are_named(make, text, monkeypatch):
    monkeypatch.delenv("DRIFTLINE_DATA", raising=False)
    with pytest.raises(dl.InputError, match=text):
        make()


# -- Marginals of every position


@pytest.mark.parametrize("transitions", [True, False])
@given(seed=st.integers(0, 10**6), n=st.integers(1, 4))
def test_marginal_decoding_has_a_gap_of_one_half_at_any_length(transitions, seed, n):
    task = dl.tasks.Sequence(3, transitions)
    loss = dl.losses.CRF(task)
    decoder, sequences, hull = dl.decoders.Marginal(loss), all_sequences(n), task.hull(n)
    assert decoder.surrogate_gap == 0.5 and decoder.rate_floor == pytest.approx(0.851, abs=1e-4)
    generator = np.random.default_rng(seed)
    theta = 10.0 ** generator.uniform(-1, 1.5) * generator.standard_normal(hull.dim)
    encodings = np.array([task.encode(s) for s in sequences])
    if seed % 3 == 0:  # several sequences, nearly equally probable
        theta = 0.01 * theta + 20.0 * encodings[generator.integers(3**n, size=2)].sum(axis=0)
    p = np.exp(encodings @ theta - (encodings @ theta).max())
    chances = hull.split(p / p.sum() @ encodings)[0] + 1e-300
    given_ = naive.lazy_positions(chances)
    atoms, weights = decoder.distribution(theta)
    mean = weights @ np.array([task.encode_loss(atom) for atom in atoms])
    np.testing.assert_allclose(mean, decoder.mean_loss_encoding(theta), atol=1e-9)
    for label in sequences:
        value, grad = loss.value_and_grad(theta, label)
        risk = decoder.risk(theta, label)
        assert risk == pytest.approx(1.0 - given_[np.arange(n), label].mean(), abs=1e-9)
        alone = -np.log2(chances[np.arange(n), label]).mean()
        assert risk <= 0.5 * alone + 1e-9 and risk <= 0.5 * value * (1 + 1e-9) + 1e-13
        assert value - risk >= 0.5 * decoder.rate_floor / (2 * n - 1) * (grad @ grad) - 1e-9


def test_positions_in_doubt_are_drawn_independently_and_others_are_certain():
    decoder, n = dl.decoders.Marginal(LOSS), 4
    theta = np.zeros(TASK.hull(n).dim)
    TASK.hull(n).split(theta)[0][:] = np.log([[0.5, 0.5, 1e-9], [0.2, 0.6, 0.2]] * 2)
    uniforms = np.random.default_rng(0).random((4000, 1))
    drawn = np.array([decoder.draw(theta, u) for u in uniforms])
    assert (drawn[:, 1::2] == 1).all()
    _, counts = np.unique(drawn[:, ::2], axis=0, return_counts=True)
    np.testing.assert_allclose(counts / 4000, 0.25, atol=0.03)
    np.testing.assert_allclose(
        np.mean([TASK.encode_loss(one) for one in drawn], axis=0),
        decoder.mean_loss_encoding(theta),
        atol=0.01,
    )


def test_confident_sequences_are_never_missed():
    theta = 1000.0 * TASK.encode([0, 1, 2, 0])
    decoder = dl.decoders.Marginal(LOSS)
    assert decoder.risk(theta, [0, 1, 2, 0]) == 0.0 and decoder.risk(theta, [1, 1, 2, 0]) == 0.25


# -- Fenchel-Young losses of any length


@pytest.mark.parametrize("n", [1, 2, 3, 4])
@pytest.mark.parametrize("transitions", [True, False])
@given(seed=st.integers(0, 10**6))
def test_sparsemap_of_sequences_has_its_gap(n, transitions, seed):
    task = dl.tasks.Sequence(3, transitions)
    loss = dl.losses.SparseMAP(task, 2.5)
    decoder, best = dl.decoders.NearestVertex(loss), dl.decoders.Argmax(loss)
    generator = np.random.default_rng(seed)
    labels = all_sequences(n)
    theta = generator.standard_normal(task.hull(n).dim) * generator.choice([0.3, 1.0, 4.0])
    if seed % 3 == 0:  # between two sequences, where the gap is smallest
        pair = task.encode(labels[seed % len(labels)]) + task.encode(labels[-1])
        theta = 0.1 * theta + 2.5 * pair / 2
    mu, hull = loss.mean_prediction(theta), task.hull(n)
    encodings = np.array([task.encode(y) for y in labels])
    assert ((encodings - mu) @ (theta - 2.5 * mu)).max() <= 1e-8
    atoms, weights = decoder.distribution(theta)
    map_prediction = task.top_prediction(theta)
    for y in labels[:: 1 + len(labels) // 20]:
        value, grad = loss.value_and_grad(theta, y)
        slope = theta - 1.25 * (mu + task.encode(y))
        assert value == pytest.approx(slope @ (mu - task.encode(y)), abs=1e-8)
        risk = decoder.risk(theta, y)
        assert risk == pytest.approx(weights @ [np.mean(a != y) for a in atoms], abs=1e-7)
        assert risk <= (1 - decoder.surrogate_gap) * value + 1e-8
        assert value - risk >= 0.5 * decoder.rate_floor * (grad @ grad) - 1e-8
        assert np.mean(map_prediction != y) <= best.kappa * value + 1e-8
    assert hull.dim == theta.size


@pytest.mark.parametrize("transitions", [True, False])
def test_the_entropy_of_sequences_is_the_crf(transitions):
    task = dl.tasks.Sequence(3, transitions)
    entropic = dl.losses.FenchelYoung(task, dl.regularizers.Entropy(1.0))
    crf = dl.losses.CRF(task, base=np.e)
    for n in (1, 2, 4):
        theta = np.random.default_rng(n).standard_normal(task.hull(n).dim)
        label = np.arange(n) % 3
        value, grad = crf.value_and_grad(theta, label)
        got, got_grad = entropic.value_and_grad(theta, label)
        assert got == pytest.approx(value, abs=1e-10)
        np.testing.assert_allclose(got_grad, grad, atol=1e-12)
    assert entropic.self_bound == crf.self_bound


def test_nearest_vertex_of_a_chain_crf_is_refused_with_the_reason():
    loss = dl.losses.FenchelYoung(dl.tasks.Sequence(3), dl.regularizers.Entropy(5.0))
    with pytest.raises(dl.NoGuaranteeError, match="constants are not known"):
        dl.decoders.NearestVertex(loss)
    with pytest.raises(dl.NoGuaranteeError, match="a scale above"):
        dl.decoders.NearestVertex(dl.losses.SparseMAP(dl.tasks.Sequence(3), 1.0))


def test_sparsemap_learns_sequences_within_its_admissible_range():
    stream = dl.streams.PlantedSequences(rounds=150, flips=1, tags=3, longest=4, seed=0)
    loss = dl.losses.SparseMAP(stream.task, 4.0)
    learner = dl.OGD(loss, domain=dl.domains.Ball(60.0))
    assert isinstance(learner.decoder, dl.decoders.NearestVertex)
    trace = learner.run(stream)
    assert trace.admissible.all() and trace.gap.max() <= 1e-7
    assert trace.risk[100:].mean() < 0.6 * stream.task.guess.loss


def test_planted_sequences_are_best_for_the_comparator():
    stream = dl.streams.PlantedSequences(rounds=40, flips=2, longest=4, seed=3)
    rows = stream.task.layout.rows(stream.inputs)
    for t, label in enumerate(stream.labels):
        theta = rows.scores(stream.comparator.at(t), False, t, False)
        best = max(stream.task.encode(s) @ theta for s in all_sequences(len(label), 5))
        assert stream.task.encode(label) @ theta == pytest.approx(best)
    assert stream.comparator.largest_norm == pytest.approx(1.0)
