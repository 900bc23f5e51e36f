"""Wrong arguments of the public page: each is refused by what was seen and expected."""

from dataclasses import replace

import numpy as np
import pytest

import driftline as dl
from driftline.checks.learner_stream import saved

TASK = dl.tasks.Multiclass(3)
LOSS = dl.losses.Logistic(TASK)
rng = np.random.default_rng(0)
X = rng.standard_normal((40, 4))
Y = rng.integers(0, 3, 40)
WORDS = np.array(["sun", "rain", "fog"])[Y]
ZEROS = dl.comparators.Fixed(np.zeros((3, 4)))


def played():
    learner = dl.OGD(LOSS)
    learner.run(X, Y)
    return learner


def watched():
    learner = played()
    learner.watch(ZEROS)
    return learner


def committee():
    made = dl.Committee([dl.OGD(LOSS), dl.OGD(LOSS)])
    made.run(X, Y)
    return made


#: What is done to a learner that has played, and what the message says.
CALLS = [
    (lambda one: one.run(X, Y, seed=-1), "seed must be .* of 0 or more, or None, not -1"),
    (lambda one: one.run(X, Y, seed="a"), "seed must be .* not 'a'"),
    (lambda one: one.run(X, Y, seed=1.5), "seed must be .* not 1.5"),
    (lambda one: one.run(X, Y, seed=True), "seed must be .* not True"),
    (lambda one: one.run(X, Y, progress=3), "progress must be a function .* not 3"),
    (lambda one: one.run(X, Y, audit="no"), "audit must be True or False, not 'no'"),
    (lambda one: one.run(X, WORDS), "one is 'sun|one is 'rain|one is 'fog.*DriftClassifier"),
    (lambda one: one.run(X, list(WORDS)), "DriftClassifier"),
    (lambda one: one.step(X[0], "sun"), "one is 'sun'.*DriftClassifier"),
    (lambda one: one.learn_row(X[0], "sun"), "DriftClassifier"),
    (lambda one: one.learn_rows(X, WORDS), "DriftClassifier"),
    (lambda one: one.run(X, [None] * 40), "whole numbers, but their type is object"),
    (lambda one: one.grown(features="a"), "features must be a whole number of 1 or more, not 'a'"),
    (lambda one: one.grown(features=5.5), "features must be a whole number .* not 5.5"),
    (lambda one: one.grown(features=True), "features must be a whole number .* not True"),
    (lambda one: one.grown(classes=4.5), "whole numbers, but one is 4.5"),
    (lambda one: one.save(None), "expected a path, but got None"),
    (lambda one: one.save(3.5), "expected a path, but got 3.5"),
    (lambda one: one.restore(3), "expected a state"),
]


@pytest.mark.parametrize("make", [played, committee], ids=["OGD", "Committee"])
@pytest.mark.parametrize("call, words", CALLS, ids=[words for _, words in CALLS])
def test_a_wrong_argument_is_refused_and_nothing_changes(make, call, words):
    learner = make()
    before = saved(learner), learner.rounds
    with pytest.raises(dl.InputError, match=words):
        call(learner)
    assert (saved(learner), learner.rounds) == before


@pytest.mark.parametrize("make", [played, committee], ids=["OGD", "Committee"])
def test_a_word_is_no_label_of_a_ticket(make):
    learner = make()
    ticket = learner.ask(X[0])
    before = saved(learner)
    with pytest.raises(dl.InputError, match="DriftClassifier"):
        learner.tell(ticket, "sun")
    assert saved(learner) == before


TICKETS = [
    ({"learner": np.arange(3)}, "names its learner by a text, not array"),
    ({"learner": None}, "names its learner by a text, not None"),
    ({"number": np.arange(3)}, "a number and a count of rounds"),
    ({"rounds": "a"}, "a number and a count of rounds"),
    ({"input": None}, "no input like None"),
    ({"input": np.array(["a"] * 4)}, "real numbers"),
    ({"input": (1, 2)}, "no input like"),
]


@pytest.mark.parametrize("make", [played, committee], ids=["OGD", "Committee"])
@pytest.mark.parametrize("changed, words", TICKETS, ids=[words for _, words in TICKETS])
def test_a_ticket_of_wrong_fields_is_refused(make, changed, words):
    learner = make()
    ticket = replace(learner.ask(X[0]), **changed)
    with pytest.raises(dl.InputError, match=words):
        learner.tell(ticket, 1)


def test_a_ticket_of_wrong_fields_has_no_bytes():
    ticket = played().ask(X[0])
    for changed in ({"learner": np.arange(3)}, {"number": "a"}, {"rounds": -1}):
        with pytest.raises(dl.InputError, match="a ticket"):
            replace(ticket, **changed).to_bytes()


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda one: one.save("never"), "cannot be saved"),
        (lambda one: one.copy(), "copied"),
        (lambda one: one.snapshot(), "snapshot"),
        (lambda one: one.restore(one.state), r"watch\(None\)"),
        (lambda one: one.watch(3), "expected a comparator, such as dl.comparators.Fixed"),
        (lambda one: one.watch(np.zeros((3, 4))), "expected a comparator"),
        (lambda one: one.watch(dl.comparators.Fixed), "expected a comparator"),
        (lambda one: dl.certify(one), "no round was played since"),
    ],
)
def test_a_learner_under_watch_says_what_it_cannot_do(call, words):
    learner = watched()
    with pytest.raises(dl.InputError, match=words):
        call(learner)


def two(**changed):
    """Restore a committee to a state with a wrong field."""
    made = committee()
    made.restore(replace(made.state, **changed))


