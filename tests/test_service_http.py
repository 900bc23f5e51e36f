"""The service over HTTP: what each address answers, and what it refuses."""

import csv
import http.client
import io
import json
import pickle
import threading
import time

import numpy as np
import pytest

import driftline as dl
from driftline.app.service.http import Bounds
from driftline.app.service.openapi import openapi
from driftline.app.service.writer import Limits
from tests.service import call, check_replay, client, serving

COLUMNS = {"warm": "number", "wet": "flag", "town": ["York", "Bath"]}
ADMIN, READER, TELLER = "token-of-an-admin", "token-of-a-predictor", "token-of-a-labeller"
TOKENS = {
    t.replace(" ", "-"): r for t, r in ((ADMIN, "admin"), (READER, "predict"), (TELLER, "label"))
}


def rows(count, seed=0):
    generator = np.random.default_rng(seed)
    made = []
    for _ in range(count):
        town = ("York", "Bath", "Ely")[generator.integers(3)]
        made.append(
            {"warm": round(generator.normal(), 3), "wet": bool(generator.integers(2)), "town": town}
        )
    return made


def label_of(row):
    return "yes" if row["warm"] > 0 else "no"


@pytest.fixture
def service(tmp_path):
    with serving(tmp_path / "data") as (address, server):
        own = client(address)
        own.create("rain", "rain", columns=COLUMNS, learner="fast")
        yield address, own, server


def test_a_row_is_predicted_and_its_label_learned_once(service):
    address, own, _ = service
    row = rows(1)[0]
    first = own.predict("rain", row, id="a")
    again = own.predict("rain", row, id="a")
    assert again == first | {"duplicate": True}
    assert own.label("rain", "a", "yes") == {"id": "a", "learned": True}
    assert own.label("rain", "a", "yes") == {"id": "a", "learned": True, "duplicate": True}
    assert own.model("rain")["counts"]["told"] == 1
    assert own.predict("rain", row, id="a") == again  # though the model has learned since


@pytest.mark.parametrize(
    ("path", "body", "status", "words"),
    [
        ("labels", {"id": "a", "label": "no"}, 409, "another label"),
        ("labels", {"id": "zzz", "label": "no"}, 404, "no row was asked for by id 'zzz'"),
        ("labels", {"id": "b"}, 422, "a label, or a loss"),
        ("labels", {"id": "b", "label": "yes", "loss": 1.0}, 422, "a label, or a loss"),
        ("labels", {"id": "b", "loss": 1.0}, 422, "give label, not loss"),
        ("labels", {"id": "b", "label": ["yes"]}, 422, ""),
        ("labels", {"id": "b", "label": {}}, 422, ""),
        ("labels", {"id": "", "label": "yes"}, 422, "length"),
        ("labels", {"id": "x" * 201, "label": "yes"}, 422, "length"),
        ("predict", {"id": "a", "row": {"warm": 5}}, 409, "another row"),
        ("predict", {"row": {"warm": "hot"}}, 422, "expected a number, but saw 'hot'"),
        ("predict", {"row": {"worm": 1}}, 422, "did you mean 'warm'"),
        ("predict", {"row": {"warm": [1]}}, 422, "Expected"),
        ("predict", {"row": {"warm": 1e999}}, 400, ""),
        ("predict", {"row": {"town": "x" * 10_001}}, 422, "length"),
        ("predict", {"rows": {}}, 422, "unknown field"),
        ("predict", [[]], 422, "Expected"),
        ("predict", "null", 422, "Expected"),
        ("predict", b"\xff\xfe", 400, "no JSON"),
        ("predict", b"[" * 5000, 400, ""),
        ("predict", b'{"row": NaN}', 400, "no JSON"),
        ("learn", {"row": {"warm": 1}}, 422, "label"),
        ("learn", {"id": "a", "row": {"warm": 1}, "label": "yes"}, 409, "before"),
    ],
)  # fmt: skip
def test_bad_requests_are_refused_and_change_nothing(service, path, body, status, words):
    address, own, server = service
    own.predict("rain", {"warm": 1.0}, id="a")
    own.predict("rain", {"warm": 1.0}, id="b")
    own.label("rain", "a", "yes")
    before = own.model("rain"), server.machine.seq
    if body == {"row": {"warm": 1e999}}:
        body = b'{"row": {"warm": 1e999}}'
    seen, answer = call(address, "POST", f"/models/rain/{path}", body)
    assert seen == status or (status == 400 and seen == 422), answer
    assert words in answer["error"]
    assert (own.model("rain"), server.machine.seq) == before


