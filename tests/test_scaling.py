"""Scaling that bad cells do not move, and that follows lasting changes."""

import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import driftline as dl
from driftline.errors import InputError
from driftline.features import Standardiser
from driftline.inputs import rows_of


def changing(seed=0, rounds=1500):
    """Features of every kind: plain, moving, growing, shrinking, constant, rare, wrong."""
    rng = np.random.default_rng(seed)
    t = np.arange(rounds)
    plain = rng.standard_normal((rounds, 12)) * 10.0 ** rng.uniform(-6, 6, 12)
    plain[:, 1] += 1e3 * plain[:, 1].std()
    plain[:, 2] += plain[:, 2].std() * 0.01 * t
    plain[700:, 3] *= 100.0
    plain[700:, 4] *= 0.01
    plain[:, 5] = 7.0
    plain[:, 6] = np.where(rng.random(rounds) < 0.02, 1.0, 0.0)
    plain[:400, 7] = 3.0
    plain[rng.random(rounds) < 0.05, 8] = -9999.0 * plain[:, 8].std()
    plain[900:930, 9] = 1e9
    plain[100, 10] = 1e200
    plain[800:, 11] = 2.0
    return plain


def written_out(rows):
    columns = [naive.scaled_column(column)[0] for column in rows.T]
    return np.stack(columns, axis=1) / np.sqrt(rows.shape[1])


@pytest.mark.parametrize("seed", range(3))
def test_dense_rows_are_scaled_as_written_out(seed):
    rows = changing(seed)
    made = Standardiser(constant=False)
    np.testing.assert_allclose(made.transform(rows), written_out(rows), atol=1e-7)
    assert made.far.tolist() == [naive.scaled_column(column)[1] for column in rows.T]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_pieces_and_looks_are_the_same_bits_as_one_whole(form, dtype):
    rows = changing()[:, :11]
    rows[100, 10] = 1e9
    whole = Standardiser(dtype=dtype).transform(form(rows))
    pieces, made = Standardiser(dtype=dtype), []
    for a, b in ((0, 1), (1, 2), (2, 50), (50, 64), (64, 65), (65, 700), (700, 1500)):
        seen = pieces.look_at(rows_of(form(rows[a : a + 1])))
        piece = pieces.transform(form(rows[a:b]))
        made.append(_array(piece))
        np.testing.assert_array_equal(_array(seen)[0], made[-1][0])
    np.testing.assert_array_equal(np.vstack(made), _array(whole))


def _array(rows):
    rows = getattr(rows, "matrix", getattr(rows, "array", rows))
    return rows.toarray() if hasattr(rows, "toarray") else np.asarray(rows)


def test_looking_changes_nothing():
    rows = changing()
    scaling = Standardiser()
    scaling.transform(rows[:777])
    before = scaling.state.tobytes()
    scaling.look(rows)
    assert scaling.state.tobytes() == before


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("constant", [True, False])
def test_sparse_rows_are_scaled_as_written_out(constant, index):
    generator = np.random.default_rng(0)
    rows = generator.standard_normal((400, 6)) * [1, 10, 100, 1, 1, 1]
    rows[generator.random(rows.shape) < 0.6] = 0.0
    rows[:2] = 0.0
    rows[200:, 3] *= 1e4
    rows[2, 4] = 1e9
    matrix = sparse.csr_array(rows)
    matrix.indices, matrix.indptr = matrix.indices.astype(index), matrix.indptr.astype(index)
    whole = Standardiser(constant).transform(matrix)
    np.testing.assert_allclose(whole.toarray(), naive.scaled_sparse(rows, constant), atol=1e-9)
    assert whole.indices.dtype == index


def usual(rows, start):
    """Return scaled rows from some row on, as if norms were not divided by."""
    scaled = Standardiser(constant=False).transform(rows)
    return scaled[start:] * np.sqrt(rows.shape[1])


@settings(deadline=None, max_examples=25)
@given(
    seed=st.integers(0, 10**6),
    kind=st.sampled_from(["cells", "row", "burst", "sentinel"]),
    size=st.floats(2.0, 150.0),
    start=st.integers(0, 1500),
)
def test_bad_cells_move_nothing_by_much(seed, kind, size, start):
    rng = np.random.default_rng(seed)
    clean = rng.standard_normal((2000, 3)) * [1.0, 14.0, 1e-3] + [0.0, 50.0, 0.0]
    bad, wild = clean.copy(), rng.choice([-1.0, 1.0]) * 10.0**size
    if kind == "cells":
        bad[rng.random(clean.shape) < 0.05] = wild
    elif kind == "row":
        bad[start] = wild
    elif kind == "burst":
        bad[64 + start : (124 if size >= 4.0 else 94) + start] = wild
    else:
        bad[rng.random(2000) < 0.02] = wild
    good = (bad == clean).all(axis=1)
    good[:100] = False
    expected, made = usual(clean, 0)[good], usual(bad, 0)[good]
    assert np.abs(made).max() <= 3.0 + 1e-9
    ratio = made.std(axis=0) / expected.std(axis=0)
    least = 0.5 if size >= 4.0 else 0.3  # nearer ones may be no bad cells: 3.6 deviations and more
    assert (ratio > least).all() and (ratio < 1.2).all()
    assert (np.abs(made.mean(axis=0) - expected.mean(axis=0)) < 0.35).all()


