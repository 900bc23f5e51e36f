"""A column of times: when alarms were, in the terminal, the summary and the report."""

from __future__ import annotations

import json
import re
import shlex
from datetime import datetime, timedelta
from functools import partial

import pytest
from commands import call, data, write_csv
from hypothesis import given
from hypothesis import strategies as st

import driftline as dl
from driftline.app import tables
from driftline.app.runs.times import Times
from driftline.errors import InputError
from driftline.reports import TimeAxis

ROWS = 600


def moment(row):
    return f"{datetime(2024, 5, 1, 8) + timedelta(hours=row):%Y-%m-%d %H:%M}"


def dated(path, rows=ROWS, first=0, seed=0, **columns):
    """Write a table with a column of hours, and others."""
    columns = {"when": [moment(first + i) for i in range(rows)], **columns}
    write_csv(path, *data(rows, seed=seed))
    lines = path.read_text().splitlines()
    more = [",".join(row) for row in zip(*columns.values(), strict=True)]
    pairs = zip([",".join(columns), *more], lines, strict=True)
    path.write_text("\n".join(f"{a},{b}" for a, b in pairs) + "\n")
    return path


def summary(folder):
    return json.loads((folder / "summary.json").read_text())


@pytest.fixture(autouse=True)
def in_pieces(monkeypatch):
    monkeypatch.setattr(tables, "open_table", partial(tables.open_table, rows=140))


def test_alarms_have_their_times_in_all_places(tmp_path):
    done = call("run", dated(tmp_path / "t.csv"), "--time", "when", "--out", tmp_path / "out")
    assert done.exit_code == 0, done.output
    told = summary(tmp_path / "out")
    (alarm,) = told["alarms"]
    when = moment(alarm - 1)
    assert told["times"] == {
        "column": "when",
        "first": moment(0),
        "last": moment(ROWS - 1),
        "alarms": [when],
    }
    assert f"losses were seen to rise after round {alarm} ({when})" in done.output
    report = (tmp_path / "out" / "report.html").read_text()
    assert f"Losses were seen to rise after round {alarm} ({when}) (dotted lines)." in report
    below = re.findall(r'class="mid time\d">([^<]*)<title>([^<]*)</title>', report)
    assert below[:3] == [(moment(t)[:10], moment(t)) for t in (0, 100, 200)]
    assert "round, when" in report


def test_a_time_is_no_input_and_changes_nothing_else(tmp_path):
    dated(tmp_path / "t.csv")
    for name, options in (("with", ("--time", "when")), ("without", ("--ignore", "when"))):
        done = call("run", tmp_path / "t.csv", *options, "--out", tmp_path / name)
        assert done.exit_code == 0, done.output
    with_, without = (tmp_path / name / "predictions.csv" for name in ("with", "without"))
    assert with_.read_bytes() == without.read_bytes()
    assert summary(tmp_path / "without")["times"] is None
    model = dl.load(tmp_path / "with" / "model.driftline")
    assert "when" not in model.columns
    row = {"x0": 1.0, "x1": 0.0, "x2": 0.5}
    assert model.predict(row) == model.predict(row | {"when": "whenever"})


def test_ordered_dates_are_suggested_as_the_time(tmp_path):
    later = [moment(i + 5) for i in range(ROWS)]
    path = dated(tmp_path / "t.csv", seen=later, born=[f"{1 + i % 9}.5.1990" for i in range(ROWS)])
    done = call("run", path, "--out", tmp_path / "out")
    assert done.exit_code == 2 and "say --time when to have it in the report" in done.output
    words = shlex.split(done.output.splitlines()[-1])[1:]
    assert words[words.index("--time") + 1] == "when"
    assert words[words.index("--ignore") + 1] == "seen,born"
    assert call(*words).exit_code == 0
    done = call("compare", path, "--with", "fast")
    words = shlex.split(done.output.splitlines()[-1])[1:]
    assert call(*words).exit_code == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--time", "wen"), r"no column 'wen', named by --time: did you mean 'when'\?"),
        (("--time", "when", "--ignore", "when"), "named by --time, and left out by --ignore"),
        (("--time", "label", "--label", "label"), "named by --time, and named by --label"),
    ],
)
def test_a_time_that_cannot_be_is_refused(tmp_path, options, message):
    done = call("run", dated(tmp_path / "t.csv"), *options, "--out", tmp_path / "out")
    assert done.exit_code == 2 and re.search(message, done.output.replace("\n", " "))


