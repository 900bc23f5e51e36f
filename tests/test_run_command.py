"""``driftline run`` and its kin: a table on the command line is the same as arrays in Python."""

from __future__ import annotations

import csv
import json
import signal
import subprocess
import sys
import tracemalloc
from functools import partial

import numpy as np
import pytest
from commands import call, data, predictions, write_csv

import driftline as dl
from driftline import committee as by_name
from driftline.app import tables
from driftline.app.cli.learners import LEARNERS
from driftline.app.runs import Journal, Reading, Run, load_model
from driftline.app.runs.baselines import OfClasses, OfTags
from driftline.committee import CommitteeTrace


@pytest.fixture
def small_pieces(monkeypatch):
    monkeypatch.setattr(tables, "open_table", partial(tables.open_table, rows=40))


# -- run


@pytest.mark.parametrize("learner", ["fast", "polyak"])
def test_a_table_is_learned_like_arrays(tmp_path, learner, small_pieces):
    inputs, labels = data()
    path = write_csv(tmp_path / "t.csv", inputs, labels)
    done = call("run", path, "--out", tmp_path / "out", "--learner", learner)
    assert done.exit_code == 0, done.output
    trace = by_name.named(learner, dl.tasks.Multiclass(2)).run(inputs, labels)
    rows = predictions(tmp_path / "out")
    assert [row["prediction"] for row in rows] == ["uv"[p] for p in trace.prediction]
    assert [float(row["loss"]) for row in rows] == trace.target_loss.tolist()
    assert f"{trace.target_loss.mean():.2%}" in done.output
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert summary["loss"] == trace.target_loss.sum() and summary["rounds"] == len(labels)
    again = dl.load(tmp_path / "out" / "model.driftline")  # and Python can go on from there
    assert again.rounds == len(labels)


@pytest.mark.parametrize("cut", [10, 55, 120])
def test_a_run_in_two_parts_is_the_same(tmp_path, cut, small_pieces):
    inputs, labels = data()
    path = write_csv(tmp_path / "t.csv", inputs, labels)
    text = path.read_text().splitlines()
    first, _, *rest = text[150].split(",")
    text[150] = ",".join([first, "", *rest])  # a value is missing
    path.write_text("\n".join(text) + "\n")
    more = ("--missing", "mean", "--quiet")
    assert call("run", path, "--out", tmp_path / "one", *more).exit_code == 0
    first = tmp_path / "first.csv"
    first.write_text("\n".join(text[: cut + 1]) + "\n")
    assert call("run", first, "--out", tmp_path / "two", *more).exit_code == 0
    model = tmp_path / "two" / "model.driftline"
    done = call("run", path, "--resume", model, "--skip", cut, "--out", tmp_path / "two", "--quiet")
    assert done.exit_code == 0, done.output
    assert predictions(tmp_path / "one") == predictions(tmp_path / "two")
    one, two = (Journal.load(tmp_path / n / "journal.driftline") for n in ("one", "two"))
    assert one.rounds == two.rounds and one.total("majority") == two.total("majority")
    one, two = (load_model(tmp_path / n / "model.driftline") for n in ("one", "two"))
    assert one.loss == two.loss and np.allclose(one.totals, two.totals)


def test_classes_may_come_later(tmp_path, small_pieces):
    inputs, labels = data()
    labels[150:] = 2
    path = write_csv(tmp_path / "t.csv", inputs, labels, "uvw")
    done = call("run", path, "--out", tmp_path / "out")
    assert done.exit_code == 0, done.output
    rows = predictions(tmp_path / "out")
    assert sum(row["prediction"] != "w" for row in rows[150:]) < 10
    assert load_model(tmp_path / "out" / "model.driftline").encoder.labels.values[-1] == "w"
    assert "classes came up on the way" in done.output


def test_a_class_is_not_known_before_its_row_came(tmp_path, monkeypatch):
    """Predictions depend on no later label, and not on where the table is cut into pieces."""
    inputs, labels = data()
    labels[150] = labels[170:] = 2
    path = write_csv(tmp_path / "t.csv", inputs, labels, "uvw")
    made, plain = [], tables.open_table
    for rows in (40, 57, 150):
        monkeypatch.setattr(tables, "open_table", partial(plain, rows=rows))
        assert call("run", path, "--out", tmp_path / str(rows)).exit_code == 0
        made.append(predictions(tmp_path / str(rows)))
        model = load_model(tmp_path / str(rows) / "model.driftline")
        assert model.encoder.labels.values == ["u", "v", "w"]
    assert made[0] == made[1] == made[2]
    labels[labels == 2] = 0
    other = write_csv(tmp_path / "other.csv", inputs, labels)
    assert call("run", other, "--out", tmp_path / "other").exit_code == 0
    assert predictions(tmp_path / "other")[:150] == made[0][:150]


