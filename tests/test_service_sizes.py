"""Sizes that are refused before they are taken: columns, classes, memory, labels, answers."""

import pytest
from click.testing import CliRunner

import driftline as dl
from driftline.app.cli import main
from driftline.app.runs import TableModel
from driftline.app.service import routes, tickets
from driftline.app.service.catch_up import CatchUp
from driftline.app.service.requests import Tell
from driftline.app.service.served import Feedback, TableServed
from driftline.app.service.writer import Limits
from driftline.state import archive
from tests.service import call, check_replay, client, serving

MB = 1 << 20


def state_of(server, name="m"):
    served = server.machine.hosted(name).served
    return archive.packed(*served.to_saved())


def columns(count, texts=0):
    return {f"c{i}": [f"t{j}" for j in range(texts)] or "number" for i in range(count)}


@pytest.fixture
def service(tmp_path):
    """A service with 1 MB for a model."""
    with serving(tmp_path / "data", limits=Limits(memory=MB)) as (address, server):
        yield address, client(address), server
    check_replay(tmp_path / "data")


def table(count, learner="fast"):
    rows = [{f"c{i}": (i * 7 + j) % 5 for i in range(count)} | {"y": "ab"[j % 2]} for j in range(9)]
    return rows, dl.TableModel.new(rows, label="y", learner=learner)


# -- columns and classes


def test_a_model_with_too_many_columns_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(TableModel, "new", None)  # what columns hold is not even guessed
    with serving(tmp_path / "data") as (address, server):
        own = client(address)
        for count in (4_097, 20_000):
            body = {"name": "m", "label": "y", "learner": "fast"}
            rows = [{f"c{i}": i for i in range(count)} | {"y": "a"}]
            for form in ({"columns": columns(count)}, {"rows": rows}):
                status, made = call(address, "POST", "/models", body | form)
                assert status == 422 and not server.machine.models
                assert f"4,096 columns at most, but this one would have {count:,}" in made["error"]
        monkeypatch.undo()
        own.create("m", "y", columns=columns(4_096), learner="fast")
        status, made = call(
            address, "PUT", "/models/n", table(4_097)[1].save(tmp_path / "n").read_bytes()
        )
        assert status == 422 and "4,096 columns at most" in made["error"]
        row = {f"c{i}": i for i in range(4_096)}
        assert own.learn("m", row, "a")["learned"]


@pytest.mark.parametrize("task", ["levels", "tags"])
def test_a_model_with_too_many_outcomes_is_refused(service, tmp_path, task):
    address, _, server = service
    names = [f"k{i}" for i in range(1_001)]
    body = {"name": "m", "label": "y", "learner": "fast", "columns": columns(1)}
    options = {"task": task} | ({"levels": names} if task == "levels" else {})
    more = {"options": options} | ({"label": names} if task == "tags" else {})
    assert call(address, "POST", "/models", body | more)[0] == 422
    if task == "levels":
        rows = [{"x": i, "y": f"k{i}"} for i in range(10)]
        model = dl.TableModel.new(rows, label="y", learner="fast", task="levels", levels=names)
    else:
        rows = [{"x": i} | dict.fromkeys(names, i % 2) for i in range(10)]
        model = dl.TableModel.new(rows, label=names, learner="fast")
    status, made = call(address, "PUT", "/models/m", model.save(tmp_path / "m").read_bytes())
    assert status == 422 and f"1,000 {task} at most, but this one would have 1,001" in made["error"]
    assert not server.machine.models


def test_lists_of_options_are_as_long_as_there_may_be_columns(service):
    address, _, _ = service
    rows = [{"x": i, "y": "ab"[i % 2]} for i in range(4)]
    body = {"name": "m", "label": "y", "rows": rows, "options": {"ignore": ["*"] * 4_097}}
    status, made = call(address, "POST", "/models", body)
    assert status == 422 and "'ignore' is a list of 4,096 texts at most" in made["error"]


# -- memory


def test_a_model_that_is_too_large_is_refused_with_its_size(service):
    address, own, server = service
    body = {"name": "m", "label": "y", "learner": "fast", "columns": columns(100, 99)}
    body["classes"] = [f"k{i}" for i in range(10)]
    status, made = call(address, "POST", "/models", body)
    size = int(made["error"].split("--memory ")[1].split(" ")[0])
    said = f"a model of 100 columns and 10 classes takes some {size} MB; "
    said += f"at most 1 MB are allowed here: --memory {size} allows more"
    assert (status, made["error"]) == (422, said)
    assert 10_000 * 10 * 8 * 7 / MB < size < 3 * 10_000 * 10 * 8 * 7 / MB
    assert not server.machine.models
    own.create("m", "y", columns=columns(100), learner="fast")


