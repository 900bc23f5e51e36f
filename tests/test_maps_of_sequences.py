"""Maps of rounds of several rows: documents, sequences of dense positions and of CSR ones."""

import naive
import numpy as np
import pytest
from scipy.sparse import csr_array, vstack

import driftline as dl
from driftline.errors import InputError
from driftline.features import Chain, InverseCounts, Ranks, Standardise
from driftline.inputs import Items

TAGS = 4
MAPS = [
    InverseCounts(),
    InverseCounts(16.0, power=0.4),
    Standardise(constant=False),
    Chain(Standardise(constant=False), InverseCounts(8.0)),
]
every_map = pytest.mark.parametrize("part", MAPS, ids=repr)
every_form = pytest.mark.parametrize("form", ["dense", "sparse"])


def words(rounds=30, seed=0, features=20):
    """Sequences of 1 to 7 positions with few features that are not 0, the first most often."""
    rng = np.random.default_rng(seed)
    inputs, labels = [], []
    for n in rng.integers(1, 8, rounds):
        y = (rng.integers(TAGS) + np.arange(n)) % TAGS
        x = rng.normal(size=(n, features)) * (rng.random((n, features)) < 1 / (1 + np.arange(20)))
        x[np.arange(n), 5 + y] = rng.uniform(0.5, 1.5, n)
        inputs.append(x)
        labels.append(y)
    return inputs, labels


def given(inputs, form):
    return inputs if form == "dense" else [csr_array(x) for x in inputs]


def learner(part, **options):
    loss = dl.losses.Scaled(dl.losses.CRF(dl.tasks.Sequence(TAGS)), 2.0)
    rate, ball = dl.rates.Constant(0.05), dl.domains.Ball(200.0)
    return dl.OGD(loss, dl.decoders.Argmax(loss), rate, ball, features=part, **options)


def positions(inputs, form):
    """Rounds as they were mapped, one dense array each."""
    if form == "dense":
        return inputs
    whole, places = inputs
    return np.split(whole.toarray(), places[1:-1])


@every_form
@pytest.mark.parametrize(("gain", "power"), [(1.0, 0.25), (16.0, 0.0), (3.0, 0.5)])
def test_features_are_divided_by_a_power_of_their_counts(form, gain, power):
    inputs, _ = words()
    made = positions(InverseCounts(gain, power).transform(given(inputs, form)), form)
    for own, wanted in zip(made, naive.inverse_counts(inputs, gain, power), strict=True):
        np.testing.assert_allclose(own, wanted, rtol=1e-14)


def test_rounds_of_one_row_are_rows():
    rows = np.concatenate(words()[0])
    made = InverseCounts().transform(rows)
    np.testing.assert_array_equal(made, np.concatenate(InverseCounts().transform(rows[:, None])))
    np.testing.assert_array_equal(made, InverseCounts().transform(csr_array(rows)).toarray())


@every_map
@every_form
def test_pieces_looks_and_restored_states_have_the_same_bits(part, form):
    inputs, _ = words()
    made = positions(part.transform(given(inputs, form)), form)
    mapper, start = part.mapper(), 0
    for stop in (1, 2, 9, 30):
        before = mapper.to_saved()
        rows = dl.tasks.Sequence(TAGS).layout.rows(given(inputs[start:], form))
        look = mapper.look_at(rows, 0, 1)
        np.testing.assert_array_equal(look.matrix(0, False), made[start])
        assert repr(mapper.to_saved()) == repr(before)
        again, mapper = mapper, part.mapper()
        mapper.restore(*again.to_saved())
        own = mapper.transform(given(inputs[start:stop], form))
        for one, wanted in zip(positions(own, form), made[start:stop], strict=True):
            np.testing.assert_array_equal(one, wanted)
        start = stop