def test_the_bound_holds_and_the_audit_finds_nothing(tmp_path, small_pieces):
    path = write_csv(tmp_path / "t.csv", *data(1000))
    done = call("run", path, "--learner", "auto", "--out", tmp_path / "out", "--trace", "--json")
    assert done.exit_code == 0
    made = json.loads(done.stdout)
    assert made["certificate"]["valid"] is True
    assert made["certificate"]["paid"] <= made["certificate"]["bound"]
    trace = CommitteeTrace.load(tmp_path / "out" / "trace.npz")
    assert trace.target_loss.sum() == made["loss"] and len(trace) == 1000
    alone = call("run", path, "--out", tmp_path / "more", "--learner", "polyak", "--json")
    made = json.loads(alone.stdout)["certificate"]
    assert made["valid"] is True and made["paid"] <= made["bound"]


def test_standard_input(tmp_path):
    path = write_csv(tmp_path / "t.csv", *data())
    done = call("run", "-", "--out", tmp_path / "out", stdin=path.read_bytes())
    assert done.exit_code == 0 and "200 rounds" in done.output


def test_tags_levels_and_rankings(tmp_path):
    inputs, labels = data(120)
    lines = [f"{x[0]!r},{x[1]!r},{y},{1 - y}" for x, y in zip(inputs.tolist(), labels, strict=True)]
    path = tmp_path / "t.csv"
    path.write_text("a,b,tag_1,tag_2\n" + "\n".join(lines) + "\n")
    done = call("run", path, "--label", "tag_*", "--out", tmp_path / "tags")
    assert done.exit_code == 0 and "wrong tags" in done.output, done.output
    done = call("run", path, "--label", "tag_1", "--task", "levels", "--out", tmp_path / "levels")
    assert done.exit_code == 0 and "distance" in done.output, done.output
    lines = [
        f"{y} qid:{i // 5} 1:{x[0]!r} 2:{x[1]!r}"
        for i, (x, y) in enumerate(zip(inputs.tolist(), labels, strict=True))
    ]
    path = tmp_path / "t.svm"
    path.write_text("\n".join(lines) + "\n")
    done = call("run", path, "--out", tmp_path / "ranking")
    assert done.exit_code == 0 and "1 - NDCG, of 24 rounds" in done.output, done.output
    path, tags = tmp_path / "t.csv", tmp_path / "tags" / "model.driftline"
    done = call("predict", tags, path)
    assert done.exit_code == 0 and "mean loss" in done.output, done.output
    done = call("predict", tags, path, "--ignore", "tag_2")  # labels that are not compared
    assert done.exit_code == 0 and "mean loss" not in done.output, done.output
    levels = tmp_path / "levels" / "model.driftline"
    assert call("predict", levels, path).exit_code == 0
    done = call("predict", levels, path, "--ignore", "tag_2")
    assert done.exit_code == 2 and "--ignore names tag_2, which the model needs" in done.output
    done = call("predict", tmp_path / "ranking" / "model.driftline", tmp_path / "t.svm")
    assert done.exit_code == 0 and len(done.stdout.splitlines()) == 25


def test_queries_go_on_in_the_next_piece(tmp_path, small_pieces):
    path = tmp_path / "t.svm"
    sizes = [39, 1, 2, 80, 3]
    lines = [f"{i % 3} qid:{q} 1:{i}" for q, size in enumerate(sizes) for i in range(size)]
    path.write_text("\n".join(lines) + "\n")
    table = tables.open_table(path)
    head = next(table.pieces())
    encoder, _ = tables.guess(table, head, tables.Options())
    found = [len(d) for rounds in Reading(table, encoder, head) for d in rounds.inputs]
    assert found == sizes
    rows = [f"{i},{i % 3},{q}" for q, size in enumerate(sizes) for i in range(size)]
    (tmp_path / "t.csv").write_text("\n".join(["x,grade,query", *rows]) + "\n")
    more = ("--label", "grade", "--query", "query", "--out", tmp_path / "csv")
    done = call("run", tmp_path / "t.csv", *more)
    assert done.exit_code == 0 and "1 - NDCG, of 5 rounds" in done.output
    path.write_text("\n".join([*lines, lines[0]]) + "\n")
    assert "query '0' comes back" in call("run", path, "--out", tmp_path / "out").output


