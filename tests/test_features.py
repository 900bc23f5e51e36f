"""Laws that every map of inputs must obey, and facts about each one."""

import itertools
import json
import math
import threading
import tracemalloc

import naive
import numpy as np
import pytest
from howmany import chosen
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import driftline as dl
from driftline.checks import check_learner
from driftline.errors import InputError
from driftline.features import (
    Bins,
    Chain,
    Crosses,
    Fourier,
    Hashing,
    Hats,
    InverseCounts,
    Narrow,
    Products,
    Quadratic,
    RandomTrees,
    Ranks,
    Raw,
    Recent,
    Shorten,
    Standardise,
    Union,
)
from driftline.features.base import Map, Mapper
from driftline.inputs import DenseRows, SparseRows, rows_of
from driftline.parts import from_config

ROOT = math.sqrt(6 / 8)

#: Every map, and what it promises when rows of 6 features grow by two of 0: the factor by which
#: mapped rows change, with the same bits if it is 1; None if it promises no such thing.
MAPS = {
    Standardise(): ROOT,
    Standardise(constant=False): ROOT,
    Standardise(constant=0.3): None,
    Hats(2): ROOT,
    Hats(12): ROOT,
    Ranks(): ROOT,
    Ranks(3): ROOT,
    Fourier(30, bandwidth=0.7): 1.0,
    Recent(): ROOT,
    Recent(memory=7, constant=0.3): None,
    Narrow(Hats(7), most=20): ROOT,
    Raw(): 1.0,
    Shorten(): 1.0,
    Shorten(length=3.0): 1.0,
    InverseCounts(): 1.0,
    InverseCounts(16.0, power=0.5): 1.0,
    Bins(2): ROOT,
    Bins(12): ROOT,
    Crosses(4): math.sqrt(15 / 28),
    Crosses(5, columns=300): None,
    Crosses(3, pairs=((0, 3), (4, 1), (5, 0))): 1.0,
    Crosses(9, columns=50, pairs=((0, 3), (4, 1), (5, 0)), seed=3): 1.0,
    Hashing(): 1.0,
    Hashing(5, seed=3): 1.0,
    Hashing(16, categories=True): 1.0,
    Hashing(16, categories=(3, 4)): 1.0,
    Quadratic(): ROOT**2,
    RandomTrees(10, depth=3): 1.0,
    RandomTrees(): 1.0,
    Chain(Ranks(8), Fourier(20)): None,
    Chain(Standardise(), Fourier(20, bandwidth=0.5)): None,
    Chain(Standardise(constant=False), Hats(4)): None,
    Chain(Ranks(4), Chain(Ranks(5), Hats(3))): None,
    Chain(Union(Ranks(4), Hats(3)), Fourier(10, bandwidth=2.0)): None,
    Chain(Ranks(4), Bins(3)): None,
    Chain(Standardise(), Shorten()): None,
    Chain(Standardise(), InverseCounts(4.0)): None,
    Chain(Standardise(), Hashing(16)): None,
    Chain(Hashing(16), Standardise()): 1.0,
    Union(Standardise(), Hashing(16, categories=(3,))): None,
    Union(Hats(6), Ranks()): ROOT,
    Union(Standardise(), Hats(6)): ROOT,
    Union(Fourier(5), Fourier(7, seed=1)): 1.0,
    Union(Ranks(), Chain(Ranks(), Fourier(10))): None,
    Union(Bins(4), Hats(3), Crosses(2)): None,
    Union(RandomTrees(4, depth=2), RandomTrees(4, depth=2, seed=1)): 1.0,
}

every_map = pytest.mark.parametrize("part", MAPS, ids=repr)


def one_of_each(parts):
    """Return the last map of each kind, for laws that take long; in longer targets all of them."""
    return chosen(list({type(part): part for part in parts}.values()), list(parts))


every_kind_of_map = pytest.mark.parametrize("part", one_of_each(MAPS), ids=repr)

#: Maps that take sparse rows.
SPARSE = [
    Standardise(),
    Shorten(),
    Shorten(length=3.0),
    InverseCounts(),
    InverseCounts(16.0, power=0.5),
    Chain(Standardise(), InverseCounts(4.0)),
    Chain(Standardise(), Shorten()),
    Standardise(constant=False),
    Union(Standardise(), Standardise(constant=False)),
    Chain(Standardise(constant=False), Standardise()),
    Hashing(16),
    Hashing(1024, categories=True),
    Hashing(16, categories=(3, 4)),
    Chain(Hashing(16), Standardise()),
    Chain(Standardise(), Hashing(16)),
    Union(Standardise(), Hashing(16, categories=(3,))),
]


def takes_both_alike(part):
    """Hashed rows are the same whether rows are dense or sparse."""
    return isinstance(part.maps[0] if isinstance(part, Chain) else part, Hashing)


every_sparse_map = pytest.mark.parametrize("part", SPARSE, ids=repr)

#: Where streams are cut: around the rows at which knots move and scales settle.
CUTS = (0, 1, 3, 4, 5, 64, 65, 200, 256, 257, 400, 513, 640)


