"""The same command again: it goes on, it has nothing to do, or it says why it does not."""

from __future__ import annotations

import csv
import gzip
import json
import multiprocessing
import os
import shutil
import signal
import time
from functools import partial

import pytest
from commands import call, data, predictions, write_csv
from howmany import chosen

from driftline.app import tables
from driftline.app.runs import Run, load_model
from driftline.app.runs.lock import Lock

pytestmark = pytest.mark.usefixtures("signals")


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    monkeypatch.setattr(tables, "open_table", partial(tables.open_table, rows=40))


@pytest.fixture
def table(tmp_path):
    return write_csv(tmp_path / "t.csv", *data(400))


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def stopped(monkeypatch, *arguments, rows=120, number=signal.SIGINT, stdin=None):
    """Run a command that gets a signal when so many rows were learned from."""
    learn = Run.learn

    def interrupted(self, rounds):
        if self.rows + rounds.rows == rows:
            signal.raise_signal(number)
        return learn(self, rounds)

    with monkeypatch.context() as patched:
        patched.setattr(Run, "learn", interrupted)
        done = call("run", *arguments, stdin=stdin)
    assert done.exit_code == 128 + number, done.output
    return done


def rounds(folder):
    return load_model(folder / "model.driftline").rounds


def refused(done, *words):
    assert done.exit_code == 2, done.output
    for word in words:
        assert word in done.output, done.output


def test_a_run_that_is_finished_has_nothing_to_do(tmp_path, table):
    command = ("run", table, "--label", "label", "--out", tmp_path / "out")
    first = call(*command, "--json")
    before = contents(tmp_path / "out")
    for more in ((), ("--quiet",)):
        done = call(*command, *more)
        assert done.exit_code == 0 and "Nothing to do: all 400 rows of" in done.output
    done = call(*command, "--json", "--quiet")
    assert done.exit_code == 0 and json.loads(done.stdout) == json.loads(first.stdout)
    assert contents(tmp_path / "out") == before


OTHERS = [
    ("--learner", "polyak"),
    ("--seed", "1"),
    ("--skip", "3"),
    ("--trace",),
    ("--no-certify",),
]