# -- Ctrl-C and errors on the way


@pytest.mark.usefixtures("signals")
def test_an_interrupted_run_can_be_taken_up(tmp_path, monkeypatch, small_pieces):
    path = write_csv(tmp_path / "t.csv", *data())
    call("run", path, "--out", tmp_path / "whole")
    learn = Run.learn

    def interrupted(self, rounds):
        if self.rows == 80:
            signal.raise_signal(signal.SIGINT)
        return learn(self, rounds)

    with monkeypatch.context() as patched:
        patched.setattr(Run, "learn", interrupted)
        done = call("run", path, "--out", tmp_path / "out")
    assert done.exit_code == 130
    assert "What was learned from 120 rows is saved" in done.output
    assert f"driftline run {path} --learner fast --out {tmp_path / 'out'}\n" in done.output
    done = call("run", path, "--out", tmp_path / "out")
    assert done.exit_code == 0 and f"going on after row 120 of {path}" in done.output
    assert predictions(tmp_path / "out") == predictions(tmp_path / "whole")


def test_a_bad_line_does_not_lose_what_was_learned(tmp_path, small_pieces):
    path = write_csv(tmp_path / "t.csv", *data())
    with path.open("a") as file:
        file.write("1,2,u\n")
    done = call("run", path, "--out", tmp_path / "out")
    assert done.exit_code == 2
    assert "Error: " in done.output and "line 202: expected 4 values" in done.output
    assert "learned from 200 rows is saved" in done.output
    assert len(predictions(tmp_path / "out")) == 200


def test_a_class_met_beside_a_bad_line_is_not_remembered(tmp_path, small_pieces):
    inputs, labels = data()
    labels[130:] = 2
    path = write_csv(tmp_path / "t.csv", inputs, labels, "uvw")
    call("run", path, "--out", tmp_path / "whole")
    good = path.read_text()
    lines = good.splitlines()
    path.write_text("\n".join([*lines[:140], "1,x,3,w", *lines[141:]]) + "\n")
    done = call("run", path, "--out", tmp_path / "out")
    assert done.exit_code == 2 and "line 141, column x1" in done.output
    path.write_text(good)
    model = tmp_path / "out" / "model.driftline"
    done = call("run", path, "--resume", model, "--skip", 120)
    assert done.exit_code == 0, done.output
    assert predictions(tmp_path / "out") == predictions(tmp_path / "whole")
    assert "certificate\n" in done.output  # of all rounds, as if it had never stopped


def test_a_bad_file_leaves_an_earlier_run_alone(tmp_path):
    path = write_csv(tmp_path / "t.csv", *data())
    call("run", path, "--out", tmp_path / "out")
    before = {file.name: file.read_bytes() for file in (tmp_path / "out").iterdir()}
    path.write_text("a,label\n1,u\n2\n")
    assert call("run", path, "--out", tmp_path / "out").exit_code == 2
    assert {file.name: file.read_bytes() for file in (tmp_path / "out").iterdir()} == before


@pytest.mark.parametrize(
    ("text", "arguments", "message"),
    [
        ("", (), "is empty"),
        ("a,label\n", (), "has no rows after its header"),
        ("a,label\n1,u\n2,u\n", (), "'u' in all 2 rows: there is nothing to learn"),
        ("a,label\n1,u\n2,v\n", ("--label", "lable"), "did you mean 'label'?"),
        ("a,label\n1,u\n2,v\n", ("--encoding", "no-such"), "there is no encoding"),
        ("a,label\n1,u\n2,v\n", ("--delimiter", "ab"), "a delimiter is one sign"),
        ("a,label\n1,u\n2,v\n", ("--task", "ranking"), "--query"),
        ("a,label\n1,u\n2,v\n", ("--skip", "5"), "has only 2 rows"),
    ],
)
def test_errors_are_one_line_and_exit_2(tmp_path, text, arguments, message):
    path = tmp_path / "t.csv"
    path.write_text(text)
    done = call("run", path, "--out", tmp_path / "out", *arguments)
    assert done.exit_code == 2 and message in done.output
    assert "Traceback" not in done.output