def table(seed=0, rows=640):
    """Features of every kind: plain, growing, constant, categories, mostly 0, heavy tails."""
    rng = np.random.default_rng(seed)
    made = rng.standard_normal((rows, 6)) * [1.0, 1e-5, 1.0, 1.0, 1.0, 1e4] + [0, 0, 3.0, 0, 0, 1e5]
    made[rows // 2 :, 0] += 3.0
    made[:, 2] = 3.0
    made[:, 3] = rng.integers(0, 4, rows)
    made[:, 4] *= rng.random(rows) < 0.2
    made[:, 5] = np.exp(3.0 * made[:, 5] / 1e5)
    return made


def dense(mapped):
    """Return mapped rows as an array of their own."""
    if isinstance(mapped, SparseRows):
        mapped = mapped.matrix
    elif isinstance(mapped, DenseRows):
        mapped = mapped.array
    return np.array(mapped.toarray() if sparse.issparse(mapped) else mapped)


def same(one, other):
    return dense(one).tobytes() == dense(other).tobytes()


def saved(mapper):
    about, arrays = mapper.to_saved()
    return json.dumps(about, sort_keys=True), {k: a.tobytes() for k, a in arrays.items()}


def after(part, rows):
    """Return a mapper that has seen these rows."""
    mapper = part.mapper()
    mapper.transform(rows)
    return mapper


# -- rows that are shortened


@pytest.mark.parametrize("length", [1.0, 0.3, 1e6])
def test_shortened_rows_keep_their_direction(length):
    rows = np.vstack([table(), 1e300 * table(1), 1e-100 * table(2), np.zeros((1, 6))])
    made = Shorten(length).transform(rows)
    scales = np.abs(rows).max(axis=1, keepdims=True)
    unit = rows / np.where(scales > 0.0, scales, 1.0)
    norms = scales[:, 0] * np.linalg.norm(unit, axis=1)
    wanted = np.minimum(norms, length)
    np.testing.assert_allclose(np.linalg.norm(made, axis=1), wanted, rtol=1e-14)
    np.testing.assert_array_equal(made[norms <= length], rows[norms <= length])
    np.testing.assert_allclose((made * unit).sum(axis=1), wanted * np.linalg.norm(unit, axis=1))
    thin = Shorten(length).transform(sparse.csr_array(rows)).toarray()
    np.testing.assert_allclose(thin, made, rtol=1e-14)


def test_a_placewise_map_may_follow_one_that_grows_in_the_middle():
    mapper = after(Chain(Standardise(), Shorten()), table())
    longer, places = mapper.grown(8)
    assert places.tolist() == [0, 1, 2, 3, 4, 5, -1, -1, 6]
    assert longer.outputs == 9
    with pytest.raises(dl.InputError, match="grows in the middle"):
        after(Chain(Standardise(), Shorten(), Hats(3)), table()).grown(8)


@pytest.mark.parametrize("part", [Crosses(4), Union(Standardise(), Crosses(4))])
def test_pairs_of_one_feature_are_refused_in_words(part):
    loss = dl.losses.Scaled(dl.losses.Logistic(dl.tasks.Multiclass(2)), 2.0)
    learner = dl.OGD(loss, dl.decoders.Argmax(loss), features=part)
    for play in (learner.run, learner.learn_rows):
        with pytest.raises(dl.InputError, match="rows of 2 features or more, not 1"):
            play(np.ones((3, 1)), [0, 1, 0])


def test_what_is_known_of_norms_before_the_first_row():
    assert Chain(Standardise(), Shorten(2.0)).longest == Narrow(Shorten(2.0)).longest == 2.0
    assert Standardise().longest == np.sqrt(10.0) and Ranks().longest == np.inf


# -- rows that a map bears


@every_map
def test_no_map_refuses_rows_of_the_size_that_it_bears(part):
    """A committee counts on it: one call then maps a row and learns from it."""
    rng, size = np.random.default_rng(0), min(part.bears(6) / 2, 1e300)
    rows = rng.choice([-size, -1.0, 0.0, 1e-300, 1.0, size], (300, 6))
    mapper = part.mapper()
    for row in [*rows[:40], *table(rows=40), *rows[40:]]:
        assert np.isfinite(dense(mapper.piece(rows_of(row[np.newaxis]), 0, 1))).all()


def test_a_chain_bears_what_all_its_maps_do():
    assert Chain(Ranks(), Fourier(5)).bears(3) == math.inf
    assert Union(Ranks(), Fourier(5)).bears(3) == Fourier(5).bears(3) == 1e12
    assert Chain(Products(), Fourier(5)).bears(3) == 0.0


# -- rows in any pieces


@every_map
def test_rows_are_mapped_by_those_before_whatever_the_pieces(part):
    rows = table()
    whole = part.transform(rows)
    pieces, single = part.mapper(), part.mapper()
    assert same(whole, np.vstack([dense(pieces.transform(rows[a:b])) for a, b in spans()]))
    wrapped = rows_of(rows)
    made = [dense(single.piece(wrapped, t, t + 1)) for t in range(len(rows))]
    assert same(whole, np.vstack(made))
    assert saved(pieces) == saved(single) == saved(after(part, rows))


def spans():
    return itertools.pairwise(CUTS)


@every_map
def test_rows_that_are_only_asked_for_among_others(part):
    """As they come where labels are late: some rows of a piece are looked at, others learned."""
    rows, rng = table(rows=300), np.random.default_rng(1)
    single, pieces = part.mapper(), part.mapper()
    wrapped = rows_of(rows)
    wrapped.asked = asked = rng.random(300) < 0.5
    plain = rows_of(rows)
    singly = [
        dense(single.look_at(plain, t, t + 1) if asked[t] else single.piece(plain, t, t + 1)).copy()
        for t in range(300)
    ]
    made = [dense(pieces.piece(wrapped, a, b)).copy() for a, b in ((0, 90), (90, 91), (91, 300))]
    assert same(np.vstack(singly), np.vstack(made))
    assert saved(single) == saved(pieces)


@every_map
def test_looking_gives_what_learning_would_and_changes_nothing(part):
    rows = table()
    whole, mapper = dense(part.transform(rows)), part.mapper()
    for a, b in spans():
        before = saved(mapper)
        some = rows_of(rows[a : a + 7])
        seen = dense(mapper.look_at(some))
        assert saved(mapper) == before
        assert same(seen[:1], whole[a : a + 1])
        singly = [mapper.look_at(rows_of(rows[t : t + 1])) for t in range(a, a + len(seen))]
        assert same(seen, np.vstack([dense(row) for row in singly]))
        mapper.remember(rows_of(rows[a:b]))
    assert saved(mapper) == saved(after(part, rows))


@every_map
def test_some_of_the_rows_can_be_looked_at(part):
    rows, mapper = rows_of(table()), after(part, table(1, 100))
    whole = dense(mapper.look_at(rows))
    assert same(mapper.look_at(rows, 5, 17), whole[5:17])
    assert same(mapper.look_at(rows, 600), whole[600:])


@every_map
@pytest.mark.parametrize("known", [0, 300])
def test_threads_may_look_at_once(part, known):
    mapper, rows = part.mapper(), table(1, 50)
    if known:
        mapper.transform(table(0, known))
    expected, found = dense(mapper.look_at(rows_of(rows))), []

    def look():
        for _ in range(5):
            found.append(same(mapper.look_at(rows_of(rows)), expected))

    threads = [threading.Thread(target=look) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 40 and all(found)


@every_map
@pytest.mark.parametrize("dtype", [np.float32, np.int64, bool])
def test_other_numbers_are_mapped_as_they_are_in_double_precision(part, dtype):
    rows = table().astype(dtype)
    assert same(part.transform(rows), part.transform(rows.astype(np.float64)))
    assert same(part.transform(np.asfortranarray(rows)), part.transform(rows))


@every_map
def test_what_was_transformed_stays(part):
    rows, mapper = table(), part.mapper()
    first = mapper.transform(rows[:50])
    copy = dense(first)
    mapper.transform(rows[50:100])
    assert same(first, copy)


@every_map
def test_no_rows_are_no_rows(part):
    mapper = after(part, table(0, 20))
    before = saved(mapper)
    assert dense(mapper.transform(np.zeros((0, 6)))).shape == (0, mapper.outputs)
    assert dense(mapper.look_at(rows_of(np.zeros((0, 6))))).shape == (0, mapper.outputs)
    assert saved(mapper) == before


# -- facts


@every_map
@pytest.mark.parametrize("features", [6, 9, 17])
def test_norm_and_width_are_those_of_mapped_rows(part, features):
    rng = np.random.default_rng(0)
    rows = np.repeat(table(), 3, axis=1)[:, :features] * rng.choice([1.0, 1e9], (640, features))
    rows[::3] = np.sign(rows[::3]) * 1e11
    made = dense(part.transform(rows))
    assert made.shape == (640, part.width(features))
    assert np.linalg.norm(made, axis=1).max() <= part.norm(features) * (1.0 + 1e-12)
    assert 0 < part.entries(features)
    assert after(part, rows).outputs == part.width(features)


@every_map
def test_a_map_goes_through_plain_data_and_equals_itself(part):
    again = from_config(json.loads(json.dumps(part.config())))
    assert again == part and hash(again) == hash(part)
    assert same(again.transform(table()), part.transform(table()))
    assert [other == part for other in MAPS].count(True) == 1


def test_a_constant_of_1_is_not_the_flag():
    """The flag makes it one over the root of the number of features."""
    assert Standardise(True) != Standardise(1.0)
    assert Standardise(1) == Standardise(1.0)
    assert Chain(Standardise(True), Ranks()) != Chain(Standardise(1.0), Ranks())
    assert len({Standardise(True), Standardise(1.0), Standardise(1)}) == 2


@pytest.mark.parametrize(
    "make",
    [
        lambda: Standardise("no"),
        lambda: Standardise(constant=-1.0),
        lambda: Standardise(constant=math.nan),
        lambda: Hats(1),
        lambda: Hats(129),
        lambda: Hats(True),
        lambda: Hats(2.5),
        lambda: Ranks("3"),
        lambda: Fourier(0),
        lambda: Fourier(10, bandwidth=0.0),
        lambda: Fourier(10, bandwidth="1"),
        lambda: Fourier(10, bandwidth=1e-300),
        lambda: Fourier(10, bandwidth=math.nan),
        lambda: Fourier(10, seed=-1),
        lambda: Fourier(10, seed=True),
        lambda: Fourier(10, seed=0.5),
        lambda: Recent("7"),
        lambda: Recent(1.0),
        lambda: Shorten(0.0),
        lambda: Shorten(np.inf),
        lambda: Shorten(True),
        lambda: Recent(constant=True),
        lambda: Narrow(3),
        lambda: Narrow(Hats(3), True),
        lambda: Narrow(Hats(3), 5).transform(table()),
        lambda: Bins(1),
        lambda: Crosses(1),
        lambda: Crosses(3, columns=0),
        lambda: Crosses(3, seed=-1),
        lambda: Crosses(3, pairs=()),
        lambda: Crosses(3, pairs=7),
        lambda: Crosses(3, pairs=[(0, 1, 2)]),
        lambda: Crosses(3, pairs=[(0, 0)]),
        lambda: Crosses(3, pairs=[(0, 1), (1, 0)]),
        lambda: Crosses(3, pairs=[(0, -1)]),
        lambda: Crosses(3, columns=2, pairs=[(0, 1), (1, 2), (0, 2)]),
        lambda: Crosses(3, pairs=[(0, 6)]).transform(table()),
        lambda: Crosses(3, columns=14).transform(table()),
        lambda: Crosses(3).transform(table()[:, :1]),
        lambda: Hashing(0),
        lambda: Hashing(2**24 + 1),
        lambda: Hashing(16, seed=-1),
        lambda: Hashing(16, categories=3),
        lambda: Hashing(16, categories=()),
        lambda: Hashing(16, categories=(1, 1)),
        lambda: Hashing(16, categories=(True,)),
        lambda: Hashing(16, categories=(-1,)),
        lambda: Hashing(16, categories="ab"),
        lambda: Hashing(16, categories=(6,)).transform(table()),
        lambda: Hashing(16).transform(sparse.csr_array((2, 10**8 + 1))),
        lambda: Quadratic().transform(np.zeros((3, 201))),
        lambda: RandomTrees(0),
        lambda: RandomTrees(2**16, depth=16),
        lambda: RandomTrees(4, depth=0),
        lambda: RandomTrees(4, seed=None),
        lambda: Chain(Bins(4), Ranks()),
        lambda: Chain(Chain(Ranks(), Bins(4)), Ranks()),
        lambda: Chain(Union(Ranks(), Bins(4)), Ranks()),
        lambda: Chain(Ranks()),
        lambda: Union(Ranks(), 3),
        lambda: Chain(maps=7),
        lambda: Fourier(100_000).transform(np.zeros((2, 10_000))),
    ],
)
def test_what_no_map_is_made_from_is_refused(make):
    with pytest.raises(InputError):
        make()


# -- states


@every_map
@pytest.mark.parametrize("cut", [0, 3, 70, 300])
def test_a_restored_map_goes_on_with_the_same_bits(part, cut):
    rows, mapper = table(), part.mapper()
    if cut:
        mapper.transform(rows[:cut])
    about, arrays = mapper.to_saved()
    about = json.loads(json.dumps(about))
    other = after(part, np.tile(table(1, 100), 2) if cut == 0 else table(1, 100))
    other.restore(about, {k: a.copy() for k, a in arrays.items()})
    assert saved(other) == saved(mapper) and other.features == mapper.features
    rest = mapper.transform(rows[cut:])
    assert same(other.transform(rows[cut:]), rest)
    assert same(part.transform(rows), np.vstack([dense(part.transform(rows))[:cut], dense(rest)]))


@every_map
def test_what_was_saved_is_a_copy(part):
    mapper = after(part, table(0, 100))
    _, arrays = mapper.to_saved()
    before = saved(mapper)
    for array in arrays.values():
        array[:] = -1.0
    assert saved(mapper) == before


def edits(about, arrays, part):
    """Yield states that nobody has saved; a hash that has met 10**8 features has the same one."""
    for features in (10**8, 10**30, 0, -1, True, 2.5, "6", math.nan, [6]):
        if not (isinstance(part, Hashing) and features == 10**8):
            yield edited(about, "features", features), arrays
    yield {}, arrays
    yield "no state", arrays
    if "maps" in about:
        for maps in ([], None, about["maps"][:1], about["maps"] * 2, 7, ["a", "b"]):
            yield {**about, "maps": maps}, arrays
        yield {**about, "maps": about["maps"][::-1] + [{}]}, arrays
    if arrays:
        yield about, {}
    for name, array in arrays.items():
        for other in damaged(array):
            yield about, {**arrays, name: other}
        if array.size:
            yield edited(about, "features", None), arrays


def edited(about, name, value):
    """Put a value in wherever the name stands."""
    made = {k: value if k == name else v for k, v in about.items()}
    if "maps" in made:
        made["maps"] = [edited(own, name, value) for own in made["maps"]]
    return made


def damaged(array):
    yield np.r_[array, 0.0]
    yield array[np.newaxis]
    yield array.astype(object)
    yield None
    if array.size:
        yield array[:-1]
        with np.errstate(over="ignore"):
            yield array.astype(np.float32)
        for number in (-1.0, math.nan, math.inf, 2.0**60):
            yield np.r_[number, array[1:]]
        yield np.full(array.shape, math.nan)


@every_map
def test_a_state_that_was_edited_is_refused_and_takes_no_memory(part):
    mapper = after(part, table(0, 70))
    before, count = saved(mapper), 0
    tracemalloc.start()
    try:
        for about, arrays in edits(*mapper.to_saved(), part):
            with pytest.raises(InputError):
                mapper.restore(about, arrays)
            assert saved(mapper) == before
            count += 1
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()
    assert count >= 14


def test_numbers_of_nothing_are_refused():
    for part in (Hats(4), Standardise(), Union(Hats(4), Ranks())):
        mapper, other = part.mapper(), after(part, table(0, 10))
        about, arrays = mapper.to_saved()
        _, known = other.to_saved()
        with pytest.raises(InputError):
            mapper.restore(about, known)
        mapper.restore(about, arrays)


def test_maps_that_have_seen_other_streams_are_not_put_together():
    for part in (Union(Hats(4), Ranks()), Chain(Hats(4), Ranks())):
        mapper = after(part, table(0, 10))
        about, arrays = mapper.to_saved()
        fewer_about, fewer = after(part, table(0, 10)[:, :3]).to_saved()
        nothing_about, nothing = part.mapper().to_saved()
        for j, more_about, more in ((0, fewer_about, fewer), (1, nothing_about, nothing)):
            maps = list(about["maps"])
            maps[j] = more_about["maps"][j]
            name = f"{j}.state"
            with pytest.raises(InputError):
                mapper.restore({**about, "maps": maps}, {**arrays, name: more[name]})


def sketch(part, rows=70, features=2):
    mapper = after(part, table(0, rows)[:, :features])
    return mapper, mapper.to_saved()


@pytest.mark.parametrize("part", [Hats(4), Ranks(4), Bins(4), Crosses(4)], ids=repr)
def test_a_sketch_that_no_rows_lead_to_is_refused(part):
    """Of two features with 4 knots: rows, 2 counts, 2 times 4 knots, 256 times 2 cells."""
    mapper, (about, arrays) = sketch(part)
    state = arrays["state"]
    changes = {
        "no knots after 4 rows": {1: 0.0, 3: 0.0, 4: 0.0, 5: 0.0, 6: 0.0},
        "knots before the fourth row": {0: 3.0},
        "knots that fall": {3: state[6], 6: state[3]},
        "knots that are equal": {4: state[3]},
        "a cell that was not seen yet": {11 + 2 * 70: 1.0},
    }
    for words, change in changes.items():
        other = state.copy()
        for place, number in change.items():
            other[place] = number
        with pytest.raises(InputError):
            mapper.restore(about, {"state": other})
            pytest.fail(words)
    mapper.restore(about, arrays)


# -- rows that are refused


@every_map
@pytest.mark.parametrize("known", [0, 300])
def test_a_row_that_is_not_finite_is_refused_by_its_number(part, known):
    mapper = part.mapper()
    if known:
        mapper.transform(table(0, known))
    before = saved(mapper)
    for bad, place in itertools.product([math.nan, math.inf, -math.inf], [0, 3, 90]):
        rows = table(1, 120)
        rows[place + 5, 2] = bad
        words = rf"row {place + 5} has {bad} as feature 2"
        with pytest.raises(InputError, match=words):
            mapper.piece(rows_of(rows), 5, 120)
        assert saved(mapper) == before and mapper.features == (6 if known else None)
        with pytest.raises(InputError, match=words):
            mapper.look_at(rows_of(rows))
        with pytest.raises(InputError, match=words):
            mapper.look_at(rows_of(rows), place, place + 9)
        with pytest.raises(InputError, match=rf"the input has {bad} as feature 2"):
            mapper.look_at(rows_of(rows[place + 5 : place + 6]))
        with pytest.raises(InputError):
            mapper.transform(rows[place + 5 : place + 6])
        assert saved(mapper) == before


@every_map
def test_a_huge_cell_is_refused_or_counts_as_the_largest(part):
    """Ranks and robust scales take any finite number; cosines of huge ones mean nothing."""
    rows = table(0, 300)
    for t, huge in ((3, 1e300), (4, -1e300), (70, 1.7e308), (71, -1.7e308), (200, 1e300)):
        rows[t, 1] = huge
    mapper = after(part, rows[:3])
    before = saved(mapper)
    try:
        made = dense(mapper.piece(rows_of(rows), 3, 300))
    except InputError as error:
        assert "row 3 " in str(error) and "1e+300" in str(error)
        assert saved(mapper) == before
    else:
        assert np.isfinite(made).all()
        with np.errstate(over="ignore"):  # rows as they are have no bound
            assert np.linalg.norm(made, axis=1).max() <= part.norm(6) * (1.0 + 1e-12)
        mapper.restore(*mapper.to_saved())


@every_map
def test_rows_of_another_length_are_refused(part):
    mapper = after(part, table(0, 30))
    before = saved(mapper)
    for rows in (table(0, 5)[:, :5], np.zeros((3, 9))):
        for call in (mapper.transform, lambda rows, m=mapper: m.look_at(rows_of(rows))):
            with pytest.raises(InputError, match="features"):
                call(rows)
    assert saved(mapper) == before


class Picky(Map):
    """A map that refuses rows by what those before it have made of them."""

    def mapper(self):
        return PickyMapper(self)


class PickyMapper(Mapper):
    def mapped(self, rows, start, stop, learning):
        (array,) = rows.arrays(start, stop)
        for t, row in enumerate(array):
            if row[0] > 0.95:
                raise InputError(f"row {t} is above")
        return DenseRows(array), self.begun(rows)


@pytest.mark.parametrize("known", [0, 9])
@pytest.mark.parametrize(
    "part",
    [
        Chain(Standardise(constant=False), Picky()),
        Chain(Standardise(constant=False), Picky(), Ranks(3)),
        Union(Ranks(4), Chain(Standardise(constant=False), Picky())),
    ],
    ids=["last", "middle", "union"],
)
def test_a_later_map_may_refuse_a_row_and_nothing_was_learned(part, known):
    mapper, rows = part.mapper(), np.repeat(np.arange(30.0)[:, np.newaxis] % 9, 6, axis=1)
    rows[17] = 1000.0
    if known:
        mapper.transform(rows[:known])
    before, wrapped = saved(mapper), rows_of(rows)
    for call in (lambda: mapper.piece(wrapped, 10, 30), lambda: mapper.remember(wrapped)):
        with pytest.raises(InputError, match="row 17, as it was mapped: row 0 is above"):
            call()
        assert saved(mapper) == before and mapper.features == (6 if known else None)
    if known:
        with pytest.raises(InputError, match="row 17, as it was mapped: row 0 is above"):
            mapper.look_at(wrapped)


# -- growth


@every_map
def test_grown_maps_map_rows_as_before_where_that_is_promised(part):
    rows, wide = table(0, 100), np.pad(table(0, 700), [(0, 0), (0, 2)])
    mapper = after(part, rows)
    before = saved(mapper)
    try:
        grown, places = mapper.grown(8)
    except InputError as error:
        assert MAPS[part] is None and ("middle" in str(error) or "columns" in str(error))
        return
    assert saved(mapper) == before
    assert grown.features == 8 and len(places) == grown.outputs == part.width(8)
    old = places[places >= 0]
    assert sorted(old) == list(range(mapper.outputs))
    if MAPS[part] is not None:
        made, known = (
            dense(grown.look_at(rows_of(wide))),
            dense(mapper.look_at(rows_of(wide[:, :6]))),
        )
        np.testing.assert_allclose(made[:, places >= 0], known[:, old] * MAPS[part], rtol=1e-12)
        if MAPS[part] == 1.0:
            assert same(made[:, places >= 0], known[:, old])
            assert not made[:, places < 0].any()
    made = dense(grown.transform(wide[100:]))
    assert np.linalg.norm(made, axis=1).max() <= part.norm(8) * (1.0 + 1e-12)
    grown.restore(*grown.to_saved())


@pytest.mark.parametrize("rows", [2, 3, 4, 100, 300, 600])
@pytest.mark.parametrize(
    "part", [Hats(4), Ranks(), Recent(9), Bins(3), Union(Hats(4), Ranks())], ids=repr
)
def test_what_has_grown_is_as_if_new_features_had_been_0(part, rows):
    grown, _ = after(part, table()[:rows]).grown(8)
    assert saved(grown) == saved(after(part, np.pad(table()[:rows], [(0, 0), (0, 2)])))


@pytest.mark.parametrize("rows", [64, 65, 100, 300, 600])
@pytest.mark.parametrize("constant", [False, True])
def test_a_scaling_that_has_grown_is_as_if_new_features_had_been_0(constant, rows):
    part, wide = Standardise(constant), np.pad(table(), [(0, 0), (0, 2)])
    grown, _ = after(part, table()[:rows]).grown(8)
    assert saved(grown) == saved(after(part, wide[:rows]))
    grown, _ = after(part, table()[:20]).grown(8)
    grown.transform(wide[20:rows])
    assert saved(grown) == saved(after(part, wide[:rows]))


@every_map
def test_growing_by_nothing_changes_nothing(part):
    mapper = after(part, table(0, 100))
    try:
        other, places = mapper.grown(6)
    except InputError:
        pytest.fail("a map can grow by nothing")
    assert saved(other) == saved(mapper) and places.tolist() == list(range(mapper.outputs))
    new, places = part.mapper().grown(6)
    assert new.features is None and len(places) == 0


# -- against slow references


@pytest.mark.parametrize("most", [2, 3, 5, 12, 128])
def test_hats_and_ranks_are_those_written_out(most):
    rows = table(2, 2500)
    rows[:, 2] = np.where(np.arange(2500) < 900, 3.0, rows[:, 2] + np.arange(2500) % 7)
    picked = np.r_[np.arange(40), 250:262, 510:515, 1020:1030, 2040:2050]
    for part, of_cell in ((Hats(most), naive.hats), (Ranks(most), naive.ranks)):
        made = part.transform(rows)
        np.testing.assert_allclose(made[picked], of_cell(rows, most, picked), atol=1e-12)


PICKED = np.r_[np.arange(40), 250:262, 510:515, 638:640]


@pytest.mark.parametrize("most", [2, 3, 8])
def test_bins_and_crosses_are_those_written_out(most):
    rows = table(2)
    np.testing.assert_allclose(
        Bins(most).transform(rows).toarray()[PICKED], naive.bins(rows, most, PICKED), atol=1e-15
    )
    found = Crosses(most).transform(rows).toarray()[PICKED]
    np.testing.assert_allclose(found, naive.crosses(rows, most, PICKED), atol=1e-15)
    pairs = ((4, 1), (0, 5))
    found = Crosses(most, pairs=pairs).transform(rows).toarray()[PICKED]
    np.testing.assert_allclose(found, naive.crosses(rows, most, PICKED, pairs), atol=1e-15)


def test_cells_of_a_pair_share_its_columns_where_there_are_too_few():
    """Each cell always has the same column, other seeds have others, and all columns are used."""
    rows, pairs = table(2), ((0, 5), (1, 3))
    exact = Crosses(8, pairs=pairs).transform(rows)
    made = {}
    for seed in (0, 1):
        shared = Crosses(8, columns=21, pairs=pairs, seed=seed).transform(rows)
        assert shared.shape == (640, 20)
        columns = shared.indices.reshape(-1, 2)
        assert (columns[:, 0] < 10).all() and (columns[:, 1] >= 10).all()
        for p in (0, 1):
            cells = exact.indices.reshape(-1, 2)[:, p]
            found = {(c, k) for c, k in zip(cells.tolist(), columns[:, p].tolist(), strict=True)}
            assert len(found) == len({c for c, _ in found})
        assert len(set(columns[:, 0].tolist())) == 10
        made[seed] = columns
    assert (made[0] != made[1]).any()


def test_hashes_are_the_same_on_every_machine():
    """These columns are part of what a saved model means."""
    rows = np.stack([np.arange(64.0) % 8, np.arange(64.0) // 8], axis=1)
    made = Crosses(8, columns=5, seed=7).transform(np.vstack([rows, rows]))
    assert made.indices[64:80].tolist() == [2, 1] * 4 + [0, 4] * 4


def test_products_are_those_of_standardised_rows():
    rows = table()
    z = Standardise(constant=False).transform(rows)
    expected = []
    for j in range(6):
        expected += [math.sqrt(2) * z[:, i] * z[:, j] for i in range(j)] + [z[:, j] ** 2]
    made = Quadratic().transform(rows)
    np.testing.assert_allclose(made, np.stack(expected, axis=1), rtol=1e-13)
    np.testing.assert_allclose(made @ made.T, (z @ z.T) ** 2, atol=1e-12)
    assert Products().norm(3) == math.inf


def test_leaves_are_those_that_a_walk_leads_to():
    rows, part = table(2), RandomTrees(7, depth=4, seed=5)
    constants = part.constants(6)
    splits = constants[2:].reshape(7, 15, 2)
    expected = naive.leaves(rows, splits, PICKED)
    made = part.transform(rows)
    assert (made.indices.reshape(640, 7)[PICKED] == expected).all()
    np.testing.assert_allclose(made.data, 1 / math.sqrt(7))
    assert not np.array_equal(part.constants(6), RandomTrees(7, depth=4).constants(6))


@given(
    cells=st.lists(st.one_of(st.integers(-3, 3), st.floats(-1e9, 1e9)), min_size=4, max_size=70),
    most=st.integers(2, 9),
)
def test_knots_are_those_written_out(cells, most):
    cells = np.array(cells, dtype=np.float64)
    state = after(Hats(most), cells[:, np.newaxis]).to_saved()[1]["state"]
    found = state[2 : 2 + int(state[1])]
    np.testing.assert_array_equal(found, naive.knots(cells, most))
    assert (np.diff(found) > 0.0).all() and np.isin(found, cells).all()


@pytest.mark.parametrize("rows", [255, 256, 257, 511, 512, 1023, 1024, 1025, 5000])
def test_kept_cells_are_one_in_a_stride_of_the_last_rows(rows):
    """After 2^k rows, all that is kept is from the second half, evenly."""
    numbers = np.arange(rows, dtype=np.float64)
    state = after(Hats(4), numbers[:, np.newaxis]).to_saved()[1]["state"]
    cells, expected = state[-256:], {}
    for t in range(rows):
        stride = max(1, 2 ** (t.bit_length() - 1) // 256)
        if t < 256 or (t - 256 * stride) % stride == 0:
            expected[t if t < 256 else (t - 256 * stride) // stride] = float(t)
    found = dict(enumerate(cells.tolist()))
    assert all(found[place] == number for place, number in expected.items())
    assert state[0] == rows


@pytest.mark.parametrize("bandwidth", [0.01, 0.5, 3.0])
def test_fourier_features_are_cosines(bandwidth):
    part, rows = Fourier(40, bandwidth, seed=3), table()[:, :4]
    constants = part.constants(4)
    expected = naive.fourier(rows, constants[:40], constants[40:].reshape(4, 40))
    np.testing.assert_allclose(part.transform(rows), expected, atol=1e-9)


def test_cosines_are_exact_to_rounding():
    turns = np.r_[np.linspace(-3, 3, 4001), [0.5, -0.5, 0.25, 1e-300, -1e-300, -1e-18, 0.0]]
    part = Fourier(1, bandwidth=1.0)
    phase, frequency = part.constants(1)
    rows = (turns - phase)[:, np.newaxis] / frequency
    expected = np.sqrt(2.0) * np.cos(2 * np.pi * (phase + rows[:, 0] * frequency))
    np.testing.assert_allclose(part.transform(rows)[:, 0], expected, atol=1e-12)


def test_cosines_of_many_turns_stay_cosines():
    """Beyond 2^52 turns all are whole."""
    part = Fourier(50, bandwidth=1e-6)
    rows = np.array([[9.9e11], [-9.9e11], [1.234e11], [-7.7e10], [3.3e9]])
    made = part.transform(rows)
    assert np.abs(made).max() <= np.sqrt(2 / 50) * (1 + 1e-12)


def test_fourier_features_approach_the_gaussian_kernel():
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((20, 3))
    mapped = Fourier(40_000, bandwidth=1.5).transform(rows)
    gaps = ((rows[:, np.newaxis] - rows) ** 2).sum(axis=2)
    np.testing.assert_allclose(mapped @ mapped.T, np.exp(-gaps / (2 * 1.5**2)), atol=0.03)


def test_a_chain_is_one_map_after_the_other_row_by_row():
    rows, maps = table(0, 300), (Ranks(5), Hats(4), Fourier(9))
    expected = rows
    for part in maps:
        expected = part.transform(expected)
    assert same(Chain(*maps).transform(rows), expected)
    assert same(Chain(Chain(*maps[:2]), maps[2]).transform(rows), expected)


def test_a_union_is_all_maps_side_by_side():
    rows, maps = table(0, 300), (Ranks(5), Standardise(), Fourier(9))
    expected = np.hstack([part.transform(rows) for part in maps])
    assert same(Union(*maps).transform(rows), expected)


# -- sparse rows


def sparse_table(kind=sparse.csr_array, index=np.int32, seed=0, rows=300):
    rng = np.random.default_rng(seed)
    made = kind(rng.standard_normal((rows, 30)) * (rng.random((rows, 30)) < 0.2))
    made.indices, made.indptr = made.indices.astype(index), made.indptr.astype(index)
    return made


@every_sparse_map
@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csr_matrix])
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_sparse_rows_are_mapped_the_same_in_any_pieces(part, kind, index):
    rows = sparse_table(kind, index)
    whole, mapper = part.transform(rows), part.mapper()
    assert sparse.issparse(whole)
    made = []
    for a, b in ((0, 1), (1, 2), (2, 64), (64, 65), (65, 300)):
        assert same(mapper.look_at(rows_of(rows[a : a + 1])), dense(whole)[a : a + 1])
        made.append(dense(mapper.transform(rows[a:b])))
    assert same(np.vstack(made), whole)
    assert np.linalg.norm(dense(whole), axis=1).max() <= part.norm(30) * (1.0 + 1e-12)
    other = part.mapper()
    other.restore(*mapper.to_saved())
    assert same(other.transform(rows), mapper.transform(rows))


@every_sparse_map
@pytest.mark.parametrize("known", [False, True])
def test_a_bad_sparse_row_is_refused_by_its_number(part, known):
    mapper, rows = part.mapper(), sparse_table()
    if known:
        mapper.transform(rows)
    before = saved(mapper)
    place = int(rows.indptr[50])
    rows.data[place] = math.nan
    with pytest.raises(InputError, match=f"row 50 has nan as feature {rows.indices[place]}"):
        mapper.piece(rows_of(rows), 20, 100)
    assert saved(mapper) == before and mapper.features == (30 if known else None)


@every_sparse_map
def test_many_sparse_rows_can_be_looked_at_before_the_first(part):
    rows, mapper = sparse_table(rows=20), part.mapper()
    seen = dense(mapper.look_at(rows_of(rows)))
    singly = [dense(mapper.look_at(rows_of(rows[t : t + 1]))) for t in range(20)]
    assert same(seen, np.vstack(singly))
    assert same(mapper.look_at(rows_of(rows), 3, 9), seen[3:9])


@pytest.mark.parametrize("part", [p for p in SPARSE if not takes_both_alike(p)], ids=repr)
@pytest.mark.parametrize("first", [np.asarray, sparse.csr_array])
def test_sparse_and_dense_rows_are_not_mixed(part, first):
    rows = table(0, 30)
    mapper = after(part, first(rows))
    before = saved(mapper)
    second = np.asarray if first is sparse.csr_array else sparse.csr_array
    with pytest.raises(InputError, match="sparse|dense"):
        mapper.transform(second(rows))
    assert saved(mapper) == before


@every_map
def test_sparse_rows_are_refused_by_maps_of_dense_ones(part):
    mapper, rows = part.mapper(), sparse.csr_array(table(0, 20))
    before = saved(mapper)
    try:
        mapper.transform(rows)
    except InputError as error:
        assert "dense" in str(error) and ("toarray" in str(error) or "sparse" in str(error))
        assert saved(mapper) == before and mapper.features is None
    else:
        assert part in SPARSE or isinstance(part, (Standardise, Hashing))


# -- learners


def learner(part, **options):
    loss = dl.losses.Logistic(dl.tasks.Multiclass(3))
    return dl.OGD(loss, dl.decoders.GapOptimal(loss), features=part, **options)


def stream(rounds=160):
    rows = table(3, rounds)
    rng = np.random.default_rng(5)
    return rows, ((rows[:, 0] > 0) + (rows[:, 3] > 1) + (rng.random(rounds) < 0.1)) % 3


@every_kind_of_map
@pytest.mark.parametrize(
    "options",
    [{}, pytest.param({"intercept": True, "dtype": np.float32}, marks=pytest.mark.slow)],
    ids=["", "32"],
)
def test_learners_keep_their_page_with_any_map(part, options):
    check_learner(learner(part, **options))


@pytest.mark.parametrize("part", one_of_each(SPARSE), ids=repr)
def test_learners_keep_their_page_with_sparse_rows(part):
    rng = np.random.default_rng(0)
    check_learner(learner(part), sparse_table(rows=40), rng.integers(0, 3, 40))


@every_map
def test_runs_in_two_pieces_are_certified(part):
    rows, labels = stream()
    one, whole = learner(part), learner(part)
    trace, later = one.run(rows[:70], labels[:70]), one.run(rows[70:], labels[70:])
    all_at_once = whole.run(rows, labels)
    assert all_at_once.loss.tobytes() == np.r_[trace.loss, later.loss].tobytes()
    rng = np.random.default_rng(0)
    weights = rng.standard_normal(one.weights.shape) / np.sqrt(one.weights.size)
    zeros = dl.comparators.Fixed(0.0 * weights)
    for made, a, b in ((trace, 0, 70), (later, 70, 160)):
        for comparator in (zeros, dl.comparators.Fixed(weights)):
            certificate = dl.certify(made, comparator, rows[a:b], labels[a:b])
            assert certificate.valid, certificate
    assert not dl.certify(later, zeros, rows[:90], labels[:90]).valid


@every_map
def test_an_edited_map_in_a_trace_is_refused_or_found(part):
    rows, labels = stream()
    one = learner(part)
    one.run(rows[:70], labels[:70])
    trace = one.run(rows[70:], labels[70:])
    about, arrays = trace.origin.map
    zeros = dl.comparators.Fixed(np.zeros_like(one.weights))
    others = [after(part, rows[:60][::-1]).to_saved(), part.mapper().to_saved()]
    others += [(about, {**arrays, name: np.zeros_like(a)}) for name, a in arrays.items()]
    for other in others:
        if json.dumps(other[0]) == json.dumps(about) and all(
            np.array_equal(a, arrays[name]) for name, a in other[1].items()
        ):
            continue  # nothing is learned
        edited = dl.Trace(**{**vars(trace), "origin": trace.origin.replaced(map=other)})
        try:
            found = dl.certify(edited, zeros, rows[70:], labels[70:])
        except InputError:
            continue
        assert not found.valid


def test_the_row_that_a_learner_refuses_is_named_by_its_place_in_the_stream():
    one = dl.OGD(dl.losses.Logistic(dl.tasks.Multiclass(3)), features=Ranks(4))
    rows, labels = table(0, 20_000), np.zeros(20_000, dtype=int)
    rows[19_000, 1] = math.nan
    with pytest.raises(InputError, match="row 19000 has nan as feature 1"):
        one.run(rows, labels)
    with pytest.raises(InputError, match="row 19000 has nan as feature 1"):
        one.score_rows(rows)
    assert one.features is None and one.rounds == 0


@pytest.mark.parametrize("part", [Standardise(), Hats(4)], ids=repr)
def test_scores_and_steps_take_the_same_rows(part):
    """What is too large for single precision may be mapped to what is not."""
    one = learner(part, dtype=np.float32)
    rows, labels = stream(20)
    one.run(rows, labels)
    huge = rows[0] * 1e200
    assert np.isfinite(one.scores(huge)).all()
    np.testing.assert_allclose(one.scores(huge), one.score_rows(huge[np.newaxis])[0], rtol=1e-5)
    one.step(huge, 1)


def test_many_rows_are_scored_and_played_in_blocks():
    """Of 4000 rows with 3000 mapped features each, 96 MB, never more than a part is there."""
    one, rows = learner(Fourier(3000)), np.tile(table(0, 500), (8, 1))
    one.run(rows[:3], [0, 1, 2])
    singly = np.array([one.scores(row) for row in rows[:600]])
    tracemalloc.start()
    try:
        scores = one.score_rows(rows)
        trace = one.run(rows, np.zeros(len(rows), dtype=int))
        comparator = dl.comparators.Fixed(np.zeros((3, 3000)))
        assert dl.certify(trace, comparator, rows, np.zeros(len(rows), dtype=int)).valid
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    np.testing.assert_allclose(scores[:600], singly, atol=1e-12)
    assert peak < 60_000_000


@every_map
def test_members_with_maps_step_as_they_run(part):
    rows, labels = stream(80)
    make = lambda: dl.Committee([learner(part), learner(None), learner(part, intercept=True)])  # noqa: E731
    ran, stepped = make(), make()
    trace = ran.run(rows, labels)
    made = [stepped.step(x, int(y)).prediction for x, y in zip(rows, labels, strict=True)]
    assert trace.prediction.tolist() == made
    for one, other in zip(ran.members, stepped.members, strict=True):
        assert one.weights.tobytes() == other.weights.tobytes()
    assert dl.certify(trace, None, rows, labels).valid