FACTORS = [1e-12, 1e-9, 1e-6, 0.01, 0.1, 10.0, 100.0, 1e6, 1e9, 1e12]


def assert_standard(cells):
    assert (np.abs(cells.mean(axis=0)) < 0.3).all()
    assert (np.abs(cells.std(axis=0) - 1.0) < 0.4).all()


@pytest.mark.parametrize("factor", FACTORS)
@pytest.mark.parametrize("before", [200, 3000, 20_000])
def test_a_lasting_change_of_scale_is_followed_within_1000_rows(factor, before):
    """Also in rounds of several rows, and where the location does not change with the scale."""
    rows = np.random.default_rng(0).standard_normal((before + 2000, 3))
    rows[:, 1] += 5.0
    rows[before:] *= factor
    rows[:, 2] += 5.0
    assert_standard(usual(rows, before + 1000))
    starts = np.append(np.arange(0, len(rows), 7), len(rows))
    rounds = Standardiser(constant=False).transform((rows, starts))
    assert_standard(np.concatenate(rounds)[before + 1000 :] * np.sqrt(3.0))


@pytest.mark.parametrize("factor", FACTORS)
@pytest.mark.parametrize("share", [0.05, 0.3])
def test_a_lasting_change_of_rare_values_is_followed_within_1000_rows(factor, share):
    rng = np.random.default_rng(0)
    events = rng.random((6000, 3)) < share
    rows = np.where(events, rng.choice([-1.0, 1.0], (6000, 3)) * rng.uniform(1, 2, (6000, 3)), 0.0)
    rows[3000:] *= factor
    late = np.abs(usual(rows, 4000)[events[4000:]])
    assert 1.5 < np.median(late) < 2.5


@pytest.mark.parametrize("seed", range(3))
def test_a_fall_of_scale_does_not_blind_the_learner(seed):
    rows = np.random.default_rng(seed).standard_normal((8000, 3))
    labels = (rows @ [1.0, -1.0, 0.5] > 0.0).astype(int)
    rows[3000:] *= 1e-6
    assert mistakes(rows, labels)[0] < 400


def test_a_feature_that_is_constant_for_a_while_keeps_its_scale():
    rows = np.random.default_rng(0).standard_normal((6000, 2))
    rows[3000:3500] = [0.7, 0.0]
    later = usual(rows, 3500)
    assert (np.abs(later - np.clip(rows[3500:], -3.0, 3.0)) < 0.3).mean() > 0.95


@settings(deadline=None, max_examples=25)
@given(seed=st.integers(0, 10**6), size=st.floats(3.0, 150.0), sign=st.sampled_from([-1.0, 1.0]))
def test_a_cell_far_outside_counts_as_the_location(seed, size, sign):
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((1500, 3)) * [1.0, 14.0, 0.1] + [0.0, 50.0, 0.0]
    bad = rng.random(rows.shape) < 0.03
    bad[:500] = False
    rows[bad] = sign * 10.0**size
    made = usual(rows, 0)
    assert (made[bad] == 0.0).all() and np.abs(made[500:][~bad[500:]]).mean() > 0.7


TAILS = {
    "cauchy": lambda rng, size: rng.standard_cauchy(size),
    "lognormal": lambda rng, size: np.exp(2.0 * rng.standard_normal(size)),
    "pareto": lambda rng, size: rng.pareto(1.0, size),
    "rare": lambda rng, size: np.where(rng.random(size) < 0.1, rng.pareto(1.0, size), 0.0),
}


@pytest.mark.parametrize("tails", TAILS)
def test_large_values_of_heavy_tails_are_clipped_and_not_lost(tails):
    rows = TAILS[tails](np.random.default_rng(0), (10_000, 4))
    made = usual(rows, 1000)
    large = np.abs(rows[1000:]) > np.quantile(np.abs(rows), 0.99)
    assert (np.abs(made[large]) == 3.0).mean() > 0.98