# -- predict, inspect, compare, completion


@pytest.fixture
def model(tmp_path):
    path = write_csv(tmp_path / "t.csv", *data())
    assert call("run", path, "--out", tmp_path / "out", "--trace").exit_code == 0
    return tmp_path / "out" / "model.driftline"


def test_predictions_are_the_learner_s_and_change_nothing(tmp_path, model):
    inputs, labels = data(60, seed=1)
    path = write_csv(tmp_path / "new.csv", inputs, labels)
    before = model.read_bytes()
    done = call("predict", model, path)
    assert done.exit_code == 0 and "mean loss" in done.stderr
    assert model.read_bytes() == before
    made = [row["prediction"] for row in csv.DictReader(done.stdout.splitlines())]
    loaded = load_model(model)
    expected = [loaded.encoder.labels.values[loaded.learner.predict(x)] for x in inputs]
    assert (
        sum(a != b for a, b in zip(made, expected, strict=True)) <= 1
    )  # scales count one row more
    turned = [",".join(reversed(line.split(",")[:3])) for line in path.read_text().splitlines()]
    (tmp_path / "turned.csv").write_text("\n".join(turned) + "\n")  # no labels, other order
    done = call("predict", model, tmp_path / "turned.csv", "--out", tmp_path / "p.csv")
    assert done.exit_code == 0 and not done.stdout
    with (tmp_path / "p.csv").open() as file:
        assert [row["prediction"] for row in csv.DictReader(file)] == made


def test_predict_refuses_what_it_does_not_know(tmp_path, model):
    path = tmp_path / "new.csv"
    path.write_text("x0,x1,label\n1,2,u\n")
    assert "no column 'x2', which the model knows" in call("predict", model, path).output
    learner = dl.OGD(dl.losses.Logistic(dl.tasks.Multiclass(2)))
    learner.run(np.eye(2), [0, 1])
    other = learner.save(tmp_path / "other")
    done = call("predict", other, path)
    assert done.exit_code == 2 and "does not know the columns" in done.output


def test_inspect(tmp_path, model):
    done = call("inspect", model)
    assert done.exit_code == 0
    for part in ("Multiclass(classes=2)", "rounds", "200", "x0, x1, x2", "member 5"):
        assert part in done.output
    assert json.loads(call("inspect", model, "--json").output)["rounds"] == 200
    assert "journal" in call("inspect", model.parent / "journal.driftline").output
    assert "committee of 7" in call("inspect", model.parent / "trace.npz").output
    done = call("inspect", model.parent / "predictions.csv")
    assert done.exit_code == 2 and "was not written by driftline" in done.output


def test_what_is_no_trace_is_said_to_be_none(tmp_path, model):
    for command in (["report"], ["certify", "--data", model]):
        done = call(*command, model)
        assert done.exit_code and "is a model or a journal: expected a trace" in done.output
        done = call(*command, tmp_path / "t.csv")
        assert done.exit_code and "was not written by driftline" in done.output


def test_compare(tmp_path):
    path = write_csv(tmp_path / "t.csv", *data())
    done = call("compare", path, "--with", ",".join(LEARNERS), "--json")
    made = json.loads(done.stdout)["learners"]
    names = {row["name"] for row in made}
    assert names == {*LEARNERS, "(no change)", "(majority)"}
    losses = {row["name"]: row["mean_loss"] for row in made}
    inputs, labels = data()
    for name in ("fast", "restart"):
        trace = by_name.named(name, dl.tasks.Multiclass(2)).run(inputs, labels)
        assert losses[name] == trace.target_loss.mean()
    assert "auto" in call("compare", path).output
    done = call("compare", path, "--with", "worst")
    assert done.exit_code == 2 and "there is no learner 'worst'" in done.output


def test_the_learners_in_the_help_are_those_there_are():
    assert tuple(LEARNERS) == by_name.LEARNERS
    assert all(name in call("run", "--help").output for name in LEARNERS)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(shell):
    assert "_DRIFTLINE_COMPLETE" in call("completion", shell).output


def test_help_does_not_open_the_library():
    code = "import sys, driftline.app.cli; assert 'numpy' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


# -- the parts behind


