"""Laws of line-ups with maps: shapes decide who plays, and all else is as with any committee."""

import numpy as np
import pytest
from howmany import number
from scipy import sparse

import driftline as dl
from driftline import features as f
from driftline.features import Narrow

EFFORTS = ("fast", "balanced", "best")


def rows(features=5, rounds=200, seed=0):
    generator = np.random.default_rng(seed)
    X = generator.standard_normal((rounds, features))
    return X, (X[:, 0] * X[:, 1] > 0).astype(int) + (X[:, 2] > 1.0)


def small(budget=None):
    """A committee of a linear member and two that share a map."""
    loss = dl.losses.Scaled(dl.losses.Logistic(dl.tasks.Multiclass(3)), 2.0)
    narrow = f.Narrow(f.Chain(f.Ranks(8), f.Fourier(20, 0.5)), most=8)
    members = [
        dl.OGD(loss, dl.decoders.Argmax(loss), features=part, seed=j)
        for j, part in enumerate((f.Standardise(), narrow, narrow, f.Narrow(f.Hats(4), 8)))
    ]
    return dl.Committee(members, budget=budget)


@pytest.mark.parametrize("budget", [None, 1.5])
def test_a_committee_with_maps_keeps_the_page_of_learners(budget):
    dl.checks.check_learner(small(budget))


@pytest.mark.parametrize("form", ["wide", "sparse"])
def test_a_committee_that_leaves_members_out_keeps_the_page_of_learners(form):
    X, y = rows(20, 40)
    dl.checks.check_learner(small(), sparse.csr_array(X) if form == "sparse" else X, y)


@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_a_guarded_vote_keeps_the_page_of_learners(form):
    X, y = rows(4, 40)
    made = dl.auto(dl.tasks.Multiclass(3), effort="fast", combine="vote", budget=1.5)
    dl.checks.check_learner(made, sparse.csr_array(X) if form == "sparse" else X, y)


@pytest.mark.parametrize("features, count", [(3, 2), (32, 2), (33, 0)])
def test_few_features_have_members_without_an_intercept(features, count):
    X, y = rows(features, 30)
    committee = dl.auto(dl.tasks.Multiclass(3))
    committee.run(X, y)
    through = [m for m in committee.members if m.facts.steps and m._width == features]
    assert len(through) == count


PLAIN = {"tags": (dl.tasks.Multilabel(3), 4), "rankings": (dl.tasks.LabelRanking(3), 3)}
PLAIN |= {"costs": (dl.tasks.CostSensitive([[0.0, 1.0, 0.3], [0.5, 0.0, 0.3]]), 4)}


@pytest.mark.parametrize("name", PLAIN)
@pytest.mark.parametrize("features", [3, 33])
def test_structures_of_few_features_have_members_without_an_intercept(name, features):
    task, count = PLAIN[name]
    stream = dl.streams.Planted(task, 30, 1, features, seed=0)
    committee = dl.auto(task)
    committee.run(stream)
    plain = [m for m in committee.members if isinstance(m.map, Narrow) and m.map.most == 32]
    assert len(plain) == (count if features == 3 else 0)
    assert all(m._width == features for m in plain)


def test_rows_of_one_scale_are_ranked_better_without_an_intercept():
    stream = dl.streams.Planted(dl.tasks.LabelRanking(5), 2000, 10, seed=0)
    linear, all_of_them = (
        dl.auto(stream.task, effort=effort).run(stream).target_loss.sum()
        for effort in ("fast", "balanced")
    )
    assert all_of_them < 0.97 * linear


def test_borders_through_the_middle_are_followed_faster():
    stream = dl.streams.LabelFlips(rounds=4000, flips=40, seed=0)
    linear, all_of_them = (
        dl.auto(stream.task, effort=effort).run(stream).target_loss.sum()
        for effort in ("fast", "balanced")
    )
    assert all_of_them < 0.75 * linear


def test_members_share_a_map_and_learn_as_if_alone():
    X, y = rows()
    committee = small()
    trace = committee.run(X, y)
    assert committee.members[1].mapper is committee.members[2].mapper
    alone = small().members[1]
    np.testing.assert_array_equal(alone.run(X, y).loss, trace.members[1].loss)