def test_sparse_entries_follow_a_change_and_bear_30_wrong_ones():
    rng = np.random.default_rng(0)
    values = rng.choice([-1.0, 1.0], 1000) * rng.uniform(0.5, 1.5, 1000)
    for wrong, start in ((slice(300, 330), 331), (slice(0, 1), 10), (slice(5, 6), 10)):
        bad = values.copy()
        bad[wrong] = 1e8
        rows = sparse.csr_array(np.c_[bad, np.ones(1000)])
        scaled = Standardiser(constant=False).transform(rows).toarray()[start:]
        assert 0.5 < np.abs(scaled[:, 0]).mean() / scaled[:, 1].mean() < 2.0
    values[500:] *= 1e4
    rows = sparse.csr_array(np.c_[values, np.ones(1000)])
    scaled = Standardiser(constant=False).transform(rows).toarray()[600:]
    assert 0.5 < np.abs(scaled[:, 0]).mean() / scaled[:, 1].mean() < 2.0


@pytest.mark.parametrize("size", [1e-140, 1e-155, 1e-200, 1e-310])
def test_cells_whose_squares_are_0_have_a_location_and_a_scale(size):
    """An even number of cells, none of which is their median."""
    scaler = Standardiser(constant=False)
    x = size * np.random.default_rng(0).uniform(1.0, 2.0, (300, 3))
    for first in range(0, 300, 10):
        assert np.isfinite(scaler.transform(x[first : first + 10])).all()
        assert np.isfinite(scaler.state).all()


def test_rows_that_are_centred_already_are_not_moved():
    rows = np.random.default_rng(0).standard_normal((5000, 4))
    scaling = Standardiser(constant=False)
    scaling.transform(rows)
    zeros = scaling.look(np.zeros((1, 4))).array
    assert np.count_nonzero(zeros) <= 1  # two standard errors are passed now and then
    scaling.transform(rows + 1.0)
    assert np.count_nonzero(scaling.look(np.zeros((1, 4))).array) == 4


def test_what_is_far_outside_is_counted():
    rows = np.random.default_rng(0).standard_normal((500, 3))
    rows[200, 1] = 1e6
    rows[300:303, 2] = -9999.0
    for form in (np.asarray, sparse.csr_array):
        scaling = Standardiser()
        scaling.transform(form(rows))
        assert scaling.far.tolist() == [0, 1, 3]


def test_a_refused_piece_is_forgotten():
    rows = changing()[:300]
    for form in (np.asarray, sparse.csr_array):
        for size in (1, 20, 200):
            scaling = Standardiser()
            scaling.transform(form(rows[:80]))
            before = scaling.state.tobytes()
            bad = rows[80 : 80 + size].copy()
            bad[size - 1, 3] = np.nan
            with pytest.raises(InputError, match=r"nan as feature 3"):
                scaling.transform(form(bad))
            assert scaling.state.tobytes() == before


def test_longer_rows_go_on_as_if_they_had_been_0():
    rows = changing()[:400, :5]
    scaling = Standardiser(constant=False)
    scaling.transform(rows)
    longer = scaling.grown(8)[0]
    wide = np.hstack([rows[:10], np.zeros((10, 3))])
    factor = np.sqrt(5 / 8)
    np.testing.assert_allclose(
        longer.look(wide).array[:, :5], factor * scaling.look(rows[:10]).array, atol=1e-12
    )
    wide[3, 6] = 4.0
    assert longer.look(wide).array[3, 6] == pytest.approx(3.0 / np.sqrt(8))


def test_rows_do_not_change_their_kind():
    scaling = Standardiser()
    scaling.transform(np.eye(3))
    with pytest.raises(InputError, match="inputs are sparse, but those before were dense"):
        scaling.transform(sparse.csr_array(np.eye(3)))
    with pytest.raises(InputError, match="4 features, but 3"):
        scaling.transform(np.eye(4))
    with pytest.raises(InputError, match="row 1 has nan as feature 1"):
        Standardiser().transform(sparse.csr_array([[1.0, 0.0], [0.0, np.nan]]))
    with pytest.raises(InputError, match="row 2 has inf as feature 0"):
        Standardiser().transform([[1.0], [2.0], [np.inf]])
    with pytest.raises(InputError, match="constant must be"):
        Standardiser(constant=-1.0)


@pytest.mark.parametrize("constant, size", [(True, 0.5), (0.3, 0.3)])
def test_the_constant_is_the_last_feature(constant, size):
    rows = np.random.default_rng(0).standard_normal((50, 4))
    made = Standardiser(constant).transform(rows)
    bare = Standardiser(constant=False).transform(rows)
    np.testing.assert_array_equal(made, np.c_[bare, np.full(50, size)])


