"""Who sits in the committee that `auto` makes, for every task there is."""

import copy
import functools
from dataclasses import dataclass

import numpy as np
import pytest
from howmany import number

import driftline as dl
from driftline.committee import LEARNERS, named
from driftline.committee.suited import certain_loss

T = dl.tasks


def first_of(scores):
    """The oracle of one thing out of three."""
    return (np.arange(3) == np.argmax(scores)).astype(int)


TASKS = {
    "signs": T.Binary(),
    "classes": T.Multiclass(3),
    "answers": T.Abstaining(T.Multiclass(3), 0.3),
    "costs": T.CostSensitive([[0.0, 1.0, 0.3], [0.5, 0.0, 0.3]]),
    "tables": T.Finite([[1, 0], [0, 1]], [[0, 1], [1, 0]]),
    "levels": T.Ordinal(4),
    "tags": T.Multilabel(3),
    "sets": T.FixedSize(4, 2),
    "tags by F1": T.FScore(2),
    "rankings": T.LabelRanking(3),
    "matchings": T.Matching(3),
    "oracles": T.Oracle(3, first_of, loss_factor=-1.0, squared_norm=1.0),
    "words": T.Sequence(3),
    "documents": T.NDCG(2),
    "choices": T.PrecisionAtK(2),
}
BASES = {"Task", "StructuredTask", "RelevanceTask"}

every_task = pytest.mark.parametrize("name", TASKS)


