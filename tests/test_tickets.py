"""A round in two halves: asking changes nothing, telling learns what a step would."""

import dataclasses
import hashlib
import json
import subprocess
import sys
import threading

import numpy as np
import pytest
import scipy.sparse as sp
from test_saving import CASES

import driftline as dl
from driftline.learner.ticket import Ticket
from driftline.state import compact

pytestmark = pytest.mark.usefixtures("no_ids")

every_case = pytest.mark.parametrize("case", CASES)


def saved(learner, but=()):
    """Return all of a learner, without some fields of its state."""
    about, arrays = learner.to_saved()
    state = {k: v for k, v in about["state"].items() if k not in but}
    rest = {name: array.tobytes() for name, array in arrays.items() if name not in but}
    return about | {"state": state}, rest


def equal(one, other):
    return np.array_equal(np.asarray(one), np.asarray(other))


def row(inputs, t):
    return inputs[[t]] if sp.issparse(inputs) else inputs[t]


#: What asking changes.
ASKED = ("tickets", "outstanding", "identity", "reserved", "reserved.numbers")


@every_case
def test_halves_have_the_bits_of_a_run(case):
    make, data = CASES[case]
    inputs, labels = data()
    ran, asked, stepped = make(), make(), make()
    trace = ran.run(inputs, labels)
    for t, label in enumerate(labels):
        before = saved(asked, ASKED)
        seen = asked.predict(row(inputs, t))
        ticket = asked.ask(row(inputs, t))
        assert equal(ticket.prediction, seen)
        assert saved(asked, ASKED) == before
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


@pytest.mark.ids
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
    with pytest.raises(dl.InputError, match="not outstanding"):
        one.tell(ticket, 1)


def sealed(about, shapes, content=b"", head=compact.HEAD):
    """Return a message with any header, and a digest that fits."""
    header = json.dumps([about, shapes]).encode()
    whole = head + len(header).to_bytes(4, "little") + header + content
    return whole + hashlib.blake2b(whole, digest_size=16).digest()


def test_bytes_that_are_no_ticket_are_refused():
    ticket = learner().ask(X[0])
    content, (about, arrays) = ticket.to_bytes(), ticket.to_saved()
    for bad in (b"", content[:-1], content.replace(b"Ticket", b"Tucket"), "text", None, 7, [1]):
        with pytest.raises(dl.InputError):
            Ticket.from_bytes(bad)
    for change in ({"kind": "Trace"}, {"features": None}, {"features": {"input": 4}}):
        with pytest.raises(dl.InputError):
            Ticket.from_bytes(compact.packed(about | change, arrays))
    less = {name: array for name, array in arrays.items() if name != "mean"}
    with pytest.raises(dl.InputError, match="not whole"):
        Ticket.from_bytes(compact.packed(about, less))


def tickets_of_all_kinds():
    """Return tickets with all fields that there are, as bytes, and their readers."""
    rows = [{"age": 20 + i % 50, "will": "go" if i % 50 < 25 else "stay"} for i in range(60)]
    model = dl.TableModel.new(rows, label="will", learner="fast", coverage=0.8)
    model.learn(rows)
    sparse = learner().ask(sp.csr_array(X[:1]))
    words = dl.auto(dl.tasks.Sequence(3), effort="fast").ask(X[:3])
    committee = dl.auto(dl.tasks.Multiclass(3), effort="fast")
    committee.run(X, Y)
    made = [(Ticket, one) for one in (learner().ask(X[0]), sparse, words, committee.ask(X[0]))]
    return [*made, (dl.TableTicket, model.ask({"age": 30}))]


def test_damaged_bytes_are_refused():
    """Whichever byte is changed, wherever they are cut, and whatever is added."""
    rng = np.random.default_rng(0)
    for kind, ticket in tickets_of_all_kinds():
        content = ticket.to_bytes()
        assert kind.from_bytes(content).to_bytes() == content
        assert kind.from_bytes(bytearray(content)).to_bytes() == content
        damaged = [content[:cut] for cut in range(len(content))]
        for place in range(len(content)):
            changed = bytearray(content)
            changed[place] ^= 1 << int(rng.integers(8))
            damaged.append(bytes(changed))
        damaged += [content + b"\0", b"\0" + content, content + content, content[::-1]]
        damaged += [rng.bytes(int(n)) for n in rng.integers(0, 300, 50)]
        damaged += [compact.HEAD + rng.bytes(int(n)) for n in rng.integers(0, 300, 50)]
        for bad in damaged:
            with pytest.raises(dl.InputError):
                kind.from_bytes(bad)