def line_and_turn(seed, rounds=12_000):
    """Return five features of different scales, and the sign of a line that turns half-way."""
    rng = np.random.default_rng(seed)
    plain = rng.standard_normal((rounds, 5))
    labels = (plain @ rng.standard_normal(5) > 0.0) != (np.arange(rounds) >= rounds // 2)
    return plain * [1.0, 14.0, 3.0, 0.1, 100.0] + [0.0, 50.0, 0.0, 0.0, 0.0], labels.astype(int)


def one_cell(bad, rng):
    bad[700, 0] = True


def first_cell(bad, rng):
    bad[0, 0] = True


def burst(bad, rng):
    bad[500:530] = True


def sentinel(bad, rng):
    bad[:, 0] = rng.random(len(bad)) < 0.02


def sentinel_elsewhere(bad, rng):
    bad[:, 4] = rng.random(len(bad)) < 0.1


def sentinels(bad, rng):
    bad[:] = rng.random(bad.shape) < 0.02


@pytest.mark.parametrize("values", [[-9999.0], [1e6], [-9999.0, 99_999.0]])
@pytest.mark.parametrize(
    "change", [one_cell, first_cell, burst, sentinel, sentinel_elsewhere, sentinels]
)
def test_bad_cells_cost_hardly_more_than_the_mean_in_their_place(change, values):
    usual, made = 0.0, 0.0
    for seed in range(3):
        rows, labels = line_and_turn(seed)
        rng, bad = np.random.default_rng(seed), np.zeros(rows.shape, dtype=bool)
        change(bad, rng)
        usual += mistakes(np.where(bad, rows.mean(axis=0), rows), labels)[0]
        made += mistakes(np.where(bad, rng.choice(values, rows.shape), rows), labels)[0]
    assert made <= 1.15 * usual


def mistakes(rows, labels):
    """Return how often auto errs, and how many cells were far outside."""
    committee = dl.auto(dl.tasks.Multiclass(2), effort="fast")
    return committee.run(rows, labels).target_loss.sum(), committee.standardiser.far.tolist()


def events(seed, share=0.05):
    """Return a normal feature, and one that is 0 in most rows; events tell the label alone."""
    rng = np.random.default_rng(seed)
    on = rng.random(20_000) < share
    on[:100] = False
    event = np.where(on, rng.choice([-1.0, 1.0], 20_000), 0.0)
    other = rng.standard_normal(20_000)
    return np.c_[other, event], np.where(on, event > 0.0, other > 0.0).astype(int)


@pytest.mark.parametrize("seed", range(2))
def test_a_bad_cell_among_rare_ones_is_overcome_and_told(seed):
    rows, labels = events(seed)
    clean, far = mistakes(rows, labels)
    assert far == [0, 0]  # rare values are no outliers
    rows[90, 1] = 1e6
    made, far = mistakes(rows, labels)
    assert made <= 1.15 * clean + 5 and far[1] >= 1
    rows[20:50, 1] = 1e9
    assert mistakes(rows, labels)[0] <= 2.0 * clean


def test_sizes_of_rare_values_are_kept():
    rng = np.random.default_rng(0)
    event = np.where(rng.random(20_000) < 0.05, rng.uniform(1.0, 10.0, 20_000), 0.0)
    other = rng.standard_normal(20_000)
    made, far = mistakes(np.c_[other, event], (other + event > 2.5).astype(int))
    assert made < 150 and far == [0, 0]


def test_a_feature_that_switches_between_two_levels_keeps_both():
    rng = np.random.default_rng(0)
    level = (np.arange(20_000) // 300 % 2) * 100.0 + 0.5 * rng.standard_normal(20_000)
    assert mistakes(level[:, np.newaxis], (level > 50.0).astype(int))[0] < 20
    other = rng.standard_normal(20_000)
    both = mistakes(np.c_[other, level], (other + (level - 50.0) / 50.0 > 0.0).astype(int))
    assert both[0] < 300


@pytest.mark.parametrize("factor", [2.0, 3.0, 5.0, 10.0, 0.5, 0.2])
def test_moderate_changes_of_scale_are_followed(factor):
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((20_000, 4))
    labels = (rows @ [1.0, -1.0, 0.7, 0.5] > 0.0).astype(int)
    clean, _ = mistakes(rows, labels)
    rows[10_000:] *= factor
    assert mistakes(rows, labels)[0] < 4.0 * clean


def test_blobs_that_move_together_are_told_apart():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 10_000)
    rows = 0.5 * rng.standard_normal((10_000, 2)) + 4.0 * labels[:, np.newaxis]
    rows += np.linspace(0.0, 20.0 / np.sqrt(2.0), 10_000)[:, np.newaxis]
    assert dl.auto(dl.tasks.Multiclass(2), effort="fast").run(rows, labels).target_loss.sum() < 20


@pytest.mark.parametrize("version", [None, 2, 4, "3", 3.0])
def test_the_state_of_another_version_is_refused(version):
    scaling = Standardiser()
    scaling.transform(np.eye(3))
    about, arrays = scaling.to_saved()
    with pytest.raises(InputError, match="expected a state with version=3, not"):
        Standardiser().restore(about | {"version": version}, arrays)
