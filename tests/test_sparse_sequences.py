"""Sequences of sparse positions: the same rounds as dense ones, at the cost of their entries."""

import numpy as np
import pytest
from scipy.sparse import csr_array, csr_matrix, vstack

import driftline as dl
from driftline.engines import CompiledEngine, PlainEngine

T, L, D, R = dl.tasks, dl.losses, dl.decoders, dl.rates


def crf(tags, transitions=True, **rest):
    loss = L.Scaled(L.CRF(T.Sequence(tags, transitions)), 2.0)
    return dl.OGD(loss, D.Argmax(loss), rest.pop("rate", R.Polyak()), **rest)


def words(tags, rounds=40, longest=30, features=50, seed=0):
    """Return sequences of positions with few entries, and some with none."""
    rng = np.random.default_rng(seed)
    inputs, labels = [], []
    for n in [1, 2, longest, *rng.integers(1, longest + 1, rounds - 3)]:
        y = (rng.integers(tags) + np.arange(n)) % tags
        x = np.zeros((n, features))
        for i, tag in enumerate(y):
            places = rng.integers(0, features, rng.integers(0, 6))
            x[i, places] = rng.normal(size=places.size)
            x[i, tag] = rng.uniform(0.5, 1.5)
        inputs.append(x / np.sqrt(4 * n))
        labels.append(y)
    return inputs, labels


def sparse(inputs, kind=csr_array):
    return [kind(x) for x in inputs]


def pair(inputs, kind=csr_array):
    return vstack(sparse(inputs, kind), format="csr"), np.cumsum([0, *map(len, inputs)])


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("transitions", [False, True])
@pytest.mark.parametrize("tags", [2, 5, 23])
def test_sparse_rounds_are_those_of_dense_ones_and_of_the_plain_engine(
    tags, transitions, intercept
):
    options = {"intercept": intercept, "rate": R.Decaying(0.3)}
    inputs, labels = words(tags, seed=3)
    shape = crf(tags, transitions, **options).parts.shape(inputs[0].shape[1])
    start = 0.1 * np.random.default_rng(1).normal(size=shape)  # from 0, tags would be tied
    dense, fast, slow = (crf(tags, transitions, initial=start, **options) for _ in range(3))
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


def test_forms_pieces_steps_tickets_and_files_have_the_same_bits(tmp_path):
    inputs, labels = words(5)
    whole, one = crf(5), sparse(inputs)
    trace = whole.run(pair(inputs), labels)
    steps, tickets, pieces = crf(5), crf(5), crf(5)
    for t, (x, y) in enumerate(zip(one, labels, strict=True)):
        assert np.array_equal(steps.predict(x), trace.prediction[t][: len(y)])
        assert steps.step(x, y).loss == trace.loss[t]
        ticket = tickets.ask(x)
        ticket = type(ticket).from_bytes(ticket.to_bytes())
        assert np.array_equal(ticket.prediction, trace.prediction[t][: len(y)])
        tickets.tell(ticket, y)
    pieces.run(one[:7], labels[:7])
    pieces.save(tmp_path / "learner")
    again = dl.load(tmp_path / "learner")
    again.run(pair(inputs[7:]), labels[7:])
    for other in (steps, tickets, again):
        assert np.array_equal(whole.weights, other.weights)


@pytest.mark.parametrize("scaling", [False, True])
def test_late_labels_wait_over_files(scaling, tmp_path):
    inputs, labels = words(4, rounds=20)
    one, two = (dl.auto(T.Sequence(4), scaling=scaling) for _ in range(2))
    trace = one.run(sparse(inputs), labels, delay=3)
    two.run(sparse(inputs[:9]), labels[:9], delay=3)
    two.save(tmp_path / "committee")
    again = dl.load(tmp_path / "committee")
    rest = again.run(pair(inputs[9:]), labels[9:], delay=3)
    assert np.array_equal(rest.prediction, trace.prediction[9:, : rest.prediction.shape[1]])


def test_certificates_replay_sparse_sequences():
    inputs, labels = words(3, rounds=20)
    learner = crf(3)
    trace = learner.run(sparse(inputs), labels)
    comparator = np.random.default_rng(0).normal(size=learner.weights.shape) / 10
    certificate = dl.certify(trace, dl.comparators.Fixed(comparator), sparse(inputs), labels)
    assert certificate.valid, str(certificate)


