"""A round in two halves: asking changes nothing, telling learns what a step would."""

import dataclasses
import subprocess
import sys
import threading

import numpy as np
import pytest
import scipy.sparse as sp
from test_saving import CASES

import driftline as dl
from driftline.learner.ticket import Ticket
from driftline.state import archive

every_case = pytest.mark.parametrize("case", CASES)


def saved(learner, but=()):
    """Return all of a learner, without some fields of its state."""
    about, arrays = learner.to_saved()
    state = {k: v for k, v in about["state"].items() if k not in but}
    return about | {"state": state}, {name: array.tobytes() for name, array in arrays.items()}


def equal(one, other):
    return np.array_equal(np.asarray(one), np.asarray(other))


def row(inputs, t):
    return inputs[[t]] if sp.issparse(inputs) else inputs[t]


@every_case
def test_halves_have_the_bits_of_a_run(case):
    make, data = CASES[case]
    inputs, labels = data()
    ran, asked, stepped = make(), make(), make()
    trace = ran.run(inputs, labels)
    for t, label in enumerate(labels):
        before = saved(asked, ("tickets",))
        seen = asked.predict(row(inputs, t))
        ticket = asked.ask(row(inputs, t))
        assert equal(ticket.prediction, seen)
        assert saved(asked, ("tickets",)) == before
        asked.tell(Ticket.from_bytes(ticket.to_bytes()) if t % 2 else ticket, label)
        assert equal(stepped.step(row(inputs, t), label).prediction, ticket.prediction)
        recorded = np.ravel(trace.prediction[t])
        assert equal(np.ravel(ticket.prediction), recorded[: np.size(ticket.prediction)])
    assert saved(asked) == saved(stepped)
    (about, arrays), (known, expected) = ran.to_saved(), asked.to_saved()
    assert about == known
    assert all(np.array_equal(arrays[name], array) for name, array in expected.items())


@every_case
def test_predicting_writes_nothing(case):
    make, data = CASES[case]
    inputs, labels = data()
    learner = make()
    learner.run(inputs[:5], labels[:5])
    before = saved(learner)
    first = [learner.predict(row(inputs, t)) for t in range(5, 8)]
    again = [learner.predict(row(inputs, t)) for t in range(5, 8)]
    assert all(map(equal, first, again))
    assert saved(learner) == before


@every_case
def test_a_snapshot_stays_where_it_was(case):
    make, data = CASES[case]
    inputs, labels = data()
    learner = make()
    learner.run(inputs[:5], labels[:5])
    expected = [learner.predict(row(inputs, t)) for t in range(5, 8)]
    fixed = learner.snapshot()
    learner.run(inputs[5:], labels[5:])
    assert all(map(equal, expected, (fixed.predict(row(inputs, t)) for t in range(5, 8))))
    assert fixed.rounds == 5 and "after 5 rounds" in repr(fixed)


@every_case
def test_a_state_is_a_value(case):
    make, data = CASES[case]
    inputs, labels = data()
    learner, other = make(), make()
    learner.run(inputs[:5], labels[:5])
    state = learner.state
    one = learner.run(inputs[5:], labels[5:])
    for again in (learner, other):  # the same, twice, and in another learner
        again.restore(state)
        two = again.run(inputs[5:], labels[5:])
        np.testing.assert_array_equal(one.risk, two.risk)
        np.testing.assert_array_equal(one.prediction, two.prediction)


def learner(**options):
    return dl.OGD(dl.losses.Logistic(dl.tasks.Multiclass(3)), **options)


X = np.random.default_rng(0).normal(size=(40, 4))
Y = np.random.default_rng(1).integers(0, 3, 40)