def test_a_list_has_an_answer_for_every_row(service):
    address, own, _ = service
    own.predict("rain", {"warm": 1.0}, id="a")
    body = [{"id": "a", "label": "yes"}, {"id": "b", "label": "no"}, {"id": "a", "label": "no"}]
    status, answer = call(address, "POST", "/models/rain/labels", body)
    assert status == 200
    assert [item["status"] for item in answer] == [200, 404, 409]
    assert call(address, "POST", "/models/rain/labels", []) == (200, [])


def test_the_client_passes_over_no_row_of_a_list_that_was_refused(service):
    _, own, _ = service
    own.predict("rain", [{"warm": 1.0}] * 3, id=["a", "b", "c"])
    assert [made["status"] for made in own.label("rain", ["a"], ["yes"])] == [200]
    with pytest.raises(dl.ServiceError) as caught:
        own.label("rain", ["b", "zzz", "a", "c"], ["no", "no", "no", "yes"])
    error = caught.value
    assert [made["status"] for made in error.answers] == [200, 404, 409, 200]
    assert error.status == 404
    assert str(error) == (
        "2 of 4 rows were refused: id 'zzz': no row was asked for by id 'zzz'; "
        "id 'a': another label, or another row, was given by this id before"
    )
    assert own.model("rain")["counts"]["told"] == 3  # the others were learned from
    again = pickle.loads(pickle.dumps(error))
    assert (again.status, str(again), again.answers) == (404, str(error), error.answers)
    with pytest.raises(dl.ServiceError, match="5 of 5 .*; ...$"):
        own.learn("rain", [{"warm": 2.0}] * 5, ["no"] * 5, id=["a", "b", "c", "a", "b"])
    with pytest.raises(dl.ServiceError, match="1 of 2 rows .* another row") as caught:
        own.predict("rain", [{"warm": 2.0}] * 2, id=["a", "new"])
    assert "prediction" in caught.value.answers[1]
    with pytest.raises(dl.ServiceError, match="no row was asked for") as caught:
        own.label("rain", "zzz", "no")
    assert (caught.value.status, caught.value.answers) == (404, None)


def test_labels_in_any_order_equal_the_library(service, tmp_path):
    """The service is the library: same rows, same labels, same predictions and losses."""
    _, own, server = service
    table, order = rows(60), np.random.default_rng(1).permutation(60)
    served = server.machine.hosted("rain").served.model
    alone = served.fresh("fast")
    tickets = {}
    for i, row in enumerate(table):
        made = own.predict("rain", row, id=f"r{i}")
        tickets[i] = alone.ask(row)
        assert made["prediction"] == tickets[i].prediction
        if i % 3 == 2:
            for j in order[i - 2 : i + 1]:
                if int(j) in tickets:
                    own.label("rain", f"r{j}", label_of(table[j]))
                    alone.tell(tickets.pop(int(j)), label_of(table[j]))
    assert served.paid == alone.paid
    assert served.outstanding == alone.outstanding
    row = {"warm": 0.3, "wet": True, "town": "Ely"}
    assert served.predict_proba(row) == alone.predict_proba(row)


def test_after_a_restart_all_is_as_before(tmp_path):
    table = rows(40)
    with serving(tmp_path / "data") as (address, server):
        own = client(address)
        own.create("rain", "rain", columns=COLUMNS, learner="fast", coverage=0.8)
        for i, row in enumerate(table):
            own.predict("rain", row, id=f"r{i}")
            if i % 2:
                own.label("rain", f"r{i}", label_of(row))
        own.challenge("rain", "other", learner="polyak")
        own.promote("rain", "other")
        own.learn("rain", table, [label_of(row) for row in table])
        before = own.model("rain"), own.certificate("rain")
        answer = own.predict("rain", table[0], id="r0")
    with serving(tmp_path / "data") as (address, server):
        own = client(address)
        assert server.replayed == 0  # a snapshot was written at the end
        now = own.certificate("rain")
        assert (own.model("rain"), now) == before
        assert own.predict("rain", table[0], id="r0") == answer
        assert own.label("rain", "r0", "yes")["learned"]
        assert len(own.predict("rain", table[1], id="new")["set"]) >= 1