def test_edited_messages_are_refused_by_what_they_say():
    """Anyone can compute a digest: so nothing in a message is trusted."""
    eight = b"\0" * 8
    wrong = [
        sealed({}, [["a", "<f8", [2]]], eight),
        sealed({}, [["a", "<f8", [1]]], eight + eight),
        sealed({}, [["a", "<f8", [-1]]], eight),
        sealed({}, [["a", "<f8", [-1, -1]]], eight),
        sealed({}, [["a", "<f8", [True]]], eight),
        sealed({}, [["a", "<f8", [1.0]]], eight),
        sealed({}, [["a", "<f8", "1"]], eight),
        sealed({}, [["a", "<f8", [1] * 9]], eight),
        sealed({}, [["a", "<f8", [0, 10**30]]]),
        sealed({}, [["a", "<f8", [10**30]]]),
        sealed({}, [["a", "<f8", [1]], ["a", "<f8", [1]]], eight + eight),
        sealed({}, [[7, "<f8", [1]]], eight),
        sealed({}, [["a", "|O", [1]]], eight),
        sealed({}, [["a", ["<f8"], [1]]], eight),
        sealed({}, [["a", "|b1", [1]]], b"\2"),
        sealed({}, [["a", "<f8"]], eight),
        sealed({}, [[f"a{i}", "<f8", [0]] for i in range(65)]),
        sealed({}, 7),
        sealed([], []),
        sealed({}, [], head=compact.NAME + b"\2"),
    ]
    whole = compact.HEAD + (10**6).to_bytes(4, "little") + b"[{},[]]"
    wrong.append(whole + hashlib.blake2b(whole, digest_size=16).digest())
    for text in (
        b"[" * 100_000,
        b"{}",
        b"\xff",
        b"[{},[]] x",
        b'[{"a":' + b"1" * 10_000 + b"},[]]",
    ):
        whole = compact.HEAD + len(text).to_bytes(4, "little") + text
        wrong.append(whole + hashlib.blake2b(whole, digest_size=16).digest())
    for content in wrong:
        with pytest.raises(dl.InputError, match="it cannot be read"):
            compact.unpacked(content, "it")
    assert compact.unpacked(sealed({}, [["a", "<f8", [0, 3]]]), "it")[1]["a"].shape == (0, 3)
    with pytest.raises(dl.InputError, match="a holds"):
        compact.packed({}, {"a": np.array(["x"])})
    with pytest.raises(dl.InputError, match="no plain data"):
        compact.packed({"a": object()}, {})


def test_tickets_of_random_edits_are_told_or_refused():
    """A ticket whose fields were edited and sealed again is refused by an InputError, or valid."""
    rng = np.random.default_rng(1)
    one = dl.auto(dl.tasks.Multiclass(3), effort="fast")
    one.run(X, Y)
    ticket = one.ask(X[0])
    one.step(X[1], int(Y[1]))
    about, arrays = ticket.to_saved()
    values = [None, -1, 2.5, "x", [], {}, True, 10**30, {"input": 3}]
    others = [np.zeros(0), np.full(4, np.nan), np.zeros((2, 2)), np.zeros(3, np.int64)]
    refused = 0
    for _ in range(300):
        text, more = dict(about), dict(arrays)
        if rng.random() < 0.5:
            text[str(rng.choice(list(about)))] = values[rng.integers(len(values))]
        else:
            more[str(rng.choice(list(arrays)))] = others[rng.integers(len(others))]
        before = saved(one)
        try:
            one.copy().tell(Ticket.from_bytes(compact.packed(text, more)), 1)
        except dl.InputError:
            refused += 1
        assert saved(one) == before
    assert refused > 100


@pytest.mark.ids
def test_a_ticket_is_told_in_another_process(tmp_path):
    one = dl.auto(dl.tasks.Multiclass(3), effort="fast")
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
    one, reference = (
        dl.auto(dl.tasks.Multiclass(3), effort="fast"),
        dl.auto(dl.tasks.Multiclass(3), effort="fast"),
    )
    inputs, labels = np.tile(X, (50, 1)), np.tile(Y, 50)
    one.run(X, Y)
    reference.run(X, Y)
    failures, over, looks = [], threading.Event(), []

    def read():
        try:
            while not over.is_set():
                looks.append(one.predict(X[0]))
                looks.append(one.snapshot().predict(X[0]))
                assert one.weights.shape == (7,)
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


def test_many_readers_do_not_stop_a_stream():
    one = dl.auto(dl.tasks.Multiclass(3), effort="fast")
    one.run(X, Y)
    over = threading.Event()

    def read():
        while not over.is_set():
            one.predict(X[0])

    threads = [threading.Thread(target=read) for _ in range(6)]
    for thread in threads:
        thread.start()
    one.run(np.tile(X, (100, 1)), np.tile(Y, 100))
    over.set()
    for thread in threads:
        thread.join()
    assert one.rounds == 40 + 4000


