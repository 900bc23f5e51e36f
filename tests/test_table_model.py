"""Models of tables in Python: what ``driftline run`` has learned, asked by names."""

import copy
import csv
import dataclasses
import io
import json
import pickle
import sys
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from commands import call

import driftline as dl
from driftline.app.service.served import TableServed
from driftline.errors import InputError

pytestmark = pytest.mark.usefixtures("no_ids")

PLANS = ["free", "pro", "team"]


class Frame:
    """As much of a data frame as is needed: names of columns, and the columns by name."""

    def __init__(self, rows):
        self.columns = list(rows[0])
        self._cells = {name: [row[name] for row in rows] for name in self.columns}

    def __getitem__(self, name):
        return self._cells[name]

    def __len__(self):
        return len(self._cells[self.columns[0]])


def people(count=120, seed=0):
    random = np.random.default_rng(seed)
    rows = []
    for _ in range(count):
        age, plan = int(random.integers(18, 80)), PLANS[random.integers(3)]
        usage = round(float(random.normal()), 3) if random.random() < 0.9 else None
        rows.append({"age": age, "plan": plan, "usage": usage, "active": bool(age % 2)})
    return rows


def labelled(kind, rows):
    """Add labels to rows, as a table has them; return the columns and the options of the label."""
    for i, row in enumerate(rows):
        young = row["age"] < 45
        if kind == "classes":
            row["will"] = "stay" if young or row["plan"] == "pro" else "leave"
        elif kind == "levels":
            row["will"] = 1 + young + (row["plan"] == "pro")
        elif kind == "tags":
            row |= {"tag_young": int(young), "tag_pro": int(row["plan"] == "pro")}
        else:
            row |= {"query": f"q{i // 4}", "grade": int(young) + int(row["plan"] == "pro")}
    return {
        "classes": {"label": "will"},
        "levels": {"label": "will", "task": "levels"},
        "tags": {"label": "tag_*", "task": "tags"},
        "ranking": {"label": "grade", "task": "ranking", "query": "query"},
    }[kind]


def write(path, rows):
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        for row in rows:
            cells = {k: str(v).lower() if isinstance(v, bool) else v for k, v in row.items()}
            writer.writerow(cells)
    return path


def run(tmp_path, kind, learner="fast"):
    """Return the model that the command line makes of a table, and its rows."""
    rows = people()
    options = labelled(kind, rows)
    words = [word for name, value in options.items() for word in (f"--{name}", value)]
    table = write(tmp_path / "people.csv", rows)
    out = tmp_path / "out"
    done = call("run", table, *words, "--missing", "mean", "--out", out, "--learner", learner)
    assert done.exit_code == 0, done.output
    return dl.load(out / "model.driftline"), rows, out / "model.driftline"


def saved(model, tmp_path):
    """Return all that a model is."""
    return model.save(tmp_path / "now").read_bytes()


every_kind = pytest.mark.parametrize("kind", ["classes", "levels", "tags", "ranking"])


@every_kind
def test_python_predicts_what_the_command_line_predicts(tmp_path, kind):
    model, rows, path = run(tmp_path, kind)
    assert isinstance(model, dl.TableModel) and model.task == kind
    new = people(40, seed=1)
    labelled(kind, new)
    done = call("predict", path, write(tmp_path / "new.csv", new), "--quiet")
    assert done.exit_code == 0, done.output
    said = [row["prediction"] for row in csv.DictReader(io.StringIO(done.output))]
    made = model.predict(new)
    if kind == "tags":
        assert said == [";".join(tags) for tags in made]
    elif kind == "ranking":
        assert " ".join(said).split() == [str(rank) for rank in made]
    else:
        assert said == made


@every_kind
def test_dicts_frames_and_arrays_say_the_same(tmp_path, kind):
    model, rows, _ = run(tmp_path, kind)
    plain = [[row[name] for name in model.columns] for row in rows]
    made = model.predict(rows)
    assert made == model.predict(Frame(rows)) == model.predict(plain)
    assert made == model.predict(np.array(plain, dtype=object))
    if kind != "ranking":
        assert made == [model.predict(row) for row in rows]
        assert made[3] == model.predict(plain[3])
        shuffled = [dict(sorted(row.items())) for row in rows]
        assert made == model.predict(shuffled)


