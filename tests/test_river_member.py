"""Models of River as members: laws that need no River, by models that learn as its do."""

import copy
import itertools
import math
import threading

import numpy as np
import pytest
from scipy import sparse

import driftline as dl
from driftline.features import Fitted, Standardise
from driftline.members import NaiveBayes, River
from tests.test_members import stream

TASK, SIGN = dl.tasks.Multiclass(3), dl.tasks.Binary()


class Counts:
    """Counts classes, by the sign of the first feature. Cells above 100 make it fail."""

    def __init__(self, broken=True):
        self.counts, self.seen, self.copies, self.broken = {}, [], [0], broken

    def __deepcopy__(self, memo):
        made = Counts(self.broken)
        made.counts = {k: dict(v) for k, v in self.counts.items()}
        made.seen, made.copies = list(self.seen), self.copies
        self.copies[0] += 1
        return made

    def predict_proba_one(self, x):
        bad = {102: {0: math.nan}, 103: {0: -1.0}, 104: {"a": 1.0}, 105: 7, 106: {7: 1.0}}
        if self.broken and x.get(0, 0.0) in bad:
            return bad[x[0]]
        own = self.counts.get(x.get(0, 0.0) > 0.0, {})
        return {k: n / sum(own.values()) for k, n in own.items()}

    def learn_one(self, x, y):
        own = self.counts.setdefault(x.get(0, 0.0) > 0.0, {})
        own[y] = own.get(y, 0) + 1
        self.seen.append((x, y))
        if self.broken and x.get(0) == 101:
            raise RuntimeError("no such shop")


class Last:
    """Predicts the last class, without chances, and nothing before the first."""

    label = None

    def predict_one(self, x):
        return self.label

    def learn_one(self, x, y):
        self.label = y


def ogd(task, features=None):
    loss = dl.losses.Scaled(dl.losses.Logistic(task), 2.0)
    return dl.OGD(loss, dl.decoders.Argmax(loss), features=features)


MAKERS = {
    "alone": lambda: River(TASK, Counts()),
    "signs": lambda: River(SIGN, Counts()),
    "without chances": lambda: River(TASK, Last()),
    "trusted": lambda: River(TASK, Counts(), trusted=True),
    "mapped": lambda: River(TASK, Counts(), features=Standardise(constant=False)),
    "vote": lambda: dl.Committee(
        [ogd(TASK), River(TASK, Counts()), River(TASK, Last()), NaiveBayes(TASK)]
    ),
    "trusted in a vote": lambda: dl.Committee([River(TASK, Counts(), trusted=True), ogd(TASK)]),
    "scaled": lambda: dl.Committee(
        [River(TASK, Counts(), features=Standardise()), ogd(TASK, Standardise())]
    ),
}
every_learner = pytest.mark.parametrize("name", MAKERS)


def models(learner):
    members = learner.members if isinstance(learner, dl.Committee) else [learner]
    return [member.model for member in members if isinstance(member, River)]


def now(learner):
    """Return all that a learner is, as text."""
    about, arrays = learner.to_saved()
    known = repr([{k: v for k, v in vars(m).items() if k != "copies"} for m in models(learner)])
    plain = repr(about).split("'model'")[0]
    return known, plain, learner.rounds, {k: a.tobytes() for k, a in arrays.items()}


def columns(trace):
    made = trace.columns()
    return {name: column.tobytes() for name, column in made.items()}


@every_learner
def test_steps_halves_and_pieces_are_one_run(name):
    whole, stepped, told, pieces = (MAKERS[name]() for _ in range(4))
    X, y = stream(whole.task)
    trace = whole.run(X, y)
    made = [stepped.step(x, label) for x, label in zip(X, y, strict=True)]
    assert [m.prediction for m in made] == trace.prediction.tolist()
    assert [m.target_loss for m in made] == trace.target_loss.tolist()
    for x, label, prediction in zip(X, y, trace.prediction.tolist(), strict=True):
        ticket = told.ask(x)
        assert ticket.prediction == prediction
        told.tell(ticket, label)
    first, second = pieces.run(X[:23], y[:23]), pieces.run(X[23:], y[23:])
    assert columns(type(trace).join([first, second])) == columns(trace)
    assert now(whole) == now(stepped) == now(told) == now(pieces)


