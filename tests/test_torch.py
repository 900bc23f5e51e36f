"""Losses and the Polyak rate inside PyTorch."""

import numpy as np
import pytest

import driftline as dl

torch = pytest.importorskip("torch")

from driftline.integrations.torch import CRFLoss, Polyak, SurrogateLoss  # noqa: E402

T = dl.tasks
CASES = {
    "logistic": (dl.losses.Logistic(T.Multiclass(3)), [0, 2, 1]),
    "smooth hinge": (dl.losses.SmoothHinge(T.Multiclass(3)), [0, 2, 1]),
    "signs": (dl.losses.Logistic(T.Binary()), [1, -1, 1]),
    "tags": (dl.losses.Logistic(T.Multilabel(3)), [[0, 1, 1], [1, 1, 0], [0, 0, 0]]),
    "fenchel-young": (
        dl.losses.FenchelYoung(T.Multiclass(4), dl.regularizers.Quadratic(3.0)),
        [0, 3, 1],
    ),
    "matchings": (dl.losses.SparseMAP(T.Matching(3), 4.0), [[0, 1, 2], [2, 1, 0], [1, 2, 0]]),
    "levels": (dl.losses.ConvolutionalFenchelYoung(T.Ordinal(4)), [0, 3, 1]),
    "convolutional": (
        dl.losses.ConvolutionalFenchelYoung(T.Multiclass(3), dl.regularizers.Entropy()),
        [0, 2, 1],
    ),
}


def scores_for(loss, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(3, loss.task.dim, generator=generator, dtype=torch.float64)


@pytest.mark.parametrize("case", CASES)
def test_gradients_are_those_of_differences(case):
    loss, labels = CASES[case]
    criterion = SurrogateLoss(loss, reduction="none")
    scores = scores_for(loss).requires_grad_()
    # values of a solver are exact to about its tolerance, and differences magnify that
    options = {"atol": 1e-4, "rtol": 1e-3, "eps": 1e-5}
    assert torch.autograd.gradcheck(lambda s: criterion(s, labels), scores, **options)


@pytest.mark.parametrize("case", CASES)
def test_values_and_risks_are_those_of_the_parts(case):
    loss, labels = CASES[case]
    scores = scores_for(loss, 1)
    loss, decoder = dl.decoders.default_decoder(loss)
    criterion = SurrogateLoss(loss, decoder, "none")
    rows = scores.numpy()
    wanted = [criterion.loss.value_and_grad(r, y)[0] for r, y in zip(rows, labels, strict=True)]
    np.testing.assert_allclose(criterion(scores, labels).numpy(), wanted)
    risks = [criterion.decoder.risk(r, y) for r, y in zip(rows, labels, strict=True)]
    np.testing.assert_allclose(criterion.risk(scores, labels).numpy(), risks)
    for reduction in ("mean", "sum"):
        total = SurrogateLoss(loss, reduction=reduction)(scores, labels)
        np.testing.assert_allclose(float(total), getattr(np, reduction)(wanted))
    assert len(criterion.predict(scores)) == 3


def test_single_precision_comes_back_in_single_precision():
    loss, labels = CASES["logistic"]
    scores = scores_for(loss).float().requires_grad_()
    value = SurrogateLoss(loss)(scores, torch.tensor(labels))
    value.backward()
    assert value.dtype == scores.grad.dtype == torch.float32


def test_chains_of_any_length():
    criterion = CRFLoss(tags=3, reduction="none")
    generator = torch.Generator().manual_seed(0)
    unary = torch.randn(2, 4, 3, generator=generator, dtype=torch.float64, requires_grad=True)
    shared = torch.randn(3, 3, generator=generator, dtype=torch.float64, requires_grad=True)
    own = torch.randn(2, 3, 3, 3, generator=generator, dtype=torch.float64, requires_grad=True)
    labels, lengths = torch.tensor([[0, 1, 2, 0], [1, 1, 0, 0]]), [4, 2]
    for edges in (shared, own):
        assert torch.autograd.gradcheck(
            lambda u, e: criterion(u, e, labels, lengths), (unary, edges), atol=1e-6
        )
    # against all sequences, one by one
    value = criterion(unary, shared, labels, lengths)[1].item()
    totals = {
        (i, j): (unary[1, 0, i] + unary[1, 1, j] + shared[i, j]).item()
        for i in range(3)
        for j in range(3)
    }
    wanted = np.log(sum(np.exp(v) for v in totals.values())) - totals[1, 1]
    np.testing.assert_allclose(value, wanted / np.log(2.0))


@pytest.mark.parametrize("monotone", [True, False])
def test_the_optimizer_is_the_learner(monotone):
    """One linear layer without a bias moves as OGD does."""
    stream = dl.streams.DigitTriples(rounds=150, flips=1, seed=0)
    loss = dl.losses.Logistic(stream.task)
    rate = dl.rates.Polyak(monotone=monotone, cap=5.0)
    learner = dl.OGD(loss, dl.decoders.GapOptimal(loss), rate, dl.domains.Ball(6.0))
    trace = learner.run(stream)

    layer = torch.nn.Linear(64, 3, bias=False, dtype=torch.float64)
    torch.nn.init.zeros_(layer.weight)
    criterion = SurrogateLoss(loss, dl.decoders.GapOptimal(loss))
    optimizer = Polyak(layer.parameters(), monotone=monotone, cap=5.0, diameter=6.0)
    for t, (x, label) in enumerate(zip(stream.inputs, stream.labels, strict=True)):
        scores = layer(torch.as_tensor(x)[None])
        value = criterion(scores, [int(label)])
        optimizer.zero_grad()
        value.backward()
        eta = optimizer.step(value, criterion.risk(scores, [int(label)]))
        np.testing.assert_allclose(value.item(), trace.loss[t], atol=1e-9)
        np.testing.assert_allclose(eta, trace.eta[t], rtol=1e-8)
    np.testing.assert_allclose(layer.weight.detach().numpy(), learner.weights, atol=1e-9)


def test_the_optimizer_is_saved_with_its_rate():
    layer = torch.nn.Linear(2, 2)
    one, two = (Polyak(layer.parameters(), diameter=2.0) for _ in range(2))
    torch.nn.init.ones_(layer.weight)
    loss = layer(torch.ones(1, 2)).square().sum()
    loss.backward()
    one.step(loss, 0.1)
    two.load_state_dict(one.state_dict())
    assert two.param_groups[0]["least"] == one.param_groups[0]["least"] < np.inf


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: SurrogateLoss(CASES["logistic"][0], reduction="max"), "reduction"),
        (lambda: SurrogateLoss(CASES["logistic"][0])(torch.zeros(3), [0]), "a row for every"),
        (lambda: SurrogateLoss(CASES["logistic"][0])(torch.zeros(2, 3), [0]), "1 labels"),
        (lambda: CRFLoss(3)(torch.zeros(1, 2, 3), torch.zeros(3, 3), [[0, 1]], [5]), "1 to 2"),
        (lambda: SurrogateLoss(CASES["logistic"][0]).predict(torch.zeros(1, 3)), "decoder"),
        (lambda: Polyak(torch.nn.Linear(1, 1).parameters(), cap=0.0), "positive"),
    ],
)
def test_bad_input_is_named(make, words):
    with pytest.raises(dl.InputError, match=words):
        make()


