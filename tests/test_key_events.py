"""The rows of one key as values: the bits of dl.Keyed, however rows are cut and labels are late."""

import numpy as np
import pytest

import driftline as dl
from driftline.checks.learner_stream import without_id
from driftline.keyed.events import Answer, Event, KeyPlayer, learner_of

L, T = dl.losses, dl.tasks
RNG = np.random.default_rng(3)
X = RNG.normal(size=(90, 4))
CLASSES = (X[:, 0] > 0).astype(int) + (X[:, 1] > 0)
TAGS = (X[:, :3] > 0).astype(int)
KEYS = ["a", 7]


def drawn():
    loss = L.Logistic(T.Multiclass(3))
    return dl.OGD(loss, dl.decoders.GapOptimal(loss), seed=5)


def abstaining():
    loss = L.Logistic(T.Multiclass(3), base=2.0)
    return dl.OGD(loss, dl.decoders.Abstain(loss, cost=0.25))


FAMILY = {
    "classes": (lambda: dl.OGD(L.Logistic(T.Multiclass(3))), CLASSES),
    "drawn": (drawn, CLASSES),
    "no answer": (abstaining, CLASSES),
    "tags": (lambda: dl.OGD(L.Logistic(T.Multilabel(3))), TAGS),
    "map": (lambda: dl.OGD(L.Logistic(T.Multiclass(3)), features=dl.features.Hats(4)), CLASSES),
    "committee": (lambda: dl.auto(T.Multiclass(3), effort="fast"), CLASSES),
}
every_learner = pytest.mark.parametrize("name", FAMILY)


def saved(learner):
    about, arrays = learner.to_saved()
    return without_id(about), {name: array.tobytes() for name, array in arrays.items()}


def plain(prediction):
    return None if prediction is None else np.asarray(prediction).tolist()


def events_of(y, seed=0, late=0.6):
    """Return rows with labels at once, late, early or never, in an order of their own."""
    rng = np.random.default_rng(seed)
    made = []
    for i, x in enumerate(X):
        if rng.random() > late:
            made.append(Event(f"r{i}", 1000 * i, x, y[i]))
            continue
        made.append(Event(f"r{i}", 1000 * i, x))
        if rng.random() < 0.9:
            made.append(Event(f"r{i}", 1000 * (i + int(rng.integers(-6, 30))) + 1 + i, None, y[i]))
    return sorted(made, key=lambda event: event.order)


def one_machine(fleet, key, events):
    """Play rows one by one, as a program with a dictionary would."""
    tickets, early, made = {}, {}, {}
    for event in events:
        label = event.label
        if event.input is not None:
            label = early.pop(event.id, label)
            if label is not None:
                made[event.id] = fleet.step(key, event.input, label).prediction
            else:
                tickets[event.id] = fleet.ask(key, event.input)
                made[event.id] = tickets[event.id].prediction
        elif event.id in tickets:
            fleet.tell(tickets.pop(event.id), label)
        else:
            early[event.id] = label
    return {id: plain(own) for id, own in made.items()}


def played(player, key, events, cuts, rng=None, **options):
    """Play rows in pieces; return all answers, and the last value."""
    answers, content = [], None
    for part in np.split(np.arange(len(events)), cuts):
        rows = [events[i] for i in (part if rng is None else rng.permutation(part)).tolist()]
        own, content = player.play(key, rows, content, **options)
        answers += own
    return answers, content


@every_learner
def test_pieces_have_the_bits_of_one_machine_that_is_told_row_by_row(name):
    make, y = FAMILY[name]
    events = events_of(y)
    for key in KEYS:
        fleet = dl.Keyed(make())
        expected = one_machine(fleet, key, events)
        for cuts in ([], [50], range(7, len(events), 7)):
            rng = np.random.default_rng(len(list(cuts)))
            answers, content = played(KeyPlayer(make()), key, events, cuts, rng)
            assert not [own for own in answers if own.error]
            assert {own.id: plain(own.prediction) for own in answers} == expected
            assert saved(learner_of(content)) == saved(fleet.learner(key))