def test_guarded_models_answer_what_is_given_while_that_is_good(tmp_path):
    table, told = rows(240), []
    made = {"columns": COLUMNS, "learner": "fast", "guarded": True, "classes": ["no", "yes"]}

    def label_at(i):
        return label_of(table[i]) if i < 120 else {"yes": "no", "no": "yes"}[label_of(table[i])]

    with serving(tmp_path / "data") as (address, server):
        own = client(address)
        own.create("rain", "rain", **made)
        for i, row in enumerate(table):
            given = row | {"given": label_of(row)} if i % 10 else row
            body, mode = {"id": f"r{i}", "row": given}, "?mode=token" * (i % 3 == 0)
            answer = call(address, "POST", f"/models/rain/predict{mode}", body)[1]
            told.append((answer["prediction"], given.get("given")))
            more = {"token": answer["token"]} if mode else {}
            body = {"id": f"r{i}", "label": label_at(i), **more}
            assert call(address, "POST", "/models/rain/labels", body)[0] == 200
        followed = [said == given for said, given in told[:120] if given]
        assert all(followed) and len(followed) > 100
        wrong = sum(said != label_at(i) for i, (said, _) in enumerate(told))
        assert wrong < 60  # 108 by what is given
        assert own.certificate("rain")["bound"] is not None
        row, unknown = table[0] | {"given": "yes"}, table[0] | {"given": "nobody"}
        assert {own.predict("rain", one)["prediction"] for one in (row, unknown)} <= {"no", "yes"}
        for wrong in ({"x": 1}, ["yes"], "y" * 10_001):
            with pytest.raises(dl.ServiceError) as error:
                own.predict("rain", table[0] | {"given": wrong}, id="c")
            assert error.value.status == 422
        own.challenge("rain", "other", learner="fast")
        own.learn("rain", [row, unknown], ["yes", "no"])
        before = own.model("rain"), own.certificate("rain")
    check_replay(tmp_path / "data")
    with serving(tmp_path / "data") as (address, server):
        own = client(address)
        assert (own.model("rain"), own.certificate("rain")) == before
        own.create(
            "guessed",
            "will",
            rows=[{"a": i, "will": "uv"[i % 2]} for i in range(20)],
            learner="fast",
            guarded=True,
        )
        assert own.predict("guessed", {"a": 3, "given": "v"}, id="1")["prediction"] == "v"
        assert own.predict("guessed", {"a": 3, "given": "u"}, id="2")["prediction"] == "u"
        own.create("plain", "rain", columns=COLUMNS, learner="fast")
        with pytest.raises(dl.ServiceError, match="does not know the column 'given'"):
            own.predict("plain", table[0] | {"given": "yes"}, id="1")
        for wrong, words in (
            ({"learner": "polyak"}, "guarded by auto, fast, best"),
            ({"columns": {"given": "number"}}, "'given' is the prediction"),
            ({"options": {"task": "levels"}}, "a guarded model is for classes"),
            ({"guarded": "yes"}, "guarded"),
        ):
            with pytest.raises(dl.ServiceError, match=words):
                own.create("wrong", "rain", **(made | wrong))


def test_challengers_stand_as_if_they_had_been_there_from_the_start(tmp_path):
    table = rows(50)

    def played(folder, early):
        with serving(folder) as (address, _):
            own = client(address)
            own.create("rain", "rain", columns=COLUMNS, learner="fast", classes=["no", "yes"])
            if early:
                own.challenge("rain", "other", learner="polyak")
            for i, row in enumerate(table):
                own.predict("rain", row, id=f"r{i}")
                if i >= 5:
                    own.label("rain", f"r{i - 5}", label_of(table[i - 5]))
            if not early:
                own.challenge("rain", "other", learner="polyak")
            for i in range(45, 50):
                own.label("rain", f"r{i}", label_of(table[i]))
            return [(o["name"], o["rounds"], o["paid"]) for o in own.model("rain")["learners"]]

    assert played(tmp_path / "a", True) == played(tmp_path / "b", False)


def test_going_back_to_the_first_learner_is_one_request(service):
    _, own, _ = service
    own.challenge("rain", "other")
    own.promote("rain", "other")
    assert own.model("rain")["champion"] == "other"
    own.promote("rain", "first")
    assert own.model("rain")["champion"] == "first"
    with pytest.raises(dl.ServiceError, match="no learner 'nobody'"):
        own.promote("rain", "nobody")
    with pytest.raises(dl.ServiceError, match="already"):
        own.challenge("rain", "other")


def test_many_rows_as_csv_and_as_lines_of_json(service):
    address, own, _ = service
    table = [row | {"rain": label_of(row)} for row in rows(2500)]
    out = io.StringIO()
    writer = csv.DictWriter(out, list(table[0]))
    writer.writeheader()
    writer.writerows(table)
    path, kind = "/models/rain/rows?id=upload", {"content-type": "text/csv"}
    wanted = {"rows": 2500, "learned": 2500, "duplicate": 0}
    assert call(address, "POST", path, out.getvalue(), kind) == (200, wanted)
    again = wanted | {"duplicate": 2500}
    assert call(address, "POST", path, out.getvalue(), kind) == (200, again)
    lines = "\n".join(json.dumps(row) for row in table[:10])
    assert call(address, "POST", "/models/rain/rows", lines)[1]["learned"] == 10
    assert own.model("rain")["counts"]["learned"] == 2510
    status, answer = call(address, "POST", "/models/rain/rows", 'warm,rain\n1,"yes\nno', kind)
    assert status == 422
    status, answer = call(address, "POST", "/models/rain/rows", "warm,rain\n1,yes\nhot,no\n", kind)
    assert (status, answer["learned"]) == (422, 0)
    assert "hot" in answer["error"]


