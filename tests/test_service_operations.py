"""What a request costs grows no faster than what it carries: operations, not seconds."""

import itertools

import pytest

import driftline as dl
from driftline.app.runs import CommitteeModel, TableModel
from driftline.app.service.bodies import ModelBody
from driftline.app.service.log import SqliteLog
from driftline.app.service.machine import Machine
from driftline.app.service.making import model_of
from driftline.app.service.requests import Ask, Create, Expire, Learn, Tell
from driftline.app.service.served import Feedback, TableServed, warm_up
from driftline.app.service.server import load
from driftline.app.service.views import latest_of, state_of
from driftline.app.tables import Encoder
from driftline.app.tables.columns import Column, Columns
from driftline.app.tables.encoder import Bound
from driftline.app.tables.labels import ClassCodec, LevelCodec, TagCodec
from driftline.committee import Committee
from driftline.learner import OGD
from driftline.members.classes import ClassMember
from tests.operations import Name, operations, steps
from tests.service import call, client, serving

#: How many times the operations twice as many may take.
LINEAR = 2.5
#: How many times those of one row may take where twice as many wait.
SAME = 1.5


def assert_linear(make, count):
    """``make(n)`` returns a call whose operations are counted; a first one compiles."""
    make(10)()
    one, two = (operations(make(n)) for n in (count, 2 * count))
    assert two < LINEAR * one, f"{count}: {one} operations, {2 * count}: {two}"


def names_of(count):
    return [Name(f"column {i}") for i in range(count)]


def table(columns, codec=None):
    codec = ClassCodec(["y"], ["a", "b"]) if codec is None else codec
    encoder = Encoder(Columns([Column(name, "number") for name in columns], "mean"), codec)
    model = TableModel(CommitteeModel.new("fast", encoder))
    return TableServed(model)


def row_of(names):
    return {name: i % 7 for i, name in enumerate(names)}


# -- columns


def asked_and_told(served, row):
    served.tell([served.ask([row])[0].ticket], [Feedback("a")])


COLUMNS = {
    "predict": lambda served, row: served.look([row]),
    "check": lambda served, row: served.check_rows([row]),
    "learn": lambda served, row: served.learn([row], [Feedback("a")]),
    "ask and tell": asked_and_told,
    "a column is missing": lambda served, row: served.look([dict(list(row.items())[:-1])]),
    "all are missing": lambda served, row: served.look([{}]),
    "state": lambda served, row: (served.about(), served.to_saved()),
    "fresh": lambda served, row: served.model.fresh("fast"),
    "size": lambda served, row: served.check_size(),
    "warm up": lambda served, row: warm_up(served),
}


@pytest.mark.parametrize("what", COLUMNS)
def test_a_row_costs_as_much_as_it_has_columns(what):
    def make(count):
        names = names_of(count)
        served, row = table(names), row_of(names)
        served.learn([row] * 2, [Feedback("a"), Feedback("b")])
        return lambda: COLUMNS[what](served, row)

    assert_linear(make, 1000)


def test_a_column_that_is_not_known_is_refused_at_once():
    def make(count):
        names = names_of(count)
        served, row = table(names), row_of(names) | {Name("collum"): 1}

        def refused():
            with pytest.raises(dl.InputError, match="does not know the column 'collum'"):
                served.check_rows([row])

        return refused

    assert_linear(make, 1000)


def test_names_of_many_rows_are_refused_at_once():
    def make(count):
        served = table(names_of(3))
        rows = [{Name(f"{i}"): 1} for i in range(count)]

        def refused():
            with pytest.raises(dl.InputError, match="does not know the column '0'"):
                served.check_rows(rows)

        return refused

    assert_linear(make, 1000)