@every_kind
def test_asking_changes_nothing(tmp_path, kind):
    model, rows, _ = run(tmp_path, kind)
    before = saved(model, tmp_path)
    model.predict(rows)
    if kind != "ranking":
        model.predict_proba(rows)
        model.explain(rows)
        str(model.explain())
    assert saved(model, tmp_path) == before


@pytest.mark.parametrize("kind", ["classes", "levels", "tags"])
@pytest.mark.parametrize("learner", ["fast", "auto"])
def test_probabilities_are_those_of_names_and_agree_with_predictions(tmp_path, kind, learner):
    model, rows, _ = run(tmp_path, kind, learner)
    chances = model.predict_proba(rows)
    assert chances[0] == pytest.approx(model.predict_proba(rows[0]), rel=1e-12)
    for own, said in zip(chances, model.predict(rows), strict=True):
        assert list(own) == model.classes and all(0.0 <= p <= 1.0 for p in own.values())
        if kind == "tags":
            assert said == [tag for tag, p in own.items() if p > 0.5]
        else:
            assert sum(own.values()) == pytest.approx(1.0) and max(own, key=own.get) == said


@every_kind
def test_learning_in_python_goes_on_as_the_command_line_does(tmp_path, kind):
    model, rows, path = run(tmp_path, kind)
    more = people(40, seed=2)
    labelled(kind, more)
    if kind == "ranking":
        for row in more:
            row["query"] = f"more {row['query']}"
    table = write(tmp_path / "more.csv", more)
    done = call("run", table, "--resume", path, "--out", tmp_path / "on")
    assert done.exit_code == 0, done.output
    with (tmp_path / "on" / "predictions.csv").open(newline="") as file:
        said = [row["prediction"] for row in csv.DictReader(file)]
    made = model.learn(more)
    shown = {"tags": [";".join(own) for own in made] if kind == "tags" else []}.get(kind, made)
    assert (" ".join(said).split() if kind == "ranking" else said) == list(map(str, shown))
    again = dl.load(tmp_path / "on" / "model.driftline")
    assert model.rounds == again.rounds
    assert model.predict(rows) == again.predict(rows)
    assert np.array_equal(model.learner.weights, again.learner.weights)


def test_row_by_row_is_all_at_once(tmp_path):
    model, rows, path = run(tmp_path, "classes")
    one, two = dl.load(path), dl.load(path)
    more = people(30, seed=3)
    labels = ["stay" if row["age"] < 45 else "leave" for row in more]
    apart = [one.learn(row, label) for row, label in zip(more, labels, strict=True)]
    assert apart == two.learn(more, labels) == model.learn(Frame(more), np.array(labels))
    assert one.predict_proba(rows) == two.predict_proba(rows)
    one.learn([], [])
    assert one.rounds == two.rounds == len(rows) + 30 and one.predict([]) == []


@every_kind
def test_tickets_told_at_once_are_rows_learned_from(tmp_path, kind):
    _, rows, path = run(tmp_path, kind)
    one, two = dl.load(path), dl.load(path)
    label = {"classes": "will", "levels": "will", "tags": None, "ranking": "grade"}[kind]
    if kind == "ranking":
        parts = [[row for row in rows if row["query"] == name] for name in ("q0", "q1")]
        parts = parts if all(parts) else [rows[:4], rows[4:7]]
    else:
        parts = rows[:12]
    for part in parts:
        if kind == "ranking":
            truth = [row[label] for row in part]
            part = [row | {"query": "asked"} for row in part]
        elif kind == "tags":
            truth = [
                name for name in part if name.startswith("tag_") and part[name] in (1, "1", True)
            ]
        else:
            truth = part[label]
        bare = (
            [{k: v for k, v in row.items() if k != label} for row in part]
            if kind == "ranking"
            else part
        )
        ticket = dl.TableTicket.from_bytes(one.ask(bare).to_bytes())
        before = two.predict(bare)
        assert ticket.prediction == before
        one.tell(ticket, truth)
        two.learn(bare, truth)
    assert one.rounds == two.rounds and one.predict(rows) == two.predict(rows)
    assert np.array_equal(one.learner.weights, two.learner.weights)


