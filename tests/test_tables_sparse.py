"""Sparse ARFF rows of numbers stay sparse, and say the same as when they are filled up."""

from __future__ import annotations

import numpy as np
import pytest
from commands import call, predictions
from scipy.sparse import csr_array

from driftline.app.runs import load_model
from driftline.app.tables import Encoder, Options, guess, open_table
from driftline.errors import InputError

HEAD = "@attribute {} {}\n"


def values_of(rows=120, columns=12, seed=0):
    random = np.random.default_rng(seed)
    values = random.integers(-3, 4, (rows, columns)) * (random.random((rows, columns)) < 0.2)
    return values, (values[:, 0] + values[:, 1] > 0).astype(int)


def write_arff(path, values, labels, sparse=True, kind="numeric"):
    """Write numbers and a class, with what is not zero or with all of it."""
    lines = [HEAD.format(f"x{j}", kind) for j in range(values.shape[1])]
    lines += [HEAD.format("y", "{u,v}"), "@data\n"]
    for row, label in zip(values.tolist(), labels, strict=True):
        if sparse:
            pairs = [f"{j} {value}" for j, value in enumerate(row) if value]
            pairs += [f"{len(row)} v"] if label else []
            lines.append("{" + ", ".join(pairs) + "}\n")
        else:
            lines.append(",".join([*map(str, row), "uv"[label]]) + "\n")
    path.write_text("".join(lines))
    return path


def read(path, wishes=None, encoder=None, **options):
    """Return inputs and labels of all pieces, and the encoder."""
    table = open_table(path, **options)
    inputs, labels = [], []
    for piece in table.pieces():
        if encoder is None:
            encoder, _ = guess(table, piece, wishes or Options())
        batch = encoder.bind(table).batch(piece)
        inputs.append(batch.inputs)
        labels += batch.labels.tolist()
    return inputs, labels, encoder


def filled(inputs):
    return np.vstack([part.toarray() if hasattr(part, "indptr") else part for part in inputs])


@pytest.mark.parametrize("rows", [1, 17, 500])
@pytest.mark.parametrize("kind", ["numeric", "{0,1,2,3,-1,-2,-3}"])
def test_sparse_rows_stay_sparse_and_say_the_same(tmp_path, rows, kind):
    values, labels = values_of()
    sparse = write_arff(tmp_path / "sparse.arff", values, labels, kind=kind)
    dense = write_arff(tmp_path / "dense.arff", values, labels, sparse=False, kind=kind)
    inputs, found, encoder = read(sparse, rows=rows)
    assert all(isinstance(part, csr_array) and part.has_canonical_format for part in inputs)
    assert sum(part.nnz for part in inputs) == np.count_nonzero(values)
    assert np.array_equal(filled(inputs), values) and found == labels.tolist()
    usual, again, _ = read(dense, rows=rows)
    assert all(isinstance(part, np.ndarray) for part in usual)
    assert np.array_equal(filled(usual), values) and again == found
    # An encoder makes rows of one kind, whatever it meets.
    later, _, _ = read(dense, encoder=Encoder.from_config(encoder.config()))
    assert isinstance(later[0], csr_array) and np.array_equal(filled(later), values)


@pytest.mark.parametrize(
    ("wishes", "sparse"),
    [
        (Options(label=["y"]), False),
        (Options(label=["y"], ignore=["b"]), True),
        (Options(label=["b"], ignore=["y"]), True),
        (Options(label=["b", "c"], task="tags", ignore=["y"]), None),
    ],
)
def test_texts_are_filled_up_unless_they_are_left_out(tmp_path, wishes, sparse):
    text = "".join(HEAD.format(*pair) for pair in (("a", "real"), ("b", "{no,yes}")))
    text += HEAD.format("c", "{0,1}") + HEAD.format("y", "{u,v}") + "@data\n"
    path = tmp_path / "t.arff"
    path.write_text(text + "{0 2.5, 3 v}\n{1 yes, 2 1}\n1,no,0,u\n{}\n")
    if sparse is None:
        with pytest.raises(InputError, match="column b: a tag is 0 or 1"):
            read(path, wishes)
        return
    inputs, labels, encoder = read(path, wishes)
    assert hasattr(inputs[0], "indptr") == encoder.columns.sparse == sparse
    expected = {"a": [2.5, 0, 1, 0], "c": [0, 1, 0, 0]}
    expected |= {"b": [0, 1, 0, 0]}
    made = dict(zip(encoder.columns.names, filled(inputs).T.tolist(), strict=True))
    assert made == {name: expected[name] for name in encoder.columns.names}
    assert labels == ([1, 0, 0, 0] if wishes.label == ["y"] else [0, 1, 0, 0])


