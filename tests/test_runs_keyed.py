"""Runs in which every key has a learner of its own."""

from __future__ import annotations

import csv
import json
import re
from functools import partial

import numpy as np
import pytest
from commands import call, predictions, write_csv
from naive import best_of_labels_so_far

import driftline as dl
from driftline.app import tables
from driftline.app.runs import load_model
from driftline.committee import named
from driftline.state import archive

ROWS, KEYS = 300, 9


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    monkeypatch.setattr(tables, "open_table", partial(tables.open_table, rows=40))


def stream(rows=ROWS, seed=0):
    """Return inputs, labels and keys: each key has its own weights, and some have few rows."""
    random = np.random.default_rng(seed)
    keys = np.minimum(random.geometric(0.25, rows), KEYS) - 1
    weights = random.standard_normal((KEYS, 3))
    inputs = random.standard_normal((rows, 3)).round(4)
    return inputs, ((inputs * weights[keys]).sum(axis=1) > 0).astype(int), keys


def with_keys(path, keys, name="who"):
    """Put a column of keys before the others."""
    lines = path.read_text().splitlines()
    cells = [name, *(f"k{key}" if isinstance(key, np.integer) else key for key in keys)]
    pairs = zip(cells, lines, strict=True)
    path.write_text("\n".join(f"{cell},{line}" for cell, line in pairs) + "\n")
    return path


@pytest.fixture
def table(tmp_path):
    inputs, labels, keys = stream()
    return with_keys(write_csv(tmp_path / "t.csv", inputs, labels), keys)


def good(done):
    assert done.exit_code == 0, done.output
    return done


def refused(done, *words):
    assert done.exit_code == 2, done.output
    for word in words:
        assert word in done.output, done.output


def keys_of(folder):
    with (folder / "keys.csv").open(newline="") as file:
        return {row["key"]: row for row in csv.DictReader(file)}


def test_every_key_has_the_learner_of_its_rows_alone(tmp_path, table):
    out, (inputs, labels, keys) = tmp_path / "out", stream()
    good(call("run", table, "--key", "who", "--start", "zero", "--out", out))
    made = predictions(out)
    assert [row["key"] for row in made] == [f"k{key}" for key in keys]
    totals = keys_of(out)
    for key in range(KEYS):
        mine = np.flatnonzero(keys == key)
        learner = named("fast", dl.tasks.Multiclass(2))
        trace = learner.run(inputs[mine], labels[mine])
        assert [made[i]["prediction"] for i in mine] == ["uv"[k] for k in trace.prediction]
        row = totals[f"k{key}"]
        assert int(row["rounds"]) == len(mine)
        assert float(row["mean_loss"]) == pytest.approx(trace.target_loss.mean(), abs=1e-6)
        before = [None, *labels[mine].tolist()]
        again = np.mean([(last or 0) != y for last, y in zip(before, labels[mine], strict=False)])
        assert float(row["no_change"]) == pytest.approx(again, abs=1e-6)
        most = np.mean(best_of_labels_so_far(labels[mine].tolist()) != labels[mine])
        assert float(row["majority"]) == pytest.approx(most, abs=1e-6)


def test_by_default_keys_begin_as_a_learner_over_all_is(tmp_path, table):
    out, (inputs, labels, keys) = tmp_path / "out", stream()
    good(call("run", table, "--key", "who", "--out", out, learner="auto"))
    fleet = dl.Keyed(named("fast", dl.tasks.Multiclass(2)), start="shared")
    trace = fleet.run([f"k{key}" for key in keys], inputs, labels)
    assert [row["prediction"] for row in predictions(out)] == ["uv"[k] for k in trace.prediction]
    one = named("fast", dl.tasks.Multiclass(2)).run(inputs, labels).target_loss
    told = json.loads((out / "summary.json").read_text())["mean_loss"]
    assert told["one for all"] == pytest.approx(one.mean())
    for key, row in keys_of(out).items():
        mine = keys == int(key[1:])
        assert float(row["one_for_all"]) == pytest.approx(one[mine].mean(), abs=1e-6)
    model = load_model(out / "model.driftline")
    assert model.learner.start == "shared" and model.rounds == ROWS
    assert model.loss == trace.target_loss.sum()


