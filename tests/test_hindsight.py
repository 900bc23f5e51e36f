"""Best comparators in hindsight: fits against SciPy, cuts against all ways to cut."""

import itertools

import numpy as np
import pytest
from howmany import number
from scipy import sparse

import driftline as dl
from driftline.certificates import best_fixed, best_piecewise
from driftline.certificates.hindsight import _cut
from driftline.engines import Totals

L, T = dl.losses, dl.tasks
Q = dl.regularizers.Quadratic


def stream(task, rounds=60, features=3, seed=0, flips=1):
    generator = np.random.default_rng(seed)
    inputs = generator.standard_normal((rounds, features))
    weights = generator.standard_normal((flips + 1, task.dim, features))
    labels = [
        task.top_prediction(weights[(flips + 1) * t // rounds] @ inputs[t]) for t in range(rounds)
    ]
    return inputs, labels


LOSSES = [
    L.Logistic(T.Multiclass(3)),
    L.Logistic(T.Binary()),
    L.Scaled(L.SmoothHinge(T.Multiclass(3)), 2.0),
    L.SparseMAP(T.Ordinal(4), 1.0),
    L.ConvolutionalFenchelYoung(T.Multiclass(3), Q(0.5)),
]


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("places", [np.int32, np.int64])
@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: type(loss).__name__)
def test_totals_over_sparse_rows_are_those_over_dense_ones(loss, places, intercept):
    inputs, labels = stream(loss.task, features=7)
    inputs[np.abs(inputs) < 0.7] = 0.0
    thin = sparse.csr_array(inputs)
    thin.indices, thin.indptr = thin.indices.astype(places), thin.indptr.astype(places)
    weights = np.random.default_rng(1).standard_normal(
        (loss.task.layout.weight_rows, 7 + intercept)
    )
    totals, checked = Totals(loss, intercept), loss.task.labels.check_all(labels)
    dense, thin = loss.task.layout.rows(inputs), loss.task.layout.rows(thin)
    value, slope = totals.over(dense, 5, 50, checked[5:50], weights)
    again, same = totals.over(thin, 5, 50, checked[5:50], weights)
    plain, plainly = totals._plainly(thin, 5, 50, checked[5:50], weights)
    assert again == pytest.approx(value, rel=1e-12) == pytest.approx(plain, rel=1e-12)
    np.testing.assert_allclose(same, slope, atol=1e-11)
    np.testing.assert_allclose(same, plainly, atol=1e-11)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: type(loss).__name__)
def test_a_fit_is_the_minimum_on_the_ball(loss, intercept):
    from scipy.optimize import minimize

    inputs, labels = stream(loss.task, rounds=number(30, 60))
    found = best_fixed(
        loss, inputs, labels, dl.domains.Ball(3.0), intercept=intercept, tolerance=1e-4
    )
    shape = found.comparator.weights.shape[1:]
    rows = loss.task.layout.rows(inputs)

    def total(flat):
        W = flat.reshape(shape)
        scores = (rows.scores(W, False, t, intercept) for t in range(len(labels)))
        return sum(loss.value_and_grad(s, y)[0] for s, y in zip(scores, labels, strict=True))

    assert total(found.comparator.weights[0].ravel()) == pytest.approx(found.loss)
    assert found.comparator.largest_norm <= 1.5 + 1e-9
    inside = {"type": "ineq", "fun": lambda flat: 1.5**2 - flat @ flat}
    best = minimize(total, np.zeros(np.prod(shape)), method="SLSQP", constraints=inside)
    share = 0.02 if loss.kinks(np.zeros(loss.task.dim), labels[0]) else 2e-4
    assert best.fun - share * best.fun <= found.loss <= best.fun + max(0.02, share * best.fun)
    assert found.loss - found.gap <= best.fun + 1e-4


def test_documents_and_sequences_can_be_fitted():
    task = T.NDCG(2)
    generator = np.random.default_rng(0)
    inputs = [generator.standard_normal((4, 3)) for _ in range(30)]
    labels = [np.clip(np.round(x @ [1.0, -1.0, 0.5]), 0, 2).astype(int) for x in inputs]
    loss = L.ConvolutionalFenchelYoung(task, Q(0.5))
    found = best_fixed(loss, inputs, labels, dl.domains.Ball(20.0))
    assert found.gap <= max(0.01, 1e-3 * found.loss) and found.loss < 10
    words = dl.streams.PlantedSequences(rounds=20, flips=0, tags=3, longest=4, seed=0)
    assert best_fixed(L.CRF(words.task), words, domain=dl.domains.Ball(20.0)).loss < 10


