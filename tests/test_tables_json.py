"""JSON lines are read as CSV is; what is nested or new is named."""

from __future__ import annotations

import json

import numpy as np
import pytest
from commands import call, data, predictions, write_csv
from test_tables import read, refused, rows_of, write

from driftline.app.tables import Options, open_table


@pytest.mark.parametrize("size", [1, 3, 100])
def test_json_lines_give_what_csv_does(tmp_path, size):
    rows = [
        {"n": 1.5, "t": "red", "f": True, "y": "u"},
        {"n": -2, "t": "blue", "f": False, "y": "v"},
        {"n": 1e-3, "t": "a,b", "f": True, "y": "u"},
    ]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    one = read(write(tmp_path / "t.jsonl", text), rows=size)
    lines = 'n,t,f,y\n1.5,red,true,u\n-2,blue,false,v\n0.001,"a,b",true,u\n'
    two = read(write(tmp_path / "t.csv", lines), rows=size)
    assert np.array_equal(one[0], two[0]) and np.array_equal(one[1], two[1])
    assert one[2].config() == two[2].config()


def test_keys_that_are_not_there_are_missing_values(tmp_path):
    lines = '{"a": 1, "y": "u"}\n\n{"y": "v", "b": 2}\n{"a": null, "b": NaN, "y": "u"}\n'
    path = write(tmp_path / "t.jsonl", lines)
    table = open_table(path)
    assert table.columns == ["a", "y", "b"]
    assert rows_of(table) == [["1", "u", ""], ["", "v", "2"], ["", "u", ""]]
    assert "line 1, column b: the value is missing" in refused(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("[1, 2]\n", "is one JSON document"),
        ("3\n", "line 1: expected lines such as"),
        ('{"a": 1, "y": 0}\n{"a": 1\n', "line 2: expected lines such as"),
        ('{"a": 1, "y": 0}\n{"a": [1], "y": 1}\n', "line 2: column a: expected a number, a text"),
        ('{"a": {"b": 1}, "y": 0}\n', "leave it out by --ignore a"),
    ],
)
def test_what_does_not_fit_is_named(tmp_path, text, message):
    assert message in refused(write(tmp_path / "t.jsonl", text))


def test_a_key_that_comes_later_is_named(tmp_path):
    path = write(tmp_path / "t.jsonl", '{"a": 1, "y": 0}\n{"a": 1, "y": 1}\n{"new": 1, "y": 1}\n')
    assert "line 3: the key 'new' was in none of the first 2 lines" in refused(path, rows=2)


def test_nested_values_can_be_left_out(tmp_path):
    path = write(tmp_path / "t.jsonl", '{"a": 1, "b": [1], "y": 0}\n{"a": 2, "b": {}, "y": 1}\n')
    assert read(path, Options(ignore=["b"]), ignore=["b"])[0].tolist() == [[1], [2]]


def test_a_run_over_json_lines_is_that_over_csv(tmp_path):
    inputs, labels = data(100)
    path = write_csv(tmp_path / "t.csv", inputs, labels)
    rows = zip(inputs.tolist(), labels, strict=True)
    lines = [json.dumps({"x0": a, "x1": b, "x2": c, "label": "uv"[y]}) for (a, b, c), y in rows]
    other = write(tmp_path / "t.jsonl", "\n".join(lines) + "\n")
    for file, out in ((path, "one"), (other, "two")):
        assert call("run", file, "--out", tmp_path / out).exit_code == 0
    assert predictions(tmp_path / "one") == predictions(tmp_path / "two")
    lines[4:6] = ["{", '{"x0": [1], "x1": 0, "x2": 0}']
    write(other, "\n".join(lines) + "\n")
    done = call("predict", tmp_path / "one" / "model.driftline", other)
    assert done.exit_code == 3 and "2 of 100 rows could not be predicted" in done.stderr