def test_a_quote_that_stays_open_holds_up_nobody(service):
    address, _, _ = service
    kind, began = {"content-type": "text/csv"}, time.monotonic()
    body = b'warm,rain\n1,"' + b"\n" * 300_000
    assert call(address, "POST", "/models/rain/rows", body, kind)[0] == 422
    assert time.monotonic() - began < 10.0


def test_several_models_and_files(service, tmp_path):
    address, own, _ = service
    own.create(
        "plans", "will", rows=[{"age": i, "will": "go" if i % 2 else "stay"} for i in range(30)]
    )
    names = [model["name"] for model in own.models()]
    assert names == ["rain", "plans"]
    status, content = call(address, "GET", "/models/plans/file")
    assert status == 200
    (tmp_path / "model").write_bytes(content)
    assert isinstance(dl.load(tmp_path / "model"), dl.TableModel)
    own.upload("copy", tmp_path / "model")
    assert own.predict("copy", {"age": 3})["prediction"] in ("go", "stay")
    own.delete("plans")
    assert [model["name"] for model in own.models()] == ["rain", "copy"]
    with pytest.raises(dl.ServiceError, match="no model 'plans'"):
        own.predict("plans", {"age": 3})
    with pytest.raises(dl.ServiceError, match="already"):
        own.create("rain", "rain", columns=COLUMNS)
    for name in ("../x", "a/b", "", "x" * 65, ".hidden"):
        with pytest.raises(dl.ServiceError):
            own.create(name, "rain", columns=COLUMNS)
    status, answer = call(address, "PUT", "/models/bad", b"not a model")
    assert (status, "not a file of driftline" in answer["error"]) == (422, True)


def test_bare_learners_take_vectors_labels_and_losses(service, tmp_path):
    address, own, _ = service
    learner = dl.OGD(dl.losses.Logistic(dl.tasks.Multiclass(3)))
    learner.save(tmp_path / "ogd")
    own.upload("ogd", tmp_path / "ogd")
    status, made = call(address, "POST", "/models/ogd/predict", {"id": "a", "row": [0.6, 0.8]})
    assert (status, made["prediction"]) == (200, learner.ask([0.6, 0.8]).prediction)
    assert own.label("ogd", "a", 2)["learned"]
    assert call(address, "POST", "/models/ogd/predict", {"row": [0.6]})[0] == 422
    assert call(address, "POST", "/models/ogd/predict", {"row": ["a", 2]})[0] == 422
    dl.auto(dl.tasks.Multiclass(3), feedback="bandit").save(tmp_path / "bandit")
    own.upload("bandit", tmp_path / "bandit")
    call(address, "POST", "/models/bandit/predict", {"id": "a", "row": [0.6, 0.8]})
    assert own.label("bandit", "a", loss=1.0)["learned"]
    assert own.model("bandit")["learners"][0]["paid"] == 1.0


