"""Streams drift where they say, and know the weights behind their labels."""

import gzip
import struct

import numpy as np
import pytest
from scipy import sparse

import driftline as dl
from driftline.streams.idx import read_idx, read_mnist


@pytest.mark.parametrize("flips", [0, 1, 10, 100])
@pytest.mark.parametrize("form", ["vector", "matrix"])
def test_label_flips(flips, form):
    stream = dl.streams.LabelFlips(rounds=1234, flips=flips, seed=1, form=form)
    assert len(stream) == 1234 and len(stream.starts) == flips + 1
    lengths = np.diff([*stream.starts, 1234])
    assert lengths.max() - lengths.min() <= 1
    np.testing.assert_allclose(np.linalg.norm(stream.inputs, axis=1), 1.0)
    assert stream.comparator.path_length == pytest.approx(2.0 * flips)
    assert stream.comparator.largest_norm == pytest.approx(1.0)
    loss = dl.losses.Logistic(stream.task)
    argmax = dl.decoders.Argmax(loss)
    for t in range(0, 1234, 7):
        theta = stream.comparator.at(t) @ stream.inputs[t]
        assert argmax.risk(theta, int(stream.labels[t])) == 0.0


def test_seeds():
    a, b, c = (dl.streams.LabelFlips(rounds=50, flips=1, seed=s) for s in (0, 0, 1))
    np.testing.assert_array_equal(a.inputs, b.inputs)
    assert (a.inputs != c.inputs).any()
    d, e = (dl.streams.DigitTriples(rounds=50, flips=1, seed=s) for s in (0, 0))
    np.testing.assert_array_equal(d.inputs, e.inputs)


def test_rotation_knows_its_comparator():
    stream = dl.streams.Rotation(rounds=500, turns=2.0, seed=0)
    assert stream.comparator.path_length == pytest.approx(4 * np.pi, rel=1e-2)
    for t in (0, 100, 499):
        assert stream.labels[t] * (stream.comparator.at(t) @ stream.inputs[t])[0] >= 0


def test_digit_triples_draw_three_digits_a_segment():
    stream = dl.streams.DigitTriples(rounds=900, flips=2, seed=0)
    np.testing.assert_allclose(np.linalg.norm(stream.inputs, axis=1), 1.0)
    assert stream.digits.shape == (3, 3)
    assert all(len(set(row)) == 3 for row in stream.digits.tolist())
    for start in stream.starts:
        assert set(stream.labels[start : start + 300]) == {0, 1, 2}
    assert stream.comparator is None


@pytest.mark.parametrize(
    "make, words",
    [
        (lambda: dl.streams.LabelFlips(rounds=0), "at least 1"),
        (lambda: dl.streams.LabelFlips(rounds=5, flips=5), "no room for 5 flips"),
        (lambda: dl.streams.LabelFlips(rounds=5, flips=-1), "at least 0"),
        (lambda: dl.streams.LabelFlips(rounds=5, flips=1, form="x"), "'vector' or 'matrix'"),
        (lambda: dl.streams.Rotation(turns=np.nan), "finite"),
        (lambda: dl.streams.DigitTriples(source="letters"), "'digits' or 'mnist'"),
        (lambda: dl.comparators.Piecewise([1], np.zeros((1, 2, 2))), "starts with 0"),
        (lambda: dl.comparators.Piecewise([0, 5, 5], np.zeros((3, 2, 2))), "must increase"),
        (lambda: dl.comparators.Piecewise([0, 5], np.zeros((3, 2, 2))), "2 segments"),
        (lambda: dl.comparators.Fixed([[np.nan]]), "finite"),
    ],
)
def test_bad_input_is_named(make, words):
    with pytest.raises(dl.InputError, match=words):
        make()


# -- MNIST files, made here


def idx(array):
    return (
        b"\0\0\x08"
        + bytes([array.ndim])
        + struct.pack(f">{array.ndim}I", *array.shape)
        + array.tobytes()
    )