@pytest.mark.parametrize("make", [learner, lambda **o: dl.auto(dl.tasks.Multiclass(3), **o)])
def test_tickets_of_others_are_refused_and_change_nothing(make):
    one, other = make(), make(seed=1)
    one.run(X, Y)
    other.run(X, Y)
    ticket = one.ask(X[0])
    before = saved(one)
    forged = [
        (other.ask(X[0]), "is that of a learner"),
        (dataclasses.replace(ticket, number=ticket.number + 1), "there is no ticket"),
        (dataclasses.replace(ticket, number=-1), "a number and a count"),
        (dataclasses.replace(ticket, number=True), "a number and a count"),
        (dataclasses.replace(ticket, rounds=3), "by now: tell a ticket before"),
        (dataclasses.replace(ticket, input=X[0, :3]), "3 features"),
        (dataclasses.replace(ticket, input=np.full(4, np.nan)), "finite"),
        (dataclasses.replace(ticket, input=np.full(4, "x")), "numbers"),
        (dataclasses.replace(ticket, input=X[:2]), "2 rows"),
        (dataclasses.replace(ticket, input=(np.array([9]), np.ones(1), 4)), "column indices"),
        (dataclasses.replace(ticket, input=(np.array([1]), np.ones(2), 4)), "2 values"),
        (dataclasses.replace(ticket, input=None), "no input like"),
        ("ticket", "expected a ticket"),
    ]
    for bad, words in forged:
        with pytest.raises(dl.InputError, match=words):
            one.tell(bad, 1)
    with pytest.raises(dl.InputError):
        one.tell(ticket, 7)
    assert saved(one) == before
    one.tell(ticket, 1)
    with pytest.raises(dl.InputError, match="by now"):
        one.tell(ticket, 1)


def test_bytes_that_are_no_ticket_are_refused():
    content = learner().ask(X[0]).to_bytes()
    for bad in (b"", content[:-1], content.replace(b"Ticket", b"Tucket")):
        with pytest.raises(dl.InputError):
            Ticket.from_bytes(bad)
    about, arrays = archive.unpacked(content, "it")
    for change in ({"kind": "Trace"}, {"features": None}, {"features": {"input": 4}}):
        with pytest.raises(dl.InputError):
            Ticket.from_bytes(archive.packed(about | change, arrays))
    del arrays["mean"]
    with pytest.raises(dl.InputError, match="not whole"):
        Ticket.from_bytes(archive.packed(about, arrays))


def test_a_ticket_is_told_in_another_process(tmp_path):
    one = dl.auto(dl.tasks.Multiclass(3))
    one.run(X, Y)
    ticket = one.ask(X[3])
    (tmp_path / "ticket").write_bytes(ticket.to_bytes())
    one.save(tmp_path / "model")
    code = f"""
import driftline as dl
learner = dl.load({str(tmp_path / "model")!r})
learner.tell(dl.Ticket.from_bytes(open({str(tmp_path / "ticket")!r}, "rb").read()), 2)
learner.save({str(tmp_path / "later")!r})
"""
    subprocess.run([sys.executable, "-c", code], check=True)
    one.tell(ticket, 2)
    assert (tmp_path / "later").read_bytes() == one.save(tmp_path / "own").read_bytes()


def test_tickets_that_are_never_told_do_no_harm():
    loss = dl.losses.Logistic(dl.tasks.Multiclass(3))
    one = dl.OGD(loss, dl.decoders.UniformMix(loss))
    for x in X[:10]:
        one.ask(x)
    trace = one.run(X, Y, audit=True)
    made = dl.certify(trace, dl.comparators.Fixed(np.zeros((3, 4))), X, Y)
    assert made.valid and not made.unchecked
    assert one.state.tickets == 50 and one.rounds == 40


def test_readers_wait_and_learners_do_not_mind_them():
    """While one thread learns, others look and take snapshots, and nobody is refused."""
    one, reference = dl.auto(dl.tasks.Multiclass(3)), dl.auto(dl.tasks.Multiclass(3))
    inputs, labels = np.tile(X, (50, 1)), np.tile(Y, 50)
    one.run(X, Y)
    reference.run(X, Y)
    failures, over, looks = [], threading.Event(), []

    def read():
        try:
            while not over.is_set():
                looks.append(one.predict(X[0]))
                looks.append(one.snapshot().predict(X[0]))
                assert one.weights.shape == (6,)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=read) for _ in range(2)]
    for thread in threads:
        thread.start()
    for t in range(0, 1000):
        one.step(inputs[t], int(labels[t]))
    one.run(inputs[1000:], labels[1000:])
    over.set()
    for thread in threads:
        thread.join()
    assert not failures, failures
    assert len(looks) and set(looks) <= {0, 1, 2}
    reference.run(inputs, labels)
    assert saved(one) == saved(reference)
