"""Interruptions: an exception at any line leaves a learner as before an operation, or as after."""

import functools
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from interrupting import Operation, attack, some_of

import driftline as dl
from driftline.keyed import images

pytestmark = pytest.mark.usefixtures("no_ids", "few_live")

RNG = np.random.default_rng(0)
X, Y = RNG.standard_normal((120, 6)), RNG.integers(0, 3, 120)
S = sp.random_array((120, 50), density=0.1, rng=RNG).tocsr()
KEYS = np.array([f"key {k}" for k in RNG.integers(0, 30, 120)])
TASK = dl.tasks.Multiclass(3)
LOSS = dl.losses.Logistic(TASK)
TAGS = RNG.integers(0, 2, (120, 4))
RANKS = np.argsort(RNG.standard_normal((120, 4)), axis=1)

ogd = functools.partial(dl.OGD, LOSS)


@pytest.fixture
def few_live(monkeypatch):
    """Let two learners of keys be live at a time."""
    for name in ("FEWEST", "MOST"):
        monkeypatch.setattr(images, name, 2)


def row(rows, t):
    """Return one row as a learner takes it."""
    return rows[t : t + 1] if sp.issparse(rows) else rows[t]


def begun(rows=X, labels=Y, count=20):
    """Return what lets a learner play so many rounds together, and one more by itself."""

    def prepare(learner):
        if count:
            learner.run(rows[:count], labels[:count])
            learner.step(row(rows, count), labels[count])

    return prepare


def stepping(make, rows=X, labels=Y, count=20):
    return Operation(
        make, begun(rows, labels, count), lambda one, _: one.step(row(rows, 40), labels[40])
    )


def running(make, rows=X, labels=Y, count=20, more=40, **options):
    def play(learner, _):
        learner.run(rows[40 : 40 + more], labels[40 : 40 + more], **options)

    return Operation(make, begun(rows, labels, count), play)


def telling(make, rows=X, labels=Y, count=20, late=False):
    def prepare(learner):
        begun(rows, labels, count)(learner)
        tickets = [learner.ask(rows[t]) for t in range(40, 43)]
        if late:
            learner.step(rows[43], labels[43])
        return tickets[1]

    return Operation(make, prepare, lambda one, ticket: one.tell(ticket, labels[41]), once=True)


def telling_rows(make, rows=X, labels=Y, count=30):
    def prepare(learner):
        begun(rows, labels)(learner)
        return learner.ask_rows(rows[40 : 40 + count])

    def play(learner, tickets):
        learner.tell_rows(tickets[::-1], labels[40 : 40 + count][::-1])

    return Operation(make, prepare, play, once=True)


def forgetting(make, delay=None, before=False):
    def prepare(learner):
        learner.run(X[:20], Y[:20], delay=delay)
        return learner.ask(X[20])

    def play(learner, ticket):
        learner.forget(**{"before" if before else "ticket": ticket})

    return Operation(make, prepare, play, once=not before)


def after_dense(play):
    """Return an operation on sparse rows of a learner that has seen dense ones."""
    return Operation(ogd, lambda one: one.learn_rows(S[:20].toarray(), Y[:20]), play)


def keyed(make, play, prepare=None, **options):
    """Return an operation on the learners of some keys."""

    def before(fleet):
        fleet.learn_rows(KEYS[:6], X[:6], Y[:6])
        return None if prepare is None else prepare(fleet)

    new = functools.partial(dl.Keyed, make(), **options)
    return Operation(new, before, play, once=prepare is not None)


def asked(key):
    """Return what asks for the ticket of a key."""
    return lambda fleet: fleet.ask(key, X[40])


