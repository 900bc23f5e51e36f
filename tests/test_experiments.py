"""The paper's experiment, small, and the command that runs it."""

import csv
import io
import itertools
import json
import math

import numpy as np
import pytest
from click.testing import CliRunner
from howmany import chosen, number

import driftline as dl
from driftline import paper
from driftline.app.cli import main
from driftline.paper import (
    EXPERIMENTS,
    SWEEPS,
    Results,
    Settings,
    SweepSettings,
    draw,
    reproduce,
    sweep,
    tables,
)
from driftline.paper.least_cost import LeastCost
from driftline.paper.orders import RandomOrder
from driftline.paper.ranking_losses import PointwiseSquares, RankNet
from driftline.paper.results import Mean, Run

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


@pytest.mark.slow
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
    assert Results({"data": ["digits"], "flips": [1]}, [1], runs).best("sgd", "digits", 1) == "b"


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


STRUCTURED = [name for name in EXPERIMENTS if name != "classification"]


@pytest.mark.parametrize("task", STRUCTURED)
def test_structured_experiments_run(task, tmp_path, monkeypatch):
    drawn = task in chosen(("ranking", "ndcg"), STRUCTURED)
    if not drawn:
        monkeypatch.setattr(paper, "draw", lambda results, folder: [])
    rounds, trials = str(number(20, 60)), str(number(1, 2))
    result = invoke(
        *("reproduce", "--task", task, "--rounds", rounds, "--trials", trials, "--flips", "1"),
        *("--jobs", "1", "--out", str(tmp_path)),
    )
    assert result.exit_code == 0, result.output
    assert "free Polyak" in result.output
    assert (tmp_path / "reproduce.png").exists() == drawn


def test_real_sets_without_a_folder_say_what_to_set(monkeypatch, tmp_path):
    monkeypatch.delenv("DRIFTLINE_DATA", raising=False)
    result = invoke(
        *("reproduce", "--task", "ranking", "--data", "vowel", "--jobs", "1"),
        *("--out", str(tmp_path)),
    )
    assert result.exit_code == 1 and "DRIFTLINE_DATA" in result.output


def test_real_queries_have_a_floor_of_their_own():
    plan = EXPERIMENTS["ndcg"]
    for data, longest in (("planted", 15), ("ltr", 27)):
        constant = plan.methods_for(data)[0].make(dl.tasks.NDCG(4))
        assert constant.rate.input_norm == pytest.approx(math.sqrt(2 * longest))
    assert [m.name for m in plan.methods_for("ltr")] == [m.name for m in plan.methods]


# -- baselines

NDCG, TOP = dl.tasks.NDCG(3), dl.tasks.PrecisionAtK(2)


@pytest.mark.parametrize("kind", [PointwiseSquares, RankNet])
@pytest.mark.parametrize("size", [1, 2, 6])
def test_gradients_of_baselines(kind, size):
    generator = np.random.default_rng(size)
    loss, h = kind(NDCG), 1e-5
    for _ in range(20):
        theta, label = 2.0 * generator.standard_normal(size), generator.integers(0, 4, size)
        value, grad = loss.value_and_grad(theta, label)
        steps = h * np.eye(size)
        rises = [loss.value_and_grad(theta + e, label)[0] for e in steps]
        falls = [loss.value_and_grad(theta - e, label)[0] for e in steps]
        np.testing.assert_allclose((np.array(rises) - falls) / (2 * h), grad, atol=1e-8)
        assert grad @ grad <= 2.0 * loss.self_bound * value + 1e-12


def test_pairs_by_hand():
    theta, label = np.array([0.3, -1.0, 2.0, 0.5]), np.array([2, 0, 2, 1])
    wanted = [
        math.log1p(math.exp(theta[j] - theta[i]))
        for i, j in itertools.permutations(range(4), 2)
        if label[i] > label[j]
    ]
    value, _ = RankNet(NDCG).value_and_grad(theta, label)
    assert value == pytest.approx(np.mean(wanted))
    value, grad = RankNet(NDCG).value_and_grad(theta, [1, 1, 1, 1])
    assert value == 0.0 and not grad.any()