@every_map
@every_form
def test_runs_steps_tickets_pieces_and_files_have_the_same_bits(part, form, tmp_path):
    inputs, labels = words()
    rounds = given(inputs, form)
    whole, steps, tickets, pieces = (learner(part) for _ in range(4))
    trace = whole.run(rounds, labels)
    for t, (x, y) in enumerate(zip(rounds, labels, strict=True)):
        assert np.array_equal(steps.predict(x), trace.prediction[t][: len(y)])
        assert steps.step(x, y).loss == trace.loss[t]
        tickets.tell(tickets.ask(x), y)
    pieces.run(rounds[:7], labels[:7])
    again = dl.load(pieces.save(tmp_path / "learner"))
    again.run(rounds[7:], labels[7:])
    for other in (steps, tickets, again):
        assert np.array_equal(whole.weights, other.weights)
        assert repr(whole.mapper.to_saved()) == repr(other.mapper.to_saved())


@every_map
@every_form
@pytest.mark.parametrize("delay", [None, 3])
def test_runs_are_certified(part, form, delay):
    inputs, labels = words()
    rounds, one = given(inputs, form), learner(part)
    one.run(rounds[:9], labels[:9])
    trace = one.run(rounds[9:], labels[9:], delay=delay, audit=True)
    weights = np.random.default_rng(0).normal(size=one.weights.shape) / 10
    certificate = dl.certify(trace, dl.comparators.Fixed(weights), rounds[9:], labels[9:])
    assert certificate.valid, str(certificate)
    others = given([2.0 * x * (x > 0.0) for x in inputs[9:]], form)
    assert not dl.certify(trace, dl.comparators.Fixed(weights), others, labels[9:]).valid


@every_form
def test_committees_are_certified_on_what_members_saw(form):
    inputs, labels = words()
    rounds, committee = given(inputs, form), dl.auto(dl.tasks.Sequence(TAGS))
    trace = committee.run(rounds, labels, audit=True)
    assert dl.certify(trace, None, rounds, labels).valid
    if form == "sparse":
        pair = vstack(rounds, format="csr"), np.cumsum([0, *map(len, inputs)])
        assert dl.certify(trace, None, pair, labels).valid
    for j, member in enumerate(committee.members):
        scaled = Standardise(constant=False) if member.map is None else member.map
        seen = positions(trace.seen_by(j, rounds), form)
        for own, wanted in zip(seen, positions(scaled.transform(rounds), form), strict=True):
            np.testing.assert_array_equal(own, wanted)


@every_form
@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e300])
def test_a_refused_round_is_not_counted(form, bad):
    inputs, labels = words()
    inputs[12] = inputs[12].copy()
    inputs[12][0, 3] = bad
    one = learner(InverseCounts())
    one.run(given(inputs[:5], form), labels[:5])
    before = repr(one.mapper.to_saved())
    with pytest.raises(InputError, match="row 7"):
        one.run(given(inputs[5:], form), labels[5:])
    with pytest.raises(InputError):
        one.step(given(inputs, form)[12], labels[12])
    assert repr(one.mapper.to_saved()) == before


def test_documents_are_mapped_too():
    inputs, _ = words()
    mapped = InverseCounts().mapper().piece(Items(inputs), 0, len(inputs))
    for own, wanted in zip(mapped.groups, naive.inverse_counts(inputs, 1.0, 0.25), strict=True):
        np.testing.assert_allclose(own, wanted, rtol=1e-14)
    task = dl.tasks.NDCG(2)
    ranker = dl.OGD(dl.auto(task).members[0].loss, features=InverseCounts())
    trace = ranker.run(inputs, [np.arange(len(x)) % 3 for x in inputs])
    assert np.isfinite(trace.loss).all()


def test_maps_of_plain_rows_are_refused():
    with pytest.raises(InputError, match="maps plain rows only"):
        learner(Chain(Standardise(), Ranks()))


@pytest.mark.parametrize("options", [{"gain": 0.0}, {"gain": "2"}, {"power": 2.0}, {"power": -0.1}])
def test_numbers_out_of_range_are_refused(options):
    with pytest.raises(InputError):
        InverseCounts(**options)
