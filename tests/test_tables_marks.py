"""A table that is taken up at a mark goes on as if it had never been closed."""

from __future__ import annotations

import gzip

import numpy as np
import pytest
from howmany import examples

from driftline.app.tables import BEGINNING, open_table


def csv(rows=200, header=True):
    lines = [f"{i},{i * 7 % 11},{'uv'[i % 2]}" for i in range(rows)]
    return "\n".join([*(["a,b,label"] if header else []), *lines]) + "\n"


def quoted(rows=200):
    lines = [f'{i},"say ""{i}""\nand more","{"uv"[i % 2]}"' for i in range(rows)]
    return "\n".join(["a,b,label", *lines]) + "\n"


def blank(rows=200):
    return csv(rows).replace("\n3", "\n\n  \n3")


def svmlight(rows=200):
    return "".join(f"{i % 3} qid:{i // 7} 1:{i} 4:{i % 5} # {i}\n" for i in range(rows))


def plain_svmlight(rows=210):
    return "".join(f"{i % 3} 1:{i} 4:{i % 5}\n" for i in range(rows))


def arff(rows=200):
    names = "@relation r\n@attribute a numeric\n@attribute b numeric\n@attribute y {u,v}\n@data\n"
    return names + "".join(f"{i},{i % 5},{'uv'[i % 2]}\n% {i}\n" for i in range(rows))


def sparse_arff(rows=200):
    return arff(0) + "".join(f"{{0 {i + 1}, 2 {'uv'[i % 2]}}}\n" for i in range(rows))


def json_lines(rows=200):
    lines = [f'{{"a": {i}, "b": "say {i % 5}", "label": "{"uv"[i % 2]}"}}' for i in range(rows)]
    lines[3] = '{"label": "u", "a": 3}'
    return "\n".join([*lines[:20], "", *lines[20:]]) + "\n"


def commented(rows=200):
    return "# first\n" + csv(rows).replace("\n3", "\n# more, and more\n3")


KINDS = {
    "json lines": ("t.jsonl", json_lines, {}),
    "comments": ("t.csv", commented, {"comment": "#"}),
    "blanks": ("t.txt", lambda: csv().replace(",", "  "), {"delimiter": "space"}),
    "csv": ("t.csv", csv, {}),
    "no header": ("t.csv", lambda: csv(header=False), {"header": False}),
    "quoted": ("t.csv", quoted, {}),
    "blank": ("t.csv", blank, {}),
    "latin": ("t.csv", lambda: csv().replace("u", "ü"), {"encoding": "latin-1"}),
    "utf-16": ("t.csv", csv, {"encoding": "utf-16"}),
    "returns": ("t.csv", lambda: csv().replace("\n", "\r\n"), {}),
    "gzip": ("t.csv.gz", csv, {}),
    "svmlight": ("t.svm", svmlight, {}),
    "sizes": ("t.svm", plain_svmlight, {}),
    "arff": ("t.arff", arff, {}),
    "sparse arff": ("t.arff", sparse_arff, {}),
}
every_kind = pytest.mark.parametrize("kind", KINDS)


def written(folder, kind, text=None):
    name, make, options = KINDS[kind]
    content = (make() if text is None else text).encode(options.get("encoding", "utf-8"))
    path = folder / name
    path.write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    if kind == "sizes":
        (folder / "t.svm.query").write_text("7\n" * 30)
    return path, options | {"rows": 16, "marked": True}


def rows_of(piece, table):
    made = list(zip(*(piece.texts(j) for j in range(len(table.columns))), strict=True))
    return made if piece.matrix is None else [*made, piece.matrix.toarray().tolist()]


def pieces_of(table):
    return [rows_of(piece, table) for piece in table.pieces()]


@every_kind
def test_pieces_after_a_mark_are_those_that_were_left(tmp_path, kind):
    path, options = written(tmp_path, kind)
    whole = pieces_of(open_table(path, **options))
    table = open_table(path, **options)
    for number, piece in enumerate(table.pieces()):
        for drop in (None, 0, min(5, len(piece)), len(piece)):
            mark = table.marker(drop)()
            at_end = drop is None or drop == len(piece)
            assert mark.drop == (0 if at_end else drop)
            assert open_table(path, **options).fits(mark)
            other = open_table(path, **options)
            other.go_to(mark)
            assert pieces_of(other) == whole[number + at_end :]
            if at_end:  # one look is enough
                again = open_table(path, **options)
                assert again.fits(mark)
                again.go_to(mark)
                assert pieces_of(again) == whole[number + 1 :]
                assert again.marker()() == open_end(path, options)


def open_end(path, options):
    table = open_table(path, **options)
    for _ in table.pieces():
        pass
    return table.marker()()


@every_kind
def test_rows_of_marks_count_all_rows(tmp_path, kind):
    path, options = written(tmp_path, kind)
    table, count = open_table(path, **options), 0
    assert table.marker()() == BEGINNING._replace(digest=table.marker()().digest)
    for piece in table.pieces():
        assert table.marker(1)().rows == count + 1
        count += len(piece)
        assert table.marker()().rows == count
    assert count in (200, 210)