def test_baselines_beside_a_naive_loop():
    labels = np.random.default_rng(0).integers(0, 3, 100)
    made = OfClasses()
    found = np.concatenate([made.losses(part) for part in np.split(labels, [1, 30, 64])])
    last, leader, counts = 0, 0, [0, 0, 0]
    for row, label in zip(found, labels, strict=True):
        assert row.tolist() == [float(label != last), float(label != leader)]
        last = label
        counts[label] += 1
        leader = label if counts[label] > counts[leader] else leader
    tags = np.random.default_rng(1).integers(0, 2, (50, 4))
    one, two = OfTags(), OfTags()
    parts = []
    for part in np.split(tags, [7, 20]):
        other = OfTags()
        if parts:
            other.resume(json.loads(json.dumps(two.state())))
        two = other
        parts.append(two.losses(part))
    assert np.array_equal(one.losses(tags), np.concatenate(parts))


@pytest.mark.parametrize("sizes", [[1] * 100, [100], [33, 33, 34]])
def test_a_journal_keeps_all_sums(tmp_path, sizes):
    values = np.random.default_rng(0).integers(0, 9, (100, 2)).astype(float)
    journal, start = Journal(["a", "b"], most=8), 0
    for size in sizes:
        journal.add(dict(zip("ab", values[start : start + size].T, strict=True)))
        start += size
    assert journal.span == 16 and journal.lengths.tolist() == [16] * 6 + [4]
    assert journal.sums("b").tolist() == [values[i : i + 16, 1].sum() for i in range(0, 100, 16)]
    again = Journal.load(journal.save(tmp_path / "journal"))
    assert np.array_equal(again.means("a"), journal.means("a"))


def test_files_that_were_edited_are_refused(tmp_path, model):
    from driftline.state import archive

    about, arrays = archive.read(model)
    for change in (
        {"table": {}},
        {"run": {"name": "auto"}},
        {"table": about["table"] | {"labels": about["table"]["labels"] | {"kind": "tags"}}},
        {"run": about["run"] | {"totals": [1.0]}},
    ):
        with pytest.raises(dl.InputError):
            load_model(archive.write(tmp_path / "edited", about | change, arrays))
    journal = model.parent / "journal.driftline"
    about, arrays = archive.read(journal)
    for change in ({"rounds": 10**9}, {"span": 0}, {"names": ["a"]}, {"kind": "Committee"}):
        with pytest.raises(dl.InputError):
            Journal.load(archive.write(tmp_path / "edited", about | change, arrays))


def test_memory_does_not_grow_with_the_table(tmp_path):
    def peak(rows):
        inputs, labels = data(rows, features=5)
        path = write_csv(tmp_path / "t.csv", inputs, labels)
        del inputs, labels
        tracemalloc.start()
        done = call("run", path, "--out", tmp_path / "out", "--no-certify", "--quiet", "--fresh")
        made = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert done.exit_code == 0, done.output
        return made

    peak(5_000)  # compiled code is loaded
    assert peak(40_000) < peak(20_000) + 500_000