def test_a_run_that_goes_on_has_times_of_its_own(tmp_path):
    """Alarms of the report stand where they were, also those of runs before."""
    first = dated(tmp_path / "first.csv")
    call("run", first, "--time", "when", "--out", tmp_path / "out")
    before = summary(tmp_path / "out")
    second = dated(tmp_path / "second.csv", first=ROWS, seed=1)
    model = tmp_path / "out" / "model.driftline"
    done = call("run", second, "--resume", model)
    assert done.exit_code == 0, done.output
    after = summary(tmp_path / "out")
    assert after["times"]["first"] == moment(ROWS)
    assert after["times"]["last"] == moment(2 * ROWS - 1)
    assert after["alarms"] and after["times"]["alarms"] == [
        moment(ROWS + t - 1) for t in after["alarms"]
    ]
    rounds = [*before["alarms"], *(ROWS + t for t in after["alarms"])]
    said = [f"{t:,} ({moment(t - 1)})" for t in rounds]
    assert f"{', '.join(said[:-1])} and {said[-1]}" in (tmp_path / "out/report.html").read_text()
    done = call("run", second, "--resume", model, "--time", "when")
    assert done.exit_code == 2 and "--time cannot be given with --resume" in done.output


def test_a_table_without_the_time_goes_on_all_the_same(tmp_path):
    call("run", dated(tmp_path / "t.csv"), "--time", "when", "--out", tmp_path / "out")
    more = write_csv(tmp_path / "more.csv", *data(seed=1))
    done = call("run", more, "--resume", tmp_path / "out" / "model.driftline")
    assert done.exit_code == 0, done.output
    assert summary(tmp_path / "out")["times"]["first"] == ""
    done = call("predict", tmp_path / "out" / "model.driftline", more)
    assert done.exit_code == 0, done.output


def test_queries_have_the_time_of_their_first_document(tmp_path):
    inputs, labels = data(ROWS)
    rows = [
        f"{moment(i)},q{i // 3},{x[0]},{x[1]},{y}"
        for i, (x, y) in enumerate(zip(inputs, labels, strict=True))
    ]
    (tmp_path / "t.csv").write_text("\n".join(["when,q,a,b,grade", *rows]) + "\n")
    options = ("--query", "q", "--label", "grade", "--time", "when")
    done = call("run", tmp_path / "t.csv", *options, "--out", tmp_path / "out")
    assert done.exit_code == 0, done.output
    assert summary(tmp_path / "out")["times"]["last"] == moment(ROWS - 3)
    report = (tmp_path / "out" / "report.html").read_text()
    assert f"<title>{moment(150)}</title>" in report  # below round 50


@given(st.integers(1, 300), st.lists(st.integers(1, 299)), st.integers(1, 9))
def test_what_is_kept_does_not_depend_on_batches(rounds, cuts, most):
    texts = [f"t{i}" for i in range(rounds)]
    whole, parts = Times(most), Times(most)
    whole.add(texts, [rounds - 1])
    ends = [0, *sorted({c for c in cuts if c < rounds}), rounds]
    for a, b in zip(ends, ends[1:], strict=False):
        parts.add(texts[a:b], [rounds - 1] if b == rounds else [])
    assert parts.to_saved() == whole.to_saved()
    assert len(whole.kept) <= most and whole.kept[0] == "t0"
    assert all(text == f"t{t}" for t, text in whole.kept.items())


@pytest.mark.parametrize("change", [{"span": 0}, {"texts": ["a"]}, {"alarms": [(9, "b")]}])
def test_times_that_do_not_fit_are_refused(change):
    times = Times()
    times.add(["a", "b", "c"])
    assert Times.from_saved(times.to_saved()).kept == times.kept
    with pytest.raises(InputError, match="cannot be those of 3 rounds"):
        Times.from_saved(times.to_saved() | change)


@pytest.mark.parametrize(
    ("texts", "labels"),
    [
        (["2024-05-01 08:00", "2024-05-03 08:00"], ["2024-05-01", "2024-05-03"]),
        (["2024-05-01T08:00:05Z", "2024-05-01T09:30:00Z"], ["08:00:05", "09:30:00"]),
        (
            ["2024-05-01 08:00", "2024-05-01 20:00", "2024-05-02 08:00"],
            ["05-01 08:00", "05-01 20:00", "05-02 08:00"],
        ),
        (["1.5.2024", "a very long text"], ["1.5.2024", "a very long\u2026"]),
    ],
)
def test_labels_are_as_short_as_they_can_be(texts, labels):
    axis = TimeAxis("when", dict(enumerate(texts)))
    assert axis.labels(range(len(texts))) == labels
    assert TimeAxis("when", {5: "x"}).at(4) == ""
