"""Which inputs changed, and when: found where something changed, and only there."""

from __future__ import annotations

import json
from functools import partial

import numpy as np
import pytest
from commands import call
from hypothesis import given
from hypothesis import strategies as st

from driftline.app import tables
from driftline.app.runs.row_sample import RowSample
from driftline.detectors import change_points
from driftline.errors import InputError
from driftline.reports import ChangedInput, InputChange, inputs_in_words
from tests.howmany import examples

ROWS = 1200


def steady(random, rows=ROWS):
    """Inputs of many kinds that do not change."""
    return {
        "normal": random.normal(20.0, 5.0, rows).round(2),
        "heavy": (1e6 * random.standard_cauchy(rows)).round(),
        "count": random.poisson(0.3, rows),
        "level": random.integers(0, 7, rows),
        "flag": np.where(random.random(rows) < 0.2, "true", "false"),
        "town": random.choice(["York", "Bath", "Ely", "Hull"], rows, p=[0.6, 0.3, 0.09, 0.01]),
        "hour": np.arange(rows) % 24,
        "same": np.ones(rows),
    }


def learned(folder, columns, *options, name="t"):
    """Run over a table of these columns, and return the summary, the screen and the report."""
    random = np.random.default_rng(1)
    label = random.choice(["u", "v"], len(next(iter(columns.values()))))
    rows = zip(*columns.values(), label, strict=True)
    lines = [",".join([*columns, "y"]), *(",".join(map(str, row)) for row in rows)]
    (folder / f"{name}.csv").write_text("\n".join(lines) + "\n")
    done = call("run", folder / f"{name}.csv", *options, "--no-certify", "--out", folder / name)
    assert done.exit_code == 0, done.output
    summary = json.loads((folder / name / "summary.json").read_text())
    return summary, done.output, (folder / name / "report.html").read_text()


def test_inputs_that_do_not_change_are_told_in_one_of_a_hundred_runs_at_most(tmp_path):
    """More than 3 of 60 runs would come in 1 of 300 cases if the promise only just held."""
    told = 0
    for seed in examples(15, 60):
        columns = steady(np.random.default_rng(seed))
        summary, screen, report = learned(tmp_path, columns, name=f"seed{seed}")
        none = summary["changed_inputs"] == []
        assert ("inputs       none was seen to change" in screen) == none
        assert ("None was seen to change." in report) == none
        told += not none
    assert told <= 3


def test_inputs_that_change_are_told_with_what_and_when(tmp_path):
    random, late = np.random.default_rng(0), np.arange(ROWS) >= 700
    columns = steady(random)
    columns["usage"] = (random.normal(30.0, 6.0, ROWS) + 14.0 * late).round(2)
    columns["load"] = (random.normal(0.0, 1.0, ROWS) * (1.0 + 2.0 * late)).round(3)
    columns["plan"] = np.where(late & (random.random(ROWS) < 0.6), "pro", columns["town"])
    columns["trial"] = np.where(random.random(ROWS) < 0.1 + 0.5 * late, "true", "false")
    columns["when"] = [f"{2000 + i // 12}-{1 + i % 12:02}-01" for i in range(ROWS)]
    summary, screen, report = learned(tmp_path, columns, "--time", "when", "--text", "plan")
    found = {one["column"]: one for one in summary["changed_inputs"]}
    assert {*found} == {"usage", "load", "plan", "trial"}
    for one in found.values():
        (change,) = one["changes"]
        assert abs(change["round"] - 700) < 60 and change["time"].startswith("205")
        assert f"From about round {change['round']} ({change['time']}) on, " in report
    what = {name: one["changes"][0]["what"] for name, one in found.items()}
    assert what["usage"].startswith("values are higher: median from 3")
    assert what["load"].startswith("values spread wider: middle half from 1")
    assert what["plan"].startswith("'pro' is more frequent: from 0% to ")
    assert what["trial"].startswith("'true' is more frequent: from ")
    assert found["usage"]["moved"] > 0.6 and f"usage: from about round {change['round']}" in screen
    assert report.count('class="spark"') == 4
    assert "and 1 more, see the report" in screen