@every_learner
def test_looking_writes_nothing(name):
    learner = MAKERS[name]()
    X, y = stream(learner.task)
    for known in (0, 20):
        learner.run(X[:known], y[:known]) if known else None
        before = now(learner)
        seen = [learner.predict(x) for x in X]
        fixed = learner.snapshot()
        learner.describe()
        if known:
            learner.score_rows(X)
        assert now(learner) == before
    learner.run(X[20:], y[20:])
    assert [fixed.predict(x) for x in X] == seen


@every_learner
def test_a_state_and_a_copy_are_values(name):
    learner = MAKERS[name]()
    X, y = stream(learner.task)
    learner.run(X[:20], y[:20])
    state, twin, before = learner.state, learner.copy(), now(learner)
    assert now(twin) == before
    first = learner.run(X[20:], y[20:])
    assert now(twin) == before
    second = twin.run(X[20:], y[20:])
    learner.restore(state)
    assert now(learner) == before
    third = learner.run(X[20:], y[20:])
    assert columns(first) == columns(second) == columns(third)
    restored = MAKERS[name]()
    restored.restore(state)
    assert now(restored)[2:] == before[2:]
    assert columns(restored.run(X[20:], y[20:])) == columns(first)


@every_learner
def test_a_run_is_certified_and_a_tampered_one_is_not(name):
    learner = MAKERS[name]()
    X, y = stream(learner.task)
    learner.run(X[:20], y[:20])
    trace = learner.run(X[20:], y[20:])
    made = dl.certify(trace, None, X[20:], y[20:])
    assert made.valid, made.findings
    assert "no theorem" in str(made) or "no bound" in str(made).lower()
    assert not dl.certify(trace, None, X[:40], y[:40]).valid


@every_learner
def test_members_are_described_without_a_theorem(name):
    words = MAKERS[name]().describe()
    assert "nothing is known of what a model of another library does" in words


WRONG = {
    101: "raised RuntimeError: no such shop",
    102: "gave the chances {0: nan}",
    103: "gave the chances {0: -1.0}",
    104: "predicted {'a': 1.0}: expected chances of",
    105: "predicted 7: expected chances of",
    106: "predicted {7: 1.0}: expected chances of",
    math.nan: "has nan as feature 0",
}


#: Scaled cells are never that large, and what has no chances never fails.
PAIRS = [
    (name, cell)
    for name, cell in itertools.product(MAKERS, WRONG)
    if math.isnan(cell) or name not in ("mapped", "scaled", "without chances")
]


@pytest.mark.parametrize(("name", "cell"), PAIRS)
@pytest.mark.parametrize("known", [0, 20])
def test_what_is_refused_changes_nothing(name, cell, known):
    learner = MAKERS[name]()
    X, y = stream(learner.task)
    if known:
        learner.run(X[:known], y[:known])
    bad = X.copy()
    bad[31, 0] = cell
    before = now(learner)
    with pytest.raises(dl.InputError) as error:
        learner.run(bad[known:], y[known:])
    assert WRONG[cell] in str(error.value) and f"row {31 - known}" in str(error.value)
    assert now(learner) == before
    if "trusted" not in name or cell != 101:
        for call in (learner.step, learner.learn_row):
            with pytest.raises(dl.InputError):
                call(bad[31], y[31])
            assert now(learner)[2:] == before[2:]
            assert now(learner)[0] == before[0]
    if known and cell != 101:
        with pytest.raises(dl.InputError):
            learner.predict(bad[31])
    if "trusted" not in name:
        learner.run(X[known:], y[known:])
        assert learner.rounds == 60


def test_a_bad_row_of_another_member_takes_the_model_back():
    """A transformer in front of the last member refuses the row when the model has learned it."""

    class Picky:
        def transform(self, rows):
            if rows[0, 0] > 50:
                raise RuntimeError("too much")
            return rows

    late = ogd(TASK, Fitted(Picky(), "picky", columns=4))
    committee = dl.Committee([River(TASK, Counts()), late])
    X, y = stream(TASK)
    committee.run(X[:20], y[:20])
    before, bad = now(committee), X[20].copy()
    bad[0] = 60.0
    with pytest.raises(dl.InputError, match="too much"):
        committee.step(bad, 1)
    assert now(committee) == before
    committee.step(X[20], y[20])