def stream_of(task, rounds=40):
    """A tiny stream with a change; a round of F1 takes long."""
    if task.kind == "chain":
        return dl.streams.PlantedSequences(rounds, 1, tags=task.tags, longest=4, seed=0)
    if task.kind == "relevance":
        return dl.streams.PlantedRankings(task, rounds, 1, seed=0)
    if isinstance(task, T.FScore):
        stream = dl.streams.Planted(T.Multilabel(task.tags), rounds // number(20, 10), 1, seed=0)
        stream.task = task
        return stream
    return dl.streams.Planted(task, rounds, 1, seed=0)


def test_no_task_is_left_out():
    parts = {name for name in dir(T) if isinstance(getattr(T, name), type)}
    named = {name for name in parts if issubclass(getattr(T, name), T.Task)}
    assert {type(task).__name__ for task in TASKS.values()} == named - BASES


@every_task
def test_members_say_which_of_them_have_a_guarantee_beforehand(name):
    """All can be certified; those with small steps that never start again have one."""
    members = dl.auto(TASKS[name], effort="fast").members
    assert 2 <= len(members) <= {"answers": 14, "words": 8}.get(name, 7)
    assert len({repr(member) for member in members}) == len(members)
    beforehand = 0
    for member in members:
        assert member.parts.decoder.rate_floor > 0.0
        assert member.parts.domain.diameter < np.inf and member.loss.convex
        bound = next(line for line in member.describe().splitlines() if line.startswith("bound"))
        steps = member.rate.step_range(member.parts.setting)
        sure = steps.norm > 0.0 and member.parts.restart is None
        assert ("none beforehand" not in bound) == sure
        beforehand += sure
    assert beforehand >= 1


@every_task
def test_step_equals_run(name):
    stream = stream_of(TASKS[name])
    whole, one = (
        dl.auto(stream.task, effort="fast").run(stream),
        dl.auto(stream.task, effort="fast"),
    )
    rounds = zip(stream.inputs, stream.labels, strict=True)
    steps = [one.step(x, label) for x, label in rounds]
    np.testing.assert_array_equal(whole.target_loss, [made.target_loss for made in steps])
    np.testing.assert_array_equal(whole.weights, [made.weights for made in steps])


def test_functions_are_not_saved(tmp_path):
    committee = dl.auto(TASKS["oracles"], effort="fast")
    with pytest.raises(dl.InputError, match="Oracle has a function as 'maximize'"):
        committee.save(tmp_path / "model")
    with pytest.raises(dl.InputError, match="nor copied"):
        copy.deepcopy(committee)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", [name for name in TASKS if name != "oracles"])  # a function
def test_a_saved_committee_goes_on(name, tmp_path):
    stream = stream_of(TASKS[name])
    cut = len(stream) * 2 // 3
    whole, part = (
        dl.auto(stream.task, effort="fast").run(stream),
        dl.auto(stream.task, effort="fast"),
    )
    part.run(stream.inputs[:cut], stream.labels[:cut])
    again = dl.load(part.save(tmp_path / "model"))
    rest = again.run(stream.inputs[cut:], stream.labels[cut:])
    np.testing.assert_array_equal(whole.target_loss[cut:], rest.target_loss)
    np.testing.assert_array_equal(whole.weights[cut:], rest.weights)


def starts(trace):
    """The rounds at which somebody started again."""
    rows = [member.restarted for member in trace.members if member.restarted is not None]
    return np.flatnonzero(np.any(rows, axis=0))


@functools.cache
def long_run(name):
    stream = stream_of(TASKS[name], rounds=number(400, 600))
    return dl.auto(stream.task, effort="fast").run(stream)


@pytest.mark.parametrize("name", [name for name in TASKS if name != "tags by F1"])
def test_somebody_starts_again_after_a_clean_change(name):
    trace = long_run(name)
    half = len(trace) // 2
    found = starts(trace)
    assert ((found >= half) & (found < half + 150)).any()


@every_task
def test_somebody_never_starts_again(name):
    members = dl.auto(TASKS[name], effort="fast").members
    assert any(member.parts.restart is None for member in members)
    assert any(member.parts.restart is not None for member in members)


@every_task
def test_learners_by_name_are_certain_where_that_is_bounded(name):
    task = TASKS[name]
    for learner in set(LEARNERS) - {"auto", "fast", "best", "paper"}:
        (member,) = named(learner, task).members
        assert member.decoder.deterministic == (certain_loss(task) is not None)
        assert member.decoder.rate_floor > 0.0


@pytest.mark.parametrize("name", ["classes", "tags", "levels", "rankings"])
def test_restart_by_name_starts_again_after_a_clean_change(name):
    stream = stream_of(TASKS[name], rounds=600)
    found = starts(named("restart", stream.task).run(stream))
    assert ((found >= 300) & (found < 500)).any()


@pytest.mark.parametrize("name", ["tags", "levels", "rankings", "words", "documents"])
def test_a_committee_is_about_as_good_as_its_best_member(name):
    trace = long_run(name)
    best = trace.member_risk.sum(axis=0).min()
    assert trace.target_loss.sum() <= max(1.1 * best, best + 15)


@dataclass(frozen=True)
class PlainClasses(T.Task):
    """Three classes in plain NumPy, with the facts that others ask for."""

    kind = "classes"
    zero_one = True
    guess = T.Guess(2 / 3)
    dim = 3
    labels = T.Classes(3)

    def encode(self, label):
        return np.eye(3)[label]

    def encode_loss(self, prediction):
        return 1.0 - np.eye(3)[prediction]

    def best_prediction(self, mu):
        return int(np.argmax(mu))

    def decompose(self, mean):
        return T.Distribution(np.arange(3), 1.0 - mean)


def test_a_task_of_ones_own_that_says_its_facts_has_the_same_committee():
    stream = dl.streams.Planted(T.Multiclass(3), 60, 1, seed=0)
    ours, theirs = dl.auto(PlainClasses(), effort="fast"), dl.auto(stream.task, effort="fast")
    for one, other in zip(ours.members, theirs.members, strict=True):
        assert repr(one).replace("PlainClasses()", "Multiclass(classes=3)") == repr(other)
    traces = [learner.run(stream.inputs, stream.labels) for learner in (ours, theirs)]
    assert np.array_equal(traces[0].prediction, traces[1].prediction)
    made = [dl.certify(trace, None, stream.inputs, stream.labels) for trace in traces]
    assert made[0].valid and made[0].trivial == pytest.approx(made[1].trivial)
    exact = [[member.exact for member in each.members if each.members] for each in made]
    assert exact[0] == pytest.approx(exact[1])