def test_sets_levels_tags_and_rankings(service):
    address, own, _ = service
    levels = {"task": "levels", "levels": ["low", "middle", "high"]}
    own.create("grade", "grade", columns={"x": "number"}, options=levels, learner="fast")
    assert own.predict("grade", {"x": 1.0}, id="a")["prediction"] in levels["levels"]
    assert own.label("grade", "a", "high")["learned"]
    own.create(
        "tags", ["red", "blue"], columns={"x": "number"}, options={"task": "tags"}, learner="fast"
    )
    assert own.predict("tags", {"x": 1.0}, id="a")["prediction"] == []
    assert own.label("tags", "a", ["red"])["learned"]
    documents = [{"q": i // 3, "x": i % 3, "grade": i % 2} for i in range(12)]
    own.create("search", "grade", rows=documents, options={"query": "q"}, learner="fast")
    query = [{"q": 1, "x": x} for x in range(3)]
    status, made = call(address, "POST", "/models/search/predict", {"id": "a", "row": query})
    assert (status, sorted(made["prediction"])) == (200, [0, 1, 2])
    assert own.label("search", "a", [0, 1, 0])["learned"]


def test_tokens_have_roles(tmp_path):
    admin, reader, teller = TOKENS
    with serving(tmp_path / "data", tokens=TOKENS) as (address, _):
        own = client(address, token=admin)
        own.create("rain", "rain", columns=COLUMNS, learner="fast")
        assert client(address, token=reader).predict("rain", {"warm": 1}, id="a")["id"] == "a"
        assert client(address, token=teller).label("rain", "a", "yes")["learned"]
        for token, path, status in (
            (reader, "labels", 403),
            (teller, "predict", 403),
            ("something else", "predict", 401),
            ("", "predict", 401),
        ):
            headers = {"authorization": f"Bearer {token}"} if token else {}
            assert call(address, "POST", f"/models/rain/{path}", {}, headers)[0] == status
        assert (
            call(address, "DELETE", "/models/rain", None, {"authorization": f"Bearer {teller}"})[0]
            == 403
        )
        assert call(address, "GET", "/models")[0] == 401
        assert call(address, "GET", "/health")[0] == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example", "content-type": "text/plain"},
        {"origin": "null", "content-type": "text/plain"},
        {"origin": "http://localhost:3000", "content-type": "text/plain"},
        {"host": "rebound.evil.example"},
        {"host": "rebound.evil.example:8000", "origin": "http://rebound.evil.example:8000"},
        {"host": "127.0.0.1.evil.example"},
        {"host": "["},
    ],
)
def test_pages_from_elsewhere_cannot_use_a_service_without_tokens(service, headers):
    """A browser posts for any page, and any name can be made to lead to this machine."""
    address, own, server = service
    before = server.machine.seq
    body = {"row": {"warm": 1}, "label": "evil"}
    assert call(address, "POST", "/models/rain/learn", body, headers)[0] == 403
    assert call(address, "GET", "/models/rain/log", None, headers)[0] == 403
    assert call(address, "DELETE", "/models/rain", None, headers)[0] == 403
    assert server.machine.seq == before


def test_the_own_page_and_names_of_this_machine_are_answered(service):
    address, _, _ = service
    port = address.rsplit(":", 1)[1]
    for host in (f"127.0.0.1:{port}", f"localhost:{port}", "[::1]:8000", "LOCALHOST"):
        headers = {"host": host, "origin": f"http://{host}"}
        assert call(address, "POST", "/models/rain/look", {"row": {}}, headers)[0] == 200


def test_with_tokens_other_names_and_origins_are_answered(tmp_path):
    with serving(tmp_path / "data", tokens=TOKENS) as (address, _):
        headers = {"host": "driftline.example", "origin": "https://driftline.example"}
        headers["authorization"] = f"Bearer {next(iter(TOKENS))}"
        assert call(address, "GET", "/models", None, headers)[0] == 200


@pytest.mark.parametrize("tokens", [{}, TOKENS], ids=["no tokens", "tokens"])
def test_two_hosts_are_refused(tmp_path, tokens):
    with serving(tmp_path / "data", tokens=tokens) as (address, _):
        connection = http.client.HTTPConnection(address.removeprefix("http://"), timeout=30.0)
        connection.putrequest("GET", "/health")  # with a host of its own
        connection.putheader("host", "localhost")
        connection.endheaders()
        answer = connection.getresponse()
        made = answer.status, json.loads(answer.read())
        connection.close()
        assert made == (400, {"error": "a request has one Host header"})


def test_limits_of_a_request(tmp_path):
    with serving(tmp_path / "data", bounds=Bounds(body=2000, rows=5)) as (address, _):
        client(address).create("rain", "rain", columns=COLUMNS, learner="fast")
        many = [{"row": {"warm": 1}}] * 6
        assert call(address, "POST", "/models/rain/predict", many)[0] == 413
        assert call(address, "POST", "/models/rain/predict", " " * 3000)[0] == 413

        def parts():  # without a length, so that only what comes can be counted
            for _ in range(1000):
                yield b" " * 100

        assert _streamed(address, "/models/rain/predict", parts()) == 413


def _streamed(address, path, parts):
    connection = http.client.HTTPConnection(address.removeprefix("http://"), timeout=30.0)
    try:
        connection.request(
            "POST", path, parts, encode_chunked=True, headers={"transfer-encoding": "chunked"}
        )
    except (BrokenPipeError, ConnectionResetError):
        pass  # the answer came before all was sent
    answer = connection.getresponse()
    answer.close()
    connection.close()
    return answer.status


def test_a_full_queue_is_429(tmp_path):
    with serving(tmp_path / "data", limits=Limits(queue=3)) as (address, server):
        own = client(address)
        own.create("rain", "rain", columns=COLUMNS, learner="fast")
        held, free = threading.Event(), threading.Event()

        def hold():
            held.set()
            free.wait(20.0)

        server.writer._queue.append((hold, 0, None, None))
        with server.writer._ready:
            server.writer._ready.notify()
        held.wait(20.0)
        first = threading.Thread(target=own.predict, args=("rain", [{"warm": 1}] * 3))
        first.start()
        while server.writer.waiting < 3:
            pass
        status, answer = call(address, "POST", "/models/rain/predict", {"row": {"warm": 1}})
        free.set()
        first.join()
        assert (status, "rows wait" in answer["error"]) == (429, True)
        assert call(address, "POST", "/models/rain/predict", {"row": {"warm": 1}})[0] == 200