def test_planted_changes_are_found():
    inputs, labels = stream(T.Multiclass(3), rounds=400, flips=3, seed=1)
    calls = []
    found = best_piecewise(
        L.Logistic(T.Multiclass(3)),
        inputs,
        labels,
        segments=4,
        candidates=np.arange(25, 400, 25),
        progress=lambda done, total: calls.append((done, total)),
    )
    np.testing.assert_array_equal(found.comparator.starts, [0, 100, 200, 300])
    assert "dynamic programming" in found.method and calls[-1] == (136, 136)
    again = best_piecewise(
        L.Logistic(T.Multiclass(3)), inputs, labels, penalty=10.0, candidates=np.arange(25, 400, 25)
    )
    np.testing.assert_array_equal(again.comparator.starts, found.comparator.starts)
    known = best_piecewise(
        L.Logistic(T.Multiclass(3)), inputs, labels, segments=4, candidates=[100, 200, 300]
    )
    assert known.loss == pytest.approx(found.loss) and "all candidates" in known.method


def test_cuts_are_the_best_of_all_ways():
    generator = np.random.default_rng(0)
    for _ in range(20):
        costs = np.full((5, 6), np.inf)
        for i, j in itertools.combinations(range(6), 2):
            costs[i, j] = generator.random() * (j - i) ** 1.5
        ways = [
            [0, *inner, 5] for k in range(5) for inner in itertools.combinations(range(1, 5), k)
        ]

        def price(way, each=0.0, costs=costs):
            return sum(costs[a, b] + each for a, b in zip(way[:-1], way[1:], strict=True))

        for segments in range(1, 6):
            best = min(price(way) for way in ways if len(way) == segments + 1)
            assert price(_cut(costs, segments, 0.0)) == pytest.approx(best)
        best = min(price(way, 0.3) for way in ways)
        assert price(_cut(costs, None, 0.3), 0.3) == pytest.approx(best)


@pytest.mark.parametrize(
    "change, words",
    [
        ({}, "either how many segments"),
        ({"segments": 2, "penalty": 1.0}, "either how many segments"),
        ({"segments": 9, "candidates": [10]}, "cannot make 9 segments"),
        ({"segments": 2, "candidates": [100]}, "must lie in 0..60"),
        ({"segments": 1, "domain": dl.domains.Unbounded()}, "a ball to lie in"),
    ],
)
def test_bad_input_is_named(change, words):
    inputs, labels = stream(T.Multiclass(3))
    with pytest.raises(dl.InputError, match=words):
        best_piecewise(L.Logistic(T.Multiclass(3)), inputs, labels, **change)


def test_what_is_not_convex_cannot_be_fitted():
    inputs, labels = stream(T.Multiclass(3))
    with pytest.raises(dl.InputError, match="not convex"):
        best_fixed(L.Hinge(T.Multiclass(3), 0.5), inputs, labels)


@pytest.mark.parametrize("flips", [0, 3])
def test_weights_for_the_least_bound_have_a_smaller_one(flips):
    stream = dl.streams.LabelFlips(rounds=1000, flips=flips, seed=0)
    random = np.random.default_rng(0)
    labels = np.where(random.random(1000) < 0.1, -stream.labels, stream.labels)
    learner = dl.OGD(dl.losses.Logistic(stream.task))
    trace = learner.run(stream.inputs, labels)
    step = float(trace.eta.min())
    given = {"segments": flips + 1, "candidates": stream.starts[1:]}
    plain, tight = (
        dl.certificates.best_piecewise(learner.loss, stream.inputs, labels, step=s, **given)
        for s in (None, step)
    )
    assert tight.loss >= plain.loss - plain.gap and tight.gap >= tight.loss - plain.loss - 1e-9
    far, near = (dl.certify(trace, h.comparator, stream.inputs, labels) for h in (plain, tight))
    assert near.valid and near.diameter < far.diameter
    if flips:  # the worst case has the diameter in place of the first weights
        assert near.path_length < far.path_length and near.worst_case < 0.95 * far.worst_case
    with pytest.raises(dl.InputError, match="step must be positive"):
        dl.certificates.best_piecewise(learner.loss, stream.inputs, labels, step=0.0, **given)