@pytest.mark.parametrize("features, left", [(8, 4), (9, 1)])
def test_rows_of_many_features_are_left_to_linear_members(features, left):
    X, y = rows(features)
    committee = small()
    assert len(committee.members) == 4
    assert committee.predict(X[0]) in (0, 1, 2) and len(committee.members) == 4
    committee.run(X, y)
    assert len(committee.members) == left


def test_a_first_run_that_is_refused_leaves_nobody_out(tmp_path):
    X, y = rows(20)
    X[100, 3] = np.nan
    committee = small()
    before = committee.save(tmp_path / "a").read_bytes()
    for play in (lambda: committee.run(X, y), lambda: committee.step(X[100], 1)):
        with pytest.raises(dl.InputError, match="nan"):
            play()
        assert committee.save(tmp_path / "b").read_bytes() == before


def test_a_committee_whose_members_all_need_few_features_says_so():
    loss = dl.losses.Logistic(dl.tasks.Multiclass(3))
    committee = dl.Committee([dl.OGD(loss, features=f.Narrow(f.Hats(4), 8))])
    with pytest.raises(dl.InputError, match="no member's map suits dense rows of 9 features"):
        committee.run(*rows(9))


@pytest.mark.parametrize(
    "effort", ["fast", "balanced", pytest.param("best", marks=pytest.mark.slow)]
)
def test_every_effort_is_certified_in_pieces_and_goes_on_from_a_file(effort, tmp_path):
    X, y = rows()
    one = dl.auto(dl.tasks.Multiclass(3), effort=effort)
    first = one.run(X[:120], y[:120], audit=True)
    two = dl.load(one.save(tmp_path / "model"))
    later, again = one.run(X[120:], y[120:], audit=True), two.run(X[120:], y[120:])
    np.testing.assert_array_equal(later.prediction, again.prediction)
    assert dl.certify(first, None, X[:120], y[:120]).valid
    assert dl.certify(
        dl.CommitteeTrace.load(later.save(tmp_path / "t")), None, X[120:], y[120:]
    ).valid


def test_curves_are_learned_where_lines_are_not():
    X, y = rows(4, 3000)
    lost = [dl.auto(dl.tasks.Multiclass(3), effort=e).run(X, y).target_loss.mean() for e in EFFORTS]
    assert lost[1] < 0.5 * lost[0] and lost[2] < 0.5 * lost[0]


@pytest.mark.parametrize(
    "task",
    [
        dl.tasks.Binary(),
        dl.tasks.Multilabel(3),
        dl.tasks.Ordinal(4),
        dl.tasks.LabelRanking(3),
        dl.tasks.NDCG(5),
        dl.tasks.Sequence(3),
    ],
    ids=repr,
)
def test_every_task_has_every_effort(task):
    if not task.layout.ragged:
        stream = dl.streams.Planted(task, rounds=number(10, 40), flips=1, seed=0)
    elif hasattr(task, "tags"):
        stream = dl.streams.PlantedSequences(rounds=20, tags=3, longest=4, seed=0)
    else:
        stream = dl.streams.PlantedRankings(task, rounds=20, seed=0)
    members = []
    for effort in EFFORTS:
        learner = dl.auto(task, effort=effort)
        learner.run(stream)
        members.append(len(learner.members))
    expected = members[0] < members[1] < members[2]
    assert expected or (task.layout.ragged and len(set(members)) == 1)


def test_an_effort_that_is_none_is_named():
    with pytest.raises(dl.InputError, match="effort must be one of fast, balanced, best, not 'x'"):
        dl.auto(dl.tasks.Multiclass(3), effort="x")


def test_a_state_that_is_refused_leaves_maps_shared(tmp_path):
    X, y = rows()
    one, two = small(), small()
    for committee in (one, two):
        committee.run(X[:100], y[:100])
    state = one.state
    bad = state.members[3].replaced(weights=np.full((3, 20), np.nan))
    with pytest.raises(dl.InputError):
        one.restore(state.replaced(members=(*state.members[:3], bad)))
    for committee in (one, two):
        committee.run(X[100:], y[100:])
    assert one.save(tmp_path / "one").read_bytes() == two.save(tmp_path / "two").read_bytes()
