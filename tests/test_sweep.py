"""Sweeps: the numbers of a plain loop, whatever carries them, and a table that survives a kill."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import joblib
import numpy as np
import pytest
from commands import call

import driftline as dl
from driftline.committee import named
from driftline.sweeps import SweepTable, grid
from driftline.sweeps.cells import Cell, units_of
from driftline.sweeps.shared import play_shared, sharing_of

MULTI, BINARY = dl.tasks.Multiclass(3), dl.tasks.Binary()
NUMBERS = ("rounds", "target_loss", "risk", "surrogate_loss")


def logistic(diameter: float = 20.0, **more) -> dl.OGD:
    return dl.OGD(dl.losses.Logistic(MULTI), domain=dl.domains.Ball(diameter), **more)


def certain(task, rate=None, **more) -> dl.OGD:
    kind = dl.losses.SmoothHinge if task.zero_one else dl.losses.Logistic
    loss = dl.losses.Scaled(kind(task), 2.0)
    return dl.OGD(loss, dl.decoders.Argmax(loss), rate, **more)


def flips(seed: int) -> dl.streams.LabelFlips:
    return dl.streams.LabelFlips(rounds=300, flips=1, seed=seed)


def rows(task, rounds: int = 300, features: int = 5, seed: int = 0):
    generator = np.random.default_rng(seed)
    X = generator.standard_normal((rounds, features)) / 2
    if isinstance(task, dl.tasks.Binary):
        return X, np.where(X[:, 0] > 0, 1, -1)
    if isinstance(task, dl.tasks.Multilabel):
        return X, (X[:, : task.dim] > 0).astype(int)
    return X, np.argmax(X[:, : task.dim], axis=1)


def totals(trace) -> tuple[int, float, float, float]:
    sums = (trace.target_loss.sum(), trace.risk.sum(), trace.loss.sum())
    return len(trace), *(float(total) for total in sums)


def numbers(table: SweepTable) -> list[tuple]:
    return [tuple(getattr(row, name) for name in NUMBERS) for row in table]


LEARNERS = {
    "narrow": lambda: logistic(2.0),
    "wide": lambda: logistic(50.0),
    "certain": lambda: certain(MULTI),
    "adagrad": lambda: certain(MULTI, dl.rates.AdaGrad()),
    "intercept": lambda: logistic(intercept=True),
    "single": lambda: logistic(dtype=np.float32),
    "restart": lambda: logistic(restart=dl.detectors.Cusum()),
}


def made() -> dict[str, dl.Learner]:
    return {name: make() for name, make in LEARNERS.items()}


def loop(streams, seeds) -> list[tuple]:
    return [
        totals(make().run(*stream, seed=seed))
        for make in LEARNERS.values()
        for stream in streams
        for seed in seeds
    ]


STREAMS = {"a": rows(MULTI), "b": rows(MULTI, seed=1)}


@pytest.mark.parametrize("shared", [True, False])
def test_a_sweep_has_the_numbers_of_a_loop(shared):
    table = dl.sweep(made(), STREAMS, [0, 7], shared=shared)
    assert numbers(table) == loop(STREAMS.values(), [0, 7])
    assert [row.learner for row in table[:4]] == ["narrow"] * 4
    assert [(row.stream, row.seed) for row in table[:4]] == [("a", 0), ("a", 7), ("b", 0), ("b", 7)]


@pytest.mark.parametrize("backend", ["sequential", "threading", "loky"])
def test_numbers_do_not_depend_on_the_backend(backend):
    with joblib.parallel_config(backend, n_jobs=2):
        table = dl.sweep(made(), STREAMS, [0, 7])
    assert numbers(table) == loop(STREAMS.values(), [0, 7])


def test_dask_carries_a_sweep():
    distributed = pytest.importorskip("distributed")
    cluster = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with distributed.Client(**cluster), joblib.parallel_config("dask"):
        table = dl.sweep(made(), STREAMS, [0, 7])
    assert numbers(table) == loop(STREAMS.values(), [0, 7])


TASKS = [BINARY, MULTI, dl.tasks.Multiclass(2), dl.tasks.Multiclass(7), dl.tasks.Multilabel(4)]
TASKS += [dl.tasks.Multiclass(40)]


def settings_of(task) -> list[dl.OGD]:
    made = [dl.OGD(dl.losses.Logistic(task), domain=dl.domains.Ball(d)) for d in (1.0, 30.0)]
    made += [dl.OGD(dl.losses.Logistic(task), rate=dl.rates.Constant(0.05))]
    other = dl.losses.SmoothHinge if task.zero_one else dl.losses.Logistic
    made += [dl.OGD(other(task), dtype=d) for d in (np.float32, np.float64)]
    made += [dl.OGD(dl.losses.Logistic(task), intercept=True)]
    if task.zero_one:
        loss = dl.losses.Logistic(task)
        made += [certain(task), dl.OGD(loss, dl.decoders.StepOptimal(loss), dl.rates.Decaying())]
    return made


@pytest.mark.parametrize("task", TASKS, ids=repr)
def test_shared_passes_have_the_bits_of_single_runs(task):
    X, y = rows(task, rounds=5000, features=9)  # beyond the round at which norms are refreshed
    settings = settings_of(task)
    before = [learner.describe() for learner in settings]
    groups: dict = {}
    for learner in settings:
        groups.setdefault(sharing_of(learner), []).append(learner)
    assert None not in groups and max(map(len, groups.values())) > 1
    for group in groups.values():
        shared = play_shared(group, X, y, seed=3)
        alone = [totals(learner.copy().run(X, y, seed=3)) for learner in group]
        assert [tuple(one) for one in shared] == alone
    assert [learner.describe() for learner in settings] == before
    assert all(learner.rounds == 0 and learner.features is None for learner in settings)


def kinds_of(task, dtype, intercept) -> dict[str, list[dl.OGD]]:
    """Settings of parts of many kinds; some of them end the scale of weights."""
    more = {"dtype": dtype, "intercept": intercept}
    logistic, ball = dl.losses.Logistic(task), dl.domains.Ball
    made = {"logistic": [dl.OGD(logistic, domain=ball(d), **more) for d in DIAMETERS]}
    steps = [dl.rates.Constant(step) for step in (0.01, 1.0, 100.0, 1e6)]
    made["steps"] = [dl.OGD(logistic, None, step, ball(1e-3), **more) for step in steps]
    made["argmax"] = [certain(task, domain=ball(d), **more) for d in DIAMETERS]
    if not isinstance(task, dl.tasks.Multilabel):
        step, mix = dl.decoders.StepOptimal(logistic), dl.decoders.UniformMix(logistic)
        made["step"] = [dl.OGD(logistic, step, domain=ball(d), **more) for d in DIAMETERS[:3]]
        made["mix"] = [dl.OGD(logistic, mix, domain=ball(d), **more) for d in DIAMETERS[:3]]
        cut = dl.losses.Hinge(task, kappa=0.5)
        given = (cut, dl.decoders.Argmax(cut), dl.rates.Constant(0.1))
        made["cut"] = [dl.OGD(*given, ball(d), **more) for d in DIAMETERS[:3]]
        hinge = dl.losses.SmoothHinge(task)
        made["hinge"] = [dl.OGD(hinge, domain=ball(d), **more) for d in DIAMETERS]
        rate = dl.rates.AdaGrad()
        made["adagrad"] = [certain(task, rate, domain=ball(d), **more) for d in DIAMETERS[:3]]
        free = dl.rates.Polyak(monotone=False, cap=5.0)
        made["free"] = [dl.OGD(logistic, None, free, ball(d), **more) for d in DIAMETERS[:3]]
    return made


DIAMETERS = np.geomspace(0.5, 50.0, 11).tolist()
MANY_TASKS = [BINARY, dl.tasks.Multiclass(2), MULTI, dl.tasks.Multiclass(8)]
MANY_TASKS += [dl.tasks.Multiclass(19), dl.tasks.Multilabel(5)]


@pytest.mark.parametrize("features, intercept", [(3, True), (16, False), (21, True)])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("task", MANY_TASKS, ids=repr)
def test_settings_of_all_kinds_have_the_bits_of_single_runs(task, dtype, intercept, features):
    generator = np.random.default_rng(features)
    X = generator.standard_normal((4500, features)) / np.sqrt(features)
    X[7] = X[8] = 0.0
    scores = X @ generator.standard_normal((features, task.dim)) + 0.2
    y = np.argmax(scores, axis=1) if task.dim > 1 else np.where(scores[:, 0] > 0, 1, -1)
    if isinstance(task, dl.tasks.Multilabel):
        y = (scores > 0).astype(int)
    X = X.astype(dtype)
    for name, settings in kinds_of(task, dtype, intercept).items():
        shared = [tuple(one) for one in play_shared(settings, X, y, seed=3)]
        alone = [totals(learner.copy().run(X, y, seed=3, audit=False)) for learner in settings]
        assert shared == alone, name


@pytest.mark.parametrize("jobs, sizes", [(1, [32, 18]), (2, [25, 25]), (7, [8] * 6 + [2])])
def test_cells_are_put_together_by_passes(jobs, sizes):
    cells = [(Cell(k, str(k), "a", 0), logistic(1.0 + k), STREAMS["a"]) for k in range(50)]
    units = list(units_of(cells, jobs, shared=True))
    assert [len(unit.cells) for unit in units] == sizes
    assert [cell.place for unit in units for cell in unit.cells] == list(range(50))


def test_parts_of_other_kinds_share_passes():
    X, y = STREAMS["a"]
    loss = dl.losses.Logistic(MULTI)
    settings = [logistic(d) for d in DIAMETERS]
    settings[3] = dl.OGD(loss, dl.decoders.StepOptimal(loss), dl.rates.Decaying())
    settings[6] = certain(MULTI)
    shared = [tuple(one) for one in play_shared(settings, X, y, seed=1)]
    assert shared == [totals(learner.copy().run(X, y, seed=1)) for learner in settings]


def test_a_setting_that_refuses_a_round_does_not_stop_the_others():
    X, y = STREAMS["a"]
    steep = np.array(X)
    steep[100] *= 1e120
    steps = [0.1, 1e40, 1.0, 1e60, 10.0]
    loss = dl.losses.Logistic(MULTI)
    settings = [dl.OGD(loss, rate=dl.rates.Constant(step)) for step in steps]
    shared = play_shared(settings, steep, y, seed=0)
    assert [one is None for one in shared] == [False, True, False, True, False]
    for k in (0, 2, 4):
        assert tuple(shared[k]) == totals(settings[k].copy().run(steep, y, seed=0))
    far = np.array(X)
    far[50] *= 1e150
    assert play_shared(settings, far, y, seed=0) == [None] * 5


@pytest.mark.parametrize("task", [dl.tasks.Multiclass(2), MULTI, dl.tasks.Multilabel(3)], ids=repr)
@pytest.mark.parametrize("scaling", [True, False])
def test_committees_of_one_share_scaled_rows(task, scaling):
    X, y = rows(task)
    X = X * [1.0, 50.0, 1e-3, 7.0, 1e4] + 3.0
    rates = ("polyak", "free", "constant", "adagrad", "decaying")
    learners = {
        f"{name} {diameter}": named(name, task, diameter=diameter, scaling=scaling)
        for name in rates
        for diameter in (2.0, 20.0, 200.0)
    }
    assert len({sharing_of(learner) for learner in learners.values()} - {None}) == 1
    others = {name: named(name, task, scaling=scaling) for name in ("fast", "paper", "restart")}
    assert {sharing_of(learner) for learner in others.values()} == {None}
    for row in dl.sweep(learners | others, {"all": (X, y)}, seeds=[3]):
        trace = (learners | others)[row.learner].copy().run(X, y, seed=3)
        assert (row.target_loss, row.risk) == (trace.target_loss.sum(), trace.risk.sum())
        assert math.isnan(row.surrogate_loss)


def test_committees_that_have_learned_share_nothing():
    learner = named("polyak", MULTI)
    assert sharing_of(learner) is not None
    learner.run(*rows(MULTI, 20))
    assert sharing_of(learner) is None
    asked = named("polyak", MULTI)
    asked.ask(rows(MULTI)[0][0])
    assert sharing_of(asked) is None


def test_first_weights_are_shared_too():
    X, y = STREAMS["a"]
    learner = dl.OGD(dl.losses.Logistic(MULTI), initial=np.full((3, 5), 0.1))
    (shared,) = play_shared([learner], X, y, seed=0)
    assert tuple(shared) == totals(learner.copy().run(X, y, seed=0))
    assert (learner.weights == 0.1).all()


def test_what_one_learner_refuses_does_not_lose_the_others():
    far = np.array(STREAMS["a"][0])
    far[17, 2] = np.nan
    learners = {"good": logistic(), "binary": dl.OGD(dl.losses.Logistic(BINARY))}
    table = dl.sweep(learners, {"a": STREAMS["a"], "far": (far, STREAMS["a"][1])})
    errors = {(row.learner, row.stream): row.error for row in table}
    assert errors["good", "a"] == ""
    assert "row 17 has nan" in errors["good", "far"]
    assert errors["binary", "a"] and errors["binary", "far"]
    assert np.isnan(table.risk[1:]).all() and table[0].rounds == 300
    assert table.best().stream == "a"
    assert "row 17" in str(table)


def test_what_the_loop_refuses_is_an_error_of_its_row():
    X, y = STREAMS["a"]
    steep = np.array(X)
    steep[100] *= 1e120
    wild = dl.OGD(dl.losses.Logistic(MULTI), rate=dl.rates.Constant(1e40))
    table = dl.sweep({"wild": wild, "good": logistic()}, {"steep": (steep, y)})
    assert "row 100" in table[0].error and table[0].rounds == 0
    assert numbers(table)[1] == totals(logistic().run(steep, y, seed=0))


def test_streams_may_be_made_from_seeds():
    loss = dl.losses.Logistic(flips(0).task)
    members = [dl.OGD(loss, domain=dl.domains.Ball(d)) for d in (1.0, 20.0)]
    table = dl.sweep(dl.Committee(members), {"flips": flips}, seeds=[3, 4])
    for row, seed in zip(table, (3, 4), strict=True):
        trace = dl.Committee([one.copy() for one in members]).run(flips(seed), seed=seed)
        assert (row.target_loss, row.risk) == (trace.target_loss.sum(), trace.risk.sum())
        assert np.isnan(row.surrogate_loss)


def test_sample_weights_of_streams_count():
    stream = flips(0)
    stream.sample_weight = np.linspace(0.5, 2.0, 300)
    learner = dl.OGD(dl.losses.Logistic(stream.task))
    table = dl.sweep({"a": learner, "b": learner.copy()}, stream)
    assert numbers(table)[0] == numbers(table)[1] == totals(learner.copy().run(stream, seed=0))


# -- files


def timeless(table: SweepTable) -> list:
    return [row._replace(seconds=0.0) for row in table]


def test_a_sweep_goes_on_where_it_stopped(tmp_path, monkeypatch):
    path = tmp_path / "sweep.jsonl"
    whole = dl.sweep(made(), STREAMS, [0, 7], path=path)
    lines = path.read_bytes().splitlines(keepends=True)
    assert len(lines) == 1 + len(whole)
    for kept in (0, 1, 5, len(lines) - 1):
        path.write_bytes(b"".join(lines[:kept]) + lines[kept][:-7])
        again = dl.sweep(made(), STREAMS, [0, 7], path=path)
        assert timeless(again) == timeless(whole)
        assert len(path.read_bytes().splitlines()) == len(lines)
    monkeypatch.setattr("driftline.sweeps.playing.play", None)  # nothing is left to play
    assert dl.sweep(made(), STREAMS, [0, 7], path=path) == again
    assert sorted(SweepTable.load(path)) == sorted(again)


KILLED = """
import sys
sys.path.insert(0, "tests")
import driftline as dl
from test_sweep import MANY, slow_stream
print("begun", flush=True)
dl.sweep(MANY(), {"slow": slow_stream}, range(20), path=sys.argv[1])
"""


def MANY() -> dict[str, dl.Learner]:  # noqa: N802
    return {"narrow": logistic(2.0), "wide": logistic(50.0), "restart": LEARNERS["restart"]()}


def slow_stream(seed: int):
    time.sleep(0.0 if os.environ.get("QUICK") else 0.05)
    return rows(MULTI, seed=seed)


def test_a_killed_sweep_goes_on_with_the_same_table(tmp_path, monkeypatch):
    path = tmp_path / "sweep.jsonl"
    root = Path(__file__).parent.parent
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(path)], cwd=root, stdout=subprocess.PIPE
    )
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        if path.exists() and len(path.read_bytes().splitlines()) > 8:
            break
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    begun = len(path.read_bytes().splitlines())
    assert 8 < begun < 61
    monkeypatch.setenv("QUICK", "1")
    resumed = dl.sweep(MANY(), {"slow": slow_stream}, range(20), path=path)
    assert timeless(resumed) == timeless(dl.sweep(MANY(), {"slow": slow_stream}, range(20)))


def test_a_file_may_be_of_a_smaller_sweep_and_errors_are_tried_again(tmp_path):
    path = tmp_path / "sweep.jsonl"
    first = dl.sweep({"narrow": logistic(2.0)}, STREAMS, path=path)
    more = dl.sweep({"thin": logistic(2.0), "wide": logistic(50.0)}, STREAMS, path=path)
    assert [row.seconds for row in more[:2]] == [row.seconds for row in first]
    assert [row.learner for row in more] == ["thin", "thin", "wide", "wide"]
    other = {"binary": dl.OGD(dl.losses.Logistic(BINARY))}
    for _ in range(2):
        assert dl.sweep(other, STREAMS, path=path)[0].error


def test_other_files_are_refused_and_left_alone(tmp_path):
    path = tmp_path / "notes.txt"
    for content in (b"my notes\n", b"[1]\n", b'{"format": "other"}\n'):
        path.write_bytes(content)
        with pytest.raises(dl.InputError, match="is not a file of a sweep"):
            dl.sweep(logistic(), STREAMS, path=path)
        assert path.read_bytes() == content
    dl.sweep(logistic(), STREAMS, path=tmp_path / "good")
    lines = (tmp_path / "good").read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + b"damaged\n" + lines[1])
    with pytest.raises(dl.InputError, match="line 2"):
        dl.sweep(logistic(), STREAMS, path=path)


@pytest.mark.parametrize(
    "name, value",
    [
        *(
            ("seed", "Infinity"),
            ("seed", "1e999"),
            ("seed", "-1"),
            ("seed", "1.5"),
            ("seed", "true"),
        ),
        *(
            ("rounds", "-3"),
            ("rounds", "1e999"),
            ("risk", "1e999"),
            ("risk", '"3"'),
            ("seconds", "{}"),
        ),
        *(("error", "3"), ("risk", "1" + 400 * "0"), ("learner", 100_000 * "[" + 100_000 * "]")),
        ("more", "0"),
    ],
)
def test_an_edited_row_is_refused_by_its_line(tmp_path, name, value):
    dl.sweep(logistic(), {"a": STREAMS["a"]}, path=tmp_path / "good")
    header, line = (tmp_path / "good").read_text().splitlines()
    plain = {k: json.dumps(v) for k, v in json.loads(line).items()} | {name: value}
    edited = ", ".join(f'"{k}": {v}' for k, v in plain.items())
    (tmp_path / "bad").write_text(f"{header}\n{line}\n{{{edited}}}\n")
    with pytest.raises(dl.InputError, match="damaged in line 3"):
        dl.sweeps.SweepTable.load(tmp_path / "bad")
    assert len(dl.sweeps.SweepTable.load(tmp_path / "good")) == 1


def test_two_sweeps_do_not_write_one_file(tmp_path):
    path = tmp_path / "sweep.jsonl"

    def nested(seed):
        dl.sweep(logistic(), STREAMS, path=path)

    table = dl.sweep(logistic(), {"nested": nested}, path=path)
    assert "another sweep" in table[0].error


# -- tables


def test_tables_convert_and_print(tmp_path):
    table = dl.sweep(made(), STREAMS, [0, 7])
    columns = table.to_dict()
    assert list(columns) == list(type(table[0])._fields)
    assert columns["risk"].dtype == np.float64 and columns["rounds"].dtype == np.int64
    assert (columns["risk"] == table.risk).all()
    best = table.best()
    means = {name: np.mean([r.risk for r in table if r.learner == name]) for name in LEARNERS}
    assert best.learner == min(means, key=means.get)
    assert table.best("surrogate_loss", stream="a").stream == "a"
    text = str(table)
    assert all(name in text for name in LEARNERS)
    assert "learner" in text and len(text.splitlines()) == len(table) + 1
    assert json.dumps([row._asdict() for row in table])


def test_a_table_without_a_good_row_has_no_best():
    table = dl.sweep(dl.OGD(dl.losses.Logistic(BINARY)), STREAMS)
    with pytest.raises(dl.InputError, match="no learner has played"):
        table.best()


def test_grids_name_their_learners():
    choices = grid(lambda d, name: logistic(d), d=[1.0, 2], name=["a"])
    assert list(choices) == ["d=1, name=a", "d=2, name=a"]
    assert choices["d=2, name=a"].domain.diameter == 2
    for bad in ({}, {"d": []}, {"d": 1.0}, {"d": [1.0, 1.0]}, {"d": "ab"}):
        with pytest.raises(dl.InputError):
            grid(lambda d: logistic(d), **bad)
    with pytest.raises(dl.InputError, match="d=-1"):
        grid(lambda d: logistic(d), d=[-1.0])
    with pytest.raises(dl.InputError, match="expected a learner"):
        grid(lambda d: d, d=[1.0])


def test_progress_is_told():
    seen = []
    dl.sweep(made(), STREAMS, progress=lambda done, total: seen.append((done, total)))
    assert seen[0] == (0, 14) and seen[-1] == (14, 14)
    assert sorted(seen) == seen


def test_a_bar_is_drawn_on_the_error_stream(capsys):
    dl.sweep(logistic(), STREAMS, progress=True)
    assert capsys.readouterr().out == ""


BAD = {
    "no learner": (({}, STREAMS), {}, "at least one learner"),
    "a part": (({"a": dl.rates.Polyak()}, STREAMS), {}, "expected a learner"),
    "a class": ((dl.OGD, STREAMS), {}, "expected a learner"),
    "a name": (({1: logistic()}, STREAMS), {}, "name"),
    "same names": (([logistic(), logistic()], STREAMS), {}, "same name"),
    "no stream": ((logistic(), {}), {}, "at least one stream"),
    "an array": ((logistic(), {"a": np.ones((3, 2))}), {}, "expected a stream"),
    "lengths": ((logistic(), {"a": (np.ones((3, 2)), [0, 1])}), {}, "3 inputs but 2 labels"),
    "no seed": ((logistic(), STREAMS, []), {}, "at least one seed"),
    "a word": ((logistic(), STREAMS, ["a"]), {}, "seed"),
    "negative": ((logistic(), STREAMS, [-1]), {}, "seed"),
    "a flag": ((logistic(), STREAMS, [True]), {}, "seed"),
    "same seeds": ((logistic(), STREAMS, [1, 1]), {}, "twice"),
    "path": ((logistic(), STREAMS), {"path": 3}, "expected a path"),
    "jobs": ((logistic(), STREAMS), {"n_jobs": 0}, "n_jobs"),
    "half a job": ((logistic(), STREAMS), {"n_jobs": 1.5}, "n_jobs"),
    "progress": ((logistic(), STREAMS), {"progress": "yes"}, "progress"),
    "shared": ((logistic(), STREAMS), {"shared": "yes"}, "shared"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_wrong_is_named_before_anything_runs(name, monkeypatch):
    given, more, words = BAD[name]
    monkeypatch.setattr("driftline.sweeps.playing.play", None)
    with pytest.raises(dl.InputError, match=words):
        dl.sweep(*given, **more)


def test_importing_the_package_does_not_import_joblib():
    code = "import sys, driftline.sweeps; driftline.sweep; sys.exit('joblib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


# -- the command


def written(folder: Path, rounds: int = 200) -> Path:
    X, y = rows(MULTI, rounds)
    lines = [
        ",".join([*(f"{value:.4f}" for value in x), f"c{k}"]) for x, k in zip(X, y, strict=True)
    ]
    (folder / "t.csv").write_text("a,b,c,d,e,y\n" + "\n".join(lines) + "\n")
    return folder / "t.csv"


def test_the_command_plays_all_settings_and_goes_on(tmp_path):
    file, out = written(tmp_path), tmp_path / "out.jsonl"
    given = ("sweep", file, "--with", "fast,polyak,constant", "--diameter", "5,20", "--jobs", "1")
    given = (*given, "--step", "0.1,1", "--seeds", "2", "--out", out)
    done = call(*given, "--json", "--quiet", learner=None)
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert len(found) == 2 * (1 + 2 + 4)
    assert {row["learner"] for row in found} >= {"fast", "polyak diameter=5"}
    assert "constant diameter=20 step=0.1" in {row["learner"] for row in found}
    assert all(row["rounds"] == 200 and not row["error"] for row in found)
    assert [row["target_loss"] for row in found] == sorted(row["target_loss"] for row in found)
    again = json.loads(call(*given, "--json", "--quiet", learner=None).stdout)
    assert again == found
    text = call(*given, "--quiet", learner=None).stdout
    assert len(text.splitlines()) == 1 + len(found)


def test_the_command_has_the_losses_of_compare(tmp_path):
    file = written(tmp_path)
    for balance in ((), ("--balance",)):
        options = ("--with", "polyak,constant", "--json", "--quiet", *balance)
        swept = json.loads(call("sweep", file, "--jobs", "1", *options, learner=None).stdout)
        compared = json.loads(call("compare", file, *options, learner=None).stdout)["learners"]
        means = {row["name"]: row["mean_loss"] for row in compared}
        weights = [row["target_loss"] / means[row["learner"]] for row in swept]
        assert len(weights) == 2 and weights[0] == pytest.approx(weights[1])
        assert balance or weights[0] == pytest.approx(200)


@pytest.mark.parametrize(
    "options, words",
    [
        (("--with", "worst"), "there is no learner 'worst'"),
        (("--with", ""), "expected learners"),
        (("--step", "x"), "--step takes numbers"),
        (("--with", "polyak", "--diameter", "-1"), "-1"),
        (("--delay-column", "a"), "late labels"),
        (("--label", "z"), "z"),
    ],
)
def test_wrong_options_of_the_command_are_named(options, words, tmp_path):
    done = call("sweep", written(tmp_path), "--jobs", "1", *options, learner=None)
    assert done.exit_code != 0 and words in done.output


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_norms_that_are_computed_anew_have_the_bits_of_single_runs(dtype):
    random = np.random.default_rng(0)
    X, y = (random.standard_normal((6000, 20)) / 4).astype(dtype), random.integers(0, 3, 6000)
    loss = dl.losses.Logistic(dl.tasks.Multiclass(3))
    balls = {
        f"{d:g}": dl.OGD(loss, domain=dl.domains.Ball(d), dtype=dtype) for d in (0.2, 0.5, 1.0)
    }
    made = dl.sweep(balls, {"rows": (X, y)})
    for row, learner in zip(made, balls.values(), strict=True):
        trace = learner.copy().run(X, y, seed=0, audit=False)
        assert row.surrogate_loss == float(trace.loss.sum())
