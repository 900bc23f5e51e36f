"""A map of the last labels: how they reach it, and that no row sees its own."""

import itertools
import math

import numpy as np
import pytest
import test_features as laws
from scipy import sparse

import driftline as dl
from driftline.checks import check_learner
from driftline.errors import InputError
from driftline.features import Chain, Hats, Lags, Narrow, Shorten, Standardise, Union
from driftline.inputs import DenseRows, rows_of

MAPS = [
    Lags(1, classes=3),
    Lags(4, classes=3),
    Lags(2, classes=2),
    Union(Standardise(), Lags(2, classes=3)),
    Chain(Standardise(), Lags(3, classes=3), Shorten(0.5)),
    Chain(Union(Hats(3), Lags(2, classes=3)), Standardise(constant=False)),
    Narrow(Lags(2, classes=3), most=9),
]
every_map = pytest.mark.parametrize("part", MAPS, ids=repr)

ROWS = laws.table(3, 90)
LABELS = np.random.default_rng(0).integers(0, 3, 90)


def piece(mapper, start, stop, rows=ROWS, labels=LABELS):
    wrapped = rows_of(rows)
    wrapped.labels = labels[:, np.newaxis]
    return laws.dense(mapper.piece(wrapped, start, stop))


def naive(labels, lags, classes):
    made = np.zeros((len(labels), lags * classes))
    for t in range(len(labels)):
        for k in range(1, lags + 1):
            if t >= k and max(labels[t - k], 0) < classes:
                made[t, (k - 1) * classes + max(labels[t - k], 0)] = 1 / math.sqrt(lags)
    return made


@pytest.mark.parametrize(("lags", "classes"), [(1, 3), (5, 3), (3, 2), (100, 4)])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_lags_are_those_written_out(lags, classes, kind):
    made = Lags(lags, classes).transform(kind(ROWS), LABELS)
    np.testing.assert_array_equal(made, naive(LABELS, lags, classes))
    signs = np.where(LABELS > 0, 1, -1)
    np.testing.assert_array_equal(Lags(lags, 2).transform(kind(ROWS), signs), naive(signs, lags, 2))


@every_map
def test_rows_are_mapped_by_labels_before_them_whatever_the_pieces(part):
    whole = laws.dense(part.transform(ROWS, LABELS))
    pieces, single = part.mapper(), part.mapper()
    cuts = itertools.pairwise([0, 1, 2, 5, 5, 40, 90])
    assert laws.same(np.vstack([piece(pieces, a, b) for a, b in cuts]), whole)
    for t in range(90):
        row = rows_of(ROWS[t : t + 1])
        before = laws.saved(single)
        assert laws.same(single.look_at(row), whole[t : t + 1])
        assert laws.saved(single) == before
        row.labels = LABELS[t : t + 1]
        single.remember(row)
    assert laws.saved(single) == laws.saved(pieces)
    assert np.linalg.norm(whole, axis=1).max() <= part.norm(6) * (1.0 + 1e-12)


@every_map
def test_no_row_sees_its_own_label_or_a_later_one(part):
    whole = laws.dense(part.transform(ROWS, LABELS))
    for t in (0, 1, 30):
        other = LABELS.copy()
        other[t:] = (other[t:] + 1) % 2
        assert laws.same(laws.dense(part.transform(ROWS, other))[: t + 1], whole[: t + 1])


@every_map
def test_learners_with_lags_keep_their_page(part):
    check_learner(laws.learner(part), ROWS[:40], LABELS[:40])


@every_map
@pytest.mark.usefixtures("no_ids")
def test_steps_are_runs_and_runs_are_certified(part):
    make = lambda: [laws.learner(part), laws.learner(None), laws.learner(part, intercept=True)]  # noqa: E731
    for one, other in (
        (laws.learner(part), laws.learner(part)),
        (dl.Committee(make()), dl.Committee(make())),
    ):
        trace = one.run(ROWS[:60], LABELS[:60])
        for t in range(60):
            if t % 3 == 0:
                other.tell(other.ask(ROWS[t]), int(LABELS[t]))
            elif t % 3 == 1:
                assert other.step(ROWS[t], int(LABELS[t])).prediction == trace.prediction[t]
            else:
                other.learn_row(ROWS[t], int(LABELS[t]))
        later, again = (each.run(ROWS[60:], LABELS[60:]) for each in (one, other))
        assert later.risk.tobytes() == again.risk.tobytes()
        assert laws.saved(one) == laws.saved(other)
        for made, a, b in ((trace, 0, 60), (later, 60, 90)):
            weights = one.weights if isinstance(one, dl.OGD) else None
            comparator = None if weights is None else dl.comparators.Fixed(0.0 * weights)
            assert dl.certify(made, comparator, ROWS[a:b], LABELS[a:b]).valid
            wrong = np.roll(LABELS[a:b], 1)
            assert not dl.certify(made, comparator, ROWS[a:b], wrong).valid


def test_members_beside_gradients_see_labels_too():
    task = dl.tasks.Multiclass(3)
    part = Union(Standardise(constant=False), Lags(1, classes=3))
    make = lambda: dl.Committee(  # noqa: E731
        [dl.members.NaiveBayes(task, features=part), laws.learner(part), dl.members.Tables(task)]
    )
    one, other = make(), make()
    trace = one.run(ROWS, LABELS)
    made = [other.step(x, int(y)).prediction for x, y in zip(ROWS, LABELS, strict=True)]
    assert made == trace.prediction.tolist()
    assert dl.certify(trace, None, ROWS, LABELS).valid
    seen = trace.seen_by(0, ROWS, LABELS)
    np.testing.assert_array_equal(seen[:, 6:], naive(LABELS, 1, 3))


