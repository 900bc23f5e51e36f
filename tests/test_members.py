"""Laws of members that make no gradient steps, alone."""

import dataclasses

import numpy as np
import pytest

import driftline as dl
from driftline.members import Forest, NaiveBayes, Neighbours, Tables
from driftline.members.growing import DRAWS
from tests import naive

TASK = dl.tasks.Multiclass(3)
MEMBERS = [
    NaiveBayes(TASK),
    NaiveBayes(dl.tasks.Binary(), bins=4, half_life=3.0, smoothing=1.0),
    NaiveBayes(TASK, features=None),
    Tables(TASK, bins=4, coarse=3, half_life=5.0),
    Tables(dl.tasks.Binary(), pairs=0, patience=4.0),
    Neighbours(TASK, window=12),
    Neighbours(dl.tasks.Binary(), k=3, window=7, weighted=False, features=dl.features.Ranks()),
    Neighbours(TASK, features=None),
    Forest(TASK, trees=3, window=20, nodes=9, bins=4),
    Forest(dl.tasks.Binary(), trees=2, restart=False, features=dl.features.Ranks(), seed=3),
]
every_member = pytest.mark.parametrize("member", MEMBERS, ids=repr)


def stream(task, rounds=60, features=4, seed=0):
    """Return rows, some of them of few values, and labels that follow two features."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rounds, features))
    X[:, 1] = rng.integers(0, 3, rounds)
    codes = (X[:, 0] > 0.0).astype(int) + (X[:, 1] > 1.0)
    codes = np.where(rng.random(rounds) < 0.1, rng.integers(0, 3, rounds), codes)
    if task == dl.tasks.Binary():
        return X, np.where(codes > 0, 1, -1)
    return X, codes % task.dim


@every_member
def test_member_keeps_the_page_of_learners(member):
    dl.checks.check_learner(member)
    dl.checks.check_learner(member, *stream(member.task))


def forest(Z, y, seed=0, **settings):
    """Return what a forest of these settings predicts, tree by tree and cut by cut."""
    rest = {"window": 2000, "nodes": 255, "bins": 64, "least": 1.0, "subset": 0.6}
    rest |= {"trees": 3, "smoothing": 0.5, "restart": True} | settings
    return naive.forest(Z, y, 3, np.random.default_rng(seed).random(DRAWS), **rest)


REFERENCES = [
    (
        NaiveBayes(TASK, bins=4, half_life=7.0, smoothing=0.3),
        lambda Z, y: naive.naive_bayes(Z, y, 3, bins=4, half_life=7.0, smoothing=0.3),
    ),
    (
        Tables(TASK, bins=5, coarse=3, half_life=9.0, patience=4.0, smoothing=0.7),
        lambda Z, y: naive.tables(
            Z, y, 3, bins=5, coarse=3, half_life=9.0, patience=4.0, smoothing=0.7
        ),
    ),
    (
        Tables(TASK, bins=5, half_life=9.0, pairs=3),
        lambda Z, y: naive.tables(
            Z, y, 3, bins=5, coarse=None, half_life=9.0, patience=200.0, smoothing=1.0
        ),
    ),
    (
        Neighbours(TASK, k=4, window=11),
        lambda Z, y: naive.neighbours(Z, y, 3, k=4, window=11, weighted=True),
    ),
    (
        Neighbours(TASK, k=3, window=200, weighted=False, features=dl.features.Ranks()),
        lambda Z, y: naive.neighbours(Z, y, 3, k=3, window=200, weighted=False),
    ),
    (Forest(TASK, trees=3), lambda Z, y: forest(Z, y)),
    (
        Forest(TASK, trees=3, window=40, nodes=11, bins=5, smoothing=2.0, restart=False, seed=4),
        lambda Z, y: forest(Z, y, 4, window=40, nodes=11, bins=5, smoothing=2.0, restart=False),
    ),
    (
        Forest(TASK, trees=3, least=4.0, subset=0.1, bins=1024),
        lambda Z, y: forest(Z, y, least=4.0, subset=0.1, bins=1024),
    ),
]


@pytest.mark.parametrize("member, reference", REFERENCES, ids=range(len(REFERENCES)))
def test_kernel_is_what_the_formula_says(member, reference):
    X, y = stream(TASK, rounds=300)
    chances = reference(member.map.transform(X), y)
    trace = member.copy().run(X, y)
    assert np.allclose(trace.loss, -np.log(chances[np.arange(len(y)), y]), atol=1e-8)
    top = chances.max(axis=1) - 1e-9 <= chances[np.arange(len(y)), trace.prediction]
    assert top.all()
    assert np.array_equal(trace.risk, trace.prediction != y)
    assert np.array_equal(trace.target_loss, trace.risk)


@every_member
def test_scores_are_log_chances_of_what_is_predicted(member):
    X, y = stream(member.task)
    one = member.copy()
    one.run(X[:40], y[:40])
    scores = one.score_rows(X[40:])
    assert np.array_equal(scores, [one.scores(x) for x in X[40:]])
    predicted = [one.predict(x) for x in X[40:]]
    assert np.array_equal(one.task.predictions.values(one.task.many.top(scores)), predicted)
    chances = np.exp(scores)
    theirs = chances.sum(axis=1) if scores.shape[1] > 1 else np.ones(20)
    loss = one.run(X[40:41], y[40:41]).loss[0]
    if scores.shape[1] > 1:
        assert loss == pytest.approx(-np.log(chances[0, y[40]] / theirs[0]))
    else:
        assert loss == pytest.approx(np.log1p(np.exp(-y[40] * scores[0, 0])))


def test_counts_that_are_divided_go_on_as_they_were():
    X, y = stream(TASK, rounds=1500)  # half-life 1: a row counts 1e100 after 333 rounds
    for member in (NaiveBayes(TASK, half_life=1.0), Tables(TASK, half_life=1.0, patience=1.0)):
        trace = member.run(X, y)
        assert np.isfinite(trace.loss).all()
        assert member.memory.max() < 1e101
        again = type(member)(TASK, **member.settings)
        again.run(X[:400], y[:400])
        late = again.run(X[400:], y[400:])
        assert np.array_equal(late.loss, trace.loss[400:])


def test_many_features_of_small_chance_do_not_underflow():
    X, y = np.random.default_rng(0).normal(size=(60, 3000)), np.arange(60) % 3
    member = NaiveBayes(TASK, smoothing=1e-3)
    trace = member.run(X, y)
    assert np.isfinite(trace.loss).all()


def test_neighbours_know_the_last_rows_only():
    member = Neighbours(dl.tasks.Multiclass(2), k=1, window=2, features=None)
    member.run(np.array([[0.0], [1.0], [2.0]]), [1, 0, 0])
    assert member.predict([0.0]) == 0


def test_a_forest_that_starts_again_is_what_the_formula_says():
    X, y = stream(TASK, rounds=400)
    y[200:] = (y[200:] + 1) % 3
    losses = {}
    for restart in (False, True):
        chances = forest(X, y, restart=restart)
        losses[restart] = -np.log(chances[np.arange(len(y)), y])
        trace = Forest(TASK, trees=3, restart=restart).run(X, y)
        assert np.allclose(trace.loss, losses[restart], atol=1e-8)
    assert losses[True][240:].mean() < 0.7 * losses[False][240:].mean()


def test_trees_find_borders_that_nothing_tells_them():
    rng = np.random.default_rng(0)
    X = rng.random((4000, 6)) * 10.0 ** np.arange(-3, 3)
    y = (X[:, 1] > 0.3e-2).astype(int) + ((X[:, 1] > 0.3e-2) & (X[:, 4] <= 2.0))
    trace = Forest(TASK).run(X, y)
    assert trace.target_loss[1000:].mean() < 0.01


def test_cuts_lie_between_values_however_near_these_are():
    X = np.array([[1.0], [np.nextafter(1.0, 2.0)]] * 30)
    y = np.arange(60) % 2
    assert Forest(TASK, trees=1).run(X, y).target_loss[8:].sum() == 0.0


@pytest.mark.parametrize("kind", [Forest, Neighbours])
def test_kept_rows_that_do_not_count_are_refused(kind):
    member = kind(TASK, window=20)
    member.run(*stream(TASK))
    state = member.state
    member.layout(4).views(state.memory).counted[3] = 0.0
    with pytest.raises(dl.InputError, match="count more than 0"):
        member.restore(state)


@pytest.mark.parametrize(
    "change",
    {
        "a node leads to itself": lambda nodes: nodes.__setitem__((0, 2), 0.0),
        "a node leads nowhere": lambda nodes: nodes.__setitem__((0, 2), 8.0),
        "half a node": lambda nodes: nodes.__setitem__((0, 2), 1.5),
        "no such feature": lambda nodes: nodes.__setitem__((0, 0), 4.0),
        "half a feature": lambda nodes: nodes.__setitem__((0, 0), 0.5),
        "less than none": lambda nodes: nodes.__setitem__((0, 0), -2.0),
    }.values(),
)
def test_trees_that_lead_astray_are_refused(change):
    member = Forest(TASK, trees=3, window=20, nodes=9, bins=4)
    member.run(*stream(TASK))
    state = member.state
    nodes = member.layout(4).views(state.memory).nodes[0]
    assert nodes[0, 0] >= 0.0  # the root of the first tree is cut
    change(nodes)
    with pytest.raises(dl.InputError, match="later nodes"):
        member.restore(state)


def test_tables_of_two_features_see_what_none_sees_alone():
    rng = np.random.default_rng(0)
    X = rng.random((3000, 5))
    y = (X[:, 1] > 0.5).astype(int) ^ (X[:, 3] > 0.5)
    late = slice(1500, None)
    assert Tables(dl.tasks.Multiclass(2)).run(X, y).target_loss[late].mean() < 0.1
    assert Tables(dl.tasks.Multiclass(2), pairs=0).run(X, y).target_loss[late].mean() > 0.3


@pytest.mark.parametrize(
    "make, words",
    [
        (lambda: NaiveBayes(dl.tasks.Multilabel(3)), "a task of classes"),
        (lambda: NaiveBayes("classes"), "a task of classes"),
        (lambda: NaiveBayes(TASK, bins=1), "bins is a whole number from 2"),
        (lambda: NaiveBayes(TASK, half_life=0.0), "half_life is a number from 1 to 1e.09, not 0.0"),
        (lambda: NaiveBayes(TASK, half_life="long"), "half_life is a number from"),
        (lambda: NaiveBayes(TASK, smoothing=float("nan")), "smoothing is a number from 0.001"),
        (lambda: NaiveBayes(TASK, features="ranks"), "features must be a map"),
        (lambda: Tables(TASK, coarse=2.5), "coarse is a whole number"),
        (lambda: Neighbours(TASK, k=0), "k is a whole number from 1"),
        (lambda: Neighbours(TASK, k=10, window=9), "window is a whole number from 10"),
        (lambda: Forest(TASK, trees=0), "trees is a whole number from 1"),
        (lambda: Forest(TASK, subset=1.5), "subset is a number from 0 to 1"),
        (lambda: Forest(TASK, window=7), "window is a whole number from 8"),
        (lambda: Forest(TASK, seed=None), "seed is a whole number"),
        (lambda: Forest(TASK, restart=2), "restart must be True or False"),
        (lambda: Neighbours(TASK, weighted="yes"), "weighted must be True or False"),
    ],
)
def test_settings_are_refused(make, words):
    with pytest.raises(dl.InputError, match=words):
        make()


@every_member
def test_states_of_others_are_refused(member):
    X, y = stream(member.task)
    one = member.copy()
    one.run(X, y)
    state, before = one.state, one.predict(X[0])
    bad = [
        state.replaced(memory=state.memory[:-1]),
        state.replaced(memory=state.memory - 10.0),
        state.replaced(memory=state.memory * np.nan),
        state.replaced(features=state.features + 1),
        state.replaced(memory=None),
        state.replaced(map=None) if member.map is not None else state.replaced(weights=np.eye(2)),
        dl.OGD(dl.losses.Logistic(TASK)).state.replaced(rounds=3),
    ]
    for other in bad:
        with pytest.raises(dl.InputError):
            one.restore(other)
        assert one.rounds == 60 and one.predict(X[0]) == before


def test_sparse_rows_are_refused():
    from scipy.sparse import csr_array

    member = NaiveBayes(TASK, features=None)
    with pytest.raises(dl.InputError, match="dense rows"):
        member.run(csr_array(np.eye(3)), [0, 1, 2])
    assert member.rounds == 0 and member.features is None


def test_pairs_stay_where_rows_become_longer_than_pairs_are_made_for():
    rng = np.random.default_rng(0)
    X = rng.random((2000, 4))
    y = (X[:, 1] > 0.5).astype(int) ^ (X[:, 3] > 0.5)
    member = Tables(dl.tasks.Multiclass(2), pairs=4)
    member.run(X[:1500], y[:1500])
    for features in (4, 5, 9):
        more = member.grown(features=features)
        wide = np.pad(X[1500:], [(0, 0), (0, features - 4)])
        trace = more.run(wide, y[1500:])
        assert trace.target_loss.mean() < 0.1
        assert dl.certify(trace, None, wide, y[1500:]).valid
        assert more.grown(features=12).state.memory[2] == 4


def test_new_features_have_tables_of_two_while_there_may_be():
    X, y = stream(TASK)
    member = Tables(TASK, pairs=6, bins=4, coarse=3)
    member.run(X, y)
    more = member.grown(features=6)
    assert len(more.state.memory) == Tables(TASK, pairs=6, bins=4, coarse=3).layout(6).size
    more.run(np.pad(X, [(0, 0), (0, 2)]), y)


# -- audits of a member alone


@every_member
def test_a_run_is_certified_without_bounds(member):
    X, y = stream(member.task)
    one = member.copy()
    early = one.run(X[:25], y[:25])
    trace = one.run(X[25:], y[25:])
    for part, inputs, labels in ((early, X[:25], y[:25]), (trace, X[25:], y[25:])):
        made = dl.certify(part, None, inputs, labels)
        assert made.valid and not made.findings
        assert made.expected == made.sampled == part.target_loss.sum()
        assert not any(isinstance(bound, float) for bound in made.bounds().values())
        assert "has no theorem" in str(made) and "nothing to object to" in str(made)
        assert made.to_dict()["exact"] is None
    with pytest.raises(dl.InputError, match="nothing to compare"):
        dl.certify(trace, dl.comparators.Fixed(np.zeros((3, 4))), X[25:], y[25:])


@every_member
def test_a_tampered_memory_is_found(member):
    X, y = stream(member.task)
    one = member.copy()
    one.run(X[:25], y[:25])
    trace = one.run(X[25:], y[25:])
    memory = np.r_[trace.origin.memory[:1], np.roll(trace.origin.memory[1:], 1)]
    forged = dataclasses.replace(trace, origin=trace.origin.replaced(memory=memory))
    try:
        assert dl.certify(forged, None, X[25:], y[25:]).findings
    except dl.InputError:  # no rows lead to these numbers
        return


@every_member
def test_another_stream_is_found(member):
    X, y = stream(member.task)
    trace = member.copy().run(X, y)
    assert "its fingerprint differs" in " ".join(dl.certify(trace, None, X + 0.1, y).findings)
    assert dl.certify(trace, None, X, np.roll(y, 1)).findings


def test_a_trace_is_saved_with_what_was_remembered(tmp_path):
    X, y = stream(TASK)
    member = NaiveBayes(TASK)
    member.run(X[:25], y[:25])
    trace = dl.Trace.load(member.run(X[25:], y[25:]).save(tmp_path / "trace"))
    assert dl.certify(trace, None, X[25:], y[25:]).valid


@every_member
def test_finite_rows_of_any_size_are_counted(member):
    X, y = stream(member.task)
    X[[0, 30]] *= 1e300
    one, stepped = member.copy(), member.copy()
    trace = one.run(X, y)
    losses = [stepped.step(x, int(label)).loss for x, label in zip(X, y, strict=True)]
    assert np.isfinite(trace.loss).all() and np.array_equal(trace.loss, losses)
    assert dl.certify(trace, None, X, y).valid


@every_member
def test_a_state_for_too_many_features_is_refused_before_memory_is_taken(member):
    one = member.copy()
    one.run(*stream(member.task))
    for features in (10**7, 10**12):
        with pytest.raises(dl.InputError):
            one.restore(one.state.replaced(features=features, map=one.state.map))
    about, arrays = one.to_saved()
    about["state"]["features"] = 10**7
    with pytest.raises(dl.InputError):
        type(one).from_saved(about, arrays)


class Slow(dl.members.NaiveBayes):
    """A member of a user's own, which forgets slowly."""


def test_members_of_a_users_own_are_saved_and_certified(tmp_path):
    task = dl.tasks.Multiclass(3)
    inputs = np.random.default_rng(0).normal(size=(200, 4))
    labels = (inputs[:, 0] > 0).astype(int) + (inputs[:, 1] > 0)
    loss = dl.losses.Scaled(dl.losses.Logistic(task), 2.0)
    committee = dl.Committee([Slow(task), dl.OGD(loss, dl.decoders.Argmax(loss))])
    trace = committee.run(inputs, labels)
    assert dl.certify(trace, None, inputs, labels).valid
    again = dl.load(committee.save(tmp_path / "own"))
    assert type(again.members[0]).__name__ == "Slow"
    assert again.predict(inputs[0]) == committee.predict(inputs[0])