@pytest.mark.parametrize("form", ["columns", "rows", "texts", "ignored", "missing"])
def test_a_new_model_costs_as_much_as_it_has_columns(form):
    def make(count):
        names, options, values = names_of(count), {}, [1, 2.5, 3]
        if form == "columns":
            given = {"columns": dict.fromkeys(names, "number")}
        else:
            if form == "texts":
                values = ["a", "b", "a"]
            if form == "ignored":
                options = {"ignore": names[: count // 2]}
            if form == "missing":
                values = [1, None, 3]
            rows = [dict.fromkeys(names, value) for value in values]
            given = {"rows": [row | {"y": "ab"[i % 2]} for i, row in enumerate(rows)]}
        body = ModelBody("m", "y", learner="fast", options=options, **given)
        return lambda: model_of(body)

    assert_linear(make, 1000)


def test_a_table_that_is_refused_says_so_in_one_pass():
    """All columns are dates: each is refused, and all are told together."""

    def make(count):
        names = names_of(count)
        rows = [dict.fromkeys(names, f"2024-01-0{i}") | {"y": "ab"[i - 1]} for i in (1, 2)]

        def refused():
            with pytest.raises(dl.InputError, match="things to decide|looks like a date"):
                dl.TableModel.new(rows, label="y", learner="fast")

        return refused

    assert_linear(make, 500)


# -- classes, levels and tags


def classes_of(count):
    return [Name(f"class {i}") for i in range(count)]


CLASSES = {
    "ask": lambda served, names: served.ask([{}]),
    "look": lambda served, names: served.look([{}]),
    "label": lambda served, names: served.check_feedback([Feedback(names[-1])]),
    "new label": lambda served, names: served.check_feedback([Feedback("another")]),
    "learn": lambda served, names: served.learn([{}], [Feedback(names[-1])]),
    "learn a new class": lambda served, names: served.learn([{}], [Feedback("another")]),
    "check many": lambda served, names: served.check_feedback([Feedback(n) for n in names]),
    "check many new": lambda served, names: served.check_feedback(
        [Feedback(f"new {n}") for n in names]
    ),
    "state": lambda served, names: (served.about(), served.to_saved()),
}


@pytest.mark.parametrize("what", CLASSES)
def test_an_answer_costs_as_much_as_there_are_classes(what):
    def make(count):
        names = classes_of(count)
        served = table(["x"], ClassCodec(["y"], names))
        served.learn([{"x": 1}] * 2, [Feedback(names[0]), Feedback(names[1])])
        return lambda: CLASSES[what](served, names)

    assert_linear(make, 200)


@pytest.mark.parametrize("form", ["list", "dict"])
def test_a_label_costs_as_much_as_there_are_tags(form):
    def make(count):
        tags = classes_of(count)
        served = table(["x"], TagCodec(tags))
        given = tags if form == "list" else dict.fromkeys(tags, 1)
        return lambda: served.check_feedback([Feedback(given)])

    assert_linear(make, 300)


def test_a_label_costs_as_much_as_there_are_levels():
    def make(count):
        levels = classes_of(count)
        served = table(["x"], LevelCodec(["y"], levels))
        return lambda: served.check_feedback([Feedback(levels[-1])])

    assert_linear(make, 300)


@pytest.mark.parametrize("way", ["tell", "learn"])
def test_all_new_classes_of_a_request_are_added_at_once(monkeypatch, way):
    """All weights are copied when a class is added."""
    served = table(["x"])
    served.learn([{"x": 1}] * 2, [Feedback("a"), Feedback("b")])
    calls, grown = [], Committee.grown

    def noted(own, **how):
        calls.append(how)
        return grown(own, **how)

    monkeypatch.setattr(Committee, "grown", noted)
    rows, told = [{"x": i} for i in range(50)], [Feedback(f"new {i}") for i in range(50)]
    if way == "tell":
        served.tell([asked.ticket for asked in served.ask(rows)], told)
    else:
        served.learn(rows, told)
    assert len(calls) == 1 and len(served.model.classes) == 52 and served.model.rounds == 52


# -- rows, models, and rows that wait


@pytest.fixture
def machines(tmp_path):
    """Machines on logs of their own."""
    logs, content = [], {}

    def make(models=1):
        if not content:
            content["m"] = model_of(ModelBody("m", "y", columns={"x": "number"}, learner="fast"))
        log = SqliteLog(tmp_path / f"{len(logs)}.sqlite3", synchronous="OFF")
        logs.append(log)
        machine = Machine(log, load, itertools.count(1000).__next__, most_models=10_000)
        for i in range(models):
            machine.process([Create(f"m{i}", content["m"])])
        return machine

    yield make
    for log in logs:
        log.close()


def asks(count, name="m0", start=0):
    ids = [f"r{i}" for i in range(start, start + count)]
    return Ask(name, ids, [{"x": i % 7} for i in range(count)])


def tells(count, name="m0"):
    ids = [f"r{i}" for i in range(count)]
    return Tell(name, ids, [Feedback("ab"[i % 2]) for i in range(count)])


def learns(count, name="m0"):
    asked = asks(count)
    return Learn(name, asked.ids, asked.rows, tells(count).feedback)


def done(machine, request):
    made = machine.process([request])
    assert made[0].status == 200, made
    return made


@pytest.mark.parametrize("what", ["ask", "tell", "learn", "apart"])
def test_a_request_costs_as_much_as_it_has_rows(machines, what):
    def make(count):
        machine = machines()
        if what == "tell":
            done(machine, asks(count))
            return lambda: done(machine, tells(count))
        if what == "apart":  # each row is a request, and all are one commit
            each = [asks(1, start=i) for i in range(count)]
            return lambda: machine.process(each)
        return lambda: done(machine, asks(count) if what == "ask" else learns(count))

    assert_linear(make, 300)


@pytest.mark.parametrize("what", ["request", "list", "feed", "housekeeping"])
def test_models_cost_as_much_as_there_are(machines, what):
    def make(count):
        machine = machines(count)
        if what == "request":  # one row for each, in one commit
            return lambda: machine.process([asks(1, f"m{i}") for i in range(count)])
        if what == "housekeeping":
            return lambda: [machine.process([Expire(name, 0)]) for name in list(machine.names)]
        view = state_of if what == "list" else latest_of
        return lambda: [view(own) for own in machine.models.values()]

    assert_linear(make, 40)


@pytest.mark.parametrize("what", ["ask", "tell", "expire", "waiting"])
def test_one_row_costs_no_more_where_many_wait(machines, what):
    """By lines of Python, and by instructions of SQLite's machine."""

    def make(count):
        machine = machines()
        for start in range(0, count, 100):
            done(machine, asks(100, start=start))
        return machine, {
            "ask": lambda: done(machine, asks(1, start=count)),
            "tell": lambda: done(machine, tells(1)),
            "expire": lambda: done(machine, Expire("m0", 1001)),
            "waiting": lambda: machine.log.waiting(1, machine.at + 1, 1),
        }[what]

    lines, instructions = [], []
    for count in (100, 500, 1000):
        machine, work = make(count)
        with steps(machine.log._write) as counts:
            lines.append(operations(work))
        instructions.append(counts.total)
    most = SAME if what in ("ask", "tell") else LINEAR
    assert lines[2] < SAME * lines[1] and instructions[2] < most * instructions[1]


def test_a_prediction_scores_each_member_once_and_encodes_each_row_once(monkeypatch, tmp_path):
    """Its probabilities are those that the prediction is made by."""
    seen = {"looks": 0, "rows": 0, "scores": 0}

    def counted(owner, name, what, size):
        plain = getattr(owner, name)

        def call(self, given, *rest, **more):
            seen[what] += size(given)
            return plain(self, given, *rest, **more)

        monkeypatch.setattr(owner, name, call)

    for owner in (OGD, ClassMember):
        counted(owner, "_look_mapped", "looks", lambda rows: rows.rounds)
    counted(OGD, "score_rows", "scores", lambda rows: 1)
    counted(Bound, "batch", "rows", len)
    with serving(tmp_path / "data") as (address, server):
        own = client(address)
        own.create("m", "y", columns={"a": "number", "b": "number"}, classes=["u", "v"])
        members = len(server.machine.hosted("m").served.model.learner.members)
        own.learn("m", [{"a": 1.0, "b": 2.0}] * 4, ["u", "v", "u", "v"])
        seen.update(looks=0, rows=0, scores=0)
        made = own.predict("m", [{"a": 1.0, "b": float(i)} for i in range(5)])
        assert set(made[0]["probabilities"]) == {"u", "v"}
        assert seen == {"looks": 5 * members, "rows": 5, "scores": 0}
        for what in ("look", "predict?mode=token"):  # by a copy, which the first request makes
            body = [{"row": {"a": 1.0, "b": float(i)}} for i in range(5)]
            for _ in range(2):
                seen.update(looks=0, rows=0, scores=0)
                assert call(address, "POST", f"/models/m/{what}", body)[0] == 200
            assert seen == {"looks": 5 * members, "rows": 5, "scores": 0}