@pytest.fixture
def mnist(tmp_path):
    generator = np.random.default_rng(0)
    for name, count in (("train", 300), ("t10k", 100)):
        images = generator.integers(1, 255, (count, 4, 4)).astype(np.uint8)
        labels = (np.arange(count) % 10).astype(np.uint8)
        with gzip.open(tmp_path / f"{name}-images-idx3-ubyte.gz", "wb") as file:
            file.write(idx(images))
        (tmp_path / f"{name}-labels-idx1-ubyte").write_bytes(idx(labels))
    return tmp_path


def test_mnist_is_read_from_plain_and_compressed_files(mnist, monkeypatch):
    images, digits = read_mnist(mnist)
    assert images.shape == (400, 16) and digits.shape == (400,)
    stream = dl.streams.DigitTriples(rounds=60, flips=1, source="mnist", folder=mnist)
    assert stream.inputs.shape == (60, 16)
    (mnist / "data").mkdir()
    (mnist / "data" / "mnist").symlink_to(mnist)
    monkeypatch.setenv("DRIFTLINE_DATA", str(mnist / "data"))
    assert dl.streams.DigitTriples(rounds=60, flips=1, source="mnist").inputs.shape == (60, 16)


def test_a_missing_file_is_named(mnist):
    (mnist / "t10k-labels-idx1-ubyte").unlink()
    with pytest.raises(dl.InputError, match="has no file t10k-labels-idx1-ubyte"):
        read_mnist(mnist)


def test_a_truncated_file_is_named(mnist):
    path = mnist / "train-images-idx3-ubyte.gz"
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(dl.InputError, match="train-images-idx3-ubyte.gz is truncated"):
        read_mnist(mnist)
    path = mnist / "train-labels-idx1-ubyte"
    for cut in (300, 6, 3):
        path.write_bytes(path.read_bytes()[:cut])
        with pytest.raises(dl.InputError, match="train-labels-idx1-ubyte is"):
            read_idx(path)


def test_files_that_do_not_belong_together(mnist):
    (mnist / "train-labels-idx1-ubyte").write_bytes(idx(np.zeros(7, dtype=np.uint8)))
    with pytest.raises(dl.InputError, match="do not belong together"):
        read_mnist(mnist)


def test_without_a_folder_the_message_says_what_to_set(monkeypatch):
    monkeypatch.delenv("DRIFTLINE_DATA", raising=False)
    with pytest.raises(dl.InputError, match="set DRIFTLINE_DATA"):
        dl.streams.DigitTriples(source="mnist")


# -- structured streams


@pytest.mark.parametrize(
    "task",
    [
        dl.tasks.Multilabel(4),
        dl.tasks.FixedSize(5, 2),
        dl.tasks.Ordinal(5),
        dl.tasks.LabelRanking(4),
        dl.tasks.Matching(3),
        dl.tasks.Multiclass(3),
    ],
    ids=repr,
)
def test_planted_labels_are_best_for_the_comparator(task):
    stream = dl.streams.Planted(task, rounds=60, flips=3, seed=0)
    task.labels.check_all(stream.labels)
    assert stream.comparator.largest_norm == pytest.approx(1.0)
    for t in range(60):
        best = task.best_prediction(stream.comparator.at(t) @ stream.inputs[t])
        np.testing.assert_array_equal(best, stream.labels[t])


def test_planted_noise_changes_a_share_of_the_labels():
    task = dl.tasks.Multilabel(6)
    noisy = dl.streams.Planted(task, rounds=2000, flips=0, noise=0.3, seed=0)
    best = [task.best_prediction(noisy.comparator.at(0) @ x) for x in noisy.inputs]
    changed = (np.array(best) != noisy.labels).any(axis=1).mean()
    assert 0.25 < changed < 0.35


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_relabelled_rows_are_permuted_at_each_flip(kind):
    generator = np.random.default_rng(0)
    inputs = generator.random((40, 3)) + 0.1
    inputs[7] = 0.0
    labels = (inputs > 0.5).astype(int)
    stream = dl.streams.Relabelled(dl.tasks.Multilabel(3), kind(inputs), labels, flips=3, seed=1)
    rows = stream.inputs if kind is np.asarray else stream.inputs.toarray()
    norms = np.linalg.norm(rows, axis=1)
    assert np.isclose(norms, 1.0).sum() == 39 and (norms == 0.0).sum() == 1
    assert len(stream.starts) == 4
    np.testing.assert_array_equal(np.sort(stream.labels.sum(axis=1)), np.sort(labels.sum(axis=1)))
    still = dl.streams.Relabelled(dl.tasks.Multilabel(3), kind(inputs), labels, 20, seed=1)
    assert len(still) == 20