def test_nothing_learns_before_the_size_is_checked(service, monkeypatch):
    """A row that compiles what a model needs, and records that a challenger reads, would do it."""
    address, own, _ = service
    own.create("m", "y", columns=columns(20), learner="fast")
    own.learn("m", {"c0": 1}, "a")
    learned = []
    monkeypatch.setattr(routes, "warm_up", learned.append)
    monkeypatch.setattr(CatchUp, "read_ahead", lambda *own: learned.append(own))
    body = {"name": "n", "label": "y", "learner": "best", "columns": columns(20)}
    assert call(address, "POST", "/models", body)[0] == 422
    body = {"name": "n", "learner": "best"}
    assert call(address, "POST", "/models/m/challengers", body)[0] == 422
    assert not learned


def test_more_memory_allows_more(tmp_path):
    body = {"name": "m", "label": "y", "learner": "fast", "columns": columns(1000, 9)}
    for megabytes, wanted in ((1, 422), (8, 201)):
        with serving(tmp_path / f"{megabytes}", limits=Limits(memory=megabytes * MB)) as (
            address,
            _,
        ):
            assert call(address, "POST", "/models", body)[0] == wanted


def test_a_challenger_or_an_upload_that_is_too_large_is_refused(service, tmp_path):
    address, own, server = service
    own.create("m", "y", columns=columns(20), learner="fast")
    own.learn("m", {"c0": 1}, "a")
    seq, before = server.machine.seq, state_of(server)
    file = server.machine.hosted("m").served.model.fresh("best").save(tmp_path / "best")
    kind = {"content-type": "application/octet-stream"}
    path = "/models/m/challengers"
    for given in (({"name": "c", "learner": "best"},), (file.read_bytes(), kind)):
        status, made = call(address, "POST", path + "?name=c" * (len(given) > 1), *given)
        assert status == 422 and "a model of 20 columns and 1 classes takes" in made["error"]
    assert call(address, "PUT", "/models/n", file.read_bytes())[0] == 422
    assert (server.machine.seq, state_of(server)) == (seq, before)


def test_a_bare_learner_that_is_too_large_is_refused(service, tmp_path):
    address, own, server = service
    learner = dl.OGD(dl.losses.Logistic(dl.tasks.Multiclass(9)))
    own.upload("ogd", learner.save(tmp_path / "ogd"))
    status, made = call(address, "POST", "/models/ogd/learn", {"row": [0.5] * 20_000, "label": 1})
    assert (
        status == 422
        and "20,000 features, for Multiclass(classes=9), takes some 2 MB" in made["error"]
    )
    assert server.machine.hosted("ogd").served.learner.features is None
    assert own.learn("ogd", [[0.5] * 10_000], [1])[0]["learned"]
    dl.OGD(dl.losses.Logistic(dl.tasks.Multiclass(9)))
    learner.step([0.5] * 20_000, 1)
    assert call(address, "PUT", "/models/o", learner.save(tmp_path / "o").read_bytes())[0] == 422


def fill(own, server, more=0):
    """Make a model with room for few classes more; return how many it takes."""
    own.create("m", "y", columns=columns(100, 9), learner="fast")
    model = server.machine.hosted("m").served.model
    most = next(k for k in range(2, 1000) if model.state_bytes(k + 1) > MB)
    for i in range(most - 2):
        own.learn("m", {}, f"k{i}")
    return model, most - 2


def test_a_class_that_would_make_a_model_too_large_is_refused(service):
    address, own, server = service
    model, count = fill(own, server)
    own.learn("m", {}, ["one more", "and another"][0])
    own.predict("m", {}, id="a")
    own.learn("m", {}, "and another")
    before, seq = state_of(server), server.machine.seq
    learn = {"row": {}, "label": "too much"}
    for path, body in (
        ("learn", learn),
        ("learn", [learn, learn]),
        ("labels", {"id": "a", "label": "too much"}),
    ):
        status, made = call(address, "POST", f"/models/m/{path}", body)
        assert status == 422
        assert f"100 columns and {count + 3} classes takes some 2 MB" in made["error"]
    status, made = call(
        address, "POST", "/models/m/rows", "y\ntoo much\n", {"content-type": "text/csv"}
    )
    assert status == 422 and "--memory 2 allows more" in made["error"]
    assert (state_of(server), server.machine.seq) == (before, seq)
    own.label("m", "a", "k1")  # the row waits as before
    assert "too much" not in model.classes