def test_the_summary_the_report_and_the_words(tmp_path, table):
    out = tmp_path / "out"
    done = good(call("run", table, "--key", "who", "--out", out))
    told = json.loads((out / "summary.json").read_text())
    assert told["key"] == "who" and told["keys"]["count"] == KEYS
    assert told["mean_loss"]["learner"] < min(
        told["mean_loss"][n] for n in ("no change", "majority")
    )
    worst, best = (told["keys"][what][0] for what in ("worst", "best"))
    assert worst["mean_loss"]["learner"] >= best["mean_loss"]["learner"]
    for words in (
        f"{KEYS} of 'who'",
        "worst",
        "typical",
        "one learner for all pays as little or less",
    ):
        assert words in done.output
    report = (out / "report.html").read_text()
    assert "<h2>Keys</h2>" in report and "never seen to rise" not in report
    shown = good(call("inspect", out / "model.driftline")).output
    assert "who" in shown and "shared" in shown


def test_keys_are_shown_as_text_and_never_as_markup_or_formulas(tmp_path):
    inputs, labels, keys = stream(60)
    names = np.array(["<b>x</b>", "=1+1", "a"], dtype=object)[keys % 3]
    table = with_keys(write_csv(tmp_path / "t.csv", inputs, labels), names)
    out = tmp_path / "out"
    good(call("run", table, "--key", "who", "--out", out))
    report = (out / "report.html").read_text()
    assert "<b>x</b>" not in report and "&lt;b&gt;x&lt;/b&gt;" in report
    assert {"'=1+1", "<b>x</b>", "a"} == {*keys_of(out)} == {row["key"] for row in predictions(out)}


@pytest.mark.parametrize("start", ["zero", "shared"])
def test_a_table_in_two_parts_is_one_table(tmp_path, start):
    inputs, labels, keys = stream()
    labels[200:220] = 2  # a class that comes up on the way
    whole = with_keys(write_csv(tmp_path / "t.csv", inputs, labels, "uvw"), keys)
    options = ("--key", "who", "--start", start)
    good(call("run", whole, *options, "--out", tmp_path / "whole"))
    lines, part = whole.read_text().splitlines(keepends=True), tmp_path / "part.csv"
    for end in (1 + 130, 1 + 130 + 1, len(lines)):
        part.write_text("".join(lines[:end]))
        good(call("run", part, *options, "--out", tmp_path / "part"))
    for name in ("predictions.csv", "keys.csv"):
        texts = [(tmp_path / folder / name).read_bytes() for folder in ("whole", "part")]
        assert texts[0] == texts[1]
    one, two = (archive.read(tmp_path / n / "model.driftline") for n in ("whole", "part"))
    for name, array in one[1].items():
        if not name.startswith("run."):
            np.testing.assert_array_equal(array, two[1][name])
    rest = with_keys(write_csv(tmp_path / "rest.csv", *stream(50, 1)[:2]), stream(50, 1)[2])
    model = tmp_path / "whole" / "model.driftline"
    good(call("run", rest, "--resume", model, "--out", tmp_path / "on"))
    assert load_model(tmp_path / "on" / "model.driftline").rounds == ROWS + 50


