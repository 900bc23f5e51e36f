"""Sizes of queries in a file beside the documents, as LightGBM has them, are read for rankings."""

from __future__ import annotations

import gzip

import numpy as np
import pytest
from commands import call, predictions

from driftline.app.tables import Options, guess, open_table
from driftline.errors import InputError

SIZES = [3, 1, 4, 2, 5, 6]


def ranking(folder, sizes=SIZES, name="t.svm", qid=False, pack=False):
    """Write documents, with queries in the lines or in a file beside them."""
    random, lines = np.random.default_rng(0), []
    for query, size in enumerate(SIZES):
        for _ in range(size):
            x = random.standard_normal(2).round(3)
            middle = f" qid:{query + 1}" if qid else ""
            lines.append(f"{int(x[0] > 0)}{middle} 1:{x[0]} 2:{x[1]}\n")
    text = "".join(lines).encode()
    (folder / name).write_bytes(gzip.compress(text) if pack else text)
    if sizes is not None:
        beside = folder / f"{name.removesuffix('.gz')}.query"
        beside.write_text("".join(f"{size}\n" for size in sizes))
    return folder / name


def queries_of(table):
    return [text for piece in table.pieces() for text in piece.texts(1)]


@pytest.mark.parametrize("rows", [1, 4, 100])
@pytest.mark.parametrize("name", ["t.svm", "t.svm.gz", "rank.train"])
def test_sizes_beside_say_what_qid_does(tmp_path, rows, name):
    form, pack = "svmlight", name.endswith(".gz")
    path = ranking(tmp_path, name=name, pack=pack)
    lines = ranking(tmp_path, None, "lines.svm", qid=True)
    one, two = open_table(path, form, rows=rows), open_table(lines, form, rows=rows)
    assert one.columns == two.columns and one.width == two.width
    assert queries_of(one) == queries_of(two)
    one, two = (open_table(p, form, features=3, rows=rows) for p in (path, lines))
    pairs = zip(one.pieces(), two.pieces(), strict=True)
    assert all((a.matrix != b.matrix).nnz == 0 and a.texts(0) == b.texts(0) for a, b in pairs)


def test_a_ranking_is_learned_predicted_and_taken_up(tmp_path):
    path = ranking(tmp_path)
    done = call("run", path, "--out", tmp_path / "out")
    assert done.exit_code == 0 and "1 - NDCG, of 6 rounds" in done.output, done.output
    assert "queries: 6 of t.svm.query" in done.output
    model = tmp_path / "out" / "model.driftline"
    lines = ranking(tmp_path, None, "lines.svm", qid=True)
    assert call("run", lines, "--out", tmp_path / "lines").exit_code == 0
    assert predictions(tmp_path / "out") == predictions(tmp_path / "lines")
    assert call("predict", model, path).stdout == call("predict", model, lines).stdout
    other = tmp_path / "lines" / "model.driftline"  # which has read other lines
    done = call("run", path, "--resume", other, "--skip", 8, "--out", tmp_path / "on")
    assert done.exit_code == 0 and "of 3 rounds" in done.output


def test_qid_in_the_lines_goes_before_a_file_beside(tmp_path):
    path = ranking(tmp_path, [1, 2], qid=True)
    table = open_table(path)
    assert len(set(queries_of(table))) == len(SIZES) and not table.notes


def test_without_a_ranking_sizes_are_left_out(tmp_path):
    table = open_table(ranking(tmp_path))
    encoder, _ = guess(table, next(table.pieces()), Options(task="classes"))
    assert encoder.query is None and encoder.ignored == ["qid"]


@pytest.mark.parametrize("features", [None, 3])
@pytest.mark.parametrize(
    ("sizes", "words"),
    [
        (SIZES[:-1], "t.svm.query has 5 queries of 15 rows, but .*t.svm has 21 rows"),
        ([*SIZES, 2], "t.svm.query has 7 queries of 23 rows, but .*t.svm has 21 rows"),
        ([], "has 0 queries of 0 rows"),
        ([3, 0, 18], "t.svm.query, line 2: expected the size of a query, 1 or more, but saw '0'"),
        ([3, "x"], "line 2: expected the size of a query, 1 or more, but saw 'x'"),
        ([3, "-1"], "line 2: expected the size of a query"),
        ([3, "9" * 50], "line 2: expected the size of a query"),
    ],
)
def test_sizes_that_do_not_fit_are_refused_before_the_first_row(tmp_path, sizes, words, features):
    path = ranking(tmp_path, sizes)
    with pytest.raises(InputError, match=words):
        open_table(path, features=features)