@pytest.mark.parametrize("task, label", [(NDCG, [3, 0, 1, 0]), (TOP, [1, 0, 0, 1])])
def test_any_order_loses_the_mean_of_all(task, label):
    decoder, theta = RandomOrder(RankNet(task)), np.array([3.0, 1.0, 0.0, 2.0])
    orders = [np.array(order) for order in itertools.permutations(range(4))]
    mean = np.mean([task.loss(task.best_prediction(order), label) for order in orders])
    assert decoder.risk(theta, label) == pytest.approx(mean)
    uniforms = np.random.default_rng(0).random((3000, 1))
    drawn = [task.loss(decoder.draw(theta, u), label) for u in uniforms]
    assert np.mean(drawn) == pytest.approx(mean, abs=0.02)
    assert len({tuple(decoder.draw(theta, u)) for u in uniforms}) == (24 if task is NDCG else 6)


@pytest.mark.parametrize("task", [NDCG, TOP])
def test_sorted_documents_of_queries_of_any_size(task):
    decoder = dl.decoders.Argmax(RankNet(task))
    for size in (1, 2, 5):
        theta = np.round(np.random.default_rng(size).standard_normal(size), 1)
        for label in itertools.product([0, 1], repeat=size):
            prediction = decoder.draw(theta, np.array([0.5]))
            assert decoder.risk(theta, label) == pytest.approx(task.loss(prediction, label))


def test_least_cost_looks_at_costs_and_the_most_probable_does_not():
    task = dl.tasks.CostSensitive([[0, 1, 0.3], [5, 0, 0.3]])
    loss = dl.losses.FenchelYoung(task, dl.regularizers.Entropy())
    for theta in (np.array([2.0, 0.0]), np.array([6.0, 0.0]), np.array([0.0, 3.0])):
        p = np.exp(theta) / np.exp(theta).sum()
        best = int(np.argmin(p @ [[0, 1, 0.3], [5, 0, 0.3]]))
        assert LeastCost(loss).draw(theta) == best
        assert LeastCost(loss, sure=True).draw(theta) == np.argmax(theta)
        assert LeastCost(loss).risk(theta, 1) == [5, 0, 0.3][best]


# -- sweeps


@pytest.mark.parametrize("task", SWEEPS)
def test_sweeps_stay_below_their_bound(task):
    settings = SweepSettings(task, rounds=60, trials=2, scales=(0.1, 1.0))
    points = sweep(settings)
    assert len(points) == 2 * len(SWEEPS[task][1])
    for point in points:
        assert 0.0 < point.actual <= point.bound
        assert 0.0 < point.comparator <= point.bound
        assert 0.0 < point.guess <= 60.0
    assert points[0].comparator <= points[1].comparator


def test_the_sweep_command_prints_a_table_and_names_its_files(tmp_path):
    result = invoke(
        *("scales", "--task", "multiclass", "--rounds", "50", "--trials", "1"),
        *("--scale", "0.1", "--scale", "1", "--out", str(tmp_path)),
    )
    assert result.exit_code == 0, result.output
    assert "Entropy" in result.output and "worst-case bound" in result.output
    with (tmp_path / "multiclass.csv").open() as file:
        assert len(list(csv.DictReader(file))) == 4
    assert (tmp_path / "multiclass.png").read_bytes()[:4] == b"\x89PNG"
    assert "multiclass.png" in result.output


@pytest.mark.parametrize(
    "arguments, words",
    [
        (("--task", "chess"), "chess"),
        (("--scale", "0"), "scale"),
        (("--rounds", "5", "--flips", "5"), "no room for 5 flips"),
    ],
)
def test_bad_options_of_a_sweep_are_named(arguments, words, tmp_path):
    result = invoke("scales", *arguments, "--out", str(tmp_path))
    assert result.exit_code != 0 and words in result.output


@pytest.mark.parametrize("change", [{"task": ""}, {"trials": 0}, {"scales": ()}])
def test_bad_settings_of_a_sweep_are_named(change):
    with pytest.raises(dl.InputError):
        SweepSettings(**change)