def test_bad_structured_streams_are_named():
    with pytest.raises(dl.InputError, match="noise"):
        dl.streams.Planted(dl.tasks.Multilabel(2), noise=2.0)
    with pytest.raises(dl.InputError, match="5 inputs but 4 labels"):
        dl.streams.Relabelled(dl.tasks.Multilabel(2), np.ones((5, 2)), np.ones((4, 2)))


def test_planted_labels_of_costs_are_labels():
    task = dl.tasks.CostSensitive([[0, 1, 1, 0.2], [1, 0, 1, 0.2], [1, 1, 0, 0.2]])
    stream = dl.streams.Planted(task, rounds=80, flips=1, seed=0)
    scores = np.array([stream.comparator.at(t) @ stream.inputs[t] for t in range(80)])
    np.testing.assert_array_equal(stream.labels, scores.argmax(axis=1))


# -- rankings


RANKINGS = [
    dl.tasks.NDCG(4),
    dl.tasks.NDCG(3, lowest=1),
    dl.tasks.PrecisionAtK(2),
]


@pytest.mark.parametrize("task", RANKINGS, ids=repr)
def test_planted_grades_follow_the_planted_scores(task):
    stream = dl.streams.PlantedRankings(task, rounds=400, flips=3, documents=(2, 6), seed=0)
    task.labels.check_all(stream.labels)
    assert stream.comparator.weights.shape == (4, 1, 10)
    np.testing.assert_allclose(np.linalg.norm(stream.comparator.weights, axis=2), 1.0)
    assert len(stream) == 400 and {len(x) for x in stream.inputs} == {2, 3, 4, 5, 6}
    for t in range(400):
        scores = stream.inputs[t] @ stream.comparator.at(t)[0]
        assert len(scores) == len(stream.labels[t])
        assert task.loss(task.best_prediction(scores), stream.labels[t]) == pytest.approx(0.0)
        np.testing.assert_allclose(np.linalg.norm(stream.inputs[t], axis=1), 1.0)


@pytest.mark.parametrize("task", RANKINGS, ids=repr)
@pytest.mark.parametrize("features", [2, 3, 20])
def test_every_planted_grade_is_rarer_than_the_one_below(task, features):
    stream = dl.streams.PlantedRankings(task, rounds=2000, features=features, seed=1)
    grades = np.concatenate(stream.labels) - task.lowest
    levels = task.highest - task.lowest
    wanted = [*(0.5 ** np.arange(1, levels + 1)), 0.5**levels]
    np.testing.assert_allclose(np.bincount(grades) / grades.size, wanted, atol=0.015)


def test_turns_of_planted_rankings():
    task = dl.tasks.NDCG(2)
    new, flipped, turned = (
        dl.streams.PlantedRankings(task, rounds=50, flips=4, turn=turn, seed=3).comparator
        for turn in (None, "flip", 0.3)
    )
    np.testing.assert_allclose(flipped.weights[1:], -flipped.weights[:-1])
    cosines = np.einsum("sdf,sdf->s", turned.weights[1:], turned.weights[:-1])
    np.testing.assert_allclose(cosines, np.cos(0.3))
    assert (np.abs(np.einsum("sdf,sdf->s", new.weights[1:], new.weights[:-1])) < 0.99).all()