def test_classes_of_requests_that_come_together_are_counted_together(service):
    _, own, server = service
    model, _ = fill(own, server)
    own.predict("m", [{}] * 6, id=[f"r{i}" for i in range(6)])
    tells = [Tell("m", [f"r{i}"], [Feedback(f"new {i // 2}")]) for i in range(6)]
    statuses = [made.status for made in server.machine.process(tells)]
    assert statuses == [200] * 4 + [422] * 2 and model.state_bytes() <= MB
    assert model.state_bytes(len(model.classes) + 1) > MB


def test_a_class_that_would_make_a_challenger_too_large_is_refused(service):
    address, own, server = service
    own.create("m", "y", columns=columns(3), learner="fast")
    model = server.machine.hosted("m").served.model
    wide = model.fresh("auto")
    most = next(k for k in range(2, 1000) if wide.state_bytes(k + 1) > MB)
    own.learn("m", [{}] * most, [f"k{i}" for i in range(most)])
    own.challenge("m", "wide", "auto")
    before, learn = state_of(server), {"row": {}, "label": "too much"}
    status, made = call(address, "POST", "/models/m/learn", learn)
    assert status == 422 and f"and {most + 1} classes takes some 2 MB" in made["error"]
    assert state_of(server) == before and model.state_bytes(most + 1) < MB
    call(address, "DELETE", "/models/m/challengers/wide")
    assert own.learn("m", {}, "too much")["learned"]


def test_classes_that_a_challenger_has_read_count_too(service, tmp_path):
    """An uploaded challenger knows few classes, and those of the log after it has read it."""
    address, own, server = service
    own.create("m", "y", columns=columns(3), learner="fast")
    file = server.machine.hosted("m").served.model.fresh("auto").save(tmp_path / "auto")
    own.learn("m", [{}] * 300, [f"k{i}" for i in range(300)])
    path, kind = "/models/m/challengers?name=c", {"content-type": "application/octet-stream"}
    status, made = call(address, "POST", path, file.read_bytes(), kind)
    assert status == 422 and "and 300 classes takes some" in made["error"]
    assert len(server.machine.hosted("m").readers) == 1


@pytest.mark.parametrize("snapshots", [True, False])
def test_what_was_taken_is_read_again_with_less_memory(tmp_path, snapshots):
    """What was taken once stays: a smaller limit is for what comes."""
    folder = tmp_path / "data"
    with serving(folder, limits=Limits(memory=8 * MB)) as (address, server):
        own = client(address)
        own.create("m", "y", columns=columns(1000, 9), learner="fast")
        own.learn("m", {}, "a")
        before = state_of(server)
    if not snapshots:
        (folder / "snapshots").rename(tmp_path / "away")
        (folder / "snapshots").mkdir()
    with serving(folder, limits=Limits(memory=MB)) as (address, server):
        assert state_of(server) == before
        assert client(address).learn("m", {}, "a")["learned"]
        status, made = call(address, "POST", "/models/m/learn", {"row": {}, "label": "b"})
        assert status == 422 and "at most 1 MB are allowed here" in made["error"]


def test_an_upload_has_as_many_bytes_as_a_state_may_have(service):
    address, _, server = service
    assert call(address, "PUT", "/models/m", b"x" * (18 * MB))[0] == 413
    assert call(address, "PUT", "/models/m", b"x" * (16 * MB))[0] == 422


def test_the_memory_is_an_option():
    made = CliRunner().invoke(main, ["serve", "--memory", "0"])
    assert made.exit_code == 2 and "--memory" in made.output
    assert "--memory" in CliRunner().invoke(main, ["serve", "--help"]).output


# -- labels and answers


def test_a_long_label_is_refused_and_the_longest_is_learned(service):
    address, own, server = service
    own.create("m", "y", columns=columns(2), learner="fast")
    own.predict("m", {}, id="a")
    before = state_of(server)
    for label in ("x" * 10_001, "x" * 7_000_000, ["x" * 7_000_000]):
        for path, body in (
            ("labels", {"id": "a", "label": label}),
            ("learn", {"row": {}, "label": label}),
        ):
            status, made = call(address, "POST", f"/models/m/{path}", body)
            assert status == 422 and len(made["error"]) < 500
            if isinstance(label, str):
                assert (
                    f"10,000 characters at most, but this one has {len(label):,}" in made["error"]
                )
    assert state_of(server) == before
    assert own.label("m", "a", "x" * 10_000)["learned"]