MAKING = [
    (lambda: dl.OGD(LOSS, seed=1.5), "seed must be .* not 1.5"),
    (lambda: dl.OGD(LOSS, seed=-1), "seed must be .* not -1"),
    (lambda: dl.auto(TASK, seed="a", effort="fast"), "seed must be .* not 'a'"),
    (lambda: dl.Committee([dl.OGD(LOSS)], seed=[1]), r"seed must be .* not \[1\]"),
    (lambda: dl.OGD(LOSS, "argmax"), "expected a decoder.* but got 'argmax'"),
    (lambda: dl.OGD(LOSS, dl.decoders.Argmax), "expected a decoder"),
    (lambda: dl.OGD(LOSS, rate=0.1), "expected a rate, such as dl.rates.Polyak.* but got 0.1"),
    (lambda: dl.OGD(LOSS, rate=dl.rates.Polyak), "expected a rate"),
    (lambda: dl.OGD(LOSS, domain=20), "expected a domain, such as dl.domains.Ball.* but got 20"),
    (lambda: dl.OGD(LOSS, initial="a"), "first weights must be rows of numbers"),
    (lambda: dl.OGD(LOSS, initial=[[1], [1, 2]]), "first weights must be rows of numbers"),
    (lambda: dl.OGD(LOSS, intercept="no"), "intercept must be True or False, not 'no'"),
    (lambda: dl.OGD(LOSS, dtype="banana"), "float64 or float32, not 'banana'"),
    (lambda: dl.auto(TASK, dtype="banana", effort="fast"), "float64 or float32, not 'banana'"),
    (
        lambda: dl.auto(TASK, dtype="banana", scaling=False, effort="fast"),
        "float64 or float32, not 'banana'",
    ),
    (lambda: dl.Committee(None), "a list of learners, but got None"),
    (lambda: dl.Committee(3), "a list of learners, but got 3"),
    (lambda: dl.Committee(dl.OGD(LOSS)), "a list of learners, but got OGD"),
    (lambda: dl.Committee(["a"]), "members must be learners such as dl.OGD, but one is 'a'"),
    (lambda: dl.Committee([LOSS]), "members must be learners such as dl.OGD, but one is Logistic"),
    (
        lambda: dl.Committee([committee()]),
        "members must be learners such as dl.OGD, but one is Committee",
    ),
    (lambda: dl.Committee([dl.OGD(LOSS)] * 2), "the same learner twice"),
    (lambda: dl.OGD(LOSS, features=True), "features must be a map .* not True"),
    (lambda: two(shares=None), "expected weights of members"),
    (lambda: two(members=3), "expected states of members"),
    (lambda: two(beliefs="a"), "beliefs"),
    (lambda: two(beliefs=np.zeros(3)), "beliefs"),
    (lambda: two(tickets="a"), "'a' as 'tickets'"),
    (lambda: two(tickets=-5), "-5 as 'tickets'"),
    (lambda: two(key="a"), "'a' as 'key'"),
    (lambda: dl.load(None), "expected a path, but got None"),
    (lambda: dl.comparators.Fixed("a"), "weights must be numbers"),
    (lambda: dl.comparators.Fixed([[1], [1, 2]]), "weights must be numbers"),
    (lambda: dl.comparators.Piecewise(["a"], [[[1.0]]]), "change points must be whole numbers"),
    (lambda: dl.comparators.Sequence(3), "expected weights one after the other, but got 3"),
]


@pytest.mark.parametrize("make, words", MAKING, ids=[words for _, words in MAKING])
def test_what_is_made_of_wrong_arguments_is_refused(make, words):
    with pytest.raises(dl.InputError, match=words):
        make()


@pytest.fixture(scope="module")
def trace():
    return played().run(X, Y)


@pytest.mark.parametrize(
    "given, words",
    [
        ((None, X, Y), "expected a comparator, such as dl.comparators.Fixed.* got None"),
        ((np.zeros((3, 4)), X, Y), "expected a comparator"),
        ((dl.comparators.Sequence(["a"] * 40), X, Y), "weights in round 0 must be"),
        ((ZEROS, X, WORDS), "DriftClassifier"),
        ((ZEROS, X, 3), "labels"),
    ],
)
def test_certify_refuses_wrong_arguments(trace, given, words):
    with pytest.raises(dl.InputError, match=words):
        dl.certify(trace, *given)


@pytest.mark.parametrize("comparators", [3, [ZEROS, 3]])
def test_certify_refuses_wrong_comparators_of_a_committee(comparators):
    with pytest.raises(dl.InputError, match="expected a comparator"):
        dl.certify(committee().run(X, Y), comparators, X, Y)


@pytest.mark.parametrize("chance", ["a", -0.1, 0.0, 1.5, np.nan, None])
def test_a_chance_is_a_share(trace, chance):
    with pytest.raises(dl.InputError, match="chance must lie between 0 and 1"):
        dl.certify(trace, ZEROS, X, Y, chance=chance)


@pytest.mark.parametrize("options", [{"keep": "no"}, {"progress": 3}])
def test_certify_refuses_wrong_options(trace, options):
    with pytest.raises(dl.InputError, match="must be"):
        dl.certify(trace, ZEROS, X, Y, **options)


def test_seeds_of_numpy_are_seeds():
    assert saved(dl.OGD(LOSS, seed=np.int64(3))) == saved(dl.OGD(LOSS, seed=3))
    one, other = played(), played()
    one.run(X, Y, seed=np.uint8(7))
    other.run(X, Y, seed=7)
    assert saved(one) == saved(other)


def test_grades_whose_exponential_gains_overflow_are_refused():
    for highest in (301, 1023, 5000):
        with pytest.raises(dl.InputError, match="up to 300"):
            dl.tasks.NDCG(highest, gain="exponential")
    task = dl.tasks.NDCG(300, gain="exponential")
    assert task.loss([1, 0, 2], [300, 0, 300]) == pytest.approx(0.307, abs=1e-3)