def test_refused_files_leave_no_folders(tmp_path, model, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.csv").write_text("a,b,a\n1,2,3\n")
    assert call("run", "bad.csv").exit_code == 2
    assert call("predict", model, "bad.csv", "--out", "new/folder/p.csv").exit_code == 2
    assert not (tmp_path / "results").exists() and not (tmp_path / "new").exists()
    (tmp_path / "kept").mkdir()
    assert call("run", "bad.csv", "--out", "kept/a/b").exit_code == 2
    assert list((tmp_path / "kept").iterdir()) == []


def test_labels_that_came_later_and_differ_in_case_are_pointed_out(tmp_path):
    rows = [f"{i % 3},{'yes' if i % 3 else 'no'}" for i in range(5000)] + ["1,Yes"] * 5
    (tmp_path / "t.csv").write_text("\n".join(["a,y", *rows]) + "\n")
    done = call("run", tmp_path / "t.csv", "--out", tmp_path / "out")
    assert "labels 'yes' and 'Yes' differ only in case or blanks" in done.stdout
    assert "differ only" not in done.stderr


def test_the_example_runs_at_once(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = call("run", "--example")
    assert done.exit_code == 0 and "wrote weather.csv: 6,000 rows" in done.stderr
    summary = json.loads((tmp_path / "results/run/weather/summary.json").read_text())
    assert summary["label"] == ["rain"] and summary["beaten_by"] is None
    assert summary["mean_loss"]["learner"] < 0.5 * summary["mean_loss"]["majority"]
    for again in (["--example"], ["weather.csv"]):
        assert "Nothing to do: all 6,000 rows" in call("run", *again).output
    (tmp_path / "weather.csv").write_text("mine\n")
    done = call("run", "--example", "--fresh")
    assert done.exit_code == 2 and "is not the example" in done.output
    assert (tmp_path / "weather.csv").read_text() == "mine\n"
    assert "Missing argument 'FILE'" in call("run").output
    assert "leave the file out" in call("run", "weather.csv", "--example").output


# -- rows that cannot be predicted


def spoilt(tmp_path, lines, **options):
    path = tmp_path / "new.csv"
    path.write_text("\n".join(["x0,x1,x2,label", *lines]) + "\n")
    return path


def test_a_bad_row_does_not_keep_others_from_being_predicted(tmp_path, model):
    inputs, labels = data(60, seed=1)
    whole = write_csv(tmp_path / "whole.csv", inputs, labels)
    lines = whole.read_text().splitlines()[1:]
    expected = list(csv.DictReader(call("predict", model, whole).stdout.splitlines()))
    assert all(row["problem"] == "" for row in expected)
    bad = {
        4: (",0.5,1,u", "line 6, column x0: the value is missing"),
        5: ("1,abc,1,u", "line 7, column x1: expected a number, but saw 'abc'"),
        20: ("1,2,u", "line 22: expected 4 values, as in the header, but saw 3"),
        59: ("1,inf,1,u", "line 61, column x1: expected a number, but saw 'inf'"),
    }
    for row, (text, _) in bad.items():
        lines[row] = text
    lines[30] = lines[30].rsplit(",", 1)[0] + ","  # no label, which is no problem
    done = call("predict", model, spoilt(tmp_path, lines))
    assert done.exit_code == 3
    assert "4 of 60 rows could not be predicted" in done.stderr and "of 55 rounds" in done.stderr
    assert "--missing zero or --missing mean" in done.stderr
    made = list(csv.DictReader(done.stdout.splitlines()))
    assert [row["round"] for row in made] == [str(i) for i in range(1, 61)]
    for i, (row, other) in enumerate(zip(made, expected, strict=True)):
        if i in bad:
            assert row["problem"].startswith(bad[i][1])
            assert row["prediction"] == row["label"] == row["loss"] == ""
        elif i == 30:
            assert row == other | {"label": "", "loss": ""}
        else:
            assert row == other
    path = tmp_path / "p.csv"
    assert call("predict", model, tmp_path / "new.csv", "--out", path).exit_code == 3
    assert path.read_text() == done.stdout


def test_predict_can_fill_in_what_the_model_was_not_learned_with(tmp_path, model):
    inputs, _ = data()
    mean = float(inputs[:, 0].mean())
    lines = ["?,1,1,u", f"{mean!r},1,1,u", "0,1,1,u", "-INF,1,1,u"]
    path = spoilt(tmp_path, lines)
    for how, same in (("mean", 1), ("zero", 2)):
        done = call("predict", model, path, "--missing", how)
        assert done.exit_code == 0, done.output
        made = [row["prediction"] for row in csv.DictReader(done.stdout.splitlines())]
        assert made[0] == made[3] == made[same]
    loaded = load_model(model).encoder.columns
    assert loaded.missing == "refuse"  # the model stays as it is
    assert np.allclose(loaded.sums / loaded.counts, inputs.mean(axis=0))


def test_a_model_without_means_says_so(tmp_path):
    head = "@attribute a real\n@attribute b real\n@attribute y {u,v}\n@data\n"
    rows = "".join(f"{{{i % 2} {i + 1}, 2 {'uv'[i % 2]}}}\n" for i in range(40))
    (tmp_path / "t.arff").write_text(head + rows)
    assert call("run", tmp_path / "t.arff", "--out", tmp_path / "out").exit_code == 0
    model = tmp_path / "out" / "model.driftline"
    done = call("predict", model, tmp_path / "t.arff", "--missing", "mean")
    assert done.exit_code == 2 and "say --missing zero" in done.output


def test_a_file_of_bad_rows_alone_has_no_predictions(tmp_path, model):
    done = call("predict", model, spoilt(tmp_path, ["x,1,1,u", "1,1,1"]))
    assert done.exit_code == 3 and "2 of 2 rows could not be predicted" in done.stderr
    assert [row["prediction"] for row in csv.DictReader(done.stdout.splitlines())] == ["", ""]