def test_what_is_absent_is_the_first_value_listed(tmp_path):
    path = tmp_path / "t.arff"
    path.write_text(
        "@attribute a {1,0}\n@attribute b real\n@attribute y {u,v}\n@data\n{1 3}\n{0 0}\n"
    )
    inputs, labels, _ = read(path)
    assert filled(inputs).tolist() == [[1, 3], [0, 0]] and labels == [0, 0]


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("{0 x}", "line 5, column a: saw 'x'"),
        ("{0 1_0}", "line 5, column a: saw '1_0'"),
        ("{0 inf}", "line 5, column a: expected a number, but saw 'inf'"),
        ("{0 ?}", "line 5: a value is missing"),
        ("{1 w}", "line 5: y must be one of 'u, v', but is 'w'"),
        ("{2 1}", "line 5: the 2 attributes have indices below 2"),
    ],
)
def test_sparse_rows_that_do_not_fit_are_named(tmp_path, row, words):
    path = tmp_path / "t.arff"
    path.write_text(f"@attribute a real\n@attribute y {{u,v}}\n@data\n{{0 1}}\n{row}\n{{0 2}}\n")
    with pytest.raises(InputError, match=words):
        read(path)


@pytest.mark.parametrize("missing", ["refuse", "zero", "mean"])
def test_values_that_are_missing_later(tmp_path, missing):
    values, labels = values_of(20, 3)
    path = write_arff(tmp_path / "t.arff", values, labels)
    _, _, encoder = read(path, Options(missing=missing))
    other = tmp_path / "t.csv"
    other.write_text("x0,x1,x2,y\n,1,2,u\n")
    if missing == "refuse":
        with pytest.raises(InputError, match="column x0: the value is missing"):
            read(other, encoder=encoder)
        return
    (made,), _, _ = read(other, encoder=encoder)
    mean = values[:, 0].mean() if missing == "mean" else 0.0
    assert np.allclose(made.toarray(), [[mean, 1, 2]])


def test_a_run_and_what_is_predicted_from_other_files(tmp_path):
    values, labels = values_of(400)
    path = write_arff(tmp_path / "t.arff", values, labels)
    svm = tmp_path / "t.svm"
    rows = zip(values.tolist(), labels, strict=True)
    svm.write_text(
        "".join(
            f"{'uv'[y]} " + " ".join(f"{j}:{v}" for j, v in enumerate(x) if v) + "\n"
            for x, y in rows
        )
    )
    for name in ("t.arff", "t.svm"):
        more = ("--features", 12) if name == "t.svm" else ()
        assert call("run", tmp_path / name, *more, "--out", tmp_path / name[2:]).exit_code == 0
    assert predictions(tmp_path / "arff") == predictions(tmp_path / "svm")
    model = tmp_path / "arff" / "model.driftline"
    assert load_model(model).encoder.columns.sparse
    csv = tmp_path / "t.csv"
    lines = [
        ",".join([*map(str, x), "uv"[y]]) for x, y in zip(values.tolist(), labels, strict=True)
    ]
    csv.write_text("\n".join([",".join([*(f"x{j}" for j in range(12)), "y"]), *lines]) + "\n")
    assert call("predict", model, csv).stdout == call("predict", model, path).stdout
    done = call("run", csv, "--resume", model)
    assert done.exit_code == 0, done.output
    done = call("run", csv, "--out", tmp_path / "csv")  # and the other way round
    assert call("predict", tmp_path / "csv" / "model.driftline", path).exit_code == 0