@every_kind
def test_what_changed_before_a_mark_is_noticed_and_later_changes_are_not(tmp_path, kind):
    path, options = written(tmp_path, kind)
    marks = []
    table = open_table(path, **options)
    for piece in table.pieces():
        marks += [table.marker(len(piece) // 3), table.marker()]
    marks = [mark() for mark in marks]  # when all has been read
    text, random = KINDS[kind][1](), np.random.default_rng(0)
    lines = text.split("\n")
    for place in random.integers(1, len(lines) - 1, len(examples(12, 40))).tolist():
        edited = list(lines)
        edited[place] = edited[place].replace("1", "7").replace("2", "9").replace("0", "8")
        if edited[place] == lines[place]:
            continue
        written(tmp_path, kind, "\n".join(edited))
        for mark in marks:
            try:
                same = open_table(path, **options).fits(mark)
            except Exception as error:  # a row that was read ahead may be refused at once
                assert place < 8, error
                continue
            assert same == (mark.through <= place), (place, mark)


@every_kind
def test_a_table_that_has_grown_goes_on(tmp_path, kind):
    path, options = written(tmp_path, kind)
    end = open_end(path, options)
    text = KINDS[kind][1]()
    last = text.rstrip().split("\n")[-2 if kind in ("quoted", "arff") else -1]
    if kind == "quoted":
        last = "9,8,u"
    written(tmp_path, kind, text + 3 * f"{last.strip()}\n")
    if kind == "sizes":
        (tmp_path / "t.svm.query").write_text("7\n" * 30 + "3\n")
    table = open_table(path, **options)
    assert table.fits(end)
    table.go_to(end)
    assert sum(len(piece) for piece in table.pieces()) == 3


@pytest.mark.parametrize("kind", ["json lines", "csv", "no header", "blanks"])
def test_a_short_table_that_has_grown_goes_on_where_it_ended(tmp_path, kind):
    """Rows after the mark may be read ahead, with those before it, when the table is opened."""
    text = KINDS[kind][1]()
    lines = text.splitlines(keepends=True)
    for count in (2, 5, 14):
        path, options = written(tmp_path, kind, "".join(lines[:count]))
        end = open_end(path, options)
        written(tmp_path, kind, text)
        table = open_table(path, **options)
        assert table.fits(end)
        table.go_to(end)
        pieces = table.pieces()
        first = next(pieces)
        assert first.line(0) == count + 1
        assert open_table(path, **options).fits(table.marker(1)())
        assert open_table(path, **options).fits(table.marker()())
        assert end.rows + len(first) + sum(len(piece) for piece in pieces) == 200


@every_kind
def test_a_table_that_was_cut_does_not_fit(tmp_path, kind):
    path, options = written(tmp_path, kind)
    end = open_end(path, options)
    text = KINDS[kind][1]()
    written(tmp_path, kind, text[: len(text) * 2 // 3])
    if kind == "sizes":
        lines = len(path.read_text().splitlines())
        (tmp_path / "t.svm.query").write_text(f"{lines}\n")
    assert not open_table(path, **options).fits(end)


def test_sizes_of_queries_that_changed_are_noticed(tmp_path):
    path, options = written(tmp_path, "sizes")
    end = open_end(path, options)
    (tmp_path / "t.svm.query").write_text("6\n8\n" + "7\n" * 28)
    assert not open_table(path, **options).fits(end)


def test_parquet(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    path, options = tmp_path / "t.parquet", {"rows": 16, "marked": True}

    def table(rows, change=None):
        columns = {
            "a": [float(i) for i in range(rows)],
            "b": [None if i % 5 == 0 else i for i in range(rows)],
            "c": [f"text {i % 3}" for i in range(rows)],
        }
        if change is not None:
            columns["abc"[change % 3]][change] = [0.5, 99999, "other"][change % 3]
        return pyarrow.table(columns)

    def write(made, size):
        parquet.write_table(made, path, row_group_size=size)

    write(table(100), 30)
    whole = pieces_of(open_table(path, **options))
    one, marks = open_table(path, **options), []
    for number, piece in enumerate(one.pieces()):
        for drop in (None, 4):
            mark = one.marker(drop)()
            marks.append(mark)
            assert open_table(path, **options).fits(mark)
            other = open_table(path, **options)
            other.go_to(mark)
            assert pieces_of(other) == whole[number + (drop is None or drop == len(piece)) :]
    write(table(130), 50)  # it has grown, in other row groups
    for mark in marks:
        other = open_table(path, **options)
        assert other.fits(mark)
        if not mark.drop:
            other.go_to(mark)
            assert sum(len(piece) for piece in other.pieces()) == 130 - mark.rows
    for place in (3, 40, 41, 99):
        write(table(100, place), 30)
        for mark in marks:
            assert open_table(path, **options).fits(mark) == (mark.rows <= place)
    write(table(60), 30)
    assert not open_table(path, **options).fits(marks[-2])
