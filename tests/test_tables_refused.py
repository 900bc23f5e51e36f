"""All that is wrong with a table is told at once, with a command that gets past it."""

from __future__ import annotations

import shlex

import numpy as np
import pytest
from commands import call

from driftline.app.tables import Options, guess, open_table
from driftline.app.tables.table_error import TableError

ROWS = 240


def people(path, **columns):
    """Write a table of two good columns, a label, and others."""
    random = np.random.default_rng(0)
    age = random.integers(18, 80, ROWS)
    made = {"age": age, "town": ["York", "Bath", "Ely"] * (ROWS // 3), **columns}
    made["will"] = np.where(age > 40, "stay", "go")
    rows = zip(*made.values(), strict=True)
    path.write_text("\n".join([",".join(made), *(",".join(map(str, row)) for row in rows)]) + "\n")
    return path


def second(done):
    """Return the command that a message ends with."""
    assert done.exit_code == 2, done.output
    words = shlex.split(done.output.splitlines()[-1])
    assert words[0] == "driftline"
    return words[1:]


DATES = [f"2024-{1 + i % 12:02}-{1 + i % 28:02}" for i in range(ROWS)]
IDS = [f"id{i}" for i in range(ROWS)]
ZIPS = [10000 + i % 40 if i % 30 else f"W{i % 7}" for i in range(ROWS)]
GAPS = ["" if i % 20 == 3 else i / 7 for i in range(ROWS)]


def test_all_columns_are_told_at_once(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    people(tmp_path / "my people.csv", when=DATES, id=IDS, zip=ZIPS, gap=GAPS)
    done = call("run", "my people.csv", "--label", "will")
    for part in (
        "has 4 things to decide",
        "line 2, column when: '2024-01-01' looks like a date",
        "column 'id' has 240 different texts",
        "line 2, column zip: saw 'W0', but 232 of 240 values are numbers",
        "line 5, column gap: the value is missing",
    ):
        assert part in done.output
    words = second(done)
    assert words == shlex.split(
        "run 'my people.csv' --label will --text zip --missing mean --ignore when,id --learner fast"
    )
    assert call(*words).exit_code == 0


def test_what_would_come_up_later_is_told_as_well(tmp_path):
    text = people(tmp_path / "t.csv", when=DATES, gap=GAPS).read_text()
    (tmp_path / "t.csv").write_text("# by hand\n" + text)
    done = call("run", tmp_path / "t.csv", "--out", tmp_path / "out")
    for part in (
        "has 3 things to decide",
        "line 1: '# by hand' looks like a comment",
        "gap",
        "when",
    ):
        assert part in done.output
    assert call(*second(done)).exit_code == 0


def test_a_suggestion_that_would_be_refused_is_no_command(tmp_path):
    (tmp_path / "t.csv").write_text("5.1,3.5,u\n4.9,3.0,v\n")
    done = call("run", tmp_path / "t.csv", "--label", "will", "--out", tmp_path / "out")
    assert done.exit_code == 2 and "--no-header" in done.output
    assert "has no column 'will'" in done.output and "driftline run" not in done.output


@pytest.mark.parametrize(
    ("line", "option"), [("1,,u", "--missing"), ("1,2,", "--unlabelled"), ("# so far", "--comment")]
)
def test_what_comes_up_after_the_first_piece_says_how_to_begin_again(tmp_path, line, option):
    rows = [f"{i % 7},{i % 5},{'uv'[i % 2]}" for i in range(4200)]
    rows[4150] = line
    (tmp_path / "t.csv").write_text("\n".join(["a,b,y", *rows]) + "\n")
    done = call("run", tmp_path / "t.csv", "--out", tmp_path / "out")
    assert "What was learned from 4,096 rows is saved" in done.output
    words = second(done)
    assert option in words and words[-1] == "--fresh"
    assert call(*words).exit_code == 0


def test_no_command_is_suggested_that_a_model_would_refuse(tmp_path):
    path = people(tmp_path / "t.csv", b=range(ROWS))
    assert call("run", path, "--out", tmp_path / "out").exit_code == 0
    other = people(tmp_path / "other.csv", b=GAPS)
    done = call("run", other, "--resume", tmp_path / "out" / "model.driftline")
    assert done.exit_code == 2 and "line 5, column b: the value is missing" in done.output
    assert "what is suggested" not in done.output


def test_columns_that_were_left_out_stay_out(tmp_path):
    path = people(tmp_path / "t.csv", when=DATES, id=IDS)
    words = second(call("run", path, "--ignore", "when", "--out", tmp_path / "out"))
    assert words[words.index("--ignore") + 1] == "when,id"
    assert call(*words).exit_code == 0


def test_a_name_with_a_comma_can_be_left_out(tmp_path):
    path = people(tmp_path / "t.csv", **{'"when, exactly"': DATES})
    words = second(call("run", path, "--out", tmp_path / "out"))
    assert call(*words).exit_code == 0


def test_one_problem_is_told_in_its_own_line(tmp_path):
    table = open_table(people(tmp_path / "t.csv", when=DATES))
    with pytest.raises(TableError, match=r"t\.csv, line 2, column when: ") as error:
        guess(table, next(table.pieces()), Options())
    assert error.value.changes == {"ignore": ["when"]}


def test_a_decimal_comma_is_suggested_if_no_column_has_a_point(tmp_path):
    commas = [f'"{i},5"' for i in range(ROWS)]
    words = second(call("run", people(tmp_path / "t.csv", a=commas), "--out", tmp_path / "1"))
    assert words[words.index("--decimal") + 1] == "," and call(*words).exit_code == 0
    path = people(tmp_path / "t.csv", a=commas, b=[i / 2 for i in range(ROWS)])
    words = second(call("run", path, "--out", tmp_path / "2"))
    assert words[words.index("--ignore") + 1] == "a" and call(*words).exit_code == 0


def test_mixed_columns_of_too_many_texts_are_left_out(tmp_path):
    mixed = ["x" if i == 9 else i for i in range(ROWS)]
    words = second(call("run", people(tmp_path / "t.csv", a=mixed), "--out", tmp_path / "out"))
    assert words[words.index("--ignore") + 1] == "a" and call(*words).exit_code == 0


def test_nothing_is_suggested_that_leaves_no_inputs(tmp_path):
    (tmp_path / "t.csv").write_text("a,y\n2024-01-01,u\n2024-01-02,v\n")
    done = call("run", tmp_path / "t.csv", "--out", tmp_path / "out")
    assert done.exit_code == 2 and "looks like a date" in done.output
    assert "driftline run" not in done.output


def test_labels_that_are_missing_are_among_it(tmp_path):
    path = people(tmp_path / "t.csv", when=DATES)
    lines = path.read_text().splitlines()
    lines[40] = lines[40].rsplit(",", 1)[0] + ","
    path.write_text("\n".join(lines) + "\n")
    words = second(call("run", path, "--out", tmp_path / "out"))
    assert words[words.index("--unlabelled") + 1] == "skip" and call(*words).exit_code == 0


def test_infinite_values_and_columns_without_values(tmp_path):
    path = people(tmp_path / "t.csv", a=["inf", *range(ROWS - 1)], b=[""] * ROWS)
    words = second(call("run", path, "--out", tmp_path / "out"))
    assert "mean" in words and words[words.index("--ignore") + 1] == "b"
    assert call(*words).exit_code == 0


@pytest.mark.parametrize(
    ("text", "option"),
    [
        ("5,5,2,u\n1,2,3,v\n", "--no-header"),
        ("5.1,3.5,1.4,u\n4.9,3.0,1.3,v\n", "--no-header"),
        ("5,3,1\n4,2,0\n", "--no-header"),
        ("# made by hand\na,b,y\n1,2,u\n2,3,v\n", "--comment"),
        ("# made\n# by hand\n\na,b,y\n1,2,u\n# here\n2,3,v\n", "--comment"),
        ('a,b,y\n1,"2",u\n# one more\n2,3,v\n', "--comment"),
        ("a b y\n1 2 u\n2 3 v\n", "--delimiter"),
        ("a   b  y\n1   2  u\n 2  13 v\n", "--delimiter"),
    ],
)
def test_how_a_file_is_read_is_suggested(tmp_path, text, option):
    path = tmp_path / "t.csv"
    path.write_text(text)
    words = second(call("run", path, "--out", tmp_path / "out"))
    assert option in words
    assert call(*words).exit_code == 0


@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_comments_and_blanks_in_pieces_of_any_size(tmp_path, size):
    path = tmp_path / "t.txt"
    path.write_text("# one\na  b   y\n1 2\tu\n\n # two\n 3   4 v\n#three\n5 6 u\n")
    table = open_table(path, comment="#", delimiter="space", rows=size)
    pieces = list(table.pieces())
    rows = [row for p in pieces for row in zip(*(p.texts(j) for j in range(3)), strict=True)]
    assert table.columns == ["a", "b", "y"]
    assert rows == [("1", "2", "u"), ("3", "4", "v"), ("5", "6", "u")]
    assert [p.line(i) for p in pieces for i in range(len(p))] == [3, 6, 8]


def test_a_header_that_begins_with_a_hash_is_one(tmp_path):
    (tmp_path / "t.csv").write_text("#id,b,y\n1,2,u\n2,3,v\n")
    table = open_table(tmp_path / "t.csv")
    assert table.columns == ["#id", "b", "y"] and sum(map(len, table.pieces())) == 2


def test_amounts_are_numbers(tmp_path):
    (tmp_path / "t.csv").write_text('a,b,y\n"$1,200.50",12%,u\n-$3,5 %,v\n,0.5%,u\n7,1%,v\n')
    table = open_table(tmp_path / "t.csv")
    piece = next(table.pieces())
    encoder, notes = guess(table, piece, Options(missing="zero"))
    assert [column.kind for column in encoder.columns.columns] == ["amount", "amount"]
    assert any("amounts such as '$1,200.50'" in note for note in notes)
    batch = type(encoder).from_config(encoder.config()).bind(table).batch(piece)
    assert batch.inputs.tolist() == [[1200.5, 12], [-3, 5], [0, 0.5], [7, 1]]
