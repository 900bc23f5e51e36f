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
    task.check_labels(stream.labels)
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