def of_keys(name, make, **options):
    """Return the operations on learners by key."""
    operations = {
        "step": keyed(make, lambda f, _: f.step(KEYS[0], X[40], Y[40]), **options),
        "step of a new key": keyed(make, lambda f, _: f.step("new", X[40], Y[40]), **options),
        "first step": Operation(
            functools.partial(dl.Keyed, make(), **options),
            lambda _: None,
            lambda f, _: f.step("new", X[40], Y[40]),
        ),
        "first learn_rows": Operation(
            functools.partial(dl.Keyed, make(), **options),
            lambda _: None,
            lambda f, _: f.learn_rows(KEYS[:6], X[:6], Y[:6]),
        ),
        "ask": keyed(make, lambda f, _: f.ask(KEYS[0], X[40]), **options),
        "ask of a new key": keyed(make, lambda f, _: f.ask("new", X[40]), **options),
        "tell": keyed(make, lambda f, own: f.tell(own, Y[40]), asked(KEYS[0]), **options),
        "tell of a new key": keyed(
            make, lambda f, own: f.tell(own, Y[40]), asked("new"), **options
        ),
        "forget": keyed(make, lambda f, own: f.forget(own), asked("new"), **options),
        "run": keyed(make, lambda f, _: f.run(KEYS[20:26], X[20:26], Y[20:26]), **options),
        "learn_rows": keyed(
            make, lambda f, _: f.learn_rows(KEYS[20:26], X[20:26], Y[20:26]), **options
        ),
    }
    return {f"{name}: {key}": own for key, own in operations.items()}


def crowded(play):
    """Return an operation on more keys than are live, each with rows in a journal."""

    def before(fleet):
        for t in range(12):
            fleet.step(int(t % 4), X[t], Y[t])
        for t in range(12, 15):
            fleet.step(int(t % 2), X[t], Y[t])

    return Operation(lambda: dl.Keyed(mapped()), before, play)


bandit = functools.partial(dl.bandit.Bandit, TASK)
tags = functools.partial(dl.bandit.Clicks, dl.tasks.Multilabel(4))
from_loss = functools.partial(
    dl.bandit.LossOnly,
    dl.losses.FenchelYoung(dl.tasks.LabelRanking(4), dl.regularizers.Quadratic()),
)
fast = functools.partial(dl.auto, TASK, effort="fast")
mapped = functools.partial(ogd, features=dl.features.Standardise())
hats = functools.partial(ogd, features=dl.features.Hats(4))
alert = functools.partial(ogd, restart=dl.detectors.Cusum(threshold=0.5))
plain = functools.partial(alert, domain=dl.domains.Box(-np.ones((3, 6)), np.ones((3, 6))))

PLACES = [{"size": float(x[0]), "kind": "abc"[y]} for x, y in zip(X, Y, strict=True)]
NAMES = ["yes" if x[1] > 0 else "no" for x in X]


def of_table(play, prepare=None, **options):
    """Return an operation on the model of a table."""

    def new():
        rows = [dict(row, will=name) for row, name in zip(PLACES[:50], NAMES[:50], strict=True)]
        return dl.TableModel.new(rows, "will", learner="fast", **options)

    def before(model):
        model.learn(PLACES[:20], NAMES[:20])
        return None if prepare is None else prepare(model)

    return Operation(new, before, play, once=prepare is not None)


def ask_table(model):
    return model.ask(PLACES[20:31])