@pytest.mark.parametrize("random", [False, True])
def test_what_follows_from_the_last_label_is_learned(random):
    labels = np.arange(600) % 3
    loss = dl.losses.Scaled(dl.losses.Logistic(dl.tasks.Multiclass(3)), 2.0)
    decoder = dl.decoders.GapOptimal(loss) if random else dl.decoders.Argmax(loss)
    for features, least, most in ((Lags(1, classes=3), 0, 60), (Standardise(), 250, 600)):
        learner = dl.OGD(loss, decoder, features=features)
        rows = np.random.default_rng(0).standard_normal((600, 2))
        assert least <= learner.run(rows, labels).target_loss.sum() <= most


def test_signs_are_two_classes():
    loss = dl.losses.Logistic(dl.tasks.Binary())
    learner = dl.OGD(loss, features=Lags(1, classes=2))
    learner.run(np.zeros((3, 1)), [-1, 1, -1])
    assert learner.mapper.past.tolist() == [0]


def test_a_refused_row_leaves_labels_as_they_were():
    for one in (laws.learner(MAPS[3]), dl.Committee([laws.learner(MAPS[3]), laws.learner(None)])):
        one.run(ROWS[:20], LABELS[:20])
        before, bad = laws.saved(one), ROWS.copy()
        bad[50, 2] = math.nan
        with pytest.raises(InputError, match="row 30 has nan as feature 2"):
            one.run(bad[20:], LABELS[20:])
        with pytest.raises(InputError, match="nan"):
            one.step(bad[50], 1)
        assert laws.saved(one) == before


@pytest.mark.parametrize(
    "part",
    [Lags(2, classes=3), Union(Standardise(), Lags(2, classes=3)), Chain(Hats(3), Lags(1, 2))],
    ids=repr,
)
def test_labels_that_are_no_classes_are_refused_before_a_step_learns(part):
    task = dl.tasks.Multilabel(3)
    learner = dl.OGD(dl.losses.Logistic(task), features=part)
    for call in (learner.step, learner.learn_row, lambda x, y: learner.tell(learner.ask(x), y)):
        with pytest.raises(InputError, match="is for labels that are classes or signs"):
            call(ROWS[0], [1, 0, 1])
        assert learner.rounds == 0 and learner.features is None


@pytest.mark.parametrize(
    "part", [Lags(2, classes=3), Standardise(), Union(Hats(3), Lags(1, classes=3))], ids=repr
)
def test_labels_of_tasks_without_kernels_reach_maps_in_steps(part):
    task = dl.tasks.CostSensitive(1.0 - np.eye(3))
    first = dl.auto(task, effort="fast").members[0]
    run, steps = (dl.OGD(first.loss, first.decoder, features=part) for _ in range(2))
    trace = run.run(ROWS, LABELS)
    made = [steps.step(x, int(y)).prediction for x, y in zip(ROWS, LABELS, strict=True)]
    assert made == list(trace.prediction) and laws.saved(run.mapper) == laws.saved(steps.mapper)


def test_more_features_and_classes_leave_lags_as_they_are():
    learner = laws.learner(MAPS[3])
    learner.run(ROWS, LABELS)
    more = learner.grown(features=8, classes=5)
    past = more.mapper.mappers[1].past
    assert past.tolist() == LABELS[-2:].tolist()
    more.step(np.zeros(8), 4)  # a class that was added has no column
    assert more.mapper.mappers[1].past.tolist() == [LABELS[-1], -1]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Lags(0, classes=3), "number of lags is a whole number from 1"),
        (lambda: Lags(1, classes=1), "number of classes is a whole number from 2"),
        (lambda: Lags(True, classes=3), "number of lags"),
        (lambda: Lags(1000, classes=10**5), "columns"),
        (lambda: Lags(1, classes=3).transform(ROWS), "needs the labels of the rows"),
        (lambda: Lags(1, classes=3).transform(ROWS, LABELS[:5]), "one a round"),
        (lambda: Lags(1, classes=3).transform(ROWS, LABELS * 0.5), "type float64"),
        (lambda: Lags(1, classes=3).transform(ROWS, [["a"]] * 90), "classes or signs"),
        (lambda: Lags(1, classes=3).transform(ROWS, np.ones((90, 2), int)), r"\(90, 2\)"),
        (
            lambda: dl.OGD(
                dl.losses.Logistic(dl.tasks.Multilabel(2)), features=Lags(1, classes=2)
            ).step(ROWS[0], [0, 1]),
            "classes or signs",
        ),
    ],
)
def test_what_is_no_lag_is_refused(make, words):
    with pytest.raises(InputError, match=words):
        make()


def test_pieces_are_rows_of_their_own():
    mapper = Lags(1, classes=3).mapper()
    wrapped = DenseRows(ROWS)
    wrapped.labels = LABELS
    first = mapper.piece(wrapped, 0, 5)
    copy = first.array.copy()
    mapper.piece(wrapped, 5, 10)
    np.testing.assert_array_equal(first.array, copy)