@pytest.mark.parametrize(
    ("other", "finished"),
    [
        pytest.param(other, finished, marks=[pytest.mark.slow] * (i % 2 != finished))
        for i, other in enumerate(OTHERS)
        for finished in (False, True)
    ],
)
def test_other_options_are_refused_with_a_word_about_fresh(
    tmp_path, table, monkeypatch, other, finished
):
    command = (table, "--out", tmp_path / "out", "--quiet")
    if finished:
        assert call("run", *command).exit_code == 0
    else:
        stopped(monkeypatch, *command)
    before = contents(tmp_path / "out")
    refused(
        call("run", *command, *other),
        f"begun with another {other[0].replace('no-', '')}:",
        "--fresh",
        "--out",
    )
    assert contents(tmp_path / "out") == before
    assert call("run", *command, *other, "--fresh").exit_code == 0
    call("run", table, "--out", tmp_path / "other", "--quiet", *other)
    one, two = contents(tmp_path / "out"), contents(tmp_path / "other")
    assert one.keys() == two.keys()
    assert one["model.driftline"] == two["model.driftline"] != before["model.driftline"]
    assert one["predictions.csv"] == two["predictions.csv"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_save_what_was_learned(tmp_path, table, monkeypatch, number):
    call("run", table, "--out", tmp_path / "whole", "--trace")
    before = signal.getsignal(number)
    done = stopped(monkeypatch, table, "--out", tmp_path / "out", "--trace", number=number)
    assert signal.getsignal(number) is before
    assert "from 120 rows is saved" in done.output and rounds(tmp_path / "out") == 120
    assert len(predictions(tmp_path / "out")) == 120
    assert json.loads((tmp_path / "out" / "summary.json").read_text())["interrupted"]
    assert call("run", table, "--out", tmp_path / "out", "--trace").exit_code == 0
    one, two = contents(tmp_path / "whole"), contents(tmp_path / "out")
    assert one.keys() == two.keys()
    for name in ("predictions.csv", "model.driftline", "journal.driftline"):
        assert one[name] == two[name]


def test_a_signal_that_is_ignored_stays_so(tmp_path, table, monkeypatch):
    """As with nohup: a terminal that is closed ends no run."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    learn = Run.learn

    def interrupted(self, rounds):
        signal.raise_signal(signal.SIGHUP)
        return learn(self, rounds)

    try:
        monkeypatch.setattr(Run, "learn", interrupted)
        assert call("run", table, "--out", tmp_path / "out").exit_code == 0
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_second_signal_ends_all_and_the_last_checkpoint_is_there(tmp_path, table, monkeypatch):
    from driftline.app.runs import schedule

    monkeypatch.setattr(schedule, "SECONDS", 0.0)
    learn = Run.learn

    def interrupted(self, rounds):
        if self.rows == 80:
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)
        return learn(self, rounds)

    with monkeypatch.context() as patched:
        patched.setattr(Run, "learn", interrupted)
        assert call("run", table, "--out", tmp_path / "out").exit_code == 1
    assert rounds(tmp_path / "out") in (40, 80)
    assert call("run", table, "--out", tmp_path / "out").exit_code == 0
    call("run", table, "--out", tmp_path / "whole")
    assert predictions(tmp_path / "out") == predictions(tmp_path / "whole")


def columns(rows=200):
    inputs, labels = data(rows)
    return [*inputs.T.tolist(), ["uv"[y] for y in labels]]


def in_gzip(path):
    write_csv(path, *data(200))
    path.write_bytes(gzip.compress(path.read_bytes()))


def in_arff(path):
    names = "".join(f"@attribute x{j} numeric\n" for j in range(3))
    rows = [",".join(map(str, row)) for row in zip(*columns(), strict=True)]
    path.write_text(f"@relation r\n{names}@attribute label {{u,v}}\n@data\n" + "\n".join(rows))


def in_parquet(path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    made = pyarrow.table(dict(zip(("x0", "x1", "x2", "label"), columns(), strict=True)))
    parquet.write_table(made, path, row_group_size=70)


@pytest.mark.parametrize(
    ("name", "write"), [("t.csv.gz", in_gzip), ("t.arff", in_arff), ("t.parquet", in_parquet)]
)
def test_every_format_goes_on(tmp_path, monkeypatch, name, write):
    write(tmp_path / name)
    call("run", tmp_path / name, "--out", tmp_path / "whole")
    stopped(monkeypatch, tmp_path / name, "--out", tmp_path / "out", rows=80)
    assert call("run", tmp_path / name, "--out", tmp_path / "out").exit_code == 0
    one, two = contents(tmp_path / "whole"), contents(tmp_path / "out")
    for same in ("predictions.csv", "model.driftline", "journal.driftline"):
        assert one[same] == two[same]
    assert "Nothing to do" in call("run", tmp_path / name, "--out", tmp_path / "out").output


# -- inputs that are not what they were


def test_an_input_that_has_grown_goes_on(tmp_path, table):
    lines = table.read_text().splitlines()
    call("run", table, "--out", tmp_path / "whole")
    table.write_text("\n".join(lines[:201]) + "\n")
    assert call("run", table, "--out", tmp_path / "out").exit_code == 0
    table.write_text("\n".join(lines) + "\n")
    done = call("run", table, "--out", tmp_path / "out")
    assert done.exit_code == 0 and "going on after row 200 of" in done.output
    assert predictions(tmp_path / "out") == predictions(tmp_path / "whole")
    assert "Nothing to do" in call("run", table, "--out", tmp_path / "out").output


@pytest.mark.parametrize("line", [1, 60, 120])
@pytest.mark.parametrize("resumed", [False, True])
def test_an_input_that_has_changed_before_the_position_is_refused(
    tmp_path, table, monkeypatch, line, resumed
):
    stopped(monkeypatch, table, "--out", tmp_path / "out")
    more = ("--resume", tmp_path / "out" / "model.driftline") if resumed else ()
    before, good = contents(tmp_path / "out"), table.read_text()
    lines = good.splitlines()
    for edited in (
        [*lines[:line], *lines[line + 1 :]],
        [*lines[:line], "9,9,9,u", *lines[line:]],
        [*lines[:line], lines[line].replace("1", "2").replace("0", "3"), *lines[line + 1 :]],
        lines[:line],
    ):
        table.write_text("\n".join(edited) + "\n")
        done = call("run", table, "--out", tmp_path / "out", *more)
        refused(done, "has changed in the 120 rows that were learned from")
        assert ("--skip 0" if resumed else "--fresh") in done.output
    assert contents(tmp_path / "out") == before
    table.write_text("\n".join([*lines[:130], "1,2,3,u", *lines[130:]]) + "\n")
    assert call("run", table, "--out", tmp_path / "out", *more).exit_code == 0
    assert rounds(tmp_path / "out") == 401


def test_another_input_of_the_same_name_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, seed in (("a", 0), ("b", 1)):
        (tmp_path / name).mkdir()
        write_csv(tmp_path / name / "t.csv", *data(seed=seed))
    assert call("run", "a/t.csv").exit_code == 0
    before = contents(tmp_path / "results/run/t")
    refused(call("run", "b/t.csv"), "the run over another table called t.csv", "--fresh", "--out")
    assert contents(tmp_path / "results/run/t") == before
    assert call("run", "b/t.csv", "--out", "other").exit_code == 0
    assert call("run", "b/t.csv", "--fresh").exit_code == 0
    names = ("predictions.csv", "model.driftline", "journal.driftline")
    one, two = (contents(tmp_path / name) for name in ("results/run/t", "other"))
    assert all(one[name] == two[name] for name in names)


def test_an_input_that_was_moved_is_known_by_what_is_in_it(tmp_path, table, monkeypatch):
    stopped(monkeypatch, table, "--out", tmp_path / "out")
    table.rename(tmp_path / "moved.csv")
    done = call("run", tmp_path / "moved.csv", "--out", tmp_path / "out")
    assert done.exit_code == 0 and "going on after row 120 of" in done.output
    assert rounds(tmp_path / "out") == 400


def test_results_without_a_model_are_not_written_over(tmp_path, table):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "predictions.csv").write_text("mine\n")
    refused(call("run", table, "--out", tmp_path / "out"), "holds predictions.csv, but no model")
    assert (tmp_path / "out" / "predictions.csv").read_text() == "mine\n"
    assert call("run", table, "--out", tmp_path / "out", "--fresh").exit_code == 0


def test_a_bad_table_takes_nothing_away_even_if_it_is_to_begin_again(tmp_path, table):
    call("run", table, "--out", tmp_path / "out")
    before = contents(tmp_path / "out")
    table.write_text("a,label\n1,u\n2\n")
    refused(call("run", table, "--out", tmp_path / "out", "--fresh"), "line 3")
    assert contents(tmp_path / "out") == before


@pytest.mark.parametrize("finished", [False, True])
def test_a_bad_table_does_not_touch_the_run_it_should_go_on_from(
    tmp_path, table, monkeypatch, finished
):
    if finished:
        call("run", table, "--out", tmp_path / "out")
    else:
        stopped(monkeypatch, table, "--out", tmp_path / "out", "--certify")
    before = contents(tmp_path / "out")
    bad = tmp_path / "bad.csv"
    bad.write_text("x0,x1,x2,label\n1,2,3,u\n1,2\n")
    refused(call("run", bad, "--resume", tmp_path / "out" / "model.driftline"), "line 3")
    assert contents(tmp_path / "out") == before


@pytest.mark.parametrize("finished", [False, True])
def test_predictions_that_were_edited_are_not_continued(tmp_path, table, monkeypatch, finished):
    command = (table, "--out", tmp_path / "out")
    lines = table.read_text()
    if finished:
        call("run", *command)
        table.write_text(lines + "1,2,3,u\n")
    else:
        stopped(monkeypatch, *command)
    path = tmp_path / "out" / "predictions.csv"
    path.write_text(path.read_text().replace("\n2,", "\n7,"))
    before = contents(tmp_path / "out")
    refused(call("run", *command), "predictions.csv has been changed", "--fresh")
    path.write_text("round\n")
    refused(call("run", *command), "predictions.csv has become shorter")
    path.write_bytes(before["predictions.csv"])
    assert contents(tmp_path / "out") == before


# -- --resume and --skip


def test_a_file_that_was_read_is_not_read_again(tmp_path, table, monkeypatch):
    stopped(monkeypatch, table, "--out", tmp_path / "out")
    resume = ("run", table, "--resume", tmp_path / "out" / "model.driftline")
    refused(call(*resume, "--skip", 119), "--skip 119 would pass over other rows than the 120")
    refused(call(*resume, "--skip", 0), "--skip 0 would pass over other rows")
    assert rounds(tmp_path / "out") == 120
    for _ in range(2):
        assert call(*resume, "--skip", 120).exit_code == 0
        assert rounds(tmp_path / "out") == 400
    assert "Nothing to do" in call(*resume).output
    refused(call(*resume, "--skip", 200), "--skip 200 would pass over")
    assert rounds(tmp_path / "out") == 400


def test_rows_that_were_passed_over_stay_so(tmp_path, table, monkeypatch):
    other = write_csv(tmp_path / "other.csv", *data(seed=3))
    for out in ("whole", "out"):
        call("run", other, "--out", tmp_path / out)

    def resume(out):
        model = tmp_path / out / "model.driftline"
        return (table, "--resume", model, "--skip", "50", "--out", tmp_path / out)

    call("run", *resume("whole"))
    stopped(monkeypatch, *resume("out"), rows=110)
    assert call("run", *resume("out")).exit_code == 0
    assert call("run", *resume("out")).exit_code == 0
    assert rounds(tmp_path / "out") == rounds(tmp_path / "whole") == 200 + 350
    one, two = contents(tmp_path / "whole"), contents(tmp_path / "out")
    assert one["model.driftline"] == two["model.driftline"]


def test_a_folder_that_goes_on_from_a_model_elsewhere_goes_on(tmp_path, table, monkeypatch):
    other = write_csv(tmp_path / "other.csv", *data(seed=3))
    call("run", other, "--out", tmp_path / "first")
    model = tmp_path / "first" / "model.driftline"
    before = contents(tmp_path / "first")
    command = (table, "--resume", model, "--out", tmp_path / "out")
    call("run", table, "--resume", model, "--out", tmp_path / "whole")
    stopped(monkeypatch, *command)
    assert call("run", *command).exit_code == 0
    assert "Nothing to do" in call("run", *command).output
    one, two = contents(tmp_path / "whole"), contents(tmp_path / "out")
    for name in ("predictions.csv", "model.driftline", "journal.driftline"):
        assert one[name] == two[name]
    assert contents(tmp_path / "first") == before
    refused(call("run", table, "--out", tmp_path / "out"), "by another command", "--fresh")
    third = write_csv(tmp_path / "third.csv", *data(seed=4))
    refused(
        call("run", third, "--resume", model, "--out", tmp_path / "out"), "holds another run than"
    )
    refused(call("run", third, "--resume", model, "--fresh"), "--fresh would take")


def test_a_model_that_does_not_know_its_inputs_goes_on(tmp_path, table):
    other = write_csv(tmp_path / "other.csv", *data(seed=3))
    call("run", other, "--out", tmp_path / "out")
    model = tmp_path / "out" / "model.driftline"
    load_model(model).save(model)
    refused(call("run", other, "--out", tmp_path / "out"), "by another command", "--fresh")
    assert call("run", table, "--resume", model, "--skip", 50).exit_code == 0
    made = predictions(tmp_path / "out")
    assert [int(row["round"]) for row in made] == list(range(1, 551))
    assert "Nothing to do" in call("run", table, "--resume", model).output


def test_a_loop_over_files_can_be_run_again(tmp_path):
    paths = [write_csv(tmp_path / f"{seed}.csv", *data(80, seed=seed)) for seed in range(3)]
    model = tmp_path / "out" / "model.driftline"
    for _ in range(2):
        assert call("run", paths[0], "--out", tmp_path / "out").exit_code == 0
        for path in paths[1:]:
            assert call("run", path, "--resume", model).exit_code == 0
        assert rounds(tmp_path / "out") == 240
    with paths[0].open("a") as file:
        file.write("1,2,3,u\n")
    done = call("run", paths[0], "--out", tmp_path / "out")
    refused(done, "has gone on with 2.csv", "--resume")
    assert call("run", paths[0], "--resume", model).exit_code == 0
    assert rounds(tmp_path / "out") == 241


def test_a_pipe_is_saved_but_not_continued_by_the_same_command(tmp_path, table, monkeypatch):
    text, out = table.read_bytes(), tmp_path / "out"
    call("run", table, "--out", tmp_path / "whole")
    done = stopped(monkeypatch, "-", "--out", out, stdin=text)
    model = out / "model.driftline"
    assert f"driftline run - --resume {model} --skip 120" in done.output
    words = ("a pipe cannot be taken up by the same command", f"--resume {model}", "--fresh")
    refused(call("run", "-", "--out", out, stdin=text), *words)
    refused(call("run", "-", "--resume", model, stdin=text), "say --skip 120 if these come again")
    done = call("run", "-", "--resume", model, "--skip", 120, stdin=text)
    assert done.exit_code == 0, done.output
    assert predictions(out) == predictions(tmp_path / "whole")
    refused(call("run", "-", "--out", out, stdin=text), "--fresh")


def test_pieces_that_are_much_work_are_saved_in_between(tmp_path, monkeypatch):
    """And a run that goes on in the middle of a piece has the same bits."""
    from driftline.app.runs import reading

    inputs, labels = data(200)
    labels[30:33] = 2
    path = write_csv(tmp_path / "t.csv", inputs, labels, "uvw")
    lines = path.read_text().splitlines()
    lines[25] = f",{lines[25].split(',', 1)[1]}"
    path.write_text("\n".join(lines) + "\n")
    monkeypatch.setattr(reading, "MOST_WORK", 7 * 9)  # seven rows of three features and classes
    more = ("--missing", "mean", "--trace")
    call("run", path, "--out", tmp_path / "whole", *more)
    for rows in chosen((7, 47), (7, 35, 40, 47, 87)):
        out = tmp_path / f"out{rows}"
        stopped(monkeypatch, path, "--out", out, *more, rows=rows)
        assert rounds(out) == rows
        assert call("run", path, "--out", out, *more).exit_code == 0
        one, two = contents(tmp_path / "whole"), contents(out)
        for name in ("predictions.csv", "model.driftline", "journal.driftline"):
            assert one[name] == two[name]


# -- one writer


def _hold(folder, ready, done, begun=False):
    with Lock(folder) as lock:
        if begun:
            lock.begin()
        ready.set()
        done.wait()


def test_a_folder_has_one_writer_and_the_second_is_told_who(tmp_path, table):
    spawn = multiprocessing.get_context("spawn")
    ready, done = spawn.Event(), spawn.Event()
    other = spawn.Process(target=_hold, args=(tmp_path / "out", ready, done))
    other.start()
    ready.wait()
    refused(call("run", table, "--out", tmp_path / "out"), f"by process {other.pid}:", "--out")
    assert list((tmp_path / "out").iterdir()) == [tmp_path / "out" / "run.lock"]
    done.set()
    other.join()
    assert not (tmp_path / "out").exists()
    assert call("run", table, "--out", tmp_path / "out").exit_code == 0
    assert "run.lock" not in contents(tmp_path / "out")


@pytest.mark.parametrize("begun", [False, True])
def test_a_lock_ends_with_its_process(tmp_path, table, begun):
    """Results that stand beside no model are swept if they are those of a run that died."""
    spawn = multiprocessing.get_context("spawn")
    ready, done = spawn.Event(), spawn.Event()
    other = spawn.Process(target=_hold, args=(tmp_path / "out", ready, done, begun))
    other.start()
    ready.wait()
    os.kill(other.pid, signal.SIGKILL)
    other.join()
    assert (tmp_path / "out" / "run.lock").exists()
    (tmp_path / "out" / "predictions.csv").write_text("mine, or of a run that died early\n")
    if not begun:
        refused(call("run", table, "--out", tmp_path / "out"), "but no model")
        (tmp_path / "out" / "predictions.csv").unlink()
    else:
        refused(call("run", table, "--out", tmp_path / "out", "--label", "no"), "no column")
    assert call("run", table, "--out", tmp_path / "out").exit_code == 0
    assert (
        "run.lock" not in contents(tmp_path / "out") and len(predictions(tmp_path / "out")) == 400
    )


def test_drafts_are_swept(tmp_path, table):
    (tmp_path / "out").mkdir()
    for name in ("model.driftline", "report.html", "summary.json"):
        (tmp_path / "out" / f".part.{name}").write_text("half")
    assert call("run", table, "--out", tmp_path / "out").exit_code == 0
    assert not [name for name in contents(tmp_path / "out") if name.startswith(".part")]


# -- what is in the files


def test_text_that_begins_like_a_formula_is_escaped(tmp_path):
    labels = ["=1+1", "+a", "-b", "@c", "-1", "+1", "a=b", "-1e5"]
    rows = [f"{i % 8},{i % 3},{labels[i % 8]}" for i in range(160)]
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["x,z,label", *rows]) + "\n")
    assert call("run", path, "--out", tmp_path / "out").exit_code == 0
    safe = ["'=1+1", "'+a", "'-b", "'@c", "-1", "+1", "a=b", "-1e5"]
    made = predictions(tmp_path / "out")
    assert [row["label"] for row in made[:8]] == safe
    assert {row["prediction"] for row in made} <= {*safe, "(other)"}
    done = call("predict", tmp_path / "out" / "model.driftline", path)
    rows = list(csv.DictReader(done.stdout.splitlines()))
    assert [row["label"] for row in rows[:8]] == safe


@pytest.mark.parametrize(
    "change",
    [
        {"inputs": [{}]},
        {"inputs": [{"name": "t", "place": "", "skip": 0, "head": {}, "mark": {}}]},
        {"inputs": 3},
        {"predictions": [-1, ""]},
        {"predictions": [2**70, "", 1]},
        {"audit": [1]},
        {"audit": [[-5, ""], 1, ""]},
        {"journal": {}},
        {"rounds": 10**9},
        {"rounds": -1},
        {"queries": 4},
        {"options": 4},
        {"tags": True},
    ],
    ids=repr,
)
def test_checkpoints_that_were_edited_are_refused(tmp_path, table, monkeypatch, change):
    from driftline.state import archive

    stopped(monkeypatch, table, "--out", tmp_path / "out")
    model = tmp_path / "out" / "model.driftline"
    about, arrays = archive.read(model)
    about["checkpoint"] |= change
    archive.write(model, about, arrays)
    refused(call("run", table, "--out", tmp_path / "out"), "damaged or was edited")
    for name in ("run.journal", "run.totals", "run.counts"):
        wrong = arrays | {name: arrays[name][:-1]}
        archive.write(model, about | {"checkpoint": about["checkpoint"]}, wrong)
        refused(call("run", table, "--out", tmp_path / "out"), "damaged or was edited")


def test_a_copy_of_a_folder_goes_on_as_well(tmp_path, table, monkeypatch):
    stopped(monkeypatch, table, "--out", tmp_path / "out")
    shutil.copytree(tmp_path / "out", tmp_path / "copy")
    for out in ("out", "copy"):
        assert call("run", table, "--out", tmp_path / out).exit_code == 0
    one, two = contents(tmp_path / "out"), contents(tmp_path / "copy")
    assert one["model.driftline"] == two["model.driftline"]


def test_checkpoints_are_told_and_counted(tmp_path, table, monkeypatch):
    from driftline.app.runs import schedule

    monkeypatch.setattr(schedule, "SECONDS", 0.0)
    monkeypatch.setattr(schedule, "SHARE", float("inf"))
    done = call("run", table, "--out", tmp_path / "out")
    assert "in 11 checkpoints" in done.output  # one a piece, and when all was written


def test_checkpoints_are_rare_where_they_are_dear():
    from driftline.app.runs.schedule import Schedule

    now = 0.0
    schedule = Schedule(clock=lambda: now)
    times = []
    for step in range(1, 10_000):
        now = step / 10
        if schedule.due:
            times.append(now)
            cost = 0.01 if len(times) < 50 else 1.0
            schedule.saved(cost)
    cheap, dear = [b - a for a, b in zip(times, times[1:], strict=False)][:48], times[50:]
    assert max(cheap) <= 2.0 + 1e-9
    assert all(b - a >= 1.0 / 0.03 for a, b in zip(dear, dear[1:], strict=False)) and len(dear) > 5
    assert time.perf_counter() > 0.0


def test_a_trace_of_fewer_rounds_does_not_stay(tmp_path, table):
    out = tmp_path / "out"
    call("run", table, "--out", out, "--trace", "--quiet")
    assert (out / "trace.npz").exists()
    more = write_csv(tmp_path / "more.csv", *data(80))
    call("run", more, "--resume", out / "model.driftline", "--out", out, "--quiet")
    assert not (out / "trace.npz").exists()


def test_a_table_is_known_after_a_longer_copy_of_it_was_read(tmp_path):
    rows, labels = data(400)
    short = write_csv(tmp_path / "short.csv", rows[:200], labels[:200])
    long = write_csv(tmp_path / "long.csv", rows, labels)
    out = tmp_path / "out"
    for table in (short, long):
        call("run", table, "--out", out, "--quiet")
    before = contents(out)
    for again in (short, long):
        assert "Nothing to do" in call("run", again, "--out", out, "--quiet").output
        resumed = call("run", again, "--resume", out / "model.driftline", "--out", out, "--quiet")
        assert "Nothing to do" in resumed.output
    assert contents(out) == before