@pytest.mark.parametrize("kind", ["tags", "levels", "weights", "balance", "sparse", "doubt"])
def test_every_kind_of_rows_and_labels(tmp_path, kind):
    inputs, labels, keys = stream(120)
    options: tuple[str, ...] = ()
    if kind == "tags":
        lines = ["x,y,z,tag_1,tag_2"]
        lines += [f"{a},{b},{c},{y},{1 - y}" for (a, b, c), y in zip(inputs, labels, strict=True)]
        (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
        table, options = tmp_path / "t.csv", ("--label", "tag_*")
    elif kind == "sparse":
        lines = [
            f"{y} 1:{x[0]} 2:{x[1]} 3:{k}" for x, y, k in zip(inputs, labels, keys, strict=True)
        ]
        (tmp_path / "t.svm").write_text("\n".join(lines) + "\n")
        refused(call("run", tmp_path / "t.svm", "--key", "who", "--features", "4"), "who")
        return
    else:
        if kind == "weights":
            inputs[:, 2] = np.abs(inputs[:, 2])
            options = ("--weight", "x2")
        options = {
            "levels": ("--task", "levels", "--levels", "u,v"),
            "balance": ("--balance",),
            "doubt": ("--abstain", "0.2"),
        }.get(kind, options)
        table = write_csv(tmp_path / "t.csv", inputs, labels)
    with_keys(table, keys)
    out = tmp_path / "out"
    good(call("run", table, "--key", "who", *options, "--out", out))
    model = load_model(out / "model.driftline")
    assert model.rounds == 120 and len(model.learner) == len({*keys.tolist()})
    weight, *sums = model.scores.sums[: len(model.scores)].sum(axis=0)
    told = json.loads((out / "summary.json").read_text())
    assert told["weight"] == pytest.approx(weight)
    for mean, total in zip(told["mean_loss"].values(), sums, strict=True):
        assert mean == pytest.approx(total / weight)


def test_rows_without_a_label_are_predicted_by_their_key(tmp_path):
    inputs, labels, keys = stream(160)
    table = with_keys(write_csv(tmp_path / "t.csv", inputs, labels), keys)
    lines = table.read_text().splitlines()
    for row in range(100, 161, 7):
        lines[row] = lines[row].rsplit(",", 1)[0] + ","
    table.write_text("\n".join(lines) + "\n")
    out = tmp_path / "out"
    good(call("run", table, "--key", "who", "--unlabelled", "predict", "--out", out))
    rows = [row for row in predictions(out) if not row["label"]]
    assert len(rows) == 9 and all(row["key"] and row["prediction"] for row in rows)


def test_predict_takes_the_learner_of_each_key_and_a_start_for_new_ones(tmp_path, table):
    out = tmp_path / "out"
    good(call("run", table, "--key", "who", "--out", out))
    inputs, labels, keys = stream(40, seed=3)
    names = np.array([f"k{key}" for key in keys], dtype=object)
    names[::5] = "new"
    more = with_keys(write_csv(tmp_path / "more.csv", inputs, labels), names)
    done = good(call("predict", out / "model.driftline", more, "--out", tmp_path / "p.csv"))
    fleet = load_model(out / "model.driftline").learner
    wanted = ["uv"[fleet.predict(k, x)] for k, x in zip(names.tolist(), inputs, strict=True)]
    with (tmp_path / "p.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["prediction"] for row in rows] == wanted and "mean loss" in done.output
    assert [row["key"] for row in rows] == names.tolist()
    lines = more.read_text().splitlines()
    lines[3] = "," + lines[3].split(",", 1)[1]
    more.write_text("\n".join(lines) + "\n")
    done = call("predict", out / "model.driftline", more, "--out", tmp_path / "p.csv")
    assert done.exit_code != 0 and "the key is missing" in done.output


def test_a_model_of_keys_in_python(tmp_path, table):
    out, (inputs, labels, keys) = tmp_path / "out", stream()
    good(call("run", table, "--key", "who", "--out", out))
    rows = [
        {"who": f"k{k}", "x0": x[0], "x1": x[1], "x2": x[2], "label": "uv"[y]}
        for x, y, k in zip(inputs, labels, keys, strict=True)
    ]
    model = dl.TableModel.new(rows, label="label", key="who")
    made = model.learn(rows)
    assert made == [row["prediction"] for row in predictions(out)]
    assert model.key == "who" and model.rounds == ROWS and "who" in model.columns
    loaded = dl.load(out / "model.driftline")
    assert loaded.predict(rows[:30]) == model.predict(rows[:30])
    assert loaded.learn(rows[0]) == model.learn(rows[0])
    assert loaded.guarantee().paid == model.guarantee().paid == model.paid
    again = dl.load(model.save(tmp_path / "again"))
    assert again.predict(rows[:30]) == model.predict(rows[:30])
    assert again.baselines_paid == model.baselines_paid
    before = model.to_saved()
    for wrong in (
        lambda: model.predict_proba(rows[0]),
        lambda: model.ask(rows[0]),
        lambda: model.explain(),
        lambda: model.alarms,
        lambda: model.learn({"x0": 1.0, "x1": 1.0, "x2": 1.0, "label": "u"}),
    ):
        with pytest.raises(dl.InputError):
            wrong()
    assert repr(before[0]) == repr(model.to_saved()[0])


def test_wrong_commands(tmp_path, table):
    out = ("--out", tmp_path / "out")
    refused(call("run", table, "--key", "whom", *out), "has no column 'whom'", "who")
    refused(call("run", table, "--key", "label", "--label", "label", *out), "label")
    refused(call("run", table, "--start", "zero", *out), "--key")
    for option in (["--proba"], ["--trace"], ["--certify"], ["--delay", "3"], ["--sets", "0.9"]):
        refused(call("run", table, "--key", "who", *option, *out), option[0], "--key")
    refused(call("run", table, "--key", "who", "--weight", "who", *out), "it can be one only")
    assert not (tmp_path / "out").exists() or not list((tmp_path / "out").iterdir())
    lines = table.read_text().splitlines()
    lines[140] = "," + lines[140].split(",", 1)[1]
    table.write_text("\n".join(lines) + "\n")
    done = call("run", table, "--key", "who", *out)
    refused(done, "the key is missing", "line 141")
    assert load_model(tmp_path / "out" / "model.driftline").rounds == 120
    model = tmp_path / "out" / "model.driftline"
    refused(call("run", table, "--resume", model, "--key", "who"), "--key cannot be given")


def test_files_that_were_edited_are_refused(tmp_path, table):
    out = tmp_path / "out"
    good(call("run", table, "--key", "who", "--out", out))
    about, arrays = archive.read(out / "model.driftline")
    half = {name: array[:-1] for name, array in arrays.items() if name.startswith("scores.")}
    changes = [(about, arrays | {name: array}) for name, array in half.items()] + [
        (about, arrays | {"scores.sums": -arrays["scores.sums"]}),
        (about, arrays | {"scores.risks": arrays["scores.risks"] * np.nan}),
        (about, {k: a for k, a in arrays.items() if k != "scores.rounds"}),
        (about | {"scores": about["scores"][1:]}, arrays),
        (about | {"score keys": ["x", *about["score keys"][1:]]}, arrays),
        (about | {"score keys": ["k0"] * KEYS}, arrays),
        (about | {"table": about["table"] | {"key": None}}, arrays),
        (about | {"keys": about["keys"][1:]}, arrays),
    ]
    for told, held in changes:
        with pytest.raises(dl.InputError):
            load_model(archive.write(tmp_path / "edited", told, held))


def test_keys_that_are_alike_are_said_to_be(tmp_path):
    inputs, labels, keys = stream()
    labels = (inputs[:, 0] > 0).astype(int)
    table = with_keys(write_csv(tmp_path / "t.csv", inputs, labels), keys)
    done = good(call("run", table, "--key", "who", "--out", tmp_path / "out"))
    assert "one learner for all keys does as well or better" in done.output
    assert "leave --key out" in done.output


def test_weights_count_for_baselines_too(tmp_path, table):
    random, out = np.random.default_rng(3), tmp_path / "out"
    weights = random.choice([0.0, 0.5, 2.0], ROWS)
    lines = table.read_text().splitlines()
    cells = ["count", *weights.tolist()]
    table.write_text("\n".join(f"{c},{line}" for c, line in zip(cells, lines, strict=True)) + "\n")
    good(call("run", table, "--key", "who", "--weight", "count", "--out", out))
    with table.open(newline="") as file:
        rows = list(csv.DictReader(file))
    model = dl.TableModel.new(rows, label="label", key="who", weight="count")
    for start in range(0, ROWS, 70):
        model.learn(rows[start : start + 70])
    summary = json.loads((out / "summary.json").read_text())
    means = {name: paid / weights.sum() for name, paid in model.baselines_paid.items()}
    assert means == pytest.approx({name: summary["mean_loss"][name] for name in means})
    again = load_model(model.save(tmp_path / "model"))
    wanted = load_model(out / "model.driftline")
    assert again.scores.sums == pytest.approx(wanted.scores.sums)
    alone = dl.TableModel.new(rows, label="label", ignore=["who"], weight="count", learner="fast")
    alone.learn(rows)
    labels = np.array([row["label"] for row in rows])
    last = np.r_[alone.classes[:1], labels[:-1]]
    paid = float(weights @ (labels != last))
    assert alone.baselines_paid["no change"] == pytest.approx(paid)


def test_a_row_that_says_nothing_has_a_key(table):
    with table.open(newline="") as file:
        model = dl.TableModel.new(list(csv.DictReader(file)), label="label", key="who")
    assert model.predict(model.blank_row) in ("u", "v")
    assert not len(model.learner)


def test_queries_of_index_value_pairs_may_be_keys(tmp_path):
    lines = [f"{i % 2} qid:{i // 20} 1:{i % 2 - 0.5} 3:{i * 7 % 5}" for i in range(80)]
    (tmp_path / "t.svm").write_text("\n".join(lines) + "\n")
    out = tmp_path / "out"
    good(call("run", tmp_path / "t.svm", "--key", "qid", "--out", out))
    assert {key: row["rounds"] for key, row in keys_of(out).items()} == dict.fromkeys("0123", "20")
    told = good(call("inspect", out / "model.driftline")).output
    assert "key        qid" in told and "left out" not in told
    begin = ("--start", "shared", "--fresh", "--out", out)
    done = call("run", tmp_path / "t.svm", "--key", "qid", *begin)
    refused(done, "--start shared is for dense rows", "say --start zero")


def test_what_was_seen_in_place_of_a_key(tmp_path, table):
    lines = table.read_text().splitlines()
    lines[3] = "NA," + lines[3].split(",", 1)[1]
    table.write_text("\n".join(lines) + "\n")
    done = call("run", table, "--key", "who", "--out", tmp_path / "out")
    refused(done, "line 4, column who: the key is missing: 'NA' stands for no value")


def test_a_key_is_nothing_else(tmp_path, table):
    out = ("--out", tmp_path / "out")
    done = call("run", table, "--key", "who", "--label", "who,label", *out)
    refused(done, "'who' is named by --key, and named by --label")
    done = call("run", table, "--key", "who", "--text", "who", *out)
    refused(done, "'who' is named by --key, and named by --text")
    done = call("run", table, "--key", "who", "--start", "shared", "--learner", "paper", *out)
    refused(done, "--start shared", "not for paper", "say --start zero")
    assert not (tmp_path / "out").exists()


def test_a_run_that_goes_on_elsewhere_says_since_when_keys_are_told(tmp_path, table):
    lines = table.read_text().splitlines(keepends=True)
    (tmp_path / "a.csv").write_text("".join(lines[:150]))
    (tmp_path / "b.csv").write_text("".join([lines[0], *lines[150:]]))
    first = good(call("run", tmp_path / "a.csv", "--key", "who", "--out", tmp_path / "a"))
    assert "since the first" not in first.output
    model = tmp_path / "a" / "model.driftline"
    done = good(call("run", tmp_path / "b.csv", "--resume", model, "--out", tmp_path / "b"))
    assert "rounds since the first of the model" in done.output


def test_a_key_is_shown_in_one_line(tmp_path, table):
    table.write_text(re.sub(r"k(\d),", r'"k\n\1",', table.read_text()))
    done = good(call("run", table, "--key", "who", "--out", tmp_path / "out"))
    assert re.search(r"k\?\d ", done.output) and "k\n0" in keys_of(tmp_path / "out")


def test_there_is_no_way_to_a_trace_of_keys(tmp_path, table):
    good(call("run", table, "--key", "who", "--out", tmp_path / "out"))
    done = call("certify", tmp_path / "out")
    assert done.exit_code == 1 and "rounds of keys are not kept" in done.output
    assert "--trace" not in done.output and "summary.json" in done.output


def test_losses_of_other_members_are_refused(tmp_path, table):
    good(call("run", table, "--key", "who", "--out", tmp_path / "out"))
    about, arrays = archive.read(tmp_path / "out" / "model.driftline")
    edited = arrays | {"scores.risks": arrays["scores.risks"][:, :3]}
    with pytest.raises(dl.InputError, match="3 losses a key are not of 7 members"):
        load_model(archive.write(tmp_path / "edited", about, edited))


def test_keys_and_labels_with_half_a_character(tmp_path):
    keys, classes = ["\\ud800x", "a\\u0000b", "q\\u2028q"], ["u\\udfff", "v"]
    lines = [
        f'{{"who": "{keys[i % 3]}", "a": {i % 7}, "y": "{classes[i % 2]}"}}' for i in range(60)
    ]
    table, out = tmp_path / "t.jsonl", tmp_path / "out"
    table.write_text("\n".join(lines) + "\n")
    good(call("run", table, "--label", "y", "--key", "who", "--out", out))
    content = (out / "keys.csv").read_bytes().decode("utf-8", "surrogatepass")
    assert {row["key"] for row in csv.DictReader(content.split("\n"))} >= {"\ud800x"}
    assert "?x" in (out / "report.html").read_text()
    good(call("predict", out / "model.driftline", table, "--out", tmp_path / "p.csv"))
    content = (tmp_path / "p.csv").read_bytes().decode("utf-8", "surrogatepass")
    assert content.count("\ud800x") == 20 and content.count("u\udfff") >= 30
    assert "\\ud800x" in good(call("predict", out / "model.driftline", table)).output
    assert len(load_model(out / "model.driftline").learner) == 3