def test_audits_of_scaled_committees_take_lists_of_sparse_sequences():
    inputs, labels = words(3, rounds=20)
    trace = dl.auto(T.Sequence(3)).run(sparse(inputs), labels, audit=True)
    certificate = dl.certify(trace, None, sparse(inputs), labels)
    assert certificate.valid, certificate.findings


def test_committees_scale_sparse_sequences_as_rows_are_scaled():
    inputs = [x[:1] for x in words(3)[0]]  # one position each: rounds are rows
    rows = csr_array(np.concatenate(inputs))
    scaling, alone = dl.features.Standardiser(constant=False), dl.features.Standardiser(False)
    mapped = T.Sequence(3).layout.rows(sparse(inputs))
    scaled = scaling.piece(mapped, 0, mapped.rounds)
    assert np.array_equal(scaled.positions.values, alone.transform(rows).data)
    one, two = dl.auto(T.Sequence(3)), dl.auto(T.Sequence(3))
    inputs, labels = words(3)
    trace = one.run(sparse(inputs), labels)
    for t, (x, y) in enumerate(zip(sparse(inputs), labels, strict=True)):
        assert np.array_equal(two.step(x, y).prediction, trace.prediction[t][: len(y)])
    assert trace.target_loss[20:].mean() < 0.5


def test_many_columns_and_single_precision():
    inputs, labels = words(5, features=20)
    wide, narrow, single = crf(5), crf(5), crf(5, dtype=np.float32)
    spread = [
        csr_array((x.data, x.indices * 9973, x.indptr), (x.shape[0], 2**18)) for x in sparse(inputs)
    ]
    assert np.array_equal(
        wide.run(spread, labels).prediction, narrow.run(sparse(inputs), labels).prediction
    )
    single.run(sparse(inputs), labels)
    assert np.allclose(single.weights, narrow.weights, rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize(
    "change, words_",
    [
        (lambda X, y: ([*X[:-1], X[-1][:, :9]], y), "has 9 features"),
        (lambda X, y: ([*X[:-1], X[-1].toarray()], y), "is not sparse"),
        (lambda X, y: ([*X[:-1], X[-1] * np.nan], y), "nan"),
        (lambda X, y: ([*X[:-1], X[-1][:0]], y), "sequence 4 is empty"),
        (lambda X, y: (X, [*y[:-1], [0]]), "positions, but its label has 1 entries"),
        (lambda X, y: ((vstack(X, format="csr"), [0, 3]), y[:1]), "must start at rising rows"),
    ],
)
def test_bad_input_leaves_the_learner_unchanged(change, words_):
    inputs, labels = words(3, rounds=5)
    learner = crf(3)
    learner.run(sparse(inputs), labels)
    before = learner.weights.copy()
    with pytest.raises(dl.InputError, match=words_):
        learner.run(*change(sparse(inputs), labels))
    assert np.array_equal(learner.weights, before)


def test_dense_and_sparse_sequences_may_take_turns():
    inputs, labels = words(4, features=12)
    mixed, dense = crf(4), crf(4)
    dense.run(inputs, labels)
    mixed.run(inputs[:9], labels[:9])
    mixed.run(sparse(inputs[9:20]), labels[9:20])
    mixed.run(inputs[20:], labels[20:])
    assert np.allclose(mixed.weights, dense.weights, rtol=1e-9, atol=1e-11)


def test_columns_that_change_while_they_are_read_are_not_followed():
    inputs, labels = words(3)
    learner, rows = crf(3), T.Sequence(3).layout.rows(sparse(inputs))
    learner.run(sparse(inputs), labels)
    rows.positions.columns[:] = 2**30  # as another thread might
    given = rows.arrays(0, rows.rounds)
    assert given[1].max() == 2**30
    _, _, linked = learner.engine._ready(rows)
    room = learner._room(labels)
    rows.loop(np.dtype(np.float64)).compiled(
        linked.program.code,
        linked.program.params,
        given,
        rows.loop_labels(T.Sequence(3).labels.check_all(labels)),
        np.full((rows.rounds, 1), 0.5),
        learner.engine.stored,
        np.empty((0, 0)),
        learner.engine.vector,
        linked.buffer,
        room.table,
        room["prediction"],
    )
