"""The paper's experiment, small, and the command that runs it."""

import csv
import io
import json
import math

import numpy as np
import pytest
from click.testing import CliRunner

import driftline as dl
from driftline.cli import main
from driftline.experiments import EXPERIMENTS, Results, Settings, draw, reproduce, tables
from driftline.experiments.results import Mean, Run

SMALL = Settings(rounds=600, flips=(1, 5), trials=2)


@pytest.fixture(scope="module")
def results():
    return reproduce(SMALL, jobs=1)


def test_every_method_plays_every_stream(results):
    methods = results.methods()
    assert len(results.runs) == len(methods) * 2 * 2 * 2
    assert results.methods("paper") == ["Constant", "AdaGrad", "Polyak"]
    for run in results.runs:
        assert run.curve[-1] == run.mistakes
        assert len(run.curve) == len(results.points) and results.points[-1] == 600


def test_processes_change_nothing(results):
    again = reproduce(SMALL, jobs=2)
    assert again.runs == results.runs


def test_the_papers_constant_is_ln_2_over_k():
    constant = next(m for m in EXPERIMENTS["classification"].methods if m.name == "Constant")
    for task, classes in ((dl.tasks.Binary(), 2), (dl.tasks.Multiclass(3), 3)):
        learner = constant.make(task)
        assert learner.rate.eta == pytest.approx(math.log(2) / classes)
        assert learner.domain.radius == 10.0


def test_mean_and_interval():
    mean = Mean.of([1.0, 2.0, 3.0])
    assert mean.value == 2.0
    assert mean.half == pytest.approx(4.30265 / math.sqrt(3), rel=1e-5)
    assert math.isnan(Mean.of([5.0]).half) and str(Mean.of([5.0])) == "5.0"


def test_files(results, tmp_path):
    table, record = results.write(tmp_path)
    with table.open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(results.runs)
    content = json.loads(record.read_text())
    assert content["settings"]["rounds"] == 600 and "numpy" in content["versions"]
    summary = {(r["data"], r["flips"], r["method"]): r for r in content["summary"]}
    runs = results.select("synthetic", 5, "Polyak")
    assert summary["synthetic", 5, "Polyak"]["expected"] == pytest.approx(
        np.mean([run.expected for run in runs])
    )


def test_figures_are_drawn(results, tmp_path):
    for path in draw(results, tmp_path):
        assert path.read_bytes()[:4] == b"\x89PNG" and path.stat().st_size > 20_000


def test_tables_name_every_method(results):
    from rich.console import Console

    console = Console(width=120, record=True, file=io.StringIO())
    for table in tables(results):
        console.print(table)
    text = console.export_text()
    for method in results.methods():
        assert method in text


def test_the_best_sgd_is_chosen_in_hindsight():
    runs = [
        Run("digits", 1, 0, "sgd", name, mistakes, mistakes, [mistakes])
        for name, mistakes in (("a", 5.0), ("b", 3.0), ("c", 4.0))
    ]
    assert Results({"data": ["digits"], "flips": [1]}, [1], runs).best_sgd("digits", 1) == "b"


@pytest.mark.slow
def test_the_papers_ordering():
    """At the paper's size, three trials: Polyak wins where the world drifts."""
    results = reproduce(Settings(trials=3))

    def loss(data, flips, method):
        return results.mean(data, flips, method, "expected").value

    for data in ("synthetic", "digits"):
        for flips in (10, 100):
            others = loss(data, flips, "Constant"), loss(data, flips, "AdaGrad")
            assert loss(data, flips, "Polyak") < min(others)
        assert loss(data, 1, "Polyak") < 1.1 * loss(data, 1, "AdaGrad")
    worst = min(loss("synthetic", 100, name) for name in ("Constant", "AdaGrad"))
    assert loss("synthetic", 100, "Polyak") < 0.75 * worst
    for method, values in (
        ("Constant", (478, 949, 2755)),
        ("AdaGrad", (450, 653, 2441)),
        ("Polyak", (466, 560, 1342)),
    ):
        found = [loss("synthetic", flips, method) for flips in (1, 10, 100)]
        np.testing.assert_allclose(found, values, rtol=0.05)


# -- the command line


def invoke(*arguments):
    return CliRunner().invoke(main, arguments)


def test_reproduce_prints_tables_and_names_its_files(tmp_path):
    result = invoke(
        *("reproduce", "--data", "synthetic", "--rounds", "300", "--trials", "1"),
        *("--flips", "1", "--jobs", "1", "--out", str(tmp_path)),
    )
    assert result.exit_code == 0, result.output
    assert "Polyak, gap-optimal" in result.output
    for name in ("results.csv", "results.json", "reproduce.png", "recommended.png"):
        assert (tmp_path / name).exists() and name in result.output


def test_version_and_help():
    assert dl.__version__ in invoke("--version").output
    assert "reproduce" in invoke("--help").output
    assert "--trials" in invoke("reproduce", "--help").output


@pytest.mark.parametrize(
    "arguments, words",
    [
        (("--rounds", "50", "--flips", "100"), "no room for 100 flips"),
        (("--data", "cats"), "cats"),
        (("--trials", "0"), "trials"),
        (("--task", "chess"), "chess"),
        (("--task", "ranking", "--data", "digits"), "must be among planted"),
    ],
)
def test_bad_options_are_named(arguments, words, tmp_path):
    result = invoke("reproduce", *arguments, "--out", str(tmp_path))
    assert result.exit_code != 0 and words in result.output


def test_mnist_without_data_says_what_to_set(monkeypatch, tmp_path):
    monkeypatch.delenv("DRIFTLINE_DATA", raising=False)
    result = invoke("reproduce", "--data", "mnist", "--jobs", "1", "--out", str(tmp_path))
    assert result.exit_code == 1 and "DRIFTLINE_DATA" in result.output


@pytest.mark.parametrize(
    "change", [{"flips": ()}, {"data": ("cats",)}, {"trials": -1}, {"task": ""}]
)
def test_bad_settings_are_named(change):
    with pytest.raises(dl.InputError):
        Settings(**change)


@pytest.mark.parametrize("task", [name for name in EXPERIMENTS if name != "classification"])
def test_structured_experiments_run(task, tmp_path):
    result = invoke(
        *("reproduce", "--task", task, "--rounds", "60", "--trials", "2", "--flips", "1"),
        *("--jobs", "1", "--out", str(tmp_path)),
    )
    assert result.exit_code == 0, result.output
    assert "free Polyak, " in result.output
    assert (tmp_path / "reproduce.png").exists()


def test_real_sets_without_a_folder_say_what_to_set(monkeypatch, tmp_path):
    monkeypatch.delenv("DRIFTLINE_DATA", raising=False)
    result = invoke(
        *("reproduce", "--task", "ranking", "--data", "vowel", "--jobs", "1"),
        *("--out", str(tmp_path)),
    )
    assert result.exit_code == 1 and "DRIFTLINE_DATA" in result.output
