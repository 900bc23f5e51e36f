"""Requests with bytes changed, cut, doubled and swapped: none may be answered by a server error.

Nor may rows of extreme numbers lead to a state that cannot be loaded.
"""

import json
import socket

import numpy as np
import pytest

import driftline as dl
from driftline.app.service.served import LARGEST, Feedback, LearnerServed
from driftline.app.service.server import load
from driftline.state import archive
from tests.service import check_replay, client, serving

COLUMNS = {"x": "number", "flag": "flag", "town": ["York", "Bath"]}
GOOD = [
    ("POST", "/models/m/predict", {"id": "a", "row": {"x": 1.5, "flag": True, "town": "York"}}),
    ("POST", "/models/m/predict", [{"id": "b", "row": {"x": "2"}}, {"row": {"town": "Ely"}}]),
    ("POST", "/models/m/labels", {"id": "a", "label": "yes"}),
    ("POST", "/models/m/labels", [{"id": "b", "label": "no"}, {"id": "c", "loss": 1.0}]),
    ("POST", "/models/m/learn", {"id": "d", "row": {"x": 0.1}, "label": "yes"}),
    ("POST", "/models/m/learn", [{"row": {"x": -3e5}, "label": 7}] * 2),
    ("POST", "/models/m/look", {"row": {"x": 1}}),
    ("POST", "/models/v/predict", {"id": "a", "row": [0.5, 0.5]}),
    ("POST", "/models/v/labels", {"id": "a", "label": 2}),
    ("POST", "/models", {"name": "n", "label": "y", "columns": {"x": "number"}, "learner": "fast"}),
    ("POST", "/models/m/challengers", {"name": "c", "learner": "polyak", "after": 1}),
    ("PUT", "/models/m/champion", {"learner": "first"}),
    ("GET", "/models/m/log?format=json&after=3", None),
    ("GET", "/models/m/certificate", None),
    ("POST", "/models/m/rows?id=u", 'x,flag,town,y\n1,true,"Bath\nSpa",yes\n'),
    ("DELETE", "/models/n", None),
]  # fmt: skip
TOKENS = [b"null", b"true", b"1e400", b"-0.0", b'"\\ud800"', b"{}", b"[]", b"[[[[[[", b"9" * 400]
TOKENS += [
    b"\x00",
    b"\xff",
    b'"\\u0000"',
    b"..",
    b"%2e%2e%2f",
    b"1e-400",
    b'"' + b"y" * 3000 + b'"',
]


def raw(method, path, body):
    content = (
        b""
        if body is None
        else body.encode()
        if isinstance(body, str)
        else json.dumps(body).encode()
    )
    kind = b"text/csv" if isinstance(body, str) else b"application/json"
    head = f"{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n".encode()
    return head, b"content-type: " + kind + b"\r\n", content


def mutated(content, generator):
    """Return bytes with some of them changed."""
    made = bytearray(content)
    for _ in range(int(generator.integers(1, 4))):
        place = int(generator.integers(0, len(made) + 1))
        other = int(generator.integers(0, len(made) + 1))
        first, last = min(place, other), max(place, other)
        kind = int(generator.integers(6))
        if kind == 0 and place < len(made):
            made[place] ^= 1 << int(generator.integers(8))
        elif kind == 1:
            del made[first : min(last, first + 20)]
        elif kind == 2:
            made[place:place] = TOKENS[int(generator.integers(len(TOKENS)))]
        elif kind == 3:
            made[first:last] = made[first:last] * 2
        elif kind == 4:
            made[first:last] = TOKENS[int(generator.integers(len(TOKENS)))]
        else:
            made[place:place] = bytes(generator.integers(0, 256, 3).tolist())
    return bytes(made)


ODD = [None, True, -1, 2**70, 1e308, "", "x" * 300, "\x00", [], {}, [[1]], {"x": 1}, "a", "m", 0.5]


def altered(value, generator):
    """Return JSON with one of its values, or names, replaced by another."""
    places = []

    def walk(node):
        for key in list(node) if isinstance(node, dict) else range(len(node)):
            places.append((node, key))
            if isinstance(node[key], (dict, list)):
                walk(node[key])

    value = json.loads(json.dumps([value]))
    walk(value)
    node, key = places[int(generator.integers(len(places)))]
    other = ODD[int(generator.integers(len(ODD)))]
    if isinstance(node, dict) and generator.random() < 0.2:
        node[str(other)] = node.pop(key)
    else:
        node[key] = other
    return value[0]


def answered(port, content):
    """Return the status of the answer to some bytes; 0 if the connection was closed."""
    with socket.create_connection(("127.0.0.1", port), 20.0) as connection:
        connection.settimeout(2.0)
        connection.sendall(content)
        said = b""
        try:
            while not said.count(b"\r\n\r\n") and (part := connection.recv(65536)):
                said += part
        except (ConnectionResetError, TimeoutError):  # it waits for more, as is right
            pass
    return int(said[9:12]) if said[:5] == b"HTTP/" else 0