def test_labels_of_a_table_come_in_any_order(tmp_path):
    model, rows, _ = run(tmp_path, "classes")
    rounds = model.rounds
    tickets = model.ask(rows[:6])
    kept = [ticket.to_bytes() for ticket in tickets]
    model.tell(tickets[4], "never seen")
    assert "never seen" in model.classes and model.outstanding == 5
    again = dl.load(model.save(tmp_path / "again"))
    for one, ticket in ((model, tickets[1]), (again, dl.TableTicket.from_bytes(kept[1]))):
        one.tell(ticket, "stay")
        one.forget(before=one.ask(rows[7]))
        assert one.rounds == rounds + 2 and one.outstanding == 1
    assert saved(model, tmp_path) == saved(again, tmp_path)
    for wrong in (tickets[1], "no ticket", None, tickets[1].ticket):
        with pytest.raises(dl.InputError):
            model.tell(wrong, "stay")
    with pytest.raises(dl.InputError):
        model.tell(model.ask(rows[0]), None)
    assert saved(model, tmp_path) != saved(again, tmp_path)  # by the ticket alone
    model.forget(before=10**6)
    with pytest.raises(dl.InputError):
        dl.TableTicket.from_bytes(tickets[0].ticket.to_bytes())


def test_a_refused_ticket_brings_no_new_class(tmp_path):
    model, rows, _ = run(tmp_path, "classes")
    ticket = model.ask(rows[0])
    model.forget(ticket)
    before = saved(model, tmp_path)
    with pytest.raises(dl.InputError):
        model.tell(ticket, "a new class")
    assert saved(model, tmp_path) == before and "a new class" not in model.classes


def test_a_new_class_comes_at_any_time(tmp_path):
    model, rows, _ = run(tmp_path, "classes")
    model.learn(rows[0], "never seen")
    assert "never seen" in model.classes and "never seen" in model.predict_proba(rows[0])
    again = dl.load(model.save(tmp_path / "again"))
    assert again.classes == model.classes and again.predict(rows) == model.predict(rows)


def test_threads_may_predict_and_save_while_one_learns(tmp_path):
    """Classes come all the time: names and learner must be of the same moment."""
    rows = [row | {"usage": 1.0} for row in people(60)]
    labelled("classes", rows)
    model = dl.TableModel.new(rows, label="will", learner="fast")
    model.learn(rows)
    learned, switch = threading.Event(), sys.getswitchinterval()

    def again(do):
        while not learned.is_set():
            do()

    def reload():
        dl.load(model.save(tmp_path / "now")).predict(rows[:3])

    asked = [lambda: model.predict_proba(rows[:3]), lambda: model.predict(rows[:3]), reload]
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor() as pool:
            waiting = [pool.submit(again, do) for do in asked]
            try:
                for i in range(40):
                    model.learn(rows[i % 60], f"class {i}")
            finally:
                learned.set()
            for done in waiting:
                done.result()
    finally:
        sys.setswitchinterval(switch)
    assert model.rounds == dl.load(model.save(tmp_path / "now")).rounds == 100