def test_a_committee_does_not_go_on_after_a_trusted_model_has_raised():
    committee, (X, y) = MAKERS["trusted in a vote"](), stream(TASK)
    committee.run(X[:20], y[:20])
    committee.step(X[20], y[20])
    saved = committee.state
    with pytest.raises(dl.InputError, match="no such shop"):
        committee.step([101.0, 0.0, 0.0, 0.0], 1)
    calls = [
        lambda: committee.step(X[21], y[21]),
        lambda: committee.predict(X[21]),
        lambda: committee.grown(classes=4),
    ]
    for call in calls:
        with pytest.raises(dl.TornError, match="different rounds"):
            call()
    committee.restore(saved)
    committee.step(X[21], y[21])


def test_an_interrupted_step_changes_nothing():
    class Slow(Counts):
        def learn_one(self, x, y):
            super().learn_one(x, y)
            raise KeyboardInterrupt

        def __deepcopy__(self, memo):
            made = Slow()
            made.counts = copy.deepcopy(self.counts)
            return made

    learner = River(TASK, Slow())
    with pytest.raises(KeyboardInterrupt):
        learner.step([1.0, 2.0], 1)
    assert learner.rounds == 0 and learner.features is None and learner.model.counts == {}


def test_scores_are_chances_of_which_a_little_is_even():
    X, y = stream(TASK)
    learner, naive = River(TASK, Counts()), Counts()
    trace = learner.run(X, y)
    for x, label, loss, prediction in zip(X, y, trace.loss, trace.prediction, strict=True):
        row = dict(enumerate(x.tolist()))
        chances = naive.predict_proba_one(row) or {k: 1 / 3 for k in range(3)}
        mixed = [0.999 * chances.get(k, 0.0) + 0.001 / 3 for k in range(3)]
        assert loss == pytest.approx(-math.log(mixed[label]), abs=1e-12)
        assert prediction == mixed.index(max(mixed))
        naive.learn_one(row, int(label))
    assert learner.model.seen == naive.seen
    assert np.exp(learner.scores(X[0])).sum() == pytest.approx(1.0)
    np.testing.assert_allclose(learner.score_rows(X)[0], learner.scores(X[0]))


@pytest.mark.parametrize("size", [1e-320, 1e-300, 1.0, 1e300, 1.7e308])
def test_chances_of_any_size_are_shares_of_their_sum(size):
    class Sized(Last):
        def predict_proba_one(self, x):
            return {0: size, 1: size, 2: size / 2}

    scores = River(TASK, Sized()).scores([1.0])
    np.testing.assert_allclose(np.exp(scores), 0.999 * np.array([0.4, 0.4, 0.2]) + 0.001 / 3)


def test_a_chance_that_no_float_can_be_is_refused():
    class Huge(Last):
        def predict_proba_one(self, x):
            return {0: 10**400}

    with pytest.raises(dl.InputError, match="the model Huge predicted"):
        River(TASK, Huge()).step([1.0], 0)


def test_the_model_that_was_given_is_left_alone_and_signs_are_false_or_true():
    model = Counts()
    model.learn_one({0: 1.0}, True)
    learner = River(SIGN, model)
    assert learner.predict([2.0]) == 1  # what it had learned before counts
    learner.step([2.0], -1)
    assert len(model.seen) == 1 and learner.model.seen[1] == ({0: 2.0}, False)


def test_sparse_rows_are_the_entries_that_are_there():
    learner = River(TASK, Counts())
    rows = sparse.csr_array([[0.0, 2.0, 0.0], [1.0, 0.0, 3.0]])
    learner.run(rows, [0, 1])
    learner.step(rows[[1]], 2)
    assert learner.model.seen == [({1: 2.0}, 0), ({0: 1.0, 2: 3.0}, 1), ({0: 1.0, 2: 3.0}, 2)]
    assert learner.score_rows(rows).shape == (2, 3)


def test_a_model_that_is_trusted_is_copied_once_a_run_and_never_in_steps():
    X, y = stream(TASK)
    for trusted, most in ((True, 2), (False, 22)):
        for committee in (False, True):
            model = Counts()
            learner = River(TASK, model, trusted=trusted)
            playing = dl.Committee([ogd(TASK), learner]) if committee else learner
            playing.run(X[:20], y[:20])
            playing.step(X[20], y[20])
            model.copies[0] = 0
            for x, label in zip(X[21:41], y[21:41], strict=True):
                playing.step(x, label)
            assert model.copies[0] <= (0 if trusted else 20)
            playing.run(X[41:], y[41:])
            assert model.copies[0] <= most