@pytest.mark.parametrize("make", [learner, lambda: dl.auto(dl.tasks.Multiclass(3), effort="fast")])
def test_an_interrupt_leaves_no_lock_behind(make):
    one = make()
    one.run(X, Y)
    before = saved(one)

    def interrupt(_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        one.run(X, Y, progress=interrupt)
    assert saved(one) == before
    seen = []
    thread = threading.Thread(target=lambda: seen.append(one.step(X[0], 0)))
    thread.start()
    thread.join(30.0)
    assert seen


def test_a_committee_that_was_torn_says_so():
    """Weights that are larger than the inputs are not copied, and cannot be gone back to."""
    wide = sp.random_array((60, 5000), density=0.002, rng=np.random.default_rng(0), format="csr")
    one = dl.auto(dl.tasks.Multiclass(3), effort="fast")
    one.run(wide[:20], np.zeros(20, dtype=int))
    play = one.members[3]._play_mapped

    def interrupt(*arguments):
        raise KeyboardInterrupt

    one.members[3]._play_mapped = interrupt
    with pytest.raises(KeyboardInterrupt) as caught:
        one.run(wide[20:], np.zeros(40, dtype=int))
    assert "members stand after different rounds" in caught.value.__notes__[0]
    one.members[3]._play_mapped = play
    with pytest.raises(dl.TornError, match="load a saved committee"):
        one.run(wide, np.zeros(60, dtype=int))


def test_a_refused_first_round_fixes_nothing():
    loss = dl.losses.Logistic(dl.tasks.Multiclass(3))
    for one in (
        learner(),
        dl.auto(dl.tasks.Multiclass(3), effort="fast"),
        dl.OGD(loss, rate=dl.rates.Constant(1e50)),
    ):
        for row in (np.full(5, np.nan), np.full(5, 1e100)):
            before = saved(one)
            try:
                one.step(row, 1)
            except dl.InputError:
                assert one.features is None and saved(one) == before
        if one.features is None:
            one.step(X[0], 1)
            assert one.features == 4


def test_a_tally_that_was_handed_out_stays_the_learners():
    one = learner()
    tally = one.watch(dl.comparators.Fixed(np.zeros((3, 4))))
    one.run(X, Y)
    bad = X.copy()
    bad[20] = np.nan
    with pytest.raises(dl.InputError):
        one.run(bad, Y)
    one.run(X, Y)
    assert tally is one.tally and tally.rounds == 80


def test_a_refused_step_does_not_use_up_a_new_start():
    loss = dl.losses.Scaled(dl.losses.Logistic(dl.tasks.Multiclass(3)), 2.0)
    restart = dl.detectors.Cusum(0.5, 1.5, 0.1, 5)
    one = dl.OGD(loss, dl.decoders.Argmax(loss), restart=restart)
    for x, label in zip(np.tile(X, (5, 1)), np.tile(Y, 5).tolist(), strict=True):
        one.step(x, label)
        if one.state.restarted:
            break
    assert one.state.restarted
    with pytest.raises(dl.InputError):
        one.step(np.full(4, np.nan), 0)
    assert one.state.restarted


@pytest.mark.parametrize(
    "fields",
    [
        {"norm_sq": float("nan")},
        {"scale": -1.0},
        {"eta": -1.0},
        {"tickets": 2.5},
        {"rounds": 2.5},
        {"refresh": float("nan")},
        {"rate_memory": "x"},
        {"weights": [[1.0]]},
    ],
    ids=str,
)
def test_states_that_no_file_could_have_are_refused(fields):
    one = learner()
    one.run(X, Y)
    before, state = saved(one), one.state
    with pytest.raises(dl.InputError):
        one.restore(state.replaced(**fields))
    assert saved(one) == before


def test_states_of_other_committees_are_refused():
    one, two = (
        dl.auto(dl.tasks.Multiclass(3), effort="fast"),
        dl.auto(dl.tasks.Multiclass(3), scaling=False, effort="fast"),
    )
    one.run(X, Y)
    two.run(X, Y)
    before, state = saved(one), one.state
    wrong = [
        two.state,
        state.replaced(members=()),
        state.replaced(members=("a",) * 6),
        state.replaced(members=state.members[:5]),
        state.replaced(members=(state.members[0].replaced(map=None), *state.members[1:])),
        learner().state,
    ]
    for other in wrong:
        with pytest.raises(dl.InputError):
            one.restore(other)
        assert saved(one) == before


@pytest.mark.parametrize("scaling", [True, False])
def test_a_fixed_number_of_documents_is_played_in_steps_and_runs(scaling):
    """Ranks of all documents are written, into room for as many."""
    task = dl.tasks.NDCG(3, items=5)
    grades = np.random.default_rng(2).integers(0, 4, (40, 5))
    for make in (
        lambda: dl.auto(task, scaling=scaling, effort="fast"),
        lambda: dl.OGD(dl.losses.ConvolutionalFenchelYoung(task)),
    ):
        ran, stepped, told = make(), make(), make()
        trace = ran.run(X, grades)
        for x, label, ranks in zip(X, grades, trace.prediction, strict=True):
            ticket = told.ask(x)
            told.tell(ticket, label)
            made = stepped.step(x, label).prediction
            assert sorted(made) == [0, 1, 2, 3, 4]
            assert equal(made, ranks) and equal(made, ticket.prediction)
        assert saved(ran)[1] == saved(stepped)[1] == saved(told)[1]