def test_what_changes_often_is_told_by_its_range(tmp_path):
    random = np.random.default_rng(0)
    columns = {"a": (np.arange(ROWS) / 100 + random.normal(0.0, 1.0, ROWS)).round(2)}
    summary, screen, _ = learned(tmp_path, columns)
    (one,) = summary["changed_inputs"]
    assert len(one["changes"]) > 3 and one["moved"] > 0.9
    assert f"a: {len(one['changes'])} changes between about round " in screen
    assert "                 the median is between" in screen


def test_few_rows_and_too_many_columns_are_not_searched(tmp_path):
    few, screen, report = learned(tmp_path, steady(np.random.default_rng(0), 200), name="few")
    assert few["changed_inputs"] is None
    assert "  inputs  " not in screen and "Inputs that changed" not in report
    assert RowSample(2000).most == 0 and RowSample(784).most == 256


def test_pieces_and_a_second_table_change_nothing(tmp_path, monkeypatch):
    """The sample is the same whatever the batches, and goes on with the journal."""
    random, late = np.random.default_rng(0), np.arange(ROWS) >= 600
    columns = {"a": (random.normal(0.0, 1.0, ROWS) + 2.0 * late).round(3)}
    whole, _, _ = learned(tmp_path, columns, name="whole")
    monkeypatch.setattr(tables, "open_table", partial(tables.open_table, rows=70))
    pieces, _, _ = learned(tmp_path, columns, name="pieces")
    assert pieces["changed_inputs"] == whole["changed_inputs"] != []
    learned(tmp_path, {"a": columns["a"][:500]}, name="first")
    model = tmp_path / "first" / "model.driftline"
    rest = tmp_path / "rest.csv"
    rest.write_text(
        "a,y\n" + "".join(f"{x},{'uv'[i % 2]}\n" for i, x in enumerate(columns["a"][500:]))
    )
    assert call("run", rest, "--resume", model).exit_code == 0
    summary = json.loads((tmp_path / "first" / "summary.json").read_text())
    assert summary["changed_inputs"] == whole["changed_inputs"]


def test_documents_and_sparse_rows_are_searched_too(tmp_path):
    random = np.random.default_rng(0)
    values = random.normal(0.0, 1.0, (1500, 2)) + [0.0, 3.0] * (np.arange(1500) >= 900)[:, None]
    grades = random.integers(0, 3, 1500)
    for name, query in (("ranking", True), ("classes", False)):
        lines = [
            f"{g} {f'qid:{i // 3} ' if query else ''}1:{x[0]:.4f} 2:{x[1]:.4f}"
            for i, (x, g) in enumerate(zip(values, grades, strict=True))
        ]
        (tmp_path / f"{name}.svm").write_text("\n".join(lines) + "\n")
        done = call("run", tmp_path / f"{name}.svm", "--features", "3", "--out", tmp_path / name)
        assert done.exit_code == 0, done.output
        summary = json.loads((tmp_path / name / "summary.json").read_text())
        (one,) = summary["changed_inputs"]
        assert one["column"] == "feature 2"
        assert abs(one["changes"][0]["round"] - (300 if query else 900)) < 40


# -- the test


@pytest.mark.parametrize("count", [256, 600, 2048])
@pytest.mark.parametrize("phi", [0.0, 0.5])
def test_changes_are_rarely_found_where_there_are_none(count, phi):
    """Also if neighbours depend on each other; 5 of 100 is much for what is to be 1 of 100."""
    random, found, tries = np.random.default_rng(0), 0, 120
    for _ in range(tries):
        noise = random.standard_normal(count + 100)
        for t in range(1, len(noise)):
            noise[t] += phi * noise[t - 1]
        found += bool(change_points(np.argsort(np.argsort(noise[100:])), level=0.01))
    assert found <= 0.05 * tries


