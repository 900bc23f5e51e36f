"""Documents as sparse rows: the same rounds as dense ones, at the cost of their entries."""

import numpy as np
import pytest
from scipy.sparse import csr_array, csr_matrix, vstack
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

import driftline as dl
from driftline.engines import CompiledEngine, PlainEngine
from driftline.inputs import WIDE, Items, SparseItems

T, L, D, R = dl.tasks, dl.losses, dl.decoders, dl.rates

TASKS = {
    "ndcg": T.NDCG(2),
    "ndcg at 3": T.NDCG(2, cutoff=3, gain="exponential"),
    "precision": T.PrecisionAtK(2),
}
every_task = pytest.mark.parametrize("name", TASKS)


def queries(rounds=40, features=WIDE + 100, seed=0, binary=False):
    """Queries of 1 to 12 documents with few entries, and some with none."""
    rng = np.random.default_rng(seed)
    weights, inputs, labels = rng.standard_normal(features), [], []
    for n in [1, 2, *rng.integers(1, 13, rounds - 2)]:
        x = np.zeros((n, features))
        for row in x:
            places = rng.integers(0, min(features, 60), rng.integers(0, 8))
            row[places] = rng.normal(size=places.size)
        inputs.append(x)
        labels.append(np.digitize(x @ weights, [0.5] if binary else [0.5, 1.5]))
    return inputs, labels


def of(name):
    return TASKS[name], *queries(binary=name == "precision")


def sparse(inputs, kind=csr_array):
    return [kind(x) for x in inputs]


def pair(inputs, kind=csr_array):
    return vstack(sparse(inputs, kind), format="csr"), np.cumsum([0, *map(len, inputs)])


def pairwise(task, **rest):
    loss = L.Scaled(L.PairwiseLogistic(task), 2.0)
    return dl.OGD(loss, D.Argmax(loss), rest.pop("rate", R.Polyak()), **rest)


def test_wide_matrices_stay_sparse_and_narrow_ones_are_made_dense():
    layout = T.NDCG(2).layout
    for features, kind in ((WIDE, Items), (WIDE + 1, SparseItems)):
        rows = [csr_array((3, features)), csr_array((1, features))]
        assert type(layout.rows(rows)) is kind
        assert type(layout.rows((vstack(rows, format="csr"), [0, 3, 4]))) is kind


@pytest.mark.parametrize("rate", [R.Polyak(), R.Relative(3.0), R.AdaGrad()], ids=repr)
@pytest.mark.parametrize("intercept", [False, True])
@every_task
def test_sparse_rounds_are_those_of_dense_ones_and_of_the_plain_engine(name, intercept, rate):
    task, inputs, labels = of(name)
    dense, fast, slow = (pairwise(task, rate=rate, intercept=intercept) for _ in range(3))
    state, slow.engine = slow.state, PlainEngine(slow.parts)
    slow.restore(state)
    expected = dense.run(inputs, labels)
    for learner, form in ((fast, sparse(inputs)), (slow, pair(inputs, csr_matrix))):
        trace = learner.run(form, labels)
        for column in ("loss", "grad_sq", "risk", "target_loss"):
            first, second = getattr(trace, column), getattr(expected, column)
            assert np.allclose(first, second, rtol=1e-9, atol=1e-9), column
        assert np.array_equal(trace.prediction, expected.prediction)
        assert np.allclose(learner.weights, dense.weights, rtol=1e-8, atol=1e-10)
        assert learner.facts.largest_input == pytest.approx(dense.facts.largest_input)
    assert type(fast.engine) is CompiledEngine and fast.engine.transposed


@pytest.mark.parametrize("scaling", [False, True])
@every_task
def test_pieces_steps_tickets_and_files_have_the_same_bits(name, scaling, tmp_path):
    task, inputs, labels = of(name)
    whole, steps, tickets, pieces = (dl.auto(task, scaling=scaling) for _ in range(4))
    trace, one = whole.run(pair(inputs), labels), sparse(inputs)
    for t, (x, y) in enumerate(zip(one, labels, strict=True)):
        own = steps.predict(x)
        assert np.array_equal(own, trace.prediction[t][: len(own)])
        assert steps.step(x, y).target_loss == trace.target_loss[t]
        ticket = tickets.ask(x)
        tickets.tell(type(ticket).from_bytes(ticket.to_bytes()), y)
    pieces.run(one[:7], labels[:7])
    again = dl.load(pieces.save(tmp_path / "committee"))
    again.run(pair(inputs[7:]), labels[7:])
    for other in (steps, tickets, again):
        for mine, theirs in zip(whole.members, other.members, strict=True):
            assert np.array_equal(mine.weights, theirs.weights)


def test_late_labels_wait_over_files(tmp_path):
    task, inputs, labels = of("ndcg")
    one, two = dl.auto(task), dl.auto(task)
    trace = one.run(sparse(inputs), labels, delay=3)
    two.run(sparse(inputs[:9]), labels[:9], delay=3)
    again = dl.load(two.save(tmp_path / "committee"))
    rest = again.run(pair(inputs[9:]), labels[9:], delay=3)
    assert np.array_equal(rest.prediction, trace.prediction[9:, : rest.prediction.shape[1]])