def test_a_request_whose_answers_would_be_too_large_is_refused(service):
    address, own, server = service
    own.create("m", "y", columns=columns(2), learner="fast")
    own.learn("m", [{}] * 10, [f"{i}" + "x" * 9_000 for i in range(10)])
    body = [{"row": {}, "id": f"{i}"} for i in range(20)]
    seq = server.machine.seq
    for path in ("predict", "predict?mode=token", "look"):
        status, made = call(address, "POST", f"/models/m/{path}", body)
        assert status == 422 and "take some 2 MB in features and answers" in made["error"]
        assert "at most 1 MB are allowed here: send 11 at a time" in made["error"]
    assert server.machine.seq == seq
    assert len(own.predict("m", [{}] * 11)) == 11


def test_names_that_nobody_knows_are_refused_before_there_are_cells_for_them(service):
    """Rows with a name each had as many cells as rows times names."""
    address, own, _ = service
    own.create("m", "y", columns=columns(2), learner="fast")
    body = [{"row": {f"{i} {'x' * 9_000}": 1}} for i in range(500)]
    status, made = call(address, "POST", "/models/m/predict", body)
    assert status == 422 and len(made["error"]) < 300


def test_a_request_whose_tickets_would_be_too_large_is_refused(service):
    address, own, server = service
    options = {"task": "levels", "levels": [f"k{i}" for i in range(500)]}
    own.create("m", "y", columns=columns(2), learner="fast", options=options)
    served = TableServed(server.machine.hosted("m").served.model.fresh("fast"))
    assert 0.8 < served.ticket_bytes / len(served.pack(served.ask([{}])[0].ticket)) < 1.2
    body, seq = [{"row": {}, "id": f"{i}"} for i in range(20)], server.machine.seq
    for mode in ("", "?mode=token"):
        status, made = call(address, "POST", f"/models/m/predict{mode}", body)
        assert status == 422 and "take some 2 MB in tickets; at most 1 MB" in made["error"]
    assert server.machine.seq == seq and "send 16 at a time" in made["error"]
    assert len(own.predict("m", [{}] * 13)) == 13
    assert call(address, "POST", "/models/m/look", body)[0] == 200  # which makes no tickets
    assert len(own.learn("m", [{}] * 20, ["k1"] * 20)) == 20


def test_large_tickets_are_written_before_small_ones(monkeypatch, tmp_path):
    """Tickets that are in memory only are counted in bytes, too."""
    monkeypatch.setattr(tickets, "UNWRITTEN", 2 * MB)
    with serving(tmp_path / "data") as (address, server):
        own = client(address)
        options = {"task": "levels", "levels": [f"k{i}" for i in range(500)]}
        own.create("m", "y", columns=columns(2), learner="fast", options=options)
        kept = server.machine._tickets
        for i in range(5):
            own.predict("m", [{}] * 10, id=[f"{i} {j}" for j in range(10)])
            assert kept._unwritten == sum(size for *_, size in kept._fresh.values()) <= 2 * MB
        assert 0 < len(kept._fresh) < 50
        own.label("m", [f"{i} {j}" for i in range(5) for j in range(10)], ["k1"] * 50)
        assert kept._unwritten == 0 == len(kept._fresh)
    check_replay(tmp_path / "data")


def test_documents_of_a_query_are_counted(service):
    address, own, server = service
    rows = [{f"c{i}": i % 3 for i in range(100)} | {"q": j // 4, "y": j % 3} for j in range(12)]
    options = {"task": "ranking", "query": "q", "missing": "zero"}
    own.create("m", "y", rows=rows, learner="fast", options=options)
    for count, wanted in ((1_000, 200), (1_400, 422)):
        body = {"row": [{"q": "1"}] * count}
        status, made = call(address, "POST", "/models/m/predict", body)
        assert status == wanted, made
    assert "1,400 rows take some 2 MB in features" in made["error"]


def test_the_columns_of_wide_models_are_not_explained(service):
    """All columns were predicted with each of them exchanged: 4,096 took 43 seconds."""
    address, own, _ = service
    for count, told in ((500, 20), (501, 0)):
        own.create(f"m{count}", "y", columns=columns(count), learner="fast")
        rows = [{f"c{i}": (i + j) % 3 for i in range(count)} for j in range(4)]
        own.learn(f"m{count}", rows, list("abab"))
        status, made = call(address, "GET", f"/models/m{count}/weights")
        assert (status, len(made["importance"])) == (200, told)
