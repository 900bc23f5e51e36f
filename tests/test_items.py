"""Items that share one weight vector."""

import numpy as np
import pytest

import driftline as dl


def expanded(X, items):
    """One weight vector per item is a shared one over features of which each item has its own."""
    return [np.kron(np.eye(items), x[np.newaxis]) for x in X]


@pytest.mark.parametrize("decoder", [dl.decoders.NearestVertex, dl.decoders.Argmax])
def test_shared_weights_over_expanded_features_are_separate_weights(decoder):
    stream = dl.streams.Planted(dl.tasks.LabelRanking(4), rounds=120, flips=1, features=5, seed=0)
    traces = []
    for shared, inputs in ((False, stream.inputs), (True, expanded(stream.inputs, 4))):
        loss = dl.losses.SparseMAP(dl.tasks.LabelRanking(4, shared=shared), 1.0)
        if decoder is dl.decoders.Argmax:
            loss = dl.losses.Scaled(loss, 2.0 * dl.decoders.Argmax(loss).kappa)
        learner = dl.OGD(loss, decoder(loss), domain=dl.domains.Ball(6.0))
        traces.append(learner.run(inputs, stream.labels, seed=0))
    for column in ("loss", "risk", "target_loss", "eta", "grad_sq", "prediction"):
        np.testing.assert_allclose(
            getattr(traces[0], column), getattr(traces[1], column), atol=1e-9, err_msg=column
        )


def test_step_equals_run_and_weights_are_one_row():
    generator = np.random.default_rng(0)
    w = generator.standard_normal(6)
    inputs = [generator.standard_normal((4, 6)) for _ in range(200)]
    labels = np.array([np.argsort(np.argsort(-(x @ w))) for x in inputs])
    loss = dl.losses.SparseMAP(dl.tasks.LabelRanking(4, shared=True), 1.0)
    whole, single = dl.OGD(loss), dl.OGD(loss)
    trace = whole.run(inputs, labels, seed=0)
    assert whole.weights.shape == (1, 6)
    assert trace.admissible.all() and trace.risk[-50:].mean() < 0.5 * trace.risk[:20].mean()
    first = single.run(inputs[:1], labels[:1], seed=0)
    rounds = [single.step(x, y) for x, y in zip(inputs[1:], labels[1:], strict=True)]
    np.testing.assert_array_equal([first.loss[0], *(r.loss for r in rounds)], trace.loss)
    np.testing.assert_array_equal([r.prediction for r in rounds], trace.prediction[1:])


@pytest.mark.parametrize(
    "inputs, labels, words",
    [
        ([np.ones((3, 2))], [[0, 1, 2, 3]], "3 items, but its label has 4"),
        ([np.ones((4, 2)), np.ones((4, 3))], [[0, 1, 2, 3]] * 2, "set 1 has 3 features"),
        ([np.full((4, 2), np.inf)], [[0, 1, 2, 3]], "inf"),
        ([np.ones(4)], [[0, 1, 2, 3]], "a row for each of its items"),
    ],
)
def test_bad_input_is_named(inputs, labels, words):
    learner = dl.OGD(dl.losses.SparseMAP(dl.tasks.LabelRanking(4, shared=True), 1.0))
    with pytest.raises(dl.InputError, match=words):
        learner.run(inputs, labels)
    assert learner.engine.stored is None