def test_old_rows_are_forgotten_and_say_so(tmp_path):
    with serving(tmp_path / "data", limits=Limits(expire_seconds=-1.0)) as (address, server):
        own = client(address)
        own.create("rain", "rain", columns=COLUMNS, learner="fast")
        own.predict("rain", {"warm": 1.0}, id="a")
        server.writer._next_expiry = 0.0
        own.predict("rain", {"warm": 1.0}, id="b")
        for _ in range(100):
            if own.model("rain")["counts"]["expired"]:
                break
        assert call(address, "POST", "/models/rain/labels", {"id": "a", "label": "yes"})[0] == 410
        assert own.predict("rain", {"warm": 1.0}, id="a")["duplicate"]


def test_late_labels_are_part_of_the_live_bound(service):
    _, own, _ = service
    own.create("held", "rain", columns=COLUMNS, learner="auto")
    table = rows(80)
    for start in range(0, 80, 20):
        part = range(start, start + 20)
        for t in part:
            own.predict("held", table[t], id=f"row {t}")
        for t in reversed(part):
            own.label("held", f"row {t}", label_of(table[t]))
    made = own.certificate("held")
    assert made["rounds"] == 80 and made["reason"] == ""
    assert made["paid"] <= made["bound"]


def test_what_people_look_at(service):
    address, own, _ = service
    own.create("held", "rain", columns=COLUMNS, learner="auto")
    table = rows(80)
    own.learn("held", table, [label_of(row) for row in table])
    own.predict("held", table[0], id="a")
    certificate = own.certificate("held")
    assert certificate["rounds"] == 80 and certificate["outstanding"] == 1
    assert certificate["oldest_seconds"] >= 0.0
    assert certificate["bound"] >= certificate["paid"] and certificate["reason"] == ""
    status, weights = call(address, "GET", "/models/held/weights")
    assert weights["importance"][0][0] == "warm"
    assert call(address, "GET", "/models/held/alarms")[1]["learners"] == {"first": []}
    status, text = call(address, "GET", "/metrics")
    assert b'driftline_rows_total{model="held",what="learned"} 80.0' in text
    status, made = call(address, "POST", "/models/held/look", {"row": table[0]})
    assert status == 200 and "probabilities" in made
    assert own.model("held")["counts"]["asked"] == 1
    status, text = call(address, "GET", "/models/held/log")
    lines = list(csv.DictReader(io.StringIO(text.decode())))
    assert [line["kind"] for line in lines] == ["create"] + ["learn"] * 80 + ["ask"]
    assert json.loads(lines[1]["row"]) == table[0]
    status, text = call(address, "GET", "/models/held/log?format=json&after=81")
    assert len(text.splitlines()) == 2
    assert call(address, "GET", "/models/held/log?format=xml")[0] == 422


def test_the_log_as_parquet(service):
    parquet = pytest.importorskip("pyarrow.parquet")
    address, own, _ = service
    own.learn("rain", rows(5), ["yes"] * 5)
    status, content = call(address, "GET", "/models/rain/log?format=parquet")
    table = parquet.read_table(io.BytesIO(content)).to_pydict()
    assert (status, table["kind"]) == (200, ["create"] + ["learn"] * 5)
    assert json.loads(table["row"][1]) == rows(5)[0]


def test_the_page_is_whole_and_asks_for_nothing_from_elsewhere(service):
    address, _, _ = service
    for path in ("/", "/app.js", "/style.css", "/uplot.js", "/uplot.css"):
        status, text = call(address, "GET", path)
        assert status == 200
        if path != "/uplot.js":
            assert b"http://" not in text and b"https://" not in text
    assert call(address, "GET", "/../pyproject.toml")[0] == 404
    assert call(address, "GET", "/nowhere")[0] == 404


def test_events_tell_the_latest_numbers(service):
    address, own, _ = service
    connection = http.client.HTTPConnection(address.removeprefix("http://"), timeout=30.0)
    connection.request("GET", "/events")
    answer = connection.getresponse()
    assert answer.readline() == b"retry: 1000\n"
    own.predict("rain", {"warm": 1.0}, id="a")
    lines = []
    while not any(line.startswith(b"data: ") for line in lines):
        lines.append(answer.readline())
    made = json.loads(lines[-1].removeprefix(b"data: "))
    assert made["models"][0]["counts"]["asked"] == 1
    connection.close()