def test_noise_and_seeds_of_planted_rankings():
    task = dl.tasks.PrecisionAtK(3)
    make = dl.streams.PlantedRankings
    a, b, c = (make(task, rounds=200, flips=1, seed=s) for s in (0, 0, 1))
    noisy = make(task, rounds=200, flips=1, noise=0.4, seed=0)
    for one, other in ((a, b), (a, noisy)):
        np.testing.assert_array_equal(np.concatenate(one.inputs), np.concatenate(other.inputs))
    assert a.inputs[0].shape != c.inputs[0].shape or (a.inputs[0] != c.inputs[0]).any()
    np.testing.assert_array_equal(np.concatenate(a.labels), np.concatenate(b.labels))
    changed = (np.concatenate(a.labels) != np.concatenate(noisy.labels)).mean()
    assert 0.15 < changed < 0.25  # half of the other grades are the same


@pytest.mark.parametrize(
    "options, words",
    [
        ({"task": dl.tasks.NDCG(2, items=4)}, "items=None"),
        ({"task": dl.tasks.Multiclass(3)}, "NDCG or PrecisionAtK"),
        ({"features": 1}, "at least 2"),
        ({"documents": (5, 4)}, "5 is more than 4"),
        ({"documents": (0, 4)}, "at least 1"),
        ({"noise": -0.1}, "noise"),
        ({"turn": "round"}, "'round'"),
        ({"turn": np.inf}, "angle"),
        ({"rounds": 5, "flips": 5}, "no room"),
    ],
)
def test_bad_planted_rankings_are_named(options, words):
    with pytest.raises(dl.InputError, match=words):
        dl.streams.PlantedRankings(**{"task": dl.tasks.NDCG(2), **options})


@pytest.fixture
def queries(tmp_path):
    """Three queries in two files; the second has a feature more, and is compressed."""
    folder = tmp_path / "ltr_lightgbm"
    folder.mkdir()
    (folder / "rank.train").write_text("2 1:3 2:4\n0 1:1\n1 2:1\n0 1:2 2:2\n")
    (folder / "rank.train.query").write_text("2\n2\n")
    with gzip.open(folder / "rank.test.gz", "wb") as file:
        file.write(b"1 1:1 3:2\n3 2:1\n0 3:1\n")
    (folder / "rank.test.query").write_text("3\n")
    return tmp_path


def test_ranked_queries_turn_round_at_each_flip(queries, monkeypatch):
    monkeypatch.setenv("DRIFTLINE_DATA", str(queries))
    stream = dl.streams.RankedQueries(rounds=10, flips=1, seed=0)
    assert stream.task == dl.tasks.NDCG(3) and stream.comparator is None
    assert len(stream) == 10 and all(x.shape[1] == 3 for x in stream.inputs)
    assert max(np.linalg.norm(x, axis=1).max() for x in stream.inputs) == pytest.approx(1.0)
    grades = {2: {(2, 0), (1, 0)}, 3: {(1, 3, 0)}}
    for t, label in enumerate(stream.labels):
        given = label if t < 5 else 3 - label
        assert tuple(given.tolist()) in grades[len(label)]
    for start in (0, 3, 6):  # every query once in each pass
        passed = [tuple(x.ravel()) for x in stream.inputs[start : start + 3]]
        assert len(set(passed)) == 3
    again = dl.streams.RankedQueries(rounds=10, flips=1, seed=0, folder=queries / "ltr_lightgbm")
    for one, other in zip(stream.inputs, again.inputs, strict=True):
        np.testing.assert_array_equal(one, other)


def test_bad_ranked_queries_are_named(queries, monkeypatch):
    monkeypatch.delenv("DRIFTLINE_DATA", raising=False)
    with pytest.raises(dl.InputError, match="set DRIFTLINE_DATA"):
        dl.streams.RankedQueries()
    folder = queries / "ltr_lightgbm"
    (folder / "rank.train").write_text("2 1:3\n-1 1:1\n1 2:1\n0 1:2\n")
    with pytest.raises(dl.InputError, match="whole numbers from 0"):
        dl.streams.RankedQueries(rounds=5, flips=1, folder=folder)
    (folder / "rank.test.gz").unlink()
    (folder / "rank.train").write_text("2 1:3\n1 1:1\n1 2:1\n0 1:2\n")
    with pytest.raises(dl.InputError, match="no file rank.test"):
        dl.streams.RankedQueries(rounds=5, flips=1, folder=folder)