# -- files


@every_learner
def test_a_file_has_the_name_of_the_model_and_takes_it_again(name, tmp_path):
    learner = MAKERS[name]()
    X, y = stream(learner.task)
    trace = learner.run(X, y)
    path = learner.save(tmp_path / "model")
    members = getattr(learner, "members", [learner])
    models = [own.model for own in members if isinstance(own, River)]
    names = ", ".join(type(own).__name__ for own in models)
    with pytest.raises(dl.InputError, match=f"saved without its model.*{names}"):
        dl.load(path)
    for wrong in (3, [*models, models[0]], [], Last):
        with pytest.raises(dl.InputError):
            dl.load(path, model=wrong)
    again = dl.load(path, model=models if len(models) > 1 else models[0])
    assert columns(again.run(X, y)) == columns(learner.run(X, y))
    path.unlink()
    with pytest.raises(dl.InputError, match="no plain data, and is not written to a file"):
        trace.save(tmp_path / "trace")
    assert list(tmp_path.iterdir()) == []
    plain = learner.run(X, y, audit=False)
    path = plain.save(tmp_path / "trace")
    assert columns(type(plain).load(path)) == columns(plain)


def test_what_a_file_could_say_is_no_model():
    about, arrays = River(TASK, Last()).to_saved()
    for model in (None, 3, {"learn_one": 1}, "Last"):
        about["state"] = {**about["state"], "model": model}
        with pytest.raises(dl.InputError):
            River.from_saved(about, arrays)
    del about["state"]["model"]
    with pytest.raises(dl.InputError, match="a model in memory"):
        River.from_saved(about, arrays)


def test_a_state_with_a_model_is_none_of_other_learners():
    X, y = stream(TASK)
    learner = River(TASK, Last())
    learner.run(X, y)
    for other in (NaiveBayes(TASK), ogd(TASK)):
        with pytest.raises(dl.InputError):
            other.restore(learner.state)
        with pytest.raises(dl.InputError, match="a model in memory"):
            learner.restore(other.state)


# -- growth


def test_more_classes_and_features_go_on_from_the_same_model():
    X, y = stream(TASK)
    for name in ("alone", "mapped", "vote"):
        learner = MAKERS[name]()
        learner.run(X[:30], y[:30])
        wide = np.pad(X, [(0, 0), (0, 2)])
        more = learner.grown(classes=5, features=6)
        assert more.rounds == 30 and more.task.dim == 5 and more.features == 6
        assert models(more)[0].counts == models(learner)[0].counts
        more.run(wide[30:], np.where(np.arange(30) % 2, y[30:], 4))
        assert learner.rounds == 30
    with pytest.raises(dl.InputError, match="3 classes already"):
        MAKERS["alone"]().grown(classes=2)


def test_features_that_would_move_are_refused():
    X, y = stream(TASK)
    for learner in (River(TASK, Counts(), features=Standardise()), MAKERS["scaled"]()):
        learner.run(X, y)
        assert learner.grown(features=4).rounds == 60
        with pytest.raises(dl.InputError, match="by their number, and these would move"):
            learner.grown(features=6)


# -- what is no model


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: River(TASK, 3), "expected a classifier with learn_one and predict_one"),
        (lambda: River(TASK, None), "expected a classifier"),
        (lambda: River(TASK, Counts), "expected a classifier"),
        (lambda: River(TASK, dl.auto(TASK)), "expected a classifier"),
        (lambda: River(dl.tasks.Multilabel(3), Last()), "expected a task of classes"),
        (lambda: River(3, Last()), "expected a task of classes"),
        (lambda: River(TASK, Last(), trusted="no"), "trusted must be True or False"),
        (lambda: River(TASK, Last(), features=3), "features must be a map"),
    ],
)
def test_what_is_no_model_is_refused(make, words):
    with pytest.raises(dl.InputError, match=words):
        make()


def test_a_model_that_cannot_be_copied_is_refused():
    model = Last()
    model.lock = threading.Lock()
    with pytest.raises(dl.InputError, match="Last cannot be copied"):
        River(TASK, model)
