"""Rounds of several vectors, documents or positions, brought to one scale as they come."""

import naive
import numpy as np
import pytest
from howmany import number
from scipy import sparse

import driftline as dl
from driftline.app.runs import load_model, new_model
from driftline.app.tables import Encoder
from driftline.app.tables.labels import GradeCodec
from driftline.committee import named
from driftline.features import Chain, Standardise, Standardiser
from driftline.features.scaling import HEADER, INVERSE, SHOWN, WINDOW
from driftline.inputs import Items, Layout, Sequences

#: Of a stream of queries, and of one of words.
ROUNDS, WORDS = number(60, 150), number(40, 60)

SCALES = np.array([1e-3, 1.0, 1e3, 1.0, 1e3, 1e-3])


def queries(rounds=ROUNDS, seed=0, scales=SCALES, offset=5.0):
    """Queries of 1 to 8 documents, whose relevance depends on all features, other than before."""
    rng = np.random.default_rng(seed)
    weights = rng.standard_normal((3, len(scales)))
    inputs, labels = [], []
    for t in range(rounds):
        plain = rng.standard_normal((rng.integers(1, 9), len(scales)))
        labels.append(np.digitize(plain @ weights[3 * t // rounds], [0.5, 2.0]))
        inputs.append((plain + offset) * scales)
    return inputs, labels


def words(rounds=WORDS, seed=0, tags=3):
    """Sequences of 1 to 6 positions, with features of different scales."""
    rng = np.random.default_rng(seed)
    means = 2.0 * rng.standard_normal((tags, 4))
    labels = [rng.integers(0, tags, rng.integers(1, 7)) for _ in range(rounds)]
    noise = [rng.standard_normal((len(label), 4)) for label in labels]
    scales = [1e-3, 1.0, 1e3, 1e3]
    return [(means[y] + z + 3.0) * scales for y, z in zip(labels, noise, strict=True)], labels


STREAMS = {
    "ndcg": (dl.tasks.NDCG(2), queries()),
    "ndcg at 3": (dl.tasks.NDCG(2, cutoff=3), queries(seed=1)),
    "precision": (dl.tasks.PrecisionAtK(2), (queries()[0], [y > 0 for y in queries()[1]])),
    "chain": (dl.tasks.Sequence(3), words()),
    "positions": (dl.tasks.Sequence(3, transitions=False), words(seed=1)),
}
EVERY = pytest.mark.parametrize("name", STREAMS)


def of(name):
    task, (inputs, labels) = STREAMS[name]
    return task, inputs, labels


def by_hand(inputs, constant):
    """Vectors of every round by those before it, with the scaling of plain rows.

    A round with more vectors than all before it counts itself: its cells lie in the state.
    """
    scaling, made, before = Standardiser(constant), [], 0
    for vectors in inputs:
        row = dl.tasks.Multiclass(3).layout.rows(vectors)
        seen = scaling.look_at(row).array.copy()
        scaling.piece(row, 0, len(vectors))
        if len(vectors) > before < WINDOW:
            about = scaling.state[HEADER:].reshape(-1, vectors.shape[1])
            cells = np.clip((vectors - about[SHOWN]) * about[INVERSE], -3.0, 3.0)
            seen[:, : vectors.shape[1]] = cells * (1.0 / np.sqrt(vectors.shape[1]))
        made.append(seen)
        before += len(vectors)
    return made, scaling


def unscaled(member):
    """Return a member for scaled rows: its map scales no more."""
    part = member.map.maps[-1] if isinstance(member.map, Chain) else None
    return dl.OGD(**member.parts._asdict(), features=part)


def bits(learner):
    about, arrays = learner.to_saved()
    return repr(about), {name: array.tobytes() for name, array in arrays.items()}


def same(one, other):
    for name, column in one.columns().items():
        np.testing.assert_array_equal(column, other.columns()[name])


# -- the scaling itself


def test_rounds_are_scaled_as_written_out():
    """A cell is what it would be if it came next, and then all of the round are remembered."""
    inputs, _ = queries(400)
    inputs[200][:, 1] += 1e6
    for x in inputs[250:]:
        x[:, 2] *= 50.0
    columns, wanted, before = [naive.Column() for _ in SCALES], [], 0
    for vectors in inputs:
        seen = [[c.next(x) for c, x in zip(columns, v, strict=True)] for v in vectors]
        for vector in vectors:
            for column, x in zip(columns, vector, strict=True):
                column.scale(x)
        if len(vectors) > before < 64:  # a round with more vectors than all before counts itself
            seen = [[c.away(x) for c, x in zip(columns, v, strict=True)] for v in vectors]
        wanted.append(np.clip(seen, -3.0, 3.0))
        before += len(vectors)
    made = Standardiser(constant=False)
    for scaled, values in zip(made.transform(inputs), wanted, strict=True):
        np.testing.assert_allclose(scaled, values / np.sqrt(len(SCALES)), atol=1e-7)
    assert made.far.tolist() == [column.far for column in columns]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("constant", [True, False, 0.3])
def test_rounds_in_pieces_looked_at_and_as_plain_rows_are_the_same_bits(constant, dtype):
    inputs, _ = queries(300)
    whole = Standardiser(constant, dtype)
    made = whole.transform(inputs)
    pieces, rows = Standardiser(constant, dtype), Items(inputs)
    for a, b in ((0, 1), (1, 2), (2, 9), (9, 10), (10, 200), (200, 300)):
        seen = pieces.look_at(Items(inputs[a : a + 1])).groups[0]
        np.testing.assert_array_equal(seen, made[a])
        for own, wanted in zip(pieces.piece(rows, a, b).groups, made[a:b], strict=True):
            np.testing.assert_array_equal(own, wanted)
    plain, remembering = Standardiser(constant, dtype), Standardiser(constant, dtype)
    plain.transform(np.concatenate(inputs))
    for vectors in inputs:
        remembering.remember(Sequences([vectors], 3))
    states = [other.state.tobytes() for other in (pieces, plain, remembering)]
    assert states == [whole.state.tobytes()] * 3
    pair = np.concatenate(inputs), np.cumsum([0, *map(len, inputs)])
    for form in (pair, (sparse.csr_array(pair[0]), pair[1])):
        for own, wanted in zip(Standardiser(constant, dtype).transform(form), made, strict=True):
            np.testing.assert_array_equal(own, wanted)


def test_the_first_round_is_scaled_by_itself():
    """Otherwise all of its documents would be zeros, and nothing could be learned from them."""
    first = np.random.default_rng(0).normal(5.0, 1e3, (500, 3))
    (made,) = Standardiser(constant=False).transform([first])
    made *= np.sqrt(3.0)
    np.testing.assert_allclose(made.std(axis=0), 1.0, atol=0.15)
    assert np.corrcoef(made[:, 0], first[:, 0])[0, 1] > 0.99


def test_rounds_of_one_row_are_those_rows():
    rows = np.concatenate(queries()[0])
    single = Standardiser().transform(rows[:, np.newaxis])
    np.testing.assert_array_equal(np.concatenate(single), Standardiser().transform(rows))


@pytest.mark.parametrize("start", [0, 1, 40])
def test_a_refused_round_is_forgotten_with_its_piece(start):
    inputs, _ = queries()
    scaling = Standardiser()
    if start:
        scaling.transform(inputs[:start])
    before = scaling.to_saved()
    bad = [x.copy() for x in inputs]
    bad[start + 2][-1, 3] = np.nan
    for end in (start + 3, ROUNDS):
        with pytest.raises(dl.InputError, match=f"row {start + 2} has nan"):
            scaling.piece(Items(bad), start, end)
    with pytest.raises(dl.InputError, match=f"row {start + 2} has nan"):
        scaling.look_at(Items(bad))
    after = scaling.to_saved()
    assert after[0] == before[0] and after[1]["state"].tobytes() == before[1]["state"].tobytes()


# -- committees


@EVERY
def test_a_scaled_committee_is_an_unscaled_one_on_scaled_inputs(name):
    task, inputs, labels = of(name)
    committee = dl.auto(task)
    constant = committee.members[0].map.constant
    assert constant is (name == "positions")
    scaled, scaling = by_hand(inputs, constant)
    plain = dl.Committee([unscaled(member) for member in committee.members])
    trace = committee.run(inputs, labels)
    same(trace, plain.run(scaled, labels))
    assert committee.standardiser.state.tobytes() == scaling.state.tobytes()
    for own, wanted in zip(trace.seen_by(0, inputs), scaled, strict=True):
        np.testing.assert_array_equal(own, wanted)


@EVERY
def test_runs_steps_tickets_pieces_and_files_are_the_same_bits(name, tmp_path):
    task, inputs, labels = of(name)
    whole, stepped, told, pieces = (dl.auto(task) for _ in range(4))
    trace = whole.run(inputs, labels)
    for t, (x, y) in enumerate(zip(inputs, labels, strict=True)):
        if t in (0, 1, 20):
            before = bits(stepped)
            seen = stepped.predict(x)
            assert bits(stepped) == before
        ticket = told.ask(x)
        told.tell(ticket, y)
        made = stepped.step(x, y)
        if t in (0, 1, 20):
            np.testing.assert_array_equal(made.prediction, seen)
        np.testing.assert_array_equal(made.prediction, ticket.prediction)
        assert made.target_loss == trace.target_loss[t]
    for a, b in ((0, 1), (1, 7), (7, len(inputs))):
        pieces.run(inputs[a:b], labels[a:b])
        pieces = dl.load(pieces.save(tmp_path / "committee"))
    wanted = bits(whole)[1]
    assert bits(stepped)[1] == bits(told)[1] == bits(pieces)[1] == wanted


@pytest.mark.parametrize("played", [0, 30])
@EVERY
def test_a_refused_round_changes_nothing(name, played):
    task, inputs, labels = of(name)
    committee = dl.auto(task)
    if played:
        committee.run(inputs[:played], labels[:played])
    before, bad = bits(committee), [x.copy() for x in inputs[played:]]
    bad[3][0, 1] = np.inf
    x, y = inputs[played], labels[played]
    calls = [
        lambda: committee.run(bad, labels[played:]),
        lambda: committee.step(bad[3], labels[played + 3]),
        lambda: committee.predict(bad[3]),
        lambda: committee.step(x, np.append(y, 0)),
    ]
    if played:
        calls.append(lambda: committee.step(x[:, :2], y))
    for call in calls:
        with pytest.raises(dl.InputError):
            call()
        assert bits(committee) == before


def test_too_many_documents_are_refused_before_they_are_remembered():
    inputs, labels = queries()
    committee = dl.auto(dl.tasks.NDCG(2))
    committee.run(inputs, labels)
    before, rng = bits(committee), np.random.default_rng(0)
    x, y = rng.standard_normal((10_001, len(SCALES))), rng.integers(0, 3, 10_001)
    for call in (lambda: committee.step(x, y), lambda: committee.run([*inputs, x], [*labels, y])):
        with pytest.raises(dl.InputError, match="10001 documents"):
            call()
        assert bits(committee) == before


@EVERY
def test_runs_are_certified_on_what_they_were_scaled_to(name, tmp_path):
    task, inputs, labels = of(name)
    committee = dl.auto(task)
    committee.run(inputs[:20], labels[:20])
    trace = committee.run(inputs[20:], labels[20:], audit=True)
    for made in (trace, type(trace).load(trace.save(tmp_path / "trace"))):
        certificate = dl.certify(made, None, inputs[20:], labels[20:])
        assert certificate.valid, certificate.findings
        assert certificate.mapped
    other = [x.copy() for x in inputs[20:]]
    other[3][:] *= 3.0
    assert not dl.certify(trace, None, other, labels[20:]).valid


@EVERY
def test_without_scaling_all_is_as_it_was(name, tmp_path):
    task, inputs, labels = of(name)
    plain = dl.auto(task, scaling=False)
    assert plain.standardiser is None
    plain.run(inputs[:30], labels[:30])
    again = dl.load(plain.save(tmp_path / "plain"))
    assert again.standardiser is None
    same(plain.run(inputs[30:], labels[30:]), again.run(inputs[30:], labels[30:]))


@pytest.mark.parametrize("seed", range(2))
def test_documents_of_any_scale_are_ranked(seed):
    """Without scaling only the features of the largest scale are learned from."""
    inputs, labels = queries(number(300, 1500), seed=seed)
    task = dl.tasks.NDCG(2, cutoff=10)
    lost = {
        s: dl.auto(task, scaling=s).run(inputs, labels).target_loss.mean() for s in (False, True)
    }
    assert lost[True] < 0.4 * lost[False]


@pytest.mark.parametrize("seed", range(2))
def test_scales_of_documents_change_little(seed):
    inputs, labels = queries(number(300, 1000), seed=seed)
    task, factors = (
        dl.tasks.NDCG(2),
        10.0 ** np.random.default_rng(seed).uniform(-4, 4, len(SCALES)),
    )
    one = dl.auto(task).run(inputs, labels).target_loss.mean()
    other = dl.auto(task).run([x * factors for x in inputs], labels).target_loss.mean()
    assert abs(one - other) < 0.02 * one


@pytest.mark.parametrize("learner", ["paper", "restart", "auto"])
def test_learners_by_name_scale_documents_too(learner):
    inputs, labels = queries(300)
    committee = named(learner, dl.tasks.NDCG(2))
    scaled = named(learner, dl.tasks.NDCG(2), scaling=False)
    assert committee.standardiser.constant is False and scaled.standardiser is None
    trace = committee.run(inputs, labels)
    assert trace.target_loss.mean() < scaled.run(inputs, labels).target_loss.mean()


def test_a_ranker_predicts_what_its_committee_does():
    inputs, labels = queries(300)
    rows, grades = np.concatenate(inputs), np.concatenate(labels)
    group = [len(x) for x in inputs]
    model = dl.DriftRanker(max_relevance=2).fit(rows, grades, group=group)
    members = np.array([member.scores(rows) for member in model.learner_.members])
    np.testing.assert_array_equal(model.predict(rows), model.learner_.weights @ members)
    factors = 10.0 ** np.arange(len(SCALES))
    other = dl.DriftRanker(max_relevance=2).fit(rows * factors, grades, group=group)
    assert (
        abs(
            other.score(rows * factors, grades, group=group)
            - model.score(rows, grades, group=group)
        )
        < 0.01
    )


def test_a_model_of_a_table_scales_documents(tmp_path):
    inputs, labels = queries(80)
    encoder = Encoder(len(SCALES), GradeCodec(["grade"], highest=2), "query")
    made = new_model("auto", encoder)
    assert made.learner.standardiser is not None
    made.learn(inputs[:60], labels[:60])
    again = load_model(made.save(tmp_path / "model"))
    for one, two in zip(made.predict(inputs), again.predict(inputs), strict=True):
        np.testing.assert_array_equal(one, two)
    rest = [model.learn(inputs[60:], labels[60:]).trace for model in (made, again)]
    same(*rest)
    assert rest[0].target_loss.mean() < 0.1
    assert made.far_outside == again.far_outside
    wanted = [made.learner.predict(x) for x in inputs]
    for one, two in zip(made.predict(inputs), wanted, strict=True):
        np.testing.assert_array_equal(one, two)


class OwnLayout(Layout):
    """Rows of a kind of one's own."""

    def rows(self, inputs):
        return Items(inputs)

    def norm_in_words(self, intercept):
        return "something"


def test_rows_of_ones_own_are_left_as_they_are():
    class Own(dl.tasks.NDCG):
        layout = OwnLayout()

    committee = dl.auto(Own(2))
    assert committee.standardiser is None
    with pytest.raises(dl.InputError, match="cannot be standardised"):
        dl.OGD(committee.members[0].loss, features=Standardise())


def test_estimators_of_rounds_scale_unless_told():
    rows, grades = np.concatenate(queries()[0]), np.concatenate(queries()[1])
    group = [len(x) for x in queries()[0]]
    plain = dl.DriftRanker(scaling=False).fit(rows, grades, group=group)
    assert plain.learner_.standardiser is None
    assert plain.score(rows, grades, group=group) < 0.95
    inputs, tags = words()
    assert dl.DriftTagger().fit(inputs, tags).learner_.standardiser is not None
    assert dl.DriftTagger(scaling=False).fit(inputs, tags).learner_.standardiser is None
    assert dl.DriftTagger().fit(inputs, tags).score(inputs, tags) > 0.9
    with pytest.raises(dl.InputError, match="scaling must be True or False"):
        dl.DriftTagger(scaling="no").fit(inputs, tags)