@every_learner
def test_rows_with_labels_have_the_bits_of_a_run(name):
    make, y = FAMILY[name]
    fleet, player = dl.Keyed(make()), KeyPlayer(make())
    trace = fleet.run(["a"] * len(X), X, y)
    events = [Event(i, i, x, label) for i, (x, label) in enumerate(zip(X, y, strict=True))]
    answers, content = played(player, "a", events, [31, 33])
    alone = KeyPlayer(make())
    singly, same = played(alone, "a", events, range(1, len(X)))
    assert content == same
    assert [plain(own.prediction) for own in answers] == [plain(own.prediction) for own in singly]
    numbers = [fleet.task.predictions.numbers(own.prediction).tolist() for own in answers]
    assert numbers == trace.prediction.reshape(len(X), -1).tolist()
    assert [own.rounds for own in answers] == list(range(len(X)))
    assert saved(learner_of(content)) == saved(fleet.learner("a"))


def test_equal_rows_have_equal_bytes_and_the_seed_is_that_of_the_key():
    events = events_of(CLASSES)
    first, second = (played(KeyPlayer(drawn()), "a", events, [40]) for _ in range(2))
    assert first[1] == second[1]
    assert played(KeyPlayer(drawn()), "b", events, [40])[0] != first[0]


@pytest.fixture
def player():
    return KeyPlayer(FAMILY["classes"][0](), outstanding=3, early=2, remembered=4, expires=1000)


def test_what_comes_twice_is_ignored(player):
    events = [Event("a", 1, X[0]), Event("b", 2, X[1], 1), Event("a", 3, None, 2)]
    _, content = player.play("k", events)
    for again in (events, [Event("a", 9, None, 0)], [Event("b", 9, X[5], 0)]):
        answers, content = player.play("k", again, content)
        assert answers == [] and learner_of(content).rounds == 2
    answers, same = player.play("k", [*events, *events])
    assert [own.id for own in answers] == ["a", "b"]
    assert saved(learner_of(same)) == saved(learner_of(content))


def test_a_row_that_comes_again_with_its_label_is_learned_from_once(player):
    _, content = player.play("k", [Event("a", 1, X[0])])
    answers, content = player.play("k", [Event("a", 2, X[0], 1)], content)
    assert answers == [] and learner_of(content).rounds == 1
    _, content = player.play("k", [Event("a", 3, X[0], 1)], content)
    assert learner_of(content).rounds == 1


BAD = {
    "not a number": Event("z", 2, np.array([0.0, np.nan, 0.0, 0.0])),
    "infinite": Event("z", 2, np.array([0.0, np.inf, 0.0, 0.0]), 1),
    "too short": Event("z", 2, X[0][:2], 1),
    "no such label": Event("z", 2, X[0], 3),
    "no whole label": Event("z", 2, X[0], 0.5),
    "empty": Event("z", 2, None),
    "no id": Event(None, 2, X[0], 1),
    "no order": Event("z", None, X[0], 1),
    "known to be bad": Event("z", 2, X[0], 1, "it has no key"),
    "early and wrong": Event("z", 2, None, 17),
}


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("count", [2, 30])
def test_bad_rows_are_refused_and_the_others_are_played(name, count):
    player = KeyPlayer(FAMILY["classes"][0]())
    good = [Event(i, i, x, y) for i, (x, y) in enumerate(zip(X[:count], CLASSES, strict=False))]
    answers, content = player.play("k", [*good, BAD[name]])
    (refused,) = [own for own in answers if own.error]
    assert refused.id == BAD[name].id and refused.prediction is None
    expected, same = player.play("k", good)
    assert [own for own in answers if not own.error] == expected
    assert content == same
    if refused.id is not None:  # a corrected row may come
        answers, content = player.play("k", [Event("z", 99, X[40], 1)], content)
        assert answers[0].error is None and learner_of(content).rounds == count + 1