def test_the_description_names_every_address(service):
    address, _, server = service
    status, made = call(address, "GET", "/openapi.json")
    assert made["openapi"].startswith("3.1")
    assert openapi() is openapi()  # made once: nobody needs a token to ask for it
    known = {(path, method) for path, own in made["paths"].items() for method in own}
    from driftline.app.service.routes import FILES, Slow

    routes = Slow(server.writer, None, None, None, None, None).routes()
    found = {(r.path, m.lower()) for r in routes for m in r.methods - {"HEAD"}}
    found -= {(f"/{name}", "get") for name in FILES} | {("/openapi.json", "get")}
    fast = {(f"/models/{{model}}/{what}", "post") for what in ("predict", "labels", "learn")}
    assert known == found | fast


def test_one_process_at_a_time(tmp_path):
    with serving(tmp_path / "data"):
        with pytest.raises(dl.InputError, match="is being written by process"):
            with serving(tmp_path / "data"):
                pass


def told_by_tokens(made, table):
    pairs = zip(made, table, strict=True)
    return [{"id": m["id"], "token": m["token"], "label": label_of(row)} for m, row in pairs]


def test_tokens_need_nothing_stored_until_the_label_comes(service):
    address, own, server = service
    table = rows(30)
    own.learn("rain", table, [label_of(row) for row in table])
    seq, path = server.machine.seq, "/models/rain/predict?mode=token"
    body = [{"id": f"t{i}", "row": row} for i, row in enumerate(table)]
    status, made = call(address, "POST", path, body)
    assert status == 200 and server.machine.seq == seq
    told = told_by_tokens(made, table)
    status, answers = call(address, "POST", "/models/rain/labels", told)
    assert [answer["status"] for answer in answers] == [200] * 30
    assert own.model("rain")["learners"][0]["rounds"] == 60
    status, again = call(address, "POST", "/models/rain/labels", told)
    assert all(answer["duplicate"] for answer in again)
    for change, words in (
        ({"id": "t99"}, "not that of this model and id"),
        ({"token": "x"}, "no token"),
    ):
        status, answer = call(
            address, "POST", "/models/rain/labels", told[0] | {"id": "new"} | change
        )
        assert (status, words in answer["error"]) == (422, True)
    assert call(address, "POST", "/models/rain/labels", told[0] | {"label": "maybe"})[0] == 409
    body = {"id": "large", "row": {"warm": 2**70}}
    status, made = call(address, "POST", path, body)
    body = {"id": "large", "token": made["token"], "label": "yes"}
    assert (status, call(address, "POST", "/models/rain/labels", body)[0]) == (200, 200)


def test_a_bad_token_concerns_no_other_label_of_its_list(service):
    address, own, _ = service
    table = rows(3)
    body = [{"id": f"t{i}", "row": row} for i, row in enumerate(table)]
    _, made = call(address, "POST", "/models/rain/predict?mode=token", body)
    told = told_by_tokens(made, table)
    told[1]["token"] = "x"
    _, answers = call(address, "POST", "/models/rain/labels", told)
    assert [answer["status"] for answer in answers] == [200, 422, 200]
    assert own.model("rain")["learners"][0]["rounds"] == 2


def test_tokens_outlive_a_restart_new_classes_and_challengers(tmp_path):
    table = rows(40)
    with serving(tmp_path / "data") as (address, server):
        own = client(address)
        own.create("rain", "rain", columns=COLUMNS, learner="fast")
        own.challenge("rain", "other", learner="polyak")
        own.learn("rain", table, [label_of(row) for row in table])
        body = [{"id": f"t{i}", "row": row} for i, row in enumerate(table)]
        status, made = call(address, "POST", "/models/rain/predict?mode=token", body)
        own.learn("rain", table[0], "a third class")
    with serving(tmp_path / "data") as (address, server):
        own = client(address)
        told = told_by_tokens(made, table)
        status, answers = call(address, "POST", "/models/rain/labels", told)
        assert [answer["status"] for answer in answers] == [200] * 40
        rounds = [learner["rounds"] for learner in own.model("rain")["learners"]]
        assert rounds == [81, 81]
    check_replay(tmp_path / "data")


@pytest.mark.parametrize(
    "change",
    [
        {"classes": ["a", "a"]},
        {"classes": [f"{i}" for i in range(1001)]},
        {"options": {"task": "levels", "levels": 5}},
        {"options": {"task": "levels", "levels": ["a", ["b"]]}},
        {"options": {"task": "levels", "levels": ["a", "a"]}},
        {"columns": None, "rows": [{"x": 1, "y": "a"}], "options": {"learner": "fast"}},
        {"columns": None, "rows": [{"x": 1, "y": "a"}], "options": {"cls": "fast"}},
        {"columns": None, "rows": [{"x": 1, "k": 1, "y": "a"}], "options": {"key": "k"}},
    ],
)
def test_models_that_cannot_be_are_refused(service, change):
    address, _, _ = service
    body = {"name": "n", "label": "y", "columns": {"x": "number"}} | change
    assert call(address, "POST", "/models", body)[0] == 422