def played(tmp_path, count, seed):
    generator = np.random.default_rng(seed)
    statuses = {}
    with serving(tmp_path / "data") as (address, server):
        port = int(address.rsplit(":", 1)[1])
        own = client(address)
        own.create("m", "y", columns=COLUMNS, learner="fast")
        import driftline as dl

        dl.OGD(dl.losses.Logistic(dl.tasks.Multiclass(3))).save(tmp_path / "v")
        own.upload("v", tmp_path / "v")
        for _ in range(count):
            method, path, given = GOOD[int(generator.integers(len(GOOD)))]
            if not isinstance(given, str) and generator.random() < 0.6:
                given = altered(given, generator)
            head, kind, body = raw(method, path, given)
            if generator.random() < 0.3:
                body = mutated(body, generator)
            elif generator.random() < 0.05:
                head = mutated(head, generator)
            content = head + kind + f"content-length: {len(body)}\r\n\r\n".encode() + body
            status = answered(port, content)
            statuses[status] = statuses.get(status, 0) + 1
            assert status < 500, content
        assert own.predict("m", {"x": 1.0}, id="the last one")["id"] == "the last one"
    check_replay(tmp_path / "data")
    return statuses


def test_mutated_requests_are_refused_or_carried_out(tmp_path):
    statuses = played(tmp_path, 500, seed=0)
    assert statuses[200] > 20 and statuses[422] > 20


@pytest.mark.hard
def test_ten_thousand_mutated_requests(tmp_path):
    print(played(tmp_path, 10_000, seed=1))


def test_files_of_models_that_were_edited_are_refused(tmp_path):
    rows = [{"x": i, "y": "a" if i % 2 else "b"} for i in range(20)]
    content = dl.TableModel.new(rows, label="y", learner="fast").save(tmp_path / "m").read_bytes()
    generator = np.random.default_rng(0)
    for _ in range(100):
        with pytest.raises(dl.InputError):
            load(mutated(content, generator))


SIZES = [0.0, 1.0, 1e-3, 1e39, 1e139, 1e140, 1e141, LARGEST, 1e-150, 1e-160, 1e-300, 1e-310]
CLASSES, SIGNS = dl.tasks.Multiclass(3), dl.tasks.Binary()
LEARNERS = {
    "default": lambda: dl.OGD(dl.losses.Logistic(CLASSES)),
    "float32": lambda: dl.OGD(dl.losses.SmoothHinge(SIGNS), dtype=np.float32),
    "scaled": lambda: dl.OGD(dl.losses.Logistic(SIGNS), features=dl.features.Standardise()),
    "unbounded": lambda: dl.OGD(
        dl.losses.Logistic(CLASSES), rate=dl.rates.Constant(0.1), domain=dl.domains.Unbounded()
    ),
    "restarts": lambda: dl.OGD(
        dl.losses.SmoothHinge(CLASSES), rate=dl.rates.AdaGrad(), restart=dl.detectors.Cusum()
    ),
    "plain": lambda: dl.OGD(dl.losses.Logistic(CLASSES), domain=dl.domains.RowBalls(3, 5.0)),
    "committee": lambda: dl.auto(SIGNS, effort="fast"),
    "neighbours": lambda: dl.members.Neighbours(CLASSES),
    "bandit": lambda: dl.bandit.Bandit(CLASSES),
}


@pytest.mark.parametrize("make", LEARNERS.values(), ids=LEARNERS)
@pytest.mark.parametrize("seed", range(6))
def test_whatever_rows_a_learner_accepted_its_state_can_be_loaded(make, seed):
    """Rows of the largest and smallest numbers are learned from, or refused and change nothing."""
    generator = np.random.default_rng(seed)
    served, waiting = LearnerServed(make()), []
    served.learner._identify()  # as all learners of the service are
    labels = [-1, 1] if served.learner.task == SIGNS else [0, 1, 2]
    sizes = generator.choice(SIZES, size=5)
    for _ in range(20):
        count = generator.integers(1, 5)
        rows = (
            generator.choice(sizes, (count, 2)) * generator.choice([1, -0.9], (count, 2))
        ).tolist()
        given = [Feedback(int(generator.choice(labels))) for _ in rows]
        before = archive.packed(*served.to_saved())
        try:
            served.check_rows(rows)
            kind = generator.integers(3)
            if kind == 0:
                waiting += [own.ticket for own in served.ask(rows)]
            elif kind == 1 and waiting:
                served.tell([waiting.pop(generator.integers(len(waiting)))], given[:1])
            else:
                served.learn(rows, given)
        except dl.InputError:
            assert archive.packed(*served.to_saved()) == before
        content = archive.packed(*served.to_saved())
        assert archive.packed(*load(content).to_saved()) == content