@given(st.integers(0, 1000), st.floats(0.2, 0.8), st.sampled_from([-1.5, 1.5, 8.0]))
def test_a_shift_is_found_where_it_is(seed, share, shift):
    noise, at = np.random.default_rng(seed).standard_normal(800), int(800 * share)
    noise[at:] += shift
    assert min(abs(found - at) for found in change_points(noise)) <= 25


@pytest.mark.parametrize("parts", [2, 3, 4, 5, 6, 8])
def test_levels_that_come_back_are_found(parts):
    places = np.arange(1500)
    values = 3.0 * (places * parts // 1500 % 2) + np.random.default_rng(0).standard_normal(1500)
    found = change_points(values, 1e-4)
    assert np.abs(np.array(found) - 1500 * np.arange(1, parts) / parts).max() < 10


def test_series_without_noise():
    steps = np.arange(600) >= 250
    assert change_points(steps) == [250]
    assert change_points(np.column_stack([np.zeros(600), steps])) == [250]
    assert change_points(np.ones(600)) == [] == change_points(np.zeros((600, 0)))
    assert len(change_points(np.arange(600.0))) > 3


@pytest.mark.parametrize("series", [np.full(300, np.nan), np.zeros((9, 9, 9))])
def test_series_that_are_none_are_refused(series):
    with pytest.raises(InputError, match="expected a finite value of each series"):
        change_points(series)


# -- the sample


@given(st.integers(1, 500), st.lists(st.integers(1, 499)), st.integers(0, 6))
def test_a_sample_does_not_depend_on_batches_nor_on_files(rounds, cuts, power):
    values = np.arange(float(rounds))[:, np.newaxis]
    whole, parts = RowSample(1), RowSample(1)
    whole.most = parts.most = 2**power
    whole.add(rounds, lambda places: values[places])
    ends = [0, *sorted({c for c in cuts if c < rounds}), rounds]
    for a, b in zip(ends, ends[1:], strict=False):
        parts.add(b - a, lambda places, a=a: values[a + places])
        about, arrays = parts.to_saved()
        parts = RowSample(1)
        parts.most = 2**power
        parts.resume(about, **arrays)
    assert parts.to_saved()[0] == whole.to_saved()[0]
    for name, array in whole.to_saved()[1].items():
        assert np.array_equal(parts.to_saved()[1][name], array)
    assert len(whole.values) <= 2**power
    assert np.array_equal(whole.values[:, 0] // whole.span, np.arange(len(whole.values)))


def test_every_row_of_a_block_has_the_same_chance():
    sample, rows = RowSample(1), 2048 * 64
    sample.add(rows, lambda places: places[:, np.newaxis].astype(float))
    assert sample.span == 64 and len(sample.values) == 2048
    counts = np.bincount(sample.values[:, 0].astype(int) % 64, minlength=64)
    assert ((counts - 32.0) ** 2 / 32.0).sum() < 110.0  # chi-squared of 63 degrees: 1 in 5000


@pytest.mark.parametrize(
    "change", [{"span": 0}, {"rounds": 9}, {"values": np.zeros((3, 2))}, {"keys": np.zeros(3)}]
)
def test_samples_that_do_not_fit_are_refused(change):
    sample = RowSample(1)
    sample.add(3, lambda places: places[:, np.newaxis].astype(float))
    about, arrays = sample.to_saved()
    told = {"about": about} | arrays
    for name, value in change.items():
        told |= {name: value} if name in arrays else {"about": about | {name: value}}
    with pytest.raises(InputError, match="cannot have a sample"):
        RowSample(1).resume(told["about"], told["values"], told["keys"])


def test_inputs_in_words():
    change = InputChange(1500, "", "values are lower")
    one = ChangedInput("a", 0.5, [change], "", "", np.zeros(2), None, None, [0.5])
    assert inputs_in_words([]) == ["none was seen to change"]
    lines = inputs_in_words([one] * 5)
    assert lines[0] == "a: from about round 1,500 on, values are lower"
    assert len(lines) == 4 and lines[-1] == "and 2 more, see the report"
