"""Laws of sets of labels: their coverage over any stretch, whatever comes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import driftline as dl
from driftline.sets import SetLevel
from tests import naive
from tests.howmany import chosen, number

SLACK = 40.0


def most_over(misses, share):
    """Return by how many the misses of any stretch exceed their share at most."""
    sums = np.cumsum(np.r_[0.0, misses - share])
    return float((sums - np.minimum.accumulate(sums)).max())


def chances(rng, rounds, classes, kind):
    if kind == "certain":
        made = np.full((rounds, classes), 1e-12)
        made[np.arange(rounds), rng.integers(0, classes, rounds)] = 1.0
        return made / made.sum(axis=1, keepdims=True)
    if kind == "alike":
        return np.full((rounds, classes), 1.0 / classes)
    made = np.exp(rng.normal(size=(rounds, classes)) * {"mild": 1.0, "wild": 8.0}[kind])
    return made / made.sum(axis=1, keepdims=True)


def outside(inside, row, rng):
    """A label that is not in the set, if there is one."""
    return int(np.flatnonzero(~inside)[0]) if not inside.all() else int(row.argmax())


def least_likely(inside, row, rng):
    return int(row.argmin())


def top(inside, row, rng):
    return int(row.argmax())


def honest(inside, row, rng):
    return int(rng.choice(len(row), p=row))


class Waves:
    """Gives sets no reason to be large for long, and attacks then."""

    def __init__(self, calm):
        self.calm, self.t = calm, 0

    def __call__(self, inside, row, rng):
        self.t += 1
        return (outside if self.t // self.calm % 2 else top)(inside, row, rng)


ADVERSARIES = {
    "outside": outside,
    "least likely": least_likely,
    "top": top,
    "honest": honest,
    "waves of 30": Waves(30),
    "waves of 700": Waves(700),
}


@pytest.mark.parametrize("coverage", chosen([0.8, 0.95], [0.5, 0.8, 0.9, 0.99]))
@pytest.mark.parametrize("kind", chosen(["wild", "certain"], ["mild", "wild", "certain", "alike"]))
@pytest.mark.parametrize("name", ADVERSARIES)
def test_coverage_over_any_stretch_whatever_comes(name, kind, coverage):
    rng = np.random.default_rng(0)
    rows = chances(rng, number(1500, 6000), 4, kind)
    level, misses, single = dl.sets.Adaptive(coverage).level(), [], []
    for row in rows:
        inside = level.sets(row[np.newaxis])[0]
        assert inside[row.argmax()]
        label = ADVERSARIES[name](inside, row, rng)
        misses.append(not inside[label])
        single.append(inside.sum() == 1)
        level.tell(row[label], bool(inside[label]))
    misses, share = np.array(misses, dtype=float), 1.0 - coverage
    assert most_over(misses, share) <= SLACK - share + 1e-9
    assert misses.sum() <= share * len(misses) + 20.5
    # the other side: more are covered only where sets have one label
    excess = share - misses - share * np.array(single)
    assert most_over(excess, 0.0) <= SLACK
    assert level.rounds == len(rows) and level.misses == misses.sum()


@settings(deadline=None, max_examples=20)
@given(st.lists(st.tuples(st.floats(0.0, 1.0), st.booleans()), max_size=200), st.floats(0.01, 0.99))
def test_accounts_stay_within_their_bounds(history, coverage):
    level = dl.sets.Adaptive(coverage).level()
    for chance, wanted in history:
        row = np.array([[chance, 1.0 - chance]])
        inside = level.sets(row)[0]
        label = int(np.flatnonzero(~inside)[0]) if wanted and not inside.all() else 0
        level.tell(float(row[0, label]), bool(inside[label]))
        assert -19.5 <= level.account <= 19.5 + coverage + 1e-9


@pytest.mark.parametrize("kind", ["mild", "wild", "certain", "alike"])
def test_sets_are_those_of_a_naive_reference(kind):
    rng = np.random.default_rng(3)
    rows = chances(rng, 400, 5, kind)
    labels = np.array([rng.choice(5, p=row) for row in rows])
    level = dl.sets.Adaptive(0.8).level()
    made = level.play(rows, labels)
    assert np.array_equal(made, naive.adaptive_sets(rows, labels, 0.8))


def test_sets_grow_with_coverage_at_the_same_history():
    rng = np.random.default_rng(4)
    rows = chances(rng, 600, 6, "mild")
    labels = np.array([rng.choice(6, p=row) for row in rows])
    sizes = [dl.sets.Adaptive(c).level().play(rows, labels).sum() for c in (0.5, 0.7, 0.9, 0.97)]
    assert sizes == sorted(sizes) and sizes[0] < sizes[-1]


def stream(rounds=400, classes=4, seed=0):
    made = dl.streams.Planted(
        dl.tasks.Multiclass(classes), rounds=rounds, flips=2, noise=0.1, seed=seed
    )
    return made.task, made.inputs, np.asarray(made.labels)


@pytest.mark.parametrize("delay", [None, 13])
def test_runs_in_pieces_are_one_run(delay, tmp_path):
    task, X, y = stream(160)
    part = dl.sets.Adaptive(0.9)
    whole = part.run(dl.auto(task, effort="fast"), X, y, delay=delay)
    learner, level, made = dl.auto(task, effort="fast"), None, []
    for a, b in ((0, 5), (5, 60), (60, 160)):
        piece = part.run(learner, X[a:b], y[a:b], level=level, delay=delay)
        made.append(piece.sets)
        learner = dl.load(learner.save(tmp_path / "learner"))
        level = dl.load(piece.level.save(tmp_path / "level"))
    assert np.array_equal(np.concatenate(made), whole.sets)
    saved = [one.to_saved() for one in (level, whole.level)]
    assert saved[0][0] == saved[1][0]
    assert all(np.array_equal(saved[0][1][k], saved[1][1][k]) for k in saved[0][1])
    plain = dl.auto(task, effort="fast").run(X, y, delay=delay)
    assert np.array_equal(plain.prediction, whole.trace.prediction)
    assert whole.sets[np.arange(160), plain.prediction].all()
    came = whole.trace.arrived
    assert whole.coverage == whole.covered[came].mean() and whole.level.rounds == came.sum()


def test_late_labels_move_the_level_when_they_come():
    task, X, y = stream(number(150, 400))
    late = dl.sets.Adaptive(0.9).run(dl.auto(task, effort="fast"), X, y, delay=50)
    assert late.sets[:51].all()  # nothing is known before the first label
    assert len(late.level.waiting) == 50
    misses = (~late.covered[late.trace.arrived]).astype(float)
    assert most_over(misses, 0.1) <= SLACK + 50


def test_predicting_changes_nothing():
    task, X, y = stream()
    learner, part = dl.auto(task, effort="fast"), dl.sets.Adaptive(0.9)
    made = part.run(learner, X, y)
    before = made.level.to_saved()[0]
    sets = made.level.predict_set(learner, X[:20])
    assert sets.shape == (20, 4) and sets.any(axis=1).all()
    assert made.level.to_saved()[0] == before
    predicted = [learner.predict(x) for x in X[:20]]
    assert sets[np.arange(20), predicted].all()


@pytest.mark.parametrize("task", [dl.tasks.Binary(), dl.tasks.Ordinal(4)], ids=repr)
def test_signs_and_levels_have_sets(task):
    X = np.random.default_rng(0).normal(size=(300, 3))
    y = np.where(X[:, 0] > 0, 1, -1)
    y = y if task.kind == "sign" else np.digitize(X[:, 0], [-1.0, 0.0, 1.0])
    made = dl.sets.Adaptive(0.9).run(dl.auto(task, effort="fast"), X, y)
    assert made.sets.shape == (300, 2 if task.kind == "sign" else 4)
    assert made.coverage >= 0.9 - 20.5 / 300
    assert made.over_time(100).shape == (201,)


def test_labels_that_nobody_knows_are_misses():
    level = dl.sets.Adaptive(0.9).level()
    made = level.play(np.full((3, 2), 0.5), np.array([0, 2, 1]))
    assert made.all() and level.misses == 1 and level.rounds == 3


@pytest.mark.parametrize("coverage", [0.0, 1.0, -1, "0.9", None, True, float("nan")])
def test_goals_that_are_no_shares_are_refused(coverage):
    with pytest.raises(dl.InputError, match="between 0 and 1"):
        dl.sets.Adaptive(coverage)


def test_goals_are_numbers_of_any_type():
    assert repr(dl.sets.Adaptive(np.float64(0.9))) == repr(dl.sets.Adaptive(0.9))
    assert dl.sets.Adaptive(np.float32(0.5)) == dl.sets.Adaptive(0.5)


def test_what_has_no_sets_is_refused():
    part, level = dl.sets.Adaptive(0.9), dl.sets.Adaptive(0.8).level()
    task, X, y = stream(40)
    with pytest.raises(dl.InputError, match="sets are of classes"):
        part.run(dl.auto(dl.tasks.Multilabel(3)), X, y)
    with pytest.raises(dl.InputError, match="the level is that of"):
        part.run(dl.auto(task, effort="fast"), X, y, level=level)
    learner = dl.auto(task, effort="fast")
    learner.run(X, y, delay=3)
    with pytest.raises(dl.InputError, match="waits for 3 labels"):
        part.run(learner, X, y, delay=3)
    with pytest.raises(dl.InputError, match="chances from 0 to 1"):
        level.sets([[0.5, 1.5]])
    with pytest.raises(dl.InputError):
        part.run(dl.auto(task, effort="fast"), X * np.nan, y)
    with pytest.raises(dl.InputError, match="chances from 0 to 1"):
        level.sets([["much"]])
    with pytest.raises(dl.InputError, match="a chance from 0 to 1"):
        level.tell(float("nan"), True)
    with pytest.raises(dl.InputError, match="or a stream that has both"):
        part.run(dl.auto(task, effort="fast"), X)
    with pytest.raises(dl.InputError, match="expected a learner"):
        part.run("fast", X, y)
    with pytest.raises(dl.InputError, match="a window has 1 to 40"):
        part.run(dl.auto(task, effort="fast"), X, y).over_time(2.5)
    about, arrays = level.to_saved()
    for wrong in ({"account": 1e400}, {"version": 9}, {"misses": 3}, {"part": None}):
        with pytest.raises(dl.InputError):
            SetLevel.from_saved(about | wrong, arrays)


def test_learners_that_do_not_see_labels_have_no_sets():
    task, X, y = stream(40)
    learner = dl.auto(task, feedback="bandit")
    with pytest.raises(dl.InputError, match="does not see those that it missed"):
        dl.sets.Adaptive(0.9).run(learner, X, y)
    assert learner.rounds == 0


def test_a_stream_with_weights_is_learned_as_by_the_learner_alone():
    task, X, y = stream(60)
    logged = dl.streams.Logged(X, y, np.full(60, 0.5), np.arange(60) % 2, classes=4)
    made = dl.sets.Adaptive(0.9).run(dl.auto(task, effort="fast"), logged)
    alone = dl.auto(task, effort="fast").run(logged)
    assert np.array_equal(made.trace.risk, alone.risk)
    assert np.array_equal(made.trace.sample_weight, logged.sample_weight)


def test_learners_that_may_have_no_answer_have_sets():
    task, X, y = stream(120)
    made = dl.sets.Adaptive(0.9).run(dl.auto(dl.tasks.Abstaining(task), effort="fast"), X, y)
    assert (made.trace.prediction < 0).any() and made.size.min() >= 1
    model = dl.DriftClassifier("fast", abstain=0.25, coverage=0.9).fit(X, y)
    assert model.predict_set(X[:3]).shape == (3, 4)


# -- estimators


def test_estimators_have_the_sets_of_a_run(tmp_path):
    task, X, y = stream()
    part = dl.sets.Adaptive(0.9)
    model = dl.DriftClassifier("fast", coverage=0.9)
    for a, b in ((0, 60), (60, 61), (61, 300)):
        model.partial_fit(X[a:b], y[a:b], classes=np.arange(4))
        model = dl.load(model.save(tmp_path / "model"))
    learner = dl.estimators.make_learner("fast", task, scaling=True)
    made = part.run(learner, X[:300], y[:300])
    assert model._level.to_saved()[0] == made.level.to_saved()[0]
    sets = model.predict_set(X[300:])
    assert np.array_equal(sets, made.level.predict_set(learner, X[300:]))
    assert sets.dtype == bool and sets.shape == (100, 4)
    assert sets[np.arange(100), np.searchsorted(model.classes_, model.predict(X[300:]))].all()


def test_classes_that_come_later_are_in_sets_too():
    _, X, y = stream()
    names = np.array(["d", "b", "c", "a"])
    model = dl.DriftClassifier("fast", coverage=0.9)
    first = y[:100] % 2
    model.partial_fit(X[:100], names[first])
    assert model.predict_set(X[:3]).shape == (3, 2)
    model.partial_fit(X[100:300], names[y[100:300]])
    sets = model.predict_set(X[300:])
    assert sets.shape == (100, 4) and model.classes_.tolist() == ["a", "b", "c", "d"]
    assert (sets.sum(axis=0) > 0).all()
    inside = sets[np.arange(100), np.searchsorted(model.classes_, names[y[300:]])]
    assert inside.mean() > 0.6


def test_sets_of_estimators_are_asked_for():
    _, X, y = stream(60)
    with pytest.raises(dl.InputError, match="coverage=0.9"):
        dl.DriftClassifier("fast").fit(X, y).predict_set(X)
    with pytest.raises(dl.InputError, match="between 0 and 1"):
        dl.DriftClassifier("fast", coverage=2.0).fit(X, y)
    again = dl.DriftClassifier("fast", coverage=0.9, epochs=3).fit(X, y)
    assert again._level.rounds == 60
    assert dl.DriftClassifier("fast", coverage=0.9).fit(X, np.zeros(60)).predict_set(X).all()