@every_task
def test_runs_over_sparse_documents_are_certified(name):
    task, inputs, labels = of(name)
    learner = pairwise(task)
    trace = learner.run(sparse(inputs), labels)
    comparator = np.random.default_rng(0).normal(size=learner.weights.shape) / 10
    certificate = dl.certify(trace, dl.comparators.Fixed(comparator), sparse(inputs), labels)
    assert certificate.valid, str(certificate)
    committee = dl.auto(task)
    committee.run(sparse(inputs[:20]), labels[:20])
    trace = committee.run(sparse(inputs[20:]), labels[20:], audit=True)
    certificate = dl.certify(trace, None, sparse(inputs[20:]), labels[20:])
    assert certificate.valid, certificate.findings
    other = sparse(inputs[20:])
    other[3] = 3.0 * other[3]
    assert not dl.certify(trace, None, other, labels[20:]).valid


def test_bad_documents_are_named():
    task, inputs, labels = of("ndcg")
    rows = sparse(inputs)
    for bad, words in (
        ([*rows[:-1], rows[-1][:, :9]], "set 39 has 9 features"),
        ([*rows[:-1], inputs[-1]], "set 39 is not sparse"),
        ([*rows[:-1], rows[-1][:0]], "set 39 is empty: it has no items"),
        ([*rows[:-1], rows[-1] * np.nan], "finite"),
    ):
        committee = dl.auto(task)
        with pytest.raises(dl.InputError, match=words):
            committee.run(bad, labels)
        assert committee.rounds == 0


# -- as users of rankers have them


@pytest.mark.parametrize("columns", [30, 100_000])
def test_a_ranker_takes_svmlight_files_with_query_ids(columns, tmp_path):
    rng = np.random.default_rng(0)
    inputs, labels = queries(200, features=30)
    narrow, places = pair(inputs)
    where = np.sort(rng.choice(columns, 30, replace=False))
    placed = where[narrow.indices].astype(np.int32), narrow.indptr.astype(np.int32)
    X = csr_array((narrow.data, *placed), (narrow.shape[0], columns))
    qid = np.repeat(np.arange(200), np.diff(places))
    path = str(tmp_path / "queries.svm")
    dump_svmlight_file(X, np.concatenate(labels), path, query_id=qid)
    X, y, qid = load_svmlight_file(path, n_features=columns, query_id=True)
    model = dl.DriftRanker(cutoff=10).fit(X, y, qid=qid)
    assert model.learner_.standardiser.sparse == (columns > WIDE)
    scores = model.predict(X)
    assert model.score(X, y, qid=qid) > 0.93
    found = dl.estimators.ranking_scores(y, scores, qid=qid, cutoff=10)
    assert found.ndcg == pytest.approx(model.score(X, y, qid=qid), rel=1e-12)
    half = int(places[100])
    pieces = dl.DriftRanker(cutoff=10, max_relevance=2)
    for part in (slice(0, half), slice(half, None)):
        pieces.partial_fit(X[part], y[part], qid=qid[part])
    np.testing.assert_array_equal(pieces.predict(X), scores)
    one = dl.DriftRanker(pairwise).fit(X, y, qid=qid)
    np.testing.assert_allclose(one.predict(X[:5]), X[:5] @ one.learner_.weights[0])


def naive_scores(grades, scores, groups, cutoff, exponential):
    """NDCG and MRR as they are defined, one document after the other."""
    ndcg, mrr, start = [], [], 0
    for size in groups:
        mine = list(zip(scores[start : start + size], grades[start : start + size], strict=True))
        start += size
        most = cutoff or size
        if not any(grade > 0 for _, grade in mine):
            continue
        gain = (lambda g: 2.0**g - 1.0) if exponential else float
        by_score = [g for _, g in sorted(mine, key=lambda pair: -pair[0])]
        best = sorted(by_score, reverse=True)
        earned, possible, reciprocal = 0.0, 0.0, 0.0
        for rank in range(min(most, size)):
            earned += gain(by_score[rank]) / np.log2(rank + 2)
            possible += gain(best[rank]) / np.log2(rank + 2)
            if by_score[rank] > 0 and reciprocal == 0.0:
                reciprocal = 1.0 / (rank + 1)
        ndcg.append(earned / possible)
        mrr.append(reciprocal)
    return np.mean(ndcg), np.mean(mrr), len(ndcg)


@pytest.mark.parametrize("cutoff", [None, 1, 3, 100])
@pytest.mark.parametrize("gain", ["linear", "exponential"])
def test_ndcg_and_mrr_are_as_defined(cutoff, gain):
    rng = np.random.default_rng(1)
    groups = rng.integers(1, 9, 50)
    grades = rng.integers(0, 4, groups.sum()) * (rng.random(groups.sum()) < 0.4)
    scores = rng.integers(0, 5, groups.sum()) / 4.0  # with ties
    wanted = naive_scores(grades, scores, groups, cutoff, gain == "exponential")
    found = dl.estimators.ranking_scores(grades, scores, group=groups, cutoff=cutoff, gain=gain)
    np.testing.assert_allclose(found, wanted, rtol=1e-12)


def test_scores_of_rankings_refuse_what_is_none():
    score = dl.estimators.ranking_scores
    assert score([0, 0], [1.0, 2.0], qid=[1, 1]) == (1.0, 1.0, 0)
    with pytest.raises(dl.InputError, match="shapes are"):
        score([0, 1], [1.0], qid=[1, 1])
    with pytest.raises(dl.InputError, match="finite"):
        score([0, 1], [1.0, np.nan], qid=[1, 1])


@pytest.mark.parametrize("discount", [(1e308, 1e308), (np.inf, 1.0), (np.nan, 1.0)])
def test_discounts_that_overflow_are_refused(discount):
    with pytest.raises(dl.InputError, match="discounts must"):
        T.NDCG(2, discount=discount)