def test_a_wrong_label_leaves_its_input_waiting(player):
    _, content = player.play("k", [Event("a", 1, X[0])])
    answers, content = player.play("k", [Event("a", 2, None, 9)], content)
    assert "outside" in answers[0].error
    _, content = player.play("k", [Event("a", 3, None, 1)], content)
    assert learner_of(content).rounds == 1


def test_the_oldest_inputs_are_forgotten_beyond_a_limit(player):
    _, content = player.play("k", [Event(i, i, X[i]) for i in range(5)])
    assert learner_of(content).outstanding == 3
    answers, content = player.play("k", [Event(i, 9, None, 1) for i in range(5)], content)
    assert [own.id for own in answers] == [0, 1] and "too late" in answers[0].error
    assert learner_of(content).rounds == 3


def test_the_oldest_labels_without_inputs_are_refused_beyond_a_limit(player):
    answers, content = player.play("k", [Event(i, i, None, 1) for i in range(3)])
    (refused,) = answers
    assert refused.id == 0 and "unknown id" in refused.error
    answers, content = player.play("k", [Event(i, 9, X[i]) for i in range(3)], content)
    assert [own.error for own in answers] == [None] * 3
    assert learner_of(content).rounds == 2 and learner_of(content).outstanding == 1


def test_what_waits_expires_by_an_alarm(player):
    _, content = player.play("k", [Event("a", 1, X[0]), Event("b", 2, None, 1)], now=500)
    content, due = player.alarm(content)
    assert due == 1500 and player.alarm(content)[1] is None
    _, content = player.play("k", [Event("c", 3, X[1])], content, now=900)
    assert player.alarm(content)[1] is None
    answers, content = player.play("k", [], player.alarmed(content), now=1500)
    assert [(own.id, own.prediction) for own in answers] == [("b", None)]
    assert learner_of(content).outstanding == 1
    content, due = player.alarm(content)
    assert due == 1900
    answers, content = player.play("k", [Event("a", 4, None, 1)], content, now=1600)
    assert "too late" in answers[0].error


def test_without_expiry_no_alarm_is_set():
    player = KeyPlayer(FAMILY["classes"][0]())
    _, content = player.play("k", [Event("a", 1, X[0])], now=500)
    assert player.alarm(content) == (content, None)


def test_values_of_other_learners_and_damaged_ones_are_refused(player):
    _, content = player.play("k", [Event("a", 1, X[0])])
    for other in (drawn(), FAMILY["committee"][0]()):
        with pytest.raises(dl.InputError, match="other parts"):
            KeyPlayer(other).play("k", [], content)
    for cut in (0, 3, 40, len(content) - 1):
        with pytest.raises(dl.InputError):
            player.play("k", [Event("a", 2, None, 1)], content[:cut])
    for place in range(0, len(content), 97):
        bent = bytearray(content)
        bent[place] ^= 1
        with pytest.raises(dl.InputError):
            player.play("k", [Event("a", 2, None, 1)], bytes(bent))


def test_a_committee_with_very_many_arrays_is_kept_too():
    player = KeyPlayer(dl.auto(T.Multiclass(3)))
    rows = [Event(i, i, X[i], int(CLASSES[i])) for i in range(12)]
    answers, content = player.play("k", rows)
    answers, content = player.play("k", [Event("n", 99, X[50])], content)
    assert answers[0] == Answer("n", answers[0].prediction, 12)
    fleet = dl.Keyed(dl.auto(T.Multiclass(3)))
    fleet.run(["k"] * 12, X[:12], CLASSES[:12])
    assert answers[0].prediction == fleet.predict("k", X[50])


@pytest.mark.parametrize(
    "options", [{"outstanding": -1}, {"early": 1.5}, {"remembered": None}, {"expires": 0}]
)
def test_limits_are_whole_numbers(options):
    with pytest.raises(dl.InputError, match=next(iter(options))):
        KeyPlayer(FAMILY["classes"][0](), **options)


def test_rounds_of_several_vectors_are_refused():
    with pytest.raises(dl.InputError, match="one vector"):
        KeyPlayer(dl.auto(T.Sequence(3)))