OPERATIONS = {
    "step": stepping(ogd),
    "first step": stepping(ogd, count=0),
    "learn_row": Operation(ogd, begun(), lambda one, _: one.learn_row(X[40], Y[40])),
    "learn": Operation(ogd, begun(), lambda one, _: one.learn(X[40], Y[40])),
    "run": running(ogd),
    "first run": running(ogd, count=0),
    "run with a seed": running(ogd, seed=7),
    "learn_rows": Operation(ogd, begun(), lambda one, _: one.learn_rows(X[40:80], Y[40:80])),
    "ask": Operation(ogd, begun(), lambda one, _: one.ask(X[40])),
    "first ask": Operation(ogd, begun(count=0), lambda one, _: one.ask(X[40])),
    "ask_rows": Operation(ogd, begun(), lambda one, _: one.ask_rows(X[40:50])),
    "tell": telling(ogd),
    "tell late": telling(ogd, late=True),
    "tell_rows": telling_rows(ogd),
    "tell few": telling_rows(ogd, count=4),
    "forget": forgetting(ogd),
    "forget what waits": forgetting(ogd, delay=5, before=True),
    "run with a delay": running(ogd, delay=5),
    "step of sparse rows": stepping(ogd, rows=S),
    "sparse step after dense": after_dense(lambda one, _: one.step(S[40:41], Y[40])),
    "sparse run after dense": after_dense(lambda one, _: one.run(S[40:80], Y[40:80])),
    "tell with a map": telling(mapped),
    "tell_rows with a map": telling_rows(mapped),
    "run with a map": running(mapped),
    "step with a map": stepping(mapped),
    "first step with a map": stepping(mapped, count=0),
    "step with quantiles": stepping(hats),
    "learn with a map": Operation(mapped, begun(), lambda one, _: one.learn(X[40], Y[40])),
    "step that restarts": stepping(alert, count=39),
    "step after a restart": stepping(alert, count=40),
    "step of parts without kernels": stepping(plain, count=39),
    "run of parts without kernels": running(plain, count=39, more=2),
    "sparse step with a detector": stepping(alert, rows=S),
    "run with a detector": running(alert),
    "bandit step": stepping(bandit),
    "bandit first step": stepping(bandit, count=0),
    "bandit tell": telling(bandit),
    "bandit tell_rows": telling_rows(bandit, count=3),
    "bandit run": running(bandit),
    "bandit run with a delay": running(bandit, delay=5),
    "clicks step": stepping(tags, labels=TAGS),
    "clicks tell": telling(tags, labels=TAGS),
    "clicks run": running(tags, labels=TAGS),
    "step from losses": stepping(from_loss, labels=RANKS, count=2),
    "first step from losses": stepping(from_loss, labels=RANKS, count=0),
    "tell losses": telling(from_loss, labels=RANKS, count=2),
    "run from losses": running(from_loss, labels=RANKS, count=2, more=2),
    "table: learn": of_table(lambda one, _: one.learn(PLACES[20:31], NAMES[20:31])),
    "table: learn with sets": of_table(
        lambda one, _: one.learn(PLACES[20:31], NAMES[20:31]), coverage=0.8
    ),
    "table: learn a new class": of_table(
        lambda one, _: one.learn(PLACES[20:31], [*NAMES[20:30], "perhaps"])
    ),
    "table: tell": of_table(lambda one, own: one.tell(own, NAMES[20:31]), ask_table),
    "table: tell with sets": of_table(
        lambda one, own: one.tell(own, NAMES[20:31]), ask_table, coverage=0.8
    ),
    "table: ask": of_table(lambda one, _: one.ask(PLACES[20])),
    "table: ask_proba": of_table(lambda one, _: one.ask_proba(PLACES[20:24])),
    "table: forget": of_table(lambda one, own: one.forget(own[3]), ask_table),
    "table: predict": of_table(lambda one, _: one.predict(PLACES[20:24])),
    **of_keys("keyed", ogd),
    **of_keys("keyed, shared", ogd, start="shared"),
    **of_keys("keyed by states", mapped),
    **of_keys("keyed bandits", bandit),
    **of_keys("keyed committees", fast),
    "many keys: step": crowded(lambda f, _: f.step(2, X[40], Y[40])),
    "many keys: predict": crowded(lambda f, _: f.predict(2, X[40])),
    "many keys: save": crowded(lambda f, _: f.to_saved()),
    "many keys: evict": crowded(lambda f, _: f.evict(most=2)),
    "keyed: evict": Operation(
        functools.partial(dl.Keyed, ogd()),
        lambda f: f.learn_rows(KEYS[:6], X[:6], Y[:6]),
        lambda f, _: f.evict(most=2),
    ),
}

ERRORS = KeyboardInterrupt, MemoryError
ALL = pytest.mark.parametrize("name", OPERATIONS)


@ALL
def test_an_exception_at_some_lines_tears_nothing(name):
    error = ERRORS[len(name) % 2]
    attack(OPERATIONS[name], error, some_of(seed=len(name), most=6))


@pytest.mark.hard
@pytest.mark.parametrize("error", ERRORS)
@ALL
def test_an_exception_at_any_line_tears_nothing(name, error):
    """Errors of memory, and operations of thousands of lines, are tried at 500 lines."""
    all_of, some = some_of(seed=1, most=10**6), some_of(seed=1, most=500)

    def lines(count):
        return all_of(count) if error is KeyboardInterrupt and count < 2000 else some(count)

    print(f"{name}: {dict(attack(OPERATIONS[name], error, lines))}")


def test_real_interrupts_in_a_loop_of_steps_leave_a_committee_that_goes_on():
    here = Path(__file__).with_name("interrupted_steps.py")
    made = subprocess.run([sys.executable, here], capture_output=True, text=True)
    assert made.stdout == "17 interrupts, the same state\n", made.stderr