def test_learners_by_key_are_refused(service, tmp_path):
    _, own, _ = service
    rows = [{"who": f"k{i % 3}", "x": i % 7, "y": "ab"[i % 7 > 3]} for i in range(30)]
    table = dl.TableModel.new(rows, label="y", key="who", learner="fast")
    fleet = dl.Keyed(dl.OGD(dl.losses.Logistic(dl.tasks.Multiclass(2))))
    for model in (table, fleet):
        with pytest.raises(dl.ServiceError, match="every key|expected a model"):
            own.upload("keyed", model.save(tmp_path / "model"))


def test_limits_hold_for_uploads_too(service):
    address, _, _ = service
    path, kind = "/models/rain/rows", {"content-type": "text/csv"}
    long = "x" * 10_001
    assert call(address, "POST", path, json.dumps({"warm": 1, "rain": long}))[0] == 422
    assert call(address, "POST", path, f"warm,rain\n1,{long}\n", kind)[0] == 422
    assert call(address, "POST", f"{path}?id={'x' * 181}", "warm,rain\n1,no\n", kind)[0] == 422
    assert call(address, "POST", f"{path}?id={'x' * 180}", "warm,rain\n1,no\n", kind)[0] == 200


def test_numbers_and_modes_that_nobody_knows(service):
    address, own, server = service
    assert call(address, "GET", "/models/rain/log?after=%C2%B2")[0] == 422
    assert call(address, "POST", "/models/rain/predict?mode=tokens", {"row": {}})[0] == 422
    seq = server.machine.seq
    status, made = call(address, "POST", "/models/rain/predict?a=1&mode=token", {"row": {}})
    assert (status, "token" in made, server.machine.seq) == (200, True, seq)


def looked_until(address, wanted, seconds=10.0):
    """Look at a row until the answer is another; return the last one."""
    end = time.monotonic() + seconds
    while True:
        made = call(address, "POST", "/models/rain/look", {"row": {"warm": 1}})
        if wanted(*made) or time.monotonic() > end:
            return made
        time.sleep(0.05)


def test_copies_follow_though_nothing_else_comes(service):
    address, own, _ = service
    assert call(address, "POST", "/models/rain/look", {"row": {"warm": 1}})[0] == 200
    own.learn("rain", {"warm": 1}, "yes")
    status, made = looked_until(address, lambda _, made: made["prediction"] == "yes")
    assert made["prediction"] == "yes"


def test_a_copy_that_nobody_used_for_long_does_not_answer(service, monkeypatch):
    address, own, server = service
    monkeypatch.setattr("driftline.app.service.copies.UNUSED", 0.1)
    assert call(address, "POST", "/models/rain/look", {"row": {"warm": 1}})[0] == 200
    end = time.monotonic() + 10.0
    while server.copies._copies and time.monotonic() < end:
        time.sleep(0.01)
    own.learn("rain", [{"warm": 1}] * 9, ["yes"] * 9)
    status, made = call(address, "POST", "/models/rain/look", {"row": {"warm": 1}})
    assert made["prediction"] == "yes"


def test_a_deleted_model_is_not_looked_at(service):
    address, own, _ = service
    for _ in range(5):
        own.learn("rain", {"warm": 1}, "yes")
        made = looked_until(address, lambda _, made: made["prediction"] == "yes")
        assert made[1]["prediction"] == "yes"
        own.delete("rain")
        assert call(address, "POST", "/models/rain/look", {"row": {"warm": 1}})[0] == 404
        own.create("rain", "rain", columns=COLUMNS, learner="fast")
        status, made = call(address, "POST", "/models/rain/look", {"row": {"warm": 1}})
        assert (status, made["prediction"]) == (200, "(other)")


def test_who_watches_sees_the_last_numbers_before_it_was_quiet(service):
    address, own, server = service
    connection = http.client.HTTPConnection(address.removeprefix("http://"), timeout=10.0)
    connection.request("GET", "/events")
    answer = connection.getresponse()
    for i in range(3):
        own.predict("rain", {"warm": 1.0}, id=f"a{i}")
    while True:
        line = answer.readline()
        if line.startswith(b"data: "):
            made = json.loads(line.removeprefix(b"data: "))
            if made["models"][0]["counts"]["asked"] == 3:
                break
    connection.close()