@pytest.mark.parametrize("way", [copy.copy, copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_copies_go_on_by_themselves(tmp_path, way):
    model, rows, _ = run(tmp_path, "classes")
    before, other = saved(model, tmp_path), way(model)
    assert saved(other, tmp_path) == before
    other.learn(rows[0], "never seen")
    assert saved(model, tmp_path) == before
    model.learn(rows[0], "never seen")
    assert saved(model, tmp_path) == saved(other, tmp_path)


def test_a_model_of_one_class_answers_and_meets_others(tmp_path):
    rows = [{"x": float(i), "will": "stay"} for i in range(30)]
    model = dl.TableModel.new(rows, "will", learner="fast")
    assert set(model.learn(rows)) <= {"stay", "(other)"}
    assert model.predict(rows[0]) == "stay" and model.predict_proba(rows[0]) == {"stay": 1.0}
    assert set(model.explain(rows).labels) == {"stay", "(other)"}
    model = dl.load(model.save(tmp_path / "one"))
    for label in ("leave", "return"):
        model.learn({"x": 3.0}, label)
    chances = model.predict_proba(rows[:2])[1]
    assert list(chances) == ["stay", "leave", "return"]
    assert sum(chances.values()) == pytest.approx(1.0)


def test_tags_are_given_as_names_or_flags(tmp_path):
    rows = people(50)
    labelled("tags", rows)
    ways = [
        lambda row: [n for n in ("tag_young", "tag_pro") if row[n]],
        lambda row: [row["tag_young"], row["tag_pro"]],
        lambda row: {"tag_young": row["tag_young"], "tag_pro": row["tag_pro"]},
        lambda row: np.array([row["tag_young"], row["tag_pro"]]),
    ]
    bare = [{k: v for k, v in row.items() if not k.startswith("tag_")} for row in rows]
    made = []
    for way in ways:
        model = dl.TableModel.new(rows, label="tag_*", learner="fast", missing="mean")
        model.learn(bare, [way(row) for row in rows])
        made.append(saved(model, tmp_path))
    assert len(set(made)) == 1
    with pytest.raises(InputError, match="'tag_old' is none of the tags tag_young, tag_pro"):
        model.learn(bare[0], ["tag_old"])


def test_a_table_of_index_value_pairs_takes_arrays(tmp_path):
    from scipy.sparse import coo_array, csr_array

    random = np.random.default_rng(0)
    X = random.standard_normal((80, 4)) * (random.random((80, 4)) < 0.5)
    y = (X[:, 0] > 0).astype(int)
    lines = [
        f"{label} " + " ".join(f"{j + 1}:{v!r}" for j, v in enumerate(x.tolist()) if v)
        for x, label in zip(X, y, strict=True)
    ]
    (tmp_path / "t.svm").write_text("\n".join(lines) + "\n")
    done = call("run", tmp_path / "t.svm", "--out", tmp_path / "out")
    assert done.exit_code == 0, done.output
    model = dl.load(tmp_path / "out" / "model.driftline")
    width = len(model.columns)
    rows = np.pad(X, [(0, 0), (width - 4, 0)])[:, :width] if width > 4 else X
    made = model.predict(csr_array(rows))
    assert made == model.predict(rows) == [model.predict(row) for row in rows]
    assert set(made) <= {"0", "1"} and model.learn(rows[0], 1) in ("0", "1")
    with pytest.raises(InputError, match=f"rows have 2 features, but the model knows {width}"):
        model.predict(np.zeros((1, 2)))
    for odd in ([{"a": 1.0}], ["1:2.0"], [None], coo_array(np.zeros(width))):
        with pytest.raises(InputError, match="inputs must be real numbers"):
            model.predict(odd)


def test_data_frames_have_a_cell_for_every_row():
    rows = people(30)
    labelled("classes", rows)
    model = dl.TableModel.new(rows, "will", learner="fast", missing="mean")
    model.learn(rows)
    uneven = Frame(rows)
    uneven["plan"].pop()
    with pytest.raises(InputError, match="column 'plan' has 29 cells, but there are 30 rows"):
        model.predict(uneven)


GOOD = {"age": 3, "plan": "pro", "usage": 1.0, "active": True}
REFUSED = [
    ({"age": 3}, "stay", "column usage: the value is missing$|column plan: the value is missing$"),
    ({"age": 3, "plan": "pro", "usage": 1.0, "active": True, "Plan": 1}, "stay", "did you mean"),
    ({"age": "old", "plan": "pro", "usage": 1.0, "active": True}, "stay", "expected a number"),
    ({"age": 3, "plan": "pro", "usage": np.inf, "active": True}, "stay", "expected a number"),
    ({"age": 3, "plan": "pro", "usage": 1.0, "active": "perhaps"}, "stay", "true or false"),
    ({"age": 3, "plan": "pro", "usage": 1.0, "active": True}, None, "there are no labels"),
    ({"age": 3, "plan": "pro", "usage": 1.0, "active": True}, "", "the label is missing"),
    ([1.0, 2.0], "stay", "row 0 has 2 values, but there are 4 columns: age, plan, usage, active"),
    ([[3, "pro", 1.0, True]], ["stay", "stay"], "there are 1 rows, but 2 labels"),
    ([[3, "pro", 1.0, True]], "stay", "expected a list of labels"),
    (None, "stay", "expected a dict, a list of dicts, a data frame or an array"),
    ("age", "stay", "expected a dict"),
    ([{"age": 3}, 4], ["stay", "stay"], "row 1 is 4: expected a dict"),
    (GOOD, ["stay"], r"column will: expected a text or a number, but saw \['stay'\]"),
    (GOOD, np.array(["stay"]), "expected a text or a number, but saw array"),
    (GOOD, b"stay", "expected a text or a number"),
    ([GOOD, GOOD], np.array([["stay"], ["leave"]]), "row 0, column will: expected a text"),
    (GOOD | {"plan": ["pro"]}, "stay", "column plan: expected a text or a number"),
    (GOOD | {"age": 10**400}, "stay", "column age: a whole number of 1329 bits is too large"),
    (GOOD, 2**1024, "column will: a whole number of 1025 bits is too large"),
    ([GOOD, {1: 2}, {"1": 2}], ["stay"] * 3, "both 1 and '1' are names of columns"),
]


@pytest.mark.parametrize("rows, label, words", REFUSED)
def test_what_cannot_be_learned_is_refused_and_changes_nothing(tmp_path, rows, label, words):
    known = [row | {"usage": 1.0} for row in people(30)]
    labelled("classes", known)
    model = dl.TableModel.new(known, label="will", learner="fast")
    model.learn(known)
    before = saved(model, tmp_path)
    with pytest.raises(InputError, match=words) as caught:
        model.learn(rows, label)
    assert "--" not in str(caught.value)
    assert saved(model, tmp_path) == before


def test_rows_that_are_refused_bring_no_new_class(tmp_path):
    rows = [row | {"usage": 1.0} for row in people(60)]
    labelled("classes", rows)
    model = dl.TableModel.new(rows, label="will")
    model.learn(rows)
    before = saved(model, tmp_path)
    huge = [rows[0] | {"usage": 1e200}, rows[1] | {"usage": -1e308}]
    with pytest.raises(InputError, match="for cells below 1e"):
        model.learn(huge, ["never seen", "stay"])
    assert model.learner.task.dim == len(model.classes) == 2
    assert saved(model, tmp_path) == before
    assert dl.load(tmp_path / "now").predict(rows) == model.predict(rows)


def test_new_refuses_what_is_no_option_and_no_rows():
    with pytest.raises(InputError, match="options are label, task"):
        dl.TableModel.new(people(5), label="age", colour="red")
    with pytest.raises(InputError, match="give some"):
        dl.TableModel.new([], label="age")
    with pytest.raises(InputError, match="did you mean 'plan'"):
        dl.TableModel.new(people(5), label="plann")


@pytest.mark.parametrize(
    "options, words",
    [
        ({"label": 3}, "label must be a list of texts, not 3"),
        ({"label": None}, "label must be a list of texts"),
        ({"ignore": 3}, "ignore must be a list of texts"),
        ({"levels": "1,2"}, "levels must be a list of texts, not '1,2'"),
        ({"task": "sorting"}, "a task is one of classes, tags, levels, ranking; not 'sorting'"),
        ({"query": 5}, "query must be a text, not 5"),
        ({"missing": 0}, "missing must be a text, not 0"),
        ({"query": "plan", "highest": "4"}, "the highest grade is a whole number from 1"),
    ],
)
def test_new_refuses_options_of_another_kind(options, words):
    rows = people(20)
    labelled("classes", rows)
    with pytest.raises(InputError, match=words):
        dl.TableModel.new(rows, **({"label": "will", "missing": "mean"} | options))


def test_an_option_for_several_columns_takes_one_by_name():
    rows = people(20)
    labelled("levels", rows)
    for row in rows:
        row["id"] = row["age"]
    model = dl.TableModel.new(rows, "will", ignore="id", missing="mean", levels=[1, 2, 3])
    assert "id" not in model.columns and model.classes == ["1", "2", "3"]


def test_rankings_have_no_probabilities(tmp_path):
    model, rows, _ = run(tmp_path, "ranking")
    with pytest.raises(InputError, match="a ranking has no probabilities"):
        model.predict_proba(rows)
    ranks = model.predict(rows[:8])
    assert sorted(ranks[:4]) == sorted(ranks[4:]) == [0, 1, 2, 3]


def test_explanations_name_columns_and_classes(tmp_path):
    model, rows, _ = run(tmp_path, "classes")
    told = model.explain()
    assert told.order[0] in ("age", "plan=pro", "plan=free", "plan=team")
    assert set(told.labels) == {"leave", "stay"}
    assert json.dumps(str(model.explain(rows)))


def test_data_frames_of_pandas(tmp_path):
    pandas = pytest.importorskip("pandas")
    rows = people(60)
    labelled("classes", rows)
    frame = pandas.DataFrame(rows).astype({"plan": "category"})
    frame["some"] = pandas.array([1, None, 3] * 20, dtype="Int64")
    frame["flag"] = pandas.array([True, False, None] * 20, dtype="boolean")
    model = dl.TableModel.new(frame, label="will", learner="fast", missing="mean")
    model.learn(frame)
    assert model.predict(frame) == [model.predict(row) for _, row in frame.iterrows()]
    kinds = {c.name: c.kind for c in model._model.encoder.columns.columns}
    assert (kinds["some"], kinds["flag"], kinds["plan"]) == ("number", "flag", "text")


def bare_and_truth(kind, rows):
    """Return rows without labels, or queries of a ranking, and what a program tells of each."""
    names = ("will", "grade", "tag_young", "tag_pro")
    bare = [{k: v for k, v in row.items() if k not in names} for row in rows]
    if kind == "tags":
        return bare, [[n for n in names if row.get(n)] for row in rows]
    if kind == "ranking":
        cuts = range(0, len(rows), 4)
        queries = [[row | {"query": "asked"} for row in bare[i : i + 4]] for i in cuts]
        return queries, [[row["grade"] for row in rows[i : i + 4]] for i in cuts]
    return bare, [row["will"] for row in rows]


def model_of(kind, **options):
    rows = people()
    label = labelled(kind, rows)
    chosen = dict(learner="fast", missing="mean") | options
    return dl.TableModel.new(rows, **label, **chosen), rows


@every_kind
@pytest.mark.parametrize("options", [{}, {"abstain": 0.3}, {"coverage": 0.8}], ids=str)
def test_a_list_of_tickets_is_told_as_one_by_one(tmp_path, kind, options):
    if options and kind in ("tags", "ranking") or ("abstain" in options and kind != "classes"):
        pytest.skip("which has no such option")
    one, rows = model_of(kind, **options)
    two = dl.load(one.save(tmp_path / "model"))
    bare, truth = bare_and_truth(kind, rows)
    cut = len(bare) // 2
    for places in (range(cut), range(cut, len(bare))):
        part = [bare[i] for i in places]
        tickets = [one.ask(row) for row in part] if kind == "ranking" else one.ask(part)
        again = [two.ask(row) for row in part]
        for ticket, other in zip(tickets, again, strict=True):
            assert ticket.prediction == other.prediction and ticket.set == other.set
            if "coverage" not in options:
                assert ticket.to_bytes() == other.to_bytes()
            else:
                np.testing.assert_allclose(ticket.chances, other.chances, rtol=1e-12)
        order = np.random.default_rng(0).permutation(len(part)).tolist()
        told = [truth[places[i]] for i in order]
        if kind == "classes":
            told[0], told[3], told[7], told[9] = "first", "a new class", "another", "first"
        one.tell([again[i] for i in order], told)  # whose chances have the same last digits
        for i, label in zip(order, told, strict=True):
            two.tell(again[i], label)
        assert saved(one, tmp_path) == saved(two, tmp_path)
    assert one.outstanding == 0 and one.rounds == len(bare)
    assert one.ask([]) == [] and one.tell([], []) is None


@pytest.mark.parametrize("missing", ["mean", "zero"])
@every_kind
def test_rows_that_were_checked_are_asked_for_as_they_are(tmp_path, kind, missing):
    """Their cells are read before others are asked for, and are filled in as they are then."""
    one, rows = model_of(kind, missing=missing)
    two, other, last = (dl.load(one.save(tmp_path / "model")) for _ in range(3))
    bare, truth = bare_and_truth(kind, rows)
    checked = [one.check(row) for row in bare] if kind == "ranking" else one.check(bare)
    assert saved(one, tmp_path) == saved(two, tmp_path)
    if kind != "ranking":
        assert [row.row for row in checked] == bare
        mixed = other.ask([*checked[:3], bare[3]]), last.ask(bare[:4])
        assert [t.to_bytes() for t in mixed[0]] == [t.to_bytes() for t in mixed[1]]
    for start in range(0, len(bare), 5):
        made = []
        for model, given in ((one, checked), (two, bare)):
            part = given[start : start + 5]
            if kind != "ranking":
                made.append([*model.ask(part[:3]), *model.ask(part[3:])])
            else:
                made.append([model.ask(query) for query in part])
            model.tell(made[-1], truth[start : start + 5])
        assert [t.to_bytes() for t in made[0]] == [t.to_bytes() for t in made[1]]
        if kind != "ranking":
            assert one.look(checked) == two.look(bare)
        assert saved(one, tmp_path) == saved(two, tmp_path)


@every_kind
def test_a_list_of_a_table_with_one_bad_entry_changes_nothing(tmp_path, kind):
    model, rows = model_of(kind)
    bare, truth = bare_and_truth(kind, rows)
    tickets = [model.ask(row) for row in bare[:6]]
    model.tell(tickets[0], truth[0])
    before = saved(model, tmp_path)
    forged = dataclasses.replace(tickets[3].ticket, input=tickets[3].ticket.input * np.nan)
    lists = [
        (tickets[:3], truth[:3]),  # of which the first was told
        ([tickets[1], tickets[1]], truth[1:3]),
        (tickets[1:4], truth[1:3]),
        ([*tickets[1:3], "no ticket"], truth[1:4]),
        (tickets[1:4], [*truth[1:3], None]),
        (tickets[1:4], 7),
        ([*tickets[1:3], dataclasses.replace(tickets[3], ticket=forged)], truth[1:4]),
        ([*tickets[1:3], tickets[3].ticket], truth[1:4]),
    ]
    if kind == "classes":
        lists.append((tickets[:3], [*truth[:2], "a new class"]))
    for given, labels in lists:
        with pytest.raises(dl.InputError):
            model.tell(given, labels)
        assert saved(model, tmp_path) == before
    assert "a new class" not in model.classes
    model.tell(tickets[1:6], truth[1:6])
    assert model.outstanding == 0


def test_a_refused_row_leaves_what_columns_remember(tmp_path):
    model, rows = model_of("classes")
    before = saved(model, tmp_path)
    for wrong in ({"age": "old"}, {"usage": "much"}):
        with pytest.raises(dl.InputError):
            model.ask([*rows[:3], rows[3] | wrong, *rows[4:6]])
        assert saved(model, tmp_path) == before and model.outstanding == 0


@pytest.mark.parametrize("kind", ["classes", "levels", "tags"])
def test_probabilities_on_the_command_line_are_those_of_python(tmp_path, kind):
    model, _, path = run(tmp_path, kind)
    new = people(20, seed=1)
    labelled(kind, new)
    if kind == "classes":
        new[3]["will"] = "never seen"
    done = call("predict", path, write(tmp_path / "new.csv", new), "--proba", "--quiet")
    assert done.exit_code == 0, done.output
    rows = list(csv.DictReader(io.StringIO(done.output)))
    for row, chances in zip(rows, model.predict_proba(new), strict=True):
        assert [name for name in row if name.startswith("p(")] == [f"p({name})" for name in chances]
        assert all(
            float(row[f"p({name})"]) == pytest.approx(p, rel=1e-5) for name, p in chances.items()
        )


def test_rankings_have_no_probabilities_on_the_command_line(tmp_path):
    _, rows, path = run(tmp_path, "ranking")
    done = call("predict", path, write(tmp_path / "new.csv", rows), "--proba")
    assert done.exit_code == 2 and "a ranking has no probabilities" in done.output


def test_models_with_sets(tmp_path):
    rows = people(160)
    labels = ["stay" if row["age"] < 45 else "leave" for row in rows]
    bare = [{k: v for k, v in row.items() if k in ("age", "plan")} for row in rows]
    one = dl.TableModel.new(
        [row | {"will": y} for row, y in zip(bare, labels, strict=True)],
        "will", learner="fast", coverage=0.8, missing="mean",
    )  # fmt: skip
    two = dl.load(one.save(tmp_path / "model"))
    one.learn(bare, labels)
    for row, label in zip(bare, labels, strict=True):
        ticket = two.ask(row)
        assert ticket.set == two.predict_set(row) and ticket.prediction == ticket.set[0]
        two.tell(dl.TableTicket.from_bytes(ticket.to_bytes()), label)
    assert one._model.sets.to_saved()[0] == two._model.sets.to_saved()[0]
    assert one.predict_set(bare) == two.predict_set(bare)
    again = dl.load(one.save(tmp_path / "model"))
    assert again.predict_set(bare[0]) == one.predict_set(bare[0])
    again.learn(bare[0], "never seen")
    assert again._model.sets.misses == one._model.sets.misses + 1
    with pytest.raises(dl.InputError, match="has no sets"):
        dl.TableModel.new(rows, "age", task="classes", ignore=["plan"], missing="mean").predict_set(
            bare[0]
        )
    with pytest.raises(dl.InputError, match="none that could be its own"):
        two.tell(dl.TableTicket("stay", two.ask(bare[0]).ticket), "stay")
    ticket, before = two.ask(bare[0]), two._model.sets.to_saved()[0]
    for forged in ({"chances": np.array(["a", "b"])}, {"inside": np.array(["a", "b"])}):
        with pytest.raises(dl.InputError, match="none that could be its own"):
            two.tell(dataclasses.replace(ticket, **forged), "stay")
    with pytest.raises(dl.InputError, match="do not belong"):
        two.tell(dataclasses.replace(ticket, inside=np.array([True])), "stay")
    assert two._model.sets.to_saved()[0] == before


@pytest.mark.parametrize("sets", [None, 0.9], ids=["no sets", "sets"])
@pytest.mark.parametrize("way", ["ask", "look"])
def test_what_the_service_answers_scores_every_member_once(way, sets):
    """And encodes every row once, whatever is answered."""
    random = np.random.default_rng(0)
    rows = [
        {"x": float(x), "z": float(z), "y": "uvw"[int(x > 0) + int(z > 1)]}
        for x, z in random.standard_normal((200, 2))
    ]
    given = {} if sets is None else {"coverage": sets}
    model = dl.TableModel.new(rows, label="y", learner="auto", **given)
    model.learn(rows)
    served, counts, batch = TableServed(model, 1 << 28), Counter(), model._batch

    def counted(name, call):
        def one(*arguments, **named):
            counts[name] += 1
            return call(*arguments, **named)

        return one

    members = model._model.learner.members
    for j, member in enumerate(members):
        if isinstance(member, dl.OGD):
            for name in ("look", "scores", "all_scores"):
                setattr(member.engine, name, counted(j, getattr(member.engine, name)))
        else:
            member._class_scores = counted(j, member._class_scores)
    model._batch = counted("rows", batch)
    (made,) = served.ask(rows[:1]) if way == "ask" else served.look(rows[:1])
    answer = made.answer if way == "ask" else made
    assert max(answer["probabilities"], key=answer["probabilities"].get) == answer["prediction"]
    assert ("set" in answer) == (sets is not None)
    assert counts == dict.fromkeys([*range(len(members)), "rows"], 1)
