"""Rounds of several vectors, documents or positions, brought to one scale as they come."""

import naive
import numpy as np
import pytest
from scipy import sparse

import driftline as dl
from driftline.features import Standardiser
from driftline.inputs import Items, Sequences

SCALES = np.array([1e-3, 1.0, 1e3, 1.0, 1e3, 1e-3])


def queries(rounds=150, seed=0, scales=SCALES, offset=5.0):
    """Queries of 1 to 8 documents, whose relevance depends on all features, other than before."""
    rng = np.random.default_rng(seed)
    weights = rng.standard_normal((3, len(scales)))
    inputs, labels = [], []
    for t in range(rounds):
        plain = rng.standard_normal((rng.integers(1, 9), len(scales)))
        labels.append(np.digitize(plain @ weights[3 * t // rounds], [0.5, 2.0]))
        inputs.append((plain + offset) * scales)
    return inputs, labels


# -- the scaling itself


def test_rounds_are_scaled_as_written_out():
    """A cell is what it would be if it came next, and then all of the round are remembered."""
    inputs, _ = queries(400)
    inputs[200][:, 1] += 1e6
    for x in inputs[250:]:
        x[:, 2] *= 50.0
    columns, wanted = [naive.Column() for _ in SCALES], []
    for vectors in inputs:
        wanted.append(
            np.array([[c.next(x) for c, x in zip(columns, v, strict=True)] for v in vectors])
        )
        for vector in vectors:
            for column, x in zip(columns, vector, strict=True):
                column.scale(x)
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
        seen = pieces.look_at_rounds(Items(inputs[a : a + 1])).groups[0]
        np.testing.assert_array_equal(seen, made[a])
        for own, wanted in zip(pieces.rounds(rows, a, b).groups, made[a:b], strict=True):
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
    for end in (start + 3, 150):
        with pytest.raises(dl.InputError, match=f"row {start + 2} has nan"):
            scaling.rounds(Items(bad), start, end)
    with pytest.raises(dl.InputError, match=f"row {start + 2} has nan"):
        scaling.look_at_rounds(Items(bad))
    after = scaling.to_saved()
    assert after[0] == before[0] and after[1]["state"].tobytes() == before[1]["state"].tobytes()