def test_batches_of_nothing_and_sequences_of_one():
    criterion = CRFLoss(3, reduction="none")
    transitions = torch.zeros(3, 3, requires_grad=True)
    assert criterion(torch.zeros(0, 2, 3), transitions, []).shape == (0,)
    one = criterion(torch.zeros(2, 1, 3), transitions, [[0], [1]])
    np.testing.assert_allclose(one.detach(), np.log2(3.0), rtol=1e-6)
    one.sum().backward()
    assert not transitions.grad.any()
    assert SurrogateLoss(CASES["logistic"][0], reduction="sum")(torch.zeros(0, 3), []) == 0.0


@pytest.mark.parametrize("kind", ["float16", "bfloat16", "float32", "float64"])
def test_scores_of_any_precision_and_layout(kind):
    scores = torch.randn(3, 2, dtype=torch.float64).t().to(getattr(torch, kind)).requires_grad_()
    criterion = SurrogateLoss(CASES["logistic"][0])
    for labels in ([0, 2], torch.tensor([0, 2]), torch.tensor([0.0, 2.0]), np.array([0, 2])):
        value = criterion(scores, labels)
        value.backward()
        assert value.dtype == scores.grad.dtype == scores.dtype


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda loss: loss(torch.zeros(2, 3, dtype=torch.long), [0, 1]), "real numbers"),
        (lambda loss: loss(torch.zeros(1, 3), torch.tensor(0)), "one label"),
        (lambda loss: loss(torch.zeros(1, 3), [-1]), "outside"),
        (lambda loss: loss(torch.full((1, 3), np.nan), [1]), "finite"),
        (lambda _: CRFLoss(3)(torch.zeros(2, 3), torch.zeros(3, 3), [[0, 1]]), "batch, length"),
        (lambda _: CRFLoss(2)(torch.zeros(2, 1, 2), torch.zeros(2, 2), [[0], [1]], [1]), "2 seq"),
    ],
)
def test_scores_and_labels_that_do_not_fit(make, words):
    with pytest.raises(dl.InputError, match=words):
        make(SurrogateLoss(CASES["logistic"][0]))


@pytest.mark.parametrize(("loss", "risk"), [(1.0, np.nan), (np.inf, 0.0), (1.0, np.inf)])
def test_losses_that_are_not_finite_move_nothing(loss, risk):
    layer = torch.nn.Linear(2, 2)
    layer(torch.ones(1, 2)).sum().backward()
    before = layer.weight.detach().clone()
    with pytest.raises(dl.InputError, match="finite"):
        Polyak(layer.parameters()).step(loss, risk)
    assert torch.equal(layer.weight, before)


def test_without_a_gap_there_is_no_step_whatever_the_cap():
    layer = torch.nn.Linear(2, 2)
    layer(torch.ones(1, 2)).sum().backward()
    optimizer = Polyak(layer.parameters(), cap=100.0)
    assert optimizer.step(0.1, 5.0) == optimizer.step(1.0, 1.0) == 0.0
    assert 0.0 < optimizer.step(1.0, 0.5) < 100.0
    with pytest.raises(dl.InputError, match="one group"):
        optimizer.add_param_group({"params": torch.nn.Linear(1, 1).parameters()})
